"""Train the members of a plan on rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from resvm_cli import parallel
from resvm_cli.dataset import IntArray, Rows, distinct
from resvm_cli.ensemble.model import Ensemble, Member
from resvm_cli.svm import libsvm
from resvm_cli.svm.liblinear import LinearArena
from resvm_cli.svm.nodes import Arena, GramArena
from resvm_cli.svm.problem import LinearSolution, Problem
from resvm_cli.svm.products import BagRows, SparseBag, kernel_values

# A bag of a hundred rows trains in less than a millisecond: handing it over takes half of that.
BATCH_ROWS = 1000


def rows_drawn(problems: Sequence[Problem]) -> IntArray:
    """The numbers of the rows of U that any bag holds, ascending."""
    return distinct(np.concatenate([problem.unlabeled for problem in problems]))


def fit(
    problems: Sequence[Problem],
    positives: Rows,
    unlabeled: Rows,
    drawn: IntArray,
    *,
    single: bool,
    workers: int,
    progress: Callable[[int, int], None],
) -> tuple[Ensemble, int]:
    """The ensemble of these problems, and how many members stopped before they converged.

    ``unlabeled`` holds the rows of U whose numbers are in ``drawn``, in that order.
    """
    rows = Rows.concatenate([positives, unlabeled]).without_zeros()
    train = _trainer(problems, rows, drawn, len(positives), workers)
    members: list[Member] = []
    vectors: list[Rows] = []
    unfinished = 0

    def tick() -> None:
        progress(len(members), len(problems))

    def train_all(batch: Sequence[Problem]) -> list[_KernelSolution | LinearSolution]:
        return [train(problem) for problem in batch]

    for solutions in parallel.run(train_all, _batches(problems, workers), workers, tick):
        for solution in solutions:
            if isinstance(solution, LinearSolution):
                members.append(Member(np.array([len(members)]), np.ones(1), solution.rho, 1))
                vectors.append(solution.weights)
            else:
                members.append(solution.member)
            unfinished += not solution.converged
        tick()
    kernel = problems[0].kernel
    pool = Rows.concatenate(vectors) if kernel.name == "linear" else rows
    return Ensemble(kernel, pool, members, single), unfinished


def _batches(problems: Sequence[Problem], workers: int) -> list[Sequence[Problem]]:
    """Runs of problems that are worth a thread's attention, and enough of them for every one."""
    bag_size = len(problems[0].positive) + len(problems[0].unlabeled)
    size = min(BATCH_ROWS // bag_size, len(problems) // (4 * workers))
    return [problems[at : at + max(1, size)] for at in range(0, len(problems), max(1, size))]


@dataclass(frozen=True, eq=False)
class _KernelSolution:
    member: Member
    converged: bool


def _trainer(
    problems: Sequence[Problem], rows: Rows, drawn: IntArray, n_positives: int, workers: int
) -> Callable[[Problem], _KernelSolution | LinearSolution]:
    """How to train one of these problems; linear members come out as weights, whoever trains."""

    def bag_unlabeled(problem: Problem) -> IntArray:
        return np.searchsorted(drawn, problem.unlabeled) + n_positives

    if problems[0].solver == "liblinear":
        linear = LinearArena(rows)
        return lambda problem: linear.train(problem, problem.positive, bag_unlabeled(problem))

    # one problem has no members to spread over threads: where it is large, LIBSVM's own do the work
    kernels = _KernelTrainer(rows, workers if len(problems) == 1 else 1)
    return lambda problem: kernels.train(problem, problem.positive, bag_unlabeled(problem))


class _KernelTrainer:
    """LIBSVM over bags of these rows, with kernel values made in the way that suits each bag."""

    def __init__(self, rows: Rows, inner_threads: int) -> None:
        self._rows = rows
        self._inner_threads = inner_threads
        self._bag_rows = BagRows(rows)

    @cached_property
    def _arena(self) -> Arena:
        return Arena(self._rows)

    def train(
        self, problem: Problem, positive: IntArray, unlabeled: IntArray
    ) -> _KernelSolution | LinearSolution:
        libsvm.use_threads(self._inner_threads)
        # a row drawn twice is one row; P precedes U, so positives come first
        numbers, place = np.unique(np.concatenate([positive, unlabeled]), return_inverse=True)
        bag = self._bag_rows.bag(numbers)
        if bag is not None:
            values = kernel_values(problem.kernel, bag.dot_products())
            arena = GramArena(values, np.arange(len(numbers)))
            solution = libsvm.train(problem, arena, place[: len(positive)], place[len(positive) :])
        else:
            solution = libsvm.train(problem, self._arena, positive, unlabeled)
        coefficients = np.bincount(
            place[solution.support], weights=solution.coefficients, minlength=len(numbers)
        ).astype(np.float64)
        if problem.kernel.name == "linear":
            rows = bag or SparseBag.of(self._rows.take(numbers))
            weights = rows.combined(coefficients)
            return LinearSolution(weights, solution.rho, solution.converged)
        used = np.zeros(len(numbers), bool)
        used[place[solution.support]] = True
        support = numbers[used]
        n_positive = int(np.searchsorted(support, unlabeled.min()))
        member = Member(support, coefficients[used], solution.rho, n_positive)
        return _KernelSolution(member, solution.converged)
