"""Convert table columns to features: numbers, one-hot encoded categories, SMILES fingerprints.

The first rows determine the type of each column: a column of strings is categorical, and a string
in a numeric column is an error. Features are numbered in order of appearance, numeric columns
first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from resvm_cli.data.cell_values import (
    bad_cells,
    content_of,
    fingerprints,
    ids_of,
    is_text,
    labels_of,
    no_value,
    numbers_of,
    texts_of,
)
from resvm_cli.data.delimited import Table, TableBlock
from resvm_cli.data.encoding import (
    ColumnNumbers,
    ColumnRoles,
    FeatureMap,
    MappedColumn,
    MissingRule,
    check_roles,
    morgan_names,
)
from resvm_cli.data.fields import class_of, is_missing
from resvm_cli.data.svmlight import Block
from resvm_cli.errors import DataError, ParameterError
from resvm_cli.rows import BoolArray, FloatArray, IntArray, Rows

BadCell: TypeAlias = tuple[str, str, str]  # column, problem, location
Entries: TypeAlias = tuple[IntArray, IntArray, FloatArray]  # rows, features, values
MAX_VALUES = 1000  # distinct strings in a column that was not declared categorical
BITS, RADIUS = 2048, 2
SHOWN, SHOWN_ROWS = 20, 5


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
        """``known`` is an existing feature map, such as a model's, that this table reuses.

        With ``selective``, columns of ids, dates and free text do not become features.
        """
        self.table = table
        self.roles = roles
        self._selective = selective
        self._columns = columns = ColumnNumbers(table, roles)
        self._features = columns.features
        self._sharing: list[TableFeatures] = []  # tables that share the map
        self.map = known or FeatureMap()
        self.is_known = known is not None  # the map was given
        self._decided = self.is_known
        self._plan: list[tuple[MappedColumn, int]] = []
        self._rest: Iterator[TableBlock] = iter(())  # of the pass over the rows
        self.missing: MissingRule = roles.missing or "refuse"
        self.n_dropped = 0
        self.dropped: list[str] = []  # locations of the first dropped rows
        self._kept: IntArray | None = None  # numbers of the kept rows; None if none was dropped
        self.n_read = 0
        self.n_missing: Counter[str] = Counter()  # values that were filled in, by column
        self.unseen: dict[str, tuple[int, str]] = {}  # rows and first text of new categories
        self.labels_seen: dict[str, None] = {}
        self.excluded: dict[str, str] = {}  # columns that are not features, and their content
        if known is not None:
            self._plan = self._planned()
            self._apply_map()

    def share_map_of(self, first: TableFeatures) -> None:
        """Share the map of another table, as if this table's rows were appended to it."""
        names, own = ([each.table.columns[at] for at in each._features] for each in (first, self))
        for here, there, table in ((names, own, self.table), (own, names, first.table)):
            if lacking := sorted(set(here) - set(there)):
                raise DataError(
                    f"{table.name}: no column '{lacking[0]}', which the other file has",
                    "known positives and unlabeled rows must have the same columns; choose some"
                    " with `columns`, or omit those that differ:"
                    f" `drop={','.join(lacking[:SHOWN])!r}`",
                )
        self.map = first.map
        first._sharing.append(self)

    def _apply_map(self) -> None:
        """Impute as in the feature map; raise ParameterError for a role that contradicts it."""
        check_roles(self.map, self._columns, self.roles)
        if self.roles.missing is None and self.map.missing is not None:
            self.missing = self.map.missing
        elif self.roles.missing is None and self.map.fills:
            self.missing = "zero"  # for categories: numeric columns have their own values
        elif self.roles.missing == "zero":  # change a copy, as the map may belong to a model
            columns = [
                replace(column, fill=0.0) if column.kind == "number" else column
                for column in self.map.columns
            ]
            self.map = replace(self.map, columns=columns)
            self._plan = self._planned()
        self._features = []

    def _planned(self) -> list[tuple[MappedColumn, int]]:
        """Return the columns of the map, with their numbers in this table."""
        owner = "feature map" if self.map.missing is None else "model"
        return [(each, self._columns.required(each.name, owner)) for each in self.map.columns]

    @property
    def categories(self) -> dict[str, int]:
        """The text columns, with the number of features for each."""
        texts = (column for column, _ in self._plan if column.kind == "text")
        return {column.name: len(column.values) for column in texts}

    @property
    def ignored(self) -> list[str]:
        """The columns that the feature map does not use and that have no other role."""
        used = self._used | self._columns.dropped
        return [name for number, name in enumerate(self.table.columns) if number not in used]

    @property
    def _used(self) -> set[int | None]:
        roles = {self._columns.label, self._columns.row_id, self._columns.smiles}
        return {*self._features, *roles, *(at for _, at in self._plan)}

    @cached_property
    def _numbers(self) -> list[tuple[MappedColumn, int]]:
        return [(column, at) for column, at in self._plan if column.kind == "number"]

    def blocks(self) -> Iterator[Block]:
        """Yield all rows; a second pass yields the same features."""
        self.n_dropped = self.n_read = 0
        self.n_missing.clear()
        self.dropped, self.unseen = [], {}
        self.decide()
        kept: list[IntArray] = []
        self._rest = self.table.blocks(self._used, {at for _, at in self._numbers})
        for block in self._rest:
            encoded = self._encode(block)
            if self.missing == "drop":
                kept.append(self.n_read + np.searchsorted(block.lines, encoded.lines))
            self.n_read += block.n_rows
            yield encoded
        self._kept = np.concatenate(kept) if self.n_dropped else None

    def checked_blocks(self) -> Iterator[tuple[list[BadCell], Block | None]]:
        """Yield the cells of each block that cannot be encoded; if there are none, its rows."""
        self.decide()
        for block in self.table.blocks(self._used):
            bad: list[BadCell] = []
            for column, at in self._plan:
                for row, problem in bad_cells(block, at, column, self.missing):
                    bad.append((column.name, problem, block.where(row)))
            self.n_read += block.n_rows
            yield bad, None if bad else self._encode(block)

    def rows_of_file(self, numbers: IntArray) -> IntArray:
        """Convert numbers of kept rows to row numbers in the file; read all rows first."""
        return numbers if self._kept is None else self._kept[numbers]

    def cells(self) -> Iterator[tuple[TableBlock, IntArray]]:
        """Yield blocks with all columns, and the numbers of the rows that are not dropped."""
        for block in self.table.blocks(range(len(self.table.columns))):
            kept = np.arange(block.n_rows)
            if self.missing == "drop":
                kept = np.searchsorted(block.lines, self._encode(block).lines)
            yield block, kept

    def decide(self) -> None:
        """Decide how columns are encoded, unless that is already decided or a map was given."""
        if self._decided:
            return
        tables = [self, *self._sharing]
        firsts = []
        for each in tables:
            block = each.table.first_block(each._used)
            if block is None:
                raise DataError(
                    f"{each.table.name}: no rows", "the file contains only column names"
                )
            firsts.append((each, block))
        self._decide_kinds(firsts)
        for each in tables:
            each._plan = each._planned()
            each._decided = True
        if self.missing in ("mean", "median"):
            self._impute(tables)

    def _decide_kinds(self, firsts: Sequence[tuple[TableFeatures, TableBlock]]) -> None:
        """Decide from the first rows of all tables how each column is encoded."""
        roles, names = self.roles, self.table.columns
        texts, columns = [], []
        for number in self._features:
            name = names[number]
            cells = [(block, each._columns.by_name[name]) for each, block in firsts]
            is_declared = number in self._columns.categorical
            if is_declared or is_text(cells, name):
                content = content_of(cells) if self._selective else None
                if content and not is_declared and not roles.only:
                    self.excluded[name] = content
                else:
                    texts.append(name)
            else:
                fill = 0.0 if self.missing == "zero" else None
                columns.append(MappedColumn(name, "number", self.map.add(name), fill))
        if self._columns.smiles is not None:
            column = MappedColumn(names[self._columns.smiles], "morgan", counts=roles.counts)
            column.bits = BITS if roles.bits is None else roles.bits
            column.radius = RADIUS if roles.radius is None else roles.radius
            column.first = self.map.add(*morgan_names(column.bits))
            columns.append(column)
        self.map.columns = [*columns, *(MappedColumn(name, "text") for name in texts)]
        if not self.map.columns:
            hint = (
                "ids, dates and free text are left out; to one-hot encode a column anyway:"
                " `categorical='NAME'`; for fingerprints of molecules: `smiles_column='NAME'`"
            )
            what = "no columns are left for features"
            raise ParameterError(what, hint if self.excluded else None)

    def _impute(self, tables: Sequence[TableFeatures]) -> None:
        """Read all numbers once to compute the mean or median of each column."""
        numbers = self._numbers
        kept: list[list[FloatArray]] = [[] for _ in numbers]  # for medians
        sums, counts = np.zeros(len(numbers)), np.zeros(len(numbers))
        for table in tables:
            places = [table._columns.by_name[column.name] for column, _ in numbers]
            for block in table.table.blocks(table._used, set(places)):
                for index, at in enumerate(places):
                    values = numbers_of(block, at, numbers[index][0].name)
                    values = values[~np.isnan(values)]
                    if self.missing == "median":
                        kept[index].append(values)
                    sums[index] += values.sum()
                    counts[index] += len(values)
        for index, (column, _) in enumerate(numbers):
            if not counts[index]:
                raise DataError(
                    f"{self.table.name}: column '{column.name}' contains no numbers, so it has no"
                    f" {self.missing}",
                    f"omit it: `drop={column.name!r}`",
                )
            if self.missing == "median":
                column.fill = float(np.median(np.concatenate(kept[index])))
            else:
                column.fill = float(sums[index] / counts[index])

    def _encode(self, block: TableBlock) -> Block:
        """Return the rows of a block as features, without those to drop."""
        kept = np.ones(block.n_rows, bool)
        parts: list[Entries] = []
        if self._numbers:
            table = self._read_numbers(block, kept)
            features = np.array([column.first for column, _ in self._numbers])
            nonzero = table != 0
            row = np.repeat(np.arange(block.n_rows), nonzero.sum(axis=1))
            parts.append((row, np.broadcast_to(features, table.shape)[nonzero], table[nonzero]))
        for column, at in self._plan:
            if column.kind == "text":
                parts.append(self._read_categories(block, column, at, kept))
            elif column.kind == "morgan":
                parts.append(self._read_molecules(block, column, at, kept))
        row, feature, value = (np.concatenate(column) for column in zip(*parts, strict=True))
        if len(parts) > 1:  # each part is sorted by row, then by feature
            order = np.lexsort((feature, row))
            row, feature, value = row[order], feature[order], value[order]
        indptr = np.zeros(block.n_rows + 1, np.int64)
        np.cumsum(np.bincount(row, minlength=block.n_rows), out=indptr[1:])
        rows = Rows(indptr, feature.astype(np.int32), value)
        ids = None if self._columns.row_id is None else ids_of(block, self._columns.row_id)
        encoded = replace(Block.from_rows(rows, self._read_labels(block), ids), lines=block.lines)
        if not kept.all():
            self.n_dropped += int((~kept).sum())
            first = np.flatnonzero(~kept)[: SHOWN_ROWS - len(self.dropped)]
            self.dropped += [block.where(row) for row in first.tolist()]
            encoded = encoded.take(np.flatnonzero(kept))
        return encoded

    def _read_numbers(self, block: TableBlock, kept: BoolArray) -> FloatArray:
        """Return numeric columns as a matrix, rows x columns, with missing values filled in."""
        cells = [block.columns[at] for _, at in self._numbers]
        if all(isinstance(column, np.ndarray) for column in cells):
            # many columns at once are several times faster than one by one
            table = np.stack(cells, axis=1).astype(np.float64, copy=False)
            if np.isfinite(table).all():
                return table
        table = np.empty((block.n_rows, len(cells)))
        for index, (column, at) in enumerate(self._numbers):
            values = numbers_of(block, at, column.name, like=self.is_known)
            missing = np.isnan(values)
            if self.missing == "drop":
                kept &= ~missing
            elif column.fill is None and missing.any():
                row = int(np.flatnonzero(missing)[0])
                raise no_value(block, row, column.name, like=self.is_known)
            self.n_missing[column.name] += int(missing.sum())
            table[:, index] = np.where(missing, column.fill or 0.0, values)
        return table

    def _read_categories(
        self, block: TableBlock, column: MappedColumn, at: int, kept: BoolArray
    ) -> Entries:
        cells = texts_of(block.columns[at])
        features = {}
        for cell in dict.fromkeys(cells):  # in order of first appearance
            text = cell.strip()
            feature = column.values.get(text, 0)
            if is_missing(text):
                feature = 0  # all features of this column are 0
                if self.missing == "refuse":
                    row = cells.index(cell)
                    raise no_value(block, row, column.name, like=self.is_known)
                if self.missing == "drop":
                    kept &= np.array([other != cell for other in cells], bool)
                self.n_missing[column.name] += cells.count(cell)
            elif not feature and self.is_known:
                count, first = self.unseen.get(column.name, (0, text))
                self.unseen[column.name] = count + cells.count(cell), first
            elif not feature:
                if len(column.values) >= MAX_VALUES and at not in self._columns.categorical:
                    raise DataError(
                        f"{block.where(cells.index(cell))}: column '{column.name}' has more than"
                        f" {MAX_VALUES:,} different values; are they ids?",
                        f"use `id_column={column.name!r}`, `drop={column.name!r}`, or"
                        f" `categorical={column.name!r}` to make each value a feature",
                    )
                feature = column.values[text] = self.map.add(f"{column.name}={text}")
            features[cell] = feature
        found = np.fromiter(map(features.__getitem__, cells), np.int64, len(cells))
        rows = np.flatnonzero(found)
        return rows, found[rows], np.ones(len(rows))

    def _read_molecules(
        self, block: TableBlock, column: MappedColumn, at: int, kept: BoolArray
    ) -> Entries:
        shape = column.bits, column.radius, column.counts
        valid = np.ones(block.n_rows, bool)
        row, bit, count = fingerprints(block.columns[at], *shape, valid)
        if self.missing != "drop" and not valid.all():
            first = int(np.flatnonzero(~valid)[0])
            n_invalid = int((~valid).sum())
            for later in self._rest:
                valid = np.ones(later.n_rows, bool)
                fingerprints(later.columns[at], *shape, valid)
                n_invalid += int((~valid).sum())
            others = f", the first of {n_invalid:,}" if n_invalid > 1 else ""
            fixed = self.is_known and self.map.missing is not None  # predict drops no row
            raise DataError(
                f"{block.where(first)}: RDKit cannot read the molecule"
                f" '{texts_of(block.columns[at])[first][:60]}'{others}",
                "correct such rows or leave them out" + (": `missing='drop'`" * (not fixed)),
            )
        kept &= valid
        return row, column.first + bit, count

    def _read_labels(self, block: TableBlock) -> FloatArray | None:
        at = self._columns.label
        if at is None:
            return None
        if not self.roles.positive_labels:
            return labels_of(block, at, self.table.columns[at])
        texts = [text.strip() for text in texts_of(block.columns[at])]
        if len(self.labels_seen) < SHOWN:
            self.labels_seen.update(dict.fromkeys(texts[:1000]))
        read_class = class_of(self.roles.positive_labels, self.roles.negative_labels)
        classes = {text: read_class(text) for text in set(texts)}
        return np.fromiter(map(classes.__getitem__, texts), np.float64, len(texts))
