"""Which rows of the data are P, U and known negatives, and whether these sets can be used."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli.errors import DataError, Message
from resvm_cli.files.streams import name_of
from resvm_cli.files.svmlight import Block, format_number
from resvm_cli.model.out_of_bag import EqualRows
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, IntArray, Rows
from resvm_cli.svm import kernels
from resvm_cli.tables.inputs import RowInput
from resvm_cli.training.input import TrainingInput

if TYPE_CHECKING:
    import numpy.typing as npt


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
        """A mask of the rows in the file of U that are not in U; None if there are none."""
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


class SerialNumbers:
    """Checks the serial numbers of precomputed kernel rows as they are read, then the largest."""

    def __init__(self) -> None:
        self._largest, self._location = 0, ""

    def check(self, block: Block, name: str) -> None:
        """Reject rows without a serial number."""
        if wrong := kernels.wrong_serials(block.rows):
            row, fault = wrong[0]
            raise DataError(f"{name}:{block.lines[row]}: {fault}", kernels.ROW_FORMAT)
        numbers = kernels.serials(block.rows)
        last = int(numbers.argmax())
        if numbers[last] > self._largest:
            self._largest, self._location = int(numbers[last]), f"{name}:{block.lines[last]}"

    def require_below(self, n_features: int) -> None:
        if self._largest >= n_features:
            raise DataError(
                f"{self._location}: the serial number is {self._largest:,}, but rows have only"
                f" {n_features - 1:,} kernel values",
                kernels.ROW_FORMAT,
            )


def require_not_positive(
    name: str, negatives: Block, positives: Rows, ids: Sequence[str], precomputed: bool
) -> None:
    """Reject a known negative that has the id of a row of P, or no id and the same content.

    ``ids`` lists the ids of all rows, P first and known negatives last.
    """
    of_pos, own = ids[: len(positives)], ids[len(ids) - len(negatives) :]
    row_of = {row_id: row for row, row_id in enumerate(of_pos) if row_id}
    pairs = [(row, row_of[row_id]) for row, row_id in enumerate(own) if row_id in row_of]
    equal = EqualRows.find(negatives.rows, [positives], precomputed=precomputed)
    for content, of_p in zip(equal.found.tolist(), equal.numbers.tolist(), strict=True):
        for row in np.flatnonzero(equal.contents == content).tolist():
            if not (own[row] and of_pos[of_p]):  # different molecules may have equal features
                pairs.append((row, of_p))
    if pairs:
        row, of_p = min(pairs)
        which = f"'{own[row]}'" if own[row] else f"row {of_p + 1:,}"
        raise DataError(
            f"{name}:{negatives.lines[row]}: this known negative is also {which} of P",
            "a row cannot be both: remove it from the known negatives or from P",
        )


def require_both_sets(
    source: TrainingInput, rows: RowInput, sets: RowSets, labels: Collection[float]
) -> None:
    """Reject data without rows in P, in U, or among the requested known negatives."""
    wanted = " or ".join(source.table.roles.positive_labels)
    if source.positive_label is not None and not wanted:
        wanted = format_number(source.positive_label)
    if source.has_label and not sets.n_pos:
        if not rows.is_text:
            raise rows.no_positive_row()
        there = ", ".join(format_number(label) for label in sorted(labels)[:20])
        raise DataError(
            f"{rows.name}: no row has the label {wanted}", f"labels in the file: {there}"
        )
    if source.has_negative_label and not sets.n_neg:
        text = " or ".join(source.table.roles.negative_labels)
        text = text or format_number(source.negative_label or 0.0)
        raise DataError(
            f"{rows.name}: no row has {text}, the label of known negatives",
            Message("correct {negative_label}, or leave it out"),
        )
    if not sets.n_unlabeled and sets.n_neg:
        raise DataError(
            f"{rows.name}: every row is a known positive or negative; no unlabeled rows are left"
        )
    if not sets.n_unlabeled:
        which = f"the label {wanted}"
        if source.positive_ids is not None:
            which = f"an id from {name_of(source.positive_ids)}"
        raise DataError(f"{rows.name}: every row has {which}; no unlabeled rows are left")
