"""New."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from resvm_cli.report.plots import COLOURS, DASHES, GREY, STYLE, Kind, saved

if TYPE_CHECKING:
    from resvm_cli.commands.score.score import FileScore, ScoreResult
    from resvm_cli.metrics.significance import OverDataSets


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
