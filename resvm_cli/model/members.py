"""Train the members of a plan on rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from resvm_cli.model.ensemble import Ensemble, Group, Member
from resvm_cli.rows import IntArray, Rows, distinct
from resvm_cli.running.run import Run
from resvm_cli.svm import kernels, libsvm, smo
from resvm_cli.svm.liblinear import LinearTrainer
from resvm_cli.svm.problem import LinearSolution, Problem
from resvm_cli.svm.products import BagRows, SparseBag, bag_values
from resvm_cli.svm.solver_libraries import NodeArray

# A bag of a hundred rows trains in less than a millisecond: handing it over takes half of that.
BATCH_ROWS = 1000


def rows_drawn(problems: Sequence[Problem]) -> IntArray:
    """The numbers of the rows of U that any bag holds, ascending."""
    return distinct(np.concatenate([problem.unlabeled for problem in problems]))


@dataclass(frozen=True, eq=False)
class Fitted:
    """An ensemble, and which of its members converged."""

    ensemble: Ensemble
    converged: tuple[bool, ...]

    @property
    def n_unconverged(self) -> int:
        return self.converged.count(False)


def fit(
    problems: Sequence[Problem],
    positives: Rows,
    unlabeled: Rows,
    drawn: IntArray,
    run: Run,
    *,
    single: bool,
) -> Fitted:
    """The ensemble of these problems.

    ``unlabeled`` holds the rows of U whose numbers are in ``drawn``, in that order.
    """
    # one problem has no members to spread over threads: where it is large, LIBSVM's own do the work
    inner_threads = run.workers() if len(problems) == 1 and not run.is_remote else 1
    trainer = Trainer.of(positives, unlabeled, drawn, inner_threads)
    return fit_by(trainer, problems, run, single=single)


def fit_by(
    trainer: Trainer,
    problems: Sequence[Problem],
    run: Run,
    *,
    single: bool,
    on_members: Callable[[int], None] = lambda done: None,
) -> Fitted:
    """The ensemble of these problems, by one who has their rows.

    ``on_members`` is told how many members are done, now and then and after each batch.
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
    return Fitted(Ensemble(groups_of(problems), pool, members, single), tuple(converged))


def groups_of(problems: Sequence[Problem]) -> tuple[Group, ...]:
    """Runs of members of one kernel, none weighted or standardised."""
    groups: list[Group] = []
    for number, problem in enumerate(problems):
        if groups and groups[-1].kernel == problem.kernel:
            groups[-1] = replace(groups[-1], members=range(groups[-1].members.start, number + 1))
        else:
            groups.append(Group(problem.kernel, range(number, number + 1)))
    return tuple(groups)


def _batches(problems: Sequence[Problem], workers: int) -> list[Sequence[Problem]]:
    """Runs of problems that are worth a thread's attention, and enough of them for every one."""
    bag_size = len(problems[0].positive) + len(problems[0].unlabeled)
    size = min(BATCH_ROWS // bag_size, len(problems) // (4 * workers))
    return [problems[at : at + max(1, size)] for at in range(0, len(problems), max(1, size))]


@dataclass(frozen=True, eq=False)
class KernelSolution:
    """A member over numbered rows."""

    member: Member
    converged: bool


class Trainer:
    """Trains members on bags of these rows, P before the rows of U that are drawn.

    Linear members come out as weights, whoever trains. It can be sent elsewhere: what is made of
    the rows for the solvers stays behind and is made anew.
    """

    def __init__(self, rows: Rows, drawn: IntArray, n_positives: int, inner_threads: int) -> None:
        self.rows = rows
        self._drawn = drawn
        self._n_positives = n_positives
        self._inner_threads = inner_threads

    @classmethod
    def of(
        cls, positives: Rows, unlabeled: Rows, drawn: IntArray, inner_threads: int = 1
    ) -> Trainer:
        """On all of P and the rows of U whose numbers are in ``drawn``, in that order."""
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
        """LIBSVM's solution, with kernel values made in the way that suits the bag."""
        # a row drawn twice is one row; P precedes U, so positives come first
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
