"""Members combined into one model: pooled support vectors, decision values, votes and d(x).

A row's value never depends on the other rows scored with it, or on its position among them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import groupby

import numpy as np

from resvm_cli.data.scaling import Scaling
from resvm_cli.ensemble.decisions import Decisions, decide
from resvm_cli.parameters import ScalingName
from resvm_cli.records import dataclass
from resvm_cli.rows import Columns, FloatArray, IntArray, Rows, distinct
from resvm_cli.svm import kernels
from resvm_cli.svm.kernels import Kernel, exp_in_place
from resvm_cli.svm.products import MIN_DENSITY
from resvm_cli.svm.support_vectors import (
    BLOCK_ROWS,
    LinearPool,
    OwnPools,
    Pool,
    SupportIndex,
    WeightedMember,
    WeightedPool,
)

# Whether support vectors or weights are stored dense depends on their sizes alone.
NEVER_DENSE_CELLS = 1 << 26
MAX_CACHED_WEIGHTS = 1 << 22  # larger arrays exceed the cache, so zeros are not stored
# If support vectors are sparser than this, zeros in the rows to be scored are skipped.
MAX_SPARSE_DENSITY = 0.35


@dataclass(frozen=True, eq=False)
class Member:
    """One base model: psi(x) = sum coefficients * K(pool[support], x) - rho."""

    support: IntArray  # row numbers in the ensemble's pool, positives first
    coefficients: FloatArray
    rho: float
    n_positive: int  # number of support vectors from P
    weights: Rows | None = None  # feature weights (one row), already applied to the support vectors


@dataclass(frozen=True)
class Section:
    """Members that share a setting: their kernel, and the weight of their mean value."""

    kernel: Kernel
    members: range
    weight: float = 1.0
    shift: float = 0.0  # the mean value is standardized: (mean - shift) / spread
    spread: float = 1.0
    scaling: ScalingName | None = None  # how the members' rows are scaled

    @property
    def columns(self) -> slice:
        """The columns of this section's members in an array of all members' values."""
        return slice(self.members.start, self.members.stop)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """All members, and their shared pool of support vectors, already scaled and weighted."""

    sections: tuple[Section, ...]
    pool: Rows
    members: Sequence[Member]
    single: bool  # cwsvm: d(x) is the value of the only member
    scalings: Mapping[ScalingName, Scaling] = field(default_factory=dict)

    @property
    def linear(self) -> bool:
        return all(section.kernel.name == "linear" for section in self.sections)

    @property
    def is_precomputed(self) -> bool:
        """Whether the kernel is precomputed, so that support vectors are serial numbers."""
        return self.sections[0].kernel.is_precomputed

    def scaled(self, rows: Rows, section: Section) -> Rows:
        """Return the rows scaled as this section's members see them."""
        return rows if section.scaling is None else self.scalings[section.scaling].apply(rows)

    def uniform_parts(self) -> Iterator[Ensemble]:
        """Yield runs of consecutive members that can be scored together."""

        def key(section: Section) -> tuple[object, ...]:
            weighted = self.members[section.members.start].weights is not None
            return section.scaling, section.kernel.name, weighted

        runs = [list(sections) for _, sections in groupby(self.sections, key)]
        for run in runs:
            whole = len(runs) == 1
            yield self if whole else self.part(run[0].members.start, run[-1].members.stop)

    @property
    def weighted(self) -> bool:
        """Whether the first member weights features; all members of a uniform part do, or none."""
        return self.members[0].weights is not None

    def support_entries(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the pool rows, members and coefficients of all support vectors."""
        return (
            np.concatenate([member.support for member in self.members]),
            np.repeat(
                np.arange(len(self.members)), [len(member.support) for member in self.members]
            ),
            np.concatenate([member.coefficients for member in self.members]),
        )

    def kernel_of(self, member: int) -> Kernel:
        return next(section.kernel for section in self.sections if member in section.members)

    def part(self, first: int, last: int) -> Ensemble:
        sections = []
        for section in self.sections:
            start, stop = max(section.members.start, first), min(section.members.stop, last)
            if start < stop:
                sections.append(replace(section, members=range(start - first, stop - first)))
        return replace(self, sections=tuple(sections), members=self.members[first:last])


def numeric_fingerprint() -> str:
    """Return a short digest of how this machine rounds a fixed product and functions of it."""
    steps = np.arange(BLOCK_ROWS * 96, dtype=np.float64).reshape(BLOCK_ROWS, 96)
    wave = (steps * 0.37) % 1.0 - 0.5
    product = wave @ wave[:64].T
    values = exp_in_place(-np.abs(product))
    digest = hashlib.sha256()
    for part in (product, values, np.tanh(product)):
        digest.update(part.tobytes())
    return digest.hexdigest()[:16]


class Predictor:
    """An ensemble ready to score rows."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble
        self._parts = [_ScoredPart.merged(part) for part in ensemble.uniform_parts()]

    @classmethod
    def with_independent_members(cls, ensemble: Ensemble, rows: Rows, n_columns: int) -> Predictor:
        """Return a predictor for these rows whose members do not depend on one another.

        Support vectors keep their order, and the rows to be scored determine what is stored dense.
        Each member therefore gives bit-for-bit identical values no matter which other members are
        scored with it.
        """
        predictor = cls.__new__(cls)
        predictor.ensemble = ensemble
        predictor._parts = [
            _ScoredPart.apart(part, part.scaled(rows, part.sections[0]), n_columns)
            for part in ensemble.uniform_parts()
        ]
        return predictor

    @property
    def rows_multiple(self) -> int:
        """Blocks are scored without padding if their number of rows is a multiple of this."""
        return max(part.scorer.rows_multiple for part in self._parts)

    def member_values(self, rows: Rows) -> FloatArray:
        """Return the decision value of each member on each row: rows x members."""
        values = np.empty((len(rows), len(self.ensemble.members)))
        first = 0
        for part in self._parts:
            last = first + len(part.ensemble.members)
            part.fill(rows, values[:, first:last])
            first = last
        return values

    def decisions(self, rows: Rows) -> Decisions:
        return self.decide(self.member_values(rows))

    def decide(self, member_values: FloatArray) -> Decisions:
        """Compute votes and decision values from the members' values, rows x members."""
        with np.errstate(over="ignore", invalid="ignore"):
            return decide(member_values, self.ensemble.sections, single=self.ensemble.single)


@dataclass(frozen=True, eq=False)
class _ScoredPart:
    """Members whose rows are scaled alike and whose kernels differ only in parameters."""

    ensemble: Ensemble
    scorer: Pool | WeightedPool | OwnPools | LinearPool

    @classmethod
    def merged(cls, ensemble: Ensemble) -> _ScoredPart:
        """Merge identical support vectors of all members."""
        if ensemble.weighted:
            return cls(ensemble, _weighted_pool(ensemble))
        pool, uses = _join(ensemble)
        if ensemble.is_precomputed:
            pool = kernels.unit_rows(pool)
        columns = Columns(pool.indices, lasting=True)
        dense = len(pool.values) >= MIN_DENSITY * len(pool) * len(columns)
        # the rows to be scored become dense blocks with the same columns
        n_lines = uses.n_members if ensemble.linear else max(len(pool), BLOCK_ROWS)
        dense &= n_lines * len(columns) <= NEVER_DENSE_CELLS
        if ensemble.linear and n_lines * len(columns) > MAX_CACHED_WEIGHTS:
            full = len(pool.values) >= 0.5 * len(pool) * len(columns)
            dense &= full or not uses.has_one_row_per_member()
        sparse_rows = len(pool.values) < MAX_SPARSE_DENSITY * len(pool) * len(columns)
        return cls(ensemble, _scorer(ensemble, pool, uses, columns, dense, sparse_rows))

    @classmethod
    def apart(cls, ensemble: Ensemble, rows: Rows, n_columns: int) -> _ScoredPart:
        """Keep all support vectors; the (scaled) rows determine what is stored dense."""
        dense = not ensemble.is_precomputed
        dense &= len(rows.values) >= MIN_DENSITY * len(rows) * n_columns
        dense &= max(len(rows), BLOCK_ROWS) * n_columns <= NEVER_DENSE_CELLS
        if ensemble.weighted:
            return cls(ensemble, _weighted_pool(ensemble, dense, n_columns))
        supports, owners, values = ensemble.support_entries()
        used = distinct(supports)
        places, sizes = np.searchsorted(used, supports), (len(used), len(ensemble.members))
        uses = SupportIndex.from_entries(places, owners, values, *sizes)
        pool = ensemble.pool.take(used)
        if ensemble.is_precomputed:
            pool = kernels.unit_rows(pool)
        present = np.arange(n_columns, dtype=np.int32) if dense else pool.indices
        columns = Columns(present, lasting=True)
        return cls(ensemble, _scorer(ensemble, pool, uses, columns, dense))

    def fill(self, rows: Rows, values: FloatArray) -> None:
        rho = np.array([member.rho for member in self.ensemble.members])
        step = self.scorer.rows_at_once
        for start in range(0, len(rows), step):
            stop = min(start + step, len(rows))
            block = self.ensemble.scaled(rows.slice(start, stop), self.ensemble.sections[0])
            with np.errstate(over="ignore", invalid="ignore"):
                np.subtract(self.scorer.sums(block), rho, out=values[start:stop])


def _scorer(
    ensemble: Ensemble,
    pool: Rows,
    uses: SupportIndex,
    columns: Columns,
    dense: bool,
    sparse_rows: bool = False,
) -> Pool | LinearPool:
    pool = columns.placed(pool)
    if ensemble.is_precomputed:  # kernel values are weighted like a linear member's features
        return LinearPool(pool, uses, columns, dense=False)
    if ensemble.linear:
        return LinearPool(pool, uses, columns, dense=dense)
    return Pool(_by_kernel(ensemble, uses), pool, columns, dense=dense, sparse_rows=sparse_rows)


def _weighted_pool(
    ensemble: Ensemble, dense: bool | None = None, n_columns: int | None = None
) -> WeightedPool | OwnPools:
    """Pool members that weight features; by default, their sizes determine what is stored dense."""
    members = [
        WeightedMember(
            ensemble.kernel_of(number),
            ensemble.pool.take(member.support),
            member.coefficients,
            member.weights or Rows.empty(),
        )
        for number, member in enumerate(ensemble.members)
    ]
    present = np.concatenate([each.weights.indices for each in members])
    if dense:
        present = np.arange(n_columns or 0, dtype=np.int32)
    columns = Columns(present, lasting=True)
    if dense is None:
        n_rows = sum(len(each.rows) for each in members)
        n_entries = sum(len(each.rows.values) for each in members)
        dense = n_entries >= MIN_DENSITY * n_rows * len(columns)
        dense &= max(n_rows, BLOCK_ROWS) * len(columns) <= NEVER_DENSE_CELLS
    kind = OwnPools if members[0].kernel.uses_minimum else WeightedPool
    return kind(members, columns, dense=dense)


def _join(ensemble: Ensemble) -> tuple[Rows, SupportIndex]:
    """Return the distinct support vectors in order of appearance, and which members use them.

    A model read from disk has row contents but no row numbers. Merging rows by content gives a
    trained and a loaded model the same pool, and therefore bit-for-bit identical values.
    """
    supports, owners, values = ensemble.support_entries()
    seen = np.zeros(len(ensemble.pool), bool)
    seen[supports] = True
    used = np.flatnonzero(seen)
    numbers = np.zeros(len(seen), np.int64)
    numbers[used] = _taken(ensemble.pool, used).content_numbers()
    contents = numbers[supports]
    first = np.empty(int(numbers.max(initial=-1)) + 1, np.int64)
    # written in reverse order, so that the first use wins
    first[contents[::-1]] = np.arange(len(contents))[::-1]
    order = np.argsort(first)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    sizes = len(order), len(ensemble.members)
    uses = SupportIndex.from_entries(places[contents], owners, values, *sizes)
    return _taken(ensemble.pool, supports[first[order]]), uses


def _taken(rows: Rows, numbers: IntArray) -> Rows:
    """Return these rows, without a copy if they are all of the rows, as in a loaded model."""
    if len(numbers) == len(rows) and np.array_equal(numbers, np.arange(len(rows))):
        return rows
    return rows.take(numbers)


def _by_kernel(ensemble: Ensemble, uses: SupportIndex) -> list[tuple[Kernel, SupportIndex]]:
    kernels = list(dict.fromkeys(section.kernel for section in ensemble.sections))
    if len(kernels) == 1:
        return [(kernels[0], uses)]
    kernel_of = np.empty(len(ensemble.members), np.int64)
    for section in ensemble.sections:
        kernel_of[section.columns] = kernels.index(section.kernel)
    kernel_used = kernel_of[uses.members]
    return [(kernel, uses.only(kernel_used == number)) for number, kernel in enumerate(kernels)]
