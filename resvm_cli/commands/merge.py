"""resvm merge."""

from __future__ import annotations

from typing import Annotated

import typer

from resvm_cli.options.running import Force, Json, Quiet, command_run, output_option
from resvm_cli.report import training


def merge(
    parts: Annotated[
        list[str],
        typer.Argument(metavar="PART...", help="Part directories written by resvm train --task."),
    ],
    output: Annotated[
        str, output_option("-o", "--output", metavar="DIR", help="Model directory to write.")
    ] = "resvm-model",
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Join the parts trained by the tasks of an array job into one model.

    The model is byte-for-byte identical to what a single run would write. Parts that do not belong
    together are rejected, and missing parts are listed.

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
