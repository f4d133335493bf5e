"""Programs run by tests: none outlives its test, and none is waited for without an end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forks import forks

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


def resvm_signaled_at(function: str, number: signal.Signals, *arguments: object) -> list[str]:
    """A resvm that sends itself a signal right after its first call of a function of ``os``."""
    script = (
        "import os, signal, sys\n"
        f"real = os.{function}\n"
        "def fatal(*arguments, **more):\n"
        f"    os.{function} = real\n"
        "    result = real(*arguments, **more)\n"
        f"    os.kill(os.getpid(), signal.{number.name})\n"
        "    return result\n"
        f"def armed(): os.{function} = fatal\n"
        "from resvm_cli import cli; cli_main = cli.main\n"
        "cli.main = lambda: (armed(), cli_main())\n"
        "sys.argv[0] = 'resvm'; cli.program()\n"
    )
    return script_command(script, *arguments)


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
            kill_group(running.pid)

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
            kill_group(running.pid)
            if late.is_set():
                raise TimeoutError(f"killed after {patience:g} s: {command}") from None
            raise
        finally:
            watch.cancel()
    if late.is_set():
        raise TimeoutError(f"killed after {patience:g} s: {command}")


def kill_group(leader: int) -> None:
    """End a program and all that it has started."""
    with suppress(ProcessLookupError):  # all have gone
        os.killpg(leader, signal.SIGKILL)


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
    """Run the real entry point to its end, in a process of its own.

    It is a fork of one that has the imports behind it, unless it is to start in a way of its own.
    """
    plain = {"COLUMNS": "100", "NO_COLOR": "1"}
    if env is None and more.keys() <= {"cwd", "stdin", "patience"}:
        return _run_forked([*map(str, arguments)], {**os.environ, **plain}, **more)
    return run(resvm_command(*arguments), env={**plain, **(env or {})}, **more)


def _run_forked(
    arguments: list[str],
    environment: dict[str, str],
    *,
    cwd: str | Path | None = None,
    stdin: bytes | None = None,
    patience: float = PATIENCE_SECONDS,
) -> Ran:
    said: dict[str, bytes] = {}

    def read(name: str, stream: int) -> None:
        with open(stream, "rb") as reading:
            said[name] = reading.read()

    def write(stream: int) -> None:
        # it may have gone and need no more
        with suppress(BrokenPipeError), open(stream, "wb") as writing:
            writing.write(stdin or b"")

    (given, giving), (hearing_out, out), (hearing_err, err) = (os.pipe() for _ in range(3))
    try:
        program = forks(arguments).start(arguments, environment, cwd, (given, out, err))
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
        raise TimeoutError(f"killed after {patience:g} s: resvm {' '.join(arguments)}")
    return Ran(code, said["out"], said["err"].decode())


# A program that hands its streams over and ends as the fork does: a tenth of resvm's own start-up.
CLIENT = """\
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
request = json.dumps([sys.argv[2:], dict(os.environ), os.getcwd()]).encode()
socket.send_fds(server, [b"%16d" % len(request)], [0, 1, 2])
server.sendall(request)
os._exit(int(server.recv(16)))
"""


@contextmanager
def resvm_on_the_path() -> Iterator[str]:
    """A PATH whose ``resvm`` is a fork, for scripts."""
    with (
        tempfile.TemporaryDirectory() as folder,  # the name of a socket must be short
        socket.socket(socket.AF_UNIX) as listening,
    ):
        listening.bind(f"{folder}/forks")
        listening.listen(64)
        client, program = Path(folder, "client.py"), Path(folder, "bin", "resvm")
        client.write_text(CLIENT)
        program.parent.mkdir()
        start = f'exec "{sys.executable}" -I -S "{client}" "{folder}/forks" "$@"'
        program.write_text(f"#!/bin/sh\n{start}\n")
        program.chmod(0o755)
        threading.Thread(target=_answer_all, args=(listening,), daemon=True).start()
        try:
            yield f"{program.parent}:{os.environ['PATH']}"
        finally:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)  # whoever waits there returns


def _answer_all(listening: socket.socket) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    """Run the program that is asked for; it is killed when whoever asked has gone."""
    ended = threading.Event()

    def watch(leader: int) -> None:
        with suppress(OSError):
            connection.recv(1)  # nothing more is said: it returns when they have gone
        if not ended.is_set():
            kill_group(leader)

    length, streams, _, _ = socket.recv_fds(connection, 16, 3)
    try:
        with connection.makefile("rb") as reading:
            arguments, environment, folder = json.loads(reading.read(int(length)))
        given, out, err = streams
        running = forks(arguments).start(arguments, environment, folder, (given, out, err))
    finally:
        for stream in streams:
            os.close(stream)
    threading.Thread(target=watch, args=(running.pid,), daemon=True).start()
    code = running.wait()
    ended.set()
    with suppress(OSError):
        connection.sendall(b"%d" % (code if code >= 0 else 128 - code))
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


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
