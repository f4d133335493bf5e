"""A real Dask scheduler and workers on loopback, which tests can use and stop."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.programs import PATIENCE_SECONDS, started, until


def dask(*arguments: object) -> list[str]:
    return [
        sys.executable,
        "-m",
        "distributed.cli.dask_" + str(arguments[0]),
        *map(str, arguments[1:]),
    ]


class LoopbackCluster:
    """A scheduler and its workers; each is a process that a test may kill."""

    def __init__(self, stack: ExitStack, folder: Path, n_workers: int, patience: float) -> None:
        self._stack, self.folder, self._patience = stack, folder, patience
        self.file = folder / "scheduler.json"
        self.scheduler = self._start(
            *("scheduler", "--host", "127.0.0.1", "--port", 0, "--no-dashboard", "--no-show"),
            *("--scheduler-file", self.file),
        )
        until(self._address)
        self.workers = [self.add_worker() for _ in range(n_workers)]

    def _start(self, *arguments: object) -> Any:
        path = self.folder / f"log-{time.monotonic_ns()}"
        log = self._stack.enter_context(path.open("wb"))
        output = {"stdout": log, "stderr": log, "cwd": self.folder}
        running = started(dask(*arguments), patience=self._patience, **output)
        process = self._stack.enter_context(running)
        self._stack.callback(lambda: process.poll() is None and os.killpg(process.pid, 9))
        return process

    def _address(self) -> str | None:
        try:
            return str(json.loads(self.file.read_text())["address"])
        except (OSError, ValueError):
            return None

    @property
    def address(self) -> str:
        return self._address() or ""

    def add_worker(self, *more: object) -> Any:
        return self._start(
            *("worker", self.address, "--host", "127.0.0.1", "--nthreads", 1, "--no-dashboard"),
            *("--local-directory", self.folder, *more),
        )


@contextmanager
def loopback_cluster(
    folder: Path, n_workers: int, patience: float = PATIENCE_SECONDS
) -> Iterator[LoopbackCluster]:
    """Start a cluster that is stopped when its test ends."""
    with ExitStack() as stack:
        yield LoopbackCluster(stack, folder, n_workers, patience)
