"""The report of rank: the summary on the terminal, and what the data of the page say."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import resvm_cli
from resvm_cli.commands.rank import report
from resvm_cli.commands.rank.batch import BatchSummary
from resvm_cli.commands.rank.fdr import FdrEstimate, WhatIf
from resvm_cli.commands.rank.listing import Listing, Recovery
from resvm_cli.commands.rank.rank import RankRequest, RankResult
from resvm_cli.commands.rank.report import _estimate_rows, batch_text, render_page
from resvm_cli.metrics.curves import Histogram
from resvm_cli.metrics.intervals import Interval
from resvm_cli.model.importance import FeatureImportance
from resvm_cli.model.model_plan import ModelPlan
from resvm_cli.model.setting_plan import resolve_defaults
from resvm_cli.parameters import MethodParameters
from resvm_cli.training.input import TrainingInput


def listing(values, known):
    size = len(values)
    return Listing(
        [f"</script><b>&{number}\udcff" for number in range(size)],
        np.full(size, known),
        np.array(values),
        np.array(values) / 2,
        np.where(np.isnan(values), 0, 7),
        *[np.arange(1, size + 1)] * 3,
        np.arange(size),
    )


@pytest.fixture
def result():
    unlabeled = [1.123456789, 0.5, 0.25, np.nan]
    known = listing([0.1, 0.6, 0.9], True)
    both = np.array([*unlabeled[:3], *known.values])
    return RankResult(
        RankRequest(),
        ModelPlan.from_plan(resolve_defaults(MethodParameters(), 3, 4, 2, lambda: 1.0)),
        listing(unlabeled, False),
        n_listed=4,
        n_unscored=1,
        n_suspects=1,
        resamples=40,
        recovery=Recovery(np.array([1, 1, 3]), np.zeros(3, int)),
        fdr_estimate=None,
        known=known,
        histogram=Histogram.from_scores(np.repeat([False, True], 3), both),
        notes=("a <note>",),
    )


def content(page):
    text = re.search(rb'id="data">(.*?)</script>', page, re.S)
    assert text is not None
    return json.loads(text.group(1))


def test_columns_hold_the_list_with_nothing_for_nan(result):
    data = content(render_page(result))
    assert data["list"]["value"] == [1.12346, 0.5, 0.25, None]
    assert data["list"]["members"] == [7, 7, 7, 0]
    assert data["list"]["kind"] is None
    assert data["known"]["kind"] == [2, 1, 1]
    assert data["recovery"]["rank"] == [2, 2, 4]
    assert data["notes"] == ["a <note>"]


def test_names_cannot_end_the_script_and_need_not_be_utf8(result):
    page = render_page(result)
    assert page.count(b"</script>") == 2
    assert content(page)["list"]["id"][0] == "</script><b>&0\\xff"


def test_a_long_list_is_cut_and_says_so(result, monkeypatch):
    monkeypatch.setattr(report, "MAX_PAGE_ROWS", 2)
    data = content(render_page(result))
    assert len(data["list"]["id"]) == 2
    assert any("first 2 rows" in told for told in data["made"])


@pytest.mark.parametrize(
    ("source", "heading"),
    [
        (TrainingInput(), "Ranking"),
        (TrainingInput("hits.svm", "library.svm"), "Ranking of library.svm"),
        (TrainingInput(data="genome.svm", positive_ids="known.txt"), "Ranking of genome.svm"),
    ],
)
def test_the_page_names_its_data_and_the_command(result, source, heading):
    page = render_page(
        replace(result, request=RankRequest(source=source)), "resvm rank -P 'my hits.svm'"
    )
    data = content(page)
    assert data["heading"] == heading
    assert data["summary"][0] == ["data", "3 positive, 4 unlabeled rows"]
    assert data["command"] == "resvm rank -P 'my hits.svm'"
    assert f"<title>resvm rank: {heading}</title>".encode() in page


def test_an_audit_is_of_the_known_positives(result):
    request = RankRequest(source=TrainingInput("hits.svm", "library.svm"), audit=True)
    data = content(render_page(replace(result, request=request)))
    assert data["heading"] == "Known positives of hits.svm, most suspicious first"


def test_a_page_without_a_claim_says_what_can_be_said(result):
    unknown = Interval(float("nan"), 0.0, 0.444)
    cases = (WhatIf(0.05, 10, 4.2), WhatIf(0.1, 10, 7.6))
    why = "P and U overlap too much"
    estimate = FdrEstimate(unknown, unknown, False, False, None, cases=cases, why_unknown=why)
    data = content(render_page(replace(result, n_suspects=None, fdr_estimate=estimate)))
    told = dict(data["summary"])
    assert told["positives"] == "unknown, but at most 45 % of U: P and U overlap too much"
    assert told["expected"] == "if 5 % of U is positive, 4 of the first 10; if 10 %, 8"
    made = " ".join(data["made"])
    assert "Suspects among the known positives are ranked, but not counted" in made


def test_a_page_of_bagging_says_why_known_positives_have_no_values(result):
    data = content(render_page(replace(result, recovery=None, n_suspects=None, known=None)))
    assert any("Bagging has all of P in every bag" in told for told in data["made"])
    assert data["recovery"] is None
    assert "recall" not in dict(data["summary"])


def test_a_page_without_resamples_mentions_no_intervals(result):
    assert any("intervals of ranks" in told for told in content(render_page(result))["made"])
    data = content(render_page(replace(result, resamples=0)))
    assert not any("intervals of ranks" in told for told in data["made"])


def test_a_list_with_a_false_discovery_rate_has_its_length_on_the_page(result):
    estimate = FdrEstimate(None, None, False, False, 50, fdr=0.05, n_listed=7)
    told = dict(content(render_page(replace(result, fdr_estimate=estimate)))["summary"])
    assert told["list"].startswith("7 rows chosen by conformal p-values from 50 trusted negatives")
    assert "positives" not in told


def test_the_page_has_the_summary_of_the_terminal(result, capsys):
    report.show_ranking(result)
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().err.splitlines()]
    assert content(render_page(result))["summary"] == lines
    assert [name for name, _ in lines] == ["data", "ensemble", "ranked", "recall", "suspects"]


def test_correlated_features_are_on_one_line_of_importance(result):
    first = [FeatureImportance(n, f"gene {n}", 0.12345, 0.01, 1) for n in range(10)]
    found = (*first, FeatureImportance(11, "size", 0.02, 0.03, 2))
    lines = content(render_page(replace(result, importance=found)))["importance"]
    assert [line[1:] for line in lines] == [[0.123, 0.01], [0.02, 0.03]]
    assert lines[0][0].startswith("gene 0, gene 1, ")
    assert lines[0][0].endswith("gene 7 and 2 more")
    assert content(render_page(result))["importance"] == []


def test_the_page_has_the_first_twenty_groups_of_features(result):
    found = tuple(FeatureImportance(n, f"gene {n}", 1.0 / (1 + n), 0.01, n) for n in range(30))
    lines = content(render_page(replace(result, importance=found)))["importance"]
    assert [line[0] for line in lines] == [f"gene {n}" for n in range(20)]


def test_an_upper_bound_is_shown_where_it_says_something():
    estimate = FdrEstimate(None, None, False, False, None, why_unknown="P and U overlap too much")
    bounded = report._unknown_text(estimate, Interval(np.nan, 0.0, 0.401))
    assert bounded == "unknown, but at most 41 % of U: P and U overlap too much"
    unbounded = report._unknown_text(estimate, Interval(np.nan, 0.0, 1.0))
    assert unbounded == "unknown: P and U overlap too much"


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
