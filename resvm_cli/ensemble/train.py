"""Train the members of a plan within memory: from the rows that bags draw to solved members.

Member i and its out-of-bag values depend only on (seed, i) and the data. Parts of a plan, joined in
member order, are therefore identical to a model trained in one run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from resvm_cli import threads as parallel
from resvm_cli.data.pudata import KEPT_BYTES, PUData
from resvm_cli.data.scaling import Scaling
from resvm_cli.ensemble.ensemble import Ensemble, Member, Section
from resvm_cli.ensemble.oob import OutOfBagSample, TrainingRows, UnseenMask, stored_values
from resvm_cli.ensemble.plan import Plan
from resvm_cli.ensemble.relevance import FeatureBins, Relevance, learn_bins
from resvm_cli.parameters import ScalingName
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, Rows, distinct
from resvm_cli.run import Run
from resvm_cli.svm import kernels, libsvm, smo
from resvm_cli.svm.kernels import Problem
from resvm_cli.svm.libsvm import CACHE_MB, LinearSolution, NodeArray
from resvm_cli.svm.products import MAX_CELLS, MAX_ROWS, Bag, bag_values
from resvm_cli.svm.smo import MAX_DRAWS
from resvm_cli.threads import available_memory

if TYPE_CHECKING:
    from resvm_cli.svm.liblinear import LinearTrainer

# A bag of 100 rows trains in less than a millisecond; dispatching it takes half as long.
BATCH_ROWS = 3000
MIN_BATCHES = 8  # per worker, so that all workers finish at about the same time
# Below about this many multiplications, a second thread is not worth starting.
SMALL_WORK = 1e8
# In measurements, estimates were 1.05 to 2 times the memory that runs actually used.
MARGIN = 1.15  # for memory that the allocator does not return
BASE_BYTES = 60e6  # Python, numpy and the solvers
DRAWN_BYTES = 120  # per nonzero of a row that bags draw from: copies, nodes and text


class ResourceBudget(NamedTuple):
    """What the memory at hand allows, which does not affect the result."""

    threads: int
    members_at_once: int | None = None  # None: all


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
    members = plan.n_models
    while True:
        fitting = threads_within(*training_bytes(plan, data, members), threads)
        if fitting or not in_rounds or members == 1:
            return ResourceBudget(max(1, fitting), members if members < plan.n_models else None)
        members = (members + 1) // 2


def threads_within(held: float, per_thread: float, wanted: int) -> int:
    """Return how many threads fit into memory, besides what is held; 0 if not even one fits."""
    return int(max(0, min(wanted, (available_memory() / MARGIN - held) / per_thread)))


def training_bytes(plan: Plan, data: PUData, members: int) -> tuple[float, float]:
    """Return the bytes held, and those per thread, if this many members' rows are fetched."""
    draws = sum(each.n_models * each.n_unl for each in plan.settings) / plan.n_models
    held = held_bytes(data, len(data.positives), min(plan.rows_unl, members * draws))
    return held, max(bag_bytes(data, each.bag_size, each.by_libsvm) for each in plan.settings)


def held_bytes(data: PUData, n_pos: int, n_unl: float) -> float:
    """Estimate the bytes needed for the program, the data, and this many prepared rows."""
    length_pos, length_unl = _row_lengths(data)
    numbers = n_pos * length_pos + (n_unl + len(data.negatives)) * length_unl
    kept = data.summary_pos.n_nonzeros + data.n_kept + data.summary_neg.n_nonzeros
    return BASE_BYTES + KEPT_BYTES * kept + DRAWN_BYTES * numbers


