"""The one way to run many tasks: results in task order, the main thread free for signals.

Workers are threads: the solvers and BLAS release the GIL, so threads scale like processes without
their start-up and without copying the data. A C call cannot be cancelled, so it never runs in the
main thread, and the threads are daemons: an interrupted program need not wait for them.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

# Waiting without a limit would hold back signals on some platforms.
WAIT_SECONDS = 0.5


_held = False


def hold_inner_threads() -> None:
    """Keep BLAS to one thread from its start: cheapest, but only before numpy is imported."""
    global _held
    if "numpy" not in sys.modules:
        for name in ("OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM", "OMP_NUM"):
            os.environ[f"{name}_THREADS"] = "1"
        _held = True


def inner_threads_held() -> AbstractContextManager[Any]:
    """Within this context BLAS runs on one thread: its rounding must not depend on the machine."""
    if _held:
        return nullcontext()
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits


def available_cores() -> int:
    """Cores this process may use: affinity, cgroups and a batch system's share are respected."""
    import joblib

    cores = int(joblib.cpu_count())
    share = os.environ.get("SLURM_CPUS_PER_TASK", "")
    return max(1, min(cores, int(share))) if share.isdigit() and int(share) > 0 else cores


def run(
    function: Callable[[Task], Result], tasks: Sequence[Task], workers: int
) -> Iterator[Result]:
    """Call ``function`` on every task and yield the results in the order of the tasks."""
    waiting = iter(list(enumerate(tasks)))
    lock = threading.Lock()
    done: queue.SimpleQueue[tuple[int, Result | None, BaseException | None]] = queue.SimpleQueue()
    stopped = threading.Event()

    def work() -> None:
        while not stopped.is_set():
            with lock:
                entry = next(waiting, None)
            if entry is None:
                return
            number, task = entry
            try:
                done.put((number, function(task), None))
            except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
                done.put((number, None, error))

    for _ in range(max(1, min(workers, len(tasks)))):
        threading.Thread(target=work, daemon=True).start()
    early: dict[int, tuple[Result | None, BaseException | None]] = {}
    try:
        for number in range(len(tasks)):
            while number not in early:
                try:
                    finished, result, error = done.get(timeout=WAIT_SECONDS)
                except queue.Empty:
                    continue
                early[finished] = (result, error)
            result, error = early.pop(number)
            if error is not None:
                raise error
            yield result  # type: ignore[misc]  # None only where function returned it
    finally:
        stopped.set()
