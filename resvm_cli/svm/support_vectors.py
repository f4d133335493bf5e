"""Decision values of all members: kernel values of shared support vectors are computed only once.

A row's values depend neither on other rows nor on its position in a block. BLAS rounding depends on
the shape of a product, so dense products always have the same shape: blocks are padded to a fixed
size, and the pool is processed in fixed-size chunks that fit in the cache. Sparse products are
added up entry by entry, and so are those of linear members, which are stored as feature weights.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, Columns, FloatArray, IndexArray, IntArray, Rows
from resvm_cli.svm import _blocks
from resvm_cli.svm.kernels import EXPONENT_TOLERANCE, UNDERFLOW, Kernel, distances_to, exp_in_place
from resvm_cli.svm.products import SparseMatrix, dense_matrix

# Multiples of the tiles of BLAS micro-kernels (24 rows on AVX-512, 8 or 16 columns). For other
# sizes, a different micro-kernel handles the remainder and rounds differently.
BLOCK_ROWS = 192
COLUMN_STEP = 16
CHUNK = 512
SPARSE_CELLS = 1 << 19  # products of a sparse pool with one block
WEIGHT_CELLS = 1 << 16  # linear members' values for one block, which fit in the cache


@dataclass(frozen=True, eq=False)
class SupportIndex:
    """The members that use each pool row: entries ``starts[r]:starts[r + 1]`` for row r."""

    starts: IntArray
    members: IndexArray
    coefficients: FloatArray
    n_members: int

    @classmethod
    def from_entries(
        cls,
        rows: IntArray,
        members: IntArray,
        coefficients: FloatArray,
        n_rows: int,
        n_members: int,
    ) -> SupportIndex:
        """Build the index from one entry per member and support vector, in any order."""
        order = np.argsort(rows, kind="stable")
        starts = np.searchsorted(rows[order], np.arange(n_rows + 1))
        return cls(starts, members[order].astype(np.int32), coefficients[order], n_members)

    @property
    def rows(self) -> IntArray:
        """The pool row of each entry."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def only(self, kept: BoolArray) -> SupportIndex:
        starts = np.append(0, np.cumsum(kept))[self.starts]
        return SupportIndex(starts, self.members[kept], self.coefficients[kept], self.n_members)

    def has_one_row_per_member(self) -> bool:
        """Whether each member uses exactly one row, as linear members of saved models do."""
        return bool((np.bincount(self.members, minlength=self.n_members) == 1).all())


