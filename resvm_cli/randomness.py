"""All random streams of the program, each with a unique key.

Later versions must be able to redraw the bags of an old model. Streams that models depend on
therefore use the raw output of PCG64, which numpy guarantees to keep stable, not numpy's
distributions, which may change. The spawn key of a numbered stream (per member or fold) is the
number followed by the purpose; other streams mix a four-letter word into the seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Bits: TypeAlias = "np.random.PCG64"  # quoted, so that numpy.random is imported only when needed

SAMPLE_CHUNK = 1 << 16

# Per member or fold. The stream that draws a member's bag is older and has no purpose number.
SOLVER = 1
NEGATIVES = 4  # known negatives in the bag; a separate stream, so draws from P and U stay the same
FOLD = 2  # per fold: the seed of the ensemble that is trained without this fold

# Per run.
FOLDS = 0x666F6C64  # which rows are held out together
CANDIDATES = 0x74756E65  # hyperparameters to try; followed by the stage of the search
JUDGED_UNLABELED = 0x73616D70  # rows of U that candidates are scored on
PARTNERS = 0x70617274  # rows of P that are paired with rows of U for scoring
OUT_OF_BAG_ROWS = 0x6F6F6270  # rows whose out-of-bag values are stored with a model
QUANTILE_ROWS = 0x7175616E  # rows from which quantiles and bins of features are learned
RESAMPLES = 0x72616E6B  # members resampled for rank intervals
IMPORTANCE = 0x696D706F  # rows in which features are permuted; followed by 1 + member: permutations

# For evaluation, by what is resampled, and for simulated data.
RANKINGS = ()
CONFUSIONS = (1,)
RATES_AT_THRESHOLD = (3,)
CURVES = (4,)
MIXED_CLASSES = (5,)
COUNTS_OF_POSITIVES = (6,)
SIMULATED_SETS = ()  # the same key as RANKINGS, but another command uses it with its own seed


def bag_bits(seed: int, member: int, *purpose: int) -> Bits:
    """Return the stream that draws a member's rows of P and U, or its known negatives."""
    return np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(member, *purpose)))


def solver_seed(seed: int, member: int) -> int:
    """Return the seed for a solver that has its own random number generator."""
    return int(np.random.SeedSequence(seed, spawn_key=(member, SOLVER)).generate_state(1)[0])


def fold_seed(seed: int, fold: int) -> int:
    """Return the seed of the ensemble that is trained without this fold."""
    low, high = np.random.SeedSequence(seed, spawn_key=(fold, FOLD)).generate_state(2).tolist()
    return int(high << 32 | low)


def run_bits(seed: int, *key: int) -> Bits:
    """Return a stream that is used once per run."""
    return np.random.PCG64(np.random.SeedSequence((seed, *key)))


def generator(seed: int, key: tuple[int, ...]) -> np.random.Generator:
    """Return a numpy generator, for draws that later versions need not reproduce."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def fractions(bits: Bits, size: int) -> npt.NDArray[np.float64]:
    """Draw numbers in [0, 1)."""
    raw = bits.random_raw(size) >> np.uint64(11)
    return raw.astype(np.float64) * 2.0**-53


def below(bits: Bits, limit: int, size: int) -> npt.NDArray[np.int64]:
    """Draw integers in [0, limit) with replacement."""
    # (1 - 2^-53) n is at least half an ulp below n, so it never rounds up to n
    return (fractions(bits, size) * limit).astype(np.int64)


def shuffled(bits: Bits, size: int) -> npt.NDArray[np.int64]:
    """Return a random permutation of the integers in [0, size)."""
    return np.argsort(bits.random_raw(size), kind="stable")


def sample(bits: Bits, n_rows: int, most: int) -> npt.NDArray[np.int64]:
    """Return the first ``most`` numbers that ``shuffled`` would return, or all, ascending."""
    if n_rows <= most:
        return np.arange(n_rows)
    keys, numbers = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    # in chunks, so that memory depends on the sample size only: there may be ten million rows
    for start in range(0, n_rows, SAMPLE_CHUNK):
        drawn = bits.random_raw(min(SAMPLE_CHUNK, n_rows - start))
        # if keys are equal, the earlier row comes first
        late = drawn >= keys[-1] if most and len(keys) == most else np.zeros(len(drawn), bool)
        keys = np.concatenate([keys, drawn[~late]])
        numbers = np.concatenate([numbers, start + np.flatnonzero(~late)])
        order = np.argsort(keys, kind="stable")[:most]
        keys, numbers = keys[order], numbers[order]
    return np.sort(numbers)
