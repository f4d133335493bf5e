"""LIBSVM through its C API: the shared object inside libsvm-official, without its Python package.

Importing that package pulls in scipy; the shared object alone loads in milliseconds. Calls release
the GIL and LIBSVM keeps no state between them, so several threads may train at once.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int, c_void_p
from functools import cache
from typing import Any

import numpy as np

from resvm_cli.errors import SolverError
from resvm_cli.rows import IntArray
from resvm_cli.svm import _blocks
from resvm_cli.svm.deadline import timed
from resvm_cli.svm.nodes import Arena
from resvm_cli.svm.problem import Problem, Solution, iteration_limit, require_sound
from resvm_cli.svm.solver_libraries import (
    PRINT_FUNCTION,
    find_shared_object,
    package_version,
    talking,
)

C_SVC = 0


class _Parameter(Structure):
    _fields_ = (
        ("svm_type", c_int),
        ("kernel_type", c_int),
        ("degree", c_int),
        ("gamma", c_double),
        ("coef0", c_double),
        ("cache_size", c_double),
        ("eps", c_double),
        ("C", c_double),
        ("nr_weight", c_int),
        ("weight_label", POINTER(c_int)),
        ("weight", POINTER(c_double)),
        ("nu", c_double),
        ("p", c_double),
        ("shrinking", c_int),
        ("probability", c_int),
    )


class _Problem(Structure):
    _fields_ = (("l", c_int), ("y", c_void_p), ("x", c_void_p))


class _Model(Structure):
    _fields_ = (
        ("param", _Parameter),
        ("nr_class", c_int),
        ("l", c_int),
        ("SV", c_void_p),
        ("sv_coef", POINTER(POINTER(c_double))),
        ("rho", POINTER(c_double)),
        ("probA", c_void_p),
        ("probB", c_void_p),
        ("prob_density_marks", c_void_p),
        ("sv_indices", POINTER(c_int)),
        ("label", POINTER(c_int)),
        ("nSV", POINTER(c_int)),
        ("free_sv", c_int),
    )


def version() -> str:
    """The version of libsvm-official in use."""
    return package_version("libsvm")


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(find_shared_object("libsvm", "LIBSVM"))
    library.svm_check_parameter.argtypes = [POINTER(_Problem), POINTER(_Parameter)]
    library.svm_check_parameter.restype = c_char_p
    library.svm_train.argtypes = [POINTER(_Problem), POINTER(_Parameter)]
    library.svm_train.restype = POINTER(_Model)
    library.svm_free_and_destroy_model.argtypes = [POINTER(POINTER(_Model))]
    library.svm_free_and_destroy_model.restype = None
    library.svm_set_print_string_function.argtypes = [PRINT_FUNCTION]
    library.svm_set_print_string_function.restype = None
    library.svm_set_print_string_function(PRINT_FUNCTION(_blocks.listener()))
    return library


def use_threads(count: int) -> None:
    """How many OpenMP threads LIBSVM may use for the kernel rows of calls from this thread."""
    # kernel entries do not depend on one another, so the count changes no bit of a model
    limit = getattr(_library(), "omp_set_num_threads", None)  # absent where built without OpenMP
    if limit is not None:
        limit(c_int(1 if count == 1 else min(count, os.cpu_count() or 1)))


def train(problem: Problem, arena: Arena, positive: IntArray, unlabeled: IntArray) -> Solution:
    """Solve one problem whose bag is these rows of the arena."""
    library = _library()
    bag = np.concatenate([positive, unlabeled])
    pointers = arena.pointers(bag)
    labels = np.ones(len(bag))
    labels[len(positive) :] = -1.0
    described = _Problem(len(bag), labels.ctypes.data, pointers.ctypes.data)
    kernel = problem.kernel
    parameter = _Parameter(
        svm_type=C_SVC,
        kernel_type=kernel.number,
        degree=kernel.degree,
        gamma=kernel.gamma,
        coef0=kernel.coef0,
        cache_size=problem.cache_mb,
        eps=problem.tolerance,
        C=1.0,  # LIBSVM multiplies C and weight: with C = 1 the penalties arrive unrounded
        nr_weight=2,
        weight_label=(c_int * 2)(1, -1),
        weight=(c_double * 2)(problem.c_pos, problem.c_unl),
        shrinking=1,
    )
    refused = library.svm_check_parameter(byref(described), byref(parameter))
    if refused is not None:
        raise SolverError(f"LIBSVM refuses the problem: {refused.decode()}")
    _blocks.heard()
    with timed(problem.name), talking():
        model = library.svm_train(byref(described), byref(parameter))
    if not model:
        raise SolverError("LIBSVM returned no model")
    try:
        return _solution(model.contents, iteration_limit(len(bag)))
    finally:
        library.svm_free_and_destroy_model(byref(model))


def _copied(pointer: Any, size: int, kind: type[Any]) -> Any:
    """Numbers behind a C pointer; np.ctypeslib would make a type for each size."""
    kept = np.dtype(kind)
    return np.frombuffer(ctypes.string_at(pointer, size * kept.itemsize), kept)


def _solution(model: _Model, limit: int) -> Solution:
    # svm.cpp: labels +1 and -1 always come in the order (1, -1), so psi > 0 means positive
    if model.nr_class != 2 or model.label[0] != 1:
        raise SolverError("LIBSVM returned a model of other classes than 1 and -1")
    size = model.l
    support = _copied(model.sv_indices, size, np.int32).astype(np.int64) - 1
    coefficients = _copied(model.sv_coef[0], size, np.float64)
    rho = float(model.rho[0])
    require_sound(size, np.append(coefficients, rho))
    return Solution(support, coefficients, rho, _blocks.heard() < limit)
