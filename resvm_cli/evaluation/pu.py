"""What can be said of a classifier when only positive and unlabeled rows are known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from resvm_cli.evaluation.ranking import FloatArray, Ranking


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
