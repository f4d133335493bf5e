"""The usual metrics of (positive, scores): areas, and what a threshold gives.

Each function takes a bool array and a float array. To ask for several without sorting again, make
one ``Ranking`` and use its methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from resvm_cli.evaluation.ranking import Ranking


def average_precision(positive: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """Precision at each positive, averaged over positives."""
    return float(Ranking.of(positive, scores).average_precision())


def pr_auc_trapezoid(positive: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """The trapezoidal area under the PR curve: the paper's figure; it flatters tied scores."""
    return float(Ranking.of(positive, scores).pr_auc_trapezoid())


def pr_auc_interpolated(positive: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """The area under the PR curve with Davis and Goadrich's interpolation."""
    return float(Ranking.of(positive, scores).pr_auc_interpolated())


def roc_auc(positive: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """The area under the ROC curve; nan where there are no negatives."""
    return float(Ranking.of(positive, scores).roc_auc())


def partial_roc_auc(positive: npt.ArrayLike, scores: npt.ArrayLike, limit: float = 0.1) -> float:
    """The ROC area up to a false-positive fraction, divided by that fraction: 1 is perfect."""
    if not 0 < limit <= 1:
        raise ValueError(f"a fraction above 0 and up to 1 was expected, not {limit}")
    return float(Ranking.of(positive, scores).partial_roc_auc(limit))


@dataclass(frozen=True)
class Confusion:
    """The confusion table at a threshold: predicted positive is score > threshold."""

    tp: int
    fp: int
    fn: int
    tn: int

    @classmethod
    def at(cls, positive: npt.ArrayLike, scores: npt.ArrayLike, threshold: float) -> Confusion:
        is_positive = np.asarray(positive, bool)
        called = np.asarray(scores) > threshold
        tp = int(np.count_nonzero(called & is_positive))
        fp = int(np.count_nonzero(called)) - tp
        n_positives = int(np.count_nonzero(is_positive))
        return cls(tp, fp, n_positives - tp, len(is_positive) - n_positives - fp)

    @property
    def precision(self) -> float:
        """0 where nothing is predicted positive."""
        return self.tp / max(1, self.tp + self.fp)

    @property
    def recall(self) -> float:
        return self.tp / max(1, self.tp + self.fn)

    @property
    def f1(self) -> float:
        return 2 * self.tp / max(1, 2 * self.tp + self.fp + self.fn)

    @property
    def mcc(self) -> float:
        """Matthews' correlation; 0 where a row or column of the table is empty."""
        margins = [self.tp + self.fp, self.tp + self.fn, self.tn + self.fp, self.tn + self.fn]
        if not all(margins):
            return 0.0
        # roots one by one: the product of four counts overflows where doubles end
        scale = sqrt(margins[0]) * sqrt(margins[1]) * sqrt(margins[2]) * sqrt(margins[3])
        return (self.tp * self.tn - self.fp * self.fn) / scale


def best_f1(positive: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[float, float]:
    """The largest F1, and the score from which on rows are positive to reach it."""
    ranking = Ranking.of(positive, scores)
    value, block = ranking.best_f1()
    return float(value), float(ranking.thresholds[int(block)])
