"""resvm check."""

from __future__ import annotations

from typing import Annotated

import typer

from resvm_cli.errors import DataError, FileError
from resvm_cli.options.running import Json, Quiet, command_run
from resvm_cli.options.training import ZeroBased
from resvm_cli.options.values import offered, parse_kernel
from resvm_cli.report import terminal


def check(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="svmlight files (- is stdin).")
    ],
    most: Annotated[
        int, typer.Option("--max", metavar="N", min=1, help="Bad lines shown for each file.")
    ] = 20,
    kernel: Annotated[
        str | None,
        typer.Option(
            "-t",
            "--kernel",
            metavar="NAME",
            autocompletion=offered("precomputed"),
            help="precomputed: rows are kernel values, 0:serial 1:K(x,x1) ...",
        ),
    ] = None,
    zero_based: ZeroBased = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Is this file sound? Every bad line, then what it holds (exit 3 if any line is bad).

    For example:

    - `resvm check pos.svm unl.svm`
    """
    from resvm_cli.commands.check import check as job
    from resvm_cli.commands.check import report

    precomputed = kernel is not None and parse_kernel(kernel) == "precomputed"
    reports = []
    unread: list[FileError] = []
    with command_run(quiet) as run:
        for path in files:
            try:
                checked = job.check(
                    path, run, zero_based=zero_based, precomputed=precomputed, most=most
                )
            except FileError as error:
                unread.append(error)  # the other files are looked at all the same
                continue
            reports.append(checked)
            if not json:
                report.show_check(checked)
    if json:
        report.print_check(reports)
    unsound = [checked.path for checked in reports if not checked.sound]
    for failure in unread[:-1] if not unsound else unread:
        terminal.show_error(failure)
    if unsound:
        raise DataError(f"not sound: {', '.join(unsound)}")
    if unread:
        raise unread[-1]
