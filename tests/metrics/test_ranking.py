"""Metrics against scikit-learn's and published formulas; what merging and reweighting keep."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as oracle

from resvm_cli.errors import DataError
from resvm_cli.metrics.ranking import (
    Confusion,
    ScoredLabels,
    best_pu_score,
    depth_of,
    pu_score,
)


@st.composite
def rankings(draw):
    """Labels with both classes and scores with few or many ties."""
    size = draw(st.integers(2, 60))
    values = draw(
        st.sampled_from([st.integers(0, 3), st.integers(-50, 50), st.floats(-1e300, 1e300)])
    )
    scores = np.array(draw(st.lists(values, min_size=size, max_size=size)), float)
    positive = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    positive[draw(st.integers(0, size - 1))] = True
    if positive.all():
        positive[draw(st.integers(0, size - 1))] = False
    if not positive.any():
        positive[0] = True
    return positive, scores


def trapezoid(positive, scores):
    precision, recall, _ = oracle.precision_recall_curve(positive, scores)
    return oracle.auc(recall, precision)


def agree(positive, scores, **tolerance):
    ranking = ScoredLabels.from_scores(positive, scores)
    close = {"rel": 1e-12, "abs": 1e-12, **tolerance}
    assert ranking.average_precision() == pytest.approx(
        oracle.average_precision_score(positive, scores), **close
    )
    assert ranking.roc_auc() == pytest.approx(oracle.roc_auc_score(positive, scores), **close)
    # why the trapezoidal area does not come first
    assert ranking.pr_auc_trapezoid() == pytest.approx(trapezoid(positive, scores), **close)


def partial_oracle(positive, scores, limit):
    fpr, tpr, _ = oracle.roc_curve(positive, scores, drop_intermediate=False)
    inside = fpr < limit
    x = np.append(fpr[inside], limit)
    y = np.append(tpr[inside], np.interp(limit, fpr, tpr))
    return float((np.diff(x) * (y[1:] + y[:-1])).sum() / (2 * limit))


@settings(max_examples=50)
@given(rankings())
def test_areas_are_scikit_learns(case):
    agree(*case)


@settings(max_examples=50)
@given(rankings(), st.floats(0.001, 1))
def test_the_partial_area_is_that_of_scikit_learns_curve(case, limit):
    positive, scores = case
    fpr, _, _ = oracle.roc_curve(positive, scores, drop_intermediate=False)
    if np.isin(limit, fpr):  # a step of the curve: the oracle's interpolation is ambiguous there
        limit = limit * 0.999
    ours = ScoredLabels.from_scores(positive, scores).partial_roc_auc(limit)
    assert ours == pytest.approx(partial_oracle(positive, scores, limit), abs=1e-9)


def test_the_partial_area_up_to_1_is_the_whole():
    rng = np.random.default_rng(1)
    ranking = ScoredLabels.from_scores(rng.random(500) < 0.2, rng.integers(0, 40, 500))
    assert ranking.partial_roc_auc(1.0) == pytest.approx(ranking.roc_auc(), rel=1e-13)


@pytest.mark.thorough
def test_a_million_rows_agree():
    rng = np.random.default_rng(0)
    positive = rng.random(1_000_000) < 0.03
    scores = rng.standard_normal(1_000_000) + positive
    agree(positive, scores)
    agree(positive, np.round(scores, 2))


@pytest.mark.parametrize("share", [1, 50, 99])
def test_all_ties_agree_and_one_positive_too(share):
    positive = np.arange(100) < share
    agree(positive, np.zeros(100))
    agree(positive[::-1], np.arange(100.0))
    agree(positive, -np.arange(100.0))
    ranking = ScoredLabels.from_scores(positive, np.zeros(100))
    assert ranking.average_precision() == pytest.approx(share / 100)
    # why the trapezoidal area does not come first
    assert ranking.pr_auc_trapezoid() == pytest.approx((1 + share / 100) / 2)


def test_infinities_count_by_rank():
    rng = np.random.default_rng(3)
    scores = rng.standard_normal(200)
    scores[:20], scores[20:40] = np.inf, -np.inf
    positive = rng.random(200) < 0.4
    ranks = np.unique(scores, return_inverse=True)[1]
    for name in ("average_precision", "roc_auc", "pr_auc_trapezoid"):
        by_rank = getattr(ScoredLabels.from_scores(positive, ranks), name)()
        assert getattr(ScoredLabels.from_scores(positive, scores), name)() == by_rank
    agree(positive, ranks)


def test_both_zeros_are_one_score():
    agree(np.array([True, False, True, False]), np.array([0.0, -0.0, -0.0, 0.0]))


@settings(max_examples=50)
@given(rankings(), st.integers(1, 10))
def test_merging_keeps_the_counts_and_what_precedes_the_first_positive(case, n_blocks):
    ranking = ScoredLabels.from_scores(*case)
    merged = ranking.merged(n_blocks)
    assert len(merged.thresholds) <= n_blocks
    assert merged.n_positives == ranking.n_positives
    assert merged.n_negatives == ranking.n_negatives
    assert merged.above[0] == ranking.above[0]
    assert merged.thresholds[-1] == ranking.thresholds[-1]
    kept = np.isin(ranking.thresholds, merged.thresholds)
    assert np.array_equal(ranking.tp[kept], merged.tp)
    assert np.array_equal(ranking.fp[kept], merged.fp)


@settings(max_examples=50)
@given(rankings(), st.integers(1, 10))
def test_grading_keeps_the_counts_too(case, n_blocks):
    ranking = ScoredLabels.from_scores(*case)
    graded = ranking.graded(n_blocks)
    assert len(graded.thresholds) <= n_blocks
    assert graded.above[0] == ranking.above[0]
    kept = np.isin(ranking.thresholds, graded.thresholds)
    assert np.array_equal(ranking.tp[kept], graded.tp)
    assert np.array_equal(ranking.fp[kept], graded.fp)
    assert graded.n_negatives == ranking.n_negatives


def test_graded_blocks_are_single_at_the_top_and_small_for_either_class():
    rng = np.random.default_rng(5)
    positive = rng.random(200_000) < 0.1
    ranking = ScoredLabels.from_scores(positive, rng.standard_normal(200_000) + 2 * positive)
    graded = ranking.graded(1000)
    assert 800 < len(graded.thresholds) <= 1000
    assert graded.positives[:20].tolist() == [1.0] * 20
    assert graded.positives.max() < 0.004 * ranking.n_positives
    assert graded.tied.max() < 0.004 * ranking.n_negatives
    for name in ("average_precision", "roc_auc"):
        assert getattr(graded, name)() == pytest.approx(getattr(ranking, name)(), abs=1e-3)


def test_many_blocks_merged_change_areas_little():
    rng = np.random.default_rng(5)
    positive = rng.random(20_000) < 0.3
    ranking = ScoredLabels.from_scores(positive, rng.standard_normal(20_000) + positive)
    merged = ranking.merged(1000)
    assert len(merged.thresholds) == 1000
    assert merged.average_precision() == pytest.approx(ranking.average_precision(), abs=1e-3)


def test_no_positives_nan_and_unequal_lengths_are_refused():
    with pytest.raises(DataError, match="no row is positive"):
        ScoredLabels.from_scores(np.zeros(3, bool), np.arange(3.0))
    for place in (0, 1):
        scores = np.array([1.0, 2.0])
        scores[place] = np.nan
        with pytest.raises(DataError, match="nan"):
            ScoredLabels.from_scores([True, False], scores)
    with pytest.raises(ValueError, match="labels"):
        ScoredLabels.from_scores([True], [1.0, 2.0])


def test_without_negatives_precision_is_1_and_the_roc_area_unknown():
    ranking = ScoredLabels.from_scores([True, True], [1.0, 2.0])
    assert ranking.average_precision() == 1
    assert np.isnan(ranking.roc_auc())


@settings(max_examples=50)
@given(rankings())
def test_the_table_at_a_threshold_and_what_follows_are_scikit_learns(case):
    positive, scores = case
    threshold = float(np.median(scores))
    table = Confusion.at(positive, scores, threshold)
    called = scores > threshold
    expected = oracle.confusion_matrix(positive, called, labels=[True, False])
    assert [[table.tp, table.fn], [table.fp, table.tn]] == expected.tolist()
    given_zero = {"zero_division": 0}
    assert table.precision == oracle.precision_score(positive, called, **given_zero)
    assert table.recall == oracle.recall_score(positive, called, **given_zero)
    assert table.f1 == pytest.approx(oracle.f1_score(positive, called, **given_zero), rel=1e-12)
    assert table.mcc == pytest.approx(oracle.matthews_corrcoef(positive, called), abs=1e-12)


def test_counts_of_many_millions_do_not_overflow():
    assert Confusion(10**9, 10**9, 10**9, 10**9 + 4).mcc == pytest.approx(1e-9, rel=1e-3)


@pytest.mark.parametrize("limit", [0, -0.1, 1.1])
def test_a_partial_area_needs_a_fraction(limit):
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        ScoredLabels.from_scores([True, False], [1.0, 0.0]).partial_roc_auc(limit)


def orders(positive, scores):
    """Every order of the rows that sorts the scores, as lists of labels."""
    found = [
        [positive[number] for number in order]
        for order in permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]
    return np.array(found, float)


@st.composite
def small(draw):
    size = draw(st.integers(2, 6))
    scores = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    positive = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    positive[0], positive[-1] = True, False
    return np.array(positive), np.array(scores, float)


@settings(max_examples=50)
@given(small())
def test_figures_at_k_are_means_over_all_orders_of_ties(case):
    ranking, every = ScoredLabels.from_scores(*case), orders(*case)
    n_rows, n_pos = every.shape[1], every[0].sum()
    for depth in range(1, n_rows + 1):
        found = every[:, :depth].sum(axis=1).mean()
        assert ranking.recovered_at(depth) == pytest.approx(found)
        assert ranking.precision_at(depth) == pytest.approx(found / depth)
        assert ranking.recall_at(depth) == pytest.approx(found / n_pos)
        random = depth * n_pos / n_rows
        assert ranking.enrichment_at(depth) == pytest.approx(found / random)


@settings(max_examples=50)
@given(rankings())
def test_everything_is_recovered_at_the_end_and_enrichment_is_then_1(case):
    ranking = ScoredLabels.from_scores(*case)
    n_rows = len(case[0])
    assert ranking.recall_at(n_rows) == pytest.approx(1)
    assert ranking.enrichment_at(n_rows) == pytest.approx(1)


def published_bedroc(order, alpha):
    """RIE and BEDROC as printed by Truchon and Bayly (2007), equations 18 and 36."""
    n_rows, n_pos = len(order), int(sum(order))
    ratio = n_pos / n_rows
    total = sum(np.exp(-alpha * (rank + 1) / n_rows) for rank in np.flatnonzero(order))
    random = (1 - np.exp(-alpha)) / (np.exp(alpha / n_rows) - 1) * ratio
    rie = total / random
    factor = ratio * np.sinh(alpha / 2) / (np.cosh(alpha / 2) - np.cosh(alpha / 2 - alpha * ratio))
    return rie * factor + 1 / (1 - np.exp(alpha * (1 - ratio)))


@settings(max_examples=50)
@given(small(), st.sampled_from((0.5, 20.0, 80.5)))
def test_bedroc_is_the_published_formula_averaged_over_orders(case, alpha):
    expected = np.mean([published_bedroc(order, alpha) for order in orders(*case)])
    assert ScoredLabels.from_scores(*case).bedroc(alpha) == pytest.approx(expected, abs=1e-9)


def test_bedroc_on_many_rows_is_the_published_formula():
    rng = np.random.default_rng(0)
    positive = rng.random(3000) < 0.02
    scores = rng.permutation(3000) + 900.0 * positive
    expected = published_bedroc(positive[np.argsort(-scores, kind="stable")], 20.0)
    assert len(np.unique(scores)) < 3000  # a few ties, of which the order matters little
    assert ScoredLabels.from_scores(positive, scores).bedroc(20.0) == pytest.approx(
        expected, rel=1e-3
    )


def test_the_best_and_worst_rankings_have_bedroc_1_and_0():
    positive = np.arange(100) < 5
    assert ScoredLabels.from_scores(positive, -np.arange(100.0)).bedroc(20.0) == pytest.approx(1)
    assert ScoredLabels.from_scores(positive, np.arange(100.0)).bedroc(20.0) == pytest.approx(0)


@pytest.mark.parametrize(
    ("fraction", "n_rows", "depth"), [(0.07, 100, 7), (0.01, 50, 1), (0.005, 1001, 6), (1.0, 3, 3)]
)
def test_a_fraction_takes_whole_rows(fraction, n_rows, depth):
    assert depth_of(fraction, n_rows) == depth


def test_pu_score_is_recall_squared_over_the_fraction_predicted_positive():
    assert pu_score(0.8, 0.2) == pytest.approx(3.2)
    assert pu_score([0.5, 0.0], [0.25, 0.0]).tolist() == [1.0, 0.0]


@settings(max_examples=50)
@given(rankings())
def test_the_best_pu_score_is_the_largest_of_all_thresholds(case):
    positive, scores = case
    value, threshold = best_pu_score(positive, scores)
    every = [
        float(pu_score((scores[positive] >= t).mean(), (scores >= t).mean()))
        for t in np.unique(scores)
    ]
    assert value == pytest.approx(max(every))
    recall, fraction = (scores[positive] >= threshold).mean(), (scores >= threshold).mean()
    assert pu_score(recall, fraction) == pytest.approx(value)
