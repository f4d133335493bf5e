"""Programs run by tests: none outlives its test, and none is waited for without an end."""

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

# Nothing here takes a tenth of this on an idle machine; a busy one must not turn a test red.
PATIENCE_SECONDS = 300.0
POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Ran:
    """How a program ended and what it said."""

    code: int
    out: bytes
    err: str


def resvm_command(*arguments: object) -> list[str]:
    """The real entry point, for a process of its own."""
    return [sys.executable, "-m", "resvm_cli", *map(str, arguments)]


def script_command(script: str, *arguments: object) -> list[str]:
    """Some lines of Python, for a process of their own."""
    return [sys.executable, "-c", script, *map(str, arguments)]


@contextmanager
def started(
    command: Sequence[str | Path], *, patience: float = PATIENCE_SECONDS, **more: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A running program, waited for at the end.

    It is killed, with all that it has started, when the test fails meanwhile or patience ends. A
    read or a write that waits for it then returns, so that the test fails and does not hang.
    """
    late = threading.Event()
    with subprocess.Popen(command, start_new_session=True, **more) as running:

        def give_up() -> None:
            late.set()
            kill_group(running)

        watch = threading.Timer(patience, give_up)
        watch.daemon = True
        watch.start()
        try:
            yield running
            if running.stdin is not None:
                with suppress(BrokenPipeError):  # it has gone and needs no more
                    running.stdin.close()
            running.wait()
        except BaseException:
            kill_group(running)
            if late.is_set():
                raise TimeoutError(f"killed after {patience:g} s: {command}") from None
            raise
        finally:
            watch.cancel()
    if late.is_set():
        raise TimeoutError(f"killed after {patience:g} s: {command}")


def kill_group(running: subprocess.Popen[bytes]) -> None:
    """End a program and all that it has started."""
    with suppress(ProcessLookupError):  # all have gone
        os.killpg(running.pid, signal.SIGKILL)


def run(
    command: Sequence[str | Path],
    *,
    stdin: bytes | None = None,
    env: dict[str, str] | None = None,
    patience: float = PATIENCE_SECONDS,
    **more: Any,
) -> Ran:
    """Run a program to its end; ``env`` is added to the environment."""
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
    """Run the real entry point to its end, in a process of its own."""
    plain = {"COLUMNS": "100", "NO_COLOR": "1"}
    return run(resvm_command(*arguments), env={**plain, **(env or {})}, **more)


def start_resvm(*arguments: object, **more: Any) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """The real entry point, running, with pipes to write to and read from."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return started(resvm_command(*arguments), **{**pipes, **more})


def until(condition: Callable[[], object], patience: float = PATIENCE_SECONDS) -> None:
    """Wait for something to come true."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited for {patience:g} s")
        time.sleep(POLL_SECONDS)
