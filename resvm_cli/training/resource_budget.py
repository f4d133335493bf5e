"""Threads, and members trained at a time, that a limit on memory leaves.

The estimates follow from sizes alone: rows in memory, kernel matrices of bags, support vectors that
score rows. With fewer threads, or members trained in rounds, the result is the same.
"""

from __future__ import annotations

from math import expm1
from typing import NamedTuple

from resvm_cli.errors import ParameterError
from resvm_cli.model.methods import Plan
from resvm_cli.model.plan import ModelPlan
from resvm_cli.model.pu_data import PUData
from resvm_cli.running.run import Run
from resvm_cli.svm.products import MAX_CELLS, MAX_ROWS
from resvm_cli.training.data import KEPT_NONZEROS

# Measured: estimates are 1.05 to 2 times what a run takes.
MARGIN = 1.15  # for what the allocator does not give back
BASE_BYTES = 60e6  # Python, numpy and the solvers
KEPT_BYTES = 12  # for each number of a row in memory: an index and a value
DRAWN_BYTES = 120  # for each number of a row that bags draw from: copies, nodes and text
FRACTION_FOR_ROWS = 8  # at most 1/8 of a limit goes to rows of U that stay in memory


class ResourceBudget(NamedTuple):
    """What a training may use."""

    threads: int
    members_at_once: int | None = None  # None: all


class MemoryEstimate(NamedTuple):
    """Bytes that are held throughout, and those that each thread adds."""

    held: float
    per_thread: float

    @property
    def least_mb(self) -> float:
        """With one thread."""
        return MARGIN * (self.held + self.per_thread) / 1e6

    def threads_within(self, limit_mb: float | None, wanted: int) -> int:
        """As many threads as fit, up to those wanted; 0 where not even one does."""
        if limit_mb is None:
            return wanted
        left = limit_mb * 1e6 / MARGIN - self.held
        return max(0, min(wanted, int(left / self.per_thread)))


def kept_nonzeros(limit_mb: float | None) -> int | None:
    """How many numbers of U stay in memory after it was read; None for the usual number."""
    if limit_mb is None:
        return None
    return min(KEPT_NONZEROS, int(limit_mb * 1e6 / FRACTION_FOR_ROWS / (2 * KEPT_BYTES)))


def training_budget(
    plan: ModelPlan, data: PUData, run: Run, threads: int, *, in_rounds: bool = False
) -> ResourceBudget:
    """Threads within the run's limit; with ``in_rounds`` members may be trained some at a time."""
    members = plan.n_models
    while True:
        estimate = training_estimate(plan, data, members)
        if fitting := estimate.threads_within(run.memory_mb, threads):
            return ResourceBudget(fitting, members if members < plan.n_models else None)
        if not in_rounds or members == 1:
            raise limit_too_small(run, estimate, "smaller bags ({n_pos}, {n_unl})")
        members = (members + 1) // 2


def limit_too_small(run: Run, estimate: MemoryEstimate, advice: str) -> ParameterError:
    return ParameterError(
        "{memory_mb} must be at least {least:.0f} for this run, got {value:g}",
        "use " + advice + ", or raise {memory_mb}",
        least=estimate.least_mb + 1,
        value=run.memory_mb,
    )


def training_estimate(plan: ModelPlan, data: PUData, members: int) -> MemoryEstimate:
    """The memory of a training whose rows are fetched for this many members at a time."""
    draws = sum(each.n_models * each.n_unl for each in plan.plans) / plan.n_models
    drawn = plan.rows_unl if plan.single else _distinct(plan.rows_unl, members * draws)
    return MemoryEstimate(
        held_bytes(data, len(data.positives), drawn),
        max(bag_bytes(data, _bag_rows(each), each.bag_size, each.cache_mb) for each in plan.plans),
    )


def held_bytes(data: PUData, n_pos: int, n_unl: float) -> float:
    """The program, the data, and these rows of P and U made ready to train on."""
    length_pos, length_unl = _row_lengths(data)
    numbers = n_pos * length_pos + n_unl * length_unl
    kept = data.survey_pos.n_nonzeros + data.n_kept
    return BASE_BYTES + KEPT_BYTES * kept + DRAWN_BYTES * numbers


def bag_bytes(data: PUData, n_rows: float, bag_size: int, cache_mb: float) -> float:
    """What a thread holds of a bag: its kernel matrix, or LIBSVM's cache alone."""
    cache = min(cache_mb * 1e6, 8.0 * bag_size**2)
    if n_rows > MAX_ROWS:
        return cache
    cells = n_rows * min(max(1, data.n_features), 3 * _row_lengths(data)[1])
    return cache + 8 * n_rows**2 + 8 * min(cells, MAX_CELLS)


def _row_lengths(data: PUData) -> tuple[float, float]:
    """The mean number of values in rows of P and of U, as members see them."""
    if data.scaling is not None and data.scaling.moves_zeros:
        return (len(data.scaling.indices),) * 2
    of_pos = data.survey_pos.n_nonzeros / max(1, len(data.positives))
    of_unl = data.survey_unl.n_nonzeros / max(1, data.n_unlabeled)
    return of_pos, of_unl if data.checked else of_pos


def _bag_rows(plan: Plan) -> float:
    """How many distinct rows a bag is expected to hold."""
    if plan.method == "cwsvm":
        return plan.bag_size
    of_pos = plan.rows_pos if plan.method == "bagging" else _distinct(plan.rows_pos, plan.n_pos)
    return of_pos + _distinct(plan.rows_unl, plan.n_unl)


def _distinct(n_rows: int, n_draws: float) -> float:
    """How many of the rows are expected to be drawn at least once."""
    return -n_rows * expm1(-n_draws / n_rows)
