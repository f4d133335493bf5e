"""Linear members as weights of features: a row's values come from its own entries, in their order.

So they depend neither on its neighbours nor on how many rows are judged at a time.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from resvm_cli.dataset import Columns, FloatArray, Rows
from resvm_cli.svm import _blocks
from resvm_cli.svm.pool import Uses

# Rows are judged so many at a time that their members' values stay in the cache.
CELLS_AT_ONCE = 1 << 16


class Weights:
    """One weight vector a member, over the features that any of them has."""

    rows_multiple = 1

    def __init__(self, matrix: Any, uses: Uses, columns: Columns) -> None:
        """``matrix`` holds the members' support rows over these columns, dense or as scipy's."""
        self._columns = columns
        self._n_members = uses.n_members
        self._weights = _combined(matrix, uses)
        self.rows_at_once = max(1, CELLS_AT_ONCE // uses.n_members)

    def sums(self, rows: Rows) -> FloatArray:
        """The rows times the weights: rows x members."""
        if not isinstance(self._weights, np.ndarray):
            return self._sparse_sums(rows)
        width = self._n_members + -self._n_members % _blocks.STEP
        sums = np.empty((len(rows), width))
        indices, places = self._columns.lookup(rows.indices)
        _blocks.weigh(rows.indptr, indices, rows.values, places, self._weights, sums, width)
        return sums[:, : self._n_members]

    def _sparse_sums(self, rows: Rows) -> FloatArray:
        from scipy.sparse import csr_array

        places = self._columns.places(rows.indices)
        seen = places >= 0
        known = rows.entries(seen)
        entries = (known.values, places[seen], known.indptr)
        sparse = csr_array(entries, shape=(len(rows), len(self._columns)))
        return np.asarray((sparse @ self._weights).toarray())


def _combined(matrix: Any, uses: Uses) -> Any:
    """The members' weights, features x members; dense ones in the order the C code asks for."""
    from_rows = np.repeat(np.arange(matrix.shape[0]), np.diff(uses.starts))
    if isinstance(matrix, np.ndarray):
        padding = -uses.n_members % _blocks.STEP
        coefficients = np.zeros((matrix.shape[0], uses.n_members + padding))
        np.add.at(coefficients, (from_rows, uses.members), uses.coefficients)
        return _tiled(matrix.T @ coefficients)
    from scipy.sparse import csr_array

    shape = (matrix.shape[0], uses.n_members)
    entries = (uses.coefficients, (from_rows, uses.members))
    return (matrix.T @ csr_array(entries, shape=shape)).tocsr()


def _tiled(weights: FloatArray) -> FloatArray:
    """Members by tiles, then by steps: in each, one line a feature."""
    width = weights.shape[1]
    whole = width - width % _blocks.TILE
    cuts = [*range(0, whole, _blocks.TILE), *range(whole, width, _blocks.STEP), width]
    tiles = [weights[:, first:last].reshape(-1) for first, last in itertools.pairwise(cuts)]
    return np.concatenate(tiles)
