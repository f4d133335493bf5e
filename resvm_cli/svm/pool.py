"""Support rows that members share: their kernel values with a block of rows, computed once for all.

A row's values depend neither on its neighbours nor on its place in a block. BLAS rounds by shape,
so dense products have one: a block is padded to one size and the pool taken in chunks of one size
that stay in the cache. Sparse products are added up entry by entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from resvm_cli.rows import Columns, FloatArray, IndexArray, IntArray, Rows
from resvm_cli.svm import _blocks
from resvm_cli.svm.kernels import (
    EXPONENT_TOLERANCE,
    UNDERFLOW,
    Kernel,
    powers,
    squared_distances,
)
from resvm_cli.svm.products import SparseMatrix, dense_matrix

# Multiples of what BLAS micro-kernels take at a time (24 rows on AVX-512, 8 or 16 columns): beyond
# one, the last rows or columns of a product go through another kernel, which rounds differently.
BLOCK_ROWS = 192
COLUMN_STEP = 16
CHUNK = 512
SPARSE_CELLS = 1 << 19  # of a sparse pool's products with the rows judged at a time


@dataclass(frozen=True, eq=False)
class Uses:
    """Which members use which row of the pool: those of row r at ``starts[r]:starts[r + 1]``."""

    starts: IntArray
    members: IndexArray
    coefficients: FloatArray
    n_members: int

    @property
    def entries(self) -> tuple[IndexArray, FloatArray]:
        return self.members, self.coefficients

    @property
    def rows(self) -> IntArray:
        """For each entry the row it is about."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

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
    """Support rows over their own columns, and who uses them by which kernel."""

    def __init__(
        self,
        uses: Sequence[tuple[Kernel, Uses]],
        rows: Rows,
        columns: Columns,
        *,
        dense: bool,
    ) -> None:
        """The rows' indices are places among the columns; products serve all kernels."""
        self._columns = columns
        self._rows = rows
        self._n_members = uses[0][1].n_members
        self._kernel = uses[0][0]  # the others differ by their parameters alone
        dense = dense and not self._kernel.counts_smaller
        padding = -len(rows) % COLUMN_STEP if dense else 0
        self._norms = np.concatenate([self._kernel.norms(rows), np.zeros(padding)])
        self._users = [_Users(kernel, some, padding, len(uses) == 1) for kernel, some in uses]
        self._matrix: FloatArray | SparseMatrix
        if dense:
            self._matrix = dense_matrix(rows, len(columns), padding)
            self.rows_at_once = self.rows_multiple = BLOCK_ROWS
        else:
            self._matrix = SparseMatrix(rows, len(columns))
            self.rows_at_once = max(_blocks.TOGETHER, min(BLOCK_ROWS, SPARSE_CELLS // len(rows)))
            self.rows_multiple = 1
        self._largest_norm = float(self._norms.max(initial=0.0))

    def sums(self, block: Rows) -> FloatArray:
        """Each member's weighted kernel values: rows x members, of ``rows_at_once`` at most."""
        norms = self._kernel.norms(block)
        width, products = self._products(block)
        query = np.zeros(width)
        query[: len(block)] = norms
        doubtful = [self._doubtful(users.kernel, norms) for users in self._users]
        sums = np.zeros((self._n_members, width))
        for first in range(0, len(self._norms), CHUNK):
            values = products(first, min(first + CHUNK, len(self._norms)))
            last = first + len(values)
            for users, rows in zip(self._users, doubtful, strict=True):
                lines = users.lines(first, last)
                if lines is None:
                    numbers, own = np.arange(first, last), values
                elif len(lines):
                    numbers, own = lines, np.take(values, lines - first, axis=0)
                else:
                    continue
                self._add(users, numbers, own, query, rows, block, sums)
        return sums[:, : len(block)].T

    def _add(
        self,
        users: _Users,
        numbers: IntArray,
        values: FloatArray,
        query: FloatArray,
        doubtful: list[int],
        block: Rows,
        sums: FloatArray,
    ) -> None:
        """Add to the members' sums what these support rows give, from their products."""
        kernel, norms, uses = users.kernel, self._norms[numbers], users.of(numbers)
        if kernel.name == "rbf" and not doubtful and _blocks.OWN_POWERS:
            _blocks.add_rbf(values, query, norms, kernel.gamma, *uses, sums)
            return
        if kernel.name == "rbf":
            kernel.exponents(values, norms, query)
            for number in doubtful:
                self._mend(kernel, values, numbers, number, block)
            powers(values)
        else:
            values = kernel.values(values, norms, query)
        _blocks.add(values, *uses, sums, len(query))

    def _products(self, block: Rows) -> tuple[int, Callable[[int, int], FloatArray]]:
        """How many columns a block of products has, and what gives those of some support rows."""
        matrix = self._matrix
        if isinstance(matrix, SparseMatrix):
            whole = matrix.products(
                *self._columns.looked_up(block), smaller=self._kernel.counts_smaller
            )
            return len(block), lambda first, last: whole[first:last]
        # features that the pool lacks end in column -1, the last; they count in the norms alone
        columns = np.zeros((matrix.shape[1] + 1, BLOCK_ROWS))
        columns[self._columns.places(block.indices), block.row_numbers] = block.values
        room = np.empty((min(CHUNK, len(matrix)), BLOCK_ROWS))
        return BLOCK_ROWS, lambda first, last: np.matmul(
            matrix[first:last], columns[:-1], out=room[: last - first]
        )

    def _doubtful(self, kernel: Kernel, norms: FloatArray) -> list[int]:
        """The rows whose rbf exponents, coming from norms, may have lost digits."""
        if kernel.name != "rbf":
            return []
        errors = kernel.exponent_errors(norms, self._largest_norm)
        numbers: list[int] = np.flatnonzero(~(errors <= EXPONENT_TOLERANCE)).tolist()
        return numbers

    def _mend(
        self, kernel: Kernel, exponents: FloatArray, numbers: IntArray, number: int, block: Rows
    ) -> None:
        """Put exact exponents where those of a doubtful row are not hopelessly small."""
        within = slice(block.indptr[number], block.indptr[number + 1])
        places = self._columns.places(block.indices[within])
        seen = places >= 0
        values = block.values[within]
        # by each pair's own norms: what others there are makes no difference
        errors = kernel.exponent_errors(np.dot(values, values), self._norms[numbers])
        near = ~(exponents[:, number] + errors < UNDERFLOW) & ~(errors <= EXPONENT_TOLERANCE)
        near = np.flatnonzero(near & (numbers < len(self._rows)))  # the rest is padding
        known = Rows(np.array([0, seen.sum()]), places[seen].astype(np.int32), values[seen])
        distances = squared_distances(known, self._rows.take(numbers[near]), len(self._columns))
        distances += np.dot(values[~seen], values[~seen])
        exponents[near, number] = -kernel.gamma * distances


class _Users:
    """The members of one kernel, and which support rows they use."""

    def __init__(self, kernel: Kernel, uses: Uses, padding: int, alone: bool) -> None:
        self.kernel = kernel
        self._uses = uses
        self._starts = np.concatenate([uses.starts, np.full(padding, uses.starts[-1])])
        # where there is one kernel, each row is used by it
        self._used = None if alone else np.flatnonzero(np.diff(self._starts))

    def lines(self, first: int, last: int) -> IntArray | None:
        """The numbers of the rows they use among these; None for all of them."""
        if self._used is None:
            return None
        low, high = np.searchsorted(self._used, [first, last])
        return self._used[low:high]

    def of(self, numbers: IntArray) -> tuple[IntArray, IndexArray, FloatArray]:
        """Starts, members and coefficients of these rows, each used."""
        uses = self._uses
        if self._used is None:
            return self._starts[numbers[0] : numbers[-1] + 2], *uses.entries
        # entries of rows that lie between are none: starts of one row are ends of the one before
        return np.append(self._starts[numbers], self._starts[numbers[-1] + 1]), *uses.entries
