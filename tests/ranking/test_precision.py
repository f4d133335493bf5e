"""Conformal p-values and the lists that they choose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import false_discovery_control

from resvm_cli.ranking.precision import benjamini_hochberg, conformal_p_values


def test_a_p_value_counts_the_negatives_at_or_above_the_row_and_the_row_itself():
    values = np.array([5.0, 3.0, 2.5, np.nan, -9.0])
    found = conformal_p_values(values, np.array([3.0, 1.0, 4.0, 2.0]))
    assert found == pytest.approx([1 / 5, 3 / 5, 3 / 5, np.nan, 1.0], nan_ok=True)


def test_rounding_does_not_put_a_row_above_an_equal_negative():
    assert conformal_p_values(np.array([0.1 + 0.2]), np.array([0.3])).tolist() == [1.0]


def test_p_values_of_negatives_are_uniform():
    values = np.random.default_rng(2).standard_normal((2000, 20))
    p_values = [conformal_p_values(row[:1], row[1:])[0] for row in values]
    counts = np.bincount(np.round(20 * np.array(p_values)).astype(int))[1:]
    assert len(counts) == 20
    assert np.all(np.abs(counts - 100) < 45)


@given(arrays(np.float64, st.integers(1, 30), elements=st.floats(0.001, 1)))
def test_benjamini_hochberg_is_scipys(p_values):
    assert benjamini_hochberg(p_values) == pytest.approx(false_discovery_control(p_values))


def test_rows_without_a_p_value_have_no_part():
    found = benjamini_hochberg(np.array([0.01, np.nan, 0.04]))
    assert found[[0, 2]].tolist() == pytest.approx([0.02, 0.04])
    assert np.isnan(found[1])
