"""A Dask cluster as an engine: tasks sent to its workers, their results back in order.

What tasks share is held by each worker's process: read by its path where the worker sees the same
bytes there, else sent once; a worker that has lost it, or is new, gets it again. No task is bound
to a worker, so that whichever dies costs time alone. Whoever can reach a Dask scheduler can run
code on its workers: see docs/cluster.md.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import count
from typing import Any

from resvm_cli import __version__
from resvm_cli.cluster.batches import LATE, MOST_DEATHS_ALONE, Batch, Batches, how_ended, lost
from resvm_cli.cluster.worker import (
    FINGERPRINT,
    MOST_HELD,
    OF_THE_WORKER,
    PROCESS,
    NotHeld,
    Reference,
    RowsFile,
    hold,
    hold_referred,
    identity,
)
from resvm_cli.errors import ClusterError, CommandLineError, FileError
from resvm_cli.files.atomic import passing_name
from resvm_cli.files.row_files import remove_rows, write_rows
from resvm_cli.files.run_directory import read_json
from resvm_cli.running.run import Run

AUTO = "auto"
WAIT_SECONDS = 0.5
LOOK_SECONDS = 0.5  # between looks at who is there
# Rows of fewer bytes are sent: quicker than a file that every worker has to open.
BYTES_BY_PATH = 1 << 24


def _distributed() -> Any:
    """Dask's module, where it is needed: it takes half a second to import."""
    return import_module("distributed")


@contextmanager
def connected(
    address: str,
    timeout: float,
    run: Run,
    folder: str | None = None,
) -> Iterator[Cluster]:
    """The cluster at an address, in a scheduler file, or of the environment, if fit for use.

    In ``folder`` large rows are put for workers that see it.
    """
    try:
        distributed = _distributed()
    except ImportError:
        raise CommandLineError(
            "--cluster needs Dask, which is not installed", "pip install 'resvm-cli[cluster]'"
        ) from None
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("distributed"):  # we say it in our own words
            logging.getLogger(name).setLevel(logging.CRITICAL)
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
        cluster = Cluster(client, where, timeout, run, folder)
        cluster.shake_hands()
        try:
            yield cluster
        finally:
            cluster.remove_files()
    finally:
        with suppress(*lost()):
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
            why = str(error.message).removeprefix(f"{text}: ")
        if time.monotonic() > end:
            raise ClusterError(
                f"{text}: {why}, after waiting {timeout:g} s for a scheduler to write it",
                "start it with dask scheduler --scheduler-file, or give tcp://host:port",
            )
        time.sleep(min(WAIT_SECONDS, timeout / 10))


