"""Model P and U as mixtures of a positive and a negative class, using only decision values.

A fraction a of P is truly negative and a fraction b of U is truly positive. True positives have the
same distribution of values in both sets, and so do true negatives. The log of the ratio of the two
densities is assumed to increase linearly with the logit of a value's quantile in P and U combined,
with equal weight for each set. Nothing else is assumed, so any increasing transformation of the
values leaves the result unchanged. The EM algorithm fits a, b and the line (the exponential tilt of
Anderson 1979 with unknown fractions, as in Qin 1999), and fits them again to bootstrap samples.

A smaller b would explain the values equally well, because some rows of U that look positive may not
be. The values do not reveal rho, the fraction of these rows that is positive. Rho is treated as
random, and the more P and U overlap, the more it varies. If P and U overlap too much, no claim is
made unless b is given or some rows of U were tested. Nor is a claim made if positives became known
by testing the most promising rows: they score higher than the positives still in U, which the
estimate of b would miss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from resvm_cli import randomness
from resvm_cli.metrics.intervals import TAIL, Interval, clopper_pearson, quantile
from resvm_cli.metrics.mixture_fit import (
    BinnedValues,
    Fits,
    first_fits,
    joined_fits,
    resampled_fits,
    wilson_bounds,
)
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, IntArray, distinct

# Minimum numbers of values for a fit.
MIN_POSITIVES = 10
MIN_UNLABELED = 20
REPLICATES = 200
WIDENING = 1.3  # widens bounds, because the line is only a model
MIN_AREA = 0.65  # no claim if the ROC AUC of P against U is smaller
AREA_FOR_FEW = 5.0  # divided by the number of known positives, and added to MIN_AREA
OVERLAP_SPREAD = 2.0  # of rho, per unit of overlap between the fitted classes
ERROR_SPREAD = 3.0  # of rho, per standard error of the ROC AUC of P against U
ERROR_OF_B = 0.0075  # the same error in b matters more if b is small
LOW_TAIL = 0.05  # tail probability of lower bounds on precision and b
MAX_DEPTHS = 300
CANDIDATES = 10  # per resample; those that agree with tested rows are kept
FLAT = 10  # every tenth candidate gives all rows the same chance, whatever their values
MIN_TESTED = 20  # tested rows needed for bounds from counts alone


@dataclass(frozen=True, eq=False)
class IntervalsByDepth:
    """A value with bounds at each depth of a list; the bounds are nan without replicates."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class _RhoFactors:
    """How resamples may differ from the truth, which the values alone do not reveal.

    If b is estimated, only a fraction rho of the fitted positives in U is positive: a row's chance
    is rho times its fitted chance. If b is given, only the order is in doubt: a row's chance is tau
    times its fitted chance plus 1 - tau times the mean chance. The other factor is 1.
    """

    rho: FloatArray
    tau: FloatArray

    def apply(self, chances: FloatArray, counts: FloatArray) -> FloatArray:
        """Apply rho and tau to chances (resamples x bins); ``counts`` is rows per bin."""
        mean = (chances @ counts / counts.sum())[:, None]
        result: FloatArray = self.rho * (mean + self.tau * (chances - mean))
        return result


