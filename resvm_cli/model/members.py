"""Train the members of a plan on rows in memory, and score the rows each has not seen.

Member i and its out-of-bag values depend only on (seed, i) and the data. Parts of a plan, joined in
member order, are therefore identical to a model trained in one run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from resvm_cli import randomness
from resvm_cli.model.ensemble import Ensemble, Group, Member
from resvm_cli.model.out_of_bag import TrainingRows, UnseenMask, stored_values
from resvm_cli.model.plan import ModelPlan
from resvm_cli.model.pu_data import PUData
from resvm_cli.rows import FloatArray, IntArray, Rows, distinct
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.svm import kernels, libsvm, smo
from resvm_cli.svm.liblinear import LinearTrainer
from resvm_cli.svm.problem import LinearSolution, Problem
from resvm_cli.svm.products import BagRows, SparseBag, bag_values
from resvm_cli.svm.solver_libraries import NodeArray

# A bag of 100 rows trains in less than a millisecond; dispatching it takes half of that.
BATCH_ROWS = 1000
# Rows scored out of bag: all rows of small sets; otherwise as many as can be scored in a fraction
# of the training time (measured in kernel values), a third of them from P.
SMALL_SETS = 1500
MIN_SAMPLE, MAX_SAMPLE = 600, 2000
FRACTION_OF_PAIRS = 0.2
FRACTION_OF_POSITIVES = 1 / 3


@dataclass(frozen=True, eq=False)
class OutOfBagSample:
    """The rows of P and U whose out-of-bag values are stored with a model."""

    positive: IntArray
    unlabeled: IntArray

    def __len__(self) -> int:
        return len(self.positive) + len(self.unlabeled)

    @classmethod
    def from_plan(cls, plan: ModelPlan) -> OutOfBagSample:
        """Draw the sample from the seed; empty if every member has seen all of P."""
        if plan.method != "resvm":
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))
        bits = randomness.run_bits(plan.seed, randomness.OUT_OF_BAG_ROWS)
        total = _sample_size(plan)
        positive = randomness.sample(bits, plan.rows_pos, round(FRACTION_OF_POSITIVES * total))
        return cls(positive, randomness.sample(bits, plan.rows_unl, total - len(positive)))


def _sample_size(plan: ModelPlan) -> int:
    n_rows = plan.rows_pos + plan.rows_unl
    if n_rows <= SMALL_SETS:
        return 3 * n_rows  # a third of that is all rows
    pairs = sum(each.n_models * each.bag_size**2 for each in plan.plans)
    pool = min(n_rows, sum(each.n_models * each.bag_size for each in plan.plans))
    return min(MAX_SAMPLE, max(MIN_SAMPLE, int(FRACTION_OF_PAIRS * pairs / pool)))


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
    drawn: IntArray  # numbers of the rows of U in any of its bags, ascending
    unlabeled: Rows  # those rows, unscaled

    @property
    def n_unconverged(self) -> int:
        return self.converged.count(False)


def train_part(
    plan: ModelPlan,
    members: range,
    data: PUData,
    run: Run,
    on_members: Callable[[int], None] = lambda done: None,
    on_rows: Callable[[int], None] = lambda n_rows: None,
) -> Part:
    """Train these members of the plan as one batch."""
    return next(train_parts(plan, [members], data, run, on_members, on_rows))


def train_parts(
    plan: ModelPlan,
    batches: Sequence[range],
    data: PUData,
    run: Run,
    on_members: Callable[[int], None] = lambda done: None,
    on_rows: Callable[[int], None] = lambda n_rows: None,
) -> Iterator[Part]:
    """Yield each batch of members when it is finished; rows are fetched once for all batches.

    ``on_members`` receives the number of members done. Before training starts, ``on_rows`` receives
    the number of rows fetched.
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
    sampled_rows = data.scaled(unscaled)
    positives, drawn_rows = data.scaled(data.positives), data.scaled(unlabeled)
    on_rows(len(positives) + len(drawn_rows))
    n_workers = run.workers()
    # before scaling, which may fill in rows without features
    training_rows = TrainingRows(data.positives, unlabeled, drawn, data.groups(), unscaled)
    numbers = np.concatenate([sample.positive, len(positives) + sample.unlabeled])
    n_columns = data.n_features + (0 if data.zero_based else 1)
    done = 0

    def tick(members: int) -> None:
        on_members(done + members)

    alone = sum(map(len, batches)) == 1 and not run.is_remote
    trainer = Trainer.from_sets(positives, drawn_rows, drawn, n_workers if alone else 1)
    for members, some in tasks.items():
        ensemble, converged = fit_members(trainer, some, run, single=plan.single, on_members=tick)
        values = np.zeros((len(some), 0))
        if len(sample):
            unseen = UnseenMask(some, training_rows).unseen(numbers, unscaled)
            threads = parallel.available_cores() if run.is_remote else n_workers
            values = stored_values(ensemble, sampled_rows, unseen, n_columns, threads)
        done += len(members)
        yield Part(plan, members, ensemble, converged, sample, values, some, drawn, unlabeled)


