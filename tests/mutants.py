"""``make mutants``: change one line of the package at a time and see whether a test fails.

The mutants are a seeded sample of those that the rules below generate; a larger sample includes the
mutants of a smaller one. Each mutant is tried in a copy of the tree. It is run against the tests
that reach its line if ``make coverage`` has run, otherwise against the test files closest to its
module. Results are appended to build/mutants.tsv, and mutants with a result are not tried again.
Mutants that no test can kill because they change nothing are listed in tests/mutants.txt with the
reason.

One process imports the package and collects all tests once. For a mutant inside a function, it
forks and gives the function its mutated code, so most mutants take less than a second. A mutant in
code that runs at import is tried in a process that has not imported any of the package.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import copy
import gc
import inspect
import json
import os
import py_compile
import re
import resource
import signal
import socket
import sys
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from types import CodeType, FunctionType
from typing import IO, Any, TypeAlias

from tests.coverage import COPY as MEASURED
from tests.coverage import ROOT, copy_tree

COPY = ROOT / "build" / "mutants"  # with -2 appended for the second of several processes
RESULTS = ROOT / "build" / "mutants.tsv"
EQUIVALENT = ROOT / "tests" / "mutants.txt"
MAX_TESTS = 60  # test functions per mutant; those of the mutant's own module come first
MAX_STARTING = 12  # how many of these may be in files whose tests start programs
MAX_FILES = 4
CPU_SECONDS = 120  # limit for the tests of one mutant, in case it never ends
ENOUGH_SECONDS = 10.0  # CPU time of passing tests after which no further test starts
MAX_MEMORY = 8 << 30  # a mutant may request any amount of memory
WALL_SECONDS = 900.0
PYTEST = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
KILLED, ENDLESS, SURVIVED, UNREACHED = "killed", "killed (endless)", "survived", "unreached"
BROKEN = "not tried"  # pytest could not run the tests
PASSED: set[str] = set()  # tests that pass in the copy of the tree without a mutant
FAILING: set[str] = set()  # tests that fail in the copy of the tree without a mutant

COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}

Key: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True)
class Mutant:
    """A change to one syntax node: its position, and its text before and after the change."""

    path: str
    line: int
    rule: str
    before: str
    after: str
    start: int  # byte offsets in the file
    end: int
    end_line: int
    text: str  # the line on which the node begins

    @property
    def key(self) -> Key:
        return self.path, str(self.start), self.before, self.after

    @property
    def name(self) -> Key:
        """An identifier that does not change when the line moves."""
        return self.path, self.text, self.before, self.after


class Mutants(ast.NodeVisitor):
    """All mutants of one module."""

    def __init__(self, path: str, source: str) -> None:
        self.path, self.source = path, source
        lines = source.splitlines(keepends=True)
        self._lines = [line.strip() for line in lines]
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line.encode()))
        self._bytes = source.encode()
        self.found: list[Mutant] = []

    def _add(self, rule: str, node: ast.expr | ast.stmt, changed: ast.AST | str) -> None:
        after = changed if isinstance(changed, str) else ast.unparse(changed)
        if isinstance(node, ast.expr) and not isinstance(node, ast.Constant):
            after = f"({after})"
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        before = " ".join(self._bytes[start:end].decode().split())
        end_line = node.end_lineno or node.lineno
        text = self._lines[node.lineno - 1]
        where = (start, end, end_line, text)
        self.found.append(Mutant(self.path, node.lineno, rule, before, after, *where))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip f-strings: texts for people, whose nodes have no positions before Python 3.12."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in (*node.defaults, *filter(None, node.kw_defaults)):
            self.visit(default)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.visit(node.args)
        for statement in node.body:
            self.visit(statement)

    visit_FunctionDef = visit_AsyncFunctionDef = _visit_function

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        changed = copy.deepcopy(node)
        changed.ops[0] = COMPARED[type(node.ops[0])]()
        self._add("comparison", node, changed)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = (ast.Constant, ast.JoinedStr)
        is_text = any(
            isinstance(side, texts) and isinstance(getattr(side, "value", ""), str)
            for side in (node.left, node.right)
        )
        if type(node.op) in COMPUTED and not is_text:
            changed = copy.deepcopy(node)
            changed.op = COMPUTED[type(node.op)]()
            self._add("arithmetic", node, changed)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        changed = copy.deepcopy(node)
        changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._add("boolean", node, changed)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add("negation", node, node.operand)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add("constant", node, repr(not value))
        elif isinstance(value, int):
            self._add("constant", node, repr(value + 1))
        elif isinstance(value, float):
            self._add("constant", node, repr(value * 2 if value else 1.0))

    def visit_Call(self, node: ast.Call) -> None:
        plain = len(node.args) > 1 and not any(isinstance(x, ast.Starred) for x in node.args[:2])
        if plain and ast.dump(node.args[0]) != ast.dump(node.args[1]):
            changed = copy.deepcopy(node)
            changed.args[:2] = reversed(changed.args[:2])
            self._add("arguments", node, changed)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._add("statement", node, "pass")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add("statement", node, "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add("statement", node, "pass")  # but leave its arguments, which are texts for people

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and ast.unparse(node.value) != "None":
            self._add("return", node, "return None")
            self.generic_visit(node)


def all_mutants(root: Path) -> Iterator[Mutant]:
    for path in sorted(root.glob("resvm_cli/**/*.py")):
        module = Mutants(str(path.relative_to(root)), path.read_text())
        module.visit(ast.parse(module.source))
        yield from module.found


def tests_by_line(path: str) -> dict[int, set[str]]:
    """Return the test functions that reach each line of a module."""
    import coverage

    data = coverage.CoverageData(str(MEASURED / ".coverage"))
    data.read()
    found = data.contexts_by_lineno(str(MEASURED / path))
    return {
        line: {name.rpartition("|")[2] for name in names} - {""} for line, names in found.items()
    }


def chosen_tests(mutant: Mutant, reached: dict[int, set[str]]) -> list[str]:
    """Return tests that reach a mutant or, if it runs at import, the code that uses it."""
    lines = range(mutant.line, mutant.end_line + 1)
    tests = set().union(*(reached.get(line, set()) for line in lines))
    if not _outermost_function(mutant):
        users = _users(mutant)
        tests = set().union(
            *(found for line, found in reached.items() if not users or line in users)
        )
    own = _own_tests(mutant)

    def distance(test: str) -> tuple[bool, bool, bool, str]:
        file = test.partition("::")[0]
        same_folder = Path(file).parent == Path(own).parent
        return file != own, _starts_programs(file), not same_folder, test

    found = sorted(tests - FAILING, key=distance)
    starting = [test for test in found if _starts_programs(test.partition("::")[0])]
    return [test for test in found if test not in starting[MAX_STARTING:]][:MAX_TESTS]


def _own_tests(mutant: Mutant) -> str:
    module = Path(mutant.path).relative_to("resvm_cli")
    return str(Path("tests", module.parent, f"test_{module.stem.lstrip('_')}.py"))


def nearest_files(mutant: Mutant) -> list[str]:
    """Return the test file of a module and those that import it, or else those of its folder.

    The module's own test file comes first, then files whose tests start no programs.
    """
    module = Path(mutant.path).with_suffix("")
    package, name = ".".join(module.parent.parts), module.name
    imported = re.compile(
        rf"(from|import) {re.escape(package)}\.{name}\b"
        rf"|from {re.escape(package)} import (\(\s*)?([\w\s]+, *)*{name}\b"
    )
    own = _own_tests(mutant)
    texts = {
        str(path.relative_to(ROOT)): path.read_text()
        for path in sorted(ROOT.glob("tests/**/test_*.py"))
    }
    files = [file for file in texts if file == own or imported.search(texts[file])]
    files = files or [file for file in texts if Path(file).parent == Path(own).parent]
    return sorted(files, key=lambda file: (file != own, _starts_programs(file)))[:MAX_FILES]


def _outermost_function(mutant: Mutant) -> int:
    """Return the first line of the function that contains a mutant; 0 if it runs at import."""
    tree = ast.parse((ROOT / mutant.path).read_text())
    starts = [
        min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body[0].lineno <= mutant.line <= (node.end_lineno or 0)
    ]
    return min(starts, default=0)


def _users(mutant: Mutant) -> set[int]:
    """Return the lines in functions that use the global name assigned by a mutant, if any."""
    tree = ast.parse((ROOT / mutant.path).read_text())
    names = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and node.lineno <= mutant.line <= (node.end_lineno or 0)
        for target in ast.walk(ast.Tuple(node.targets, ast.Store()))
        if isinstance(target, ast.Name)
    }
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        name.lineno
        for function in ast.walk(tree)
        if isinstance(function, functions)
        for name in ast.walk(function)
        if isinstance(name, ast.Name) and name.id in names
    }


@cache
def _starts_programs(file: str) -> bool:
    path = ROOT / file
    if not path.exists():
        return True
    text = path.read_text()
    return (
        "tests.programs import" in text
        or re.search(r"def test\w*\([^)]*\bresvm\b", text) is not None
    )


class Collected:
    """A pytest plugin in the process that has collected the tests; it forks on request."""

    def __init__(self, requests: IO[str], answers: IO[str]) -> None:
        self._requests, self._answers = requests, answers
        self._failed = ""

    def pytest_runtestloop(self, session: Any) -> bool:
        by_name: dict[str, list[Any]] = defaultdict(list)
        for item in session.items:
            by_name[item.nodeid.partition("[")[0]].append(item)
            by_name[item.nodeid.partition("::")[0]].append(item)
        sys.dont_write_bytecode = True
        gc.unfreeze()  # get_objects does not return frozen objects
        functions = [one for one in gc.get_objects() if isinstance(one, FunctionType)]
        gc.collect()
        gc.freeze()
        self._answer(f"{len(session.items):,} tests are ready")
        for line in self._requests:
            *change, tests = json.loads(line)
            items = [item for test in tests for item in by_name[test]]
            self._answer(_forked(partial(self._try, session, functions, *change, items)))
        return True

    def _answer(self, text: str) -> None:
        self._answers.write(text + "\n")
        self._answers.flush()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._failed = report.nodeid

    def _try(self, session: Any, functions: list[FunctionType], path: str, start: int,
             source: str, items: list[Any]) -> int:  # fmt: skip
        """Run the tests in order until one fails."""
        if source:
            mutated = _function_code(compile(source, path, "exec"), start)
            changed = 0
            for function in functions:
                code = function.__code__
                same = (code.co_filename, code.co_qualname) == (path, mutated.co_qualname)
                if same and code.co_firstlineno == start:
                    function.__code__ = mutated
                    changed += 1
            if not changed:
                raise LookupError(path)
        _fork_programs_from_here()
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed or time.process_time() > ENOUGH_SECONDS:
                session._setupstate.teardown_exact(None)
                break
        if self._failed:
            _killer().write_text(self._failed)
        return int(bool(self._failed))


def _fork_programs_from_here() -> None:
    """Fork the programs that tests start from this process, which has the mutated code."""
    forks = sys.modules["tests.forks"]
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        os.setsid()
        ours.close()
        try:
            forks.serve(theirs)
        finally:
            os._exit(0)
    theirs.close()
    server = forks.Forks.__new__(forks.Forks)
    server._socket, server._one_at_a_time = ours, threading.Lock()
    forks._of_seed = lambda *_: server  # type: ignore[attr-defined]


def _function_code(module: CodeType, start: int) -> CodeType:
    """Return the code of the outermost function that begins at a line."""
    for code in module.co_consts:
        if isinstance(code, CodeType):
            is_class = not code.co_flags & inspect.CO_OPTIMIZED
            if not is_class and code.co_firstlineno == start:
                return code
            if is_class:
                with suppress(LookupError):
                    return _function_code(code, start)
    raise LookupError(start)


def _collect(requests: int, answers: int) -> None:
    """Collect all tests, and answer requests until there are no more."""
    import pytest

    sys.dont_write_bytecode = False  # processes that import the tests again read the bytecode
    with open(requests) as asked, open(answers, "w") as answered:
        pytest.main([*PYTEST, "-s", f"--basetemp={COPY}-tmp"], plugins=[Collected(asked, answered)])


class Tests:
    """The process that has collected the tests."""

    def __init__(self) -> None:
        (asked, asking), (hearing, answered) = os.pipe(), os.pipe()
        if os.fork() == 0:
            try:
                os.close(asking)
                os.close(hearing)
                _log_output("collected.log")
                _collect(asked, answered)
            finally:
                os._exit(0)
        os.close(asked)
        os.close(answered)
        self._asking, self._hearing = open(asking, "w"), open(hearing)  # noqa: SIM115
        print(self._hearing.readline().strip())  # noqa: T201

    def run(self, mutant: Mutant | None, source: str, start: int, tests: list[str]) -> str:
        path = str(COPY / mutant.path) if mutant else ""
        self._asking.write(json.dumps([path, start, source, tests]) + "\n")
        self._asking.flush()
        return self._hearing.readline().strip()


def outcome(mutant: Mutant, tests: list[str], collected: Tests) -> tuple[str, str]:
    """Run the tests on the copy with the mutant; return the result and the test that failed."""
    if not tests:
        return UNREACHED, ""
    path = COPY / mutant.path
    source = path.read_bytes()
    changed = source[: mutant.start] + mutant.after.encode() + source[mutant.end :]
    ast.parse(changed)  # a mutant must be a valid program
    start = _outermost_function(mutant)
    path.write_bytes(changed)

    def tried(tests: list[str]) -> tuple[str, str]:
        _killer().unlink(missing_ok=True)
        if start:
            found = collected.run(mutant, changed.decode(), start, tests)
        if not start or found == BROKEN:
            found = _forked(partial(_in_pytest, tests))
        return found, _killer().read_text() if _killer().exists() else ""

    try:
        found, killer = tried(tests)
        if found != KILLED or not killer:
            return found, killer
        test = killer.partition("[")[0]
        if _starts_programs(test.partition("::")[0]):  # a busy machine can cause failures
            found, _ = tried([test])
    finally:
        path.write_bytes(source)
    if found in (KILLED, ENDLESS) and test not in PASSED:
        if collected.run(None, "", 0, [test]) == SURVIVED:
            PASSED.add(test)
        else:
            FAILING.add(test)
            found = SURVIVED
    if found == SURVIVED:  # the mutant did not cause the failure: continue with later tests
        reached = next(at for at, one in enumerate(tests) if test.startswith(one))
        return (
            outcome(mutant, tests[reached + 1 :], collected)
            if tests[reached + 1 :]
            else (found, "")
        )
    return found, killer


def _killer() -> Path:
    return COPY / "killer"


def _in_pytest(tests: list[str]) -> int:
    import pytest

    class Told:
        def pytest_runtest_protocol(self, item: Any) -> bool | None:
            return True if time.process_time() > ENOUGH_SECONDS else None

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed:
                _killer().write_text(report.nodeid)

    return int(pytest.main([*PYTEST, "-x", f"--basetemp={COPY}-tmp", *tests], plugins=[Told()]))


def _log_output(name: str) -> None:
    log = os.open(COPY / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)


def _forked(function: Callable[[], int]) -> str:
    """Call a function that runs tests, in a separate process."""
    pid = os.fork()
    if pid == 0:
        code = 3
        try:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
            _log_output("last.log")
            code = function()
            sys.stdout.flush()
        except BaseException:  # noqa: BLE001 - this process must not continue in any case
            traceback.print_exc()
        finally:
            os._exit(code)
    end = time.monotonic() + WALL_SECONDS
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > end:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return ENDLESS
        time.sleep(0.01)
    code = os.waitstatus_to_exitcode(status)
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return ENDLESS
    # 2: a test module cannot be imported; negative: the process was killed by a signal
    return SURVIVED if code == 0 else KILLED if code in (1, 2) or code < 0 else BROKEN


def changes_nothing(mutant: Mutant) -> bool:
    """Whether the form of a mutant alone shows that it changes no results."""
    if mutant.rule == "arguments":  # swapped arguments of a symmetric function
        return mutant.before.startswith(("max(", "min(", "np.maximum(", "np.minimum("))
    # mypy finds assignments to fields of frozen dataclasses
    return mutant.before == "True" and "dataclass(frozen=True, eq=False)" in mutant.text


def equivalent() -> dict[Key, str]:
    """Read the reasons by mutant; each line has path, line, before, after and reason."""
    found = {}
    for line in EQUIVALENT.read_text().splitlines():
        if line and not line.startswith("#"):
            path, text, before, after, reason = line.split("\t")
            found[path, text, before, after] = reason
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("count", type=int, nargs="?", default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--again", action="store_true", help="try survivors again")
    parser.add_argument("--only", default="", help="start of the paths of mutants to try")
    parser.add_argument("--part", default="1/1", help="1/2: every second one, from the first on")
    parser.add_argument("--tests", nargs="*", default=[], help="to run instead of those chosen")
    options = parser.parse_args()
    part, n_parts = map(int, options.part.split("/"))
    known = _known()
    if options.again:
        known = {key: row for key, row in known.items() if row[0] in (KILLED, ENDLESS)}
    global COPY
    COPY = COPY if part == 1 else COPY.with_name(f"mutants-{part}")
    copy_tree(COPY)
    checked = py_compile.PycInvalidationMode.CHECKED_HASH  # so that no mutant is missed
    compileall.compile_dir(COPY, quiet=1, invalidation_mode=checked)
    os.chdir(COPY)
    sys.path[0] = str(COPY)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        if name != __name__ and name != "tests.coverage":
            del sys.modules[name]
    os.environ |= {"PYTHONPATH": str(COPY), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    _warm_up()
    collected = Tests()
    measured = (MEASURED / ".coverage").exists()
    reached: dict[str, dict[int, set[str]]] = {}
    mutants = [one for one in all_mutants(ROOT) if one.path.startswith(options.only)]
    Random(options.seed).shuffle(mutants)
    end = time.monotonic() + options.seconds
    sample = mutants[: options.count]
    print(f"{len(mutants):,} mutants, a sample of {len(sample):,}")  # noqa: T201
    tried = []
    for mutant in sample[part - 1 :: n_parts]:
        if mutant.key not in known and not changes_nothing(mutant):
            if time.monotonic() > end:
                continue
            if measured and mutant.path not in reached:
                reached[mutant.path] = tests_by_line(mutant.path)
            began = time.monotonic()
            tests = options.tests or (
                chosen_tests(mutant, reached[mutant.path]) if measured else nearest_files(mutant)
            )
            found, killer = outcome(mutant, tests, collected)
            known[mutant.key] = (found, str(mutant.line), mutant.rule)
            seconds = f"{time.monotonic() - began:.1f}"
            row = [*mutant.key, *known[mutant.key], str(len(tests)), seconds, killer]
            if known[mutant.key][0] != BROKEN:
                with RESULTS.open("a") as results:
                    results.write("\t".join(row) + "\n")
        tried.append(mutant)
    _show(tried, known)
    return 0


def _known() -> dict[Key, tuple[str, str, str]]:
    found = {}
    for line in RESULTS.read_text().splitlines() if RESULTS.exists() else []:
        path, start, before, after, result, number, rule, *_ = line.split("\t")
        found[path, start, before, after] = (result, number, rule)
    return found


def _warm_up() -> None:
    """Import libraries that the tests of every mutant need, but nothing from the package."""
    for name in ("pytest", "hypothesis", "numpy", "scipy.sparse", "scipy.stats", "threadpoolctl"):
        __import__(name)
    for name in ("sklearn.svm", "sklearn.metrics", "rich.table", "typer.main"):
        __import__(name)
    assert not any(name.startswith("resvm_cli") for name in sys.modules)


def _show(tried: list[Mutant], known: dict[Key, tuple[str, str, str]]) -> None:
    reasons = equivalent()
    by_package: dict[str, Counter[str]] = defaultdict(Counter)
    left = []
    for mutant in tried:
        same = changes_nothing(mutant) or mutant.name in reasons
        result = "equivalent" if same else known[mutant.key][0]
        result = KILLED if result == ENDLESS else result
        for package in (str(Path(mutant.path).parent), "all"):
            by_package[package][result] += 1
        if result in (SURVIVED, UNREACHED):
            left.append((mutant, result))
    columns = (KILLED, SURVIVED, UNREACHED, "equivalent", BROKEN)
    print("\t".join(["package", "tried", *columns]))  # noqa: T201
    for package in sorted(by_package, key=lambda name: (name == "all", name)):
        counts = by_package[package]
        row = [package, sum(counts.values()), *(counts[column] for column in columns)]
        print("\t".join(map(str, row)))  # noqa: T201
    for mutant, result in left:
        print(f"{result}: {mutant.path}:{mutant.line}: {mutant.before} -> {mutant.after}")  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
