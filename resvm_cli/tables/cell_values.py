"""Convert table cells to numbers, text, ids, labels and fingerprints; errors locate the cell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError, Message
from resvm_cli.files.delimited import Column, TableBlock
from resvm_cli.files.fields import (
    COMMA_NUMBER,
    GROUPED_NUMBER,
    is_missing,
    is_number,
    is_plain,
    read_number,
)
from resvm_cli.rows import FloatArray, IntArray

MAX_SHOWN = 5
MIN_TEXTS = 20  # fewer may all differ by chance
FREE_TEXT_WORDS = 3  # per cell, on average

_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp]\.?[Mm]\.?)?( ?(Z|UTC|[-+]\d{2}:?\d{2}))?"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAY = (
    r"\d{4}([-/.]\d{1,2}){1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})"
    rf"|\d{{1,2}}[- ]{_MONTH}[-, ]+(\d{{4}}|\d{{2}})|{_MONTH} \d{{1,2}},? \d{{4}}|{_MONTH} \d{{4}}"
)
_ID_NAME = re.compile(  # a word of its own, or the end of a name such as customerId
    r"(?i:(?<![a-z])(?:id|uid|uuid|name|code|number(?![ _.-]*of)|nr|key|index)(?![a-z]))"
    r"|[a-z]I[dD](?![a-z])"
)
_LEADING_ZERO = re.compile(r"^[ \t]*0[0-9]+[ \t]*$", re.MULTILINE)
_DATE = re.compile(rf"({_DAY})([T ]+{_TIME})?|{_TIME}", re.IGNORECASE)


def numbers_of(block: TableBlock, at: int, name: str, *, like: bool = False) -> FloatArray:
    """Return a column as numbers, with nan for missing values.

    If a feature map was given (``like``), the error for text does not suggest a category.
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
            values = _numbers_or_missing(block, cells, at, name, like)
    if np.isinf(values).any():
        where = block.where(int(np.flatnonzero(np.isinf(values))[0]), at)
        raise DataError(
            f"{where}: a number in column '{name}' is not finite",
            Message("correct it, or replace it with NA and use {missing:mean}"),
        )
    return values


def _numbers_or_missing(
    block: TableBlock, cells: Sequence[str], at: int, name: str, like: bool
) -> FloatArray:
    values = np.empty(len(cells))
    for number, cell in enumerate(cells):
        try:
            values[number] = read_number(cell, block.decimal_comma)
        except ValueError:
            if not is_missing(cell):
                raise _not_a_number(block, number, at, name, like=like) from None
            values[number] = np.nan
    return values


def _not_a_number(
    block: TableBlock, row: int, at: int, name: str, *, like: bool = False
) -> DataError:
    cell = texts_of(block.columns[at])[row]
    hints = ["to encode it as a category: {categorical:{column}}", "to omit it: {drop:{column}}"]
    if like:
        hints = ["the column was numeric when its features were chosen"]
    if re.fullmatch(COMMA_NUMBER, cell.strip()):
        hints.insert(0, "for decimal commas: {decimal_comma:True}")
    elif is_number(cell):
        hints.insert(0, "for decimal points: omit {decimal_comma}")
    if re.fullmatch(GROUPED_NUMBER, cell.strip()):
        hints.insert(0, "remove thousands separators")
    return DataError(
        f"{block.where(row, at)}: '{cell[:40]}' in column '{name}'; expected a number",
        Message("; ".join(hints), column=shlex.quote(name)),
    )


Cells: TypeAlias = Sequence[tuple[TableBlock, int]]  # the first rows of a column in each table


def is_text(cells: Cells, name: str) -> bool:
    """Whether a column has values and none of them is a number.

    Raises DataError if all of them look like numbers with decimal commas or grouped digits.
    """
    present = []
    for block, at in cells:
        column = block.columns[at]
        if isinstance(column, np.ndarray):
            return False
        found = [row for row, cell in enumerate(column) if not is_missing(cell)]
        if any(is_number(column[row], block.decimal_comma) for row in found):
            return False
        present += [(block, row, at) for row in found]
    if present and all(_is_like_a_number(one.columns[at][row].strip()) for one, row, at in present):
        raise _not_a_number(*present[0], name)
    return bool(present)


def content_of(cells: Cells) -> str | None:
    """Return what a text column contains, if its first rows do not look like categories."""
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


def id_like_content(cells: Cells, name: str) -> str | None:
    """Return why a numeric column looks like ids or codes in its first rows, or None."""
    columns = [block.columns[at] for block, at in cells]
    if any(map(_has_leading_zeros, columns)):
        return "leading zeros"
    if not _ID_NAME.search(name) or sum(map(len, columns)) < MIN_TEXTS:
        return None
    tables = [[text.strip() for text in texts_of(column)] for column in columns]
    if all(len(set(own)) == len(own) and all(map(str.isdecimal, own)) for own in tables):
        return "a different integer in every row"
    return None


def _has_leading_zeros(column: Column) -> bool:
    return not isinstance(column, np.ndarray) and bool(_LEADING_ZERO.search("\n".join(column)))


def _is_like_a_number(text: str) -> bool:
    like = re.fullmatch(COMMA_NUMBER, text) or re.fullmatch(GROUPED_NUMBER, text)
    return like is not None or is_number(text)


def no_value(block: TableBlock, row: int, at: int, name: str, *, like: bool = False) -> DataError:
    """Return the error for a missing value; a given feature map (``like``) has no other means."""
    others = "" if like else ", mean or median; or leave out the row or the column"
    return DataError(
        f"{block.where(row, at)}: no value in column '{name}'",
        Message("fill it in: {missing:zero}" + others),
    )


