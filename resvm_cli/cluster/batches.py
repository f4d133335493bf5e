"""Tasks under way on a Dask cluster: batches of about a second each, their results in order.

A batch whose worker is lost runs again elsewhere. Dask suspects every batch that a lost worker had,
those that waited too: one that is suspected twice is tried again task by task, with nothing else
under way, so that whoever ends workers is known.
"""

from __future__ import annotations

import asyncio
import queue
import re
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from resvm_cli.cluster.worker import Answer, deaths, work

BATCH_SECONDS = 1.0  # of work in a task: scheduling takes about a millisecond
AHEAD = 2  # batches for each worker thread: one at work, one waiting
WAIT_SECONDS = 0.5
MOST_DEATHS_IN_COMPANY = 2  # then a batch is tried alone
MOST_DEATHS_ALONE = 3
NANNY_SECONDS = 10.0  # until a worker that has ended is there again, and its nanny with it
NANNY_LINES = 200  # of a nanny's log

# until Python 3.11 they are two
LATE = (TimeoutError, asyncio.TimeoutError)
CANCELLED = (CancelledError, asyncio.CancelledError)


def lost() -> tuple[type[BaseException], ...]:
    """What Dask's calls raise where the scheduler is lost."""
    closed = getattr(import_module("distributed.client"), "ClosedClientError", OSError)
    return OSError, RuntimeError, ValueError, *LATE, *CANCELLED, closed


@dataclass(frozen=True)
class Batch:
    """Tasks that follow each other, sent together."""

    first: int  # place among all tasks
    tasks: list[Any]
    alone: bool = False

    def split(self) -> list[Batch]:
        """Each task in a batch of its own, to be tried alone."""
        return [Batch(self.first + at, [task], True) for at, task in enumerate(self.tasks)]


