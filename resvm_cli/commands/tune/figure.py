"""New."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from resvm_cli.commands.tune.report import PARAMETER_NAMES
from resvm_cli.report.plots import COLORS, GRAY, STYLE, WINNER_COLOR, Kind, saved

if TYPE_CHECKING:
    from resvm_cli.tuning.space import Axis
    from resvm_cli.tuning.tune import TuneResult


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
        (False, GRAY, "few members"),
        (True, COLORS[0], f"{most} members"),
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
        s=70, marker="*", color=WINNER_COLOR, zorder=5, label="chosen",
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
    panel.plot(counts, scores, marker="o", ms=4, color=COLORS[2])
    panel.set(xlabel="members", xscale="log")
    panel.set_xticks(counts, [str(count) for count in counts])
    panel.minorticks_off()
