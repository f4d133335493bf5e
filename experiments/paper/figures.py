"""The paper's four figures: compute their data and draw them with matplotlib."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from experiments.paper.cells import Bench, CellScores, Protocol, score_cell
from experiments.paper.contamination import (
    AXES,
    ContaminationFigure,
    ContaminationPanel,
    other_axis,
)
from experiments.paper.data import PAPER_TASKS, SETTINGS, BenchmarkData, Cell, missing_files
from resvm_cli import threads as parallel
from resvm_cli.commands.simulate import RADIUS
from resvm_cli.errors import DataError
from resvm_cli.metrics import curves as charts
from resvm_cli.metrics.curves import COLORS, DASHES, GRAY, Kind, Points
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, Rows
from resvm_cli.run import Run
from resvm_cli.svm.libsvm import silenced

# paper, section "Bootstrap resampling contaminated sets"
RESAMPLED_CONTAMINATION = 0.1
RESAMPLE_SIZES = (5, 10, 20, 50, 100, 200, 500, 1000)
TAIL = 0.025  # probability on either side of a 95% interval
REACH = 7.0  # the densities are shown from -7 to 7
GRID_POINTS = 141
# Each method always has the same color, dashes and marker.
METHOD_STYLES: dict[str, dict[str, Any]] = {
    "resvm": {"color": COLORS[0], "ls": DASHES[0], "marker": "o"},
    "bagging": {"color": COLORS[1], "ls": DASHES[1], "marker": "s"},
    "cwsvm": {"color": COLORS[2], "ls": DASHES[2], "marker": "^"},
    "cwsvm-published": {"color": COLORS[3], "ls": DASHES[3], "marker": "D"},
}
SET_COLORS = {"P": "Blues", "U": "Oranges"}
DOT_COLORS = {"P": "#08306b", "U": "#7f2704"}
TICKS = (-6, -3, 0, 3, 6)
DODGE = 0.004  # horizontal offset between methods, so that their intervals do not overlap


@dataclass(frozen=True)
class ResampleSize:
    """Contamination of bootstrap resamples of one size: mean and central 95% interval."""

    size: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Resampling:
    """Contamination of bootstrap resamples by size."""

    contamination: float  # of the set being resampled
    sizes: tuple[ResampleSize, ...]


def resampling() -> Resampling:
    """Compute exact intervals; the number of mislabeled rows in a resample is binomial."""
    from scipy.special import bdtr

    rate = RESAMPLED_CONTAMINATION
    sizes = []
    for size in RESAMPLE_SIZES:
        cumulative = bdtr(np.arange(size + 1), size, rate)
        low, high = np.searchsorted(cumulative, [TAIL, 1 - TAIL])
        sizes.append(ResampleSize(size, rate, low / size, high / size))
    return Resampling(rate, tuple(sizes))


@dataclass(frozen=True)
class DensityPanel:
    """One set in one setting: its 2-D density, and the rows of one draw."""

    setting: str
    name: Literal["P", "U"]
    contamination: float
    density: tuple[tuple[float, ...], ...]  # indexed by y, then by x
    points: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Densities:
    """The synthetic problem in the paper's settings."""

    grid: tuple[float, ...]  # coordinates at which densities are computed
    panels: tuple[DensityPanel, ...]


def positive_density(radius: FloatArray) -> FloatArray:
    """Return the density of positives at each distance from the origin."""
    density: FloatArray = np.exp(-(radius**2) / 2) / (2 * np.pi)
    return density


def negative_density(radius: FloatArray) -> FloatArray:
    """Return the density of negatives: the normal density averaged over centers on the circle."""
    from scipy.special import ive

    # the mean of e^(r R cos a) over a is I0(r R); ive is I0 scaled by e^(-r R)
    density: FloatArray = (
        np.exp(-((radius - RADIUS) ** 2) / 2) * ive(0, radius * RADIUS) / (2 * np.pi)
    )
    return density


def densities(repetition: int = 0, seed: int = 0) -> Densities:
    """Compute the densities of P and U, and one draw of a run."""
    task = PAPER_TASKS["synthetic"]
    data = BenchmarkData(".", seed)
    grid = np.linspace(-REACH, REACH, GRID_POINTS)
    radius = np.hypot(*np.meshgrid(grid, grid))
    positive, negative = positive_density(radius), negative_density(radius)
    panels = []
    for setting in SETTINGS:
        of_pos, of_unl = task.contaminations(setting)
        drawn = data.draw(Cell(setting, task.name, repetition, of_pos, of_unl))
        p = (1 - of_pos) * positive + of_pos * negative
        u = of_unl * positive + (1 - of_unl) * negative
        panels += [
            DensityPanel(setting, "P", of_pos, _nested(p), _points(drawn.positives)),
            DensityPanel(setting, "U", of_unl, _nested(u), _points(drawn.unlabeled)),
        ]
    return Densities(tuple(grid.tolist()), tuple(panels))


