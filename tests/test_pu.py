"""Scores from positive and unlabeled rows alone; which known positives look wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, ks_2samp

from resvm_cli.evaluation import pu
from resvm_cli.evaluation.contamination_correction import Contamination
from resvm_cli.evaluation.metrics import Ranking
from resvm_cli.evaluation.pu import expected_false, n_suspects
from tests.test_metrics import rankings


def test_pu_score_is_recall_squared_over_the_fraction_called_positive():
    assert pu.pu_score(0.8, 0.2) == pytest.approx(3.2)
    assert pu.pu_score([0.5, 0.0], [0.25, 0.0]).tolist() == [1.0, 0.0]


@settings(max_examples=50)
@given(rankings())
def test_the_best_pu_score_is_the_largest_of_all_thresholds(case):
    positive, scores = case
    value, threshold = pu.best_pu_score(positive, scores)
    every = [
        float(pu.pu_score((scores[positive] >= t).mean(), (scores >= t).mean()))
        for t in np.unique(scores)
    ]
    assert value == pytest.approx(max(every))
    recall, fraction = (scores[positive] >= threshold).mean(), (scores >= threshold).mean()
    assert pu.pu_score(recall, fraction) == pytest.approx(value)


@settings(max_examples=50)
@given(rankings())
def test_the_fraction_may_be_of_the_unlabeled_alone(case):
    positive, scores = case
    value, _ = pu.best_pu_score(positive, scores, over_unlabeled=True)
    unlabeled = scores[~positive]

    def called(threshold):
        return max(1, (unlabeled >= threshold).sum()) / len(unlabeled)

    every = [
        float(pu.pu_score((scores[positive] >= t).mean(), called(t))) for t in np.unique(scores)
    ]
    assert value == pytest.approx(max(every))


@given(st.integers(1, 200), st.floats(0, 1))
def test_the_interval_of_recall_is_scipys(total, share):
    found = round(share * total)
    ours = pu.clopper_pearson(found, total)
    theirs = binomtest(found, total).proportion_ci(0.95, "exact")
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def mixed(rng, a, b, n_pos=1000, n_unl=6000, shift=5.0):
    truly = np.concatenate([rng.random(n_pos) >= a, rng.random(n_unl) < b])
    scores = rng.standard_normal(len(truly)) + shift * truly
    return Ranking.of(np.arange(len(truly)) < n_pos, scores)


@pytest.mark.parametrize("a", [0.0, 0.2])
@pytest.mark.parametrize("b", [0.1, 0.3])
def test_the_share_of_positives_in_u_is_estimated_from_the_top_of_the_ranking(a, b):
    ranking = mixed(np.random.default_rng(0), a, b)
    estimate = pu.estimate_contamination_unl(ranking, a, 200, 0)
    assert estimate.value == pytest.approx(b, abs=0.03)
    assert estimate.low < estimate.value < estimate.high
    assert estimate.high - estimate.low < 0.1


def test_the_bin_is_the_one_of_the_published_rule():
    rng = np.random.default_rng(1)
    positive = np.arange(500) < 100
    scores = rng.standard_normal(500) + positive
    best = None
    for cut in np.unique(scores):
        q_p, q_u = (scores[positive] >= cut).mean(), (scores[~positive] >= cut).mean()
        if q_p:
            noise = np.sqrt(np.log(40) / 800) + np.sqrt(np.log(40) / 200)
            bound = q_u / q_p + 1.01 / q_p * noise
            best = min(best or (np.inf, 0), (bound, q_u / q_p))
    assert pu.best_bin(Ranking.of(positive, scores)) == pytest.approx(best[1])


def test_without_replicates_the_estimate_has_no_width():
    one = pu.estimate_contamination_unl(mixed(np.random.default_rng(2), 0, 0.2), 0.0, 0, 0)
    assert one.low == one.value == one.high


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