def bag_bytes(data: PUData, bag_size: int, by_libsvm: bool) -> float:
    """Estimate the bytes a thread needs for a bag: its kernel matrix, or only LIBSVM's cache."""
    n_rows = min(bag_size, len(data.positives) + data.n_unlabeled + len(data.negatives))
    cache = min(CACHE_MB * 1e6, 8.0 * bag_size**2)
    if n_rows > MAX_ROWS:
        return cache
    lines = cache if by_libsvm else 8.0 * min(bag_size, MAX_DRAWS) ** 2
    cells = n_rows * min(max(1, data.n_features), 3 * _row_lengths(data)[1])
    per_value = 24 if by_libsvm else 8  # LIBSVM takes kernel values as nodes of 16 bytes
    return lines + per_value * n_rows**2 + 8 * min(cells, MAX_CELLS)


def _row_lengths(data: PUData) -> tuple[float, float]:
    """Return the mean numbers of values in a row of P and in a row of U, after scaling."""
    if data.scaling is not None and data.scaling.moves_zeros:
        return (len(data.scaling.indices),) * 2
    of_pos = data.summary_pos.n_nonzeros / max(1, len(data.positives))
    return of_pos, data.summary_unl.n_nonzeros / max(1, data.n_unlabeled)


@dataclass(frozen=True, eq=False)
class Part:
    """Consecutive members of a model."""

    plan: Plan
    members: range
    ensemble: Ensemble
    converged: tuple[bool, ...]
    sample: OutOfBagSample
    values: FloatArray  # members x sampled rows, P before U; nan if the member has seen the row
    problems: Sequence[Problem]
    drawn: IntArray  # ascending numbers of the rows of U that are in any bag or in the sample
    unlabeled: Rows  # these rows, unscaled

    @property
    def n_unconverged(self) -> int:
        return self.converged.count(False)


def rows_drawn(problems: Sequence[Problem]) -> IntArray:
    """Return the ascending numbers of the rows of U that are in any bag."""
    return distinct(np.concatenate([problem.unlabeled for problem in problems]))


def train_parts(
    plan: Plan,
    batches: Sequence[range],
    data: PUData,
    run: Run,
    on_members: Callable[[int], None] = lambda done: None,
) -> Iterator[Part]:
    """Yield each batch of members as soon as it is trained; rows are fetched once for all batches.

    ``on_members`` is called with the number of members trained so far.
    """
    plan.require_memory(batches)
    tasks = {members: plan.problems(members) for members in batches}
    sample = OutOfBagSample.from_plan(plan)
    drawn = rows_drawn([problem for some in tasks.values() for problem in some])
    drawn = distinct(np.concatenate([drawn, sample.unlabeled]))
    unlabeled = data.fetch(drawn)
    sampled = unlabeled.take(np.searchsorted(drawn, sample.unlabeled))
    unscaled = Rows.concatenate([data.positives.take(sample.positive), sampled])
    numbers = np.concatenate([sample.positive, len(data.positives) + sample.unlabeled])
    # before scaling, which may fill in rows without features
    training_rows = TrainingRows(data.positives, unlabeled, drawn, data.groups(), unscaled)
    alone = sum(map(len, batches)) == 1 and not run.is_remote
    n_workers = run.workers()
    n_columns = data.n_features + (0 if data.zero_based else 1)
    trainer = Trainer.from_data(plan, data, unlabeled, drawn, n_workers if alone else 1)
    done = 0

    def tick(members: int) -> None:
        on_members(done + members)

    for members, some in tasks.items():
        sections = plan.sections(members)
        ensemble, converged = fit(trainer, some, sections, run, single=plan.single, on_members=tick)
        values = np.zeros((len(some), 0))
        if len(sample):
            unseen = UnseenMask(some, training_rows).unseen(numbers, unscaled)
            threads = parallel.available_cores() if run.is_remote else n_workers
            values = stored_values(ensemble, unscaled, unseen, n_columns, threads)
        done += len(members)
        yield Part(plan, members, ensemble, converged, sample, values, some, drawn, unlabeled)


