"""The summary of a ranking on the terminal."""

from __future__ import annotations

import numpy as np
import pytest

import resvm_cli
from resvm_cli.commands.rank import report
from resvm_cli.commands.rank.batch import BatchSummary
from resvm_cli.commands.rank.fdr import FdrEstimate
from resvm_cli.commands.rank.page import batch_text
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


def test_an_empty_list_is_stated_without_a_precision():
    few = Interval(0.1, 0.1, 0.1)
    estimate = FdrEstimate(None, few, True, True, None, fdr=0.2, n_listed=0)
    assert _estimate_rows(estimate)[-1] == ("list", "0 rows")


def test_a_batch_is_described_by_what_was_chosen_and_passed_over():
    assert batch_text(BatchSummary(20, 0, 0, 0, 0, 0)) == "20 rows by rank"
    assert batch_text(BatchSummary(20, 5, 1, 2, 3, 1234)) == (
        "15 rows by rank, 5 on which members disagree, 1 near-duplicate passed over, 2 rows from"
        " chosen groups passed over, 3 rows excluded, 1,234 tested rows left out"
    )


@pytest.mark.parametrize("shown", [1, 3])
def test_reasons_beyond_those_shown_are_counted(shown, capsys, monkeypatch):
    rng = np.random.default_rng(1)
    y = np.repeat([1, 0], [20, 60])
    ranking = resvm_cli.rank(rng.normal(size=(80, 2)) + y[:, None], y, n_models=9, why=3)
    monkeypatch.setattr(report, "MAX_SHOWN", shown)
    report.show_reasons(ranking.reasons)
    told = capsys.readouterr().err
    assert told.count("rank ") == shown
    assert ("and 2 more rows: --why-out FILE writes all of them" in told) == (shown == 1)