class Batches:
    """Tasks in the order they are given out, and their results in the same."""

    def __init__(
        self, client: Any, key: str, function: Callable[[Any, Any], Any], tasks: Iterable[Any]
    ) -> None:
        self._client, self._key, self._function = client, key, function
        self._tasks = _Tasks(tasks)
        self._given = 0
        self._waiting: deque[Batch] = deque()
        self._suspects: deque[Batch] = deque()
        self._futures: dict[Any, Batch] = {}
        self._results: dict[int, Any] = {}
        self._seconds = self._counted = 0.0
        self.failure: BaseException | None = None  # of a task

    @property
    def unfinished(self) -> bool:
        left = self._waiting or self._suspects or self._futures or self._results
        return bool(left) or not self._tasks.at_end

    def _length(self, size: int) -> int:
        """How many tasks make up about a second, and leave every worker some."""
        if not self._counted:
            return 1
        wanted = int(BATCH_SECONDS * self._counted / max(self._seconds, 1e-9))
        left = self._tasks.n_left
        return max(1, wanted if left is None else min(wanted, left // size + 1))

    def fill(self, n_threads: int) -> None:
        """Send batches until there are enough under way; one that is suspected alone."""
        size = AHEAD * n_threads
        while len(self._futures) < size:
            if self._suspects:
                if self._futures:
                    return
                self._submit(self._suspects.popleft())
                return
            if any(batch.alone for batch in self._futures.values()):
                return
            if self._waiting:
                self._submit(self._waiting.popleft())
                continue
            first, tasks = self._tasks.take(self._length(size))
            if not tasks:
                return
            self._submit(Batch(first, tasks))

    def _submit(self, batch: Batch) -> None:
        future = self._client.submit(
            work, self._key, self._function, batch.tasks, pure=False, retries=0
        )
        self._futures[future] = batch

    def finished(self) -> list[tuple[Batch, Any]]:
        """Batches that have come to an end, after a short wait where there are none."""
        if not self._futures:
            self._tasks.wait(WAIT_SECONDS)
            return []
        with suppress(*LATE, *CANCELLED):
            import_module("distributed").wait(
                list(self._futures), timeout=WAIT_SECONDS, return_when="FIRST_COMPLETED"
            )
        ended = [future for future in self._futures if future.status != "pending"]
        return [(self._futures.pop(future), future) for future in ended]

    def killers(self) -> Batch | None:
        """Ask how many workers were lost with each batch; tells one that ends them by itself."""
        known = {future.key: future for future in self._futures}
        for key, count in self._client.run_on_scheduler(deaths, list(known)).items():
            future = known[key]
            batch = self._futures[future]
            if batch.alone and count >= MOST_DEATHS_ALONE:
                return batch
            if not batch.alone and count >= MOST_DEATHS_IN_COMPANY:
                del self._futures[future]
                self._client.cancel([future], force=True)
                self.suspect(batch)
        return None

    def suspect(self, batch: Batch) -> None:
        """Try its tasks again one by one, with nothing else under way."""
        self._suspects.extend(batch.split())

    def again(self, batch: Batch) -> None:
        (self._suspects if batch.alone else self._waiting).appendleft(batch)

    def done(self, batch: Batch, answer: Answer) -> None:
        for place, result in enumerate(answer.results, batch.first):
            self._results[place] = result
        self._seconds += answer.seconds
        self._counted += len(batch.tasks)

    def ready(self) -> Iterator[Any]:
        """Results whose turn it is."""
        while self._given in self._results:
            yield self._results.pop(self._given)
            self._given += 1

    def require_all_tasks(self) -> None:
        """Raise what has kept tasks from arriving."""
        if self._tasks.error is not None:
            self.failure = self._tasks.error
            raise self._tasks.error

    def cancel(self) -> None:
        self._tasks.stop()
        with suppress(*lost()):
            if self._futures:
                self._client.cancel(list(self._futures), force=True)


def how_ended(client: Any, processes: set[str], timeout: float) -> str:
    """By which signals these processes of workers ended last, as far as their nannies tell.

    A nanny can be asked only when its next worker has come up, which takes a moment.
    """
    end = time.monotonic() + min(timeout, NANNY_SECONDS)
    while True:
        logs: dict[str, list[tuple[str, str]]] = {}
        # a worker may have no nanny
        with suppress(KeyError, TypeError, AttributeError, *lost()):
            logs = client.get_worker_logs(n=NANNY_LINES, nanny=True)
        signals = {ended for lines in logs.values() if (ended := _last_signal(lines, processes))}
        if signals:
            return f"by {' and '.join(map(_signal_name, sorted(signals)))}"
        if time.monotonic() > end:
            return "signal unknown"
        time.sleep(WAIT_SECONDS)


def _last_signal(lines: list[tuple[str, str]], processes: set[str]) -> int | None:
    """What ended the last of these processes, by the lines of a nanny's log, newest first."""
    for _, line in lines:
        found = re.search(r"process (\d+) was killed by signal (\d+)", line)
        if found and found[1] in processes:
            return int(found[2])
    return None


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:  # of another system
        return f"signal {number}"


class _Tasks:
    """Tasks from a list, or as they arrive; those are taken by a thread, which may have to wait."""

    def __init__(self, tasks: Iterable[Any]) -> None:
        self._list = tasks if isinstance(tasks, list | tuple | range) else None
        self._next = 0
        self._ended = self._stopped = False
        self.error: BaseException | None = None
        self._arrived: queue.Queue[tuple[Any] | None] = queue.Queue(64)
        self._peeked: deque[Any] = deque()
        if self._list is None:
            threading.Thread(target=self._feed, args=(iter(tasks),), daemon=True).start()

    @property
    def n_left(self) -> int | None:
        return None if self._list is None else len(self._list) - self._next

    @property
    def at_end(self) -> bool:
        if self._list is not None:
            return self._next >= len(self._list)
        return self._ended and not self._peeked

    def take(self, count: int) -> tuple[int, list[Any]]:
        """The place of the next, and as many as are there."""
        first = self._next
        if self._list is not None:
            taken = list(self._list[first : first + count])
        else:
            self.wait(0)
            while len(self._peeked) < count and not self._arrived.empty():
                self._note(self._arrived.get())
            taken = [self._peeked.popleft() for _ in range(min(count, len(self._peeked)))]
        self._next += len(taken)
        return first, taken

    def wait(self, seconds: float) -> None:
        """Until another has arrived, for a while."""
        if self._list is None and not self._ended and not self._peeked:
            with suppress(queue.Empty):
                self._note(self._arrived.get(bool(seconds), seconds or None))

    def _note(self, entry: tuple[Any] | None) -> None:
        if entry is None:
            self._ended = True
        else:
            self._peeked.append(entry[0])

    def stop(self) -> None:
        self._stopped = True

    def _feed(self, tasks: Iterator[Any]) -> None:
        try:
            for task in tasks:
                self._put((task,))
                if self._stopped:
                    return
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            self.error = error
        self._put(None)

    def _put(self, entry: tuple[Any] | None) -> None:
        while not self._stopped:
            with suppress(queue.Full):
                self._arrived.put(entry, timeout=WAIT_SECONDS)
                return
