"""One SVM to train, its solution, and the time limit on solving it.

These types connect the methods, which say what to train, with the solvers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from resvm_cli.errors import MemberTimeout, Message, SolverError
from resvm_cli.parameters import SolverName
from resvm_cli.rows import FloatArray, IntArray, Rows
from resvm_cli.svm.kernels import Kernel


@dataclass(frozen=True, eq=False)
class Problem:
    """A class-weighted C-SVM over a bag of rows: hinge loss, bias not penalized (paper, eq. 1)."""

    positive: IntArray  # row numbers in P, repeats included
    unlabeled: IntArray  # row numbers in U, repeats included
    c_pos: float
    c_unl: float
    kernel: Kernel
    tolerance: float
    cache_mb: float
    solver: SolverName = "libsvm"
    # LIBLINEAR's bias feature: negative for none, None for the mean row norm of the bag
    bias: float | None = None
    seed: int = 0
    name: str = "a member"  # in messages


@dataclass(frozen=True, eq=False)
class Solution:
    """psi(x) = sum coefficients * K(support, x) - rho; the bag lists positives first."""

    support: IntArray  # positions in the bag
    coefficients: FloatArray
    rho: float
    converged: bool


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """psi(x) = weights . x - rho, from a solver that returns only weights."""

    weights: Rows  # one row
    rho: float
    converged: bool


def iteration_limit(n_rows: int) -> int:
    """The number of iterations after which LIBSVM stops without having converged."""
    return max(10_000_000, 100 * n_rows)  # svm.cpp, Solver::Solve


def require_sound(n_support: int, numbers: FloatArray) -> None:
    """Raise SolverError if a solution has no support vectors or a number that is not finite."""
    if n_support == 0:
        raise SolverError(
            "LIBSVM stopped before it found a support vector",
            Message("lower {tolerance}, or scale the features if kernel values overflow"),
        )
    if not np.isfinite(numbers).all():
        raise SolverError(
            "LIBSVM returned numbers that are not finite",
            "scale the features, or choose smaller penalties, gamma, coef0 or degree",
        )


# The solver call that each thread is in, by thread: when it began, and the member's name.
_solver_calls: dict[int, tuple[float, str]] = {}
_time_is_limited = False


def limit_members(seconds: float) -> Callable[[], None]:
    """Time members from now on; the function returned raises MemberTimeout if one takes longer.

    A C call cannot be cancelled: the thread that waits for results ends the program instead.
    """
    global _time_is_limited
    _time_is_limited = True

    def watch() -> None:
        now = time.monotonic()
        for began, name in list(_solver_calls.values()):
            if now - began > seconds:
                raise MemberTimeout(
                    f"{name}: the solver has not ended after {now - began:.0f} s",
                    Message(
                        "scale the features ({scale:standard}), lower {c_unl}, raise {tolerance},"
                        " or allow more time ({member_timeout})"
                    ),
                )

    return watch


def members_are_limited() -> bool:
    """Whether each member must be a timed call of its own."""
    return _time_is_limited


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Within this context the current thread is in a solver call for this member."""
    thread = threading.get_ident()
    _solver_calls[thread] = time.monotonic(), name
    try:
        yield
    finally:
        del _solver_calls[thread]
