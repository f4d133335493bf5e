"""What can be said of a classifier when only positive and unlabeled rows are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from resvm_cli.metrics.bootstrap import LEVEL, Interval
from resvm_cli.metrics.ranking import FloatArray, Ranking


def pu_score(recall: npt.ArrayLike, fraction: npt.ArrayLike) -> FloatArray:
    """recall^2 / Pr(yhat = 1), 0 where nothing is predicted positive (Lee and Liu 2003)."""
    share = np.asarray(fraction, np.float64)
    squared = np.asarray(recall, np.float64) ** 2
    return np.divide(
        squared, share, out=np.zeros(np.broadcast(squared, share).shape), where=share > 0
    )


def best_pu_score(
    positive: npt.ArrayLike, scores: npt.ArrayLike, *, over_unlabeled: bool = False
) -> tuple[float, float]:
    """The largest pu_score, and the score from which on rows are positive to reach it.

    Pr(yhat = 1) is over all rows, or over the unlabeled ones alone, of which at least one then
    counts as called. It is reached at the score of a known positive: going on to an unlabeled row
    adds to the fraction and not to the recall.
    """
    ranking = Ranking.of(positive, scores)
    if over_unlabeled:
        fraction = np.maximum(ranking.fp, 1) / np.maximum(ranking.n_negatives, 1)
    else:
        fraction = (ranking.fp + ranking.tp) / (ranking.n_negatives + ranking.n_positives)
    values = pu_score(ranking.tp / ranking.n_positives, fraction)
    best = int(values.argmax())
    return float(values[best]), float(ranking.thresholds[best])


def clopper_pearson(count: int, total: int, level: float = LEVEL) -> Interval:
    """The exact binomial interval of a share."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = 0.0 if count == 0 else float(betaincinv(count, total - count + 1, tail))
    high = 1.0 if count == total else float(betaincinv(count + 1, total - count, 1 - tail))
    return Interval(count / total, low, high)


@dataclass(frozen=True)
class Area:
    """An area under a curve with its 95 % interval."""

    value: float
    low: float
    high: float


def roc_area(known: FloatArray, unlabeled: FloatArray) -> Area:
    """How often a known positive lies above a row of U, ties half, with DeLong's interval."""
    above = _placements(known, unlabeled)
    below = 1.0 - _placements(unlabeled, known)
    value = float(above.mean())
    error = float(np.sqrt(above.var(ddof=1) / len(above) + below.var(ddof=1) / len(below)))
    return Area(value, max(0.0, value - 1.959964 * error), min(1.0, value + 1.959964 * error))


def _placements(values: FloatArray, others: FloatArray) -> FloatArray:
    """For each value the share of the others that lie below it, ties half."""
    ordered = np.sort(others)
    low = np.searchsorted(ordered, values, "left")
    high = np.searchsorted(ordered, values, "right")
    return (low + high) / (2.0 * len(ordered))
