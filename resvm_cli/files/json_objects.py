"""JSON objects, read strictly: a name that stands twice has two meanings, and is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The names and values of an object; ValueError where two names are the same."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in an object")
    return found


def json_object(
    text: bytes | str, *, parse_constant: Callable[[str], Any] | None = None
) -> dict[str, Any]:
    """The object that a text is; ValueError where it is anything else."""
    try:
        content = json.loads(text, object_pairs_hook=unique_names, parse_constant=parse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError("a JSON object was expected")
    return content
