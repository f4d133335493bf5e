"""Columns of a table to features: numbers as they are, texts one feature a value, SMILES to bits.

What a column is, is decided once, from the first rows: a column of texts only is a category; a
text among numbers is a mistake and is refused with its place. Features are numbered as they come,
numbers first, and the map keeps their names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli.dataset import FloatArray, IntArray, Rows
from resvm_cli.errors import CommandLineError, DataError
from resvm_cli.files.feature_map import FeatureMap, MappedColumn
from resvm_cli.files.svmlight import Block
from resvm_cli.files.tables import Column, Table, TableBlock, is_plain, read_number

MissingRule: TypeAlias = Literal["refuse", "drop", "zero", "mean", "median"]
MISSING_RULES: tuple[MissingRule, ...] = ("refuse", "drop", "zero", "mean", "median")
MISSING_WORDS = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "?", "missing"})
MOST_VALUES = 1000  # of a column of texts that nobody has called a category
BITS, RADIUS = 2048, 2
SHOWN = 20


@dataclass(frozen=True)
class ColumnRoles:
    """What the user says of the columns; a name may be a column's number where none has it."""

    label: str | None = None
    positive_labels: tuple[str, ...] = ()
    row_id: str | None = None
    smiles: str | None = None
    only: tuple[str, ...] = ()  # the features, where they are not all the others
    dropped: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    missing: MissingRule = "refuse"
    bits: int = BITS
    radius: int = RADIUS
    counts: bool = False

    @property
    def asked(self) -> list[str]:
        """The options that name a column."""
        named = {
            "--label-column": self.label,
            "--id-column": self.row_id,
            "--smiles-column": self.smiles,
            "--columns": self.only,
            "--drop": self.dropped,
            "--categorical": self.categories,
        }
        return [option for option, value in named.items() if value]