class Pool:
    """All members' support vectors, and the members that use them, by kernel."""

    def __init__(
        self,
        indexes: Sequence[tuple[Kernel, SupportIndex]],
        rows: Rows,
        columns: Columns,
        *,
        dense: bool,
        sparse_rows: bool = False,
    ) -> None:
        """Store the rows, whose indices are positions among ``columns``, in the fastest layout.

        All kernels are computed from the same products. With ``sparse_rows``, the rows to be scored
        have so many zeros that skipping them is faster than a dense product.
        """
        self._columns = columns
        self._rows = rows
        self._n_members = indexes[0][1].n_members
        self._kernel = indexes[0][0]  # the others differ only in their parameters
        filled = dense and self._kernel.uses_minimum
        dense = dense and not filled
        padding = -len(rows) % COLUMN_STEP if dense else 0
        self._norms = np.concatenate([self._kernel.norms(rows), np.zeros(padding)])
        self._users = [
            _Users(kernel, index, padding, alone=len(indexes) == 1) for kernel, index in indexes
        ]
        self._matrix: FloatArray | SparseMatrix | _Tiles
        self._set_sizes(dense)
        if dense and sparse_rows:
            self._matrix = _Tiles(rows, len(columns), padding)
            self.rows_multiple = 1
        elif dense:
            self._matrix = dense_matrix(rows, len(columns), padding)
        else:
            self._matrix = SparseMatrix(rows, len(columns), filled=filled)
        self._largest_norm = float(self._norms.max(initial=0.0))

    def _set_sizes(self, dense: bool) -> None:
        self.rows_at_once = self.rows_multiple = BLOCK_ROWS
        if not dense:
            most = min(BLOCK_ROWS, SPARSE_CELLS // max(1, len(self._rows)))
            self.rows_at_once, self.rows_multiple = max(_blocks.ROWS_TOGETHER, most), 1

    def sums(self, block: Rows) -> FloatArray:
        """Return weighted sums of kernel values: rows (at most ``rows_at_once``) x members."""
        norms = self._kernel.norms(block)
        largest = self._largest_norm
        inexact = [_inexact_rows(users.kernel, norms, largest) for users in self._users]
        width, products = self._products(block)
        query = np.zeros(width)
        query[: len(block)] = norms
        sums = np.zeros((self._n_members, width))
        for first in range(0, len(self._norms), CHUNK):
            values = products(first, min(first + CHUNK, len(self._norms)))
            for users, rows in zip(self._users, inexact, strict=True):
                numbers = users.rows_used(first, first + len(values))
                own = values if users.alone else np.take(values, numbers - first, axis=0)
                if len(numbers):
                    self._add(users, numbers, own, query, rows, block, sums)
        return sums[:, : len(block)].T

    def _add(
        self,
        users: _Users,
        numbers: IntArray,
        values: FloatArray,
        query: FloatArray,
        inexact: list[int],
        block: Rows,
        sums: FloatArray,
    ) -> None:
        kernel, norms = users.kernel, self._norms[numbers]
        if inexact:
            kernel.exponents(values, norms, query)
            for number in inexact:
                self._correct(kernel, values, numbers, number, block)
            exp_in_place(values)
        else:
            values = kernel.values(values, norms, query)
        _blocks.add(values, *users.entries(numbers), sums, len(query))

    def _products(self, block: Rows) -> tuple[int, Callable[[int, int], FloatArray]]:
        """Return the block's width, and a function that computes products with some pool rows."""
        matrix = self._matrix
        if isinstance(matrix, SparseMatrix):
            rows, table = self._columns.looked_up(block)
            whole = matrix.products(rows, table, minimum=self._kernel.uses_minimum)
            return len(block), lambda first, last: whole[first:last]
        if isinstance(matrix, _Tiles):
            return len(block), matrix.products(*self._columns.looked_up(block))
        columns = self._dense_columns(block)
        scratch = np.empty((min(CHUNK, len(matrix)), BLOCK_ROWS))
        return BLOCK_ROWS, lambda first, last: np.matmul(
            matrix[first:last], columns, out=scratch[: last - first]
        )

    def _dense_columns(self, block: Rows) -> FloatArray:
        """Return a block's rows as padded columns, without features that the pool lacks."""
        columns = np.zeros((len(self._columns) + 1, BLOCK_ROWS))
        columns[self._columns.places(block.indices), block.row_numbers] = block.values
        return columns[:-1]

    def _correct(
        self, kernel: Kernel, exponents: FloatArray, numbers: IntArray, number: int, block: Rows
    ) -> None:
        """Recompute the inaccurate exponents of one row in the block, unless exp is 0 anyway."""
        row = block.slice(number, number + 1)
        # use each pair's own norms, so that other rows have no influence
        norm = kernel.norms(row) if kernel.uses_minimum else np.dot(row.values, row.values)
        errors = kernel.exponent_errors(norm, self._norms[numbers])
        near = ~(exponents[:, number] + errors < UNDERFLOW) & ~(errors <= EXPONENT_TOLERANCE)
        near = np.flatnonzero(near & (numbers < len(self._rows)))  # omit the padding
        distances = distances_to(row, self._rows.take(numbers[near]), self._columns, kernel)
        exponents[near, number] = -kernel.gamma * distances


def _inexact_rows(kernel: Kernel, norms: FloatArray, largest: float) -> list[int]:
    """Return the rows whose exponents may be inaccurate when computed from norms."""
    if not kernel.uses_distances:
        return []
    errors = kernel.exponent_errors(norms, largest)
    numbers: list[int] = np.flatnonzero(~(errors <= EXPONENT_TOLERANCE)).tolist()
    return numbers


@dataclass(frozen=True, eq=False)
class WeightedMember:
    """A member with feature weights, and its own support vectors."""

    kernel: Kernel
    rows: Rows  # its support vectors, multiplied by the weights
    coefficients: FloatArray
    weights: Rows  # the factor of each feature, as one row


class WeightedPool(Pool):
    """The support vectors of members that weight features, one member after another.

    The product of a support vector s with a weighted row w x equals the product of w s with x.
    Rows are therefore not weighted for each member; only their norms are computed separately.
    """

    def __init__(self, members: Sequence[WeightedMember], columns: Columns, *, dense: bool) -> None:
        self._columns = columns
        self._members = members
        self._n_members = len(members)
        multiple = COLUMN_STEP if dense else 1
        parts = [_padded(each.rows, -len(each.rows) % multiple) for each in members]
        self._bounds = np.cumsum([0, *map(len, parts)])
        rows = columns.placed(Rows.concatenate(parts))
        sizes = [len(each.rows) for each in members]
        index = SupportIndex.from_entries(
            np.concatenate(
                [
                    np.arange(size) + first
                    for size, first in zip(sizes, self._bounds[:-1], strict=True)
                ]
            ),
            np.repeat(np.arange(len(members)), sizes),
            np.concatenate([each.coefficients for each in members]),
            len(rows),
            len(members),
        )
        self._rows = rows
        self._kernel = members[0].kernel
        self._norms = self._kernel.norms(rows)
        self._users = [_Users(each.kernel, index, 0, alone=True) for each in members]
        times = [part.times(each.weights) for part, each in zip(parts, members, strict=True)]
        products = columns.placed(Rows.concatenate(times))
        factors = columns.placed(Rows.concatenate([each.weights for each in members]))
        squares = Rows(factors.indptr, factors.indices, factors.values * factors.values)
        self._matrix: FloatArray | SparseMatrix | _Tiles
        self._squares: FloatArray | SparseMatrix
        self._set_sizes(dense)
        matrix = dense_matrix if dense else SparseMatrix
        self._matrix, self._squares = (matrix(each, len(columns)) for each in (products, squares))

    def sums(self, block: Rows) -> FloatArray:
        width, products, norms = self._products_and_norms(block)
        sums = np.zeros((self._n_members, width))
        for number, (first, last) in enumerate(itertools.pairwise(self._bounds.tolist())):
            member, query = self._members[number], norms(number)
            largest = float(self._norms[first:last].max(initial=0.0))
            inexact = _inexact_rows(member.kernel, query[: len(block)], largest)
            own = block
            if inexact:  # the square of a feature that the member ignores may be infinite
                own = block.times(member.weights)
                query[inexact] = member.kernel.norms(own)[inexact]
            values = products(first, last)
            users, numbers = self._users[number], np.arange(first, last)
            self._add(users, numbers, values, query, inexact, own, sums)
        return sums[:, : len(block)].T

    def _products_and_norms(
        self, block: Rows
    ) -> tuple[int, Callable[[int, int], FloatArray], Callable[[int], FloatArray]]:
        """Return the block's width, and functions for products and for each member's norms."""
        if isinstance(self._matrix, SparseMatrix) or isinstance(self._squares, SparseMatrix):
            assert isinstance(self._squares, SparseMatrix)
            width, products = self._products(block)
            with np.errstate(over="ignore"):
                squared = Rows(block.indptr, block.indices, block.values * block.values)
            rows, table = self._columns.looked_up(squared)
            lines = self._squares.products(rows, table)
            return width, products, lines.__getitem__
        matrix, squares = self._matrix, self._squares
        assert not isinstance(matrix, _Tiles)
        columns = self._dense_columns(block)
        with np.errstate(over="ignore"):
            squared_columns = columns * columns
        scratch = np.empty((int(np.diff(self._bounds).max()), BLOCK_ROWS))
        return (
            BLOCK_ROWS,
            lambda first, last: np.matmul(matrix[first:last], columns, out=scratch[: last - first]),
            lambda number: squares[number] @ squared_columns,
        )


class OwnPools:
    """Members that weight features and have a kernel of common parts: a pool for each.

    The trick of ``WeightedPool`` works only for products.
    """

    rows_multiple = 1

    def __init__(self, members: Sequence[WeightedMember], columns: Columns, *, dense: bool) -> None:
        self._pools = []
        for each in members:
            count, starts = len(each.rows), np.arange(len(each.rows) + 1)
            index = SupportIndex(starts, np.zeros(count, np.int32), each.coefficients, 1)
            pool = Pool([(each.kernel, index)], columns.placed(each.rows), columns, dense=dense)
            self._pools.append((pool, each.weights))
        self.rows_at_once = min(pool.rows_at_once for pool, _ in self._pools)

    def sums(self, block: Rows) -> FloatArray:
        return np.hstack([pool.sums(block.times(weights)) for pool, weights in self._pools])


def _padded(rows: Rows, count: int) -> Rows:
    return Rows(
        np.append(rows.indptr, np.repeat(rows.indptr[-1:], count)), rows.indices, rows.values
    )


class _Users:
    """The members with one kernel, and their support vectors (all of the pool if ``alone``)."""

    def __init__(self, kernel: Kernel, index: SupportIndex, padding: int, *, alone: bool) -> None:
        self.kernel = kernel
        self.alone = alone
        self._index = index
        self._starts = np.concatenate([index.starts, np.full(padding, index.starts[-1])])
        self._used = np.flatnonzero(np.diff(self._starts))

    def rows_used(self, first: int, last: int) -> IntArray:
        """Return the numbers of the rows in [first, last) that these members use."""
        if self.alone:
            return np.arange(first, last)
        low, high = np.searchsorted(self._used, [first, last])
        return self._used[low:high]

    def entries(self, numbers: IntArray) -> tuple[IntArray, IndexArray, FloatArray]:
        if self.alone:  # numbers are consecutive
            starts = self._starts[numbers[0] : numbers[-1] + 2]
        else:  # unused rows have no entries, so each row ends where the next one starts
            starts = np.append(self._starts[numbers], self._starts[numbers[-1] + 1])
        return starts, self._index.members, self._index.coefficients


class LinearPool:
    """Linear members as weight vectors over the features that any member uses."""

    rows_multiple = 1

    def __init__(self, rows: Rows, index: SupportIndex, columns: Columns, *, dense: bool) -> None:
        """Compute the weights from support vectors whose indices are positions in ``columns``."""
        self._columns = columns
        self._n_members = index.n_members
        self._width = index.n_members + -index.n_members % _blocks.STEP
        self.rows_at_once = max(1, WEIGHT_CELLS // index.n_members)
        self._weights: FloatArray | SparseMatrix
        if dense:
            self._weights = _tiled(_dense_weights(rows, index, len(columns), self._width))
        else:
            self._weights = _sparse_weights(rows, index, columns)

    def sums(self, rows: Rows) -> FloatArray:
        """Multiply the rows by the weights: rows x members."""
        rows, table = self._columns.looked_up(rows)
        if isinstance(self._weights, SparseMatrix):
            return self._weights.products(rows, table).T
        sums = np.empty((len(rows), self._width))
        entries = rows.indptr, rows.indices, rows.values
        _blocks.multiply_tiles(*entries, table, self._weights, sums, self._width, False)
        return sums[:, : self._n_members]


def _dense_weights(rows: Rows, index: SupportIndex, n_columns: int, width: int) -> FloatArray:
    """Return the members' weights, features x members, padded with zeros to ``width`` members."""
    if index.has_one_row_per_member():  # the product below would take quadratic time
        alone: FloatArray = np.zeros((n_columns, width))
        own = rows.take(index.rows)
        members = np.repeat(index.members, own.lengths)
        alone[own.indices, members] += own.values * np.repeat(index.coefficients, own.lengths)
        return alone
    coefficients = np.zeros((len(rows), width))
    np.add.at(coefficients, (index.rows, index.members), index.coefficients)
    weights: FloatArray = dense_matrix(rows, n_columns).T @ coefficients
    return weights


def _tiled(weights: FloatArray) -> FloatArray:
    """Rearrange the weights into tiles of members, then steps, each with one line per feature."""
    height, width = weights.shape
    tiles = _aligned(height * width)
    for first, last in _cuts(width):
        tiles[first * height : last * height] = weights[:, first:last].reshape(-1)
    return tiles


def _cuts(width: int) -> Iterator[tuple[int, int]]:
    whole = width - width % _blocks.TILE
    cuts = [*range(0, whole, _blocks.TILE), *range(whole, width, _blocks.STEP), width]
    return itertools.pairwise(cuts)


def _aligned(size: int) -> FloatArray:
    """Return an array aligned to a cache line: vectors that cross lines take twice as long."""
    array: FloatArray = np.empty(size + 8)
    first = -array.ctypes.data % 64 // 8
    return array[first : first + size]


class _Tiles:
    """A dense pool laid out for multiplication by sparse rows, like ``LinearPool``."""

    def __init__(self, rows: Rows, n_columns: int, padding: int) -> None:
        self._n_columns = n_columns
        self._tiles = _aligned((len(rows) + padding) * n_columns)
        for first, last in _cuts(len(rows) + padding):
            part = rows.slice(min(first, len(rows)), min(last, len(rows)))
            lines = dense_matrix(part, n_columns, last - first - len(part)).T
            self._tiles[first * n_columns : last * n_columns] = lines.reshape(-1)

    def products(self, rows: Rows, table: IndexArray) -> Callable[[int, int], FloatArray]:
        """Return a function that multiplies some rows of the pool by these rows."""
        scratch = np.empty((CHUNK, len(rows)))
        entries = rows.indptr, rows.indices, rows.values

        def multiply(first: int, last: int) -> FloatArray:
            out = scratch[: last - first]
            tiles = self._tiles[first * self._n_columns : last * self._n_columns]
            _blocks.multiply_tiles(*entries, table, tiles, out, last - first, True)
            return out

        return multiply


def _sparse_weights(rows: Rows, index: SupportIndex, columns: Columns) -> SparseMatrix:
    """Return the members' weights as a sparse matrix, members x features."""

    if index.has_one_row_per_member():  # entries are already sorted and unique
        order = np.argsort(index.members)
        numbers = index.rows[order]
        own = rows if np.array_equal(numbers, np.arange(len(rows))) else rows.take(numbers)
        values = own.values + 0.0  # -0.0 becomes 0.0, as in the sums below
        if not (index.coefficients == 1.0).all():
            values *= np.repeat(index.coefficients[order], own.lengths)
            values += 0.0
        return SparseMatrix(Rows(own.indptr, own.indices, values), len(columns))
    used = rows.take(index.rows)
    members = np.repeat(index.members, used.lengths).astype(np.int64)
    values = used.values * np.repeat(index.coefficients, used.lengths)
    cells, cell = np.unique(members * len(columns) + used.indices, return_inverse=True)
    weights = np.bincount(cell, weights=values, minlength=len(cells)).astype(np.float64)
    members, features = np.divmod(cells, max(1, len(columns)))
    starts = np.searchsorted(members, np.arange(index.n_members + 1))
    return SparseMatrix(Rows(starts, features.astype(np.int32), weights), len(columns))
