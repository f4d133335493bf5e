"""Run tasks on a Dask cluster, and return the results in task order.

Anyone who can reach a Dask scheduler can run code on its workers, and the workers can run code
here, because their answers are pickled: see docs/cluster.md. Most calls to Dask's client wait for
an answer indefinitely, so they run in a thread of their own, for which we wait a limited time.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from resvm_cli import __version__
from resvm_cli import threads as parallel
from resvm_cli.ensemble.ensemble import numeric_fingerprint
from resvm_cli.errors import ClusterError, ParameterError
from resvm_cli.svm.libsvm import package_version

WAIT_SECONDS = 0.5
TIMEOUT_SECONDS = 30.0  # for answers of the scheduler and its workers
CLOSE_SECONDS = 3.0  # for disconnecting
AHEAD = 8  # tasks per worker thread, so that none waits for the scheduler
# After this many lost workers a task runs alone; after as many again, the run ends and names it.
MAX_LOST = 3

# separate classes before Python 3.11
TIMEOUTS = (TimeoutError, asyncio.TimeoutError, futures.TimeoutError)
CANCELLED = (futures.CancelledError, asyncio.CancelledError)
LOST = (OSError, RuntimeError, ValueError, *TIMEOUTS, *CANCELLED)  # a scheduler or a worker is

RESUME = "if the command can be resumed, its finished work is saved: rerun it with `resume=True`"

Note: TypeAlias = Callable[[str], None]


class Shared:
    """Data that all tasks of a run share, sent once.

    It is pickled into one byte string. Dask would send its arrays separately and may place them at
    unaligned addresses, which the solvers do not accept.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (import_module("distributed.protocol.pickle").dumps(self.value),)


def _restored(text: bytes) -> Shared:
    return Shared(import_module("distributed.protocol.pickle").loads(text))


def work(function: Callable[[Any, Any], Any], shared: Shared, task: Any) -> dict[str, Any]:
    """Run a task on a worker; an error is part of the answer.

    If it were raised, Dask would keep its traceback, and with it the rows, after the run.
    """
    worker = import_module("distributed").get_worker().address
    answer: dict[str, Any] = {"worker": worker, "versions": versions(), "error": None}
    try:
        with parallel.one_blas_thread():
            answer["result"] = function(shared.value, task)
    except Exception as error:  # noqa: BLE001 - raised again by the command
        answer["traceback"] = "".join(traceback.format_exception(error))
        error.__cause__ = error.__context__ = None  # they have tracebacks too
        answer["error"] = error.with_traceback(None)
    return answer


@cache
def versions() -> dict[str, str]:
    """Return the versions that results depend on, and how the processor rounds."""
    return {
        "resvm": __version__,
        "numpy": np.__version__,
        "libsvm": package_version("libsvm"),
        "liblinear": package_version("liblinear"),
        "numeric_fingerprint": numeric_fingerprint(),
    }


@contextmanager
def connected(address: str, timeout: float, note: Note = lambda text: None) -> Iterator[Cluster]:
    """Connect to a cluster by its address, its scheduler file or the environment."""
    try:
        distributed = import_module("distributed")  # importing takes half a second
    except ImportError:
        raise ParameterError(
            "`cluster` needs Dask, which is not installed", "pip install 'resvm-cli[cluster]'"
        ) from None
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("distributed"):  # our own messages cover what matters
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    # otherwise Dask's own configuration decides how long to wait for a lost scheduler
    limits = {"distributed.comm.timeouts.connect": timeout, "distributed.comm.retry.count": 0}
    import_module("dask").config.set(limits)
    address = os.environ.get("DASK_SCHEDULER_ADDRESS", "") if address == "auto" else address
    if not address:
        raise ParameterError(
            "`cluster='auto'` needs DASK_SCHEDULER_ADDRESS, which is not set",
            "give the address: `cluster='tcp://host:8786'`",
        )
    kind = "address" if "://" in address else "scheduler_file"  # which Dask waits for
    start = partial(distributed.Client, **{kind: address}, timeout=timeout)
    try:
        client = _started(start).result(timeout)
    except Exception as error:  # noqa: BLE001 - a server that is not a scheduler may send anything
        raise ClusterError(
            f"no Dask scheduler answered at {address} within {timeout:g} s: {_reason(error)}",
            "start one with 'dask scheduler', or correct `cluster` (its port is not the"
            " dashboard's)",
        ) from None
    cluster = Cluster(client, address, timeout, note)
    try:
        while not cluster.n_workers:
            cluster.poll_workers()
            time.sleep(min(WAIT_SECONDS, timeout / 10))
        note(f"{cluster.n_workers} threads of workers at {address}")
        yield cluster
    finally:
        if cluster.sending is not None:  # Dask never frees what arrives after we disconnect
            futures.wait([cluster.sending], CLOSE_SECONDS)
        with suppress(*cluster.lost):
            client.close(timeout=CLOSE_SECONDS)


