"""Rows as the C solvers want them: arrays of (index, value) nodes, each row closed by index -1.

LIBSVM's svm_node and LIBLINEAR's feature_node have the same layout, so one arena serves both, and a
bag is an array of pointers into it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from resvm_cli.rows import IntArray, Rows

NODE = np.dtype([("index", np.int32), ("value", np.float64)], align=True)


class Arena:
    """The nodes of a set of rows, made once; it must outlive every pointer taken from it.

    With a closing feature, each row ends in one of that index, whose value is set later.
    """

    def __init__(self, rows: Rows, closing_feature: int | None = None) -> None:
        n_rows = len(rows)
        extra = 1 if closing_feature is None else 2
        self._nodes = np.zeros(len(rows.values) + extra * n_rows, NODE)
        # each row before this one has added its closing nodes
        position = np.arange(len(rows.values)) + extra * rows.row_numbers
        self._nodes["index"][position] = rows.indices
        self._nodes["value"][position] = rows.values
        self._closing = rows.indptr[1:] + extra * np.arange(n_rows)
        if closing_feature is not None:
            self._nodes["index"][self._closing] = closing_feature
        self._nodes["index"][self._closing + extra - 1] = -1
        starts = rows.indptr[:-1] + extra * np.arange(n_rows)
        self._addresses = (self._nodes.ctypes.data + starts * NODE.itemsize).astype(np.uintp)

    def pointers(self, numbers: IntArray) -> npt.NDArray[np.uintp]:
        """Addresses of these rows, in this order."""
        return self._addresses[numbers]

    def set_closing_values(self, numbers: IntArray, value: float) -> None:
        """Give the closing feature of these rows a value."""
        self._nodes["value"][self._closing[numbers]] = value
