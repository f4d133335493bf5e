"""A sparse matrix by its columns, and its products with sparse rows.

Only entries that both have are looked at, and each product is added up in the order of the row's
entries: it does not depend on other rows.
"""

from __future__ import annotations

import numpy as np

from resvm_cli.dataset import FloatArray, IndexArray, IntArray, Rows
from resvm_cli.svm import _blocks


class SparseMatrix:
    """So many lines over so many columns."""

    def __init__(
        self, lines: IntArray, columns: IndexArray, values: FloatArray, height: int, width: int
    ) -> None:
        """From entries in any order; those given twice count twice."""
        self._height = height
        order = np.argsort(columns, kind="stable")
        self._starts = np.zeros(width + 1, np.int64)
        np.cumsum(np.bincount(columns, minlength=width), out=self._starts[1:])
        self._lines = lines[order].astype(np.int32)
        self._values = values[order]

    @classmethod
    def of(cls, rows: Rows, width: int) -> SparseMatrix:
        """These rows, whose indices are columns."""
        return cls(rows.row_numbers, rows.indices, rows.values, len(rows), width)

    def products(self, rows: Rows, columns: IndexArray) -> FloatArray:
        """lines x rows; ``columns`` has the column of each index, -1 for those that have none."""
        block = np.empty((self._height, len(rows)))
        room = np.empty((_blocks.TOGETHER, self._height))
        _blocks.multiply(
            *(rows.indptr, rows.indices, rows.values, columns),
            *(self._starts, self._lines, self._values),
            *(block, room),
        )
        return block
