"""Rows as the C solvers want them: arrays of (index, value) nodes, each row closed by index -1.

LIBSVM's svm_node and LIBLINEAR's feature_node have the same layout, so one arena serves both, and a
bag is an array of pointers into it. Kernel values already known are nodes too: LIBSVM then looks up
the value at the other row's serial number.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from resvm_cli.dataset import FloatArray, IntArray, Rows
from resvm_cli.svm import _blocks

NODE = np.dtype([("index", np.int32), ("value", np.float64)], align=True)


class Arena:
    """The nodes of a set of rows, made once; it must outlive every pointer taken from it.

    With a closing feature, each row ends in one of that index, whose value is set later.
    """

    precomputed = False

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


class GramArena:
    """Kernel values between rows as nodes: for each row 0:serial, then its value with every one."""

    precomputed = True

    def __init__(self, values: FloatArray, numbers: IntArray) -> None:
        """``values`` holds those of all rows with all; a number given twice makes two rows."""
        # svm.cpp, Kernel: x_i[(int) x_j[0].value]; indices are not looked at
        count = len(numbers)
        self._nodes = np.empty((count, count + 1), NODE)
        _blocks.gram(values, len(values), numbers, self._nodes)
        step = (count + 1) * NODE.itemsize
        start = self._nodes.ctypes.data
        self._addresses = np.arange(start, start + count * step, step, dtype=np.uintp)

    def pointers(self, numbers: IntArray) -> npt.NDArray[np.uintp]:
        """Addresses of these rows, by their places among the numbers."""
        return self._addresses[numbers]
