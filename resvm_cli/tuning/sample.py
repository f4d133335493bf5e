"""The rows that candidates are scored on, all of P and a sample of U, and their kernel values.

Candidates share kernel values: dot products or distances between all rows are computed only once,
and so is each kernel matrix; the matrix of a bag is a submatrix. If the matrices do not fit into
memory, kernel values are computed for each bag instead. This choice depends only on the number of
rows and the memory limit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from resvm_cli import randomness
from resvm_cli.data.pudata import PositiveWeights, PUData
from resvm_cli.ensemble.ensemble import Predictor, Section
from resvm_cli.ensemble.plan import (
    SettingPlan,
    gamma_scale,
    require_negatives,
    require_weighted_draws,
    resolve_defaults,
)
from resvm_cli.ensemble.train import (
    Trainer,
    TrainingSet,
    bag_bytes,
    fit,
    held_bytes,
    threads_within,
)
from resvm_cli.errors import ParameterError, ResvmError, SolverError
from resvm_cli.parameters import FEATURE_KERNELS, ScalingName
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, Rows
from resvm_cli.run import Run
from resvm_cli.svm import _blocks, smo
from resvm_cli.svm.kernels import Kernel, Problem, exp_in_place
from resvm_cli.svm.libsvm import CACHE_MB
from resvm_cli.svm.products import kernel_products
from resvm_cli.svm.support_vectors import SupportIndex
from resvm_cli.tuning.candidates import SearchOptions, informed_candidates, informed_settings
from resvm_cli.tuning.space import Candidate, Space, default_space

BYTES_PER_PAIR = 16  # one double for a dot product and one for a kernel value


@dataclass(frozen=True, eq=False)
class Folds:
    """The fold in which each row is held out, P before U."""

    numbers: IntArray
    n_folds: int
    groups: IntArray | None = None

    @classmethod
    def drawn(
        cls,
        n_positives: int,
        n_unlabeled: int,
        n_folds: int,
        seed: int,
        groups: IntArray | None = None,
    ) -> Folds:
        """Draw random folds with equal shares of P and U; groups are never split."""
        units, which = n_positives, "rows of P"
        if groups is not None:
            units, which = len(np.unique(groups[:n_positives])), "groups among the rows of P"
        if n_folds > units:
            raise ParameterError(
                f"`folds` is {n_folds}, but there are only {units} {which}",
                f"use `folds={max(2, units)}` or fewer",
            )
        bits = randomness.run_bits(seed, randomness.FOLDS)
        if groups is not None:
            return cls(_grouped(groups, n_positives, n_folds, bits), n_folds, groups)
        sizes = n_positives, n_unlabeled
        parts = [randomness.shuffled(bits, size) % n_folds for size in sizes]
        return cls(np.concatenate(parts), n_folds)


def _grouped(groups: IntArray, n_positives: int, n_folds: int, bits: randomness.Bits) -> IntArray:
    """Assign each group, largest first, to the fold with fewest rows of P (of U if it has no P)."""
    _, index = np.unique(groups, return_inverse=True)
    index = index.reshape(-1)
    sizes_pos = np.bincount(index[:n_positives], minlength=index.max() + 1)
    sizes_unl = np.bincount(index[n_positives:], minlength=index.max() + 1)
    order = randomness.shuffled(bits, len(sizes_pos))
    order = order[np.lexsort((-sizes_unl[order], -sizes_pos[order]))]
    filled = np.zeros((n_folds, 2), np.int64)
    fold_of = np.zeros(len(order), np.int64)
    for group in order.tolist():
        by = (1, 0) if sizes_pos[group] == 0 else (0, 1)
        fold = min(range(n_folds), key=lambda f: (filled[f, by[0]], filled[f, by[1]], f))
        fold_of[group] = fold
        filled[fold] += sizes_pos[group], sizes_unl[group]
    return fold_of[index]


class SharedKernels:
    """P and U, with shared kernel values if these fit into memory; only the rows are pickled."""

    def __init__(
        self, positives: Rows, unlabeled: Rows, gram_mb: float, gamma: float = 1.0
    ) -> None:
        self._gram_mb = gram_mb
        self.gamma = gamma  # the value of gamma="scale" for these rows
        self.positives = positives.without_zeros()
        self.unlabeled = unlabeled.without_zeros()
        self.rows = Rows.concatenate([self.positives, self.unlabeled])
        self.shares_kernels = BYTES_PER_PAIR * len(self.rows) ** 2 <= gram_mb * 1e6
        self._lock = threading.Lock()
        self._free: list[FloatArray] = []
        self._shared: dict[str, FloatArray] = {}

    @cached_property
    def member_trainer(self) -> Trainer:
        """Trains members as those of a model, from the rows of their bags."""
        numbers = np.arange(len(self.unlabeled))
        return Trainer({None: TrainingSet(self.rows)}, {}, numbers, len(self.positives))

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedKernels, (self.positives, self.unlabeled, self._gram_mb, self.gamma)

    @contextmanager
    def trainer(
        self, kernel: Kernel, run: Run, *, weighted: bool = False
    ) -> Iterator[KernelTrainer]:
        """Yield a trainer; members with feature weights (``weighted``) share no kernel values."""
        run = replace(run, jobs=1)
        if weighted or not self.shares_kernels:
            yield KernelTrainer(self, run)
            return
        shared = self._shared_values(kernel)
        if kernel.name == "linear" or kernel.is_precomputed:  # the products are kernel values
            yield KernelTrainer(self, run, shared)
            return
        # large arrays are reused: allocating pages costs more than filling them
        with self._lock:
            values = self._free.pop() if self._free else np.empty_like(shared)
        with np.errstate(over="ignore", invalid="ignore"):
            if kernel.uses_distances:
                np.multiply(shared, kernel.gamma, out=values)
                exp_in_place(values)
            else:
                np.copyto(values, shared)
                norms = shared.diagonal().copy()
                values = kernel.values(values, norms, norms)
        yield KernelTrainer(self, run, values)
        self._free.append(values)

    def _shared_values(self, kernel: Kernel) -> FloatArray:
        """Return the products that a kernel needs, or the negative (squared) distances."""
        key = kernel.name if kernel.uses_distances or kernel.uses_minimum else "products"
        with self._lock:
            if key not in self._shared:
                values = kernel_products(self.rows, kernel)
                if kernel.uses_distances:
                    norms = values.diagonal().copy()
                    values = replace(kernel, gamma=1.0).exponents(values, norms, norms)
                self._shared[key] = values
            return self._shared[key]


class KernelTrainer:
    """Trains members with one kernel and scores rows with them.

    If the kernel values of all rows are given, a bag's values are a submatrix of them. Otherwise
    they are computed for each bag, as in training and prediction.
    """

    def __init__(self, kernels: SharedKernels, run: Run, values: FloatArray | None = None) -> None:
        self._kernels = kernels
        self._run = run
        self._values = values
        self._lines: tuple[IntArray, FloatArray] | None = None

    def ensemble_values(
        self, ensembles: Sequence[Sequence[Problem]], rows: IntArray | None = None
    ) -> Iterator[FloatArray | ResvmError]:
        """Yield each ensemble's member values (members x rows), or the error that occurred.

        All ensembles must have the same bags. Without ``rows``, all rows are scored, P before U.
        """
        if self._values is None or ensembles[0][0].solver == "liblinear":
            return self._from_bags(ensembles, rows)
        return self._from_matrix(self._values, ensembles, rows)

    def _from_matrix(
        self, values: FloatArray, ensembles: Sequence[Sequence[Problem]], rows: IntArray | None
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
        lines = values
        if rows is not None:
            if self._lines is None or self._lines[0] is not rows:  # cached for the bags of a fold
                self._lines = rows, np.take(values, rows, axis=1)
            lines = self._lines[1]
        for parts in found:
            yield _values(parts, lines) if isinstance(parts, list) else parts

    def _from_bags(
        self, ensembles: Sequence[Sequence[Problem]], rows: IntArray | None
    ) -> Iterator[FloatArray | ResvmError]:
        scored = self._kernels.rows if rows is None else self._kernels.rows.take(rows)
        for problems in ensembles:
            sections = (Section(problems[0].kernel, range(len(problems))),)
            trainer, single = self._kernels.member_trainer, len(problems) == 1
            try:
                ensemble, _ = fit(trainer, problems, sections, self._run, single=single)
            except SolverError as error:
                yield error
            else:
                yield Predictor(ensemble).member_values(scored).T


# For some members: the rows, owners and coefficients of their support vectors, and each rho.
_Support: TypeAlias = tuple[IntArray, IntArray, FloatArray, FloatArray]


def _support(solved: smo.Solved, line: int, members: range) -> _Support:
    """Return the support vectors of these members; raise SolverError if any has no solution."""
    solved.require_sound(line)
    used = np.flatnonzero(solved.coefficients[line])
    owners = np.searchsorted(solved.bags.starts, used, "right") - 1 + members.start
    rows = solved.bags.numbers[used]
    return rows, owners, solved.coefficients[line, used], solved.rhos[line]


def _values(parts: Sequence[_Support], lines: FloatArray) -> FloatArray:
    """Return each member's values for the rows whose kernel values with all rows are ``lines``."""
    rows, owners, coefficients, rho = map(np.concatenate, zip(*parts, strict=True))
    uses = SupportIndex.from_entries(rows, owners, coefficients, len(lines), len(rho))
    sums = np.zeros((len(rho), lines.shape[1]))
    _blocks.add(lines, uses.starts, uses.members, uses.coefficients, sums, lines.shape[1])
    sums -= rho[:, None]
    return sums


