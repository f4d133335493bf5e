"""resvm tune."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

import typer

from resvm_cli.options.array_tasks import Task, parse_task
from resvm_cli.options.data import DataOptions, Groups, data_option
from resvm_cli.options.method import BASE_MODEL, base_model_option, given_values, method_option
from resvm_cli.options.option_groups import Panel, explicit_options, fold_options, table_options
from resvm_cli.options.running import (
    ClusterOptions,
    Json,
    Seed,
    TrainingRunOptions,
    output_option,
    running_option,
)
from resvm_cli.parameters import METHOD_NAMES, METHOD_TABLE, RANGE_HELP, TUNING_TABLE, Parameter
from resvm_cli.running import interruption

space_option = partial(
    typer.Option,
    rich_help_panel="Search space: a number, a list 1,10 or a range 1..10[:log|:linear]",
)
estimate_option = partial(typer.Option, rich_help_panel="Estimate")
search_option = partial(typer.Option, rich_help_panel="Search")


def _rows(*names: str) -> dict[str, Parameter]:
    return {name: TUNING_TABLE[name] for name in names}


METHOD = replace(
    METHOD_TABLE["method"],
    help="resvm, bagging, cwsvm, or all three on the same folds.",
    choices=(*METHOD_NAMES, "all"),
)
TUNED = {
    "method": METHOD,
    **_rows("n_models"),
    **{name: METHOD_TABLE[name] for name in ("kernel", "tolerance", "cache_mb")},
    **_rows("max_unl", "gram_mb"),
}
PANELS = {"max_unl": data_option, "gram_mb": running_option}
RANGES = {
    name: Parameter(
        "text",
        None,
        text,
        metavar="RANGE",
        letter=METHOD_TABLE[name].letter if name in METHOD_TABLE else None,
        name=name,
    )
    for name, text in RANGE_HELP.items()
}


def _panel(name: str) -> Panel:
    return PANELS.get(name) or (base_model_option if name in BASE_MODEL else method_option)


@table_options(TUNED, _panel)
class TunedOptions:
    """What is tuned, and what all candidates share."""


@table_options(
    {**RANGES, **_rows("contamination_pos", "contamination_unl")}, lambda name: space_option
)
class SpaceOptions:
    """Which values are tried, and what narrows them."""


@table_options(
    _rows("metric", "up_to", "oob", "folds", "repeats", "outer"), lambda name: estimate_option
)
class EstimateOptions:
    """How a candidate is scored."""

    folds_file: Annotated[
        str | None,
        estimate_option(
            metavar="FILE", help="Your own folds: one name per row, of P and then of U."
        ),
    ] = None


@table_options(_rows("search", "committee", "trials", "max_extensions"), lambda name: search_option)
class SearchOptions:
    """How candidates are proposed."""

    no_extend: Annotated[bool, search_option("--no-extend", help="Only warn about edges.")] = False


@fold_options
def tune(
    context: typer.Context,
    *,
    output: Annotated[
        str, output_option("-o", "--output", metavar="DIR", help="Where trials and best.json go.")
    ] = "resvm-tuning",
    data: DataOptions,
    groups: Groups = None,
    tuned: TunedOptions,
    space: SpaceOptions,
    estimate: EstimateOptions,
    search: SearchOptions,
    resume: Annotated[
        bool, output_option("--resume", help="Continue, or begin, the tuning in -o.")
    ] = False,
    plot: Annotated[
        str | None,
        output_option(
            metavar="FILE", help="Draw the score against each parameter (.png, .svg, .pdf)."
        ),
    ] = None,
    json: Json = False,
    task: Task = None,
    seed: Seed = 0,
    cluster: ClusterOptions,
    running: TrainingRunOptions,
) -> None:
    """Choose hyperparameters without negatives; resumable.

    Every trial is logged as it finishes; best.json is what `resvm train --params` reads.

    For example:

    - `resvm tune -P pos.svm -U unl.svm -o tuning`
    - `resvm train -P pos.svm -U unl.svm --params tuning/best.json -o model`
    - `resvm tune -P pos.svm -U unl.svm --search random -c 0.1..100 -o tuning`
    """
    from resvm_cli.commands.tune import figure, report
    from resvm_cli.commands.tune import report as tuning_table
    from resvm_cli.files.atomic import output as output_file
    from resvm_cli.report import plots, terminal
    from resvm_cli.tuning import tune as job
    from resvm_cli.tuning.settings import tuning_settings
    from resvm_cli.tuning.tune import TuneRequest

    kind = None if plot is None else plots.kind_of(plot)
    values = {**vars(tuned), **vars(space), **vars(estimate), **vars(search), "seed": seed}
    given = given_values(values, explicit_options(context))
    if search.no_extend:
        given["max_extensions"] = 0
    request = TuneRequest(
        source=data.training_input(data.chosen_scale(), groups=groups),
        target=output,
        folds_file=estimate.folds_file,
        resume=resume,
        share=None if task is None else parse_task(task),
        **tuning_settings(given),
    )
    if not json and plot is None and request.share is None:
        interruption.done_when(f"{output}/best.json")
    with running.run(cluster) as run:
        watcher = tuning_table.watcher(run, request.metric)
        if request.share is not None:
            shared = job.tune_share(request, run, watcher)
            if not running.quiet:
                tuning_table.show_task(shared)
            if json:
                terminal.print_result("tune-task", shared)
            return
        result = job.tune(request, run, watcher)
    if plot is not None and kind is not None:
        with output_file(plot) as write:
            write(figure.tuning_scores(result, kind))
    if not running.quiet:
        tuning_table.show_tuning(result)
    if json:
        report.print_tuning(result)
