"""What a program sees: versioned JSON on stdout."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from resvm_cli.report.terminal import print_data

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from resvm_cli.jobs.check import FileCheck
    from resvm_cli.jobs.compare import CompareResult
    from resvm_cli.jobs.inspect import Inspection
    from resvm_cli.jobs.score import FileScore, ScoreResult
    from resvm_cli.jobs.train import TrainResult

SCHEMA = 1
CURVE_LINES = 100_000


def print_json(kind: str, content: dict[str, Any]) -> None:
    """A versioned object on stdout."""
    print_data(json.dumps({"schema": SCHEMA, "kind": kind, **content}, indent=1) + "\n")


def print_result(kind: str, result: DataclassInstance) -> None:
    """A result whose fields say all there is to say."""
    print_json(kind, asdict(result))


def print_training(result: TrainResult) -> None:
    print_json(
        "train",
        {"model": result.path, "notes": list(result.notes), "manifest": result.manifest},
    )


def print_check(found: list[FileCheck]) -> None:
    print_json("check", {"files": [asdict(one) for one in found]})


def print_inspection(found: Inspection) -> None:
    print_json(
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


def _finite(value: Any) -> Any:
    """JSON has neither nan nor infinities: null."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _flat(one: FileScore) -> dict[str, Any]:
    """Every figure under its own name, its bounds beside it."""
    flat: dict[str, Any] = {
        "file": one.name,
        "provenance": one.provenance,
        "degenerate": one.degenerate,
        "threshold_from": one.threshold_from,
    }
    for name, value in one.figures.values.items():
        flat[name] = value
        if name in one.figures.bounds:
            flat[f"{name}_low"], flat[f"{name}_high"] = one.figures.bounds[name]
    for name, interval in one.differences.items():
        flat[f"{name}_minus_first"] = interval.value
        flat[f"{name}_minus_first_low"] = interval.low
        flat[f"{name}_minus_first_high"] = interval.high
    return flat


def scores(result: ScoreResult) -> dict[str, Any]:
    """What score found, as plain data; also what its page is made from."""
    content = {
        "labels": result.labels,
        "pu": result.pu,
        "bootstrap": result.settings.n_replicates,
        "seed": result.settings.seed,
        "deployed_prevalence": result.settings.prevalence,
        "assumptions": list(result.assumptions),
        "warnings": list(result.warnings),
        "files": [_flat(one) for one in result.files],
    }
    return {name: _finite(value) for name, value in content.items()}


def print_scores(result: ScoreResult) -> None:
    print_json("score", scores(result))


def curve_lines(result: ScoreResult) -> Iterator[bytes]:
    """Every threshold of every file as CSV; with several files their names come first."""
    several = len(result.files) > 1
    header = "threshold,precision,recall,fpr,tp,fp"
    if result.files[0].corrected is not None:
        header += ",corrected_precision,corrected_recall,corrected_fpr"
    header += "\n"
    yield (f"file,{header}" if several else header).encode()
    for one in result.files:
        points = one.points
        assert points is not None
        name = '"' + one.name.replace('"', '""') + '",' if several else ""
        for start in range(0, len(points.thresholds), CURVE_LINES):
            part = slice(start, start + CURVE_LINES)
            columns = [
                list(map(repr, array[part].tolist()))
                for array in (points.thresholds, points.precision, points.recall, points.fpr)
            ]
            columns += [
                list(map(str, array[part].astype("int64").tolist()))
                for array in (points.tp, points.fp)
            ]
            if (curve := one.corrected) is not None:
                columns += [
                    list(map(repr, array[part].tolist()))
                    for array in (curve.precision, curve.tpr, curve.fpr)
                ]
            lines = map(",".join, zip(*columns, strict=True))
            yield "".join(f"{name}{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def print_comparison(result: CompareResult) -> None:
    content: dict[str, Any] = _finite(asdict(result))
    print_json("compare", content)
