"""``make leaks``: train and predict under Valgrind, with 10, 50 and 200 members.

Memory leaks in the solvers or in our C code must not grow with the number of members, and this code
must not read or write out of bounds. Leaks in Python and in other libraries do not count. One
process does the imports and forks for each command: under Valgrind, imports take longer than
training.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from tests.programs import run

SIZES = (10, 50, 200)
SOLVERS = {"libsvm": ["-t", "rbf"], "liblinear": ["-t", "linear", "--solver", "liblinear"]}
OURS = ("/_svmlight.", "/_numbers.", "/_blocks.", "/libsvm/clib.", "/liblinear/clib.")
LOST = "Leak_DefinitelyLost"
PATIENCE_SECONDS = 3600.0
OPTIONS = ["--leak-check=full", "--show-leak-kinds=definite", "--num-callers=40", "--xml=yes"]
NAMES = "names"  # a file with the process id, command, solver and size of each run


def main() -> int:
    if shutil.which("valgrind") is None:
        print("leaks: valgrind is not installed")  # noqa: T201
        return 2
    folder = Path(tempfile.mkdtemp(prefix="resvm-leaks-"))
    try:
        _write_rows(folder)
        command = ["valgrind", *OPTIONS, f"--xml-file={folder}/%p.xml", sys.executable, "-m"]
        ran = run(
            [*command, "tests.leaks", str(folder)],
            env={"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"},
            patience=PATIENCE_SECONDS,
        )
        if ran.code != 0:
            print(f"leaks: exit {ran.code}: {ran.err[-2000:]}")  # noqa: T201
            return 1
        return _report(folder)
    finally:
        shutil.rmtree(folder)


def _write_rows(folder: Path) -> None:
    from random import Random

    rng = Random(5)
    for name, middle, n_rows in (("pos", 1.0, 30), ("unl", 0.0, 60), ("test", 0.5, 40)):
        rows = [[rng.gauss(middle, 1.0) for _ in range(5)] for _ in range(n_rows)]
        lines = (" ".join(f"{at}:{value:.6g}" for at, value in enumerate(row, 1)) for row in rows)
        (folder / name).write_text("".join(f"0 {line}\n" for line in lines))


def run_commands(folder: Path) -> None:
    """Train and predict with each number of members, each time in a new process."""
    from resvm_cli import cli
    from resvm_cli.running import parallel
    from resvm_cli.training import train  # noqa: F401

    parallel.hold_inner_threads()
    cli.app_of(cli.COMMANDS)
    sets = ["-P", folder / "pos", "-U", folder / "unl", "-q", "-j", 1]
    with open(folder / NAMES, "w") as names:
        for solver, options in SOLVERS.items():
            for size in SIZES:
                model = folder / f"{solver}-{size}"
                train_it = ["train", *sets, *options, "--n-models", size, "-o", model]
                predict_it = ["predict", model, folder / "test", "-q", "-o", f"{model}.out"]
                for arguments in (train_it, predict_it):
                    number = _forked(list(map(str, arguments)))
                    names.write(f"{number} {arguments[0]} {solver} {size}\n")


def _forked(arguments: list[str]) -> int:
    from resvm_cli import cli

    number = os.fork()
    if number == 0:
        sys.argv = ["resvm", *arguments]
        cli.program()
    _, status = os.waitpid(number, 0)
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        raise SystemExit(f"exit {code}: resvm {' '.join(arguments)}")
    return number


def _report(folder: Path) -> int:
    lost: dict[tuple[str, str], list[int]] = defaultdict(list)
    wrong: list[str] = []
    for line in (folder / NAMES).read_text().splitlines():
        number, command, solver, size = line.split()
        n_bytes = 0
        for kind, n_lost, place in own_errors(folder / f"{number}.xml"):
            n_bytes += n_lost
            if kind != LOST:
                wrong.append(f"{command}, {solver}, {size} members: {kind} in {place}")
        lost[command, solver].append(n_bytes)
    grown = False
    for (command, solver), sizes in lost.items():
        shown = ", ".join(f"{n:,} at {size}" for n, size in zip(sizes, SIZES, strict=True))
        print(f"{command:>8}  {solver:<9}  bytes lost, by members: {shown}")  # noqa: T201
        grown |= max(sizes) > sizes[0]
    for fault in wrong:
        print(fault)  # noqa: T201
    print("leaks: " + ("memory is lost or misused" if grown or wrong else "none that grows"))  # noqa: T201
    return 1 if grown or wrong else 0


def own_errors(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield kind, bytes lost and function of each error in our code or the solvers."""
    for error in ElementTree.parse(path).getroot().iter("error"):
        frames = [
            frame
            for frame in error.findall("stack/frame")
            if any(name in frame.findtext("obj", "") for name in OURS)
        ]
        if frames:
            n_lost = int(error.findtext("xwhat/leakedbytes", "0"))
            yield error.findtext("kind", ""), n_lost, frames[0].findtext("fn", "?")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_commands(Path(sys.argv[1]))
    else:
        sys.exit(main())
