"""P and U as mixtures of one positive and one negative class, told apart by their values alone.

A share a of P is truly negative, a share b of U truly positive, and values of true positives and of
true negatives are distributed alike in both. How the two distributions differ is one curve: the
logarithm of their ratio is taken to rise in a straight line with the logit of a value's place among
P and U, half and half. Nothing else is assumed of them, so that any increasing change of the values
leaves the result as it is. a, b and the line are fitted by the EM algorithm (the exponential tilt
of Anderson 1979 with unknown shares, as Qin 1999 has it), and again for resampled sets.

Any smaller b explains the same values: some positives of U may look like negatives throughout.
Where the fitted classes overlap much, b is not to be had from values, and bounds begin at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from resvm_cli import randomness
from resvm_cli.metrics.bootstrap import LEVEL, Interval, draw_counts
from resvm_cli.metrics.ranking import FloatArray
from resvm_cli.rows import distinct

# Fewer values than these tell nothing.
LEAST_POSITIVES = 10
LEAST_UNLABELED = 20
BINS_OF_EACH = 50
FIRST_A, FIRST_B, FIRST_SLOPE = 0.05, 0.3, 1.5
STEPS, RESAMPLED_STEPS = 500, 200
TOLERANCE = 1e-6
RIDGE = 1e-3
REPLICATES = 200
REPLICATES_AT_ONCE = 200
# Bounds are this much further from the figure than resampling puts them: the line is not exact.
WIDENING = 1.3
# Areas under ROC curves, of the fitted classes and of P against U itself: below, b is not known.
LEAST_AREA, LEAST_AREA_OF_SETS = 0.9, 0.67
WIDEST = 0.2  # interval of b by resampling: sets that leave more open do not tell it either
# Rows of one class that look wholly like the other are no part of the line: so many are taken to
# be of either class as all rows are, and lower bounds of what is promised are so much lower. More
# (docs/ranking.md) would leave no list for a false discovery rate of 0.05.
LOOKALIKES, SLACK = 0.04, 0.04
MOST_DEPTHS = 300


@dataclass(frozen=True, eq=False)
class Binned:
    """Values of P and U counted in the same bins, lowest first."""

    edges: FloatArray  # between bins; a value equal to an edge lies above it
    positives: FloatArray
    unlabeled: FloatArray

    @classmethod
    def of(cls, positives: FloatArray, unlabeled: FloatArray) -> Binned:
        shares = np.arange(1, BINS_OF_EACH) / BINS_OF_EACH
        edges = distinct(
            np.concatenate(
                [np.quantile(values, shares, method="higher") for values in (positives, unlabeled)]
            )
        )
        counts = [
            np.bincount(np.searchsorted(edges, values, "right"), minlength=len(edges) + 1)
            for values in (positives, unlabeled)
        ]
        return cls(edges, *(count.astype(np.float64) for count in counts))

    @cached_property
    def places(self) -> FloatArray:
        """The logit of each bin's middle among both sets, which count the same."""
        share = self.positives / self.positives.sum() + self.unlabeled / self.unlabeled.sum()
        middle = (np.cumsum(share) - share / 2) / 2
        middle = np.clip(middle, 1e-9, 1 - 1e-9)  # bins without any value
        logits: FloatArray = np.log(middle / (1 - middle))
        return logits


@dataclass(frozen=True, eq=False)
class _Fits:
    """Parameters of one fit or several, a line each."""

    a: FloatArray
    b: FloatArray
    intercept: FloatArray
    slope: FloatArray

    def ratios(self, places: FloatArray) -> FloatArray:
        """fits x bins: the density of positives over that of negatives."""
        return np.exp(np.clip(self.intercept + self.slope * places, -40.0, 40.0))

    def true_positives(self, places: FloatArray) -> FloatArray:
        """fits x bins: the chance that a row of P is truly positive."""
        ratio = (1 - self.a) * self.ratios(places)
        return ratio / np.maximum(ratio + self.a, 1e-300)

    def hidden_positives(self, places: FloatArray) -> FloatArray:
        """fits x bins: the chance that a row of U is positive."""
        ratio = self.b * self.ratios(places)
        return ratio / (ratio + (1 - self.b))


