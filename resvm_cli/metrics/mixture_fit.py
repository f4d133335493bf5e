"""Fit mixtures of two classes to histograms of P's and U's decision values by EM."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from resvm_cli.metrics.intervals import draw_counts
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, distinct

BINS_OF_EACH = 50
FIRST_B = 0.3
STARTS = ((0.05, 1.5), (0.2, 10.0))  # of a and the slope: two, as EM may stop at a local optimum
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
        """The standard error of the area over random draws of P."""
        n_pos = float(self.positives.sum())
        squares = float(self.positives @ (self._above_unlabeled - self.area) ** 2)
        return math.sqrt(squares / (n_pos * (n_pos - 1)))

    @cached_property
    def _above_unlabeled(self) -> FloatArray:
        """The fraction of U below each bin, with half of the bin's own rows."""
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
        """Return each fit's log-likelihood of the rows' set, P or U, given their values."""
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
    known_a: float | None,
    known_b: float | None,
    start: Fits,
    n_steps: int,
) -> Fits:
    """Run EM on counts (fits x bins), with one Newton step for the line per iteration."""
    n_pos = of_pos.sum(axis=1, keepdims=True)
    n_unl = of_unl.sum(axis=1, keepdims=True)
    counts = of_pos + of_unl
    fits = start
    for _ in range(n_steps):
        ratios = fits.ratios(logits)
        in_pos = of_pos * fits.true_positives(ratios)
        in_unl = of_unl * fits.hidden_positives(ratios)
        a, b = fits.a, fits.b
        if known_a is None:
            a = 1 - in_pos.sum(axis=1, keepdims=True) / n_pos
        if known_b is None:
            b = in_unl.sum(axis=1, keepdims=True) / n_unl
        positive = in_pos + in_unl
        total = positive.sum(axis=1, keepdims=True)
        balance = np.log(np.maximum(total, 1e-9) / np.maximum(n_pos + n_unl - total, 1e-9))
        line = fits.intercept + fits.slope * logits + balance
        chance = 1 / (1 + np.exp(-np.maximum(line, -40.0)))
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
        fits = Fits(a, b, fits.intercept + rise, np.maximum(fits.slope + turn, 0.0))
        if change + np.abs(turn).max() < TOLERANCE:
            break
    return fits


def first_fit(binned: BinnedValues, a: float | None, fractions: Sequence[float | None]) -> Fits:
    """Fit the mixture for each b; either all b are given or none."""
    ones = np.ones((len(fractions), 1))
    b = np.array([[FIRST_B if some is None else some] for some in fractions])
    own = binned.positives * ones, binned.unlabeled * ones
    found = []
    # if b is given and P is like U, a steep line with a near 1 would fit noise
    for first_a, slope in STARTS if fractions[0] is None else STARTS[:1]:
        start = Fits((first_a if a is None else a) * ones, b, 0.0 * ones, slope * ones)
        found.append(fit_classes(binned.logits, *own, a, fractions[0], start, STEPS))
    likelihoods = np.array([fits.log_likelihoods(binned) for fits in found])
    better = likelihoods[-1] > likelihoods[0] + MIN_GAIN
    return joined_fits(found).take(np.arange(len(ones)) + len(ones) * better)


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
    return fit_classes(binned.logits, of_pos, of_unl, a, b, start, RESAMPLED_STEPS)


def joined_fits(parts: Sequence[Fits]) -> Fits:
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return Fits(*(np.concatenate(column) for column in columns))


def wilson_bounds(counts: FloatArray, total: float) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's 95 % bounds on binomial fractions."""
    square = 1.959964**2
    middle = (counts + square / 2) / (total + square)
    width = np.sqrt(square * (counts * (total - counts) / total + square / 4)) / (total + square)
    return np.maximum(middle - width, 0.0), np.minimum(middle + width, 1.0)
