"""Members as one model: pooled support rows, member decision values, votes and d(x).

Whatever judges the rows, a row's value depends neither on its neighbours nor on its place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from resvm_cli.dataset import Columns, FloatArray, IntArray, Rows
from resvm_cli.ensemble.scaling import Scaling
from resvm_cli.svm.kernels import Kernel, powers
from resvm_cli.svm.pool import BLOCK_ROWS, Pool, Uses
from resvm_cli.svm.products import LEAST_DENSITY
from resvm_cli.svm.weights import Weights

# Whether support rows or weights are kept dense is decided by their sizes alone.
NEVER_DENSE_CELLS = 1 << 26


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
    """A short digest of how this machine rounds a fixed product and functions of it."""
    steps = np.arange(BLOCK_ROWS * 96, dtype=np.float64).reshape(BLOCK_ROWS, 96)
    wave = (steps * 0.37) % 1.0 - 0.5
    product = wave @ wave[:64].T
    values = powers(-np.abs(product))
    digest = hashlib.sha256()
    for part in (product, values, np.tanh(product)):
        digest.update(part.tobytes())
    return digest.hexdigest()[:16]


class Predictor:
    """An ensemble made ready to judge rows."""

    def __init__(self, ensemble: Ensemble, scaling: Scaling | None = None) -> None:
        self.ensemble = ensemble
        self._scaling = scaling
        self._rho = np.array([member.rho for member in ensemble.members])
        pool, uses = _join(ensemble)
        columns = Columns(pool.indices, lasting=True)
        place = columns.places(pool.indices)
        pool = Rows(pool.indptr, place.astype(np.int32), pool.values)
        dense = len(pool.values) >= LEAST_DENSITY * len(pool) * len(columns)
        self._judge: Pool | Weights
        if ensemble.kernel.name == "linear":
            dense &= uses.n_members * len(columns) <= NEVER_DENSE_CELLS
            self._judge = Weights(pool, uses, columns, dense=dense)
        else:
            # the rows that are judged together will be as wide, and dense too
            dense &= max(len(pool), BLOCK_ROWS) * len(columns) <= NEVER_DENSE_CELLS
            self._judge = Pool(ensemble.kernel, pool, uses, columns, dense=dense)

    @property
    def rows_multiple(self) -> int:
        """Rows that come in a multiple of so many are judged without padding."""
        return self._judge.rows_multiple

    def decisions(self, rows: Rows) -> Decisions:
        """Judge rows, block by block."""
        step = self._judge.rows_at_once
        parts = [
            self._block(rows.slice(start, min(start + step, len(rows))))
            for start in range(0, len(rows), step)
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
        if self._scaling is not None:
            rows = self._scaling.apply(rows)
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.subtract(self._judge.sums(rows), self._rho, order="C")
            return decide(values, self.ensemble.single)


def _join(ensemble: Ensemble) -> tuple[Rows, Uses]:
    """The support rows of all members, equal rows once, in order of appearance; their uses.

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
    uses = Uses.of(rows, columns, values, len(number_of), len(members))
    return ensemble.pool.take(supports[first]), uses
