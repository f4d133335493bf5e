"""resvm simulate."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from resvm_cli.errors import CommandLineError
from resvm_cli.options.running import Json, Quiet, output_option, running_option
from resvm_cli.options.training import ZeroBased, data_option
from resvm_cli.options.values import offered, parse_choice
from resvm_cli.report import json_output as machine
from resvm_cli.report.terminal import note, say
from resvm_cli.running import interruption

if TYPE_CHECKING:
    from resvm_cli.commands.simulate.simulate import SimulateResult

set_option = partial(typer.Option, rich_help_panel="Sets")


def simulate(
    data: Annotated[
        str | None, data_option(metavar="FILE", help="Labelled rows to draw from.")
    ] = None,
    positive_label: Annotated[
        float | None,
        data_option(
            metavar="LABEL",
            help="With --data: rows of this label are truly positive, all others negative.",
        ),
    ] = None,
    synthetic: Annotated[
        bool, data_option("--synthetic", help="The paper's 2-D problem instead of a file.")
    ] = False,
    zero_based: ZeroBased = False,
    n_pos: Annotated[
        int | None,
        set_option(
            metavar="N", help="Rows of P.", show_default="needed with --data; synthetic: 100"
        ),
    ] = None,
    n_unl: Annotated[
        int | None,
        set_option(
            metavar="N", help="Rows of U.", show_default="needed with --data; synthetic: 200"
        ),
    ] = None,
    contamination_pos: Annotated[
        float, set_option(metavar="A", help="Share of P that is truly negative.")
    ] = 0.0,
    contamination_unl: Annotated[
        float, set_option(metavar="B", help="Share of U that is truly positive.")
    ] = 0.0,
    test_pos: Annotated[
        int | None,
        set_option(
            metavar="N", help="Positive test rows.", show_default="the rest; synthetic: 5000"
        ),
    ] = None,
    test_neg: Annotated[
        int | None,
        set_option(
            metavar="N", help="Negative test rows.", show_default="the rest; synthetic: 5000"
        ),
    ] = None,
    labelling: Annotated[
        str,
        set_option(
            metavar="NAME",
            autocompletion=offered("random", "biased"),
            help="How known positives are picked: random, or biased by their features.",
        ),
    ] = "random",
    decimals: Annotated[
        int | None, set_option(metavar="N", help="Round synthetic points to so many decimals.")
    ] = None,
    output: Annotated[
        str,
        output_option(
            "-o",
            "--output",
            metavar="DIR",
            help="A new directory for pos.svm, unl.svm, test.svm and truth.csv.",
        ),
    ] = "simulated",
    json: Json = False,
    seed: Annotated[
        int,
        running_option(metavar="N", help="Same seed, same data: the same files, byte for byte."),
    ] = 0,
    quiet: Quiet = False,
) -> None:
    """Make P, U and test files from labelled data, with chosen contamination and known truth.

    For example:

    - `resvm simulate --synthetic --contamination-pos 0.3 -o rings`
    - `resvm simulate --data mnist --positive-label 7 --n-pos 50 --n-unl 2000`
    """
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
    rules: tuple[Literal["random", "biased"], ...] = ("random", "biased")
    rule = parse_choice("--labelling", labelling, rules)
    if decimals is not None and not synthetic:
        raise CommandLineError(
            "--decimals goes with --synthetic; a file's numbers are kept exactly"
        )
    from resvm_cli.commands.simulate import simulate as job
    from resvm_cli.model.drawing import Sizes

    if not json:
        interruption.done_when(output)
    result = job.simulate(
        job.SimulateRequest(
            target=output,
            sizes=Sizes(n_pos, n_unl, contamination_pos, contamination_unl, test_pos, test_neg),
            data=data,
            positive_label=positive_label,
            zero_based=zero_based,
            labelling=rule,
            decimals=decimals,
            seed=seed,
        )
    )
    if not quiet:
        show_simulation(result)
    if json:
        machine.print_result("simulate", result)


def show_simulation(result: SimulateResult) -> None:
    """What was drawn and where it went."""
    for name, text in (
        ("pos.svm", f"{result.n_pos:,} rows, {result.false_positives:,} of them truly negative"),
        ("unl.svm", f"{result.n_unl:,} rows, {result.hidden_positives:,} of them truly positive"),
        ("test.svm", f"{result.test_pos:,} positive, {result.test_neg:,} negative rows"),
        ("truth.csv", "which rows of pos.svm and unl.svm are mislabelled"),
        ("seed", str(result.seed)),
        ("written to", result.path),
    ):
        say(f"{name:>10}  {text}")
    if not (result.test_pos and result.test_neg):
        note("no row of one class was left for test.svm: ask for smaller sets")
