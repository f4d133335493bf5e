"""Ranking metrics from a single sort: areas, the top of the list, thresholds and the PU score.

Every metric depends on the negatives only through how many lie between consecutive scores of
positives, and how many tie with a positive. Scores are therefore stored as blocks, one per distinct
score of a positive: tens of millions of negatives become two numbers per block, and bootstrap
replicates are the same arrays with one more axis. Tied rows have no order, so each metric is the
expected value over all orders of tied rows.
"""

from __future__ import annotations

from functools import cached_property
from math import ceil, sqrt
from typing import TYPE_CHECKING

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray

if TYPE_CHECKING:
    import numpy.typing as npt

AREAS = ("average_precision", "pr_auc_trapezoid", "roc_auc")


@dataclass(frozen=True, eq=False)
class ScoredLabels:
    """Counts at each distinct score of a positive, best first; the last axis runs over blocks.

    Any leading axes run over bootstrap replicates. Counts may be weighted.
    """

    thresholds: FloatArray  # distinct scores of positives, descending
    positives: FloatArray  # positives with this score
    above: FloatArray  # negatives between the previous score and this one
    tied: FloatArray  # negatives with this score
    below: FloatArray  # negatives below all of these scores; has no axis over blocks

    @classmethod
    def from_scores(cls, positive: npt.ArrayLike, scores: npt.ArrayLike) -> ScoredLabels:
        """Sort scores into blocks; ``positive`` marks positives, and higher scores are better."""
        is_positive = np.asarray(positive, bool)
        values = np.asarray(scores, np.float64)
        if is_positive.shape != values.shape or values.ndim != 1:
            raise ValueError(f"{is_positive.shape} labels and {values.shape} scores")
        # sorting each class separately takes half the time and memory of argsort
        high = values[is_positive]
        low = values[~is_positive]
        if not len(high):
            raise DataError("no row is positive")
        high.sort()
        low.sort()
        if np.isnan(high[-1]) or (len(low) and np.isnan(low[-1])):
            raise DataError("a score is nan and cannot be ranked")
        first = np.flatnonzero(np.concatenate([[True], high[1:] != high[:-1]]))
        thresholds = high[first][::-1]
        counts = np.diff(np.append(first, len(high)))[::-1]
        # with ascending keys, searchsorted accesses memory in order
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

    def merged(self, n_blocks: int) -> ScoredLabels:
        """Merge neighboring blocks into at most this many with similar numbers of positives."""
        if len(self.thresholds) <= n_blocks:
            return self
        group = np.floor((self.tp - self.positives) * (n_blocks / self.n_positives))
        return self._joined(np.flatnonzero(np.append(True, group[1:] != group[:-1])))

    def graded(self, n_blocks: int) -> ScoredLabels:
        """Merge into at most this many blocks, spread over recall, false positives and depth.

        The top rows keep their own blocks, and no block contains many rows of either class.
        """
        depth = np.log1p(self.tp + self.fp)
        way = self.tp / self.n_positives + self.fp / np.maximum(self.n_negatives, 1)
        way += depth / depth[-1]
        # grouped by the ends of blocks: a block that follows many negatives starts a new group
        group = np.floor(way * (n_blocks / (1e-9 + way[-1])))
        return self._joined(np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]])))

    def _joined(self, edges: IntArray) -> ScoredLabels:
        """Merge the blocks from each edge up to the next."""
        if len(edges) == len(self.thresholds):
            return self
        positives = np.add.reduceat(self.positives, edges)
        above = np.add.reduceat(self.above, edges)
        tied = np.add.reduceat(self.tied, edges)
        first = self.above[edges]  # negatives above a group's first positive are not in the group
        return ScoredLabels(
            self.thresholds[np.append(edges[1:], len(self.thresholds)) - 1],
            positives,
            first,
            tied + above - first,
            self.below,
        )

    @cached_property
    def n_positives(self) -> FloatArray:
        return np.asarray(self.positives.sum(axis=-1))

    @cached_property
    def n_negatives(self) -> FloatArray:
        return np.asarray((self.above + self.tied).sum(axis=-1) + self.below)

    @cached_property
    def tp(self) -> FloatArray:
        """Positives at or above each threshold."""
        return np.cumsum(self.positives, axis=-1)

    @cached_property
    def fp(self) -> FloatArray:
        """Negatives at or above each threshold."""
        return np.cumsum(self.above + self.tied, axis=-1)

    def average_precision(self) -> FloatArray:
        """Return the mean precision at each positive: the area under the steps of the PR curve."""
        seen = self.tp + self.fp
        precision = np.divide(self.tp, seen, out=np.zeros_like(seen), where=seen > 0)
        return np.asarray((self.positives * precision).sum(axis=-1) / self.n_positives)

    def pr_auc_trapezoid(self) -> FloatArray:
        """Return the trapezoidal area under the PR curve, as in the paper."""
        tp_before, fp_before = self.tp - self.positives, self.fp - self.tied
        start, end = tp_before + fp_before, self.tp + self.fp
        before = np.divide(tp_before, start, out=np.ones_like(start), where=start > 0)
        after = np.divide(self.tp, end, out=np.zeros_like(end), where=end > 0)
        area = (self.positives * (before + after)).sum(axis=-1) / (2 * self.n_positives)
        return np.asarray(area)

    def roc_auc(self) -> FloatArray:
        """Return the probability that a positive scores above a negative; ties count half."""
        beaten = self.n_negatives[..., None] - self.fp + self.tied / 2
        pairs = self.n_positives * self.n_negatives
        with np.errstate(invalid="ignore"):  # nan if there are no negatives
            return np.asarray((self.positives * beaten).sum(axis=-1) / pairs)

    def partial_roc_auc(self, limit: float) -> FloatArray:
        """Return the area under the ROC curve up to a false-positive rate, divided by the rate."""
        if not 0 < limit <= 1:
            raise ValueError(f"limit must be above 0 and at most 1, got {limit}")
        most = (limit * self.n_negatives)[..., None]
        start, end = self.fp - self.tied, self.fp
        # each positive adds a strip of area, from the point where it is recovered to the limit
        left = np.maximum(most - start, 0.0)
        cut = np.divide(left**2, 2 * self.tied, out=np.zeros_like(start), where=self.tied > 0)
        reached = np.where(end > most, cut, most - end + self.tied / 2)
        with np.errstate(invalid="ignore"):
            area = (self.positives * reached).sum(axis=-1) / (self.n_positives * most[..., 0])
        return np.asarray(area)

    def areas(self) -> dict[str, FloatArray]:
        return {name: getattr(self, name)() for name in AREAS}

    def recovered_at(self, depth: float) -> FloatArray:
        """Return the expected number of positives in the top ``depth`` rows."""
        length = self.positives + self.tied
        start = self.tp + self.fp - length
        part = np.divide(depth - start, length, out=np.zeros_like(start), where=length > 0)
        return np.asarray((self.positives * np.clip(part, 0.0, 1.0)).sum(axis=-1))

    def precision_at(self, depth: int) -> FloatArray:
        """Return the fraction of the top ``depth`` rows that are positive."""
        return self.recovered_at(depth) / depth

    def recall_at(self, depth: int) -> FloatArray:
        """Return the fraction of all positives that are in the top ``depth`` rows."""
        return self.recovered_at(depth) / self.n_positives

    def enrichment_at(self, depth: int) -> FloatArray:
        """Return the precision in the top ``depth`` rows divided by that of a random ranking."""
        return self.recall_at(depth) * (self.n_positives + self.n_negatives) / depth

    def bedroc(self, alpha: float) -> FloatArray:
        """Return BEDROC (Truchon and Bayly 2007), which weights the top 1/alpha of rows most.

        Each positive has weight exp(-alpha rank / n). The sum is scaled from 0 (worst) to 1 (best).
        """
        n_rows = self.n_positives + self.n_negatives
        rate = (alpha / n_rows)[..., None]
        length = self.positives + self.tied
        start = self.tp + self.fp - length
        # the mean weight in a tied block, from a geometric sum
        block = np.exp(-rate * start) * -np.expm1(-rate * length) / np.expm1(rate)
        mean = np.divide(block, length, out=np.zeros_like(block), where=length > 0)
        weight = (self.positives * mean).sum(axis=-1)
        rate = rate[..., 0]
        best = -np.expm1(-rate * self.n_positives) / np.expm1(rate)
        worst = best * np.exp(-rate * self.n_negatives)
        with np.errstate(invalid="ignore"):  # nan if there are no negatives
            return np.asarray((weight - worst) / (best - worst))


