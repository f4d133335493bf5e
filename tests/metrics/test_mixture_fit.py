"""Fits of two classes to histograms: against a plain version of the same steps."""

from __future__ import annotations

import numpy as np
import pytest

from resvm_cli.metrics.intervals import draw_counts
from resvm_cli.metrics.mixture_fit import (
    FIRST_B,
    MIN_GAIN,
    RESAMPLED_STEPS,
    RIDGE,
    STARTS,
    STEPS,
    TOLERANCE,
    BinnedValues,
    Fits,
    first_fits,
    joined_fits,
    resampled_fits,
)

RNG = np.random.default_rng(8)


def plain_fit(logits, of_pos, of_unl, known_a, known_b, start, n_steps):
    """One group of fits, with a new array for each result."""
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


def plain_first_fit(binned, a, fractions):
    ones = np.ones((len(fractions), 1))
    b = np.array([[FIRST_B if some is None else some] for some in fractions])
    own = binned.positives * ones, binned.unlabeled * ones
    found = []
    for first_a, slope in STARTS if fractions[0] is None else STARTS[:1]:
        start = Fits((first_a if a is None else a) * ones, b, 0.0 * ones, slope * ones)
        found.append(plain_fit(binned.logits, *own, a, fractions[0], start, STEPS))
    likelihoods = np.array([fits.log_likelihoods(binned) for fits in found])
    better = likelihoods[-1] > likelihoods[0] + MIN_GAIN
    return joined_fits(found).take(np.arange(len(ones)) + len(ones) * better)


def binned_values(n_pos, n_unl, apart):
    is_positive = RNG.random(n_unl) < 0.2
    unlabeled = RNG.standard_normal(n_unl) + apart * is_positive
    return BinnedValues.from_values(RNG.standard_normal(n_pos) + apart, unlabeled)


def assert_same_bits(found, expected):
    for name, column in vars(expected).items():
        assert getattr(found, name).tobytes() == column.tobytes(), name


# some of these groups of fits stop early, and others do not stop
@pytest.mark.parametrize("apart", [0.0, 0.5, 2.0, 6.0])
@pytest.mark.parametrize("choices", [[None, 0.0], [0.0], [0.3]])
@pytest.mark.parametrize("fractions", [[None], [0.1], [0.01, 0.2, 0.5]])
def test_fits_computed_at_once_have_the_bits_of_single_fits(apart, choices, fractions):
    binned = binned_values(60, 900, apart)
    found = first_fits(binned, choices, fractions)
    for fits, a in zip(found, choices, strict=True):
        assert_same_bits(fits, plain_first_fit(binned, a, fractions))


@pytest.mark.parametrize(("a", "b"), [(None, None), (0.0, None), (None, 0.2), (0.1, 0.2)])
@pytest.mark.parametrize("apart", [0.5, 3.0])
def test_resampled_fits_have_the_bits_of_plain_steps(a, b, apart):
    binned = binned_values(80, 700, apart)
    fitted = plain_first_fit(binned, a, [b])
    found = resampled_fits(binned, fitted, a, b, 30, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    counts = [draw_counts(each, 30, rng) for each in (binned.positives, binned.unlabeled)]
    start = Fits(*(np.repeat(line, 30, axis=0) for line in vars(fitted).values()))
    expected = plain_fit(binned.logits, *counts, a, b, start, RESAMPLED_STEPS)
    assert_same_bits(found, expected)
