"""A few rows as a dense matrix over the features they have, and their kernel values by one product.

LIBSVM computes kernel values from sparse rows one by one; where rows are not very sparse a dense
product is several times faster. Its shape depends on the rows alone, and so does its rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from resvm_cli.dataset import Columns, FloatArray, IntArray, Rows
from resvm_cli.svm import _blocks
from resvm_cli.svm.kernels import Kernel
from resvm_cli.svm.sparse import SparseMatrix

# A kernel matrix of this many rows takes 100 MB as LIBSVM's nodes.
MOST_ROWS = 2500
MOST_CELLS = 1 << 23
MOST_PRODUCT_CELLS = 1 << 26
# Below this share of non-zeros LIBSVM's sparse products are faster.
LEAST_DENSITY = 0.02


class BagRows:
    """Rows that bags are drawn from, their features numbered without gaps."""

    def __init__(self, rows: Rows) -> None:
        columns = Columns(rows.indices)
        self._features = columns.present
        numbered = columns.places(rows.indices).astype(np.int32)
        self._entries = (rows.indptr, numbered, rows.values)

    def dense(self, numbers: IntArray) -> DenseRows | None:
        """Some of the rows, or None where they are too many or too sparse: by sizes alone."""
        if len(numbers) > MOST_ROWS:
            return None
        marks = np.zeros(len(self._features), bool)
        n_entries = _blocks.mark(*self._entries, numbers, marks)
        present = np.flatnonzero(marks)
        width = len(present)
        cells = len(numbers) * width
        if cells > MOST_CELLS or n_entries < LEAST_DENSITY * cells:
            return None
        matrix = np.zeros((len(numbers), width))
        if width:
            places = np.zeros(len(marks), np.int32)
            places[present] = np.arange(width)
            _blocks.spread(*self._entries, numbers, places, matrix, width)
        return DenseRows(self._features[present], matrix)


@dataclass(frozen=True, eq=False)
class DenseRows:
    """Rows over the features that any of them has."""

    columns: IntArray
    matrix: FloatArray

    def kernel_values(self, kernel: Kernel) -> FloatArray:
        """rows x rows, by LIBSVM's formulas; they may overflow, as LIBSVM's do."""
        with np.errstate(over="ignore", invalid="ignore"):
            dots = self.matrix @ self.matrix.T
            norms = dots.diagonal().copy()
            return kernel.values(dots, norms, norms)

    def combined(self, coefficients: FloatArray) -> Rows:
        """The sum of the rows, each times its coefficient, as one sparse row."""
        total = coefficients @ self.matrix
        return Rows(
            np.array([0, len(total)], np.int64), self.columns.astype(np.int32), total
        ).without_zeros()


def dense_matrix(rows: Rows, width: int, padding: int = 0) -> FloatArray:
    """The rows over columns 0 to the width, and so many lines of zeros below them."""
    matrix = np.zeros((len(rows) + padding, width))
    if width:
        entries = (rows.indptr, rows.indices, rows.values)
        columns = np.arange(width, dtype=np.int32)
        _blocks.spread(*entries, np.arange(len(rows)), columns, matrix[: len(rows)], width)
    return matrix


def dot_products(rows: Rows) -> FloatArray:
    """All rows with all rows; densely, unless they are too sparse or too wide for that."""
    columns = Columns(rows.indices)
    placed = Rows(rows.indptr, columns.places(rows.indices).astype(np.int32), rows.values)
    cells = len(rows) * len(columns)
    if cells <= MOST_PRODUCT_CELLS and len(rows.values) >= LEAST_DENSITY * cells:
        matrix = dense_matrix(placed, len(columns))
        return matrix @ matrix.T
    return SparseMatrix(rows.row_numbers, placed.indices, rows.values, len(rows), columns).products(
        rows
    )
