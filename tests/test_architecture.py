"""Rules that import contracts cannot express."""

from __future__ import annotations

import ast
import re
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
    } == {"parallel.py", "svm/solver_libraries.py"}  # cores of the system; stderr, to silence it


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
    assert {file for file, name in calls() if name in ("exit", "_exit")} == {"cli.py"}


@pytest.mark.parametrize("name", ["utils", "util", "helpers", "common", "misc"])
def test_there_is_no_drawer(name):
    assert list(PACKAGE.rglob(f"{name}.py")) == []


def described_modules() -> set[str]:
    """The modules that the last chapter of the page on architecture names, with their folders."""
    chapter = (ROOT / "docs" / "architecture.md").read_text().split("\n## Every module\n")[1]
    named, folder = set(), ""
    for line in chapter.splitlines():
        if heading := re.fullmatch(r"`(\w+/)`", line):
            folder = heading[1]
        elif line.startswith("| `"):
            cell = line.split("|")[1]
            named |= {folder + name for name in re.findall(r"`([\w/]+\.(?:py|c))`", cell)}
    return named


def test_the_page_on_architecture_names_every_module_in_its_folder():
    modules = {
        str(path.relative_to(PACKAGE))
        for pattern in ("*.py", "*.c")
        for path in PACKAGE.rglob(pattern)
        if path.name != "__init__.py"
    }
    assert described_modules() == modules


def test_the_page_on_architecture_has_the_layers_of_the_import_contract():
    settings = (ROOT / "pyproject.toml").read_text()
    contract = re.search(r'"Imports go down only".*?^\]', settings, re.DOTALL | re.MULTILINE)
    assert contract is not None
    layers = re.findall(r"resvm_cli\.(\w+)", contract[0])
    page = (ROOT / "docs" / "architecture.md").read_text().split("\n## ")[0]
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert re.findall(r"`(\w+)(?:/|\.py)`", " ".join(rows)) == layers
