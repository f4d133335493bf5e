"""Figures for papers and screens, by matplotlib, which is imported only here and only when asked.

Colours are Okabe and Ito's, told apart by the colour-blind; each curve also has its own dashes, so
that a figure printed in grey still reads.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from resvm_cli.commands.tune.report import PARAMETER_NAMES
from resvm_cli.errors import CommandLineError

if TYPE_CHECKING:
    from resvm_cli.commands.score.score import FileScore, ScoreResult
    from resvm_cli.metrics.significance import OverDataSets
    from resvm_cli.tuning.space import Axis
    from resvm_cli.tuning.tune import TuneResult

Kind: TypeAlias = Literal["png", "svg", "pdf"]
KINDS: tuple[Kind, ...] = ("png", "svg", "pdf")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)))
GREY = "#767676"
WINNER_COLOUR = COLOURS[1]
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "svg.hashsalt": "resvm",  # the same figure, the same bytes
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


def kind_of(path: str, option: str = "--plot") -> Kind:
    """The format that a file's ending asks for; also whether it can be made, before any work."""
    ending = path.lower().rpartition(".")[2]
    if ending not in KINDS:
        raise CommandLineError(f"{option} is '{path}'; a name in .png, .svg or .pdf was expected")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise CommandLineError(
            f"{option} needs matplotlib, which is not installed",
            "pip install 'resvm-cli[plot]', or pip install matplotlib",
        ) from None
    return ending


def saved(figure: Any, kind: Kind) -> bytes:
    target = io.BytesIO()
    metadata: dict[str, Any] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(target, format=kind, dpi=200, metadata=metadata[kind])
    return target.getvalue()


def curves(result: ScoreResult, kind: Kind) -> bytes:
    """The PR and the ROC curve of every file, side by side."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        rows = len(result.files)
        figure = Figure(figsize=(8.4, 4.5 + 0.17 * rows), layout="constrained")
        pr, roc = figure.subplots(1, 2)
        for number, file in enumerate(result.files):
            _draw_file(pr, roc, file, number, result.pu)
        values = result.files[0].figures.values
        chance = _chance(result)
        by_chance = {"color": GREY, "lw": 0.9, "ls": (0, (2, 2)), "zorder": 1}
        pr.plot([0, 1], [chance, chance], label=f"chance {chance:.3g}", **by_chance)
        roc.plot([0, 1], [0, 1], label="chance 0.5", **by_chance)
        corrected = "contamination_pos" in values
        other = "unlabeled rows called positive" if result.pu and not corrected else None
        pr.set(xlabel="recall", ylabel="precision", title="Precision and recall")
        if result.pu and not corrected:
            pr.set(ylabel="known positives among those called", title="Known positives recovered")
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
        if result.files[0].drawing and result.files[0].drawing.band is not None:
            note += "; shaded: pointwise 95 %"
        figure.supxlabel(note, fontsize=8, color=GREY)
        return saved(figure, kind)


def _chance(result: ScoreResult) -> float:
    values = result.files[0].figures.values
    if "contamination_pos" in values:
        return result.settings.prevalence or values["contamination_unl"]
    return values["n_positives"] / values["n_rows"]


def _draw_file(pr: Any, roc: Any, file: FileScore, number: int, pu: bool) -> None:
    drawing = file.drawing
    assert drawing is not None
    colour, dashes = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
    values = file.figures.values
    style = {"color": colour, "ls": dashes, "lw": 1.6}
    precision_name = "corrected_average_precision" if drawing.corrected else "average_precision"
    roc_name = "corrected_roc_auc" if drawing.corrected else "roc_auc_pu" if pu else "roc_auc"
    # a $ would start a formula
    name = file.name.replace("$", r"\$")
    label = name
    if precision_name in values:
        label += f": average precision {values[precision_name]:.3f}"
    curve = drawing.corrected or drawing.points
    recall = drawing.corrected.tpr if drawing.corrected else drawing.points.recall
    # steps: average precision is the area under them
    pr.step([0, *recall], [curve.precision[0], *curve.precision], where="pre", label=label, **style)
    roc.plot(
        [0, *curve.fpr, 1], [0, *recall, 1], label=f"{name}: area {values[roc_name]:.3f}", **style
    )
    if drawing.band is not None:
        band = drawing.band
        shade = {"color": colour, "alpha": 0.15, "lw": 0}
        pr.fill_between(band.grid, band.precision_low, band.precision_high, **shade)
        roc.fill_between(band.grid, band.tpr_low, band.tpr_high, **shade)
    mark = {"marker": "o", "ms": 6, "mfc": colour, "mec": "white", "mew": 1.2, "zorder": 5}
    if drawing.corrected:
        at = [values[f"corrected_{figure}"] for figure in ("recall", "precision", "fpr")]
    elif pu:
        called = values["fraction_positive"] * values["n_rows"]
        share = values["recall"] * values["n_positives"] / called if called else 1.0
        at = [values["recall"], share, values["fraction_positive_unlabeled"]]
    else:
        at = [values["recall"], values["precision"], values["fp"] / values["n_negatives"]]
    pr.plot([at[0]], [at[1]], **mark)
    roc.plot([at[2]], [at[0]], **mark)


def critical_differences(overall: OverDataSets, kind: Kind) -> bytes:
    """Demsar's diagram: average ranks on a line, bars over methods that are not told apart."""
    import matplotlib
    from matplotlib.figure import Figure

    methods = sorted(zip(overall.average_ranks, overall.methods, strict=True))
    n_methods = len(methods)
    half = (n_methods + 1) // 2
    with matplotlib.rc_context(STYLE):
        height = 1.5 + 0.22 * max(half, n_methods - half) + 0.14 * len(overall.cliques)
        figure = Figure(figsize=(5.6, height), layout="constrained")
        axes = figure.subplots()
        axes.axis("off")
        margin = 0.35 * (n_methods - 1) + 0.25
        axes.set_xlim(1 - margin, n_methods + margin)
        lowest = -1.0 - 0.45 * len(overall.cliques) - 0.8 * half
        axes.set_ylim(lowest - 0.3, 2.3)
        axes.plot([1, n_methods], [0, 0], color="black", lw=1)
        for tick in range(1, n_methods + 1):
            axes.plot([tick, tick], [0, 0.22], color="black", lw=1)
            axes.text(tick, 0.35, str(tick), ha="center", va="bottom")
        width = overall.critical_difference
        axes.plot([1, 1 + width], [1.6, 1.6], color="black", lw=1.6, marker="|", ms=7)
        axes.text(1 + width / 2, 1.75, f"CD = {width:.3f}", ha="center", va="bottom")
        rank_of = {method: rank for rank, method in methods}
        for number, group in enumerate(overall.cliques):
            ends = [rank_of[method] for method in group]
            level = -0.35 - 0.45 * number
            axes.plot(
                [min(ends) - 0.03, max(ends) + 0.03], [level, level], color=COLOURS[0], lw=3.5,
                solid_capstyle="butt",
            )  # fmt: skip
        first = -0.9 - 0.45 * len(overall.cliques)
        for number, (rank, method) in enumerate(methods):
            left = number < half
            place = number if left else n_methods - 1 - number
            level = first - 0.8 * place
            side = 1 - 0.12 * n_methods if left else n_methods + 0.12 * n_methods
            axes.plot([rank, rank, side], [0, level, level], color="black", lw=0.9)
            axes.text(
                side + (-0.05 if left else 0.05), level, f"{method} ({rank:.2f})",
                ha="right" if left else "left", va="center",
            )  # fmt: skip
        return saved(figure, kind)


