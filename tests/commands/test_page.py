"""The page of rank: what its data say, and its script and style, which parse.

tree-sitter brings whole grammars and depends on nothing outside Python, so that these tests are
never skipped; node, where there is one, also applies the rules beyond the grammar.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tree_sitter_css
import tree_sitter_javascript
from tree_sitter import Language, Node, Parser

from resvm_cli.commands import page
from resvm_cli.commands.rank import show_ranking, summary
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.ensemble.decisions import DecisionRule
from resvm_cli.ensemble.importance import FeatureImportance
from resvm_cli.ensemble.plan import Plan, resolve_defaults
from resvm_cli.metrics.curves import Histogram
from resvm_cli.metrics.intervals import Interval
from resvm_cli.parameters import Params, RankingParameters
from resvm_cli.ranking.listing import Listing, Recovery
from resvm_cli.ranking.pipeline import RankResult
from resvm_cli.ranking.precision import FdrEstimate, WhatIf
from tests.conftest import ROOT

LANGUAGES = {
    ".js": Language(tree_sitter_javascript.language()),
    ".css": Language(tree_sitter_css.language()),
}
ASSETS = sorted(path for path in (ROOT / "resvm_cli").rglob("*.*") if path.suffix in LANGUAGES)


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
        RankingParameters(),
        SimpleNamespace(decision=DecisionRule.plain("mean")),
        Plan((resolve_defaults(Params(), 3, 4, 2, lambda: 1.0),)),
        listing(unlabeled, False),
        n_listed=4,
        n_unscored=1,
        n_suspects=1,
        resamples=40,
        recovery=Recovery(np.array([1, 1, 3]), np.zeros(3, int)),
        fdr_estimate=None,
        known=known,
        histogram=Histogram.from_scores(np.repeat([False, True], 3), both),
        notes=("a <note>", "a warning"),
        warnings=("a warning",),
        own_columns={"smiles": dict(enumerate(["CCO", "", "N#N"]))},
    )


def rendered(result, command=""):
    return page.render_page(result, summary(result), command)


def content(text):
    text = re.search(rb'id="data">(.*?)</script>', text, re.S)
    assert text is not None
    return json.loads(text.group(1))


def test_columns_hold_the_list_with_nothing_for_nan(result):
    data = content(rendered(result))
    assert data["list"]["value"] == [1.12346, 0.5, 0.25, None]
    assert data["list"]["members"] == [7, 7, 7, 0]
    assert data["list"]["kind"] is None
    assert data["known"]["kind"] == [2, 1, 1]
    assert data["recovery"]["rank"] == [2, 2, 4]
    assert (data["notes"], data["warnings"]) == (["a <note>"], ["a warning"])
    assert data["list"]["own"] == {"smiles": ["CCO", "", "N#N", ""]}


def test_names_cannot_end_the_script_and_need_not_be_utf8(result):
    text = rendered(result)
    assert text.count(b"</script>") == 2
    assert content(text)["list"]["id"][0] == "</script><b>&0\\xff"


def test_a_long_list_is_cut_and_says_so(result, monkeypatch):
    monkeypatch.setattr(page, "MAX_ROWS", 2)
    data = content(rendered(result))
    assert len(data["list"]["id"]) == 2
    assert any("first 2 rows" in told for told in data["made"])


@pytest.mark.parametrize(
    ("source", "heading"),
    [
        (TrainingInput(), "Ranking"),
        (TrainingInput("hits.svm", "library.svm"), "Ranking of library.svm"),
        (TrainingInput(data="genome.svm", positive_ids="known.txt"), "Ranking of genome.svm"),
        (
            TrainingInput(data="a\x1b]0;b\x07\x9b\u202e\udcff"),
            r"Ranking of a\x1b]0;b\x07\x9b\u202e\xff",
        ),
    ],
)
def test_the_page_names_its_data_and_the_command(result, source, heading):
    text = rendered(replace(result, source=source), "resvm rank -P 'my hits.svm'")
    data = content(text)
    assert data["heading"] == heading
    assert data["summary"][0] == ["data", "3 positive, 4 unlabeled rows"]
    assert data["command"] == "resvm rank -P 'my hits.svm'"
    assert f"<title>resvm rank: {heading}</title>".encode() in text


def test_an_audit_is_of_the_known_positives(result):
    source, wanted = TrainingInput("hits.svm", "library.svm"), RankingParameters(audit=True)
    data = content(rendered(replace(result, source=source, wanted=wanted)))
    assert data["heading"] == "Known positives of hits.svm, most suspicious first"


def test_a_page_without_a_claim_says_what_can_be_said(result):
    unknown = Interval(float("nan"), 0.0, 0.444)
    cases = (WhatIf(0.05, 10, 4.2, 2.0, 7.0), WhatIf(0.05, 50, 7.6, 5.0, 10.0))
    why = "P and U overlap too much"
    estimate = FdrEstimate(unknown, unknown, False, False, None, cases=cases, why_unknown=why)
    data = content(rendered(replace(result, n_suspects=None, fdr_estimate=estimate)))
    told = dict(data["summary"])
    assert told["positives"] == "unknown, but at most 45% of U: P and U overlap too much"
    assert told["expected"] == "if 5% of U is positive: 4 (2 to 7) of 10, 8 (5 to 10) of 50 rows"
    made = " ".join(data["made"])
    assert "Suspects among the known positives are ranked, but not counted" in made


def test_a_page_of_bagging_says_why_known_positives_have_no_values(result):
    data = content(rendered(replace(result, recovery=None, n_suspects=None, known=None)))
    assert any("Bagging puts all of P in every bag" in told for told in data["made"])
    assert data["recovery"] is None
    assert "recall" not in dict(data["summary"])


def test_correlated_features_are_on_one_line_of_importance(result):
    first = [FeatureImportance(n, f"gene {n}", 0.12345, 0.01, 1) for n in range(10)]
    found = (*first, FeatureImportance(11, "size", 0.02, 0.03, 2))
    lines = content(rendered(replace(result, importance=found)))["importance"]
    assert [line[1:] for line in lines] == [[0.123, 0.01], [0.02, 0.03]]
    assert lines[0][0].startswith("gene 0, gene 1, ")
    assert lines[0][0].endswith("gene 7 and 2 more")
    assert content(rendered(result))["importance"] == []


def test_the_page_has_the_first_twenty_groups_of_features(result):
    found = tuple(FeatureImportance(n, f"gene {n}", 1.0 / (1 + n), 0.01, n) for n in range(30))
    lines = content(rendered(replace(result, importance=found)))["importance"]
    assert [line[0] for line in lines] == [f"gene {n}" for n in range(20)]


def test_the_page_has_the_summary_of_the_terminal(result, capsys):
    show_ranking(result)
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().err.splitlines()]
    assert content(rendered(result))["summary"] == lines
    assert [name for name, _ in lines] == ["data", "ensemble", "ranked", "recall", "suspects"]


def faults(text: bytes, suffix: str) -> list[int]:
    """The lines where a file does not follow its grammar."""
    found = []

    def visit(node: Node) -> None:
        if node.is_error or node.is_missing:
            found.append(node.start_point[0] + 1)
        elif node.has_error:
            for child in node.children:
                visit(child)

    visit(Parser(LANGUAGES[suffix]).parse(text).root_node)
    if suffix == ".css":  # its grammar lets a string continue past the end of the line
        lines = enumerate(text.splitlines(), 1)
        found += [number for number, line in lines if line.count(b'"') % 2]
    return found


@pytest.mark.parametrize("path", ASSETS, ids=lambda path: path.name)
def test_every_asset_follows_its_grammar(path):
    assert faults(path.read_bytes(), path.suffix) == []


def test_a_page_allows_its_own_script_and_style_alone():
    data = {"id": "</script><script>alert(1)</script>"}
    text = page.page("<style>", data).decode()
    (policy,) = re.findall('Content-Security-Policy" content="(.*?)"', text)
    assert "unsafe" not in policy
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in policy
    assert page.page("<style>", data).decode() == text
