"""LIBSVM through its C API, and what LIBLINEAR shares with it: shared objects, nodes, structures.

The shared objects are loaded without their Python packages, which would import scipy. Calls to
LIBSVM release the GIL and leave no state behind, so several threads can train at once.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int, c_void_p
from dataclasses import field
from functools import cache
from glob import escape, glob
from os.path import basename, dirname, join
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from resvm_cli.errors import SolverError
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, Rows, distinct
from resvm_cli.svm import _blocks
from resvm_cli.svm.kernels import Kernel, Problem

if TYPE_CHECKING:
    import numpy.typing as npt

C_SVC = 0
CACHE_MB = 100.0  # kernel cache, as by default in LIBSVM
STDERR = 2
PRINT_FUNCTION = ctypes.CFUNCTYPE(None, c_char_p)
NODE = np.dtype([("index", np.int32), ("value", np.float64)], align=True)


@dataclass(frozen=True, eq=False)
class Solution:
    """psi(x) = sum of coefficients * K(support, x) - rho; rows of P come first in the bag."""

    support: IntArray  # positions in the bag
    coefficients: FloatArray
    rho: float
    converged: bool


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """psi(x) = weights . x - rho, from a solver that returns only weights."""

    weights: Rows  # one row
    rho: float
    converged: bool


def iteration_limit(n_rows: int) -> int:
    """Return the number of iterations after which LIBSVM stops without having converged."""
    return max(10_000_000, 100 * n_rows)  # svm.cpp, Solver::Solve


def require_sound(n_support: int, numbers: FloatArray) -> None:
    """Raise SolverError if a solution has no support vectors, or a number that is not finite."""
    if n_support == 0:
        raise SolverError(
            "LIBSVM stopped without any support vectors",
            "lower `tolerance`, or scale the features if kernel values overflow",
        )
    if not np.isfinite(numbers).all():
        raise SolverError(
            "LIBSVM returned numbers that are not finite",
            "scale the features, or lower `c_unl`, `gamma`, `coef0` or `degree`",
        )


class SolverLibrary:
    """A solver's shared object, with the functions that LIBSVM and LIBLINEAR have in common."""

    def __init__(
        self,
        name: str,
        prefix: str,
        problem: type[Structure],
        parameter: type[Structure],
        model: type[Structure],
        print_function: Any,
    ) -> None:
        """Load the functions with this prefix; ``print_function`` receives the solver's output."""
        self.name = name
        package = name.lower()
        folders = map(escape, _folders(package))
        paths = [path for folder in folders for path in sorted(glob(join(folder, "clib*")))]
        if not paths:
            raise SolverError(
                f"{name}'s shared object is missing",
                f"reinstall it: pip install {package}-official",
            )
        self.path = paths[0]
        self.functions = ctypes.CDLL(self.path)
        self._print_function = print_function  # kept alive, because the solver has a pointer to it
        given = [POINTER(problem), POINTER(parameter)]
        self._check = self._function(f"{prefix}check_parameter", c_char_p, *given)
        self._train = self._function(f"{prefix}train", POINTER(model), *given)
        free = f"{prefix}free_and_destroy_model"
        self._free = self._function(free, None, POINTER(POINTER(model)))
        set_print = f"{prefix}set_print_string_function"
        self._function(set_print, None, PRINT_FUNCTION)(print_function)

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        function = getattr(self.functions, name)
        function.restype, function.argtypes = result, arguments
        return function

    def check(self, problem: Structure, parameter: Structure) -> None:
        """Raise SolverError if the solver rejects the problem."""
        objection = self._check(byref(problem), byref(parameter))
        if objection is not None:
            raise SolverError(f"{self.name} rejects the problem: {objection.decode()}")

    @contextmanager
    def trained(self, problem: Structure, parameter: Structure) -> Iterator[Any]:
        """Train a member and yield the solver's model, which is freed on exit."""
        model = self._train(byref(problem), byref(parameter))
        if not model:
            raise SolverError(f"{self.name} returned no model")
        try:
            # the solver's first label is that of the first row, 1, so psi > 0 means positive
            if model.contents.nr_class != 2 or model.contents.label[0] != 1:
                raise SolverError(f"{self.name} returned a model with classes other than 1 and -1")
            yield model.contents
        finally:
            self._free(byref(model))


