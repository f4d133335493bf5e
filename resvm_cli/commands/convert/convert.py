"""Tables and arrays to svmlight text, and back: every source gives blocks, every target takes them.

A table streams through in one pass; means, medians and the width of a CSV take a second one. What
NumPy writes is gathered in memory first.
"""

from __future__ import annotations

import csv
import io
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from resvm_cli.errors import CommandLineError, DataError
from resvm_cli.files.array_files import SparseFile, array_file, open_arrays, write_npy, write_npz
from resvm_cli.files.atomic import output, whole_file
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
from resvm_cli.files.stdout import STDOUT
from resvm_cli.files.streams import STDIN, Source, name_of, same_source
from resvm_cli.files.svmlight import Block, format_block, format_number, parse_pieces
from resvm_cli.files.tables import TextTable
from resvm_cli.rows import IntArray
from resvm_cli.running.run import Run
from resvm_cli.tables.cells import matcher
from resvm_cli.tables.feature_map import (
    LEAST_BITS,
    MOST_BITS,
    MOST_RADIUS,
    FeatureMap,
    read_feature_map,
)
from resvm_cli.tables.features import ColumnRoles, TableFeatures

FormatName: TypeAlias = Literal["svmlight", "csv", "tsv", "npy", "npz"]
FORMATS: tuple[FormatName, ...] = ("svmlight", "csv", "tsv", "npy", "npz")
MOST_CSV_FEATURES = 1 << 17
MOST_DENSE_CELLS = 1 << 31


@dataclass(frozen=True)
class ConvertRequest:
    """A file, what its columns are, and where it goes."""

    source: str
    roles: ColumnRoles
    target: str | None = None  # None: stdout, or the two below
    positives: str | None = None
    unlabeled: str | None = None
    form: FormatName | None = None  # None: by the target's name
    write_map: str | None = None
    like: str | None = None
    separator: str | None = None
    header: bool | None = None
    decimal_comma: bool = False
    array: str | None = None
    zero_based: bool = False

    def check(self) -> None:
        """Refuse what is missing or contradictory, before any file is read."""
        if (self.positives is None) != (self.unlabeled is None):
            raise CommandLineError("-P and -U go together: one takes the positives, one the rest")
        if self.positives is not None:
            if self.target is not None:
                raise CommandLineError("-o and -P/-U exclude each other")
            if not self.roles.positive_labels:
                raise CommandLineError("-P and -U need --positive-label: which label is positive?")
            if self.format != "svmlight":
                raise CommandLineError("-P and -U are written as svmlight text")
        targets = [self.target, self.positives, self.unlabeled, self.write_map]
        named = [path for path in targets if path is not None]
        if len({os.path.realpath(path) for path in named}) < len(named):
            raise CommandLineError("two outputs have the same name")
        for path in named:
            if path != STDOUT and self.source != STDIN and same_source(self.source, path):
                raise CommandLineError(f"{path}: is the input; nothing will be overwritten")
        if self.format in ("npy", "npz") and (self.target in (None, STDOUT)):
            raise CommandLineError(f"--to {self.format} needs a file: -o NAME.{self.format}")
        if self.write_map == STDOUT:
            raise CommandLineError("--map needs the name of a file")
        if self.separator is not None and len(self.separator) != 1:
            raise CommandLineError(
                f"--separator is '{self.separator}'; one character or tab was expected"
            )
        roles = self.roles
        if not LEAST_BITS <= roles.bits <= MOST_BITS or not 0 <= roles.radius <= MOST_RADIUS:
            raise CommandLineError(
                f"--bits goes from {LEAST_BITS} to {MOST_BITS:,} and --radius from 0 to"
                f" {MOST_RADIUS}"
            )

    @property
    def format(self) -> FormatName:
        """What is written."""
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
    """What was written."""

    source: str
    n_rows: int
    n_positives: int | None
    n_features: int
    targets: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())


def convert(request: ConvertRequest, run: Run) -> ConvertResult:
    """Read a table or an array and write it anew."""
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
    """Blocks from the beginning, and what is known of them."""

    name: str
    blocks: Callable[[], Iterator[Block]]
    table: TableFeatures | None
    named: FeatureMap | None  # of --like, or of the table
    n_features: int | None = None  # None: the largest index

    def feature_map(self) -> FeatureMap:
        if self.named is None:
            raise CommandLineError("--map goes with tables: these features have no names")
        return self.named


def _open(request: ConvertRequest, source: Source, known: FeatureMap | None) -> _Input:
    head, text = with_head(source.pieces())
    kind = kind_of(head)
    started: list[Iterator[bytes]] = [text]

    def pieces() -> Iterator[bytes]:
        return started.pop() if started else source.pieces()

    if kind in ("excel", "zip", "utf-16"):
        next(require_svmlight(text, source.name))  # says what to do
    roles = request.roles
    if is_smiles(source.name, head) and not (roles.asked or known):
        refuse_smiles(source.name, head)
    # a single column has no separator to be known by, but no pairs either
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
    file = array_file(request.source, text)
    arrays = open_arrays(source.name, file, kind, request.array)
    if isinstance(arrays, SparseFile):
        _refuse_roles(roles, source.name)
        whole = arrays.block()
        if roles.positive_labels:
            whole = _marked(whole, matcher(roles.positive_labels))
        return _Input(source.name, lambda: iter([whole]), None, known, arrays.n_features)
    features = TableFeatures(arrays, roles, known)
    return _Input(source.name, features.blocks, features, features.map)


