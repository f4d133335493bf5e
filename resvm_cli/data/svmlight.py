"""svmlight text: ``[label] [qid:n] index:value ... [# comment]``, one row per line.

Reading is strict: the first invalid line is an error that reports its line and column. It is also
exact: every number equals Python's ``float()`` of its text. Blocks are streamed in constant memory.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from functools import partial
from typing import TypeVar

import numpy as np

from resvm_cli import threads as parallel
from resvm_cli.data import _numbers
from resvm_cli.data import _svmlight as tokenizer
from resvm_cli.data.fields import whole_lines
from resvm_cli.data.streams import BYTE_ORDER_MARK, PIECE, STDIN, Source, name_of
from resvm_cli.errors import DataError
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, Rows, distinct
from resvm_cli.run import Run

Result = TypeVar("Result")
Shared = TypeVar("Shared")

ROW_CAPACITY = 1 << 15
NONZERO_CAPACITY = 1 << 18
FIRST_SPACING = 1 << 13  # bytes between two marks of an index
MAX_MARKS = 1 << 17
END = 1 << 62  # beyond any text


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of a file, with their labels, qids and comments."""

    rows: Rows
    labels: FloatArray  # nan for a line without a label
    qids: IntArray  # -1 for a line without a qid
    lines: IntArray
    starts: IntArray  # the offset of each line, in bytes from the start of the text
    comments: list[str] | None  # only if requested

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def from_rows(
        cls, rows: Rows, labels: FloatArray | None = None, comments: list[str] | None = None
    ) -> Block:
        """Create a block to write, with optional labels and comments."""
        nothing = np.full(len(rows), -1, np.int64)
        written = np.full(len(rows), np.nan) if labels is None else np.asarray(labels, np.float64)
        return cls(rows, written, nothing, nothing, nothing, comments)

    @classmethod
    def concatenate(cls, blocks: list[Block]) -> Block:
        comments = None
        if all(block.comments is not None for block in blocks):
            comments = [comment for block in blocks for comment in block.comments or ()]
        return cls(
            Rows.concatenate([block.rows for block in blocks]),
            np.concatenate([block.labels for block in blocks]),
            np.concatenate([block.qids for block in blocks]),
            np.concatenate([block.lines for block in blocks]),
            np.concatenate([block.starts for block in blocks]),
            comments,
        )

    def slices(self, max_rows: int) -> Iterator[Block]:
        if len(self) <= max_rows:
            yield self
            return
        for start in range(0, len(self), max_rows):
            yield self.take(np.arange(start, min(start + max_rows, len(self))))

    def take(self, numbers: IntArray) -> Block:
        comments = self.comments
        if comments is not None:
            comments = [comments[number] for number in numbers.tolist()]
        labels, qids = self.labels[numbers], self.qids[numbers]
        lines, starts = self.lines[numbers], self.starts[numbers]
        return Block(self.rows.take(numbers), labels, qids, lines, starts, comments)

    def require_labels(self, name: str) -> None:
        """Raise DataError for the first row without a label."""
        missing = np.flatnonzero(np.isnan(self.labels))
        if len(missing):
            raise DataError(
                f"{name}:{self.lines[missing[0]]}: the row has no label",
                "`data` needs labels; give unlabeled rows a label such as 0",
            )


@dataclass(frozen=True)
class BadLine:
    line: int
    column: int
    status: int
    token: bytes
    previous: int

    def error(self, name: str) -> DataError:
        """Return the error that says what is wrong and what was expected."""
        shown = self.token[:40].decode("utf-8", "backslashreplace").rstrip("\r")
        if len(self.token) > 40:
            shown += "..."
        what, hint = _PROBLEMS[self.status]
        if self.line == 1 and self.status == tokenizer.BAD_LABEL:
            hint = NOT_SVMLIGHT
        index = shown.partition(":")[0]
        what = what.format(shown=shown, index=index, previous=self.previous)
        return DataError(f"{name}:{self.line}:{self.column}: {what}", hint)


