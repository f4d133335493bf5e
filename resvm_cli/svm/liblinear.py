"""LIBLINEAR through its C API, for linear members with large bags.

LIBLINEAR penalizes the bias. A large bias feature makes this penalty negligible, so that its
optimum approaches LIBSVM's. Its dual solver uses the process-wide rand(), so each call seeds rand()
first and only one call runs at a time. It allocates a dense weight vector, so features are
renumbered from 1 without gaps.
"""

from __future__ import annotations

import ctypes
import threading
from ctypes import POINTER, Structure, c_bool, c_double, c_int, c_uint, c_void_p
from functools import cache

import numpy as np

from resvm_cli.errors import SolverError
from resvm_cli.rows import Columns, IntArray, Rows
from resvm_cli.svm.kernels import Problem
from resvm_cli.svm.libsvm import (
    PRINT_FUNCTION,
    LinearSolution,
    NodeArray,
    SolverLibrary,
    bag_labels,
    copied_numbers,
    fields,
)

L2R_L1LOSS_SVC_DUAL = 3
WARNING = b"reaching max number of iterations"


class _Problem(Structure):
    _fields_ = fields((c_int, "l n"), (c_void_p, "y x"), (c_double, "bias"))


class _Parameter(Structure):
    _fields_ = fields(
        (c_int, "solver_type"),
        (c_double, "eps C"),
        (c_int, "nr_weight"),
        (POINTER(c_int), "weight_label"),
        (POINTER(c_double), "weight"),
        (c_double, "p nu"),
        (c_void_p, "init_sol"),
        (c_int, "regularize_bias"),
        (c_bool, "w_recalc"),
    )


class _Model(Structure):
    _fields_ = fields(
        (_Parameter, "param"),
        (c_int, "nr_class nr_feature"),
        (POINTER(c_double), "w"),
        (POINTER(c_int), "label"),
        (c_double, "bias rho"),
    )


_one_at_a_time = threading.Lock()
_printed = threading.local()  # .warning: whether this thread's call printed the warning


def _read_output(text: bytes) -> None:
    # LIBLINEAR reports convergence only in its output, which we keep off stdout
    if WARNING in text:
        _printed.warning = True


@cache
def _library() -> SolverLibrary:
    output = PRINT_FUNCTION(_read_output)
    return SolverLibrary("LIBLINEAR", "", _Problem, _Parameter, _Model, output)


class LinearTrainer:
    """Trains on rows whose features are renumbered without gaps, plus a bias feature."""

    def __init__(self, rows: Rows) -> None:
        columns = Columns(rows.indices)
        self.features = columns.present
        self._bias_index = len(self.features) + 1
        if self._bias_index >= 2**31 - 1:
            raise SolverError("too many features for LIBLINEAR", ("use `solver='libsvm'`"))
        self._norms = np.sqrt(rows.squared_norms())
        placed = columns.placed(rows)
        renumbered = Rows(placed.indptr, placed.indices + np.int32(1), placed.values)
        self._nodes = NodeArray(renumbered, closing_feature=self._bias_index)

    def train(self, problem: Problem, positive: IntArray, unlabeled: IntArray) -> LinearSolution:
        """Train on a bag of these rows: L2-regularized hinge loss, solved in the dual."""
        bag = np.concatenate([positive, unlabeled])
        bias = problem.bias or float(self._norms[bag].mean()) or 1.0
        if bias < 0:
            bias = 0.0  # a bias feature that is always 0 has no effect
        labels, pointers = bag_labels(len(positive), len(bag)), self._nodes.pointers(bag)
        addresses = labels.ctypes.data, pointers.ctypes.data
        described = _Problem(len(bag), self._bias_index, *addresses, bias)
        parameter = _Parameter(
            solver_type=L2R_L1LOSS_SVC_DUAL,
            eps=problem.tolerance,
            C=1.0,  # multiplied by the weights, which are the penalties
            nr_weight=2,
            weight_label=(c_int * 2)(1, -1),
            weight=(c_double * 2)(problem.c_pos, problem.c_unl),
            p=0.1,
            nu=0.5,
            regularize_bias=1,
        )
        library = _library()
        library.check(described, parameter)
        with _one_at_a_time:
            # bags share nodes, which may still contain another bag's bias
            self._nodes.set_closing_values(bag, bias)
            _printed.warning = False
            ctypes.CDLL(None).srand(c_uint(problem.seed & 0xFFFFFFFF))
            with library.trained(described, parameter) as model:
                weights = copied_numbers(model.w, self._bias_index, np.float64)
        if not np.isfinite(weights).all():
            raise SolverError(
                "LIBLINEAR returned numbers that are not finite", "scale the features"
            )
        row = Rows.one_row(self.features, weights[:-1]).without_zeros()
        return LinearSolution(row, 0.0 - float(weights[-1]) * bias, not _printed.warning)
