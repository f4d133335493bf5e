"""resvm merge: join the parts of a model."""

from __future__ import annotations

from resvm_cli.cli import training_report as training
from resvm_cli.cli.option_groups import argument
from resvm_cli.cli.options import FORCE, JSON, QUIET, command_run, output_option


def merge(
    parts: list[str] = argument("PART...", "Part directories written by resvm train --task."),
    output: str = output_option(
        "-o, --output DIR", "Model directory to write.", default="resvm-model"
    ),
    force: bool = FORCE,
    json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Join the parts trained by the tasks of an array job into one model.

    The model is byte-for-byte identical to what a single run would write. Parts that do not belong
    together are rejected, and missing parts are listed.

    For example:

    - `resvm train -P pos.svm -U unl.svm --task 3/16 -o parts/3`
    - `resvm merge parts/* -o model`
    """
    from resvm_cli.tuning import learn as job

    with command_run(quiet) as run:
        result = job.merge(parts, output, run, force=force)
    training.report("merge", result, json=json, quiet=quiet)
