"""The output of resvm score: tables, JSON, curves as CSV, plots, and the HTML page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from resvm_cli import __version__
from resvm_cli.metrics.curves import Curve, Histogram
from resvm_cli.report import charts
from resvm_cli.report.charts import COLORS, DASHES, GRAY, Kind, page
from resvm_cli.report.terminal import as_json, harmless, in_options, print_data

if TYPE_CHECKING:
    from resvm_cli.commands.score.score import FileScore, ScoreResult

CURVE_LINES = 100_000
# (name of the figure, label in tables and on pages)
AREAS = (
    ("average_precision", "average precision"),
    ("roc_auc", "ROC AUC"),
    ("pr_auc_trapezoid", "PR AUC, trapezoidal"),
    ("bedroc_20", "BEDROC, alpha 20"),
    ("bedroc_80.5", "BEDROC, alpha 80.5"),
)
AT_THRESHOLD = (
    ("precision", "precision"),
    ("recall", "recall"),
    ("f1", "F1"),
    ("mcc", "MCC"),
)
PU = (
    ("roc_auc_pu", "ROC AUC, P against U"),
    ("pu_score", "pu_score at T"),
    ("pu_score_max", "pu_score, largest at any T"),
    ("recall", "recall of known positives at T"),
    ("fraction_positive", "fraction predicted positive at T"),
    ("fraction_positive_unlabeled", "fraction of U predicted positive at T"),
)
CORRECTED = (
    ("contamination_unl_estimate", "fraction of positives in U, estimated"),
    ("corrected_average_precision", "average precision"),
    ("corrected_roc_auc", "ROC AUC"),
    ("corrected_precision", "precision at T"),
    ("corrected_recall", "recall at T"),
    ("corrected_fpr", "false-positive rate at T"),
    ("corrected_f1", "F1 at T"),
)
COMPARED = dict([*AREAS, *PU])  # labels of figures whose differences are shown
UNRANKED = {"fraction_positive", "fraction_positive_unlabeled", "contamination_unl_estimate"}
LOWER_IS_BETTER = {"corrected_fpr"}
TILES = (
    ("average_precision", "average precision"),
    ("roc_auc", "ROC AUC"),
    ("precision", "precision at T"),
    ("recall", "recall at T"),
    ("enrichment_at_1_percent", "enrichment in the top 1\u00a0%"),
    ("corrected_average_precision", "average precision, corrected"),
    ("corrected_roc_auc", "ROC AUC, corrected"),
    ("roc_auc_pu", "ROC AUC, P against U"),
    ("pu_score", "pu_score at T"),
)
NOTES = (
    "Average precision is the area under the PR curve drawn as steps. The trapezoidal area joins"
    " the points of the curve with straight lines and is optimistic for tied scores.",
    "Tied rows have no order, so figures are expectations over all orders of tied rows.",
)


class _Lines:
    """A table with one column per file, and a column of intervals if there is only one file."""

    def __init__(self, files: Sequence[FileScore]) -> None:
        self.files = files
        self._rows: list[tuple[str, list[str], str]] = []
        if len(files) > 1:
            self.row("", [file.name for file in files])

    def title(self, text: str) -> None:
        self._rows.append((text, [], ""))

    def row(self, label: str, cells: Sequence[str], beside: str = "") -> None:
        self._rows.append((f"  {label}", list(cells), beside if len(self.files) == 1 else ""))

    def figures(self, names: Sequence[tuple[str, str]]) -> None:
        for name, label in names:
            values = [file.figures.values.get(name) for file in self.files]
            if all(value is None or value != value for value in values):
                continue
            bounds = self.files[0].figures.bounds.get(name)
            beside = f"{bounds[0]:.4f} to {bounds[1]:.4f}" if bounds else ""
            self.row(label, [_number(value) for value in values], beside)

    def text(self) -> str:
        filled = [(label, cells) for label, cells, _ in self._rows if cells]
        first = max(len(label) for label, _ in filled) + 2
        columns = zip(*(cells for _, cells in filled), strict=True)
        widths = [2 + max(map(len, column)) for column in columns]
        lines = []
        for label, cells, beside in self._rows:
            if not cells:
                lines += ["", label]
                continue
            shown = [f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)]
            lines.append(f"{label:<{first}}{''.join(shown)}  {beside}".rstrip())
        return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    if value is None or value != value:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def show_scores(result: ScoreResult) -> None:
    """Print the table on stdout, followed by assumptions and warnings."""
    files = [replace(file, name=harmless(file.name)) for file in result.files]
    lines = _Lines(files)
    values = files[0].figures.values
    other = "unlabeled" if result.request.pu else "negative"
    n_other = values["n_unlabeled" if result.request.pu else "n_negatives"]
    labels = harmless(result.request.labels_name)
    heading = f"{files[0].name} against {labels}" if len(files) == 1 else labels
    text = f"{heading}: {values['n_positives']:,} positive, {n_other:,} {other} rows\n"
    several = len(files) > 1
    n_drawn = result.request.n_replicates
    intervals = ""
    if n_drawn and not several:
        intervals = f" (95 % intervals from {n_drawn:,} bootstrap replicates)"
    if result.request.pu:
        lines.title(f"from positive and unlabeled rows{intervals}")
        lines.figures(PU)
        _thresholds(lines)
        if "contamination_pos" in values:
            lines.title(
                f"corrected for contamination {values['contamination_pos']:.3g} of P and"
                f" {values['contamination_unl']:.3g} of U"
            )
            lines.figures(CORRECTED)
    else:
        lines.title(f"areas{intervals}")
        lines.figures(AREAS)
        lines.title("at the threshold")
        _thresholds(lines)
        lines.figures(AT_THRESHOLD)
        lines.title("screening")
        _screening(lines)
    if several:
        _differences(lines)
    text += lines.text()
    if not result.request.pu and not several:
        text += _confusion(values)
    for file in files:
        if file.degenerate:
            text += f"\n{file.name}: degenerate: {file.degenerate}\n"
    if result.assumptions:
        text += "\nassumed: " + "\n         ".join(result.assumptions) + "\n"
    text += "".join(f"warning: {harmless(in_options(warning))}\n" for warning in result.warnings)
    print_data(text)


def _thresholds(lines: _Lines) -> None:
    values = [file.figures.values["threshold"] for file in lines.files]
    cells = ["none" if value != value else f"{value:.6g}" for value in values]
    source = in_options(lines.files[0].threshold_from)
    lines.row("T", cells, source if cells[0] == "none" else f"from {source}")


def _screening(lines: _Lines) -> None:
    """Add the enrichment at each depth; for a single file, also precision and recall."""
    values = lines.files[0].figures.values
    for name, enrichment in values.items():
        what, _, depth = name.partition("_at_")
        if what != "enrichment":
            continue
        label = f"enrichment in the top {depth.replace('_percent', ' %')}"
        if len(lines.files) > 1:
            lines.figures([(name, label)])
            continue
        precision, recall = values[f"precision_at_{depth}"], values[f"recall_at_{depth}"]
        beside = f"precision {precision:.4f}, recall {recall:.4f}"
        lines.row(label, [f"{enrichment:.2f}"], beside)


def _differences(lines: _Lines) -> None:
    first, *others = lines.files
    lines.title(f"difference from {first.name} (paired bootstrap)")
    for name in others[0].differences:
        found = [file.differences[name] for file in others]
        lines.row(COMPARED[name], ["", *(f"{one.value:+.4f}" for one in found)])
        lines.row("  95 %", ["", *(f"{one.low:+.4f} to {one.high:+.4f}" for one in found)])


def _confusion(values: dict[str, float]) -> str:
    tp, fp, fn, tn = (f"{values[name]:,}" for name in ("tp", "fp", "fn", "tn"))
    width = 2 + max(len("predicted +"), *map(len, (tp, fp, fn, tn)))
    rows = (("", "positive", "negative"), ("predicted +", tp, fp), ("predicted -", fn, tn))
    return "\n" + "".join(f"{name:>12}{a:>{width}}{b:>{width}}\n" for name, a, b in rows)


def _flat(file: FileScore) -> dict[str, Any]:
    """Return every figure by name, each followed by its bounds."""
    flat: dict[str, Any] = {
        "file": file.name,
        "degenerate": file.degenerate,
        "threshold_from": in_options(file.threshold_from),
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


def plain_data(result: ScoreResult) -> dict[str, Any]:
    """Return the results as plain data, for JSON and the HTML page."""
    return {
        "labels": result.request.labels_name,
        "pu": result.request.pu,
        "bootstrap": result.request.n_replicates,
        "seed": result.request.seed,
        "assumptions": list(result.assumptions),
        "warnings": [in_options(warning) for warning in result.warnings],
        "files": [_flat(file) for file in result.files],
    }


def curve_lines(result: ScoreResult) -> Iterator[bytes]:
    """Yield every threshold as CSV; with several files, the first column names the file."""
    several = len(result.files) > 1
    header = "threshold,precision,recall,fpr,tp,fp"
    if result.files[0].cases:
        header += ",corrected_precision,corrected_recall,corrected_fpr"
    header += "\n"
    yield (f"file,{header}" if several else header).encode()
    for file in result.files:
        points = file.points
        name = '"' + file.name.replace('"', '""') + '",' if several else ""
        columns = [points.thresholds, points.precision, points.recall, points.fpr]
        columns += [points.tp.astype("int64"), points.fp.astype("int64")]
        if file.cases:
            curve = Curve.corrected(points.thresholds, points.recall, points.fpr, file.cases[0])
            columns += [curve.precision, curve.recall, curve.fpr]
        for start in range(0, len(points.thresholds), CURVE_LINES):
            texts = [map(repr, column[start : start + CURVE_LINES].tolist()) for column in columns]
            lines = map(",".join, zip(*texts, strict=True))
            yield "".join(f"{name}{line}\n" for line in lines).encode("utf-8", "surrogateescape")


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
    """Return each figure's name, label, and whether higher (1), lower (-1) or neither is better."""
    rows: list[tuple[str, str]] = [*(PU if result.request.pu else AREAS)]
    if result.request.pu:
        rows += [(name, f"corrected: {label}") for name, label in CORRECTED]
    else:
        rows += [(name, f"{label} at T") for name, label in AT_THRESHOLD]
        for name in result.files[0].figures.values:
            what, _, depth = name.partition("_at_")
            if what in ("precision", "recall", "enrichment") and depth[:1].isdigit():
                rows.append((name, f"{what} in the top {depth.replace('_percent', ' %')}"))
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
            (COMPARED[name], interval.value, interval.low, interval.high)
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

    with matplotlib.rc_context(charts.STYLE):
        rows = len(result.files)
        figure = Figure(figsize=(8.4, 4.5 + 0.17 * rows), layout="constrained")
        pr, roc = figure.subplots(1, 2)
        for number, file in enumerate(result.files):
            _draw_file(pr, roc, file, number, result.request.pu)
        charts.finish_pr_and_roc(pr, roc, result.chance)
        if result.request.pu and "contamination_pos" not in result.files[0].figures.values:
            ylabel = "known positives among predicted positives"
            pr.set(ylabel=ylabel, title="Known positives recovered")
            roc.set(xlabel="unlabeled rows predicted positive")
        note = "dot: at the threshold"
        if math.isnan(result.files[0].threshold):
            note = "a ranking has no threshold"
        if result.files[0].band is not None:
            note += "; shaded: pointwise 95 % band"
        figure.supxlabel(note, fontsize=8, color=GRAY)
        return charts.saved(figure, kind, margin=0.08)


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
    steps = [0, *curve.recall], [curve.precision[0], *curve.precision]
    pr.step(*steps, where="pre", label=label, **style)
    label = f"{name}: area {values[roc_name]:.3f}"
    roc.plot([0, *curve.fpr, 1], [0, *curve.recall, 1], label=label, **style)
    if (band := file.band) is not None:
        shade = {"color": color, "alpha": 0.15, "lw": 0}
        pr.fill_between(band.grid, band.precision_low, band.precision_high, **shade)
        roc.fill_between(band.grid, band.tpr_low, band.tpr_high, **shade)
    mark = {"marker": "o", "ms": 6, "mfc": color, "mec": "white", "mew": 1.2, "zorder": 5}
    if math.isnan(file.threshold):
        return
    if (corrected := file.corrected) is not None:
        # the dot lies on the drawn curve, which is monotone
        place = _place_of_threshold(file)
        at = [corrected.recall[place], corrected.precision[place], corrected.fpr[place]]
    else:
        table = file.table
        precision = table.precision if table.tp + table.fp or not pu else 1.0
        at = [table.recall, precision, table.fp / (table.fp + table.tn)]
    pr.plot([at[0]], [at[1]], **mark)
    roc.plot([at[2]], [at[0]], **mark)
