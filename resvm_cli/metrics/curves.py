"""PR and ROC curves with pointwise confidence bands, and histograms of scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from resvm_cli import randomness
from resvm_cli.metrics.contamination_correction import Contamination
from resvm_cli.metrics.intervals import TAIL, resampled
from resvm_cli.metrics.ranking import ScoredLabels
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray

if TYPE_CHECKING:
    import numpy.typing as npt

DRAWN_POINTS = 1500
BAND_BLOCKS = 2000
BAND_REPLICATES = 200
HISTOGRAM_BINS = 40
# Scores are treated as ensemble votes if they span more than VOTES_RANGE and if more than
# VOTES_FRACTION of the positives are between 0 and 1.
VOTES_RANGE = 8.0
VOTES_FRACTION = 0.3


@dataclass(frozen=True, eq=False)
class Points:
    """Counts at each distinct score, best first: rows at or above the score count as positive."""

    thresholds: FloatArray
    tp: FloatArray
    fp: FloatArray
    n_positives: int
    n_negatives: int

    @classmethod
    def from_scores(cls, positive: BoolArray, scores: FloatArray) -> Points:
        """Count at every distinct score, including scores of negatives."""
        high = np.sort(scores[positive])
        thresholds = np.unique(scores)
        tp = len(high) - np.searchsorted(high, thresholds, "left")
        low = np.sort(scores[~positive])
        fp = len(low) - np.searchsorted(low, thresholds, "left")
        counts = tp[::-1].astype(np.float64), fp[::-1].astype(np.float64)
        return cls(thresholds[::-1], *counts, len(high), len(low))

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
        """Keep at most ``most`` points, spread over recall, false positives and depth."""
        if len(self.thresholds) <= most:
            return self
        depth = np.log1p(self.tp + self.fp)  # more points at the top of the ranking
        way = self.recall + self.fpr + depth / depth[-1]
        chosen = np.searchsorted(way, np.linspace(way[0], way[-1], most))
        kept = np.unique(np.concatenate([[0], chosen, [len(way) - 1]]))
        columns = self.thresholds[kept], self.tp[kept], self.fp[kept]
        return Points(*columns, self.n_positives, self.n_negatives)


@dataclass(frozen=True, eq=False)
class Curve:
    """Rates at each threshold, highest first; leading axes run over bootstrap replicates."""

    thresholds: FloatArray
    recall: FloatArray
    fpr: FloatArray
    precision: FloatArray

    @classmethod
    def from_scored(cls, ranking: ScoredLabels, known: Contamination | None = None) -> Curve:
        """Compute rates at the scores of positives, corrected for contamination if it is known."""
        recall = ranking.tp / ranking.n_positives[..., None]
        if known is not None:
            fraction = ranking.fp / ranking.n_negatives[..., None]
            return cls.corrected(ranking.thresholds, recall, fraction, known)
        fpr = ranking.fp / np.maximum(ranking.n_negatives, 1)[..., None]
        precision = ranking.tp / np.maximum(ranking.tp + ranking.fp, 1)
        return cls(ranking.thresholds, recall, fpr, precision)

    @classmethod
    def corrected(
        cls, thresholds: FloatArray, recall: FloatArray, fraction: FloatArray, known: Contamination
    ) -> Curve:
        """Compute corrected rates from the fractions of P and U predicted positive.

        Rates are clipped to 0..1 and made to increase monotonically as the threshold decreases.
        """
        tpr, fpr = known.rates(recall, fraction)
        tpr, fpr = (np.maximum.accumulate(np.clip(rate, 0.0, 1.0), axis=-1) for rate in (tpr, fpr))
        return cls(thresholds, tpr, fpr, known.precision(tpr, fpr))


@dataclass(frozen=True, eq=False)
class CurveBand:
    """Pointwise bounds on precision at each recall, and on TPR at each FPR."""

    grid: FloatArray
    precision_low: FloatArray
    precision_high: FloatArray
    tpr_low: FloatArray
    tpr_high: FloatArray


def curve_band(
    ranking: ScoredLabels, cases: Sequence[Contamination | None], n_replicates: int, seed: int
) -> CurveBand:
    """Return bounds over all cases and any bootstrap replicates."""
    grid = np.linspace(0.0, 1.0, 101)
    small = ranking.merged(BAND_BLOCKS)
    rng = randomness.generator(seed, randomness.CURVES)
    many = resampled(small, min(n_replicates, BAND_REPLICATES), rng) if n_replicates else None
    bounds = []  # cases x (precision, TPR) x (low, high) x grid
    for known in cases:
        drawn = Curve.from_scored(small if many is None else many, known)
        lines = map(np.atleast_2d, (drawn.recall, drawn.fpr, drawn.precision))
        rows = [_on_grid(grid, *line) for line in zip(*lines, strict=True)]
        bounds.append([np.quantile(of, [TAIL, 1 - TAIL], axis=0) for of in zip(*rows, strict=True)])
    (low_p, low_t), (high_p, high_t) = np.min(bounds, 0)[:, 0], np.max(bounds, 0)[:, 1]
    return CurveBand(grid, low_p, high_p, low_t, high_t)


def _on_grid(
    grid: FloatArray, tpr: FloatArray, fpr: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return precision (as steps) at each recall, and TPR at each FPR, on the grid."""
    # at recall 0, use the precision at the first positive
    block = np.minimum(np.searchsorted(tpr, np.maximum(grid, 1e-12), "left"), len(tpr) - 1)
    start, end = np.zeros(1), np.ones(1)
    across = np.interp(grid, np.concatenate([start, fpr, end]), np.concatenate([start, tpr, end]))
    return precision[block], across


@dataclass(frozen=True, eq=False)
class Histogram:
    """Histograms of two classes' scores; the outermost bins include all values beyond them.

    Decision values of ensembles are vote fractions between 0 and 1, or unbounded sums if all
    members agree. For such values, about half of the bins cover 0 to 1 and the rest cover the sums.
    """

    edges: FloatArray
    positive: npt.NDArray[np.int64]
    other: npt.NDArray[np.int64]

    @classmethod
    def from_scores(cls, positive: BoolArray, scores: FloatArray) -> Histogram:
        finite = scores[np.isfinite(scores)]
        if not len(finite):
            finite = np.zeros(1)
        low, high = np.quantile(finite, [0.005, 0.995])
        edges = np.linspace(low, high, HISTOGRAM_BINS + 1)
        if not high > low:
            edges = np.linspace(low - 0.5, high + 0.5, HISTOGRAM_BINS + 1)
        within = ((scores >= 0) & (scores <= 1))[positive].mean()
        if high - low > VOTES_RANGE and within > VOTES_FRACTION:
            n_below, n_above = (HISTOGRAM_BINS // 4 if far else 0 for far in (low < 0, high > 1))
            n_within = HISTOGRAM_BINS - n_below - n_above
            edges = np.concatenate(
                [
                    np.linspace(low, 0.0, n_below, endpoint=False),
                    np.linspace(0.0, 1.0, n_within + 1),
                    np.linspace(1.0, high, n_above + 1)[1:],
                ]
            )
        clipped = np.clip(scores, edges[0], edges[-1])
        return cls(edges, *(np.histogram(clipped[of], edges)[0] for of in (positive, ~positive)))
