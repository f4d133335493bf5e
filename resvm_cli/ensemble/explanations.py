"""Explain values by the contributions of support vectors or, for linear members, of features.

The mean value of the members that have not seen a row is a constant plus a sum over their support
vectors: coefficient times kernel value. Linear members have feature weights instead. Sections of
members are standardized and weighted as in the ensemble's mean value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from resvm_cli.ensemble.ensemble import Ensemble
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, Columns, FloatArray, IntArray, Rows, distinct
from resvm_cli.svm import kernels
from resvm_cli.svm.kernels import Kernel, Problem, distances_to, exp_in_place
from resvm_cli.svm.products import SparseMatrix

NOT_KNOWN = -1  # the row number of a support vector that matches no training row


@dataclass(frozen=True)
class Term:
    """The contribution of a row or a feature to a value."""

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
    unlabeled: tuple[Term, ...]  # the rows of U that decrease the value most
    features: tuple[Term, ...]  # the features with the largest contributions of either sign


class Explainer:
    """Explains the values of an ensemble."""

    def __init__(
        self,
        ensemble: Ensemble,
        positives: Rows,
        unlabeled: Rows,
        drawn: IntArray,
        problems: Sequence[Problem],
    ) -> None:
        """Find the training rows of all support vectors.

        ``unlabeled`` contains the rows of U whose numbers are in ``drawn``; all rows are unscaled.
        A stored model does not record the row numbers of its support vectors, so they are looked up
        by content (within a member's own bag if the member weights features). The first of several
        identical rows represents them all.
        """
        self._ensemble = ensemble
        self._rho = np.array([member.rho for member in ensemble.members])
        self._terms: list[tuple[_FeatureTerms | _RowTerms, slice]] = []
        first = 0
        for part in ensemble.uniform_parts():
            stop = first + len(part.members)
            if part.linear:
                self._terms.append((_FeatureTerms(part), slice(first, stop)))
                first = stop
                continue
            known, others = (
                part.scaled(rows, part.sections[0]).without_zeros()
                for rows in (positives, unlabeled)
            )
            places = np.arange(len(known)), np.arange(len(others))
            step = 1 if part.weighted else len(part.members)
            for at in range(0, len(part.members), step):
                if part.weighted:
                    bag = problems[first]
                    places = distinct(bag.positive), np.searchsorted(drawn, distinct(bag.unlabeled))
                terms = _RowTerms(
                    part.part(at, at + step),
                    (known.take(places[0]), others.take(places[1])),
                    (places[0], len(known) + drawn[places[1]]),
                )
                self._terms.append((terms, slice(first, first + step)))
                first += step

    def explain(self, rows: Rows, unseen: BoolArray, most: int) -> Iterator[Explanation]:
        """Yield an explanation of each row's value, over the members that have not seen the row."""
        for number in range(len(rows)):
            row = rows.slice(number, number + 1)
            shares, constant = self._weights_of(unseen[number])
            constant -= float((shares * self._rho).sum())
            if not unseen[number].any():
                yield Explanation(np.nan, np.nan, 0.0, 0.0, 0.0, (), (), ())
                continue
            totals = [0.0, 0.0, 0.0]
            found: list[list[tuple[IntArray, FloatArray]]] = [[], [], []]
            for terms, members in self._terms:
                if shares[members].any():
                    for kind, numbers, amounts in terms.of_row(row, shares[members]):
                        totals[kind] += float(amounts.sum())
                        found[kind].append((numbers, amounts))
            of_p, of_u, of_features = totals
            yield Explanation(
                constant + of_p + of_u + of_features,
                constant,
                of_p,
                of_u,
                of_features,
                _largest(found[POSITIVE], most),
                _largest(found[UNLABELED], most, -1.0),
                _largest(found[FEATURE], most, 0.0),
            )

    def _weights_of(self, unseen: BoolArray) -> tuple[FloatArray, float]:
        """Return each member's weight in the mean, and the constant due to standardization."""
        shares: FloatArray = np.zeros(len(unseen))
        sections = self._ensemble.sections
        if len(sections) == 1:
            shares[unseen] = 1 / max(1, int(unseen.sum()))
            return shares, 0.0
        present = [section for section in sections if unseen[section.columns].any()]
        total = sum(section.weight for section in present)
        shift = 0.0
        for section in present:
            own = unseen[section.columns]
            shares[section.columns] = own * (section.weight / (total * section.spread * own.sum()))
            shift -= section.weight * section.shift / (total * section.spread)
        return shares, shift


# The kinds of terms: rows of P, rows of U, features.
POSITIVE, UNLABELED, FEATURE = range(3)
Terms: TypeAlias = tuple[int, IntArray, FloatArray]  # kind, numbers, amounts


class _RowTerms:
    """Members whose values are sums over training rows."""

    def __init__(
        self, ensemble: Ensemble, rows: tuple[Rows, Rows], numbers: tuple[IntArray, IntArray]
    ) -> None:
        """Look up the support vectors in these scaled rows of P and U, which have these numbers."""
        self._ensemble = ensemble
        support, self._member, self._coefficient = ensemble.support_entries()
        self._positive = np.concatenate(
            [np.arange(len(member.support)) < member.n_positive for member in ensemble.members]
        )
        pool, keys, self._place = _distinct_rows(ensemble.pool, support)
        if ensemble.is_precomputed:
            rows = kernels.serial_rows(rows[0]), kernels.serial_rows(rows[1])
        self._weights = ensemble.members[0].weights
        if self._weights is not None:
            rows = rows[0].times(self._weights), rows[1].times(self._weights)
        self._numbers = [
            _numbers_of(keys, some, own) for some, own in zip(rows, numbers, strict=True)
        ]
        self._pool = kernels.unit_rows(pool) if ensemble.is_precomputed else pool
        self._columns = Columns(self._pool.indices, lasting=True)
        self._placed = self._columns.placed(self._pool)
        self._matrix = SparseMatrix(self._placed, len(self._columns))

    def of_row(self, row: Rows, shares: FloatArray) -> Iterator[Terms]:
        row = self._ensemble.scaled(row, self._ensemble.sections[0])
        if self._weights is not None:
            row = row.times(self._weights)
        weights = shares[self._member] * self._coefficient
        amounts = np.zeros((2, len(self._pool)))  # amounts[0] for P, amounts[1] for U
        for kernel, members in self._kernels():
            own = members[self._member]
            if kernel.uses_distances:
                distances = distances_to(row, self._placed, self._columns, kernel)
                values = exp_in_place(-kernel.gamma * distances)
            else:
                looked_up = self._columns.looked_up(row)
                values = self._matrix.products(*looked_up, minimum=kernel.uses_minimum)
                if not kernel.is_precomputed:
                    norms = kernel.norms(self._pool), kernel.norms(row)
                    values = kernel.values(values, *norms)
                values = np.ascontiguousarray(values[:, 0])
            for line, chosen in zip(
                amounts, (own & self._positive, own & ~self._positive), strict=True
            ):
                place = self._place[chosen]
                line += np.bincount(place, weights[chosen], len(self._pool)) * values
        for kind in (POSITIVE, UNLABELED):
            yield kind, self._numbers[kind], amounts[kind]

    def _kernels(self) -> Iterator[tuple[Kernel, BoolArray]]:
        sections = self._ensemble.sections
        for kernel in dict.fromkeys(section.kernel for section in sections):
            members = np.zeros(len(self._ensemble.members), bool)
            for section in sections:
                members[section.columns] |= section.kernel == kernel
            yield kernel, members


class _FeatureTerms:
    """Linear members, whose values are sums over features."""

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        support, member, coefficient = ensemble.support_entries()
        rows = ensemble.pool.take(support)
        order = np.argsort(rows.indices, kind="stable")
        which = rows.row_numbers[order]
        self._feature = rows.indices[order].astype(np.int64)
        self._weight = rows.values[order] * coefficient[which]
        self._member = member[which]

    def of_row(self, row: Rows, shares: FloatArray) -> Iterator[Terms]:
        row = self._ensemble.scaled(row, self._ensemble.sections[0])
        first = np.searchsorted(self._feature, row.indices, "left")
        counts = np.searchsorted(self._feature, row.indices, "right") - first
        which = np.repeat(np.arange(len(counts)), counts)
        entries = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        entries += np.repeat(first, counts)
        weights = shares[self._member[entries]] * self._weight[entries]
        amounts = np.bincount(which, weights, len(counts)) * row.values
        yield FEATURE, row.indices.astype(np.int64), amounts


def _distinct_rows(pool: Rows, support: IntArray) -> tuple[Rows, list[bytes], IntArray]:
    """Return the distinct support vectors sorted by key, their keys, and each entry's position.

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
    parts: Sequence[tuple[IntArray, FloatArray]], most: int, sign: float = 1.0
) -> tuple[Term, ...]:
    """Return the largest terms of this sign, or of either sign if 0; ties go to the first terms."""
    if not parts:
        return ()
    numbers = np.concatenate([numbers for numbers, _ in parts])
    amounts = np.concatenate([amounts for _, amounts in parts])
    numbers, amounts = numbers[numbers != NOT_KNOWN], amounts[numbers != NOT_KNOWN]
    numbers, place = np.unique(numbers, return_inverse=True)
    amounts = np.bincount(place, amounts, len(numbers))
    sizes = sign * amounts if sign else np.abs(amounts)
    chosen = np.flatnonzero(sizes > 0)
    order = chosen[np.argsort(-sizes[chosen], kind="stable")][:most]
    return tuple(Term(int(numbers[at]), float(amounts[at])) for at in order)
