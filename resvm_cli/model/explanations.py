"""What the value of a row is made of: support rows, or the features of linear members.

The mean value of the members that have not seen a row is a sum: over their support rows, each with
its coefficient and its kernel value with the row, and a constant. Linear members have weights of
features in place of support rows. Groups of members count as in the mean value: standardised and
weighted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from resvm_cli.model.ensemble import Ensemble, cut
from resvm_cli.rows import BoolArray, Columns, FloatArray, IntArray, Rows
from resvm_cli.svm import kernels
from resvm_cli.svm.kernels import Kernel, exp_in_place, squared_distances
from resvm_cli.svm.products import SparseMatrix

NOT_KNOWN = -1  # a support row that no training row is equal to


@dataclass(frozen=True)
class Part:
    """What a row, or a feature, adds to a value."""

    number: int  # of a row among P and then U, or of a feature
    amount: float


@dataclass(frozen=True)
class ValueParts:
    """A value as a sum: the constant and what all rows, or all features, add."""

    value: float  # the mean of the members that have not seen the row; nan where there are none
    constant: float
    of_positives: float
    of_unlabeled: float
    of_features: float
    positives: tuple[Part, ...]  # the rows of P that add most
    unlabeled: tuple[Part, ...]  # the rows of U that take most away
    features: tuple[Part, ...]  # those that count most, either way


class PartsOfValues:
    """An ensemble ready to tell what its values are made of."""

    def __init__(
        self, ensemble: Ensemble, positives: Rows, unlabeled: Rows, drawn: IntArray
    ) -> None:
        """Rows are as members see them; ``unlabeled`` are those of U numbered in ``drawn``.

        A stored model has lost the numbers of its support rows: they are found by their content.
        Of equal rows the first stands for all.
        """
        self._ensemble = ensemble
        members = ensemble.members
        self._rho = np.array([member.rho for member in members])
        sizes = [len(member.support) for member in members]
        self._member = np.repeat(np.arange(len(members)), sizes)
        self._support = np.concatenate([member.support for member in members])
        self._coefficient = np.concatenate([member.coefficients for member in members])
        if ensemble.linear:
            self._index_features()
            return
        self._positive = np.concatenate(
            [np.arange(len(member.support)) < member.n_positive for member in members]
        )
        pool, keys, self._place = _distinct_rows(ensemble.pool, self._support)
        known, others = positives.without_zeros(), unlabeled.without_zeros()
        if ensemble.is_precomputed:
            known, others = kernels.serial_rows(known), kernels.serial_rows(others)
        self._numbers = (
            _numbers_of(keys, known, np.arange(len(known))),
            _numbers_of(keys, others, len(known) + drawn),
        )
        self._pool = kernels.unit_rows(pool) if ensemble.is_precomputed else pool
        self._columns = Columns(self._pool.indices, lasting=True)
        place = self._columns.places(self._pool.indices)
        self._placed = Rows(self._pool.indptr, place.astype(np.int32), self._pool.values)
        self._matrix = SparseMatrix(self._placed, len(self._columns))

    def _index_features(self) -> None:
        """Weights of features, those of one feature together."""
        rows = self._ensemble.pool.take(self._support)
        order = np.argsort(rows.indices, kind="stable")
        self._feature = rows.indices[order].astype(np.int64)
        self._weight = (rows.values * np.repeat(self._coefficient, rows.lengths))[order]
        self._weighted_member = np.repeat(self._member, rows.lengths)[order]

    def of(self, rows: Rows, absent: BoolArray, most: int) -> Iterator[ValueParts]:
        """Of each row what adds most, over the members that are absent from it."""
        for number in range(len(rows)):
            row = rows.slice(number, number + 1)
            shares, constant = self._shares(absent[number])
            constant -= float((shares * self._rho).sum())
            if not absent[number].any():
                yield ValueParts(np.nan, np.nan, 0.0, 0.0, 0.0, (), (), ())
            elif self._ensemble.linear:
                yield self._of_features(row, shares, constant, most)
            else:
                yield self._of_rows(row, shares, constant, most)

    def _shares(self, absent: BoolArray) -> tuple[FloatArray, float]:
        """What each member's value counts in the mean, and what standardising adds to it."""
        shares: FloatArray = np.zeros(len(absent))
        groups = self._ensemble.groups
        if len(groups) == 1:
            shares[absent] = 1 / max(1, int(absent.sum()))
            return shares, 0.0
        present = [group for group in groups if absent[cut(group)].any()]
        total = sum(group.weight for group in present)
        shift = 0.0
        for group in present:
            own = absent[cut(group)]
            shares[cut(group)] = own * (group.weight / (total * group.scale * own.sum()))
            shift -= group.weight * group.shift / (total * group.scale)
        return shares, shift

    def _of_rows(self, row: Rows, shares: FloatArray, constant: float, most: int) -> ValueParts:
        weights = shares[self._member] * self._coefficient
        amounts = np.zeros((2, len(self._pool)))  # of rows as known positives, and as unlabeled
        for kernel, members in self._kernels():
            own = members[self._member]
            values = self._kernel_values(kernel, row)
            for line, chosen in zip(
                amounts, (own & self._positive, own & ~self._positive), strict=True
            ):
                place = self._place[chosen]
                line += np.bincount(place, weights[chosen], len(self._pool)) * values
        of_p, of_u = (float(line.sum()) for line in amounts)
        return ValueParts(
            constant + of_p + of_u,
            constant,
            of_p,
            of_u,
            0.0,
            _largest(amounts[0], self._numbers[0], most),
            _largest(-amounts[1], self._numbers[1], most, -1.0),
            (),
        )

    def _kernels(self) -> Iterator[tuple[Kernel, BoolArray]]:
        """Each kernel, and which members have it."""
        groups = self._ensemble.groups
        for kernel in dict.fromkeys(group.kernel for group in groups):
            members = np.zeros(len(self._ensemble.members), bool)
            for group in groups:
                members[cut(group)] |= group.kernel == kernel
            yield kernel, members

    def _kernel_values(self, kernel: Kernel, row: Rows) -> FloatArray:
        """The values of one row with each row of the pool."""
        if kernel.name == "rbf":
            place = self._columns.places(row.indices)
            seen = place >= 0
            known = Rows(
                np.array([0, int(seen.sum())]), place[seen].astype(np.int32), row.values[seen]
            )
            distances = squared_distances(known, self._placed, len(self._columns))
            distances += float(np.dot(row.values[~seen], row.values[~seen]))
            return exp_in_place(-kernel.gamma * distances)
        products = self._matrix.products(*self._columns.looked_up(row), minimum=kernel.uses_minimum)
        if kernel.is_precomputed:
            return products[:, 0]
        values = kernel.values(products, kernel.norms(self._pool), kernel.norms(row))
        return np.ascontiguousarray(values[:, 0])

    def _of_features(self, row: Rows, shares: FloatArray, constant: float, most: int) -> ValueParts:
        first = np.searchsorted(self._feature, row.indices, "left")
        counts = np.searchsorted(self._feature, row.indices, "right") - first
        which = np.repeat(np.arange(len(counts)), counts)
        entries = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        entries += np.repeat(first, counts)
        weights = shares[self._weighted_member[entries]] * self._weight[entries]
        amounts = np.bincount(which, weights, len(counts)) * row.values
        total = float(amounts.sum())
        order = np.argsort(-np.abs(amounts), kind="stable")[:most]
        parts = [
            Part(int(row.indices[place]), float(amounts[place]))
            for place in order.tolist()
            if amounts[place]
        ]
        return ValueParts(constant + total, constant, 0.0, 0.0, total, (), (), tuple(parts))


