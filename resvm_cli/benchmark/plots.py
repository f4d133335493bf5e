"""The paper's four figures, by matplotlib."""

from __future__ import annotations

from typing import Any

from resvm_cli.benchmark.figures import (
    Contamination,
    ContaminationPanel,
    Curves,
    Densities,
    Resampling,
)
from resvm_cli.report.plots import COLORS, DASHES, GRAY, STYLE, Kind, saved

# Colour, dashes and marker stay with a method, whichever others are drawn.
METHOD_STYLES: dict[str, dict[str, Any]] = {
    "resvm": {"color": COLORS[0], "ls": DASHES[0], "marker": "o"},
    "bagging": {"color": COLORS[1], "ls": DASHES[1], "marker": "s"},
    "cwsvm": {"color": COLORS[2], "ls": DASHES[2], "marker": "^"},
    "cwsvm-published": {"color": COLORS[3], "ls": DASHES[3], "marker": "D"},
}
AXIS_NAMES = {"contamination_unl": "U", "contamination_pos": "P"}
SET_COLOURS = {"P": "Blues", "U": "Oranges"}
DOT_COLOURS = {"P": "#08306b", "U": "#7f2704"}
TICKS = (-6, -3, 0, 3, 6)
DODGE = 0.004  # between methods at one contamination, so that no interval hides another
GRID: dict[str, Any] = {"color": "#e4e4e4", "lw": 0.6}


def drawn(result: Resampling | Densities | Curves | Contamination, kind: Kind) -> bytes:
    """A figure in the format asked for."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        match result:
            case Resampling():
                figure = _resampling(result)
            case Densities():
                figure = _densities(result)
            case Curves():
                figure = _curves(result)
            case Contamination():
                figure = _contamination(result)
        return saved(figure, kind)


def _resampling(result: Resampling) -> Any:
    """Mean and 95 % interval by the size of resamples."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axes = figure.subplots()
    means = [100 * one.mean for one in result.sizes]
    below = [100 * (one.mean - one.low) for one in result.sizes]
    above = [100 * (one.high - one.mean) for one in result.sizes]
    sizes = [one.size for one in result.sizes]
    axes.errorbar(
        sizes, means, yerr=[below, above], color=COLORS[0], fmt="o", ms=5, lw=1.4, capsize=4,
        label="mean and 95 % interval of resamples",
    )  # fmt: skip
    axes.axhline(
        100 * result.contamination, color=GRAY, lw=0.9, ls=(0, (2, 2)), zorder=1,
        label=f"contamination of the set: {100 * result.contamination:g} %",
    )  # fmt: skip
    axes.set(xscale="log", xlabel="size of the resample", ylabel="contamination of the resample, %")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set_ylim(bottom=-1)
    axes.grid(axis="y", **GRID)
    axes.set_axisbelow(True)
    axes.legend(loc="upper right", fontsize=8.5, facecolor="white", edgecolor="none", framealpha=1)
    return figure


def _densities(result: Densities) -> Any:
    """A row a setting, P beside U: the density shaded, the rows of one draw as dots."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    rows = len(result.panels) // 2
    figure = Figure(figsize=(5.6, 2.75 * rows), layout="constrained")
    panels = figure.subplots(rows, 2, sharex=True, sharey=True).flatten()
    highest = max(max(map(max, panel.density)) for panel in result.panels)
    # each level is twice the one below, as the ring is far thinner than the centre
    levels = [highest / 2**step for step in range(7, -1, -1)]
    for axes, panel in zip(panels, result.panels, strict=True):
        axes.contourf(
            result.grid, result.grid, panel.density, levels=levels,
            norm=LogNorm(levels[0] / 2, 2 * levels[-1]), cmap=SET_COLOURS[panel.name],
        )  # fmt: skip
        axes.scatter(
            [point[0] for point in panel.points], [point[1] for point in panel.points],
            s=5, color=DOT_COLOURS[panel.name], linewidths=0, alpha=0.8,
        )  # fmt: skip
        title = f"{panel.setting}: {panel.name}"
        if panel.contamination:
            title += f", {100 * panel.contamination:g} % contaminated"
        axes.set_title(title, fontsize=8.5)
        reach = result.grid[-1]
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        axes.set(xticks=TICKS, yticks=TICKS)
    figure.supxlabel(
        "shaded: density, each step twice the one before; dots: rows of one draw",
        fontsize=8, color=GRAY,
    )  # fmt: skip
    return figure


def _curves(result: Curves) -> Any:
    """PR and ROC curves of all methods, as lines between thresholds: areas are trapezoids."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 5.1 + 0.2 * len(result.curves)), layout="constrained")
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
    chance = {"color": GRAY, "lw": 0.9, "ls": (0, (2, 2)), "zorder": 1}
    pr.plot([0, 1], [result.prevalence] * 2, label=f"chance {result.prevalence:.3g}", **chance)
    roc.plot([0, 1], [0, 1], label="chance 0.5", **chance)
    pr.set(xlabel="recall", ylabel="precision", title="Precision and recall")
    roc.set(xlabel="false-positive rate", ylabel="true-positive rate (recall)", title="ROC")
    for axes in (pr, roc):
        axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.02), aspect="equal")
        axes.grid(**GRID)
        axes.set_axisbelow(True)
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False, handlelength=3.2,
            fontsize=8.5,
        )  # fmt: skip
    figure.suptitle(
        f"{result.task}, {result.setting}, repetition {result.repetition}, protocol"
        f" {result.protocol}",
        fontsize=10,
    )
    return figure


def _contamination(result: Contamination) -> Any:
    """A panel for each contamination that was varied."""
    from matplotlib.figure import Figure

    count = len(result.panels)
    figure = Figure(figsize=(4.3 * count, 3.9), layout="constrained")
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
        f"{result.task}, protocol {result.protocol}: mean and 95 % interval of {repetitions}"
        f" repetition{'' if repetitions == '1' else 's'}",
        fontsize=8, color=GRAY,
    )  # fmt: skip
    return figure


def _draw_levels(axes: Any, panel: ContaminationPanel) -> None:
    """Every method by one contamination; no interval where there is one repetition alone."""
    middle = (len(panel.methods) - 1) / 2
    for number, one in enumerate(panel.methods):
        shift = DODGE * (number - middle)
        means = [level.area.mean for level in one.means]
        axes.errorbar(
            [100 * (level.level + shift) for level in one.means], means,
            yerr=[
                [level.area.mean - level.area.ends[0] for level in one.means],
                [level.area.ends[1] - level.area.mean for level in one.means],
            ],
            ms=4.5, lw=1.4, elinewidth=1, capsize=2.5, label=one.method,
            **METHOD_STYLES[one.method],
        )  # fmt: skip
    (other,) = (name for name in AXIS_NAMES if name != panel.axis)
    axes.set(
        xlabel=f"contamination of {AXIS_NAMES[panel.axis]}, %"
        f" (of {AXIS_NAMES[other]}: {100 * panel.held:g} %)"
    )
    axes.grid(**GRID)
    axes.set_axisbelow(True)
