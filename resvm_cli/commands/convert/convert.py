"""Convert tables and arrays to svmlight text and back.

Every input yields blocks of rows and every output consumes them. Tables are streamed in one pass;
means, medians and the width of a CSV file require a second pass. NumPy files are built in memory.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from resvm_cli.errors import DataError, Message, ModelError, ParameterError, Text
from resvm_cli.files.array_files import write_npy, write_npz
from resvm_cli.files.atomic import output, whole_file
from resvm_cli.files.fields import line_writer
from resvm_cli.files.sources import Source
from resvm_cli.files.streams import STDOUT, name_of
from resvm_cli.files.svmlight import Block, format_block, format_number
from resvm_cli.records import dataclass
from resvm_cli.rows import IntArray
from resvm_cli.running.run import Run
from resvm_cli.tables.encoding import (
    MAX_BITS,
    MAX_RADIUS,
    MIN_BITS,
    ColumnRoles,
    FeatureMap,
    TableReading,
    read_feature_map,
)
from resvm_cli.tables.features import TableFeatures
from resvm_cli.tables.inputs import RowInput
from resvm_cli.tables.notes import doubtful_columns, notes_on_rows

FormatName: TypeAlias = Literal["svmlight", "csv", "tsv", "npy", "npz"]
FORMATS: tuple[FormatName, ...] = ("svmlight", "csv", "tsv", "npy", "npz")
MAX_CSV_FEATURES = 1 << 17
MAX_DENSE_CELLS = 1 << 31


@dataclass(frozen=True)
class ConvertRequest:
    """The file to convert, the roles of its columns, and the outputs."""

    source: str
    reading: TableReading
    target: str | None = None  # None: stdout, or the two files below
    positives: str | None = None
    unlabeled: str | None = None
    form: FormatName | None = None  # None: from the extension of the target
    write_map: str | None = None
    like: str | None = None
    zero_based: bool = False

    def check(self) -> None:
        """Reject missing or contradictory parameters before any file is read."""
        if (self.positives is None) != (self.unlabeled is None):
            raise ParameterError("{positives} and {unlabeled} must be given together")
        if self.positives is not None:
            if self.target is not None:
                raise ParameterError("{output} cannot be combined with {positives} and {unlabeled}")
            if not self.roles.positive_labels:
                raise ParameterError(
                    "{positives} and {unlabeled} require {positive_label}: which label is positive?"
                )
            if self.format != "svmlight":
                raise ParameterError("{positives} and {unlabeled} are written as svmlight text")
        if self.format in ("npy", "npz") and self.target in (None, STDOUT):
            raise ParameterError(
                f"{{to:{self.format}}} cannot write to stdout", f"use {{output:NAME.{self.format}}}"
            )
        if self.write_map == STDOUT:
            raise ParameterError("{map} cannot write to stdout", "give the name of a file")
        self.reading.check()
        roles = self.roles
        bits_fit = roles.bits is None or MIN_BITS <= roles.bits <= MAX_BITS
        if not bits_fit or not 0 <= (roles.radius or 0) <= MAX_RADIUS:
            raise ParameterError(
                "{bits} must be between {least} and {most:,}, and {radius} between 0 and {widest}",
                least=MIN_BITS,
                most=MAX_BITS,
                widest=MAX_RADIUS,
            )

    @property
    def roles(self) -> ColumnRoles:
        return self.reading.roles

    @property
    def format(self) -> FormatName:
        if self.form is not None:
            return self.form
        ending = (self.target or "").rpartition(".")[2].lower()
        for name in FORMATS:
            if name == ending:
                return name
        return "svmlight"

    @property
    def needs_two_passes(self) -> bool:
        return self.format in ("csv", "tsv") or self.reading.needs_two_passes


@dataclass(frozen=True)
class ConvertResult:
    """Counts of what was read, and the files written."""

    source: str
    n_rows: int
    n_positives: int | None
    n_features: int
    targets: tuple[str, ...]


def convert(request: ConvertRequest, run: Run) -> ConvertResult:
    """Read a table or an array and write it in another format."""
    request.check()
    with closing(Source(request.source, once=not request.needs_two_passes)) as source:
        rows = _Rows(request, source, run)
        targets = _write(request, rows)
        if request.write_map is not None:
            if rows.named is None:
                raise ParameterError(
                    "{map} requires a table: the features in {name} have no names", name=rows.name
                )
            with output(request.write_map) as write:
                write(rows.named.format())
    for text in _remarks(request, rows):
        run.remark(text)
    for text in _warnings(request, rows.features):
        run.notice(text)
    n_positives = rows.n_positives if request.roles.positive_labels else None
    return ConvertResult(rows.name, rows.n_rows, n_positives, rows.width, targets)


class _Rows(RowInput):
    """The rows to convert, with features numbered from 1, and counts of the rows read so far."""

    def __init__(self, request: ConvertRequest, source: Source, run: Run) -> None:
        known = None if request.like is None else _known_features(request.like)
        super().__init__(
            source, request.reading, zero_based=request.zero_based, known=known is not None
        )
        self.encode(known)
        self.named = known if self.features is None else self.features.map
        self._run = run
        self.n_rows = self.n_positives = self.max_index = 0
        self.has_labels = self.has_ids = self.has_qids = False

    def blocks(self, **options: Any) -> Iterator[Block]:
        for block in super().blocks(**options):
            if self.is_text and self._zero_based:
                block = replace(block, rows=replace(block.rows, indices=block.rows.indices + 1))
            yield block

    def counted(self) -> Iterator[Block]:
        """Yield the blocks, counting rows, positives and features; for one pass only."""
        for block in self.blocks():
            self.n_rows += len(block)
            self.n_positives += int((block.labels == 1.0).sum())
            self.max_index = max(self.max_index, block.rows.max_index)
            self.has_labels |= not bool(np.isnan(block.labels).all())
            self.has_ids |= any(block.comments or ())
            self.has_qids |= bool((block.qids >= 0).any())
            yield block
            self._run.progress(f"converting {self.name}", self.n_rows, None)

    @property
    def width(self) -> int:
        """The number of features, once all rows are counted."""
        known = self.n_features or 0 if self.named is None else len(self.named.names)
        return max(self.max_index, known)


def _known_features(path: str) -> FeatureMap:
    """Return the features in a map that convert wrote, or in a model trained on a table."""
    if not os.path.isdir(path):
        return read_feature_map(path)
    from resvm_cli.model_files.directory import read_manifest, stored_encoding

    known = stored_encoding(read_manifest(path))
    if known is None:
        raise ModelError(
            f"{path}: was not trained on a table, so it has no column names",
            Message("use the map of the table: {like:MAP}"),
        )
    return known


def _write(request: ConvertRequest, rows: _Rows) -> tuple[str, ...]:
    """Write the rows in the requested format; return the paths of the files."""
    form = request.format
    target = request.target or STDOUT
    with ExitStack() as files:
        if request.positives is not None and request.unlabeled is not None:
            targets = (request.positives, request.unlabeled)
            writers = [files.enter_context(output(path)) for path in targets]
            for block in rows.counted():
                positive = block.labels == 1.0
                for write, mask in zip(writers, (positive, ~positive), strict=True):
                    if mask.any():
                        write(_svmlight(block.take(np.flatnonzero(mask))))
            _require_rows(request, rows)
            return targets
        if form == "svmlight":
            write = files.enter_context(output(target))
            for block in rows.counted():
                write(_svmlight(block))
            _require_rows(request, rows)
            return (target,)
        in_memory = form in ("npy", "npz")
        blocks = [block for block in rows.counted() if in_memory]  # a CSV header needs the width
        _require_rows(request, rows)
        if in_memory:
            whole = Block.concatenate(blocks)
            file = files.enter_context(whole_file(target))
            if form == "npz":
                write_npz(file, whole, rows.width, labels=rows.has_labels, ids=rows.has_ids)
            else:
                _require_dense(len(whole), rows.width)
                write_npy(file, whole, rows.width)
        else:
            write = files.enter_context(output(target))
            for lines in _csv_lines(rows, "\t" if form == "tsv" else ","):
                write(lines)
    return (target,)


def _svmlight(block: Block) -> bytes:
    """Format rows, with 0 for missing labels; otherwise, rows without features would be blank."""
    return format_block(replace(block, labels=np.nan_to_num(block.labels)))


def _require_rows(request: ConvertRequest, rows: _Rows) -> None:
    if not rows.n_rows:
        raise DataError(f"{rows.name}: no rows are left", "every row has a missing value")
    table = rows.features
    if table is not None and table.unseen and not rows.max_index:
        raise DataError(
            f"{rows.name}: no row has any features, because none of the categories is in"
            f" {name_of(request.like or '')}",
            Message("use a map that {map:FILE} wrote for a table with the same columns"),
        )
    wanted = request.roles.positive_labels
    if wanted and not rows.n_positives:
        raise rows.no_positive_row()
    if request.unlabeled is not None and rows.n_positives == rows.n_rows:
        raise DataError(
            f"{rows.name}: every row has the label {' or '.join(wanted)}; no row is unlabeled"
        )


def _require_dense(n_rows: int, width: int) -> None:
    if n_rows * width > MAX_DENSE_CELLS:
        raise DataError(
            f"a dense matrix of {n_rows:,} x {width:,} would take {8e-9 * n_rows * width:,.0f} GB",
            Message("write a sparse matrix: {to:npz}"),
        )


def _csv_lines(rows: _Rows, separator: str) -> Iterator[bytes]:
    """Yield the header, then each block of rows, with one column per feature."""
    width = rows.width
    if width > MAX_CSV_FEATURES:
        raise DataError(
            f"{rows.name}: {width:,} features; a table can have at most {MAX_CSV_FEATURES:,}"
            " columns",
            Message("write a sparse matrix: {to:npz}"),
        )
    line = line_writer(separator)
    names = [] if rows.named is None else rows.named.names
    own = ["id"] * rows.has_ids + ["label"] * rows.has_labels
    header = [*own, *names, *(str(number + 1) for number in range(len(names), width))]
    yield line(header).encode("utf-8", "surrogateescape")
    for block in rows.blocks():
        bounds: IntArray = block.rows.indptr
        indices = (block.rows.indices - 1).tolist()
        texts = [format_number(value) for value in block.rows.values.tolist()]
        lines = []
        for row, label in enumerate(block.labels.tolist()):
            cells = ["0"] * width
            for entry in range(bounds[row], bounds[row + 1]):
                cells[indices[entry]] = texts[entry]
            own = []
            if rows.has_ids:
                own.append(block.comments[row] if block.comments is not None else "")
            if rows.has_labels:
                own.append("" if np.isnan(label) else format_number(label))
            lines.append(line(own + cells))
        yield "".join(lines).encode("utf-8", "surrogateescape")


def _warnings(request: ConvertRequest, table: TableFeatures | None) -> Iterator[Text]:
    """Yield notes on possible problems with the result."""
    if table is not None:
        if request.like is None:
            yield from doubtful_columns(table)
        yield from notes_on_rows(table, name_of(request.like or ""))


def _remarks(request: ConvertRequest, rows: _Rows) -> Iterator[Text]:
    """Yield notes on what was done."""
    table, like = rows.features, request.like
    if table is not None:
        for name, n_values in table.categories.items():
            text = "the column '{name}' is categorical: {n_values:,} features, one per value"
            if "smiles" in name.lower():
                text += "; for fingerprints use {smiles_column} {column}"
            elif n_values == rows.n_rows > 1 and like is None:
                text += ", and every row has its own; if these are ids, use {id_column} {column}"
            yield Message(text, name=name, n_values=n_values, column=shlex.quote(name))
        if like is None and table.categories and request.write_map is None:
            yield Message("use {map:FILE} to save the feature names for later use with {like:FILE}")
    if rows.has_qids and request.format != "svmlight":
        yield "qid: fields are kept only in svmlight text"
    if request.format == "npy" and (rows.has_labels or rows.has_ids):
        yield "a .npy file contains only features; .npz keeps labels and ids too"