def rows_drawn(problems: Sequence[Problem]) -> IntArray:
    """Return the ascending numbers of the rows of U in any bag."""
    return distinct(np.concatenate([problem.unlabeled for problem in problems]))


def fit(
    problems: Sequence[Problem],
    positives: Rows,
    unlabeled: Rows,
    drawn: IntArray,
    run: Run,
    *,
    single: bool,
) -> tuple[Ensemble, tuple[bool, ...]]:
    """Fit an ensemble to these problems; also return which members converged.

    ``unlabeled`` holds the rows of U whose numbers are in ``drawn``, in that order.
    """
    # one problem cannot be split across our threads: if it is large, LIBSVM uses its own
    inner_threads = run.workers() if len(problems) == 1 and not run.is_remote else 1
    trainer = Trainer.from_sets(positives, unlabeled, drawn, inner_threads)
    return fit_members(trainer, problems, run, single=single)


def fit_members(
    trainer: Trainer,
    problems: Sequence[Problem],
    run: Run,
    *,
    single: bool,
    on_members: Callable[[int], None] = lambda done: None,
) -> tuple[Ensemble, tuple[bool, ...]]:
    """Train one member per problem; return the ensemble and which members converged.

    ``on_members`` receives the number of members done, periodically and after each batch.
    """
    members: list[Member] = []
    vectors: list[Rows] = []
    converged: list[bool] = []

    def tick() -> None:
        on_members(len(members))

    batches = _batches(problems, run.workers())

    def name(number: int) -> str:
        batch = batches[number]
        return batch[0].name if len(batch) == 1 else f"{batch[0].name}, or up to {batch[-1].name},"

    for solutions in run.map_shared(Trainer.train_all, trainer, batches, tick, name):
        for solution in solutions:
            if isinstance(solution, LinearSolution):
                members.append(Member(np.array([len(members)]), np.ones(1), solution.rho, 1))
                vectors.append(solution.weights)
            else:
                members.append(solution.member)
            converged.append(solution.converged)
        tick()
    kernel = problems[0].kernel
    pool = Rows.concatenate(vectors) if kernel.name == "linear" else trainer.rows
    if kernel.is_precomputed:
        pool = kernels.serial_rows(pool)
    return Ensemble(groups_of(problems), pool, members, single), tuple(converged)


def groups_of(problems: Sequence[Problem]) -> tuple[Group, ...]:
    """Group consecutive members with the same kernel, without weights or standardization."""
    groups: list[Group] = []
    for number, problem in enumerate(problems):
        if groups and groups[-1].kernel == problem.kernel:
            groups[-1] = replace(groups[-1], members=range(groups[-1].members.start, number + 1))
        else:
            groups.append(Group(problem.kernel, range(number, number + 1)))
    return tuple(groups)


