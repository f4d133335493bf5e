"""svmlight text: ``[label] [qid:n] index:value ... [# comment]``, one row a line.

Reading is strict (a file is either understood whole or refused with line and column) and exact
(every number is Python's ``float()`` of its text). Blocks of rows stream in constant memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from resvm_cli.dataset import FloatArray, IntArray, Rows
from resvm_cli.errors import DataError
from resvm_cli.files import _svmlight as tokenizer
from resvm_cli.files.streams import name_of, read_pieces

ROW_CAPACITY = 1 << 15
NONZERO_CAPACITY = 1 << 18
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of a file with what else their lines said."""

    rows: Rows
    labels: FloatArray  # nan where a line has none
    qids: IntArray  # -1 where a line has none
    lines: IntArray
    comments: list[str] | None  # only where asked for

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def concatenate(cls, blocks: list[Block]) -> Block:
        return cls(
            Rows.concatenate([block.rows for block in blocks]),
            np.concatenate([block.labels for block in blocks]),
            np.concatenate([block.qids for block in blocks]),
            np.concatenate([block.lines for block in blocks]),
            None
            if any(block.comments is None for block in blocks)
            else [comment for block in blocks for comment in block.comments or ()],
        )


def read_blocks(
    path: str, *, zero_based: bool = False, with_comments: bool = False
) -> Iterator[Block]:
    """The rows of a svmlight file (``-`` for stdin), block by block as they arrive."""
    parser = Parser(name_of(path), zero_based=zero_based, with_comments=with_comments)
    found = False
    for piece in read_pieces(path):
        for block in parser.feed(piece):
            found = True
            yield block
    for block in parser.finish():
        found = True
        yield block
    if not found:
        raise DataError(
            f"{name_of(path)}: no rows", "the file is empty or holds only blank and comment lines"
        )


def read_file(path: str, *, zero_based: bool = False, with_comments: bool = False) -> Block:
    """A whole svmlight file."""
    return Block.concatenate(
        list(read_blocks(path, zero_based=zero_based, with_comments=with_comments))
    )


class Parser:
    """Bytes cut anywhere in, blocks of whole rows out."""

    def __init__(self, name: str, *, zero_based: bool = False, with_comments: bool = False) -> None:
        self._name = name
        self._zero_based = zero_based
        self._with_comments = with_comments
        self._line = 1
        self._started = False
        self._carried: list[bytes] = []
        self._ends = np.empty(ROW_CAPACITY, np.int64)
        self._labels = np.empty(ROW_CAPACITY)
        self._qids = np.empty(ROW_CAPACITY, np.int64)
        self._lines = np.empty(ROW_CAPACITY, np.int64)
        self._comments = np.empty((ROW_CAPACITY, 2), np.int64)
        self._indices = np.empty(NONZERO_CAPACITY, np.int32)
        self._values = np.empty(NONZERO_CAPACITY)

    def feed(self, piece: bytes) -> Iterator[Block]:
        """Take more bytes; give the rows that are now complete."""
        cut = piece.rfind(b"\n") + 1
        if cut == 0:
            self._carried.append(piece)
            return
        text = b"".join([*self._carried, piece[:cut]]) if self._carried else piece[:cut]
        self._carried = [piece[cut:]] if cut < len(piece) else []
        yield from self._parse(text)

    def finish(self) -> Iterator[Block]:
        """The last row, where the file does not end in a newline."""
        text = b"".join(self._carried)
        self._carried = []
        if text:
            yield from self._parse(text + b"\n")

    def _parse(self, text: bytes) -> Iterator[Block]:
        position = 0
        if not self._started:
            self._started = True
            if text.startswith(BYTE_ORDER_MARK):
                position = len(BYTE_ORDER_MARK)
        view = memoryview(text)
        while position < len(text):
            (
                status,
                n_rows,
                n_nonzeros,
                consumed,
                n_lines,
                line_start,
                token_start,
                token_end,
                previous,
            ) = tokenizer.scan(
                view[position:],
                self._zero_based,
                self._line,
                self._ends,
                self._labels,
                self._qids,
                self._lines,
                self._comments,
                self._indices,
                self._values,
            )
            if n_rows:
                yield self._block(view[position:], n_rows, n_nonzeros)
            if status == tokenizer.NONZEROS_FULL and n_rows == 0:
                self._indices = np.empty(2 * len(self._indices), np.int32)
                self._values = np.empty(2 * len(self._values))
            elif status not in (tokenizer.OK, tokenizer.ROWS_FULL, tokenizer.NONZEROS_FULL):
                token = bytes(view[position + token_start : position + token_end])
                column = token_start - line_start + 1
                where = f"{self._name}:{self._line + n_lines}:{column}"
                raise _refusal(status, where, token, previous)
            self._line += n_lines
            position += consumed

    def _block(self, text: memoryview, n_rows: int, n_nonzeros: int) -> Block:
        indptr = np.zeros(n_rows + 1, np.int64)
        indptr[1:] = self._ends[:n_rows]
        comments = None
        if self._with_comments:
            bounds = self._comments[:n_rows].tolist()
            comments = [
                bytes(text[start:end]).decode("utf-8", "surrogateescape") if start >= 0 else ""
                for start, end in bounds
            ]
        return Block(
            Rows(indptr, self._indices[:n_nonzeros].copy(), self._values[:n_nonzeros].copy()),
            self._labels[:n_rows].copy(),
            self._qids[:n_rows].copy(),
            self._lines[:n_rows].copy(),
            comments,
        )


