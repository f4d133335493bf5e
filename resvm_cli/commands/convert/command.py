"""The options of resvm convert."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from resvm_cli.errors import CommandLineError
from resvm_cli.options.option_groups import argument, fold_options, option
from resvm_cli.options.shared import (
    JSON,
    QUIET,
    ZERO_BASED,
    TableOptions,
    column_option,
    command_run,
    output_option,
)
from resvm_cli.options.values import parse_choice
from resvm_cli.report.terminal import announce_stdin, print_json, say_row

if TYPE_CHECKING:
    from resvm_cli.commands.convert.convert import ConvertResult

molecule_option = partial(option, panel="Molecules")


@fold_options
def convert(
    *,
    file: str = argument(
        "FILE",
        "CSV, TSV, .npy, .npz, Parquet, HDF5, .h5ad or svmlight (- is stdin); the format is"
        " detected from the content.",
    ),
    table: TableOptions,
    positive_label: list[str] | None = column_option(
        "--positive-label LABEL",
        "Rows with this label get the label 1, all others 0; may be repeated.",
    ),
    like: str | None = column_option(
        "--like MAP", "Use the features recorded in a file written by --map, or in a model."
    ),
    smiles_column: str | None = molecule_option(
        "--smiles-column NAME",
        "Column with SMILES, converted to Morgan fingerprints (RDKit); other columns are used only"
        " if listed in --columns.",
    ),
    bits: int | None = molecule_option(
        "--bits N", "Length of the fingerprints.", show_default="2048"
    ),
    radius: int | None = molecule_option(
        "--radius N", "Radius of the fingerprints; 2 is ECFP4.", show_default="2"
    ),
    counts: bool = molecule_option("--counts", "Use count fingerprints, for the minmax kernel."),
    zero_based: bool = ZERO_BASED,
    output: str | None = output_option(
        "-o, --output FILE",
        "Output file; the extensions .csv, .tsv, .npy and .npz set the format.",
        show_default="stdout",
    ),
    positives: str | None = output_option("-P, --positives FILE", "Output file for positive rows."),
    unlabeled: str | None = output_option(
        "-U, --unlabeled FILE", "Output file for all other rows."
    ),
    to: str | None = output_option(
        "--to FORMAT",
        "Output format: svmlight, csv, tsv, npy or npz.",
        completions=("svmlight", "csv", "tsv", "npy", "npz"),
        show_default="from the extension of -o, else svmlight",
    ),
    feature_map: str | None = output_option(
        "--map FILE", "Write the feature names to a JSON file."
    ),
    json: bool = JSON,
    quiet: bool = QUIET,
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
        announce_stdin()
    with command_run(quiet) as run:
        result = job.convert(request, run)
    if not quiet:
        _show(result)
    if json:
        print_json("convert", {**asdict(result), "notes": run.notes})


def _show(result: ConvertResult) -> None:
    rows = f"{result.n_rows:,} rows"
    if result.n_positives is not None:
        rows += f", {result.n_positives:,} of them positive"
    say_row("read", f"{rows}, {result.n_features:,} features")
    if result.targets != ("-",):
        say_row("written to", ", ".join(result.targets))
