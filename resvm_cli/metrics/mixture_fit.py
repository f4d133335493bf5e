"""Fit mixtures of two classes to histograms of P's and U's decision values by EM."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from resvm_cli.metrics.intervals import draw_counts
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, IntArray, distinct

BINS_OF_EACH = 50
FIRST_B = 0.3
STARTS = ((0.05, 1.5), (0.2, 10.0))  # of a and slope; two, as EM may stop at a local optimum
STEPS, RESAMPLED_STEPS = 500, 200
TOLERANCE = 1e-6
MIN_GAIN = 0.1  # the second start must improve the log-likelihood by this much
RIDGE = 1e-3


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
        middle = np.clip(middle, 1e-9, 1 - 1e-9)  # avoids infinite logits
        found: FloatArray = np.log(middle / (1 - middle))
        return found

    @cached_property
    def area(self) -> float:
        """The ROC AUC of P against U."""
        return float(self.positives @ self._above_unlabeled) / float(self.positives.sum())

    @cached_property
    def area_error(self) -> float:
        """The standard error of the ROC AUC of P against U over random draws of P."""
        n_pos = float(self.positives.sum())
        squares = float(self.positives @ (self._above_unlabeled - self.area) ** 2)
        return math.sqrt(squares / (n_pos * (n_pos - 1)))

    @cached_property
    def _above_unlabeled(self) -> FloatArray:
        """The fraction of U below each bin, counting half of the bin's own rows."""
        below = np.cumsum(self.unlabeled) - self.unlabeled / 2
        fractions: FloatArray = below / self.unlabeled.sum()
        return fractions

    @cached_property
    def max_b(self) -> float:
        """The largest possible b: above any value, U has at least b times P's fraction of rows."""
        of_pos, of_unl = (
            wilson_bounds(np.cumsum(counts[::-1]), counts.sum())
            for counts in (self.positives, self.unlabeled)
        )
        return float(min(1.0, (of_unl[1] / np.maximum(of_pos[0], 1e-9)).min()))


@dataclass(frozen=True, eq=False)
class Fits:
    """The parameters of one or more fits, one row per fit."""

    a: FloatArray
    b: FloatArray
    intercept: FloatArray
    slope: FloatArray

    def take(self, rows: IntArray) -> Fits:
        return Fits(*(column[rows] for column in vars(self).values()))

    def ratios(self, logits: FloatArray) -> FloatArray:
        """Return the density of positives divided by that of negatives (fits x bins)."""
        return np.exp(np.clip(self.intercept + self.slope * logits, -40.0, 40.0))

    def true_positives(self, ratios: FloatArray) -> FloatArray:
        """Return the probability that a row of P is truly positive (fits x bins)."""
        ratio = (1 - self.a) * ratios
        return ratio / np.maximum(ratio + self.a, 1e-300)

    def hidden_positives(self, ratios: FloatArray) -> FloatArray:
        """Return the probability that a row of U is positive (fits x bins)."""
        ratio = self.b * ratios
        return ratio / (ratio + (1 - self.b))

    def log_likelihoods(self, binned: BinnedValues) -> FloatArray:
        """Return each fit's log-likelihood of the set, P or U, of each row, given its value."""
        ratio = self.ratios(binned.logits)
        of_pos = binned.positives.sum() * (self.a + (1 - self.a) * ratio)
        of_unl = binned.unlabeled.sum() * (1 - self.b + self.b * ratio)
        chance = np.clip(of_pos / (of_pos + of_unl), 1e-12, 1 - 1e-12)
        found: FloatArray = (
            np.log(chance) @ binned.positives + np.log(1 - chance) @ binned.unlabeled
        )
        return found


