"""Scores from positive and unlabeled rows alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from resvm_cli.metrics import pu
from tests.metrics.test_ranking import rankings


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
