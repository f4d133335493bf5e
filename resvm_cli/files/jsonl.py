"""Lines of JSON that are read strictly: each is an object, and its fields are what they should be.

What a report is made of must be understood in full: anything else is refused by file and line.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from typing import Any

from resvm_cli.errors import DataError, FileError
from resvm_cli.files.json_objects import json_object
from resvm_cli.files.streams import comes_at_once, read_pieces

LARGEST = sys.float_info.max
LARGEST_COUNT = 2**31
REMOVE = "take that line out; resvm benchmark run --resume then runs again what it held"
RESUME = "resvm benchmark run --resume takes such lines out and runs again what they held"


def read_lines(path: str) -> Iterator[tuple[int, StrictRecord]]:
    """The objects of a file of JSON lines with their numbers; nothing else may be there."""
    if not comes_at_once(path):
        raise FileError(f"{path}: not a regular file", "give the directory of a run")
    text = b"".join(read_pieces(path))
    lines = text.split(b"\n")
    for number, line in enumerate(lines[:-1], 1):
        yield number, StrictRecord(f"{path}:{number}", _object(line, f"{path}:{number}"))
    if lines[-1]:
        raise DataError(f"{path}:{len(lines)}: the line is cut off", RESUME)


def _object(line: bytes, where: str) -> dict[str, Any]:
    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is no number")

    try:
        return json_object(line, parse_constant=refuse)
    except ValueError as error:
        raise DataError(f"{where}: the line is damaged: {error}", RESUME) from None


def is_whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < LARGEST_COUNT


class StrictRecord:
    """A JSON object whose fields are asked for by name and range."""

    def __init__(self, where: str, content: dict[str, Any]) -> None:
        self.where = where
        self.content = content

    def refused(self, name: str, expected: str) -> DataError:
        if name not in self.content:
            return DataError(f"{self.where}: no {name}; {expected} was expected", REMOVE)
        given = json.dumps(self.content[name])
        given = given if len(given) < 60 else f"{given[:57]}..."
        return DataError(f"{self.where}: {name} is {given}; {expected} was expected", REMOVE)

    def text(self, name: str, among: tuple[str, ...] = ()) -> str:
        value = self.content.get(name)
        if not isinstance(value, str) or not value or (among and value not in among):
            raise self.refused(name, f"one of {', '.join(among)}" if among else "a name")
        return value

    def number(self, name: str, low: float, high: float, default: float | None = None) -> float:
        value: Any = self.content.get(name, default)
        if type(value) not in (int, float) or not low <= value <= min(high, LARGEST):
            bounds = f"from {low:g} to {high:g}" if math.isfinite(high) else f"from {low:g} on"
            raise self.refused(name, f"a number {bounds}")
        return float(value)

    def whole(self, name: str) -> int:
        value: Any = self.content.get(name)
        if not is_whole(value):
            raise self.refused(name, "a whole number from 0 on")
        return int(value)

    def names(self, name: str) -> tuple[str, ...]:
        value = self.content.get(name, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.refused(name, "a list of names")
        return tuple(value)

    def mapping(self, name: str) -> dict[str, Any]:
        value = self.content.get(name, {})
        if not isinstance(value, dict):
            raise self.refused(name, "a JSON object")
        return value
