"""resvm merge."""

from __future__ import annotations

from typing import Annotated

import typer

from resvm_cli.options.running import Force, Json, Quiet, command_run, output_option
from resvm_cli.report import training


def merge(
    parts: Annotated[
        list[str],
        typer.Argument(metavar="PART...", help="Directories that resvm train --task wrote."),
    ],
    output: Annotated[
        str, output_option("-o", "--output", metavar="DIR", help="Where the model goes.")
    ] = "resvm-model",
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Join the parts of a model, trained by the tasks of an array job, to the whole.

    The model is byte for byte what one run would have written; parts that do not belong together
    are refused, and missing ones named.

    For example:

    - `resvm train -P pos.svm -U unl.svm --task 3/16 -o parts/3`
    - `resvm merge parts/* -o model`
    """
    from resvm_cli.training import parts as job

    with command_run(quiet) as run:
        result = job.merge(parts, output, run, force=force)
    if not quiet:
        training.show_training(result)
    if json:
        training.print_training(result)
