"""How sure each known positive is: a number from 0 to 1 a line, with its id where P has ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.files.streams import name_of, read_pieces, text_lines, without_mark
from resvm_cli.rows import FloatArray

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
ONE_A_ROW = "one number from 0 to 1 for each row of P, in their order"
ONE_AN_ID = "an id of --positive-ids and a number from 0 to 1 a line"


@dataclass(frozen=True, eq=False)
class WeightLines:
    """What a file of weights says, line by line."""

    name: str
    values: FloatArray
    ids: list[str] | None  # None: in the order of the rows
    lines: list[int]  # where each of them is

    @classmethod
    def read(cls, path: str, *, with_ids: bool) -> WeightLines:
        """The lines but for comments (#); blank ones are refused, except at the end."""
        name = name_of(path)
        expected = ONE_AN_ID if with_ids else ONE_A_ROW
        values: list[float] = []
        ids: list[str] = []
        lines: list[int] = []
        blank = 0
        for number, line in text_lines(without_mark(read_pieces(path)), name):
            text = line.strip()
            if text.startswith("#"):
                continue
            if not text:
                blank = blank or number
                continue
            if blank:
                raise DataError(f"{name}:{blank}: an empty line", f"{expected} was expected")
            row_id, _, last = text.rpartition(" ") if "\t" not in text else text.rpartition("\t")
            if bool(row_id) != with_ids:
                what = "no id before the weight" if with_ids else f"'{text}' is no single number"
                raise DataError(f"{name}:{number}: {what}", f"{expected} was expected")
            ids.append(row_id.strip())
            lines.append(number)
            values.append(_weight(last.strip(), f"{name}:{number}"))
        if not values:
            raise DataError(f"{name}: no weights", f"{expected} was expected")
        return cls(name, np.array(values), ids if with_ids else None, lines)

    def of_rows(
        self, n_rows: int, known: tuple[Sequence[str], Callable[[str], bool]] | None
    ) -> FloatArray:
        """A weight for each row of P, by its place or by its id.

        ``known`` has the ids of P in order, and tells whether an id is one of a known positive.
        """
        if self.ids is None or known is None:
            if len(self.values) != n_rows:
                raise DataError(
                    f"{self.name}: {len(self.values):,} weights, and P has {n_rows:,} rows",
                    f"{ONE_A_ROW} was expected",
                )
            return self.values
        in_order, is_known = known
        place: dict[str, int] = {}
        for number, row_id in enumerate(self.ids):
            if row_id in place:
                raise DataError(
                    f"{self.name}:{self.lines[number]}: '{row_id}' has a weight already, in line"
                    f" {self.lines[place[row_id]]}"
                )
            if not is_known(row_id):
                raise DataError(
                    f"{self.name}:{self.lines[number]}: '{row_id}' is not among --positive-ids",
                    "weights are of known positives",
                )
            place[row_id] = number
        missing = [row_id for row_id in in_order if row_id not in place]
        if missing:
            raise DataError(
                f"{self.name}: {len(missing):,} known positives have no weight; the first is"
                f" '{missing[0]}'",
                f"{ONE_AN_ID} was expected",
            )
        return self.values[[place[row_id] for row_id in in_order]]


def _weight(text: str, where: str) -> float:
    if not _NUMBER.fullmatch(text) or not 0 <= float(text) <= 1:
        raise DataError(f"{where}: the weight is '{text}'; a number from 0 to 1 was expected")
    return float(text)
