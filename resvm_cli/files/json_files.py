"""Read JSON objects, and sealed files, which contain their own digest.

Reading is strict: duplicate keys, which are ambiguous, and numbers too large for a double are
rejected.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

from resvm_cli.errors import FileError
from resvm_cli.files.atomic import whole_file
from resvm_cli.files.streams import cannot, read_regular

MAX_BYTES = 1 << 28


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
