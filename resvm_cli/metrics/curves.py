"""Curves to look at: every threshold, thinned for drawing, with pointwise bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from resvm_cli import randomness
from resvm_cli.metrics.bootstrap import LEVEL, resampled
from resvm_cli.metrics.contamination_correction import Contamination, Curve, curve
from resvm_cli.metrics.ranking import BoolArray, FloatArray, Ranking

DRAWN_POINTS = 1500
BAND_BLOCKS = 2000
BAND_REPLICATES = 200
HISTOGRAM_BINS = 40
VOTES_RANGE = 8.0  # decision values of an ensemble reach far beyond 0 to 1,
VOTES_SHARE = 0.3  # where this share of the positives still lies


@dataclass(frozen=True, eq=False)
class Points:
    """Counts at distinct scores, best first: rows with this score or a higher one are positive."""

    thresholds: FloatArray
    tp: FloatArray
    fp: FloatArray
    n_positives: int
    n_negatives: int

    @classmethod
    def of(cls, positive: BoolArray, scores: FloatArray) -> Points:
        """Every distinct score, also those that only negatives have."""
        high = np.sort(scores[positive])
        thresholds = np.unique(scores)
        tp = len(high) - np.searchsorted(high, thresholds, "left")
        low = np.sort(scores[~positive])
        fp = len(low) - np.searchsorted(low, thresholds, "left")
        return cls(
            thresholds[::-1],
            tp[::-1].astype(np.float64),
            fp[::-1].astype(np.float64),
            len(high),
            len(low),
        )

    @cached_property
    def precision(self) -> FloatArray:
        return self.tp / (self.tp + self.fp)

    @cached_property
    def recall(self) -> FloatArray:
        return self.tp / self.n_positives

    @cached_property
    def fpr(self) -> FloatArray:
        return self.fp / max(1, self.n_negatives)

    def thinned(self, most: int = DRAWN_POINTS) -> Points:
        """At most this many, evenly spread over recall, false positives and depth together."""
        if len(self.thresholds) <= most:
            return self
        depth = np.log1p(self.tp + self.fp)  # the top of the ranking is looked at closest
        way = self.recall + self.fpr + depth / depth[-1]
        chosen = np.searchsorted(way, np.linspace(way[0], way[-1], most))
        kept = np.unique(np.concatenate([[0], chosen, [len(way) - 1]]))
        return Points(
            self.thresholds[kept], self.tp[kept], self.fp[kept], self.n_positives, self.n_negatives
        )


@dataclass(frozen=True, eq=False)
class Band:
    """Pointwise bounds of precision by recall and of the true-positive rate by the false one."""

    grid: FloatArray
    precision_low: FloatArray
    precision_high: FloatArray
    tpr_low: FloatArray
    tpr_high: FloatArray


Rates = Callable[[Ranking], Curve]


def plain(ranking: Ranking) -> Curve:
    """The curve of true labels, at the scores of positives."""
    seen = np.maximum(ranking.tp + ranking.fp, 1)
    return Curve(
        ranking.thresholds,
        ranking.tp / ranking.n_positives[..., None],
        ranking.fp / np.maximum(ranking.n_negatives, 1)[..., None],
        ranking.tp / seen,
    )


def corrected_rates(known: Contamination) -> Rates:
    """The curve corrected for a contamination."""
    return lambda ranking: curve(ranking, known)


def band(ranking: Ranking, cases: Sequence[Rates], n_replicates: int, seed: int) -> Band:
    """Bounds over resampled rankings and over all cases; without replicates over cases alone."""
    grid = np.linspace(0.0, 1.0, 101)
    small = ranking.merged(BAND_BLOCKS)
    rng = randomness.generator(seed, randomness.CURVES)
    many = resampled(small, min(n_replicates, BAND_REPLICATES), rng) if n_replicates else None
    bounds: list[tuple[FloatArray, ...]] = []
    tail = (1 - LEVEL) / 2
    for rates in cases:
        if many is None:
            exact = rates(small)
            rows = [_on_grid(grid, exact.tpr, exact.fpr, exact.precision)]
        else:
            drawn = rates(many)
            rows = [
                _on_grid(grid, tpr, fpr, precision)
                for tpr, fpr, precision in zip(drawn.tpr, drawn.fpr, drawn.precision, strict=True)
            ]
        precisions, tprs = (np.array(columns) for columns in zip(*rows, strict=True))
        bounds.append(
            (
                *np.quantile(precisions, [tail, 1 - tail], axis=0),
                *np.quantile(tprs, [tail, 1 - tail], axis=0),
            )
        )
    low_p, high_p, low_t, high_t = (np.array(columns) for columns in zip(*bounds, strict=True))
    return Band(grid, low_p.min(axis=0), high_p.max(axis=0), low_t.min(axis=0), high_t.max(axis=0))


def _on_grid(
    grid: FloatArray, tpr: FloatArray, fpr: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Precision at each recall, as steps, and the true-positive rate at each false one."""
    # at recall 0 the first positive counts, not the rows before it
    block = np.minimum(np.searchsorted(tpr, np.maximum(grid, 1e-12), "left"), len(tpr) - 1)
    start, end = np.zeros(1), np.ones(1)
    across = np.interp(grid, np.concatenate([start, fpr, end]), np.concatenate([start, tpr, end]))
    return precision[block], across


@dataclass(frozen=True, eq=False)
class Histogram:
    """How the scores of two classes are spread; the outermost bins hold all beyond them.

    Decision values of ensembles are vote fractions between 0 and 1, and sums of any size where
    all members agree. There 0 to 1 gets half of the bins, and what lies beyond the other half.
    """

    edges: FloatArray
    positive: npt.NDArray[np.int64]
    other: npt.NDArray[np.int64]

    @classmethod
    def of(cls, positive: BoolArray, scores: FloatArray) -> Histogram:
        finite = scores[np.isfinite(scores)]
        if not len(finite):
            finite = np.zeros(1)
        low, high = np.quantile(finite, [0.005, 0.995])
        edges = np.linspace(low, high, HISTOGRAM_BINS + 1)
        if not high > low:
            edges = np.linspace(low - 0.5, high + 0.5, HISTOGRAM_BINS + 1)
        share = ((scores >= 0) & (scores <= 1))[positive].mean()
        if high - low > VOTES_RANGE and share > VOTES_SHARE:
            n_below, n_above = (HISTOGRAM_BINS // 4 if far else 0 for far in (low < 0, high > 1))
            n_within = HISTOGRAM_BINS - n_below - n_above
            edges = np.concatenate(
                [
                    np.linspace(min(low, 0.0), 0.0, n_below, endpoint=False),
                    np.linspace(0.0, 1.0, n_within + 1),
                    np.linspace(1.0, max(high, 1.0), n_above + 1)[1:],
                ]
            )
        clipped = np.clip(scores, edges[0], edges[-1])
        return cls(
            edges,
            np.histogram(clipped[positive], edges)[0],
            np.histogram(clipped[~positive], edges)[0],
        )
