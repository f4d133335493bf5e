"""An engine that runs tasks on a Dask cluster and returns results in task order.

Dask copies shared data to its workers and reruns the tasks of a lost worker. If the last copy is
lost, the data is sent again. Anyone who can reach a Dask scheduler can run code on its workers: see
docs/cluster.md.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from itertools import islice
from typing import Any

from resvm_cli import __version__
from resvm_cli.cluster.worker import (
    FINGERPRINT,
    Batch,
    BatchResult,
    Shared,
    identity,
    work,
)
from resvm_cli.errors import ClusterError, FileError, Message, ParameterError
from resvm_cli.files.json_files import read_json

AUTO = "auto"
WAIT_SECONDS = 0.5

# two separate classes each before Python 3.11
TIMEOUTS = (TimeoutError, asyncio.TimeoutError)
CANCELLED = (CancelledError, asyncio.CancelledError)


def _connection_errors() -> tuple[type[BaseException], ...]:
    """Return the exceptions that Dask raises when a scheduler or a worker is lost."""
    closed = getattr(import_module("distributed.client"), "ClosedClientError", OSError)
    return OSError, RuntimeError, ValueError, *TIMEOUTS, *CANCELLED, closed


@contextmanager
def connected(
    address: str, timeout: float, announce: Callable[[str], None] = lambda text: None
) -> Iterator[Cluster]:
    """Connect to the cluster at an address, or given by a scheduler file or the environment.

    Its workers must have the same versions installed as this machine.
    """
    try:
        distributed = import_module("distributed")  # importing takes half a second
    except ImportError:
        raise ParameterError(
            "{cluster} needs Dask, which is not installed", "pip install 'resvm-cli[cluster]'"
        ) from None
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("distributed"):  # our own messages cover what matters
            logging.getLogger(name).setLevel(logging.CRITICAL)
    # otherwise Dask waits for a lost scheduler as long as its own configuration says
    limits = {"distributed.comm.timeouts.connect": timeout, "distributed.comm.retry.count": 0}
    import_module("dask").config.set(limits)
    found = _address(address, timeout)
    where = found if found == address else f"{found} (from {address})"
    try:
        client = distributed.Client(found, timeout=timeout)
    except (OSError, ValueError, TypeError, *TIMEOUTS) as error:
        raise ClusterError(
            f"no Dask scheduler answered at {where} within {timeout:g} s: {_first_line(error)}",
            Message("start one with dask scheduler, or correct {cluster}"),
        ) from None
    try:
        cluster = Cluster(client, where, timeout, announce)
        cluster.shake_hands()
        yield cluster
    finally:
        with suppress(*_connection_errors()):
            client.close(timeout=2)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _address(text: str, timeout: float) -> str:
    """Return the scheduler's address, waiting for a scheduler file that does not exist yet."""
    if text == AUTO:
        address = os.environ.get("DASK_SCHEDULER_ADDRESS")
        if not address:
            raise ParameterError(
                "{cluster:auto} needs DASK_SCHEDULER_ADDRESS, which is not set",
                "give the address: {cluster:tcp://host:8786}",
            )
        return address
    if "://" in text:
        return text
    end = time.monotonic() + timeout
    while True:
        reason = "contains no address"
        try:
            address = read_json(text, may_wait=False).get("address")
            if isinstance(address, str) and address:
                return address
        except FileError as error:
            reason = str(error.message).removeprefix(f"{text}: ")
        if time.monotonic() > end:
            raise ClusterError(
                f"{text}: {reason}, after waiting {timeout:g} s for a scheduler to write it",
                "start it with dask scheduler --scheduler-file, or give tcp://host:port",
            )
        time.sleep(min(WAIT_SECONDS, timeout / 10))


