"""Train the members of a plan on rows in memory, and score the rows that each has not seen.

Member i and its out-of-bag values depend only on (seed, i) and the data. Parts of a plan, joined in
member order, are therefore identical to a model trained in one run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli.model.ensemble import Ensemble, Group, Member
from resvm_cli.model.feature_weights import FeatureBins, Relevance
from resvm_cli.model.model_plan import ModelPlan
from resvm_cli.model.out_of_bag import OutOfBagSample, TrainingRows, UnseenMask, stored_values
from resvm_cli.model.pu_data import PUData
from resvm_cli.model.scaling import Scaling
from resvm_cli.parameters import ScalingName
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, Rows, distinct
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.svm import kernels, libsvm, smo
from resvm_cli.svm.kernels import Kernel
from resvm_cli.svm.libsvm import NodeArray
from resvm_cli.svm.problem import LinearSolution, Problem, Solution
from resvm_cli.svm.products import BagRows, DenseBag, SparseBag, bag_values

if TYPE_CHECKING:
    from resvm_cli.svm.liblinear import LinearTrainer

# A bag of 100 rows trains in less than a millisecond; dispatching it takes half of that.
BATCH_ROWS = 3000
MIN_BATCHES = 8  # per worker, so that all of them finish at about the same time


@dataclass(frozen=True, eq=False)
class Part:
    """Consecutive members of a model."""

    plan: ModelPlan
    members: range
    ensemble: Ensemble
    converged: tuple[bool, ...]
    sample: OutOfBagSample
    values: FloatArray  # members x sampled rows, P before U; nan if the member has seen the row
    problems: Sequence[Problem]
    drawn: IntArray  # ascending numbers of the rows of U in any of its bags
    unlabeled: Rows  # the drawn rows, unscaled

    @property
    def n_unconverged(self) -> int:
        return self.converged.count(False)


def train_part(
    plan: ModelPlan,
    members: range,
    data: PUData,
    run: Run,
    on_members: Callable[[int], None] = lambda done: None,
) -> Part:
    """Train these members of the plan as one batch."""
    return next(train_parts(plan, [members], data, run, on_members))


def train_parts(
    plan: ModelPlan,
    batches: Sequence[range],
    data: PUData,
    run: Run,
    on_members: Callable[[int], None] = lambda done: None,
) -> Iterator[Part]:
    """Yield each batch of members as soon as it is trained; rows are fetched once for all batches.

    ``on_members`` receives the number of members done.
    """
    tasks = {members: plan.problems(members) for members in batches}
    drawn = rows_drawn([problem for some in tasks.values() for problem in some])
    sample = OutOfBagSample.from_plan(plan)
    numbers = distinct(np.concatenate([drawn, sample.unlabeled]))
    fetched = data.fetch(numbers)
    unlabeled = fetched.take(np.searchsorted(numbers, drawn))
    unscaled = Rows.concatenate(
        [
            data.positives.take(sample.positive),
            fetched.take(np.searchsorted(numbers, sample.unlabeled)),
        ]
    )
    del fetched  # it may be large
    alone = sum(map(len, batches)) == 1 and not run.is_remote
    n_workers = run.workers()
    # before scaling, which may fill in rows without features
    training_rows = TrainingRows(data.positives, unlabeled, drawn, data.groups(), unscaled)
    numbers = np.concatenate([sample.positive, len(data.positives) + sample.unlabeled])
    n_columns = data.n_features + (0 if data.zero_based else 1)
    done = 0

    def tick(members: int) -> None:
        on_members(done + members)

    trainer = Trainer.from_data(plan, data, unlabeled, drawn, n_workers if alone else 1)
    for members, some in tasks.items():
        ensemble, converged = fit_members(trainer, some, run, single=plan.single, on_members=tick)
        values = np.zeros((len(some), 0))
        if len(sample):
            unseen = UnseenMask(some, training_rows).unseen(numbers, unscaled)
            threads = parallel.available_cores() if run.is_remote else n_workers
            values = stored_values(ensemble, unscaled, unseen, n_columns, threads)
        done += len(members)
        yield Part(plan, members, ensemble, converged, sample, values, some, drawn, unlabeled)


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
    # one problem cannot be split across our threads: if it is large, LIBSVM uses its own
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
    groups = groups_of(problems)
    ensemble = Ensemble(groups, pool.rows(), members, single, trainer.scalings)
    return ensemble, tuple(converged)


def groups_of(problems: Sequence[Problem]) -> tuple[Group, ...]:
    """Group consecutive members with the same kernel, without weights or standardization."""

    def setting(problem: Problem) -> tuple[Kernel, ScalingName | None, bool]:
        return problem.kernel, problem.scale, problem.relevance_power is None

    groups: list[Group] = []
    first = 0
    for (kernel, scale, _), some in groupby(problems, setting):
        members = range(first, first + len(list(some)))
        groups.append(Group(kernel, members, scaling=scale))
        first = members.stop
    return tuple(groups)


def _batches(problems: Sequence[Problem], workers: int) -> list[Sequence[Problem]]:
    """Split problems into batches that are large enough for a task but keep all workers busy."""
    bag_size = len(problems[0].positive) + len(problems[0].unlabeled)
    size = min(BATCH_ROWS // bag_size, len(problems) // (MIN_BATCHES * workers))
    return [problems[at : at + max(1, size)] for at in range(0, len(problems), max(1, size))]


@dataclass(frozen=True, eq=False)
class TrainedMember:
    """A member whose support vectors are numbered within ``rows`` or, by default, the training set.

    A linear member has a single support vector, its weights. The support vectors of a member that
    weights features are weighted, too.
    """

    member: Member
    converged: bool
    rows: Rows | None = None

    @classmethod
    def from_linear(cls, solution: LinearSolution) -> TrainedMember:
        member = Member(np.zeros(1, np.int64), np.ones(1), solution.rho, 1)
        return cls(member, solution.converged, solution.weights)


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
    """Trains members on bags of rows: all of P and the drawn rows of U, scaled in several ways."""

    sets: Mapping[ScalingName | None, _TrainingSet]
    scalings: Mapping[ScalingName, Scaling]
    drawn: IntArray  # row numbers in U, ascending
    n_positives: int

    @classmethod
    def from_data(
        cls, plan: ModelPlan, data: PUData, unlabeled: Rows, drawn: IntArray, inner_threads: int
    ) -> Trainer:
        """Scale all of P and these rows of U, numbered by ``drawn``, as the plan requires."""
        sets = {}
        for kind in plan.scalings:
            weighted = any(p.scale == kind and p.relevance_power is not None for p in plan.plans)
            rows = [data.scaled(data.positives, kind), data.scaled(unlabeled, kind)]
            bins = data.bins(kind) if weighted else None
            sets[kind] = _TrainingSet(Rows.concatenate(rows), inner_threads, bins)
        learned = map(data.scaling_by, plan.scalings)
        scalings = {scaling.kind: scaling for scaling in learned if scaling is not None}
        return cls(sets, scalings, drawn, len(data.positives))

    def train_all(self, problems: Sequence[Problem]) -> list[TrainedMember]:
        return [self.train(problem) for problem in problems]

    def train(self, problem: Problem) -> TrainedMember:
        unlabeled = np.searchsorted(self.drawn, problem.unlabeled) + self.n_positives
        return self.sets[problem.scale].train(problem, problem.positive, unlabeled)


class _TrainingSet:
    """Rows that bags are drawn from. The solvers' copies are not pickled but rebuilt."""

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
        """Train on the rows with these numbers, using the problem's solver."""
        if problem.relevance_power is not None:
            return self._train_weighted(problem, positive, unlabeled)
        if problem.solver == "liblinear":
            solution = self._linear_trainer.train(problem, positive, unlabeled)
            return TrainedMember.from_linear(solution)
        return self._train_kernel(problem, positive, unlabeled)

    def _train_weighted(
        self, problem: Problem, positive: IntArray, unlabeled: IntArray
    ) -> TrainedMember:
        """Train with features weighted by their relevance in this bag."""
        assert problem.relevance_power is not None
        weights = self._relevance.weights(positive, unlabeled, problem.relevance_power)
        if not len(weights.indices):  # the rows have no features
            return self.train(replace(problem, relevance_power=None), positive, unlabeled)
        bag = _Bag.from_numbers(positive, unlabeled)
        values = None
        if problem.solver == "libsvm":
            needed = problem.n_negative > 0
            values = self._bag_rows.bag(bag.numbers, problem.kernel, needed=needed)
        if values is not None:
            weighted = values.times(weights)
            trained = bag.solved(problem, weighted)
        else:  # a large bag, or LIBLINEAR
            rows = _TrainingSet(self.rows.take(bag.numbers).times(weights), self._inner_threads)
            places = bag.place[: bag.n_positive], bag.place[bag.n_positive :]
            trained = rows.train(replace(problem, relevance_power=None), *places)
        if trained.rows is not None:  # linear: the same member, for rows without weights
            return replace(trained, rows=trained.rows.times(weights))
        support = trained.member.support
        own = weighted.taken(support) if values is not None else rows.rows.take(support)
        member = replace(trained.member, support=np.arange(len(support)), weights=weights)
        return TrainedMember(member, trained.converged, own)

    def _train_kernel(
        self, problem: Problem, positive: IntArray, unlabeled: IntArray
    ) -> TrainedMember:
        """Return LIBSVM's solution, computing kernel values in the way that suits the bag."""
        bag = _Bag.from_numbers(positive, unlabeled)
        rows = self._bag_rows.bag(bag.numbers, problem.kernel, needed=problem.n_negative > 0)
        if rows is not None:
            trained = bag.solved(problem, rows)
        else:
            libsvm.use_threads(self._inner_threads)
            found = libsvm.train(problem, self._nodes, positive, unlabeled)
            taken = SparseBag.from_rows(self.rows.take(bag.numbers))
            trained = bag.trained(problem, found, taken)
        if trained.rows is not None:
            return trained
        support = bag.numbers[trained.member.support]
        return replace(trained, member=replace(trained.member, support=support))