NOT_SVMLIGHT = (
    "is this an svmlight file? names belong at the end of a line, after a #; for a"
    " table with one column, name it: `columns='NAME'`"
)
# For each status of the tokenizer: what is wrong with the line, and how to correct it.
_PROBLEMS: dict[int, tuple[str, str | None]] = {
    tokenizer.MALFORMED: ("cannot read '{shown}'; expected an index:value pair", None),
    tokenizer.NOT_FINITE: (
        "'{shown}' is not finite",
        "leave unknown values out (they count as 0) or impute them first",
    ),
    tokenizer.VALUE_OVERFLOW: ("the value of '{shown}' is too large for a double", None),
    tokenizer.INDEX_ZERO: (
        "index 0 in '{shown}'; indices start at 1",
        "if files count features from 0, train, check or convert with `zero_based=True`",
    ),
    tokenizer.INDEX_NEGATIVE: ("negative index in '{shown}'; indices start at 1", None),
    tokenizer.INDEX_DESCENDS: (
        "feature {index} comes after feature {previous}; indices must increase",
        "sort the features of each row by index",
    ),
    tokenizer.INDEX_REPEATS: (
        "feature {index} appears twice; indices must increase",
        "keep one value per feature and row",
    ),
    tokenizer.INDEX_TOO_LARGE: ("index {index} is too large (at most 2147483646)", None),
    tokenizer.NUL_BYTE: (
        "a NUL byte; expected text",
        "the file is binary, or encoded as UTF-16: convert it to UTF-8 text",
    ),
    tokenizer.BAD_LABEL: (
        "cannot read '{shown}'; expected a numeric label or an index:value pair",
        "is this an svmlight file? names belong at the end of a line, after a #",
    ),
    tokenizer.BAD_QID: (
        "cannot read '{shown}'; expected one qid:NUMBER before the features",
        None,
    ),
    tokenizer.NO_VALUE: ("feature {index} has no value; expected an index:value pair", None),
}


def map_blocks(
    function: Callable[[Shared, Block], Result],
    shared: Shared,
    pieces: Iterable[bytes],
    name: str,
    run: Run,
    *,
    zero_based: bool,
    with_comments: bool,
    multiple: int,
    max_rows: int,
) -> Iterator[tuple[Block, Result]]:
    """Yield each block of a text with the function's result, computed in the parsing threads.

    On a cluster, workers receive text and return blocks without values. The function sees line
    numbers that are counted from the start of its piece of text. Unless the text has blank lines,
    blocks have a multiple of ``multiple`` rows, at most ``max_rows``.
    """
    texts = enumerate(whole_lines(pieces, multiple, name=name))
    parse = partial(_parse, zero_based, with_comments, False)
    work = partial(_parse_and_apply, parse, function, run.is_remote, max_rows)

    def results() -> Iterator[_Parsed]:
        for parsed, made in run.map_shared(work, shared, texts):
            waiting.extend(made)
            yield parsed

    waiting: deque[Result] = deque()
    for block in _joined(results(), name, None):
        yield block, waiting.popleft()


def parse_pieces(
    pieces: Iterable[bytes],
    name: str,
    *,
    zero_based: bool = False,
    with_comments: bool = False,
    workers: int = 0,
    on_bad_line: Callable[[BadLine], None] | None = None,
) -> Iterator[Block]:
    """Parse pieces of text into blocks of rows.

    If ``workers`` is not 0, that many threads read and parse ahead. An invalid line is an error; if
    ``on_bad_line`` is given, the line is passed to it and skipped instead.
    """
    parse = partial(_parse, zero_based, with_comments, on_bad_line is not None)
    texts = enumerate(whole_lines(pieces, name=name))
    return _joined(
        parallel.stream(parse, texts, lambda: workers) if workers else map(parse, texts),
        name,
        on_bad_line,
    )


