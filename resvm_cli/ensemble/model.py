"""Members as one model: pooled support rows, member decision values, votes and d(x).

Every product has a fixed shape: rows go through in blocks padded to one size, because BLAS rounds
by shape. So a row's value depends neither on its neighbours nor on its place in a block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from resvm_cli.dataset import FloatArray, IndexArray, IntArray, Rows
from resvm_cli.ensemble.scaling import Scaling
from resvm_cli.svm.kernels import (
    EXPONENT_TOLERANCE,
    UNDERFLOW,
    Kernel,
    squared_distances,
)

# Multiples of what BLAS micro-kernels take at a time (24 rows on AVX-512, 8 or 16 columns): beyond
# one, the last rows or columns of a product go through another kernel, which rounds differently.
BLOCK_ROWS = 192
COLUMN_STEP = 16
ALWAYS_DENSE_CELLS = 1 << 22
NEVER_DENSE_CELLS = 1 << 26
SPARSE_BELOW = 0.1  # share of non-zeros
TABLE_CELLS = 1 << 20


@dataclass(frozen=True, eq=False)
class Member:
    """One base model: psi(x) = sum coefficients * K(pool[support], x) - rho."""

    support: IntArray  # row numbers in the ensemble's pool, positives first
    coefficients: FloatArray
    rho: float
    n_positive: int  # how many of the support rows are of class P


@dataclass(frozen=True, eq=False)
class Ensemble:
    """All members, over the rows they share."""

    kernel: Kernel
    pool: Rows
    members: Sequence[Member]
    single: bool  # cwsvm: d is the member's own value

    @property
    def default_threshold(self) -> float:
        return 0.0 if self.single else 0.5


@dataclass(frozen=True, eq=False)
class Decisions:
    """What the ensemble says of some rows."""

    member_values: FloatArray  # rows x members
    votes: FloatArray
    sums: FloatArray
    values: FloatArray  # d(x)
    n_members: IntArray  # how many members each row was judged by

    def labels(self, threshold: float) -> IntArray:
        """+1 where d(x) exceeds the threshold, else -1 (paper, eq. 6)."""
        return np.where(self.values > threshold, 1, -1)

    def values_without_ties(self) -> FloatArray:
        """d(x) with rows of equal, divided votes ordered by the sum of the members' values.

        The shift is less than half the smallest step between two vote fractions, so no row passes
        one with more votes.
        """
        divided = (self.votes > 0) & (self.votes < 1)
        # the logistic function saturates where |s| passes 37, which sums over members do
        sigmoid = (1.0 + self.sums / (1.0 + np.abs(self.sums))) / 2
        shift = (1.0 - sigmoid) / (4 * np.maximum(self.n_members, 1))
        return np.where(divided, self.votes - shift, self.values)


def decide(member_values: FloatArray, single: bool) -> Decisions:
    """Votes and decision values from the members' values (paper, eq. 4 and 5)."""
    n_models = member_values.shape[1]
    balance = np.sign(member_values).sum(axis=1)
    votes = (n_models + balance) / (2 * n_models)
    sums = member_values.sum(axis=1)
    if single:
        values = member_values[:, 0].copy()
    else:
        values = np.where(votes <= 0, sums, np.where(votes >= 1, 1.0 + sums, votes))
    return Decisions(member_values, votes, sums, values, np.full(len(votes), n_models))


def numeric_fingerprint() -> str:
    """A short digest of how this machine rounds a fixed product and its exponentials."""
    steps = np.arange(BLOCK_ROWS * 96, dtype=np.float64).reshape(BLOCK_ROWS, 96)
    wave = (steps * 0.37) % 1.0 - 0.5
    product = wave @ wave[:64].T
    return hashlib.sha256(np.exp(product).tobytes() + product.tobytes()).hexdigest()[:16]


