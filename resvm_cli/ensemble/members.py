"""Train the members of an ensemble on rows in memory: from the rows drawn to solved members.

Member i depends only on (seed, i) and the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli.data.pudata import PUData
from resvm_cli.data.scaling import Scaling
from resvm_cli.ensemble.ensemble import Ensemble, Member, Section
from resvm_cli.ensemble.plan import Plan
from resvm_cli.ensemble.relevance import FeatureBins, Relevance, learn_bins
from resvm_cli.parameters import ScalingName
from resvm_cli.records import dataclass
from resvm_cli.rows import IntArray, Rows, distinct
from resvm_cli.run import Run
from resvm_cli.svm import kernels, libsvm, smo
from resvm_cli.svm.kernels import Kernel
from resvm_cli.svm.libsvm import NodeArray
from resvm_cli.svm.problem import LinearSolution, Problem
from resvm_cli.svm.products import BagRows, SparseBag, bag_values

if TYPE_CHECKING:
    from resvm_cli.svm.liblinear import LinearTrainer

# A bag of 100 rows trains in less than a millisecond; dispatching it takes half as long.
BATCH_ROWS = 3000
MIN_BATCHES = 8  # per worker, so that all workers finish at about the same time


def rows_drawn(problems: Sequence[Problem]) -> IntArray:
    """Return the ascending numbers of the rows of U that are in any bag."""
    return distinct(np.concatenate([problem.unlabeled for problem in problems]))


def fit(
    problems: Sequence[Problem],
    positives: Rows,
    unlabeled: Rows,
    drawn: IntArray,
    run: Run,
    *,
    single: bool,
    bins: FeatureBins | None = None,
) -> tuple[Ensemble, tuple[bool, ...]]:
    """Fit an ensemble to these problems; also return which members converged.

    ``unlabeled`` contains the rows of U whose numbers are in ``drawn``, in that order. All rows are
    already scaled.
    """
    # a single problem cannot be split across our threads, so LIBSVM uses its own if it is large
    inner_threads = run.workers() if len(problems) == 1 and not run.is_remote else 1
    rows = _TrainingSet(Rows.concatenate([positives, unlabeled]), inner_threads, bins)
    trainer = Trainer({None: rows}, {}, drawn, len(positives))
    return fit_members(trainer, problems, run, single=single)


def fit_members(
    trainer: Trainer,
    problems: Sequence[Problem],
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

    batches = _batches(problems, run.workers())

    def name(number: int) -> str:
        batch = batches[number]
        first, last = batch[0].name, batch[-1].name
        return first if len(batch) == 1 else f"{first}, or a later one up to {last},"

    for solutions in run.map_shared(Trainer.train_all, trainer, batches, tick, name):
        for solution in solutions:
            members.append(pool.add(solution, problems[len(members)]))
            converged.append(solution.converged)
        tick()
    sections = sections_of(problems)
    ensemble = Ensemble(sections, pool.rows(), members, single, trainer.scalings)
    return ensemble, tuple(converged)


def sections_of(problems: Sequence[Problem]) -> tuple[Section, ...]:
    """Group consecutive members with the same setting, not yet weighted or standardized."""

    def setting(problem: Problem) -> tuple[Kernel, ScalingName | None, bool]:
        return problem.kernel, problem.scale, problem.relevance_power is None

    sections: list[Section] = []
    first = 0
    for (kernel, scale, _), some in groupby(problems, setting):
        members = range(first, first + len(list(some)))
        sections.append(Section(kernel, members, scaling=scale))
        first = members.stop
    return tuple(sections)


def _batches(problems: Sequence[Problem], workers: int) -> list[Sequence[Problem]]:
    """Split problems into batches that are large enough for a task but keep all workers busy."""
    bag_size = len(problems[0].positive) + len(problems[0].unlabeled)
    size = min(BATCH_ROWS // bag_size, len(problems) // (MIN_BATCHES * workers))
    return [problems[at : at + max(1, size)] for at in range(0, len(problems), max(1, size))]


@dataclass(frozen=True, eq=False)
class TrainedMember:
    """A member whose support vectors are numbered within ``rows`` or, by default, the training set.

    A linear member has a single support vector, its weights. If a member weights features, its
    support vectors are already multiplied by these weights.
    """

    member: Member
    converged: bool
    rows: Rows | None = None

    def with_own_rows(self, rows: Rows, weights: Rows) -> TrainedMember:
        """Return the member with these support vectors, which are multiplied by ``weights``."""
        member = replace(self.member, support=np.arange(len(rows)), weights=weights)
        return TrainedMember(member, self.converged, rows)


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

    sets: Mapping[ScalingName | None, _TrainingSet]
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
            sets[kind] = _TrainingSet(Rows.concatenate(rows), inner_threads, bins)
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


class _TrainingSet:
    """Rows that bags are drawn from. The solvers' copies are not pickled; they are rebuilt."""

    def __init__(self, rows: Rows, inner_threads: int = 1, bins: FeatureBins | None = None) -> None:
        self.rows = rows.without_zeros()
        self._inner_threads = inner_threads
        self._bins = bins

    def __getstate__(self) -> dict[str, Any]:
        made = ("_nodes", "_linear_trainer", "_bag_rows", "_relevance")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    @cached_property
    def _nodes(self) -> NodeArray:
        return NodeArray(self.rows)

    @cached_property
    def _linear_trainer(self) -> LinearTrainer:
        from resvm_cli.svm.liblinear import LinearTrainer

        return LinearTrainer(self.rows)

    @cached_property
    def _bag_rows(self) -> BagRows:
        return BagRows(self.rows)

    @cached_property
    def _relevance(self) -> Relevance:
        assert self._bins is not None
        return Relevance(self.rows, self._bins)

    def train(self, problem: Problem, positive: IntArray, unlabeled: IntArray) -> TrainedMember:
        """Train on the rows with these numbers, computing kernel values as suits the bag's size."""
        # a row drawn twice appears once; P precedes U, so positives come first
        numbers, place = np.unique(np.concatenate([positive, unlabeled]), return_inverse=True)
        n_positive = len(positive)
        bag = None
        if problem.solver != "liblinear":
            bag = self._bag_rows.bag(numbers, problem.kernel, needed=problem.n_negative > 0)
        weights = self._feature_weights(problem, positive, unlabeled)
        if weights is not None and bag is None:  # a large bag, or LIBLINEAR
            rows = _TrainingSet(self.rows.take(numbers).times(weights), self._inner_threads)
            plain = replace(problem, relevance_power=None)
            trained = rows.train(plain, place[:n_positive], place[n_positive:])
            if trained.rows is not None:
                return replace(trained, rows=trained.rows.times(weights))
            return trained.with_own_rows(rows.rows.take(trained.member.support), weights)
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
            bag = bag or SparseBag.from_rows(self.rows.take(numbers))
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
        return trained.with_own_rows(bag.taken(support), weights)

    def _feature_weights(
        self, problem: Problem, positive: IntArray, unlabeled: IntArray
    ) -> Rows | None:
        """Return the relevance of the features in this bag; None without weights or features."""
        if problem.relevance_power is None:
            return None
        weights = self._relevance.weights(positive, unlabeled, problem.relevance_power)
        return weights if len(weights.indices) else None


def _linear_member(solution: LinearSolution) -> TrainedMember:
    member = Member(np.zeros(1, np.int64), np.ones(1), solution.rho, 1)
    return TrainedMember(member, solution.converged, solution.weights)
