"""Products of rows with each other, for their kernel values: dense or sparse, as suits the rows.

LIBSVM computes kernel values from sparse rows one by one, which takes several times as long. The
way depends on the sizes of the rows alone, and so does rounding. Sparsely, only entries that both
rows have are looked at, and each product is added up in the order of one row's entries: it does not
depend on other rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from resvm_cli.errors import CommandLineError
from resvm_cli.rows import Columns, FloatArray, IndexArray, IntArray, Rows
from resvm_cli.svm import _blocks, gram
from resvm_cli.svm.kernels import Kernel
from resvm_cli.svm.room import Room

# Beyond these sizes LIBSVM makes kernel values from rows as it needs them. A kernel matrix of so
# many rows takes 100 MB as its nodes; so do the cells, or the entries while they are multiplied.
MOST_ROWS = 2500
MOST_CELLS = 1 << 23
MOST_ENTRIES = 1 << 21
MOST_PRODUCT_CELLS = 1 << 26
# A kernel that LIBSVM lacks, or whose values are given, has its matrix whatever its size, up to
# 4 GB of nodes.
MOST_MATRIX_ROWS = 16_000
# Share of non-zeros from which dense products are faster: 0.1 to 0.2, by processor.
LEAST_DENSITY = 0.1

_bag_products = Room(np.float64)


class SparseMatrix:
    """A matrix by its columns: so many lines over so many columns."""

    def __init__(self, rows: Rows, width: int) -> None:
        """Rows whose indices are columns; a column given twice counts twice."""
        self._height = len(rows)
        self._starts = np.empty(width + 1, np.int64)
        self._lines = np.empty(len(rows.values), np.int32)
        self._values = np.empty(len(rows.values))
        _blocks.transpose(
            *(rows.indptr, rows.indices, rows.values), self._starts, self._lines, self._values
        )

    def products(self, rows: Rows, columns: IndexArray, *, smaller: bool = False) -> FloatArray:
        """lines x rows; ``columns`` has the column of each index, -1 for those that have none.

        The smaller of two numbers may stand for their product, for kernels that count so.
        """
        block = np.empty((self._height, len(rows)))
        room = np.empty((_blocks.TOGETHER, self._height))
        _blocks.multiply(
            *(rows.indptr, rows.indices, rows.values, columns),
            *(self._starts, self._lines, self._values),
            *(block, room),
            smaller,
        )
        return block


class BagRows:
    """Rows that bags are drawn from, their features numbered without gaps."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @cached_property
    def _numbered(self) -> SparseBag:
        return SparseBag.of(self._rows)

    def bag(self, numbers: IntArray, kernel: Kernel | None = None) -> DenseBag | SparseBag | None:
        """Some of the rows, over the features they have.

        None where that would be too large: LIBSVM then works with the rows themselves, unless it
        lacks the kernel or its values are given.
        """
        needed = kernel is not None and not kernel.takes_scaling
        if len(numbers) > MOST_ROWS and not needed:
            return None
        if kernel is not None and len(numbers) > MOST_MATRIX_ROWS:
            raise CommandLineError(
                f"a bag has {len(numbers):,} rows; with the {kernel.name} kernel it can have"
                f" {MOST_MATRIX_ROWS:,}: all its values must be in memory",
                "choose --method resvm, or smaller bags: --n-pos, --n-unl",
            )
        rows = self._numbered.rows
        marks = np.zeros(len(self._numbered.features), bool)
        n_entries = _blocks.mark(rows.indptr, rows.indices, rows.values, numbers, marks)
        present = np.flatnonzero(marks)
        features, width = self._numbered.features[present], len(present)
        places = np.zeros(len(marks), np.int32)
        places[present] = np.arange(width)
        cells = len(numbers) * width
        dense = n_entries >= LEAST_DENSITY * cells
        large = cells > MOST_CELLS if dense else n_entries > MOST_ENTRIES
        if large and not needed:
            return None
        dense &= not large and not (
            kernel is not None and (kernel.counts_smaller or kernel.looks_up)
        )
        if not dense:
            taken = rows.take(numbers)
            return SparseBag(features, Rows(taken.indptr, places[taken.indices], taken.values))
        matrix = np.zeros((len(numbers), width))
        if width:
            _blocks.spread(
                *(rows.indptr, rows.indices, rows.values), numbers, places, matrix, width
            )
        return DenseBag(features, matrix)


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
    """Sparse rows, whose indices are places among the features that any of them has."""

    features: IntArray
    rows: Rows

    @classmethod
    def of(cls, rows: Rows) -> SparseBag:
        """Rows whose indices are those of their file."""
        columns = Columns(rows.indices)
        places = columns.places(rows.indices).astype(np.int32)
        return cls(columns.present, Rows(rows.indptr, places, rows.values))

    def as_written(self) -> Rows:
        """The rows with the indices of their file."""
        indices = self.features[self.rows.indices].astype(np.int32)
        return Rows(self.rows.indptr, indices, self.rows.values)

    def dot_products(self, *, smaller: bool = False) -> FloatArray:
        """rows x rows."""
        everywhere = np.arange(len(self.features), dtype=np.int32)
        matrix = SparseMatrix(self.rows, len(everywhere))
        return matrix.products(self.rows, everywhere, smaller=smaller)

    def combined(self, coefficients: FloatArray) -> Rows:
        """The sum of the rows, each times its coefficient, as one sparse row."""
        weighted = self.rows.values * coefficients[self.rows.row_numbers]
        total = np.bincount(self.rows.indices, weighted, minlength=len(self.features))
        return _one_row(self.features, total.astype(np.float64))


