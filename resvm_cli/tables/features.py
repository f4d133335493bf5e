"""Convert table columns to features: numbers, one-hot encoded strings, and SMILES fingerprints.

The kind of a column is decided once, from the first rows: a column of strings is categorical, and a
string in a numeric column is an error. Features are numbered in the order in which they are found,
numeric columns first.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import chain
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError, Message, ParameterError
from resvm_cli.files.delimited import Table, TableBlock
from resvm_cli.files.json_files import parse_object
from resvm_cli.files.streams import name_of, read_pieces
from resvm_cli.files.svmlight import Block
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, Rows
from resvm_cli.tables.cells import (
    MISSING_WORDS,
    Morgan,
    ids_of,
    is_text,
    labels_of,
    matcher,
    matrix_of,
    no_value,
    numbers_of,
    texts_of,
)

MissingRule: TypeAlias = Literal["refuse", "drop", "zero", "mean", "median"]
MISSING_RULES: tuple[MissingRule, ...] = ("refuse", "drop", "zero", "mean", "median")
Mask: TypeAlias = npt.NDArray[np.bool_]
Entries: TypeAlias = tuple[IntArray, IntArray, FloatArray]  # rows, features, values
MAX_VALUES = 1000  # distinct texts in a column that was not declared as a category
BITS, RADIUS = 2048, 2
SHOWN = 20
SHOWN_ROWS = 5


@dataclass(frozen=True)
class ColumnRoles:
    """The roles of columns, given by name, or by number if no column has that name."""

    label: str | None = None
    positive_labels: tuple[str, ...] = ()
    row_id: str | None = None
    smiles: str | None = None
    only: tuple[str, ...] = ()  # the feature columns; by default, all columns without another role
    dropped: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    missing: MissingRule | None = None  # None: refuse, or as the feature map was made
    bits: int | None = None
    radius: int | None = None
    counts: bool = False

    @property
    def asked(self) -> list[str]:
        """The parameters that were given and that name columns."""
        named = {
            "label_column": self.label,
            "id_column": self.row_id,
            "smiles_column": self.smiles,
            "columns": self.only,
            "drop": self.dropped,
            "categorical": self.categories,
        }
        return [parameter for parameter, value in named.items() if value]


class TableFeatures:
    """The rows of a table as features, block by block."""

    def __init__(self, table: Table, roles: ColumnRoles, known: FeatureMap | None = None) -> None:
        """``known`` is the feature map of a previously converted table, to be used again."""
        self._table = table
        self._roles = roles
        if roles.positive_labels and roles.label is None:
            raise ParameterError("{positive_label} needs {label_column}")
        self._label = self._number_of(roles.label, "label_column")
        self._id = self._number_of(roles.row_id, "id_column")
        self._smiles = self._number_of(roles.smiles, "smiles_column")
        self._categorical = self._numbers_of(roles.categories, "categorical")
        self._features = self._feature_numbers()
        self.map = known or FeatureMap()
        self._decided = known is not None
        self._may_grow = known is None
        self._plan: list[tuple[MappedColumn, int]] = []
        self._missing: MissingRule = roles.missing or "refuse"
        self.n_dropped = 0
        self.dropped: list[str] = []  # locations of the first dropped rows
        self.n_unseen = 0
        self.labels_seen: dict[str, None] = {}
        if known is not None:
            self._plan = [(column, self._required(column.name)) for column in known.columns]
            self._apply_map()

    def _feature_numbers(self) -> list[int]:
        """The columns that become features, except molecules."""
        roles = self._roles
        taken = {self._label, self._id, self._smiles} | self._numbers_of(roles.dropped, "drop")
        wanted = [number for number in range(len(self._table.columns)) if number not in taken]
        if roles.only:
            asked = self._numbers_of(roles.only, "columns")
            return [number for number in wanted if number in asked]
        return wanted if self._smiles is None else [n for n in wanted if n in self._categorical]

    def _apply_map(self) -> None:
        """Fill in as the feature map does; raise ParameterError for a role that it contradicts."""
        roles = self._roles
        kinds: dict[int | None, str] = {number: column.kind for column, number in self._plan}
        if self._label in kinds:
            raise ParameterError(
                "{label_column}: the column '{name}' is one of the features of {like}",
                "its labels would leak the answer; write a map without it: {map}",
                name=self._table.columns[self._label or 0],
            )
        numbers = [column for column in self.map.columns if column.kind == "number"]
        fills = {column.fill for column in numbers} - {None}
        rules = {"refuse": not fills, "zero": fills <= {0.0}, "mean": False, "median": False}
        made = [column for column in self.map.columns if column.kind == "morgan"]
        others = {number for number, kind in kinds.items() if kind != "morgan"}
        agrees = {
            "drop": kinds.keys().isdisjoint(self._numbers_of(roles.dropped, "drop")),
            "columns": not roles.only or set(self._features) == others,
            "categorical": all(kinds.get(number) == "text" for number in self._categorical),
            "smiles_column": self._smiles is None or kinds.get(self._smiles) == "morgan",
            "bits": roles.bits in (None, *(column.bits for column in made)),
            "radius": roles.radius in (None, *(column.radius for column in made)),
            "counts": not roles.counts or any(column.counts for column in made),
            "missing": rules.get(roles.missing or "", True),
        }
        for parameter in (parameter for parameter, agreed in agrees.items() if not agreed):
            raise ParameterError(
                f"{{{parameter}}} cannot be combined with {{like}} here: the feature map decides",
                f"omit {{{parameter}}}, or use it to write another map: {{map}}",
            )
        if fills and roles.missing is None:
            self._missing = "zero"  # for texts: numbers have their own values
        if roles.missing == "zero":
            for column in numbers:
                column.fill = 0.0
        self._features = []

    @property
    def categories(self) -> dict[str, int]:
        """The text columns, with the number of features for each."""
        texts = (column for column, _ in self._plan if column.kind == "text")
        return {column.name: len(column.values) for column in texts}

    @property
    def feature_columns(self) -> list[str]:
        """The columns that become features."""
        return [column.name for column, _ in self._plan]

    @property
    def unnamed(self) -> Sequence[str]:
        """The names that were given to unnamed columns."""
        return self._table.unnamed

    def blocks(self) -> Iterator[Block]:
        """Yield all rows; a second pass yields the same features."""
        self.n_dropped = self.n_unseen = 0
        self.dropped = []
        used = {*self._features, self._label, self._id, self._smiles, *(at for _, at in self._plan)}
        tables = self._table.blocks(used)
        if not self._decided:
            first = next(tables, None)
            if first is None:
                raise DataError(f"{self._table.name}: no rows", "the file has column names only")
            self._decide(first)
            tables = chain([first], tables)
            if self._missing in ("mean", "median"):
                self._impute(tables)
                tables = self._table.blocks(used)
            self._decided = True
        for block in tables:
            yield self._encoded(block)

    def _number_of(self, name: str | None, parameter: str) -> int | None:
        if name is None:
            return None
        columns = self._table.columns
        if name in columns:
            return columns.index(name)
        if name.isdecimal() and 1 <= int(name) <= len(columns):
            return int(name) - 1
        raise DataError(
            Message(
                f"{{file}}: no column '{{name}}' ({{{parameter}}})",
                file=self._table.name,
                name=name,
            ),
            f"the columns are: {_listed(columns)}",
        )

    def _numbers_of(self, names: Sequence[str], parameter: str) -> set[int | None]:
        return {self._number_of(name, parameter) for name in names}

    def _required(self, name: str) -> int:
        if name not in self._table.columns:
            raise DataError(
                f"{self._table.name}: no column '{name}', which the feature map needs",
                f"the columns are: {_listed(self._table.columns)}",
            )
        return self._table.columns.index(name)

    def _decide(self, first: TableBlock) -> None:
        """Decide from the first rows how each column is encoded."""
        roles, names = self._roles, self._table.columns
        texts = []
        for number in self._features:
            if number in self._categorical or is_text(first, number, names[number]):
                texts.append(number)
            else:
                first_feature = self.map.add(names[number])
                fill = 0.0 if self._missing == "zero" else None
                column = MappedColumn(names[number], "number", first_feature, fill)
                self._plan.append((column, number))
        if self._smiles is not None:
            column = MappedColumn(names[self._smiles], "morgan", counts=roles.counts)
            column.bits = BITS if roles.bits is None else roles.bits
            column.radius = RADIUS if roles.radius is None else roles.radius
            column.first = self.map.add(*(f"morgan_{bit}" for bit in range(column.bits)))
            self._plan.append((column, self._smiles))
        self._plan += [(MappedColumn(names[number], "text"), number) for number in texts]
        self.map.columns = [column for column, _ in self._plan]
        if not self._plan:
            raise ParameterError("no column is left for features")

    def _impute(self, blocks: Iterator[TableBlock]) -> None:
        """Read all numbers once to compute the mean or median of each column."""
        numbers = [(column, number) for column, number in self._plan if column.kind == "number"]
        median = self._missing == "median"
        kept: list[list[FloatArray]] = [[] for _ in numbers]
        sums, counts = np.zeros(len(numbers)), np.zeros(len(numbers))
        for block in blocks:
            for index, (_, number) in enumerate(numbers):
                values = numbers_of(block, number, self._table.columns[number])
                values = values[~np.isnan(values)]
                if median:
                    kept[index].append(values)
                sums[index] += values.sum()
                counts[index] += len(values)
        for index, (column, _) in enumerate(numbers):
            if not counts[index]:
                raise DataError(
                    f"{self._table.name}: column '{column.name}' has no numbers to compute a"
                    f" {self._missing} from",
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
        numbers = [(column, at) for column, at in self._plan if column.kind == "number"]
        if numbers:
            table = matrix_of(block, [at for _, at in numbers])
            if table is None:
                table = self._filled_in(block, numbers, kept)
            row, index = np.nonzero(table)
            features = np.array([column.first for column, _ in numbers])
            parts.append((row, features[index], table[row, index]))
        for column, at in self._plan:
            if column.kind == "text":
                parts.append(self._categories(block, column, at, kept))
            elif column.kind == "morgan":
                parts.append(self._fingerprints(block, column, at, kept))
        rows = _rows_of(n_rows, parts)
        ids = None if self._id is None else ids_of(block, self._id)
        labels = self._labels(block)
        encoded = Block.from_rows(rows, labels, ids)
        if not kept.all():
            self.n_dropped += int((~kept).sum())
            first = np.flatnonzero(~kept)[: SHOWN_ROWS - len(self.dropped)]
            self.dropped += [block.where(row, self._plan[0][1]) for row in first.tolist()]
            encoded = encoded.take(np.flatnonzero(kept))
        return encoded

    def _filled_in(
        self, block: TableBlock, numbers: Sequence[tuple[MappedColumn, int]], kept: Mask
    ) -> FloatArray:
        """Return numeric columns as a matrix, rows x columns, with missing values filled in."""
        table = np.empty((block.n_rows, len(numbers)))
        for index, (column, at) in enumerate(numbers):
            values = numbers_of(block, at, column.name)
            missing = np.isnan(values)
            if self._missing == "drop":
                kept &= ~missing
            elif column.fill is None and missing.any():
                row = int(np.flatnonzero(missing)[0])
                raise no_value(block, row, at, column.name, like=not self._may_grow)
            table[:, index] = np.where(missing, column.fill or 0.0, values)
        return table

    def _categories(self, block: TableBlock, column: MappedColumn, at: int, kept: Mask) -> Entries:
        cells = texts_of(block.columns[at])
        rows, features = [], []
        for row, cell in enumerate(cells):
            text = cell.strip()
            if text.lower() in MISSING_WORDS:
                if self._missing == "refuse":
                    raise no_value(block, row, at, column.name, text=True)
                if self._missing == "drop":
                    kept[row] = False
                continue  # all features of this column are 0
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
        if len(column.values) >= MAX_VALUES and at not in self._categorical:
            raise DataError(
                f"{block.where(row, at)}: column '{column.name}' has more than"
                f" {MAX_VALUES:,} different texts; are they ids?",
                Message(
                    "use {id_column:{column}}, {drop:{column}}, or {categorical:{column}} to encode"
                    " each text as a feature",
                    column=shlex.quote(column.name),
                ),
            )
        column.values[text] = self.map.add(f"{column.name}={text}")
        return column.values[text]

    def _fingerprints(
        self, block: TableBlock, column: MappedColumn, at: int, kept: Mask
    ) -> Entries:

        morgan = Morgan(column.bits, column.radius, column.counts)
        rows: list[int] = []
        features: list[int] = []
        values: list[int] = []
        for row, cell in enumerate(texts_of(block.columns[at])):
            found = morgan.bits(cell.strip())
            if found is None:
                if self._missing == "drop":
                    kept[row] = False
                    continue
                raise DataError(
                    f"{block.where(row, at)}: RDKit cannot read the molecule '{cell[:60]}'",
                    Message("correct it, or drop such rows: {missing:drop}"),
                )
            rows += [row] * len(found)
            features += [column.first + bit for bit in found]
            values += found.values()
        return np.array(rows, np.int64), np.array(features, np.int64), np.array(values, float)

    def _labels(self, block: TableBlock) -> FloatArray | None:
        if self._label is None:
            return None
        cells = block.columns[self._label]
        if self._roles.positive_labels:
            texts = [text.strip() for text in texts_of(cells)]
            if len(self.labels_seen) < SHOWN:
                self.labels_seen.update(dict.fromkeys(texts[:1000]))
            is_positive = matcher(self._roles.positive_labels)
            return np.fromiter(map(is_positive, texts), np.float64, len(texts))
        return labels_of(block, self._label, self._table.columns[self._label])


def _rows_of(n_rows: int, parts: list[Entries]) -> Rows:
    """Build sparse rows from their entries; each part is sorted by row, then by feature."""
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


KIND = "resvm-feature-map"
FORMAT = 1
KIND_FIELDS = {
    "number": ("first", "fill"),
    "text": ("values",),
    "morgan": ("first", "bits", "radius", "counts"),
}
MIN_BITS, MAX_BITS, MAX_RADIUS = 16, 1 << 24, 20


@dataclass
class MappedColumn:
    """How one column is encoded as features."""

    name: str
    kind: str  # number, text or morgan
    first: int = 0  # the feature of a numeric column, or of a fingerprint's first bit
    fill: float | None = None  # replaces a missing number
    values: dict[str, int] = field(default_factory=dict)  # the feature for each text
    bits: int = 0
    radius: int = 0
    counts: bool = False

    def content(self) -> dict[str, Any]:
        """The column's entry in the JSON object."""
        return {name: getattr(self, name) for name in ("name", "kind", *KIND_FIELDS[self.kind])}