def _nested(table: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in table.tolist())


def _points(rows: Rows) -> tuple[tuple[float, ...], ...]:
    dense = np.zeros((len(rows), 2))
    dense[rows.row_numbers, rows.indices - 1] = rows.values
    return _nested(dense)


@dataclass(frozen=True)
class MethodCurve:
    """One method's curves on the test rows, with areas as in a line of results."""

    method: str
    pr_auc_trapezoid: float
    average_precision: float
    roc_auc: float
    recall: tuple[float, ...]
    precision: tuple[float, ...]
    fpr: tuple[float, ...]


@dataclass(frozen=True)
class Curves:
    """The curves of all methods in one repetition."""

    protocol: str
    task: str
    setting: str
    repetition: int
    prevalence: float  # fraction of positives among the test rows
    curves: tuple[MethodCurve, ...]


def curves(
    protocol: Protocol, draw: Cell, run: Run, *, data_dir: str = ".", seed: int = 0
) -> Curves:
    """Tune, train and test all methods on one draw, as in a run."""
    task = PAPER_TASKS[draw.task]
    for missing in missing_files(data_dir, [task]):
        raise DataError(
            f"{missing.file} is not in {data_dir}", f"download it from {missing.address}"
        )
    methods = protocol.methods(task.family)
    levels = task.contaminations(draw.setting)
    cells = [Cell(draw.setting, draw.task, draw.repetition, *levels, name) for name in methods]
    bench = Bench(BenchmarkData(data_dir, seed), protocol, alone=False)
    scores: list[CellScores] = []

    def tick() -> None:
        run.progress("methods", len(scores), len(cells))

    with parallel.one_blas_thread(), silenced():
        tick()
        for one in run.map_shared(score_cell, bench, cells, tick):
            scores.append(one)
            tick()
    found = tuple(_curve(method, one) for method, one in zip(methods, scores, strict=True))
    prevalence = float(scores[0].truth.mean())
    return Curves(protocol.name, draw.task, draw.setting, draw.repetition, prevalence, found)


def _curve(method: str, scores: CellScores) -> MethodCurve:
    points = Points.from_scores(scores.truth, scores.values).thinned()
    return MethodCurve(
        method,
        **scores.areas(),
        recall=tuple(points.recall.tolist()),
        precision=tuple(points.precision.tolist()),
        fpr=tuple(points.fpr.tolist()),
    )


def render_figure(
    result: Resampling | Densities | Curves | ContaminationFigure, kind: Kind
) -> bytes:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(charts.STYLE):
        figure = Figure(layout="constrained")
        match result:
            case Resampling():
                _draw_resampling(figure, result)
            case Densities():
                _draw_densities(figure, result)
            case Curves():
                _draw_curves(figure, result)
            case ContaminationFigure():
                _draw_contamination(figure, result)
        return charts.save_figure(figure, kind)


def _draw_resampling(figure: Any, result: Resampling) -> None:
    """Draw the mean and 95% interval by resample size."""
    figure.set_size_inches(5.6, 3.6)
    axes = figure.subplots()
    means = [100 * one.mean for one in result.sizes]
    below = [100 * (one.mean - one.low) for one in result.sizes]
    above = [100 * (one.high - one.mean) for one in result.sizes]
    sizes = [one.size for one in result.sizes]
    axes.errorbar(
        sizes, means, yerr=[below, above], color=COLORS[0], fmt="o", ms=5, lw=1.4, capsize=4,
        label="mean and 95% interval of resamples",
    )  # fmt: skip
    axes.axhline(
        100 * result.contamination, **charts.REFERENCE_LINE,
        label=f"contamination of the set: {100 * result.contamination:g}%",
    )  # fmt: skip
    axes.set(xscale="log", xlabel="size of the resample", ylabel="contamination of the resample, %")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set_ylim(bottom=-1)
    axes.grid(axis="y")
    axes.legend(loc="upper right", fontsize=8.5, facecolor="white", edgecolor="none", framealpha=1)


