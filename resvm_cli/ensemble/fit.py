"""Train the members of a plan on rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from resvm_cli import parallel
from resvm_cli.dataset import IntArray, Rows
from resvm_cli.ensemble.model import Ensemble, Member
from resvm_cli.svm import libsvm
from resvm_cli.svm.liblinear import LinearArena
from resvm_cli.svm.nodes import Arena
from resvm_cli.svm.problem import LinearSolution, Problem, Solution


def rows_drawn(problems: Sequence[Problem]) -> IntArray:
    """The numbers of the rows of U that any bag holds, ascending."""
    return np.unique(np.concatenate([problem.unlabeled for problem in problems]))


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

    for solution in parallel.run(train, problems, workers, tick):
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

    arena = Arena(rows)
    # one problem has no members to spread over threads: there LIBSVM's own threads do the work
    inner = workers if len(problems) == 1 else 1

    def train(problem: Problem) -> _KernelSolution | LinearSolution:
        libsvm.use_threads(inner)
        unlabeled = bag_unlabeled(problem)
        solution = libsvm.train(problem, arena, problem.positive, unlabeled)
        member = _member(solution, problem.positive, unlabeled)
        if problem.kernel.name == "linear":
            return LinearSolution(_weights(member, rows), member.rho, solution.converged)
        return _KernelSolution(member, solution.converged)

    return train


def _member(solution: Solution, positive: IntArray, unlabeled: IntArray) -> Member:
    """Coefficients by row instead of by place in the bag: a row drawn twice counts once, summed."""
    bag = np.concatenate([positive, unlabeled])
    # P precedes U in the arena, so ascending row numbers put positives first
    support, place = np.unique(bag[solution.support], return_inverse=True)
    coefficients = np.bincount(
        place.reshape(-1), weights=solution.coefficients, minlength=len(support)
    ).astype(np.float64)
    n_positive = int(np.searchsorted(support, unlabeled.min()))
    return Member(support, coefficients, solution.rho, n_positive)


def _weights(member: Member, rows: Rows) -> Rows:
    """A linear member's weight vector, as one sparse row."""
    used = rows.take(member.support)
    indices, place = np.unique(used.indices, return_inverse=True)
    weights = np.bincount(
        place.reshape(-1),
        weights=used.values * member.coefficients[used.row_numbers],
        minlength=len(indices),
    ).astype(np.float64)
    return Rows(
        np.array([0, len(indices)], np.int64), indices.astype(np.int32), weights
    ).without_zeros()
