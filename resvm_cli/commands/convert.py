"""resvm convert: write a table or an array as svmlight text.

Tables are streamed in one pass, or in two if means or medians are filled in. numpy is imported
inside functions, so that --help stays fast.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from resvm_cli.cli import options as shared
from resvm_cli.cli.option_groups import argument, expand_option_groups, option
from resvm_cli.cli.terminal import announce_stdin, print_json, say_row
from resvm_cli.errors import CommandLineError, DataError, ModelError
from resvm_cli.run import Run

if TYPE_CHECKING:
    from resvm_cli.data.encoding import ColumnRoles, FeatureMap
    from resvm_cli.data.inputs import RowInput

OTHER_FORMATS = (".csv", ".tsv", ".npy", ".npz")

molecule_option = partial(option, panel="Molecules")


@expand_option_groups
def convert(
    *,
    file: str = argument(
        "FILE",
        "CSV, TSV, .npy, .npz, Parquet or svmlight (- is stdin); the format is"
        " detected from the content.",
    ),
    table: shared.MoleculeTableOptions,
    positive_label: list[str] | None = shared.column_option(
        "--positive-label LABEL",
        "Rows with this label get the label 1, all others the label 0. The option may be repeated.",
    ),
    like: str | None = shared.column_option(
        "--like MAP", "Use the features recorded in a file written by --map, or in a model."
    ),
    bits: int | None = molecule_option(
        "--bits N", "Length of the fingerprints.", show_default="2048", min=16, max=1 << 24
    ),
    radius: int | None = molecule_option(
        "--radius N", "Radius of the fingerprints; 2 is ECFP4.", show_default="2", min=0, max=20
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
    if (positives is None) != (unlabeled is None):
        raise CommandLineError("-P and -U must be given together")
    targets: tuple[str, ...] = (output or "-",)
    if positives is not None and unlabeled is not None:
        if output is not None:
            raise CommandLineError("-o cannot be combined with -P and -U")
        if not positive_label:
            raise CommandLineError("-P and -U require --positive-label: which label is positive?")
        targets = positives, unlabeled
    for target in targets:
        if target.lower().endswith(OTHER_FORMATS):
            raise CommandLineError(
                f"{target}: only svmlight text can be written",
                "use a name that ends in .svm; scikit-learn's load_svmlight_file can read the"
                " file, and scipy.sparse.save_npz or pandas can write other formats",
            )
    if feature_map == "-":
        raise CommandLineError("--map cannot write to stdout", "give the name of a file")
    if json and targets == ("-",):
        raise CommandLineError(
            "--json and the rows cannot both go to stdout", "write the rows to a file: -o FILE"
        )
    if file == "-":
        announce_stdin()
    roles = table.roles(positive_label, bits=bits, radius=radius, counts=counts)
    with shared.command_run(quiet) as run:
        result = convert_file(
            file, roles, targets, run, like=like, map_path=feature_map, zero_based=zero_based
        )
    if not quiet:
        rows = f"{result['n_rows']:,} rows"
        if positive_label:
            rows += f", {result['n_positives']:,} of them positive"
        say_row("read", f"{rows}, {result['n_features']:,} features")
        if targets != ("-",):
            say_row("written to", ", ".join(targets))
    if json:
        print_json("convert", {**result, "notes": run.notes})


def convert_file(
    path: str,
    roles: ColumnRoles,
    targets: Sequence[str],
    run: Run,
    *,
    like: str | None = None,
    map_path: str | None = None,
    zero_based: bool = False,
) -> dict[str, Any]:
    """Write rows as svmlight text to one file, or to one of positives and one of all other rows.

    Return the result as ``--json`` prints it.
    """
    from resvm_cli.data.atomic import output
    from resvm_cli.data.inputs import RowInput
    from resvm_cli.data.notes import notes_on_rows, remark_on_categories
    from resvm_cli.data.streams import Source

    known = None if like is None else _read_features(like)
    with closing(Source(path, once=not roles.needs_two_passes)) as source:
        rows = RowInput(source, roles, zero_based=zero_based, known=known)
        rows.encode(known)
        for option, value in (("--map", map_path), ("--like", like)):
            if value is not None and rows.features is None:
                raise CommandLineError(
                    f"{option} requires a table: the features in {rows.name} have no names"
                )
        n_rows, n_positives, max_index = _write(rows, targets, like, int(zero_based), run)
        if map_path is not None and rows.features is not None:
            with output(map_path) as write:
                write(rows.features.map.format())
    n_named = 0
    if rows.features is not None:
        n_named = len(rows.features.map.names)
        if text := remark_on_categories(rows.features):
            run.note(text)
        for text in notes_on_rows(rows.features, like or ""):
            run.warn(text)
    return {
        "source": rows.name,
        "n_rows": n_rows,
        "n_positives": n_positives if roles.positive_labels else None,
        "n_features": max(max_index, rows.n_features or 0, n_named),
        "targets": targets,
    }


def _read_features(path: str) -> FeatureMap:
    """Return the features in a map that convert wrote, or in a model trained on a table."""
    from resvm_cli.data.encoding import read_feature_map

    if not os.path.isdir(path):
        return read_feature_map(path)
    from resvm_cli.storage.model import read_manifest, stored_encoding

    known = stored_encoding(read_manifest(path))
    if known is None:
        raise ModelError(
            f"{path}: was not trained on a table, so it has no column names",
            "use a feature map written by convert: --like MAP",
        )
    return known


def _write(
    rows: RowInput, targets: Sequence[str], like: str | None, shift: int, run: Run
) -> tuple[int, int, int]:
    """Write the rows; return the numbers of rows and positives, and the largest index."""
    import numpy as np

    from resvm_cli.data.atomic import output
    from resvm_cli.data.encoding import fingerprint_line
    from resvm_cli.data.svmlight import format_block

    n_rows = n_positives = max_index = 0
    with ExitStack() as files:
        writers = [files.enter_context(output(path)) for path in targets]
        for block in rows.blocks():
            if not n_rows and rows.features is not None:
                for write in writers:
                    write(fingerprint_line(rows.features.map))
            positive = block.labels == 1.0
            shifted = replace(block.rows, indices=block.rows.indices + shift)
            # a row with neither label nor features would be a blank line
            block = replace(block, rows=shifted, labels=np.nan_to_num(block.labels))
            n_rows += len(block)
            n_positives += int(positive.sum())
            max_index = max(max_index, shifted.max_index)
            parts = [block]
            if len(writers) == 2:
                parts = [block.take(np.flatnonzero(mask)) for mask in (positive, ~positive)]
            for write, part in zip(writers, parts, strict=True):
                write(format_block(part) if len(part) else b"")
            run.progress(f"converting {rows.name}", n_rows, None)
        # an error leaves no file behind
        if not n_rows:
            raise DataError(f"{rows.name}: no rows are left", "every row has a missing value")
        if rows.features is not None and rows.features.unseen and not max_index:
            raise DataError(
                f"{rows.name}: no row has any features, because none of the categories is in"
                f" {like}",
                "use a map that --map FILE wrote for a table with the same columns",
            )
        wanted = rows.roles.positive_labels
        if wanted and not n_positives:
            raise rows.no_positive_row()
        if len(targets) == 2 and n_positives == n_rows:
            raise DataError(
                f"{rows.name}: every row has the label {' or '.join(wanted)}; no row is unlabeled"
            )
    return n_rows, n_positives, max_index