def _draw_densities(figure: Any, result: Densities) -> None:
    """Draw P and U side by side, one row per setting: densities shaded, drawn rows as dots."""
    from matplotlib.colors import LogNorm

    rows = len(result.panels) // 2
    figure.set_size_inches(5.6, 2.75 * rows)
    panels = figure.subplots(rows, 2, sharex=True, sharey=True).flatten()
    highest = max(max(map(max, panel.density)) for panel in result.panels)
    # each level is twice the previous one, because the ring is far less dense than the center
    levels = [highest / 2**step for step in range(7, -1, -1)]
    for axes, panel in zip(panels, result.panels, strict=True):
        axes.contourf(
            result.grid, result.grid, panel.density, levels=levels,
            norm=LogNorm(levels[0] / 2, 2 * levels[-1]), cmap=SET_COLORS[panel.name],
        )  # fmt: skip
        axes.scatter(
            [point[0] for point in panel.points], [point[1] for point in panel.points],
            s=5, color=DOT_COLORS[panel.name], linewidths=0, alpha=0.8,
        )  # fmt: skip
        title = f"{panel.setting}: {panel.name}"
        if panel.contamination:
            title += f", {100 * panel.contamination:g}% contaminated"
        axes.set_title(title, fontsize=8.5)
        reach = result.grid[-1]
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        axes.set(xticks=TICKS, yticks=TICKS, axisbelow="line")
    figure.supxlabel(
        "shaded: density, each step twice the one before; dots: rows of one draw",
        fontsize=8, color=GRAY,
    )  # fmt: skip


def _draw_curves(figure: Any, result: Curves) -> None:
    """Draw the PR and ROC curves of all methods, with straight lines between thresholds."""
    figure.set_size_inches(8.4, 5.1 + 0.2 * len(result.curves))
    pr, roc = figure.subplots(1, 2)
    for curve in result.curves:
        style = {**METHOD_STYLES[curve.method], "marker": None, "lw": 1.6}
        pr.plot(
            [0, *curve.recall], [curve.precision[0], *curve.precision],
            label=f"{curve.method}: area {curve.pr_auc_trapezoid:.3f}", **style,
        )  # fmt: skip
        roc.plot(
            [0, *curve.fpr, 1], [0, *curve.recall, 1],
            label=f"{curve.method}: area {curve.roc_auc:.3f}", **style,
        )  # fmt: skip
    charts.finish_pr_and_roc(pr, roc, result.prevalence)
    figure.suptitle(
        f"{result.task}, {result.setting}, repetition {result.repetition}, protocol"
        f" {result.protocol}",
        fontsize=10,
    )


def _draw_contamination(figure: Any, result: ContaminationFigure) -> None:
    """Draw one panel per contamination axis that was varied."""
    count = len(result.panels)
    figure.set_size_inches(4.3 * count, 3.9)
    panels = figure.subplots(1, count, sharey=True, squeeze=False)[0]
    for axes, panel in zip(panels, result.panels, strict=True):
        _draw_levels(axes, panel)
    panels[0].set_ylabel("area under the PR curve, %")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    counts = [
        level.area.n for panel in result.panels for one in panel.methods for level in one.means
    ]
    repetitions = f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else f"{counts[0]}"
    figure.supxlabel(
        f"{result.task}, protocol {result.protocol}: mean and 95% interval of {repetitions}"
        f" repetition{'' if repetitions == '1' else 's'}",
        fontsize=8, color=GRAY,
    )  # fmt: skip


def _draw_levels(axes: Any, panel: ContaminationPanel) -> None:
    """Draw all methods along one contamination axis; one repetition has no interval."""
    middle = (len(panel.methods) - 1) / 2
    for number, one in enumerate(panel.methods):
        shift = DODGE * (number - middle)
        means = [level.area.mean for level in one.means]
        axes.errorbar(
            [100 * (level.level + shift) for level in one.means], means,
            yerr=[
                [level.area.mean - level.area.bounds[0] for level in one.means],
                [level.area.bounds[1] - level.area.mean for level in one.means],
            ],
            ms=4.5, lw=1.4, elinewidth=1, capsize=2.5, label=one.method,
            **METHOD_STYLES[one.method],
        )  # fmt: skip
    other = f"of {AXES[other_axis(panel.axis)]}: {100 * panel.held:g}%"
    axes.set(xlabel=f"contamination of {AXES[panel.axis]}, % ({other})")
    axes.grid()
