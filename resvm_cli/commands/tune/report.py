"""What tune says to a person: the best candidates, and the command to train with them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from resvm_cli.report.terminal import in_options, print_json, rendered, say
from resvm_cli.running.array_tasks import as_ranges

if TYPE_CHECKING:
    from resvm_cli.running.run import Run
    from resvm_cli.tuning.tasks import TaskResult
    from resvm_cli.tuning.trials import Trial
    from resvm_cli.tuning.tune import TuneResult, Winner

SHOWN = 10
PARAMETER_NAMES = {
    "gamma": "gamma",
    "degree": "degree",
    "coef0": "coef0",
    "n_pos": "n-pos",
    "unl_per_pos": "unl-per-pos",
    "w_pos": "w-pos",
    "c_unl": "c-unl",
}


def watcher(run: Run, metric: str) -> Callable[[int, int, Trial | None], None]:
    """Trials done, and the best so far, as progress."""

    def watch(done: int, total: int, best: Trial | None) -> None:
        stage = "tuning" if best is None else f"tuning, best {metric} {best.score(metric):.4f}"
        run.progress(stage, done, total)

    return watch


def show_tuning(result: TuneResult) -> None:
    """The best ten, the winner of each method, and how to train it; on stderr."""
    request = result.request
    metric = request.metric
    judged = "out of bag" if request.oob else f"by {request.folds} folds"
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
    if metric == "roc_areas":  # a mean of areas, which few readers know
        say(f"{'ROC area':>10}  {result.best.trial.score('roc_auc'):.4f}, P against U")
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


def show_task(result: TaskResult) -> None:
    """What a task judged, and what is left to the others."""
    say(f"{'judged':>10}  {result.n_judged:,} of {result.n_candidates:,} candidates")
    if result.missing:
        say(f"{'to come':>10}  tasks {as_ranges(result.missing)} of {result.share.count}")
    else:
        say(f"{'next':>10}  the same command without --task: every candidate is judged")


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
    kind = f"{params['method']}, {params['kernel']}: "
    if "settings" in params:
        n_models = sum(setting["n_models"] for setting in params["settings"])
        return kind + f"{len(params['settings'])} settings pooled, {n_models} members in all"
    return kind + ", ".join(f"{name} {params[name]:.4g}" for name in names if name in params)


def _table(result: TuneResult) -> str:
    from rich.table import Table

    metric = result.request.metric
    finals = {final.number for winner in result.winners for final in winner.outcome.results}
    trials = [
        trial for trial in result.trials if trial.number in finals and trial.scores is not None
    ]
    trials.sort(key=lambda trial: (-trial.score(metric), trial.number))
    names = [
        name
        for name in PARAMETER_NAMES
        if any(trial.task.candidate[name] is not None for trial in trials)
    ]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("trial", justify="right")
    if len(result.winners) > 1:
        table.add_column("method")
    for name in names:
        table.add_column(PARAMETER_NAMES[name], justify="right")
    for title in (metric, "deviation", "recall", "positive"):
        table.add_column(title, justify="right")
    for trial in trials[:SHOWN]:
        assert trial.scores is not None
        cells = [str(trial.number)]
        if len(result.winners) > 1:
            cells.append(trial.task.candidate.method)
        for name in names:
            value = trial.task.candidate[name]
            cells.append("" if value is None else f"{value:.4g}")
        cells += [
            f"{trial.score(metric):.4f}",
            f"{trial.scores.deviation:.4f}",
            f"{trial.scores.recall:.3f}",
            f"{100 * trial.scores.fraction_positive:.3g} %",
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
                    "edges": [in_options(edge) for edge in winner.outcome.edges],
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
