"""Results for programs: versioned JSON on stdout."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from resvm_cli.report.terminal import print_data, with_unicode_names

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


SCHEMA = 1


def print_json(kind: str, content: dict[str, Any]) -> None:
    """A versioned object on stdout."""
    named = with_unicode_names(content)
    print_data(json.dumps({"schema": SCHEMA, "kind": kind, **named}, indent=1) + "\n")


def print_result(kind: str, result: DataclassInstance) -> None:
    """A result whose fields are its JSON keys."""
    print_json(kind, asdict(result))


def finite(value: Any) -> Any:
    """The same data with null for nan and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
