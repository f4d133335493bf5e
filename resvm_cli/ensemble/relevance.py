"""Feature weights: a member scales each feature by how well it alone separates P from U in the bag.

A feature's values are divided into a few bins, whose edges are learned from rows of P and U without
using their labels. The feature's relevance is the R^2 of the label given the bin, adjusted for the
number of bins and never negative. Only labels of rows in the bag are used, so out-of-bag values
stay unbiased. (With weights learned from all rows, irrelevant features of sparse text looked
relevant.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from resvm_cli.parameters import ScalingName
from resvm_cli.records import dataclass
from resvm_cli.rows import Columns, FloatArray, IntArray, Rows, distinct

if TYPE_CHECKING:
    import numpy.typing as npt

    from resvm_cli.data.pudata import PUData

N_BINS = 5
MAX_TABLE_CELLS = 1 << 23
MIN_DENSITY = 0.1


@dataclass(frozen=True, eq=False)
class FeatureBins:
    """Bins for each feature: five of equal size, or zero, low and high if mostly zero."""

    features: Columns
    edges: FloatArray  # features x (N_BINS - 1): the bin of a value is the number of edges below it
    zero_bin: IntArray  # the bin of a zero

    @classmethod
    def learn(cls, rows: Rows) -> FeatureBins:
        """Find the edges of each feature that occurs in these rows."""
        rows = rows.without_zeros()
        features = Columns(rows.indices, lasting=True)
        place = features.places(rows.indices)
        counts = np.bincount(place, minlength=len(features))
        zeros, first = len(rows) - counts, np.cumsum(counts) - counts
        negative = np.bincount(place[rows.values < 0], minlength=len(features))
        values = np.append(rows.values[np.lexsort((rows.values, place))], 0.0)  # by feature
        edges = np.empty((len(features), N_BINS - 1))
        for number in range(1, N_BINS):
            # the smallest value with this fraction of the rows at or below it, zeros included
            rank = -(-number * len(rows) // N_BINS) - 1
            entry = first + np.where(rank < negative, rank, rank - zeros)
            is_zero = (rank >= negative) & (rank < negative + zeros)
            edges[:, number - 1] = values[np.where(is_zero, -1, entry)]
        zero_bin = (edges < 0).sum(axis=1)
        sparse = np.flatnonzero(2 * zeros > len(rows))
        edges[sparse] = np.inf
        edges[sparse, 0] = -np.inf
        edges[sparse, 1] = values[(first + (counts - 1) // 2)[sparse]]  # median of the nonzeros
        zero_bin[sparse] = 0
        return cls(features, edges, zero_bin)


def learn_bins(data: PUData, kind: ScalingName | None) -> FeatureBins:
    """Return the bins for rows that are scaled this way, learned once from a sample of the data."""
    key = FeatureBins, kind
    if key not in data.learned:
        data.learned[key] = FeatureBins.learn(data.scaled(data.sampled_rows, kind))
    bins: FeatureBins = data.learned[key]
    return bins


class Relevance:
    """Weights features by their relevance in bags of these rows.

    Counts are exact integers, so counting with a dense table, which is faster but larger, gives the
    same result as counting entry by entry.
    """

    def __init__(self, rows: Rows, bins: FeatureBins) -> None:
        place = bins.features.places(rows.indices)
        known = rows.entries((place >= 0) & (rows.values != 0))
        place = bins.features.places(known.indices)
        cells = place * N_BINS
        for edge in bins.edges.T:
            cells += known.values > edge[place]
        self._cells = Rows(known.indptr, cells.astype(np.int32), np.ones(len(cells)))
        self._bins = bins
        self._table: npt.NDArray[np.float32] | None = None
        width = len(bins.features) * N_BINS
        size = len(rows) * width
        if size <= MAX_TABLE_CELLS and N_BINS * len(cells) >= MIN_DENSITY * size:
            self._table = np.zeros((len(rows), width), np.float32)
            self._table[:, np.arange(len(bins.features)) * N_BINS + bins.zero_bin] = 1.0
            zero_cells = place * N_BINS + bins.zero_bin[place]
            self._table[known.row_numbers, zero_cells] = 0.0
            self._table[known.row_numbers, cells] = 1.0

    def weights(self, positive: IntArray, unlabeled: IntArray, power: float) -> Rows:
        """Return the factors of a bag's relevant features, as one row; their squares average 1."""
        features = self._bins.features.present
        places, counts = self._counts(positive, unlabeled)
        sizes = counts.sum(axis=0)
        n_rows = len(positive) + len(unlabeled)
        mean = len(positive) / n_rows
        between = (counts[0] ** 2 / np.maximum(sizes, 1)).sum(axis=1) - n_rows * mean * mean
        explained = between / (n_rows * mean * (1 - mean))
        free = np.maximum(1, n_rows - (sizes > 0).sum(axis=1))
        relevance = np.maximum(0.0, 1.0 - (1.0 - explained) * (n_rows - 1) / free)
        places, relevance = places[relevance > 0], relevance[relevance > 0]
        if len(places):
            squares = (relevance / relevance.max()) ** power
            squares *= len(features) / squares.sum()
        else:  # no feature is known to matter more than the others
            places, squares = np.arange(len(features)), np.ones(len(features))
        places, squares = places[squares > 0], squares[squares > 0]
        return Rows.one_row(features[places], np.sqrt(squares))

    def _counts(self, positive: IntArray, unlabeled: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the features in the bag, and row counts: 2 classes x features x bins."""
        numbers = distinct(np.concatenate([positive, unlabeled]))
        repeats = [
            np.bincount(np.searchsorted(numbers, side), minlength=len(numbers))
            for side in (positive, unlabeled)
        ]
        if self._table is not None:
            n_features = len(self._bins.features)
            found = np.array(repeats, np.float32) @ self._table[numbers]
            return np.arange(n_features), found.astype(float).reshape(2, n_features, N_BINS)
        bag = self._cells.take(numbers)
        features = Columns(bag.indices // N_BINS)
        cells = features.places(bag.indices // N_BINS) * N_BINS + bag.indices % N_BINS
        zero_bin = self._bins.zero_bin[features.present]
        counts = np.empty((2, len(features), N_BINS))
        for line, side, often in zip(counts, (positive, unlabeled), repeats, strict=True):
            found = np.bincount(cells, often[bag.row_numbers], line.size).reshape(line.shape)
            found[np.arange(len(features)), zero_bin] += len(side) - found.sum(axis=1)
            line[:] = found
        return features.present, counts
