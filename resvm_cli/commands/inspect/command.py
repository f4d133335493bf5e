"""resvm inspect."""

from __future__ import annotations

from typing import Annotated

import typer

from resvm_cli.commands.inspect import report
from resvm_cli.errors import CommandLineError
from resvm_cli.options.running import Json, output_option


def inspect(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A directory that resvm train wrote.")
    ],
    weights: Annotated[
        bool,
        output_option(
            "--weights",
            help="Linear models: what each feature counts, the largest first, as TSV on stdout.",
        ),
    ] = False,
    feature_map: Annotated[
        str | None,
        output_option("--map", metavar="FILE", help="With --weights: names, by resvm convert."),
    ] = None,
    json: Json = False,
) -> None:
    """Show what a model holds, and verify that it is intact (exit 4 if not).

    For example:

    - `resvm inspect model`
    - `resvm inspect model --weights --map features.json`
    """
    from resvm_cli.commands.inspect import inspect as job

    if feature_map is not None and not weights:
        raise CommandLineError("--map goes with --weights")
    inspection = job.inspect(model, weights=weights, feature_map=feature_map)
    if json:
        report.print_inspection(inspection)
    elif inspection.weights is not None:
        report.print_weights(inspection.weights)
    else:
        report.show_inspection(inspection)
