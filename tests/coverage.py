"""``make coverage``: branch coverage of the package and of its C code.

The tests run in a copy of the tree, so that instrumented extensions never replace the real ones.
Programs that tests start are also measured, except those killed by a signal. C code is measured in
the test process itself and in the fuzz targets. For ``tests/mutants.py``, each line is recorded
with the tests that reach it; this is why the module is also a pytest plugin.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent
COPY = ROOT / "build" / "coverage"
REPORT = ROOT / "build" / "coverage.json"
TREE = ("resvm_cli", "tests", "docs", "perf", "studies", "sample_data", "packaging", ".github")
FILES = ("setup.py", "pyproject.toml", "README.md", "Makefile", "CHANGELOG.md", "MANIFEST.in")
FILES += ("Dockerfile", "LICENSE", "CITATION.cff", "CONTRIBUTING.md", ".gitignore")
# Tests that fail under coverage, which imports html and cannot write its data to a full disk.
DISTURBED = (
    "tests/test_cli.py::test_a_command_imports_only_what_it_uses",
    "tests/commands/test_tune_resuming.py::test_a_tuning_on_a_full_disk_is_a_writing_error",
)
TEST = "RESVM_TEST"  # the name of the running test, for programs that it starts
SETTINGS = """\
[run]
branch = true
parallel = true
source = resvm_cli
patch = fork, _exit
context = {test}
data_file = {folder}/.coverage
disable_warnings = no-data-collected, module-not-measured, couldnt-parse
[report]
exclude_also =
    if TYPE_CHECKING:
    @overload
    \\.\\.\\.$
"""


def copy_tree(to: Path) -> None:
    """Copy the sources, the tests and the compiled extensions."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    ignored = shutil.ignore_patterns("__pycache__", "cases")
    for name in TREE:
        shutil.copytree(ROOT / name, to / name, ignore=ignored, symlinks=True)
    shutil.copytree(ROOT / "tests/hostile/cases", to / "tests/hostile/cases")
    for name in FILES:
        shutil.copy2(ROOT / name, to / name)


