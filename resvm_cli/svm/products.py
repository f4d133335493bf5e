"""Products of rows with each other, for their kernel values: dense or sparse, by density.

LIBSVM computes kernel values from sparse rows one by one, which takes several times as long. The
choice, and so the rounding, depends only on the sizes of the rows. Sparse products look only at
entries that both rows have and add them up in the order of one row's entries, so they do not depend
on other rows.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import ParameterError
from resvm_cli.rows import Columns, FloatArray, IndexArray, IntArray, Rows
from resvm_cli.svm import _blocks
from resvm_cli.svm.kernels import Kernel, precomputed_matrix

# Above these sizes LIBSVM computes kernel values from rows as it needs them. The nodes of a kernel
# matrix of MAX_ROWS rows take 100 MB; so do MAX_CELLS cells, and MAX_ENTRIES entries during their
# multiplication.
MAX_ROWS = 2500
MAX_CELLS = 1 << 23
MAX_ENTRIES = 1 << 21
MAX_PRODUCT_CELLS = 1 << 26
# A kernel that LIBSVM lacks, or a precomputed one, always has its matrix: up to 4 GB of nodes.
MAX_MATRIX_ROWS = 16_000
# Fraction of non-zeros from which dense products are faster: 0.1 to 0.2, depending on the CPU.
MIN_DENSITY = 0.1


class ScratchBuffer(threading.local):
    """An array per thread that is used again: fresh pages cost more than filling them."""

    def __init__(self, kind: type[Any]) -> None:
        self._array = np.empty(0, kind)

    def first(self, size: int) -> npt.NDArray[Any]:
        """This many numbers of any value, which the next caller in this thread overwrites."""
        if len(self._array) < size:
            kind = self._array.dtype
            self._array = np.empty(0, kind)  # free the old one first
            self._array = np.empty(size, kind)
        return self._array[:size]


_bag_products = ScratchBuffer(np.float64)


class SparseMatrix:
    """A matrix stored by its columns."""

    def __init__(self, rows: Rows, width: int) -> None:
        """From rows whose indices are columns; a column given twice counts twice."""
        self._height = len(rows)
        self._starts = np.empty(width + 1, np.int64)
        self._lines = np.empty(len(rows.values), np.int32)
        self._values = np.empty(len(rows.values))
        _blocks.transpose(*_entries(rows), self._starts, self._lines, self._values)

    def products(self, rows: Rows, columns: IndexArray, *, minimum: bool = False) -> FloatArray:
        """lines x rows; ``columns`` has the column of each index, -1 for those that have none.

        With ``minimum`` the smaller of two numbers replaces their product.
        """
        block = np.empty((self._height, len(rows)))
        scratch = np.empty((_blocks.ROWS_TOGETHER, self._height))
        matrix = self._starts, self._lines, self._values
        _blocks.multiply(*_entries(rows), columns, *matrix, block, scratch, minimum)
        return block


def _entries(rows: Rows) -> tuple[IntArray, IndexArray, FloatArray]:
    return rows.indptr, rows.indices, rows.values


def dense_matrix(rows: Rows, width: int, padding: int = 0) -> FloatArray:
    """The rows over columns 0 to the width, followed by this many lines of zeros."""
    matrix = np.zeros((len(rows) + padding, width))
    if width:
        columns = np.arange(width, dtype=np.int32)
        numbers = np.arange(len(rows))
        _blocks.spread(*_entries(rows), numbers, columns, matrix[: len(rows)], width)
    return matrix


@dataclass(frozen=True, eq=False)
class DenseBag:
    """Rows as a matrix over the features that any of them has."""

    features: IntArray
    matrix: FloatArray

    def dot_products(self, out: FloatArray | None = None) -> FloatArray:
        """rows x rows; they may overflow, as LIBSVM's do."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.matmul(self.matrix, self.matrix.T, out=out)

    def combined(self, coefficients: FloatArray) -> Rows:
        """The sum of the rows, each times its coefficient, as one sparse row."""
        return _one_row(self.features, coefficients @ self.matrix)


