"""Tables of named columns: CSV and the like, read row by row, every cell with its place.

A block holds some rows by columns, each as texts or as numbers. The size of blocks depends on the
number of columns alone, so what is decided from the first of them does not depend on how the text
happened to arrive.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from resvm_cli.errors import DataError
from resvm_cli.files.file_kinds import separator_of
from resvm_cli.files.streams import BYTE_ORDER_MARK, whole_lines
from resvm_cli.rows import FloatArray

CELLS_AT_ONCE = 1 << 14  # they stay in the cache
MOST_ROWS = 1 << 12
LEAST_ROWS = 1 << 6
MOST_COLUMNS = 1 << 20
COMMA_NUMBER = re.compile(r"[-+]?[0-9]*,[0-9]+(?:[eE][-+]?[0-9]+)?")
FRACTION = re.compile(r"[-+]?[0-9]*\.[0-9]+(?:[eE][-+]?[0-9]+)?")
ADVICE_ON_HEADERS = "add --no-header where there are none, --header where they are names"

Column: TypeAlias = "Sequence[str] | FloatArray"  # numbers are nan where there is none


@dataclass(frozen=True, eq=False)
class TableBlock:
    """Some rows by their columns."""

    columns: list[Column]
    n_rows: int
    place: Callable[[int, int], str]  # of a row and a column, both from 0: file:line:column


class Table(ABC):
    """Named columns, block by block."""

    name: str
    columns: list[str]
    unnamed: Sequence[str] = ()  # what columns are called here that have no name

    @abstractmethod
    def blocks(self) -> Iterator[TableBlock]:
        """All rows from the beginning; a table that comes by a pipe may allow this once."""


def rows_at_once(n_columns: int) -> int:
    """How many rows a block of so many columns has."""
    return max(LEAST_ROWS, min(MOST_ROWS, CELLS_AT_ONCE // max(1, n_columns)))


def unique_names(names: Sequence[str], place: Callable[[int], str]) -> list[str]:
    """Column names as they are, a number where there is none; none may come twice."""
    found: dict[str, int] = {}
    given = {text.strip() for text in names}
    for number, text in enumerate(names):
        name = text.strip() or unnamed(number, given)
        if name in found:
            raise DataError(
                f"{place(number)}: the column '{name}' comes twice, first as column"
                f" {found[name] + 1}",
                "give each column a name of its own",
            )
        found[name] = number
    return list(found)


def unnamed(number: int, given: Container[str]) -> str:
    """What a column without a name is called: its number, unless another has that name."""
    text = str(number + 1)
    return f"unnamed {text}" if text in given else text


def read_number(text: str) -> float:
    """Python's float of a text, without what only Python allows; ValueError if none."""
    if not is_plain(text):
        raise ValueError(text)
    return float(text)


def is_plain(text: str) -> bool:
    """Whether a text has neither underscores nor the digits of other scripts."""
    return "_" not in text and text.isascii()