def _fit(
    places: FloatArray,
    of_pos: FloatArray,
    of_unl: FloatArray,
    known_a: float | None,
    known_b: float | None,
    start: _Fits,
    n_steps: int,
) -> _Fits:
    """EM from ``start``; counts are fits x bins. The line takes one step of Newton's at a time."""
    n_pos = of_pos.sum(axis=1, keepdims=True)
    n_unl = of_unl.sum(axis=1, keepdims=True)
    counts = of_pos + of_unl
    fits = start
    for _ in range(n_steps):
        in_pos = of_pos * fits.true_positives(places)
        in_unl = of_unl * fits.hidden_positives(places)
        a, b = fits.a, fits.b
        if known_a is None:
            a = 1 - in_pos.sum(axis=1, keepdims=True) / n_pos
        if known_b is None:
            b = in_unl.sum(axis=1, keepdims=True) / n_unl
        positive = in_pos + in_unl
        total = positive.sum(axis=1, keepdims=True)
        balance = np.log(np.maximum(total, 1e-9) / np.maximum(n_pos + n_unl - total, 1e-9))
        line = fits.intercept + fits.slope * places + balance
        chance = 1 / (1 + np.exp(-np.clip(line, -40.0, 40.0)))
        missing, weight = positive - counts * chance, counts * chance * (1 - chance)
        # Newton: two gradients, and a matrix of 2 x 2
        to_intercept = missing.sum(axis=1, keepdims=True)
        to_slope = (missing * places).sum(axis=1, keepdims=True) - RIDGE * fits.slope
        ones = weight.sum(axis=1, keepdims=True) + RIDGE
        mixed = (weight * places).sum(axis=1, keepdims=True)
        squares = (weight * places**2).sum(axis=1, keepdims=True) + RIDGE
        determinant = ones * squares - mixed**2
        rise = np.clip((squares * to_intercept - mixed * to_slope) / determinant, -2.0, 2.0)
        turn = np.clip((ones * to_slope - mixed * to_intercept) / determinant, -1.0, 1.0)
        change = np.abs(a - fits.a).max() + np.abs(b - fits.b).max()
        fits = _Fits(a, b, fits.intercept + rise, np.maximum(fits.slope + turn, 0.0))
        if change + np.abs(turn).max() < TOLERANCE:
            break
    return fits