@dataclass(frozen=True, eq=False)
class _Bag:
    """A bag's distinct rows, and the position of each drawn row among them, P before U."""

    numbers: IntArray
    place: IntArray
    n_positive: int  # drawn rows of P

    @classmethod
    def from_numbers(cls, positive: IntArray, unlabeled: IntArray) -> _Bag:
        # a row drawn twice appears once; P precedes U, so positives come first
        numbers, place = np.unique(np.concatenate([positive, unlabeled]), return_inverse=True)
        return cls(numbers, place, len(positive))

    def solved(self, problem: Problem, rows: DenseBag | SparseBag) -> TrainedMember:
        """Train on the bag's rows, with all kernel values computed in advance."""
        values = bag_values(problem.kernel, rows)
        places = self.place[: self.n_positive], self.place[self.n_positive :]
        solved = smo.solve(values, smo.Bags.from_parts([places], [problem.n_negative]), [[problem]])
        solved.require_sound(0)
        return self.trained(problem, solved.solution(0), rows)

    def trained(
        self, problem: Problem, found: Solution, rows: DenseBag | SparseBag
    ) -> TrainedMember:
        """Return the member for a solver's solution, with repeated rows merged."""

        place = self.place[found.support]
        coefficients = np.bincount(
            place, weights=found.coefficients, minlength=len(self.numbers)
        ).astype(np.float64)
        if problem.kernel.name == "linear":
            weights = rows.combined(coefficients)
            return TrainedMember.from_linear(LinearSolution(weights, found.rho, found.converged))
        used = np.zeros(len(self.numbers), bool)
        used[place] = True
        support = np.flatnonzero(used)
        n_positive = int(np.searchsorted(support, self.place[self.n_positive :].min()))
        member = Member(support, coefficients[used], found.rho, n_positive)
        return TrainedMember(member, found.converged)
