"""Tables of named columns, and the reader of CSV text.

A table is read in blocks of rows. Within a block, a column contains either strings or numbers. The
number of rows per block depends only on the number of columns, so that what is decided from the
first block, and the order in which categories appear, do not depend on the layout of the file.
"""

from __future__ import annotations

import csv
import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli.data import _svmlight as tokenizer
from resvm_cli.data.fields import (
    COMMA_NUMBER,
    GROUPED_NUMBER,
    SEPARATOR_LINE,
    is_missing,
    is_number,
    read_number,
    whole_lines,
)
from resvm_cli.data.streams import without_mark
from resvm_cli.errors import DataError
from resvm_cli.records import dataclass
from resvm_cli.rows import IntArray

CELLS_AT_ONCE = 1 << 14  # small enough for the CPU cache
MAX_ROWS = 1 << 12
MIN_ROWS = 1 << 6
MAX_CELLS = 1 << 24  # per block
MAX_COLUMNS = 1 << 20
ENCODING = ("utf-8", "surrogateescape")
SKIPPED, NUMBER, TEXT = range(3)  # how a column is read in C

Column: TypeAlias = "Sequence[str] | npt.NDArray[Any]"  # doubles (nan: missing) or integers


@dataclass(frozen=True, eq=False)
class TableBlock:
    """Some rows of a table, stored by column."""

    columns: list[Column]
    lines: IntArray  # the line where each row starts, or the row's number if the file has no lines
    name: str = ""  # of the table, as in "name:line" or "name: row number"
    decimal_comma: bool = False

    @property
    def n_rows(self) -> int:
        return len(self.lines)

    def where(self, row: int) -> str:
        """Return the location of a row, which is counted from 0, in the file."""
        return f"{self.name}{self.lines[row]}"


class Table(ABC):
    """A table of named columns, read in blocks."""

    name: str
    columns: list[str]
    n_numbered: int = 0  # how many leading columns have numbers instead of names
    require_unchanged: Callable[[], object] = int  # ends each pass over an array; replaced by files

    @abstractmethod
    def blocks(
        self, used: Container[object] | None = None, numbers: Container[object] = ()
    ) -> Iterator[TableBlock]:
        """Yield all rows from the beginning; a table from a pipe can be read only once.

        Columns that are not ``used`` may be empty. The columns ``numbers`` may already be converted
        to numbers, with nan for missing values.
        """

    def first_block(self, used: Container[object] | None = None) -> TableBlock | None:
        """Return the first rows; ``blocks`` yields them again."""
        return next(self.blocks(used), None)


