"""Curves: every threshold, thinned faithfully, with bands around them, and their plots."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib.image import imread
from sklearn import metrics as oracle

from resvm_cli.metrics import curves
from resvm_cli.metrics.curves import Histogram, Points, curve_band
from resvm_cli.metrics.evaluation import Evaluation, labeled_figures, unlabeled_figures
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
        grid, precisions, tprs = curve_band(ranking, 200, 0)
        fpr, recall = ranking.fp / ranking.n_negatives, ranking.tp / ranking.n_positives
        across = np.interp(grid, fpr, recall)
        inside = (tprs[0] - 1e-9 <= across) & (across <= tprs[1] + 1e-9)
        assert inside[1:].mean() > 0.95
        assert (precisions[0] <= precisions[1]).all()
        assert precisions[0, 0] > 0  # at the first positive, not at the rows before it
        widths.append((tprs[1] - tprs[0]).mean())
    assert widths[1] < 0.4 * widths[0]


def test_a_histogram_counts_every_row_also_beyond_its_ends():
    rng = np.random.default_rng(2)
    scores = np.concatenate([rng.standard_normal(500), [np.inf, -np.inf, 1e9]])
    positive = np.arange(503) % 3 == 0
    found = Histogram.from_scores(positive, scores)
    assert found.positive.sum() == positive.sum()
    assert found.other.sum() == (~positive).sum()
    assert (np.diff(found.edges) > 0).all()


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


@pytest.fixture(scope="module")
def files():
    """Evaluations of files, as plots show them."""
    rng = np.random.default_rng(0)
    positive = rng.random(300) < 0.3
    scores = [rng.standard_normal(300) + positive for _ in range(2)]

    def evaluated(*names, pu=False):
        figures_of = unlabeled_figures if pu else labeled_figures
        return [
            Evaluation(name, *scored, "-T", figures_of(*scored))
            for name, scored in (
                (name, (positive, values, 0.5)) for name, values in zip(names, scores, strict=False)
            )
        ]

    return evaluated


def plot(files, kind="svg", n_replicates=0, *, pu=False):
    return curves.plot_curves(files, kind, n_replicates, 0, pu=pu)


def words(svg: bytes) -> str:
    return " ".join(text.strip() for text in ElementTree.fromstring(svg).itertext() if text.strip())


@pytest.mark.parametrize(
    ("kind", "first"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
)
def test_every_format_is_what_its_name_says_and_has_the_same_bytes_again(kind, first, files):
    drawn = plot(files("a$b"), kind)
    assert drawn.startswith(first)
    assert drawn == plot(files("a$b"), kind)


def test_the_legend_tells_the_areas_and_the_chance_lines_are_there(files):
    both = files("a$b", "c")
    text = words(plot(both, n_replicates=30))
    for file in both:
        assert f"average precision {file.figures['average_precision']:.3f}" in text
        assert f"area {file.figures['roc_auc']:.3f}" in text
    assert "chance 0.5" in text
    assert f"chance {both[0].positive.mean():.3g}" in text
    assert "shaded: pointwise 95%" in text
    assert "shaded" not in words(plot(both))


def test_positive_and_unlabeled_rows_are_drawn_as_what_they_are(files):
    text = words(plot(files("a", pu=True), pu=True))
    assert "known positives among predicted positives" in text
    assert "average precision" not in text


@pytest.mark.parametrize("pu", [False, True])
def test_the_dot_is_at_the_threshold(pu, files, monkeypatch):
    drawn = []
    monkeypatch.setattr(curves, "save_figure", lambda figure, *_, **more: drawn.append(figure))
    (file,) = files("a", pu=pu)
    plot([file], pu=pu)
    dots = [axes.get_lines()[1].get_xydata()[0] for axes in drawn[0].axes]
    called = file.scores > 0.5
    recall, precision = called[file.positive].mean(), file.positive[called].mean()
    expected = [[recall, precision], [called[~file.positive].mean(), recall]]
    np.testing.assert_allclose(dots, expected)


def test_the_plot_does_not_cut_its_titles(files):
    pixels = imread(BytesIO(plot(files("a", pu=True), "png", pu=True)))[..., :3]
    for edge in (pixels[:8], pixels[-8:], pixels[:, :8], pixels[:, -8:]):
        assert (edge == 1).all()


def test_the_pr_curve_is_on_the_left_and_the_roc_curve_on_the_right(files, monkeypatch):
    drawn = []
    monkeypatch.setattr(curves, "save_figure", lambda figure, *_, **more: drawn.append(figure))
    (file,) = files("a")
    plot([file])
    left, right = (axes.get_lines()[0].get_xydata() for axes in drawn[0].axes)
    best = file.positive[np.argsort(-file.scores)]
    recall = np.cumsum(best) / best.sum()
    precision = np.cumsum(best) / np.arange(1, len(best) + 1)
    np.testing.assert_allclose(left[-1], [recall[-1], precision[-1]])
    np.testing.assert_allclose(right[-1], [1, 1])
    assert np.all(np.diff(right[:, 1]) >= 0)
    assert left[:, 1].min() == pytest.approx(precision[recall > 0].min(), abs=0.05)
