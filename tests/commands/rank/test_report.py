"""The summary of a ranking on the terminal."""

from __future__ import annotations

from resvm_cli.commands.rank.fdr import FdrEstimate
from resvm_cli.commands.rank.report import _estimate_rows
from resvm_cli.metrics.intervals import Interval


def test_a_list_chosen_by_its_false_discovery_rate_states_its_precision():
    few, certain = Interval(0.12, 0.08, 0.31), Interval(0.25, 0.25, 0.25)
    estimate = FdrEstimate(few, few, True, True, None, fdr=0.2, n_listed=1234, precision=certain)
    assert _estimate_rows(estimate) == [
        ("positives", "12 % (8 to 31) of U, estimated"),
        ("list", "1,234 rows, 25 % of them expected to be positive"),
    ]


def test_a_list_chosen_by_trusted_negatives_says_how_many_there_were():
    estimate = FdrEstimate(None, None, False, False, 5000, fdr=0.05, n_listed=7)
    ((name, text),) = _estimate_rows(estimate)
    assert name == "list"
    start = "7 rows chosen by conformal p-values from 5,000 trusted negatives: at most 5 %"
    assert text.startswith(start)
