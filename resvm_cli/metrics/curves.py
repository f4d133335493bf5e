"""PR and ROC curves with pointwise confidence bands, their plots, and histograms of scores.

Plots use the Okabe-Ito palette, whose colors color-blind readers can distinguish. Each curve also
has its own dash pattern, so that a figure printed in gray remains readable. matplotlib is imported
only when needed.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from resvm_cli import randomness
from resvm_cli.metrics.intervals import TAIL, resampled
from resvm_cli.metrics.ranking import Confusion, ScoredLabels
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray

if TYPE_CHECKING:
    import numpy.typing as npt

    from resvm_cli.metrics.evaluation import Evaluation

Kind: TypeAlias = Literal["png", "svg", "pdf"]

DRAWN_POINTS = 1500
BAND_BLOCKS = 2000
BAND_REPLICATES = 200
HISTOGRAM_BINS = 40
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)))
GRAY = "#767676"
REFERENCE_LINE: dict[str, Any] = {"color": GRAY, "lw": 0.9, "ls": (0, (2, 2)), "zorder": 1}
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "svg.hashsalt": "resvm",  # identical figures give identical bytes
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True, eq=False)
class Points:
    """Counts at each distinct score, best first: rows at or above the score count as positive."""

    thresholds: FloatArray
    tp: FloatArray
    fp: FloatArray
    n_positives: int
    n_negatives: int

    @classmethod
    def from_scores(cls, positive: BoolArray, scores: FloatArray) -> Points:
        """Count at every distinct score, including scores of negatives."""
        high = np.sort(scores[positive])
        thresholds = np.unique(scores)
        tp = len(high) - np.searchsorted(high, thresholds, "left")
        low = np.sort(scores[~positive])
        fp = len(low) - np.searchsorted(low, thresholds, "left")
        counts = tp[::-1].astype(np.float64), fp[::-1].astype(np.float64)
        return cls(thresholds[::-1], *counts, len(high), len(low))

    @cached_property
    def precision(self) -> FloatArray:
        return self.tp / (self.tp + self.fp)

    @cached_property
    def recall(self) -> FloatArray:
        return self.tp / self.n_positives

    @cached_property
    def fpr(self) -> FloatArray:
        return self.fp / max(1, self.n_negatives)

    def thinned(self, most: int = DRAWN_POINTS) -> Points:
        """Keep at most ``most`` points, spread over recall, false positives and depth."""
        if len(self.thresholds) <= most:
            return self
        depth = np.log1p(self.tp + self.fp)  # more points at the top of the ranking
        way = self.recall + self.fpr + depth / depth[-1]
        chosen = np.searchsorted(way, np.linspace(way[0], way[-1], most))
        kept = np.unique(np.concatenate([[0], chosen, [len(way) - 1]]))
        columns = self.thresholds[kept], self.tp[kept], self.fp[kept]
        return Points(*columns, self.n_positives, self.n_negatives)


def curve_band(
    ranking: ScoredLabels, n_replicates: int, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a grid of rates, and bounds on precision at each recall and on TPR at each FPR."""
    grid = np.linspace(0.0, 1.0, 101)
    rng = randomness.generator(seed, randomness.CURVES)
    drawn = resampled(ranking.merged(BAND_BLOCKS), min(n_replicates, BAND_REPLICATES), rng)
    tpr = drawn.tp / drawn.n_positives[:, None]
    fpr = drawn.fp / np.maximum(drawn.n_negatives, 1)[:, None]
    precision = drawn.tp / np.maximum(drawn.tp + drawn.fp, 1)
    curves = [_on_grid(grid, *rates) for rates in zip(tpr, fpr, precision, strict=True)]
    precisions, tprs = zip(*curves, strict=True)
    bounds = [np.quantile(of, [TAIL, 1 - TAIL], axis=0) for of in (precisions, tprs)]
    return grid, bounds[0], bounds[1]


