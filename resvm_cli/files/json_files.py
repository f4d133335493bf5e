"""Read JSON objects, JSON lines, and sealed files, which contain their own digest.

Reading is strict: duplicate keys, which are ambiguous, and numbers too large for a double are
rejected.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterator
from typing import Any

from resvm_cli.errors import DataError, FileError, Message
from resvm_cli.files.atomic import whole_file
from resvm_cli.files.streams import cannot, comes_at_once, read_pieces, read_regular

LARGEST = sys.float_info.max
MAX_COUNT = 2**31
MAX_BYTES = 1 << 28
DELETE_LINE = Message("delete the line and repeat the run with {resume:True}")
RESUME = Message("repeat the run with {resume:True}: it removes such lines and recomputes them")


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object contains the same key twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large for a double")
    return number


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a valid number")


# Created once: json.loads would create a decoder for every line.
_LENIENT = json.JSONDecoder(object_pairs_hook=_unique_names, parse_float=_finite)
_STRICT = json.JSONDecoder(
    object_pairs_hook=_unique_names, parse_float=_finite, parse_constant=_no_constant
)


def parse_object(text: bytes | str, *, allow_nan: bool = False) -> dict[str, Any]:
    """Parse a JSON object; raise ValueError for anything else."""
    decoder = _LENIENT if allow_nan else _STRICT
    try:
        content = decoder.decode(text if isinstance(text, str) else text.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError("not a JSON object")
    return content


def read_json(path: str, *, may_wait: bool = True) -> dict[str, Any]:
    """Read a JSON object from a file; pipes are allowed only if ``may_wait``."""
    try:
        if may_wait:
            with open(path, "rb") as handle:
                text = handle.read(MAX_BYTES)
        else:
            text = read_regular(path)
    except OSError as error:
        raise cannot("read", path, error) from None
    try:
        return parse_object(text, allow_nan=True)
    except ValueError as error:
        raise FileError(f"{path}: not JSON written by resvm: {error}") from None


def write_sealed(path: str, content: dict[str, Any]) -> None:
    """Write a line of JSON and a line with its digest, so that readers can verify it."""
    body = json.dumps(content, allow_nan=False)
    digest = hashlib.sha256(body.encode()).hexdigest()
    with whole_file(path) as handle:
        handle.write(f"{body}\n{digest}\n".encode())


def read_sealed(path: str) -> dict[str, Any]:
    """Read a file written by ``write_sealed``; raise ValueError if it was damaged or edited."""
    body, _, digest = read_regular(path, MAX_BYTES, follow_links=False).partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() + b"\n" != digest:
        raise ValueError("the digest differs")
    content = parse_object(body)
    if json.dumps(content, allow_nan=False).encode() != body:
        raise ValueError("not written by resvm")
    return content


def read_jsonl(path: str) -> Iterator[tuple[int, StrictRecord]]:
    """Yield the objects in a JSON lines file, with their line numbers."""
    if not comes_at_once(path):
        raise FileError(f"{path}: not a regular file", "expected the directory of a run")
    lines = b"".join(read_pieces(path)).split(b"\n")
    for number, line in enumerate(lines[:-1], 1):
        where = f"{path}:{number}"
        try:
            content = parse_object(line)
        except ValueError as error:
            raise DataError(f"{where}: the line is damaged: {error}", RESUME) from None
        yield number, StrictRecord(where, content)
    if lines[-1]:
        raise DataError(f"{path}:{len(lines)}: the line is truncated", RESUME)


def is_whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < MAX_COUNT


class StrictRecord:
    """A JSON object whose fields are read by name and checked for type and range."""

    def __init__(self, where: str, content: dict[str, Any]) -> None:
        self.where = where
        self.content = content

    def refused(self, name: str, expected: str) -> DataError:
        if name not in self.content:
            return DataError(f"{self.where}: no {name}; expected {expected}", DELETE_LINE)
        given = json.dumps(self.content[name])
        given = given if len(given) < 60 else f"{given[:57]}..."
        return DataError(f"{self.where}: {name} is {given}; expected {expected}", DELETE_LINE)

    def text(self, name: str, among: tuple[str, ...] = ()) -> str:
        value = self.content.get(name)
        if not isinstance(value, str) or not value or (among and value not in among):
            raise self.refused(name, f"one of {', '.join(among)}" if among else "a name")
        return value

    def number(self, name: str, low: float, high: float, default: float | None = None) -> float:
        value: Any = self.content.get(name, default)
        if type(value) not in (int, float) or not low <= value <= min(high, LARGEST):
            bounds = f"from {low:g} to {high:g}" if math.isfinite(high) else f"of at least {low:g}"
            raise self.refused(name, f"a number {bounds}")
        return float(value)

    def whole(self, name: str) -> int:
        value: Any = self.content.get(name)
        if not is_whole(value):
            raise self.refused(name, "a non-negative integer")
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
