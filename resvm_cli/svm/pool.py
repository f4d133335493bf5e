"""Support rows that members share: their kernel values with a block of rows, computed once for all.

Every product has a fixed shape, because BLAS rounds by shape: a block is padded to one size and the
pool taken in chunks of one size that stay in the cache. So a row's values depend neither on its
neighbours nor on its place in a block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from resvm_cli.dataset import Columns, FloatArray, IndexArray, IntArray, Rows
from resvm_cli.svm import _blocks
from resvm_cli.svm.kernels import EXPONENT_TOLERANCE, UNDERFLOW, Kernel, squared_distances

# Multiples of what BLAS micro-kernels take at a time (24 rows on AVX-512, 8 or 16 columns): beyond
# one, the last rows or columns of a product go through another kernel, which rounds differently.
BLOCK_ROWS = 192
COLUMN_STEP = 16
CHUNK = 512


@dataclass(frozen=True, eq=False)
class Uses:
    """Which members use which row of the pool: those of row r at ``starts[r]:starts[r + 1]``."""

    starts: IntArray
    members: IndexArray
    coefficients: FloatArray
    n_members: int

    @classmethod
    def of(
        cls,
        rows: IntArray,
        members: IntArray,
        coefficients: FloatArray,
        n_rows: int,
        n_members: int,
    ) -> Uses:
        """From one entry for each support row of each member, in any order."""
        order = np.argsort(rows, kind="stable")
        starts = np.searchsorted(rows[order], np.arange(n_rows + 1))
        return cls(starts, members[order].astype(np.int32), coefficients[order], n_members)


class Pool:
    """Support rows over their own columns, and who uses them."""

    rows_at_once = rows_multiple = BLOCK_ROWS

    def __init__(
        self, kernel: Kernel, rows: Rows, matrix: Any, uses: Uses, columns: Columns
    ) -> None:
        """``matrix`` holds the same rows over these columns, as scipy's array or dense.

        A dense one has zeros below them, up to a multiple of COLUMN_STEP.
        """
        self._kernel = kernel
        self._columns = columns
        self._rows = rows
        self._width = matrix.shape[1]
        self._n_members = uses.n_members
        padding = -len(rows) % COLUMN_STEP
        self._norms = np.concatenate([rows.squared_norms(), np.zeros(padding)])
        self._starts = np.concatenate([uses.starts, np.full(padding, uses.starts[-1])])
        self._uses = uses
        self._matrix = matrix
        self._largest_norm = float(self._norms.max(initial=0.0))

    def sums(self, block: Rows) -> FloatArray:
        """Each member's weighted kernel values: rows x members, of BLOCK_ROWS rows at most."""
        # -1 for features that the pool lacks, which count in the norms alone
        places = self._columns.places(block.indices)
        norms = block.squared_norms()
        query = np.zeros(BLOCK_ROWS)
        query[: len(block)] = norms
        doubtful = self._doubtful(norms)
        sums = np.zeros((self._n_members, BLOCK_ROWS))
        products = self._products(block, places)
        for first in range(0, len(self._norms), CHUNK):
            values = products(first, min(first + CHUNK, len(self._norms)))
            last = first + len(values)
            if self._kernel.name == "rbf":
                self._kernel.exponents(values, self._norms[first:last], query)
                for number in doubtful:
                    self._mend(values, first, number, block, places)
                _blocks.powers(values)
            else:
                values = self._kernel.values(values, self._norms[first:last], query)
            _blocks.add(
                values,
                self._starts[first : last + 1],
                self._uses.members,
                self._uses.coefficients,
                sums,
                BLOCK_ROWS,
            )
        return sums[:, : len(block)].T

    def _products(self, block: Rows, places: IntArray) -> Any:
        """A function that gives the dot products of some support rows with a padded block."""
        if not isinstance(self._matrix, np.ndarray):
            whole = self._sparse_products(block, places)
            return lambda first, last: whole[first:last]
        # -1 is the last column: features that the pool lacks end there
        dense = np.zeros((self._width + 1, BLOCK_ROWS))
        dense[places, block.row_numbers] = block.values
        columns = dense[: self._width]
        room = np.empty((min(CHUNK, len(self._norms)), BLOCK_ROWS))
        return lambda first, last: np.matmul(
            self._matrix[first:last], columns, out=room[: last - first]
        )

    def _sparse_products(self, block: Rows, places: IntArray) -> FloatArray:
        from scipy.sparse import csr_array

        seen = places >= 0
        entries = (block.values[seen], (places[seen], block.row_numbers[seen]))
        columns = csr_array(entries, shape=(self._width, BLOCK_ROWS))
        whole = np.zeros((len(self._norms), BLOCK_ROWS))
        (self._matrix @ columns).toarray(out=whole[: len(self._rows)])
        return whole

    def _doubtful(self, norms: FloatArray) -> list[int]:
        """The rows whose rbf exponents, coming from norms, may have lost digits."""
        if self._kernel.name != "rbf":
            return []
        errors = self._kernel.exponent_errors(norms, self._largest_norm)
        numbers: list[int] = np.flatnonzero(~(errors <= EXPONENT_TOLERANCE)).tolist()
        return numbers

    def _mend(
        self, exponents: FloatArray, first: int, number: int, block: Rows, places: IntArray
    ) -> None:
        """Put exact exponents where those of a doubtful row are not hopelessly small."""
        within = slice(block.indptr[number], block.indptr[number + 1])
        seen = places[within] >= 0
        values = block.values[within]
        error = self._kernel.exponent_errors(np.dot(values, values), self._largest_norm)
        n_real = max(0, min(len(exponents), len(self._rows) - first))
        near = np.flatnonzero(~(exponents[:n_real, number] + error < UNDERFLOW))
        known = Rows(np.array([0, seen.sum()]), places[within][seen].astype(np.int32), values[seen])
        distances = squared_distances(known, self._rows.take(first + near), self._width)
        distances += np.dot(values[~seen], values[~seen])
        exponents[near, number] = -self._kernel.gamma * distances
