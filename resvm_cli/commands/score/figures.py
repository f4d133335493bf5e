"""The plots of resvm score, and its HTML page with an adjustable threshold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from resvm_cli import __version__
from resvm_cli.commands.score.report import (
    AREAS,
    AT_THRESHOLD,
    CORRECTED,
    LOWER_IS_BETTER,
    PU,
    UNRANKED,
    plain_data,
)
from resvm_cli.metrics.curves import Histogram
from resvm_cli.report.charts import COLORS, DASHES, GRAY, STYLE, Kind, page, saved
from resvm_cli.report.terminal import as_json

if TYPE_CHECKING:
    from resvm_cli.commands.score.score import FileScore, ScoreResult

TILES = (
    ("average_precision", "average precision"),
    ("roc_auc", "ROC area"),
    ("precision", "precision at T"),
    ("recall", "recall at T"),
    ("enrichment_at_1_percent", "enrichment in the first 1\u00a0%"),
    ("corrected_average_precision", "average precision, corrected"),
    ("corrected_roc_auc", "ROC area, corrected"),
    ("roc_auc_pu", "ROC area, P against U"),
    ("pu_score", "pu_score at T"),
)
NOTES = (
    "Average precision is the area under the steps of the PR curve. The trapezoidal area joins its"
    " points with straight lines and is optimistic for tied scores.",
    "Tied rows have no order: figures are expectations over all orders of tied rows.",
)


def render_page(result: ScoreResult, command: str = "") -> bytes:
    """Render the HTML page; ``command`` is the command line to show on it."""
    plain = plain_data(result)
    files = [_file(file, flat) for file, flat in zip(result.files, plain.pop("files"), strict=True)]
    made = [f"Made by resvm {__version__}, seed {result.request.seed}.", *NOTES]
    names = ", ".join(file.name for file in result.files)
    data = {
        **plain,
        "command": command,
        "chance": result.chance,
        "tiles": TILES,
        "rows": _rows(result),
        "made": made,
        "files": files,
    }
    return page(f"resvm score: {names}", "commands/score/score.js", data)


def _rows(result: ScoreResult) -> list[tuple[str, str, int]]:
    """Return each figure's name, label, and whether higher (1) or lower (-1) is better."""
    rows: list[tuple[str, str]] = [*(PU if result.request.pu else AREAS)]
    if result.request.pu:
        rows += [(name, f"corrected: {label}") for name, label in CORRECTED]
    else:
        rows += [(name, f"{label} at T") for name, label in AT_THRESHOLD]
        for name in result.files[0].figures.values:
            what, _, depth = name.partition("_at_")
            if what in ("precision", "recall", "enrichment") and depth[:1].isdigit():
                rows.append((name, f"{what} in the first {depth.replace('_percent', ' %')}"))
    return [
        (name, label, 0 if name in UNRANKED else -1 if name in LOWER_IS_BETTER else 1)
        for name, label in rows
    ]


def _numbers(array: Any) -> list[float]:
    """Round to nine significant digits, more than the page shows."""
    return [float(f"{value:.9g}") for value in array.tolist()]


def _file(file: FileScore, flat: dict[str, Any]) -> dict[str, Any]:
    points, threshold = file.points.thinned(), file.threshold
    counts = points.thresholds, points.tp, points.fp
    entries = list(zip(*(column.tolist() for column in counts), strict=True))
    start = sum(1 for entry in entries if entry[0] > threshold)
    here = file.table.tp, file.table.fp
    if start and entries[start - 1][1:] != here:  # thinning removed T: add its counts
        entries.insert(start, (threshold, *here))
        start += 1
    labels = {**dict(AREAS), **dict(PU)}
    band, curve = file.band, file.corrected
    histogram = Histogram.from_scores(file.positive, file.scores)
    return {
        "file": file.name,
        "degenerate": file.degenerate,
        "figures": {name: value for name, value in as_json(flat).items() if value is not None},
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
        "band": band and {name: _numbers(array) for name, array in vars(band).items()},
        "corrected": curve
        and {
            "thresholds": [_finite(value) for value in curve.thresholds.tolist()],
            "tpr": _numbers(curve.recall),
            "fpr": _numbers(curve.fpr),
            "precision": _numbers(curve.precision),
            "start": _place_of_threshold(file),
        },
        "differences": [
            (labels[name], interval.value, interval.low, interval.high)
            for name, interval in file.differences.items()
        ],
    }


