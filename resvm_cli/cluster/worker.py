"""What runs on the workers of a Dask cluster."""

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
    """What all tasks of a run need, sent once.

    Dask sends arrays apart from their object, and puts them at addresses that need not be aligned,
    as solvers require. In one text with their object they are copied to aligned ones.
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
    alone: bool = False  # run with nothing else on the cluster
    n_lost: int = 0  # how often it was lost with its workers


@dataclass(frozen=True, eq=False)
class BatchResult:
    """The results of a batch, from whom, and how long they took."""

    results: list[Any]
    worker: str
    seconds: float


def identity() -> dict[str, str]:
    """The versions that results depend on, and how the processor rounds."""
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
    """Keep BLAS on one thread from now on: its rounding must not depend on the worker."""
    return parallel.inner_threads_held()
