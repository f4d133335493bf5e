"""resvm predict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from resvm_cli.commands import options as given
from resvm_cli.errors import CommandLineError
from resvm_cli.report import terminal

if TYPE_CHECKING:
    from resvm_cli.jobs.predict import ThresholdRule


def predict(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A directory that resvm train wrote.")
    ],
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="Rows to judge (svmlight; - is stdin).")
    ] = "-",
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where to write (- is stdout).",
            rich_help_panel=given.OUTPUT,
        ),
    ] = "-",
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            rich_help_panel=given.OUTPUT,
            help="text (label and decision value), or tsv, csv, jsonl with named columns.",
        ),
    ] = "text",
    votes: Annotated[
        bool,
        typer.Option(
            "--votes", help="Add the fraction of positive votes.", rich_help_panel=given.OUTPUT
        ),
    ] = False,
    member_values: Annotated[
        bool,
        typer.Option(
            "--member-values",
            help="Add each member's decision value.",
            rich_help_panel=given.OUTPUT,
        ),
    ] = False,
    ids: Annotated[
        bool,
        typer.Option(
            "--ids",
            help="Carry each row's trailing comment (# name) to the output.",
            rich_help_panel=given.OUTPUT,
        ),
    ] = False,
    threshold: Annotated[
        str | None,
        typer.Option(
            "-T",
            "--threshold",
            metavar="T",
            rich_help_panel=given.METHOD,
            help="Positive above this decision value; or recall=0.9, top=100, fraction=0.01.",
            show_default="0.5; cwsvm: 0",
        ),
    ] = None,
    break_ties: Annotated[
        bool,
        typer.Option(
            "--break-ties",
            rich_help_panel=given.METHOD,
            help="Order rows of equal votes by the sum of the members' values.",
        ),
    ] = False,
    zero_based: given.ZeroBased = False,
    jobs: given.Jobs = None,
    quiet: given.Quiet = False,
) -> None:
    """Judge rows with a model: one line each, in order, as they arrive.

    Values are written so that they read back exactly, and do not depend on how rows were grouped.
    """
    if form not in ("text", "tsv", "csv", "jsonl"):
        raise CommandLineError(f"--format is '{form}'; text, tsv, csv or jsonl was expected")
    level = None if threshold is None else _threshold(threshold)
    from resvm_cli.jobs import predict as job

    request = job.PredictRequest(
        model=model,
        source=file,
        target=output,
        form=form,  # type: ignore[arg-type]
        threshold=level,
        break_ties=break_ties,
        votes=votes,
        member_values=member_values,
        ids=ids,
        zero_based=zero_based,
        jobs=jobs,
    )
    if file == "-" and not quiet:
        terminal.announce_stdin()
    with terminal.Progress(quiet) as progress:
        job.predict(request, progress, terminal.no_note if quiet else terminal.note)


def _threshold(text: str) -> float | ThresholdRule:
    """A number, or what the threshold is to reach."""
    option = "-T/--threshold"
    kind, equals, amount = text.partition("=")
    if not equals:
        return given.parse_number(option, text, "a number, recall=R, top=K or fraction=F")
    from resvm_cli.jobs.predict import ThresholdRule

    if kind == "top":
        if not (amount.isdecimal() and 0 < int(amount) < 2**53):
            raise CommandLineError(f"{option} is '{text}'; a whole number of rows was expected")
        return ThresholdRule("top", int(amount))
    if kind not in ("recall", "fraction"):
        raise CommandLineError(
            f"{option} is '{text}'; a number, recall=R, top=K or fraction=F was expected"
        )
    share = given.parse_number(option, amount, "a share above 0, up to 1")
    if not 0 < share <= 1:
        raise CommandLineError(f"{option} is '{text}'; a share above 0, up to 1, was expected")
    return ThresholdRule(kind, share)  # type: ignore[arg-type]
