"""Every public name documents every parameter, and its examples print what they show."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import inspect
import re
import sys

import numpy as np
import pytest

import resvm_cli
from resvm_cli import threads
from resvm_cli.api import functions
from resvm_cli.api.arguments import documented, run_for, seed_from
from resvm_cli.parameters import RANKING_TABLE
from tests.conftest import ROOT

PUBLIC = {name: getattr(resvm_cli, name) for name in resvm_cli.__all__}
# What **parameters stands for.
KEYWORDS = {
    "tune": (*functions.TUNED_OPTIONS, *functions.ROLES),
    "rank": (*RANKING_TABLE, *functions.TRAINING_OPTIONS, *functions.ROLES),
}
# Made by functions, not by users, so their attributes are documented instead.
RESULTS = {"Ranking", "SvmlightData", "Tuning"}
SECTION = re.compile(r"^(\w[\w ]+)\n-{3,}\n(.*?)(?=^\w[\w ]+\n-{3,}\n|\Z)", re.M | re.S)


def sections(target) -> dict[str, str]:
    return dict(SECTION.findall(inspect.getdoc(target) or ""))


def entries(target, section) -> dict[str, str]:
    """Return the names in a section and the text about each."""
    text = sections(target).get(section, "")
    found = re.findall(r"^(\*{0,2}\w[\w, ]*?)(?: : .+)?\n((?:    .+\n?|\n)+)", text + "\n", re.M)
    return {name: about for names, about in found for name in names.split(", ")}


def own_methods(kind) -> dict[str, object]:
    """Return the public methods of a class that our modules define."""
    return {
        name: member
        for name, member in inspect.getmembers(kind, callable)
        if not name.startswith("_")
        and getattr(member, "__module__", "").startswith("resvm_cli")
        and inspect.isroutine(member)
    }


def parameters_of(target) -> list[str]:
    return [name for name in inspect.signature(target).parameters if name != "self"]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_of_a_public_name_is_documented(name):
    target = PUBLIC[name]
    first = inspect.getdoc(target).partition("\n")[0]
    assert re.fullmatch(r"[A-Z].*[.]", first)
    if name == "ResultWarning":
        return
    if name in RESULTS:
        fields = getattr(target, "_fields", None) or [f.name for f in dataclasses.fields(target)]
        public = {field for field in fields if not field.startswith("_")}
        assert set(entries(target, "Attributes")) == public
    else:
        expected = [each for each in parameters_of(target) if each != "parameters"]
        expected += KEYWORDS.get(name, ())
        assert set(entries(target, "Parameters")) == set(expected)
        assert "Examples" in sections(target)
        if inspect.isfunction(target):
            assert "Returns" in sections(target)


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        (kind, method)
        for kind in PUBLIC
        if isinstance(PUBLIC[kind], type)
        for method in own_methods(PUBLIC[kind])
    ],
)
def test_every_parameter_of_a_method_is_documented(kind, method):
    target = getattr(PUBLIC[kind], method)
    assert set(entries(target, "Parameters")) == set(parameters_of(target))
    returns = inspect.signature(target).return_annotation
    assert returns == "None" or "Returns" in sections(target)


@pytest.mark.parametrize("kind", [kind for kind in PUBLIC if kind.endswith("Classifier")])
def test_every_attribute_of_a_fitted_estimator_is_documented(kind):
    y = np.arange(90) % 3 == 0
    X = np.random.default_rng(0).standard_normal((90, 2)) + 2 * y[:, None]
    estimator = PUBLIC[kind](positive_label=True).fit(X, y)
    found = {name for name in vars(estimator) if name.endswith("_")}
    listed = set(entries(PUBLIC[kind], "Attributes"))
    assert listed - {"feature_names_in_"} == found


MODULES = {each.__module__ for name, each in PUBLIC.items() if name != "ResultWarning"}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_examples_print_what_they_show(module, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    shown = doctest.testmod(sys.modules[module], optionflags=doctest.NORMALIZE_WHITESPACE)
    assert shown.attempted >= 5
    assert shown.failed == 0


def test_what_is_public_is_named_everywhere():
    assert resvm_cli.__all__ == sorted(resvm_cli.__all__)
    tree = ast.parse((ROOT / "resvm_cli" / "__init__.py").read_text())
    typed = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("resvm_cli.")
        for alias in node.names
    }
    assert typed == set(resvm_cli.__all__)  # for type checkers


def test_a_docstring_is_completed_whatever_its_indentation():
    def indented():
        """One.

        {parameters}

        Two.
        """

    def flush():
        pass

    flush.__doc__ = "One.\n\n{parameters}\n\nTwo.\n"  # as compiled since Python 3.13
    expected = "One.\n\nParameters\n----------\na : int\n    First.\n\nTwo."
    for function in (indented, flush):
        complete = documented(parameters=["a : int\n    First."])(function)
        assert inspect.getdoc(complete) == expected
    flush.__doc__ = None  # by python -OO
    assert documented(parameters=["a : int"])(flush).__doc__ is None


def test_jobs_count_as_in_joblib(monkeypatch):
    monkeypatch.setattr(threads, "available_cores", lambda: 4)
    given = {None: None, 1: 1, 3: 3, -1: 4, -2: 3, -9: 1}
    assert {n_jobs: run_for(n_jobs).jobs for n_jobs in given} == given


def test_generators_of_numpy_give_a_seed():
    for generator in (np.random.RandomState, np.random.default_rng):
        first, second, third = (seed_from(generator(number)) for number in (5, 5, 6))
        assert first == second != third
    assert seed_from(np.int64(9)) == 9
    assert seed_from(None) != seed_from(None)
