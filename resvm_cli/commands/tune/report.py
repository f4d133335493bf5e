"""The report of tune: the best candidates, how to train them, and the plot of all trials."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from resvm_cli.parameters import METHOD_TABLE
from resvm_cli.report.charts import COLORS, GRAY, STYLE, WINNER_COLOR, Kind, saved
from resvm_cli.report.terminal import in_options, print_json, rendered, say
from resvm_cli.running.run import Run, as_ranges
from resvm_cli.tuning.space import AXIS_NAMES, WORDS

if TYPE_CHECKING:
    from resvm_cli.tables.encoding import TableReading
    from resvm_cli.tuning.space import Axis
    from resvm_cli.tuning.trials import Trial
    from resvm_cli.tuning.tune import TuneResult, TuneTaskResult, Winner

SHOWN = 10


def watcher(run: Run, metric: str) -> Callable[[int, int, Trial | None], None]:
    """A callback that shows the trials done and the best so far as progress."""

    def watch(done: int, total: int, best: Trial | None) -> None:
        stage = "tuning" if best is None else f"tuning, best {metric} {best.score(metric):.4f}"
        run.progress(stage, done, total)

    return watch


def show_tuning(result: TuneResult) -> None:
    """Print the ten best trials, the winner of each method, and how to train it, on stderr."""
    request = result.request
    metric = request.metric
    how = "out of bag" if request.oob else f"by {request.folds} folds"
    say(
        f"{'scored':>10}  {len(result.trials):,} trials {how} on {result.n_scored[0]:,} positive"
        f" and {result.n_scored[1]:,} unlabeled rows"
        + (f"; {result.n_repeated:,} from an earlier run" if result.n_repeated else "")
    )
    for line in _table(result).splitlines():
        say(line)
    if len(result.winners) > 1:
        for winner in result.winners:
            say(f"{winner.params['method']:>10}  {metric} {_scored(winner, metric)}")
    say(f"{'winner':>10}  {_described(result.best.params)}")
    say(f"{'score':>10}  {metric} {_scored(result.best, metric)}; selected, so optimistic")
    if metric == "roc_areas":  # few readers know this mean of areas
        say(f"{'ROC area':>10}  {result.best.trial.score('roc_auc'):.4f}, P against U")
    if result.outer:
        mean = sum(result.outer) / len(result.outer)
        spread = ", ".join(f"{value:.4f}" for value in result.outer)
        say(f"{'unbiased':>10}  {mean:.4f} on {len(result.outer)} outer folds ({spread})")
    for size in result.sizes:
        say(
            f"{'members':>10}  {size.n_models}: {size.score:.4f}; halves differ by"
            f" {abs(size.difference):.4f} and share {100 * size.overlap:.0f} % of the top"
        )
    if result.sizes and not result.sizes[-1].stable:
        say(f"{'note':>10}  halves do not agree yet; more members may still help")
    say(f"{'train':>10}  {train_command(result)}")


def show_task(result: TuneTaskResult) -> None:
    """Print what a task of an array job scored and which tasks are missing, on stderr."""
    say(f"{'scored':>10}  {result.n_scored:,} of {result.n_candidates:,} candidates")
    if result.missing:
        say(f"{'missing':>10}  tasks {as_ranges(result.missing)} of {result.task.count}")
    else:
        say(f"{'next':>10}  every candidate is scored; run the same command without --task")


def print_task(result: TuneTaskResult) -> None:
    """Print the same as versioned JSON on stdout."""
    print_json(
        "tune-task",
        {
            "path": result.path,
            "share": asdict(result.task),
            "n_judged": result.n_scored,
            "n_candidates": result.n_candidates,
            "missing": result.missing,
            "notes": result.notes,
        },
    )


def _table_options(reading: TableReading) -> Iterator[str]:
    roles = reading.roles
    for option, value in (
        ("--id-column", roles.row_id),
        ("--label-column", roles.label),
        ("--columns", ",".join(roles.only)),
        ("--drop", ",".join(roles.dropped)),
        ("--categorical", ",".join(roles.categories)),
        ("--missing", roles.missing),
        ("--separator", reading.separator),
        ("--array", reading.array),
    ):
        if value:
            yield from (option, value)
    if reading.header is not None:
        yield "--header" if reading.header else "--no-header"
    if reading.decimal_comma:
        yield "--decimal-comma"


def train_command(result: TuneResult) -> str:
    """Return the command that trains the winner on the same data."""
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
    labels = source.table.roles.positive_labels
    if source.positive_label is not None and not labels:
        labels = (f"{source.positive_label:g}",)
    for label in labels:
        words += ["--positive-label", label]
    words += _table_options(source.table)
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
    kind = f"{params['method']}, {params['kernel']}: "
    if "settings" in params:
        n_models = sum(setting.get("n_models", 1) for setting in params["settings"])
        return kind + f"{len(params['settings'])} settings pooled, {n_models} members in all"
    numbers = {
        name: value
        for name, value in params.items()
        if name in METHOD_TABLE and name != "seed" and isinstance(value, (int, float))
    }
    return kind + ", ".join(f"{name} {value:.4g}" for name, value in numbers.items())


def _label(name: str) -> str:
    return name.replace("_", "-")


def _table(result: TuneResult) -> str:
    from rich.table import Table

    metric = result.request.metric
    finals = {final.number for winner in result.winners for final in winner.outcome.results}
    trials = [
        trial for trial in result.trials if trial.number in finals and trial.scores is not None
    ]
    trials.sort(key=lambda trial: (-trial.score(metric), trial.number))
    trials = trials[:SHOWN]
    of_trials = [trial.task.candidate.named_values for trial in trials]
    names = [name for name in (*AXIS_NAMES, *WORDS) if any(name in one for one in of_trials)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("trial", justify="right")
    if len(result.winners) > 1:
        table.add_column("method")
    for name in names:
        table.add_column(_label(name), justify="right")
    for title in (metric, "deviation", "recall", "positive"):
        table.add_column(title, justify="right")
    for trial, values in zip(trials, of_trials, strict=True):
        assert trial.scores is not None
        cells = [str(trial.number)]
        if len(result.winners) > 1:
            cells.append(trial.task.candidate.method)
        for name in names:
            value = values.get(name, "")
            cells.append(value if isinstance(value, str) else f"{value:.4g}")
        cells += [
            f"{trial.score(metric):.4f}",
            f"{trial.scores.deviation:.4f}",
            f"{trial.scores.recall:.3f}",
            f"{100 * trial.scores.fraction_positive:.3g} %",
        ]
        table.add_row(*cells)
    return rendered(table, 160)


def print_tuning(result: TuneResult) -> None:
    """Print the result as versioned JSON on stdout."""
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
                    "edges": [in_options(edge) for edge in winner.outcome.edges],
                    "extensions": winner.outcome.extensions,
                }
                for winner in result.winners
            ],
            "n_trials": len(result.trials),
            "n_repeated": result.n_repeated,
            "outer": list(result.outer),
            "members": [asdict(size) for size in result.sizes],
            "train": train_command(result),
            "notes": list(result.notes),
        },
    )


def tuning_scores(result: TuneResult, kind: Kind) -> bytes:
    """Plot the score against each parameter, and against the number of members if it was tuned."""
    import matplotlib
    from matplotlib.figure import Figure

    axes = [axis for axis in result.best.outcome.space.axes if not axis.fixed]
    n_panels = len(axes) + bool(result.sizes)
    columns = min(3, max(1, n_panels))
    rows = max(1, -(-n_panels // columns))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(2.9 * columns + 0.4, 2.5 * rows), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False, sharey=True).flatten()
        for panel, axis in zip(panels, axes, strict=False):
            _draw_parameter(panel, axis, result)
        if result.sizes:
            _draw_sizes(panels[len(axes)], result)
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
    """Plot all trials of the winner's method against one parameter; a star marks the winner."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    metric, winner = result.request.metric, result.best.trial
    trials = [
        trial
        for trial in result.trials
        if trial.scores is not None
        and trial.outer is None
        and trial.task.candidate.method == result.best.params["method"]
    ]
    n_models = max(trial.task.n_models for trial in trials)
    for full, color, label in (
        (False, GRAY, "few members"),
        (True, COLORS[0], f"{n_models} members"),
    ):
        drawn = [trial for trial in trials if (trial.task.n_models == n_models) is full]
        panel.scatter(
            [trial.task.candidate[axis.name] for trial in drawn],
            [trial.score(metric) for trial in drawn],
            s=9 if full else 5, color=color, alpha=0.75, linewidths=0,
            label=label if drawn and not full else None,
        )  # fmt: skip
    panel.scatter(
        [winner.task.candidate[axis.name]], [winner.score(metric)],
        s=70, marker="*", color=WINNER_COLOR, zorder=5, label="chosen",
    )  # fmt: skip
    panel.set_xlabel(_label(axis.name))
    if axis.log:
        panel.set_xscale("log")
        panel.xaxis.set_minor_formatter(NullFormatter())
        if axis.high < 30 * axis.low:  # too narrow for powers of ten alone
            panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            panel.xaxis.set_major_formatter(FormatStrFormatter("%g"))


def _draw_sizes(panel: Any, result: TuneResult) -> None:
    """Plot the score against the number of members."""
    counts = [size.n_models for size in result.sizes]
    scores = [size.score for size in result.sizes]
    panel.plot(counts, scores, marker="o", ms=4, color=COLORS[2])
    panel.set(xlabel="members", xscale="log")
    panel.set_xticks(counts, [str(count) for count in counts])
    panel.minorticks_off()