def depth_of(fraction: float, n_rows: int) -> int:
    """Return how many rows a fraction of a ranking contains: rounded up, and at least 1."""
    return max(1, ceil(round(fraction * n_rows, 9)))  # 0.07 x 100 is 7, not 7.000000000000001


def pu_score(recall: npt.ArrayLike, fraction: npt.ArrayLike) -> FloatArray:
    """Return recall^2 / Pr(yhat = 1), or 0 if nothing is predicted positive (Lee and Liu 2003)."""
    predicted = np.asarray(fraction, np.float64)
    squared = np.asarray(recall, np.float64) ** 2
    out = np.zeros(np.broadcast(squared, predicted).shape)
    return np.divide(squared, predicted, out=out, where=predicted > 0)


def best_pu_score(positive: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[float, float]:
    """Return the largest pu_score, and the lowest score predicted positive at that point.

    The maximum is always at the score of a known positive: including another unlabeled row
    increases the fraction predicted positive but not the recall.
    """
    ranking = ScoredLabels.from_scores(positive, scores)
    fraction = (ranking.fp + ranking.tp) / (ranking.n_negatives + ranking.n_positives)
    values = pu_score(ranking.tp / ranking.n_positives, fraction)
    best = int(values.argmax())
    return float(values[best]), float(ranking.thresholds[best])


@dataclass(frozen=True)
class Confusion:
    """The confusion matrix at a threshold; rows are predicted positive if score > threshold."""

    tp: int
    fp: int
    fn: int
    tn: int

    @classmethod
    def at(cls, positive: npt.ArrayLike, scores: npt.ArrayLike, threshold: float) -> Confusion:
        is_positive = np.asarray(positive, bool)
        predicted = np.asarray(scores) > threshold
        tp = int(np.count_nonzero(predicted & is_positive))
        fp = int(np.count_nonzero(predicted)) - tp
        n_positives = int(np.count_nonzero(is_positive))
        return cls(tp, fp, n_positives - tp, len(is_positive) - n_positives - fp)

    @property
    def precision(self) -> float:
        """Precision, or 0 if nothing is predicted positive."""
        return self.tp / max(1, self.tp + self.fp)

    @property
    def recall(self) -> float:
        return self.tp / max(1, self.tp + self.fn)

    @property
    def f1(self) -> float:
        return 2 * self.tp / max(1, 2 * self.tp + self.fp + self.fn)

    @property
    def mcc(self) -> float:
        """Matthews correlation coefficient, or 0 if a row or column of the matrix is empty."""
        margins = [self.tp + self.fp, self.tp + self.fn, self.tn + self.fp, self.tn + self.fn]
        if not all(margins):
            return 0.0
        # one root per factor, because the product of four large counts would overflow
        scale = sqrt(margins[0]) * sqrt(margins[1]) * sqrt(margins[2]) * sqrt(margins[3])
        return (self.tp * self.tn - self.fp * self.fn) / scale
