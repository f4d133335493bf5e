"""How columns become features: the roles that the user assigns, and the resulting map.

A feature map belongs to a table that was converted, or to a model that was trained on a table. It
is plain JSON. This module does not import table code, so that models load quickly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from resvm_cli.data.json_files import parse_object
from resvm_cli.data.streams import name_of, read_pieces
from resvm_cli.errors import DataError, ParameterError, listed
from resvm_cli.records import dataclass

if TYPE_CHECKING:
    from resvm_cli.data.delimited import Table

SHOWN = 20
MissingRule: TypeAlias = Literal["refuse", "drop", "zero", "mean", "median"]
MISSING_RULES: tuple[MissingRule, ...] = ("refuse", "drop", "zero", "mean", "median")


@dataclass(frozen=True)
class ColumnRoles:
    """How to read a table: its columns by role, given by name, or by number if none has it."""

    label: str | None = None
    positive_labels: tuple[str, ...] = ()
    negative_labels: tuple[str, ...] = ()  # of known negatives
    row_id: str | None = None
    smiles: str | None = None
    only: tuple[str, ...] = ()  # the feature columns; by default, all columns without another role
    dropped: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    missing: MissingRule | None = None  # None: as in the feature map; without one, an error
    bits: int | None = None
    radius: int | None = None
    counts: bool = False
    header: bool = True  # whether the first line has column names

    @property
    def named_parameters(self) -> list[str]:
        """The given parameters whose values are column names."""
        named = {
            "label_column": self.label,
            "id_column": self.row_id,
            "smiles_column": self.smiles,
            "columns": self.only,
            "drop": self.dropped,
            "categorical": self.categories,
        }
        return [parameter for parameter, value in named.items() if value]

    @property
    def needs_two_passes(self) -> bool:
        """Whether means or medians must be known before the first row is encoded."""
        return self.missing in ("mean", "median")


class ColumnNumbers:
    """The numbers of a table's columns, counted from 0, by name and by role."""

    def __init__(self, table: Table, roles: ColumnRoles) -> None:
        """Raise an error for a role whose column does not exist."""
        self._table = table
        self.by_name = {name: number for number, name in enumerate(table.columns)}
        if roles.positive_labels and roles.label is None:
            raise ParameterError(
                "`positive_label` needs `label_column`",
                f"the columns of {table.name} are: {listed(table.columns, SHOWN)}",
            )
        self.label = self._number(roles.label, "label_column")
        self.row_id = self._number(roles.row_id, "id_column")
        self.smiles = self._number(roles.smiles, "smiles_column")
        self.categorical = {self._number(name, "categorical") for name in roles.categories}
        self.dropped = {self._number(name, "drop") for name in roles.dropped}
        only = {self._number(name, "columns") for name in roles.only}
        taken = {self.label, self.row_id, self.smiles, *self.dropped}
        features = [number for number in range(len(table.columns)) if number not in taken]
        if roles.only:
            features = [number for number in features if number in only]
        elif self.smiles is not None:
            features = [number for number in features if number in self.categorical]
        self.features = features  # not including molecules

    def _number(self, name: str | None, parameter: str) -> int | None:
        columns = self._table.columns
        if name is None or name in self.by_name:
            return None if name is None else self.by_name[name]
        if name.isdecimal() and 1 <= int(name) <= len(columns):
            return int(name) - 1
        raise no_column(self._table, name, parameter)

    def required(self, name: str, owner: str) -> int:
        """Return the number of a column that ``owner``, a model or feature map, needs."""
        if name not in self.by_name:
            raise DataError(
                f"{self._table.name}: no column '{name}', which the {owner} needs",
                _columns_hint(name, self._table.columns),
            )
        return self.by_name[name]


def no_column(table: Table, name: str, parameter: str) -> DataError:
    """Return the error for a parameter that names a column which the table does not have."""
    what = f"{table.name}: no column '{name}' (`{parameter}`)"
    return DataError(what, _columns_hint(name, table.columns))


def _columns_hint(name: str, columns: Sequence[str]) -> str:
    """Return the columns with similar names or, if there are none, the first ones."""
    from difflib import get_close_matches

    of_key = {column.casefold(): column for column in columns}
    near = [of_key[key] for key in get_close_matches(name.casefold(), of_key)]
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"the columns are: {listed(columns, SHOWN)}"


def check_annotated(path: str) -> None:
    """Reject a file name whose extension is not that of an annotated table."""
    if not path.lower().endswith((".csv", ".tsv")):
        raise ParameterError(
            f"`annotate` is '{path}'; expected a name that ends in .csv or .tsv",
            "pandas converts CSV to other formats, such as Parquet",
        )


KIND = "resvm-feature-map"
FINGERPRINTS = b"# fingerprints: "  # starts the first line of svmlight text
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
        return {name: getattr(self, name) for name in ("name", "kind", *KIND_FIELDS[self.kind])}


