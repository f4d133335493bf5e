"""What can be said of a classifier when only positive and unlabeled rows are known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from resvm_cli.evaluation.bootstrap import LEVEL, Interval, interval, replicate
from resvm_cli.evaluation.ranking import FloatArray, Ranking

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


def clopper_pearson(found: int, total: int, level: float = LEVEL) -> Interval:
    """The exact binomial interval of a share."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = 0.0 if found == 0 else float(betaincinv(found, total - found + 1, tail))
    high = 1.0 if found == total else float(betaincinv(found + 1, total - found, 1 - tail))
    return Interval(found / total, low, high)


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