def fit(
    trainer: Trainer,
    problems: Sequence[Problem],
    sections: tuple[Section, ...],
    run: Run,
    *,
    single: bool,
    on_members: Callable[[int], None] = lambda done: None,
) -> tuple[Ensemble, tuple[bool, ...]]:
    """Train one member per problem; return the ensemble and which members converged."""
    members: list[Member] = []
    pool = _GrowingPool(trainer)
    converged: list[bool] = []

    def tick() -> None:
        on_members(len(members))

    # large enough to be worth dispatching, yet numerous enough to keep all workers busy
    bag_size = len(problems[0].positive) + len(problems[0].unlabeled)
    size = max(1, min(BATCH_ROWS // bag_size, len(problems) // (MIN_BATCHES * run.workers())))
    batches = [problems[at : at + size] for at in range(0, len(problems), size)]

    def name(number: int) -> str:
        batch = batches[number]
        first, last = batch[0].name, batch[-1].name
        return first if len(batch) == 1 else f"{first}, or a later one up to {last},"

    for solutions in run.map_shared(Trainer.train_all, trainer, batches, tick, name):
        for solution in solutions:
            members.append(pool.add(solution, problems[len(members)]))
            converged.append(solution.converged)
        tick()
    return Ensemble(sections, pool.rows(), members, single, trainer.scalings), tuple(converged)


class TrainedMember(NamedTuple):
    """A member whose support vectors are numbered within ``rows`` or, by default, the training set.

    A linear member has a single support vector, its weights. If a member weights features, its
    support vectors are already multiplied by these weights.
    """

    member: Member
    converged: bool
    rows: Rows | None = None


class _GrowingPool:
    """Collects the rows that members refer to: scaled training sets and members' own rows."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._parts: list[Rows] = []
        self._size = 0
        self._offsets: dict[ScalingName | None, int] = {}  # where each training set starts

    def _appended(self, rows: Rows) -> int:
        self._parts.append(rows)
        self._size += len(rows)
        return self._size - len(rows)

    def add(self, trained: TrainedMember, problem: Problem) -> Member:
        """Return the member with its support vectors numbered within the pool."""
        if trained.rows is not None:
            offset = self._appended(trained.rows)
        else:
            if problem.scale not in self._offsets:
                rows = self._trainer.sets[problem.scale].rows
                if problem.kernel.is_precomputed:
                    rows = kernels.serial_rows(rows)
                self._offsets[problem.scale] = self._appended(rows)
            offset = self._offsets[problem.scale]
        if not offset:
            return trained.member
        return replace(trained.member, support=trained.member.support + offset)

    def rows(self) -> Rows:
        return self._parts[0] if len(self._parts) == 1 else Rows.concatenate(self._parts)


@dataclass(frozen=True, eq=False)
class Trainer:
    """Trains members on bags drawn from all of P and the drawn rows of U, under each scaling."""

    sets: Mapping[ScalingName | None, TrainingSet]
    scalings: Mapping[ScalingName, Scaling]
    drawn: IntArray  # row numbers in U, ascending
    n_positives: int

    @classmethod
    def from_data(
        cls, plan: Plan, data: PUData, unlabeled: Rows, drawn: IntArray, inner_threads: int
    ) -> Trainer:
        """Scale all of P and these rows of U, numbered by ``drawn``, as the plan requires."""
        sets = {}
        for kind in plan.scalings:
            weighted = any(p.scale == kind and p.relevance_power is not None for p in plan.settings)
            rows = [data.scaled(data.positives, kind), data.scaled(unlabeled, kind)]
            bins = learn_bins(data, kind) if weighted else None
            sets[kind] = TrainingSet(Rows.concatenate(rows), inner_threads, bins)
        learned = map(data.scaling_by, plan.scalings)
        scalings = {scaling.kind: scaling for scaling in learned if scaling is not None}
        return cls(sets, scalings, drawn, len(data.positives))

    def train_all(self, problems: Sequence[Problem]) -> list[TrainedMember]:
        return [
            self.sets[problem.scale].train(
                problem,
                problem.positive,
                np.searchsorted(self.drawn, problem.unlabeled) + self.n_positives,
            )
            for problem in problems
        ]


class TrainingSet:
    """Rows that bags are drawn from, and bins for feature weights, by default those of the rows.

    The solvers' copies of the rows are not pickled; they are rebuilt.
    """

    def __init__(self, rows: Rows, inner_threads: int = 1, bins: FeatureBins | None = None) -> None:
        self.rows = rows.without_zeros()
        self._inner_threads = inner_threads
        self._bins = bins

    def __getstate__(self) -> dict[str, Any]:
        made = ("_nodes", "_linear_trainer", "_all_rows", "_relevance")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    @cached_property
    def _nodes(self) -> NodeArray:
        return NodeArray(self.rows)

    @cached_property
    def _linear_trainer(self) -> LinearTrainer:
        from resvm_cli.svm.liblinear import LinearTrainer

        return LinearTrainer(self.rows)

    @cached_property
    def _all_rows(self) -> Bag:
        return Bag.from_rows(self.rows)

    @cached_property
    def _relevance(self) -> Relevance:
        return Relevance(self.rows, self._bins or FeatureBins.learn(self.rows))

    def train(self, problem: Problem, positive: IntArray, unlabeled: IntArray) -> TrainedMember:
        """Train on the rows with these numbers, computing kernel values as suits the bag's size."""
        # a row drawn twice appears once; P precedes U, so positives come first
        numbers, place = np.unique(np.concatenate([positive, unlabeled]), return_inverse=True)
        n_positive = len(positive)
        bag = None
        if problem.solver != "liblinear":
            bag = self._all_rows.part(numbers, problem.kernel, needed=problem.n_negative > 0)
        weights = None
        if problem.relevance_power is not None:
            weights = self._relevance.weights(positive, unlabeled, problem.relevance_power)
            weights = weights if len(weights.indices) else None
        if weights is not None and bag is None:  # a large bag, or LIBLINEAR
            rows = TrainingSet(self.rows.take(numbers).times(weights), self._inner_threads)
            plain = replace(problem, relevance_power=None)
            trained = rows.train(plain, place[:n_positive], place[n_positive:])
            if trained.rows is not None:
                return trained._replace(rows=trained.rows.times(weights))
            return _weighted_member(trained, rows.rows.take(trained.member.support), weights)
        if problem.solver == "liblinear":
            return _linear_member(self._linear_trainer.train(problem, positive, unlabeled))
        if bag is None:
            libsvm.use_threads(self._inner_threads)
            solution = libsvm.train(problem, self._nodes, positive, unlabeled)
        else:
            bag = bag if weights is None else bag.times(weights)
            solution = smo.solve_bag(bag_values(problem.kernel, bag), place, n_positive, problem)

        drawn = place[solution.support]
        coefficients = np.bincount(drawn, solution.coefficients, len(numbers)).astype(np.float64)
        if problem.kernel.name == "linear":
            bag = bag or Bag.from_rows(self.rows.take(numbers))
            line = bag.combined(coefficients)
            if weights is not None:  # an equivalent member for unweighted rows
                line = line.times(weights)
            return _linear_member(LinearSolution(line, solution.rho, solution.converged))
        used = np.zeros(len(numbers), bool)
        used[drawn] = True
        support = np.flatnonzero(used)
        n_support_pos = int(np.searchsorted(support, place[n_positive:].min()))
        member = Member(numbers[support], coefficients[used], solution.rho, n_support_pos)
        trained = TrainedMember(member, solution.converged)
        if weights is None or bag is None:
            return trained
        return _weighted_member(trained, bag.original_rows().take(support), weights)


def _linear_member(solution: LinearSolution) -> TrainedMember:
    member = Member(np.zeros(1, np.int64), np.ones(1), solution.rho, 1)
    return TrainedMember(member, solution.converged, solution.weights)


def _weighted_member(trained: TrainedMember, rows: Rows, weights: Rows) -> TrainedMember:
    """Return the member with these support vectors, which are multiplied by ``weights``."""
    member = replace(trained.member, support=np.arange(len(rows)), weights=weights)
    return TrainedMember(member, trained.converged, rows)
