"""JSON with its digest below it, written whole: what one task leaves for another to trust."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from resvm_cli.files.atomic import whole_file
from resvm_cli.files.bounded_read import read_bounded

LARGEST_JSON = 1 << 28


def write_sealed(path: str, content: dict[str, Any]) -> None:
    """One line of JSON and one of its digest."""
    body = json.dumps(content, allow_nan=False)
    digest = hashlib.sha256(body.encode()).hexdigest()
    with whole_file(path) as handle:
        handle.write(f"{body}\n{digest}\n".encode())


def read_sealed(path: str) -> dict[str, Any]:
    """What was written; ValueError where it was damaged or edited, ModelError without a file."""
    body, _, digest = read_bounded(path, LARGEST_JSON).partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() + b"\n" != digest:
        raise ValueError("digest")
    try:
        content = json.loads(body)
        # numbers that no double holds, and keys that come twice, were not written here
        if not isinstance(content, dict) or json.dumps(content, allow_nan=False).encode() != body:
            raise ValueError("content")
    except RecursionError:
        raise ValueError("depth") from None
    return content
