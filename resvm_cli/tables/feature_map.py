"""The feature map: how columns became features, so that other files are encoded alike.

JSON: ``columns`` has the encoding of each column, ``features`` the names of the features in order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from resvm_cli.errors import DataError, Message
from resvm_cli.files.json_files import parse_object
from resvm_cli.files.streams import name_of, read_pieces

KIND = "resvm-feature-map"
FORMAT = 1
MIN_BITS, MAX_BITS, MAX_RADIUS = 16, 1 << 24, 20


@dataclass
class MappedColumn:
    """How one column becomes features."""

    name: str
    kind: str  # number, text or morgan
    first: int = 0  # the feature of a number, or the first bit of a fingerprint
    fill: float | None = None  # refeatures a missing number
    values: dict[str, int] = field(default_factory=dict)  # the feature of each text
    bits: int = 0
    radius: int = 0
    counts: bool = False

    def content(self) -> dict[str, Any]:
        """Its entry in the JSON."""
        if self.kind == "text":
            return {"name": self.name, "kind": self.kind, "values": self.values}
        if self.kind == "morgan":
            parameters = {"bits": self.bits, "radius": self.radius, "counts": self.counts}
            return {"name": self.name, "kind": self.kind, "first": self.first, **parameters}
        return {"name": self.name, "kind": self.kind, "first": self.first, "fill": self.fill}


@dataclass
class FeatureMap:
    """Encoded columns, and the names of their features, which count from 1."""

    columns: list[MappedColumn] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def add(self, *names: str) -> int:
        """Add features and return the number of the first."""
        self.names.extend(names)
        return len(self.names) - len(names) + 1

    def content(self) -> dict[str, Any]:
        """The JSON object."""
        columns = [column.content() for column in self.columns]
        return {"kind": KIND, "format": FORMAT, "columns": columns, "features": self.names}

    def format(self) -> bytes:
        """The JSON text."""
        return (json.dumps(self.content(), indent=1) + "\n").encode("ascii")


def read_feature_map(path: str) -> FeatureMap:
    """Read a map that convert wrote."""
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
    """ValueError unless every feature belongs to exactly one column."""
    taken: set[int] = set()
    numbers = [column.first for column in columns if column.kind == "number"]
    if not columns or type(names) is not list or not all(type(name) is str for name in names):
        raise ValueError("columns")
    for column in columns:
        if type(column.name) is not str or column.kind not in ("number", "text", "morgan"):
            raise ValueError("kind")
        features = [column.first]
        if column.kind == "text":
            features = [*column.values.values()]
        elif column.kind == "morgan":
            if not _is_fingerprint(column) or len(names) < column.bits:
                raise ValueError("fingerprint")
            features = [*range(column.first, column.first + column.bits)]
        elif column.fill is not None and not _is_finite(column.fill):
            raise ValueError("fill")
        if not all(type(one) is int and 1 <= one <= len(names) for one in features):
            raise ValueError("features")
        if len(set(features)) < len(features) or not taken.isdisjoint(features):
            raise ValueError("a feature of two columns")
        taken.update(features)
    if len(taken) < len(names):
        raise ValueError("a feature of no column")
    if numbers != sorted(numbers) or len({column.name for column in columns}) < len(columns):
        raise ValueError("order")


def _is_fingerprint(column: MappedColumn) -> bool:
    whole = type(column.bits) is int and type(column.radius) is int and type(column.first) is int
    sizes = whole and MIN_BITS <= column.bits <= MAX_BITS and 0 <= column.radius <= MAX_RADIUS
    return sizes and type(column.counts) is bool


def _is_finite(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < 1e308  # type: ignore[arg-type]