class Predictor:
    """An ensemble made ready to judge rows."""

    def __init__(self, ensemble: Ensemble, scaling: Scaling | None = None) -> None:
        self.ensemble = ensemble
        self._scaling = scaling
        self._kernel = ensemble.kernel
        self._rho = np.array([member.rho for member in ensemble.members])
        pool, coefficients = _join(ensemble)
        self._columns = _Columns(pool.indices)
        place = self._columns.places(pool.indices)
        self._pool = Rows(pool.indptr, place.astype(np.int32), pool.values)
        norms = self._pool.squared_norms()
        self._largest_norm = float(norms.max(initial=0.0))
        matrix = _matrix(self._pool, len(self._columns))
        self._coefficients: Any = None
        if self._kernel.name != "linear":
            self._factor = matrix.T
            self._coefficients = coefficients
        elif isinstance(matrix, np.ndarray):
            # one weight vector a member instead of a kernel block
            self._factor = matrix.T @ coefficients
        else:
            self._factor = matrix.T @ _as_sparse(coefficients)
        if isinstance(self._factor, np.ndarray):
            self._factor = _padded(self._factor)
        else:
            self._factor = self._factor.tocsr()
        n_columns = self._factor.shape[1]
        self._pool_norms = np.concatenate([norms, np.zeros(max(0, n_columns - len(norms)))])
        if isinstance(self._coefficients, np.ndarray):
            self._coefficients = _padded(self._coefficients, n_columns)

    def decisions(self, rows: Rows) -> Decisions:
        """Judge rows, block by block."""
        parts = [
            self._block(rows.slice(start, min(start + BLOCK_ROWS, len(rows))))
            for start in range(0, len(rows), BLOCK_ROWS)
        ]
        if len(parts) == 1:
            return parts[0]
        return Decisions(
            np.concatenate([part.member_values for part in parts]),
            np.concatenate([part.votes for part in parts]),
            np.concatenate([part.sums for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.n_members for part in parts]),
        )

    def _block(self, rows: Rows) -> Decisions:
        count = len(rows)
        if self._scaling is not None:
            rows = self._scaling.apply(rows)
        place = self._columns.places(rows.indices)
        seen = place >= 0
        known = rows.entries(seen)
        known = Rows(known.indptr, place[seen].astype(np.int32), known.values)
        with np.errstate(over="ignore", invalid="ignore"):
            values = self._products(known)
            if self._coefficients is not None:
                norms = np.zeros(BLOCK_ROWS)
                norms[:count] = rows.squared_norms()  # unseen features count in distances
                if self._kernel.name == "rbf":
                    values = self._kernel.exponents(values, norms, self._pool_norms)
                    self._mend(values, known, rows.entries(~seen), norms[:count])
                    np.exp(values, out=values)
                else:
                    values = self._kernel.values(values, norms, self._pool_norms)
                values = np.asarray(values @ self._coefficients)
            values = values[:, : len(self._rho)] - self._rho
            whole = decide(values, self.ensemble.single)
        return Decisions(
            whole.member_values[:count],
            whole.votes[:count],
            whole.sums[:count],
            whole.values[:count],
            whole.n_members[:count],
        )

    def _products(self, known: Rows) -> FloatArray:
        """Dot products of a padded block with the pool, or with the weight vectors."""
        width = len(self._columns)
        if isinstance(self._factor, np.ndarray):
            dense = np.zeros((BLOCK_ROWS, width))
            dense[known.row_numbers, known.indices] = known.values
            return np.asarray(dense @ self._factor)
        padding = np.full(BLOCK_ROWS - len(known), known.indptr[-1])
        indptr = np.concatenate([known.indptr, padding])
        return np.asarray((_sparse(known, indptr, width) @ self._factor).toarray())

    def _mend(self, exponents: FloatArray, known: Rows, unseen: Rows, norms: FloatArray) -> None:
        """Put exact rbf exponents where those from norms have lost digits and are not hopeless."""
        errors = self._kernel.exponent_errors(norms, self._largest_norm)
        for number in np.flatnonzero(~(errors <= EXPONENT_TOLERANCE)).tolist():
            hopeless = exponents[number, : len(self._pool)] + errors[number] < UNDERFLOW
            near = np.flatnonzero(~hopeless)
            distances = squared_distances(
                known.slice(number, number + 1), self._pool.take(near), len(self._columns)
            )
            distances += unseen.slice(number, number + 1).squared_norms()[0]
            exponents[number, near] = -self._kernel.gamma * distances


