"""Every public name documents every parameter, and its examples print what they show."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import inspect
import re
import sys

import pytest

import resvm_cli
import resvm_cli.api
import resvm_cli.sklearn
from resvm_cli.api.arguments import documented
from resvm_cli.parameters import RANKING_TABLE
from resvm_cli.training.choice import TRAINING
from resvm_cli.tuning.search import TUNING_NAMES
from tests.conftest import ROOT

PUBLIC = {
    **{f"resvm_cli.{name}": getattr(resvm_cli, name) for name in resvm_cli.__all__},
    **{
        f"resvm_cli.sklearn.{name}": getattr(resvm_cli.sklearn, name)
        for name in resvm_cli.sklearn.__all__
    },
}
# What **parameters stands for.
KEYWORDS = {
    "fit": TRAINING,
    "tune": TUNING_NAMES,
    "rank": (*RANKING_TABLE, *TRAINING),
}
# Made by functions, not by users, so their attributes are documented instead.
RESULTS = {"Model", "OutOfBagRows", "Ranking", "SvmlightData", "Tuning"}
SECTION = re.compile(r"^(\w[\w ]+)\n-{3,}\n(.*?)(?=^\w[\w ]+\n-{3,}\n|\Z)", re.M | re.S)


def sections(target) -> dict[str, str]:
    return dict(SECTION.findall(inspect.getdoc(target) or ""))


def entries(target, section) -> dict[str, str]:
    """Return the names in a section and the text about each."""
    text = sections(target).get(section, "")
    found = re.findall(r"^(\*{0,2}\w[\w, ]*?)(?: : .+)?\n((?:    .+\n?|\n)+)", text + "\n", re.M)
    return {name: about for names, about in found for name in names.split(", ")}


def parameters_of(target) -> list[str]:
    return [name for name in inspect.signature(target).parameters if name != "self"]


def own_methods(kind) -> dict[str, object]:
    """Return the public methods of a class that our modules define."""
    return {
        name: member
        for name, member in inspect.getmembers(kind, callable)
        if not name.startswith("_")
        and getattr(member, "__module__", "").startswith("resvm_cli")
        and inspect.isroutine(member)
    }


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_of_a_public_name_is_documented(name):
    target, short = PUBLIC[name], name.rpartition(".")[2]
    first = inspect.getdoc(target).partition("\n")[0]
    assert re.fullmatch(r"[A-Z].*[.]", first)
    if short == "ResultWarning":
        return
    if short in RESULTS:
        fields = getattr(target, "_fields", None) or [f.name for f in dataclasses.fields(target)]
        assert set(entries(target, "Attributes")) == set(fields)
        for attribute, member in vars(target).items():
            if isinstance(member, property) and not attribute.startswith("_"):
                assert inspect.getdoc(member), attribute
    else:
        expected = [each for each in parameters_of(target) if each != "parameters"]
        expected += KEYWORDS.get(short, ())
        assert set(entries(target, "Parameters")) == set(expected)
        assert "Examples" in sections(target)
        if inspect.isfunction(target):
            assert "Returns" in sections(target)


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        (kind, one)
        for kind in PUBLIC
        if isinstance(PUBLIC[kind], type)
        for one in own_methods(PUBLIC[kind])
    ],
)
def test_every_parameter_of_a_method_is_documented(kind, method):
    target = getattr(PUBLIC[kind], method)
    expected = [name.replace("options", "**options") for name in parameters_of(target)]
    assert set(entries(target, "Parameters")) == set(expected)
    returns = inspect.signature(target).return_annotation
    assert returns == "None" or {"Returns", "Yields"} & set(sections(target))


@pytest.mark.parametrize("kind", [kind for kind in PUBLIC if kind.endswith("Classifier")])
def test_every_attribute_of_a_fitted_estimator_is_documented(kind):
    import numpy as np

    y = np.arange(90) % 3 == 0
    X = np.random.default_rng(0).standard_normal((90, 2)) + 2 * y[:, None]
    estimator = PUBLIC[kind](positive_label=True).fit(X, y)
    found = {name for name in vars(estimator) if name.endswith("_")}
    listed = set(entries(PUBLIC[kind], "Attributes"))
    assert listed - {"tuning_", "feature_names_in_"} == found


MODULES = sorted(
    {PUBLIC[name].__module__ for name in PUBLIC if PUBLIC[name].__module__ != "resvm_cli.errors"}
)


@pytest.mark.parametrize("module", MODULES)
def test_examples_print_what_they_show(module, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    shown = doctest.testmod(sys.modules[module], optionflags=doctest.NORMALIZE_WHITESPACE)
    assert shown.attempted >= 5
    assert shown.failed == 0


def test_what_is_public_is_named_everywhere():
    for module in (resvm_cli, resvm_cli.api, resvm_cli.sklearn):
        assert module.__all__ == sorted(module.__all__)
        assert all(hasattr(module, name) for name in module.__all__)
    assert set(resvm_cli.__all__) == set(resvm_cli.api.__all__)
    tree = ast.parse((ROOT / "resvm_cli" / "__init__.py").read_text())
    typed = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "resvm_cli.api"
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
