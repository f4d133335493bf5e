"""Members trained on bags of rows in memory and applied to all of those rows at once.

Candidates share kernel values: dot products or distances of all rows are computed once, a kernel's
matrix once, and a bag's matrix is a part of it. Where that would take too much memory each bag gets
its own; which of the two is decided by the number of rows alone.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from resvm_cli.dataset import FloatArray, IntArray, Rows
from resvm_cli.ensemble.fit import fit, rows_drawn
from resvm_cli.ensemble.model import Predictor
from resvm_cli.errors import ResvmError, SolverError
from resvm_cli.svm import _blocks, libsvm
from resvm_cli.svm.kernels import Kernel, powers
from resvm_cli.svm.nodes import GramArena
from resvm_cli.svm.pool import Uses
from resvm_cli.svm.problem import Problem, Solution
from resvm_cli.svm.products import kernel_products

BYTES_A_PAIR = 16  # of rows: a product, and a kernel value


class KernelTrainer(ABC):
    """Trains members of one kernel and has them judge rows."""

    @abstractmethod
    def ensemble_values(
        self, ensembles: Sequence[Sequence[Problem]], rows: IntArray | None = None
    ) -> Iterator[FloatArray | ResvmError]:
        """Of each ensemble its members' values, members x rows, or why it has none.

        The ensembles are over the same bags, numbers of P and of U. Rows are all, P before U, or
        some.
        """

    def member_values(
        self, problems: Sequence[Problem], rows: IntArray | None = None
    ) -> FloatArray:
        """The same of one ensemble."""
        (values,) = self.ensemble_values([problems], rows)
        if isinstance(values, ResvmError):
            raise values
        return values


class SharedKernels:
    """P and U, and what kernels of all their rows have in common, where there is room for it.

    It can be sent elsewhere: only the rows travel.
    """

    def __init__(self, positives: Rows, unlabeled: Rows, gram_mb: float) -> None:
        self._gram_mb = gram_mb
        self.positives = positives.without_zeros()
        self.unlabeled = unlabeled.without_zeros()
        self.rows = Rows.concatenate([self.positives, self.unlabeled])
        self.shares_kernels = BYTES_A_PAIR * len(self.rows) ** 2 <= gram_mb * 1e6
        self._lock = threading.Lock()
        self._free: list[FloatArray] = []
        self._products: dict[bool, FloatArray] = {}  # by whether the smaller number counts
        self._exponents: FloatArray | None = None  # of gamma 1: minus the squared distances

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedKernels, (self.positives, self.unlabeled, self._gram_mb)

    def on(self, parts: Sequence[Rows]) -> SharedKernels:
        """The same of another P and U."""
        return SharedKernels(parts[0], parts[1], self._gram_mb)

    @contextmanager
    def trainer(self, kernel: Kernel) -> Iterator[KernelTrainer]:
        """Of members of this kernel; what kernels share is computed by the first caller."""
        if not self.shares_kernels:
            yield _BagByBag(self)
            return
        if kernel.name == "linear" or kernel.looks_up:  # products are values already
            yield _FromMatrix(self._shared_products(kernel), len(self.positives), _BagByBag(self))
            return
        rbf = kernel.name == "rbf"
        shared = self._shared_exponents(kernel) if rbf else self._shared_products(kernel)
        # large arrays are used again: getting their pages anew costs more than filling them
        with self._lock:
            values = self._free.pop() if self._free else np.empty_like(shared)
        with np.errstate(over="ignore", invalid="ignore"):
            if kernel.name == "rbf":
                np.multiply(shared, kernel.gamma, out=values)
                powers(values)
            else:
                np.copyto(values, shared)
                norms = shared.diagonal().copy()
                values = kernel.values(values, norms, norms)
        yield _FromMatrix(values, len(self.positives), _BagByBag(self))
        self._free.append(values)

    def _shared_products(self, kernel: Kernel) -> FloatArray:
        with self._lock:
            if kernel.counts_smaller not in self._products:
                self._products[kernel.counts_smaller] = kernel_products(self.rows, kernel)
            return self._products[kernel.counts_smaller]

    def _shared_exponents(self, kernel: Kernel) -> FloatArray:
        with self._lock:
            if self._exponents is None:
                dots = kernel_products(self.rows, kernel)
                norms = dots.diagonal().copy()
                self._exponents = Kernel("rbf", 1.0).exponents(dots, norms, norms)
            return self._exponents


class _FromMatrix(KernelTrainer):
    """Bags as parts of one kernel matrix; members judge all rows by its lines."""

    def __init__(self, values: FloatArray, n_positives: int, bag_by_bag: _BagByBag) -> None:
        self._values = values
        self._n_positives = n_positives
        self._bag_by_bag = bag_by_bag

    def ensemble_values(
        self, ensembles: Sequence[Sequence[Problem]], rows: IntArray | None = None
    ) -> Iterator[FloatArray | ResvmError]:
        if ensembles[0][0].solver == "liblinear":
            yield from self._bag_by_bag.ensemble_values(ensembles, rows)
            return
        libsvm.use_threads(1)
        supports = [_Support() for _ in ensembles]
        for same_bag in zip(*ensembles, strict=True):
            first = same_bag[0]
            bag = np.concatenate([first.positive, first.unlabeled + self._n_positives])
            arena = GramArena(self._values, bag)
            places = np.arange(len(bag))
            parts = places[: len(first.positive)], places[len(first.positive) :]
            for problem, support in zip(same_bag, supports, strict=True):
                if support.error is None:
                    try:
                        support.add(bag, libsvm.train(problem, arena, *parts))
                    except SolverError as error:
                        support.error = error
        lines = self._values if rows is None else np.take(self._values, rows, axis=1)
        for support in supports:
            yield support.error or support.values(lines)


class _Support:
    """The support rows of an ensemble's members, among all rows."""

    def __init__(self) -> None:
        self.error: SolverError | None = None
        self._rows: list[IntArray] = []
        self._coefficients: list[FloatArray] = []
        self._rho: list[float] = []

    def add(self, bag: IntArray, solution: Solution) -> None:
        self._rows.append(bag[solution.support])
        self._coefficients.append(solution.coefficients)
        self._rho.append(solution.rho)

    def values(self, lines: FloatArray) -> FloatArray:
        """Each member's values of some rows, from the kernel values of all with those."""
        n_members = len(self._rows)
        uses = Uses.of(
            np.concatenate(self._rows),
            np.repeat(np.arange(n_members), [len(rows) for rows in self._rows]),
            np.concatenate(self._coefficients),
            len(lines),
            n_members,
        )
        sums = np.zeros((n_members, lines.shape[1]))
        _blocks.add(lines, uses.starts, uses.members, uses.coefficients, sums, lines.shape[1])
        sums -= np.array(self._rho)[:, None]
        return sums


class _BagByBag(KernelTrainer):
    """Each bag with kernel values of its own, as in training; members judge as in prediction."""

    def __init__(self, kernels: SharedKernels) -> None:
        self._kernels = kernels

    def ensemble_values(
        self, ensembles: Sequence[Sequence[Problem]], rows: IntArray | None = None
    ) -> Iterator[FloatArray | ResvmError]:
        judged = self._kernels.rows if rows is None else self._kernels.rows.take(rows)
        drawn = rows_drawn(ensembles[0])
        unlabeled = self._kernels.unlabeled.take(drawn)
        for problems in ensembles:
            single = len(problems) == 1
            try:
                fitted = fit(
                    problems, self._kernels.positives, unlabeled, drawn, single=single, workers=1
                )
            except SolverError as error:
                yield error
            else:
                yield Predictor(fitted.ensemble).member_values(judged).T