@dataclass
class FeatureMap:
    """The encoded columns, and the names of their features, which are numbered from 1."""

    columns: list[MappedColumn] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def add(self, *names: str) -> int:
        """Add features and return the number of the first one."""
        self.names.extend(names)
        return len(self.names) - len(names) + 1

    def content(self) -> dict[str, Any]:
        """The feature map as a JSON object."""
        columns = [column.content() for column in self.columns]
        return {"kind": KIND, "format": FORMAT, "columns": columns, "features": self.names}

    def format(self) -> bytes:
        """The feature map as JSON text."""
        return (json.dumps(self.content(), indent=1) + "\n").encode("ascii")


def read_feature_map(path: str) -> FeatureMap:
    """Read a feature map written by convert."""
    name = name_of(path)
    try:
        content = parse_object(b"".join(read_pieces(path)))
        columns = [MappedColumn(**column) for column in content["columns"]]
        names = content["features"]
        _check(columns, names)
        found = FeatureMap(columns, names)
        if found.content() != content:  # an entry is missing or unknown
            raise ValueError("entries")
        return found
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(
            f"{name}: not a feature map", Message("resvm convert writes one with {map}")
        ) from None


def _check(columns: list[MappedColumn], names: list[str]) -> None:
    """Raise ValueError unless every feature belongs to exactly one column."""
    features: list[int] = []
    for column in columns:
        if column.kind == "text":
            features += column.values.values()
        elif column.kind == "morgan" and _is_fingerprint(column) and column.bits <= len(names):
            features += range(column.first, column.first + column.bits)
        elif column.kind == "number" and (column.fill is None or _is_finite(column.fill)):
            features.append(column.first)
        else:
            raise ValueError("kind")
    texts = [*names, *(column.name for column in columns)]
    if type(names) is not list or {*map(type, texts)} != {str} or {*map(type, features)} - {int}:
        raise ValueError("types")
    if sorted(features) != list(range(1, len(names) + 1)):
        raise ValueError("features")
    numbers = [column.first for column in columns if column.kind == "number"]
    if numbers != sorted(numbers) or len({column.name for column in columns}) < len(columns):
        raise ValueError("order")


def _is_fingerprint(column: MappedColumn) -> bool:
    whole = type(column.bits) is int and type(column.radius) is int and type(column.first) is int
    sizes = whole and MIN_BITS <= column.bits <= MAX_BITS and 0 <= column.radius <= MAX_RADIUS
    return sizes and type(column.counts) is bool


def _is_finite(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < 1e308  # type: ignore[arg-type]