def environment(folder: Path) -> dict[str, str]:
    """Return environment variables with which Python imports the copy of the package."""
    return {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


def instrument(folder: Path) -> None:
    """Rebuild the extensions of a copy so that they count branches."""
    include = sysconfig.get_path("include")
    flags = ["-std=c11", "-O1", "-ffp-contract=off", "-fPIC", f"-I{include}"]
    counters = folder / "counters"  # not in the package, all of whose files are shipped
    counters.mkdir()
    for built in folder.glob("resvm_cli/*/*.so"):
        name = built.name.partition(".")[0]
        source, compiled = f"resvm_cli/{built.parent.name}/{name}.c", counters / f"{name}.o"
        abi = ["-DPy_LIMITED_API=0x030B0000"] if ".abi3." in built.name else []
        built.unlink()
        command = ["gcc", "--coverage", "-fprofile-update=atomic", *flags]
        subprocess.run([*command, *abi, "-c", "-o", compiled, source], cwd=folder, check=True)
        subprocess.run([*command, "-shared", "-o", built, compiled], cwd=folder, check=True)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Attribute what follows to this test, without distinguishing its parameters."""
    os.environ[TEST] = nodeid.partition("[")[0]
    follow_test()


def follow_test() -> None:
    """Attribute what this process does next to the test named in the environment."""
    from coverage import Coverage

    measuring = Coverage.current()
    if measuring is not None and TEST in os.environ:
        measuring.switch_context(os.environ[TEST])


def main(arguments: list[str]) -> int:
    import coverage

    copy_tree(COPY)
    instrument(COPY)
    settings = COPY / ".coveragerc"
    settings.write_text(SETTINGS.format(folder=COPY, test=f"${{{TEST}-}}"))
    left_out = [f"--deselect={test}" for test in DISTURBED]
    command = [sys.executable, "-m", "pytest", "-p", "tests.coverage", *left_out, *arguments]
    variables = {**environment(COPY), "COVERAGE_PROCESS_START": str(settings)}
    code = subprocess.run(command, cwd=COPY, env=variables).returncode
    os.chdir(COPY)
    measured = coverage.Coverage(config_file=str(settings))
    measured.combine([str(COPY)])
    measured.save()
    measured.json_report(outfile=str(REPORT))
    show("Python", python_branches(REPORT))
    show("C, tests", c_branches(COPY))
    run_fuzz_targets(COPY)
    show("C, tests and fuzz targets", c_branches(COPY))
    return code


def run_fuzz_targets(folder: Path, seconds: int = 5) -> None:
    """Run each fuzz target on its corpus and on mutations of it, counting branches."""
    for target in sorted(folder.glob("tests/fuzz/fuzz_*.c")):
        program, corpus = target.with_suffix(""), target.stem.removeprefix("fuzz_")
        sources = [target.relative_to(folder), "tests/fuzz/driver.c"]
        flags = ["--coverage", "-std=c11", "-O1", "-ffp-contract=off"]
        command = ["gcc", *flags, "-o", program, *sources, "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        command = [program, str(seconds), f"tests/fuzz/corpus/{corpus}"]
        subprocess.run(command, cwd=folder, check=True)


def python_branches(report: Path) -> dict[str, tuple[int, int, int, int]]:
    """Return for each module: statements, statements run, branches, branches taken."""
    files = json.loads(report.read_text())["files"]
    found = {}
    for name, file in files.items():
        sums = file["summary"]
        met = sums["covered_lines"], sums["covered_branches"]
        found[name] = (sums["num_statements"], met[0], sums["num_branches"], met[1])
    return found


def c_branches(folder: Path) -> dict[str, tuple[int, int, int, int]]:
    """Return the same numbers for each C file, computed by gcov from the counters."""
    objects = [str(path) for path in folder.rglob("*.gcda")]
    ran = subprocess.run(
        ["gcov", "--branch-probabilities", "--json-format", "--stdout", *objects],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    lines: dict[str, dict[int, bool]] = defaultdict(dict)
    branches: dict[str, dict[tuple[int, int], bool]] = defaultdict(dict)
    for text in ran.stdout.splitlines():
        for file in json.loads(text)["files"]:
            name = os.path.normpath(folder / file["file"]).removeprefix(f"{folder}/")
            name = name.removeprefix("tests/fuzz/../../")
            if not name.startswith("resvm_cli"):
                continue
            for line in file["lines"]:
                number, met = line["line_number"], line["count"] > 0
                lines[name][number] = lines[name].get(number, False) or met
                for at, branch in enumerate(line["branches"]):
                    met = branch["count"] > 0
                    branches[name][number, at] = branches[name].get((number, at), False) or met
    return {
        name: (
            len(lines[name]),
            sum(lines[name].values()),
            len(branches[name]),
            sum(branches[name].values()),
        )
        for name in lines
    }


def show(title: str, counts: dict[str, tuple[int, int, int, int]]) -> None:
    """Print a table with one line per package and a total."""
    packages: dict[str, list[tuple[int, int, int, int]]] = defaultdict(list)
    for name, count in counts.items():
        packages[name if title.startswith("C") else str(Path(name).parent)].append(count)
    print(f"{title:<28}{'lines':>8}{'met':>8}{'branches':>10}{'met':>8}")  # noqa: T201
    for package in sorted(packages):
        print(_line(package, packages[package]))  # noqa: T201
    print(_line("all", counts.values()))  # noqa: T201


def _line(name: str, counts: Iterable[tuple[int, int, int, int]]) -> str:
    lines, lines_met, branches, met = (sum(column) for column in zip(*counts, strict=True))
    share, branch_share = lines_met / max(lines, 1), met / max(branches, 1)
    return f"{name:<28}{lines:>8,}{share:>8.1%}{branches:>10,}{branch_share:>8.1%}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
