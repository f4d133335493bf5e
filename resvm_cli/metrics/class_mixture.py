"""Model P and U as mixtures of a positive and a negative class, using only decision values.

A fraction a of P is truly negative and a fraction b of U is truly positive. True positives have the
same distribution of values in both sets, and so do true negatives. The log of the ratio of the two
densities is assumed to increase linearly with the logit of a value's quantile in P and U combined,
with equal weight for each set. Nothing else is assumed, so any increasing transformation of the
values leaves the result unchanged. The EM algorithm fits a, b and the line (the exponential tilt of
Anderson 1979 with unknown fractions, as in Qin 1999), and fits them again to bootstrap samples.

Any smaller b explains the same values, since some positives in U may look exactly like negatives.
If the fitted classes overlap too much, the values do not determine b, and its lower bound is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from resvm_cli import randomness
from resvm_cli.metrics.intervals import LEVEL, Interval, draw_counts
from resvm_cli.metrics.ranking import FloatArray
from resvm_cli.rows import distinct

# Minimum numbers of values for a fit.
MIN_POSITIVES = 10
MIN_UNLABELED = 20
BINS_OF_EACH = 50
FIRST_A, FIRST_B, FIRST_SLOPE = 0.05, 0.3, 1.5
STEPS, RESAMPLED_STEPS = 500, 200
TOLERANCE = 1e-6
RIDGE = 1e-3
REPLICATES = 200
REPLICATES_AT_ONCE = 200
# Bootstrap intervals are widened by this factor, because the line is only a model.
WIDENING = 1.3
# Below these ROC areas (of the fitted classes, and of P against U) b is treated as unknown.
MIN_AREA, MIN_AREA_OF_SETS = 0.9, 0.67
MAX_WIDTH = 0.2  # if the bootstrap interval of b is wider, b is treated as unknown
# The line cannot model rows of one class that look exactly like the other class. Therefore, a
# fraction LOOKALIKES of the rows is assumed to be positive at the average rate, and lower bounds of
# precision are reduced by SLACK. With larger values (docs/ranking.md), no list would reach a false
# discovery rate of 0.05.
LOOKALIKES, SLACK = 0.04, 0.04
MAX_DEPTHS = 300


@dataclass(frozen=True, eq=False)
class BinnedValues:
    """Histograms of the values of P and U over the same bins, lowest first."""

    edges: FloatArray  # between bins; a value equal to an edge belongs to the bin above
    positives: FloatArray
    unlabeled: FloatArray

    @classmethod
    def from_values(cls, positives: FloatArray, unlabeled: FloatArray) -> BinnedValues:
        quantiles = np.arange(1, BINS_OF_EACH) / BINS_OF_EACH
        sets = (positives, unlabeled)
        cuts = [np.quantile(values, quantiles, method="higher") for values in sets]
        edges = distinct(np.concatenate(cuts))
        counts = [
            np.bincount(np.searchsorted(edges, values, "right"), minlength=len(edges) + 1)
            for values in sets
        ]
        return cls(edges, *(count.astype(np.float64) for count in counts))

    @cached_property
    def logits(self) -> FloatArray:
        """The logit of each bin's middle quantile in P and U combined, with equal weight."""
        width = self.positives / self.positives.sum() + self.unlabeled / self.unlabeled.sum()
        middle = (np.cumsum(width) - width / 2) / 2
        middle = np.clip(middle, 1e-9, 1 - 1e-9)  # for empty bins
        found: FloatArray = np.log(middle / (1 - middle))
        return found


