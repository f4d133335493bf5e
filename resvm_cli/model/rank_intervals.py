"""How far a row's rank depends on which members were drawn: ranks over resampled members.

A resample draws as many members as there are, with replacement, and ranks every row by those of
them that have not seen it. Values are kept in single precision, one number a row and resample, and
the ranks take their place: memory stays in proportion to the rows that are ranked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from resvm_cli import randomness
from resvm_cli.model.ensemble import Decisions, Group, cut, decision_values, mean_values
from resvm_cli.parameters import RuleName
from resvm_cli.rows import FloatArray, IntArray
from resvm_cli.svm import _blocks
from resvm_cli.svm.pool import BLOCK_ROWS

SingleArray = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]

LEVEL = 0.95
RESAMPLES = 200
FEWEST = 40
MOST_CELLS = 50_000_000  # rows times resamples: 200 MB
COLUMNS_AT_ONCE = 1 << 14


def n_resamples(n_rows: int) -> int:
    """How many resamples so many rows have room for."""
    return max(FEWEST, min(RESAMPLES, MOST_CELLS // max(1, n_rows)))


class MemberResamples:
    """Members drawn again with replacement, the same ones for every row."""

    def __init__(self, n_models: int, n_resamples: int, seed: int) -> None:
        bits = randomness.run_bits(seed, randomness.RESAMPLES)
        drawn = randomness.below(bits, n_models, n_models * n_resamples)
        self._weights = np.zeros((n_models, n_resamples))
        for number, members in enumerate(drawn.reshape(n_resamples, n_models)):
            self._weights[:, number] = np.bincount(members, minlength=n_models)

    @property
    def count(self) -> int:
        return self._weights.shape[1]

    def values(
        self,
        own: FloatArray,
        member_values: FloatArray,
        absent: BoolArray,
        rule: RuleName = "votes",
        groups: Sequence[Group] = (),
    ) -> SingleArray:
        """resamples x rows: decision values by this rule, without ties.

        A row that no drawn member may judge keeps its own value.
        """
        result = np.empty((self.count, len(own)), np.float32)
        for start in range(0, len(own), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            block = member_values[part], absent[part]
            values = self._votes(*block) if rule == "votes" else self._means(*block, groups)
            values = np.where(np.isnan(values), own[part, None], values)
            with np.errstate(over="ignore"):  # infinities keep their order
                result[:, part] = values.T
        return result

    def _votes(self, member_values: FloatArray, absent: BoolArray) -> FloatArray:
        """rows x resamples: d without ties, nan where none of the members may judge."""
        signs = np.where(absent, np.sign(member_values), 0.0)
        admitted = np.where(absent, member_values, 0.0)
        n_members, balance, sums = (self._drawn(part) for part in (absent, signs, admitted))
        with np.errstate(divide="ignore", invalid="ignore"):
            votes = (n_members + balance) / (2 * n_members)
            sums = sums * (absent.shape[1] / n_members)
        values = decision_values(votes, sums)
        return Decisions(
            votes, sums, values, values, n_members.astype(np.int64)
        ).values_without_ties()

    def _means(
        self, member_values: FloatArray, absent: BoolArray, groups: Sequence[Group]
    ) -> FloatArray:
        """rows x resamples: the groups' means, nan where none of the members may judge."""
        admitted = np.where(absent, member_values, 0.0)
        if len(groups) < 2:
            with np.errstate(divide="ignore", invalid="ignore"):
                return self._drawn(admitted) / self._drawn(absent)
        sums = [self._drawn(admitted, cut(group)) for group in groups]
        counts = [self._drawn(absent, cut(group)) for group in groups]
        return mean_values(sums, counts, groups)

    def _drawn(self, block: npt.NDArray[Any], members: slice = slice(None)) -> FloatArray:
        """What the drawn members add up to, some of them: rows x resamples."""
        weights = self._weights[members]
        # one shape for every block: BLAS rounds by it
        padded = np.zeros((BLOCK_ROWS, len(weights)))
        padded[: len(block)] = block[:, members]
        return (padded @ weights)[: len(block)]


def rank_bounds(
    resampled: SingleArray, ranks: IntArray, *, lowest_first: bool
) -> tuple[IntArray, IntArray]:
    """For each row the bounds of its rank; ``resampled`` (resamples x rows) is used up.

    Bounds are widened to the row's own rank where resampling missed it.
    """
    n_resamples, n_rows = resampled.shape
    places = resampled.view(np.int32)  # ranks take the room of the values they come from
    room = np.empty(2 * n_rows, np.uint64)
    for number in range(n_resamples):
        _blocks.rank(resampled[number], not lowest_first, room, places[number])
    cut = int((1 - LEVEL) / 2 * n_resamples)  # so many on either side are left out
    low, high = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    for start in range(0, n_rows, COLUMNS_AT_ONCE):
        part = slice(start, start + COLUMNS_AT_ONCE)
        sorted_ranks = np.sort(places[:, part].T.copy(), axis=1)
        low[part], high[part] = sorted_ranks[:, cut], sorted_ranks[:, n_resamples - 1 - cut]
    return np.minimum(low, ranks), np.maximum(high, ranks)