def _started(call: Callable[[], Any]) -> futures.Future[Any]:
    return futures.ThreadPoolExecutor(1).submit(call)


def _reason(error: BaseException) -> str:
    """Return the first line of an error, with its class if the text may not be enough."""
    if isinstance(error, TIMEOUTS):
        return "no answer"
    text = (str(error) or "no details").splitlines()[0]
    return text if isinstance(error, (OSError, ClusterError)) else f"{type(error).__name__}: {text}"


class Cluster:
    """Runs tasks on the workers of a Dask scheduler."""

    def __init__(self, client: Any, where: str, timeout: float, note: Note) -> None:
        self._client, self._where, self._timeout, self._note = client, where, timeout, note
        closed = getattr(import_module("distributed.client"), "ClosedClientError", OSError)
        self.lost: tuple[type[BaseException], ...] = (*LOST, closed)
        self.n_workers = 0  # threads of all workers
        self._checked: set[str] = set()  # workers whose versions are known
        self._last_poll, self._last_seen = 0.0, time.monotonic()
        self._sent: tuple[Any, Any] = (self, None)  # shared data and its future
        self.sending: futures.Future[Any] | None = None

    def run(
        self,
        function: Callable[[Any, Any], Any],
        shared: Any,
        tasks: Iterable[Any],
        tick: Callable[[], None],
        name: Callable[[int], str],
    ) -> Iterator[Any]:
        """Yield the results of ``function(shared, task)`` in the order of the tasks.

        When a worker dies, every task it had is lost, not only the one that killed it. A task that
        is lost too often therefore runs alone, to find the one at fault.
        """
        distributed = import_module("distributed")
        new = enumerate(tasks)
        again: deque[tuple[int, Any]] = deque()
        suspects: deque[tuple[int, Any]] = deque()
        running: dict[Any, tuple[int, Any]] = {}  # number and task, keyed by future
        n_lost, results, n_given = Counter[int](), dict[int, Any](), 0

        def following() -> tuple[int, Any] | None:
            """Return the next task to submit now, if any."""
            if suspects or any(n_lost[number] >= MAX_LOST for number, _ in running.values()):
                return suspects.popleft() if suspects and not running else None
            is_full = len(running) >= AHEAD * self.n_workers
            return None if is_full else again.popleft() if again else next(new, None)

        self._last_seen = time.monotonic()
        try:
            while True:
                self.poll_workers()
                while (entry := following()) is not None:
                    given = work, function, self._send(shared), entry[1]
                    try:
                        running[self._client.submit(*given, pure=False)] = entry
                    except self.lost as error:
                        raise self._connection_lost(error) from None
                if not running:
                    return
                with suppress(*TIMEOUTS, *CANCELLED):
                    distributed.wait(list(running), WAIT_SECONDS, return_when="FIRST_COMPLETED")
                for future in [one for one in running if one.status != "pending"]:
                    number, task = running.pop(future)
                    try:
                        if (answer := self._received(future)) is not None:
                            results[number] = answer["result"]
                            continue
                        n_lost[number] += 1
                    except distributed.KilledWorker:  # Dask has tried several workers
                        n_lost[number] += MAX_LOST
                    if n_lost[number] >= 2 * MAX_LOST:
                        raise ClusterError(
                            f"{name(number)} killed its worker at least {MAX_LOST} times,"
                            " although nothing else was running",
                            "most likely it ran out of memory; see the workers' logs",
                        )
                    (suspects if n_lost[number] >= MAX_LOST else again).append((number, task))
                while n_given in results:
                    yield results.pop(n_given)
                    n_given += 1
                tick()
        finally:
            with suppress(*self.lost):
                _started(lambda: self._client.cancel([*running], force=True)).result(CLOSE_SECONDS)

    def _received(self, future: Any) -> dict[str, Any] | None:
        """Return the answer of a worker; None if it was lost."""
        if future.status not in ("finished", "error"):
            return None
        try:
            answer: dict[str, Any] = future.result(timeout=self._timeout)
            self._check_versions(answer["worker"], answer["versions"])
        except (*TIMEOUTS, *CANCELLED):
            return None
        except (ClusterError, import_module("distributed").KilledWorker):
            raise
        except Exception as error:  # noqa: BLE001 - unpickling an answer may raise anything
            if self._client.status != "running":
                raise self._connection_lost(error) from None
            raise ClusterError(
                f"a worker cannot run resvm: {_reason(error)}",
                f"install resvm-cli {__version__} on all workers; see their logs",
            ) from None
        if answer["error"] is not None:
            raise answer["error"] from RuntimeError(answer["traceback"])
        return answer

    def _send(self, shared: Any) -> Any:
        """Return a future for the shared data; resend it if all workers that had it are gone."""
        if self._sent[0] is shared and self._sent[1].status == "finished":
            return self._sent[1]
        options = {"broadcast": True, "hash": False, "timeout": self._timeout}
        end = time.monotonic() + self._timeout
        while True:
            self.sending = _started(lambda: self._client.scatter(Shared(shared), **options))
            try:
                while not futures.wait([self.sending], WAIT_SECONDS).done:
                    self.poll_workers()
                self._sent = shared, self.sending.result()
                return self._sent[1]
            except self.lost as error:  # a worker may have died in the meantime
                if self._client.status != "running" or time.monotonic() > end:
                    raise self._connection_lost(error) from None
                time.sleep(WAIT_SECONDS)

    def _check_versions(self, worker: str, there: dict[str, str]) -> None:
        """Require our versions on each worker; say which workers round differently."""
        if worker in self._checked:
            return
        self._checked.add(worker)
        here = versions()
        differing = [name for name in here if there.get(name) != here[name]]
        if differing == ["numeric_fingerprint"]:
            self._note(
                f"the worker {worker} rounds differently: values agree to about 1e-9, but"
                " are not byte-for-byte identical"
            )
        elif differing:
            listed = [f"{name} {there.get(name)}, here {here[name]}" for name in differing]
            raise ClusterError(
                f"the worker {worker} has different versions: {', '.join(listed)}",
                "install the same versions on it; otherwise, results would differ",
            )

    def poll_workers(self) -> None:
        """Count the workers' threads from time to time."""
        now = time.monotonic()
        if now - self._last_poll < WAIT_SECONDS:
            return
        self._last_poll = now
        if self._client.status == "running":
            try:
                threads = _started(self._client.nthreads).result(self._timeout)
            except (Exception, *CANCELLED) as error:  # noqa: BLE001 - as in connected
                raise self._connection_lost(error) from None
            if threads:
                self._last_seen, self.n_workers = now, sum(threads.values())
        if now - self._last_seen > self._timeout:
            raise ClusterError(
                f"the Dask scheduler at {self._where} has had no workers for {self._timeout:g} s",
                f"start workers: dask worker ADDRESS --nthreads 1; {RESUME}",
            )

    def _connection_lost(self, error: BaseException) -> ClusterError:
        return ClusterError(f"the Dask cluster at {self._where} is gone: {_reason(error)}", RESUME)
