"""Correct areas under curves, and metrics at a threshold, for known contamination.

Let a be the fraction of P that is negative and b the fraction of U that is positive. At every
threshold, the fractions predicted positive are (1-a) TPR + a FPR in P and b TPR + (1-b) FPR in U.
This module solves these two linear equations for TPR and FPR. With a = 0, the result is the
contingency table of Claesen, Davis, De Smet and De Moor (2015, arXiv:1504.06837). Precision is
computed at U's prevalence, b.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from resvm_cli import randomness
from resvm_cli.metrics.intervals import Interval, percentile_interval, replicate
from resvm_cli.metrics.ranking import Confusion, ScoredLabels
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class Contamination:
    """The contamination a of P and b of U."""

    a: float
    b: float

    def rates(
        self, recall: npt.ArrayLike, fraction: npt.ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return unclipped TPR and FPR from the fractions of P and U predicted positive."""
        of_p, of_u = np.asarray(recall, np.float64), np.asarray(fraction, np.float64)
        separation = 1 - self.a - self.b
        return (
            ((1 - self.b) * of_p - self.a * of_u) / separation,
            ((1 - self.a) * of_u - self.b * of_p) / separation,
        )

    def precision(self, tpr: FloatArray, fpr: FloatArray) -> FloatArray:
        """Return the precision at U's prevalence, clipped to 0..1."""
        hit = self.b * tpr
        predicted = hit + (1 - self.b) * fpr
        ratio = np.divide(hit, predicted, out=np.ones_like(predicted), where=predicted > 0)
        return np.where(hit <= 0, 0.0, np.clip(ratio, 0.0, 1.0))


def roc_auc(ranking: ScoredLabels, known: Contamination) -> FloatArray:
    """Return the AUC, clipped to 0..1; P against U has an area of (1-a-b) AUC + (a+b)/2."""
    return np.clip(0.5 + (ranking.roc_auc() - 0.5) / (1 - known.a - known.b), 0.0, 1.0)


def average_precision(ranking: ScoredLabels, known: Contamination) -> FloatArray:
    """Return the corrected precision averaged over the corrected recall, clipped to 0..1.

    At the score of a known positive, recall steps up; the step is weighted by the precision
    reached. Between two such scores, if a > 0, rows of U lower the recall, and precision falls
    along a hyperbola.
    """
    n_pos, n_unl = ranking.n_positives[..., None], ranking.n_negatives[..., None]
    zero = np.zeros_like(ranking.tp[..., :1])
    tp, fp = np.concatenate([zero, ranking.tp], -1), np.concatenate([zero, ranking.fp], -1)
    reached = known.rates(tp / n_pos, fp / n_unl)
    before = known.rates(
        tp / n_pos,
        np.concatenate([ranking.fp - ranking.tied, np.broadcast_to(n_unl, zero.shape)], -1) / n_unl,
    )
    after = tuple(rate[..., 1:] for rate in reached)
    stepped = known.precision(*after) * (after[0] - before[0][..., :-1])
    total = stepped.sum(axis=-1) + _area_between(known, reached, before).sum(axis=-1)
    return np.asarray(np.clip(total, 0.0, 1.0))


def _area_between(
    known: Contamination,
    start: tuple[FloatArray, FloatArray],
    end: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Integrate precision over recall along segments where only rows of U are added."""
    fallen = end[0] - start[0]
    first, last = known.precision(*start), known.precision(*end)
    predicted = known.b * start[0] + (1 - known.b) * start[1]
    more = known.b * end[0] + (1 - known.b) * end[1] - predicted
    smooth = (more > 0) & (predicted > 0) & (first < 1) & (last > 0)
    safe = np.where(smooth, predicted, 1.0)
    slope = fallen / np.where(smooth, more, 1.0)
    curved = slope * fallen + (start[0] - slope * safe) * slope * np.log1p(
        np.where(smooth, more, 0.0) / safe
    )
    return np.where(smooth, known.b * curved, fallen * (first + last) / 2)


def at_threshold(
    recall: npt.ArrayLike, fraction: npt.ArrayLike, known: Contamination
) -> dict[str, FloatArray]:
    """Return corrected metrics from the fractions of P and U that are predicted positive."""
    tpr, fpr = (np.clip(rate, 0.0, 1.0) for rate in known.rates(recall, fraction))
    precision = known.precision(tpr, fpr)
    both = precision + tpr
    f1 = np.divide(2 * precision * tpr, both, out=np.zeros_like(both), where=both > 0)
    return {"recall": tpr, "fpr": fpr, "precision": precision, "f1": f1}


@dataclass(frozen=True)
class KnownContamination:
    """What is known about contamination: the bounds of a and of b."""

    a: tuple[float, float]
    b: tuple[float, float] | None  # None: estimate it
    middle: float | None = None  # the value of b, if it is not the mean of its bounds


def contamination_grid(known: KnownContamination) -> list[Contamination]:
    """Return all pairs of ends and midpoints, midpoints first."""
    assert known.b is not None

    def points(bounds: tuple[float, float], between: float | None) -> list[float]:
        low, high = bounds
        return [low] if low == high else [(low + high) / 2 if between is None else between, *bounds]

    pairs = product(points(known.a, None), points(known.b, known.middle))
    return [Contamination(*pair) for pair in pairs]


def corrected_areas(
    ranking: ScoredLabels, cases: Sequence[Contamination], n_replicates: int, seed: int
) -> dict[str, Interval]:
    """Return areas corrected for each contamination; the first case is the one to report."""

    def statistics(some: ScoredLabels) -> dict[str, FloatArray]:
        areas = {}
        for number, known in enumerate(cases):
            areas[f"roc_auc {number}"] = roc_auc(some, known)
            areas[f"average_precision {number}"] = average_precision(some, known)
        return areas

    exact = statistics(ranking)
    drawn = dict.fromkeys(exact, np.zeros(0))
    if n_replicates:
        drawn = replicate(ranking, statistics, n_replicates, seed)
    figures = {}
    for name in ("average_precision", "roc_auc"):
        names = [f"{name} {number}" for number in range(len(cases))]
        figures[name] = _figure([(exact[each], drawn[each]) for each in names])
    return figures


def corrected_at_threshold(
    table: Confusion, cases: Sequence[Contamination], n_replicates: int, seed: int
) -> dict[str, Interval]:
    """Return corrected metrics at a threshold, from the confusion matrix of P against U."""
    rng = randomness.generator(seed, randomness.RATES_AT_THRESHOLD)
    n_pos, n_unl = table.tp + table.fn, table.fp + table.tn
    recall, fraction = table.tp / n_pos, table.fp / n_unl
    recalls = rng.binomial(n_pos, recall, n_replicates) / n_pos
    fractions = rng.binomial(n_unl, fraction, n_replicates) / n_unl
    exact = [at_threshold(recall, fraction, known) for known in cases]
    drawn = [at_threshold(recalls, fractions, known) for known in cases]
    pairs = list(zip(exact, drawn, strict=True))
    return {name: _figure([(of[name], many[name]) for of, many in pairs]) for name in exact[0]}


def _figure(cases: Sequence[tuple[FloatArray, FloatArray]]) -> Interval:
    """Return the metric for the first contamination, with an interval that covers all of them."""
    bounds = [percentile_interval(float(value), drawn) for value, drawn in cases]
    low, high = min(bound.low for bound in bounds), max(bound.high for bound in bounds)
    return Interval(bounds[0].value, low, high)
