"""resvm benchmark: its commands under one name."""

from __future__ import annotations

import typer

from resvm_cli.benchmark.figure_command import figure
from resvm_cli.benchmark.report_command import join, report
from resvm_cli.benchmark.run_command import grids, run

benchmark = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@benchmark.callback()
def described() -> None:
    """The paper's experiments, on its data or on yours: run, then reported.

    For example:

    - `resvm benchmark run --tasks synthetic --repetitions 3 -o bench`
    - `resvm benchmark report bench`
    """


for command in (run, report, figure, join, grids):
    benchmark.command()(command)
