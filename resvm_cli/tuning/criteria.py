"""What a candidate can be selected by when no negatives are known.

Each criterion compares known positives with unlabeled rows that the judging members have not seen.
Those named ``_of_mean`` rank by the members' mean value, the others by d with ties broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from resvm_cli.metrics.ranking import ScoredLabels, best_pu_score, pu_score
from resvm_cli.parameters import METRIC_NAMES, MetricName
from resvm_cli.rows import FloatArray, IntArray

# What roc_areas is the mean of: whole and at the top, of votes and of values.
ROC_AREAS: tuple[MetricName, ...] = (
    "roc_auc",
    "partial_roc_auc",
    "roc_auc_of_mean",
    "partial_roc_auc_of_mean",
)


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Rows judged by members that have not seen them, P before U."""

    positive: npt.NDArray[np.bool_]  # a row of P
    values: FloatArray  # d, ties broken
    means: FloatArray  # the members' mean value
    called: npt.NDArray[np.bool_]  # predicted positive at the method's threshold
    parts: IntArray  # the fold each row was held out in
    rows: IntArray  # their numbers

    def only(self, chosen: npt.NDArray[np.bool_]) -> JudgedRows:
        return JudgedRows(
            self.positive[chosen],
            self.values[chosen],
            self.means[chosen],
            self.called[chosen],
            self.parts[chosen],
            self.rows[chosen],
        )


@dataclass(frozen=True)
class Scores:
    """What is said of a candidate: every criterion, and how sure the selecting one is."""

    values: dict[str, float]
    deviation: float  # of the criterion over folds
    recall: float
    fraction_positive: float
    n_judged: int


def score(judged: JudgedRows, metric: MetricName, up_to: float, *, by_folds: bool) -> Scores:
    """Every criterion; by folds the mean over them, else over all rows at once."""
    folds = [judged.only(judged.parts == part) for part in np.unique(judged.parts)]
    whole: dict[str, float] = {name: criterion(judged, name, up_to) for name in METRIC_NAMES}
    usable = [fold for fold in folds if fold.positive.any() and not fold.positive.all()]
    if by_folds:
        for name in METRIC_NAMES:
            if name != "pu_score_pooled":
                whole[name] = _mean([criterion(fold, name, up_to) for fold in usable])
    spread = [criterion(fold, metric, up_to) for fold in usable]
    return Scores(
        whole,
        float(np.std(spread, ddof=1)) if len(spread) > 1 else 0.0,
        float(judged.called[judged.positive].mean()),
        float(judged.called.mean()),
        len(judged.values),
    )


def criterion(judged: JudgedRows, name: MetricName, up_to: float) -> float:
    """One criterion over all these rows."""
    if name in ("pu_score", "pu_score_pooled"):
        return float(pu_score(judged.called[judged.positive].mean(), judged.called.mean()))
    if name == "roc_areas":
        return float(np.mean([criterion(judged, area, up_to) for area in ROC_AREAS]))
    kind, of, _ = name.partition("_of_mean")
    values = judged.means if of else judged.values
    if kind == "best_pu_score":
        return best_pu_score(judged.positive, values)[0]
    ranking = ScoredLabels.from_scores(judged.positive, values)
    if kind == "roc_auc":
        return float(ranking.roc_auc())
    if kind == "average_precision":
        return float(ranking.average_precision())
    return float(ranking.partial_roc_auc(up_to))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0
