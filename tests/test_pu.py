"""Scores from positive and unlabeled rows alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from resvm_cli.evaluation import pu
from resvm_cli.evaluation.ranking import Ranking
from tests.test_ranking import rankings


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
