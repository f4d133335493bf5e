"""The code that runs on the workers of a Dask cluster."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from resvm_cli import __version__
from resvm_cli.errors import ClusterError
from resvm_cli.model.ensemble import numeric_fingerprint
from resvm_cli.records import dataclass
from resvm_cli.running import parallel
from resvm_cli.svm.solver_libraries import package_version

FINGERPRINT = "numeric_fingerprint"


class Shared:
    """Data shared by all tasks of a run, sent once.

    Dask sends arrays separately from the object that holds them, and may place them at unaligned
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
    alone: bool = False  # run while nothing else runs on the cluster
    n_lost: int = 0  # how often its worker was lost

    def checked(self, answer: Any) -> BatchResult:
        """Return a worker's answer if it has one result for each of these tasks, in order."""
        if not isinstance(answer, BatchResult):
            raise ClusterError(f"{type(answer).__name__} instead of results")
        if answer.error is None:
            if len(answer.results) != len(self.tasks):
                counts = f"{len(answer.results)} instead of {len(self.tasks)}"
                raise ClusterError(f"wrong number of results, {counts}")
            numbers = [number for number, _ in answer.results]
            if numbers != list(range(self.first, self.first + len(self.tasks))):
                raise ClusterError("results out of order, or for other tasks")
        return answer


@dataclass(frozen=True, eq=False)
class BatchResult:
    """The results of a batch with their task numbers, the worker, and the time it took.

    An error is part of the answer: if it were raised, Dask would keep its traceback, whose frames
    keep the rows in the worker's memory after the run.
    """

    results: list[tuple[int, Any]]
    worker: str
    seconds: float
    error: Exception | None = None
    traceback: str = ""


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
    _hold_inner_threads()
    worker = import_module("distributed").get_worker().address
    started = time.perf_counter()
    try:
        tasks = enumerate(batch.tasks, batch.first)
        results = [(number, function(shared.value, task)) for number, task in tasks]
    except Exception as error:  # noqa: BLE001 - raised again by the command
        text = "".join(traceback.format_exception(error))
        error.__cause__ = error.__context__ = None  # they have tracebacks too
        return BatchResult([], worker, 0.0, error.with_traceback(None), text)
    return BatchResult(results, worker, time.perf_counter() - started)


@cache
def _hold_inner_threads() -> Any:
    """Limit BLAS to one thread from now on: rounding must not depend on the worker."""
    held = parallel.inner_threads_held()
    held.__enter__()
    return held  # keep a reference, or the limit would end