def ids_of(block: TableBlock, at: int) -> list[str]:
    ids = [text.strip() for text in texts_of(block.columns[at])]
    for row, text in enumerate(ids):
        if not text or "\n" in text or "\r" in text:
            raise DataError(
                f"{block.where(row, at)}: '{text[:40]}' is not a valid id: it is empty or contains"
                " a line break"
            )
    return ids


def labels_of(block: TableBlock, at: int, name: str) -> FloatArray:
    cells = block.columns[at]
    if not isinstance(cells, np.ndarray):
        for row, cell in enumerate(cells):
            if not is_number(cell, block.decimal_comma):
                shown = list(dict.fromkeys(text.strip() for text in cells))[:MAX_SHOWN]
                raise DataError(
                    f"{block.where(row, at)}: the label is '{cell.strip()[:40]}', not a number",
                    Message(
                        "set the label of positives with {positive_label}; all other rows are then"
                        " unlabeled; labels in the first rows: {labels}",
                        labels=", ".join(text or "(none)" for text in shown),
                    ),
                )
    labels = numbers_of(block, at, name)
    if np.isnan(labels).any():
        raise no_value(block, int(np.flatnonzero(np.isnan(labels))[0]), at, name)
    return labels


def matrix_of(block: TableBlock, numbers: Sequence[int]) -> FloatArray | None:
    """Return numeric columns as a matrix, rows x columns; None if a cell is not a plain number.

    This is several times faster than parsing many columns one by one.
    """
    columns = [block.columns[at] for at in numbers]
    texts = [cells for cells in columns if not isinstance(cells, np.ndarray)]
    if not texts:
        table = np.stack(columns, axis=1).astype(np.float64, copy=False)
        return table if np.isfinite(table).all() else None
    if block.decimal_comma:
        return None
    size = len(columns) * block.n_rows
    try:
        flat = np.fromiter(map(float, chain.from_iterable(columns)), np.float64, size)
    except ValueError:
        return None
    if not np.isfinite(flat).all() or not all(is_plain("".join(cells)) for cells in texts):
        return None
    return flat.reshape(len(columns), block.n_rows).T


def matcher(positive_labels: Collection[str]) -> Callable[[str], bool]:
    """Return a function that tests whether a text is one of these labels.

    Numbers are compared by value.
    """
    texts = set(positive_labels)
    numbers = {_value(text) for text in texts if is_number(text)}

    def is_positive(text: str) -> bool:
        return text in texts or (bool(numbers) and is_number(text) and _value(text) in numbers)

    return is_positive


def class_of(
    positive_labels: Collection[str], negative_labels: Collection[str]
) -> Callable[[str], float]:
    """Return a function that turns a label into 1 (positive), -1 (known negative) or 0."""
    is_positive, is_negative = matcher(positive_labels), matcher(negative_labels)
    return lambda text: float(is_positive(text)) - float(is_negative(text))


def _value(number: str) -> float:
    """Return the value of a number; integers are exact."""
    try:
        return int(number)
    except ValueError:
        return float(number)


def texts_of(cells: Column) -> Sequence[str]:
    if not isinstance(cells, np.ndarray):
        return cells
    if cells.dtype.kind in "iu":
        return list(map(str, cells.tolist()))
    from resvm_cli.files.svmlight import format_number

    return ["" if np.isnan(one) else format_number(one) for one in cells.tolist()]


class Morgan:
    """Morgan fingerprints computed by RDKit: bits or counts, folded to a fixed length."""

    def __init__(self, bits: int, radius: int, counts: bool) -> None:
        try:
            from rdkit import Chem, rdBase
            from rdkit.Chem import rdFingerprintGenerator
        except ImportError:
            raise DataError(
                Message("{smiles_column} requires the rdkit package"),
                "pip install rdkit, or resvm-cli[convert]",
            ) from None
        self._silence = rdBase.BlockLogs()  # we report invalid SMILES with their location
        self._read = Chem.MolFromSmiles
        self._generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=bits)
        self._counts = counts

    def entries(
        self, block: TableBlock, at: int, kept: npt.NDArray[np.bool_] | None
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the rows, bits and counts of a column of SMILES.

        Rows with invalid SMILES are cleared in ``kept``; if that is None, they are an error.
        """
        rows: list[int] = []
        bits: list[int] = []
        counts: list[int] = []
        for row, cell in enumerate(texts_of(block.columns[at])):
            found = self.bits(cell.strip())
            if found is not None:
                rows += [row] * len(found)
                bits += found
                counts += found.values()
            elif kept is not None:
                kept[row] = False
            else:
                raise DataError(
                    f"{block.where(row, at)}: RDKit cannot read the molecule '{cell[:60]}'",
                    Message("correct it, or drop such rows: {missing:drop}"),
                )
        return np.array(rows, np.int64), np.array(bits, np.int64), np.array(counts, float)

    def bits(self, smiles: str) -> dict[int, int] | None:
        """Return the set bits in ascending order with their counts; None for invalid SMILES."""
        # SMILES are ASCII; RDKit cannot handle undecodable bytes
        molecule = self._read(smiles) if smiles and smiles.isascii() else None
        if molecule is None:
            return None
        if self._counts:
            found = self._generator.GetCountFingerprint(molecule).GetNonzeroElements()
            return dict(sorted(found.items()))
        return dict.fromkeys(self._generator.GetFingerprint(molecule).GetOnBits(), 1)