@dataclass(frozen=True, eq=False)
class Share:
    """A figure for each depth of a list, with bounds; without replicates these are nan."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class ClassMixture:
    """The fitted classes."""

    binned: Binned
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
        """From values of P and U; a and b are fitted where they are not given.

        None where there are too few values to tell.
        """
        if len(positives) < LEAST_POSITIVES or len(unlabeled) < LEAST_UNLABELED:
            return None
        binned = Binned.of(positives, unlabeled)
        start = _Fits(
            *(
                np.array([[value]])
                for value in (
                    FIRST_A if a is None else a,
                    FIRST_B if b is None else b,
                    0.0,
                    FIRST_SLOPE,
                )
            )
        )
        own = binned.positives[None], binned.unlabeled[None]
        fitted = _fit(binned.places, *own, a, b, start, STEPS)
        resampled = _resampled(binned, fitted, a, b, n_replicates, seed) if n_replicates else None
        return cls(binned, fitted, resampled, a is not None, b is not None, seed)

    @cached_property
    def area(self) -> float:
        """Under the ROC curve of the fitted classes."""
        places = self.binned.places
        of_pos = self.fitted.true_positives(places)[0]
        of_unl = self.fitted.hidden_positives(places)[0]
        positive = self.binned.positives * of_pos + self.binned.unlabeled * of_unl
        return _area(positive, self.binned.positives + self.binned.unlabeled - positive)

    @cached_property
    def separable(self) -> bool:
        """Whether the classes lie far enough apart for shares to be known."""
        of_sets = _area(self.binned.positives, self.binned.unlabeled)
        if self.area < LEAST_AREA or of_sets < LEAST_AREA_OF_SETS:
            return False
        return self.resampled is None or float(np.ptp(_tails(self.resampled.b))) <= WIDEST

    @property
    def contamination_pos(self) -> Interval:
        """a: the share of P that is truly negative."""
        return self._parameter("a", self.a_known)

    @property
    def contamination_unl(self) -> Interval:
        """b: the share of U that is truly positive."""
        return self._parameter("b", self.b_known)

    def _parameter(self, name: str, known: bool) -> Interval:
        value = float(getattr(self.fitted, name)[0, 0])
        if known or self.resampled is None:
            return Interval(value, value, value)
        bounds = _bounds(np.array([value]), getattr(self.resampled, name))
        return Interval(value, bounds[0][0] if self.separable else 0.0, bounds[1][0])

    def precision(self, n_listed: int) -> Share:
        """Of the first 1, 2, ... rows of U, highest values first: the share that is positive."""
        places = self.binned.places[::-1]
        counts = self.binned.unlabeled[::-1]

        def chances(fits: _Fits) -> FloatArray:
            found = fits.hidden_positives(places)
            return _adding_up(found, counts, float(fits.b[0, 0])) if self.b_known else found

        share = self._cumulated(counts, chances, n_listed)
        if self.b_known or self.separable:
            return share
        return Share(share.value, 0.0 * share.low, share.high)

    def expected_false(self, n_listed: int) -> Share:
        """Among the first 1, 2, ... rows of P, lowest values first: how many are negative."""
        places = self.binned.places
        counts = self.binned.positives

        def chances(fits: _Fits) -> FloatArray:
            found = 1 - fits.true_positives(places)
            return _adding_up(found, counts, float(fits.a[0, 0])) if self.a_known else found

        share = self._cumulated(counts, chances, n_listed)
        depth = np.arange(1, n_listed + 1)
        low = share.low if self.a_known or self.separable else 0.0 * share.low
        return Share(share.value * depth, low * depth, share.high * depth)

    def n_false(self) -> int:
        """How many rows of P are expected to be negative."""
        return round(float(self.fitted.a[0, 0] * self.binned.positives.sum()))

    def _cumulated(
        self, counts: FloatArray, chances: Callable[[_Fits], FloatArray], n_listed: int
    ) -> Share:
        """The mean chance over the first 1, 2, ... rows, in bins of so many each."""
        ends = np.concatenate([[0.0], np.cumsum(counts)])

        def shares(fits: _Fits, depths: FloatArray) -> FloatArray:
            sums = np.cumsum(counts * chances(fits), axis=1)
            lines = [np.interp(depths, ends, [0.0, *line]) for line in sums.tolist()]
            return np.clip(np.array(lines) / depths, 0.0, 1.0)

        depth = np.arange(1, n_listed + 1, dtype=np.float64)
        value = shares(self.fitted, depth)[0]
        value = value + LOOKALIKES * (shares(self.fitted, ends[-1:])[0] - value)
        if self.resampled is None:
            nothing = np.full(n_listed, np.nan)
            return Share(value, nothing, nothing)
        some = distinct(np.round(np.geomspace(1, max(1, n_listed), MOST_DEPTHS)))
        rng = randomness.generator(self.seed, randomness.MIXED_CLASSES)
        # what is found among so many rows scatters about what is expected there
        found = rng.binomial(some.astype(np.int64), shares(self.resampled, some)) / some
        low, high = _bounds(np.interp(some, depth, value), found)
        low = np.maximum(low - SLACK, 0.0)
        return Share(value, np.interp(depth, some, low), np.interp(depth, some, high))


def _resampled(
    binned: Binned,
    fitted: _Fits,
    a: float | None,
    b: float | None,
    n_replicates: int,
    seed: int,
) -> _Fits:
    """Fits to sets drawn again with replacement."""
    rng = randomness.generator(seed, randomness.MIXED_CLASSES)
    parts = []
    for first in range(0, n_replicates, REPLICATES_AT_ONCE):
        size = min(REPLICATES_AT_ONCE, n_replicates - first)
        of_pos = draw_counts(binned.positives, size, rng)
        of_unl = draw_counts(binned.unlabeled, size, rng)
        start = _Fits(*(np.repeat(line, size, axis=0) for line in _lines(fitted)))
        parts.append(_fit(binned.places, of_pos, of_unl, a, b, start, RESAMPLED_STEPS))
    return _Fits(*(np.concatenate(lines) for lines in zip(*map(_lines, parts), strict=True)))


def _adding_up(chances: FloatArray, counts: FloatArray, share: float) -> FloatArray:
    """Chances (fits x bins) whose odds are raised or lowered alike until their mean is the share.

    A share that was given is kept even where the values speak for another.
    """
    if not 0 < share < 1:
        return np.full_like(chances, share)
    logits = np.log(np.maximum(chances, 1e-15)) - np.log(np.maximum(1 - chances, 1e-15))
    low, high = np.full((len(chances), 1), -80.0), np.full((len(chances), 1), 80.0)
    for _ in range(50):
        middle = (low + high) / 2
        means = (counts / (1 + np.exp(-(logits + middle)))).sum(axis=1, keepdims=True)
        above = means > share * counts.sum()
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    found: FloatArray = 1 / (1 + np.exp(-(logits + (low + high) / 2)))
    return found


def _area(positive: FloatArray, negative: FloatArray) -> float:
    """Under the ROC curve of counts in bins, lowest first."""
    total = float(positive.sum() * negative.sum())
    above = np.cumsum(negative) - negative / 2
    return float((positive * above).sum()) / total if total > 0 else 0.5


def _lines(fits: _Fits) -> tuple[FloatArray, ...]:
    return fits.a, fits.b, fits.intercept, fits.slope


def _tails(replicates: FloatArray) -> FloatArray:
    """The percentiles that an interval ends at: two lines."""
    tail = (1 - LEVEL) / 2
    found: FloatArray = np.quantile(replicates, [tail, 1 - tail], axis=0, method="weibull")
    return found


def _bounds(values: FloatArray, replicates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Percentiles of replicates (replicates x values), widened, between 0 and 1."""
    low, high = _tails(replicates)
    below = WIDENING * np.maximum(values - low, 0.0)
    above = WIDENING * np.maximum(high - values, 0.0)
    return np.clip(values - below, 0.0, 1.0), np.clip(values + above, 0.0, 1.0)
