"""A sparse matrix by its columns, and its products with sparse rows.

Only entries that both have are looked at, and each product is added up in the order of the row's
entries: it does not depend on other rows.
"""

from __future__ import annotations

import numpy as np

from resvm_cli.dataset import Columns, FloatArray, IndexArray, IntArray, Rows
from resvm_cli.svm import _blocks


class SparseMatrix:
    """Lines over the places of some columns."""

    def __init__(
        self, lines: IntArray, places: IndexArray, values: FloatArray, height: int, columns: Columns
    ) -> None:
        """From entries in any order; those given twice count twice."""
        self._columns = columns
        self._height = height
        order = np.argsort(places, kind="stable")
        self._starts = np.zeros(len(columns) + 1, np.int64)
        np.cumsum(np.bincount(places, minlength=len(columns)), out=self._starts[1:])
        self._lines = lines[order].astype(np.int32)
        self._values = values[order]

    def products(self, rows: Rows) -> FloatArray:
        """lines x rows."""
        block = np.empty((self._height, len(rows)))
        room = np.empty((_blocks.TOGETHER, self._height))
        indices, places = self._columns.lookup(rows.indices)
        _blocks.multiply(
            *(rows.indptr, indices, rows.values, places),
            *(self._starts, self._lines, self._values),
            *(block, room),
        )
        return block
