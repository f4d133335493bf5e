"""Sparse rows in plain numpy, and summaries of data sets.

Column numbers are the feature indices in the file, unshifted: in a file that counts from 1, column
0 is empty. A model therefore uses the same indices as its data.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.records import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

FloatArray: TypeAlias = "npt.NDArray[np.float64]"
IntArray: TypeAlias = "npt.NDArray[np.int64]"
BoolArray: TypeAlias = "npt.NDArray[np.bool_]"
IndexArray: TypeAlias = "npt.NDArray[np.int32]"
Hashes: TypeAlias = "npt.NDArray[np.uint64]"
Number = TypeVar("Number", bound="np.integer[Any] | np.floating[Any]")

MAX_INDEX = 2**31 - 1
SUM_CHUNK = 1 << 16
# The time to build a lookup table grows with its size, so it pays off only for many lookups.
SMALL_TABLE = 1 << 12
LASTING_TABLE = 1 << 20
TABLE_REACH = 8


@dataclass(frozen=True, eq=False)
class Rows:
    """Compressed sparse rows: row r holds entries ``indptr[r]:indptr[r + 1]``."""

    indptr: IntArray
    indices: IndexArray
    values: FloatArray

    @classmethod
    def empty(cls, n_rows: int = 0) -> Rows:
        """Return rows without entries."""
        return cls(np.zeros(n_rows + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))

    @classmethod
    def one_row(cls, indices: IntArray | IndexArray, values: FloatArray) -> Rows:
        return cls(np.array([0, len(indices)]), indices.astype(np.int32), values)

    @classmethod
    def from_dense(cls, matrix: npt.ArrayLike, first_index: int = 1) -> Rows:
        """Convert a dense matrix, omitting zeros; its first column gets ``first_index``."""
        dense = np.asarray(matrix, np.float64)
        row, column = np.nonzero(dense)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(dense)))])
        return cls(
            indptr.astype(np.int64), (column + first_index).astype(np.int32), dense[row, column]
        )

    @classmethod
    def from_matrix(cls, matrix: Any, first_index: int = 1) -> Rows:
        """Convert a dense or scipy sparse matrix; explicit zeros of a sparse matrix are kept."""
        if not hasattr(matrix, "tocsr"):
            return cls.from_dense(matrix, first_index)
        compressed = matrix.tocsr()
        if not compressed.has_canonical_format:
            compressed = compressed.copy()
            compressed.sum_duplicates()
        return cls(
            compressed.indptr.astype(np.int64),
            (compressed.indices + first_index).astype(np.int32),
            compressed.data.astype(np.float64),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Rows]) -> Rows:
        if len(parts) < 2:
            return parts[0] if parts else cls.empty()
        lengths = np.concatenate([part.lengths for part in parts])
        return cls(
            _ends_to_indptr(np.cumsum(lengths)),
            np.concatenate([part.indices for part in parts]),
            np.concatenate([part.values for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.indptr)

    @property
    def max_index(self) -> int:
        """The largest index, or -1 if there are no entries."""
        return int(self.indices.max()) if len(self.indices) else -1

    @property
    def min_index(self) -> int:
        """The smallest index, or the largest possible one if there are no entries."""
        return int(self.indices.min()) if len(self.indices) else MAX_INDEX

    @property
    def row_numbers(self) -> IntArray:
        """For each entry, the row it belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def slice(self, start: int, stop: int) -> Rows:
        begin, end = self.indptr[start], self.indptr[stop]
        return Rows(
            self.indptr[start : stop + 1] - begin, self.indices[begin:end], self.values[begin:end]
        )

    def take(self, numbers: IntArray) -> Rows:
        """Return the rows with these numbers, in this order; numbers may repeat."""
        lengths = self.lengths[numbers]
        indptr = _ends_to_indptr(np.cumsum(lengths))
        source = np.arange(indptr[-1]) + np.repeat(self.indptr[numbers] - indptr[:-1], lengths)
        return Rows(indptr, self.indices[source], self.values[source])

    def entries(self, kept: npt.NDArray[np.bool_]) -> Rows:
        """Return the same rows with only the entries where ``kept`` is true."""
        if kept.all():
            return self
        before = _ends_to_indptr(np.cumsum(kept))
        return Rows(before[self.indptr], self.indices[kept], self.values[kept])

    def without_zeros(self) -> Rows:
        return self.entries(self.values != 0)

    def times(self, factors: Rows) -> Rows:
        """Multiply features by their factors (one row); drop features without a factor."""
        place = Columns(factors.indices).places(self.indices)
        rows, place = self.entries(place >= 0), place[place >= 0]
        with np.errstate(over="ignore"):
            values = rows.values * factors.values[place]
        return Rows(rows.indptr, rows.indices, values).without_zeros()

    def squared_norms(self) -> FloatArray:
        """Return each row's sum of squares, added in entry order, independently of other rows."""
        with np.errstate(over="ignore"):
            squares = self.values * self.values
        return np.bincount(self.row_numbers, weights=squares, minlength=len(self)).astype(float)

    def content_keys(self) -> list[bytes]:
        """Return a byte string for each row; two are equal if and only if their rows are."""
        indices, values = self.indices.tobytes(), self.values.tobytes()
        bounds = self.indptr.tolist()
        return [
            indices[4 * a : 4 * b] + values[8 * a : 8 * b] for a, b in itertools.pairwise(bounds)
        ]

    def content_numbers(self) -> IntArray:
        """Number the distinct rows by first appearance; equal rows get the same number."""
        sums = self._content_sums()
        order = np.argsort(sums, kind="stable")
        equal = sums[order[1:]] == sums[order[:-1]]
        if not equal.any():
            return np.arange(len(self))
        # rows with different sums differ; only rows with equal sums are compared in full
        doubtful = np.sort(order[np.append(equal, False) | np.append(False, equal)])
        first: dict[bytes, int] = {}
        keys = self.take(doubtful).content_keys()
        earliest = np.arange(len(self))
        earliest[doubtful] = [
            first.setdefault(key, row) for key, row in zip(keys, doubtful.tolist(), strict=True)
        ]
        numbers = np.cumsum(earliest == np.arange(len(self))) - 1
        return numbers[earliest]

    def content_hashes(self) -> Hashes:
        """Return a hash for each row that ignores explicit zeros; 0 if the row has no features."""
        return self.without_zeros()._content_sums()

    def _content_sums(self) -> Hashes:
        """Return a hash for each row: equal for equal rows, almost always different otherwise."""
        sums = np.zeros(len(self), np.uint64)
        stop = 0
        while stop < len(self):  # process as many entries at a time as fit in the cache
            start = stop
            stop = int(np.searchsorted(self.indptr, self.indptr[start] + SUM_CHUNK, "right")) - 1
            stop = max(stop, start + 1)
            entries = slice(self.indptr[start], self.indptr[stop])
            terms = self.indices[entries].astype(np.uint64) * np.uint64(0xD1B54A32D192ED03)
            terms ^= self.values[entries].view(np.uint64)
            terms *= np.uint64(0x9E3779B97F4A7C15)
            terms ^= terms >> np.uint64(29)
            filled = start + np.flatnonzero(np.diff(self.indptr[start : stop + 1]))
            if len(filled):
                starts = self.indptr[filled] - self.indptr[start]
                sums[filled] = np.add.reduceat(terms, starts)
        return sums


