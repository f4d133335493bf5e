"""What the summary of a training says."""

from __future__ import annotations

import pytest

from resvm_cli.model.decisions import Threshold
from resvm_cli.report.training import _expected
from resvm_cli.training.expected_performance import ExpectedPerformance


@pytest.mark.parametrize(
    ("rule", "value", "shown"),
    [
        ("votes", 0.25, "votes above 0.25"),
        ("votes", 16.29, "decision value above 16.29"),  # 1 + the sum of the members' values
        ("votes", -3.5, "decision value above -3.5"),
        ("mean", 1.5, "mean above 1.5"),
    ],
)
def test_a_threshold_beyond_0_and_1_is_not_one_of_votes(rule, value, shown):
    expected = ExpectedPerformance(rule, Threshold(value), 0, 0, None)
    assert _expected(expected) == [("positive", shown)]