class Cluster:
    """Runs tasks on the workers of a Dask scheduler."""

    def __init__(
        self,
        client: Any,
        where: str,
        timeout: float,
        run: Run,
        folder: str | None = None,
    ) -> None:
        self._client, self._where, self._timeout = client, where, timeout
        self._run, self._folder = run, folder
        self._shared: list[tuple[Any, str]] = []
        self._references: dict[str, Reference | None] = {}
        self._numbers = count()
        self._n_threads = 1
        self._greeted: dict[str, str] = {}  # the number of each worker's process
        self._sent: set[tuple[str, str]] = set()
        self._present: set[str] = set()
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
        self._run.announce(
            f"{len(threads)} workers with {sum(threads.values())} threads at {self._where}"
        )

    def _greet(self, workers: list[str]) -> None:
        here = identity()
        answers = self._client.run(identity, workers=workers, on_error="return")
        for worker, there in answers.items():
            if isinstance(there, OSError):  # it has gone already
                continue
            if not isinstance(there, dict):
                raise ClusterError(
                    f"the worker {worker} cannot run resvm: {_first_line(there)}",
                    f"install resvm-cli {__version__} where it runs",
                )
            other = [
                name for name in here if here[name] != there.get(name) and name not in OF_THE_WORKER
            ]
            if other:
                described = ", ".join(
                    f"{name} {there.get(name)}, here {here[name]}" for name in other
                )
                raise ClusterError(
                    f"the worker {worker} has other versions: {described}",
                    "install the same versions there: results would differ",
                )
            if there[FINGERPRINT] != here[FINGERPRINT]:
                self._run.announce(
                    f"the worker {worker} rounds differently: values agree to about 1e-9,"
                    " not to the byte"
                )
            self._greeted[worker] = there[PROCESS]

    def run(
        self,
        function: Callable[[Any, Any], Any],
        shared: Any,
        tasks: Iterable[Any],
        tick: Callable[[], None],
        name: Callable[[int], str],
    ) -> Iterator[Any]:
        """The results of ``function(shared, task)`` in the order of the tasks."""
        key = self._key_of(shared)
        self._last_look = 0.0
        self._last_seen = time.monotonic()
        batches = Batches(self._client, key, function, tasks)
        try:
            self._look(key, shared, batches, name)
            while batches.unfinished:
                batches.fill(self._n_threads)
                for batch, future in batches.finished():
                    self._take(batches, batch, future, shared, key, name)
                yield from batches.ready()
                tick()
                self._look(key, shared, batches, name)
            batches.require_all_tasks()
        except lost() as error:
            if error is batches.failure:  # of a task, not of the cluster
                raise
            raise self._gone(_first_line(error)) from None
        finally:
            batches.cancel()

    def _take(
        self,
        batches: Batches,
        batch: Batch,
        future: Any,
        shared: Any,
        key: str,
        name: Callable[[int], str],
    ) -> None:
        """What became of a batch: results, or what must be done before it is tried again."""
        if future.status == "error":
            error = future.exception()
            if not isinstance(error, _distributed().KilledWorker):
                batches.failure = error
                raise error
            if batch.alone:
                raise self._ended_workers(name(batch.first))
            batches.suspect(batch)
            return
        if future.status != "finished":
            batches.again(batch)
            return
        answer = future.result()
        if isinstance(answer, NotHeld):
            self._sent.discard((answer.worker, key))
            self._send([answer.worker], key, shared)
            batches.again(batch)
            return
        if answer.error is not None:
            batches.failure = answer.error
            raise answer.error
        batches.done(batch, answer)

    def _send(self, workers: list[str], key: str, shared: Any) -> None:
        """Have workers hold what tasks share, where they do not yet."""
        new = [worker for worker in workers if worker not in self._greeted]
        if new:
            self._greet(new)
        wanting = [worker for worker in workers if (worker, key) not in self._sent]
        if not wanting:
            return
        reference = self._reference(key, shared)
        if reference is not None:
            seen = self._held_by(wanting, hold_referred, key, reference)
            wanting = [worker for worker in wanting if worker not in seen]
        if wanting:
            self._held_by(wanting, hold, key, shared)

    def _held_by(
        self, workers: list[str], function: Callable[..., bool], key: str, what: Any
    ) -> set[str]:
        """Those of the workers that hold it now; one that has gone has its tasks run elsewhere."""
        answers: dict[str, Any] = {}
        with suppress(KeyError, *lost()):
            answers = self._client.run(function, key, what, workers=workers, on_error="return")
        holding = {worker for worker, answer in answers.items() if answer is True}
        self._sent.update((worker, key) for worker in holding)
        return holding

    def _reference(self, key: str, shared: Any) -> Reference | None:
        """Where what tasks share lies, if workers may find it there."""
        if key not in self._references:
            self._references[key] = self._referred(shared)
        return self._references[key]

    def _referred(self, shared: Any) -> Reference | None:
        if hasattr(shared, "reference"):
            found: Reference = shared.reference()
            return found
        if self._folder is None or not hasattr(shared, "rows_apart"):
            return None
        without, parts = shared.rows_apart()
        if sum(rows.values.nbytes for rows in parts) < BYTES_BY_PATH:
            return None
        path = passing_name(os.path.realpath(self._folder))
        try:
            return RowsFile(without, path, write_rows(path, parts))
        except FileError:  # no room, no right: they are sent
            return None

    def remove_files(self) -> None:
        """Take away what was put there for workers."""
        for reference in self._references.values():
            if isinstance(reference, RowsFile):
                remove_rows(reference.path)

    def _key_of(self, shared: Any) -> str:
        for known, key in self._shared:
            if known is shared:
                return key
        # kept, so that no other object is taken for it; the name is of this run alone
        key = f"{self._client.id}-{next(self._numbers)}"
        self._shared = [*self._shared[1 - MOST_HELD :], (shared, key)]
        return key

    def _look(self, key: str, shared: Any, batches: Batches, name: Callable[[int], str]) -> None:
        """Now and then: who is there, who has come, and who has gone with which tasks?"""
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
        lost = bool(self._present - set(threads))
        self._present = set(threads)
        if lost and self._client.status == "running" and (killer := batches.killers()):
            raise self._ended_workers(name(killer.first))

    def _ended_workers(self, what: str) -> ClusterError:
        how = how_ended(self._client, set(self._greeted.values()), self._timeout)
        return ClusterError(
            f"{what} ended {MOST_DEATHS_ALONE} workers that had nothing else to do, {how}",
            "out of memory there, most likely; the workers' logs tell more",
        )

    def _gone(self, why: str) -> ClusterError:
        return ClusterError(
            f"the Dask cluster at {self._where} is gone: {why}",
            "what was finished is kept where the command can resume; run it again with --resume",
        )
