"""Rules that import contracts cannot express."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import pytest

from resvm_cli.cli.app import COMMANDS, command_line
from tests.conftest import ROOT

PACKAGE = ROOT / "resvm_cli"
COMMAND_LINE = command_line(COMMANDS)


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax tree of each file of the package."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_text()) for path in paths}


@cache
def calls_and_imports() -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Return (file, called name) for each call in the package, and (file, imported name)."""
    calls, imports = set(), set()
    for file, tree in trees().items():
        for node in ast.walk(tree):
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


def decorated_classes() -> Iterator[tuple[str, ast.ClassDef, dict[str, bool]]]:
    """Yield (file and name, class, options of the decorator) for each dataclass."""
    for file, tree in trees().items():
        for node in ast.walk(tree):
            for decorator in node.decorator_list if isinstance(node, ast.ClassDef) else ():
                if ast.unparse(decorator).split("(")[0] == "dataclass":
                    given = getattr(decorator, "keywords", [])
                    options = {str(each.arg): ast.literal_eval(each.value) for each in given}
                    yield f"{file} {node.name}", node, options


def test_dataclasses_are_immutable_but_for_these():
    assert {name for name, _, options in decorated_classes() if not options.get("frozen")} == {
        "data/svmlight.py _Parsed",
        "svm/libsvm.py _Stderr",
        "data/encoding.py FeatureMap",
        "data/encoding.py MappedColumn",
        "tuning/search.py TrialLog",
    }


def test_dataclasses_of_arrays_are_compared_by_identity():
    """Comparing two arrays gives an array, so comparing such dataclasses by value would fail."""
    n_found = 0
    for name, node, options in decorated_classes():
        fields = [ast.unparse(each.annotation) for each in node.body if hasattr(each, "annotation")]
        if re.search(r"Array\b|\bRows\b", " ".join(fields)):
            assert options.get("eq") is False, name
            n_found += 1
    assert n_found > 30


def test_only_data_and_storage_open_paths():
    openers = {"open", "fdopen", "read_text", "read_bytes", "write_text", "write_bytes", "mkstemp"}
    assert {
        file
        for file, name in calls()
        if name in openers and not file.startswith(("data/", "storage/"))
    } == {
        "threads.py",
        "svm/libsvm.py",
    }  # the first counts cores, the second silences stderr


def test_only_the_terminal_prints():
    assert {file for file, name in calls() if name == "print"} == {"cli/terminal.py"}


def test_no_pickle_no_eval_no_shell():
    for file, name in calls_and_imports()[1]:
        assert name not in {"pickle", "marshal", "shelve", "subprocess"}, file
    assert {name for _, name in calls()} & {"eval", "exec", "system", "popen"} == set()


def test_sys_exit_is_called_in_cli_alone():
    leaving = {file for file, name in calls() if name in ("exit", "_exit")}
    assert leaving == {"cli/app.py", "__main__.py"}  # handles signals before the app is imported


FRONT_ENDS = ("cli/", "__main__.py", "commands/")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+|(?<![\w/.-])-[A-Za-z](?![\w-])")
SHELL = (
    "ulimit",
    "dask ",
    "sbatch",
    "iconv",
    "sort -u",
    "mkdir -p",
)  # other programs, whose options may be named


def strings(tree: ast.AST) -> Iterator[str]:
    """Yield all strings except docstrings."""
    documented = (ast.Module, ast.FunctionDef, ast.ClassDef)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def test_the_engine_names_no_options():
    found = [
        (file, text)
        for file, tree in trees().items()
        if not file.startswith(FRONT_ENDS)
        for text in strings(tree)
        if OPTION.search(text) and not any(name in text for name in SHELL)
    ]
    assert found == []


def test_no_modules_import_each_other_in_a_circle():
    """Imports inside functions count; imports only for type checking do not."""
    modules = {
        f"resvm_cli.{file[:-3].replace('/', '.')}".removesuffix(".__init__"): tree
        for file, tree in trees().items()
    }
    graph = {name: imported(tree, modules) - {name} for name, tree in modules.items()}
    graph["resvm_cli"] = set()  # loads its public names on demand
    while leaves := [name for name, targets in graph.items() if not targets]:
        for name in leaves:
            del graph[name]
        graph = {name: targets - set(leaves) for name, targets in graph.items()}
    assert sorted(graph) == []


def imported(tree: ast.Module, modules: Collection[str]) -> set[str]:
    """Return the modules of the package that a module imports, anywhere in its code."""
    found: set[str] = set()
    typing_only = {
        id(node)
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and "TYPE_CHECKING" in ast.unparse(test.test)
        for node in ast.walk(test)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in typing_only and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in modules else node.module)
    return found & set(modules)


@pytest.mark.parametrize("name", ["utils", "util", "helpers", "common", "misc"])
def test_there_is_no_drawer(name):
    assert list(PACKAGE.rglob(f"{name}.py")) == []


def test_records_are_made_without_compiling_methods():
    """Our own ``dataclass`` from ``resvm_cli.records`` saves half a millisecond per class."""
    standard = {
        file
        for file, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and node.module == "dataclasses"
        and "dataclass" in {alias.name for alias in node.names}
    }
    assert standard == {"records.py"}  # for type checkers


def test_every_module_has_its_test_file():
    paths = [Path(file) for file in trees() if not file.endswith("__init__.py")]
    found = {path: ROOT / "tests" / path.parent / f"test_{path.name}" for path in paths}
    lacking = {str(path) for path, test in found.items() if not test.exists()}
    # tests/test_main.py, and tests/cluster
    assert lacking == {"__main__.py", "cluster.py"}


# Size is a feature. Whoever adds lines, modules or options removes others; the limits only go down.
# They are a little above the size of today, but never above an aim that is reached.
AIMS = {
    "lines of the package": 23_000,
    "modules": 85,
    "folders": 11,
    "lines of C": 3_000,
    "lines of tests": 28_000,
    "lines of pages": 5_000,
    "lines of experiments": 9_000,
    "options of train": 50,
    "options of tune": 44,
    "options of rank": 46,
    "options of predict": 22,
    "options of inspect": 24,
}
LIMITS = {
    "lines of the package": 24_850,
    "modules": 84,
    "folders": 10,
    "lines of C": 2_900,
    "lines of tests": 26_900,
    "lines of pages": 4_850,
    "lines of experiments": 7_700,
    "options of train": 48,
    "options of tune": 44,
    "options of rank": 44,
    "options of predict": 19,
    "options of inspect": 23,
}


def size_of(what: str) -> int:
    kind, _, which = what.partition(" of ")
    if kind == "options":
        options = COMMAND_LINE.commands[which].params
        names = [option.name for option in options if option.param_type_name == "option"]
        return len(set(names) - {"help_all"})
    modules = [path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]
    if kind == "modules":
        return len(modules)
    if kind == "folders":
        return len({path.parent for path in modules} - {PACKAGE})
    files = {
        "the package": PACKAGE.rglob("*.py"),
        "C": PACKAGE.rglob("*.[ch]"),
        "tests": (ROOT / "tests").rglob("*.py"),
        "pages": [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")],
        "experiments": (ROOT / "experiments").rglob("*.py"),
    }[which]
    return sum(path.read_bytes().count(b"\n") for path in files)


@pytest.mark.parametrize("what", LIMITS)
def test_the_house_keeps_its_size(what):
    assert size_of(what) <= LIMITS[what], f"the aim is {AIMS[what]:,}"