@dataclass(frozen=True, eq=False)
class _Fits:
    """The parameters of one or more fits, one row per fit."""

    a: FloatArray
    b: FloatArray
    intercept: FloatArray
    slope: FloatArray

    def ratios(self, logits: FloatArray) -> FloatArray:
        """Return the density of positives divided by that of negatives (fits x bins)."""
        return np.exp(np.clip(self.intercept + self.slope * logits, -40.0, 40.0))

    def true_positives(self, logits: FloatArray) -> FloatArray:
        """Return the probability that a row of P is truly positive (fits x bins)."""
        ratio = (1 - self.a) * self.ratios(logits)
        return ratio / np.maximum(ratio + self.a, 1e-300)

    def hidden_positives(self, logits: FloatArray) -> FloatArray:
        """Return the probability that a row of U is positive (fits x bins)."""
        ratio = self.b * self.ratios(logits)
        return ratio / (ratio + (1 - self.b))


def _fit(
    logits: FloatArray,
    of_pos: FloatArray,
    of_unl: FloatArray,
    known_a: float | None,
    known_b: float | None,
    start: _Fits,
    n_steps: int,
) -> _Fits:
    """Run EM from ``start``, with one Newton step for the line per iteration.

    ``of_pos`` and ``of_unl`` are the counts in each bin (fits x bins).
    """
    n_pos = of_pos.sum(axis=1, keepdims=True)
    n_unl = of_unl.sum(axis=1, keepdims=True)
    counts = of_pos + of_unl
    fits = start
    for _ in range(n_steps):
        in_pos = of_pos * fits.true_positives(logits)
        in_unl = of_unl * fits.hidden_positives(logits)
        a, b = fits.a, fits.b
        if known_a is None:
            a = 1 - in_pos.sum(axis=1, keepdims=True) / n_pos
        if known_b is None:
            b = in_unl.sum(axis=1, keepdims=True) / n_unl
        positive = in_pos + in_unl
        total = positive.sum(axis=1, keepdims=True)
        balance = np.log(np.maximum(total, 1e-9) / np.maximum(n_pos + n_unl - total, 1e-9))
        line = fits.intercept + fits.slope * logits + balance
        chance = 1 / (1 + np.exp(-np.clip(line, -40.0, 40.0)))
        missing, weight = positive - counts * chance, counts * chance * (1 - chance)
        # Newton step: two gradients and a 2 x 2 Hessian
        to_intercept = missing.sum(axis=1, keepdims=True)
        to_slope = (missing * logits).sum(axis=1, keepdims=True) - RIDGE * fits.slope
        ones = weight.sum(axis=1, keepdims=True) + RIDGE
        mixed = (weight * logits).sum(axis=1, keepdims=True)
        squares = (weight * logits**2).sum(axis=1, keepdims=True) + RIDGE
        determinant = ones * squares - mixed**2
        rise = np.clip((squares * to_intercept - mixed * to_slope) / determinant, -2.0, 2.0)
        turn = np.clip((ones * to_slope - mixed * to_intercept) / determinant, -1.0, 1.0)
        change = np.abs(a - fits.a).max() + np.abs(b - fits.b).max()
        fits = _Fits(a, b, fits.intercept + rise, np.maximum(fits.slope + turn, 0.0))
        if change + np.abs(turn).max() < TOLERANCE:
            break
    return fits


