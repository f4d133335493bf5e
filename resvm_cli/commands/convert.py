"""resvm convert: write a table or an array as svmlight text.

Tables are streamed in one pass, or in two if means or medians are filled in. numpy is imported
inside functions, so that --help stays fast.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING

from resvm_cli.errors import (
    CommandLineError,
    DataError,
    Message,
    ModelError,
    ParameterError,
    Text,
)
from resvm_cli.options import shared
from resvm_cli.options.option_groups import argument, fold_options, option
from resvm_cli.records import dataclass
from resvm_cli.report.terminal import announce_stdin, print_json, say_row
from resvm_cli.running.run import Run

if TYPE_CHECKING:
    from resvm_cli.files.svmlight import Block
    from resvm_cli.tables.encoding import FeatureMap, TableReading
    from resvm_cli.tables.inputs import RowInput

OTHER_FORMATS = (".csv", ".tsv", ".npy", ".npz")

molecule_option = partial(option, panel="Molecules")


@fold_options
def convert(
    *,
    file: str = argument(
        "FILE",
        "CSV, TSV, .npy, .npz, Parquet, .h5ad or svmlight (- is stdin); the format is"
        " detected from the content.",
    ),
    table: shared.TableOptions,
    positive_label: list[str] | None = shared.column_option(
        "--positive-label LABEL",
        "Rows with this label get the label 1, all others the label 0. The option may be repeated.",
    ),
    like: str | None = shared.column_option(
        "--like MAP", "Use the features recorded in a file written by --map, or in a model."
    ),
    smiles_column: str | None = molecule_option(
        "--smiles-column NAME",
        "Column with SMILES strings to convert to Morgan fingerprints (RDKit); other columns are"
        " used only if listed in --columns.",
    ),
    bits: int | None = molecule_option(
        "--bits N", "Length of the fingerprints.", show_default="2048"
    ),
    radius: int | None = molecule_option(
        "--radius N", "Radius of the fingerprints; 2 is ECFP4.", show_default="2"
    ),
    counts: bool = molecule_option("--counts", "Use count fingerprints, for the minmax kernel."),
    zero_based: bool = shared.ZERO_BASED,
    output: str | None = shared.output_option(
        "-o, --output FILE", "Output file.", show_default="stdout"
    ),
    positives: str | None = shared.output_option(
        "-P, --positives FILE", "Output file for positive rows."
    ),
    unlabeled: str | None = shared.output_option(
        "-U, --unlabeled FILE", "Output file for all other rows."
    ),
    feature_map: str | None = shared.output_option(
        "--map FILE", "Write the feature names to a JSON file."
    ),
    json: bool = shared.JSON,
    quiet: bool = shared.QUIET,
) -> None:
    """Convert CSV, NumPy and other formats to svmlight text.

    For example:

    - `resvm convert data.csv --label-column y --positive-label g -o data.svm`
    - `resvm convert data.csv --smiles-column smiles --id-column id -o data.svm`
    """
    molecules = {"smiles": smiles_column, "bits": bits, "radius": radius, "counts": counts}
    request = ConvertRequest(
        source=file,
        reading=table.reading(positive_label, **molecules),
        target=output,
        positives=positives,
        unlabeled=unlabeled,
        write_map=feature_map,
        like=like,
        zero_based=zero_based,
    )
    if json and request.targets == ("-",):
        raise CommandLineError(
            "--json and the rows cannot both go to stdout", "write the rows to a file: -o FILE"
        )
    if file == "-":
        announce_stdin()
    with shared.command_run(quiet) as run:
        result = convert_file(request, run)
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


@dataclass(frozen=True)
class ConvertRequest:
    """The file to convert, the roles of its columns, and the outputs."""

    source: str
    reading: TableReading
    target: str | None = None  # None: stdout, or the two files below
    positives: str | None = None
    unlabeled: str | None = None
    write_map: str | None = None
    like: str | None = None
    zero_based: bool = False

    def check(self) -> None:
        """Reject missing or contradictory parameters before any file is read."""
        from resvm_cli.tables.encoding import MAX_BITS, MAX_RADIUS, MIN_BITS

        roles = self.reading.roles
        if (self.positives is None) != (self.unlabeled is None):
            raise ParameterError("{positives} and {unlabeled} must be given together")
        if self.positives is not None:
            if self.target is not None:
                raise ParameterError("{output} cannot be combined with {positives} and {unlabeled}")
            if not roles.positive_labels:
                raise ParameterError(
                    "{positives} and {unlabeled} require {positive_label}: which label is positive?"
                )
        for target in self.targets:
            if target.lower().endswith(OTHER_FORMATS):
                raise ParameterError(
                    "{target}: only svmlight text can be written",
                    "use a name that ends in .svm; scikit-learn's load_svmlight_file can read the"
                    " file, and scipy.sparse.save_npz or pandas can write other formats",
                    target=target,
                )
        if self.write_map == "-":
            raise ParameterError("{map} cannot write to stdout", "give the name of a file")
        self.reading.check()
        bits_fit = roles.bits is None or MIN_BITS <= roles.bits <= MAX_BITS
        if not bits_fit or not 0 <= (roles.radius or 0) <= MAX_RADIUS:
            raise ParameterError(
                "{bits} must be between {least} and {most:,}, and {radius} between 0 and {widest}",
                least=MIN_BITS,
                most=MAX_BITS,
                widest=MAX_RADIUS,
            )

    @property
    def targets(self) -> tuple[str, ...]:
        """The files to write: one for all rows, or one for positives and one for other rows."""
        if self.positives is not None and self.unlabeled is not None:
            return self.positives, self.unlabeled
        return (self.target or "-",)


@dataclass(frozen=True)
class ConvertResult:
    """Counts of what was read, and the files written."""

    source: str
    n_rows: int
    n_positives: int | None  # None if no positive label was given
    n_features: int
    targets: tuple[str, ...]


def convert_file(request: ConvertRequest, run: Run) -> ConvertResult:
    """Read a table or an array and write it as svmlight text."""
    from resvm_cli.files.atomic import output
    from resvm_cli.files.sources import Source
    from resvm_cli.tables.inputs import RowInput

    request.check()
    known = None if request.like is None else _known_features(request.like)
    once = not request.reading.needs_two_passes
    with closing(Source(request.source, once=once)) as source:
        rows = RowInput(
            source, request.reading, zero_based=request.zero_based, known=known is not None
        )
        rows.encode(known)
        for parameter, path in (("map", request.write_map), ("like", request.like)):
            if path is not None and rows.features is None:
                raise ParameterError(
                    f"{{{parameter}}} requires a table: the features in {{name}} have no names",
                    name=rows.name,
                )
        result = _write(request, rows, run)
        if request.write_map is not None and rows.features is not None:
            with output(request.write_map) as write:
                write(rows.features.map.format())
    for text in _remarks(request, rows, result.n_rows):
        run.remark(text)
    if rows.features is not None:
        from resvm_cli.tables.notes import doubtful_columns, notes_on_rows

        doubtful = doubtful_columns(rows.features) if request.like is None else ()
        for text in (*doubtful, *notes_on_rows(rows.features, request.like or "")):
            run.notice(text)
    return result


def _known_features(path: str) -> FeatureMap:
    """Return the features in a map that convert wrote, or in a model trained on a table."""
    from resvm_cli.tables.encoding import read_feature_map

    if not os.path.isdir(path):
        return read_feature_map(path)
    from resvm_cli.model_files.directory import read_manifest, stored_encoding

    known = stored_encoding(read_manifest(path))
    if known is None:
        raise ModelError(
            f"{path}: was not trained on a table, so it has no column names",
            Message("use a feature map written by convert: {like:MAP}"),
        )
    return known


def _write(request: ConvertRequest, rows: RowInput, run: Run) -> ConvertResult:
    """Write the rows; count rows, positives and features."""
    import numpy as np

    from resvm_cli.files.atomic import output

    n_rows = n_positives = max_index = 0
    with ExitStack() as files:
        writers = [files.enter_context(output(path)) for path in request.targets]
        for block in rows.blocks():
            if request.zero_based:
                block = replace(block, rows=replace(block.rows, indices=block.rows.indices + 1))
            positive = block.labels == 1.0
            n_rows += len(block)
            n_positives += int(positive.sum())
            max_index = max(max_index, block.rows.max_index)
            parts = [block]
            if len(writers) == 2:
                parts = [block.take(np.flatnonzero(mask)) for mask in (positive, ~positive)]
            for write, part in zip(writers, parts, strict=True):
                write(_format(part))
            run.progress(f"converting {rows.name}", n_rows, None)
        _require_rows(request, rows, n_rows, n_positives, max_index)
    names = [] if rows.features is None else rows.features.map.names
    return ConvertResult(
        rows.name,
        n_rows,
        n_positives if request.reading.roles.positive_labels else None,
        max(max_index, rows.n_features or 0, len(names)),
        request.targets,
    )


def _format(block: Block) -> bytes:
    """Format rows, with 0 for missing labels; otherwise, rows without features would be blank."""
    import numpy as np

    from resvm_cli.files.svmlight import format_block

    return format_block(replace(block, labels=np.nan_to_num(block.labels))) if len(block) else b""


def _require_rows(
    request: ConvertRequest, rows: RowInput, n_rows: int, n_positives: int, max_index: int
) -> None:
    if not n_rows:
        raise DataError(f"{rows.name}: no rows are left", "every row has a missing value")
    table = rows.features
    if table is not None and table.unseen and not max_index:
        raise DataError(
            f"{rows.name}: no row has any features, because none of the categories is in"
            f" {request.like}",
            Message("use a map that {map:FILE} wrote for a table with the same columns"),
        )
    wanted = request.reading.roles.positive_labels
    if wanted and not n_positives:
        raise rows.no_positive_row()
    if request.unlabeled is not None and n_positives == n_rows:
        raise DataError(
            f"{rows.name}: every row has the label {' or '.join(wanted)}; no row is unlabeled"
        )


def _remarks(request: ConvertRequest, rows: RowInput, n_rows: int) -> Iterator[Text]:
    """Yield notes on how columns were encoded."""
    categories = {} if rows.features is None else rows.features.categories
    for name, n_values in categories.items():
        text = "the column '{name}' is categorical: {n_values:,} features, one per value"
        if "smiles" in name.lower():
            text += "; for fingerprints use {smiles_column} {column}"
        elif n_values == n_rows > 1 and request.like is None:
            text += ", and every row has its own value; if these are ids, use {id_column} {column}"
        yield Message(text, name=name, n_values=n_values, column=shlex.quote(name))
    if request.like is None and categories and request.write_map is None:
        yield Message("use {map:FILE} to save the feature names for later use with {like:FILE}")
