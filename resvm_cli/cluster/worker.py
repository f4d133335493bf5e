"""What runs on the workers of a Dask cluster: batches of tasks, with what they share at hand.

A worker's process holds what tasks share: read from a path where it sees the same bytes there, else
as it was sent. A worker that lacks it says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from resvm_cli import __version__
from resvm_cli.errors import ResvmError
from resvm_cli.files.row_files import read_rows
from resvm_cli.model.ensemble import numeric_fingerprint
from resvm_cli.rows import Rows
from resvm_cli.running import parallel
from resvm_cli.svm.solver_libraries import package_version

HELD_SECONDS = 20.0  # a worker waits so long for what it has not been sent
MOST_HELD = 2  # shared objects that a worker keeps
FINGERPRINT = "numeric_fingerprint"
PROCESS = "process"  # by this number its nanny tells how it ended
OF_THE_WORKER = (FINGERPRINT, PROCESS)  # may differ from worker to worker


class Reference(Protocol):
    """What tasks share, by where it lies."""

    def load(self) -> Any:
        """The object itself; ResvmError where it does not lie there, or is another."""


@dataclass(frozen=True)
class RowsFile:
    """An object whose rows lie in a file."""

    without_rows: Any
    path: str
    digest: str

    def load(self) -> Any:
        parts: list[Rows] = read_rows(self.path, self.digest)
        return self.without_rows.with_rows(parts)


@dataclass(frozen=True)
class NotHeld:
    """A worker's answer where it lacks what the tasks share."""

    worker: str


@dataclass(frozen=True)
class Answer:
    """The results of a batch, or the error of one of its tasks."""

    results: list[Any]
    error: ResvmError | None
    seconds: float


# What a worker's process holds: the objects that tasks share, and its own limit on BLAS threads.
_held: dict[str, Any] = {}


def identity() -> dict[str, str]:
    """The versions of a worker, how its processor rounds, and the number of its process."""
    return {
        "resvm": __version__,
        "numpy": np.__version__,
        "libsvm": package_version("libsvm"),
        "liblinear": package_version("liblinear"),
        FINGERPRINT: numeric_fingerprint(),
        PROCESS: str(os.getpid()),
    }


def hold(key: str, shared: Any) -> bool:
    """Keep what tasks share, and BLAS on one thread: its rounding must not depend on the worker."""
    _held.setdefault("", parallel.inner_threads_held())  # holds them as long as it is kept
    others = [held for held in _held if held]
    for old in others[: len(others) - MOST_HELD + 1]:
        _held.pop(old, None)
    _held[key] = shared
    return True


def hold_referred(key: str, reference: Reference) -> bool:
    """Keep what lies at a path; tells whether it does, with the same digest."""
    try:
        return hold(key, reference.load())
    except (ResvmError, OSError):
        return False


def work(key: str, function: Callable[[Any, Any], Any], batch: list[Any]) -> NotHeld | Answer:
    """A batch of tasks, on a worker."""
    # a new worker waits here, so that Dask counts how often a task was the end of one
    end = time.monotonic() + HELD_SECONDS
    while key not in _held and time.monotonic() < end:
        time.sleep(0.05)
    shared = _held.get(key)
    if shared is None:
        return NotHeld(import_module("distributed").get_worker().address)
    started = time.perf_counter()
    results = []
    error = None
    for task in batch:
        try:
            results.append(function(shared, task))
        except ResvmError as failed:
            error = failed
            break
    return Answer(results, error, time.perf_counter() - started)


def deaths(keys: list[str], dask_scheduler: Any = None) -> dict[str, int]:
    """On the scheduler: how many workers were lost with each of these tasks."""
    tasks = dask_scheduler.tasks
    return {key: tasks[key].suspicious for key in keys if key in tasks}
