"""The command resvm tune: choose hyperparameters without negatives."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from resvm_cli.options.option_groups import explicit_options, fold_options, table_options
from resvm_cli.options.running import (
    ClusterOptions,
    Json,
    Seed,
    Task,
    TrainingRunOptions,
    output_option,
)
from resvm_cli.options.tables import TableOptions
from resvm_cli.options.training import DataOptions, Groups, given_values
from resvm_cli.options.values import parse_task
from resvm_cli.parameters import (
    METHOD_NAMES,
    METHOD_TABLE,
    RANGE_HELP,
    SEARCH_SPACE,
    SHARED_NAMES,
    TUNING_TABLE,
    Parameter,
)
from resvm_cli.running.run import done_when

METHOD = replace(
    METHOD_TABLE["method"],
    help="resvm, bagging, cwsvm, or all three on the same folds.",
    choices=(*METHOD_NAMES, "all"),
)
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


@table_options({"method": METHOD, **SHARED, **RANGES, **TUNING_TABLE})
class TuningOptions:
    """What to tune, over which ranges, and how to find and score candidates."""

    folds_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Your own folds: one fold name per row, first for P, then for U."
        ),
    ] = None
    no_extend: Annotated[
        bool,
        typer.Option(
            "--no-extend", help="Only warn if the best value lies on the edge of a range."
        ),
    ] = False


@fold_options
def tune(
    context: typer.Context,
    *,
    output: Annotated[
        str,
        output_option("-o", "--output", metavar="DIR", help="Directory for trials and best.json."),
    ] = "resvm-tuning",
    data: DataOptions,
    table: TableOptions,
    groups: Groups = None,
    tuning: TuningOptions,
    resume: Annotated[
        bool,
        output_option("--resume", help="Continue the run in -o, or start a new one."),
    ] = False,
    plot: Annotated[
        str | None,
        output_option(
            metavar="FILE", help="Plot the score against each parameter (.png, .svg, .pdf)."
        ),
    ] = None,
    json: Json = False,
    task: Task = None,
    seed: Seed = 0,
    cluster: ClusterOptions,
    running: TrainingRunOptions,
) -> None:
    """Choose hyperparameters without negatives.

    Every trial is logged as it finishes, so an interrupted run can be resumed. best.json holds the
    result, for `resvm train --params`.

    For example:

    - `resvm tune -P pos.svm -U unl.svm -o tuning`
    - `resvm train -P pos.svm -U unl.svm --params tuning/best.json -o model`
    - `resvm tune -P pos.svm -U unl.svm --search random -c 0.1..100 -o tuning`
    """
    from resvm_cli.commands.tune import report
    from resvm_cli.files.atomic import output as output_file
    from resvm_cli.report import charts
    from resvm_cli.tuning import tune as job
    from resvm_cli.tuning.settings import tuning_settings

    kind = None if plot is None else charts.kind_of(plot)
    values = {**vars(tuning), "seed": seed, "scale": data.chosen_scale() or "none"}
    given = given_values(values, explicit_options(context))
    if tuning.no_extend:
        given["max_extensions"] = 0
    request = job.TuneRequest(
        source=data.training_input(data.chosen_scale(), table, groups=groups),
        target=output,
        folds_file=tuning.folds_file,
        resume=resume,
        task=None if task is None else parse_task(task),
        **tuning_settings(given),
    )
    if not json and plot is None and request.task is None:
        done_when(f"{output}/best.json")
    with running.run(cluster) as run:
        watch = report.watcher(run, request.metric)
        if request.task is not None:
            done = job.tune_task(request, run, watch)
            if not running.quiet:
                report.show_task(done)
            if json:
                report.print_task(done)
            return
        result = job.tune(request, run, watch)
    if plot is not None and kind is not None:
        with output_file(plot) as write:
            write(report.tuning_scores(result, kind))
    if not running.quiet:
        report.show_tuning(result)
    if json:
        report.print_tuning(result)
