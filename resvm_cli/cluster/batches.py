"""Tasks in batches of about a second each, and their results in task order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sized
from dataclasses import replace
from itertools import islice
from typing import Any

from resvm_cli.cluster.worker import Batch, BatchResult

BATCH_SECONDS = 1.0  # of work: scheduling a batch takes milliseconds
AHEAD = 2  # batches per worker thread: one running, one waiting
MAX_LOST = 3  # a batch that is lost more often is run task by task, and then given up


class Batches:
    """Cuts tasks into batches and puts results back in order.

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
        """The next batch to submit, or None if the batches that are running suffice."""
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
        """How many tasks take about a second; fewer near the end, so that every worker has some."""
        if not self._n_timed:
            return 1
        length = int(BATCH_SECONDS * self._n_timed / max(self._seconds, 1e-9))
        if self._n_tasks is not None:
            length = min(length, (self._n_tasks - self._n_taken) // n_batches + 1)
        return max(1, length)

    def lost(self, batch: Batch, n_times: int = 1) -> bool:
        """Run a batch again that was lost with its worker; False if it has been lost too often."""
        batch = replace(batch, n_lost=batch.n_lost + n_times)
        if batch.n_lost < MAX_LOST:
            (self._suspects if batch.alone else self._again).appendleft(batch)
        elif batch.alone:
            return False
        else:
            for index, task in enumerate(batch.tasks, batch.first):
                self._suspects.append(Batch(index, [task], alone=True))
        return True

    def done(self, batch: Batch, result: BatchResult) -> None:
        self._results.update(enumerate(result.results, batch.first))
        self._seconds += result.seconds
        self._n_timed += len(batch.tasks)

    def ready(self) -> Iterator[Any]:
        """The results whose turn it is."""
        while self._n_given in self._results:
            yield self._results.pop(self._n_given)
            self._n_given += 1
