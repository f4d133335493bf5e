"""P and U as mixtures of two classes: shares, precision and false positives against the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resvm_cli.metrics.class_mixture import ClassMixture, RankedOutcomes, _means
from resvm_cli.metrics.intervals import clopper_pearson
from resvm_cli.metrics.mixture_fit import BinnedValues


class Drawn:
    """Normal values of two classes, so far apart."""

    def __init__(self, a, b, seed=0, n_pos=400, n_unl=4000, apart=3.0):
        rng = np.random.default_rng(seed)
        self.a, self.b = a, b
        self.true_pos = np.arange(n_pos) >= round(a * n_pos)
        self.true_unl = np.arange(n_unl) < round(b * n_unl)
        self.positives = rng.standard_normal(n_pos) + apart * self.true_pos
        self.unlabeled = rng.standard_normal(n_unl) + apart * self.true_unl

    def fitted(self, **settings):
        found = ClassMixture.fit(self.positives, self.unlabeled, **settings)
        assert found is not None
        return found


@pytest.mark.parametrize("a", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("b", [0.05, 0.3])
def test_both_shares_are_found_within_their_bounds(a, b):
    mixture = Drawn(a, b).fitted()
    assert mixture.separable
    for truth, share in ((a, mixture.contamination_pos), (b, mixture.contamination_unl)):
        assert share.value == pytest.approx(truth, abs=0.05)
        assert share.low <= truth + 0.005
        assert truth <= share.high
        assert share.high - share.low < 0.3


@pytest.mark.thorough
def test_bounds_hold_the_truth_nine_times_in_ten():
    inside = []
    for seed in range(20):
        share = Drawn(0.1, 0.2, seed, 200, 1000).fitted(n_replicates=100).contamination_unl
        inside.append(share.low <= 0.2 <= share.high)
    assert np.mean(inside) >= 0.9


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


def test_sets_that_overlap_too_much_tell_nothing_but_an_upper_bound():
    mixture = Drawn(0.1, 0.3, apart=0.7).fitted()
    assert not mixture.separable
    share = mixture.contamination_unl
    assert np.isnan(share.value)
    assert share.low == 0
    assert 0.3 <= share.high <= 1
    assert np.isnan(mixture.contamination_pos.value)
    assert mixture.n_false() is None
    for figure in (mixture.precision(100), mixture.expected_false(100)):
        assert np.isnan([figure.value, figure.low, figure.high]).all()
    told = Drawn(0.1, 0.3, apart=0.7).fitted(b=0.3)
    assert told.precision(100).low[-1] > 0.3
    assert told.n_false() is None
    assert Drawn(0.1, 0.3, apart=0.7).fitted(a=0.1).n_false() == 40


def test_few_known_positives_must_differ_more_from_unlabeled_rows():
    few, many = (Drawn(0.0, 0.05, n_pos=n_pos, apart=1.5).fitted() for n_pos in (20, 200))
    assert 0.75 < few.binned.area < 0.9
    assert not few.precision_is_known
    assert few.why_unknown == "P and U overlap too much for only 20 known positives"
    assert many.precision_is_known
    assert Drawn(0.0, 0.05, n_pos=20, apart=4.0).fitted().precision_is_known
    assert Drawn(0.0, 0.05, n_pos=20, apart=0.2).fitted().why_unknown == "P and U overlap too much"


def test_the_fewer_positives_are_known_the_less_is_promised():
    spreads = [Drawn(0.0, 0.2, 1, n_pos, apart=2.5).fitted().spread for n_pos in (40, 160, 640)]
    assert spreads == sorted(spreads, reverse=True)


def test_the_error_of_the_area_is_that_of_the_mean_over_known_positives():
    drawn = Drawn(0.1, 0.2, n_pos=30, n_unl=45)
    # with fewer values than bins, every value has its own
    below = (drawn.unlabeled < drawn.positives[:, None]).mean(axis=1)
    binned = drawn.fitted(n_replicates=0).binned
    assert binned.area == pytest.approx(below.mean(), abs=0.02)
    assert binned.area_error == pytest.approx(below.std(ddof=1) / np.sqrt(30), rel=0.05)


def test_the_same_values_at_chance_bound_the_share_by_nothing():
    values = np.random.default_rng(0).standard_normal(600)
    mixture = ClassMixture.fit(values[:100], values[100:])
    assert mixture.contamination_unl.high > 0.9


def test_the_more_sets_overlap_the_less_is_promised():
    apart = [Drawn(0.0, 0.2, apart=some).fitted(n_replicates=100) for some in (4.0, 2.0, 1.2)]
    assert all(mixture.separable for mixture in apart)
    spreads = [mixture.spread for mixture in apart]
    assert spreads == sorted(spreads)
    mixture = apart[-1]
    a, b = ((mixture.weights @ part).item() for part in (mixture.fitted.a, mixture.fitted.b))
    of_classes = 0.5 + (mixture.binned.area - 0.5) / (1 - a - b)
    expected = 2 * (1 - of_classes) + 3 * mixture.binned.area_error + 0.0075 / b
    assert spreads[-1] == pytest.approx(expected)
    lows = [mixture.precision(100).low[-1] for mixture in apart]
    assert lows == sorted(lows, reverse=True)
    # the value is that of the curve, shrunk by half of the spread
    shrunk = [mixture.precision(1).value[0] / (1 - 0.5 * mixture.spread) for mixture in apart]
    assert all(0.9 < value <= 1 + 1e-9 for value in shrunk)


@pytest.mark.parametrize("b", [None, 0.2])
def test_a_list_is_chosen_by_the_mean_of_all_that_may_be_true(b):
    mixture = Drawn(0.0, 0.2, apart=2.0).fitted(b=b, n_replicates=0)
    stated, mean = mixture.precision(500).value, mixture.mean_precision(500)
    spread, rest = mixture.spread, b or 0.0
    fitted = (stated - 0.5 * spread * rest) / (1 - 0.5 * spread)
    draws = np.random.default_rng(0).random(100_000) ** spread  # rho
    assert mean == pytest.approx(rest + draws.mean() * (fitted - rest), abs=0.002)
    assert (mean < stated).all()


def test_suspects_are_found_where_em_has_another_optimum():
    # five false rows of P lie deep in U; from a gentle slope, EM ends with a = 0
    positives = np.concatenate([[0.593, 0.606, 0.634, 0.749, 0.756], np.linspace(0.905, 0.999, 45)])
    mixture = ClassMixture.fit(positives, np.arange(700) / 700, n_replicates=0)
    assert mixture.n_false() == 5


def test_an_estimated_contamination_of_p_has_to_earn_its_weight():
    # the fit with a estimated is never worse than that with a = 0, so it pays for its parameter
    mixture = Drawn(0.0, 0.3, apart=1.5, n_pos=100, n_unl=1000).fitted(n_replicates=0)
    estimated, clean = mixture.fitted.log_likelihoods(mixture.binned)
    odds = np.exp(estimated - clean - 1)
    assert mixture.weights == pytest.approx([odds / (1 + odds), 1 / (1 + odds)])
    a, share = mixture.fitted.a[0, 0], mixture.contamination_pos.value
    assert share == pytest.approx(mixture.weights[0] * a)


def test_an_estimated_contamination_of_p_does_not_raise_precision_if_b_is_given():
    drawn = Drawn(0.0, 0.3, apart=1.5, n_pos=100, n_unl=1000)
    both, clean = drawn.fitted(b=0.3), drawn.fitted(a=0.0, b=0.3)
    assert len(both.weights) == 2
    assert both.weights.sum() == pytest.approx(1)
    alone = both.fitted.hidden_positives(both.fitted.ratios(both.binned.logits))[0]
    top = clean.precision(20).value[-1]
    assert top <= both.precision(20).value[-1] + 1e-9 <= alone.max() + 1e-9


@pytest.mark.thorough
@pytest.mark.parametrize("a", [0.0, 0.1, 0.3])
def test_precision_is_what_is_found(a):
    gaps, inside = [], []
    for seed in range(8):
        drawn = Drawn(a, 0.1, seed)
        share = drawn.fitted(n_replicates=50).precision(len(drawn.unlabeled))
        order = np.argsort(-drawn.unlabeled)
        for depth in (100, 400, 800):
            true = drawn.true_unl[order[:depth]].mean()
            gaps.append(share.value[depth - 1] - true)
            inside.append(share.low[depth - 1] <= true <= share.high[depth - 1])
    assert -0.1 < np.mean(gaps) < 0.05  # shrunk, the more P and U overlap
    assert np.mean(inside) >= 0.9


def test_precision_never_rises_down_the_list_and_ends_at_the_share_of_positives():
    drawn = Drawn(0.0, 0.2)
    mixture = drawn.fitted()
    precision = mixture.precision(len(drawn.unlabeled))
    assert (np.diff(precision.value) <= 1e-12).all()
    share = mixture.contamination_unl.value
    assert precision.value[-1] == pytest.approx(share, abs=1e-3)
    assert (precision.low <= precision.value).all()
    assert (precision.value <= precision.high).all()


@pytest.mark.thorough
@pytest.mark.parametrize("a", [0.1, 0.3])
def test_false_positives_are_counted_as_they_are_found(a):
    gaps, inside = [], []
    for seed in range(8):
        drawn = Drawn(a, 0.2, seed)
        n_false = round(a * 400)
        for known in (None, a):
            share = drawn.fitted(a=known, n_replicates=50).expected_false(400)
            true = (~drawn.true_pos[np.argsort(drawn.positives)[:n_false]]).sum()
            gaps.append(share.value[n_false - 1] - true)
            inside.append(share.low[n_false - 1] <= true <= share.high[n_false - 1])
    assert abs(np.mean(gaps)) < 0.05 * n_false
    assert np.mean(inside) >= 0.9


def test_a_set_that_is_said_to_be_clean_has_no_false_positives():
    mixture = Drawn(0.1, 0.2).fitted(a=0.0)
    assert mixture.n_false() == 0
    assert mixture.expected_false(400).value.max() == 0


def test_all_together_are_as_many_as_are_said_to_be_false():
    for said in (0.1, 0.25):
        mixture = Drawn(0.1, 0.2).fitted(a=said, b=0.3)
        false = mixture.expected_false(400)
        assert len(false.value) == len(false.low) == len(false.high) == 400
        assert false.value[-1] == pytest.approx(400 * said)
        assert mixture.precision(4000).value[-1] == pytest.approx(0.3)


def test_too_few_values_tell_nothing():
    drawn = Drawn(0.0, 0.2)
    assert ClassMixture.fit(drawn.positives[:9], drawn.unlabeled) is None
    assert ClassMixture.fit(drawn.positives, drawn.unlabeled[:19]) is None
    assert ClassMixture.fit(drawn.positives[-10:], drawn.unlabeled[-20:]) is not None


def test_without_replicates_there_are_no_bounds():
    mixture = Drawn(0.1, 0.2).fitted(n_replicates=0)
    share = mixture.contamination_unl
    assert share.low == share.value == share.high
    assert np.isnan(mixture.precision(5).low).all()
    false = mixture.expected_false(5)
    assert np.isnan(false.low).all()
    assert np.isnan(false.high).all()
    bounded = Drawn(0.1, 0.2).fitted(n_replicates=20).expected_false(5)
    assert false.value == pytest.approx(bounded.value)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 999), st.sampled_from([1, 3, 1000]), st.booleans())
def test_any_values_give_shares(seed, n_distinct, infinite):
    rng = np.random.default_rng(seed)
    positives = rng.integers(0, n_distinct, 15).astype(float)
    unlabeled = rng.integers(0, n_distinct, 40).astype(float)
    if infinite:
        positives[0], unlabeled[0] = np.inf, -np.inf
    for b in (None, 0.2):
        mixture = ClassMixture.fit(positives, unlabeled, b=b, n_replicates=5)
        for share in (mixture.contamination_pos, mixture.contamination_unl):
            assert 0 <= share.low <= share.high <= 1
            assert np.isnan(share.value) or share.low <= share.value <= share.high
        precision = mixture.precision(40)
        assert np.isnan(precision.value).all() != mixture.precision_is_known
        if mixture.precision_is_known:
            for values in (precision.value, precision.low, precision.high):
                assert ((values >= 0) & (values <= 1)).all()


def test_means_of_chances_never_exceed_1_by_rounding():
    # the mean over the first 7 of 22 rows would be 1 + 2e-16, and binomial draws would fail
    assert _means(np.ones((1, 1)), np.array([22.0]), np.arange(1.0, 23.0)).max() == 1


def test_resamples_keep_a_given_fraction_of_positives():
    drawn = Drawn(0.0, 0.3, apart=1.0, n_pos=100, n_unl=1000)
    precision = drawn.fitted(a=0.0, b=0.3).precision(1000)
    assert precision.low[-1] == pytest.approx(0.3, abs=0.04)
    assert precision.low[99] < precision.value[99] - 0.1


@pytest.mark.parametrize("n_distinct", [3, 1000])
def test_every_value_is_counted_in_one_bin(n_distinct):
    rng = np.random.default_rng(0)
    sets = rng.integers(0, n_distinct, 70).astype(float), rng.integers(0, n_distinct, 300) / 2
    binned = BinnedValues.from_values(*sets)
    assert len(binned.edges) > 1
    for values, counts in zip(sets, (binned.positives, binned.unlabeled), strict=True):
        expected, _ = np.histogram(values, [-np.inf, *binned.edges, np.inf])
        assert counts.tolist() == expected.tolist()


def outcomes(drawn, numbers):
    return RankedOutcomes.from_rows(numbers, drawn.true_unl[numbers], drawn.unlabeled)


def test_a_random_sample_of_tested_rows_bounds_b_where_values_cannot():
    drawn = Drawn(0.0, 0.3, apart=0.5, n_pos=100, n_unl=1000)
    assert not drawn.fitted().precision_is_known
    numbers = np.random.default_rng(1).choice(1000, 60, replace=False)
    mixture = drawn.fitted(tested=outcomes(drawn, numbers))
    share = mixture.contamination_unl
    n_found = int(drawn.true_unl[numbers].sum())
    counted = clopper_pearson(n_found, 60)
    assert share.low == pytest.approx((n_found + 940 * counted.low) / 1000)
    assert share.high == pytest.approx((n_found + 940 * counted.high) / 1000)
    assert share.low <= share.value <= share.high
    assert share.high - share.low < 0.3
    precision = mixture.precision(1000)
    assert (precision.low <= precision.value).all()
    assert (precision.value <= precision.high).all()


def test_precision_of_rows_that_were_all_tested_is_known():
    drawn = Drawn(0.0, 0.2, apart=1.0, n_pos=100, n_unl=1000)
    first = np.argsort(-drawn.unlabeled, kind="stable")[:30]
    rows = outcomes(drawn, first)
    assert not rows.is_sample(1000)
    precision = drawn.fitted(tested=rows).precision(1000)
    true = drawn.true_unl[first].mean()
    for figure in (precision.value, precision.low, precision.high):
        assert figure[29] == pytest.approx(true)
    assert precision.low[99] < precision.value[99] < precision.high[99]


def test_rows_that_were_not_tested_keep_their_chances_in_a_list():
    drawn = Drawn(0.0, 0.2, n_pos=100, n_unl=1000)
    order = np.argsort(-drawn.unlabeled, kind="stable")
    rows = RankedOutcomes.from_rows(
        order[[2, 5, 6]], np.array([True, False, True]), drawn.unlabeled
    )
    binned = BinnedValues.from_values(drawn.positives, drawn.unlabeled)
    lengths = np.array([2, 3, 6, 10])
    chances = np.full((4, len(binned.unlabeled)), 0.3)
    expected, low, high = rows.bounds(chances, binned, lengths, np.random.default_rng(0))
    by_hand = [2 * 0.3 / 2, (1 + 2 * 0.3) / 3, (1 + 4 * 0.3) / 6, (2 + 7 * 0.3) / 10]
    assert expected == pytest.approx(by_hand)
    assert ((low <= expected) & (expected <= high)).all()


def test_tested_rows_move_the_curve_to_their_outcomes():
    drawn = Drawn(0.0, 0.3, apart=1.5, n_pos=100, n_unl=1000)
    numbers = np.random.default_rng(1).choice(1000, 40, replace=False)
    none, every = (
        drawn.fitted(tested=RankedOutcomes.from_rows(numbers, np.full(40, answer), drawn.unlabeled))
        for answer in (False, True)
    )
    assert none.precision(100).value[-1] < every.precision(100).value[-1]
    assert none.contamination_unl.value < every.contamination_unl.value


def test_rows_that_were_tested_count_by_their_outcomes_and_others_by_their_chance():
    unlabeled = np.linspace(1.0, 0.0, 1000)  # row 0 is the first of the list
    tested = RankedOutcomes.from_rows(np.arange(0, 40, 2), np.full(20, True), unlabeled)
    binned = BinnedValues.from_values(np.linspace(0.5, 1.5, 100), unlabeled)
    chances = np.full((50, len(binned.unlabeled)), 0.25)
    lengths = np.array([10, 40, 1000])
    expected, low, high = tested.bounds(chances, binned, lengths, np.random.default_rng(0))
    assert expected == pytest.approx([(5 + 5 / 4) / 10, (20 + 20 / 4) / 40, (20 + 980 / 4) / 1000])
    assert (low <= expected).all()
    assert (expected <= high).all()


def test_false_positives_are_expected_at_every_depth_of_p():
    mixture = Drawn(0.2, 0.1, apart=3.0, n_pos=100, n_unl=1000).fitted()
    expected = mixture.expected_false(100)
    for numbers in (expected.value, expected.low, expected.high):
        assert len(numbers) == 100
        assert np.isfinite(numbers).all()
    assert (np.diff(expected.value) >= 0).all()
    assert expected.value[-1] == pytest.approx(100 * mixture.contamination_pos.value, rel=0.05)


def test_resamples_that_tested_rows_rule_out_are_not_drawn():
    drawn = Drawn(0.0, 0.3, apart=1.5, n_pos=100, n_unl=1000)
    numbers = np.random.default_rng(1).choice(1000, 40, replace=False)
    tested = RankedOutcomes.from_rows(numbers, np.full(40, True), drawn.unlabeled)
    assert drawn.fitted().resampled.b.min() < 0.5
    assert drawn.fitted(tested=tested).resampled.b.min() > 0.5


def test_probability_never_rises_down_the_list_and_adds_up_to_precision():
    drawn = Drawn(0.0, 0.2, n_pos=100, n_unl=1000)
    for known in ({}, {"b": 0.2}, {"tested": outcomes(drawn, np.arange(150, 250))}):
        mixture = drawn.fitted(**known)
        chances = mixture.probability(np.sort(drawn.unlabeled)[::-1])
        assert (np.diff(chances) <= 1e-12).all()
        assert 0 <= chances.min() <= chances.max() <= 1
        if "tested" not in known:
            means = np.cumsum(chances) / np.arange(1, 1001)
            assert means == pytest.approx(mixture.precision(1000).value)
    assert np.isnan(Drawn(0.1, 0.3, apart=0.7).fitted().probability(np.arange(10.0))).all()


def test_bounds_widen_where_counts_of_known_positives_disagree_with_the_curve():
    # no increasing line: the first 100 rows are negatives, above all positives
    rng = np.random.default_rng(0)
    positives = rng.normal(1.5, 0.5, 100)
    unlabeled = np.concatenate([rng.normal(0, 1, 900), rng.normal(9, 0.05, 100)])
    precision = ClassMixture.fit(positives, unlabeled, a=0.0, b=0.3).precision(1000)
    assert precision.value[99] > 0.3
    assert precision.low[99] < 0.01
    agreeing = Drawn(0.0, 0.3, n_pos=100, n_unl=1000).fitted(a=0.0, b=0.3)
    assert agreeing.precision(100).low[-1] > 0.8


def test_tested_rows_can_raise_an_estimate_that_is_far_too_small():
    # P lies far above U, so its values show no positive of U
    rng = np.random.default_rng(0)
    unlabeled = rng.standard_normal(300)
    first = np.argsort(-unlabeled, kind="stable")[:40]
    half = RankedOutcomes.from_rows(first, np.arange(40) % 2 == 0, unlabeled)
    precision = ClassMixture.fit(rng.standard_normal(60) + 9, unlabeled, tested=half).precision(300)
    assert 0.2 < precision.value[99] < 0.8
    assert precision.high[99] > 0.45
