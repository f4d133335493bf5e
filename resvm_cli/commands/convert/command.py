"""resvm convert."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from resvm_cli.commands.convert import report
from resvm_cli.errors import CommandLineError
from resvm_cli.options.running import Json, Quiet, command_run, output_option
from resvm_cli.options.training import ZeroBased, data_option
from resvm_cli.options.values import offered, parse_choice
from resvm_cli.report import json_output as machine
from resvm_cli.report import terminal

column_option = partial(typer.Option, rich_help_panel="Columns")
molecule_option = partial(typer.Option, rich_help_panel="Molecules")


def convert(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV, TSV, .npy, .npz, Matrix Market, Parquet, HDF5 or svmlight (- is stdin);"
            " known by its first bytes.",
        ),
    ],
    label_column: Annotated[
        str | None, column_option(metavar="NAME", help="The column of labels.")
    ] = None,
    positive_label: Annotated[
        list[str] | None,
        column_option(
            metavar="LABEL",
            help="Rows of this label get 1, all others and those without get 0; may be repeated.",
        ),
    ] = None,
    id_column: Annotated[
        str | None, column_option(metavar="NAME", help="Names of rows; they end a line: # name.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        column_option(
            metavar="NAMES", help="Features, separated by commas.", show_default="all others"
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, column_option(metavar="NAMES", help="Columns to leave out.")
    ] = None,
    categorical: Annotated[
        list[str] | None,
        column_option(
            metavar="NAMES",
            help="Columns that become one feature a value.",
            show_default="those of texts only",
        ),
    ] = None,
    missing: Annotated[
        str,
        column_option(
            metavar="RULE",
            autocompletion=offered("refuse", "drop", "zero", "mean", "median"),
            help="A missing value: refuse, drop its row, or fill in zero, the column's mean or"
            " median.",
        ),
    ] = "refuse",
    like: Annotated[
        str | None,
        column_option(metavar="MAP", help="Make the features of this map, written by --map."),
    ] = None,
    smiles_column: Annotated[
        str | None,
        molecule_option(
            metavar="NAME",
            help="SMILES to Morgan fingerprints (RDKit); other columns only by --columns.",
        ),
    ] = None,
    bits: Annotated[int, molecule_option(metavar="N", help="Length of fingerprints.")] = 2048,
    radius: Annotated[int, molecule_option(metavar="N", help="2 is ECFP4.")] = 2,
    counts: Annotated[
        bool, molecule_option("--counts", help="How often, for the minmax kernel.")
    ] = False,
    separator: Annotated[
        str | None,
        data_option(
            metavar="CHAR",
            help="What separates columns, or tab.",
            show_default="what the first line has most of",
        ),
    ] = None,
    header: Annotated[
        bool | None,
        data_option(
            "--header/--no-header",
            help="Whether the first line has names; without, columns go by number.",
            show_default="yes",
        ),
    ] = None,
    decimal_comma: Annotated[
        bool,
        data_option("--decimal-comma", help="Numbers are written 0,5 and not 0.5."),
    ] = False,
    array: Annotated[
        str | None,
        data_option(metavar="NAME", help=".npz, HDF5: the matrix, where there are several."),
    ] = None,
    zero_based: ZeroBased = False,
    output: Annotated[
        str | None,
        output_option(
            "-o",
            "--output",
            metavar="FILE",
            help="svmlight, or what its ending says: .csv, .tsv, .npy, .npz.",
            show_default="stdout",
        ),
    ] = None,
    positives: Annotated[
        str | None,
        output_option("-P", "--positives", metavar="FILE", help="Where positive rows go."),
    ] = None,
    unlabeled: Annotated[
        str | None,
        output_option("-U", "--unlabeled", metavar="FILE", help="Where all others go."),
    ] = None,
    to: Annotated[
        str | None,
        output_option(
            metavar="FORMAT",
            autocompletion=offered("svmlight", "csv", "tsv", "npy", "npz"),
            help="svmlight, csv, tsv, npy or npz.",
            show_default="by -o",
        ),
    ] = None,
    feature_map: Annotated[
        str | None,
        output_option("--map", metavar="FILE", help="Write which feature is what, as JSON."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """CSV, NumPy and others to svmlight text, and back.

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
            "--json writes to stdout, and so would the rows", "give them a file: -o FILE"
        )
    if file == "-":
        terminal.announce_stdin()
    with command_run(quiet) as run:
        result = job.convert(request, run)
    if json:
        machine.print_result("convert", result)
    elif not quiet:
        report.show_conversion(result)


def _names(given: list[str] | None) -> tuple[str, ...]:
    return tuple(name.strip() for text in given or () for name in text.split(","))
