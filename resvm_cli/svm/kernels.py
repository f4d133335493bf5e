"""Kernels over blocks of products: LIBSVM's, two for fingerprints, and precomputed values.

LIBSVM's have its formulas and parameter names. The Tanimoto similarity x.y / (|x|^2 + |y|^2 - x.y)
is the fraction of bits that two sets share; minmax is the same for counts, with the smaller of two
counts instead of their product.

A row of the precomputed kernel is ``0:serial 1:K(x, x1) 2:K(x, x2) ...``: its own number in the
whole matrix, and its value with the row of each number. We look values up by index, so zeros may be
left out; LIBSVM looks them up by position and needs them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from resvm_cli.errors import DataError, Message
from resvm_cli.parameters import KERNEL_NAMES, LIBSVM_KERNELS, MAX_DEGREE, KernelName
from resvm_cli.rows import Columns, FloatArray, IntArray, Rows
from resvm_cli.svm import _blocks

# Squared distances from norms and a dot product lose about this many units of the norms' last bit.
CANCELLATION = 16 * np.finfo(np.float64).eps
EXPONENT_TOLERANCE = 1e-10
UNDERFLOW = -746.0  # exp of less than this is 0
DENSE_CHUNK = 1 << 22
SERIAL = 0  # the index of a precomputed row's own number
ROW_FORMAT = "a row of the precomputed kernel is 0:serial 1:K(x,x1) 2:K(x,x2) ..."
# Precomputed values may be rounded: the largest asymmetry, as a fraction of the largest value.
ASYMMETRY = 1e-4


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters; those it does not use stay at LIBSVM's defaults."""

    name: KernelName
    gamma: float = 0.0
    coef0: float = 0.0
    degree: int = 3

    @property
    def number(self) -> int:
        """LIBSVM's number of the kernel."""
        return LIBSVM_KERNELS.index(self.name)

    @property
    def known_to_libsvm(self) -> bool:
        """False for those that compare fingerprints: bits or counts."""
        return self.name in LIBSVM_KERNELS

    @property
    def is_precomputed(self) -> bool:
        """Whether rows hold kernel values instead of features."""
        return self.name == "precomputed"

    @property
    def takes_scaling(self) -> bool:
        """Whether rows are features that may be scaled; scaling would destroy counts."""
        return self.known_to_libsvm and not self.is_precomputed

    @property
    def uses_minimum(self) -> bool:
        """Whether products of two numbers are replaced by the smaller of them."""
        return self.name == "minmax"

    @property
    def uses_gamma(self) -> bool:
        return self.name in ("poly", "rbf", "sigmoid")

    @property
    def uses_coef0(self) -> bool:
        return self.name in ("poly", "sigmoid")

    @property
    def uses_degree(self) -> bool:
        return self.name == "poly"

    def description(self) -> dict[str, Any]:
        """For the manifest: the name, and the parameters that it uses."""
        used = {"gamma": self.uses_gamma, "coef0": self.uses_coef0, "degree": self.uses_degree}
        return {"name": self.name} | {name: getattr(self, name) for name in used if used[name]}

    @classmethod
    def from_description(cls, content: dict[str, Any]) -> Kernel:
        """From the manifest; ValueError if it is not a valid description."""
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
        """The product of each row with itself."""
        if not self.uses_minimum:
            return rows.squared_norms()
        if len(rows.values) and rows.values.min() < 0:
            entry = int(rows.values.argmin())
            raise DataError(
                f"feature {rows.indices[entry]} is {rows.values[entry]:g} in some row;"
                " the minmax kernel compares counts, which are never negative",
                Message("leave out {scale}, or choose another {kernel}"),
            )
        return np.bincount(rows.row_numbers, rows.values, len(rows)).astype(float)

    def values(self, dots: FloatArray, norms: FloatArray, pool_norms: FloatArray) -> FloatArray:
        """Kernel values of a block (rows x pool) from its products, which are overwritten."""
        if self.name == "linear" or self.is_precomputed:
            return dots
        if not self.known_to_libsvm:
            _blocks.tanimoto(dots, pool_norms, norms)
            return dots
        if self.name == "rbf":
            return exp_in_place(self.exponents(dots, norms, pool_norms))
        dots *= self.gamma
        dots += self.coef0
        if self.name == "sigmoid":
            return np.tanh(dots, out=dots)
        return _integer_power(dots, self.degree)

    def exponents(self, dots: FloatArray, norms: FloatArray, pool_norms: FloatArray) -> FloatArray:
        """rbf: minus gamma times the squared distances, which replace the dot products."""
        _blocks.exponents(dots, pool_norms, norms, self.gamma)
        return dots

    def exponent_errors(self, norms: Any, pool_norms: Any) -> Any:
        """rbf: a bound on the error of exponents that are computed from norms."""
        return self.gamma * CANCELLATION * (norms + pool_norms)


