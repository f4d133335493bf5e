"""The feature map: which column each feature comes from, so that other files become the same.

JSON: ``columns`` says how each column became features, ``features`` has their names in order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from resvm_cli.errors import DataError
from resvm_cli.files.json_objects import json_object
from resvm_cli.files.streams import name_of, read_pieces

KIND = "resvm-feature-map"
FORMAT = 1
LEAST_BITS, MOST_BITS, MOST_RADIUS = 16, 1 << 24, 20


@dataclass
class MappedColumn:
    """How one column becomes features."""

    name: str
    kind: str  # number, text or morgan
    first: int = 0  # the feature of a number, or the first bit of a fingerprint
    fill: float | None = None  # what a missing number counts as
    values: dict[str, int] = field(default_factory=dict)  # of a text: the feature of each
    bits: int = 0
    radius: int = 0
    counts: bool = False

    def content(self) -> dict[str, Any]:
        """As it is written."""
        if self.kind == "text":
            return {"name": self.name, "kind": self.kind, "values": self.values}
        if self.kind == "morgan":
            parameters = {"bits": self.bits, "radius": self.radius, "counts": self.counts}
            return {"name": self.name, "kind": self.kind, "first": self.first, **parameters}
        return {"name": self.name, "kind": self.kind, "first": self.first, "fill": self.fill}


@dataclass
class FeatureMap:
    """Columns, and the names of the features that they became, counted from 1."""

    columns: list[MappedColumn] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def add(self, *names: str) -> int:
        """Number new features; the number of the first."""
        self.names.extend(names)
        return len(self.names) - len(names) + 1

    def content(self) -> dict[str, Any]:
        """As it is written."""
        columns = [column.content() for column in self.columns]
        return {"kind": KIND, "format": FORMAT, "columns": columns, "features": self.names}

    def format(self) -> bytes:
        """As JSON text."""
        return (json.dumps(self.content(), indent=1) + "\n").encode("ascii")


def read_feature_map(path: str) -> FeatureMap:
    """A map that convert wrote."""
    name = name_of(path)
    try:
        content = json_object(b"".join(read_pieces(path)))
        columns = [MappedColumn(**column) for column in content["columns"]]
        names = content["features"]
        _check(columns, names)
        found = FeatureMap(columns, names)
        if found.content() != content:  # an entry is missing, or one of another kind is there
            raise ValueError("entries")
        return found
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(
            f"{name}: not a feature map", "one is written by resvm convert with --map FILE"
        ) from None


def _check(columns: list[MappedColumn], names: list[str]) -> None:
    """ValueError where a map is not one that convert writes: each feature of one column."""
    taken: set[int] = set()
    numbers = [column.first for column in columns if column.kind == "number"]
    if not columns or type(names) is not list or not all(type(name) is str for name in names):
        raise ValueError("columns")
    for column in columns:
        if type(column.name) is not str or column.kind not in ("number", "text", "morgan"):
            raise ValueError("kind")
        places = [column.first]
        if column.kind == "text":
            places = [*column.values.values()]
        elif column.kind == "morgan":
            if not _is_fingerprint(column) or len(names) < column.bits:
                raise ValueError("fingerprint")
            places = [*range(column.first, column.first + column.bits)]
        elif column.fill is not None and not _is_finite(column.fill):
            raise ValueError("fill")
        if not all(type(place) is int and 1 <= place <= len(names) for place in places):
            raise ValueError("features")
        if len(set(places)) < len(places) or not taken.isdisjoint(places):
            raise ValueError("a feature of two columns")
        taken.update(places)
    if len(taken) < len(names):
        raise ValueError("a feature of no column")
    if numbers != sorted(numbers) or len({column.name for column in columns}) < len(columns):
        raise ValueError("order")


def _is_fingerprint(column: MappedColumn) -> bool:
    whole = type(column.bits) is int and type(column.radius) is int and type(column.first) is int
    sizes = whole and LEAST_BITS <= column.bits <= MOST_BITS and 0 <= column.radius <= MOST_RADIUS
    return sizes and type(column.counts) is bool


def _is_finite(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < 1e308  # type: ignore[arg-type]
