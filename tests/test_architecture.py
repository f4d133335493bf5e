"""Rules that import contracts cannot express."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "resvm_cli"


@cache
def calls_and_imports() -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """(file, called name) of every call in the package, and (file, imported name)."""
    calls, imports = set(), set()
    for path in sorted(PACKAGE.rglob("*.py")):
        file = str(path.relative_to(PACKAGE))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                target = node.func
                name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
                calls.add((file, name))
            elif isinstance(node, ast.Import | ast.ImportFrom):
                imports |= {(file, alias.name) for alias in node.names}
                imports.add((file, getattr(node, "module", None) or ""))
    return calls, imports


def calls() -> set[tuple[str, str]]:
    return calls_and_imports()[0]


def test_only_files_opens_paths():
    openers = {"open", "fdopen", "read_text", "read_bytes", "write_text", "write_bytes", "mkstemp"}
    assert {
        file
        for file, name in calls()
        if name in openers and not file.startswith(("files/", "model_files/"))
    } == {
        "running/parallel.py",
        "svm/solver_libraries.py",
    }  # cores; stderr, to silence it


def test_nothing_below_report_prints():
    assert {file for file, name in calls() if name == "print"} == {"report/terminal.py"}


def test_no_pickle_no_eval_no_shell():
    for file, name in calls_and_imports()[1]:
        assert name not in {"pickle", "marshal", "shelve", "subprocess"}, file
    assert {name for _, name in calls()} & {"eval", "exec", "system", "popen"} == set()


def test_sys_exit_is_called_in_cli_alone():
    leaving = {file for file, name in calls() if name in ("exit", "_exit")}
    assert leaving == {"cli.py", "__main__.py"}  # which attends to signals before cli.py is there


@pytest.mark.parametrize("name", ["utils", "util", "helpers", "common", "misc"])
def test_there_is_no_drawer(name):
    assert list(PACKAGE.rglob(f"{name}.py")) == []
