"""Notes for the user about a table, and the table annotated with results, as CSV or TSV."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from resvm_cli.errors import DataError, Message, Text, listed
from resvm_cli.files.atomic import whole_file
from resvm_cli.files.delimited import TableBlock
from resvm_cli.files.fields import line_writer
from resvm_cli.files.svmlight import format_number
from resvm_cli.rows import IntArray, Rows
from resvm_cli.tables.cell_values import texts_of
from resvm_cli.tables.encoding import MappedColumn
from resvm_cli.tables.features import TableFeatures

if TYPE_CHECKING:
    from resvm_cli.files.predictions import PredictionBlock

SHOWN = 10
LABEL_NAMES = (  # common names of columns with labels
    *("label", "labels", "y", "class", "target", "active", "activity", "hit"),
    *("outcome", "status", "response"),
)
MIN_ROWS = 10  # of P and of U; a column may separate fewer by chance
Columns: TypeAlias = list[list[Any]]
PREFIX = "resvm_"  # for a result column whose name the table already uses
SEPARATORS = {".csv": ",", ".tsv": "\t"}
ROWS_AT_ONCE = 10_000


class ColumnExtremes:
    """The smallest and largest value of each feature in P and in U, from one pass."""

    def __init__(self) -> None:
        self.n_rows = [0, 0]  # of U and of P
        self._counts = np.zeros((2, 0), np.int64)  # nonzero values
        self._low, self._high = np.zeros((2, 2, 0))

    def add(self, rows: Rows, *, positive: bool) -> None:
        which = int(positive)
        self.n_rows[which] += len(rows)
        self._widen(rows.max_index + 1)
        np.minimum.at(self._low[which], rows.indices, rows.values)
        np.maximum.at(self._high[which], rows.indices, rows.values)
        self._counts[which] += np.bincount(rows.indices, minlength=self._counts.shape[1])

    def _widen(self, width: int) -> None:
        more = max(0, width - self._counts.shape[1])
        self._counts = np.pad(self._counts, ((0, 0), (0, more)))
        self._low = np.pad(self._low, ((0, 0), (0, more)), constant_values=np.inf)
        self._high = np.pad(self._high, ((0, 0), (0, more)), constant_values=-np.inf)

    def notes(self, columns: Sequence[MappedColumn]) -> Iterator[Text]:
        """Yield notes about constant columns, and columns that separate P from U perfectly."""
        self._widen(1 + max(max([one.first, *one.values.values()]) for one in columns))
        with_zeros = self._counts < np.array(self.n_rows)[:, None]
        low = np.where(with_zeros, np.minimum(self._low, 0.0), self._low)
        high = np.where(with_zeros, np.maximum(self._high, 0.0), self._high)
        constant, leaking = [], []
        for column in columns:
            if column.kind == "number":
                at = column.first
                is_constant = low[:, at].min() == high[:, at].max()
                tells = low[1, at] > high[0, at] or high[1, at] < low[0, at]
            else:
                features = np.array(list(column.values.values()), np.int64)
                is_constant = bool(
                    (self._counts[:, features].sum(axis=0) == sum(self.n_rows)).any()
                )
                tells = self._categories_tell(features)
            if is_constant:
                constant.append(column.name)
            elif tells and min(self.n_rows) >= MIN_ROWS:
                leaking.append(column.name)
        for name in leaking:
            yield Message(
                "the column '{name}' alone separates P from U perfectly; if it depends on the"
                " labels, it leaks the answer: {drop:{column}}",
                name=name,
                column=shlex.quote(name),
            )
        if constant:
            yield f"columns with the same value in every row: {listed(constant, SHOWN)}"

    def _categories_tell(self, features: IntArray) -> bool:
        """Whether P and U share no category or missing value, and a few categories cover P."""
        counts = self._counts[:, features]
        missing = np.array(self.n_rows) - counts.sum(axis=1)
        shared = (np.column_stack([counts, missing]) > 0).all(axis=0)
        return not shared.any() and 2 * int((counts[1] > 0).sum()) <= self.n_rows[1]


def doubtful_columns(table: TableFeatures) -> Iterator[Text]:
    """Yield warnings about feature columns that may really be labels or row numbers."""
    for name in (column.name for column in table.map.columns):
        texts = []
        if table.roles.label is None and name.lower() in LABEL_NAMES:
            texts.append(
                "the column '{name}' is used as a feature; if it contains labels, it leaks the"
                " answer: use {label_column} {column} or {drop} {column}"
            )
        if name in table.table.unnamed:
            texts.append(
                "the column '{name}' has no name in the file and is used as a feature; if it"
                " contains row numbers, use {id_column} {column} or {drop} {column}"
            )
        yield from (Message(text, name=name, column=shlex.quote(name)) for text in texts)
    yield from _notes_on_id_like(table.id_like)


def _notes_on_id_like(columns: Mapping[str, str]) -> Iterator[Text]:
    """Yield one note for each reason why numeric columns may be ids or codes."""
    for why in dict.fromkeys(columns.values()):
        names = [name for name, own in columns.items() if own == why]
        yield Message(
            "numeric columns with {why} may be ids or codes: {names}; if they are not"
            " measurements, use {id_column:{first}}, {categorical:{first}} or {drop:{first}}",
            names=listed([f"'{name}'" for name in names], SHOWN),
            why=why,
            first=shlex.quote(names[0]),
        )


def notes_on_rows(table: TableFeatures, owner: str) -> Iterator[Text]:
    """Yield notes about dropped rows, and about categories that ``owner`` does not contain."""
    if table.n_dropped:
        shown = [*table.dropped, *(["..."] if table.n_dropped > len(table.dropped) else [])]
        why = f"missing values or invalid molecules: {', '.join(shown)}"
        yield f"{table.n_dropped:,} rows were dropped because of {why}"
    if table.unseen:
        counts = [
            f"{name} ({n_rows:,} row{'s' * (n_rows > 1)}, first '{text[:40]}')"
            for name, (n_rows, text) in table.unseen.items()
        ]
        yield f"categories unknown to {owner} get no feature: {listed(counts, SHOWN)}"


def notes_on_prediction(table: TableFeatures) -> Iterator[Text]:
    """Yield notes about a table that was encoded as the features of a model."""
    if table.ignored:
        names = listed(table.ignored, SHOWN)
        yield f"{table.table.name}: columns that the model does not use were ignored: {names}"
    yield from notes_on_rows(table, "the model")
    filled = [f"{name} in {count:,}" for name, count in table.n_missing.items() if count]
    if filled and not table.n_dropped:
        how = "as in training" if table.map.missing in (None, table.missing) else "with 0"
        text = f"missing values were filled in {how}: {listed(filled, SHOWN)}"
        yield f"{text} of {table.n_read:,} rows"


def notes_on_training(tables: Sequence[TableFeatures], *, known: bool) -> Iterator[Text]:
    """Yield notes about the tables of P and U; ``known``: a model defines their features."""
    first = tables[0]
    for name, content in first.excluded.items():
        text = "the column '{name}' contains {content}, so it is not used as a feature; to one-hot"
        text += " encode it anyway: {categorical:{column}}"
        if "smiles" in name.lower():
            text += "; for fingerprints of molecules: resvm convert"
        elif content == "ids":
            text += "; to use it as row ids: {id_column:{column}}"
        yield Message(text, name=name, content=content, column=shlex.quote(name))
    if not known:
        yield from doubtful_columns(first)
    for table in tables:
        yield from notes_on_prediction(table) if known else notes_on_rows(table, "the model")


def remark_on_categories(table: TableFeatures) -> Text | None:
    """Return a note that lists the one-hot encoded columns; None if there are none."""
    counts = [
        f"{name} ({n_values:,} value{'s' if n_values != 1 else ''})"
        for name, n_values in table.categories.items()
    ]
    return f"categorical columns: {listed(counts, SHOWN)}" if counts else None


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
