"""Explain values by the contribution of each support vector, or each feature of linear members.

The mean value of the members that have not seen a row is a constant plus a sum over their support
vectors: coefficient times kernel value. Linear members have feature weights instead. Groups of
members are standardized and weighted as in the mean value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from resvm_cli.model.ensemble import Ensemble
from resvm_cli.rows import BoolArray, Columns, FloatArray, IntArray, Rows
from resvm_cli.svm import kernels
from resvm_cli.svm.kernels import Kernel, exp_in_place, squared_distances
from resvm_cli.svm.products import SparseMatrix

NOT_KNOWN = -1  # a support vector that equals no training row


@dataclass(frozen=True)
class Term:
    """The contribution of one row or one feature to a value."""

    number: int  # row number, with P before U, or feature index
    amount: float


@dataclass(frozen=True)
class Explanation:
    """A value as a sum: a constant plus the contributions of all rows or features."""

    value: float  # the mean over members that have not seen the row; nan if there are none
    constant: float
    of_positives: float
    of_unlabeled: float
    of_features: float
    positives: tuple[Term, ...]  # the rows of P that increase the value most
    unlabeled: tuple[Term, ...]  # the rows of U that decrease it most
    features: tuple[Term, ...]  # the largest contributions, of either sign


class Explainer:
    """Explains the values of an ensemble."""

    def __init__(
        self, ensemble: Ensemble, positives: Rows, unlabeled: Rows, drawn: IntArray
    ) -> None:
        """Take scaled rows; ``unlabeled`` holds the rows of U whose numbers are in ``drawn``.

        A stored model does not record the row numbers of its support vectors, so they are found by
        content. The first of several equal rows represents all of them.
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
        """Index the feature weights by feature."""
        rows = self._ensemble.pool.take(self._support)
        order = np.argsort(rows.indices, kind="stable")
        self._feature = rows.indices[order].astype(np.int64)
        self._weight = (rows.values * np.repeat(self._coefficient, rows.lengths))[order]
        self._weighted_member = np.repeat(self._member, rows.lengths)[order]

    def explain(self, rows: Rows, unseen: BoolArray, most: int) -> Iterator[Explanation]:
        """Yield each row's largest terms, over the members that have not seen it."""
        for number in range(len(rows)):
            row = rows.slice(number, number + 1)
            shares, constant = self._weights_of(unseen[number])
            constant -= float((shares * self._rho).sum())
            if not unseen[number].any():
                yield Explanation(np.nan, np.nan, 0.0, 0.0, 0.0, (), (), ())
            elif self._ensemble.linear:
                yield self._of_features(row, shares, constant, most)
            else:
                yield self._of_rows(row, shares, constant, most)

    def _weights_of(self, unseen: BoolArray) -> tuple[FloatArray, float]:
        """Return each member's weight in the mean, and the constant from standardizing."""
        shares: FloatArray = np.zeros(len(unseen))
        groups = self._ensemble.groups
        if len(groups) == 1:
            shares[unseen] = 1 / max(1, int(unseen.sum()))
            return shares, 0.0
        present = [group for group in groups if unseen[group.columns].any()]
        total = sum(group.weight for group in present)
        shift = 0.0
        for group in present:
            own = unseen[group.columns]
            shares[group.columns] = own * (group.weight / (total * group.scale * own.sum()))
            shift -= group.weight * group.shift / (total * group.scale)
        return shares, shift

    def _of_rows(self, row: Rows, shares: FloatArray, constant: float, most: int) -> Explanation:
        weights = shares[self._member] * self._coefficient
        amounts = np.zeros((2, len(self._pool)))  # amounts[0] for P, amounts[1] for U
        for kernel, members in self._kernels():
            own = members[self._member]
            values = self._kernel_values(kernel, row)
            for line, chosen in zip(
                amounts, (own & self._positive, own & ~self._positive), strict=True
            ):
                place = self._place[chosen]
                line += np.bincount(place, weights[chosen], len(self._pool)) * values
        of_p, of_u = (float(line.sum()) for line in amounts)
        return Explanation(
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
        """Yield each kernel with a mask of the members that use it."""
        groups = self._ensemble.groups
        for kernel in dict.fromkeys(group.kernel for group in groups):
            members = np.zeros(len(self._ensemble.members), bool)
            for group in groups:
                members[group.columns] |= group.kernel == kernel
            yield kernel, members

    def _kernel_values(self, kernel: Kernel, row: Rows) -> FloatArray:
        """Return the kernel values of one row with each row of the pool."""
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

    def _of_features(
        self, row: Rows, shares: FloatArray, constant: float, most: int
    ) -> Explanation:
        first = np.searchsorted(self._feature, row.indices, "left")
        counts = np.searchsorted(self._feature, row.indices, "right") - first
        which = np.repeat(np.arange(len(counts)), counts)
        entries = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        entries += np.repeat(first, counts)
        weights = shares[self._weighted_member[entries]] * self._weight[entries]
        amounts = np.bincount(which, weights, len(counts)) * row.values
        total = float(amounts.sum())
        order = np.argsort(-np.abs(amounts), kind="stable")[:most]
        terms = [
            Term(int(row.indices[place]), float(amounts[place]))
            for place in order.tolist()
            if amounts[place]
        ]
        return Explanation(constant + total, constant, 0.0, 0.0, total, (), (), tuple(terms))


def _distinct_rows(pool: Rows, support: IntArray) -> tuple[Rows, list[bytes], IntArray]:
    """Return the distinct support vectors sorted by key, their keys, and the position of each.

    The order, and therefore every sum, is the same for a model in memory and a loaded one.
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
    """Return, for each key, the number of the first row with that content."""
    first: dict[bytes, int] = {}
    for key, number in zip(rows.content_keys(), numbers.tolist(), strict=True):
        first.setdefault(key, number)
    return np.array([first.get(key, NOT_KNOWN) for key in keys], np.int64)


def _largest(
    amounts: FloatArray, numbers: IntArray, most: int, sign: float = 1.0
) -> tuple[Term, ...]:
    """Return the rows with the largest positive amounts; in a tie, the first rows."""
    chosen = np.flatnonzero((amounts > 0) & (numbers != NOT_KNOWN))
    order = chosen[np.lexsort((numbers[chosen], -amounts[chosen]))][:most]
    return tuple(Term(int(numbers[place]), float(sign * amounts[place])) for place in order)
