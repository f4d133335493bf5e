"""Run many tasks in threads, with results in task order and the main thread free for signals.

Workers are threads: the solvers, BLAS and the tokenizer release the GIL, so threads scale like
processes without the startup cost and without copying the data. A C call cannot be canceled.
Therefore, C calls never run in the main thread, and the workers are daemon threads, so that an
interrupted program can exit at once.

This is the only module outside data/ and storage/ that opens files: it reads the number of cores
from system files.
"""

from __future__ import annotations

import os
import queue
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil, inf
from pathlib import Path
from typing import Any, Generic, TypeVar

from resvm_cli.errors import MachineError

Task = TypeVar("Task")
Result = TypeVar("Result")

# Waiting without a timeout would block signals on some platforms.
WAIT_SECONDS = 0.5
AHEAD = 4  # tasks per worker that may be started ahead of the results consumed so far

SYSTEM = Path("/")
# Cores granted by Slurm, Grid Engine or Torque; CPU affinity may not reflect them.
CORE_VARIABLES = ("SLURM_CPUS_PER_TASK", "NSLOTS", "PBS_NUM_PPN")

_blas_has_one_thread = False  # set at startup through environment variables
_n_holders = 0  # contexts that limit BLAS to one thread; they may overlap across threads
_threads_before: dict[str, tuple[Any, int]] = {}  # by path, for limited libraries
_holders_lock = threading.Lock()


def limit_blas_threads() -> None:
    """Limit BLAS to one thread through environment variables; call this before importing numpy."""
    global _blas_has_one_thread
    if "numpy" not in sys.modules:
        for name in ("OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM", "OMP_NUM"):
            os.environ[f"{name}_THREADS"] = "1"
        _blas_has_one_thread = True


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in this context, so that rounding does not depend on the machine.

    Most libraries have one limit for the whole process, which the last context to end restores.
    OpenMP has one limit per thread.
    """
    global _n_holders
    if _blas_has_one_thread:
        yield
        return
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController().lib_controllers
    restored = []
    with _holders_lock:
        for library in libraries:
            if "openmp" in (library.user_api, getattr(library, "threading_layer", None)):
                restored.append((library, library.num_threads))
            else:
                _threads_before.setdefault(library.filepath, (library, library.num_threads))
        _set_threads([(library, 1) for library in libraries])
        _n_holders += 1
    try:
        yield
    finally:
        with _holders_lock:
            _n_holders -= 1
            if not _n_holders:
                restored += _threads_before.values()
                _threads_before.clear()
            _set_threads(restored)
            _let_any_thread_set(library for library, _ in restored)


def _set_threads(numbers: Sequence[tuple[Any, int]]) -> None:
    """Set each library's number of threads, no matter which thread set it before."""
    _let_any_thread_set(library for library, _ in numbers)
    for library, number in numbers:
        library.set_num_threads(number)


def _let_any_thread_set(libraries: Iterable[Any]) -> None:
    """Let all threads set the limit; for OpenBLAS, threadpoolctl 3.8 lets only one thread do so."""
    for library in libraries:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


