"""resvm train."""

from __future__ import annotations

from typing import Annotated

import typer

from resvm_cli import interruption
from resvm_cli.commands.options.data import DataOptions, Groups, data_option
from resvm_cli.commands.options.folding import explicit_options, fold_options
from resvm_cli.commands.options.method import MethodOptions
from resvm_cli.commands.options.running import Force, Json, Seed, TrainingRunOptions, output_option
from resvm_cli.report import machine, summaries


@fold_options
def train(
    context: typer.Context,
    *,
    data: DataOptions,
    no_check: Annotated[
        bool,
        data_option(
            "--no-check",
            help="Count the lines of U without reading them: for files known to be sound.",
        ),
    ] = False,
    groups: Groups = None,
    method: MethodOptions,
    output: Annotated[
        str, output_option("-o", "--output", metavar="DIR", help="Where the model goes.")
    ] = "resvm-model",
    force: Force = False,
    json: Json = False,
    seed: Seed = 0,
    running: TrainingRunOptions,
) -> None:
    """Learn from known positives and unlabeled rows; write a model directory.

    Without any parameter a robust ensemble of 50 rbf SVMs is trained, with bag sizes and gamma
    derived from the data; what was chosen is printed.
    """
    from resvm_cli.jobs import train as job

    explicit = explicit_options(context)
    choice, scale = method.choose(explicit, scale=data.scale, seed=seed)
    if not json:
        interruption.done_when(output)
    with running.progress() as progress:
        result = job.train(
            data.training_input(scale, groups=groups, unchecked=no_check),
            choice,
            output,
            force=force,
            jobs=running.jobs,
            progress=progress,
            notice=running.notice,
        )
    if not running.quiet:
        summaries.show_training(result)
    if json:
        machine.print_training(result)
