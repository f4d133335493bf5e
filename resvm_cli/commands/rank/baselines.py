"""Two baselines for ensembles: the best single feature and the nearest known positive.

All three rankings are compared by the ROC AUC of P against U, out of bag and on the same sample of
rows. The feature for a row of P is chosen without using the row's fold, and a row's nearest known
positive is never the row itself, an identical row, or a row in its group. Differences have
DeLong's paired confidence intervals.
"""

from __future__ import annotations

import numpy as np

from resvm_cli import randomness
from resvm_cli.commands.rank.out_of_bag_scores import OutOfBagScores
from resvm_cli.errors import Text
from resvm_cli.metrics.intervals import NORMAL_QUANTILE, Interval, paired_auc_difference, placements
from resvm_cli.model.ensemble import Ensemble
from resvm_cli.model.pu_data import PUData
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, Columns, FloatArray, IntArray, Rows
from resvm_cli.svm.kernels import Kernel
from resvm_cli.svm.products import MIN_DENSITY, SparseMatrix, dense_matrix

MAX_POSITIVES, MAX_UNLABELED = 500, 1_500
MAX_ENTRIES = 1 << 19  # fewer rows are sampled if they are wide
MIN_ROWS = 200  # sampled from P and from U even if rows are wide
CHOOSING_ROWS = 300  # maximum rows of U for choosing a feature; all are used to judge it
MIN_POSITIVES = 10  # with fewer, a comparison means nothing
N_FOLDS = 5

# Placements of the rows of P among U, and of the rows of U among P: their means are the ROC AUC.
Placements = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class Baseline:
    """A simple ranking, compared with the ensemble on the same rows."""

    name: str  # "single_feature" or "nearest_positive"
    feature: str | None  # the feature chosen in most folds
    roc_auc: float
    ensemble_roc_auc: float
    difference: Interval  # the ensemble's ROC AUC minus the baseline's

    @property
    def is_beaten(self) -> bool:
        """Whether the ensemble is better, or worse by less than one standard error.

        Without this tolerance, mislabeled rows in P caused many false alarms (docs/quality.md).
        """
        error = (self.difference.high - self.difference.value) / NORMAL_QUANTILE
        return self.difference.value + error > 0

    def note(self) -> Text:
        """Return the note to show if the ensemble does not beat the baseline."""
        what = "the nearest known positive" if self.feature is None else f"feature {self.feature}"
        found = self.difference
        return (
            f"the ensemble ranks no better than {what} alone: its ROC AUC of P against U is"
            f" {self.ensemble_roc_auc:.3f}, the baseline's is {self.roc_auc:.3f}"
            f" (difference {found.value:.3f}, 95 % interval {found.low:.3f} to {found.high:.3f});"
            " check the features and their scaling, or rank by the baseline"
        )


def compared(
    data: PUData,
    ensemble: Ensemble,
    known: OutOfBagScores,
    unlabeled: OutOfBagScores,
    names: list[str] | None,
    seed: int,
) -> tuple[Baseline, ...]:
    """Compare out-of-bag values with both baselines, if the kernel and the sample allow it."""
    positive, others = _sampled(data, known.scored, unlabeled.scored, seed)
    if ensemble.is_precomputed or len(positive) < MIN_POSITIVES or not len(others):
        return ()
    numbers = np.concatenate([positive, len(data.positives) + others])
    rows = data.rows(numbers).without_zeros()
    alike, groups = rows.content_numbers(), data.groups()
    if groups is not None:
        groups = groups[numbers]
    n_pos = len(positive)
    own = _placements(known.values[positive], unlabeled.values[others])
    bits = randomness.run_bits(seed, randomness.BASELINES, 1)
    together = alike[:n_pos] if groups is None else groups[:n_pos]
    folds = randomness.shuffled(bits, int(together.max()) + 1)[together] % N_FOLDS
    feature, by_feature = _single_feature(rows, n_pos, folds)
    near = nearness(rows, n_pos, ensemble, alike, groups)
    by_nearest = _placements(near[:n_pos], near[n_pos:])
    return (
        _baseline("single_feature", data.feature_name(feature, names), own, by_feature),
        _baseline("nearest_positive", None, own, by_nearest),
    )


def _placements(values: FloatArray, others: FloatArray) -> Placements:
    return placements(values, others), 1 - placements(others, values)


def _baseline(name: str, feature: str | None, own: Placements, other: Placements) -> Baseline:
    difference = paired_auc_difference(own, other)
    return Baseline(name, feature, float(other[0].mean()), float(own[0].mean()), difference)


