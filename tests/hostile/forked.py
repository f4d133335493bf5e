"""The real command line in a process of its own that has its imports behind it already."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
from contextlib import suppress

from tests.programs import Ran

PATIENCE_SECONDS = 60  # of computing; then it is killed, and counts as hanging
WAITING_SECONDS = 600  # the machine may be busy
MOST_MEMORY = 4 << 30


def warm_up() -> None:
    """Import what commands import; no thread may run before the first fork."""
    from resvm_cli import cli
    from resvm_cli.running import parallel

    parallel.hold_inner_threads()
    cli.app_of(cli.COMMANDS)
    for name in (
        "benchmark.report", "benchmark.run", "commands.convert",
        "commands.predict.predict", "commands.rank.rank",
        "commands.score.score", "tables.features", "training.train", "tuning.trials",
    ):  # fmt: skip
        __import__(f"resvm_cli.{name}")
    __import__("scipy.sparse")
    __import__("scipy.stats")  # half a second of every report


def resvm(*arguments: object, env: dict[str, str] | None = None) -> Ran:
    """Run resvm to its end; a code below 0 is the signal that ended it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        number = os.fork()
        if number == 0:
            _be_resvm(list(map(str, arguments)), env or {}, out.fileno(), err.fileno())
        _, status = os.waitpid(number, 0)
        out.seek(0)
        err.seek(0)
        code = os.waitstatus_to_exitcode(status)
        return Ran(code, out.read(), err.read().decode("utf-8", "replace"))


def _be_resvm(arguments: list[str], env: dict[str, str], out: int, err: int) -> None:
    try:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE_SECONDS, PATIENCE_SECONDS))
        signal.alarm(WAITING_SECONDS)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdin, sys.stderr = open(0), open(2, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
        sys.argv = ["resvm", *arguments]
        os.environ.update({"COLUMNS": "100", "NO_COLOR": "1", **env})
        from resvm_cli import cli

        cli.program()
    finally:
        os._exit(99)  # never reached: program() leaves
