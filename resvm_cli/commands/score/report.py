"""The output of resvm score: tables, JSON, and curves as CSV."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from resvm_cli.metrics.curves import Curve
from resvm_cli.report.terminal import harmless, in_options, print_data

if TYPE_CHECKING:
    from resvm_cli.commands.score.score import FileScore, ScoreResult

CURVE_LINES = 100_000
# (name of the figure, label in tables and on pages)
AREAS = (
    ("average_precision", "average precision"),
    ("roc_auc", "ROC area"),
    ("pr_auc_trapezoid", "PR area, trapezoidal"),
)
AT_THRESHOLD = (
    ("precision", "precision"),
    ("recall", "recall"),
    ("f1", "F1"),
    ("mcc", "MCC"),
)
PU = (
    ("roc_auc_pu", "ROC area, P against U"),
    ("pu_score", "pu_score at T"),
    ("pu_score_max", "pu_score, largest at any T"),
    ("recall", "recall of known positives at T"),
    ("fraction_positive", "fraction predicted positive at T"),
    ("fraction_positive_unlabeled", "fraction of U predicted positive at T"),
)
CORRECTED = (
    ("contamination_unl_estimate", "fraction of positives in U, estimated"),
    ("corrected_average_precision", "average precision"),
    ("corrected_roc_auc", "ROC area"),
    ("corrected_precision", "precision at T"),
    ("corrected_recall", "recall at T"),
    ("corrected_fpr", "false-positive rate at T"),
    ("corrected_f1", "F1 at T"),
)
UNRANKED = {"fraction_positive", "fraction_positive_unlabeled", "contamination_unl_estimate"}
LOWER_IS_BETTER = {"corrected_fpr"}


class _Lines:
    """A table with one column per file, and a column of intervals if there is only one file."""

    def __init__(self, files: Sequence[FileScore]) -> None:
        self.files = files
        self._rows: list[tuple[str, list[str], str, frozenset[int]]] = []

    def title(self, text: str) -> None:
        self._rows.append((text, [], "", frozenset()))

    def row(
        self, label: str, cells: Sequence[str], beside: str = "", best: frozenset[int] = frozenset()
    ) -> None:
        self._rows.append((f"  {label}", list(cells), beside, best))

    def figures(self, names: Sequence[tuple[str, str]]) -> None:
        for name, label in names:
            values = [file.figures.values.get(name) for file in self.files]
            if all(value is None or value != value for value in values):
                continue
            bounds = self.files[0].figures.bounds.get(name)
            beside = f"{bounds[0]:.4f} to {bounds[1]:.4f}" if bounds else ""
            self.row(label, [_number(value) for value in values], beside, _best(name, values))

    def text(self) -> str:
        """Format the table; the best of several files gets a star, and is bold on a terminal."""
        several = len(self.files) > 1
        bold, plain = ("\x1b[1m", "\x1b[0m") if _colors() else ("", "")
        names = [file.name for file in self.files] if several else [""]
        first = max(len(label) for label, cells, _, _ in self._rows if cells) + 2
        widths = [
            2 + max(len(name), *(len(cells[n]) for _, cells, _, _ in self._rows if cells))
            for n, name in enumerate(names)
        ]
        lines = []
        if several:
            heads = [f"{name:>{width}} " for name, width in zip(names, widths, strict=True)]
            lines.append((" " * first + "".join(heads)).rstrip())
        for label, cells, beside, best in self._rows:
            if not cells:
                lines += ["", f"{bold}{label}{plain}"]
                continue
            line = f"{label:<{first}}"
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True)):
                shown = f"{cell:>{width}}"
                if number in best:
                    shown = f"{bold}{shown}*{plain}"
                line += shown if number in best else f"{shown} "
            lines.append(f"{line} {beside}".rstrip() if not several else line.rstrip())
        return "\n".join(lines) + "\n"


def _colors() -> bool:
    return sys.stdout is not None and sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _number(value: float | None) -> str:
    if value is None or value != value:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def _best(name: str, values: Sequence[float | None]) -> frozenset[int]:
    """Return the columns to mark as best; none if all are equal."""
    present = [value for value in values if value is not None and value == value]
    if len(present) < 2 or name in UNRANKED or min(present) == max(present):
        return frozenset()
    best = min(present) if name in LOWER_IS_BETTER else max(present)
    return frozenset(number for number, value in enumerate(values) if value == best)


def show_scores(result: ScoreResult) -> None:
    """Print the table on stdout, followed by assumptions and warnings."""
    files = [replace(file, name=harmless(file.name)) for file in result.files]
    lines = _Lines(files)
    values = files[0].figures.values
    other = "unlabeled" if result.request.pu else "negative"
    n_other = values["n_unlabeled" if result.request.pu else "n_negatives"]
    labels = harmless(result.labels)
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
        label = f"enrichment in the first {depth.replace('_percent', ' %')}"
        if len(lines.files) > 1:
            lines.figures([(name, label)])
            continue
        precision, recall = values[f"precision_at_{depth}"], values[f"recall_at_{depth}"]
        beside = f"precision {precision:.4f}, recall {recall:.4f}"
        lines.row(label, [f"{enrichment:.2f}"], beside)


def _differences(lines: _Lines) -> None:
    first, *others = lines.files
    lines.title(f"difference from {first.name}, with the same rows resampled")
    labels = {**dict(AREAS), **dict(PU)}
    for name in others[0].differences:
        found = [file.differences[name] for file in others]
        lines.row(labels[name], ["", *(f"{one.value:+.4f}" for one in found)])
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
        "labels": result.labels,
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
