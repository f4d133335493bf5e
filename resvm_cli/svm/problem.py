"""An SVM to train, its solution, and the time limit for the solver.

The methods create problems, and the solvers return solutions.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from resvm_cli.errors import MemberTimeout, Message, SolverError
from resvm_cli.parameters import ScalingName, SolverName
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, Rows
from resvm_cli.svm.kernels import Kernel


@dataclass(frozen=True, eq=False)
class Problem:
    """A class-weighted C-SVM on a bag of rows: hinge loss, unpenalized bias (paper, eq. 1)."""

    positive: IntArray  # row numbers in P, repeats included
    unlabeled: IntArray  # row numbers in U, repeats included, then those of known negatives
    c_pos: float
    c_unl: float
    kernel: Kernel
    tolerance: float
    cache_mb: float
    solver: SolverName = "libsvm"
    # value of LIBLINEAR's bias feature: negative for no bias, None for the bag's mean row norm
    bias: float | None = None
    seed: int = 0
    name: str = "a member"  # how error messages refer to it
    scale: ScalingName | None = None  # how the rows are scaled
    relevance_power: float | None = None  # None: features are not weighted
    n_negative: int = 0  # the number of known negatives at the end of ``unlabeled``
    c_neg: float = 0.0


@dataclass(frozen=True, eq=False)
class Solution:
    """psi(x) = sum of coefficients * K(support, x) - rho; rows of P come first in the bag."""

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
    """Return the number of iterations after which LIBSVM stops without having converged."""
    return max(10_000_000, 100 * n_rows)  # svm.cpp, Solver::Solve


def require_sound(n_support: int, numbers: FloatArray) -> None:
    """Raise SolverError if a solution has no support vectors, or a number that is not finite."""
    if n_support == 0:
        raise SolverError(
            "LIBSVM stopped without any support vectors",
            Message("lower {tolerance}, or scale the features if kernel values overflow"),
        )
    if not np.isfinite(numbers).all():
        raise SolverError(
            "LIBSVM returned numbers that are not finite",
            Message("scale the features, or lower {c_unl}, {gamma}, {coef0} or {degree}"),
        )


# The current solver call of each thread, by thread id: its start time and the member's name.
_solver_calls: dict[int, tuple[float, str]] = {}
_time_is_limited = False


def limit_members(seconds: float) -> Callable[[], None]:
    """Start timing members; return a function that raises MemberTimeout if one takes too long.

    A C call cannot be canceled, so the thread that waits for results calls this function and ends
    the program.
    """
    global _time_is_limited
    _time_is_limited = True

    def watch() -> None:
        now = time.monotonic()
        for began, name in list(_solver_calls.values()):
            if now - began > seconds:
                raise MemberTimeout(
                    f"{name}: the solver has not finished after {now - began:.0f} s",
                    Message(
                        "scale the features ({scale:standard}), lower {c_unl}, raise {tolerance},"
                        " or allow more time ({member_timeout})"
                    ),
                )

    return watch


def members_are_limited() -> bool:
    """Whether each member must be trained in its own timed call."""
    return _time_is_limited


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Record that the current thread is in a solver call for this member."""
    thread = threading.get_ident()
    _solver_calls[thread] = time.monotonic(), name
    try:
        yield
    finally:
        del _solver_calls[thread]
