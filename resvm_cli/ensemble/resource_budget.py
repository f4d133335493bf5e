"""How many threads, and how many members at a time, the memory at hand allows.

The estimates depend only on the sizes of the rows in memory, of the kernel matrices of bags, and of
the support vectors used for scoring. Using fewer threads, or training members in
rounds, does not affect the result.
"""

from __future__ import annotations

from math import expm1
from typing import NamedTuple

from resvm_cli.data.pudata import KEPT_BYTES, PUData
from resvm_cli.ensemble.plan import Plan, SettingPlan
from resvm_cli.run import Run
from resvm_cli.svm.libsvm import CACHE_MB
from resvm_cli.svm.products import MAX_CELLS, MAX_ROWS
from resvm_cli.svm.smo import MAX_DRAWS
from resvm_cli.threads import available_memory

# Below about this many multiplications, a second thread is not worth starting.
SMALL_WORK = 1e8
# In measurements, estimates were 1.05 to 2 times the memory that runs actually used.
MARGIN = 1.15  # for memory that the allocator does not return
BASE_BYTES = 60e6  # Python, numpy and the solvers
DRAWN_BYTES = 120  # per nonzero of a row that bags draw from: copies, nodes and text


class ResourceBudget(NamedTuple):
    threads: int
    members_at_once: int | None = None  # None: all


class MemoryEstimate(NamedTuple):
    """Bytes that a run needs throughout, and bytes that each thread adds."""

    held: float
    per_thread: float

    def threads_within(self, memory: float, wanted: int) -> int:
        """Return how many threads fit into memory, at most ``wanted``; 0 if not even one fits."""
        left = memory / MARGIN - self.held
        return int(max(0, min(wanted, left / self.per_thread)))


def work_of(plan: Plan, data: PUData) -> float:
    """Estimate the number of multiplications needed for training."""
    row_length = data.summary_pos.n_nonzeros / len(data.positives)
    return sum(each.n_models * each.bag_size**2 for each in plan.settings) * (row_length + 8)


def training_budget(
    plan: Plan, data: PUData, run: Run, *, in_rounds: bool = False
) -> ResourceBudget:
    """Return as many threads as the work justifies and the memory allows.

    ``in_rounds`` allows training members in rounds. If even that is too much, the run goes on as
    economically as it can.
    """
    small = run.jobs is None and work_of(plan, data) < SMALL_WORK
    threads = 1 if small else run.workers()
    members, memory = plan.n_models, available_memory()
    while True:
        some = members if members < plan.n_models else None
        fitting = training_estimate(plan, data, members).threads_within(memory, threads)
        if fitting or not in_rounds or members == 1:
            return ResourceBudget(max(1, fitting), some)
        members = (members + 1) // 2


def training_estimate(plan: Plan, data: PUData, members: int) -> MemoryEstimate:
    """Estimate the memory needed if rows are fetched for this many members at a time."""
    draws = sum(each.n_models * each.n_unl for each in plan.settings) / plan.n_models
    drawn = plan.rows_unl if plan.single else _distinct(plan.rows_unl, members * draws)
    return MemoryEstimate(
        held_bytes(data, len(data.positives), drawn),
        max(bag_bytes(data, _bag_rows(p), p.bag_size, p.by_libsvm) for p in plan.settings),
    )


def held_bytes(data: PUData, n_pos: int, n_unl: float) -> float:
    """Estimate the bytes needed for the program, the data, and this many prepared rows."""
    length_pos, length_unl = _row_lengths(data)
    numbers = n_pos * length_pos + (n_unl + len(data.negatives)) * length_unl
    kept = data.summary_pos.n_nonzeros + data.n_kept + data.summary_neg.n_nonzeros
    return BASE_BYTES + KEPT_BYTES * kept + DRAWN_BYTES * numbers


def bag_bytes(data: PUData, n_rows: float, bag_size: int, by_libsvm: bool) -> float:
    """Estimate the bytes a thread needs for a bag: its kernel matrix, or only LIBSVM's cache."""
    lines = 8.0 * min(bag_size, MAX_DRAWS) ** 2
    cache = min(CACHE_MB * 1e6, 8.0 * bag_size**2)
    if n_rows > MAX_ROWS:
        return cache
    cells = n_rows * min(max(1, data.n_features), 3 * _row_lengths(data)[1])
    per_value = 24 if by_libsvm else 8  # LIBSVM takes kernel values as nodes of 16 bytes
    return (cache if by_libsvm else lines) + per_value * n_rows**2 + 8 * min(cells, MAX_CELLS)


def _row_lengths(data: PUData) -> tuple[float, float]:
    """Return the mean numbers of values in a row of P and in a row of U, after scaling."""
    if data.scaling is not None and data.scaling.moves_zeros:
        return (len(data.scaling.indices),) * 2
    of_pos = data.summary_pos.n_nonzeros / max(1, len(data.positives))
    of_unl = data.summary_unl.n_nonzeros / max(1, data.n_unlabeled)
    return of_pos, of_unl


def _bag_rows(plan: SettingPlan) -> float:
    """Return the expected number of distinct rows in a bag."""
    if plan.method == "cwsvm":
        return plan.bag_size
    of_pos = plan.rows_pos if plan.method == "bagging" else _distinct(plan.rows_pos, plan.n_pos)
    return of_pos + _distinct(plan.rows_unl, plan.n_unl) + plan.n_neg


def _distinct(n_rows: int, n_draws: float) -> float:
    """Return the expected number of rows drawn at least once."""
    return -n_rows * expm1(-n_draws / n_rows)
