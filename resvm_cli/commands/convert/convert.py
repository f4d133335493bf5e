"""Convert tables and arrays to svmlight text and back.

Every input yields blocks of rows and every output consumes them. Tables are streamed in one pass;
means, medians and the width of a CSV file require a second pass. NumPy files are built in memory.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from resvm_cli.errors import DataError, Message, ParameterError, Text
from resvm_cli.files.array_files import SparseFile, array_path, open_arrays, write_npy, write_npz
from resvm_cli.files.atomic import output, whole_file
from resvm_cli.files.delimited import MAX_ROWS, TextTable, line_writer
from resvm_cli.files.file_kinds import (
    USUAL_NAMES,
    first_line,
    has_pairs,
    is_smiles,
    kind_of,
    refuse_smiles,
    require_svmlight,
    with_head,
)
from resvm_cli.files.sources import Source
from resvm_cli.files.streams import STDOUT, name_of
from resvm_cli.files.svmlight import Block, format_block, format_number, parse_pieces
from resvm_cli.records import dataclass
from resvm_cli.rows import IntArray
from resvm_cli.running.run import Run
from resvm_cli.tables.cells import matcher
from resvm_cli.tables.features import (
    MAX_BITS,
    MAX_RADIUS,
    MIN_BITS,
    ColumnRoles,
    FeatureMap,
    TableFeatures,
    read_feature_map,
)

FormatName: TypeAlias = Literal["svmlight", "csv", "tsv", "npy", "npz"]
FORMATS: tuple[FormatName, ...] = ("svmlight", "csv", "tsv", "npy", "npz")
MAX_CSV_FEATURES = 1 << 17
MAX_DENSE_CELLS = 1 << 31


@dataclass(frozen=True)
class ConvertRequest:
    """The file to convert, the roles of its columns, and the outputs."""

    source: str
    roles: ColumnRoles
    target: str | None = None  # None: stdout, or the two files below
    positives: str | None = None
    unlabeled: str | None = None
    form: FormatName | None = None  # None: from the extension of the target
    write_map: str | None = None
    like: str | None = None
    separator: str | None = None
    header: bool | None = None
    decimal_comma: bool = False
    array: str | None = None
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
            raise ParameterError("{map} must be the name of a file")
        if self.separator is not None and len(self.separator) != 1:
            raise ParameterError(
                "{separator} must be one character or tab, got '{text}'", text=self.separator
            )
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
    def format(self) -> FormatName:
        """The format to write."""
        if self.form is not None:
            return self.form
        ending = (self.target or "").rpartition(".")[2].lower()
        for name in FORMATS:
            if name == ending:
                return name
        return "svmlight"

    @property
    def needs_two_passes(self) -> bool:
        return self.format in ("csv", "tsv") or self.roles.missing in ("mean", "median")


@dataclass(frozen=True)
class ConvertResult:
    """Counts of what was read, and the files written."""

    source: str
    n_rows: int
    n_positives: int | None
    n_features: int
    targets: tuple[str, ...]
    notes: tuple[Text, ...] = ()


def convert(request: ConvertRequest, run: Run) -> ConvertResult:
    """Read a table or an array and write it in another format."""
    request.check()
    known = None if request.like is None else read_feature_map(request.like)
    source = Source(request.source, once=not request.needs_two_passes)
    try:
        rows = _open(request, source, known)
        result = _write(request, rows, run)
        if request.write_map is not None:
            with output(request.write_map) as write:
                write(rows.feature_map().format())
        return result
    finally:
        source.close()


@dataclass
class _Input:
    """The input rows: each call of ``blocks`` reads them again from the start."""

    name: str
    blocks: Callable[[], Iterator[Block]]
    table: TableFeatures | None
    named: FeatureMap | None  # the map given, or that of the table
    n_features: int | None = None  # None: the largest index

    def feature_map(self) -> FeatureMap:
        if self.named is None:
            raise ParameterError(
                "{map} requires a table: the features in {name} have no names", name=self.name
            )
        return self.named


def _open(request: ConvertRequest, source: Source, known: FeatureMap | None) -> _Input:
    head, text = with_head(source.pieces())
    kind = kind_of(head)
    started: list[Iterator[bytes]] = [text]

    def pieces() -> Iterator[bytes]:
        return started.pop() if started else source.pieces()

    if kind in ("excel", "zip", "utf-16"):
        next(require_svmlight(text, source.name))  # raises an error with advice
    roles = request.roles
    if is_smiles(source.name, head) and not (roles.asked or known):
        refuse_smiles(source.name, head)
    # a single column looks like svmlight (no separator) but has no index:value pairs
    text_alone = request.separator is None and request.header is None and not roles.asked
    if kind == "svmlight" and (text_alone or has_pairs(first_line(head))):
        _refuse_roles(roles, source.name)
        mark = matcher(roles.positive_labels) if roles.positive_labels else None

        def parsed() -> Iterator[Block]:
            for block in parse_pieces(
                pieces(), source.name, zero_based=request.zero_based, with_comments=True
            ):
                if request.zero_based:
                    shifted = block.rows.indices + 1
                    block = replace(block, rows=replace(block.rows, indices=shifted))
                yield block if mark is None else _marked(block, mark)

        return _Input(source.name, parsed, None, known)
    if kind in ("svmlight", "table"):
        separator = request.separator
        table = TextTable(
            source.name,
            pieces,
            separator=separator,
            header=request.header,
            decimal_comma=request.decimal_comma,
        )
        features = TableFeatures(table, roles, known)
        return _Input(source.name, features.blocks, features, features.map)
    with array_path(source, text) as path:
        arrays = open_arrays(source.name, path, kind, request.array)
    if isinstance(arrays, SparseFile):
        _refuse_roles(roles, source.name)
        whole = arrays.block
        if roles.positive_labels:
            whole = _marked(whole, matcher(roles.positive_labels))
        return _Input(source.name, lambda: whole.slices(MAX_ROWS), None, known, arrays.n_features)
    features = TableFeatures(arrays, roles, known)
    return _Input(source.name, features.blocks, features, features.map)


def _refuse_roles(roles: ColumnRoles, name: str) -> None:
    for parameter in roles.asked:
        raise DataError(
            Message(f"{{file}}: no named columns, so {{{parameter}}} cannot be used", file=name),
            "omit the option: the rows already have labels and ids",
        )


def _marked(block: Block, is_positive: Callable[[str], bool]) -> Block:
    texts = ["" if np.isnan(one) else format_number(one) for one in block.labels.tolist()]
    return replace(block, labels=np.array([float(is_positive(text)) for text in texts]))


def _write(request: ConvertRequest, rows: _Input, run: Run) -> ConvertResult:
    counted = _Counted(rows.name, run)
    form = request.format
    target = request.target or STDOUT
    targets: tuple[str, ...]
    if request.positives is not None and request.unlabeled is not None:
        targets = (request.positives, request.unlabeled)
        with ExitStack() as files:
            writers = [files.enter_context(output(path)) for path in targets]
            for block in counted(rows.blocks()):
                positive = block.labels == 1.0
                for write, mask in zip(writers, (positive, ~positive), strict=True):
                    if mask.any():
                        write(_svmlight(block.take(np.flatnonzero(mask))))
            _require_rows(request, rows, counted, both=True)
    else:
        targets = (target,)
        with ExitStack() as files:
            if form in ("npy", "npz"):
                blocks = list(counted(rows.blocks()))
                _require_rows(request, rows, counted)
                file = files.enter_context(whole_file(target))
                whole = Block.concatenate(blocks)
                width = _width(rows, counted)
                if form == "npz":
                    flags = {"labels": counted.has_labels, "ids": counted.has_ids}
                    write_npz(file, whole, width, **flags)
                else:
                    _require_dense(len(whole), width)
                    write_npy(file, whole, width)
            elif form == "svmlight":
                write = files.enter_context(output(target))
                for block in counted(rows.blocks()):
                    write(_svmlight(block))
                _require_rows(request, rows, counted)
            else:
                for _ in counted(rows.blocks()):
                    pass
                _require_rows(request, rows, counted)
                write = files.enter_context(output(target))
                lines = _CsvLines(rows, counted, "\t" if form == "tsv" else ",")
                write(lines.header())
                for block in rows.blocks():
                    write(lines.format(block))
    return ConvertResult(
        source=rows.name,
        n_rows=counted.n_rows,
        n_positives=counted.n_positives if request.roles.positive_labels else None,
        n_features=_width(rows, counted),
        targets=targets,
        notes=tuple(_notes(request, rows, counted)),
    )


def _svmlight(block: Block) -> bytes:
    """Format rows, with 0 for missing labels: a row without features would be a blank line."""
    return format_block(replace(block, labels=np.nan_to_num(block.labels)))


class _Counted:
    """Passes blocks through, counting rows, positives and features."""

    def __init__(self, name: str, run: Run) -> None:
        self._name = name
        self._run = run
        self.n_rows = self.n_positives = self.max_index = 0
        self.has_labels = self.has_ids = self.has_qids = False

    def __call__(self, blocks: Iterator[Block]) -> Iterator[Block]:
        for block in blocks:
            self.n_rows += len(block)
            self.n_positives += int((block.labels == 1.0).sum())
            self.max_index = max(self.max_index, block.rows.max_index)
            self.has_labels |= not bool(np.isnan(block.labels).all())
            self.has_ids |= any(block.comments or ())
            self.has_qids |= bool((block.qids >= 0).any())
            yield block
            self._run.progress(f"converting {self._name}", self.n_rows, None)


def _width(rows: _Input, counted: _Counted) -> int:
    if rows.named is not None:
        return max(len(rows.named.names), counted.max_index)
    return max(counted.max_index, rows.n_features or 0)


def _require_rows(
    request: ConvertRequest, rows: _Input, counted: _Counted, *, both: bool = False
) -> None:
    if not counted.n_rows:
        raise DataError(f"{rows.name}: no rows are left", "every row has a missing value")
    table = rows.table
    if table is not None and table.n_unseen and not counted.max_index:
        raise DataError(
            f"{rows.name}: no row has a feature, because none of its categories is in"
            f" {name_of(request.like or '')}",
            Message("use a map that {map:FILE} wrote for a table with the same columns"),
        )
    wanted = request.roles.positive_labels
    if wanted and not counted.n_positives:
        seen = list(rows.table.labels_seen) if rows.table is not None else []
        listed = ", ".join(text or "(none)" for text in seen[:20])
        raise DataError(
            f"{rows.name}: no row has the label {' or '.join(wanted)}",
            f"the labels are {listed}" if listed else None,
        )
    if both and counted.n_positives == counted.n_rows:
        raise DataError(
            f"{rows.name}: every row has the label {' or '.join(wanted)}; no row is unlabeled"
        )


def _require_dense(n_rows: int, width: int) -> None:
    if n_rows * width > MAX_DENSE_CELLS:
        raise DataError(
            f"a dense matrix of {n_rows:,} x {width:,} would take {8e-9 * n_rows * width:,.0f} GB",
            Message("write a sparse matrix: {to:npz}"),
        )


class _CsvLines:
    """Formats blocks as CSV, one column per feature."""

    def __init__(self, rows: _Input, counted: _Counted, separator: str) -> None:
        self._width = _width(rows, counted)
        if self._width > MAX_CSV_FEATURES:
            raise DataError(
                f"{rows.name}: {self._width:,} features; a table can have at most"
                f" {MAX_CSV_FEATURES:,} columns",
                Message("write a sparse matrix: {to:npz}"),
            )
        names = [] if rows.named is None else rows.named.names
        self._names = [*names, *(str(number + 1) for number in range(len(names), self._width))]
        self._labels, self._ids = counted.has_labels, counted.has_ids
        self._line = line_writer(separator)

    def header(self) -> bytes:
        own = ["id"] * self._ids + ["label"] * self._labels
        return self._line([*own, *self._names]).encode("utf-8", "surrogateescape")

    def format(self, block: Block) -> bytes:
        bounds: IntArray = block.rows.indptr
        indices = (block.rows.indices - 1).tolist()
        texts = [format_number(value) for value in block.rows.values.tolist()]
        lines = []
        for row in range(len(block)):
            cells = ["0"] * self._width
            for entry in range(bounds[row], bounds[row + 1]):
                cells[indices[entry]] = texts[entry]
            own = []
            if self._ids:
                own.append(block.comments[row] if block.comments is not None else "")
            if self._labels:
                label = float(block.labels[row])
                own.append("" if np.isnan(label) else format_number(label))
            lines.append(self._line(own + cells))
        return "".join(lines).encode("utf-8", "surrogateescape")


def _notes(request: ConvertRequest, rows: _Input, counted: _Counted) -> Iterator[Text]:
    table, like = rows.table, request.like
    if table is not None:
        for name, n_values in table.categories.items():
            text = "the column '{name}' is categorical: {n_values:,} features, one per value"
            if "smiles" in name.lower():
                text += "; for fingerprints use {smiles_column} {column}"
            elif n_values == counted.n_rows > 1 and like is None:
                text += ", no two rows are the same; if it contains ids, use {id_column} {column}"
            yield Message(text, name=name, n_values=n_values, column=shlex.quote(name))
        if like is None:
            yield from _doubtful_columns(table, request.roles)
            if table.categories and request.write_map is None:
                yield Message("use {map:FILE} to save the feature names, for {like:FILE} later")
        if table.n_dropped:
            shown = [*table.dropped, *(["..."] if table.n_dropped > len(table.dropped) else [])]
            why = f"a missing value or an invalid molecule ({', '.join(shown)})"
            yield f"{table.n_dropped:,} rows were dropped: {why}"
        if table.n_unseen:
            yield f"{table.n_unseen:,} values are not in {name_of(like or '')} and get no feature"
    if counted.has_qids and request.format != "svmlight":
        yield "qid: is only kept in svmlight text"
    if request.format == "npy" and (counted.has_labels or counted.has_ids):
        yield "a .npy file contains only features; .npz keeps labels and ids too"


def _doubtful_columns(table: TableFeatures, roles: ColumnRoles) -> Iterator[Text]:
    """Yield warnings about feature columns that may really be labels or row numbers."""
    for name in table.feature_columns:
        texts = []
        if roles.label is None and name.lower() in USUAL_NAMES["label_column"]:
            texts.append(
                "the column '{name}' is among the features; if it contains labels, they leak the"
                " answer: use {label_column} {column} or {drop} {column}"
            )
        if name in table.unnamed:
            texts.append(
                "the column '{name}' has no name in the file and is among the features; if it"
                " numbers the rows, use {id_column} {column} or {drop} {column}"
            )
        yield from (Message(text, name=name, column=shlex.quote(name)) for text in texts)
