"""What out-of-bag values of P and U tell about the positives in U and the negatives in P.

A fraction a of P is truly negative and a fraction b of U is truly positive. True positives have the
same distribution of values in both sets, because P is a random sample of the positives, and so do
true negatives. Let R be the fraction of P among the top rows and G that of U. Then G = b r + (1 -
b) f and R = (1 - a) r + a f, where r and f are the fractions of all positives and of all negatives.

If b is known, R gives the number of positives in a list, b |U| r, with binomial bounds, whatever
the shape of the distributions. If it is not, only an upper bound follows: b is at most G / R,
wherever the list ends. The bound is reached if some part of the list is pure, which no value tells.
docs/method.md derives all this, and docs/quality.md shows how often it held.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from resvm_cli import randomness
from resvm_cli.metrics.intervals import Interval, clopper_pearson, wilson_bounds
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, IntArray, distinct

# Minimum numbers of values for an estimate.
MIN_POSITIVES = 10
MIN_UNLABELED = 20
# Constants marked * were chosen by experiments/quality/estimates.py, as docs/method.md says.
# MIN_AREA and AREA_FOR_FEW are from an older study, and only decide when figures are stated.
MIN_AREA = 0.65  # no claim without b if the ROC AUC of P against U is smaller
AREA_FOR_FEW = 5.0  # divided by the number of known positives, and added to MIN_AREA
MOST = 0.5  # of U; larger bounds are named as a possible reason for overlap
LEAST_PURITY = 0.5  # without b, lower bounds assume that the purest part is half positive *
OUTSIDE = 0.02  # probability beyond either bound *
CAUTION = 0.1  # a list is chosen by this quantile of its number of positives *
FIRST_SHARE = 0.2  # of U: a is estimated from at least this much of the end of the list
DRAWS = 400
MAX_DEPTHS = 150
STATED_DEPTHS = (10, 20, 50, 100, 200, 500)
# Candidates that tested rows choose from: values of b, and how far the chances of all rows are
# moved toward b. One candidate in ten gives all rows the same chance, whatever their values.
FRACTIONS_OF_U = 40
EVENNESS = (0.0, 0.1)  # *
FLAT = 0.1  # *
MIN_TESTED = 20  # tested rows needed for bounds from counts alone
# Fractions of U and lengths of a list, for the table of what would follow.
SUPPOSED = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
SUPPOSED_DEPTHS = (10, 50, 100)


@dataclass(frozen=True, eq=False)
class IntervalsByDepth:
    """A value with bounds at each depth of a list."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


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

    def drawn(
        self, chances: FloatArray, lengths: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, IntArray]:
        """Return the expected positives in lists, and draws, given chances between lengths."""
        n_tested, n_found = self._counts(lengths)
        of_tested = chances[:, np.searchsorted(lengths, self.depths)]
        of_tested = np.cumsum(np.concatenate([np.zeros((len(chances), 1)), of_tested], 1), axis=1)
        totals = np.cumsum(chances * np.diff(lengths, prepend=0), axis=1)
        rest = lengths - n_tested
        means = np.clip((totals - of_tested[:, n_tested]) / np.maximum(rest, 1), 0.0, 1.0)
        return n_found + rest * means.mean(axis=0), n_found + rng.binomial(rest, means)

    def _counts(self, lengths: IntArray) -> tuple[IntArray, IntArray]:
        """Return how many rows of each list were tested, and how many of these are positive."""
        n_tested = np.searchsorted(self.depths, lengths, "right")
        return n_tested, np.concatenate([[0], np.cumsum(self.positive)])[n_tested]

    def bounds_from_sample(self, lengths: IntArray, low: FloatArray, high: FloatArray) -> None:
        """Replace bounds by those of the tested rows alone where they are a sample of a list."""
        if not self.is_sample(int(lengths[-1])):
            return
        n_tested, n_found = self._counts(lengths)
        for index in np.flatnonzero(n_tested >= MIN_TESTED).tolist():
            found = clopper_pearson(int(n_found[index]), int(n_tested[index]))
            rest = lengths[index] - n_tested[index]
            low[index], high[index] = n_found[index] + rest * np.array([found.low, found.high])