class TableFeatures:
    """The rows of a table as svmlight text has them, block by block."""

    def __init__(self, table: Table, roles: ColumnRoles, known: FeatureMap | None = None) -> None:
        """``known``: the map of a table converted before, whose features these shall be."""
        self._table = table
        self._roles = roles
        if roles.positive_labels and roles.label is None:
            raise CommandLineError(
                "--positive-label needs --label-column: which column has labels?"
            )
        self._label = self._number_of(roles.label, "--label-column")
        self._id = self._number_of(roles.row_id, "--id-column")
        self.map = known or FeatureMap()
        self._settled = known is not None
        self._may_grow = known is None
        self._plan: list[tuple[MappedColumn, int]] = []
        self.n_dropped = 0
        self.n_unseen = 0
        self.labels_seen: dict[str, None] = {}
        if known is not None:
            self._plan = [(column, self._required(column.name)) for column in known.columns]

    @property
    def categories(self) -> dict[str, int]:
        """The columns of texts, and how many features each became."""
        texts = (column for column, _ in self._plan if column.kind == "text")
        return {column.name: len(column.values) for column in texts}

    def blocks(self) -> Iterator[Block]:
        """All rows; a second time they have the same features."""
        self.n_dropped = self.n_unseen = 0
        tables = self._table.blocks()
        if not self._settled:
            first = next(tables, None)
            if first is None:
                raise DataError(f"{self._table.name}: no rows", "only column names are there")
            self._settle(first)
            tables = chain([first], tables)
            if self._roles.missing in ("mean", "median"):
                self._impute(tables)
                tables = self._table.blocks()
            self._settled = True
        for block in tables:
            yield self._encoded(block)

    def _number_of(self, name: str | None, option: str) -> int | None:
        if name is None:
            return None
        columns = self._table.columns
        if name in columns:
            return columns.index(name)
        if name.isdecimal() and 1 <= int(name) <= len(columns):
            return int(name) - 1
        raise DataError(
            f"{self._table.name}: no column '{name}' ({option})",
            f"columns that are there: {_listed(columns)}",
        )

    def _required(self, name: str) -> int:
        if name not in self._table.columns:
            raise DataError(
                f"{self._table.name}: no column '{name}', which the feature map asks for",
                f"columns that are there: {_listed(self._table.columns)}",
            )
        return self._table.columns.index(name)

    def _settle(self, first: TableBlock) -> None:
        """Decide from the first rows what each column is."""
        roles, names = self._roles, self._table.columns
        smiles = self._number_of(roles.smiles, "--smiles-column")
        dropped = {self._number_of(name, "--drop") for name in roles.dropped}
        categories = {self._number_of(name, "--categorical") for name in roles.categories}
        taken = {self._label, self._id, smiles} | dropped
        wanted = [number for number in range(len(names)) if number not in taken]
        if roles.only:
            asked = {self._number_of(name, "--columns") for name in roles.only}
            wanted = [number for number in wanted if number in asked]
        elif smiles is not None:
            wanted = [number for number in wanted if number in categories]
        texts = []
        for number in wanted:
            if number in categories or _is_text(first.columns[number]):
                texts.append(number)
            else:
                first_feature = self.map.add(names[number])
                fill = 0.0 if roles.missing == "zero" else None
                column = MappedColumn(names[number], "number", first_feature, fill)
                self._plan.append((column, number))
        if smiles is not None:
            bits = [f"morgan_{bit}" for bit in range(roles.bits)]
            column = MappedColumn(names[smiles], "morgan", self.map.add(*bits))
            column.bits, column.radius, column.counts = roles.bits, roles.radius, roles.counts
            self._plan.append((column, smiles))
        self._plan += [(MappedColumn(names[number], "text"), number) for number in texts]
        self.map.columns = [column for column, _ in self._plan]
        if not self._plan:
            raise CommandLineError("no column is left to make features from")

    def _impute(self, blocks: Iterator[TableBlock]) -> None:
        """Read all numbers once, for the mean or the median of each column."""
        numbers = [(column, number) for column, number in self._plan if column.kind == "number"]
        median = self._roles.missing == "median"
        kept: list[list[FloatArray]] = [[] for _ in numbers]
        sums, counts = np.zeros(len(numbers)), np.zeros(len(numbers))
        for block in blocks:
            for place, (_, number) in enumerate(numbers):
                values = self._numbers(block, number)
                values = values[~np.isnan(values)]
                if median:
                    kept[place].append(values)
                sums[place] += values.sum()
                counts[place] += len(values)
        for place, (column, _) in enumerate(numbers):
            if not counts[place]:
                raise DataError(
                    f"{self._table.name}: the column '{column.name}' has no number to take the"
                    f" {self._roles.missing} of",
                    f"leave it out: --drop {column.name}",
                )
            middle = (
                np.median(np.concatenate(kept[place])) if median else sums[place] / counts[place]
            )
            column.fill = float(middle)

    def _encoded(self, block: TableBlock) -> Block:
        n_rows = block.n_rows
        kept = np.ones(n_rows, bool)
        parts: list[tuple[IntArray, IntArray, FloatArray]] = []  # rows, features, values
        numbers = [(column, at) for column, at in self._plan if column.kind == "number"]
        if numbers:
            table = _whole(block, [at for _, at in numbers])
            if table is None:
                table = self._one_by_one(block, numbers, kept)
            row, place_of = np.nonzero(table)
            features = np.array([column.first for column, _ in numbers])
            parts.append((row, features[place_of], table[row, place_of]))
        for column, at in self._plan:
            if column.kind == "text":
                parts.append(self._categories(block, column, at, kept))
            elif column.kind == "morgan":
                parts.append(self._fingerprints(block, column, at, kept))
        rows = _rows_of(n_rows, parts)
        ids = self._ids(block)
        labels = self._labels(block)
        encoded = Block.of(rows, labels, ids)
        if not kept.all():
            self.n_dropped += int((~kept).sum())
            encoded = encoded.take(np.flatnonzero(kept))
        return encoded

    def _one_by_one(
        self,
        block: TableBlock,
        numbers: Sequence[tuple[MappedColumn, int]],
        kept: npt.NDArray[np.bool_],
    ) -> FloatArray:
        """Columns of numbers as a matrix, rows x columns, what is missing filled in."""
        table = np.empty((block.n_rows, len(numbers)))
        for place, (column, at) in enumerate(numbers):
            values = self._numbers(block, at)
            missing = np.isnan(values)
            if missing.any():
                values = self._filled(block, column, at, values, missing, kept)
            table[:, place] = values
        return table

    def _numbers(self, block: TableBlock, at: int) -> FloatArray:
        """A column as numbers, nan where there is none."""
        cells = block.columns[at]
        name = self._table.columns[at]
        if isinstance(cells, np.ndarray):
            values = cells
        else:
            try:
                values = np.fromiter(map(float, cells), np.float64, len(cells))
                if not is_plain("".join(cells)):
                    raise ValueError
            except ValueError:
                values = self._careful(block, cells, at, name)
        if np.isinf(values).any():
            place = block.place(int(np.flatnonzero(np.isinf(values))[0]), at)
            raise DataError(
                f"{place}: not finite in the column '{name}'; every number must be",
                "correct it, or write NA and give a rule: --missing mean",
            )
        return values

    def _careful(self, block: TableBlock, cells: Sequence[str], at: int, name: str) -> FloatArray:
        values = np.empty(len(cells))
        for number, cell in enumerate(cells):
            try:
                values[number] = read_number(cell)
            except ValueError:
                if cell.strip().lower() not in MISSING_WORDS:
                    raise DataError(
                        f"{block.place(number, at)}: '{cell[:40]}' in the column '{name}';"
                        " a number was expected",
                        f"for one feature a text: --categorical {name}; to leave the column out:"
                        f" --drop {name}",
                    ) from None
                values[number] = np.nan
        return values

    def _filled(
        self,
        block: TableBlock,
        column: MappedColumn,
        at: int,
        values: FloatArray,
        missing: npt.NDArray[np.bool_],
        kept: npt.NDArray[np.bool_],
    ) -> FloatArray:
        if self._roles.missing == "drop":
            kept &= ~missing
        elif column.fill is None:
            raise self._no_value(block, int(np.flatnonzero(missing)[0]), at)
        return np.where(missing, column.fill or 0.0, values)

    def _no_value(self, block: TableBlock, row: int, at: int) -> DataError:
        name = self._table.columns[at]
        return DataError(
            f"{block.place(row, at)}: no value in the column '{name}'",
            "give a rule: --missing mean, median or zero fills it in, drop leaves such rows out",
        )

    def _categories(
        self, block: TableBlock, column: MappedColumn, at: int, kept: npt.NDArray[np.bool_]
    ) -> tuple[IntArray, IntArray, FloatArray]:
        cells = _texts(block.columns[at])
        rows, features = [], []
        for row, cell in enumerate(cells):
            text = cell.strip()
            if text.lower() in MISSING_WORDS:
                if self._roles.missing == "refuse":
                    raise self._no_value(block, row, at)
                if self._roles.missing == "drop":
                    kept[row] = False
                continue  # none of the values
            feature = column.values.get(text)
            if feature is None:
                if not self._may_grow:
                    self.n_unseen += 1
                    continue
                feature = self._new_value(block, column, row, at, text)
            rows.append(row)
            features.append(feature)
        return np.array(rows, np.int64), np.array(features, np.int64), np.ones(len(rows))

    def _new_value(
        self, block: TableBlock, column: MappedColumn, row: int, at: int, text: str
    ) -> int:
        if len(column.values) >= MOST_VALUES and column.name not in self._roles.categories:
            raise DataError(
                f"{block.place(row, at)}: the column '{column.name}' has more than"
                f" {MOST_VALUES:,} different texts; is it a name?",
                f"--id-column {column.name}, --drop {column.name}, or --categorical"
                f" {column.name} for a feature each",
            )
        column.values[text] = self.map.add(f"{column.name}={text}")
        return column.values[text]

    def _fingerprints(
        self, block: TableBlock, column: MappedColumn, at: int, kept: npt.NDArray[np.bool_]
    ) -> tuple[IntArray, IntArray, FloatArray]:
        from resvm_cli.jobs.fingerprints import Morgan

        morgan = Morgan(column.bits, column.radius, column.counts)
        rows: list[int] = []
        features: list[int] = []
        values: list[int] = []
        for row, cell in enumerate(_texts(block.columns[at])):
            found = morgan.of(cell.strip())
            if found is None:
                if self._roles.missing == "drop":
                    kept[row] = False
                    continue
                raise DataError(
                    f"{block.place(row, at)}: RDKit reads no molecule from '{cell[:60]}'",
                    "correct it, or leave such rows out: --missing drop",
                )
            rows += [row] * len(found)
            features += [column.first + bit for bit in found]
            values += found.values()
        return np.array(rows, np.int64), np.array(features, np.int64), np.array(values, float)

    def _ids(self, block: TableBlock) -> list[str] | None:
        if self._id is None:
            return None
        ids = [text.strip() for text in _texts(block.columns[self._id])]
        for row, text in enumerate(ids):
            if not text or "\n" in text or "\r" in text:
                raise DataError(
                    f"{block.place(row, self._id)}: '{text[:40]}' is no id: it is empty or has"
                    " more than one line"
                )
        return ids

    def _labels(self, block: TableBlock) -> FloatArray | None:
        if self._label is None:
            return None
        cells = block.columns[self._label]
        if self._roles.positive_labels:
            texts = [text.strip() for text in _texts(cells)]
            if len(self.labels_seen) < SHOWN:
                self.labels_seen.update(dict.fromkeys(texts[:1000]))
            is_positive = matcher(self._roles.positive_labels)
            return np.fromiter(map(is_positive, texts), np.float64, len(texts))
        if not isinstance(cells, np.ndarray):
            for row, cell in enumerate(cells):
                try:
                    read_number(cell)
                except ValueError:
                    raise DataError(
                        f"{block.place(row, self._label)}: the label is '{cell.strip()[:40]}';"
                        " a number was expected",
                        "say which label means positive: --positive-label LABEL; all others are"
                        " then unlabeled, and so are rows without",
                    ) from None
        labels = self._numbers(block, self._label)
        if np.isnan(labels).any():
            raise self._no_value(block, int(np.flatnonzero(np.isnan(labels))[0]), self._label)
        return labels


