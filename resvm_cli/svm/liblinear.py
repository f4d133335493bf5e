"""LIBLINEAR through its C API, for linear members of large bags.

It penalises its bias; a large bias feature (-B) makes that penalty small, and its optimum LIBSVM's.
Its dual solver draws from the process-wide rand(): each call seeds that first, and calls wait for
one another. It keeps a dense weight vector, so features are numbered anew, 1 to the number present.
"""

from __future__ import annotations

import ctypes
import threading
from ctypes import POINTER, Structure, byref, c_bool, c_char_p, c_double, c_int, c_uint, c_void_p
from functools import cache

import numpy as np

from resvm_cli.errors import SolverError
from resvm_cli.rows import IntArray, Rows
from resvm_cli.svm.deadline import timed
from resvm_cli.svm.nodes import Arena
from resvm_cli.svm.problem import LinearSolution, Problem
from resvm_cli.svm.solver_libraries import PRINT_FUNCTION, find_shared_object, package_version

L2R_L1LOSS_SVC_DUAL = 3
WARNING = b"reaching max number of iterations"


class _Problem(Structure):
    _fields_ = (
        ("l", c_int),
        ("n", c_int),
        ("y", c_void_p),
        ("x", c_void_p),
        ("bias", c_double),
    )


class _Parameter(Structure):
    _fields_ = (
        ("solver_type", c_int),
        ("eps", c_double),
        ("C", c_double),
        ("nr_weight", c_int),
        ("weight_label", POINTER(c_int)),
        ("weight", POINTER(c_double)),
        ("p", c_double),
        ("nu", c_double),
        ("init_sol", c_void_p),
        ("regularize_bias", c_int),
        ("w_recalc", c_bool),
    )


class _Model(Structure):
    _fields_ = (
        ("param", _Parameter),
        ("nr_class", c_int),
        ("nr_feature", c_int),
        ("w", POINTER(c_double)),
        ("label", POINTER(c_int)),
        ("bias", c_double),
        ("rho", c_double),
    )


_one_at_a_time = threading.Lock()
_heard = threading.local()


def _listen(text: bytes) -> None:
    # whether it converged is told only in print; nothing of it reaches stdout
    if WARNING in text:
        _heard.warned = True


_print_function = PRINT_FUNCTION(_listen)  # LIBLINEAR keeps the pointer: it must not be collected


def version() -> str:
    """The version of liblinear-official in use."""
    return package_version("liblinear")


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(find_shared_object("liblinear", "LIBLINEAR"))
    library.check_parameter.argtypes = [POINTER(_Problem), POINTER(_Parameter)]
    library.check_parameter.restype = c_char_p
    library.train.argtypes = [POINTER(_Problem), POINTER(_Parameter)]
    library.train.restype = POINTER(_Model)
    library.free_and_destroy_model.argtypes = [POINTER(POINTER(_Model))]
    library.free_and_destroy_model.restype = None
    library.set_print_string_function.argtypes = [PRINT_FUNCTION]
    library.set_print_string_function.restype = None
    library.set_print_string_function(_print_function)
    return library


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


class LinearArena:
    """Nodes with a bias feature at the end of each row, over the features that are present."""

    def __init__(self, rows: Rows) -> None:
        self.features, compact = np.unique(rows.indices, return_inverse=True)
        self._bias_index = len(self.features) + 1
        if self._bias_index >= 2**31 - 1:
            raise SolverError("too many features for LIBLINEAR", "use --solver libsvm")
        self._norms = np.sqrt(rows.squared_norms())
        renumbered = Rows(rows.indptr, (compact.reshape(-1) + 1).astype(np.int32), rows.values)
        self._arena = Arena(renumbered, closing_feature=self._bias_index)

    def train(self, problem: Problem, positive: IntArray, unlabeled: IntArray) -> LinearSolution:
        """Solve one problem whose bag is these rows: C-SVM, hinge loss (-s 3)."""
        library = _library()
        bag = np.concatenate([positive, unlabeled])
        bias = problem.bias or float(self._norms[bag].mean()) or 1.0
        if bias < 0:
            bias = 0.0  # a feature that is 0 everywhere gets no weight
        labels = np.ones(len(bag))
        labels[len(positive) :] = -1.0
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
        with _one_at_a_time:
            # the bias is written into the shared nodes: another bag's may have been there
            self._arena.set_closing_values(bag, bias)
            pointers = self._arena.pointers(bag)
            described = _Problem(
                len(bag), self._bias_index, labels.ctypes.data, pointers.ctypes.data, bias
            )
            refused = library.check_parameter(byref(described), byref(parameter))
            if refused is not None:
                raise SolverError(f"LIBLINEAR refuses the problem: {refused.decode()}")
            _heard.warned = False
            _libc().srand(c_uint(problem.seed & 0xFFFFFFFF))
            with timed(problem.name):
                model = library.train(byref(described), byref(parameter))
        if not model:
            raise SolverError("LIBLINEAR returned no model")
        try:
            return self._solution(model.contents, bias)
        finally:
            library.free_and_destroy_model(byref(model))

    def _solution(self, model: _Model, bias: float) -> LinearSolution:
        # linear.cpp: the class of the first row, here 1, is the positive one
        if model.nr_class != 2 or model.label[0] != 1:
            raise SolverError("LIBLINEAR returned a model of other classes than 1 and -1")
        weights = np.ctypeslib.as_array(model.w, (self._bias_index,)).astype(np.float64)
        if not np.isfinite(weights).all():
            raise SolverError(
                "LIBLINEAR returned numbers that are not finite", "scale the features"
            )
        rows = Rows(
            np.array([0, len(self.features)], np.int64),
            self.features.astype(np.int32),
            weights[:-1],
        )
        rho = 0.0 - float(weights[-1]) * bias
        return LinearSolution(rows.without_zeros(), rho, not _heard.warned)