def _joined(
    pieces: Iterable[_Parsed], name: str, on_bad_line: Callable[[BadLine], None] | None
) -> Iterator[Block]:
    """Yield the blocks of parsed pieces, with lines and offsets counted from the text's start."""
    line = offset = n_rows = 0
    for parsed in pieces:
        for block in parsed.blocks:
            n_rows += len(block)
            yield replace(block, lines=block.lines + line, starts=block.starts + offset)
        for bad in parsed.bad_lines:
            moved = replace(bad, line=bad.line + line)
            if on_bad_line is None:
                raise moved.error(name)
            on_bad_line(moved)
        line += parsed.n_lines
        offset += parsed.n_bytes
    if n_rows == 0 and on_bad_line is None:
        hint = "the file is empty or has only blank and comment lines"
        if name == name_of(STDIN):
            hint += "; did the command before the pipe fail?"
        raise DataError(f"{name}: no rows", hint)


@dataclass
class _Parsed:
    """The result of parsing one piece; lines and offsets are counted from its start."""

    n_bytes: int
    n_lines: int = 0
    blocks: list[Block] = field(default_factory=list)
    bad_lines: list[BadLine] = field(default_factory=list)


def _parse_and_apply(
    parse: Callable[[tuple[int, bytes]], _Parsed],
    function: Callable[[Shared, Block], Result],
    travels: bool,
    max_rows: int,
    shared: Shared,
    numbered: tuple[int, bytes],
) -> tuple[_Parsed, list[Result]]:
    """Parse a piece of text and apply a function to its blocks, here or on a cluster."""
    parsed = parse(numbered)
    parsed.blocks = [part for block in parsed.blocks for part in block.slices(max_rows)]
    made = [function(shared, block) for block in parsed.blocks]
    if travels:
        parsed.blocks = [replace(block, rows=Rows.empty(len(block))) for block in parsed.blocks]
    return parsed, made


class RowIndex:
    """The offsets of some lines and the number of rows before each, recorded in the first pass."""

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._rows: list[int] = []
        self._spacing = FIRST_SPACING
        self._next = 0
        self.n_rows = 0

    def add(self, starts: IntArray) -> None:
        """Add rows whose lines start at these ascending offsets."""
        if len(starts):
            wanted = np.arange(self._next, int(starts[-1]) + 1, self._spacing)
            if len(wanted):
                marked = distinct(np.searchsorted(starts, wanted))
                self._mark(starts[marked].tolist(), (self.n_rows + marked).tolist())
            self.n_rows += len(starts)

    def _mark(self, offsets: list[int], rows: list[int]) -> None:
        self._offsets += offsets
        self._rows += rows
        if len(self._offsets) > MAX_MARKS:
            self._offsets, self._rows = self._offsets[::2], self._rows[::2]
            self._spacing *= 2
        self._next = self._offsets[-1] + self._spacing

    def spans(self, numbers: IntArray) -> tuple[list[tuple[int, int]], IntArray]:
        """Return the bounds of the parts of the text that contain these ascending rows.

        The second result is the position of each row among all rows of these parts.
        """
        offsets, rows = np.array([*self._offsets, END]), np.array([*self._rows, self.n_rows])
        which = np.searchsorted(rows[:-1], numbers, side="right") - 1
        parts, part_of = np.unique(which, return_inverse=True)
        sizes = rows[parts + 1] - rows[parts]
        before = np.cumsum(sizes) - sizes
        within = numbers - rows[which]
        bounds = list(zip(offsets[parts].tolist(), offsets[parts + 1].tolist(), strict=True))
        return bounds, before[part_of] + within


def parse_spans(
    source: Source, bounds: Iterable[tuple[int, int]], *, zero_based: bool
) -> Iterator[Block]:
    """Parse the parts of a text between these pairs of offsets."""
    texts = join_texts(source.spans(bounds), PIECE)
    return parse_pieces(texts, source.name, zero_based=zero_based)


