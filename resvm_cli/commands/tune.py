"""resvm tune: choose hyperparameters without negatives, and report the best candidates.

numpy is imported inside functions, so that --help stays fast.
"""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from resvm_cli.options import shared
from resvm_cli.options.option_groups import (
    as_words,
    explicit_options,
    fold_options,
    table_options,
)
from resvm_cli.options.values import parse_task
from resvm_cli.parameter_types import Parameter
from resvm_cli.parameters import (
    METHOD_TABLE,
    RANGE_HELP,
    SEARCH_SPACE,
    SHARED_NAMES,
    TUNED_METHOD,
    TUNING_TABLE,
)
from resvm_cli.report.terminal import aligned, in_options, print_json, say, say_row
from resvm_cli.running.run import Share, as_ranges, done_when

if TYPE_CHECKING:
    from collections.abc import Sequence

    from resvm_cli.errors import Text
    from resvm_cli.tuning.trials import TaskResult
    from resvm_cli.tuning.tune import SearchResult, TuneRequest, Winner

SHOWN = 10
RANGES = {
    name: Parameter(
        "text",
        None,
        text,
        metavar="RANGE",
        letter=METHOD_TABLE[name].letter if name in METHOD_TABLE else None,
        panel=SEARCH_SPACE,
        name=name,
    )
    for name, text in RANGE_HELP.items()
}
SHARED = {name: METHOD_TABLE[name] for name in SHARED_NAMES if name != "seed"}


@table_options({"method": TUNED_METHOD, **SHARED, **RANGES, **TUNING_TABLE})
class TuningOptions:
    """What to tune, over which ranges, and how to find and score candidates."""


@fold_options
def tune(
    context: typer.Context,
    *,
    output: str = shared.output_option(
        "-o, --output DIR", "Directory for trials and best.json.", default="resvm-tuning"
    ),
    data: shared.DataOptions,
    table: shared.TableOptions,
    groups: str | None = shared.GROUPS,
    tuning: TuningOptions,
    resume: bool = shared.output_option("--resume", "Continue the run in -o, if there is one."),
    json: bool = shared.JSON,
    task: str | None = shared.TASK,
    seed: int = shared.SEED,
    cluster: shared.ClusterOptions,
    running: shared.TrainingRunOptions,
) -> None:
    """Choose hyperparameters without negatives.

    Every trial is logged when it finishes, so an interrupted run can be resumed. The result,
    best.json, can be passed to `resvm train --params`.

    For example:

    - `resvm tune -P pos.svm -U unl.svm -o tuning`
    - `resvm train -P pos.svm -U unl.svm --params tuning/best.json -o model`
    - `resvm tune -P pos.svm -U unl.svm --search random -c 0.1..100 -o tuning`
    """
    from resvm_cli.tuning import tune as job
    from resvm_cli.tuning.search import tuning_settings

    values = {**vars(tuning), "seed": seed, "scale": data.chosen_scale() or "none"}
    given = shared.given_values(values, explicit_options(context))
    request = job.TuneRequest(
        source=data.training_input(table, scale=data.chosen_scale(), groups=groups),
        target=output,
        resume=resume,
        **tuning_settings(given),
    )
    share = None if task is None else parse_task(task)
    if not json and share is None:
        done_when(f"{output}/best.json")
    with running.run(cluster) as run:
        if share is not None:
            done = job.tune_task(request, share, run)
            if not running.quiet:
                show_task(done, share)
            if json:
                print_task(done, share, request, run.notes)
            return
        result = job.tune(request, run)
    train = train_command(data, table, request)
    if not running.quiet:
        show_tuning(result, request, train)
    if json:
        print_tuning(result, request, train, run.notes)


def show_tuning(result: SearchResult, request: TuneRequest, train: str) -> None:
    """Print on stderr the ten best trials, each method's winner, and how to train the best one."""
    metric = request.metric
    how = "out of bag" if request.oob else f"by {request.folds}-fold cross-validation"
    say_row(
        "scored",
        f"{len(result.trials):,} trials {how} on {result.n_scored[0]:,} positive"
        f" and {result.n_scored[1]:,} unlabeled rows"
        + (f"; {result.n_repeated:,} from an earlier run" if result.n_repeated else ""),
    )
    for line in _table(result, metric):
        say(line)
    if len(result.winners) > 1:
        for winner in result.winners:
            say_row(winner.params["method"], f"{metric} {_scored(winner)}")
    say_row("winner", _described(result.best.params))
    say_row("score", f"{metric} {_scored(result.best)}; the best of many trials, so optimistic")
    if metric == "roc_areas" and (scores := result.best.trial.scores):  # a little-known metric
        say_row("ROC AUC", f"{scores.values['roc_auc']:.4f}, P against U")
    say_row("train", train)