class TextTable(Table):
    """CSV, TSV or the like: quoted as CSV is, with one line of column names or none."""

    def __init__(
        self,
        name: str,
        pieces: Callable[[], Iterable[bytes]],
        *,
        separator: str | None = None,
        header: bool | None = None,
        decimal_comma: bool = False,
    ) -> None:
        """``pieces`` gives the text from the beginning; whether there is a header may be open."""
        self.name = name
        self._pieces = pieces
        self._separator = separator
        self._header = header
        self._decimal_comma = decimal_comma
        self._started: Iterator[TableBlock] | None = self._read()
        self.columns = []
        self._first = next(self._started, None)
        if not self.columns:
            raise DataError(f"{name}: no rows", "the file is empty or holds only blank lines")

    def blocks(self) -> Iterator[TableBlock]:
        if self._started is not None:
            started, self._started = self._started, None
            if self._first is not None:
                yield self._first
            yield from started
            return
        yield from self._read()

    def _read(self) -> Iterator[TableBlock]:
        kept: list[str] = []  # the lines of the rows being read, for places

        def lines() -> Iterator[str]:
            first = True
            for piece in whole_lines(self._pieces()):
                if first:
                    piece = piece.removeprefix(BYTE_ORDER_MARK)
                    first = False
                for line in io.StringIO(piece.decode("utf-8", "surrogateescape"), newline="\n"):
                    kept.append(line)
                    yield line

        text = lines()
        blank = 0
        for opening in text:
            if opening.strip():
                break
            blank += 1
        else:
            return
        separator = self._separator or separator_of(opening)
        del kept[:-1]
        reader = csv.reader(itertools.chain([opening], text), delimiter=separator, strict=True)
        record = self._records(reader, 1, blank)
        names = record[0]
        before = blank + reader.line_num
        rows: list[list[str]] = []
        if self._has_header(names, blank + 1):
            self._require_columns(names, blank + 1)
            self.columns = unique_names(names, _Places(self.name, blank, kept[:], separator)(0))
            pairs = zip(names, self.columns, strict=True)
            self.unnamed = [column for name, column in pairs if not name.strip()]
        else:
            self.columns = [str(number + 1) for number in range(len(names))]
            rows, before = record, blank
        size = rows_at_once(len(self.columns))
        if not rows:
            kept.clear()
        while True:
            rows = rows + self._records(reader, size - len(rows), blank)
            if not rows:
                return
            yield self._block(rows, _Places(self.name, before, kept[:], separator))
            before = blank + reader.line_num
            kept.clear()
            rows = []

    def _records(self, reader: Any, count: int, blank: int) -> list[list[str]]:
        try:
            return list(itertools.islice(reader, count))
        except csv.Error as error:
            raise DataError(
                f"{self.name}:{blank + reader.line_num}: not as CSV is written: {error}",
                "is a quote not closed, or is there text behind one? quotes are doubled inside"
                " quoted cells",
            ) from None

    def _has_header(self, names: list[str], line: int) -> bool:
        if self._header is not None:
            return self._header
        if len(names) > 1 and all(map(_is_number, names)):
            raise DataError(
                f"{self.name}:{line}: the first line holds numbers only; are these column names?",
                ADVICE_ON_HEADERS,
            )
        fraction = next((text for text in names if FRACTION.fullmatch(text.strip())), None)
        if fraction is not None:  # whole numbers do name columns
            raise DataError(
                f"{self.name}:{line}: '{fraction.strip()}' is on the first line; are these column"
                " names?",
                ADVICE_ON_HEADERS,
            )
        return True

    def _require_columns(self, names: list[str], line: int) -> None:
        if len(names) > MOST_COLUMNS:
            raise DataError(f"{self.name}:{line}: {len(names):,} columns; {MOST_COLUMNS:,} at most")

    def _block(self, rows: list[list[str]], places: _Places) -> TableBlock:
        width = len(self.columns)
        if set(map(len, rows)) != {width}:
            numbers = [number for number, row in enumerate(rows) if row]  # blank lines are none
            places.numbers = numbers
            rows = [rows[number] for number in numbers]
            for number, row in enumerate(rows):
                if len(row) != width:
                    raise DataError(
                        f"{places(number)(min(len(row), width) - 1)}: a row of {len(row):,}"
                        f" columns; {width:,} were expected",
                        "is a separator missing, or is one part of a text that is not quoted?",
                    )
        columns: list[Column] = list(zip(*rows, strict=True)) if rows else [()] * width
        if self._decimal_comma:
            columns = [list(map(_with_point, cells)) for cells in columns]
        return TableBlock(columns, len(rows), lambda row, column: places(row)(column))


class _Places:
    """Where the cells of some rows stand; looked for only when one is to be named."""

    def __init__(self, name: str, lines_before: int, lines: list[str], separator: str) -> None:
        self._name = name
        self._before = lines_before
        self._lines = lines
        self._separator = separator
        self.numbers: list[int] | None = None  # of the rows that are not blank

    def __call__(self, row: int) -> Callable[[int], str]:
        """The places of one row's cells."""
        record = row if self.numbers is None else self.numbers[row]

        def place(column: int) -> str:
            line = at = 0  # of the record
            reader = csv.reader(self._lines, delimiter=self._separator, strict=True)
            for number, _ in enumerate(reader):
                if number == record:
                    break
                line = reader.line_num
            quoted = False
            fields = 0
            start = (line, 1)
            for number, text in enumerate(self._lines[line:], line):
                for at, character in enumerate(text):
                    if fields == column:
                        return self._written(*start)
                    if character == '"':
                        quoted = not quoted
                    elif character == self._separator and not quoted:
                        fields += 1
                        start = (number, at + 2)
                if not quoted:
                    break
            return self._written(*start)

        return place

    def _written(self, line: int, column: int) -> str:
        return f"{self._name}:{self._before + line + 1}:{column}"


def _with_point(cell: Any) -> str:
    text = str(cell)
    return text.replace(",", ".") if COMMA_NUMBER.fullmatch(text.strip()) else text


def _is_number(text: str) -> bool:
    try:
        read_number(text)
    except ValueError:
        return False
    return True