def exp_in_place(exponents: FloatArray) -> FloatArray:
    """Replace each x <= 0 by e^x: by our own C code if this build has it, as it is faster."""
    if not _blocks.HAS_EXP:
        return np.exp(exponents, out=exponents)
    _blocks.exp(exponents)
    return exponents


def _integer_power(base: FloatArray, exponent: int) -> FloatArray:
    """Repeated squaring, as LIBSVM does it."""
    result = np.ones_like(base)
    square = base
    while exponent > 0:
        if exponent % 2:
            result *= square
        exponent //= 2
        if exponent:
            square = square * square
    return result


def squared_distances(row: Rows, pool: Rows, width: int) -> FloatArray:
    """Distances of one row to each row of a pool, from differences: slow, but exact to rounding."""
    dense = np.zeros(width)
    dense[row.indices] = row.values
    distances = np.empty(len(pool))
    step = max(1, DENSE_CHUNK // max(1, width))
    for start in range(0, len(pool), step):
        part = pool.slice(start, min(start + step, len(pool)))
        difference = np.tile(dense, (len(part), 1))
        difference[part.row_numbers, part.indices] -= part.values
        distances[start : start + len(part)] = np.einsum("ij,ij->i", difference, difference)
    return distances


def rows_with_serial(rows: Rows) -> IntArray:
    """The numbers of the precomputed rows that have an index 0, which comes first."""
    filled = np.flatnonzero(rows.lengths)
    given: IntArray = filled[rows.indices[rows.indptr[filled]] == SERIAL]
    return given


def wrong_serials(rows: Rows) -> list[tuple[int, str]]:
    """The rows whose serial number is missing or invalid, and what is wrong with it."""
    numbers = np.full(len(rows), np.nan)
    given = rows_with_serial(rows)
    numbers[given] = rows.values[rows.indptr[given]]
    wrong = np.flatnonzero(~((numbers >= 1) & (numbers == np.floor(numbers))))
    return [
        (
            int(row),
            "its serial number, 0:N, is missing"
            if np.isnan(numbers[row])
            else f"its serial number is {numbers[row]:g}; it must be a whole number from 1 on",
        )
        for row in wrong
    ]


def serials(rows: Rows) -> IntArray:
    """The serial number of each row."""
    if wrong := wrong_serials(rows):
        raise DataError(f"row {wrong[0][0] + 1}: {wrong[0][1]}", ROW_FORMAT)
    return rows.values[rows.indptr[:-1]].astype(np.int64)


def with_serials(rows: Rows) -> Rows:
    """Rows of kernel values with serial numbers from 1 on put before them."""
    starts, numbers = rows.indptr[:-1], np.arange(len(rows) + 1)
    indices = np.insert(rows.indices, starts, SERIAL).astype(np.int32)
    return Rows(rows.indptr + numbers, indices, np.insert(rows.values, starts, numbers[1:] * 1.0))


def serial_rows(rows: Rows) -> Rows:
    """Rows of their serial number alone: the support vectors of LIBSVM's precomputed models."""
    numbers = serials(rows).astype(np.float64)
    return Rows(np.arange(len(rows) + 1), np.full(len(rows), SERIAL, np.int32), numbers)


def unit_rows(rows: Rows) -> Rows:
    """For each row one that is 1 at its serial number: a product with it looks up a value."""
    numbers = serials(rows).astype(np.int32)
    return Rows(np.arange(len(rows) + 1), numbers, np.ones(len(rows)))


def precomputed_matrix(rows: Rows) -> FloatArray:
    """The values of these rows with each other: rows x rows."""
    numbers = serials(rows)
    columns = Columns(numbers.astype(np.int32))
    column = columns.places(rows.indices)
    known = (column >= 0) & (rows.indices != SERIAL)
    values = np.zeros((len(rows), len(columns)))
    values[rows.row_numbers[known], column[known]] = rows.values[known]
    # row by row, as the solver reads it
    values = np.ascontiguousarray(values[:, columns.places(numbers.astype(np.int32))])
    _require_symmetry(values, numbers)
    return values


def _require_symmetry(values: FloatArray, numbers: IntArray) -> None:
    differences = np.abs(values - values.T)
    if differences.max(initial=0.0) <= ASYMMETRY * np.abs(values).max(initial=0.0):
        return
    one, other = np.unravel_index(int(differences.argmax()), values.shape)
    raise DataError(
        f"the kernel values are not symmetric: row {numbers[one]} has {values[one, other]:g} at"
        f" {numbers[other]}, and row {numbers[other]} has {values[other, one]:g} at {numbers[one]}",
        "serial numbers are column numbers of one matrix over P and U together",
    )
