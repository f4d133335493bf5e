"""Corrections for contamination: identities, bounds, and coverage by simulation."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from resvm_cli.metrics import evaluation as correction
from resvm_cli.metrics import intervals
from resvm_cli.metrics.evaluation import Contamination
from resvm_cli.metrics.ranking import Confusion, ScoredLabels
from tests.metrics.test_ranking import rankings

SHIFT = 1.5


@settings(max_examples=50)
@given(rankings())
def test_with_a_copy_of_p_in_u_the_areas_are_those_of_p_against_the_rest(case):
    positive, scores = case
    plain = ScoredLabels.from_scores(positive, scores)
    known = np.concatenate([np.ones(positive.sum(), bool), np.zeros(len(scores), bool)])
    mixed = ScoredLabels.from_scores(known, np.concatenate([scores[positive], scores]))
    case = Contamination(0.0, float(positive.mean()))
    assert correction.roc_auc(mixed, case) == pytest.approx(plain.roc_auc(), abs=1e-12)
    expected = plain.average_precision()
    assert correction.average_precision(mixed, case) == pytest.approx(expected, abs=1e-12)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.45), st.floats(0, 0.45))
def test_mixing_and_correcting_gives_the_rates_back(tpr, fpr, a, b):
    recall = (1 - a) * tpr + a * fpr
    fraction = b * tpr + (1 - b) * fpr
    found = Contamination(a, b).rates(recall, fraction)
    assert found == pytest.approx((tpr, fpr), abs=1e-12)


def test_with_clean_positives_the_tables_are_those_of_claesen_and_others():
    # their contingency table among U: b |U| positives, recalled as known positives are
    known = Contamination(0.0, 0.2)
    figures = correction.at_threshold(0.6, 0.25, known)
    n_unl, tp = 1000, 0.6 * 0.2 * 1000
    assert figures["recall"] == pytest.approx(0.6)
    assert figures["precision"] == pytest.approx(tp / 250)
    assert figures["fpr"] == pytest.approx((250 - tp) / (0.8 * n_unl))


def exact_mixture(a, b, size=4000):
    """P and U without noise: quantiles of the mixtures of two normal distributions."""
    grid = np.linspace(-6, 8, 200_001)

    def quantiles(share):
        cdf = share * norm.cdf(grid - SHIFT) + (1 - share) * norm.cdf(grid)
        return np.interp((np.arange(size) + 0.5) / size, cdf, grid)

    scores = np.concatenate([quantiles(1 - a), quantiles(b)])
    return ScoredLabels.from_scores(np.arange(2 * size) < size, scores)


def true_areas(prevalence):
    def height(t):
        hit, false = prevalence * norm.sf(t - SHIFT), (1 - prevalence) * norm.sf(t)
        return hit / (hit + false) * norm.pdf(t - SHIFT)

    return norm.cdf(SHIFT / np.sqrt(2)), quad(height, -10, 12, limit=400)[0]


@pytest.mark.parametrize("a", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("b", [0.05, 0.2])
def test_from_noiseless_mixtures_the_true_areas_come_back(a, b):
    known = Contamination(a, b)
    ranking = exact_mixture(a, b)
    roc, precision = true_areas(b)
    assert correction.roc_auc(ranking, known) == pytest.approx(roc, abs=1e-3)
    assert correction.average_precision(ranking, known) == pytest.approx(precision, abs=6e-3)


@settings(max_examples=50)
@given(rankings(), st.floats(0, 0.45), st.floats(0.01, 0.45))
def test_what_comes_out_is_possible(case, a, b):
    ranking, known = ScoredLabels.from_scores(*case), Contamination(a, b)
    assert 0 <= correction.roc_auc(ranking, known) <= 1
    assert 0 <= correction.average_precision(ranking, known) <= 1


def test_a_threshold_has_intervals_too():
    table, known = Confusion(160, 300, 40, 700), Contamination(0.0, 0.1)
    found = correction.corrected_at_threshold(table, known, 500, 0)
    assert found["corrected_recall"].value == pytest.approx(0.8)
    assert found["corrected_recall"].low == pytest.approx(0.745, abs=0.015)
    precision = found["corrected_precision"]
    assert precision.value == pytest.approx(0.1 * 0.8 / 0.3)
    assert precision.low < precision.value < precision.high


def coverage(a, b, n_runs, n_pos=300, n_unl=3000, n_replicates=400):
    """How often the 95% intervals hold the true areas, P and U drawn from mixtures."""
    rng = np.random.default_rng(20)
    positive = np.arange(n_pos + n_unl) < n_pos
    truth = dict(zip(("roc_auc", "average_precision"), true_areas(b), strict=True))
    held = dict.fromkeys(truth, 0)
    for run in range(n_runs):
        truly = np.concatenate([rng.random(n_pos) >= a, rng.random(n_unl) < b])
        ranking = ScoredLabels.from_scores(
            positive, rng.standard_normal(len(truly)) + SHIFT * truly
        )
        statistics = partial(correction.areas, known=Contamination(a, b))
        found = intervals.bootstrap(ranking, statistics, n_replicates, run)
        for name, value in truth.items():
            interval = found[f"corrected_{name}"]
            held[name] += interval.low <= value <= interval.high
    return {name: count / n_runs for name, count in held.items()}


@pytest.mark.parametrize("a", [0.0, 0.1])
def test_intervals_hold_the_truth_about_as_often_as_they_say(a):
    for held in coverage(a, 0.2, 60, 150, 1000, 200).values():
        assert held >= 0.85  # 60 runs: three standard errors below 0.95


@pytest.mark.slow
@pytest.mark.parametrize("a", [0.0, 0.1])
def test_over_2000_simulations_intervals_hold_the_truth_in_94_to_96_of_100(a):
    for name, held in coverage(a, 0.2, 2000).items():
        assert 0.94 <= held <= 0.96, name
