"""resvm inspect."""

from __future__ import annotations

from typing import Annotated

import typer

from resvm_cli.commands.options.running import Json
from resvm_cli.report import machine, summaries


def inspect(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A directory that resvm train wrote.")
    ],
    json: Json = False,
) -> None:
    """Show what a model holds, and verify that it is intact (exit 4 if not)."""
    from resvm_cli.jobs import inspect as job

    inspection = job.inspect(model)
    if json:
        machine.print_inspection(inspection)
    else:
        summaries.show_inspection(inspection)