def tuning_scores(result: TuneResult, kind: Kind) -> bytes:
    """The score against each parameter, and against members where they were grown."""
    import matplotlib
    from matplotlib.figure import Figure

    axes = [axis for axis in result.best.outcome.space.axes if not axis.fixed]
    n_panels = len(axes) + bool(result.growth)
    columns = min(3, max(1, n_panels))
    rows = max(1, -(-n_panels // columns))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(2.9 * columns + 0.4, 2.5 * rows), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False, sharey=True).flatten()
        for panel, axis in zip(panels, axes, strict=False):
            _draw_parameter(panel, axis, result)
        if result.growth:
            _draw_growth(panels[len(axes)], result)
        for panel in panels[n_panels:]:
            panel.set_visible(False)
        for row in range(rows):
            panels[row * columns].set_ylabel(result.request.metric.replace("_", " "))
        n_trials = len(result.trials)
        figure.suptitle(
            f"resvm tune: {result.best.params['method']}, {n_trials:,} trials", fontsize=10
        )
        if axes:
            panels[0].legend(frameon=False, fontsize=8, loc="best")
        return saved(figure, kind)


def _draw_parameter(panel: Any, axis: Axis, result: TuneResult) -> None:
    """Every trial of the winner's method by one parameter, the winner starred."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    metric, winner = result.request.metric, result.best.trial
    trials = [
        trial
        for trial in result.trials
        if trial.scores is not None
        and trial.outer is None
        and trial.task.candidate.method == result.best.params["method"]
    ]
    most = max(trial.task.n_models for trial in trials)
    for full, colour, label in (
        (False, GREY, "few members"),
        (True, COLOURS[0], f"{most} members"),
    ):
        drawn = [trial for trial in trials if (trial.task.n_models == most) is full]
        panel.scatter(
            [trial.task.candidate[axis.name] for trial in drawn],
            [trial.score(metric) for trial in drawn],
            s=9 if full else 5, color=colour, alpha=0.75, linewidths=0,
            label=label if drawn and not full else None,
        )  # fmt: skip
    panel.scatter(
        [winner.task.candidate[axis.name]], [winner.score(metric)],
        s=70, marker="*", color=WINNER_COLOUR, zorder=5, label="chosen",
    )  # fmt: skip
    panel.set_xlabel(PARAMETER_NAMES[axis.name])
    if axis.log:
        panel.set_xscale("log")
        panel.xaxis.set_minor_formatter(NullFormatter())
        if axis.high < 30 * axis.low:  # too narrow for powers of ten alone
            panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            panel.xaxis.set_major_formatter(FormatStrFormatter("%g"))


def _draw_growth(panel: Any, result: TuneResult) -> None:
    """The score by the number of members."""
    counts = [step.n_models for step in result.growth]
    scores = [step.score for step in result.growth]
    panel.plot(counts, scores, marker="o", ms=4, color=COLOURS[2])
    panel.set(xlabel="members", xscale="log")
    panel.set_xticks(counts, [str(count) for count in counts])
    panel.minorticks_off()