def _batches(problems: Sequence[Problem], workers: int) -> list[Sequence[Problem]]:
    """Split problems into batches large enough to be worth a task, with work for every worker."""
    bag_size = len(problems[0].positive) + len(problems[0].unlabeled)
    size = min(BATCH_ROWS // bag_size, len(problems) // (4 * workers))
    return [problems[at : at + max(1, size)] for at in range(0, len(problems), max(1, size))]


@dataclass(frozen=True, eq=False)
class KernelSolution:
    """A trained member whose support vectors are row numbers."""

    member: Member
    converged: bool


class Trainer:
    """Trains members on bags of rows: all of P, then the drawn rows of U.

    Linear members are weight vectors, whichever solver trains them. The solvers' own copies of the
    rows are not pickled but rebuilt.
    """

    def __init__(self, rows: Rows, drawn: IntArray, n_positives: int, inner_threads: int) -> None:
        self.rows = rows
        self._drawn = drawn
        self._n_positives = n_positives
        self._inner_threads = inner_threads

    @classmethod
    def from_sets(
        cls, positives: Rows, unlabeled: Rows, drawn: IntArray, inner_threads: int = 1
    ) -> Trainer:
        """Make a trainer from P and the rows of U whose numbers are in ``drawn``, in that order."""
        rows = Rows.concatenate([positives, unlabeled]).without_zeros()
        return cls(rows, drawn, len(positives), inner_threads)

    def __getstate__(self) -> dict[str, Any]:
        made = ("_nodes", "_linear_trainer", "_bag_rows")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    @cached_property
    def _nodes(self) -> NodeArray:
        return NodeArray(self.rows)

    @cached_property
    def _linear_trainer(self) -> LinearTrainer:
        return LinearTrainer(self.rows)

    @cached_property
    def _bag_rows(self) -> BagRows:
        return BagRows(self.rows)

    def train_all(self, problems: Sequence[Problem]) -> list[KernelSolution | LinearSolution]:
        return [self.train(problem) for problem in problems]

    def train(self, problem: Problem) -> KernelSolution | LinearSolution:
        unlabeled = np.searchsorted(self._drawn, problem.unlabeled) + self._n_positives
        if problem.solver == "liblinear":
            return self._linear_trainer.train(problem, problem.positive, unlabeled)
        return self._train_kernel(problem, problem.positive, unlabeled)

    def _train_kernel(
        self, problem: Problem, positive: IntArray, unlabeled: IntArray
    ) -> KernelSolution | LinearSolution:
        """Return LIBSVM's solution, with kernel values computed in the way that suits the bag."""
        # a row drawn twice appears once; P precedes U, so positives come first
        numbers, place = np.unique(np.concatenate([positive, unlabeled]), return_inverse=True)
        bag = self._bag_rows.bag(numbers, problem.kernel)
        if bag is not None:
            values = bag_values(problem.kernel, bag)
            places = place[: len(positive)], place[len(positive) :]
            solved = smo.solve(values, smo.Bags.from_parts([places]), [[problem]])
            solved.require_sound(0)
            solution = solved.solution(0)
        else:
            libsvm.use_threads(self._inner_threads)
            solution = libsvm.train(problem, self._nodes, positive, unlabeled)
        coefficients = np.bincount(
            place[solution.support], weights=solution.coefficients, minlength=len(numbers)
        ).astype(np.float64)
        if problem.kernel.name == "linear":
            rows = bag or SparseBag.from_rows(self.rows.take(numbers))
            weights = rows.combined(coefficients)
            return LinearSolution(weights, solution.rho, solution.converged)
        used = np.zeros(len(numbers), bool)
        used[place[solution.support]] = True
        support = numbers[used]
        n_positive = int(np.searchsorted(support, unlabeled.min()))
        member = Member(support, coefficients[used], solution.rho, n_positive)
        return KernelSolution(member, solution.converged)
