"""Metrics of (positive, scores) against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn import metrics as oracle

from resvm_cli.evaluation import metrics
from resvm_cli.evaluation.metrics import Confusion
from resvm_cli.evaluation.ranking import Ranking
from tests.test_ranking import rankings


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


def test_the_plain_functions_are_those_of_a_ranking():
    rng = np.random.default_rng(2)
    positive, scores = rng.random(100) < 0.3, rng.integers(0, 9, 100).astype(float)
    ranking = Ranking.of(positive, scores)
    for name in ("average_precision", "pr_auc_trapezoid", "pr_auc_interpolated", "roc_auc"):
        assert getattr(metrics, name)(positive, scores) == getattr(ranking, name)()
    assert metrics.partial_roc_auc(positive, scores, 0.2) == ranking.partial_roc_auc(0.2)
    value, threshold = metrics.best_f1(positive, scores)
    assert value == pytest.approx(oracle.f1_score(positive, scores >= threshold))


@pytest.mark.parametrize("limit", [0, -0.1, 1.1])
def test_a_partial_area_needs_a_fraction(limit):
    with pytest.raises(ValueError, match="fraction"):
        metrics.partial_roc_auc([True, False], [1.0, 0.0], limit)