class _Slot(Generic[Result]):
    """Holds the result or the error of one task."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.result: Result | None = None
        self.error: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        self.error = error
        self.done.set()


def run(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    workers: int,
    tick: Callable[[], None] = lambda: None,
) -> Iterator[Result]:
    """Yield results in the order of the tasks; ``tick`` is called periodically while waiting."""
    return stream(function, tasks, lambda: min(workers, len(tasks)), tick)


def stream(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    workers: Callable[[], int],
    tick: Callable[[], None] = lambda: None,
) -> Iterator[Result]:
    """Like ``run``, for tasks that arrive one by one; results are yielded when ready.

    A separate thread fetches tasks, staying a few ahead of the results. ``workers`` is called when
    a second task arrives, because a single task needs only one worker.
    """
    try:
        return _Stream(function, tasks, workers).results(tick)
    except RuntimeError:  # could not allocate a lock
        raise _out_of_memory() from None


class _Stream(Generic[Task, Result]):
    """A thread that fetches tasks, worker threads, and a queue that keeps results in order."""

    def __init__(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], workers: Callable[[], int]
    ) -> None:
        self._function, self._tasks, self._workers = function, tasks, workers
        self._order: queue.SimpleQueue[_Slot[Result] | None] = queue.SimpleQueue()
        self._waiting: queue.SimpleQueue[tuple[Task, _Slot[Result]] | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(AHEAD)
        self._stopped = threading.Event()
        self._n_workers = 0
        self._failure: _Slot[Result] = _Slot()  # allocated before memory runs out
        self._threads: list[threading.Thread] = []

    def results(self, tick: Callable[[], None]) -> Iterator[Result]:
        """Start the threads and yield results in order; closing the iterator stops the threads."""
        feeder = _start(self._feed)
        try:
            while True:
                try:
                    slot = self._order.get(timeout=WAIT_SECONDS)
                except queue.Empty:
                    if not feeder.is_alive() and self._order.empty():
                        raise _out_of_memory() from None
                    tick()
                    continue
                if slot is None:
                    return
                while not slot.done.wait(WAIT_SECONDS):
                    working = feeder.is_alive() or any(one.is_alive() for one in self._threads)
                    if not working and not slot.done.is_set():
                        raise _out_of_memory()
                    tick()
                if slot.error is not None:
                    raise (
                        _out_of_memory() if "can't allocate lock" in str(slot.error) else slot.error
                    )
                yield slot.result  # type: ignore[misc]  # None only if function returned it
                self._room.release()
        finally:
            self._stopped.set()

    def _feed(self) -> None:
        most = 1  # threads, each started when there is a task for it
        try:
            for number, task in enumerate(self._tasks):
                slot: _Slot[Result] = _Slot()
                self._place(slot)
                if self._stopped.is_set():
                    return
                self._waiting.put((task, slot))
                if number == 1 and (most := max(1, self._workers())) > 1:
                    self._room.release(AHEAD * (most - 1))
                if self._n_workers < most and self._n_workers <= number:
                    self._enlist()
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            self._failure.fail(error)
            self._order.put(self._failure)
        finally:
            self._order.put(None)
            for _ in range(self._n_workers):
                self._waiting.put(None)

    def _place(self, slot: _Slot[Result]) -> None:
        while not self._room.acquire(timeout=WAIT_SECONDS):
            if self._stopped.is_set():
                return
        self._order.put(slot)

    def _enlist(self) -> None:
        try:
            self._threads.append(_start(self._work))
        except MachineError:
            if self._n_workers:
                return  # the workers that are already running do all the work
            raise
        self._n_workers += 1

    def _work(self) -> None:
        while (entry := self._waiting.get()) is not None:
            task, slot = entry
            if self._stopped.is_set():
                continue
            try:
                slot.result = self._function(task)
                slot.done.set()
            except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
                slot.fail(error)


def _start(function: Callable[[], None]) -> threading.Thread:
    try:
        thread = threading.Thread(target=function, daemon=True)
        thread.start()
    except RuntimeError:
        raise MachineError(
            "cannot start a thread", "raise the limit on memory or processes (ulimit -v, -u)"
        ) from None
    return thread


def _out_of_memory() -> MachineError:
    """Return the error for a thread that died without enough memory to report its own error."""
    return MachineError("out of memory", ("raise the memory limit (ulimit -v), or use `jobs=1`"))


def available_cores() -> int:
    """Return the minimum of CPU affinity, container quota and cores granted by a batch system."""
    # joblib could do this, but importing it takes longer than a short run
    try:
        limits = [len(os.sched_getaffinity(0))]
    except (AttributeError, OSError):  # not available on every system
        limits = [os.cpu_count() or 1]
    for name in CORE_VARIABLES:
        granted = os.environ.get(name, "")
        if re.fullmatch("[0-9]{1,6}", granted) and int(granted) > 0:
            limits.append(int(granted))
    quota = min(map(_quota, _groups(SYSTEM, "cpu")), default=inf)
    if quota != inf:
        limits.append(max(1, ceil(quota)))
    return min(limits)


def available_memory() -> float:
    """Return how many bytes the machine and the control groups have left; inf if unknown."""
    left = 1024 * _count(SYSTEM / "proc/meminfo", "MemAvailable:")
    return min([left, *map(_memory_left, _groups(SYSTEM, "memory"))])


def _memory_left(group: Path) -> float:
    """Return how many bytes a group may still use; files in its cache make room if need be."""
    second = (group / "memory.max").exists()
    try:
        limit = (group / ("memory.max" if second else "memory.limit_in_bytes")).read_text()
        used = (group / ("memory.current" if second else "memory.usage_in_bytes")).read_text()
        left = float(limit) - float(used)
    except (OSError, ValueError):  # "max" means no limit
        return inf
    name = "inactive_file" if second else "total_inactive_file"
    cached = _count(group / "memory.stat", name)
    return left + (cached if cached != inf else 0)


def _count(path: Path, name: str) -> float:
    """Return the number after a name in a file with a name and a number on each line."""
    try:
        lines = map(str.split, path.read_text().splitlines())
        return next(float(line[1]) for line in lines if line[0] == name)
    except (OSError, ValueError, IndexError, StopIteration):
        return inf


def _groups(system: Path, controller: str) -> Iterator[Path]:
    """Yield the directories of this process's control groups and of all their ancestors."""
    try:
        lines = (system / "proc/self/cgroup").read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        names = controllers.split(",")
        if controllers and controller not in names:
            continue
        # cgroup v2 has one hierarchy and an empty controller field; v1 has one per controller
        root = system / "sys/fs/cgroup" / controllers
        group = root / path.strip("/")
        yield group
        yield from (folder for folder in group.parents if folder.is_relative_to(root))


def _quota(group: Path) -> float:
    """Return how many cores a group may use."""
    try:
        if (group / "cpu.max").exists():
            limit, period = (group / "cpu.max").read_text().split()
        else:
            limit = (group / "cpu.cfs_quota_us").read_text()
            period = (group / "cpu.cfs_period_us").read_text()
        cores = float(limit) / float(period)
    except (OSError, ValueError, ZeroDivisionError):  # "max" means no limit
        return inf
    return cores if cores > 0 else inf  # -1 also means no limit
