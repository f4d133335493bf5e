"""Batches of tasks: how tasks are split, run by a Dask worker, and put back in order."""

from __future__ import annotations

import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import replace
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np

from resvm_cli import __version__
from resvm_cli.model.ensemble import numeric_fingerprint
from resvm_cli.records import dataclass
from resvm_cli.running import parallel
from resvm_cli.svm.libsvm import package_version

FINGERPRINT = "numeric_fingerprint"
BATCH_SECONDS = 1.0  # work per batch; scheduling a batch takes milliseconds
AHEAD = 2  # batches per worker thread: one running, one waiting
MAX_LOST = 3  # a batch lost this many times is rerun task by task, then abandoned


class Shared:
    """Data that all tasks of a run share, sent once.

    Dask sends arrays separately from the object that contains them, and may place them at unaligned
    addresses, but the solvers need aligned arrays. Pickling everything into one byte string makes
    unpickling copy the arrays to aligned addresses.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (import_module("distributed.protocol.pickle").dumps(self.value),)


def _restored(text: bytes) -> Shared:
    return Shared(import_module("distributed.protocol.pickle").loads(text))


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive tasks that are sent together."""

    first: int  # index among all tasks
    tasks: list[Any]
    alone: bool = False  # nothing else may run on the cluster at the same time
    n_lost: int = 0  # how often its worker was lost


@dataclass(frozen=True, eq=False)
class BatchResult:
    """The results of a batch in the order of its tasks, its worker, and the time it took.

    An error is part of the answer: if it were raised, Dask would keep its traceback, and with
    it the rows in the worker's memory, after the run.
    """

    results: list[Any]
    worker: str
    seconds: float
    error: Exception | None = None
    traceback: str = ""


class Batches:
    """Splits tasks into batches and puts the results back in order.

    When a worker dies, every batch it had is lost, not only the one that killed it. A batch that is
    lost MAX_LOST times is therefore split into tasks that run alone, to find the one at fault.
    """

    def __init__(self, tasks: Iterable[Any]) -> None:
        self._tasks = iter(tasks)
        self._n_tasks = len(tasks) if isinstance(tasks, Sized) else None
        self._n_taken = self._n_given = self._n_timed = 0
        self._seconds = 0.0
        self._again: deque[Batch] = deque()
        self._suspects: deque[Batch] = deque()
        self._results: dict[int, Any] = {}

    def next(self, n_running: int, n_threads: int) -> Batch | None:
        """Return the next batch to submit, or None if enough batches are running."""
        if self._suspects:
            return None if n_running else self._suspects.popleft()
        if n_running >= AHEAD * n_threads:
            return None
        if self._again:
            return self._again.popleft()
        tasks = list(islice(self._tasks, self._length(AHEAD * n_threads)))
        first = self._n_taken
        self._n_taken += len(tasks)
        return Batch(first, tasks) if tasks else None

    def _length(self, n_batches: int) -> int:
        """Return how many tasks take about a second; fewer near the end, so no worker idles."""
        if not self._n_timed:
            return 1
        length = int(BATCH_SECONDS * self._n_timed / max(self._seconds, 1e-9))
        if self._n_tasks is not None:
            length = min(length, (self._n_tasks - self._n_taken) // n_batches + 1)
        return max(1, length)

    def lost(self, batch: Batch, n_times: int = 1) -> bool:
        """Reschedule a batch that was lost with its worker; return False if lost too often."""
        batch = replace(batch, n_lost=batch.n_lost + n_times)
        if batch.n_lost < MAX_LOST:
            (self._suspects if batch.alone else self._again).appendleft(batch)
        elif batch.alone:
            return False
        else:
            for index, task in enumerate(batch.tasks, batch.first):
                self._suspects.append(Batch(index, [task], alone=True))
        return True

    def done(self, batch: Batch, answer: BatchResult) -> None:
        self._results.update(enumerate(answer.results, batch.first))
        self._seconds += answer.seconds
        self._n_timed += len(answer.results)

    def ready(self) -> Iterator[Any]:
        """Yield the results that are next in order."""
        while self._n_given in self._results:
            yield self._results.pop(self._n_given)
            self._n_given += 1


def identity() -> dict[str, str]:
    """Return the versions that results depend on, and how the processor rounds."""
    return {
        "resvm": __version__,
        "numpy": np.__version__,
        "libsvm": package_version("libsvm"),
        "liblinear": package_version("liblinear"),
        FINGERPRINT: numeric_fingerprint(),
    }


def work(function: Callable[[Any, Any], Any], shared: Shared, batch: Batch) -> BatchResult:
    worker = import_module("distributed").get_worker().address
    started = time.perf_counter()
    try:
        with parallel.inner_threads_held():
            results = [function(shared.value, task) for task in batch.tasks]
    except Exception as error:  # noqa: BLE001 - raised again by the command
        text = "".join(traceback.format_exception(error))
        error.__cause__ = error.__context__ = None  # they have tracebacks too
        return BatchResult([], worker, 0.0, error.with_traceback(None), text)
    return BatchResult(results, worker, time.perf_counter() - started)
