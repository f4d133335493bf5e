"""One SVM: its kernel (LIBSVM's, the Laplacian, two for fingerprints, precomputed) and problem.

LIBSVM's kernels use its formulas and parameter names. The Tanimoto similarity
x.y / (|x|^2 + |y|^2 - x.y) is the fraction of set bits that two fingerprints share. The minmax
kernel is its counterpart for counts: it uses the smaller of two counts instead of their product.
The Laplacian kernel is exp(-gamma |x - y|_1), where |x - y|_1 is |x|_1 + |y|_1 minus twice the part
that two numbers of the same sign have in common, the smaller one.

A row of a precomputed kernel is ``0:serial 1:K(x, x1) 2:K(x, x2) ...``: the row's own number in the
complete matrix, then its kernel value with each row. We look values up by index, so zeros may be
omitted; LIBSVM looks them up by position and needs all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.parameters import (
    FEATURE_KERNELS,
    KERNEL_NAMES,
    LIBSVM_KERNELS,
    MAX_DEGREE,
    KernelName,
    ScalingName,
    SolverName,
)
from resvm_cli.records import dataclass
from resvm_cli.rows import MAX_INDEX, Columns, FloatArray, IntArray, Rows
from resvm_cli.svm import _blocks

PARAMETERS: dict[str, tuple[str, ...]] = {
    "poly": ("gamma", "coef0", "degree"),
    "rbf": ("gamma",),
    "laplacian": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
}
# Relative rounding error of a distance computed from norms and a (dot) product.
CANCELLATION = 16 * np.finfo(np.float64).eps
EXPONENT_TOLERANCE = 1e-10
UNDERFLOW = -746.0  # exp(x) is 0 for any smaller x
DENSE_CHUNK = 1 << 22
SERIAL = 0  # the index of a precomputed row's own number
ROW_FORMAT = "a row of the precomputed kernel is 0:serial 1:K(x,x1) 2:K(x,x2) ..."
# The largest asymmetry allowed in (rounded) precomputed values, relative to the largest value.
ASYMMETRY = 1e-4


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters; unused parameters keep LIBSVM's defaults."""

    name: KernelName
    gamma: float = 0.0
    coef0: float = 0.0
    degree: int = 3

    @property
    def number(self) -> int:
        return LIBSVM_KERNELS.index(self.name)

    @property
    def known_to_libsvm(self) -> bool:
        """Whether LIBSVM has this kernel; false for laplacian and fingerprints."""
        return self.name in LIBSVM_KERNELS

    @property
    def is_precomputed(self) -> bool:
        """Whether rows contain kernel values instead of features."""
        return self.name == "precomputed"

    @property
    def takes_scaling(self) -> bool:
        """Whether features may be scaled; scaling would destroy bits and counts."""
        return self.name in FEATURE_KERNELS

    @property
    def uses_minimum(self) -> bool:
        """Whether the smaller of two numbers is used instead of their product."""
        return self.name in ("minmax", "laplacian")

    @property
    def uses_distances(self) -> bool:
        """Whether values are exp(-gamma times a distance): squared for rbf, absolute otherwise."""
        return self.name in ("rbf", "laplacian")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters that the kernel uses."""
        return PARAMETERS.get(self.name, ())

    def description(self) -> dict[str, Any]:
        """Return the kernel's entry in the manifest: its name and the parameters it uses."""
        return {"name": self.name} | {name: getattr(self, name) for name in self.parameters}

    @classmethod
    def from_description(cls, content: dict[str, Any]) -> Kernel:
        """Read from the manifest; raise ValueError, KeyError or TypeError if it is invalid."""
        kernel = cls(
            content["name"],
            gamma=float(content.get("gamma", 0.0)),
            coef0=float(content.get("coef0", 0.0)),
            degree=content.get("degree", 3),
        )
        if (
            kernel.name not in KERNEL_NAMES
            or kernel.description() != content
            or not (np.isfinite(kernel.gamma) and np.isfinite(kernel.coef0))
            or kernel.gamma < 0
            or type(kernel.degree) is not int
            or not 1 <= kernel.degree <= MAX_DEGREE
        ):
            raise ValueError("kernel")
        return kernel

    def norms(self, rows: Rows) -> FloatArray:
        """Return the product of each row with itself."""
        if not self.uses_minimum:
            return rows.squared_norms()
        if self.name == "laplacian":
            return np.bincount(rows.row_numbers, np.abs(rows.values), len(rows)).astype(float)
        if len(rows.values) and rows.values.min() < 0:
            entry = int(rows.values.argmin())
            raise DataError(
                f"feature {rows.indices[entry]} is {rows.values[entry]:g} in some row, but the"
                " minmax kernel compares counts, which are never negative",
                "omit `scale`, or choose another `kernel`",
            )
        return np.bincount(rows.row_numbers, rows.values, len(rows)).astype(float)

    def values(self, dots: FloatArray, norms: FloatArray, pool_norms: FloatArray) -> FloatArray:
        """Compute the kernel values of a block (rows x pool) from its products, in place."""
        if self.name == "linear" or self.is_precomputed:
            return dots
        if self.uses_distances:
            return exp_in_place(self.exponents(dots, norms, pool_norms))
        if not self.known_to_libsvm:  # Tanimoto; minmax too, from sums and sums of minima
            union = (pool_norms + norms[:, None]) - dots
            with np.errstate(invalid="ignore"):
                return np.where(union == 0.0, 1.0, np.divide(dots, union, out=dots))
        dots *= self.gamma
        dots += self.coef0
        if self.name == "sigmoid":
            return np.tanh(dots, out=dots)
        return _integer_power(dots, self.degree)

    def exponents(self, dots: FloatArray, norms: FloatArray, pool_norms: FloatArray) -> FloatArray:
        """Replace the products with -gamma times the distances (rbf and laplacian)."""
        _blocks.exponents(dots, pool_norms, norms, self.gamma)
        return dots

    def exponent_errors(self, norms: Any, pool_norms: Any) -> Any:
        """Return a bound on the rounding error of ``exponents``."""
        return self.gamma * CANCELLATION * (norms + pool_norms)


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


