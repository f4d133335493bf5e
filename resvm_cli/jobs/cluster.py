"""A Dask cluster as an engine: tasks sent to its workers, their results back in order.

What tasks share is sent to each worker once and held by its process; a worker that has lost it, or
is new, says so and is sent it again. No task is bound to a worker, so that whichever dies costs
time alone. Whoever can reach a Dask scheduler can run code on its workers: see docs/cluster.md.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from typing import Any

import numpy as np

from resvm_cli import __version__, parallel
from resvm_cli.ensemble.model import numeric_fingerprint
from resvm_cli.errors import ClusterError, CommandLineError, FileError, ResvmError
from resvm_cli.files.logs import read_json
from resvm_cli.svm import liblinear, libsvm

AUTO = "auto"
BATCH_SECONDS = 1.0  # of work in a task: scheduling takes about a millisecond
AHEAD = 2  # tasks for each worker thread: one at work, one waiting
WAIT_SECONDS = 0.5
LOOK_SECONDS = 0.5  # between looks at who is there
HELD_SECONDS = 20.0  # a worker waits so long for what it has not been sent
MOST_HELD = 2  # shared objects that a worker keeps

FINGERPRINT = "numeric_fingerprint"
# until Python 3.11 they are two
LATE = (TimeoutError, asyncio.TimeoutError)
CANCELLED = (CancelledError, asyncio.CancelledError)


@dataclass(frozen=True)
class _NotHeld:
    """A worker's answer where it lacks what the tasks share."""

    worker: str


@dataclass(frozen=True)
class _Answer:
    """The results of a batch, or the error of one of its tasks."""

    results: list[Any]
    error: ResvmError | None
    seconds: float


# What a worker's process holds: the objects that tasks share, and its own limit on BLAS threads.
_held: dict[str, Any] = {}


def _distributed() -> Any:
    """Dask's module, where it is needed: it takes half a second to import."""
    return import_module("distributed")


def _identity() -> dict[str, str]:
    """The versions of a worker, and how its processor rounds."""
    return {
        "resvm": __version__,
        "numpy": np.__version__,
        "libsvm": libsvm.version(),
        "liblinear": liblinear.version(),
        FINGERPRINT: numeric_fingerprint(),
    }


def _hold(key: str, shared: Any) -> None:
    """Keep what tasks share, and BLAS on one thread: its rounding must not depend on the worker."""
    _held.setdefault("", parallel.inner_threads_held())  # holds them as long as it is kept
    others = [held for held in _held if held]
    for old in others[: len(others) - MOST_HELD + 1]:
        _held.pop(old, None)
    _held[key] = shared


def _work(key: str, function: Callable[[Any, Any], Any], batch: list[Any]) -> _NotHeld | _Answer:
    """A batch of tasks, on a worker."""
    # a new worker waits here, so that Dask counts how often a task was the end of one
    end = time.monotonic() + HELD_SECONDS
    while key not in _held and time.monotonic() < end:
        time.sleep(0.05)
    shared = _held.get(key)
    if shared is None:
        return _NotHeld(_distributed().get_worker().address)
    started = time.perf_counter()
    results = []
    error = None
    for task in batch:
        try:
            results.append(function(shared, task))
        except ResvmError as failed:
            error = failed
            break
    return _Answer(results, error, time.perf_counter() - started)


@contextmanager
def connected(
    address: str, timeout: float, notice: Callable[[str], None] = lambda text: None
) -> Iterator[Cluster]:
    """The cluster at an address, in a scheduler file, or of the environment, if fit for use."""
    try:
        distributed = _distributed()
    except ImportError:
        raise CommandLineError(
            "--cluster needs Dask, which is not installed", "pip install 'resvm-cli[cluster]'"
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # we say it in our own words
    # or a scheduler that is gone would be waited for as long as Dask likes
    limits = {"distributed.comm.timeouts.connect": timeout, "distributed.comm.retry.count": 0}
    import_module("dask").config.set(limits)
    found = _address(address, timeout)
    where = found if found == address else f"{found} (from {address})"
    try:
        client = distributed.Client(found, timeout=timeout)
    except (OSError, ValueError, TypeError, *LATE) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {where} within {timeout:g} s: {_first_line(error)}",
            "start it with dask scheduler, or correct --cluster; -j works without",
        ) from None
    try:
        cluster = Cluster(client, where, timeout, notice)
        cluster.shake_hands()
        yield cluster
    finally:
        with suppress(OSError, *LATE):
            client.close(timeout=2)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _address(text: str, timeout: float) -> str:
    """The scheduler's address; a file of it may be about to be written."""
    if text == AUTO:
        address = os.environ.get("DASK_SCHEDULER_ADDRESS")
        if not address:
            raise CommandLineError(
                "--cluster auto, but DASK_SCHEDULER_ADDRESS is not set",
                "give the address: --cluster tcp://host:8786",
            )
        return address
    if "://" in text:
        return text
    end = time.monotonic() + timeout
    while True:
        why = "has no address in it"
        try:
            address = read_json(text, may_wait=False).get("address")
            if isinstance(address, str) and address:
                return address
        except FileError as error:
            why = error.message.removeprefix(f"{text}: ")
        if time.monotonic() > end:
            raise ClusterError(
                f"{text}: {why}, after waiting {timeout:g} s for a scheduler to write it",
                "start it with dask scheduler --scheduler-file, or give tcp://host:port",
            )
        time.sleep(min(WAIT_SECONDS, timeout / 10))


