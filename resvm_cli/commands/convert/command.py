"""resvm convert."""

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
            " recognized by its first bytes.",
        ),
    ],
    label_column: Annotated[
        str | None, column_option(metavar="NAME", help="Column with the labels.")
    ] = None,
    positive_label: Annotated[
        list[str] | None,
        column_option(
            metavar="LABEL",
            help="Rows with this label get 1, all others get 0; may be repeated.",
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
            help="Columns to encode as one feature per value.",
            show_default="columns of text",
        ),
    ] = None,
    missing: Annotated[
        str,
        column_option(
            metavar="RULE",
            autocompletion=offered("refuse", "drop", "zero", "mean", "median"),
            help="Missing values: refuse (fail), drop the row, or fill in zero, the mean or the"
            " median of the column.",
        ),
    ] = "refuse",
    like: Annotated[
        str | None,
        column_option(metavar="MAP", help="Use the features of this map, written by --map."),
    ] = None,
    smiles_column: Annotated[
        str | None,
        molecule_option(
            metavar="NAME",
            help="Column with SMILES, for Morgan fingerprints (RDKit); other columns only if"
            " listed in --columns.",
        ),
    ] = None,
    bits: Annotated[int, molecule_option(metavar="N", help="Length of the fingerprints.")] = 2048,
    radius: Annotated[int, molecule_option(metavar="N", help="Their radius; 2 is ECFP4.")] = 2,
    counts: Annotated[
        bool, molecule_option("--counts", help="Count fingerprints, for the minmax kernel.")
    ] = False,
    separator: Annotated[
        str | None,
        data_option(
            metavar="CHAR",
            help="Column separator: a character, or tab.",
            show_default="the most frequent in the first line",
        ),
    ] = None,
    header: Annotated[
        bool | None,
        data_option(
            "--header/--no-header",
            help="Whether the first line has column names; if not, columns are numbered.",
            show_default="yes",
        ),
    ] = None,
    decimal_comma: Annotated[
        bool,
        data_option("--decimal-comma", help="Numbers are written 0,5 instead of 0.5."),
    ] = False,
    array: Annotated[
        str | None,
        data_option(metavar="NAME", help=".npz, HDF5: the matrix to read, if there are several."),
    ] = None,
    zero_based: ZeroBased = False,
    output: Annotated[
        str | None,
        output_option(
            "-o",
            "--output",
            metavar="FILE",
            help="Output file: svmlight, or by extension .csv, .tsv, .npy, .npz.",
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
            show_default="by -o",
        ),
    ] = None,
    feature_map: Annotated[
        str | None,
        output_option("--map", metavar="FILE", help="Write the meaning of each feature as JSON."),
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
        missing=parse_choice("--missing", missing, MISSING_RULES),
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
    elif not quiet:
        _show(result)


def _names(given: list[str] | None) -> tuple[str, ...]:
    return tuple(name.strip() for text in given or () for name in text.split(","))


def _show(result: ConvertResult) -> None:
    """What was read, and where it was written."""
    rows = f"{result.n_rows:,} rows"
    if result.n_positives is not None:
        rows += f", {result.n_positives:,} of them positive"
    terminal.say(f"{'read':>10}  {rows}, {result.n_features:,} features")
    for text in result.notes:
        terminal.note(text)
    if result.targets != ("-",):
        terminal.say(f"{'written to':>10}  {', '.join(result.targets)}")
