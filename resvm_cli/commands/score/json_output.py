"""New."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from resvm_cli.report.json_output import finite, print_json

if TYPE_CHECKING:
    from resvm_cli.commands.score.compare import CompareResult
    from resvm_cli.commands.score.score import FileScore, ScoreResult


CURVE_LINES = 100_000


def _flat(file: FileScore) -> dict[str, Any]:
    """Every figure under its own name, its bounds beside it."""
    flat: dict[str, Any] = {
        "file": file.name,
        "provenance": file.provenance,
        "degenerate": file.degenerate,
        "threshold_from": file.threshold_from,
    }
    for name, value in file.figures.values.items():
        flat[name] = value
        if name in file.figures.bounds:
            flat[f"{name}_low"], flat[f"{name}_high"] = file.figures.bounds[name]
    for name, interval in file.differences.items():
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
        "files": [_flat(file) for file in result.files],
    }
    return {name: finite(value) for name, value in content.items()}


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
    for file in result.files:
        points = file.points
        assert points is not None
        name = '"' + file.name.replace('"', '""') + '",' if several else ""
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
            if (curve := file.corrected) is not None:
                columns += [
                    list(map(repr, array[part].tolist()))
                    for array in (curve.precision, curve.tpr, curve.fpr)
                ]
            lines = map(",".join, zip(*columns, strict=True))
            yield "".join(f"{name}{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def print_comparison(result: CompareResult) -> None:
    content: dict[str, Any] = finite(asdict(result))
    print_json("compare", content)
