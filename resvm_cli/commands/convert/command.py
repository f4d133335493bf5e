"""The options of resvm convert."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from resvm_cli.errors import CommandLineError
from resvm_cli.options.running import Json, Quiet, command_run, output_option
from resvm_cli.options.training import ZeroBased, data_option
from resvm_cli.options.values import offered, parse_choice
from resvm_cli.report import terminal
from resvm_cli.report.terminal import print_json

if TYPE_CHECKING:
    from resvm_cli.commands.convert.convert import ConvertResult

column_option = partial(typer.Option, rich_help_panel="Columns")
molecule_option = partial(typer.Option, rich_help_panel="Molecules")


def convert(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV, TSV, .npy, .npz, Matrix Market, Parquet, HDF5 or svmlight (- is stdin);"
            " the format is detected from the content.",
        ),
    ],
    label_column: Annotated[
        str | None, column_option(metavar="NAME", help="Column with the labels.")
    ] = None,
    positive_label: Annotated[
        list[str] | None,
        column_option(
            metavar="LABEL",
            help="Rows with this label become 1, all others 0; may be repeated.",
        ),
    ] = None,
    id_column: Annotated[
        str | None,
        column_option(metavar="NAME", help="Column with row ids, written as # id."),
    ] = None,
    columns: Annotated[
        list[str] | None,
        column_option(
            metavar="NAMES",
            help="Columns to use as features, separated by commas.",
            show_default="all others",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, column_option(metavar="NAMES", help="Columns to drop.")
    ] = None,
    categorical: Annotated[
        list[str] | None,
        column_option(
            metavar="NAMES",
            help="Columns to one-hot encode.",
            show_default="text columns",
        ),
    ] = None,
    missing: Annotated[
        str | None,
        column_option(
            metavar="RULE",
            show_default="refuse",
            autocompletion=offered("refuse", "drop", "zero", "mean", "median"),
            help="Missing values: refuse (fail), drop the row, or fill in zero or the column's"
            " mean or median.",
        ),
    ] = None,
    like: Annotated[
        str | None,
        column_option(metavar="MAP", help="Use the features in this file, written by --map."),
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
    separator: Annotated[
        str | None,
        data_option(
            metavar="CHAR",
            help="Column separator: a character, or tab.",
            show_default="the most frequent one in the first line",
        ),
    ] = None,
    header: Annotated[
        bool | None,
        data_option(
            "--header/--no-header",
            help="Whether the first line contains column names; if not, columns are numbered.",
            show_default="yes",
        ),
    ] = None,
    decimal_comma: Annotated[
        bool,
        data_option("--decimal-comma", help="Numbers are written 0,5 instead of 0.5."),
    ] = False,
    array: Annotated[
        str | None,
        data_option(metavar="NAME", help="Matrix to read, if an .npz or HDF5 file has several."),
    ] = None,
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
    from resvm_cli.tables.features import MISSING_RULES, ColumnRoles

    roles = ColumnRoles(
        label=label_column,
        positive_labels=tuple(positive_label or ()),
        row_id=id_column,
        smiles=smiles_column,
        only=_names(columns),
        dropped=_names(drop),
        categories=_names(categorical),
        missing=None if missing is None else parse_choice("--missing", missing, MISSING_RULES),
        bits=bits,
        radius=radius,
        counts=counts,
    )
    request = job.ConvertRequest(
        source=file,
        roles=roles,
        target=output,
        positives=positives,
        unlabeled=unlabeled,
        form=None if to is None else parse_choice("--to", to, job.FORMATS),
        write_map=feature_map,
        like=like,
        separator={"tab": "\t", "\\t": "\t"}.get(separator or "", separator),
        header=header,
        decimal_comma=decimal_comma,
        array=array,
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
        print_json("convert", {**asdict(replace(result, notes=())), "notes": notes})
    elif quiet:
        for text in result.notes:
            terminal.note(text)
    else:
        _show(result)


def _names(given: list[str] | None) -> tuple[str, ...]:
    return tuple(name.strip() for text in given or () for name in text.split(","))


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