def rows_at_once(n_columns: int) -> int:
    n_columns = max(1, n_columns)
    size = max(MIN_ROWS, min(MAX_ROWS, CELLS_AT_ONCE // n_columns))
    return max(1, min(size, MAX_CELLS // n_columns))


def separators_of(line: str, next_line: str) -> list[str]:
    """Return what may separate the columns of a table, the most frequent candidate first.

    If the first line has several candidates, those that occur as often in the next line are left.
    """
    plain, following = (re.sub(r'"[^"]*"', "", text) for text in (line, next_line))
    found = sorted(filter(plain.count, "\t,;|"), key=plain.count, reverse=True) or [","]
    return [mark for mark in found if plain.count(mark) == following.count(mark)] or found[:1]


def uses_decimal_commas(columns: Sequence[Sequence[str]]) -> bool:
    """Whether these columns have numbers with decimal commas and none with decimal points.

    A column counts if all of its cells are such numbers or integers. '1,234' alone does not count,
    as the comma may separate thousands.
    """
    if not any("," in cell for cells in columns for cell in cells):
        return False
    found = False
    for cells in columns:
        texts = [text for text in map(str.strip, cells) if not is_missing(text)]
        numbers = [text for text in texts if is_number(text)]
        commas = [text for text in texts if re.fullmatch(COMMA_NUMBER, text)]
        if len(numbers) + len(commas) == len(texts) and texts:
            if any("." in text for text in numbers):
                return False
            found |= any(
                text.lstrip("+-")[0] == "0" or not re.fullmatch(GROUPED_NUMBER, text)
                for text in commas
            )
    return found


def unique_column_names(names: Sequence[str], where: str) -> list[str]:
    """Strip column names and number the unnamed ones; duplicates are an error."""
    found: dict[str, int] = {}
    given = {text.strip() for text in names}
    for number, text in enumerate(names):
        own = str(number + 1)
        name = text.strip() or (f"unnamed {own}" if own in given else own)
        if name in found:
            raise DataError(
                f"{where}: column '{name}' appears twice, first as column {found[name] + 1}",
                "give each column its own name; if the file has no header: `no_header=True`",
            )
        found[name] = number
    return list(found)


class TextTable(Table):
    """A table in CSV, TSV or a similar format, with CSV quoting and an optional header."""

    def __init__(
        self,
        name: str,
        pieces: Callable[[], Iterable[bytes]],
        *,
        separator: str | None = None,
        header: bool = True,
    ) -> None:
        """``pieces`` returns the text from the beginning; without ``separator``, it is detected."""
        self.name = name
        self._pieces = pieces
        self._separator = separator
        self._header = header
        self._decimal_comma: bool | None = None  # unknown until the first rows are read
        self._first_kinds: list[IntArray] = []  # how the first pass reads columns, once known
        self._started: Iterator[TableBlock] | None = self._read(self._first_kinds)
        self.columns = []
        self._first = next(self._started, None)
        if not self.columns:
            raise DataError(f"{name}: no rows", "the file is empty or has only blank lines")

    def blocks(
        self, used: Container[object] | None = None, numbers: Container[object] = ()
    ) -> Iterator[TableBlock]:
        kinds = np.array(
            [
                NUMBER if at in numbers else TEXT if used is None or at in used else SKIPPED
                for at in range(len(self.columns))
            ],
            np.int64,
        )
        if self._started is not None:
            started, self._started = self._started, None
            self._first_kinds.append(kinds)
            if self._first is not None:
                yield self._first
            yield from started
            return
        yield from self._read([kinds])

    def first_block(self, used: Container[object] | None = None) -> TableBlock | None:
        return self._first

    def _read(self, kinds: Sequence[IntArray]) -> Iterator[TableBlock]:
        """Read all rows, as text until the column types are known."""
        text = _Lines(self.name, iter(self._pieces()))
        filled = (line for line in text if line.strip())
        opening = next(filled, "")
        separator = self._separator
        if stated := re.fullmatch(SEPARATOR_LINE, opening.rstrip("\r\n")):
            separator = separator or stated[1]
            opening = next(filled, "")
        if not opening:
            return
        line = text.n_lines
        separator = separator or self._detect_separator(opening, text)
        reader = csv.reader(itertools.chain([opening], text), delimiter=separator, strict=True)
        names = self._record(reader, text) or []
        self.columns = [str(number + 1) for number in range(len(names))]
        rows, lines = [names], [line]
        if self._has_header(names, line):
            if len(names) > MAX_COLUMNS:
                raise DataError(
                    f"{self.name}:{line}: {len(names):,} columns (at most {MAX_COLUMNS:,})"
                )
            self.columns = unique_column_names(names, f"{self.name}:{line}")
            rows, lines = [], []
        size = rows_at_once(len(self.columns))
        while True:
            block = None if rows else self._simple_block(text, separator, size, *kinds)
            block = block or self._csv_block(reader, text, size, rows, lines)
            if block is None:
                return
            yield block
            rows, lines = [], []

    def _detect_separator(self, opening: str, text: _Lines) -> str:
        found = separators_of(opening, opening)
        if len(found) > 1:
            found = separators_of(opening, text.peek())
        if len(found) > 1:
            marks = " or ".join(f"'{mark}'" for mark in found)
            raise DataError(
                f"{self.name}:{text.n_lines}: columns may be separated by {marks}",
                f"state the separator in a line of its own at the beginning: sep={found[0]}",
            )
        return found[0]

    def _simple_block(
        self, text: _Lines, separator: str, size: int, kinds: IntArray | None = None
    ) -> TableBlock | None:
        """Read a block in C; return None if a row is not simple or no column is numeric.

        This reads a numeric table 6.9 times as fast as csv.reader does, up to its rows of features,
        and a table with ids and categories, quoted or not, 2.6 times (200,000 rows).
        """
        if kinds is None or not (kinds == NUMBER).any():
            return None
        if self._decimal_comma or not separator.isascii() or separator in '"\r\n\0':
            return None
        widths = int((kinds == NUMBER).sum()), int((kinds == TEXT).sum())
        values = np.empty((size, widths[0]))
        spans = np.empty((size, widths[1], 2), np.int64)
        odd = np.empty((values.size, 3), np.int64)
        while True:
            found = tokenizer.cells(text.rest, ord(separator), kinds, size, values, spans, odd)
            status, n_rows, n_bytes, n_odd = found
            if status != tokenizer.OK or not text.extend():
                break
        if status not in (tokenizer.OK, tokenizer.ROWS_FULL) or not n_rows:
            return None
        lines, part = text.n_lines + 1 + np.arange(n_rows), bytes(text.rest[:n_bytes])
        for place, start, stop in odd[:n_odd].tolist():
            cell = part[start:stop].decode(*ENCODING)
            if not is_missing(cell):
                try:
                    values.flat[place] = read_number(cell)
                except ValueError:
                    return None  # the csv reader reports the location of the cell
        text.skip(n_bytes, n_rows)
        whole = part.decode("latin-1")  # so that offsets count bytes
        numbers, texts = iter(values[:n_rows].T), iter(spans[:n_rows].transpose(1, 0, 2).tolist())
        columns: list[Column] = []
        for kind in kinds.tolist():
            if kind == NUMBER:
                columns.append(next(numbers))
            elif kind == TEXT:
                cells = [whole[start:stop] for start, stop in next(texts)]
                if not part.isascii():
                    cells = [cell.encode("latin-1").decode(*ENCODING) for cell in cells]
                columns.append(cells)
            else:
                columns.append(())
        return TableBlock(columns, lines, f"{self.name}:")

    def _csv_block(
        self, reader: Any, text: _Lines, size: int, rows: list[list[str]], lines: list[int]
    ) -> TableBlock | None:
        """Read up to ``size`` rows, without blank lines, of which some may be given."""
        width = len(self.columns)
        while len(rows) < size:
            line = text.n_lines + 1
            row = self._record(reader, text)
            if row is None:
                break
            if row and len(row) != width:
                raise DataError(
                    f"{self.name}:{line}: the row has {len(row):,} cell{'s' * (len(row) != 1)};"
                    f" expected {width:,}",
                    "is a separator missing, or does unquoted text contain one?",
                )
            if row:
                rows.append(row)
                lines.append(line)
        if not rows:
            return None
        columns = list(zip(*rows, strict=True))
        if self._decimal_comma is None:
            self._decimal_comma = uses_decimal_commas(columns)
        return TableBlock([*columns], np.array(lines), f"{self.name}:", self._decimal_comma)

    def _record(self, reader: Any, text: _Lines) -> list[str] | None:
        """Read the next record, which may span several lines; None at the end."""
        try:
            return next(reader, None)
        except csv.Error as error:
            if "\r" in text.last.rstrip("\r\n"):
                raise DataError(
                    f"{self.name}:{text.n_lines}: a carriage return in the middle of a line",
                    "lines must end in a newline; if they end in only a carriage return, convert"
                    " the file: tr '\\r' '\\n' < FILE > NEW; a cell with a carriage return needs"
                    " quotes",
                ) from None
            raise DataError(
                f"{self.name}:{text.n_lines}: not valid CSV: {error}",
                "is a closing quote missing? inside quoted cells, quotes must be doubled",
            ) from None

    def _has_header(self, names: list[str], line: int) -> bool:
        if not self._header:
            return False
        texts = [text.strip() for text in names]
        numbers = [text for text in texts if is_number(text) or re.fullmatch(COMMA_NUMBER, text)]
        others = set(texts) - set(numbers)
        counted = [[str(first + one) for one in range(len(numbers))] for first in (0, 1)]
        # names that pandas and others write: 0, 1, 2 after an empty cell; id, label, 1, 2
        if numbers and not (others and others <= {"", "id", "label"} and numbers in counted):
            shown = f"'{numbers[0]}'" if others else "only numbers"
            raise DataError(
                f"{self.name}:{line}: the first line contains {shown}; is it a header?",
                "if it names the columns, change such names to words; if not: `no_header=True`",
            )
        return True


class _Lines(Iterator[str]):
    """Yields the lines of a text; another reader can read lines from ``rest`` and skip them."""

    def __init__(self, name: str, pieces: Iterator[bytes]) -> None:
        self._name = name
        self._pieces = whole_lines(without_mark(pieces))
        self._data = b""  # complete lines
        self._at = 0  # everything before this offset has been consumed
        self.last = ""  # the line read last
        self.n_lines = 0

    def extend(self) -> bool:
        """Append another piece of text to the rest; return False at the end."""
        piece = next(self._pieces, b"")
        if b"\0" in piece:
            raise DataError(f"{self._name}: a NUL byte; expected text", "is the file binary?")
        self._data, self._at = (bytes(self.rest) + piece if self.rest else piece), 0
        return bool(piece)

    def peek(self) -> str:
        """Return the next line that is not blank, or "", without consuming it."""
        while True:
            lines = bytes(self.rest).decode(*ENCODING).split("\n")
            if filled := next(filter(str.strip, lines), None):
                return filled
            if not self.extend():
                return ""

    @property
    def rest(self) -> memoryview:
        """The lines that were read from the file but not yet consumed here."""
        return memoryview(self._data)[self._at :]

    def skip(self, n_bytes: int, n_lines: int) -> None:
        """Skip lines that another reader has read."""
        self._at += n_bytes
        self.n_lines += n_lines

    def __next__(self) -> str:
        if self._at == len(self._data) and not self.extend():
            raise StopIteration
        stop = self._data.index(b"\n", self._at) + 1
        line = self._data[self._at : stop].decode(*ENCODING)
        self.skip(stop - self._at, 1)
        self.last = line
        return line
