"""Write the user's table again, with result columns appended."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.files.atomic import whole_file
from resvm_cli.files.delimited import TableBlock
from resvm_cli.files.fields import line_writer
from resvm_cli.files.predictions import PredictionBlock
from resvm_cli.files.svmlight import format_number
from resvm_cli.rows import IntArray
from resvm_cli.tables.cells import numbers_of
from resvm_cli.tables.features import TableFeatures

Columns: TypeAlias = list[list[Any]]  # None for an empty cell
PREFIX = "resvm_"  # for a result column whose name the table already uses
SEPARATORS = {".csv": ",", ".tsv": "\t"}
ROWS_AT_ONCE = 10_000


def _is_parquet(path: str) -> bool:
    return path.lower().endswith(".parquet")


class Cells:
    """The cells of a table, read again from the start, a few rows at a time."""

    def __init__(self, table: TableFeatures, *, numbers: bool) -> None:
        """With ``numbers``, the cells of numeric features become numbers; others remain text."""
        self.names = table.table.columns[table.table.n_sparse :]  # without the sparse matrix
        self.integers = table.table.integers
        self._table = table
        self._numeric = table.numeric_names
        self._as_numbers = numbers
        self._waiting: Columns = [[] for _ in self.names]
        self._blocks = iter(table.cells())

    def take(self, n_rows: int) -> Columns:
        while len(self._waiting[0]) < n_rows:
            found = next(self._blocks, None)
            if found is None:
                raise DataError(
                    f"{self._table.table.name}: changed while it was being read", "try again"
                )
            for column, more in zip(self._waiting, self._columns(*found), strict=True):
                column += more
        taken = [column[:n_rows] for column in self._waiting]
        self._waiting = [column[n_rows:] for column in self._waiting]
        return taken

    def chosen(self, numbers: IntArray) -> Columns:
        """Return the cells of the rows with these numbers, in this order."""
        order = np.argsort(numbers, kind="stable")
        ascending = numbers[order]
        found: Columns = [[] for _ in self.names]
        before = 0
        for block, rows in self._blocks:
            first, last = np.searchsorted(ascending, [before, before + len(rows)])
            wanted = rows[ascending[first:last] - before]
            for column, more in zip(found, self._columns(block, wanted), strict=True):
                column += more
            before += len(rows)
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return [[column[place] for place in places.tolist()] for column in found]

    def _columns(self, block: TableBlock, rows: IntArray) -> Columns:
        first = self._table.table.n_sparse
        return [self._values(block, at, name, rows) for at, name in enumerate(self.names, first)]

    def _values(self, block: TableBlock, at: int, name: str, rows: IntArray) -> list[Any]:
        """Return some cells of a column; a missing number is None, and integers stay exact."""
        cells = block.columns[at]
        if name in self.integers:  # a block with missing values stores them as doubles
            some = [cells[row] for row in rows.tolist()]
            return [None if cell == "" or cell != cell else int(cell) for cell in some]
        if isinstance(cells, np.ndarray):
            is_number, is_integer = True, cells.dtype.kind in "iu"
        else:
            is_number, is_integer = self._as_numbers and name in self._numeric, False
        if not is_number:
            return [cells[row] for row in rows.tolist()]
        if self._as_numbers and not is_integer:
            cells = numbers_of(block, at, name)
        return [None if value != value else value for value in np.asarray(cells)[rows].tolist()]


@contextmanager
def annotated(
    path: str, names: Sequence[str], integers: Container[str] = ()
) -> Iterator[Callable[[Columns], None]]:
    """Yield a function that writes a batch of rows, passed as columns.

    ``names`` are the column names, which are distinct. ``integers`` are the columns known to
    contain integers.
    """
    with whole_file(path) as file:
        if _is_parquet(path):
            from resvm_cli.files.optional_formats import parquet_writer

            with parquet_writer(path, file, names, integers) as write:
                yield write
            return
        line = line_writer(SEPARATORS[path[-4:].lower()])
        file.write(line(names).encode("utf-8", "surrogateescape"))

        def write_text(columns: Columns) -> None:
            rows = zip(*([*map(_text, column)] for column in columns), strict=True)
            file.write("".join(map(line, rows)).encode("utf-8", "surrogateescape"))

        yield write_text


class Annotation(ExitStack):
    """The annotated table of a prediction, written block by block as rows are predicted."""

    def __init__(self, path: str, table: TableFeatures) -> None:
        super().__init__()
        self._path = path
        self._cells = Cells(table, numbers=_is_parquet(path))
        self._write: Callable[[Columns], None] | None = None

    def add(self, block: PredictionBlock) -> None:
        results = block.columns
        if self._write is None:
            names = self._cells.names
            every = [*names, *result_names(names, list(results))]
            self._write = self.enter_context(annotated(self._path, every, self._cells.integers))
        cells = self._cells.take(len(block.labels))
        self._write([*cells, *(column.tolist() for column in results.values())])


def result_names(columns: Sequence[str], results: Sequence[str]) -> list[str]:
    """Return the names of result columns; a name already in the table gets a prefix."""
    taken, names = set(columns), []
    for name in results:
        while name in taken:
            name = PREFIX + name
        taken.add(name)
        names.append(name)
    return names


def write_annotated(
    path: str,
    tables: Sequence[TableFeatures],
    numbers: IntArray,
    n_first: int,
    results: Mapping[str, list[Any]],
) -> None:
    """Write rows of one or two tables in the order of ``numbers``, with their results.

    The row numbers of the second table start at ``n_first``. If one table lacks a column, its cells
    are empty. A header is written even if there are no rows.
    """
    in_second = numbers >= n_first
    names: dict[str, None] = {}
    integers: set[str] = set()
    others: set[str] = set()
    parts = []
    for table, which, shift in zip(tables, (~in_second, in_second), (0, n_first), strict=False):
        places = np.flatnonzero(which)
        if len(places) or not len(numbers):
            cells = Cells(table, numbers=_is_parquet(path))
            names |= dict.fromkeys(cells.names)
            integers |= set(cells.integers)
            others |= set(cells.names) - set(cells.integers)
            found = cells.chosen(numbers[places] - shift)
            parts.append((places, dict(zip(cells.names, found, strict=True))))
    columns: Columns = []
    for name in names:
        column: list[Any] = [None] * len(numbers)
        for places, cells_of in parts:
            for place, cell in zip(places.tolist(), cells_of.get(name, ()), strict=False):
                column[place] = cell
        columns.append(column)
    own = result_names(list(names), list(results))
    # the first rows written decide the types of Parquet columns, so all are written at once
    n_rows = max(1, len(numbers))  # a Parquet file without rows needs columns too
    size = n_rows if _is_parquet(path) else ROWS_AT_ONCE
    with annotated(path, [*names, *own], integers - others) as write:
        for start in range(0, n_rows, size):
            write([column[start : start + size] for column in (*columns, *results.values())])


def _text(cell: Any) -> Any:
    if cell is None or cell != cell:
        return ""
    return format_number(cell) if isinstance(cell, float) else cell
