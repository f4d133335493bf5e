"""``make mutants`` makes the mutants that its rules promise, and tells killed from survived."""

from __future__ import annotations

import ast

import pytest

from tests import mutants
from tests.mutants import Mutants


def made(source: str) -> list[tuple[str, str]]:
    module = Mutants("resvm_cli/x.py", source)
    module.visit(ast.parse(source))
    changed = []
    for one in module.found:
        text = source.encode()
        text = text[: one.start] + one.after.encode() + text[one.end :]
        ast.parse(text)
        changed.append((one.rule, text.decode()))
    return changed


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", [("comparison", "x = (a <= b)")]),
        ("x = 'ü', a not in b", [("comparison", "x = 'ü', (a in b)")]),
        ("x = a + b", [("arithmetic", "x = (a - b)")]),
        ("x = 'a' + b", []),
        ("x = a and b", [("boolean", "x = (a or b)")]),
        ("x = not a", [("negation", "x = (a)")]),
        ("x = 3", [("constant", "x = 4")]),
        ("x = 0.5", [("constant", "x = 1.0")]),
        ("x = True", [("constant", "x = False")]),
        ("x: int = f(a, b)", [("arguments", "x: int = (f(b, a))")]),
        ("f(a)", [("statement", "pass")]),
        ("raise E(1)", [("statement", "pass")]),
        ("x += y", [("statement", "pass")]),
        ("def f(x: 3):\n    return x", [("return", "def f(x: 3):\n    return None")]),
        ("if TYPE_CHECKING:\n    f(1)", []),
        ('"""A text."""\nx = f"{3}"', []),
    ],
)
def test_each_rule_changes_one_thing(source, expected):
    assert made(source) == expected


class PassingTests(mutants.Tests):
    """Tests that pass without a mutant, and that no process has collected."""

    def __init__(self) -> None:
        pass

    def run(self, *_) -> str:
        return mutants.SURVIVED


@pytest.mark.parametrize(
    ("value", "tests", "expected"),
    [
        ("2", ["tests/test_it.py::test_it"], mutants.KILLED),
        ("1 * 1", ["tests/test_it.py::test_it"], mutants.SURVIVED),
        ("2", [], mutants.UNREACHED),
        ("2", ["tests/test_it.py::test_none"], mutants.BROKEN),
    ],
)
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_mutant_is_killed_by_a_test_that_fails(value, tests, expected, tmp_path, monkeypatch):
    (tmp_path / "tests").mkdir()
    (tmp_path / "resvm_it.py").write_text("x = 1\n")
    (tmp_path / "tests" / "test_it.py").write_text(
        f"import runpy\ndef test_it(): assert runpy.run_path('{tmp_path}/resvm_it.py')['x'] == 1\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mutants, "COPY", tmp_path)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    mutant = mutants.Mutant("resvm_it.py", 1, "constant", "1", value, 4, 5, 1, "x = 1")
    assert mutants.outcome(mutant, tests, PassingTests())[0] == expected
    assert (tmp_path / "resvm_it.py").read_text() == "x = 1\n"


@pytest.mark.parametrize(
    ("path", "files"),
    [
        ("resvm_cli/a/b.py", ["tests/a/test_b.py", "tests/test_one.py", "tests/test_program.py"]),
        ("resvm_cli/a/c.py", ["tests/test_one.py"]),
        ("resvm_cli/a/e.py", ["tests/a/test_b.py"]),
        ("resvm_cli/f/g.py", []),
    ],
)
def test_the_nearest_test_files_are_the_modules_own_and_its_importers(
    path, files, tmp_path, monkeypatch
):
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    (tmp_path / "tests" / "a").mkdir(parents=True)
    for name, text in {
        "a/test_b.py": "",
        "test_one.py": "from resvm_cli.a import b, c\n",
        "test_program.py": "from tests.programs import run\nfrom resvm_cli.a.b import x\n",
        "test_other.py": "from resvm_cli.a.bc import x\nfrom resvm_cli.dd import y\n",
    }.items():
        (tmp_path / "tests" / name).write_text(text)
    mutant = mutants.Mutant(path, 1, "", "", "", 0, 0, 1, "")
    assert mutants.nearest_files(mutant) == files


def test_only_functions_are_run_after_the_import(monkeypatch, tmp_path):
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    (tmp_path / "m.py").write_text("x = 1\n\n\ndef f(y=2):\n    return 3\n")
    at_import = [
        not mutants._outermost_function(mutants.Mutant("m.py", line, "", "", "", 0, 0, line, ""))
        for line in (1, 4, 5)
    ]
    assert at_import == [True, True, False]


def test_a_constant_is_tried_on_tests_of_the_functions_that_use_it(monkeypatch, tmp_path):
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    (tmp_path / "resvm_cli").mkdir()
    (tmp_path / "resvm_cli" / "m.py").write_text(
        "A, B = 1, 2\n\n\ndef f():\n    return A\n\n\ndef g():\n    return 3\n"
    )
    reached = {1: {"t::import"}, 4: {"t::import"}, 5: {"t::f"}, 9: {"t::g"}}
    for line, tests in ((1, ["t::f"]), (8, ["t::f", "t::g", "t::import"]), (9, ["t::g"])):
        mutant = mutants.Mutant("resvm_cli/m.py", line, "", "", "", 0, 0, line, "")
        assert mutants.chosen_tests(mutant, reached) == tests


def test_every_reason_belongs_to_a_mutant_that_is_made():
    made = {one.name for one in mutants.all_mutants(mutants.ROOT)}
    assert [key for key in mutants.equivalent() if key not in made] == []
