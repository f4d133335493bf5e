"""What a tuning found: the best candidates, the command to train with them, JSON, figures."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from resvm_cli.report.machine import print_json
from resvm_cli.report.plots import COLOURS, GREY, STYLE, Kind, saved
from resvm_cli.report.terminal import Progress, rendered, say

if TYPE_CHECKING:
    from resvm_cli.jobs.trials import Trial
    from resvm_cli.jobs.tune import TuneResult, Winner

SHOWN = 10
NAMES = {
    "gamma": "gamma",
    "degree": "degree",
    "coef0": "coef0",
    "n_pos": "n-pos",
    "unl_per_pos": "unl-per-pos",
    "w_pos": "w-pos",
    "c_unl": "c-unl",
}
BEST_COLOUR = COLOURS[1]


def watcher(progress: Progress, metric: str) -> Callable[[int, int, Trial | None], None]:
    """Trials done, and the best so far, as progress."""

    def watch(done: int, total: int, best: Trial | None) -> None:
        stage = "tuning" if best is None else f"tuning, best {metric} {best.score(metric):.4f}"
        progress(stage, done, total)

    return watch


def show_tuning(result: TuneResult) -> None:
    """The best ten, the winner of each method, and how to train it; on stderr."""
    request = result.request
    metric = request.metric
    judged = "out of bag" if request.out_of_bag else f"by {request.n_folds} folds"
    say(
        f"{'judged':>10}  {len(result.trials):,} trials {judged} on {result.n_judged[0]:,} positive"
        f" and {result.n_judged[1]:,} unlabeled rows"
        + (f"; {result.n_repeated:,} were there already" if result.n_repeated else "")
    )
    for line in _table(result).splitlines():
        say(line)
    if len(result.winners) > 1:
        for winner in result.winners:
            say(f"{winner.params['method']:>10}  {metric} {_scored(winner, metric)}")
    say(f"{'winner':>10}  {_described(result.best.params)}")
    say(f"{'score':>10}  {metric} {_scored(result.best, metric)}; selected, so optimistic")
    if result.outer:
        mean = sum(result.outer) / len(result.outer)
        spread = ", ".join(f"{value:.4f}" for value in result.outer)
        say(f"{'honest':>10}  {mean:.4f} on {len(result.outer)} outer folds ({spread})")
    for step in result.growth:
        say(
            f"{'members':>10}  {step.n_models}: {step.score:.4f}; halves differ by"
            f" {abs(step.difference):.4f} and share {100 * step.overlap:.0f} % of the top"
        )
    if result.growth and not result.growth[-1].stable:
        say(f"{'note':>10}  halves do not agree yet; more members may still help")
    say(f"{'train':>10}  {train_command(result)}")


def train_command(result: TuneResult) -> str:
    """What to type to train the winner on the same data."""
    source = result.request.source
    words = ["resvm", "train"]
    for flag, value in (
        ("-P", source.positives),
        ("-U", source.unlabeled),
        ("--data", source.data),
        ("--positive-ids", source.positive_ids),
        ("--ids-file", source.ids_file),
    ):
        if value is not None:
            words += [flag, value]
    if source.positive_label is not None:
        words += ["--positive-label", f"{source.positive_label:g}"]
    if source.allow_missing:
        words.append("--allow-missing")
    if source.zero_based:
        words.append("--zero-based")
    if source.features is not None:
        words += ["--features", str(source.features)]
    words += ["--params", f"{result.request.target.rstrip('/')}/best.json", "-o", "model"]
    if result.request.base.seed:
        words += ["--seed", str(result.request.base.seed)]
    return shlex.join(words)


def _scored(winner: Winner, metric: str) -> str:
    scores = winner.trial.scores
    assert scores is not None
    return (
        f"{scores.values[metric]:.4f} (deviation {scores.deviation:.4f} over folds), recall"
        f" {scores.recall:.3f}, {100 * scores.fraction_positive:.3g} % predicted positive"
    )


def _described(params: dict[str, Any]) -> str:
    names = ("gamma", "degree", "coef0", "c_unl", "w_pos", "n_pos", "n_unl", "n_models")
    told = [f"{name} {params[name]:.4g}" for name in names if name in params]
    return f"{params['method']}, {params['kernel']}: " + ", ".join(told)


def _table(result: TuneResult) -> str:
    from rich.table import Table

    metric = result.request.metric
    finals = {final.number for winner in result.winners for final in winner.outcome.results}
    trials = [one for one in result.trials if one.number in finals and one.scores is not None]
    trials.sort(key=lambda one: (-one.score(metric), one.number))
    names = [name for name in NAMES if any(one.task.candidate[name] is not None for one in trials)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("trial", justify="right")
    if len(result.winners) > 1:
        table.add_column("method")
    for name in names:
        table.add_column(NAMES[name], justify="right")
    for title in (metric, "deviation", "recall", "positive"):
        table.add_column(title, justify="right")
    for one in trials[:SHOWN]:
        assert one.scores is not None
        cells = [str(one.number)]
        if len(result.winners) > 1:
            cells.append(one.task.candidate.method)
        for name in names:
            value = one.task.candidate[name]
            cells.append("" if value is None else f"{value:.4g}")
        cells += [
            f"{one.score(metric):.4f}",
            f"{one.scores.deviation:.4f}",
            f"{one.scores.recall:.3f}",
            f"{100 * one.scores.fraction_positive:.3g} %",
        ]
        table.add_row(*cells)
    return rendered(table, 120)


def print_tuning(result: TuneResult) -> None:
    """The result as versioned JSON on stdout."""
    best = result.best
    print_json(
        "tune",
        {
            "directory": result.request.target,
            "best": best.params,
            "methods": [
                {
                    "method": winner.params["method"],
                    "params": winner.params,
                    **winner.trial.record,
                    "edges": list(winner.outcome.edges),
                    "extensions": winner.outcome.extensions,
                }
                for winner in result.winners
            ],
            "n_trials": len(result.trials),
            "n_repeated": result.n_repeated,
            "outer": list(result.outer),
            "members": [
                {
                    "n_models": step.n_models,
                    "score": step.score,
                    "difference": step.difference,
                    "overlap": step.overlap,
                }
                for step in result.growth
            ],
            "train": train_command(result),
            "notes": list(result.notes),
        },
    )


def draw_tuning(result: TuneResult, kind: Kind) -> bytes:
    """The score against each parameter, and against members where they were grown."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    metric = result.request.metric
    method = result.best.params["method"]
    trials = [
        one
        for one in result.trials
        if one.scores is not None and one.outer is None and one.task.candidate.method == method
    ]
    axes = [axis for axis in result.best.outcome.space.axes if not axis.fixed]
    n_panels = len(axes) + bool(result.growth)
    columns = min(3, max(1, n_panels))
    rows = max(1, -(-n_panels // columns))
    most = max(one.task.n_models for one in trials)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(2.9 * columns + 0.4, 2.5 * rows), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False, sharey=True).flatten()
        for panel, axis in zip(panels, axes, strict=False):
            for full, colour, label in (
                (False, GREY, "few members"),
                (True, COLOURS[0], f"{most} members"),
            ):
                some = [one for one in trials if (one.task.n_models == most) is full]
                panel.scatter(
                    [one.task.candidate[axis.name] for one in some],
                    [one.score(metric) for one in some],
                    s=9 if full else 5,
                    color=colour,
                    alpha=0.75,
                    linewidths=0,
                    label=label if some and not full else None,
                )
            winner = result.best.trial
            panel.scatter(
                [winner.task.candidate[axis.name]],
                [winner.score(metric)],
                s=70,
                marker="*",
                color=BEST_COLOUR,
                zorder=5,
                label="chosen",
            )
            panel.set_xlabel(NAMES[axis.name])
            if axis.log:
                panel.set_xscale("log")
                panel.xaxis.set_minor_formatter(NullFormatter())
                if axis.high < 30 * axis.low:  # too narrow for powers of ten alone
                    panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                    panel.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        if result.growth:
            panel = panels[len(axes)]
            panel.plot(
                [step.n_models for step in result.growth],
                [step.score for step in result.growth],
                marker="o",
                ms=4,
                color=COLOURS[2],
            )
            panel.set(xlabel="members", xscale="log")
            ticks = [step.n_models for step in result.growth]
            panel.set_xticks(ticks, [str(tick) for tick in ticks])
            panel.minorticks_off()
        for panel in panels[n_panels:]:
            panel.set_visible(False)
        for row in range(rows):
            panels[row * columns].set_ylabel(metric.replace("_", " "))
        if axes:
            panels[0].legend(frameon=False, fontsize=8, loc="best")
        return saved(figure, kind)
