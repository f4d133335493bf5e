"""Areas of a ranking from one sort, and what a threshold gives.

All areas depend on the negatives only through how many lie between one positive score and the next
and how many tie with one. So a ranking is kept as blocks, one for each distinct score of a
positive: tens of millions of negatives become two numbers a block, and resampled rankings are the
same arrays with one more axis. The plain functions take a bool array and a float array, as
scikit-learn's do; to ask for several areas without sorting again, make one ``Ranking``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Counts at each distinct score of a positive, best first; the last axis runs over blocks.

    Any leading axes run over resampled rankings. Counts may be weighted.
    """

    thresholds: FloatArray  # distinct scores of positives, descending
    positives: FloatArray  # positives with this score
    above: FloatArray  # negatives below the score before and above this one
    tied: FloatArray  # negatives with this score
    below: FloatArray  # negatives below the last of these scores; no last axis

    @classmethod
    def of(cls, positive: npt.ArrayLike, scores: npt.ArrayLike) -> Ranking:
        """Sort once. ``positive`` is true for positives; the highest score is the best."""
        is_positive = np.asarray(positive, bool)
        values = np.asarray(scores, np.float64)
        if is_positive.shape != values.shape or values.ndim != 1:
            raise ValueError(f"{is_positive.shape} labels and {values.shape} scores")
        # sorting the classes apart needs no permutation: half the time and memory of argsort
        high = values[is_positive]
        low = values[~is_positive]
        if not len(high):
            raise DataError("no row is positive: there is nothing to recover")
        high.sort()
        low.sort()
        if np.isnan(high[-1]) or (len(low) and np.isnan(low[-1])):
            raise DataError("a score is nan: it has no place in a ranking")
        first = np.flatnonzero(np.concatenate([[True], high[1:] != high[:-1]]))
        thresholds = high[first][::-1]
        counts = np.diff(np.append(first, len(high)))[::-1]
        # ascending keys: searchsorted then walks through memory in order
        at_or_above = len(low) - np.searchsorted(low, high[first], "left")[::-1]
        strictly = len(low) - np.searchsorted(low, high[first], "right")[::-1]
        before = np.concatenate([[0], at_or_above[:-1]])
        return cls(
            thresholds,
            counts.astype(np.float64),
            (strictly - before).astype(np.float64),
            (at_or_above - strictly).astype(np.float64),
            np.asarray(len(low) - at_or_above[-1], np.float64),
        )

    def reweighted(self, prevalence: float) -> Ranking:
        """The same ranking where positives are this share of all rows."""
        weight = (1 - prevalence) / prevalence * self.n_positives / self.n_negatives
        return Ranking(
            self.thresholds,
            self.positives,
            self.above * weight[..., None],
            self.tied * weight[..., None],
            self.below * weight,
        )

    def merged(self, n_blocks: int) -> Ranking:
        """At most this many blocks: neighbours joined, as many positives in each as can be."""
        return self._joined(self.edges(n_blocks))

    def graded(self, n_blocks: int) -> Ranking:
        """At most this many blocks, evenly over recall, false positives and depth together.

        The first rows stay apart, and no block joins much of either class.
        """
        depth = np.log1p(self.tp + self.fp)
        way = self.tp / self.n_positives + self.fp / np.maximum(self.n_negatives, 1)
        way += depth / depth[-1]
        # by where blocks end, so that one after many negatives opens a group and leaves them apart
        group = np.floor(way * (n_blocks / (1e-9 + way[-1])))
        return self._joined(np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]])))

    def _joined(self, edges: npt.NDArray[np.int64]) -> Ranking:
        """Blocks joined, from each edge up to the next."""
        if len(edges) == len(self.thresholds):
            return self
        positives = np.add.reduceat(self.positives, edges)
        above = np.add.reduceat(self.above, edges)
        tied = np.add.reduceat(self.tied, edges)
        first = self.above[edges]  # what precedes a group's first positive stays apart
        return Ranking(
            self.thresholds[np.append(edges[1:], len(self.thresholds)) - 1],
            positives,
            first,
            tied + above - first,
            self.below,
        )

    def edges(self, n_blocks: int) -> npt.NDArray[np.int64]:
        """The first block of each of at most ``n_blocks`` groups of neighbours."""
        if len(self.thresholds) <= n_blocks:
            return np.arange(len(self.thresholds))
        group = np.floor((self.tp - self.positives) * (n_blocks / self.n_positives))
        return np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))

    @cached_property
    def n_positives(self) -> FloatArray:
        return np.asarray(self.positives.sum(axis=-1))

    @cached_property
    def n_negatives(self) -> FloatArray:
        return np.asarray((self.above + self.tied).sum(axis=-1) + self.below)

    @cached_property
    def tp(self) -> FloatArray:
        """Positives at each threshold or above."""
        return np.cumsum(self.positives, axis=-1)

    @cached_property
    def fp(self) -> FloatArray:
        """Negatives at each threshold or above."""
        return np.cumsum(self.above + self.tied, axis=-1)

    def average_precision(self) -> FloatArray:
        """Precision at each positive, averaged: the area under the steps."""
        seen = self.tp + self.fp
        precision = np.divide(self.tp, seen, out=np.zeros_like(seen), where=seen > 0)
        return np.asarray((self.positives * precision).sum(axis=-1) / self.n_positives)

    def pr_auc_trapezoid(self) -> FloatArray:
        """The area under straight lines between the points of the PR curve, from (0, 1) on."""
        tp_before, fp_before = self.tp - self.positives, self.fp - self.tied
        start, end = tp_before + fp_before, self.tp + self.fp
        before = np.divide(tp_before, start, out=np.ones_like(start), where=start > 0)
        after = np.divide(self.tp, end, out=np.zeros_like(end), where=end > 0)
        area = (self.positives * (before + after)).sum(axis=-1) / (2 * self.n_positives)
        return np.asarray(area)

    def pr_auc_interpolated(self) -> FloatArray:
        """The area under the PR curve interpolated as Davis and Goadrich (2006) do.

        Between two points tp and fp grow together at a fixed rate, so precision follows a
        hyperbola, integrated exactly (Keilwagen et al. 2014) and not in steps of one positive.
        """
        grown = self.positives
        tp_before = self.tp - grown
        start = tp_before + self.fp - self.tied
        used = grown > 0
        rate = 1 + np.divide(self.tied, grown, out=np.zeros_like(start), where=used)
        growth = np.divide(rate * grown, start, out=np.zeros_like(start), where=start > 0)
        curved = (tp_before - start / rate) * np.log1p(growth)
        return np.asarray(((grown + curved) / rate).sum(axis=-1) / self.n_positives)

    def roc_auc(self) -> FloatArray:
        """The chance that a positive scores above a negative; ties count half."""
        beaten = self.n_negatives[..., None] - self.fp + self.tied / 2
        pairs = self.n_positives * self.n_negatives
        with np.errstate(invalid="ignore"):  # no negatives: nan
            return np.asarray((self.positives * beaten).sum(axis=-1) / pairs)

    def partial_roc_auc(self, limit: float) -> FloatArray:
        """The area under the ROC curve up to this false-positive fraction, divided by it."""
        most = (limit * self.n_negatives)[..., None]
        start, end = self.fp - self.tied, self.fp
        # each positive's strip of the area: from where it is recovered up to the limit
        left = np.maximum(most - start, 0.0)
        cut = np.divide(left**2, 2 * self.tied, out=np.zeros_like(start), where=self.tied > 0)
        reached = np.where(end > most, cut, most - end + self.tied / 2)
        with np.errstate(invalid="ignore"):
            area = (self.positives * reached).sum(axis=-1) / (self.n_positives * most[..., 0])
        return np.asarray(area)

    def best_f1(self) -> tuple[FloatArray, npt.NDArray[np.int64]]:
        """The largest F1 and the block at which it is reached: all from there up are positive."""
        f1 = 2 * self.tp / (self.tp + self.fp + self.n_positives[..., None])
        best = f1.argmax(axis=-1)
        return np.take_along_axis(f1, best[..., None], -1)[..., 0], best


AREAS = (
    "average_precision",
    "pr_auc_trapezoid",
    "pr_auc_interpolated",
    "roc_auc",
)


def areas(ranking: Ranking) -> dict[str, Any]:
    """The areas by name."""
    return {name: getattr(ranking, name)() for name in AREAS}


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
