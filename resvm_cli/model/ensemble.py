"""Members combined into one model: pooled support vectors, decision values, votes and d(x).

A row's value never depends on the other rows scored with it, or on its position among them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli.model.scaling import Scaling
from resvm_cli.parameters import RuleName, ScalingName
from resvm_cli.records import dataclass
from resvm_cli.rows import Columns, FloatArray, IntArray, Rows, distinct
from resvm_cli.svm import kernels
from resvm_cli.svm.kernels import Kernel, exp_in_place
from resvm_cli.svm.products import MIN_DENSITY
from resvm_cli.svm.support_vectors import (
    BLOCK_ROWS,
    Pool,
    SupportIndex,
    WeightedMember,
    WeightedPool,
    Weights,
)

if TYPE_CHECKING:
    import numpy.typing as npt

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
class Group:
    """Members that share a setting: their kernel, and the weight of their mean value."""

    kernel: Kernel
    members: range
    weight: float = 1.0
    shift: float = 0.0  # the mean value is standardized: (mean - shift) / scale
    scale: float = 1.0
    scaling: ScalingName | None = None  # how the members' rows are scaled

    @property
    def columns(self) -> slice:
        """The columns of this group's members in an array of all members' values."""
        return slice(self.members.start, self.members.stop)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """All members, and their shared pool of support vectors, already scaled and weighted."""

    groups: tuple[Group, ...]
    pool: Rows
    members: Sequence[Member]
    single: bool  # cwsvm: d(x) is the value of the only member
    scalings: Mapping[ScalingName, Scaling] = field(default_factory=dict)

    @property
    def linear(self) -> bool:
        return all(group.kernel.name == "linear" for group in self.groups)

    @property
    def is_precomputed(self) -> bool:
        """Whether the kernel is precomputed, so that support vectors are serial numbers."""
        return self.groups[0].kernel.is_precomputed

    def scaled(self, rows: Rows, group: Group) -> Rows:
        """Return the rows scaled as this group's members see them."""
        return rows if group.scaling is None else self.scalings[group.scaling].apply(rows)

    def sections(self) -> Iterator[Ensemble]:
        """Yield runs of consecutive members that can be scored together."""
        runs = [list(groups) for _, groups in groupby(self.groups, self._section_key)]
        for run in runs:
            whole = len(runs) == 1
            yield self if whole else self.part(run[0].members.start, run[-1].members.stop)

    def _section_key(self, group: Group) -> tuple[object, ...]:
        weighted = self.members[group.members.start].weights is not None
        return group.scaling, group.kernel.name, weighted

    @property
    def weighted(self) -> bool:
        """Whether the first member weights features; in a section, all members do or none do."""
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
        return next(group.kernel for group in self.groups if member in group.members)

    def part(self, first: int, last: int) -> Ensemble:
        groups = []
        for group in self.groups:
            start, stop = max(group.members.start, first), min(group.members.stop, last)
            if start < stop:
                groups.append(replace(group, members=range(start - first, stop - first)))
        return replace(self, groups=tuple(groups), members=self.members[first:last])


@dataclass(frozen=True, eq=False)
class Decisions:
    """Votes and decision values of a set of rows."""

    votes: FloatArray
    sums: FloatArray
    values: FloatArray  # d(x)
    means: FloatArray  # mean of the members' values or, with several groups, of group means
    n_members: IntArray  # how many members scored each row

    def by(self, rule: RuleName) -> FloatArray:
        return self.values if rule == "votes" else self.means

    def labels(self, threshold: float, rule: RuleName = "votes") -> IntArray:
        """Return +1 if the decision value exceeds the threshold, else -1 (paper, eq. 6)."""
        return np.where(self.by(rule) > threshold, 1, -1)

    def values_without_ties(self) -> FloatArray:
        """Return d(x), with ties between split votes broken by the sum of the members' values.

        The shift is less than half the smallest difference between two vote fractions, so no row
        overtakes one with more votes.
        """
        divided = (self.votes > 0) & (self.votes < 1)
        # the logistic function saturates for |s| > 37, which sums over members can exceed
        sigmoid = (1.0 + self.sums / (1.0 + np.abs(self.sums))) / 2
        shift = (1.0 - sigmoid) / (4 * np.maximum(self.n_members, 1))
        return np.where(divided, self.votes - shift, self.values)


def decision_values(votes: FloatArray, sums: FloatArray) -> FloatArray:
    """Return d(x): votes, plus the sum of the members' values if unanimous (paper, eq. 5)."""
    return np.where(votes <= 0, sums, np.where(votes >= 1, 1.0 + sums, votes))


