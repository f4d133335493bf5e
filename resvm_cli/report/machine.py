"""What a program sees: versioned JSON on stdout."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from resvm_cli.report.terminal import print_data

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from resvm_cli.jobs.check import FileCheck
    from resvm_cli.jobs.inspect import Inspection
    from resvm_cli.jobs.train import TrainResult

SCHEMA = 1


def _print(kind: str, content: dict[str, Any]) -> None:
    print_data(json.dumps({"schema": SCHEMA, "kind": kind, **content}, indent=1) + "\n")


def print_result(kind: str, result: DataclassInstance) -> None:
    """A result whose fields say all there is to say."""
    _print(kind, asdict(result))


def print_training(result: TrainResult) -> None:
    _print(
        "train",
        {"model": result.path, "notes": list(result.notes), "manifest": result.manifest},
    )


def print_check(found: list[FileCheck]) -> None:
    _print("check", {"files": [asdict(one) for one in found]})


def print_inspection(found: Inspection) -> None:
    _print(
        "inspect",
        {
            "model": found.path,
            "intact": True,
            "n_members": found.n_members,
            "n_support_vectors": found.n_support_vectors,
            "n_distinct_support_vectors": found.n_pool,
            "member_bytes": found.n_bytes,
            "manifest": found.manifest,
        },
    )