def kernel_values(kernel: Kernel, dots: FloatArray) -> FloatArray:
    """rows x rows, by the kernel's formula; these may overflow too."""
    norms = dots.diagonal().copy()
    with np.errstate(over="ignore", invalid="ignore"):
        return kernel.values(dots, norms, norms)


def _one_row(features: IntArray, values: FloatArray) -> Rows:
    bounds = np.array([0, len(values)], np.int64)
    return Rows(bounds, features.astype(np.int32), values).without_zeros()


def dense_matrix(rows: Rows, width: int, padding: int = 0) -> FloatArray:
    """The rows over columns 0 to the width, and so many lines of zeros below them."""
    matrix = np.zeros((len(rows) + padding, width))
    if width:
        entries = (rows.indptr, rows.indices, rows.values)
        columns = np.arange(width, dtype=np.int32)
        _blocks.spread(*entries, np.arange(len(rows)), columns, matrix[: len(rows)], width)
    return matrix


def bag_values(kernel: Kernel, bag: DenseBag | SparseBag) -> FloatArray:
    """rows x rows of a bag; they last until this thread asks for those of another."""
    if kernel.looks_up:
        assert isinstance(bag, SparseBag)
        return gram.kernel_matrix(bag.as_written())
    if kernel.counts_smaller:
        assert isinstance(bag, SparseBag)
        kernel.norms(bag.rows)  # refuses what cannot be counts
        return kernel_values(kernel, bag.dot_products(smaller=True))
    if isinstance(bag, SparseBag):
        return kernel_values(kernel, bag.dot_products())
    count = len(bag.matrix)
    return kernel_values(kernel, bag.dot_products(_bag_products.of(count**2).reshape(count, count)))


def dot_products(rows: Rows) -> FloatArray:
    """All rows with all rows; densely, unless they are too sparse or too wide for that."""
    sparse = SparseBag.of(rows)
    width = len(sparse.features)
    cells = len(rows) * width
    if cells > MOST_PRODUCT_CELLS or len(rows.values) < LEAST_DENSITY * cells:
        return sparse.dot_products()
    return DenseBag(sparse.features, dense_matrix(sparse.rows, width)).dot_products()


def kernel_products(rows: Rows, kernel: Kernel) -> FloatArray:
    """All rows with all rows: what the kernel's values are made from."""
    if kernel.looks_up:
        return gram.kernel_matrix(rows)
    if not kernel.counts_smaller:
        return dot_products(rows)
    kernel.norms(rows)  # refuses what cannot be counts
    return SparseBag.of(rows).dot_products(smaller=True)