def _on_grid(
    grid: FloatArray, tpr: FloatArray, fpr: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return precision (as steps) at each recall, and TPR at each FPR, on the grid."""
    # at recall 0, use the precision at the first positive
    block = np.minimum(np.searchsorted(tpr, np.maximum(grid, 1e-12), "left"), len(tpr) - 1)
    start, end = np.zeros(1), np.ones(1)
    across = np.interp(grid, np.concatenate([start, fpr, end]), np.concatenate([start, tpr, end]))
    return precision[block], across


def plot_curves(
    files: Sequence[Evaluation], kind: Kind, n_replicates: int, seed: int, *, pu: bool
) -> bytes:
    """Plot the PR and ROC curves of all files, side by side; ``pu``: of P against U."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 4.5 + 0.17 * len(files)), layout="constrained")
        pr, roc = figure.subplots(1, 2)
        for number, file in enumerate(files):
            _draw_file(pr, roc, file, number, n_replicates, seed, pu)
        finish_pr_and_roc(pr, roc, float(files[0].positive.mean()))
        if pu:
            ylabel = "known positives among predicted positives"
            pr.set(ylabel=ylabel, title="Known positives recovered")
            roc.set(xlabel="unlabeled rows predicted positive")
        note = "dot: at the threshold"
        if math.isnan(files[0].threshold):
            note = "a ranking has no threshold"
        if n_replicates:
            note += "; shaded: pointwise 95% band"
        figure.supxlabel(note, fontsize=8, color=GRAY)
        return save_figure(figure, kind, margin=0.08)


def _draw_file(
    pr: Any, roc: Any, file: Evaluation, number: int, n_replicates: int, seed: int, pu: bool
) -> None:
    color, dashes = COLORS[number % len(COLORS)], DASHES[number % len(DASHES)]
    style = {"color": color, "ls": dashes, "lw": 1.6}
    ranking = ScoredLabels.from_scores(file.positive, file.scores)
    curve = Points.from_scores(file.positive, file.scores).thinned()
    # matplotlib would read $ as the start of a formula
    name = pr_label = file.name.replace("$", r"\$")
    if not pu:
        pr_label += f": average precision {float(ranking.average_precision()):.3f}"
    # drawn as steps, because average precision is the area under them
    steps = [0, *curve.recall], [curve.precision[0], *curve.precision]
    pr.step(*steps, where="pre", label=pr_label, **style)
    label = f"{name}: area {float(ranking.roc_auc()):.3f}"
    roc.plot([0, *curve.fpr, 1], [0, *curve.recall, 1], label=label, **style)
    if n_replicates:
        grid, precisions, tprs = curve_band(ranking, n_replicates, seed)
        shade = {"color": color, "alpha": 0.15, "lw": 0}
        pr.fill_between(grid, *precisions, **shade)
        roc.fill_between(grid, *tprs, **shade)
    if not math.isnan(file.threshold):
        mark = {"marker": "o", "ms": 6, "mfc": color, "mec": "white", "mew": 1.2, "zorder": 5}
        table = Confusion.at(file.positive, file.scores, file.threshold)
        precision = table.precision if table.tp + table.fp or not pu else 1.0
        pr.plot([table.recall], [precision], **mark)
        roc.plot([table.fp / (table.fp + table.tn)], [table.recall], **mark)


def finish_pr_and_roc(pr: Any, roc: Any, chance: float) -> None:
    """Add chance lines, labels, grids and legends to plots of PR and ROC curves."""
    pr.plot([0, 1], [chance, chance], label=f"chance {chance:.3g}", **REFERENCE_LINE)
    roc.plot([0, 1], [0, 1], label="chance 0.5", **REFERENCE_LINE)
    pr.set(xlabel="recall", ylabel="precision", title="Precision and recall")
    roc.set(xlabel="false-positive rate", ylabel="true-positive rate (recall)", title="ROC")
    for axes in (pr, roc):
        axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.02), aspect="equal")
        axes.grid()
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False, handlelength=3.2,
            fontsize=8.5,
        )  # fmt: skip


def save_figure(figure: Any, kind: Kind, margin: float | None = None) -> bytes:
    """Return the figure as the bytes of a file, without dates.

    If a margin is given, in inches, the page is fitted to the drawing so that no title is cut off.
    """
    target = io.BytesIO()
    metadata: dict[str, Any] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    fitted = {} if margin is None else {"bbox_inches": "tight", "pad_inches": margin}
    figure.savefig(target, format=kind, dpi=200, metadata=metadata[kind], **fitted)
    return target.getvalue()


@dataclass(frozen=True, eq=False)
class Histogram:
    """Histograms of two classes' scores; the outermost bins include all values beyond them."""

    edges: FloatArray
    positive: npt.NDArray[np.int64]
    other: npt.NDArray[np.int64]

    @classmethod
    def from_scores(cls, positive: BoolArray, scores: FloatArray) -> Histogram:
        finite = scores[np.isfinite(scores)]
        if not len(finite):
            finite = np.zeros(1)
        low, high = np.quantile(finite, [0.005, 0.995])
        if not high > low:
            low, high = low - 0.5, high + 0.5
        edges = np.linspace(low, high, HISTOGRAM_BINS + 1)
        clipped = np.clip(scores, low, high)
        return cls(edges, *(np.histogram(clipped[of], edges)[0] for of in (positive, ~positive)))
