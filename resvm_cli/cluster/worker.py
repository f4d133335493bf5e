"""The code that runs on the workers of a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from resvm_cli import __version__
from resvm_cli.model.ensemble import numeric_fingerprint
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


@dataclass(frozen=True, eq=False)
class BatchResult:
    """The results of a batch, the worker that computed them, and the time it took."""

    results: list[Any]
    worker: str
    seconds: float


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
    """Run the tasks of a batch."""
    _hold_inner_threads()
    started = time.perf_counter()
    results = [function(shared.value, task) for task in batch.tasks]
    worker = import_module("distributed").get_worker().address
    return BatchResult(results, worker, time.perf_counter() - started)


@cache
def _hold_inner_threads() -> Any:
    """Limit BLAS to one thread from now on: rounding must not depend on the worker."""
    held = parallel.inner_threads_held()
    held.__enter__()
    return held  # kept, as the limit would end with it
