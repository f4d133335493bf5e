"""resvm check."""

from __future__ import annotations

from typing import Annotated

import typer

from resvm_cli.commands import options as given
from resvm_cli.errors import DataError, FileError
from resvm_cli.report import machine, summaries, terminal


def check(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="svmlight files (- is stdin).")
    ],
    most: Annotated[
        int, typer.Option("--max", metavar="N", min=1, help="Bad lines shown for each file.")
    ] = 20,
    zero_based: given.ZeroBased = False,
    json: given.Json = False,
    quiet: given.Quiet = False,
) -> None:
    """Is this file sound? Every bad line, then what it holds (exit 3 if any line is bad)."""
    from resvm_cli.jobs import check as job

    found = []
    unread: list[FileError] = []
    with terminal.Progress(quiet) as progress:
        for path in files:
            try:
                one = job.check(path, zero_based=zero_based, most=most, progress=progress)
            except FileError as error:
                unread.append(error)  # the other files are looked at all the same
                continue
            found.append(one)
            if not json:
                summaries.show_check(one)
    if json:
        machine.print_check(found)
    unsound = [one.path for one in found if not one.sound]
    for failure in unread[:-1] if not unsound else unread:
        terminal.show_error(failure)
    if unsound:
        raise DataError(f"not sound: {', '.join(unsound)}")
    if unread:
        raise unread[-1]