@dataclass(frozen=True, eq=False)
class ClassMixture:
    """P and U as mixtures of two classes, by the depths of P in the list of U."""

    depths: IntArray  # lengths of a list of U, ascending; the last is all of U
    values: FloatArray  # of the last row of each list
    n_above: FloatArray  # known positives above that row; tied ones in proportion
    n_pos: int
    area: float  # ROC AUC of P against U
    below: FloatArray  # fraction of U below each row of P, lowest first
    tested: RankedOutcomes | None
    a: float | None  # None: not given
    b: float | None
    seed: int
    sampled: bool  # whether P is assumed to be a random sample of all positives

    @classmethod
    def fit(
        cls,
        positives: FloatArray,
        unlabeled: FloatArray,
        a: float | None = None,
        b: float | None = None,
        seed: int = 0,
        tested: RankedOutcomes | None = None,
        *,
        sampled: bool = True,
    ) -> ClassMixture | None:
        """Count P above some rows of U; return None if there are too few values."""
        n_pos, n_unl = len(positives), len(unlabeled)
        if n_pos < MIN_POSITIVES or n_unl < MIN_UNLABELED:
            return None
        known, others = np.sort(positives), np.sort(unlabeled)
        grid = np.round(np.geomspace(1, n_unl, MAX_DEPTHS)).astype(np.int64)
        depths = distinct(np.concatenate([grid, [some for some in STATED_DEPTHS if some < n_unl]]))
        values = others[n_unl - depths]
        under, up_to = (np.searchsorted(known, values, side) for side in ("left", "right"))
        first, last = (np.searchsorted(others, values, side) for side in ("left", "right"))
        part = (depths - (n_unl - last)) / (last - first)  # of the rows of U with this value
        n_above = n_pos - up_to + (up_to - under) * part
        below = (
            np.searchsorted(others, known, "left") + np.searchsorted(others, known, "right")
        ) / (2 * n_unl)
        area = float(below.mean())
        return cls(depths, values, n_above, n_pos, area, below, tested, a, b, seed, sampled)

    @property
    def n_unl(self) -> int:
        return int(self.depths[-1])

    @property
    def separable(self) -> bool:
        """Whether the values alone support a claim: P is a random sample, far enough from U."""
        return self.sampled and self.area >= MIN_AREA + AREA_FOR_FEW / self.n_pos

    @property
    def precision_is_known(self) -> bool:
        """Whether the precision of a list can be estimated."""
        return self.b is not None or self.tested is not None or self.separable

    @property
    def why_unknown(self) -> str:
        """The reason why no claim is made, as a clause."""
        if not self.sampled:
            return "positives found by tests are not a random sample of all positives"
        if self.max_b > MOST:
            return "P and U overlap too much, as they do if most of U is positive"
        if self.area < MIN_AREA:
            return "P and U overlap too much"
        return f"P and U overlap too much for only {self.n_pos:,} known positives"

    @cached_property
    def _recall(self) -> FloatArray:
        """R at each depth: the least concave majorant, as precision never rises down the list."""
        counts = np.concatenate([[0.0], self.n_above[:-1], [self.n_pos]])
        depths = np.concatenate([[0], self.depths])
        corners = [0]
        for point in range(1, len(depths)):
            while len(corners) > 1:
                (x, other), (y, above) = depths[corners[-2:]], counts[corners[-2:]]
                if (above - y) * (depths[point] - x) > (counts[point] - y) * (other - x):
                    break
                corners.pop()
            corners.append(point)
        recall: FloatArray = np.interp(self.depths, depths[corners], counts[corners]) / self.n_pos
        return recall

    @property
    def max_b(self) -> float:
        """The largest possible b: U has at least b times P's fraction of rows above any row."""
        of_pos = wilson_bounds(self.n_above, self.n_pos)[0]
        of_unl = wilson_bounds(self.depths.astype(np.float64), self.n_unl)[1]
        return float(min(1.0, (of_unl / np.maximum(of_pos, 1e-9)).min()))

    @property
    def contamination_unl(self) -> Interval:
        """b: the fraction of U that is truly positive."""
        if self.b is not None:
            return Interval(self.b, self.b, self.b)
        if self.tested is not None:
            whole = self.precision(self.n_unl)
            return Interval(*(float(part[-1]) for part in vars(whole).values()))
        if not self.separable:
            return Interval(np.nan, 0.0, self.max_b if self.sampled else 1.0)
        most = self.max_b
        if_pure = min(most, 1 / float(self.n_unl * self._recall[0]))  # the steepest part is first
        return Interval(if_pure, LEAST_PURITY * if_pure, most)

    @cached_property
    def contamination_pos(self) -> Interval:
        """a: the fraction of P that is truly negative."""
        if self.a is not None:
            return Interval(self.a, self.a, self.a)
        if not self.sampled:
            return Interval(np.nan, 0.0, 1.0)
        # negatives are below any row of U at least as often as U itself
        share = 1 - self.depths / self.n_unl
        enough = share >= FIRST_SHARE
        if not enough.any():
            return Interval(np.nan, 0.0, 1.0)
        n_below, share = self.n_pos - self.n_above[enough], share[enough]
        bounds = wilson_bounds(n_below, self.n_pos)[1] / share
        tightest = int(np.argmin(bounds))
        most = min(1.0, float(np.ceil(bounds[tightest] * self.n_pos) / self.n_pos))
        if not self.separable:
            return Interval(np.nan, 0.0, most)
        b = self.contamination_unl.value
        value = float(n_below[tightest] / self.n_pos / share[tightest])
        return Interval(min(most, value * (1 - b)), 0.0, most)

    def _true_recall(self, recall: FloatArray, a: float, b: float) -> FloatArray:
        """Return r, the fraction of all positives, for R and G of the two mixtures."""
        if a == 0:
            return recall
        share = self.depths / self.n_unl
        true = ((1 - b) * recall - a * share) / max(1 - a - b, 1e-9)
        # an a that is possible but not given can only raise r
        return np.clip(true if self.a is not None else np.maximum(true, recall), 0.0, 1.0)

    def _expected(self, b: float, most: float = 1.0) -> FloatArray:
        """Return the expected number of positives in each list, at most this fraction of it."""
        recall = self._true_recall(self._recall, self.a or 0.0, b)
        found: FloatArray = np.minimum(b * self.n_unl * recall, self.depths * max(b, most))
        return found

    @property
    def _most(self) -> float:
        """The largest precision that is stated: without b, that which known positives support."""
        if self.b is not None or self.tested is not None:
            return 1.0
        slopes = self._recall / self.depths
        n_first = self.n_pos * float(self._recall[np.isclose(slopes, slopes[0], rtol=1e-9)][-1])
        return (n_first + 0.5) / (n_first + 1)

    @cached_property
    def _recalls(self) -> FloatArray:
        """R as the counts of P allow it (draws x lists)."""
        rng = randomness.generator(self.seed, randomness.MIXED_CLASSES)
        above, below = self.n_above + 0.5, self.n_pos - self.n_above + 0.5  # Jeffreys' prior
        return rng.beta(above, below, (DRAWS, len(above)))

    def _drawn(self, b: float, a: float) -> IntArray:
        """Draw numbers of positives in each list (draws x lists)."""
        rng = randomness.generator(self.seed, randomness.COUNTS_OF_POSITIVES)
        recall = self._true_recall(self._recalls, a, b)
        return np.minimum(rng.binomial(round(b * self.n_unl), recall), self.depths)

    def n_positive(self, given: float | None = None) -> IntervalsByDepth:
        """Return the number of positives in the list of each depth, for this b if given."""
        if given is None and self.tested is not None:
            expected, draws = self._drawn_with_outcomes
            low, high = _bounds(draws)
            self.tested.bounds_from_sample(self.depths, low, high)
            return IntervalsByDepth(np.clip(expected, low, high), low, high)
        b, a = self.contamination_unl, self.contamination_pos
        if given is not None:
            b = Interval(given, given, given)
        low = _bounds(self._drawn(b.low, self.a or 0.0))[0]
        # without b, contamination of P makes the bound on b larger, and R smaller
        high = _bounds(self._drawn(b.high, (self.a or 0.0) if b.low < b.high else a.high))[1]
        high = np.maximum(low, high)
        expected = self._expected(b.value, self._most if given is None else 1.0)
        return IntervalsByDepth(np.clip(expected, low, high), low, high)

    def what_if(self) -> Iterator[tuple[float, int, Interval]]:
        """Yield how many of the first rows are positive for each possible fraction of U."""
        if not self.sampled or self.b is not None or self.tested is not None:
            return
        for b in (some for some in SUPPOSED if some < self.max_b):
            found = self.n_positive(b)
            for index in np.flatnonzero(np.isin(self.depths, SUPPOSED_DEPTHS)).tolist():
                parts = (float(part[index]) for part in vars(found).values())
                yield b, int(self.depths[index]), Interval(*parts)

    @cached_property
    def _candidates(self) -> FloatArray:
        """Chances of rows of U (candidates x steps), as often as tested rows make them likely."""
        assert self.tested is not None
        some = (np.arange(FRACTIONS_OF_U) + 0.5) / FRACTIONS_OF_U
        fractions = some * self.max_b if self.b is None else np.array([self.b])
        curves = np.array([self._steps(b) for b in fractions.tolist()])
        even = (some if self.b is None else fractions)[:, None]
        parts = [(1 - part) * curves + part * fractions[:, None] for part in EVENNESS]
        chances = np.concatenate([*parts, even + 0 * curves])
        weights = np.repeat(
            [(1 - FLAT) / len(EVENNESS), FLAT], [len(EVENNESS) * len(even), len(even)]
        )
        of_rows = chances[:, np.searchsorted(self.depths, self.tested.depths)]
        of_rows = np.clip(of_rows, 1e-6, 1 - 1e-6)
        outcomes = np.where(self.tested.positive, np.log(of_rows), np.log(1 - of_rows)).sum(axis=1)
        reached = np.cumsum(weights * np.exp(outcomes - outcomes.max()))
        chosen = np.searchsorted(reached, (np.arange(DRAWS) + 0.5) / DRAWS * reached[-1])
        found: FloatArray = chances[chosen]
        return found

    @cached_property
    def _drawn_with_outcomes(self) -> tuple[FloatArray, IntArray]:
        assert self.tested is not None
        rng = randomness.generator(self.seed, randomness.MIXED_CLASSES)
        return self.tested.drawn(self._candidates, self.depths, rng)

    def _steps(self, b: float) -> FloatArray:
        """Return the chance that a row is positive, between each depth and the one before."""
        steps = np.diff(self._expected(b, self._most), prepend=0.0) / np.diff(
            self.depths, prepend=0
        )
        return np.minimum.accumulate(np.clip(steps, 0.0, 1.0))  # despite rounding errors

    def probability(self, values: FloatArray) -> FloatArray:
        """Return the chance that rows of U with these values are positive; nan if unknown."""
        if not self.precision_is_known:
            return np.full(len(values), np.nan)
        if self.tested is not None:
            steps = self._candidates.mean(axis=0)
        else:
            steps = self._steps(self.contamination_unl.value)
        found: FloatArray = steps[
            np.minimum(np.searchsorted(-self.values, -values), len(steps) - 1)
        ]
        return found

    def precision(self, n_listed: int) -> IntervalsByDepth:
        """Return the fraction of positives in the top 1, 2, ... rows of U; nan if unknown."""
        if not self.precision_is_known:
            return IntervalsByDepth(*np.full((3, n_listed), np.nan))
        depth, found = np.arange(1, n_listed + 1), self.n_positive()
        parts = (np.interp(depth, self.depths, part / self.depths) for part in vars(found).values())
        return IntervalsByDepth(*parts)

    def n_listed(self, fdr: float) -> int:
        """Return the length of the longest list with at most this fraction of negatives."""
        if self.tested is not None:
            draws = self._drawn_with_outcomes[1]
        else:
            assert self.b is not None
            draws = self._drawn(self.b, self.a or 0.0)
        found = np.minimum(np.sort(draws, axis=0)[round(CAUTION * DRAWS)], draws.mean(axis=0))
        depth = np.arange(1, self.n_unl + 1)
        expected = np.interp(depth, self.depths, found / self.depths)
        return int(np.flatnonzero(expected >= 1 - fdr - 1e-12).max(initial=-1)) + 1

    def expected_false(self, n_listed: int) -> IntervalsByDepth:
        """Return the expected number of negatives in the bottom 1, 2, ... rows of P."""
        a, b = self.contamination_pos, self.contamination_unl
        if np.isnan(a.value):
            return IntervalsByDepth(*np.full((3, n_listed), np.nan))
        some = distinct(np.round(np.geomspace(1, n_listed, MAX_DEPTHS))).astype(np.int64)
        below, rng = self.below[some - 1], randomness.generator(self.seed, randomness.MIXED_CLASSES)

        def share(b: float) -> FloatArray:
            """Return the fraction of all negatives this low, if all rows of U this low are."""
            return np.minimum(1.0, below / max(1e-9, 1 - b))

        def count(a: float, chances: FloatArray) -> tuple[FloatArray, FloatArray]:
            found = rng.binomial(round(a * self.n_pos), chances, (DRAWS, len(some)))
            return _bounds(np.minimum(found, some))

        low, high = count(a.low, below)[0], count(a.high, share(b.high))[1]
        value = np.minimum(a.value * self.n_pos * share(np.nan_to_num(b.value)), some)
        depth, parts = np.arange(1, n_listed + 1), (np.clip(value, low, high), low, high)
        return IntervalsByDepth(*(np.interp(depth, some, part) for part in parts))

    def n_false(self) -> int | None:
        """Return the expected number of negatives in P; None if it is unknown."""
        a = self.contamination_pos.value
        return None if np.isnan(a) else round(a * self.n_pos)


def _bounds(draws: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the bounds of counts from draws (draws x counts): counts, never between two."""
    tail = round(OUTSIDE * len(draws))
    low, high = np.partition(draws, [tail, len(draws) - 1 - tail], axis=0)[[tail, -1 - tail]]
    return low.astype(np.float64), high.astype(np.float64)
