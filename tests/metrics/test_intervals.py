"""Resampled rankings are rankings of resampled rows, and their intervals cover."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from resvm_cli.metrics import intervals
from resvm_cli.metrics.ranking import Confusion, ScoredLabels
from tests.metrics.test_ranking import rankings

AREAS = ScoredLabels.areas
labeled = ScoredLabels.from_scores


def cloud(rng, n_pos, n_neg, shift=1.0, decimals=3):
    positive = np.arange(n_pos + n_neg) < n_pos
    return positive, np.round(rng.standard_normal(len(positive)) + shift * positive, decimals)


@given(
    st.lists(st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=3), min_size=1, max_size=30),
    st.sampled_from([0.0, 0.001, 0.025, 0.05, 0.3, 0.5, 0.975, 1.0]) | st.floats(0, 1),
    st.booleans(),
)
def test_quantiles_have_the_bits_of_numpys(rows, fraction, weibull):
    values = np.array(rows) + 0.0  # equal zeros have one sign
    method = "weibull" if weibull else "linear"
    expected = np.quantile(values, fraction, axis=0, method=method)
    assert intervals.quantile(values, fraction, weibull=weibull).tobytes() == expected.tobytes()


def test_a_quantile_of_values_with_a_nan_is_nan():
    values = np.array([[1.0, 2.0], [np.nan, 3.0], [0.0, 4.0]])
    assert np.array_equal(intervals.quantile(values, 0.5), [np.nan, 3.0], equal_nan=True)


@settings(max_examples=50)
@given(rankings(), st.integers(1, 5))
def test_every_replicate_has_as_many_rows_of_each_class(case, n):
    ranking = labeled(*case)
    drawn = intervals.resampled(ranking, n, np.random.default_rng(0))
    assert drawn.n_positives.tolist() == [ranking.n_positives] * n
    assert drawn.n_negatives.tolist() == [ranking.n_negatives] * n


@pytest.mark.parametrize("repeat", [1, 20])  # few rows a cell, many rows a cell
def test_counts_are_drawn_with_the_right_mean_and_variance(repeat):
    counts = np.array([1, 0, 2, 5]) * repeat
    drawn = intervals.draw_counts(counts, 4000, np.random.default_rng(1))
    share = counts / counts.sum()
    assert drawn.mean(axis=0) == pytest.approx(counts, abs=0.15 * np.sqrt(repeat))
    assert drawn.var(axis=0) == pytest.approx(counts.sum() * share * (1 - share), rel=0.1)


def test_cells_without_rows_draw_nothing():
    drawn = intervals.draw_counts([0, 0, 0], 4, np.random.default_rng(0))
    assert drawn.tolist() == np.zeros((4, 3)).tolist()


def test_the_spread_is_that_of_resampling_rows_one_by_one():
    rng = np.random.default_rng(3)
    positive, scores = cloud(rng, 40, 160, decimals=1)
    ours = intervals.replicate(labeled(positive, scores), AREAS, 2000, seed=0)
    plain = []
    for _ in range(600):
        rows = np.concatenate([rng.integers(0, 40, 40), rng.integers(40, 200, 160)])
        plain.append(
            {k: float(v) for k, v in labeled(positive[rows], scores[rows]).areas().items()}
        )
    for name, values in ours.items():
        one_by_one = np.array([float(row[name]) for row in plain])
        assert values.mean() == pytest.approx(one_by_one.mean(), abs=0.01)
        assert values.std() == pytest.approx(one_by_one.std(), rel=0.12)


def test_the_same_seed_gives_the_same_interval_and_another_another():
    ranking = labeled(*cloud(np.random.default_rng(4), 30, 60))
    first, again, other = (intervals.bootstrap(ranking, AREAS, 200, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert all(one.low <= one.value <= one.high for one in first.values())


def test_bounds_are_replicates_by_their_rank_among_one_more():
    # of 39 replicates the first has the level 1/40 and the last 39/40
    replicates = np.random.default_rng(0).permutation(np.arange(1.0, 40.0))
    found = intervals.percentile_interval(20.0, replicates)
    assert (found.low, found.value, found.high) == pytest.approx((1, 20, 39))
    # where the level lies beyond the outermost replicate, that one is the bound
    assert intervals.percentile_interval(3.0, np.arange(1.0, 6.0)) == intervals.Interval(
        3.0, 1.0, 5.0
    )


def test_merged_blocks_move_neither_place_nor_width(monkeypatch):
    ranking = labeled(*cloud(np.random.default_rng(5), 800, 3000, decimals=9))

    def figures(some):
        top = {f"precision_at_{k}": some.precision_at(k) for k in (10, 100)}
        return some.areas() | top

    exact = intervals.bootstrap(ranking, figures, 1500, 0)
    monkeypatch.setattr(intervals, "MAX_BLOCKS", 200)
    monkeypatch.setattr(intervals, "GRADED_BLOCKS", 200)
    merged = intervals.bootstrap(ranking, figures, 1500, 0)
    assert merged != exact
    for name, one in exact.items():
        assert merged[name].value == one.value
        width = one.high - one.low
        assert merged[name].low == pytest.approx(one.low, abs=0.1 * width)
        assert merged[name].high == pytest.approx(one.high, abs=0.1 * width)


def test_screening_figures_have_intervals_too():
    ranking = labeled(*cloud(np.random.default_rng(6), 50, 950))

    def figures(some):
        return {
            "enrichment": some.enrichment_at(10),
            "recall": some.recall_at(100),
            "partial": some.partial_roc_auc(0.1),
        }

    for one in intervals.bootstrap(ranking, figures, 300, 0).values():
        assert one.low < one.value < one.high


def test_intervals_of_a_threshold_are_those_of_two_binomials():
    found = intervals.confusion_intervals(Confusion(80, 10, 20, 190), 4000, 0)
    assert found["recall"].value == 0.8
    assert found["recall"].low == pytest.approx(0.72, abs=0.01)
    assert found["recall"].high == pytest.approx(0.875, abs=0.011)
    assert found["precision"].low < 80 / 90 < found["precision"].high


@given(st.integers(1, 200), st.floats(0, 1))
def test_the_interval_of_recall_is_scipys(total, share):
    found = round(share * total)
    ours = intervals.clopper_pearson(found, total)
    theirs = binomtest(found, total).proportion_ci(0.95, "exact")
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