def distinct(numbers: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return the sorted distinct numbers, without importing numpy.ma as np.unique does."""
    ordered = np.sort(numbers, axis=None)
    first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def quantile(values: FloatArray, fraction: float, *, weibull: bool = False) -> FloatArray:
    """Return a quantile along the first axis, bit-for-bit equal to that of np.quantile.

    With ``weibull``, the k-th of n values is the k / (n + 1) quantile, not the (k - 1) / (n - 1)
    quantile. np.quantile would import numpy.ma, which slows down short runs.
    """
    last = len(values) - 1
    position = (last + 1) * fraction + fraction - 1 if weibull else last * fraction
    below, above = (min(max(math.floor(position) + step, 0), last) for step in (0, 1))
    ordered = np.partition(values, [below, above, last], axis=0)
    low, high, part = ordered[below], ordered[above], position - math.floor(position)
    found = low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)
    return np.where(np.isnan(ordered[last]), np.nan, found)


def median(numbers: npt.NDArray[Any]) -> float:
    """Return the median like np.median, but without importing numpy.ma."""
    ordered = np.sort(numbers)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2.0


def _ends_to_indptr(ends: IntArray) -> IntArray:
    indptr = np.zeros(len(ends) + 1, np.int64)
    indptr[1:] = ends
    return indptr


class Columns:
    """The sorted distinct feature indices of some entries, and a table of their positions."""

    def __init__(self, indices: IndexArray, *, lasting: bool = False) -> None:
        """Collect the indices; with ``lasting``, a larger table is built for many lookups."""
        reach = int(indices.max()) + 2 if len(indices) else 1
        worth = LASTING_TABLE if lasting else SMALL_TABLE
        self._table: IntArray | None = None
        if reach <= max(worth, TABLE_REACH * len(indices)):
            seen = np.zeros(reach, bool)
            seen[indices] = True
            self.present = np.flatnonzero(seen)
            self._table = np.full(reach, -1, np.int64)  # its last entry is always -1
            self._table[self.present] = np.arange(len(self.present))
        else:
            self.present = distinct(indices).astype(np.int64)

    def __len__(self) -> int:
        return len(self.present)

    def looked_up(self, rows: Rows) -> tuple[Rows, IndexArray]:
        """Return rows and a table from index to column, for lookups in C code.

        An index that is beyond the end of the table, or maps to -1, is not one of the columns.
        """
        return self.placed(rows) if self._table is None else rows, self._short_table

    @cached_property
    def _short_table(self) -> IndexArray:
        table = np.arange(len(self)) if self._table is None else self._table
        return table.astype(np.int32)

    def placed(self, rows: Rows) -> Rows:
        """Return the rows with indices replaced by positions among the columns."""
        return Rows(rows.indptr, self.places(rows.indices).astype(np.int32), rows.values)

    def places(self, indices: IndexArray) -> IntArray:
        """Return the position of each index among the columns, or -1 if it is not one of them."""
        if self._table is not None:
            if len(indices) and int(indices.max()) >= len(self._table):
                indices = np.minimum(indices, len(self._table) - 1)
            return self._table[indices]
        place = np.searchsorted(self.present, indices)
        place[place == len(self.present)] = 0
        return np.where(self.present[place] == indices, place, -1)


@dataclass(frozen=True)
class _Moments:
    """Count, mean and sum of squared deviations, which can be combined without cancellation."""

    count: int = 0
    mean: float = 0.0
    deviations: float = 0.0

    @classmethod
    def from_values(cls, values: FloatArray) -> _Moments:
        if not len(values):
            return cls()
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(values.mean())
            apart = values - mean
            left = float(apart.sum())  # the rounding error of the mean
            deviations = float((apart * apart).sum()) - left * left / len(values)
            return cls(len(values), mean + left / len(values), max(0.0, deviations))

    def joined(self, other: _Moments) -> _Moments:
        # Chan, Golub and LeVeque
        if not other.count:
            return self
        count = self.count + other.count
        apart = other.mean - self.mean
        return _Moments(
            count,
            self.mean + apart * other.count / count,
            self.deviations + other.deviations + apart * apart * self.count * other.count / count,
        )


class RowDigest:
    """The SHA-256 of parsed rows, regardless of block sizes and number formatting."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._hashes = [hashlib.sha256() for _ in range(3)]

    def add(self, rows: Rows) -> None:
        rows = rows.without_zeros()
        self.n_rows += len(rows)
        for digest, column, kind in zip(
            self._hashes,
            (rows.lengths, rows.indices, rows.values),
            ("<i8", "<i4", "<f8"),
            strict=True,
        ):
            digest.update(np.ascontiguousarray(column, dtype=kind).data)

    def digest(self) -> str:
        whole = hashlib.sha256()
        for part in self._hashes:
            whole.update(part.digest())
        return whole.hexdigest()


class DataSummary:
    """A one-pass summary of a data set: row count, largest index, moments, digest.

    The result does not depend on how the rows are split into blocks: moments are computed over
    chunks of a fixed size, and the digest over the stream of numbers.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.n_nonzeros = 0
        self.min_index, self.max_index = MAX_INDEX, -1  # the values if there are no entries
        self._moments = _Moments()
        self.low, self.high = np.inf, -np.inf  # the smallest and largest nonzero entries
        self._buffer = np.empty(SUM_CHUNK)
        self._buffered = 0
        self._digest = RowDigest()

    def add(self, rows: Rows) -> None:
        """Add rows. Explicit zeros count toward the largest index but not the digest."""
        self.min_index = min(self.min_index, rows.min_index)
        self.max_index = max(self.max_index, rows.max_index)
        rows = rows.without_zeros()
        self.n_rows += len(rows)
        self.n_nonzeros += len(rows.values)
        self._digest.add(rows)
        if len(rows.values):
            self.low = min(self.low, float(rows.values.min()))
            self.high = max(self.high, float(rows.values.max()))
        position = 0
        while position < len(rows.values):
            count = min(SUM_CHUNK - self._buffered, len(rows.values) - position)
            self._buffer[self._buffered : self._buffered + count] = rows.values[
                position : position + count
            ]
            position += count
            self._buffered += count
            if self._buffered == SUM_CHUNK:
                self._moments = self.moments()
                self._buffered = 0

    def moments(self) -> _Moments:
        """Return the count, mean and sum of squared deviations of all nonzero entries."""
        return self._moments.joined(_Moments.from_values(self._buffer[: self._buffered]))

    def digest(self) -> str:
        return self._digest.digest()


def variance(summaries: Sequence[DataSummary], n_features: int) -> float:
    """Return the variance of all entries in these data sets combined, including zeros."""
    n_entries = sum(summary.n_rows for summary in summaries) * n_features
    total = _Moments()
    for summary in summaries:
        total = total.joined(summary.moments())
    low = min(summary.low for summary in summaries)
    high = max(summary.high for summary in summaries)
    if n_entries == 0 or total.count == 0 or (total.count == n_entries and low == high):
        return 0.0
    spread = total.joined(_Moments(n_entries - total.count)).deviations / n_entries
    if not np.isfinite(spread):
        raise DataError(
            f"values range from {low:g} to {high:g}: their variance is too large for a double",
            "scale the features, or set `gamma` to a number",
        )
    return spread