class _Columns:
    """The features that the pool has, in order, and the place of any index among them."""

    def __init__(self, indices: IndexArray) -> None:
        reach = int(indices.max()) + 2 if len(indices) else 1
        self._table: IntArray | None = None
        if reach <= max(TABLE_CELLS, 4 * len(indices)):
            present = np.zeros(reach, bool)
            present[indices] = True
            self._columns = np.flatnonzero(present)
            self._table = np.full(reach, -1, np.int64)  # its last entry is always -1
            self._table[self._columns] = np.arange(len(self._columns))
        else:
            self._columns = np.unique(indices)

    def __len__(self) -> int:
        return len(self._columns)

    def places(self, indices: IndexArray) -> IntArray:
        """For each index its place among the columns, -1 where the pool lacks it."""
        if self._table is not None:
            return self._table[np.minimum(indices, len(self._table) - 1)]
        place = np.searchsorted(self._columns, indices)
        place[place == len(self._columns)] = 0
        return np.where(self._columns[place] == indices, place, -1)


def _join(ensemble: Ensemble) -> tuple[Rows, Any]:
    """The support rows of all members, equal rows once, in order of appearance; coefficients.

    A model read from disk has lost the row numbers and kept the contents: joining by content gives
    both the same pool, and so the same bits.
    """
    members = ensemble.members
    supports = np.concatenate([member.support for member in members])
    used, place = np.unique(supports, return_inverse=True)
    number_of: dict[bytes, int] = {}
    keys = ensemble.pool.take(used).content_keys()
    order = [number_of.setdefault(keys[number], len(number_of)) for number in place.tolist()]
    rows = np.array(order, np.int64)
    first = np.unique(rows, return_index=True)[1]
    columns = np.repeat(np.arange(len(members)), [len(member.support) for member in members])
    values = np.concatenate([member.coefficients for member in members])
    shape = (len(number_of), len(members))
    if _dense(len(values), *shape):
        coefficients: Any = np.zeros(shape)
        np.add.at(coefficients, (rows, columns), values)
    else:
        from scipy.sparse import csr_array

        coefficients = csr_array((values, (rows, columns)), shape=shape)
    return ensemble.pool.take(supports[first]), coefficients


def _dense(n_nonzeros: int, height: int, width: int) -> bool:
    """Whether a matrix of this shape is better kept dense: decided by its sizes alone."""
    cells = height * width
    return cells <= ALWAYS_DENSE_CELLS or (
        cells <= NEVER_DENSE_CELLS and n_nonzeros >= SPARSE_BELOW * cells
    )


def _padded(matrix: FloatArray, n_rows: int | None = None) -> FloatArray:
    """The matrix in a larger one of zeros whose width is a multiple of the step."""
    height, width = matrix.shape
    padded = np.zeros((n_rows or height, -(-width // COLUMN_STEP) * COLUMN_STEP))
    padded[:height, :width] = matrix
    return padded


def _matrix(rows: Rows, width: int) -> Any:
    # a block of rows to be judged will be as wide, and as dense or sparse
    if _dense(len(rows.values), max(len(rows), BLOCK_ROWS), width):
        dense = np.zeros((len(rows), width))
        dense[rows.row_numbers, rows.indices] = rows.values
        return dense
    return _sparse(rows, rows.indptr, width)


def _sparse(rows: Rows, indptr: IntArray, width: int) -> Any:
    from scipy.sparse import csr_array

    return csr_array((rows.values, rows.indices, indptr), shape=(len(indptr) - 1, width))


def _as_sparse(matrix: Any) -> Any:
    from scipy.sparse import csr_array

    return csr_array(matrix)
