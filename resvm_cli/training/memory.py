"""What a run will need of memory, said before it starts, and what it gives up to stay within less.

The figures follow from sizes alone: rows that are held, kernel matrices of bags, what members are
judged with. None of what is given up changes a result but one, which is said: threads, LIBSVM's
cache, rows of U that stay in memory, members trained together; of a tuning, in the end, the kernel
values that candidates share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import expm1
from typing import TypeVar

from resvm_cli.errors import CommandLineError
from resvm_cli.model.ensemble import NEVER_DENSE_CELLS
from resvm_cli.model.methods import Plan
from resvm_cli.model.out_of_bag import CELLS_AT_ONCE, POOL_CELLS_AT_ONCE
from resvm_cli.model.plan import ModelPlan
from resvm_cli.model.pu_data import PUData
from resvm_cli.model.rank_intervals import n_resamples
from resvm_cli.model.shared_kernels import SharedKernels
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.svm.products import (
    MAX_CELLS,
    MAX_ROWS,
    MIN_DENSITY,
)
from resvm_cli.training.data import KEPT_NONZEROS
from resvm_cli.tuning.sample import TuningSample
from resvm_cli.tuning.settings import TuningSettings

Settings = TypeVar("Settings", bound=TuningSettings)

# Measured; the forecast is then 1.05 to 1.8 times what a run takes (docs/cluster.md).
MARGIN = 1.15  # what the allocator does not give back
BASE_BYTES = 60e6  # Python, numpy and the solvers
NUMBER_BYTES = 12  # of a row that is held: an index and a value
DRAWN_BYTES = 100  # for each number of a row that bags draw from: copies, and text in the end
POOL_BYTES = 16  # for each cell of the support rows that judge
JUDGED_BYTES = 24  # for each value of a member on a row that is judged
MATRIX_BYTES = 8  # for each pair of a bag's rows: a kernel value
CACHED_BYTES = 4  # LIBSVM's own, for each pair
LINE_BYTES = 8  # for each pair: what the solver has of kernel values where they are known
NODE_BYTES = 16
LISTED_BYTES = 150  # for each row of a ranking
LEAST_CACHE_MB = 10.0
WORTH_SAYING_MB = 150.0
SHARE_FOR_ROWS = 8  # of a limit, at most one part in so many for rows of U that are kept


@dataclass(frozen=True)
class Need:
    """Bytes: what is held throughout, and for each stage what it holds and what its threads do."""

    held: float
    stages: tuple[tuple[float, float], ...]

    def megabytes(self, threads: int) -> float:
        most = max(fixed + threads * each for fixed, each in self.stages)
        return MARGIN * (self.held + most) / 1e6

    def threads_within(self, limit_mb: float | None, wanted: int) -> int:
        """As many threads as there is room for, up to those wanted; 0 where there is none."""
        if limit_mb is None:
            return wanted
        fitting = (count for count in range(wanted, 0, -1) if self.megabytes(count) <= limit_mb)
        return next(fitting, 0)


@dataclass(frozen=True)
class Allotment:
    """What a training may use."""

    plan: ModelPlan  # with the cache that there is room for
    threads: int
    members_at_once: int | None = None  # None: all


def kept_nonzeros(limit_mb: float | None) -> int:
    """How many numbers of U stay in memory after it was read."""
    if limit_mb is None:
        return KEPT_NONZEROS
    return min(KEPT_NONZEROS, int(limit_mb * 1e6 / SHARE_FOR_ROWS / (2 * NUMBER_BYTES)))


def announce(needs: Sequence[Need], threads: int, run: Run) -> None:
    """Tell threads, cores and memory, where there is more to it than a moment's work."""
    asked = run.memory_mb is not None or run.jobs is not None
    megabytes = max(need.megabytes(threads) for need in needs)
    if not asked and threads == 1 and megabytes < WORTH_SAYING_MB:
        return
    if run.is_remote:
        most = max(need.megabytes(1) for need in needs)
        run.announce(f"a worker of one thread needs about {most:,.0f} MB of memory")
        return
    cores, why = parallel.core_limit()
    run.announce(
        f"{_counted(threads, 'thread')}; {_counted(cores, 'core')}, {why};"
        f" about {megabytes:,.0f} MB of memory"
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def allot_training(
    plan: ModelPlan,
    data: PUData,
    wanted: int,
    limit_mb: float | None,
    *,
    in_rounds: bool,
    ranked: Callable[[ModelPlan], tuple[float, float]] | None = None,
) -> tuple[Allotment, Need]:
    """Threads, cache and members at once for a training within a limit.

    ``in_rounds``: members may be trained some at a time, their rows fetched anew. ``ranked`` adds
    the stage that judges every row.
    """
    best: tuple[Allotment, Need] | None = None
    for members in _fewer(plan.n_models) if in_rounds else [plan.n_models]:
        for cache in _smaller_caches(plan):
            cached = _with_cache(plan, cache)
            more = () if ranked is None else (ranked(cached),)
            need = training_need(cached, data, members, more)
            threads = need.threads_within(limit_mb, wanted)
            found = Allotment(cached, threads, members if members < plan.n_models else None), need
            if threads == wanted:
                return found
            if best is None or threads > best[0].threads:
                best = found
        if best is not None and best[0].threads:
            return best
    advice = "smaller bags (--n-pos, --n-unl)" + (", or --no-interval" if ranked else "")
    raise _too_little(limit_mb, need, advice)


def _too_little(limit_mb: float | None, need: Need, advice: str) -> CommandLineError:
    return CommandLineError(
        f"--memory-mb {limit_mb:g} is too little: about {need.megabytes(1):,.0f} MB are needed"
        " with one thread",
        f"{advice}; or a larger --memory-mb",
    )


def _fewer(n_models: int) -> Iterator[int]:
    while n_models > 1:
        yield n_models
        n_models = (n_models + 1) // 2
    yield 1


def _smaller_caches(plan: ModelPlan) -> list[float]:
    given = max(each.cache_mb for each in plan.plans)
    return [given, *(cache for cache in (given / 3, LEAST_CACHE_MB) if cache >= LEAST_CACHE_MB)]


def _with_cache(plan: ModelPlan, cache_mb: float) -> ModelPlan:
    return replace(
        plan,
        plans=tuple(replace(each, cache_mb=min(each.cache_mb, cache_mb)) for each in plan.plans),
    )


@dataclass(frozen=True)
class _Rows:
    """How long rows are, as members see them, and how much of them is held."""

    of_pos: float
    of_unl: float
    width: int
    held: float  # bytes

    @classmethod
    def of(cls, data: PUData) -> _Rows:
        numbers_pos = data.survey_pos.n_nonzeros
        of_pos = numbers_pos / max(1, len(data.positives))
        of_unl = data.survey_unl.n_nonzeros / max(1, data.n_unlabeled) if data.checked else of_pos
        width = max(1, data.n_features)
        held = NUMBER_BYTES * (numbers_pos + data.n_kept)
        if data.scaling is not None and data.scaling.moves_zeros:
            of_pos = of_unl = width = len(data.scaling.indices)
        return cls(of_pos, of_unl, width, held)

    def pool_bytes(self, n_rows: float, most_cells: int) -> float:
        """Of support rows, dense or sparse."""
        if self._dense:
            return POOL_BYTES * min(n_rows * self.width, most_cells)
        return 3 * NUMBER_BYTES * n_rows * self.of_unl

    def bag_bytes(self, n_rows: float, pairs: float, cache_mb: float) -> float:
        """What a thread holds of a bag: its kernel matrix, or LIBSVM's cache alone."""
        if n_rows > MAX_ROWS:
            return min(cache_mb * 1e6, CACHED_BYTES * pairs)
        cells = n_rows * self.width if self._dense else 3 * n_rows * self.of_unl
        lines = min(cache_mb * 1e6, LINE_BYTES * pairs)
        return lines + MATRIX_BYTES * n_rows**2 + 8 * min(cells, MAX_CELLS)

    @property
    def _dense(self) -> bool:
        return self.of_unl >= MIN_DENSITY * self.width


def _distinct(n_rows: int, n_draws: int) -> float:
    """How many of so many rows are drawn at least once."""
    return -n_rows * expm1(-n_draws / n_rows)


def _in_bag(plan: Plan) -> float:
    if plan.method == "cwsvm":
        return plan.rows_pos + plan.rows_unl
    of_pos = plan.rows_pos if plan.method == "bagging" else _distinct(plan.rows_pos, plan.n_pos)
    return of_pos + _distinct(plan.rows_unl, plan.n_unl)


def _rows_drawn(plan: ModelPlan, members: int) -> float:
    if plan.single:
        return plan.rows_unl
    share = members / plan.n_models
    draws = share * sum(each.n_models * each.n_unl for each in plan.plans)
    return _distinct(plan.rows_unl, int(draws) + 1)


def training_need(
    plan: ModelPlan, data: PUData, members: int, more: Sequence[tuple[float, float]] = ()
) -> Need:
    """Of a training whose rows are fetched for so many members at a time."""
    rows = _Rows.of(data)
    drawn = _rows_drawn(plan, members)
    numbers = len(data.positives) * rows.of_pos + drawn * rows.of_unl
    held = BASE_BYTES + rows.held + DRAWN_BYTES * numbers
    sizes = [(_in_bag(each), each) for each in plan.plans]
    if any(size > MAX_ROWS or each.solver == "liblinear" for size, each in sizes):
        held += NODE_BYTES * numbers
    by_libsvm = [(size, each) for size, each in sizes if each.solver == "libsvm"]
    bags = [rows.bag_bytes(size, each.bag_size**2, each.cache_mb) for size, each in by_libsvm]
    each_thread = max(bags, default=NODE_BYTES * rows.width)  # LIBLINEAR's weights
    pool = rows.pool_bytes(len(data.positives) + drawn, POOL_CELLS_AT_ONCE)
    return Need(held, ((0.0, each_thread), (pool, 0.0), *more))


def ranking_stage(plan: ModelPlan, data: PUData, intervals: bool) -> tuple[float, float]:
    """What judging every row takes, and what each of its threads."""
    rows = _Rows.of(data)
    n_rows = plan.rows_pos + plan.rows_unl
    fixed = rows.pool_bytes(plan.rows_pos + _rows_drawn(plan, plan.n_models), NEVER_DENSE_CELLS)
    fixed += LISTED_BYTES * n_rows
    if intervals:
        fixed += 4.0 * n_rows * n_resamples(n_rows)
    return fixed, JUDGED_BYTES * min(CELLS_AT_ONCE, plan.n_models * n_rows)


def tuning_need(
    data: PUData, n_pos: int, n_unl: int, largest_bag: int, cache_mb: float, *, shared: bool
) -> Need:
    """Of candidates judged on so many rows of P and of U, where the largest bag has so many."""
    rows = _Rows.of(data)
    numbers = n_pos * rows.of_pos + n_unl * rows.of_unl
    n_rows = n_pos + n_unl
    held = BASE_BYTES + rows.held + DRAWN_BYTES * numbers
    pairs = largest_bag**2
    if shared:
        held += 8.0 * n_rows**2
        lines = min(cache_mb * 1e6, LINE_BYTES * pairs)
        return Need(held, ((0.0, 8.0 * n_rows**2 + lines),))
    each = rows.bag_bytes(largest_bag, pairs, cache_mb)
    each += rows.pool_bytes(n_rows, NEVER_DENSE_CELLS) + NODE_BYTES * numbers
    return Need(held, ((0.0, each),))


def tuning_within(
    data: PUData,
    sample: TuningSample,
    settings: Settings,
    run: Run,
    others: Sequence[Need] = (),
) -> tuple[TuningSample, Settings, Run]:
    """The sample, settings and threads as there is room for them; ``others`` come later."""
    kernels = sample.kernels
    limit_mb = run.memory_mb
    # a limit is to be kept where ranges are extended too
    bag = sample.largest_bag(settings, extended=limit_mb is not None)
    wanted = run.workers()
    for shared in (True, False) if kernels.shares_kernels else (False,):
        need = tuning_need(
            data,
            len(kernels.positives),
            len(kernels.unlabeled),
            bag,
            settings.base.cache_mb,
            shared=shared,
        )
        threads = need.threads_within(limit_mb, wanted)
        if threads:
            break
    else:
        raise _too_little(limit_mb, need, "fewer rows (--max-unl)")
    announce([need, *others], threads, run)
    within = replace(run, jobs=threads)
    if shared or not kernels.shares_kernels:
        return sample, settings, within
    run.notice(
        "--memory-mb leaves no room for kernel values that candidates share: each bag has its own,"
        " which takes longer, and scores may differ in their last digits"
    )
    alone = SharedKernels(kernels.positives, kernels.unlabeled, 0.0)
    return replace(sample, kernels=alone), replace(settings, gram_mb=0.0), within
