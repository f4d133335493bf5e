"""Permutation importance of features for any kernel, computed out of bag.

A feature's importance to a member is the drop in the member's ROC AUC of P against U, on rows that
it has not seen, when the feature is permuted among these rows. Correlated features are permuted
together, because each could stand in for the others. Permuting a feature changes only its own terms
in a kernel's products and norms, so the other features are not processed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from resvm_cli import randomness
from resvm_cli import threads as parallel
from resvm_cli.data.pudata import PUData
from resvm_cli.ensemble.ensemble import Ensemble, Section
from resvm_cli.ensemble.oob import UnseenMask
from resvm_cli.ensemble.relevance import FeatureBins, Relevance
from resvm_cli.errors import DataError, ModelError
from resvm_cli.metrics.intervals import placements
from resvm_cli.records import dataclass
from resvm_cli.rows import Columns, FloatArray, IntArray, Rows
from resvm_cli.run import Run
from resvm_cli.svm.kernels import Kernel
from resvm_cli.svm.products import SparseMatrix

MAX_POSITIVES, MAX_UNLABELED = 500, 1_000  # sampled once
MEMBER_POSITIVES, MEMBER_UNLABELED = 60, 120  # rows sampled from those a member has not seen
MAX_FEATURES = 1_000  # permute only this many, the ones that best separate P from U
CORRELATED = 0.9  # smallest absolute correlation within a group of features


@dataclass(frozen=True)
class FeatureImportance:
    """The mean and standard deviation over members of the drop in ROC AUC."""

    feature: int
    name: str
    importance: float
    deviation: float
    group: int  # from 1, most important first; correlated features share a group


def feature_importance(
    ensemble: Ensemble,
    data: PUData,
    unseen_mask: UnseenMask,
    seed: int,
    run: Run,
    names: Sequence[Any] | None = None,
) -> tuple[FeatureImportance, ...]:
    """Return the features, most important first; those permuted together are adjacent.

    Feature names come from ``names`` or, without it, from the data.
    """
    if ensemble.is_precomputed:
        raise ModelError("the kernel is precomputed, so there are no features to permute")
    bits = randomness.run_bits(seed, randomness.IMPORTANCE)
    positive = randomness.sample(bits, len(data.positives), MAX_POSITIVES)
    others = randomness.sample(bits, data.n_unlabeled, MAX_UNLABELED)
    numbers = np.concatenate([positive, len(data.positives) + others])
    rows = data.rows(numbers).without_zeros()
    unseen = unseen_mask.unseen(numbers, rows)
    features = _candidates(rows, len(positive), run)
    groups = _correlated(_dense(rows, features))
    scaled = {each.scaling: ensemble.scaled(rows, each) for each in ensemble.sections}
    section_of = {member: each for each in ensemble.sections for member in each.members}

    def work(member: int) -> FloatArray | None:
        own = np.flatnonzero(unseen[:, member])
        known, unlabeled = own[own < len(positive)], own[own >= len(positive)]
        stream = randomness.run_bits(seed, randomness.IMPORTANCE, 1 + member)
        # drawn at random, because files may be sorted
        chosen = (
            known[randomness.sample(stream, len(known), MEMBER_POSITIVES)],
            unlabeled[randomness.sample(stream, len(unlabeled), MEMBER_UNLABELED)],
        )
        if min(map(len, chosen)) < 2:
            return None
        section = section_of[member]
        some = scaled[section.scaling].take(np.concatenate(chosen))
        permuted = _Permuted(ensemble, section, member, some, features)
        return permuted.auc_drops(groups, len(chosen[0]), stream)

    auc_drops: list[FloatArray] = []
    weights: list[float] = []
    n_models = len(ensemble.members)
    for member, one in enumerate(parallel.run(work, range(n_models), run.threads())):
        if one is not None:
            auc_drops.append(one)
            weights.append(section_of[member].weight / len(section_of[member].members))
        run.progress("permuting features", member + 1, n_models)
    if not auc_drops:
        raise DataError(
            "importance is measured out of bag, but every member has seen almost all of P",
            "use a larger P, or a model that resamples P: resvm train `method='resvm'`",
        )
    table = np.array(auc_drops)
    means = np.average(table, axis=0, weights=weights)
    deviations = np.sqrt(np.average((table - means) ** 2, axis=0, weights=weights))
    order = np.argsort(-means, kind="stable").tolist()
    return tuple(
        FeatureImportance(
            feature,
            data.feature_name(feature, names),
            float(means[index]),
            float(deviations[index]),
            rank,
        )
        for rank, index in enumerate(order, 1)
        for feature in features[groups[index]].tolist()
    )


def _candidates(rows: Rows, n_pos: int, run: Run) -> IntArray:
    """Return the features to permute: all, or those that best separate P from U on their own."""
    features = Columns(rows.indices).present
    if len(features) <= MAX_FEATURES:
        return features
    run.note(
        f"of {len(features):,} features, only the {MAX_FEATURES:,} that best separate P from U"
        " on their own are permuted"
    )
    relevance = Relevance(rows, FeatureBins.learn(rows))
    found = relevance.weights(np.arange(n_pos), np.arange(n_pos, len(rows)), 1.0)
    best = np.argsort(-found.values, kind="stable")[:MAX_FEATURES]
    return np.sort(found.indices[best]).astype(np.int64)


def _dense(rows: Rows, features: IntArray) -> FloatArray:
    place = Columns(features.astype(np.int32)).places(rows.indices)
    matrix = np.zeros((len(rows), len(features)))
    matrix[rows.row_numbers[place >= 0], place[place >= 0]] = rows.values[place >= 0]
    return matrix


def _correlated(matrix: FloatArray) -> list[IntArray]:
    """Return groups of columns that all correlate with each other."""
    n_columns = matrix.shape[1]
    if n_columns < 2:
        return [np.arange(n_columns)]
    from scipy.cluster.hierarchy import fcluster, linkage

    centered = matrix - matrix.mean(axis=0)
    lengths = np.sqrt((centered**2).sum(axis=0))
    centered /= np.where(lengths > 0, lengths, 1.0)
    distances = 1.0 - np.minimum(1.0, np.abs(centered.T @ centered))
    tree = linkage(distances[np.triu_indices(n_columns, 1)], "complete")
    labels = fcluster(tree, 1.0 - CORRELATED, "distance")
    order = np.argsort(labels, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    return sorted(groups, key=lambda group: int(group[0]))


class _Permuted:
    """One member's values on some rows, with features permuted among these rows."""

    def __init__(
        self, ensemble: Ensemble, section: Section, number: int, rows: Rows, features: IntArray
    ) -> None:
        member = ensemble.members[number]
        if member.weights is not None:
            rows = rows.times(member.weights)
        support = ensemble.pool.take(member.support)
        self._kernel: Kernel = section.kernel
        self._coefficients = member.coefficients
        columns = Columns(support.indices)
        matrix = SparseMatrix(columns.placed(support), len(columns))
        minimum = self._kernel.uses_minimum
        self._products = matrix.products(*columns.looked_up(rows), minimum=minimum)
        self._support_norms = self._kernel.norms(support)
        self._norms = self._kernel.norms(rows)
        self._support, self._rows = _dense(support, features), _dense(rows, features)

    def auc_drops(
        self, groups: Sequence[IntArray], n_pos: int, bits: randomness.Bits
    ) -> FloatArray:
        """Return the drop in ROC AUC for each group of features."""
        values = self._values(self._products.copy(), self._norms)
        area = _area(values, n_pos)
        result = np.zeros(len(groups))
        for index, group in enumerate(groups):
            order = randomness.shuffled(bits, len(values))
            before = self._rows[:, group]
            after = before[order]
            moved = np.flatnonzero((before != after).any(axis=1))
            if len(moved):
                changed = values.copy()
                changed[moved] = self._changed(group, before[moved], after[moved], moved)
                result[index] = area - _area(changed, n_pos)
        return result

    def _changed(
        self, group: IntArray, before: FloatArray, after: FloatArray, moved: IntArray
    ) -> FloatArray:
        products, norms = self._products.take(moved, axis=1), self._norms[moved]
        for column, old, new in zip(self._support[:, group].T, before.T, after.T, strict=True):
            if self._kernel.uses_minimum:
                products += _common_parts(column, new) - _common_parts(column, old)
                norms += np.abs(new) - np.abs(old)
            else:
                products += np.multiply.outer(column, new - old)
                norms += new * new - old * old
        return self._values(products, norms)

    def _values(self, products: FloatArray, norms: FloatArray) -> FloatArray:
        """Return the member's values, up to a constant; the products are overwritten."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = self._kernel.values(products, self._support_norms, norms)
            return np.asarray(self._coefficients @ values, np.float64)


def _common_parts(column: FloatArray, values: FloatArray) -> FloatArray:
    """Return what each pair of numbers has in common: the smaller one if the signs agree."""
    low, high = np.minimum.outer(column, values), np.maximum.outer(column, values)
    return np.maximum(low, 0.0) - np.minimum(high, 0.0)


def _area(values: FloatArray, n_pos: int) -> float:
    return float(placements(values[:n_pos], values[n_pos:]).mean())


def feature_weights(ensemble: Ensemble) -> list[tuple[int, float, float]] | None:
    """Return each feature, its mean weight over members and the deviation, largest weight first.

    For members that weight features, the weight is the square of the factor that multiplies the
    feature (mean 1 over all features), and all other members are left out. Otherwise, all members
    must be linear; if not, the result is None. Each group's weights are scaled and averaged in the
    same way as its decision values.
    """
    of_members = [member.weights for member in ensemble.members]
    weighted = np.array([weights is not None for weights in of_members])
    if weighted.any():
        lines = [weights or Rows.empty() for weights in of_members]
        lines = [Rows(line.indptr, line.indices, line.values**2) for line in lines]
    elif ensemble.linear:
        lines = []
        for member in ensemble.members:
            rows = ensemble.pool.take(member.support)
            values = rows.values * np.repeat(member.coefficients, rows.lengths)
            lines.append(Rows(rows.indptr, rows.indices, values))
    else:
        return None
    columns = Columns(np.concatenate([line.indices for line in lines]))
    table = np.zeros((len(lines), len(columns)))
    for values, line in zip(table, lines, strict=True):
        np.add.at(values, columns.places(line.indices), line.values)
    weights = np.ones(len(table))
    if len(ensemble.sections) > 1:
        for section in ensemble.sections:
            if ensemble.linear:
                table[section.columns] /= section.spread
            weights[section.columns] = section.weight / len(section.members)
    if not ensemble.linear:
        weights[~weighted] = 0.0
    means = np.average(table, axis=0, weights=weights)
    deviations = np.sqrt(np.average((table - means) ** 2, axis=0, weights=weights))
    order = np.argsort(-np.abs(means), kind="stable")
    found = columns.present[order], means[order], deviations[order]
    return list(zip(*(column.tolist() for column in found), strict=True))