class Cluster:
    """Runs tasks on the workers of a Dask scheduler."""

    def __init__(
        self, client: Any, where: str, timeout: float, announce: Callable[[str], None]
    ) -> None:
        self._client, self._where, self._timeout = client, where, timeout
        self._announce = announce
        self._n_threads = 1
        self._checked: set[str] = set()  # addresses of workers
        self._last_look = self._last_seen = time.monotonic()
        self._sent: tuple[Any, Any] | None = None  # shared data and its future

    @property
    def n_workers(self) -> int:
        return self._n_threads

    def shake_hands(self) -> None:
        """Wait for workers and check their versions."""
        try:
            self._client.wait_for_workers(1, timeout=self._timeout)
        except TIMEOUTS:
            raise ClusterError(
                f"the Dask scheduler at {self._where} has no workers, after {self._timeout:g} s",
                "start workers: dask worker ADDRESS --nthreads 1",
            ) from None
        threads = self._client.nthreads()
        self._check(threads)
        self._n_threads = sum(threads.values())
        self._announce(f"{len(threads)} workers with {self._n_threads} threads at {self._where}")

    def _check(self, workers: Iterable[str]) -> None:
        """Require our versions on new workers; announce workers that round differently."""
        new = [worker for worker in workers if worker not in self._checked]
        if not new:
            return
        here = identity()
        answers = self._client.run(identity, workers=new, on_error="return")
        for worker, there in answers.items():
            if isinstance(there, OSError):  # the worker is gone
                continue
            if not isinstance(there, dict):
                raise ClusterError(
                    f"the worker {worker} cannot run resvm: {_first_line(there)}",
                    f"install resvm-cli {__version__} on it",
                )
            differing = [name for name in here if there.get(name) != here[name]]
            if FINGERPRINT in differing:
                differing.remove(FINGERPRINT)
                self._announce(
                    f"the worker {worker} rounds differently: values agree to about 1e-9,"
                    " but are not byte-for-byte identical"
                )
            if differing:
                versions = [f"{name} {there.get(name)}, here {here[name]}" for name in differing]
                raise ClusterError(
                    f"the worker {worker} has different versions: {', '.join(versions)}",
                    "install the same versions on it: results would differ",
                )
            self._checked.add(worker)

    def run(
        self,
        function: Callable[[Any, Any], Any],
        shared: Any,
        tasks: Iterable[Any],
        tick: Callable[[], None],
        name: Callable[[int], str],
    ) -> Iterator[Any]:
        """Yield the results of ``function(shared, task)`` in the order of the tasks."""
        batches = Batches(tasks)
        running: dict[Any, Batch] = {}  # keyed by future
        self._last_seen = time.monotonic()
        try:
            while True:
                self._look()
                while (batch := batches.next(len(running), self._n_threads)) is not None:
                    running[self._submit(function, shared, batch)] = batch
                if not running:
                    return
                for future in self._ended(running):
                    self._take(future, running.pop(future), batches, name)
                yield from batches.ready()
                tick()
        finally:
            with suppress(*_connection_errors()):
                self._client.cancel(list(running), force=True)

    def _submit(self, function: Callable[[Any, Any], Any], shared: Any, batch: Batch) -> Any:
        sent = self._send(shared)
        with self._named_if_gone():
            return self._client.submit(work, function, sent, batch, pure=False)

    def _send(self, shared: Any) -> Any:
        """Return a future for the shared data; resend it if all workers that had it are gone."""
        if self._sent is not None and self._sent[0] is shared:
            future = self._sent[1]
            if future.status == "finished":
                return future
        end = time.monotonic() + self._timeout
        with self._named_if_gone():
            while True:
                try:
                    future = self._client.scatter(
                        Shared(shared), broadcast=True, hash=False, timeout=self._timeout
                    )
                    self._sent = shared, future
                    return future
                except _connection_errors():
                    # a worker may have died in the meantime
                    if self._client.status != "running" or time.monotonic() > end:
                        raise
                    time.sleep(WAIT_SECONDS)

    def _ended(self, running: dict[Any, Batch]) -> list[Any]:
        """Return the futures that have finished, after a short wait."""
        with suppress(*TIMEOUTS, *CANCELLED):
            import_module("distributed").wait(
                list(running), timeout=WAIT_SECONDS, return_when="FIRST_COMPLETED"
            )
        return [future for future in running if future.status != "pending"]

    def _take(
        self, future: Any, batch: Batch, batches: Batches, name: Callable[[int], str]
    ) -> None:
        """Store the results of a batch, raise its error, or schedule it again."""
        error = result = None
        with self._named_if_gone(), suppress(*TIMEOUTS, *CANCELLED):  # its worker is lost
            if future.status == "error":
                error = future.exception(timeout=self._timeout)
            elif future.status == "finished":
                result = future.result(timeout=self._timeout)
                self._check([result.worker])
        if result is not None and result.worker in self._checked:
            batches.done(batch, result)
            return
        killed = isinstance(error, import_module("distributed").KilledWorker)
        if error is not None and not killed:
            raise error
        # KilledWorker: Dask has tried several workers
        if not batches.lost(batch, MAX_LOST if killed else 1):
            raise ClusterError(
                f"{name(batch.first)} killed its worker at least {MAX_LOST} times,"
                " with nothing else running",
                "most likely it ran out of memory; see the workers' logs",
            )

    def _look(self) -> None:
        """Count the workers periodically, and check new ones."""
        now = time.monotonic()
        if now - self._last_look < WAIT_SECONDS:
            return
        self._last_look = now
        with self._named_if_gone():
            threads = self._client.nthreads() if self._client.status == "running" else {}
            if threads:
                self._last_seen = now
                self._n_threads = sum(threads.values())
                self._check(threads)
        if now - self._last_seen > self._timeout:
            raise self._gone("no workers are left")

    @contextmanager
    def _named_if_gone(self) -> Iterator[None]:
        """Turn errors from Dask calls into an error that says the cluster is gone."""
        try:
            yield
        except _connection_errors() as error:
            raise self._gone(_first_line(error)) from None

    def _gone(self, reason: str) -> ClusterError:
        return ClusterError(
            f"the Dask cluster at {self._where} is gone: {reason}",
            Message(
                "if the command can be resumed, finished work is saved: rerun it with {resume:True}"
            ),
        )


BATCH_SECONDS = 1.0  # of work per batch; scheduling one takes milliseconds

AHEAD = 2  # batches per worker thread: one running, one waiting

MAX_LOST = 3  # a batch lost this often is rerun task by task, then abandoned


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

    def done(self, batch: Batch, result: BatchResult) -> None:
        self._results.update(enumerate(result.results, batch.first))
        self._seconds += result.seconds
        self._n_timed += len(batch.tasks)

    def ready(self) -> Iterator[Any]:
        """Yield the results that are next in order."""
        while self._n_given in self._results:
            yield self._results.pop(self._n_given)
            self._n_given += 1
