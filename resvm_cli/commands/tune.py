"""resvm tune: choose hyperparameters without negatives, and report the best candidates.

numpy is imported inside functions, so that --help stays fast.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from resvm_cli.cli import options as shared
from resvm_cli.cli.option_groups import (
    as_words,
    expand_option_groups,
    explicit_options,
    table_options,
)
from resvm_cli.cli.terminal import aligned, in_options, print_json, say, say_row
from resvm_cli.parameter_types import Parameter
from resvm_cli.parameters import (
    METHOD_TABLE,
    RANGE_HELP,
    SEARCH_SPACE,
    SHARED_NAMES,
    TRAINING_TABLE,
    TUNING_TABLE,
)

if TYPE_CHECKING:
    from resvm_cli.tuning.candidates import SearchOptions
    from resvm_cli.tuning.search import SearchResult

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
SCALE = replace(TRAINING_TABLE["scale"], shown="auto; none unless `search='informed'`")
SHARED = {name: METHOD_TABLE[name] for name in SHARED_NAMES if name != "seed"}


@table_options(
    {"scale": SCALE, "method": METHOD_TABLE["method"], **SHARED, **RANGES, **TUNING_TABLE}
)
class TuningOptions:
    """What to tune, over which ranges, and how to find and score candidates."""


@expand_option_groups
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
    seed: int = shared.SEED,
    cluster: shared.ClusterOptions,
    running: shared.RunningOptions,
) -> None:
    """Choose hyperparameters without negatives.

    Every trial is logged when it finishes, so an interrupted run can be resumed. The result,
    best.json, can be passed to `resvm train --params`.

    For example:

    - `resvm tune -P pos.svm -U unl.svm -o tuning`
    - `resvm train -P pos.svm -U unl.svm --params tuning/best.json -o model`
    - `resvm tune -P pos.svm -U unl.svm --search random -c 0.1..100 -o tuning`
    """
    from resvm_cli.tuning.candidates import SearchOptions, tuning_settings
    from resvm_cli.tuning.search import tune as run_tuning

    values = shared.given_values({**vars(tuning), "seed": seed}, explicit_options(context))
    chosen = SearchOptions(**tuning_settings(values))
    source = data.training_input(table, scale=chosen.base.data_scale, groups=groups)
    with running.run(cluster) as run:
        result = run_tuning(source, chosen, output, run, resume=resume)
    train = train_command(data, table, groups, chosen, output)
    if not running.quiet:
        show_tuning(result, chosen, train)
    if json:
        winner = {
            **result.outcome.best.record,
            "edges": [in_options(edge) for edge in result.outcome.edges],
            "extensions": result.outcome.extensions,
        }
        content = {
            "directory": output,
            "best": result.params,
            "winner": winner,
            "n_trials": len(result.outcome.trials),
            "n_repeated": result.n_repeated,
            "train": train,
            "notes": run.notes,
        }
        print_json("tune", content)


def show_tuning(result: SearchResult, tuning: SearchOptions, train: str) -> None:
    """Print on stderr the ten best trials, the winner, and how to train the best one."""
    metric = tuning.metric
    how = "out of bag" if tuning.oob else f"by {tuning.folds}-fold cross-validation"
    say_row(
        "scored",
        f"{len(result.outcome.trials):,} trials {how} on {result.n_scored[0]:,} positive"
        f" and {result.n_scored[1]:,} unlabeled rows"
        + (f"; {result.n_repeated:,} from an earlier run" if result.n_repeated else ""),
    )
    for line in aligned(_best_trials(result, metric)):
        say(line)
    best, scores = result.outcome.best, result.outcome.best.scores
    assert scores is not None
    say_row("winner", _described(result.params))
    say_row(
        "score",
        f"{metric} {best.score:.4f} (deviation {scores.deviation:.4f} over folds), recall"
        f" {scores.recall:.3f}, {100 * scores.fraction_positive:.3g}% predicted positive; the best"
        " of many trials, so optimistic",
    )
    if metric == "roc_areas":  # a little-known metric
        say_row("ROC AUC", f"{scores.values['roc_auc']:.4f}, P against U")
    say_row("train", train)


def train_command(
    data: shared.DataOptions,
    table: shared.TableOptions,
    groups: str | None,
    tuning: SearchOptions,
    output: str,
) -> str:
    """Return the command that trains the winner on the same data."""
    # best.json contains the scaling
    words = ["resvm", "train", *as_words(data), *as_words(table)]
    for name, value in (
        ("--groups", groups),
        ("--w-neg", tuning.base.w_neg),
        ("--params", f"{output.rstrip('/')}/best.json"),
        ("-o", "model"),
        ("--seed", tuning.base.seed or None),
    ):
        if value is not None:
            words += [name, str(value)]
    return shlex.join(words)


def _described(params: dict[str, Any]) -> str:
    settings = params["settings"]
    kind = f"{params['method']}, {settings[0]['kernel']}: "
    if len(settings) > 1:
        n_models = sum(setting.get("n_models", 1) for setting in settings)
        return kind + f"{len(settings)} settings pooled, {n_models} members in total"
    numbers = {
        name: value
        for name, value in settings[0].items()
        if name in METHOD_TABLE and isinstance(value, (int, float))
    }
    return kind + ", ".join(f"{name} {value:.4g}" for name, value in numbers.items())


def _best_trials(result: SearchResult, metric: str) -> list[list[str]]:
    """Return a table of the ten best trials."""
    from resvm_cli.tuning.space import AXIS_NAMES, WORDS

    trials = [trial for trial in result.outcome.trials if trial.scores is not None]
    trials.sort(key=lambda trial: (-(trial.score or 0.0), trial.number))
    values = [trial.candidate.named_values for trial in trials[:SHOWN]]
    names = [name for name in (*AXIS_NAMES, *WORDS) if any(name in one for one in values)]
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
                f"{100 * trial.scores.fraction_positive:.3g}%",
            ]
        )
    return rows
