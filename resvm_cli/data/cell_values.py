"""Convert table cells to numbers, text, ids, labels and fingerprints; errors locate the cell."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain

import numpy as np

from resvm_cli.data.delimited import Column, TableBlock
from resvm_cli.data.encoding import MappedColumn, MissingRule
from resvm_cli.data.fields import (
    COMMA_NUMBER,
    GROUPED_NUMBER,
    is_missing,
    is_number,
    is_plain,
    read_number,
)
from resvm_cli.data.svmlight import format_number
from resvm_cli.errors import DataError
from resvm_cli.rows import BoolArray, FloatArray, IntArray

SHOWN = 5
MIN_TEXTS = 20  # fewer may all differ by chance
FREE_TEXT_WORDS = 3  # per cell, on average

_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp]\.?[Mm]\.?)?( ?(Z|UTC|[-+]\d{2}:?\d{2}))?"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAY = (
    r"\d{4}([-/.]\d{1,2}){1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})"
    rf"|\d{{1,2}}[- ]{_MONTH}[-, ]+(\d{{4}}|\d{{2}})|{_MONTH} \d{{1,2}},? \d{{4}}|{_MONTH} \d{{4}}"
)
_DATE = re.compile(rf"({_DAY})([T ]+{_TIME})?|{_TIME}", re.IGNORECASE)


def texts_of(cells: Column) -> Sequence[str]:
    """Return cells as text, with "" for missing numbers."""
    if not isinstance(cells, np.ndarray):
        return cells
    if cells.dtype.kind in "iu":
        return list(map(str, cells.tolist()))
    return ["" if np.isnan(number) else format_number(number) for number in cells.tolist()]


def ids_of(block: TableBlock, at: int) -> list[str]:
    ids = [text.strip() for text in texts_of(block.columns[at])]
    for row, text in enumerate(ids):
        if not text or "\n" in text or "\r" in text:
            raise DataError(
                f"{block.where(row)}: '{text[:40]}' is not a valid id: it is empty or contains"
                " a line break"
            )
    return ids


def labels_of(block: TableBlock, at: int, name: str) -> FloatArray:
    """Return a column as labels, which must be numbers."""
    cells = block.columns[at]
    if not isinstance(cells, np.ndarray):
        for row, cell in enumerate(cells):
            if not is_number(cell, block.decimal_comma):
                labels = list(dict.fromkeys(text.strip() for text in cells))[:SHOWN]
                raise DataError(
                    f"{block.where(row)}: the label is '{cell.strip()[:40]}', not a number",
                    "set the label of positives with `positive_label`; all other rows become"
                    " unlabeled; labels in the first rows: "
                    + ", ".join(text or "(none)" for text in labels),
                )
    numbers = numbers_of(block, at, name)
    if np.isnan(numbers).any():
        raise no_value(block, int(np.flatnonzero(np.isnan(numbers))[0]), name)
    return numbers


def numbers_of(block: TableBlock, at: int, name: str, *, like: bool = False) -> FloatArray:
    """Return a column as numbers, with nan for missing values.

    If a feature map was given (``like``), the error for text does not suggest encoding a
    category.
    """
    cells = block.columns[at]
    if isinstance(cells, np.ndarray):
        values = cells.astype(np.float64, copy=False)
    else:
        try:
            if block.decimal_comma or not is_plain("".join(cells)):
                raise ValueError
            values = np.fromiter(map(float, cells), np.float64, len(cells))
        except ValueError:
            values = np.full(len(cells), np.nan)
            for row, cell in enumerate(cells):
                if not is_missing(cell):
                    try:
                        values[row] = read_number(cell, block.decimal_comma)
                    except ValueError:
                        raise _not_a_number(block, row, at, name, like=like) from None
    if np.isinf(values).any():
        raise DataError(
            f"{block.where(int(np.flatnonzero(np.isinf(values))[0]))}: a number in column"
            f" '{name}' is not finite",
            "correct it, or replace it with NA and use `missing='mean'`",
        )
    return values


def bad_cells(
    block: TableBlock, at: int, column: MappedColumn, missing: MissingRule
) -> Iterator[tuple[int, str]]:
    """Yield the row and the problem of each cell that cannot be encoded as this column is."""
    cells, refused = block.columns[at], missing == "refuse"
    if column.kind == "morgan":
        valid = np.ones(block.n_rows, bool)
        if missing != "drop":
            fingerprints(cells, column.bits, column.radius, column.counts, valid)
        yield from ((row, "no molecule") for row in np.flatnonzero(~valid).tolist())
        return
    if column.kind == "number":
        with suppress(DataError):
            values = numbers_of(block, at, column.name)
            if not (refused and np.isnan(values).any()):
                return
    for row, cell in enumerate(texts_of(cells)):
        if is_missing(cell):
            if refused:
                yield row, "no value"
        elif column.kind == "number":
            number = float(cell) if is_number(cell) else math.nan
            if not is_number(cell, block.decimal_comma):
                yield row, "no number"
            elif math.isinf(number):
                yield row, "no finite number"


def is_text(cells: Sequence[tuple[TableBlock, int]], name: str) -> bool:
    """Whether a column has values and none is a number, judging by its first rows in each table.

    Raises DataError if all of them look like numbers with decimal commas or grouped digits.
    """
    present = []
    for block, at in cells:
        column = block.columns[at]
        if isinstance(column, np.ndarray):
            return False
        for row, cell in enumerate(column):
            if is_missing(cell):
                continue
            if is_number(cell, block.decimal_comma):
                return False
            present.append((block, row, at, cell.strip()))
    for *_, text in present:
        if not (_has_comma(text) or _is_grouped(text) or is_number(text)):
            return True
    if present:
        raise _not_a_number(*present[0][:3], name)
    return False


def content_of(cells: Sequence[tuple[TableBlock, int]]) -> str | None:
    """Return what a text column contains, or None if its first rows may be categories."""
    stripped = ([text.strip() for text in texts_of(block.columns[at])] for block, at in cells)
    tables = [[text for text in texts if not is_missing(text)] for texts in stripped]
    texts = list(chain.from_iterable(tables))
    if len(texts) < MIN_TEXTS:
        return None
    if all(map(_DATE.fullmatch, texts)):
        return "dates"
    n_distinct = len(set(texts))
    n_words = sum(len(text.split()) for text in texts) / len(texts)
    if n_words >= FREE_TEXT_WORDS and n_distinct > len(texts) / 2:
        return "free text"
    # U may contain P, so ids are distinct only within each table
    in_each = all(len(set(own)) == len(own) for own in tables)
    enough = n_distinct == len(texts) or max(map(len, tables)) >= MIN_TEXTS
    return "ids" if in_each and enough else None


def _has_comma(text: str) -> bool:
    return re.fullmatch(COMMA_NUMBER, text) is not None


def _is_grouped(text: str) -> bool:
    return re.fullmatch(GROUPED_NUMBER, text) is not None


def _not_a_number(
    block: TableBlock, row: int, at: int, name: str, *, like: bool = False
) -> DataError:
    cell = texts_of(block.columns[at])[row]
    hints = [f"to encode it as a category: `categorical={name!r}`", f"to omit it: `drop={name!r}`"]
    if like:
        hints = ["the column was numeric when its features were chosen"]
    if is_number(cell) or _has_comma(cell.strip()):
        hints.insert(0, f"use {',' if block.decimal_comma else '.'} as the decimal mark")
    if _is_grouped(cell.strip()):
        hints.insert(0, "remove thousands separators")
    return DataError(
        f"{block.where(row)}: '{cell[:40]}' in column '{name}'; expected a number",
        "; ".join(hints),
    )


def no_value(block: TableBlock, row: int, name: str, *, like: bool = False) -> DataError:
    """Return the error for a missing value; given a feature map (``like``), suggest only zero."""
    others = "" if like else ", mean or median; or leave out the row or the column"
    return DataError(
        f"{block.where(row)}: no value in column '{name}'",
        "fill it in: `missing='zero'`" + others,
    )


def fingerprints(
    cells: Column, bits: int, radius: int, counts: bool, kept: BoolArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the rows, bits and counts of Morgan fingerprints, computed by RDKit.

    ``kept`` becomes False for invalid SMILES.
    """
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem import rdFingerprintGenerator
    except ImportError:
        raise DataError(
            "`smiles_column` requires the rdkit package",
            "pip install rdkit, or resvm-cli[convert]",
        ) from None
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=bits)
    entries: list[tuple[int, int, int]] = []
    with rdBase.BlockLogs():  # we report invalid SMILES with their location
        for row, cell in enumerate(map(str.strip, texts_of(cells))):
            # SMILES are ASCII; RDKit cannot handle undecodable bytes
            molecule = Chem.MolFromSmiles(cell) if cell and cell.isascii() else None
            if molecule is None:
                kept[row] = False
            elif counts:
                found = generator.GetCountFingerprint(molecule).GetNonzeroElements()
                entries += [(row, bit, found[bit]) for bit in sorted(found)]
            else:
                entries += [(row, bit, 1) for bit in generator.GetFingerprint(molecule).GetOnBits()]
    table = np.array(entries, np.int64).reshape(-1, 3).T
    return table[0], table[1], table[2].astype(np.float64)
