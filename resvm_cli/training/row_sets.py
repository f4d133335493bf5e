"""Which rows of the data are P, U and known negatives, and where they are in their files."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError, Message
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class RowSets:
    """The rows of P, U and known negatives, in one labeled file or in a file for each set."""

    n_file: int  # number of rows in the file that contains U
    n_pos: int
    n_neg: int = 0
    # with one labeled file: which of its rows are in P, and which are known negatives
    known: tuple[BoolArray, BoolArray] | None = None
    left_out: BoolArray | None = None  # which rows of that file are dropped from U

    @property
    def n_unlabeled(self) -> int:
        n_left_out = 0 if self.left_out is None else int(np.count_nonzero(self.left_out))
        n_known = 0 if self.known is None else self.n_pos + self.n_neg
        return self.n_file - n_known - n_left_out

    @property
    def n_rows(self) -> int:
        return self.n_file if self.known is not None else self.n_pos + self.n_file + self.n_neg

    @cached_property
    def outside(self) -> BoolArray | None:
        """Which rows of the file that contains U are not in U; None if all rows are in U."""
        if self.known is None:
            return self.left_out
        outside = self.known[0] | self.known[1]
        return outside if self.left_out is None else outside | self.left_out

    def rows_of_file(self, numbers: IntArray) -> IntArray:
        """Return the positions of these rows of U in their file."""
        if self.outside is None:
            return numbers
        outside = np.flatnonzero(self.outside)
        # row u of U follows every other row that has at most u rows of U before it
        before = outside - np.arange(len(outside))
        return numbers + np.searchsorted(before, numbers, "right")

    def in_files(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the row numbers of P, U and known negatives, each in its own file."""
        unlabeled = self.rows_of_file(np.arange(self.n_unlabeled))
        if self.known is None:
            return np.arange(self.n_pos), unlabeled, np.arange(self.n_neg)
        positive, negative = self.known
        return np.flatnonzero(positive), unlabeled, np.flatnonzero(negative)

    @property
    def order(self) -> IntArray:
        """The positions of P, U and known negatives among all rows of the data."""
        positive, unlabeled, negative = self.in_files()
        if self.known is None:
            unlabeled = self.n_pos + unlabeled
            negative = self.n_pos + self.n_file + negative
        return np.concatenate([positive, unlabeled, negative])

    def in_order(self, values: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
        """Reorder one value per row from the order of the data to P, U, known negatives."""
        if len(values) != self.n_rows:
            raise DataError(
                f"{name}: {len(values):,} lines, but the data has {self.n_rows:,} rows",
                Message("expected one line per row: first P, then U, or in the order of {data}"),
            )
        return values[self.order]
