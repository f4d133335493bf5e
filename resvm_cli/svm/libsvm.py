"""LIBSVM through its C API: libsvm-official's shared object, without its Python package.

Calls release the GIL and LIBSVM keeps no state between them, so several threads can train at once.
"""

from __future__ import annotations

import os
from ctypes import POINTER, Structure, c_double, c_int, c_void_p
from functools import cache

import numpy as np

from resvm_cli.rows import IntArray
from resvm_cli.svm import _blocks
from resvm_cli.svm.problem import Problem, Solution, iteration_limit, require_sound
from resvm_cli.svm.solver_libraries import (
    PRINT_FUNCTION,
    NodeArray,
    SolverLibrary,
    bag_labels,
    copied_numbers,
    fields,
    inside_libsvm,
)

C_SVC = 0


class _Parameter(Structure):
    _fields_ = fields(
        (c_int, "svm_type kernel_type degree"),
        (c_double, "gamma coef0 cache_size eps C"),
        (c_int, "nr_weight"),
        (POINTER(c_int), "weight_label"),
        (POINTER(c_double), "weight"),
        (c_double, "nu p"),
        (c_int, "shrinking probability"),
    )


class _Problem(Structure):
    _fields_ = fields((c_int, "l"), (c_void_p, "y x"))


class _Model(Structure):
    _fields_ = fields(
        (_Parameter, "param"),
        (c_int, "nr_class l"),
        (c_void_p, "SV"),
        (POINTER(POINTER(c_double)), "sv_coef"),
        (POINTER(c_double), "rho"),
        (c_void_p, "probA probB prob_density_marks"),
        (POINTER(c_int), "sv_indices label nSV"),
        (c_int, "free_sv"),
    )


@cache
def library() -> SolverLibrary:
    """Load LIBSVM's shared object on first use."""
    output = PRINT_FUNCTION(_blocks.print_function())
    return SolverLibrary("LIBSVM", "svm_", _Problem, _Parameter, _Model, output)


def use_threads(count: int) -> None:
    """Set how many OpenMP threads LIBSVM may use to compute kernel rows for this thread."""
    # kernel values are independent of one another, so the count does not affect the model
    limit = getattr(library().functions, "omp_set_num_threads", None)  # absent without OpenMP
    if limit is not None:
        limit(c_int(1 if count == 1 else min(count, os.cpu_count() or 1)))


def train(problem: Problem, nodes: NodeArray, positive: IntArray, unlabeled: IntArray) -> Solution:
    bag = np.concatenate([positive, unlabeled])
    pointers, labels = nodes.pointers(bag), bag_labels(len(positive), len(bag))
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
        C=1.0,  # LIBSVM multiplies C by the weights; C = 1 avoids rounding
        nr_weight=2,
        weight_label=(c_int * 2)(1, -1),
        weight=(c_double * 2)(problem.c_pos, problem.c_unl),
        shrinking=1,
    )
    library().check(described, parameter)
    _blocks.iterations()  # reset the counter
    with inside_libsvm(), library().trained(described, parameter, problem.name) as model:
        support = copied_numbers(model.sv_indices, model.l, np.int32).astype(np.int64) - 1
        coefficients = copied_numbers(model.sv_coef[0], model.l, np.float64)
        rho = float(model.rho[0])
    require_sound(len(support), np.append(coefficients, rho))
    return Solution(support, coefficients, rho, _blocks.iterations() < iteration_limit(len(bag)))
