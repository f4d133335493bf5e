"""An engine that runs tasks on a Dask cluster and returns results in task order.

Dask copies shared data to its workers and reruns the tasks of a lost worker. If the last copy is
lost, the data is sent again. Anyone who can reach a Dask scheduler can run code on its workers, and
the workers can run code here, because their answers are pickled: see docs/cluster.md.

Most calls to Dask's client wait for an answer indefinitely. They therefore run in a separate
thread, and the calling thread waits no longer than the time limit.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Thread
from typing import Any, TypeVar

from resvm_cli import __version__
from resvm_cli.cluster.batches import FINGERPRINT, MAX_LOST, Batch, Batches, Shared, identity, work
from resvm_cli.errors import ClusterError, FileError, Message, ParameterError
from resvm_cli.files.json_files import read_json

AUTO = "auto"
WAIT_SECONDS = 0.5
MAX_SECONDS = 1e7  # four months; larger numbers overflow
CLOSE_SECONDS = 3.0  # for disconnecting

# separate classes before Python 3.11
TIMEOUTS = (TimeoutError, asyncio.TimeoutError, futures.TimeoutError)
CANCELLED = (futures.CancelledError, asyncio.CancelledError)

RESUME = Message(
    "if the command can be resumed, its finished work is saved: rerun it with {resume:True}"
)

Answer = TypeVar("Answer")


def _connection_errors() -> tuple[type[BaseException], ...]:
    """Return the exceptions that Dask raises when a scheduler or a worker is lost."""
    closed = getattr(import_module("distributed.client"), "ClosedClientError", OSError)
    return OSError, RuntimeError, ValueError, *TIMEOUTS, *CANCELLED, closed


def _started(call: Callable[[], Answer]) -> futures.Future[Answer]:
    """Start a call in a thread that does not keep the program from exiting."""
    future: futures.Future[Answer] = futures.Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future


@contextmanager
def connected(
    address: str, timeout: float, announce: Callable[[str], None] = lambda text: None
) -> Iterator[Cluster]:
    """Connect to a cluster by its address, its scheduler file or the environment."""
    try:
        distributed = import_module("distributed")  # importing takes half a second
    except ImportError:
        raise ParameterError(
            "{cluster} needs Dask, which is not installed", "pip install 'resvm-cli[cluster]'"
        ) from None
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("distributed"):  # our own messages cover what matters
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    if not timeout <= MAX_SECONDS:
        raise ParameterError(
            "{cluster_timeout} must be at most {high:g}, got {value:g}",
            high=MAX_SECONDS,
            value=timeout,
        )
    # otherwise Dask's own configuration decides how long to wait for a lost scheduler
    limits = {"distributed.comm.timeouts.connect": timeout, "distributed.comm.retry.count": 0}
    import_module("dask").config.set(limits)
    found = _address(address, timeout)
    where = found if found == address else f"{found} (from {address})"
    try:
        client = _started(lambda: distributed.Client(found, timeout=timeout)).result(timeout)
    except Exception as error:  # noqa: BLE001 - a server that is not a scheduler may send anything
        late = isinstance(error, (OSError, *TIMEOUTS))
        answered = f"answered at {where} within {timeout:g} s" if late else f"at {where}"
        reason = "" if isinstance(error, TIMEOUTS) else f": {_reason(error)}"
        raise ClusterError(
            f"no Dask scheduler {answered}{reason}",
            Message(
                "start one with 'dask scheduler', or correct {cluster} (its port is not the"
                " dashboard's)"
            ),
        ) from None
    cluster = Cluster(client, where, timeout, announce)
    try:
        cluster.shake_hands()
        yield cluster
    finally:
        cluster.finish_sending()
        with suppress(*_connection_errors()):
            client.close(timeout=CLOSE_SECONDS)


def _reason(error: BaseException) -> str:
    """Return the first line of an error, with its class if the text may not be enough."""
    if isinstance(error, TIMEOUTS):
        return "no answer"
    text = (str(error) or "no details").splitlines()[0]
    return text if isinstance(error, (OSError, ClusterError)) else f"{type(error).__name__}: {text}"


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
                f"start one with 'dask scheduler --scheduler-file {text}', or give tcp://host:port",
            )
        time.sleep(min(WAIT_SECONDS, timeout / 10))


class Cluster:
    """Runs tasks on the workers of a Dask scheduler."""

    def __init__(
        self, client: Any, where: str, timeout: float, announce: Callable[[str], None]
    ) -> None:
        self._client, self._where, self._timeout = client, where, timeout
        self._announce = announce
        self.n_workers = 1  # threads of all workers
        self._checked: set[str] = set()  # addresses of workers
        self._last_look = self._last_seen = time.monotonic()
        self._sent: tuple[Any, Any] | None = None  # shared data and its future
        self._sending: futures.Future[Any] | None = None

    def shake_hands(self) -> None:
        """Wait for workers and check their versions."""
        end = time.monotonic() + self._timeout
        while not (threads := self._ask(self._client.nthreads)):
            if time.monotonic() > end:
                raise ClusterError(
                    f"the Dask scheduler at {self._where} still has no workers"
                    f" after {self._timeout:g} s",
                    "start workers: dask worker ADDRESS --nthreads 1",
                )
            time.sleep(min(WAIT_SECONDS, self._timeout / 10))
        self._check(threads)
        self.n_workers = sum(threads.values())
        self._announce(f"{len(threads)} workers with {self.n_workers} threads at {self._where}")

    def _check(self, workers: Iterable[str]) -> None:
        """Require our versions on new workers; announce workers that round differently."""
        new = [worker for worker in workers if worker not in self._checked]
        if not new:
            return
        here = identity()
        answers = self._ask(
            lambda: self._client.run(identity, workers=new, on_error="return"),
            f"the worker {' or '.join(new)}",
        )
        for worker, there in answers.items():
            if isinstance(there, OSError):  # the worker is gone
                continue
            if not isinstance(there, dict):
                raise ClusterError(
                    f"the worker {worker} cannot run resvm: {_reason(there)}",
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
                    "install the same versions on it; otherwise, results would differ",
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
                while (batch := batches.next(len(running), self.n_workers)) is not None:
                    sent = self._send(shared)
                    running[self._submitted(function, sent, batch)] = batch
                if not running:
                    return
                for future in self._ended(running):
                    self._take(future, running.pop(future), batches, name)
                yield from batches.ready()
                tick()
        finally:
            with suppress(*_connection_errors()):
                cancel = _started(lambda: self._client.cancel(list(running), force=True))
                cancel.result(CLOSE_SECONDS)

    def _send(self, shared: Any) -> Any:
        """Return a future for the shared data; resend it if all workers that had it are gone."""
        if self._sent is not None and self._sent[0] is shared:
            future = self._sent[1]
            if future.status == "finished":
                return future
        end = time.monotonic() + self._timeout
        while True:
            try:
                future = self._scattered(shared)
                self._sent = shared, future
                return future
            except _connection_errors() as error:
                # a worker may have died in the meantime
                if self._client.status != "running" or time.monotonic() > end:
                    raise self._gone(_reason(error)) from None
                time.sleep(WAIT_SECONDS)

    def _scattered(self, shared: Any) -> Any:
        """Send shared data; there is no time limit as long as the scheduler responds."""
        options = {"broadcast": True, "hash": False, "timeout": self._timeout}
        self._sending = _started(lambda: self._client.scatter(Shared(shared), **options))
        while not futures.wait([self._sending], WAIT_SECONDS).done:
            self._look()
        return self._sending.result()

    def finish_sending(self) -> None:
        """Wait briefly for data in transit; Dask never frees what arrives after we disconnect."""
        if self._sending is not None:
            futures.wait([self._sending], CLOSE_SECONDS)

    def _submitted(self, function: Callable[[Any, Any], Any], sent: Any, batch: Batch) -> Any:
        try:
            return self._client.submit(work, function, sent, batch, pure=False)
        except _connection_errors() as error:
            raise self._gone(_reason(error)) from None

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
        answer, n_lost = None, 1
        try:
            if future.status in ("finished", "error"):
                answer = future.result(timeout=self._timeout)
        except (*TIMEOUTS, *CANCELLED):  # its worker is lost
            pass
        except import_module("distributed").KilledWorker:  # Dask has tried several workers
            n_lost = MAX_LOST
        except Exception as error:  # noqa: BLE001 - unpickling an answer may raise anything
            if self._client.status != "running":
                raise self._gone(_reason(error)) from None
            raise ClusterError(
                f"a worker sent an unusable answer: {_reason(error)}",
                "see the workers' logs, and restart them with the same installation as here",
            ) from None
        if answer is not None:
            self._check([answer.worker])
            if answer.error is not None:
                raise answer.error from RuntimeError(answer.traceback)
            if answer.worker in self._checked:
                batches.done(batch, answer)
                return
        if not batches.lost(batch, n_lost):
            raise ClusterError(
                f"{name(batch.first)} killed its worker at least {MAX_LOST} times,"
                " although nothing else was running",
                "most likely it ran out of memory; see the workers' logs",
            )

    def _look(self) -> None:
        """Count the workers periodically, and check new ones."""
        now = time.monotonic()
        if now - self._last_look < WAIT_SECONDS:
            return
        self._last_look = now
        threads = self._ask(self._client.nthreads) if self._client.status == "running" else {}
        if threads:
            self._last_seen = now
            self.n_workers = sum(threads.values())
            self._check(threads)
        if now - self._last_seen > self._timeout:
            raise self._gone("no workers are left")

    def _ask(self, call: Callable[[], Answer], whom: str = "") -> Answer:
        """Return the result of a Dask call; raise an error after the time limit."""
        try:
            return _started(call).result(self._timeout)
        except TIMEOUTS:
            raise ClusterError(
                f"{whom or f'the Dask scheduler at {self._where}'} did not answer"
                f" within {self._timeout:g} s",
                RESUME,
            ) from None
        except (Exception, *CANCELLED) as error:  # noqa: BLE001 - as in connected
            raise self._gone(_reason(error)) from None

    def _gone(self, reason: str) -> ClusterError:
        return ClusterError(f"the Dask cluster at {self._where} is gone: {reason}", RESUME)
