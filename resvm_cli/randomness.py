"""Every random stream of the program, each with a key that no other has.

Streams that models depend on use the raw numbers of PCG64, which numpy promises to keep, and not
what its distributions make of them, which may change: an old model's bags must still be redrawn by
a later version. Streams of one seed that count something (members, folds) have the number first and
the purpose second in their spawn key; the others mix a word of four letters into the seed.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Bits: TypeAlias = "np.random.PCG64"  # not imported before it is needed

SAMPLE_CHUNK = 1 << 16

# Of each member: the rows of its bag have no second number, for they came first.
SOLVER = 1
# Of each fold: the seed of the ensemble that is trained without it; inner and outer folds.
FOLD = 2
OUTER_FOLD = 3

# Of each run.
FOLDS = 0x666F6C64  # which rows are held out together
OUTER_FOLDS = 0x6F757465
CANDIDATES = 0x74756E65  # hyperparameters tried; a stage of the search follows
JUDGED_UNLABELED = 0x73616D70  # rows of U that candidates are judged on
PARTNERS = 0x70617274  # rows of P that rows of U are judged together with
OUT_OF_BAG_ROWS = 0x6F6F6270  # rows whose out-of-bag values are stored with a model
RESAMPLES = 0x72616E6B  # members drawn again for intervals of ranks
# Of a benchmark; what tells its cells apart follows.
BENCHMARK_POOL = 0x706F6F6C  # rows of a large file that all sets are drawn from
BENCHMARK_SETS = 0x62656E63
BENCHMARK_TRAINING = 0x62747261

# Of evaluation, by what is resampled, and of simulated data.
RANKINGS = ()
CONFUSIONS = (1,)
PAIRED_RANKINGS = (2,)
RATES_AT_THRESHOLD = (3,)
CURVES = (4,)
MIXED_CLASSES = (5,)
SIMULATED_SETS = ()  # of another command, with a seed of its own


def bag_bits(seed: int, member: int) -> Bits:
    """The stream that a member's bag is drawn from."""
    return np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(member,)))


def solver_seed(seed: int, member: int) -> int:
    """A number for solvers with a random stream of their own."""
    return int(np.random.SeedSequence(seed, spawn_key=(member, SOLVER)).generate_state(1)[0])


def fold_seed(seed: int, fold: int, purpose: int = FOLD) -> int:
    """The seed of the ensemble that is trained without this fold."""
    low, high = np.random.SeedSequence(seed, spawn_key=(fold, purpose)).generate_state(2).tolist()
    return int(high << 32 | low)


def run_bits(seed: int, *key: int) -> Bits:
    """A stream of a whole run."""
    return np.random.PCG64(np.random.SeedSequence((seed, *key)))


def generator(seed: int, key: tuple[int, ...]) -> np.random.Generator:
    """numpy's distributions, where no later version need repeat them."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def keyed_generator(seed: int, *key: int) -> np.random.Generator:
    """The same for one of many draws of a run."""
    return np.random.default_rng(np.random.SeedSequence((seed, *key)))


def fractions(bits: Bits, size: int) -> npt.NDArray[np.float64]:
    """Numbers from 0 to below 1."""
    raw = bits.random_raw(size) >> np.uint64(11)
    return raw.astype(np.float64) * 2.0**-53


def below(bits: Bits, limit: int, size: int) -> npt.NDArray[np.int64]:
    """Whole numbers below a limit, with replacement."""
    # (1 - 2^-53) n is at least half a unit below n and never rounds up to it
    return (fractions(bits, size) * limit).astype(np.int64)


def shuffled(bits: Bits, size: int) -> npt.NDArray[np.int64]:
    """The numbers below size in random order."""
    return np.argsort(bits.random_raw(size), kind="stable")


def sample(bits: Bits, n_rows: int, most: int) -> npt.NDArray[np.int64]:
    """At most so many row numbers, ascending, each once: the first of them shuffled."""
    if n_rows <= most:
        return np.arange(n_rows)
    keys, numbers = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    # a chunk at a time, so that memory is by the sample: there may be ten million rows
    for start in range(0, n_rows, SAMPLE_CHUNK):
        drawn = bits.random_raw(min(SAMPLE_CHUNK, n_rows - start))
        # of equal keys the earlier row comes first
        late = drawn >= keys[-1] if most and len(keys) == most else np.zeros(len(drawn), bool)
        keys = np.concatenate([keys, drawn[~late]])
        numbers = np.concatenate([numbers, start + np.flatnonzero(~late)])
        order = np.argsort(keys, kind="stable")[:most]
        keys, numbers = keys[order], numbers[order]
    return np.sort(numbers)
