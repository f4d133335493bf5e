"""What can be said of a classifier when only positive and unlabeled rows are known.

Also of the known positives themselves: which look wrong, and how many of those are expected to be.
False positives of P are assumed to be like the negatives of U: wrong by chance, not by resemblance.
Their scores then follow the distribution that U and P, whose shares of wrong rows are given, imply
for negatives, and of a |P| of them the share below a score is expected there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from resvm_cli.evaluation.bootstrap import LEVEL, Interval, interval, replicate
from resvm_cli.evaluation.contamination_correction import Contamination
from resvm_cli.evaluation.metrics import FloatArray, Ranking

# Garg et al. (2021) choose the bin by an upper bound that holds with chance 1 - delta.
DELTA = 0.1
GAMMA = 0.01


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


def best_bin(ranking: Ranking, contamination_pos: float = 0.0) -> FloatArray:
    """The share of positives in U, by best-bin estimation (Garg et al. 2021), clipped to 0..1.

    Where the top of the ranking is nearly free of negatives, U over P there is the share sought:
    b TPR over (1 - a) TPR. The top is cut where an upper bound of the ratio is smallest.
    """
    recall = ranking.tp / ranking.n_positives[..., None]
    fraction = ranking.fp / ranking.n_negatives[..., None]
    noise = np.sqrt(np.log(4 / DELTA) / 2) * (
        1 / np.sqrt(ranking.n_negatives) + 1 / np.sqrt(ranking.n_positives)
    )
    bound = np.full_like(recall, np.inf)
    np.divide(fraction + (1 + GAMMA) * noise[..., None], recall, out=bound, where=recall > 0)
    cut = bound.argmin(axis=-1)[..., None]
    ratio = np.take_along_axis(fraction, cut, -1) / np.take_along_axis(recall, cut, -1)
    return np.asarray(np.clip((1 - contamination_pos) * ratio[..., 0], 0.0, 1.0))


def estimate_contamination_unl(
    ranking: Ranking, contamination_pos: float, n_replicates: int, seed: int
) -> Interval:
    """Best-bin estimation with a bootstrap interval in which the bin is chosen anew each time."""

    def statistics(some: Ranking) -> dict[str, FloatArray]:
        return {"b": best_bin(some, contamination_pos)}

    value = float(best_bin(ranking, contamination_pos))
    if not n_replicates:
        return Interval(value, value, value)
    return interval(value, replicate(ranking, statistics, n_replicates, seed)["b"])


def expected_false(
    positives: FloatArray, unlabeled: FloatArray, known: Contamination
) -> FloatArray:
    """For k = 1, 2, ...: expected false positives among the k lowest scores of P.

    ``positives`` ascend. Never falling, never more than k nor than there are, and never fewer than
    k less the true positives.
    """
    n_pos = len(positives)
    depth = np.arange(1, n_pos + 1)
    of_unl = np.sort(unlabeled)
    above_pos = 1 - np.searchsorted(positives, positives, "right") / n_pos
    above_unl = 1 - np.searchsorted(of_unl, positives, "right") / max(1, len(of_unl))
    _, above_negative = known.rates(above_pos, above_unl)
    false = known.a * n_pos
    expected = np.maximum.accumulate(false * np.clip(1 - above_negative, 0.0, 1.0))
    return np.asarray(np.clip(expected, np.maximum(0.0, depth - (n_pos - false)), depth))


def n_suspects(positives: FloatArray, unlabeled: FloatArray) -> int:
    """How many scores of P are more typical of U.

    They lie below the score that tells P and U best apart: where the share of U below it exceeds
    that of P by most (the statistic of Kolmogorov and Smirnov).
    """
    of_pos, of_unl = np.sort(positives), np.sort(unlabeled)
    below_pos = np.searchsorted(of_pos, of_pos, "left") / max(1, len(of_pos))
    below_unl = np.searchsorted(of_unl, of_pos, "left") / max(1, len(of_unl))
    if not len(of_pos):
        return 0
    best = int(np.argmax(below_unl - below_pos))
    return int(np.searchsorted(of_pos, of_pos[best], "left"))


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
