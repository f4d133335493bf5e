"""Dot products between the rows of a bag, for kernel values: dense or sparse, depending on density.

This is several times faster than LIBSVM, which computes kernel values one by one from sparse rows.
The choice between dense and sparse, and therefore rounding, depends only on the sizes of the rows.
A sparse product adds up the entries that both rows have, in the order of one row's entries, so it
does not depend on other rows.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

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
    if width:
        columns = np.arange(width, dtype=np.int32)
        numbers = np.arange(len(rows))
        _blocks.spread(*_entries(rows), numbers, columns, matrix[: len(rows)], width)
    return matrix


@dataclass(frozen=True, eq=False)
class DenseBag:
    """Rows as a dense matrix over the features that occur in them."""

    features: IntArray
    matrix: FloatArray

    def dot_products(self, out: FloatArray | None = None) -> FloatArray:
        """Return the dot products, rows x rows; they may overflow, as in LIBSVM."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.matmul(self.matrix, self.matrix.T, out=out)

    def combined(self, coefficients: FloatArray) -> Rows:
        """Return the sum of the rows times their coefficients, as one sparse row."""
        return Rows.one_row(self.features, coefficients @ self.matrix).without_zeros()

    def times(self, factors: Rows) -> DenseBag:
        """Multiply each feature by its factor, and drop features without a factor."""
        place = Columns(factors.indices).places(self.features.astype(np.int32))
        kept = np.flatnonzero(place >= 0)
        with np.errstate(over="ignore"):
            matrix = self.matrix[:, kept] * factors.values[place[kept]]
        return DenseBag(self.features[kept], matrix)

    def taken(self, numbers: IntArray) -> Rows:
        """Return some of the rows, with their original feature indices."""
        rows = Rows.from_dense(self.matrix[numbers], 0)
        return Rows(rows.indptr, self.features[rows.indices].astype(np.int32), rows.values)


@dataclass(frozen=True, eq=False)
class SparseBag:
    """Sparse rows whose indices are positions among the features that occur in them."""

    features: IntArray
    rows: Rows

    @classmethod
    def from_rows(cls, rows: Rows) -> SparseBag:
        """Renumber the features of rows that have their original feature indices."""
        columns = Columns(rows.indices)
        return cls(columns.present, columns.placed(rows))

    def original_rows(self) -> Rows:
        """Return the rows with their original feature indices."""
        indices = self.features[self.rows.indices].astype(np.int32)
        return Rows(self.rows.indptr, indices, self.rows.values)

    def times(self, factors: Rows) -> SparseBag:
        """Multiply each feature by its factor, and drop features without a factor."""
        return SparseBag.from_rows(self.original_rows().times(factors))

    def taken(self, numbers: IntArray) -> Rows:
        """Return some of the rows, with their original feature indices."""
        return self.original_rows().take(numbers)

    def dot_products(self, *, minimum: bool = False) -> FloatArray:
        """Return the dot products or, with ``minimum``, sums of common parts: rows x rows."""
        columns = np.arange(len(self.features), dtype=np.int32)
        cells = len(self.rows) * len(columns)
        is_dense = cells <= MAX_CELLS and len(self.rows.values) >= MIN_DENSITY * cells
        matrix = SparseMatrix(self.rows, len(columns), filled=minimum and is_dense)
        return matrix.products(self.rows, columns, minimum=minimum)

    def combined(self, coefficients: FloatArray) -> Rows:
        """Return the sum of the rows times their coefficients, as one sparse row."""
        weighted = self.rows.values * coefficients[self.rows.row_numbers]
        total = np.bincount(self.rows.indices, weighted, minlength=len(self.features))
        return Rows.one_row(self.features, total.astype(np.float64)).without_zeros()


@dataclass(frozen=True, eq=False)
class BagRows:
    """The rows that bags are drawn from, with features renumbered without gaps."""

    _rows: Rows

    @cached_property
    def _numbered(self) -> SparseBag:
        return SparseBag.from_rows(self._rows)

    def bag(
        self, numbers: IntArray, kernel: Kernel, *, needed: bool = False
    ) -> DenseBag | SparseBag | None:
        """Return a bag of these rows, or None if LIBSVM should use the rows themselves.

        With ``needed``, never return None: LIBSVM has no separate penalty for known negatives.
        """
        is_needed = needed or not kernel.known_to_libsvm or kernel.is_precomputed
        if len(numbers) > MAX_ROWS and not is_needed:
            return None
        if len(numbers) > MAX_MATRIX_ROWS:
            raise ParameterError(
                f"a bag has {len(numbers):,} rows, but the limit for the {kernel.name} kernel is"
                f" {MAX_MATRIX_ROWS:,}: all kernel values must fit in memory",
                "use `method='resvm'`, or smaller bags (`n_pos`, `n_unl`)",
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
        if not is_dense or is_large or kernel.uses_minimum or kernel.is_precomputed:
            taken = rows.take(numbers)
            return SparseBag(features, Rows(taken.indptr, columns[taken.indices], taken.values))
        matrix = np.zeros((len(numbers), width))
        if width:
            _blocks.spread(*_entries(rows), numbers, columns, matrix, width)
        return DenseBag(features, matrix)


def kernel_values(kernel: Kernel, dots: FloatArray) -> FloatArray:
    """Compute a kernel matrix from dot products, which may overflow."""
    norms = dots.diagonal().copy()
    with np.errstate(over="ignore", invalid="ignore"):
        return kernel.values(dots, norms, norms)


def bag_values(kernel: Kernel, bag: DenseBag | SparseBag) -> FloatArray:
    """Compute a bag's kernel matrix, which is valid until this thread's next call."""
    if isinstance(bag, DenseBag):
        count = len(bag.matrix)
        dots = bag.dot_products(_bag_products.first(count**2).reshape(count, count))
        return kernel_values(kernel, dots)
    if kernel.is_precomputed:
        return precomputed_matrix(bag.original_rows())
    return kernel_values(kernel, _sparse_products(bag, kernel))


def _sparse_products(bag: SparseBag, kernel: Kernel) -> FloatArray:
    if kernel.name == "minmax":
        kernel.norms(bag.original_rows())  # raises DataError for negative values
    return bag.dot_products(minimum=kernel.uses_minimum)


def kernel_products(rows: Rows, kernel: Kernel) -> FloatArray:
    """Return the products between all rows, from which kernel values are computed."""
    if kernel.is_precomputed:
        return precomputed_matrix(rows)
    sparse = SparseBag.from_rows(rows)
    width = len(sparse.features)
    cells = len(rows) * width
    is_dense = cells <= MAX_PRODUCT_CELLS and len(rows.values) >= MIN_DENSITY * cells
    if kernel.uses_minimum or not is_dense:
        return _sparse_products(sparse, kernel)
    return DenseBag(sparse.features, dense_matrix(sparse.rows, width)).dot_products()