def _sampled(
    data: PUData, known: BoolArray, unlabeled: BoolArray, seed: int
) -> tuple[IntArray, IntArray]:
    """Draw rows that have a value; fewer if rows are wide."""
    n_rows = data.summary_pos.n_rows + data.summary_unl.n_rows
    n_entries = data.summary_pos.n_nonzeros + data.summary_unl.n_nonzeros
    most = max(MIN_ROWS, MAX_ENTRIES * n_rows // max(1, n_entries) // 2)
    bits = randomness.run_bits(seed, randomness.BASELINES)
    drawn = []
    for scored, limit in ((known, MAX_POSITIVES), (unlabeled, MAX_UNLABELED)):
        numbers = np.flatnonzero(scored)
        drawn.append(numbers[randomness.sample(bits, len(numbers), min(limit, most))])
    return drawn[0], drawn[1]


def _single_feature(rows: Rows, n_pos: int, folds: IntArray) -> tuple[int, Placements]:
    """Return the feature chosen most often, and placements by the feature chosen for each fold."""
    step = -(-(len(rows) - n_pos) // CHOOSING_ROWS)
    some = rows.take(np.concatenate([np.arange(n_pos), np.arange(n_pos, len(rows), step)]))
    features = Columns(some.indices)
    sums = _sums_by_fold(some, features.places(some.indices), len(features), n_pos, folds)
    counts = np.bincount(folds, minlength=N_FOLDS)
    above, below = np.empty(n_pos), np.zeros(len(rows) - n_pos)
    chosen = []
    for fold in np.flatnonzero(counts).tolist():
        areas = (sums.sum(axis=0) - sums[fold]) / max(1, n_pos - counts[fold]) - 0.5
        best = int(np.argmax(np.abs(areas)))
        entries = np.flatnonzero(rows.indices == features.present[best])
        column = np.zeros(len(rows))
        column[rows.row_numbers[entries]] = (1 if areas[best] >= 0 else -1) * rows.values[entries]
        own, others = column[:n_pos][folds == fold], column[n_pos:]
        above[folds == fold] = placements(own, others)
        below += counts[fold] / n_pos * (1 - placements(others, own))
        chosen.append(int(features.present[best]))
    return max(sorted(set(chosen)), key=chosen.count), (above, below)


def _sums_by_fold(
    rows: Rows, place: IntArray, width: int, n_pos: int, folds: IntArray
) -> FloatArray:
    """Return each feature's sum of the placements of a fold's rows of P: folds x features."""
    n_unl = len(rows) - n_pos
    order = np.argsort(rows.values)  # two sorts take half the time of lexsort
    place_type = np.uint16 if width < 1 << 16 else np.int32  # numpy radix-sorts 16-bit integers
    order = order[np.argsort(place[order].astype(place_type), kind="stable")]
    feature, value, row = place[order], rows.values[order], rows.row_numbers[order]
    before = np.concatenate([[0], np.cumsum(row >= n_pos)])  # entries of U before each entry
    changes = np.concatenate([[True], (feature[1:] != feature[:-1]) | (value[1:] != value[:-1])])
    starts = np.append(np.flatnonzero(changes), len(order))
    which = np.cumsum(changes) - 1  # the run of equal values
    first = np.searchsorted(feature, np.arange(width))
    of_unl = np.diff(np.append(before[first], before[-1]))
    zeros = n_unl - of_unl
    negative = np.bincount(feature[(row >= n_pos) & (value < 0)], minlength=width)
    low, high = before[starts[which]], before[starts[which + 1]]
    placed = ((low + high) / 2 - before[first][feature] + (value > 0) * zeros[feature]) / n_unl
    of_zero = (negative + zeros / 2) / n_unl
    own = row < n_pos
    cells = folds[row[own]] * width + feature[own]
    gains = np.bincount(cells, placed[own] - of_zero[feature[own]], N_FOLDS * width)
    counts = np.bincount(folds, minlength=N_FOLDS)
    return gains.reshape(N_FOLDS, width) + counts[:, None] * of_zero


def nearness(
    rows: Rows, n_pos: int, ensemble: Ensemble, alike: IntArray, groups: IntArray | None
) -> FloatArray:
    """Return each row's similarity to the nearest row of P that is not excluded."""
    group = max(ensemble.groups, key=lambda group: group.weight)
    rows = ensemble.scaled(rows, group)
    kernel = Kernel("rbf", gamma=1.0) if group.kernel.known_to_libsvm else group.kernel
    features = Columns(rows.indices)
    rows = features.placed(rows)
    width, minimum = len(features), kernel.uses_minimum
    if not minimum and len(rows.values) >= MIN_DENSITY * len(rows) * width:
        matrix = dense_matrix(rows, width)
        block = np.ascontiguousarray(matrix[:n_pos] @ matrix.T)
    else:
        columns = np.arange(width, dtype=np.int32)
        block = SparseMatrix(rows.slice(0, n_pos), width).products(rows, columns, minimum=minimum)
    norms = kernel.norms(rows)
    make = kernel.exponents if kernel.name == "rbf" else kernel.values
    block = make(block, norms[:n_pos], norms)
    excluded = alike[:n_pos, None] == alike
    if groups is not None:
        excluded |= groups[:n_pos, None] == groups
    block[excluded] = -np.inf
    return np.asarray(block.max(axis=0), np.float64)
