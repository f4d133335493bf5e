"""One SVM to train, and one trained: what lies between the methods and the solvers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from resvm_cli.errors import SolverError
from resvm_cli.parameters import SolverName
from resvm_cli.rows import FloatArray, IntArray, Rows
from resvm_cli.svm.kernels import Kernel


@dataclass(frozen=True, eq=False)
class Problem:
    """A class-weighted C-SVM over a bag of rows: hinge loss, bias not penalised (paper, eq. 1)."""

    positive: IntArray  # row numbers in P, repeats included
    unlabeled: IntArray  # row numbers in U, repeats included
    c_pos: float
    c_unl: float
    kernel: Kernel
    tolerance: float
    cache_mb: float
    solver: SolverName = "libsvm"
    # LIBLINEAR's; negative for no bias, None for the mean row norm of the bag
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
    """psi(x) = weights . x - rho, from a solver that knows weights only."""

    weights: Rows  # one row
    rho: float
    converged: bool


def iteration_limit(n_rows: int) -> int:
    """Where LIBSVM leaves a problem of so many rows as it is."""
    return max(10_000_000, 100 * n_rows)  # svm.cpp, Solver::Solve


def require_sound(n_support: int, numbers: FloatArray) -> None:
    """Refuse a solution that has no support vectors, or numbers that are none."""
    if n_support == 0:
        raise SolverError(
            "LIBSVM stopped before it found a support vector",
            "lower -e/--tolerance; or scale the features, if kernel values overflow",
        )
    if not np.isfinite(numbers).all():
        raise SolverError(
            "LIBSVM returned numbers that are not finite",
            "scale the features, or choose smaller penalties, gamma, coef0 or degree",
        )
