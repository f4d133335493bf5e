"""An SVM to train and its solution: the methods create problems, and the solvers solve them."""

from __future__ import annotations

import numpy as np

from resvm_cli.errors import SolverError
from resvm_cli.parameters import ScalingName, SolverName
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, Rows
from resvm_cli.svm.kernels import Kernel


@dataclass(frozen=True, eq=False)
class Problem:
    """A class-weighted C-SVM on a bag of rows: hinge loss, unpenalized bias (paper, eq. 1)."""

    positive: IntArray  # row numbers in P, including duplicates
    unlabeled: IntArray  # row numbers in U, including duplicates, then known negatives
    c_pos: float
    c_unl: float
    kernel: Kernel
    tolerance: float
    solver: SolverName = "libsvm"
    # value of LIBLINEAR's bias feature: negative for no bias, None for the bag's mean row norm
    bias: float | None = None
    seed: int = 0
    name: str = "a member"  # how error messages refer to it
    scale: ScalingName | None = None  # how the rows are scaled
    relevance_power: float | None = None  # None: features are not weighted
    n_negative: int = 0  # the number of known negatives at the end of ``unlabeled``
    c_neg: float = 0.0
    by_libsvm: bool = False  # call LIBSVM even where our solver has the same solution, to the bit


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
            "lower `tolerance`, or scale the features if kernel values overflow",
        )
    if not np.isfinite(numbers).all():
        raise SolverError(
            "LIBSVM returned numbers that are not finite",
            "scale the features, or lower `c_unl`, `gamma`, `coef0` or `degree`",
        )
