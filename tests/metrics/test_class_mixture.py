"""P and U as mixtures of two classes: fractions, precision and false positives against truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resvm_cli.metrics.class_mixture import ClassMixture, RankedOutcomes
from resvm_cli.metrics.intervals import clopper_pearson, wilson_bounds


class Drawn:
    """Normal values of two classes, so far apart."""

    def __init__(self, a, b, seed=0, n_pos=400, n_unl=4000, apart=3.0):
        rng = np.random.default_rng(seed)
        self.true_pos = np.arange(n_pos) >= round(a * n_pos)
        self.true_unl = np.arange(n_unl) < round(b * n_unl)
        self.positives = rng.standard_normal(n_pos) + apart * self.true_pos
        self.unlabeled = rng.standard_normal(n_unl) + apart * self.true_unl

    def fitted(self, **settings):
        found = ClassMixture.fit(self.positives, self.unlabeled, **settings)
        assert found is not None
        return found

    def precision(self, depth):
        return self.true_unl[np.argsort(-self.unlabeled)[:depth]].mean()


def rates(a, b, given_b, n_pos=100, apart=2.0):
    """How often bounds of precision exclude the truth: below, above."""
    missed = []
    for seed in range(25):
        drawn = Drawn(a, b, seed, n_pos, 1000, apart)
        found = drawn.fitted(b=b if given_b else None, seed=seed).precision(1000)
        for depth in (10, 50, 200):
            true = drawn.precision(depth)
            missed.append([true < found.low[depth - 1], true > found.high[depth - 1]])
    return np.mean(missed, axis=0)


@pytest.mark.parametrize(("a", "b"), [(0.0, 0.03), (0.0, 0.3), (0.1, 0.2), (0.3, 0.2)])
def test_bounds_hold_if_the_fraction_of_positives_is_given(a, b):
    assert (rates(a, b, given_b=True) <= 0.05).all()


def test_bounds_hold_where_some_part_of_the_list_is_pure():
    assert (rates(0.0, 0.2, given_b=False) <= 0.05).all()
    assert (rates(0.1, 0.2, given_b=False) <= 0.05).all()


def test_a_lower_bound_holds_where_the_best_rows_are_only_half_positive():
    # as many negatives have the values of positives: no value tells
    rng = np.random.default_rng(0)
    unlabeled = np.concatenate([rng.standard_normal(100) + 4, rng.standard_normal(900)])
    found = ClassMixture.fit(rng.standard_normal(200) + 4, unlabeled)
    b, precision = found.contamination_unl, found.precision(1000)
    assert b.low <= 0.05 < b.value <= b.high
    assert precision.low[49] <= 0.5 < precision.high[49]


def test_a_precision_of_one_row_has_bounds_of_0_or_1():
    for apart in (1.0, 2.0, 9.0):
        for b in (None, 0.3):
            found = Drawn(0.0, 0.3, apart=apart).fitted(b=b).precision(10)
            assert {found.low[0], found.high[0]} <= {0.0, 1.0}


def test_the_bound_of_the_fraction_of_positives_is_that_of_counts():
    drawn = Drawn(0.0, 0.2, n_pos=50, n_unl=200)
    mixture = drawn.fitted()
    above = (drawn.positives[:, None] > np.sort(drawn.unlabeled)[::-1]).sum(axis=0)
    depths = np.arange(1, 201)
    counted = wilson_bounds(depths, 200)[1] / np.maximum(wilson_bounds(above, 50)[0], 1e-9)
    assert mixture.max_b == pytest.approx(counted[mixture.depths - 1].min())
    assert mixture.max_b > 0.2
    steepest = (depths / np.maximum(above, 1e-9) * 50 / 200)[mixture.depths - 1].min()
    assert mixture.contamination_unl.value == pytest.approx(steepest)
    assert mixture.contamination_unl.low == pytest.approx(steepest / 2)


@pytest.mark.parametrize("n_pos", [30, 60, 100, 200])
def test_a_clean_sample_does_not_exclude_three_in_its_size(n_pos):
    drawn = Drawn(0.0, 0.2, n_pos=n_pos, n_unl=1000, apart=9.0)
    mixture = drawn.fitted()
    share = mixture.contamination_pos
    assert share.value == share.low == 0
    assert 3 / n_pos <= share.high < 8 / n_pos
    assert mixture.n_false() == 0
    assert mixture.expected_false(n_pos).high[-1] >= 3


@pytest.mark.parametrize("a", [0.0, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("apart", [1.5, 4.0])
def test_the_interval_of_false_known_positives_contains_the_truth(a, apart):
    inside, values = [], []
    for seed in range(15):
        mixture = Drawn(a, 0.2, seed, 100, 1000, apart).fitted()
        share = mixture.contamination_pos
        inside.append(share.low <= a <= share.high)
        values.append(share.value)
    assert np.mean(inside) >= 0.9
    if apart > 2:
        assert np.mean(values) == pytest.approx(a, abs=0.07)


def test_any_increasing_change_of_the_values_changes_nothing():
    drawn = Drawn(0.1, 0.2)
    one = drawn.fitted()
    drawn.positives, drawn.unlabeled = np.exp(drawn.positives), np.exp(drawn.unlabeled)
    other = drawn.fitted()
    assert one.contamination_unl == other.contamination_unl
    assert one.precision(50).value.tolist() == other.precision(50).value.tolist()


def test_what_is_given_is_kept_without_a_width():
    mixture = Drawn(0.1, 0.2).fitted(a=0.15, b=0.25)
    for given_share, share in (
        (0.15, mixture.contamination_pos),
        (0.25, mixture.contamination_unl),
    ):
        assert share.low == share.value == share.high == given_share
    assert mixture.n_false() == 60
    assert mixture.precision(4000).value[-1] == pytest.approx(0.25)
    assert mixture.expected_false(400).value[-1] == pytest.approx(60)


def test_sets_that_overlap_too_much_tell_nothing_but_upper_bounds():
    mixture = Drawn(0.1, 0.3, apart=0.7).fitted()
    assert not mixture.separable
    for share, true in ((mixture.contamination_unl, 0.3), (mixture.contamination_pos, 0.1)):
        assert np.isnan(share.value)
        assert share.low == 0
        assert true <= share.high <= 1
    assert mixture.n_false() is None
    for figure in (mixture.precision(100), mixture.expected_false(100)):
        assert np.isnan([figure.value, figure.low, figure.high]).all()
    assert np.isnan(mixture.probability(np.arange(10.0))).all()
    told = Drawn(0.1, 0.3, apart=0.7).fitted(b=0.3)
    assert told.precision(100).low[-1] > 0.25
    assert told.n_false() is None
    assert Drawn(0.1, 0.3, apart=0.7).fitted(a=0.1).n_false() == 40


def test_few_known_positives_must_differ_more_from_unlabeled_rows():
    few, many = (Drawn(0.0, 0.05, n_pos=n_pos, apart=1.5).fitted() for n_pos in (20, 200))
    assert 0.75 < few.area < 0.9
    assert not few.precision_is_known
    assert few.why_unknown == "P and U overlap too much for only 20 known positives"
    assert many.precision_is_known
    assert Drawn(0.0, 0.05, n_pos=20, apart=4.0).fitted().precision_is_known
    why = Drawn(0.0, 0.05, n_pos=20, apart=0.2).fitted().why_unknown
    assert why == "P and U overlap too much, as they do if most of U is positive"


def test_positives_found_by_tests_support_no_claim():
    mixture = Drawn(0.0, 0.2).fitted(sampled=False)
    assert (
        mixture.why_unknown == "positives found by tests are not a random sample of all positives"
    )
    assert (mixture.contamination_unl.high, mixture.contamination_pos.high) == (1.0, 1.0)
    assert list(mixture.what_if()) == []


def test_the_table_has_the_row_of_each_possible_fraction():
    drawn = Drawn(0.0, 0.1, n_pos=200, n_unl=1000, apart=2.0)
    cases = {(b, depth): found for b, depth, found in drawn.fitted().what_if()}
    assert {depth for _, depth in cases} == {10, 50, 100}
    assert max(b for b, _ in cases) < drawn.fitted().max_b
    for depth in (10, 50, 100):
        given_b = drawn.fitted(b=0.1).n_positive()
        index = drawn.fitted().depths.tolist().index(depth)
        case = cases[0.1, depth]
        assert (case.value, case.low) == (given_b.value[index], given_b.low[index])
        assert case.low <= depth * drawn.precision(depth) <= case.high
    assert list(drawn.fitted(b=0.1).what_if()) == []


def test_contamination_of_p_raises_precision_if_b_is_given():
    drawn = Drawn(0.2, 0.2, apart=2.0)
    clean, given_a = (drawn.fitted(a=a, b=0.2).precision(400).value[-1] for a in (0.0, 0.2))
    assert clean < given_a == pytest.approx(drawn.precision(400), abs=0.06)
    assert drawn.fitted(b=0.2).precision(400).value[-1] == pytest.approx(clean)


def test_a_list_holds_few_false_rows():
    false = total = 0
    for seed in range(15):
        drawn = Drawn(0.0, 0.2, seed, 100, 1000, apart=2.0)
        length = drawn.fitted(b=0.2, seed=seed).n_listed(0.1)
        total += length
        false += round(length * (1 - drawn.precision(length))) if length else 0
    assert total > 250
    assert false / total < 0.12


def test_precision_never_rises_down_the_list_and_probabilities_add_up_to_it():
    drawn = Drawn(0.0, 0.2, n_pos=100, n_unl=1000)
    for known in ({}, {"b": 0.2}, {"tested": outcomes(drawn, np.arange(150, 250))}):
        mixture = drawn.fitted(**known)
        chances = mixture.probability(np.sort(drawn.unlabeled)[::-1])
        assert (np.diff(chances) <= 1e-12).all()
        assert 0 <= chances.min() <= chances.max() <= 1
        precision = mixture.precision(1000)
        assert (precision.low <= precision.value).all()
        assert (precision.value <= precision.high).all()
        if "tested" not in known:
            at = [9, 99, 999]
            means = (np.cumsum(chances) / np.arange(1, 1001))[at]
            assert means == pytest.approx(precision.value[at], abs=0.02)


def test_a_part_that_is_supposed_pure_is_not_certain_and_its_positives_are_kept():
    positives, unlabeled = 800.5 + 2.0 * np.arange(100), 1.0 + np.arange(1000)
    mixture, given = (ClassMixture.fit(positives, unlabeled, b=b) for b in (None, 0.4))
    most = 98.5 / 99  # 98 known positives are above the 197th row of U, where the list is steepest
    assert mixture.probability(unlabeled).max() == pytest.approx(most)
    assert mixture.precision(1000).value[[0, 99]] == pytest.approx(most)
    assert mixture.precision(1000).value[-1] == pytest.approx(100 / 98 * 0.197)
    assert given.probability(unlabeled).max() == 1


def test_too_few_values_tell_nothing():
    drawn = Drawn(0.0, 0.2)
    assert ClassMixture.fit(drawn.positives[:9], drawn.unlabeled) is None
    assert ClassMixture.fit(drawn.positives, drawn.unlabeled[:19]) is None
    assert ClassMixture.fit(drawn.positives[-10:], drawn.unlabeled[-20:]) is not None


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 999), st.sampled_from([1, 3, 1000]), st.booleans())
def test_any_values_give_fractions(seed, n_distinct, infinite):
    rng = np.random.default_rng(seed)
    positives = rng.integers(0, n_distinct, 15).astype(float)
    unlabeled = rng.integers(0, n_distinct, 40).astype(float)
    if infinite:
        positives[0], unlabeled[0] = np.inf, -np.inf
    for b in (None, 0.2):
        mixture = ClassMixture.fit(positives, unlabeled, b=b)
        for share in (mixture.contamination_pos, mixture.contamination_unl):
            assert 0 <= share.low <= share.high <= 1
            assert np.isnan(share.value) or share.low <= share.value <= share.high
        precision = mixture.precision(40)
        assert np.isnan(precision.value).all() != mixture.precision_is_known
        if mixture.precision_is_known:
            for values in (precision.value, precision.low, precision.high):
                assert ((values >= 0) & (values <= 1)).all()


def test_tied_rows_share_the_known_positives_of_their_value():
    unlabeled = np.repeat([2.0, 1.0, 0.0], 10)
    mixture = ClassMixture.fit(np.repeat([2.0, 1.0], 10), unlabeled)
    at = dict(zip(mixture.depths, mixture.n_above, strict=True))
    assert [at[depth] for depth in (1, 5, 10, 20)] == pytest.approx([1, 5, 10, 20])
    assert mixture.area == pytest.approx(1 - 1 / 3)


def outcomes(drawn, numbers):
    return RankedOutcomes.from_rows(numbers, drawn.true_unl[numbers], drawn.unlabeled)


def test_a_random_sample_of_tested_rows_bounds_b_where_values_cannot():
    drawn = Drawn(0.0, 0.3, apart=0.5, n_pos=100, n_unl=1000)
    assert not drawn.fitted().precision_is_known
    numbers = np.random.default_rng(1).choice(1000, 60, replace=False)
    share = drawn.fitted(tested=outcomes(drawn, numbers)).contamination_unl
    n_found = int(drawn.true_unl[numbers].sum())
    counted = clopper_pearson(n_found, 60)
    assert share.low == pytest.approx((n_found + 940 * counted.low) / 1000)
    assert share.high == pytest.approx((n_found + 940 * counted.high) / 1000)
    assert share.low <= share.value <= share.high


def test_precision_of_rows_that_were_all_tested_is_known():
    drawn = Drawn(0.0, 0.2, apart=1.0, n_pos=100, n_unl=1000)
    first = np.argsort(-drawn.unlabeled, kind="stable")[:20]
    rows = outcomes(drawn, first)
    assert not rows.is_sample(1000)
    precision = drawn.fitted(tested=rows).precision(1000)
    true = drawn.true_unl[first].mean()
    for figure in (precision.value, precision.low, precision.high):
        assert figure[19] == pytest.approx(true)
    assert precision.low[99] < precision.value[99] < precision.high[99]


def test_rows_that_were_not_tested_keep_their_chances_in_a_list():
    unlabeled = np.linspace(1.0, 0.0, 10)  # row 0 is the first of the list
    rows = RankedOutcomes.from_rows(np.array([2, 5, 6]), np.array([True, False, True]), unlabeled)
    lengths = np.array([2, 3, 5, 6, 7, 10])
    rng = np.random.default_rng(0)
    expected, draws = rows.drawn(np.full((4, 6), 0.3), lengths, rng)
    assert expected == pytest.approx([0.6, 1.6, 2.2, 2.2, 3.2, 4.1])
    assert (draws >= [0, 1, 1, 1, 2, 2]).all()


def test_tested_rows_move_the_curve_to_their_outcomes():
    drawn = Drawn(0.0, 0.3, apart=1.5, n_pos=100, n_unl=1000)
    numbers = np.random.default_rng(1).choice(1000, 40, replace=False)
    none, every = (
        drawn.fitted(tested=RankedOutcomes.from_rows(numbers, np.full(40, answer), drawn.unlabeled))
        for answer in (False, True)
    )
    assert none.precision(100).value[-1] < every.precision(100).value[-1]
    assert none.contamination_unl.value < every.contamination_unl.value


def test_tested_rows_can_raise_an_estimate_that_is_far_too_small():
    # P lies far above U, so its values show no positive of U
    rng = np.random.default_rng(0)
    unlabeled = rng.standard_normal(300)
    first = np.argsort(-unlabeled, kind="stable")[:40]
    half = RankedOutcomes.from_rows(first, np.arange(40) % 2 == 0, unlabeled)
    precision = ClassMixture.fit(rng.standard_normal(60) + 9, unlabeled, tested=half).precision(300)
    assert 0.2 < precision.value[99] < 0.8
    assert precision.high[99] > 0.45


@pytest.mark.parametrize("first", [True, False])
def test_bounds_hold_after_tests(first):
    missed = []
    for seed in range(25):
        drawn = Drawn(0.0, 0.2, seed, 100, 1000, apart=1.5)
        order = np.argsort(-drawn.unlabeled, kind="stable")
        some = np.random.default_rng(seed).choice(1000, 30, replace=False)
        rows = outcomes(drawn, order[:30] if first else some)
        found = drawn.fitted(tested=rows, seed=seed).precision(1000)
        for depth in (50, 100, 200):
            true = drawn.precision(depth)
            missed.append([true < found.low[depth - 1], true > found.high[depth - 1]])
    assert (np.mean(missed, axis=0) <= 0.08).all()