def fields(*groups: tuple[Any, str]) -> list[tuple[str, Any]]:
    """Return the fields of a C structure in order, from types with space-separated names."""
    return [(name, kind) for kind, names in groups for name in names.split()]


def package_version(package: str) -> str:
    """Return the version of a solver's distribution, PACKAGE-official."""
    # read from the name of the metadata folder, because importing importlib.metadata takes 40 ms
    pattern = f"{package}_official-*.dist-info"
    parents = {dirname(folder) for folder in _folders(package)}
    folders = [path for folder in parents for path in glob(join(escape(folder), pattern))]
    if len(folders) == 1:
        return basename(folders[0]).removesuffix(".dist-info").partition("-")[2]
    from importlib.metadata import version

    return version(f"{package}-official")


def _folders(package: str) -> list[str]:
    spec = importlib.util.find_spec(package)
    return list(spec.submodule_search_locations or ()) if spec else []


def bag_labels(n_positive: int, n_rows: int) -> FloatArray:
    """Return a bag's labels for the solvers: 1 for the rows of P, which come first, then -1."""
    labels = np.full(n_rows, -1.0)
    labels[:n_positive] = 1.0
    return labels


def copied_numbers(pointer: Any, size: int, kind: type[Any]) -> npt.NDArray[Any]:
    """Copy an array from a C pointer; np.ctypeslib would create a type for every size."""
    dtype = np.dtype(kind)
    return np.frombuffer(ctypes.string_at(pointer, size * dtype.itemsize), dtype)


class NodeArray:
    """Rows in the C solvers' format: (index, value) nodes, with index -1 at the end of each row.

    LIBSVM's svm_node and LIBLINEAR's feature_node have the same layout. The nodes are created once;
    a bag is an array of pointers to them, which must not outlive this object. With a closing
    feature, each row ends with a node for that feature; its value is set later.
    """

    def __init__(self, rows: Rows, closing_feature: int | None = None) -> None:
        n_rows = len(rows)
        extra = 1 if closing_feature is None else 2
        self._nodes = np.zeros(len(rows.values) + extra * n_rows, NODE)
        # every earlier row added its closing nodes
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
        """Return the addresses of these rows, in this order."""
        return self._addresses[numbers]

    def set_closing_values(self, numbers: IntArray, value: float) -> None:
        """Set the value of the closing feature of these rows."""
        self._nodes["value"][self._closing[numbers]] = value


