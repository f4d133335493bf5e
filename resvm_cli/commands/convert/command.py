"""The options of resvm convert."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from resvm_cli.errors import CommandLineError
from resvm_cli.options.option_groups import fold_options
from resvm_cli.options.running import Json, Quiet, command_run, output_option
from resvm_cli.options.tables import TableOptions, column_option
from resvm_cli.options.training import ZeroBased
from resvm_cli.options.values import offered, parse_choice
from resvm_cli.report import terminal
from resvm_cli.report.terminal import print_json

if TYPE_CHECKING:
    from resvm_cli.commands.convert.convert import ConvertResult

molecule_option = partial(typer.Option, rich_help_panel="Molecules")


@fold_options
def convert(
    *,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV, TSV, .npy, .npz, Matrix Market, Parquet, HDF5, .h5ad or svmlight (- is"
            " stdin);"
            " the format is detected from the content.",
        ),
    ],
    table: TableOptions,
    positive_label: Annotated[
        list[str] | None,
        column_option(
            metavar="LABEL",
            help="Rows with this label become 1, all others 0; may be repeated.",
        ),
    ] = None,
    like: Annotated[
        str | None,
        column_option(
            metavar="MAP",
            help="Use the features in this file, written by --map, or of this model.",
        ),
    ] = None,
    smiles_column: Annotated[
        str | None,
        molecule_option(
            metavar="NAME",
            help="Column with SMILES, converted to Morgan fingerprints (RDKit); other columns are"
            " used only if listed in --columns.",
        ),
    ] = None,
    bits: Annotated[
        int | None,
        molecule_option(metavar="N", help="Length of the fingerprints.", show_default="2048"),
    ] = None,
    radius: Annotated[
        int | None,
        molecule_option(
            metavar="N", help="Radius of the fingerprints; 2 is ECFP4.", show_default="2"
        ),
    ] = None,
    counts: Annotated[
        bool, molecule_option("--counts", help="Use count fingerprints, for the minmax kernel.")
    ] = False,
    zero_based: ZeroBased = False,
    output: Annotated[
        str | None,
        output_option(
            "-o",
            "--output",
            metavar="FILE",
            help="Output file; .csv, .tsv, .npy and .npz set the format, otherwise svmlight.",
            show_default="stdout",
        ),
    ] = None,
    positives: Annotated[
        str | None,
        output_option("-P", "--positives", metavar="FILE", help="Output file for positive rows."),
    ] = None,
    unlabeled: Annotated[
        str | None,
        output_option("-U", "--unlabeled", metavar="FILE", help="Output file for all other rows."),
    ] = None,
    to: Annotated[
        str | None,
        output_option(
            metavar="FORMAT",
            autocompletion=offered("svmlight", "csv", "tsv", "npy", "npz"),
            help="Output format: svmlight, csv, tsv, npy or npz.",
            show_default="from the extension of -o",
        ),
    ] = None,
    feature_map: Annotated[
        str | None,
        output_option(
            "--map", metavar="FILE", help="Write the name of each feature to a JSON file."
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Convert CSV, NumPy and other formats to svmlight text, and back.

    For example:

    - `resvm convert data.csv --label-column y --positive-label g -o data.svm`
    - `resvm convert data.csv --smiles-column smiles --id-column id -o data.svm`
    - `resvm convert data.svm -o data.npz`
    """
    from resvm_cli.commands.convert import convert as job

    molecules = {"smiles": smiles_column, "bits": bits, "radius": radius, "counts": counts}
    request = job.ConvertRequest(
        source=file,
        reading=table.reading(positive_label, **molecules),
        target=output,
        positives=positives,
        unlabeled=unlabeled,
        form=None if to is None else parse_choice("--to", to, job.FORMATS),
        write_map=feature_map,
        like=like,
        zero_based=zero_based,
    )
    if json and request.target in (None, "-") and request.positives is None:
        raise CommandLineError(
            "--json and the rows cannot both go to stdout", "write the rows to a file: -o FILE"
        )
    if file == "-":
        terminal.announce_stdin()
    with command_run(quiet) as run:
        result = job.convert(request, run)
    if json:
        notes = [terminal.in_options(text) for text in result.notes]
        fields = asdict(replace(result, remarks=(), warnings=()))
        del fields["remarks"], fields["warnings"]
        print_json("convert", {**fields, "notes": notes})
    elif quiet:
        for text in result.warnings:
            terminal.note(text)
    else:
        _show(result)


def _show(result: ConvertResult) -> None:
    """Print what was read, and where it was written."""
    rows = f"{result.n_rows:,} rows"
    if result.n_positives is not None:
        rows += f", {result.n_positives:,} of them positive"
    terminal.say(f"{'read':>10}  {rows}, {result.n_features:,} features")
    for text in result.notes:
        terminal.note(text)
    if result.targets != ("-",):
        terminal.say(f"{'written to':>10}  {', '.join(result.targets)}")
