"""Linear members as weights of features: a row's values come from its own entries, in their order.

So they depend neither on its neighbours nor on how many rows are judged at a time.
"""

from __future__ import annotations

import itertools

import numpy as np

from resvm_cli.rows import Columns, FloatArray, Rows
from resvm_cli.svm import _blocks
from resvm_cli.svm.pool import Uses
from resvm_cli.svm.products import SparseMatrix, dense_matrix

# Rows are judged so many at a time that their members' values stay in the cache.
CELLS_AT_ONCE = 1 << 16


class Weights:
    """One weight vector a member, over the features that any of them has."""

    rows_multiple = 1

    def __init__(self, rows: Rows, uses: Uses, columns: Columns, *, dense: bool) -> None:
        """From the members' support rows, whose indices are places among the columns."""
        self._columns = columns
        self._n_members = uses.n_members
        self._width = uses.n_members + -uses.n_members % _blocks.STEP
        self.rows_at_once = max(1, CELLS_AT_ONCE // uses.n_members)
        self._weights: FloatArray | SparseMatrix
        if dense:
            self._weights = _tiled(_combined(rows, uses, len(columns), self._width))
        else:
            self._weights = _listed(rows, uses, columns)

    def sums(self, rows: Rows) -> FloatArray:
        """The rows times the weights: rows x members."""
        if isinstance(self._weights, SparseMatrix):
            return self._weights.products(*self._columns.looked_up(rows)).T
        sums = np.empty((len(rows), self._width))
        rows, places = self._columns.looked_up(rows)
        entries = (rows.indptr, rows.indices, rows.values)
        _blocks.weigh(*entries, places, self._weights, sums, self._width)
        return sums[:, : self._n_members]


def _combined(rows: Rows, uses: Uses, n_columns: int, width: int) -> FloatArray:
    """The members' weights, features x members, with members of nothing up to the width."""
    if (np.bincount(uses.members, minlength=uses.n_members) == 1).all():
        # a row a member, as models are written: the product below would take members squared
        alone: FloatArray = np.zeros((n_columns, width))
        alone[:, uses.members] += dense_matrix(rows, n_columns)[uses.rows].T * uses.coefficients
        return alone
    coefficients = np.zeros((len(rows), width))
    np.add.at(coefficients, (uses.rows, uses.members), uses.coefficients)
    weights: FloatArray = dense_matrix(rows, n_columns).T @ coefficients
    return weights


def _tiled(weights: FloatArray) -> FloatArray:
    """Members by tiles, then by steps: in each, one line a feature."""
    width = weights.shape[1]
    whole = width - width % _blocks.TILE
    cuts = [*range(0, whole, _blocks.TILE), *range(whole, width, _blocks.STEP), width]
    tiles = [weights[:, first:last].reshape(-1) for first, last in itertools.pairwise(cuts)]
    return np.concatenate(tiles)


def _listed(rows: Rows, uses: Uses, columns: Columns) -> SparseMatrix:
    """The members' weights as a sparse matrix, members x features."""
    if (np.bincount(uses.members, minlength=uses.n_members) == 1).all():
        # a row a member, as models are written: its entries are in order, each feature once
        order = np.argsort(uses.members)
        own = rows.take(uses.rows[order])
        values = own.values * np.repeat(uses.coefficients[order], own.lengths)
        values += 0.0  # as a sum below would be: no zero has a sign
        return SparseMatrix(Rows(own.indptr, own.indices, values), len(columns))
    used = rows.take(uses.rows)
    members = np.repeat(uses.members, used.lengths).astype(np.int64)
    values = used.values * np.repeat(uses.coefficients, used.lengths)
    # a member of many support rows has one weight a feature all the same
    cells, place = np.unique(members * len(columns) + used.indices, return_inverse=True)
    weights = np.bincount(place, weights=values, minlength=len(cells)).astype(np.float64)
    members, features = np.divmod(cells, max(1, len(columns)))
    starts = np.searchsorted(members, np.arange(uses.n_members + 1))
    return SparseMatrix(Rows(starts, features.astype(np.int32), weights), len(columns))