@dataclass
class FeatureMap:
    """The encoded columns, and the names of their features, which are numbered from 1."""

    columns: list[MappedColumn] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    missing: MissingRule | None = None  # for a model: how training handled missing values

    def add(self, *names: str) -> int:
        """Add features and return the number of the first one."""
        self.names.extend(names)
        return len(self.names) - len(names) + 1

    @property
    def fills(self) -> set[float | None]:
        """The values that replace missing numbers."""
        return {column.fill for column in self.columns if column.kind == "number"} - {None}

    @property
    def is_plain(self) -> bool:
        """Whether every column is a feature, without any values to fill in."""
        return {(column.kind, column.fill) for column in self.columns} == {("number", None)}

    def content(self) -> dict[str, Any]:
        columns = [column.content() for column in self.columns]
        rule = {} if self.missing is None else {"missing": self.missing}
        return {"kind": KIND, "format": FORMAT, **rule, "columns": columns, "features": self.names}

    def format(self) -> bytes:
        return (json.dumps(self.content(), indent=1) + "\n").encode("ascii")

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> FeatureMap:
        """Return the map in an untrusted JSON object; raise ValueError if it is invalid."""
        try:
            columns = [MappedColumn(**column) for column in content["columns"]]
            names = content["features"]
            _check(columns, names)
            rule = content.get("missing")
            found = cls(columns, names, rule)
            if found.content() != content or rule not in (None, *MISSING_RULES):
                raise ValueError("an entry is missing or unknown")
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError("not a feature map") from error
        return found


def fingerprint_line(features: FeatureMap) -> bytes:
    """Return a comment for svmlight text that says how all its features were computed.

    It is empty unless they are one column's fingerprints.
    """
    columns = features.columns
    if len(columns) != 1 or columns[0].kind != "morgan":
        return b""
    return FINGERPRINTS + json.dumps(columns[0].content()).encode("ascii") + b"\n"


def read_fingerprint_line(head: bytes) -> FeatureMap | None:
    """Return the features that the first line of svmlight text describes, if it does."""
    if not head.startswith(FINGERPRINTS):
        return None
    try:
        column = parse_object(head.partition(b"\n")[0].removeprefix(FINGERPRINTS))
        names = morgan_names(min(column["bits"], MAX_BITS))
        entries = {"columns": [column], "features": names, "missing": "refuse"}
        return FeatureMap.from_content({"kind": KIND, "format": FORMAT, **entries})
    except (ValueError, KeyError, TypeError):
        return None


def morgan_names(n_bits: int) -> list[str]:
    return [f"morgan_{bit}" for bit in range(n_bits)]


def described_fingerprints(features: FeatureMap) -> str:
    """Return the sizes of the fingerprints among these features, to compare and to show."""
    made = [column for column in features.columns if column.kind == "morgan"]
    kinds = (
        f"{one.bits:,} {'counts' if one.counts else 'bits'}, radius {one.radius}" for one in made
    )
    return f"fingerprints of {' and '.join(kinds)}" if made else "no fingerprints"


def check_roles(known: FeatureMap, columns: ColumnNumbers, roles: ColumnRoles) -> None:
    """Raise ParameterError if the roles of a table's columns contradict its feature map."""
    owner, again = "`like`", "write another map (`map`)"
    if known.missing is not None:
        owner, again = "the model", "train another model"
    kinds: dict[int | None, str] = {columns.by_name[one.name]: one.kind for one in known.columns}
    if columns.label in kinds:
        name = next(name for name, at in columns.by_name.items() if at == columns.label)
        raise ParameterError(
            f"`label_column`: the column '{name}' is a feature of {owner}",
            f"as a feature, it leaks the answer; {again} without it",
        )
    rules = {
        "refuse": not known.fills,
        "zero": known.fills <= {0.0},
        "mean": False,
        "median": False,
    }
    made = [column for column in known.columns if column.kind == "morgan"]
    others = {number for number, kind in kinds.items() if kind != "morgan"}
    agrees = {
        "drop": kinds.keys().isdisjoint(columns.dropped),
        "columns": not roles.only or set(columns.features) == others,
        "categorical": all(kinds.get(number) == "text" for number in columns.categorical),
        "smiles_column": columns.smiles is None or kinds.get(columns.smiles) == "morgan",
        "bits": roles.bits in (None, *(column.bits for column in made)),
        "radius": roles.radius in (None, *(column.radius for column in made)),
        "counts": not roles.counts or any(column.counts for column in made),
        "missing": roles.missing == known.missing or rules.get(roles.missing or "", True),
    }
    for parameter in (parameter for parameter, agreed in agrees.items() if not agreed):
        raise ParameterError(
            f"`{parameter}` contradicts {owner}, whose features are fixed",
            f"omit `{parameter}`, or use it to {again}",
        )


def read_feature_map(path: str) -> FeatureMap:
    try:
        return FeatureMap.from_content(parse_object(b"".join(read_pieces(path))))
    except ValueError:
        raise DataError(
            f"{name_of(path)}: not a feature map", ("resvm convert writes one with `map`")
        ) from None


def _check(columns: list[MappedColumn], names: list[str]) -> None:
    """Raise ValueError unless every feature belongs to exactly one column."""
    features: list[int] = []
    for column in columns:
        if len(features) > len(names):  # a hostile map must not exhaust memory
            raise ValueError("features")
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
