"""Convert table columns to features: numbers, one-hot encoded categories, SMILES fingerprints.

The first rows decide the type of a column once and for all: a column of strings is categorical, and
a string in a numeric column is an error. Features are numbered in order of appearance, numeric
columns first.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError, Message, ParameterError
from resvm_cli.files.delimited import Table, TableBlock
from resvm_cli.files.fields import is_missing
from resvm_cli.files.svmlight import Block
from resvm_cli.rows import FloatArray, IntArray, Rows
from resvm_cli.tables.cell_values import (
    Morgan,
    class_of,
    content_of,
    id_like_content,
    ids_of,
    is_text,
    labels_of,
    matrix_of,
    no_value,
    numbers_of,
    texts_of,
)
from resvm_cli.tables.encoding import (
    ColumnNumbers,
    ColumnRoles,
    FeatureMap,
    MappedColumn,
    MissingRule,
    check_roles,
)

Mask: TypeAlias = npt.NDArray[np.bool_]
Entries: TypeAlias = tuple[IntArray, IntArray, FloatArray]  # rows, features, values
MAX_VALUES = 1000  # distinct strings in a column that was not declared categorical
BITS, RADIUS = 2048, 2
SHOWN = 20
SHOWN_ROWS = 5


class TableFeatures:
    """The rows of a table as features, block by block."""

    def __init__(
        self,
        table: Table,
        roles: ColumnRoles,
        known: FeatureMap | None = None,
        *,
        selective: bool = False,
    ) -> None:
        """``known`` is the feature map of another table, which this table reuses.

        With ``selective``, columns of ids, dates and free text do not become features.
        """
        self.table = table
        self.roles = roles
        self._selective = selective
        self._columns = columns = ColumnNumbers(table, roles)
        self._features = columns.features
        self._followers: list[TableFeatures] = []  # tables that share the map
        self.map = known or FeatureMap()
        self._decided = known is not None
        self._may_grow = known is None
        self._plan: list[tuple[MappedColumn, int]] = []
        self.missing: MissingRule = roles.missing or "refuse"
        self.n_dropped = 0
        self.dropped: list[str] = []  # locations of the first dropped rows
        self._kept: IntArray | None = None  # numbers of the other rows; None if none was dropped
        self.n_read = 0
        self.n_missing: Counter[str] = Counter()  # values that were filled in, by column
        self.unseen: dict[str, tuple[int, str]] = {}  # rows and first text of new categories
        self.labels_seen: dict[str, None] = {}
        self.id_like: dict[str, str] = {}  # numeric columns that may be ids, and why
        self.excluded: dict[str, str] = {}  # columns that are not features, and their content
        if known is not None:
            self._plan = self._planned()
            self._apply_map()

    def follow(self, first: TableFeatures) -> None:
        """Share the map of another table, as if this table's rows followed that table's."""
        names, own = ([one.table.columns[at] for at in one._features] for one in (first, self))
        for here, there, name in ((names, own, self), (own, names, first)):
            if lacking := sorted(set(here) - set(there)):
                raise DataError(
                    f"{name.table.name}: no column '{lacking[0]}', which the other file has",
                    Message(
                        "known positives and unlabeled rows must have the same columns; choose some"
                        " with {columns}, or omit those that differ: {drop:{names}}",
                        names=shlex.quote(",".join(lacking[:SHOWN])),
                    ),
                )
        self.map = first.map
        first._followers.append(self)

    def _apply_map(self) -> None:
        """Impute as in the feature map; raise ParameterError for a role that contradicts it."""
        roles = self.roles
        check_roles(self.map, self._columns, roles)
        if roles.missing is None and self.map.missing is not None:
            self.missing = self.map.missing
        elif self.map.fills and roles.missing is None:
            self.missing = "zero"  # for categories: numeric columns have their own values
        if roles.missing == "zero":  # change a copy, as the map may belong to a model
            columns = [
                replace(column, fill=0.0) if column.kind == "number" else column
                for column in self.map.columns
            ]
            self.map = replace(self.map, columns=columns)
            self._plan = self._planned()
        self._features = []

    @property
    def categories(self) -> dict[str, int]:
        """The text columns, with the number of features for each."""
        texts = (column for column, _ in self._plan if column.kind == "text")
        return {column.name: len(column.values) for column in texts}

    @property
    def ignored(self) -> list[str]:
        """The columns that the feature map does not use and that have no other role."""
        used = self._used | self._columns.dropped
        names = self.table.columns[: self.table.n_default]
        return [name for number, name in enumerate(names) if number not in used]

    @property
    def _used(self) -> set[int | None]:
        roles = {self._columns.label, self._columns.row_id, self._columns.smiles}
        return {*self._features, *roles, *(at for _, at in self._plan)}

    def blocks(self) -> Iterator[Block]:
        """Yield all rows; a second pass yields the same features."""
        self.n_dropped = self.n_read = 0
        self.n_missing.clear()
        self.dropped, self.unseen = [], {}
        self.decide()
        numbers = {at for column, at in self._plan if column.kind == "number"}
        kept: list[IntArray] = []
        before = 0
        for block in self.table.blocks(self._used, numbers):
            encoded = self._encoded(block)
            if self.missing == "drop":
                kept.append(before + np.searchsorted(block.lines, encoded.lines))
                before += block.n_rows
            self.n_read += block.n_rows
            yield encoded
        self._kept = np.concatenate(kept) if self.n_dropped else None

    def rows_of_file(self, numbers: IntArray) -> IntArray:
        """Convert numbers of kept rows to row numbers in the file; read all rows first."""
        return numbers if self._kept is None else self._kept[numbers]

    def cells(self) -> Iterator[tuple[TableBlock, IntArray]]:
        """Yield the rows with all columns, and the numbers of those that are not dropped."""
        for block in self.table.blocks(range(self.table.n_sparse, len(self.table.columns))):
            kept = np.arange(block.n_rows)
            if self.missing == "drop":
                kept = np.searchsorted(block.lines, self._encoded(block).lines)
            yield block, kept

    def decide(self) -> None:
        """Decide how columns are encoded, unless that is already decided or a map was given."""
        if self._decided:
            return
        tables = [self, *self._followers]
        self._decide_kinds([(one, one._first_block()) for one in tables])
        for one in tables:
            one._plan = one._planned()
            one._decided = True
        if self.missing in ("mean", "median"):
            self._impute(tables)

    def _first_block(self) -> TableBlock:
        first = self.table.first_block(self._used)
        if first is None:
            raise DataError(f"{self.table.name}: no rows", "the file contains only column names")
        return first

    def _planned(self) -> list[tuple[MappedColumn, int]]:
        """Return the columns of the map, with their numbers in this table."""
        owner = "feature map" if self.map.missing is None else "model"
        return [(one, self._columns.required(one.name, owner)) for one in self.map.columns]

    def _decide_kinds(self, firsts: Sequence[tuple[TableFeatures, TableBlock]]) -> None:
        """Decide from the first rows of all tables how each column is encoded."""
        roles, names = self.roles, self.table.columns
        texts, columns = [], []
        for number in self._features:
            name = names[number]
            cells = [(first, one._columns.by_name[name]) for one, first in firsts]
            is_sparse = number < self.table.n_sparse
            if number in self._columns.categorical or (not is_sparse and is_text(cells, name)):
                content = content_of(cells) if self._selective else None
                if content and number not in self._columns.categorical and not roles.only:
                    self.excluded[name] = content
                else:
                    texts.append(name)
            else:
                fill = 0.0 if self.missing == "zero" else None
                columns.append(MappedColumn(name, "number", self.map.add(name), fill))
                if not (is_sparse or roles.only) and (why := id_like_content(cells, name)):
                    self.id_like[name] = why
        if self._columns.smiles is not None:
            column = MappedColumn(names[self._columns.smiles], "morgan", counts=roles.counts)
            column.bits = BITS if roles.bits is None else roles.bits
            column.radius = RADIUS if roles.radius is None else roles.radius
            column.first = self.map.add(*(f"morgan_{bit}" for bit in range(column.bits)))
            columns.append(column)
        self.map.columns = [*columns, *(MappedColumn(name, "text") for name in texts)]
        if not self.map.columns:
            hint = (
                "ids, dates and free text are left out; to one-hot encode a column anyway:"
                " {categorical:NAME}; for fingerprints of molecules: resvm convert FILE"
                " {smiles_column:NAME} {map:features.json} {output:data.svm}"
            )
            what = "no columns are left for features"
            raise ParameterError(what, hint if self.excluded else None)

    def _impute(self, tables: Sequence[TableFeatures]) -> None:
        """Read all numbers once to compute the mean or median of each column."""
        numbers = self._dense_numbers
        median = self.missing == "median"
        kept: list[list[FloatArray]] = [[] for _ in numbers]
        sums, counts = np.zeros(len(numbers)), np.zeros(len(numbers))
        for table in tables:
            numeric = {table._columns.by_name[column.name] for column, _ in numbers}
            for block in table.table.blocks(table._used, numeric):
                for index, (column, _) in enumerate(numbers):
                    values = numbers_of(block, table._columns.by_name[column.name], column.name)
                    values = values[~np.isnan(values)]
                    if median:
                        kept[index].append(values)
                    sums[index] += values.sum()
                    counts[index] += len(values)
        for index, (column, _) in enumerate(numbers):
            if not counts[index]:
                raise DataError(
                    f"{self.table.name}: column '{column.name}' contains no numbers, so it has no"
                    f" {self.missing}",
                    Message("omit it: {drop:{column}}", column=shlex.quote(column.name)),
                )
            middle = (
                np.median(np.concatenate(kept[index])) if median else sums[index] / counts[index]
            )
            column.fill = float(middle)

    def _encoded(self, block: TableBlock) -> Block:
        n_rows = block.n_rows
        kept = np.ones(n_rows, bool)
        parts: list[Entries] = []
        if block.matrix is not None:
            parts.append(self._sparse_entries(block.matrix))
        numbers = self._dense_numbers
        if numbers:
            table = matrix_of(block, [at for _, at in numbers])
            if table is None:
                table = self._filled_in(block, numbers, kept)
            features = np.array([column.first for column, _ in numbers])
            nonzero = table != 0
            row = np.repeat(np.arange(n_rows), nonzero.sum(axis=1))
            parts.append((row, np.broadcast_to(features, table.shape)[nonzero], table[nonzero]))
        for column, at in self._plan:
            if column.kind == "text":
                parts.append(self._categories(block, column, at, kept))
            elif column.kind == "morgan":
                morgan = Morgan(column.bits, column.radius, column.counts)
                keep = kept if self.missing == "drop" else None
                row, bit, count = morgan.entries(block, at, keep)
                parts.append((row, column.first + bit, count))
        rows = _rows_of(n_rows, parts)
        ids = None if self._columns.row_id is None else ids_of(block, self._columns.row_id)
        labels = self._labels(block)
        encoded = replace(Block.from_rows(rows, labels, ids), lines=block.lines)
        if not kept.all():
            self.n_dropped += int((~kept).sum())
            first = np.flatnonzero(~kept)[: SHOWN_ROWS - len(self.dropped)]
            self.dropped += [block.where(row, self._plan[0][1]) for row in first.tolist()]
            encoded = encoded.take(np.flatnonzero(kept))
        return encoded

    @cached_property
    def _dense_numbers(self) -> list[tuple[MappedColumn, int]]:
        dense = self.table.n_sparse
        return [(one, at) for one, at in self._plan if one.kind == "number" and at >= dense]

    @cached_property
    def _sparse_features(self) -> IntArray:
        """The feature of each column of a sparse matrix, or 0; columns are numbered from 1."""
        features = np.zeros(self.table.n_sparse + 1, np.int64)
        for column, at in self._plan:
            if at < self.table.n_sparse:
                features[at + 1] = column.first
        return features

    def _sparse_entries(self, matrix: Rows) -> Entries:
        features = self._sparse_features[matrix.indices]
        used = features > 0
        rows, features, values = matrix.row_numbers[used], features[used], matrix.values[used]
        order = np.lexsort((features, rows))
        return rows[order], features[order], values[order]

    def _filled_in(
        self, block: TableBlock, numbers: Sequence[tuple[MappedColumn, int]], kept: Mask
    ) -> FloatArray:
        """Return numeric columns as a matrix, rows x columns, with missing values filled in."""
        table = np.empty((block.n_rows, len(numbers)))
        for index, (column, at) in enumerate(numbers):
            values = numbers_of(block, at, column.name, like=not self._may_grow)
            missing = np.isnan(values)
            if self.missing == "drop":
                kept &= ~missing
            elif column.fill is None and missing.any():
                row = int(np.flatnonzero(missing)[0])
                raise no_value(block, row, at, column.name, like=not self._may_grow)
            self.n_missing[column.name] += int(missing.sum())
            table[:, index] = np.where(missing, column.fill or 0.0, values)
        return table

    def _categories(self, block: TableBlock, column: MappedColumn, at: int, kept: Mask) -> Entries:
        cells = texts_of(block.columns[at])
        features = {}
        for cell in dict.fromkeys(cells):  # in the order of their first rows
            text = cell.strip()
            feature = column.values.get(text, 0)
            if is_missing(text):
                feature = 0  # all features of this column are 0
                if self.missing == "refuse":
                    row = cells.index(cell)
                    raise no_value(block, row, at, column.name, like=not self._may_grow)
                if self.missing == "drop":
                    kept &= np.array([one != cell for one in cells], bool)
                self.n_missing[column.name] += cells.count(cell)
            elif not feature and self._may_grow:
                feature = self._new_value(block, column, cells.index(cell), at, text)
            elif not feature:
                count, first = self.unseen.get(column.name, (0, text))
                self.unseen[column.name] = count + sum(one == cell for one in cells), first
            features[cell] = feature
        found = np.fromiter(map(features.__getitem__, cells), np.int64, len(cells))
        rows = np.flatnonzero(found)
        return rows, found[rows], np.ones(len(rows))

    def _new_value(
        self, block: TableBlock, column: MappedColumn, row: int, at: int, text: str
    ) -> int:
        if len(column.values) >= MAX_VALUES and at not in self._columns.categorical:
            raise DataError(
                f"{block.where(row, at)}: column '{column.name}' has more than"
                f" {MAX_VALUES:,} different values; are they ids?",
                Message(
                    "use {id_column:{column}}, {drop:{column}}, or {categorical:{column}} to make"
                    " each value a feature",
                    column=shlex.quote(column.name),
                ),
            )
        column.values[text] = self.map.add(f"{column.name}={text}")
        return column.values[text]

    def _labels(self, block: TableBlock) -> FloatArray | None:
        if self._columns.label is None:
            return None
        cells = block.columns[self._columns.label]
        if self.roles.positive_labels:
            texts = [text.strip() for text in texts_of(cells)]
            if len(self.labels_seen) < SHOWN:
                self.labels_seen.update(dict.fromkeys(texts[:1000]))
            marked = class_of(self.roles.positive_labels, self.roles.negative_labels)
            known = {text: marked(text) for text in set(texts)}
            return np.fromiter(map(known.__getitem__, texts), np.float64, len(texts))
        return labels_of(block, self._columns.label, self.table.columns[self._columns.label])


def _rows_of(n_rows: int, parts: list[Entries]) -> Rows:
    """Build sparse rows from their entries; each part is sorted by row, then by feature."""
    row, feature, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    if len(parts) > 1:
        order = np.lexsort((feature, row))
        row, feature, value = row[order], feature[order], value[order]
    indptr = np.zeros(n_rows + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=n_rows), out=indptr[1:])
    return Rows(indptr, feature.astype(np.int32), value)
