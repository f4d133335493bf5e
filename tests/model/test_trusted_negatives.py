"""Conformal p-values against their definition, and the list of Benjamini and Hochberg."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import false_discovery_control

from resvm_cli.model.ensemble import Group
from resvm_cli.model.out_of_bag import decide_out_of_bag
from resvm_cli.model.trusted_negatives import TrustedNegatives, benjamini_hochberg
from resvm_cli.svm.kernels import Kernel

N_MODELS = 6
ONE = (Group(Kernel("linear"), range(N_MODELS)),)
TWO = (
    Group(Kernel("linear"), range(2), weight=0.3, shift=0.1, scale=2.0),
    Group(Kernel("linear"), range(2, N_MODELS), weight=0.7, shift=-0.2),
)


def value(decisions, rule):
    return decisions.values_without_ties() if rule == "votes" else decisions.means


@pytest.mark.parametrize(("rule", "groups"), [("mean", ONE), ("mean", TWO), ("votes", ONE)])
def test_a_p_value_is_the_rank_of_a_row_among_negatives_judged_by_the_same_members(rule, groups):
    rng = np.random.default_rng(0)
    rows, negatives = rng.standard_normal((200, N_MODELS)), rng.standard_normal((30, N_MODELS))
    absent = rng.random(rows.shape) < 0.6
    own = value(decide_out_of_bag(rows, absent, groups), rule)
    found = TrustedNegatives(negatives, rule, groups).p_values(own, absent)
    for number in range(len(rows)):
        same = np.broadcast_to(absent[number], negatives.shape)
        others = value(decide_out_of_bag(negatives, same, groups), rule)
        expected = (1 + (others >= own[number]).sum()) / 31 if absent[number].any() else np.nan
        assert found[number] == pytest.approx(expected, nan_ok=True)


def test_a_negative_that_equals_the_row_counts_against_it():
    rows = np.random.default_rng(1).standard_normal((5, N_MODELS))
    absent = np.ones(rows.shape, bool)
    own = decide_out_of_bag(rows, absent).means
    assert (TrustedNegatives(rows, "mean", ONE).p_values(own, absent) >= 2 / 6).all()


def test_p_values_of_negatives_are_no_smaller_than_they_should_be():
    rng = np.random.default_rng(2)
    small = 0
    for _ in range(300):
        values = rng.standard_normal((21, N_MODELS)) + rng.standard_normal((21, 1))
        absent = rng.random((1, N_MODELS)) < 0.5
        absent[0, 0] = True
        own = decide_out_of_bag(values[:1], absent).means
        small += TrustedNegatives(values[1:], "mean", ONE).p_values(own, absent)[0] <= 0.1
    assert small <= 45  # 30 expected


@given(arrays(np.float64, st.integers(1, 30), elements=st.floats(0.001, 1)))
def test_benjamini_hochberg_is_scipys(p_values):
    assert benjamini_hochberg(p_values) == pytest.approx(false_discovery_control(p_values))


def test_rows_without_a_p_value_have_no_part():
    found = benjamini_hochberg(np.array([0.01, np.nan, 0.04]))
    assert found[[0, 2]].tolist() == pytest.approx([0.02, 0.04])
    assert np.isnan(found[1])