def join_texts(texts: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Join texts into pieces of at least ``size`` bytes, except for the last one."""
    waiting: list[bytes] = []
    length = 0
    for text in texts:
        waiting.append(text)
        length += len(text)
        if length >= size:
            yield b"".join(waiting)
            waiting, length = [], 0
    yield b"".join(waiting)


class _Scratch(threading.local):
    """The tokenizer's output arrays, reused by each thread."""

    def __init__(self) -> None:
        self.per_row = [np.empty(ROW_CAPACITY, kind) for kind in ("i8", "f8", "i8", "i8", "i8")]
        self.comments = np.empty((ROW_CAPACITY, 2), np.int64)
        self.resize(NONZERO_CAPACITY)

    def resize(self, capacity: int) -> None:
        self.indices = np.empty(capacity, np.int32)
        self.values = np.empty(capacity)


_scratch = _Scratch()


def _parse(
    zero_based: bool, with_comments: bool, tolerant: bool, numbered: tuple[int, bytes]
) -> _Parsed:
    """Parse a numbered piece of complete lines, up to the first invalid one unless ``tolerant``."""
    number, text = numbered
    # a byte-order mark may precede the first line only
    position = len(BYTE_ORDER_MARK) if number == 0 and text.startswith(BYTE_ORDER_MARK) else 0
    parsed = _Parsed(len(text))
    scratch = _scratch
    view = memoryview(text)
    line = 1
    while position < len(text):
        room = (*scratch.per_row, scratch.comments, scratch.indices, scratch.values)
        found = tokenizer.scan(view[position:], zero_based, line, *room)
        status, n_rows, n_nonzeros, consumed, n_lines = found[:5]
        line_start, token_start, token_end, previous = found[5:]
        if n_rows:
            parsed.blocks.append(
                _block(view[position:], scratch, n_rows, n_nonzeros, position, with_comments)
            )
        line += n_lines
        if status == tokenizer.NONZEROS_FULL and n_rows == 0:
            scratch.resize(2 * len(scratch.indices))
        elif status not in (tokenizer.OK, tokenizer.ROWS_FULL, tokenizer.NONZEROS_FULL):
            token = bytes(view[position + token_start : position + token_end])
            column = token_start - line_start + 1
            parsed.bad_lines.append(BadLine(line, column, status, token, previous))
            if not tolerant:
                break
            line += 1
            consumed = text.index(b"\n", position + token_end) + 1 - position
        position += consumed
    parsed.n_lines = line - 1
    return parsed


def _block(
    text: memoryview,
    scratch: _Scratch,
    n_rows: int,
    n_nonzeros: int,
    offset: int,
    with_comments: bool,
) -> Block:
    ends, labels, qids, lines, starts = (array[:n_rows] for array in scratch.per_row)
    indptr = np.zeros(n_rows + 1, np.int64)
    indptr[1:] = ends
    comments = None
    if with_comments:
        comments = [""] * n_rows
        for row in np.flatnonzero(scratch.comments[:n_rows, 0] >= 0).tolist():
            start, end = scratch.comments[row].tolist()
            comments[row] = bytes(text[start:end]).decode("utf-8", "surrogateescape")
    return Block(
        Rows(indptr, scratch.indices[:n_nonzeros].copy(), scratch.values[:n_nonzeros].copy()),
        labels.copy(),
        qids.copy(),
        lines.copy(),
        starts + offset,
        comments,
    )


def format_rows(rows: Rows) -> list[bytes]:
    """Format each row as ``index:value ...`` text that reads back exactly."""
    ends = np.empty(len(rows), np.int64)
    text = _numbers.rows(rows.indptr, rows.indices, rows.values, ends)
    return [text[a:b] for a, b in itertools.pairwise([0, *ends.tolist()])]


def format_number(number: float) -> str:
    """Return the shortest text that reads back exactly; integers have no ``.0``."""
    text = repr(float(number))
    return text[:-2] if text.endswith(".0") else text


def format_block(block: Block) -> bytes:
    """Format a block as svmlight text that reads back exactly."""
    labels = _numbers.lines(None, np.ascontiguousarray(block.labels), 1, b" ").splitlines()
    columns = [[b"" if text == b"nan" else text.removesuffix(b".0") for text in labels]]
    if (block.qids >= 0).any():
        columns.append([b"qid:%d" % qid if qid >= 0 else b"" for qid in block.qids.tolist()])
    columns.append(format_rows(block.rows))
    if block.comments is not None:
        comments = (f"# {comment}" if comment else "" for comment in block.comments)
        columns.append([comment.encode("utf-8", "surrogateescape") for comment in comments])
    lines = [b" ".join(filter(None, parts)) for parts in zip(*columns, strict=True)]
    return b"\n".join([*lines, b""])
