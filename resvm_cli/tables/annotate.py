"""Write the user's table again, as CSV or TSV, with result columns appended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from resvm_cli.tables.cells import texts_of
from resvm_cli.tables.features import TableFeatures

Columns: TypeAlias = list[list[Any]]
PREFIX = "resvm_"  # for a result column whose name the table already uses
SEPARATORS = {".csv": ",", ".tsv": "\t"}
ROWS_AT_ONCE = 10_000


class Cells:
    """The cells of a table as text, read again from the start, a few rows at a time."""

    def __init__(self, table: TableFeatures) -> None:
        self._name = table.table.name
        self._n_sparse = table.table.n_sparse
        self.names = table.table.columns[self._n_sparse :]  # without the sparse matrix
        self._waiting: Columns = [[] for _ in self.names]
        self._blocks = iter(table.cells())

    def take(self, n_rows: int) -> Columns:
        while len(self._waiting[0]) < n_rows:
            found = next(self._blocks, None)
            if found is None:
                raise DataError(f"{self._name}: changed while it was being read", "try again")
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
        texts = map(texts_of, block.columns[self._n_sparse :])
        return [[column[row] for row in rows.tolist()] for column in texts]


@contextmanager
def annotated(path: str, names: Sequence[str]) -> Iterator[Callable[[Columns], None]]:
    """Yield a function that writes a batch of rows, passed as columns with these distinct names."""
    with whole_file(path) as file:
        line = line_writer(SEPARATORS[path[-4:].lower()])
        file.write(line(names).encode("utf-8", "surrogateescape"))

        def write(columns: Columns) -> None:
            rows = zip(*([*map(_text, column)] for column in columns), strict=True)
            file.write("".join(map(line, rows)).encode("utf-8", "surrogateescape"))

        yield write


class Annotation(ExitStack):
    """The annotated table of a prediction, written block by block as rows are predicted."""

    def __init__(self, path: str, table: TableFeatures) -> None:
        super().__init__()
        self._path = path
        self._cells = Cells(table)
        self._write: Callable[[Columns], None] | None = None

    def add(self, block: PredictionBlock) -> None:
        results = block.columns
        if self._write is None:
            names = self._cells.names
            every = [*names, *result_names(names, list(results))]
            self._write = self.enter_context(annotated(self._path, every))
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
    columns: dict[str, list[Any]] = {}
    for table, which, shift in zip(tables, (~in_second, in_second), (0, n_first), strict=False):
        places = np.flatnonzero(which)
        if len(places) or not len(numbers):
            cells = Cells(table)
            found = cells.chosen(numbers[places] - shift)
            for name, own in zip(cells.names, found, strict=True):
                column = columns.setdefault(name, [None] * len(numbers))
                for place, cell in zip(places.tolist(), own, strict=True):
                    column[place] = cell
    names = [*columns, *result_names(list(columns), list(results))]
    with annotated(path, names) as write:
        for start in range(0, len(numbers), ROWS_AT_ONCE):
            stop = start + ROWS_AT_ONCE
            write([column[start:stop] for column in (*columns.values(), *results.values())])


def _text(cell: Any) -> Any:
    if cell is None or cell != cell:
        return ""
    return format_number(cell) if isinstance(cell, float) else cell
