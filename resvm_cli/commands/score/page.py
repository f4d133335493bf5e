"""The page of score: its data, for the script that draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from resvm_cli import __version__
from resvm_cli.commands.score import json_output
from resvm_cli.commands.score.report import (
    AREAS,
    AT_THRESHOLD,
    CORRECTED,
    LOWER_IS_BETTER,
    PU,
    RECOVERED,
    UNRANKED,
)
from resvm_cli.report.html import page

if TYPE_CHECKING:
    from resvm_cli.commands.score.score import FileScore, ScoreResult

TILES = (
    ("average_precision", "average precision"),
    ("roc_auc", "ROC area"),
    ("precision", "precision at T"),
    ("recall", "recall at T"),
    ("enrichment_at_1_percent", "enrichment in the first 1 %"),
    ("corrected_average_precision", "average precision, corrected"),
    ("corrected_roc_auc", "ROC area, corrected"),
    ("roc_auc_pu", "ROC area, P against U"),
    ("pu_score", "pu_score at T"),
)
MADE = (
    "Average precision is the area under the steps of the PR curve. The trapezoidal area joins its"
    " points by straight lines, which flatters tied scores; the interpolated one follows Davis and"
    " Goadrich.",
    "Rows of equal value have no order: screening figures are expectations over all of them.",
)


def render(result: ScoreResult, command: str = "") -> bytes:
    """The whole page, with the command where it is known."""
    plain = json_output.scores(result)
    files = [_file(file, flat) for file, flat in zip(result.files, plain.pop("files"), strict=True)]
    values = result.files[0].figures.values
    if "contamination_pos" in values:
        chance = result.settings.prevalence or values["contamination_unl"]
    else:
        chance = values["n_positives"] / values["n_rows"]
    made = [f"Made by resvm {__version__}, seed {result.settings.seed}.", *MADE]
    if result.settings.prevalence is not None:
        made.append(f"The deployed prevalence is {result.settings.prevalence:g}.")
    names = ", ".join(file.name for file in result.files)
    data = {
        **plain,
        "command": command,
        "chance": chance,
        "tiles": TILES,
        "rows": _rows(result),
        "made": made,
        "files": files,
    }
    return page(f"resvm score: {names}", "report/score.js", data)


def _rows(result: ScoreResult) -> list[tuple[str, str, int]]:
    """Name, what people read, and whether more (1) or less (-1) is better, for every figure."""
    rows: list[tuple[str, str]] = [*(PU if result.pu else AREAS)]
    if result.pu:
        rows += [(name, f"corrected: {label}") for name, label in CORRECTED]
    else:
        for name, label in AT_THRESHOLD:
            rows.append((name, label if label[0] == " " else f"{label} at T"))
        rows += [("best_f1", "F1, largest"), ("best_f1_from", "  from this value on")]
        for name in result.files[0].figures.values:
            what, _, depth = name.partition("_at_")
            if what in ("precision", "recall", "enrichment") and depth[:1].isdigit():
                rows.append((name, f"{what} in the first {depth.replace('_percent', ' %')}"))
        rows += list(RECOVERED)
    # a line that continues the one above it in a table needs its whole name here
    whole = [
        (name, f"{rows[number - 1][1]}, {label.strip()}" if label[0] == " " else label)
        for number, (name, label) in enumerate(rows)
    ]
    return [
        (name, label, 0 if name in UNRANKED else -1 if name in LOWER_IS_BETTER else 1)
        for name, label in whole
    ]


def _numbers(array: Any) -> list[float]:
    """Nine digits: more than a pixel or a read-out shows."""
    return [float(f"{value:.9g}") for value in array.tolist()]


def _file(file: FileScore, flat: dict[str, Any]) -> dict[str, Any]:
    drawing = file.drawing
    assert drawing is not None
    values = file.figures.values
    points = drawing.points
    threshold = values["threshold"]
    entries = list(
        zip(points.thresholds.tolist(), points.tp.tolist(), points.fp.tolist(), strict=True)
    )
    start = sum(1 for entry in entries if entry[0] > threshold)
    if "tp" in values:
        here = (threshold, values["tp"], values["fp"])
    else:
        called = values["fraction_positive_unlabeled"] * values["n_unlabeled"]
        here = (threshold, round(values["recall"] * values["n_positives"]), round(called))
    if start and entries[start - 1][1:] != here[1:]:  # thinned away: the counts at T are wanted
        entries.insert(start, here)
        start += 1
    labels = {**dict(AREAS), **dict(PU)}
    band = drawing.band
    curve = drawing.corrected
    histogram = drawing.histogram
    return {
        "file": file.name,
        "provenance": file.provenance,
        "degenerate": file.degenerate,
        "figures": flat,
        "n_pos": points.n_positives,
        "n_other": points.n_negatives,
        "thresholds": [_finite(entry[0]) for entry in entries],
        "tp": [int(entry[1]) for entry in entries],
        "fp": [int(entry[2]) for entry in entries],
        "start": start,
        "histogram": {
            "edges": _numbers(histogram.edges),
            "positive": histogram.positive.tolist(),
            "other": histogram.other.tolist(),
        },
        "band": band
        and {
            name: _numbers(getattr(band, name))
            for name in ("grid", "precision_low", "precision_high", "tpr_low", "tpr_high")
        },
        "corrected": curve
        and {
            "thresholds": [_finite(value) for value in curve.thresholds.tolist()],
            "tpr": _numbers(curve.tpr),
            "fpr": _numbers(curve.fpr),
            "precision": _numbers(curve.precision),
        },
        "differences": [
            (labels[name], interval.value, interval.low, interval.high)
            for name, interval in file.differences.items()
        ],
    }


def _finite(value: float) -> float:
    """JSON has no infinities: the largest doubles stand for them."""
    return max(-1.7976931348623157e308, min(1.7976931348623157e308, float(f"{value:.12g}")))
