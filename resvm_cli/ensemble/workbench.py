"""Members trained on bags of rows in memory and applied to all of those rows at once.

Candidates share kernel values: dot products or distances of all rows are computed once, a kernel's
matrix once, and a bag's matrix is a part of it. Where that would take too much memory each bag gets
its own; which of the two is decided by the number of rows alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from resvm_cli.dataset import FloatArray, IntArray, Rows
from resvm_cli.ensemble.fit import fit, rows_drawn
from resvm_cli.ensemble.model import Predictor
from resvm_cli.svm import _blocks, libsvm
from resvm_cli.svm.dense import dot_products
from resvm_cli.svm.kernels import Kernel
from resvm_cli.svm.nodes import GramArena
from resvm_cli.svm.pool import Uses
from resvm_cli.svm.problem import Problem

BYTES_A_PAIR = 16  # of rows: a product, and a kernel value


class Bench(Protocol):
    """Where members of one kernel are trained."""

    def member_values(
        self, problems: Sequence[Problem], rows: IntArray | None = None
    ) -> FloatArray:
        """members x rows, of all rows, P before U, or of some; bags are numbers of P and of U."""
        ...


class Workbench:
    """P and U, and what kernels of all their rows have in common, where there is room for it."""

    def __init__(self, positives: Rows, unlabeled: Rows, gram_mb: float) -> None:
        self.positives = positives.without_zeros()
        self.unlabeled = unlabeled.without_zeros()
        self.rows = Rows.concatenate([self.positives, self.unlabeled])
        self.shares_kernels = BYTES_A_PAIR * len(self.rows) ** 2 <= gram_mb * 1e6
        self._lock = threading.Lock()
        self._free: list[FloatArray] = []
        self._products: FloatArray | None = None
        self._exponents: FloatArray | None = None  # of gamma 1: minus the squared distances

    @contextmanager
    def bench(self, kernel: Kernel) -> Iterator[Bench]:
        """Room for members of this kernel; what kernels share is computed by the first caller."""
        if not self.shares_kernels:
            yield _Apart(self)
            return
        if kernel.name == "linear":
            yield _Shared(self._shared_products(), len(self.positives), _Apart(self))
            return
        shared = self._shared_exponents() if kernel.name == "rbf" else self._shared_products()
        # large arrays are used again: getting their pages anew costs more than filling them
        values = self._free.pop() if self._free else np.empty_like(shared)
        with np.errstate(over="ignore", invalid="ignore"):
            if kernel.name == "rbf":
                np.multiply(shared, kernel.gamma, out=values)
                _blocks.powers(values)
            else:
                np.copyto(values, shared)
                nothing = np.zeros(len(values))  # these kernels have no use for norms
                values = kernel.values(values, nothing, nothing)
        yield _Shared(values, len(self.positives), _Apart(self))
        self._free.append(values)

    def _shared_products(self) -> FloatArray:
        with self._lock:
            if self._products is None:
                self._products = dot_products(self.rows)
            return self._products

    def _shared_exponents(self) -> FloatArray:
        with self._lock:
            if self._exponents is None:
                products = dot_products(self.rows)
                norms = products.diagonal().copy()
                self._exponents = Kernel("rbf", 1.0).exponents(products, norms, norms)
            return self._exponents


class _Shared:
    """Bags as parts of one kernel matrix; members judge all rows by its lines."""

    def __init__(self, values: FloatArray, n_positives: int, apart: _Apart) -> None:
        self._values = values
        self._n_positives = n_positives
        self._apart = apart

    def member_values(
        self, problems: Sequence[Problem], rows: IntArray | None = None
    ) -> FloatArray:
        if problems[0].solver == "liblinear":
            return self._apart.member_values(problems, rows)
        libsvm.use_threads(1)
        supports, counts, coefficients, rho = [], [], [], []
        for problem in problems:
            bag = np.concatenate([problem.positive, problem.unlabeled + self._n_positives])
            arena = GramArena(self._values, bag)
            places = np.arange(len(bag))
            n_positive = len(problem.positive)
            solution = libsvm.train(problem, arena, places[:n_positive], places[n_positive:])
            supports.append(bag[solution.support])
            counts.append(len(solution.support))
            coefficients.append(solution.coefficients)
            rho.append(solution.rho)
        uses = Uses.of(
            np.concatenate(supports),
            np.repeat(np.arange(len(counts)), counts),
            np.concatenate(coefficients),
            len(self._values),
            len(counts),
        )
        lines = self._values if rows is None else np.take(self._values, rows, axis=1)
        sums = np.zeros((len(counts), lines.shape[1]))
        _blocks.add(lines, uses.starts, uses.members, uses.coefficients, sums, lines.shape[1])
        sums -= np.array(rho)[:, None]
        return sums


class _Apart:
    """Each bag with kernel values of its own, as in training; members judge as in prediction."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    def member_values(
        self, problems: Sequence[Problem], rows: IntArray | None = None
    ) -> FloatArray:
        drawn = rows_drawn(problems)
        ensemble, _ = fit(
            problems,
            self._workbench.positives,
            self._workbench.unlabeled.take(drawn),
            drawn,
            single=len(problems) == 1,
            workers=1,
            progress=lambda done, total: None,
        )
        judged = self._workbench.rows if rows is None else self._workbench.rows.take(rows)
        return Predictor(ensemble).decisions(judged).member_values.T
