"""The Python sessions of the pages print what they show, and the reference has every name."""

from __future__ import annotations

import doctest
import re
import shutil

import pytest

import resvm_cli
from tests.conftest import ROOT

pytest.importorskip("pandas")

DOCS = ROOT / "docs"
SESSION = re.compile(r"```pycon\n(.*?)```", re.S)
PAGES = [page.name for page in sorted(DOCS.glob("*.md")) if SESSION.search(page.read_text())]


def test_there_are_pages_to_run():
    assert {"python.md", "scikit-learn.md", "tutorial-notebook.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_the_session_of_a_page_prints_what_is_shown(page, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "sample_data", tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)
    session = "\n".join(SESSION.findall((DOCS / page).read_text()))
    examples = doctest.DocTestParser().get_doctest(session, {}, page, None, 0)
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    shown = runner.run(examples, out=told.append)
    assert shown.attempted > 20
    assert shown.failed == 0, "".join(told)


def test_the_page_on_scikit_learn_uses_its_tools():
    session = "\n".join(SESSION.findall((DOCS / "scikit-learn.md").read_text()))
    for name in (
        *("Pipeline(", "ColumnTransformer(", "GridSearchCV(", "cross_val_score(", "set_output("),
        *("CalibratedClassifierCV(", "StackingClassifier(", 'backend="loky"', "pickle.loads("),
        *("clone(", "learning_curve(", "StratifiedKFold("),
    ):
        assert name in session, name


def test_every_public_name_has_an_entry_in_the_reference():
    page = (DOCS / "api.md").read_text()
    part = page.partition(".. currentmodule:: resvm_cli\n")[2].partition("currentmodule")[0]
    entries = re.findall(r"^\.\. auto(?:function|class|exception):: (\w+)", part, re.M)
    assert sorted(entries) == resvm_cli.__all__
    assert sorted(re.findall(r"^   (\w+)$", part, re.M)) == resvm_cli.__all__  # the overview
