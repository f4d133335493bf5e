"""Train members on bags of in-memory rows and score all of these rows at once.

Candidates share kernel values: dot products or distances between all rows are computed once, each
kernel matrix once, and a bag's matrix is a submatrix of it. If this takes too much memory, kernel
values are computed for each bag instead. The choice depends only on the number of rows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from resvm_cli.errors import ResvmError, SolverError
from resvm_cli.model.ensemble import Predictor
from resvm_cli.model.feature_weights import FeatureBins
from resvm_cli.model.members import fit, rows_drawn
from resvm_cli.rows import FloatArray, IntArray, Rows
from resvm_cli.running.run import Run
from resvm_cli.svm import _blocks, smo
from resvm_cli.svm.kernels import Kernel, exp_in_place
from resvm_cli.svm.problem import Problem
from resvm_cli.svm.products import kernel_products
from resvm_cli.svm.support_vectors import SupportIndex

BYTES_PER_PAIR = 16  # one double for a dot product and one for a kernel value


class SharedKernels:
    """P and U, and values that kernels share if these fit into memory; only rows are pickled."""

    def __init__(self, positives: Rows, unlabeled: Rows, gram_mb: float) -> None:
        self._gram_mb = gram_mb
        self.positives = positives.without_zeros()
        self.unlabeled = unlabeled.without_zeros()
        self.rows = Rows.concatenate([self.positives, self.unlabeled])
        self.shares_kernels = BYTES_PER_PAIR * len(self.rows) ** 2 <= gram_mb * 1e6
        self._lock = threading.Lock()
        self._free: list[FloatArray] = []
        self._shared: dict[str, FloatArray] = {}

    @cached_property
    def bins(self) -> FeatureBins:
        return FeatureBins.learn(self.rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedKernels, (self.positives, self.unlabeled, self._gram_mb)

    @contextmanager
    def trainer(
        self, kernel: Kernel, run: Run, *, weighted: bool = False
    ) -> Iterator[KernelTrainer]:
        """Yield a trainer; members with feature weights (``weighted``) share no values."""
        run = replace(run, jobs=1)
        if weighted or not self.shares_kernels:
            yield KernelTrainer(self, run)
            return
        shared = self._shared_values(kernel)
        if kernel.name == "linear" or kernel.is_precomputed:  # products are kernel values
            yield KernelTrainer(self, run, shared)
            return
        # large arrays are reused: allocating pages costs more than filling them
        with self._lock:
            values = self._free.pop() if self._free else np.empty_like(shared)
        with np.errstate(over="ignore", invalid="ignore"):
            if kernel.name == "rbf":
                np.multiply(shared, kernel.gamma, out=values)
                exp_in_place(values)
            else:
                np.copyto(values, shared)
                norms = shared.diagonal().copy()
                values = kernel.values(values, norms, norms)
        yield KernelTrainer(self, run, values)
        self._free.append(values)

    def _shared_values(self, kernel: Kernel) -> FloatArray:
        """Return the products that a kernel needs; for rbf, minus the squared distances."""
        key = kernel.name if kernel.name == "rbf" or kernel.uses_minimum else "products"
        with self._lock:
            if key not in self._shared:
                values = kernel_products(self.rows, kernel)
                if key == "rbf":
                    norms = values.diagonal().copy()
                    values = Kernel("rbf", 1.0).exponents(values, norms, norms)
                self._shared[key] = values
            return self._shared[key]


class KernelTrainer:
    """Trains members with one kernel and scores rows with them.

    If the kernel values of all rows are given, a bag's values are a submatrix of them. Otherwise
    they are computed for each bag, as training and prediction do.
    """

    def __init__(self, kernels: SharedKernels, run: Run, values: FloatArray | None = None) -> None:
        self._kernels = kernels
        self._run = run
        self._values = values
        self._lines: tuple[IntArray, FloatArray] | None = None

    def ensemble_values(
        self, ensembles: Sequence[Sequence[Problem]], rows: IntArray | None = None
    ) -> Iterator[FloatArray | ResvmError]:
        """Yield each ensemble's member values, members x rows, or the error that prevented them.

        All ensembles must have the same bags. Without ``rows``, all rows are scored, P before U.
        """
        if self._values is None or ensembles[0][0].solver == "liblinear":
            return self._from_bags(ensembles, rows)
        return self._from_matrix(self._values, ensembles, rows)

    def _from_matrix(
        self,
        values: FloatArray,
        ensembles: Sequence[Sequence[Problem]],
        rows: IntArray | None,
    ) -> Iterator[FloatArray | ResvmError]:
        offset = len(self._kernels.positives)
        bags = smo.Bags.from_parts(
            [(each.positive, each.unlabeled + offset) for each in ensembles[0]],
            [each.n_negative for each in ensembles[0]],
        )
        found: list[list[_Support] | SolverError] = [[] for _ in ensembles]
        for piece in bags.pieces(len(ensembles)):
            problems = [ensemble[piece.start : piece.stop] for ensemble in ensembles]
            solved = smo.solve(values, bags.part(piece), problems)
            for line, parts in enumerate(found):
                if isinstance(parts, list):
                    try:
                        parts.append(_support(solved, line, piece))
                    except SolverError as error:
                        found[line] = error
        lines = values if rows is None else self._lines_of(values, rows)
        for parts in found:
            yield _values(parts, lines) if isinstance(parts, list) else parts

    def _lines_of(self, values: FloatArray, rows: IntArray) -> FloatArray:
        """Return the kernel values of all rows with these rows, cached for all bags of a fold."""
        if self._lines is None or self._lines[0] is not rows:
            self._lines = rows, np.take(values, rows, axis=1)
        return self._lines[1]

    def _from_bags(
        self, ensembles: Sequence[Sequence[Problem]], rows: IntArray | None
    ) -> Iterator[FloatArray | ResvmError]:
        scored = self._kernels.rows if rows is None else self._kernels.rows.take(rows)
        drawn = rows_drawn(ensembles[0])
        unlabeled = self._kernels.unlabeled.take(drawn)
        for problems in ensembles:
            bins = None if problems[0].relevance_power is None else self._kernels.bins
            single = len(problems) == 1
            sets = self._kernels.positives, unlabeled, drawn
            try:
                ensemble, _ = fit(problems, *sets, self._run, single=single, bins=bins)
            except SolverError as error:
                yield error
            else:
                yield Predictor(ensemble).member_values(scored).T


# Of some members: the rows, owners and coefficients of all support vectors, and each rho.
_Support: TypeAlias = tuple[IntArray, IntArray, FloatArray, FloatArray]


def _support(solved: smo.Solved, line: int, members: range) -> _Support:
    """Return the support vectors of these members; raise SolverError if one has no solution."""
    solved.require_sound(line)
    used = np.flatnonzero(solved.coefficients[line])
    owners = np.searchsorted(solved.bags.starts, used, "right") - 1 + members.start
    rows = solved.bags.numbers[used]
    return rows, owners, solved.coefficients[line, used], solved.rhos[line]


def _values(parts: Sequence[_Support], lines: FloatArray) -> FloatArray:
    """Return each member's values on some rows, given their kernel values with all rows."""
    rows, owners, coefficients, rho = map(np.concatenate, zip(*parts, strict=True))
    uses = SupportIndex.from_entries(rows, owners, coefficients, len(lines), len(rho))
    sums = np.zeros((len(rho), lines.shape[1]))
    _blocks.add(lines, uses.starts, uses.members, uses.coefficients, sums, lines.shape[1])
    sums -= rho[:, None]
    return sums
