"""Which known positives look wrong, against sets whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from resvm_cli.evaluation.audit import expected_false, n_suspects
from resvm_cli.evaluation.corrected import Contamination


def drawn(a, b, seed, n_pos=200, n_unl=2000, apart=2.0):
    rng = np.random.default_rng(seed)
    n_false, n_hidden = round(a * n_pos), round(b * n_unl)
    false = np.arange(n_pos) < n_false
    positives = rng.standard_normal(n_pos) + apart * ~false
    unlabeled = rng.standard_normal(n_unl) + apart * (np.arange(n_unl) < n_hidden)
    order = np.argsort(positives)
    return positives[order], false[order], unlabeled


@pytest.mark.parametrize(("a", "b"), [(0.1, 0.0), (0.3, 0.0), (0.3, 0.2), (0.1, 0.3)])
def test_the_expectation_is_right_on_average(a, b):
    off = []
    for seed in range(60):
        positives, false, unlabeled = drawn(a, b, seed)
        expected = expected_false(positives, unlabeled, Contamination(a, b))
        off.append((expected - np.cumsum(false))[[9, 19, 39, 79]])
    # never more than k: where nearly all of the first are false, that errs to fewer
    assert np.abs(np.mean(off, axis=0)).max() < 2.0


def test_leaving_out_the_positives_of_u_errs_to_fewer():
    positives, _, unlabeled = drawn(0.2, 0.3, 1)
    blind = expected_false(positives, unlabeled, Contamination(0.2, 0.0))
    told = expected_false(positives, unlabeled, Contamination(0.2, 0.3))
    assert blind[:40].sum() < told[:40].sum()


@given(st.floats(0, 0.9), st.floats(0, 0.9), st.integers(0, 1000), st.integers(1, 30))
def test_it_never_falls_and_stays_between_its_bounds(a, b, seed, n_pos):
    if a + b >= 0.99:
        return
    rng = np.random.default_rng(seed)
    positives = np.sort(rng.integers(0, 5, n_pos).astype(float))
    expected = expected_false(positives, rng.integers(0, 5, 20).astype(float), Contamination(a, b))
    depth = np.arange(1, n_pos + 1)
    assert np.all(np.diff(expected) >= -1e-9)
    assert np.all(expected <= np.minimum(depth, a * n_pos) + 1e-9)
    assert np.all(expected >= depth - (1 - a) * n_pos - 1e-9)


def test_a_clean_set_has_no_false_positives():
    positives, _, unlabeled = drawn(0.0, 0.1, 3)
    assert expected_false(positives, unlabeled, Contamination(0.0, 0.1)).max() == 0


@given(st.integers(0, 1000))
def test_suspects_lie_below_the_point_of_kolmogorov_and_smirnov(seed):
    positives, _, unlabeled = drawn(0.2, 0.1, seed, 30, 80)
    where = ks_2samp(positives, unlabeled, alternative="less").statistic_location
    assert n_suspects(positives, unlabeled) == np.sum(positives <= where)


def test_nothing_is_suspect_where_p_is_not_above_u():
    assert n_suspects(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 0
    assert n_suspects(np.zeros(0), np.array([3.0])) == 0
