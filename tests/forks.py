"""Run resvm in processes forked from one that has already imported it, to skip the start-up.

Imports take half of the time of a short run. Each program still has its own memory, descriptors,
signals and exit. It differs from ``python -m resvm_cli`` only in that it does not repeat the
imports and does not wait for the disk. Run as a script, this module is the process that forks; it
ends when the tests that started it end.
"""

from __future__ import annotations

import array
import gc
import itertools
import json
import os
import runpy
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent
LENGTH = struct.Struct("=q")
STATUS = struct.Struct("=qq")
N_DESCRIPTORS = 4  # standard input, output and error, and a pipe for the process id and exit code


class Forked:
    """A running program: its process id and, once it has ended, its exit code."""

    def __init__(self, report: int) -> None:
        self._report = report
        self.pid, _ = self._told()

    def wait(self) -> int:
        """Return the exit code; it is negative if the program was killed by a signal."""
        _, code = self._told()
        os.close(self._report)
        return code

    def _told(self) -> tuple[int, int]:
        text = os.read(self._report, STATUS.size)
        if len(text) != STATUS.size:
            raise RuntimeError("the process that forks has gone")
        pid, code = STATUS.unpack(text)
        return pid, code


class Forks:
    """A process that has imported resvm, and forks on request."""

    def __init__(self, hash_seed: int) -> None:
        ours, theirs = socket.socketpair()
        self._socket, self._one_at_a_time = ours, threading.Lock()
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forks", str(theirs.fileno())],
                cwd=ROOT,
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )

    def start(
        self,
        arguments: Sequence[str],
        environment: dict[str, str],
        folder: str | Path | None,
        streams: tuple[int, int, int],
    ) -> Forked:
        """Start ``python -m resvm_cli ARGUMENTS`` with these standard streams."""
        request = [list(arguments), environment, os.path.abspath(folder or os.getcwd())]
        text = json.dumps(request).encode()
        reading, writing = os.pipe()
        try:
            with self._one_at_a_time:
                socket.send_fds(self._socket, [LENGTH.pack(len(text))], [*streams, writing])
                self._socket.sendall(text)
        finally:
            os.close(writing)
        return Forked(reading)


_of_seed = cache(Forks)
_turns = itertools.count()


def forks() -> Forks:
    """Return the process that forks the next program.

    Two processes with different hash seeds take turns. Sets iterate in a different order in each,
    so two runs in a row do not agree by accident.
    """
    return _of_seed(1 + next(_turns) % 2)


def main() -> None:
    """Import everything, then fork on each request until the other side closes the socket."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    _import_all()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the processes in between
    while True:
        start, descriptors, _, _ = socket.recv_fds(requests, LENGTH.size, N_DESCRIPTORS)
        if not start:
            return
        text = _exactly(requests, LENGTH.unpack(start)[0])
        if os.fork() == 0:
            requests.close()
            _keep(*json.loads(text), descriptors)
            return  # the program ends as usual, including Python's shutdown
        for descriptor in descriptors:
            os.close(descriptor)


def _exactly(requests: socket.socket, length: int) -> bytes:
    text = bytearray()
    while len(text) < length:
        more = requests.recv(length - len(text))
        if not more:
            raise EOFError
        text += more
    return bytes(text)


def spare_the_disk() -> None:
    """Skip fsync, which takes milliseconds per call; no test crashes the machine.

    Other tests replace ``os.fsync`` to check which files are synced, and in which order.
    """
    os.fsync = os.fstat  # type: ignore[assignment]  # like fsync, it rejects bad descriptors


def _import_all() -> None:
    import pkgutil

    import resvm_cli
    from resvm_cli import threads as parallel

    parallel.limit_blas_threads()  # as the program does before its imports
    for name in ("numpy", "scipy.sparse", "rich.table", "typer.main"):
        import_module(name)
    for module in pkgutil.walk_packages(resvm_cli.__path__, "resvm_cli."):
        if not module.name.endswith(("__main__", ".sklearn", "cluster_worker")):
            import_module(module.name)


def _keep(
    arguments: list[str], environment: dict[str, str], folder: str, descriptors: array.array[int]
) -> None:
    """Fork again, run the program in the child, and report its exit code from the parent."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, report = descriptors
    pid = os.fork()
    if pid:
        os.write(report, STATUS.pack(pid, 0))
        for descriptor in streams:
            os.close(descriptor)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.write(report, STATUS.pack(pid, code))
        os._exit(0)
    os.setsid()
    os.close(report)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["resvm", *arguments]
    if "LD_PRELOAD" not in environment:  # make hostile: syncing fails there
        spare_the_disk()
    gc.unfreeze()
    runpy.run_module("resvm_cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