@dataclass(frozen=True, eq=False)
class IntervalsByDepth:
    """A value with bounds for each depth of a list; the bounds are nan without replicates."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class ClassMixture:
    """The fitted mixture of positives and negatives."""

    binned: BinnedValues
    fitted: _Fits
    resampled: _Fits | None
    a_known: bool
    b_known: bool
    seed: int

    @classmethod
    def fit(
        cls,
        positives: FloatArray,
        unlabeled: FloatArray,
        a: float | None = None,
        b: float | None = None,
        n_replicates: int = REPLICATES,
        seed: int = 0,
    ) -> ClassMixture | None:
        """Fit the values of P and U; also fit a and b unless they are given.

        Return None if there are too few values.
        """
        if len(positives) < MIN_POSITIVES or len(unlabeled) < MIN_UNLABELED:
            return None
        binned = BinnedValues.from_values(positives, unlabeled)
        first = (FIRST_A if a is None else a, FIRST_B if b is None else b, 0.0, FIRST_SLOPE)
        start = _Fits(*(np.array([[value]]) for value in first))
        own = binned.positives[None], binned.unlabeled[None]
        fitted = _fit(binned.logits, *own, a, b, start, STEPS)
        resampled = _resampled(binned, fitted, a, b, n_replicates, seed) if n_replicates else None
        return cls(binned, fitted, resampled, a is not None, b is not None, seed)

    @cached_property
    def area(self) -> float:
        """The area under the ROC curve of the fitted classes."""
        logits = self.binned.logits
        of_pos = self.fitted.true_positives(logits)[0]
        of_unl = self.fitted.hidden_positives(logits)[0]
        positive = self.binned.positives * of_pos + self.binned.unlabeled * of_unl
        return _roc_area(positive, self.binned.positives + self.binned.unlabeled - positive)

    @cached_property
    def separable(self) -> bool:
        """Whether the classes are far enough apart to determine a and b."""
        of_sets = _roc_area(self.binned.positives, self.binned.unlabeled)
        if self.area < MIN_AREA or of_sets < MIN_AREA_OF_SETS:
            return False
        return self.resampled is None or float(np.ptp(_tails(self.resampled.b))) <= MAX_WIDTH

    @property
    def contamination_pos(self) -> Interval:
        """a: the fraction of P that is truly negative."""
        return self._parameter("a", self.a_known)

    @property
    def contamination_unl(self) -> Interval:
        """b: the fraction of U that is truly positive."""
        return self._parameter("b", self.b_known)

    def _parameter(self, name: str, known: bool) -> Interval:
        value = float(getattr(self.fitted, name)[0, 0])
        if known or self.resampled is None:
            return Interval(value, value, value)
        bounds = _bounds(np.array([value]), getattr(self.resampled, name))
        return Interval(value, bounds[0][0] if self.separable else 0.0, bounds[1][0])

    def precision(self, n_listed: int) -> IntervalsByDepth:
        """Return the fraction of positives in the top 1, 2, ... rows of U."""
        logits = self.binned.logits[::-1]
        counts = self.binned.unlabeled[::-1]

        def probabilities(fits: _Fits) -> FloatArray:
            own = fits.hidden_positives(logits)
            return _scaled_to_mean(own, counts, float(fits.b[0, 0])) if self.b_known else own

        found = self._mean_probability(counts, probabilities, n_listed)
        if self.b_known or self.separable:
            return found
        return IntervalsByDepth(found.value, 0.0 * found.low, found.high)

    def expected_false(self, n_listed: int) -> IntervalsByDepth:
        """Return the expected number of negatives in the bottom 1, 2, ... rows of P."""
        logits = self.binned.logits
        counts = self.binned.positives

        def probabilities(fits: _Fits) -> FloatArray:
            own = 1 - fits.true_positives(logits)
            return _scaled_to_mean(own, counts, float(fits.a[0, 0])) if self.a_known else own

        found = self._mean_probability(counts, probabilities, n_listed)
        depth = np.arange(1, n_listed + 1)
        low = found.low if self.a_known or self.separable else 0.0 * found.low
        return IntervalsByDepth(found.value * depth, low * depth, found.high * depth)

    def n_false(self) -> int:
        """Return the expected number of negatives in P."""
        return round(float(self.fitted.a[0, 0] * self.binned.positives.sum()))

    def _mean_probability(
        self, counts: FloatArray, probabilities: Callable[[_Fits], FloatArray], n_listed: int
    ) -> IntervalsByDepth:
        """Return the mean probability over the first 1, 2, ... rows; ``counts`` is rows per bin."""
        ends = np.concatenate([[0.0], np.cumsum(counts)])

        def means(fits: _Fits, depths: FloatArray) -> FloatArray:
            sums = np.cumsum(counts * probabilities(fits), axis=1)
            lines = [np.interp(depths, ends, [0.0, *line]) for line in sums.tolist()]
            return np.clip(np.array(lines) / depths, 0.0, 1.0)

        depth = np.arange(1, n_listed + 1, dtype=np.float64)
        value = means(self.fitted, depth)[0]
        value = value + LOOKALIKES * (means(self.fitted, ends[-1:])[0] - value)
        if self.resampled is None:
            nothing = np.full(n_listed, np.nan)
            return IntervalsByDepth(value, nothing, nothing)
        some = distinct(np.round(np.geomspace(1, max(1, n_listed), MAX_DEPTHS)))
        rng = randomness.generator(self.seed, randomness.MIXED_CLASSES)
        # the number of positives in a list of this length varies around its expectation
        found = rng.binomial(some.astype(np.int64), means(self.resampled, some)) / some
        low, high = _bounds(np.interp(some, depth, value), found)
        low = np.maximum(low - SLACK, 0.0)
        return IntervalsByDepth(value, np.interp(depth, some, low), np.interp(depth, some, high))


def _resampled(
    binned: BinnedValues,
    fitted: _Fits,
    a: float | None,
    b: float | None,
    n_replicates: int,
    seed: int,
) -> _Fits:
    """Fit bootstrap samples of both sets."""
    rng = randomness.generator(seed, randomness.MIXED_CLASSES)
    parts = []
    for first in range(0, n_replicates, REPLICATES_AT_ONCE):
        size = min(REPLICATES_AT_ONCE, n_replicates - first)
        of_pos = draw_counts(binned.positives, size, rng)
        of_unl = draw_counts(binned.unlabeled, size, rng)
        start = _Fits(*(np.repeat(line, size, axis=0) for line in vars(fitted).values()))
        parts.append(_fit(binned.logits, of_pos, of_unl, a, b, start, RESAMPLED_STEPS))
    return _Fits(
        *(
            np.concatenate(lines)
            for lines in zip(*(vars(part).values() for part in parts), strict=True)
        )
    )


def _scaled_to_mean(chances: FloatArray, counts: FloatArray, mean: float) -> FloatArray:
    """Multiply the odds of all probabilities (fits x bins) by one factor to reach this mean.

    A fraction given by the user is respected even if the values suggest a different one.
    """
    if not 0 < mean < 1:
        return np.full_like(chances, mean)
    logits = np.log(np.maximum(chances, 1e-15)) - np.log(np.maximum(1 - chances, 1e-15))
    low, high = np.full((len(chances), 1), -80.0), np.full((len(chances), 1), 80.0)
    for _ in range(50):
        middle = (low + high) / 2
        means = (counts / (1 + np.exp(-(logits + middle)))).sum(axis=1, keepdims=True)
        above = means > mean * counts.sum()
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    found: FloatArray = 1 / (1 + np.exp(-(logits + (low + high) / 2)))
    return found


def _roc_area(positive: FloatArray, negative: FloatArray) -> float:
    """Return the area under the ROC curve from counts per bin, lowest bin first."""
    total = float(positive.sum() * negative.sum())
    above = np.cumsum(negative) - negative / 2
    return float((positive * above).sum()) / total if total > 0 else 0.5


def _tails(replicates: FloatArray) -> FloatArray:
    """Return the lower and upper percentiles of the replicates, as two rows."""
    tail = (1 - LEVEL) / 2
    found: FloatArray = np.quantile(replicates, [tail, 1 - tail], axis=0, method="weibull")
    return found


def _bounds(values: FloatArray, replicates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return widened percentile bounds from replicates (replicates x values), clipped to 0..1."""
    low, high = _tails(replicates)
    below = WIDENING * np.maximum(values - low, 0.0)
    above = WIDENING * np.maximum(high - values, 0.0)
    return np.clip(values - below, 0.0, 1.0), np.clip(values + above, 0.0, 1.0)