class Cluster:
    """Runs tasks on the workers of a Dask scheduler."""

    def __init__(
        self, client: Any, where: str, timeout: float, notice: Callable[[str], None]
    ) -> None:
        self._client, self._where, self._timeout = client, where, timeout
        self._notice = notice
        self._shared: list[tuple[Any, str]] = []
        self._numbers = count()
        self._n_threads = 1
        self._greeted: set[str] = set()
        self._sent: set[tuple[str, str]] = set()
        self._last_look = self._last_seen = time.monotonic()

    @property
    def n_workers(self) -> int:
        return self._n_threads

    def shake_hands(self) -> None:
        """Refuse workers of other versions, and say where results may differ in the last bits."""
        try:
            self._client.wait_for_workers(1, timeout=self._timeout)
        except LATE:
            raise ClusterError(
                f"the Dask scheduler at {self._where} has no workers, after {self._timeout:g} s",
                "start some: dask worker ADDRESS --nthreads 1",
            ) from None
        threads = self._client.nthreads()
        self._greet(list(threads))
        self._n_threads = sum(threads.values())
        self._notice(
            f"{len(threads)} workers with {sum(threads.values())} threads at {self._where}"
        )

    def _greet(self, workers: list[str]) -> None:
        here = _identity()
        answers = self._client.run(_identity, workers=workers, on_error="return")
        for worker, there in answers.items():
            if isinstance(there, OSError):  # it has gone already
                continue
            if not isinstance(there, dict):
                raise ClusterError(
                    f"the worker {worker} cannot run resvm: {_first_line(there)}",
                    f"install resvm-cli {__version__} where it runs",
                )
            other = [name for name in here if here[name] != there.get(name) and name != FINGERPRINT]
            if other:
                described = ", ".join(
                    f"{name} {there.get(name)}, here {here[name]}" for name in other
                )
                raise ClusterError(
                    f"the worker {worker} has other versions: {described}",
                    "install the same versions there: results would differ",
                )
            if there[FINGERPRINT] != here[FINGERPRINT]:
                self._notice(
                    f"the worker {worker} rounds differently: values agree to about 1e-9,"
                    " not to the byte"
                )
            self._greeted.add(worker)

    def run(
        self,
        function: Callable[[Any, Any], Any],
        shared: Any,
        tasks: Sequence[Any],
        tick: Callable[[], None],
        name: Callable[[int], str],
    ) -> Iterator[Any]:
        """The results of ``function(shared, task)`` in the order of the tasks."""
        key = self._key_of(shared)
        self._last_look = 0.0
        self._last_seen = time.monotonic()
        running = _Running(self._client, key, function, tasks)
        try:
            self._look(key, shared)
            while running.n_done < len(tasks):
                running.fill(AHEAD * self._n_threads)
                for batch, future in running.finished():
                    self._take(running, batch, future, shared, key, name)
                yield from running.ready()
                tick()
                self._look(key, shared)
        except (OSError, RuntimeError, *LATE) as error:
            if error is running.failure:  # of a task, not of the cluster
                raise
            raise self._gone(_first_line(error)) from None
        finally:
            running.cancel()

    def _take(
        self,
        running: _Running,
        batch: range,
        future: Any,
        shared: Any,
        key: str,
        name: Callable[[int], str],
    ) -> None:
        """What became of a batch: results, or what must be done before it is tried again."""
        if future.status == "error":
            error = future.exception()
            if not isinstance(error, _distributed().KilledWorker):
                running.failure = error
                raise error
            if len(batch) == 1:
                raise ClusterError(
                    f"{name(batch[0])} ended every worker it was given to, the last of them"
                    f" {error.last_worker.address}",
                    "out of memory there, most likely; the worker's log says which signal it was",
                ) from None
            running.again([range(place, place + 1) for place in batch])
            return
        if future.status != "finished":
            running.again([batch])
            return
        answer = future.result()
        if isinstance(answer, _NotHeld):
            self._sent.discard((answer.worker, key))
            self._send([answer.worker], key, shared)
            running.again([batch])
            return
        if answer.error is not None:
            raise answer.error
        running.done(batch, answer)

    def _send(self, workers: list[str], key: str, shared: Any) -> None:
        """Have workers hold what tasks share, where they do not yet."""
        new = [worker for worker in workers if worker not in self._greeted]
        if new:
            self._greet(new)
        wanting = [worker for worker in workers if (worker, key) not in self._sent]
        if not wanting:
            return
        with suppress(OSError, KeyError, ValueError):  # one has gone: its tasks run elsewhere
            self._client.run(_hold, key, shared, workers=wanting, on_error="ignore")
        self._sent.update((worker, key) for worker in wanting)

    def _key_of(self, shared: Any) -> str:
        for known, key in self._shared:
            if known is shared:
                return key
        # kept, so that no other object is taken for it; the name is of this run alone
        key = f"{self._client.id}-{next(self._numbers)}"
        self._shared = [*self._shared[1 - MOST_HELD :], (shared, key)]
        return key

    def _look(self, key: str, shared: Any) -> None:
        """Now and then: who is there, and who has come?"""
        now = time.monotonic()
        if now - self._last_look < LOOK_SECONDS:
            return
        self._last_look = now
        threads = self._client.nthreads() if self._client.status == "running" else {}
        if threads:
            self._last_seen = now
            self._n_threads = sum(threads.values())
            self._send(list(threads), key, shared)
        elif now - self._last_seen > self._timeout:
            raise self._gone("no workers are left")

    def _gone(self, why: str) -> ClusterError:
        return ClusterError(
            f"the Dask cluster at {self._where} is gone: {why}",
            "what was finished is kept where the command can resume; run it again with --resume",
        )


