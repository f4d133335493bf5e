"""Rules that import contracts cannot express."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "resvm_cli"


def calls(folder: str = "") -> Iterator[tuple[str, str]]:
    """(file, called name) of every call below a folder of the package."""
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                target = node.func
                name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
                yield str(path.relative_to(PACKAGE)), name


def test_only_files_opens_paths():
    openers = {"open", "fdopen", "read_text", "read_bytes", "write_text", "write_bytes", "mkstemp"}
    assert {
        file for file, name in calls() if name in openers and not file.startswith("files/")
    } == {"parallel.py"}  # what the system says of its cores


def test_nothing_below_report_prints():
    assert {file for file, name in calls() if name == "print"} == {"report/terminal.py"}


def test_no_pickle_no_eval_no_shell():
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        } | {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not imported & {"pickle", "marshal", "shelve", "subprocess"}, path
    assert {name for _, name in calls()} & {"eval", "exec", "system", "popen"} == set()


def test_sys_exit_is_called_in_cli_alone():
    leaving = {file for file, name in calls() if name in ("exit", "_exit")}
    assert leaving == {"cli.py", "__main__.py"}  # which attends to signals before cli.py is there


@pytest.mark.parametrize("name", ["utils", "util", "helpers", "common", "misc"])
def test_there_is_no_drawer(name):
    assert list(PACKAGE.rglob(f"{name}.py")) == []
