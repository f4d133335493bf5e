"""Cells of a table as numbers, texts and names; what is none of these is refused with its place."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Sequence
from itertools import chain

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.files.tables import COMMA_NUMBER, Column, TableBlock, is_plain, read_number
from resvm_cli.rows import FloatArray

MOST_SHOWN = 5
MISSING_WORDS = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "?", "missing"})


def numbers_of(block: TableBlock, at: int, name: str) -> FloatArray:
    """A column as numbers, nan where there is none."""
    cells = block.columns[at]
    if isinstance(cells, np.ndarray):
        values = cells
    else:
        try:
            values = np.fromiter(map(float, cells), np.float64, len(cells))
            if not is_plain("".join(cells)):
                raise ValueError
        except ValueError:
            values = _careful(block, cells, at, name)
    if np.isinf(values).any():
        place = block.place(int(np.flatnonzero(np.isinf(values))[0]), at)
        raise DataError(
            f"{place}: not finite in the column '{name}'; every number must be",
            "correct it, or write NA and give a rule: --missing mean",
        )
    return values


def _careful(block: TableBlock, cells: Sequence[str], at: int, name: str) -> FloatArray:
    values = np.empty(len(cells))
    for number, cell in enumerate(cells):
        try:
            values[number] = read_number(cell)
        except ValueError:
            if cell.strip().lower() not in MISSING_WORDS:
                raise _no_number(block, number, at, name) from None
            values[number] = np.nan
    return values


def _no_number(block: TableBlock, row: int, at: int, name: str) -> DataError:
    cell = texts_of(block.columns[at])[row]
    column = shlex.quote(name)
    hint = f"for one feature a text: --categorical {column}; to leave the column out:"
    hint += f" --drop {column}"
    if COMMA_NUMBER.fullmatch(cell.strip()):
        hint = f"if its comma is a decimal one: --decimal-comma; {hint}"
    return DataError(
        f"{block.place(row, at)}: '{cell[:40]}' in the column '{name}'; a number was expected", hint
    )


def require_no_decimal_commas(block: TableBlock, at: int, name: str) -> None:
    """Refuse a column of texts that are all numbers, were it not for their commas."""
    cells = [text.strip() for text in texts_of(block.columns[at])]
    there = [row for row, cell in enumerate(cells) if cell.lower() not in MISSING_WORDS]
    if there and all(COMMA_NUMBER.fullmatch(cells[row]) for row in there):
        raise _no_number(block, there[0], at, name)


def no_value(block: TableBlock, row: int, at: int, name: str, text: bool = False) -> DataError:
    """A cell that should hold something and does not."""
    if text:
        return DataError(
            f"{block.place(row, at)}: no value in the column '{name}'",
            f"leave the column out: --drop {shlex.quote(name)}; or the rows: --missing drop; or let"
            " them have none of its values: --missing zero",
        )
    return DataError(
        f"{block.place(row, at)}: no value in the column '{name}'",
        "give a rule: --missing mean, median or zero fills it in, drop leaves such rows out",
    )


def ids_of(block: TableBlock, at: int) -> list[str]:
    """A column as names of rows."""
    ids = [text.strip() for text in texts_of(block.columns[at])]
    for row, text in enumerate(ids):
        if not text or "\n" in text or "\r" in text:
            raise DataError(
                f"{block.place(row, at)}: '{text[:40]}' is no id: it is empty or has"
                " more than one line"
            )
    return ids


def labels_of(block: TableBlock, at: int, name: str) -> FloatArray:
    """A column as labels, which are numbers."""
    cells = block.columns[at]
    if not isinstance(cells, np.ndarray):
        for row, cell in enumerate(cells):
            if not is_number(cell):
                there = list(dict.fromkeys(text.strip() for text in cells))[:MOST_SHOWN]
                raise DataError(
                    f"{block.place(row, at)}: the label is '{cell.strip()[:40]}';"
                    " a number was expected",
                    "say which label means positive: --positive-label LABEL; all others are"
                    " then unlabeled, and so are rows without; labels in the first rows:"
                    f" {', '.join(text or '(none)' for text in there)}",
                )
    labels = numbers_of(block, at, name)
    if np.isnan(labels).any():
        raise no_value(block, int(np.flatnonzero(np.isnan(labels))[0]), at, name)
    return labels


def matrix_of(block: TableBlock, numbers: Sequence[int]) -> FloatArray | None:
    """Columns of numbers as a matrix, rows x columns; None where a cell asks for a closer look.

    Of many columns, parsing each on its own takes several times as long.
    """
    columns = [block.columns[at] for at in numbers]
    texts = [cells for cells in columns if not isinstance(cells, np.ndarray)]
    if not texts:
        table = np.stack(columns, axis=1)
        return table if np.isfinite(table).all() else None
    size = len(columns) * block.n_rows
    try:
        flat = np.fromiter(map(float, chain.from_iterable(columns)), np.float64, size)
    except ValueError:
        return None
    if not np.isfinite(flat).all() or not all(is_plain("".join(cells)) for cells in texts):
        return None
    return flat.reshape(len(columns), block.n_rows).T


def matcher(positive_labels: Collection[str]) -> Callable[[str], bool]:
    """Whether a text is one of these labels; numbers are compared as such."""
    texts = set(positive_labels)
    numbers = {float(text) for text in texts if is_number(text)}

    def is_positive(text: str) -> bool:
        return text in texts or (bool(numbers) and is_number(text) and float(text) in numbers)

    return is_positive


def is_number(text: str) -> bool:
    try:
        read_number(text)
    except ValueError:
        return False
    return True


def is_text(cells: Column) -> bool:
    """Whether no cell is a number, and some cell is there."""
    if isinstance(cells, np.ndarray):
        return False
    there = [cell for cell in cells if cell.strip().lower() not in MISSING_WORDS]
    return bool(there) and not any(map(is_number, there))


def texts_of(cells: Column) -> Sequence[str]:
    if not isinstance(cells, np.ndarray):
        return cells
    from resvm_cli.files.svmlight import format_number

    return ["" if np.isnan(one) else format_number(one) for one in cells.tolist()]