class _Running:
    """Tasks under way: batches of about a second each, and their results in order."""

    def __init__(
        self, client: Any, key: str, function: Callable[[Any, Any], Any], tasks: Sequence[Any]
    ) -> None:
        self._client, self._key, self._function, self._tasks = client, key, function, tasks
        self._next = self._given = 0
        self._waiting: list[range] = []
        self._futures: dict[Any, range] = {}
        self._results: dict[int, Any] = {}
        self._seconds = self._counted = 0.0
        self.failure: BaseException | None = None  # of a task

    @property
    def n_done(self) -> int:
        return self._given

    def _length(self, size: int) -> int:
        """How many tasks make up about a second, and leave every worker some."""
        if not self._counted:
            return 1
        wanted = int(BATCH_SECONDS * self._counted / max(self._seconds, 1e-9))
        return max(1, min(wanted, (len(self._tasks) - self._next) // size + 1))

    def fill(self, size: int) -> None:
        """Send batches until this many are under way."""
        while len(self._futures) < size:
            if self._waiting:
                batch = self._waiting.pop()
            elif self._next < len(self._tasks):
                last = min(len(self._tasks), self._next + self._length(size))
                batch = range(self._next, last)
                self._next = last
            else:
                return
            tasks = [self._tasks[place] for place in batch]
            future = self._client.submit(
                _work, self._key, self._function, tasks, pure=False, retries=0
            )
            self._futures[future] = batch

    def finished(self) -> list[tuple[range, Any]]:
        """Batches that have come to an end, after a short wait where there are none."""
        wait = _distributed().wait
        with suppress(*LATE, *CANCELLED):
            wait(list(self._futures), timeout=WAIT_SECONDS, return_when="FIRST_COMPLETED")
        ended = [future for future in self._futures if future.status != "pending"]
        return [(self._futures.pop(future), future) for future in ended]

    def done(self, batch: range, answer: _Answer) -> None:
        self._results.update(zip(batch, answer.results, strict=True))
        self._seconds += answer.seconds
        self._counted += len(batch)

    def again(self, batches: list[range]) -> None:
        self._waiting += batches

    def ready(self) -> Iterator[Any]:
        """Results whose turn it is."""
        while self._given in self._results:
            yield self._results.pop(self._given)
            self._given += 1

    def cancel(self) -> None:
        with suppress(OSError, RuntimeError, *LATE):
            if self._futures:
                self._client.cancel(list(self._futures), force=True)
