"""Curves: every threshold, thinned faithfully, with bands around them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn import metrics as oracle

from resvm_cli.metrics import curves
from resvm_cli.metrics.contamination_correction import Contamination
from resvm_cli.metrics.curves import Curve, Histogram, Points, curve_band
from resvm_cli.metrics.ranking import ScoredLabels
from tests.metrics.test_ranking import rankings


@settings(max_examples=50)
@given(rankings())
def test_points_are_scikit_learns_curves(case):
    positive, scores = case
    points = Points.from_scores(positive, scores)
    precision, recall, thresholds = oracle.precision_recall_curve(positive, scores)
    assert points.thresholds[::-1].tolist() == thresholds.tolist()
    assert points.precision[::-1] == pytest.approx(precision[:-1])
    assert points.recall[::-1] == pytest.approx(recall[:-1])
    fpr, _, _ = oracle.roc_curve(positive, scores, drop_intermediate=False)
    assert points.fpr == pytest.approx(fpr[1:])


def test_thinning_keeps_the_ends_and_the_shape():
    rng = np.random.default_rng(0)
    positive = rng.random(50_000) < 0.05
    points = Points.from_scores(positive, rng.standard_normal(50_000) + positive)
    few = points.thinned(500)
    assert 300 < len(few.thresholds) <= 502
    assert (few.thresholds[0], few.thresholds[-1]) == (points.thresholds[0], points.thresholds[-1])
    assert np.isin(few.thresholds, points.thresholds).all()
    back = np.interp(points.recall, few.recall, few.precision)
    assert np.abs(back - points.precision)[points.recall > 0.1].max() < 0.02


def cloud(n_pos=200, n_neg=800):
    rng = np.random.default_rng(1)
    positive = np.arange(n_pos + n_neg) < n_pos
    return ScoredLabels.from_scores(positive, rng.standard_normal(len(positive)) + 1.5 * positive)


def test_a_band_holds_its_curve_and_narrows_with_more_rows():
    widths = []
    for size in (100, 1600):
        ranking = cloud(size, 4 * size)
        band = curve_band(ranking, [None], 200, 0)
        found = Curve.from_scored(ranking)
        across = np.interp(band.grid, found.fpr, found.recall)
        inside = (band.tpr_low - 1e-9 <= across) & (across <= band.tpr_high + 1e-9)
        assert inside[1:].mean() > 0.95
        assert (band.precision_low <= band.precision_high).all()
        assert band.precision_low[0] > 0  # at the first positive, not at the rows before it
        widths.append((band.tpr_high - band.tpr_low).mean())
    assert widths[1] < 0.4 * widths[0]


def test_without_replicates_a_band_spans_the_cases():
    cases = [Contamination(0.0, b) for b in (0.1, 0.3)]
    band = curve_band(cloud(), cases, 0, 0)
    one = curve_band(cloud(), cases[:1], 0, 0)
    assert (one.precision_low == one.precision_high).all()
    assert (band.precision_low <= one.precision_low).all()
    assert (band.precision_high - band.precision_low).max() > 0.1


def test_a_histogram_counts_every_row_also_beyond_its_ends():
    rng = np.random.default_rng(2)
    scores = np.concatenate([rng.standard_normal(500), [np.inf, -np.inf, 1e9]])
    positive = np.arange(503) % 3 == 0
    found = Histogram.from_scores(positive, scores)
    assert found.positive.sum() == positive.sum()
    assert found.other.sum() == (~positive).sum()
    assert (np.diff(found.edges) > 0).all()


def test_votes_get_room_beside_sums():
    scores = np.concatenate([np.linspace(0, 1, 50), np.linspace(-80, -20, 300), [40.0] * 9])
    found = Histogram.from_scores(np.arange(359) < 50, scores)
    assert len(found.edges) == curves.HISTOGRAM_BINS + 1
    assert ((found.edges >= 0) & (found.edges <= 1)).sum() == curves.HISTOGRAM_BINS // 2 + 1
    below, above = found.edges[found.edges <= 0], found.edges[found.edges >= 1]
    for edges, end in ((below, np.quantile(scores, 0.005)), (above, 40.0)):
        assert end in (pytest.approx(edges[0]), pytest.approx(edges[-1]))
        np.testing.assert_allclose(np.diff(edges), np.diff(edges)[0])


@pytest.mark.parametrize("start", [-80.0, 2.0])
def test_sums_without_votes_have_bins_of_one_width(start):
    found = Histogram.from_scores(np.arange(300) < 50, np.linspace(start, start + 60, 300))
    np.testing.assert_allclose(np.diff(found.edges), np.diff(found.edges)[0])


@pytest.mark.parametrize("scores", [np.zeros(4), np.full(4, np.inf)])
def test_a_histogram_of_equal_scores_has_a_width(scores):
    found = Histogram.from_scores(np.array([True, False, False, False]), scores)
    assert found.edges[-1] > found.edges[0]
    assert (found.positive.sum(), found.other.sum()) == (1, 3)


def test_values_beyond_a_histogram_count_in_its_outermost_bins():
    scores = np.concatenate([np.linspace(5, 6, 1000), [-100.0, 100.0]])
    found = Histogram.from_scores(np.arange(1002) < 500, scores)
    inside = np.histogram(scores, found.edges)[0]
    beyond = (found.positive + found.other) - inside
    assert beyond[0] == (scores < found.edges[0]).sum() > 0
    assert beyond[-1] == (scores > found.edges[-1]).sum() > 0
    assert not beyond[1:-1].any()
