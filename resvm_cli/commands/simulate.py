"""resvm simulate."""

from __future__ import annotations

from typing import Annotated

import typer

from resvm_cli.commands import options as given
from resvm_cli.errors import CommandLineError
from resvm_cli.report import machine, summaries

SETS = "Sets"


def simulate(
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Labelled rows to draw from.", rich_help_panel=given.DATA
        ),
    ] = None,
    positive_label: Annotated[
        float | None,
        typer.Option(
            metavar="LABEL",
            help="With --data: rows of this label are truly positive, all others negative.",
            rich_help_panel=given.DATA,
        ),
    ] = None,
    synthetic: Annotated[
        bool,
        typer.Option(
            "--synthetic",
            help="The paper's 2-D problem instead of a file.",
            rich_help_panel=given.DATA,
        ),
    ] = False,
    zero_based: given.ZeroBased = False,
    n_pos: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Rows of P.",
            show_default="needed with --data; synthetic: 100",
            rich_help_panel=SETS,
        ),
    ] = None,
    n_unl: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Rows of U.",
            show_default="needed with --data; synthetic: 200",
            rich_help_panel=SETS,
        ),
    ] = None,
    contamination_pos: Annotated[
        float,
        typer.Option(metavar="A", help="Share of P that is truly negative.", rich_help_panel=SETS),
    ] = 0.0,
    contamination_unl: Annotated[
        float,
        typer.Option(metavar="B", help="Share of U that is truly positive.", rich_help_panel=SETS),
    ] = 0.0,
    test_pos: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Positive test rows.",
            show_default="the rest; synthetic: 5000",
            rich_help_panel=SETS,
        ),
    ] = None,
    test_neg: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Negative test rows.",
            show_default="the rest; synthetic: 5000",
            rich_help_panel=SETS,
        ),
    ] = None,
    labelling: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How known positives are picked: random, or biased by their features.",
            rich_help_panel=SETS,
        ),
    ] = "random",
    decimals: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Round synthetic points to so many decimals.", rich_help_panel=SETS
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="A new directory for pos.svm, unl.svm, test.svm and truth.csv.",
            rich_help_panel=given.OUTPUT,
        ),
    ] = "simulated",
    json: given.Json = False,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Same seed, same data: the same files, byte for byte.",
            rich_help_panel=given.RUNNING,
        ),
    ] = 0,
    quiet: given.Quiet = False,
) -> None:
    """Make P, U and test files from labelled data, with chosen contamination and known truth."""
    if synthetic and data is not None:
        raise CommandLineError("--data and --synthetic exclude each other")
    if not synthetic and data is None:
        raise CommandLineError("give --data FILE --positive-label LABEL, or --synthetic")
    if synthetic:
        n_pos = 100 if n_pos is None else n_pos
        n_unl = 200 if n_unl is None else n_unl
        test_pos = 5000 if test_pos is None else test_pos
        test_neg = 5000 if test_neg is None else test_neg
    if n_pos is None or n_unl is None:
        raise CommandLineError("--n-pos and --n-unl are needed with --data")
    if labelling not in ("random", "biased"):
        raise CommandLineError(f"--labelling is '{labelling}'; random or biased was expected")
    if decimals is not None and not synthetic:
        raise CommandLineError(
            "--decimals goes with --synthetic; a file's numbers are kept exactly"
        )
    from resvm_cli.experiments.contamination import Sizes
    from resvm_cli.jobs import simulate as job

    result = job.simulate(
        job.SimulateRequest(
            target=output,
            sizes=Sizes(n_pos, n_unl, contamination_pos, contamination_unl, test_pos, test_neg),
            data=data,
            positive_label=positive_label,
            zero_based=zero_based,
            labelling=labelling,  # type: ignore[arg-type]
            decimals=decimals,
            seed=seed,
        )
    )
    if not quiet:
        summaries.show_simulation(result)
    if json:
        machine.print_result("simulate", result)
