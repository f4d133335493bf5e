"""Rows as the C solvers want them: arrays of (index, value) nodes, each row closed by index -1.

LIBSVM's svm_node and LIBLINEAR's feature_node have the same layout, so one arena serves both, and a
bag is an array of pointers into it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from resvm_cli.dataset import IntArray, Rows

NODE = np.dtype([("index", np.int32), ("value", np.float64)], align=True)


class Arena:
    """The nodes of a set of rows, made once; it must outlive every pointer taken from it."""

    def __init__(self, rows: Rows) -> None:
        n_rows = len(rows)
        self._nodes = np.empty(len(rows.values) + n_rows, NODE)
        # each row before this one has added a closing node
        position = np.arange(len(rows.values)) + rows.row_numbers
        self._nodes["index"][position] = rows.indices
        self._nodes["value"][position] = rows.values
        closing = rows.indptr[1:] + np.arange(n_rows)
        self._nodes["index"][closing] = -1
        self._nodes["value"][closing] = 0.0
        starts = rows.indptr[:-1] + np.arange(n_rows)
        self._addresses = (self._nodes.ctypes.data + starts * NODE.itemsize).astype(np.uintp)

    def pointers(self, numbers: IntArray) -> npt.NDArray[np.uintp]:
        """Addresses of these rows, in this order."""
        return self._addresses[numbers]
