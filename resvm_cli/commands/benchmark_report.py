"""resvm benchmark report."""

from __future__ import annotations

from typing import Annotated

import typer

from resvm_cli.commands.options.running import Json, Quiet, output_option


def report(
    directories: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...", help="What resvm benchmark run wrote; two are set side by side."
        ),
    ],
    markdown: Annotated[
        str | None, output_option(metavar="FILE", help="All tables as Markdown (- is stdout).")
    ] = None,
    csv: Annotated[
        str | None,
        output_option(metavar="FILE", help="A line a task, setting and method (- is stdout)."),
    ] = None,
    html: Annotated[
        str | None,
        output_option(metavar="FILE", help="One page with tables to sort, and figures."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The tables of a benchmark beside the published ones, with tests and verdicts."""
    del directories, markdown, csv, html, json, quiet