@dataclass(eq=False)
class _Stderr:
    """The state of file descriptor 2, which is redirected while a thread is inside LIBSVM."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    copy: int | None = None  # a duplicate of the descriptor, made by ``silenced``
    n_inside: int = 0  # number of threads inside LIBSVM


_stderr = _Stderr()


def _text_stream(descriptor: int, like: TextIO) -> TextIO:
    return open(descriptor, "w", encoding=like.encoding, errors=like.errors, buffering=1)


@contextmanager
def silenced() -> Iterator[None]:
    """Discard everything that LIBSVM writes to stderr within this context.

    LIBSVM prints a warning for every member that does not converge, and no setting prevents this;
    the caller reports it once. Meanwhile, sys.stderr writes to a copy of the descriptor, which
    stays open because other code may keep a reference to it.
    """
    stream = sys.stderr
    try:
        is_ours = stream is not None and stream.fileno() == STDERR
        copy = os.dup(STDERR)
    except (OSError, ValueError, AttributeError):  # closed, or replaced by another object
        yield
        return
    if is_ours:
        stream.flush()
        sys.stderr = _text_stream(copy, stream)
    replacement = sys.stderr
    before, _stderr.copy = _stderr.copy, copy
    try:
        yield
    finally:
        _stderr.copy = before
        with _stderr.lock:  # an abandoned solver may still be running
            os.dup2(copy, STDERR)
        if not is_ours:
            os.close(copy)
        elif sys.stderr is replacement:
            sys.stderr = stream


@contextmanager
def inside_libsvm() -> Iterator[None]:
    """Redirect stderr while LIBSVM runs, and only then, because other libraries may need it."""
    copy = _stderr.copy
    if copy is None:
        yield
        return
    with _stderr.lock:
        _stderr.n_inside += 1
        if _stderr.n_inside == 1:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, STDERR)
            os.close(nowhere)
    try:
        yield
    finally:
        with _stderr.lock:
            _stderr.n_inside -= 1
            if _stderr.n_inside == 0 and _stderr.copy == copy:
                os.dup2(copy, STDERR)


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
    """Set how many OpenMP threads LIBSVM may use for kernel rows when this thread calls it."""
    # kernel values are independent of one another, so the count does not affect the model
    limit = getattr(library().functions, "omp_set_num_threads", None)  # absent without OpenMP
    if limit is not None:
        limit(c_int(1 if count == 1 else min(count, os.cpu_count() or 1)))


def train(problem: Problem, nodes: NodeArray, positive: IntArray, unlabeled: IntArray) -> Solution:
    """Train on a bag of these rows, whose kernel values LIBSVM computes one by one."""
    pointers = nodes.pointers(np.concatenate([positive, unlabeled]))
    found = _train(problem, problem.kernel, pointers, len(positive))
    require_sound(len(found.support), np.append(found.coefficients, found.rho))
    return found


def train_on_values(
    problem: Problem, values: FloatArray, numbers: IntArray, n_positive: int
) -> Solution:
    """Train on a bag, given the kernel values between all rows; the solution may be unsound."""
    rows = distinct(numbers)
    # what LIBSVM reads of a precomputed row: its serial number, then its values by serial number
    nodes = np.zeros((len(rows), len(rows) + 2), NODE)
    nodes["index"] = [*range(len(rows) + 1), -1]
    nodes["value"][:, 0] = np.arange(1, len(rows) + 1)
    nodes["value"][:, 1:-1] = values[np.ix_(rows, rows)]
    lines = nodes.ctypes.data + np.searchsorted(rows, numbers) * nodes.strides[0]
    use_threads(1)  # looking up values is too little work to share
    return _train(problem, Kernel("precomputed"), lines.astype(np.uintp), n_positive)


def _train(
    problem: Problem, kernel: Kernel, pointers: npt.NDArray[np.uintp], n_positive: int
) -> Solution:
    labels = bag_labels(n_positive, len(pointers))
    described = _Problem(len(pointers), labels.ctypes.data, pointers.ctypes.data)
    parameter = _Parameter(
        svm_type=C_SVC,
        kernel_type=kernel.number,
        degree=kernel.degree,
        gamma=kernel.gamma,
        coef0=kernel.coef0,
        cache_size=CACHE_MB,
        eps=problem.tolerance,
        C=1.0,  # LIBSVM multiplies C by the weights; C = 1 avoids rounding
        nr_weight=2,
        weight_label=(c_int * 2)(1, -1),
        weight=(c_double * 2)(problem.c_pos, problem.c_unl),
        shrinking=1,
    )
    library().check(described, parameter)
    _blocks.iterations()  # reset the counter
    with inside_libsvm(), library().trained(described, parameter) as model:
        support = copied_numbers(model.sv_indices, model.l, np.int32).astype(np.int64) - 1
        coefficients = copied_numbers(model.sv_coef[0], model.l, np.float64)
        rho = float(model.rho[0])
    converged = _blocks.iterations() < iteration_limit(len(pointers))
    return Solution(support, coefficients, rho, converged)