def _refuse_roles(roles: ColumnRoles, name: str) -> None:
    for option in roles.asked:
        raise DataError(
            f"{name}: has no named columns, and {option} asks for one",
            "leave the option out: its rows have their labels and ids already",
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
                    write(lines.of(block))
    return ConvertResult(
        source=rows.name,
        n_rows=counted.n_rows,
        n_positives=counted.n_positives if request.roles.positive_labels else None,
        n_features=_width(rows, counted),
        targets=targets,
        notes=tuple(_notes(request, rows, counted)),
    )


def _svmlight(block: Block) -> bytes:
    """Rows without a label get 0: one without features would otherwise be a blank line."""
    return format_block(replace(block, labels=np.nan_to_num(block.labels)))


class _Counted:
    """What goes by: rows, labels, ids and the largest index."""

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
        raise DataError(f"{rows.name}: no rows are left", "every one had a value missing")
    table = rows.table
    if table is not None and table.n_unseen and not counted.max_index:
        raise DataError(
            f"{rows.name}: no row has a feature: none of its texts is in"
            f" {name_of(request.like or '')}",
            "give the map of a table with the same columns: resvm convert with --map FILE",
        )
    wanted = request.roles.positive_labels
    if wanted and not counted.n_positives:
        seen = list(rows.table.labels_seen) if rows.table is not None else []
        there = ", ".join(text or "(none)" for text in seen[:20])
        raise DataError(
            f"{rows.name}: no row has the label {' or '.join(wanted)}",
            f"labels that are there: {there}" if there else None,
        )
    if both and counted.n_positives == counted.n_rows:
        raise DataError(
            f"{rows.name}: every row has the label {' or '.join(wanted)}; none is left as unlabeled"
        )


def _require_dense(n_rows: int, width: int) -> None:
    if n_rows * width > MOST_DENSE_CELLS:
        raise DataError(
            f"a dense matrix of {n_rows:,} x {width:,} would take {8e-9 * n_rows * width:,.0f} GB",
            "write a sparse one: --to npz",
        )


class _CsvLines:
    """Blocks as lines of CSV, every feature a column."""

    def __init__(self, rows: _Input, counted: _Counted, separator: str) -> None:
        self._width = _width(rows, counted)
        if self._width > MOST_CSV_FEATURES:
            raise DataError(
                f"{rows.name}: {self._width:,} features; a table has {MOST_CSV_FEATURES:,} columns"
                " at most",
                "write a sparse matrix: --to npz",
            )
        names = [] if rows.named is None else rows.named.names
        self._names = [*names, *(str(number + 1) for number in range(len(names), self._width))]
        self._labels, self._ids = counted.has_labels, counted.has_ids
        self._separator = separator

    def header(self) -> bytes:
        own = ["id"] * self._ids + ["label"] * self._labels
        return self._lines([[*own, *self._names]])

    def of(self, block: Block) -> bytes:
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
            lines.append(own + cells)
        return self._lines(lines)

    def _lines(self, lines: list[list[str]]) -> bytes:
        text = io.StringIO()
        csv.writer(text, delimiter=self._separator, lineterminator="\n").writerows(lines)
        return text.getvalue().encode("utf-8", "surrogateescape")


def _notes(request: ConvertRequest, rows: _Input, counted: _Counted) -> Iterator[str]:
    table = rows.table
    if table is not None:
        for name, n_values in table.categories.items():
            note = f"the column '{name}' holds texts: one feature a value, {n_values:,} of them"
            if "smiles" in name.lower():
                note += f"; for fingerprints of molecules: --smiles-column {shlex.quote(name)}"
            elif n_values == counted.n_rows > 1 and request.like is None:
                note += f", no two rows alike; if they are names: --id-column {shlex.quote(name)}"
            yield note
        if request.like is None:
            yield from _doubts(table, request.roles)
        if table.categories and request.write_map is None and request.like is None:
            yield "--map FILE keeps which feature is which text, for the next file: --like FILE"
        if table.n_dropped:
            shown = [*table.dropped, *(["..."] if table.n_dropped > len(table.dropped) else [])]
            why = f"a value is missing or no molecule ({', '.join(shown)})"
            yield f"{table.n_dropped:,} rows were left out: {why}"
        if table.n_unseen:
            yield f"{table.n_unseen:,} texts are not in {name_of(request.like or '')}: no feature"
    if counted.has_qids and request.format != "svmlight":
        yield "qid: is kept in svmlight text only"
    if request.format == "npy" and (counted.has_labels or counted.has_ids):
        yield "a .npy file holds features only; .npz keeps labels and ids too"


def _doubts(table: TableFeatures, roles: ColumnRoles) -> Iterator[str]:
    """Columns that became features and are perhaps something else."""
    for name in table.feature_columns:
        column = shlex.quote(name)
        if roles.label is None and name.lower() in USUAL_NAMES["--label-column"]:
            yield (
                f"the column '{name}' is among the features; if it holds labels, they give the"
                f" answer away: --label-column {column}, or --drop {column}"
            )
        if name in table.unnamed:
            yield (
                f"the column '{name}' has no name in the file and is among the features; if it"
                f" numbers the rows: --id-column {column}, or --drop {column}"
            )
