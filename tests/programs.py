"""Run programs in tests: no program outlives its test, and every wait has a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forks import forks

# On an idle machine, no test needs a tenth of this; tests must not fail because it is busy.
PATIENCE_SECONDS = 300.0
POLL_SECONDS = 0.01
# for scripts: with the resvm of this environment
SCRIPT_PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


@dataclass(frozen=True)
class Ran:
    """The exit code and the output of a program."""

    code: int
    out: bytes
    err: str


def resvm_command(*arguments: object) -> list[str]:
    """Return a command that runs the real entry point."""
    return [sys.executable, "-m", "resvm_cli", *map(str, arguments)]


def script_command(script: str, *arguments: object) -> list[str]:
    """Return a command that runs some lines of Python."""
    return [sys.executable, "-c", script, *map(str, arguments)]


def resvm_signaled_at(function: str, number: signal.Signals, *arguments: object) -> list[str]:
    """Return a resvm command that signals itself after its first call of this ``os`` function."""
    script = (
        "import os, signal, sys\n"
        f"real = os.{function}\n"
        "def fatal(*arguments, **more):\n"
        f"    os.{function} = real\n"
        "    result = real(*arguments, **more)\n"
        f"    os.kill(os.getpid(), signal.{number.name})\n"
        "    return result\n"
        f"def armed(): os.{function} = fatal\n"
        "from resvm_cli.cli import app as cli; cli_main = cli.main\n"
        "cli.main = lambda: (armed(), cli_main())\n"
        "sys.argv[0] = 'resvm'; cli.program()\n"
    )
    return script_command(script, *arguments)


@contextmanager
def started(
    command: Sequence[str | Path], *, patience: float = PATIENCE_SECONDS, **more: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program, and wait for it at the end of the block.

    The program and everything it has started are killed if the test fails first or after
    ``patience`` seconds. Reads and writes that wait for the program then return, so the test
    fails instead of hanging.
    """
    late = threading.Event()
    with subprocess.Popen(command, start_new_session=True, **more) as running:

        def give_up() -> None:
            late.set()
            kill_group(running.pid)

        watch = threading.Timer(patience, give_up)
        watch.daemon = True
        watch.start()
        try:
            yield running
            if running.stdin is not None:
                with suppress(BrokenPipeError):  # it has ended and reads no more
                    running.stdin.close()
            running.wait()
        except BaseException:
            kill_group(running.pid)
            if late.is_set():
                raise TimeoutError(f"killed after {patience:g} s: {command}") from None
            raise
        finally:
            watch.cancel()
    if late.is_set():
        raise TimeoutError(f"killed after {patience:g} s: {command}")


def kill_group(leader: int) -> None:
    """Kill a program and everything it has started."""
    with suppress(ProcessLookupError):  # all have ended
        os.killpg(leader, signal.SIGKILL)


def run(
    command: Sequence[str | Path],
    *,
    stdin: bytes | None = None,
    env: dict[str, str] | None = None,
    patience: float = PATIENCE_SECONDS,
    **more: Any,
) -> Ran:
    """Run a program and wait for its end; ``env`` is added to the environment."""
    with started(
        command,
        patience=patience,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(env or {})},
        **more,
    ) as running:
        out, err = running.communicate(stdin)
    return Ran(running.returncode, out, err.decode())


def run_resvm(*arguments: object, env: dict[str, str] | None = None, **more: Any) -> Ran:
    """Run the real entry point in its own process and wait for its end.

    The process is forked from one that has already done the imports, unless the arguments require
    it to be started differently.
    """
    plain = {"COLUMNS": "100", "NO_COLOR": "1"}
    if env is None and more.keys() <= {"cwd", "stdin", "patience"}:
        return run_forked(*arguments, env=plain, **more)
    return run(resvm_command(*arguments), env={**plain, **(env or {})}, **more)


def run_forked(
    *arguments: object,
    env: dict[str, str],
    cwd: str | Path | None = None,
    stdin: bytes | None = None,
    patience: float = PATIENCE_SECONDS,
) -> Ran:
    """Run resvm in a fork of a process that has imported it; ``env`` comes after the imports."""
    words = [*map(str, arguments)]
    said: dict[str, bytes] = {}

    def read(name: str, stream: int) -> None:
        with open(stream, "rb") as reading:
            said[name] = reading.read()

    def write(stream: int) -> None:
        # the program may end before it has read everything
        with suppress(BrokenPipeError), open(stream, "wb") as writing:
            writing.write(stdin or b"")

    (given, giving), (hearing_out, out), (hearing_err, err) = (os.pipe() for _ in range(3))
    try:
        program = forks().start(words, {**os.environ, **env}, cwd, (given, out, err))
    finally:
        for stream in (given, out, err):
            os.close(stream)
    ends = [("out", hearing_out), ("err", hearing_err)]
    threads = [threading.Thread(target=read, args=end, daemon=True) for end in ends]
    threads.append(threading.Thread(target=write, args=(giving,), daemon=True))
    late = threading.Event()

    def give_up() -> None:
        late.set()
        kill_group(program.pid)

    watch = threading.Timer(patience, give_up)
    watch.daemon = True
    watch.start()
    try:
        for thread in threads:
            thread.start()
        code = program.wait()
        for thread in threads:
            thread.join()
    except BaseException:
        kill_group(program.pid)
        raise
    finally:
        watch.cancel()
    if late.is_set():
        raise TimeoutError(f"killed after {patience:g} s: resvm {' '.join(words)}")
    return Ran(code, said["out"], said["err"].decode("utf-8", "replace"))


def start_resvm(*arguments: object, **more: Any) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """Start the real entry point, with pipes for its standard streams."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return started(resvm_command(*arguments), **{**pipes, **more})


def until(condition: Callable[[], object], patience: float = PATIENCE_SECONDS) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited for {patience:g} s")
        time.sleep(POLL_SECONDS)
