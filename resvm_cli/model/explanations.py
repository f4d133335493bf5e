"""Explain values by the contributions of support vectors or, for linear members, of features.

The mean value of the members that have not seen a row is a constant plus a sum over their support
vectors: coefficient times kernel value. Linear members have feature weights instead. Groups of
members are standardized and weighted as in the mean value.

Members with support vectors are not sums over features. For them, a feature's effect on a row is
the row's value minus the mean value of copies in which the feature has values of other rows of U.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from resvm_cli import randomness
from resvm_cli.model.ensemble import Ensemble, Predictor
from resvm_cli.model.feature_weights import FeatureBins, RankedValues, Relevance
from resvm_cli.model.out_of_bag import decide_out_of_bag
from resvm_cli.model.pu_data import PUData
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, Columns, FloatArray, IntArray, Rows, distinct
from resvm_cli.svm import kernels
from resvm_cli.svm.kernels import Kernel, exp_in_place, squared_distances
from resvm_cli.svm.problem import Problem
from resvm_cli.svm.products import SparseMatrix

NOT_KNOWN = -1  # the row number of a support vector that equals no training row
N_QUANTILES = 5  # quantiles of a feature's values in U
SAMPLED_ROWS = 200  # rows sampled from P and from U
MAX_CHANGED = 50  # features changed per row
CELLS_AT_ONCE = 1 << 21  # limits the copies of a row times its features


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
    unlabeled: tuple[Term, ...]  # the rows of U that decrease it most
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

        ``unlabeled`` contains the rows of U whose numbers are in ``drawn``; rows are unscaled. A
        stored model does not record row numbers of support vectors, so they are found by content
        (in a member's own bag if it weights features). The first of several equal rows represents
        all of them.
        """
        self._ensemble = ensemble
        self._rho = np.array([member.rho for member in ensemble.members])
        self._terms: list[tuple[_FeatureTerms | _RowTerms, slice]] = []
        first = 0
        for section in ensemble.sections():
            stop = first + len(section.members)
            if section.linear:
                self._terms.append((_FeatureTerms(section), slice(first, stop)))
                first = stop
                continue
            known, others = (
                section.scaled(rows, section.groups[0]).without_zeros()
                for rows in (positives, unlabeled)
            )
            places = np.arange(len(known)), np.arange(len(others))
            step = 1 if section.weighted else len(section.members)
            for at in range(0, len(section.members), step):
                if section.weighted:
                    bag = problems[first]
                    places = distinct(bag.positive), np.searchsorted(drawn, distinct(bag.unlabeled))
                terms = _RowTerms(
                    section.part(at, at + step),
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
            if unseen[number].any():
                yield self._explained(row, shares, constant, most)
            else:
                yield Explanation(np.nan, np.nan, 0.0, 0.0, 0.0, (), (), ())

    def _explained(self, row: Rows, shares: FloatArray, constant: float, most: int) -> Explanation:
        totals = [0.0, 0.0, 0.0]
        found: list[list[tuple[IntArray, FloatArray]]] = [[], [], []]
        for terms, members in self._terms:
            if shares[members].any():
                for kind, numbers, amounts in terms.of_row(row, shares[members]):
                    totals[kind] += float(amounts.sum())
                    found[kind].append((numbers, amounts))
        of_p, of_u, of_features = totals
        return Explanation(
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


# The kinds of terms: rows of P, rows of U, features.
POSITIVE, UNLABELED, FEATURE = range(3)
Terms: TypeAlias = tuple[int, IntArray, FloatArray]  # kind, numbers, amounts


class _RowTerms:
    """Members whose values are sums over training rows."""

    def __init__(
        self, ensemble: Ensemble, rows: tuple[Rows, Rows], numbers: tuple[IntArray, IntArray]
    ) -> None:
        """Look for the support vectors in these scaled rows of P and U, numbered by ``numbers``."""
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
        row = self._ensemble.scaled(row, self._ensemble.groups[0])
        if self._weights is not None:
            row = row.times(self._weights)
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
        for kind in (POSITIVE, UNLABELED):
            yield kind, self._numbers[kind], amounts[kind]

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
            distances = squared_distances(row, self._placed, self._columns)
            return exp_in_place(-kernel.gamma * distances)
        products = self._matrix.products(*self._columns.looked_up(row), minimum=kernel.uses_minimum)
        if kernel.is_precomputed:
            return products[:, 0]
        values = kernel.values(products, kernel.norms(self._pool), kernel.norms(row))
        return np.ascontiguousarray(values[:, 0])


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
        row = self._ensemble.scaled(row, self._ensemble.groups[0])
        first = np.searchsorted(self._feature, row.indices, "left")
        counts = np.searchsorted(self._feature, row.indices, "right") - first
        which = np.repeat(np.arange(len(counts)), counts)
        entries = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        entries += np.repeat(first, counts)
        weights = shares[self._member[entries]] * self._weight[entries]
        amounts = np.bincount(which, weights, len(counts)) * row.values
        yield FEATURE, row.indices.astype(np.int64), amounts


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
    parts: Sequence[tuple[IntArray, FloatArray]], most: int, sign: float = 1.0
) -> tuple[Term, ...]:
    """Return the largest terms of this sign, or of either sign if 0; in a tie, the first ones."""
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


class FeatureEffects:
    """Effects of features on rows, from copies scored by members that have not seen the row."""

    def __init__(self, predictor: Predictor, data: PUData, seed: int) -> None:
        self._predictor = predictor
        bits = randomness.run_bits(seed, randomness.EFFECTS)
        known = data.positives.take(randomness.sample(bits, len(data.positives), SAMPLED_ROWS))
        others = data.fetch(randomness.sample(bits, data.n_unlabeled, SAMPLED_ROWS))
        rows = Rows.concatenate([known, others]).without_zeros()
        self._features = Columns(rows.indices, lasting=True)
        # the last column is for features that do not occur in these rows
        self._relevance = np.zeros(len(self._features) + 1)
        if len(self._features) > MAX_CHANGED:
            relevance = Relevance(rows, FeatureBins.learn(rows))
            found = relevance.weights(np.arange(len(known)), np.arange(len(known), len(rows)), 1.0)
            self._relevance[self._features.places(found.indices)] = found.values
        self._quantiles, self._range = self._learned(others.without_zeros())
        self._common = self._features.present[self._quantiles[:, :-1].any(axis=0)]

    def _learned(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """Return the quantiles of each feature, zeros included, and the range of its values."""
        ranked = RankedValues(rows, self._features)
        ranks = [(2 * k + 1) * len(rows) // (2 * N_QUANTILES) for k in range(N_QUANTILES)]
        values = np.array([ranked.at(rank) for rank in (*ranks, 0, len(rows) - 1)])
        padded = np.append(values, np.zeros((len(values), 1)), axis=1)
        return padded[:N_QUANTILES], padded[-1] - padded[-2]

    def of_row(self, row: Rows, unseen: BoolArray, most: int) -> Iterator[tuple[int, float, float]]:
        """Yield the features with the largest effects of either sign: index, value, effect."""
        row = row.without_zeros()
        features = distinct(np.concatenate([row.indices, self._common]))
        own = np.zeros(len(features))
        own[np.searchsorted(features, row.indices)] = row.values
        place = self._features.places(features.astype(np.int32))
        chosen = self._chosen(own, place) if unseen.any() else place[:0]
        if not len(chosen):
            return
        others = self._quantiles[:, place[chosen]].T
        changed = others != own[chosen, None]
        is_new = changed.copy()  # equal quantiles need only one copy
        is_new[:, 1:] &= others[:, 1:] != others[:, :-1]
        columns = np.append(chosen[0], np.repeat(chosen, is_new.sum(axis=1)))
        values = np.append(own[chosen[0]], others[is_new])  # the row itself comes first
        means = self._means(Rows.one_row(features, own), columns, values, unseen)
        copies = np.cumsum(is_new).reshape(is_new.shape)
        effects = np.where(changed, means[0] - means[copies], 0.0).mean(axis=1)
        for at in np.argsort(-np.abs(effects), kind="stable")[:most]:
            if effects[at]:
                feature = chosen[at]
                yield int(features[feature]), float(own[feature]), float(effects[at])

    def _chosen(self, own: FloatArray, place: IntArray) -> IntArray:
        """Return the features to change: all that differ from U or, if many, the most relevant."""
        apart = np.abs(self._quantiles[:, place] - own).mean(axis=0)
        chosen = np.flatnonzero(apart)
        if len(chosen) > MAX_CHANGED:
            place = place[chosen]
            ratio = apart[chosen] / np.maximum(self._range[place], apart[chosen])
            order = np.lexsort((-ratio, -ratio * self._relevance[place]))
            chosen = np.sort(chosen[order[:MAX_CHANGED]])
        return chosen

    def _means(
        self, row: Rows, columns: IntArray, values: FloatArray, unseen: BoolArray
    ) -> FloatArray:
        """Return the mean values of copies of a row, each with one entry replaced."""
        means = np.empty(len(values))
        step = max(1, CELLS_AT_ONCE // len(row.values))
        for start in range(0, len(values), step):
            part = slice(start, start + step)
            matrix = np.tile(row.values, (len(values[part]), 1))
            matrix[np.arange(len(matrix)), columns[part]] = values[part]
            copies = Rows.from_dense(matrix, 0)
            copies = Rows(copies.indptr, row.indices[copies.indices], copies.values)
            found = self._predictor.member_values(copies)
            groups = self._predictor.ensemble.groups
            scored_by = np.broadcast_to(unseen, found.shape)
            means[part] = decide_out_of_bag(found, scored_by, groups).means
        return means