@dataclass(frozen=True, eq=False)
class TuningSample:
    """The rows that candidates are scored on, in the data's scaling and in others to try.

    Known negatives follow the rows of U and are scored like rows of U.
    """

    scaled: Mapping[ScalingName | None, SharedKernels]  # None: the data's scaling
    folds: Folds
    positive_weights: PositiveWeights | None = None
    rows_neg: int = 0

    @property
    def kernels(self) -> SharedKernels:
        return self.scaled[None]

    @classmethod
    def from_data(cls, data: PUData, settings: SearchOptions, run: Run) -> TuningSample:
        """Take all of P and draw a sample of U."""
        if data.positive_weights is not None:
            require_weighted_draws(settings.base.method)
        require_negatives(settings.base, data)
        n_pos, n_unl = len(data.positives), data.n_unlabeled
        bits = randomness.run_bits(settings.base.seed, randomness.JUDGED_UNLABELED)
        numbers = randomness.sample(bits, n_unl, settings.max_unl)
        n_drawn, n_neg = len(numbers), len(data.negatives)
        numbers = np.concatenate([numbers, n_unl + np.arange(n_neg)])
        fetched = data.fetch(numbers)

        def scaled(kind: ScalingName | None) -> SharedKernels:
            rows = data.scaled(data.positives, kind), data.scaled(fetched, kind)
            gamma = gamma_scale(data.n_features, data.variance(kind))
            return SharedKernels(*rows, settings.gram_mb, gamma)

        if n_drawn < n_unl:
            run.note(
                f"candidates are scored on {n_drawn:,} of {n_unl:,} rows of U, drawn at random"
            )
        groups = data.groups()
        kept = np.concatenate([np.arange(n_pos), n_pos + numbers])
        groups = None if groups is None else groups[kept]
        n_folds = settings.folds
        if settings.oob:  # folds only show how much the criterion varies
            n_folds = min(n_folds, n_pos if groups is None else len(np.unique(groups[:n_pos])))
        folds = Folds.drawn(n_pos, len(numbers), n_folds, settings.base.seed, groups)
        samples: dict[ScalingName | None, SharedKernels] = {None: scaled(data.scale)}
        open_scale = "scale" not in settings.base.said and data.scale != "quantile"
        if settings.search == "informed" and open_scale and settings.base.kernel in FEATURE_KERNELS:
            samples["quantile"] = scaled("quantile")
        return cls(samples, folds, data.positive_weights, n_neg)

    @property
    def rows_pos(self) -> int:
        return len(self.kernels.positives)

    @property
    def rows_unl(self) -> int:
        return self.rows_other - self.rows_neg

    @property
    def rows_other(self) -> int:
        """The number of rows of U and known negatives."""
        return len(self.kernels.unlabeled)

    def plan(
        self,
        candidate: Candidate,
        settings: SearchOptions,
        sizes: tuple[int, int, int] | None = None,
        seed: int = 0,
        weights: PositiveWeights | None = None,
    ) -> SettingPlan:
        """Return the plan for this many rows of P, U and known negatives, by default for all."""
        n_pos, n_unl, n_neg = sizes or (self.rows_pos, self.rows_unl, self.rows_neg)
        params = candidate.parameters(settings.base, settings.scored_members, n_pos, n_unl)
        return resolve_defaults(
            replace(params, seed=seed),
            *(n_pos, n_unl, 1, lambda: 1.0, weights),  # gamma is a number: no variance is needed
            rows_neg=n_neg,
        )

    def space(self, settings: SearchOptions) -> Space:
        """Return ranges for the smallest P and U that candidates are trained on."""
        n_pos, n_unl = self.rows_pos, self.rows_unl
        if not settings.oob:
            folds = self.folds.numbers
            n_pos -= int(np.bincount(folds[: self.rows_pos]).max())
            n_unl -= int(np.bincount(folds[self.rows_pos :][:n_unl]).max())
        base = settings.base
        return default_space(
            base.method, base.kernel, n_pos, n_unl, self.kernels.gamma, settings.axes
        )

    def informed(self, settings: SearchOptions) -> list[Candidate]:
        """Return settings that work well on most data, the untuned one first."""
        return informed_candidates(
            informed_settings(settings.base, quantiles="quantile" in self.scaled),
            self.space(settings),
            self.rows_pos,
            self.rows_unl,
            {kind: each.gamma for kind, each in self.scaled.items()},
            [axis.name for axis in settings.axes],
        )


def within_memory(data: PUData, sample: TuningSample, settings: SearchOptions, run: Run) -> Run:
    """Return the run with as many threads as the memory at hand allows."""
    kernels = sample.kernels
    held = held_bytes(data, len(kernels.positives), len(kernels.unlabeled))
    # the largest bag that a candidate can have, even after ranges are extended
    candidates = [sample.space(settings).largest(extended=not settings.no_extend)]
    if settings.search == "informed":
        candidates = sample.informed(settings)
    bag = max(sample.plan(candidate, settings).bag_size for candidate in candidates)
    by_libsvm = settings.base.solver == "libsvm"
    per_thread = bag_bytes(data, bag, by_libsvm)
    if kernels.shares_kernels:
        matrix = 8.0 * len(kernels.rows) ** 2
        held += len(sample.scaled) * matrix
        nodes = 16.0 * bag**2 if by_libsvm else 0.0
        per_thread = matrix + min(CACHE_MB * 1e6, 8.0 * bag**2) + nodes
    return replace(run, jobs=max(1, threads_within(held, per_thread, run.workers())))
