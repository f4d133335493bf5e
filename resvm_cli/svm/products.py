"""Dot products between the rows of a bag, for kernel values: dense or sparse, depending on density.

This is several times faster than LIBSVM, which computes kernel values one by one from sparse rows.
The choice between dense and sparse, and therefore rounding, depends only on the sizes of the rows.
A sparse product adds up the entries that both rows have, in the order of one row's entries, so it
does not depend on other rows.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from resvm_cli.errors import ParameterError
from resvm_cli.records import dataclass
from resvm_cli.rows import Columns, FloatArray, IndexArray, IntArray, Rows
from resvm_cli.svm import _blocks
from resvm_cli.svm.kernels import Kernel, precomputed_matrix

if TYPE_CHECKING:
    import numpy.typing as npt

# Above these sizes, LIBSVM computes kernel values from rows as needed. Each limit corresponds to
# about 100 MB: for the nodes of a kernel matrix of MAX_ROWS rows, a dense matrix of MAX_CELLS
# cells, or the multiplication of MAX_ENTRIES sparse entries.
MAX_ROWS = 2500
MAX_CELLS = 1 << 23
MAX_ENTRIES = 1 << 21
MAX_PRODUCT_CELLS = 1 << 26
# Kernels that LIBSVM lacks and precomputed kernels always need the full matrix: up to 4 GB.
MAX_MATRIX_ROWS = 16_000
# The density above which dense products are faster: 0.1 to 0.2, depending on the CPU.
MIN_DENSITY = 0.1


class ScratchBuffer(threading.local):
    """A reusable array for each thread: allocating new pages costs more than filling them."""

    def __init__(self, kind: type[Any]) -> None:
        self._array = np.empty(0, kind)

    def first(self, size: int) -> npt.NDArray[Any]:
        """Return ``size`` uninitialized numbers, valid until the next call in this thread."""
        if len(self._array) < size:
            kind = self._array.dtype
            self._array = np.empty(0, kind)  # free the old one first
            self._array = np.empty(size, kind)
        return self._array[:size]


_bag_products = ScratchBuffer(np.float64)


class SparseMatrix:
    """A matrix stored by its columns."""

    def __init__(self, rows: Rows, width: int, *, filled: bool = False) -> None:
        """Convert rows whose indices are column numbers; entries in the same cell are added up.

        If ``filled``, zeros are stored as well, so that common parts are computed faster.
        """
        self._height = len(rows)
        if filled:
            self._starts = np.arange(width + 1) * len(rows)
            self._lines = np.tile(np.arange(len(rows), dtype=np.int32), width)
            self._values = np.ascontiguousarray(dense_matrix(rows, width).T).reshape(-1)
            return
        self._starts = np.empty(width + 1, np.int64)
        self._lines = np.empty(len(rows.values), np.int32)
        self._values = np.empty(len(rows.values))
        _blocks.transpose(*_entries(rows), self._starts, self._lines, self._values)

    def products(self, rows: Rows, columns: IndexArray, *, minimum: bool = False) -> FloatArray:
        """Multiply the matrix by these rows: matrix rows x rows.

        ``columns`` maps each index to its column, or to -1 if it has none. With ``minimum``, the
        part that two numbers have in common replaces their product.
        """
        block = np.empty((self._height, len(rows)))
        scratch = np.empty((_blocks.ROWS_TOGETHER, self._height))
        matrix = self._starts, self._lines, self._values
        _blocks.multiply(*_entries(rows), columns, *matrix, block, scratch, minimum)
        return block


def _entries(rows: Rows) -> tuple[IntArray, IndexArray, FloatArray]:
    return rows.indptr, rows.indices, rows.values


def dense_matrix(rows: Rows, width: int, padding: int = 0) -> FloatArray:
    """Convert rows to a dense matrix with ``width`` columns, plus ``padding`` rows of zeros."""
    matrix = np.zeros((len(rows) + padding, width))
    numbers, columns = np.arange(len(rows)), np.arange(width, dtype=np.int32)
    _blocks.spread(*_entries(rows), numbers, columns, matrix[: len(rows)], width)
    return matrix


@dataclass(frozen=True, eq=False)
class Bag:
    """Some rows of a training set, with the features that occur in them numbered without gaps."""

    features: IntArray  # the original index of each column
    _all_rows: Rows
    _numbers: IntArray
    _columns: IndexArray  # by index in the training set
    is_dense: bool = False  # whether products are computed from a dense matrix
    order: Literal["C", "F"] = "C"  # the layout of the matrix, which BLAS rounds by

    @classmethod
    def from_rows(cls, rows: Rows) -> Bag:
        """Return a bag of all these rows, which have their original feature indices."""
        columns = Columns(rows.indices)
        numbers = np.arange(len(columns), dtype=np.int32)
        return cls(columns.present, columns.placed(rows), np.arange(len(rows)), numbers)

    def suited_to(self, kernel: Kernel, max_cells: int) -> Bag:
        """Return the bag, dense if that is faster; a matrix may have up to ``max_cells`` cells."""
        is_dense = MIN_DENSITY * self._n_cells <= self.n_entries and self._n_cells <= max_cells
        is_dense = is_dense and not (kernel.uses_minimum or kernel.is_precomputed)
        return Bag(
            self.features, self._all_rows, self._numbers, self._columns, is_dense, self.order
        )

    def part(self, numbers: IntArray, kernel: Kernel, *, needed: bool = False) -> Bag | None:
        """Return a bag of these rows, or None if LIBSVM should use the rows themselves.

        With ``needed``, never return None: LIBSVM has no separate penalty for known negatives.
        """
        needed = needed or not kernel.known_to_libsvm or kernel.is_precomputed
        if len(numbers) > MAX_ROWS and not needed:
            return None
        if len(numbers) > MAX_MATRIX_ROWS:
            raise ParameterError(
                f"a bag has {len(numbers):,} rows, but the limit for the {kernel.name} kernel is"
                f" {MAX_MATRIX_ROWS:,}: all kernel values must fit in memory",
                "use `method='resvm'`, or smaller bags (`n_pos`, `n_unl`)",
            )
        seen = np.zeros(len(self.features), np.int32)
        _blocks.spread(*_entries(self._all_rows), numbers, seen, np.empty(0), 0)
        columns = np.cumsum(seen, dtype=np.int32) - np.int32(1)
        features = self.features[np.flatnonzero(seen)]
        bag = Bag(features, self._all_rows, numbers, columns).suited_to(kernel, MAX_CELLS)
        is_filled = bag.n_entries >= MIN_DENSITY * bag._n_cells
        if not (bag.is_dense or needed) and (is_filled or bag.n_entries > MAX_ENTRIES):
            return None
        return bag

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def _n_cells(self) -> int:
        return len(self) * len(self.features)

    @cached_property
    def n_entries(self) -> int:
        return int(self._all_rows.lengths[self._numbers].sum())

    @cached_property
    def rows(self) -> Rows:
        """The rows, whose indices are column numbers."""
        rows = self._all_rows.take(self._numbers)
        return Rows(rows.indptr, self._columns[rows.indices], rows.values)

    @cached_property
    def _matrix(self) -> FloatArray:
        width = len(self.features)
        matrix = np.zeros((len(self), width))
        entries = _entries(self._all_rows)
        _blocks.spread(*entries, self._numbers, self._columns, matrix, width)
        return np.asarray(matrix, order=self.order)

    def original_rows(self) -> Rows:
        """Return the rows with their original feature indices."""
        indices = self.features[self.rows.indices].astype(np.int32)
        return Rows(self.rows.indptr, indices, self.rows.values)

    def times(self, factors: Rows) -> Bag:
        """Multiply each feature by its factor, and drop features without a factor."""
        bag = Bag.from_rows(self.original_rows().times(factors))
        return replace(bag, is_dense=self.is_dense, order="F")

    def combined(self, coefficients: FloatArray) -> Rows:
        """Return the sum of the rows times their coefficients, as one sparse row."""
        if self.is_dense:
            total = coefficients @ self._matrix
        else:
            weighted = self.rows.values * coefficients[self.rows.row_numbers]
            total = np.bincount(self.rows.indices, weighted, len(self.features)).astype(float)
        return Rows.one_row(self.features, total).without_zeros()

    def products(self, kernel: Kernel, out: FloatArray | None = None) -> FloatArray:
        """Return the products between all rows, from which kernel values are computed.

        They may overflow, as in LIBSVM. Only a dense bag writes them into ``out``.
        """
        if kernel.is_precomputed:
            return precomputed_matrix(self.original_rows())
        if self.is_dense:
            with np.errstate(over="ignore", invalid="ignore"):
                return np.matmul(self._matrix, self._matrix.T, out=out)
        if kernel.name == "minmax":
            kernel.norms(self.original_rows())  # raises DataError for negative values
        columns = np.arange(len(self.features), dtype=np.int32)
        filled = kernel.uses_minimum and MIN_DENSITY * self._n_cells <= self.n_entries
        filled &= self._n_cells <= MAX_CELLS
        matrix = SparseMatrix(self.rows, len(columns), filled=filled)
        return matrix.products(self.rows, columns, minimum=kernel.uses_minimum)


def kernel_products(rows: Rows, kernel: Kernel) -> FloatArray:
    """Return the products between all rows, from which kernel values are computed."""
    return Bag.from_rows(rows).suited_to(kernel, MAX_PRODUCT_CELLS).products(kernel)


def kernel_values(kernel: Kernel, products: FloatArray) -> FloatArray:
    """Compute a kernel matrix from products, which may overflow."""
    norms = products.diagonal().copy()
    with np.errstate(over="ignore", invalid="ignore"):
        return kernel.values(products, norms, norms)


def bag_values(kernel: Kernel, bag: Bag) -> FloatArray:
    """Compute a bag's kernel matrix, which is valid until this thread's next call."""
    count = len(bag)
    out = _bag_products.first(count**2).reshape(count, count) if bag.is_dense else None
    return kernel_values(kernel, bag.products(kernel, out))
