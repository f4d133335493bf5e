"""What methods reached in repeated runs, as CSV: data set, repetition, method, value."""

from __future__ import annotations

import math
from dataclasses import dataclass

from resvm_cli.errors import DataError
from resvm_cli.files.delimited import fields_of
from resvm_cli.files.streams import name_of, read_pieces, text_lines, without_mark

COLUMNS = ("data set", "repetition", "method", "value")
OTHER_NAMES = {"task": "dataset"}


@dataclass(frozen=True)
class Run:
    """One line: what a method reached on a data set in one repetition."""

    line: int
    data_set: str
    repetition: str
    method: str
    value: float


def read_runs(path: str) -> list[Run]:
    """The runs of a CSV or TSV file whose first line names its columns, in any order."""
    name = name_of(path)
    lines = text_lines(without_mark(read_pieces(path)), name)
    first = next(lines, None)
    if first is None:
        raise DataError(f"{name}: empty", f"expected columns: {', '.join(COLUMNS)}")
    separator = "\t" if "\t" in first[1] else ","
    named = fields_of(first[1], separator, f"{name}:1")
    header = [_plain(word) for word in named]
    missing = [column for column in COLUMNS if _plain(column) not in header]
    if missing:
        raise DataError(
            f"{name}:1: no column '{missing[0]}'; there: {', '.join(named)}",
            f"expected columns: {', '.join(COLUMNS)} (task will do for data set)",
        )
    twice = [column for column in COLUMNS if header.count(_plain(column)) > 1]
    if twice:
        raise DataError(f"{name}:1: several columns could be the {twice[0]}", "leave one of them")
    places = [header.index(_plain(column)) for column in COLUMNS]
    runs = []
    for number, line in lines:
        fields = fields_of(line, separator, f"{name}:{number}")
        if not any(field.strip() for field in fields):
            continue
        try:
            data_set, repetition, method, written = (fields[place].strip() for place in places)
            value = float(written)
        except (IndexError, ValueError):
            value = math.nan
        if math.isnan(value):
            raise DataError(
                f"{name}:{number}: a data set, a repetition, a method and a number were expected"
            )
        runs.append(Run(number, data_set, repetition, method, value))
    if not runs:
        raise DataError(f"{name}: no results below the line of column names")
    return runs


def _plain(word: str) -> str:
    """Data set, data_set, dataset and task are one name."""
    plain = word.strip().lower().replace(" ", "").replace("_", "").replace("-", "")
    return OTHER_NAMES.get(plain, plain)