def show_task(result: TaskResult, task: Share) -> None:
    """Print on stderr what a task of an array job scored and which tasks are missing."""
    say_row("scored", f"{result.n_scored:,} of {result.n_candidates:,} candidates")
    if result.missing:
        say_row("missing", f"tasks {as_ranges(result.missing)} of {task.count}")
    else:
        say_row("next", "all candidates are scored; run the same command without --task")


def print_task(
    result: TaskResult, task: Share, request: TuneRequest, notes: Sequence[Text]
) -> None:
    """Print the same information as versioned JSON on stdout."""
    print_json(
        "tune-task",
        {
            "path": request.target,
            "share": asdict(task),
            "n_judged": result.n_scored,
            "n_candidates": result.n_candidates,
            "missing": result.missing,
            "notes": list(notes),
        },
    )


def train_command(
    data: shared.DataOptions, table: shared.TableOptions, request: TuneRequest
) -> str:
    """Return the command that trains the winner on the same data."""
    # best.json contains the scaling
    words = ["resvm", "train", *as_words(data, without="scale"), *as_words(table)]
    for name, value in (
        ("--groups", request.source.groups),
        ("--w-neg", request.base.w_neg),
        ("--params", f"{request.target.rstrip('/')}/best.json"),
        ("-o", "model"),
        ("--seed", request.base.seed or None),
    ):
        if value is not None:
            words += [name, str(value)]
    return shlex.join(words)


def _scored(winner: Winner) -> str:
    scores = winner.trial.scores
    assert scores is not None
    return (
        f"{winner.trial.score:.4f} (deviation {scores.deviation:.4f} over folds), recall"
        f" {scores.recall:.3f}, {100 * scores.fraction_positive:.3g} % predicted positive"
    )


def _described(params: dict[str, Any]) -> str:
    kind = f"{params['method']}, {params['kernel']}: "
    if "settings" in params:
        n_models = sum(setting.get("n_models", 1) for setting in params["settings"])
        return kind + f"{len(params['settings'])} settings pooled, {n_models} members in total"
    numbers = {
        name: value
        for name, value in params.items()
        if name in METHOD_TABLE and name != "seed" and isinstance(value, (int, float))
    }
    return kind + ", ".join(f"{name} {value:.4g}" for name, value in numbers.items())


def _table(result: SearchResult, metric: str) -> list[str]:
    """Return the ten best trials as lines of a table."""
    from resvm_cli.tuning.space import AXIS_NAMES, WORDS

    trials = [trial for trial in result.trials if trial.scores is not None]
    trials.sort(key=lambda trial: (-(trial.score or 0.0), trial.number))
    values = [
        {"method": trial.candidate.method, **trial.candidate.named_values}
        for trial in trials[:SHOWN]
    ]
    names = [name for name in (*AXIS_NAMES, *WORDS) if any(name in one for one in values)]
    if len(result.winners) > 1:
        names.insert(0, "method")
    titles = [name.replace("_", "-") for name in names]
    rows = [["trial", *titles, metric, "deviation", "recall", "positive"]]
    for trial, named in zip(trials, values, strict=False):
        assert trial.scores is not None
        given = [named.get(name, "") for name in names]
        rows.append(
            [
                str(trial.number),
                *(value if isinstance(value, str) else f"{value:.4g}" for value in given),
                f"{trial.score:.4f}",
                f"{trial.scores.deviation:.4f}",
                f"{trial.scores.recall:.3f}",
                f"{100 * trial.scores.fraction_positive:.3g} %",
            ]
        )
    return aligned(rows, left=(1,) if "method" in names else ())


def print_tuning(
    result: SearchResult, request: TuneRequest, train: str, notes: Sequence[Text]
) -> None:
    """Print the result as versioned JSON on stdout."""
    best = result.best
    print_json(
        "tune",
        {
            "directory": request.target,
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
            "train": train,
            "notes": list(notes),
        },
    )