@dataclass(frozen=True, eq=False)
class SparseBag:
    """Sparse rows whose indices are positions among the features that any of them has."""

    features: IntArray
    rows: Rows

    @classmethod
    def from_rows(cls, rows: Rows) -> SparseBag:
        """From rows with the indices of their file."""
        columns = Columns(rows.indices)
        places = columns.places(rows.indices).astype(np.int32)
        return cls(columns.present, Rows(rows.indptr, places, rows.values))

    def original_rows(self) -> Rows:
        """The rows with the indices of their file."""
        indices = self.features[self.rows.indices].astype(np.int32)
        return Rows(self.rows.indptr, indices, self.rows.values)

    def dot_products(self, *, minimum: bool = False) -> FloatArray:
        """rows x rows."""
        columns = np.arange(len(self.features), dtype=np.int32)
        matrix = SparseMatrix(self.rows, len(columns))
        return matrix.products(self.rows, columns, minimum=minimum)

    def combined(self, coefficients: FloatArray) -> Rows:
        """The sum of the rows, each times its coefficient, as one sparse row."""
        weighted = self.rows.values * coefficients[self.rows.row_numbers]
        total = np.bincount(self.rows.indices, weighted, minlength=len(self.features))
        return _one_row(self.features, total.astype(np.float64))


def _one_row(features: IntArray, values: FloatArray) -> Rows:
    bounds = np.array([0, len(values)], np.int64)
    return Rows(bounds, features.astype(np.int32), values).without_zeros()


class BagRows:
    """Rows that bags are drawn from, their features renumbered without gaps."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @cached_property
    def _numbered(self) -> SparseBag:
        return SparseBag.from_rows(self._rows)

    def bag(self, numbers: IntArray, kernel: Kernel | None = None) -> DenseBag | SparseBag | None:
        """Some of the rows, over the features they have.

        None if that would be too large: LIBSVM then works on the rows themselves. Kernels that it
        lacks and precomputed ones always need their bag.
        """
        is_needed = kernel is not None and not kernel.takes_scaling
        if len(numbers) > MAX_ROWS and not is_needed:
            return None
        if kernel is not None and len(numbers) > MAX_MATRIX_ROWS:
            raise ParameterError(
                "a bag has {n_rows:,} rows, but at most {limit:,} are possible with the {name}"
                " kernel: all kernel values must be in memory",
                "use {method:resvm}, or smaller bags ({n_pos}, {n_unl})",
                n_rows=len(numbers),
                limit=MAX_MATRIX_ROWS,
                name=kernel.name,
            )
        rows, features = self._numbered.rows, self._numbered.features
        marks = np.zeros(len(features), bool)
        n_entries = _blocks.mark(*_entries(rows), numbers, marks)
        present = np.flatnonzero(marks)
        features, width = features[present], len(present)
        columns = np.zeros(len(marks), np.int32)
        columns[present] = np.arange(width)
        cells = len(numbers) * width
        is_dense = n_entries >= MIN_DENSITY * cells
        is_large = cells > MAX_CELLS if is_dense else n_entries > MAX_ENTRIES
        if is_large and not is_needed:
            return None
        only_sparse = kernel is not None and (kernel.uses_minimum or kernel.is_precomputed)
        if not is_dense or is_large or only_sparse:
            taken = rows.take(numbers)
            return SparseBag(features, Rows(taken.indptr, columns[taken.indices], taken.values))
        matrix = np.zeros((len(numbers), width))
        if width:
            _blocks.spread(*_entries(rows), numbers, columns, matrix, width)
        return DenseBag(features, matrix)


def kernel_values(kernel: Kernel, dots: FloatArray) -> FloatArray:
    """rows x rows, by the kernel's formula; these may overflow too."""
    norms = dots.diagonal().copy()
    with np.errstate(over="ignore", invalid="ignore"):
        return kernel.values(dots, norms, norms)


def bag_values(kernel: Kernel, bag: DenseBag | SparseBag) -> FloatArray:
    """rows x rows of a bag; this thread's next call may overwrite them."""
    if isinstance(bag, DenseBag):
        count = len(bag.matrix)
        dots = bag.dot_products(_bag_products.first(count**2).reshape(count, count))
        return kernel_values(kernel, dots)
    if kernel.is_precomputed:
        return precomputed_matrix(bag.original_rows())
    return kernel_values(kernel, _sparse_products(bag, kernel))


def _sparse_products(bag: SparseBag, kernel: Kernel) -> FloatArray:
    if kernel.uses_minimum:
        kernel.norms(bag.original_rows())  # raises DataError for what cannot be counts
    return bag.dot_products(minimum=kernel.uses_minimum)


def kernel_products(rows: Rows, kernel: Kernel) -> FloatArray:
    """All rows with all rows: the products that the kernel's values are computed from."""
    if kernel.is_precomputed:
        return precomputed_matrix(rows)
    sparse = SparseBag.from_rows(rows)
    width = len(sparse.features)
    cells = len(rows) * width
    is_dense = cells <= MAX_PRODUCT_CELLS and len(rows.values) >= MIN_DENSITY * cells
    if kernel.uses_minimum or not is_dense:
        return _sparse_products(sparse, kernel)
    return DenseBag(sparse.features, dense_matrix(sparse.rows, width)).dot_products()