def _whole(block: TableBlock, numbers: Sequence[int]) -> FloatArray | None:
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
    numbers = {float(text) for text in texts if _is_number(text)}

    def is_positive(text: str) -> bool:
        return text in texts or (bool(numbers) and _is_number(text) and float(text) in numbers)

    return is_positive


def _is_number(text: str) -> bool:
    try:
        read_number(text)
    except ValueError:
        return False
    return True


def _is_text(cells: Column) -> bool:
    """Whether no cell is a number, and some cell is there."""
    if isinstance(cells, np.ndarray):
        return False
    there = [cell for cell in cells if cell.strip().lower() not in MISSING_WORDS]
    return bool(there) and not any(map(_is_number, there))


def _texts(cells: Column) -> Sequence[str]:
    if not isinstance(cells, np.ndarray):
        return cells
    from resvm_cli.files.svmlight import format_number

    return ["" if np.isnan(one) else format_number(one) for one in cells.tolist()]


def _rows_of(n_rows: int, parts: list[tuple[IntArray, IntArray, FloatArray]]) -> Rows:
    """Sparse rows from their entries; those of a part come row by row, in order of features."""
    row, feature, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    if len(parts) > 1:
        order = np.lexsort((feature, row))
        row, feature, value = row[order], feature[order], value[order]
    indptr = np.zeros(n_rows + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=n_rows), out=indptr[1:])
    return Rows(indptr, feature.astype(np.int32), value)


def _listed(names: Sequence[Any]) -> str:
    shown = ", ".join(map(str, names[:SHOWN]))
    return shown + (f", and {len(names) - SHOWN:,} more" if len(names) > SHOWN else "")