def _refusal(status: int, where: str, token: bytes, previous: int) -> DataError:
    """The message for a line that was not understood: what is there; what was expected."""
    shown = token[:40].decode("utf-8", "backslashreplace").rstrip("\r")
    if len(token) > 40:
        shown += "..."
    index = shown.partition(":")[0]
    pair = "a pair index:value was expected"
    what, hint = {
        tokenizer.MALFORMED: (f"cannot read '{shown}'; {pair}", None),
        tokenizer.NOT_FINITE: (
            f"'{shown}' is not finite; every number must be",
            "leave unknown values out (they count as 0) or impute them first",
        ),
        tokenizer.VALUE_OVERFLOW: (
            f"the value of '{shown}' is too large for a double; at most 1.8e308 was expected",
            None,
        ),
        tokenizer.INDEX_ZERO: (
            f"index 0 in '{shown}'; indices start at 1",
            "for files that count features from 0 add --zero-based",
        ),
        tokenizer.INDEX_NEGATIVE: (f"negative index in '{shown}'; indices start at 1", None),
        tokenizer.INDEX_DESCENDS: (
            f"feature {index} comes after feature {previous}; indices must increase",
            "sort the features of each row by index",
        ),
        tokenizer.INDEX_REPEATS: (
            f"feature {index} comes twice; indices must increase",
            "keep one value for each feature of a row",
        ),
        tokenizer.INDEX_TOO_LARGE: (
            f"index {index} is too large; at most 2147483646 was expected",
            None,
        ),
        tokenizer.NUL_BYTE: (
            "a NUL byte; text was expected",
            "the file is binary, or written as UTF-16: convert it to UTF-8 text",
        ),
        tokenizer.BAD_LABEL: (
            f"cannot read '{shown}'; a numeric label or a pair index:value was expected",
            None,
        ),
        tokenizer.BAD_QID: (
            f"cannot read '{shown}'; qid:NUMBER was expected, once, before the features",
            None,
        ),
        tokenizer.NO_VALUE: (f"feature {index} has no value; {pair}", None),
    }[status]
    return DataError(f"{where}: {what}", hint)


def format_rows(rows: Rows) -> list[str]:
    """Each row as ``index:value ...`` text that reads back to the same bits."""
    # repr is the shortest decimal that reads back exactly; whole numbers lose their .0
    values = [
        number[:-2] if number.endswith(".0") else number
        for number in map(repr, rows.values.tolist())
    ]
    pairs = [f"{index}:{value}" for index, value in zip(rows.indices.tolist(), values, strict=True)]
    bounds = rows.indptr.tolist()
    return [" ".join(pairs[a:b]) for a, b in itertools.pairwise(bounds)]


def format_label(label: float) -> str:
    """A label as text, without the .0 of a whole number."""
    text = repr(float(label))
    return text[:-2] if text.endswith(".0") else text


def format_block(block: Block) -> bytes:
    """svmlight text of a block: what it says reads back exactly."""
    lines = []
    for number, features in enumerate(format_rows(block.rows)):
        parts = []
        if not np.isnan(block.labels[number]):
            parts.append(format_label(block.labels[number]))
        if block.qids[number] >= 0:
            parts.append(f"qid:{block.qids[number]}")
        if features:
            parts.append(features)
        if block.comments is not None and block.comments[number]:
            parts.append(f"# {block.comments[number]}")
        lines.append(" ".join(parts))
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape") if lines else b""