def decide(
    member_values: FloatArray, single: bool, groups: Sequence[Group] | None = None
) -> Decisions:
    """Compute votes and decision values from member values, rows x members (paper, eq. 4 and 5)."""
    n_models = member_values.shape[1]
    balance = np.sign(member_values).sum(axis=1)
    votes = (n_models + balance) / (2 * n_models)
    sums = member_values.sum(axis=1)
    values = member_values[:, 0].copy() if single else decision_values(votes, sums)
    means = sums / n_models
    if groups is not None and len(groups) > 1:
        group_sums = [member_values[:, group.columns].sum(axis=1) for group in groups]
        counts = [np.full(len(votes), len(group.members)) for group in groups]
        means = mean_values(group_sums, counts, groups)
    return Decisions(votes, sums, values, means, np.full(len(votes), n_models))


def mean_values(
    sums: Sequence[FloatArray], counts: Sequence[npt.NDArray[Any]], groups: Sequence[Group]
) -> FloatArray:
    """Return the weighted mean of the standardized group means; empty groups are skipped."""
    total: Any = 0.0
    weight: Any = 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for group_sums, count, group in zip(sums, counts, groups, strict=True):
            standard = (group_sums / count - group.shift) / group.scale
            total = total + np.where(count > 0, group.weight * standard, 0.0)
            weight = weight + np.where(count > 0, group.weight, 0.0)
        means: FloatArray = total / weight
    return means


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
        self._sections = [_Section.pooled(section) for section in ensemble.sections()]

    @classmethod
    def apart_from_others(cls, ensemble: Ensemble, rows: Rows, n_columns: int) -> Predictor:
        """Return a predictor for these rows whose members do not depend on one another.

        Support vectors keep their order, and the rows to be scored determine what is stored dense.
        Each member therefore gives bit-for-bit identical values no matter which other members are
        scored with it.
        """
        predictor = cls.__new__(cls)
        predictor.ensemble = ensemble
        predictor._sections = [
            _Section.apart(section, section.scaled(rows, section.groups[0]), n_columns)
            for section in ensemble.sections()
        ]
        return predictor

    @property
    def rows_multiple(self) -> int:
        """Blocks are scored without padding if their number of rows is a multiple of this."""
        return max(section.scorer.rows_multiple for section in self._sections)

    def member_values(self, rows: Rows) -> FloatArray:
        """Return the decision value of each member on each row: rows x members."""
        values = np.empty((len(rows), len(self.ensemble.members)))
        first = 0
        for section in self._sections:
            last = first + len(section.ensemble.members)
            section.fill(rows, values[:, first:last])
            first = last
        return values

    def decisions(self, rows: Rows) -> Decisions:
        return self.decide(self.member_values(rows))

    def decide(self, member_values: FloatArray) -> Decisions:
        """Compute votes and decision values from the members' values, rows x members."""
        with np.errstate(over="ignore", invalid="ignore"):
            return decide(member_values, self.ensemble.single, self.ensemble.groups)


@dataclass(frozen=True, eq=False)
class _Section:
    """Members whose rows are scaled alike and whose kernels differ only in parameters."""

    ensemble: Ensemble
    scorer: Pool | WeightedPool | Weights

    @classmethod
    def pooled(cls, ensemble: Ensemble) -> _Section:
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
    def apart(cls, ensemble: Ensemble, rows: Rows, n_columns: int) -> _Section:
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
        """Write the value of each member on each row, rows x members."""
        rho = np.array([member.rho for member in self.ensemble.members])
        step = self.scorer.rows_at_once
        for start in range(0, len(rows), step):
            stop = min(start + step, len(rows))
            block = self.ensemble.scaled(rows.slice(start, stop), self.ensemble.groups[0])
            with np.errstate(over="ignore", invalid="ignore"):
                np.subtract(self.scorer.sums(block), rho, out=values[start:stop])


def _scorer(
    ensemble: Ensemble,
    pool: Rows,
    uses: SupportIndex,
    columns: Columns,
    dense: bool,
    sparse_rows: bool = False,
) -> Pool | Weights:
    pool = columns.placed(pool)
    if ensemble.is_precomputed:  # kernel values are weighted like a linear member's features
        return Weights(pool, uses, columns, dense=False)
    if ensemble.linear:
        return Weights(pool, uses, columns, dense=dense)
    return Pool(_by_kernel(ensemble, uses), pool, columns, dense=dense, sparse_rows=sparse_rows)


def _weighted_pool(
    ensemble: Ensemble, dense: bool | None = None, n_columns: int | None = None
) -> WeightedPool:
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
    return WeightedPool(members, columns, dense=dense)


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
    """Return the support index of each kernel's members."""
    kernels = list(dict.fromkeys(group.kernel for group in ensemble.groups))
    if len(kernels) == 1:
        return [(kernels[0], uses)]
    kernel_of = np.empty(len(ensemble.members), np.int64)
    for group in ensemble.groups:
        kernel_of[group.columns] = kernels.index(group.kernel)
    kernel_used = kernel_of[uses.members]
    return [(kernel, uses.only(kernel_used == number)) for number, kernel in enumerate(kernels)]
