"""Confidence intervals for metrics: exact, DeLong and stratified bootstrap.

The bootstrap resamples positives and negatives separately, for all replicates at once. It draws
only counts per block, so the cost of a replicate depends on the number of blocks, not the number of
rows. If there are too many blocks, neighbors are merged for resampling, and the replicates are
centered on the exact value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from resvm_cli import randomness
from resvm_cli.metrics.ranking import Confusion, ScoredLabels
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, quantile

if TYPE_CHECKING:
    import numpy.typing as npt

MAX_BLOCKS = 4_000
# Rankings with more than MAX_BLOCKS blocks are merged into this many before resampling. With 10,000
# positives, this changed the spread of every metric by a factor of 0.96 to 1.03; repeating the
# bootstrap with all blocks changed it by 0.97 to 1.05.
GRADED_BLOCKS = 1_000
CHUNK_CELLS = 1 << 21
TAIL = (1 - 0.95) / 2  # probability beyond either end of a 95% interval
NORMAL_QUANTILE = 1.959964  # half the width of a 95% interval, in standard errors

Statistics: TypeAlias = Callable[[ScoredLabels], dict[str, FloatArray]]


@dataclass(frozen=True)
class Interval:
    """A value and the bounds of its 95% interval."""

    value: float
    low: float
    high: float


def clopper_pearson(count: int, total: int) -> Interval:
    """Return the exact (Clopper-Pearson) interval of a binomial fraction."""
    from scipy.special import betaincinv

    low = 0.0 if count == 0 else float(betaincinv(count, total - count + 1, TAIL))
    high = 1.0 if count == total else float(betaincinv(count + 1, total - count, 1 - TAIL))
    return Interval(count / total, low, high)


def wilson_bounds(counts: FloatArray, total: float) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's 95% bounds on binomial fractions."""
    square = NORMAL_QUANTILE**2
    middle = (counts + square / 2) / (total + square)
    inner = np.maximum(counts * (total - counts), 0.0) / total  # counts may be rounded
    width = np.sqrt(square * (inner + square / 4)) / (total + square)
    return np.maximum(middle - width, 0.0), np.minimum(middle + width, 1.0)


def roc_auc_interval(known: FloatArray, unlabeled: FloatArray) -> Interval:
    """Return the ROC AUC of known positives against U, with DeLong's interval."""
    above, below = placements(known, unlabeled), 1.0 - placements(unlabeled, known)
    value = float(above.mean())
    error = float(np.sqrt(above.var(ddof=1) / len(above) + below.var(ddof=1) / len(below)))
    low, high = value - NORMAL_QUANTILE * error, value + NORMAL_QUANTILE * error
    return Interval(value, max(0.0, low), min(1.0, high))


def placements(values: FloatArray, others: FloatArray) -> FloatArray:
    """Return, for each value, the fraction of the others below it; ties count half."""
    ordered = np.sort(others)
    low = np.searchsorted(ordered, values, "left")
    high = np.searchsorted(ordered, values, "right")
    return (low + high) / (2.0 * len(ordered))


def draw_counts(counts: npt.ArrayLike, n_replicates: int, rng: np.random.Generator) -> FloatArray:
    """Resample rows with replacement; return the counts per cell (replicates x cells)."""
    cells = np.asarray(counts).astype(np.int64)
    total = int(cells.sum())
    drawn = np.zeros((n_replicates, len(cells)))
    used = np.flatnonzero(cells)
    if not len(used):
        return drawn
    if total <= 8 * len(used):  # then drawing rows is faster than one binomial per cell
        owner = np.repeat(np.arange(len(cells)), cells)
        rows = rng.integers(total, size=(n_replicates, total))
        flat = owner[rows] + np.arange(n_replicates)[:, None] * len(cells)
        found = np.bincount(flat.reshape(-1), minlength=drawn.size)
        return found.reshape(drawn.shape).astype(np.float64)
    drawn[:, used] = rng.multinomial(total, cells[used] / total, size=n_replicates)
    return drawn


def resampled(ranking: ScoredLabels, n_replicates: int, rng: np.random.Generator) -> ScoredLabels:
    """Return bootstrap replicates; rows are resampled with replacement within each class."""
    n_blocks = len(ranking.thresholds)
    negatives = np.concatenate([ranking.above, ranking.tied, [float(ranking.below)]])
    drawn = draw_counts(negatives, n_replicates, rng)
    return ScoredLabels(
        ranking.thresholds,
        draw_counts(ranking.positives, n_replicates, rng),
        drawn[:, :n_blocks],
        drawn[:, n_blocks:-1],
        drawn[:, -1],
    )


def replicate(
    ranking: ScoredLabels, statistics: Statistics, n_replicates: int, seed: int
) -> dict[str, FloatArray]:
    """Return bootstrap replicates of each statistic, corrected for the bias of merging blocks."""
    many = len(ranking.thresholds) > MAX_BLOCKS
    small = ranking.graded(GRADED_BLOCKS) if many else ranking
    rng = randomness.generator(seed, randomness.RANKINGS)
    step = max(1, CHUNK_CELLS // (3 * len(small.thresholds)))
    parts = [
        statistics(resampled(small, min(step, n_replicates - start), rng))
        for start in range(0, n_replicates, step)
    ]
    replicates = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if small is not ranking:
        exact, rough = statistics(ranking), statistics(small)
        for name, values in replicates.items():
            values += exact[name] - rough[name]
    return replicates


def percentile_interval(value: float, replicates: FloatArray) -> Interval:
    """Return the percentile interval of a value; both bounds equal it without replicates."""
    if not len(replicates):
        return Interval(value, value, value)
    # numpy's default method gives intervals that are too narrow
    low, high = (float(quantile(replicates, level, weibull=True)) for level in (TAIL, 1 - TAIL))
    return Interval(value, min(low, value), max(high, value))


def bootstrap(
    ranking: ScoredLabels, statistics: Statistics, n_replicates: int, seed: int
) -> dict[str, Interval]:
    """Return a bootstrap percentile interval for each statistic."""
    exact = statistics(ranking)
    replicates = replicate(ranking, statistics, n_replicates, seed)
    return {
        name: percentile_interval(float(exact[name]), values) for name, values in replicates.items()
    }


def confusion_intervals(table: Confusion, n_replicates: int, seed: int) -> dict[str, Interval]:
    """Return bootstrap intervals at a threshold, from one binomial draw per class."""
    rng = randomness.generator(seed, randomness.CONFUSIONS)
    n_pos, n_neg = table.tp + table.fn, table.fp + table.tn
    tps = rng.binomial(n_pos, table.tp / max(1, n_pos), n_replicates).tolist()
    fps = rng.binomial(n_neg, table.fp / max(1, n_neg), n_replicates).tolist()
    tables = [Confusion(tp, fp, n_pos - tp, n_neg - fp) for tp, fp in zip(tps, fps, strict=True)]
    return {
        name: percentile_interval(
            getattr(table, name), np.array([getattr(drawn, name) for drawn in tables])
        )
        for name in ("precision", "recall", "f1", "mcc")
    }