def _place_of_threshold(file: FileScore) -> int:
    """Return the index of the threshold on the corrected curve."""
    assert file.corrected is not None
    return int((file.corrected.thresholds > file.threshold).sum())


def _finite(value: float) -> float:
    """Replace infinities, which JSON lacks, with the largest doubles."""
    return max(-1.7976931348623157e308, min(1.7976931348623157e308, float(f"{value:.12g}")))


def plot_curves(result: ScoreResult, kind: Kind) -> bytes:
    """Plot the PR and ROC curves of all files, side by side."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        rows = len(result.files)
        figure = Figure(figsize=(8.4, 4.5 + 0.17 * rows), layout="constrained")
        pr, roc = figure.subplots(1, 2)
        for number, file in enumerate(result.files):
            _draw_file(pr, roc, file, number, result.request.pu)
        values = result.files[0].figures.values
        chance = result.chance
        by_chance = {"color": GRAY, "lw": 0.9, "ls": (0, (2, 2)), "zorder": 1}
        pr.plot([0, 1], [chance, chance], label=f"chance {chance:.3g}", **by_chance)
        roc.plot([0, 1], [0, 1], label="chance 0.5", **by_chance)
        corrected = "contamination_pos" in values
        other = "unlabeled rows predicted positive" if result.request.pu and not corrected else None
        pr.set(xlabel="recall", ylabel="precision", title="Precision and recall")
        if result.request.pu and not corrected:
            pr.set(
                ylabel="known positives among predicted positives",
                title="Known positives recovered",
            )
        roc.set(
            xlabel=other or "false-positive rate", ylabel="true-positive rate (recall)", title="ROC"
        )
        for axes in (pr, roc):
            axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.02), aspect="equal")
            axes.grid(color="#e4e4e4", lw=0.6)
            axes.set_axisbelow(True)
            axes.legend(
                loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False, handlelength=3.2,
                fontsize=8.5,
            )  # fmt: skip
        note = "dot: at the threshold"
        if math.isnan(result.files[0].threshold):
            note = "a ranking has no threshold"
        if result.files[0].band is not None:
            note += "; shaded: pointwise 95 %"
        figure.supxlabel(note, fontsize=8, color=GRAY)
        return saved(figure, kind, margin=0.08)


def _draw_file(pr: Any, roc: Any, file: FileScore, number: int, pu: bool) -> None:
    color, dashes = COLORS[number % len(COLORS)], DASHES[number % len(DASHES)]
    values = file.figures.values
    style = {"color": color, "ls": dashes, "lw": 1.6}
    precision_name = "corrected_average_precision" if file.corrected else "average_precision"
    roc_name = "corrected_roc_auc" if file.corrected else "roc_auc_pu" if pu else "roc_auc"
    # matplotlib would read $ as the start of a formula
    name = file.name.replace("$", r"\$")
    label = name
    if precision_name in values:
        label += f": average precision {values[precision_name]:.3f}"
    curve = file.corrected or file.points.thinned()
    # drawn as steps, because average precision is the area under them
    pr.step(
        [0, *curve.recall],
        [curve.precision[0], *curve.precision],
        where="pre",
        label=label,
        **style,
    )
    roc.plot(
        [0, *curve.fpr, 1],
        [0, *curve.recall, 1],
        label=f"{name}: area {values[roc_name]:.3f}",
        **style,
    )
    if (band := file.band) is not None:
        shade = {"color": color, "alpha": 0.15, "lw": 0}
        pr.fill_between(band.grid, band.precision_low, band.precision_high, **shade)
        roc.fill_between(band.grid, band.tpr_low, band.tpr_high, **shade)
    mark = {"marker": "o", "ms": 6, "mfc": color, "mec": "white", "mew": 1.2, "zorder": 5}
    if math.isnan(file.threshold):
        return
    if (corrected := file.corrected) is not None:
        # the drawn curve only rises: the dot is its point at the threshold
        place = _place_of_threshold(file)
        at = [corrected.recall[place], corrected.precision[place], corrected.fpr[place]]
    else:
        table = file.table
        precision = table.precision if table.tp + table.fp or not pu else 1.0
        at = [table.recall, precision, table.fp / (table.fp + table.tn)]
    pr.plot([at[0]], [at[1]], **mark)
    roc.plot([at[2]], [at[0]], **mark)
