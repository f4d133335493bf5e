"""Drawing bags: the rows a member is trained on depend only on (seed, member) and the data."""

from __future__ import annotations

import hashlib
from functools import cached_property

import numpy as np
import numpy.typing as npt

from resvm_cli import randomness
from resvm_cli.errors import DataError, Message, ParameterError, Text
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray

RULE = "pcg64-1"  # in the manifest; a different way of drawing bags needs a different name
WEIGHTED_RULE = "pcg64-1-weighted"  # rows of P are drawn in proportion to their weights
MIN_WEIGHTED = 2  # rows of P with positive weight: with only one, all bags would be the same


@dataclass(frozen=True, eq=False)
class PositiveWeights:
    """How certain each row of P is, from 0 to 1; rows are drawn in proportion to these weights."""

    values: FloatArray  # empty if loaded from a manifest, which stores only a digest

    @classmethod
    def from_values(cls, values: npt.ArrayLike, name: str = "weights") -> PositiveWeights | None:
        """Check the weights; return None if all are equal, which is the same as no weights."""
        weights = np.asarray(values, np.float64)
        wrong = np.flatnonzero(~((weights >= 0) & (weights <= 1)))
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"{name}: the weight of row {row + 1:,} of P is {weights[row]:g},"
                " but weights must be from 0 to 1"
            )
        return cls._proportions(weights, name, "give certain positives a weight of 1")

    @classmethod
    def _proportions(cls, weights: FloatArray, name: str, hint: Text) -> PositiveWeights | None:
        n_drawn = int((weights > 0).sum())
        if not n_drawn:
            raise DataError(f"{name}: all weights are 0, so no row of P can be drawn", hint)
        if (weights == weights[0]).all():
            return None
        if n_drawn < MIN_WEIGHTED:
            raise DataError(
                f"{name}: only one row of P has a weight above 0, so every bag would contain only"
                " that row",
                hint,
            )
        return cls(weights)

    def take(self, numbers: IntArray) -> PositiveWeights | None:
        """Return the weights of the given rows."""
        hint = Message("use fewer folds, or score out of bag ({oob:True})")
        return self._proportions(self.values[numbers], "weights of the remaining rows", hint)

    @property
    def digest(self) -> str:
        """A digest for the manifest: redrawing the bags requires the same weights."""
        return hashlib.sha256(self.values.astype("<f8").tobytes()).hexdigest()

    @cached_property
    def _ends(self) -> FloatArray:
        return np.cumsum(self.values)

    def chosen(self, fractions: FloatArray) -> IntArray:
        """Return the rows at which the cumulative weight exceeds these fractions of the total."""
        numbers = np.searchsorted(self._ends, fractions * self._ends[-1], "right")
        # a product may round up to the total
        last = int(np.flatnonzero(self.values)[-1])
        chosen: IntArray = np.minimum(numbers, last)
        return chosen


def require_weighted_draws(method: str) -> None:
    """Reject weights of P for methods that do not draw from P."""
    if method != "resvm":
        reason = (
            "bagging trains every member on all of P"
            if method == "bagging"
            else "cwsvm trains a single model on all of P"
        )
        raise ParameterError(
            "{weights} does not apply to {method:" + method + "}: " + reason,
            "leave {weights} out, or use {method:resvm}, which draws rows of P",
        )


class Stream:
    """The random number stream of one member."""

    def __init__(self, seed: int, member: int, *purpose: int) -> None:
        self._bits = randomness.bag_bits(seed, member, *purpose)

    def draw(self, n_rows: int, size: int, weights: PositiveWeights | None = None) -> IntArray:
        """Draw ``size`` row numbers below ``n_rows``, with replacement."""
        if weights is None:
            return randomness.below(self._bits, n_rows, size)
        assert len(weights.values) == n_rows
        return weights.chosen(randomness.fractions(self._bits, size))
