"""What a program sees of results: versioned JSON on stdout, curves as CSV."""

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
    """A result whose fields say all there is to say."""
    print_json(kind, asdict(result))


def finite(value: Any) -> Any:
    """JSON has neither nan nor infinities: null."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