def _distinct_rows(pool: Rows, support: IntArray) -> tuple[Rows, list[bytes], IntArray]:
    """Support rows, equal ones once, in the order of their keys; and where each of them is.

    That order is the same for a model in memory and for one that is read, and so are sums.
    """
    used, place = np.unique(support, return_inverse=True)
    keys = pool.take(used).content_keys()
    order = sorted(set(keys))
    number = {key: number for number, key in enumerate(order)}
    of_used = np.array([number[key] for key in keys], np.int64)
    first = np.zeros(len(order), np.int64)
    first[of_used] = used
    return pool.take(first), order, of_used[place.reshape(-1)]


def _numbers_of(keys: list[bytes], rows: Rows, numbers: IntArray) -> IntArray:
    """For each key the number of the first row of that content."""
    first: dict[bytes, int] = {}
    for key, number in zip(rows.content_keys(), numbers.tolist(), strict=True):
        first.setdefault(key, number)
    return np.array([first.get(key, NOT_KNOWN) for key in keys], np.int64)


def _largest(
    amounts: FloatArray, numbers: IntArray, most: int, sign: float = 1.0
) -> tuple[Part, ...]:
    """The rows of the largest amounts above 0; of equal ones the first."""
    chosen = np.flatnonzero((amounts > 0) & (numbers != NOT_KNOWN))
    order = chosen[np.lexsort((numbers[chosen], -amounts[chosen]))][:most]
    return tuple(Part(int(numbers[place]), float(sign * amounts[place])) for place in order)