def fit_classes(
    logits: FloatArray,
    of_pos: FloatArray,
    of_unl: FloatArray,
    known: tuple[BoolArray, BoolArray],
    start: Fits,
    n_steps: int,
    n_groups: int = 1,
) -> Fits:
    """Run EM on counts (fits x bins), with one Newton step for the line per iteration.

    ``known`` marks the fits whose a and b are given. The fits form groups of equal size; the fits
    of a group stop together, and no fit depends on other groups.
    """
    n_pos = of_pos.sum(axis=1, keepdims=True)
    n_unl = of_unl.sum(axis=1, keepdims=True)
    counts, squares = of_pos + of_unl, logits**2
    room = np.empty((5, *counts.shape))  # allocating temporary arrays would take half of the time
    fits, going = start, np.ones((n_groups, 1), bool)
    for _ in range(n_steps):
        line, in_pos, in_unl = _expected_positives(fits, logits, of_pos, of_unl, room)
        a = np.where(known[0], fits.a, 1 - in_pos.sum(axis=1, keepdims=True) / n_pos)
        b = np.where(known[1], fits.b, in_unl.sum(axis=1, keepdims=True) / n_unl)
        positive = np.add(in_pos, in_unl, out=in_pos)
        total = positive.sum(axis=1, keepdims=True)
        balance = np.log(np.maximum(total, 1e-9) / np.maximum(n_pos + n_unl - total, 1e-9))
        rise, turn = _newton_step(
            np.add(line, balance, out=line), positive, counts, fits.slope, logits, squares, room[2:]
        )
        changes = (np.abs(each).reshape(n_groups, -1) for each in (a - fits.a, b - fits.b, turn))
        change = sum(each.max(axis=1, keepdims=True) for each in changes)
        found = Fits(a, b, fits.intercept + rise, np.maximum(fits.slope + turn, 0.0))
        if not going.all():
            moved = np.repeat(going, len(counts) // n_groups, axis=0)
            pairs = zip(vars(found).values(), vars(fits).values(), strict=True)
            found = Fits(*(np.where(moved, new, old) for new, old in pairs))
        fits = found
        going &= ~(change < TOLERANCE)
        if not going.any():
            break
    return fits


def _expected_positives(
    fits: Fits, logits: FloatArray, of_pos: FloatArray, of_unl: FloatArray, room: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log of the ratio, and how many rows of P and of U are expected to be positive.

    The numbers of rows are ``true_positives`` and ``hidden_positives`` multiplied by the counts.
    """
    line, in_pos, in_unl, ratios, sums = room
    np.add(np.multiply(fits.slope, logits, out=line), fits.intercept, out=line)
    np.minimum(np.maximum(line, -40.0, out=ratios), 40.0, out=ratios)
    np.exp(ratios, out=ratios)
    np.multiply(1 - fits.a, ratios, out=in_pos)
    np.maximum(np.add(in_pos, fits.a, out=sums), 1e-300, out=sums)
    np.multiply(of_pos, np.divide(in_pos, sums, out=in_pos), out=in_pos)
    np.multiply(fits.b, ratios, out=in_unl)
    np.add(in_unl, 1 - fits.b, out=sums)
    np.multiply(of_unl, np.divide(in_unl, sums, out=in_unl), out=in_unl)
    return line, in_pos, in_unl


def _newton_step(
    line: FloatArray,
    positive: FloatArray,
    counts: FloatArray,
    slope: FloatArray,
    logits: FloatArray,
    squared_logits: FloatArray,
    room: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the changes of intercept and slope that fit the line to expected positives."""
    chance, weight, products = room
    np.negative(np.maximum(line, -40.0, out=chance), out=chance)
    np.divide(1, np.add(1, np.exp(chance, out=chance), out=chance), out=chance)
    np.multiply(counts, chance, out=weight)
    missing = np.subtract(positive, weight, out=positive)
    np.multiply(weight, np.subtract(1, chance, out=chance), out=weight)

    def total(of: FloatArray, times: FloatArray) -> FloatArray:
        sums: FloatArray = np.multiply(of, times, out=products).sum(axis=1, keepdims=True)
        return sums

    # two gradients and a 2 x 2 Hessian
    to_intercept = missing.sum(axis=1, keepdims=True)
    to_slope = total(missing, logits) - RIDGE * slope
    ones = weight.sum(axis=1, keepdims=True) + RIDGE
    mixed = total(weight, logits)
    squares = total(weight, squared_logits) + RIDGE
    determinant = ones * squares - mixed**2
    rise = (squares * to_intercept - mixed * to_slope) / determinant
    turn = (ones * to_slope - mixed * to_intercept) / determinant
    return np.minimum(np.maximum(rise, -2.0), 2.0), np.minimum(np.maximum(turn, -1.0), 1.0)


def first_fits(
    binned: BinnedValues, choices: Sequence[float | None], fractions: Sequence[float | None]
) -> list[Fits]:
    """For each a, fit the mixture for each b; either all b are given or none.

    All fits are computed at once, in one group for each a and each start.
    """
    # if b is given and P is like U, a steep line with a near 1 would fit noise
    starts = STARTS if fractions[0] is None else STARTS[:1]
    n_groups, n_fits = len(choices) * len(starts), len(choices) * len(starts) * len(fractions)

    def column(values: list[float]) -> FloatArray:
        return np.repeat(values, len(fractions))[:, None]

    b = [FIRST_B if some is None else some for some in fractions]
    start = Fits(
        column([first_a if a is None else a for a in choices for first_a, _ in starts]),
        np.tile(b, n_groups)[:, None],
        np.zeros((n_fits, 1)),
        column([slope for _ in choices for _, slope in starts]),
    )
    known_a = column([a is not None for a in choices for _ in starts]).astype(bool)
    known = known_a, np.full((n_fits, 1), fractions[0] is not None)
    ones = np.ones((n_fits, 1))
    own = binned.positives * ones, binned.unlabeled * ones
    fits = fit_classes(binned.logits, *own, known, start, STEPS, n_groups)
    found = []
    for first in range(0, n_fits, len(starts) * len(fractions)):
        rows = first + np.arange(len(fractions))
        last = rows + (len(starts) - 1) * len(fractions)
        likelihoods = [fits.take(each).log_likelihoods(binned) for each in (rows, last)]
        better = likelihoods[1] > likelihoods[0] + MIN_GAIN
        found.append(fits.take(np.where(better, last, rows)))
    return found


def resampled_fits(
    binned: BinnedValues,
    fitted: Fits,
    a: float | None,
    b: float | None,
    size: int,
    rng: np.random.Generator,
) -> Fits:
    of_pos = draw_counts(binned.positives, size, rng)
    of_unl = draw_counts(binned.unlabeled, size, rng)
    start = Fits(*(np.repeat(line, size, axis=0) for line in vars(fitted).values()))
    known = np.full((size, 1), a is not None), np.full((size, 1), b is not None)
    return fit_classes(binned.logits, of_pos, of_unl, known, start, RESAMPLED_STEPS)


def joined_fits(parts: Sequence[Fits]) -> Fits:
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return Fits(*(np.concatenate(column) for column in columns))


def wilson_bounds(counts: FloatArray, total: float) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's 95% bounds on binomial fractions."""
    square = 1.959964**2
    middle = (counts + square / 2) / (total + square)
    width = np.sqrt(square * (counts * (total - counts) / total + square / 4)) / (total + square)
    return np.maximum(middle - width, 0.0), np.minimum(middle + width, 1.0)