def exp_in_place(exponents: FloatArray) -> FloatArray:
    """Replace each x <= 0 with exp(x)."""
    _blocks.exp(exponents)
    return exponents


def _integer_power(base: FloatArray, exponent: int) -> FloatArray:
    """Compute powers by repeated squaring, as LIBSVM does."""
    result = np.ones_like(base)
    square = base
    while exponent > 0:
        if exponent % 2:
            result *= square
        exponent //= 2
        if exponent:
            square = square * square
    return result


def distances_to(row: Rows, pool: Rows, columns: Columns, kernel: Kernel) -> FloatArray:
    """Compute a row's (squared) distances to all pool rows from differences: slow, but accurate.

    The pool's indices are positions among ``columns``; the row may have other features as well.
    """
    places = columns.places(row.indices)
    seen = places >= 0
    dense = np.zeros(len(columns))
    dense[places[seen]] = row.values[seen]
    distances = np.empty(len(pool))
    step = max(1, DENSE_CHUNK // max(1, len(columns)))
    for start in range(0, len(pool), step):
        part = pool.slice(start, min(start + step, len(pool)))
        difference = np.tile(dense, (len(part), 1))
        difference[part.row_numbers, part.indices] -= part.values
        distances[start : start + len(part)] = (
            np.abs(difference).sum(axis=1)
            if kernel.uses_minimum
            else np.einsum("ij,ij->i", difference, difference)
        )
    others = row.values[~seen]
    distances += np.abs(others).sum() if kernel.uses_minimum else np.dot(others, others)
    return distances


def rows_with_serial(rows: Rows) -> IntArray:
    """Return the numbers of the precomputed rows that start with a serial number (index 0)."""
    filled = np.flatnonzero(rows.lengths)
    given: IntArray = filled[rows.indices[rows.indptr[filled]] == SERIAL]
    return given


def wrong_serials(rows: Rows) -> list[tuple[int, str]]:
    """Return the rows whose serial number is missing or invalid, and what is wrong with each."""
    numbers = np.full(len(rows), np.nan)
    given = rows_with_serial(rows)
    numbers[given] = rows.values[rows.indptr[given]]
    possible = (numbers >= 1) & (numbers <= MAX_INDEX) & (numbers == np.floor(numbers))
    wrong = np.flatnonzero(~possible)
    return [
        (
            int(row),
            "its serial number, 0:N, is missing"
            if np.isnan(numbers[row])
            else f"its serial number is {numbers[row]:g}; it must be an integer from 1 to"
            f" {MAX_INDEX:,}",
        )
        for row in wrong
    ]


def serials(rows: Rows) -> IntArray:
    if wrong := wrong_serials(rows):
        raise DataError(f"row {wrong[0][0] + 1}: {wrong[0][1]}", ROW_FORMAT)
    return rows.values[rows.indptr[:-1]].astype(np.int64)


def with_serials(rows: Rows) -> Rows:
    """Prepend the serial numbers 1, 2, ... to rows of kernel values."""
    starts, numbers = rows.indptr[:-1], np.arange(len(rows) + 1)
    indices = np.insert(rows.indices, starts, SERIAL).astype(np.int32)
    return Rows(rows.indptr + numbers, indices, np.insert(rows.values, starts, numbers[1:] * 1.0))


def serial_rows(rows: Rows) -> Rows:
    """Keep only serial numbers, like the support vectors of LIBSVM's precomputed models."""
    numbers = serials(rows).astype(np.float64)
    return Rows(np.arange(len(rows) + 1), np.full(len(rows), SERIAL, np.int32), numbers)


def unit_rows(rows: Rows) -> Rows:
    """Return unit vectors with a 1 at each serial number, so that dot products look up values."""
    numbers = serials(rows).astype(np.int32)
    return Rows(np.arange(len(rows) + 1), numbers, np.ones(len(rows)))


def precomputed_matrix(rows: Rows) -> FloatArray:
    """Return the kernel matrix of these rows."""
    numbers = serials(rows)
    columns = Columns(numbers.astype(np.int32))
    column = columns.places(rows.indices)
    known = (column >= 0) & (rows.indices != SERIAL)
    values = np.zeros((len(rows), len(columns)))
    values[rows.row_numbers[known], column[known]] = rows.values[known]
    # in row-major order, as the solver expects
    values = np.ascontiguousarray(values[:, columns.places(numbers.astype(np.int32))])
    differences = np.abs(values - values.T)
    if differences.max(initial=0.0) <= ASYMMETRY * np.abs(values).max(initial=0.0):
        return values
    one, other = np.unravel_index(int(differences.argmax()), values.shape)
    raise DataError(
        f"the kernel values are not symmetric: row {numbers[one]} has {values[one, other]:g} at"
        f" {numbers[other]}, but row {numbers[other]} has {values[other, one]:g} at {numbers[one]}",
        "serial numbers must be the column numbers of one matrix that covers both P and U",
    )