@dataclass(frozen=True, eq=False)
class RankedOutcomes:
    """Rows of U whose class was tested: a random sample of U, or all of the top rows."""

    depths: IntArray  # ranks in U, ascending
    positive: BoolArray

    @classmethod
    def from_rows(
        cls, numbers: IntArray, positive: BoolArray, unlabeled: FloatArray
    ) -> RankedOutcomes:
        """Rank tested rows, given by their numbers, among the values of U."""
        ranks = np.empty(len(unlabeled), np.int64)
        ranks[np.argsort(-unlabeled, kind="stable")] = np.arange(1, len(unlabeled) + 1)
        order = np.argsort(ranks[numbers])
        return cls(ranks[numbers][order], positive[order])

    def is_sample(self, n_unl: int) -> bool:
        """Whether the ranks could be those of a random sample of U."""
        error = np.sqrt(1 / (12 * len(self.depths)))
        return bool(abs(self.depths.mean() / n_unl - 0.5) < 2 * error)

    def bins(self, binned: BinnedValues) -> IntArray:
        """Return the bins of the tested rows, highest first."""
        ends = np.cumsum(binned.unlabeled[::-1])
        return np.searchsorted(ends, self.depths, "left")

    def bounds(
        self, chances: FloatArray, binned: BinnedValues, lengths: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return expected precision and bounds, given the chances of rows that were not tested."""
        counts = binned.unlabeled[::-1]
        n_tested = np.searchsorted(self.depths, lengths, "right")
        n_found = np.concatenate([[0], np.cumsum(self.positive)])[n_tested]
        own = np.cumsum(chances[:, self.bins(binned)], axis=1)
        own = np.concatenate([np.zeros((len(chances), 1)), own], axis=1)[:, n_tested]
        rest = lengths - n_tested
        totals = lengths * _means(chances, counts, lengths.astype(float))
        means = np.clip((totals - own) / np.maximum(rest, 1), 0.0, 1.0)
        expected = (n_found + rest * means.mean(axis=0)) / lengths
        low, high = _bounds(expected, (n_found + rng.binomial(rest, means)) / lengths)
        if self.is_sample(int(counts.sum())):
            for index in np.flatnonzero(n_tested >= MIN_TESTED).tolist():
                found = clopper_pearson(int(n_found[index]), int(n_tested[index]))
                low[index] = (n_found[index] + rest[index] * found.low) / lengths[index]
                high[index] = (n_found[index] + rest[index] * found.high) / lengths[index]
        return np.clip(expected, low, high), low, high


@dataclass(frozen=True, eq=False)
class ClassMixture:
    """The fitted mixture of positives and negatives."""

    binned: BinnedValues
    fitted: Fits  # one fit if a is given; else one with a estimated and one with a = 0
    weights: FloatArray  # the Akaike weight of each fit
    resampled: Fits | None
    factors: _RhoFactors | None  # one per resample
    tested: RankedOutcomes | None
    a: float | None  # None: estimated
    b: float | None  # None: estimated
    seed: int
    sampled: bool  # whether P is assumed to be a random sample of all positives

    @classmethod
    def fit(
        cls,
        positives: FloatArray,
        unlabeled: FloatArray,
        a: float | None = None,
        b: float | None = None,
        n_replicates: int = REPLICATES,
        seed: int = 0,
        tested: RankedOutcomes | None = None,
        *,
        sampled: bool = True,
    ) -> ClassMixture | None:
        """Fit the mixture, with a and b unless given; return None if there are too few values."""
        if len(positives) < MIN_POSITIVES or len(unlabeled) < MIN_UNLABELED:
            return None
        binned = BinnedValues.from_values(positives, unlabeled)
        if tested is not None:
            n_replicates = max(n_replicates, REPLICATES)
        found = replace(cls._first(binned, a, [b], seed, tested)[0], sampled=sampled)
        if not n_replicates or not found.precision_is_known:
            return found
        rng = randomness.generator(seed, randomness.MIXED_CLASSES)
        n_first = round(float(found.weights[0]) * n_replicates)
        sizes = (n_first, n_replicates - n_first)
        parts = [
            resampled_fits(binned, found.fitted.take(np.array([index])), some, b, size, rng)
            for index, (some, size) in enumerate(zip(_choices(a), sizes, strict=False))
            if size
        ]
        found = replace(found, resampled=joined_fits(parts))
        return (
            found._with_random_rho() if tested is None else found._conditioned_on_outcomes(tested)
        )

    @classmethod
    def _first(
        cls,
        binned: BinnedValues,
        a: float | None,
        fractions: Sequence[float | None],
        seed: int,
        tested: RankedOutcomes | None = None,
    ) -> list[ClassMixture]:
        """Fit the mixture for each b, without bounds; either all b are given or none."""
        fits = first_fits(binned, _choices(a), fractions)
        likelihoods = np.array([fit.log_likelihoods(binned) for fit in fits])
        if len(fits) > 1:
            likelihoods[0] -= 1.0  # as in AIC: an estimated a is one more parameter
        weights = np.exp(likelihoods - likelihoods.max(axis=0))
        weights /= weights.sum(axis=0)
        found = []
        for index, some in enumerate(fractions):
            own = joined_fits([fit.take(np.array([index])) for fit in fits])
            found.append(
                cls(binned, own, weights[:, index], None, None, tested, a, some, seed, True)
            )
        return found

    def with_b(self, fractions: Sequence[float]) -> list[ClassMixture]:
        """Return mixtures for the same values and each of these b, without bounds."""
        return self._first(self.binned, self.a, fractions, self.seed)

    @property
    def separable(self) -> bool:
        """Whether the values determine a and b: P is a random sample, and far enough from U."""
        least = MIN_AREA + AREA_FOR_FEW / float(self.binned.positives.sum())
        return self.sampled and self.binned.area >= least

    @property
    def precision_is_known(self) -> bool:
        """Whether the precision of a list can be estimated."""
        return self.b is not None or self.tested is not None or self.separable

    @property
    def why_unknown(self) -> str:
        """The reason why no claim is made, as a clause."""
        if not self.sampled:
            return "positives found by tests are not a random sample of all positives"
        if self.binned.area < MIN_AREA:
            return "P and U overlap too much"
        n_pos = self.binned.positives.sum()
        return f"P and U overlap too much for only {n_pos:,.0f} known positives"

    @property
    def spread(self) -> float:
        """How much rho varies: rho is u to this power, where u is uniform between 0 and 1.

        It grows with the overlap of the fitted classes, 1 minus their ROC AUC, which follows from
        that of P against U: (1 - a - b) (AUC - 1/2) + 1/2, and with the error of the latter.
        """
        area = self.binned.area
        if self.b is not None:
            return 0.5 * (1 - area)
        a, b = (float((self.weights @ fitted).item()) for fitted in (self.fitted.a, self.fitted.b))
        of_classes = min(1.0, 0.5 + (area - 0.5) / max(0.05, 1 - a - b))
        of_overlap = OVERLAP_SPREAD * (1 - of_classes) + ERROR_SPREAD * self.binned.area_error
        return max(0.02, of_overlap) + ERROR_OF_B / max(b, 0.02)

    def _rho_factors(self, size: int) -> _RhoFactors:
        order = randomness.shuffled(randomness.run_bits(self.seed, randomness.RHO), size)
        spread = ((order + 0.5) / size)[:, None] ** self.spread
        ones = np.ones((size, 1))
        return _RhoFactors(spread, ones) if self.b is None else _RhoFactors(ones, spread)

    def _with_random_rho(self) -> ClassMixture:
        assert self.resampled is not None
        return replace(self, factors=self._rho_factors(len(self.resampled.a)))

    def _conditioned_on_outcomes(self, tested: RankedOutcomes) -> ClassMixture:
        """Select resamples in proportion to the likelihood of the tested rows' outcomes."""
        assert self.resampled is not None
        size = CANDIDATES * len(self.resampled.a)
        fits, factors = self.resampled.take(np.arange(size) // CANDIDATES), self._rho_factors(size)
        if self.b is None:
            number = np.arange(size)[:, None]
            flat = number % FLAT == 0
            b = np.where(flat, (number + 0.5) / size, fits.b)
            fits = Fits(fits.a, b, *(np.where(flat, 0.0, x) for x in (fits.intercept, fits.slope)))
        chances = factors.apply(self._chances(fits), self.binned.unlabeled[::-1])
        of_rows = np.clip(chances[:, tested.bins(self.binned)], 1e-6, 1 - 1e-6)
        outcomes = np.where(tested.positive, np.log(of_rows), np.log(1 - of_rows)).sum(axis=1)
        reached = np.cumsum(np.exp(outcomes - outcomes.max()))
        wanted = (np.arange(2 * REPLICATES) + 0.5) / (2 * REPLICATES)
        rows = np.searchsorted(reached, wanted * reached[-1])
        factors = _RhoFactors(factors.rho[rows], factors.tau[rows])
        return replace(self, resampled=fits.take(rows), factors=factors)

    def _chances(self, fits: Fits) -> FloatArray:
        """Return the chance that a row of U is positive (fits x bins, highest bin first)."""
        own = fits.hidden_positives(fits.ratios(self.binned.logits[::-1]))
        if self.b is None:
            return own
        return _scaled_to_mean(own, self.binned.unlabeled[::-1], self.b)

    @property
    def contamination_pos(self) -> Interval:
        """a: the fraction of P that is truly negative."""
        return self._parameter("a", self.a is not None)

    @property
    def contamination_unl(self) -> Interval:
        """b: the fraction of U that is truly positive."""
        return self._parameter("b", self.b is not None)

    def _parameter(self, name: str, known: bool) -> Interval:
        value = float((self.weights @ getattr(self.fitted, name)).item())
        if known:
            return Interval(value, value, value)
        if name == "b" and self.tested is not None:
            whole = self.precision(int(self.binned.unlabeled.sum()))
            return Interval(*(float(part[-1]) for part in vars(whole).values()))
        if not self.separable:
            most = self.binned.max_b if name == "b" and self.sampled else 1.0
            return Interval(np.nan, 0.0, most)
        shrunk = value * (1 - min(1.0, 0.5 * self.spread)) if name == "b" else value
        if self.resampled is None or self.factors is None:
            return Interval(shrunk, shrunk, shrunk)
        replicates = getattr(self.resampled, name)
        low, high = (float(bound[0]) for bound in _bounds(np.array([value]), replicates))
        if name == "b":
            low = min(shrunk, float(quantile((self.factors.rho * replicates).ravel(), LOW_TAIL)))
        return Interval(shrunk, low, high)

    @cached_property
    def _bin_probabilities(self) -> FloatArray:
        """The expected chance that a row of U is positive, by bin, highest first."""
        if self.tested is not None:
            assert self.resampled is not None
            assert self.factors is not None
            chances = self._chances(self.resampled)
            mean: FloatArray = self.factors.apply(chances, self.binned.unlabeled[::-1]).mean(axis=0)
            return mean
        return self._shrunk(min(1.0, 0.5 * self.spread))

    def _shrunk(self, fraction: float) -> FloatArray:
        """Return the fitted chances by bin, moved by this fraction toward b, or toward 0."""
        value = self.weights @ self._chances(self.fitted)
        shrunk: FloatArray = value + fraction * ((self.b or 0.0) - value)
        return shrunk

    def probability(self, values: FloatArray) -> FloatArray:
        """Return the chance that rows of U with these values are positive; nan if unknown."""
        if not self.precision_is_known:
            return np.full(len(values), np.nan)
        bins = np.searchsorted(self.binned.edges, values, "right")
        return self._bin_probabilities[::-1][bins]

    def mean_precision(self, n_listed: int) -> FloatArray:
        """Return the precision of the top 1, 2, ... rows of U, averaged over rho.

        A list that is chosen for its precision must allow for every plausible rho. The mean of rho
        is 1 / (1 + spread), which is less than its most plausible values.
        """
        if self.tested is not None or not self.precision_is_known:
            return self.precision(n_listed).value
        chances = self._shrunk(self.spread / (1 + self.spread))
        depth = np.arange(1, n_listed + 1, dtype=np.float64)
        means: FloatArray = _means(chances[None], self.binned.unlabeled[::-1], depth)[0]
        return means

    def precision(self, n_listed: int) -> IntervalsByDepth:
        """Return the fraction of positives in the top 1, 2, ... rows of U; nan if unknown."""
        if not self.precision_is_known:
            return IntervalsByDepth(*np.full((3, n_listed), np.nan))
        counts = self.binned.unlabeled[::-1]
        ends = np.concatenate([[0.0], np.cumsum(counts)])
        depth = np.arange(1, n_listed + 1, dtype=np.float64)
        value = _means(self._bin_probabilities[None], counts, depth)[0]
        if self.resampled is None or self.factors is None:
            return IntervalsByDepth(value, *np.full((2, n_listed), np.nan))
        some, lengths = _depth_grid(n_listed)
        rng = randomness.generator(self.seed, randomness.MIXED_CLASSES)
        chances = self._chances(self.resampled)
        uncertain = self.factors.apply(chances, counts)
        if self.tested is not None:
            expected, low, high = self.tested.bounds(uncertain, self.binned, lengths, rng)
            value = np.interp(depth, some, expected)
        else:
            # the number of positives in a list of a given length varies around its expectation
            found = rng.binomial(lengths, _means(chances, counts, some)) / some
            center = _means(self.weights[None] @ self._chances(self.fitted), counts, some)[0]
            high = _bounds(center, found)[1]
            found = rng.binomial(lengths, _means(uncertain, counts, some)) / some
            low = quantile(found, LOW_TAIL)
            if self.b is not None:
                n_above = np.interp(some, ends, [0.0, *np.cumsum(self.binned.positives[::-1])])
                least, most = wilson_bounds(n_above, self.binned.positives.sum())
                clean = 1 - float(self.contamination_pos.value if self.separable else 0.0)
                hidden = self.b * ends[-1] / some
                # if the counts of known positives contradict the curve, they take precedence
                low = np.where(center > hidden * most / clean, np.minimum(low, hidden * least), low)
                above = np.minimum(1.0, hidden * most / clean)
                high = np.where(center < hidden * least, np.maximum(high, above), high)
        low, high = (np.interp(depth, some, bound) for bound in (low, high))
        return IntervalsByDepth(value, np.minimum(low, value), np.maximum(high, value))

    def expected_false(self, n_listed: int) -> IntervalsByDepth:
        """Return the expected number of negatives in the bottom 1, 2, ... rows of P."""
        if self.a is None and not self.separable:
            return IntervalsByDepth(*np.full((3, n_listed), np.nan))
        counts = self.binned.positives

        def chances(fits: Fits) -> FloatArray:
            own = 1 - fits.true_positives(fits.ratios(self.binned.logits))
            return own if self.a is None else _scaled_to_mean(own, counts, self.a)

        depth = np.arange(1, n_listed + 1, dtype=np.float64)
        value = self.weights @ _means(chances(self.fitted), counts, depth)
        if self.resampled is None:
            return IntervalsByDepth(value * depth, *np.full((2, n_listed), np.nan))
        some, lengths = _depth_grid(n_listed)
        rng = randomness.generator(self.seed, randomness.MIXED_CLASSES)
        found = rng.binomial(lengths, _means(chances(self.resampled), counts, some)) / some
        bounds = _bounds(np.interp(some, depth, value), found)
        low, high = (np.interp(depth, some, bound) for bound in bounds)
        return IntervalsByDepth(value * depth, low * depth, high * depth)

    def n_false(self) -> int | None:
        """Return the expected number of negatives in P; None if it is unknown."""
        if self.a is None and not self.separable:
            return None
        return round(self.contamination_pos.value * float(self.binned.positives.sum()))


def _means(chances: FloatArray, counts: FloatArray, depths: FloatArray) -> FloatArray:
    """Return the mean chance of the first rows, up to each depth; ``counts`` is rows per bin."""
    ends = np.concatenate([[0.0], np.cumsum(counts)])
    sums = np.concatenate([np.zeros((len(chances), 1)), np.cumsum(counts * chances, axis=1)], 1)
    last = np.clip(np.searchsorted(ends, depths), 1, len(counts))
    part = (ends[last] - depths) / np.maximum(ends[last] - ends[last - 1], 1e-9)
    totals = sums[:, last] - part * (sums[:, last] - sums[:, last - 1])
    means: FloatArray = np.clip(totals / depths, 0.0, 1.0)
    return means


def _depth_grid(n_listed: int) -> tuple[FloatArray, IntArray]:
    some = distinct(np.round(np.geomspace(1, max(1, n_listed), MAX_DEPTHS)))
    return some, some.astype(np.int64)


def _choices(a: float | None) -> list[float | None]:
    """Return the values of a to fit: precision rises with a, so 0 is conservative."""
    return [None, 0.0] if a is None else [a]


def _scaled_to_mean(chances: FloatArray, counts: FloatArray, mean: float) -> FloatArray:
    """Multiply the odds of all chances (fits x bins) by one factor to reach this mean.

    A fraction that the user gives is used even if the values suggest a different one.
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


def _bounds(values: FloatArray, replicates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return widened percentile bounds from replicates (replicates x values), clipped to 0..1."""
    low, high = (quantile(replicates, fraction, weibull=True) for fraction in (TAIL, 1 - TAIL))
    below = WIDENING * np.maximum(values - low, 0.0)
    above = WIDENING * np.maximum(high - values, 0.0)
    return np.clip(values - below, 0.0, 1.0), np.clip(values + above, 0.0, 1.0)
