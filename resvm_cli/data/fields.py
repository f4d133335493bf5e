"""Lines of text and their fields: split and join them, parse numbers, read columns in C."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from resvm_cli import threads as parallel
from resvm_cli.data import _svmlight as tokenizer
from resvm_cli.errors import DataError
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray

# Patterns are strings, which Python compiles when they are first used.
ROW_COMMENT = rb"(?m)^[^\S\n]*[^\s#][^#\n]*#?([^\n]*)"
READING_THREADS = 2
# About four million values. Without a limit, a binary file would be read into memory as one line.
MAX_LINE = 1 << 26
MIN_LINE = 2  # bytes: a digit and a newline
BLANKS = "blanks"
COMMA_NUMBER = r"[-+]?[0-9]*,[0-9]+(?:[eE][-+]?[0-9]+)?"
GROUPED_NUMBER = r"[-+]?[0-9]{1,3}(?:[.,' ][0-9]{3})+(?:[.,][0-9]*)?"
SEPARATOR_LINE = r'"?sep=([^\s"]|[\t ])"?'  # written by Excel before the column names
MISSING_WORDS = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "?", "missing"})

# Our limit on line length already protects us; the csv module's default is lower.
csv.field_size_limit(MAX_LINE + 1)


def whole_lines(
    pieces: Iterable[bytes], multiple: int = 1, *, name: str = "the input"
) -> Iterator[bytes]:
    """Regroup text into pieces of complete lines; add a newline at the end if it is missing.

    The number of lines in a long piece is a multiple of ``multiple``.
    """
    carried: list[bytes] = []
    n_carried = 0  # complete lines carried over: fewer than the multiple
    size = 0  # bytes carried over
    for piece in pieces:
        cut = piece.rfind(b"\n") + 1
        if cut == 0:
            carried.append(piece)
            size += len(piece)
            if size > MAX_LINE:
                raise DataError(
                    f"{name}: a line is longer than {MAX_LINE:,} bytes",
                    "expected text with one row per line; is the file binary?",
                )
            continue
        view = memoryview(piece)
        beyond = 0
        if multiple > 1:
            newlines = np.frombuffer(piece, np.uint8, cut) == ord("\n")
            n_lines = n_carried + int(np.count_nonzero(newlines))
            beyond = n_lines % multiple if n_lines > multiple else 0
            for _ in range(beyond):
                cut = piece.rfind(b"\n", 0, cut - 1) + 1
        whole = cut == len(piece) and not carried
        yield piece if whole else b"".join([*carried, view[:cut]])
        carried = [piece[cut:]] if cut < len(piece) else []
        size = len(piece) - cut
        n_carried = beyond
    rest = b"".join(carried)
    if rest:
        yield rest if rest.endswith(b"\n") else rest + b"\n"


def text_lines(pieces: Iterable[bytes], name: str, before: int = 0) -> Iterator[tuple[int, str]]:
    """Yield numbered lines without their newlines; invalid UTF-8 bytes become surrogates."""
    number = before
    for part in whole_lines(pieces, name=name):
        for line in part.decode("utf-8", "surrogateescape").split("\n")[:-1]:
            number += 1
            yield number, line


def fields_of(line: str, separator: str, where: str) -> list[str]:
    """Split one line into fields; ``where`` locates it in error messages."""
    try:
        return next(csv.reader([line.removesuffix("\r")], delimiter=separator), [])
    except csv.Error:
        raise DataError(
            f"{where}: a carriage return in the middle of a field",
            "lines must end in a newline; a field with a carriage return needs quotes",
        ) from None


def line_writer(separator: str) -> Callable[[Iterable[object]], str]:
    """Return a function that joins fields into a line, quoted if necessary; None is empty."""
    target = io.StringIO()
    # before Python 3.13, \r and \n are quoted only if they are part of the line terminator
    write = csv.writer(target, delimiter=separator, lineterminator="\r\n").writerow

    def line(fields: Iterable[object]) -> str:
        target.seek(0)
        target.truncate()
        write(fields)
        return target.getvalue()[:-2] + "\n"

    return line


def read_number(text: str, decimal_comma: bool = False) -> float:
    """Parse a number like float(), but without Python's extensions (raises ValueError)."""
    if not is_plain(text) or (decimal_comma and "." in text):  # "." separates thousands
        raise ValueError(text)
    return float(text.replace(",", ".") if decimal_comma else text)


def is_plain(text: str) -> bool:
    """Whether a text is ASCII without underscores; float() is less strict."""
    return "_" not in text and text.isascii()


def is_number(text: str, decimal_comma: bool = False) -> bool:
    try:
        read_number(text, decimal_comma)
    except ValueError:
        return False
    return True


def is_missing(cell: str) -> bool:
    """Whether a cell is empty or one of the usual words for a missing value."""
    return cell.strip().lower() in MISSING_WORDS


def class_of(
    positive_labels: Iterable[str], negative_labels: Iterable[str]
) -> Callable[[str], float]:
    """Return a function that turns a label into 1 (positive), -1 (known negative) or 0.

    Labels that are numbers are compared by value.
    """
    classes = {
        **{_label_key(text): -1.0 for text in negative_labels},
        **{_label_key(text): 1.0 for text in positive_labels},
    }
    return lambda text: classes.get(_label_key(text), 0.0)


def _label_key(text: str) -> str | float:
    """Return the value of a number, in which integers are exact; other text is its own key."""
    if not is_number(text):
        return text
    try:
        return int(text)
    except ValueError:
        number = float(text)
        return text if math.isnan(number) else number


@dataclass(frozen=True)
class Layout:
    """How to split lines into fields, and which fields to read (counted from 0)."""

    separator: str  # one character, or BLANKS: any whitespace, with # starting a comment
    first: int
    second: int | None = None
    what: str = "a number"  # the expected content, for messages
    if_empty: str | None = None  # the advice for an empty field
    row_id: int | None = None  # the column of ids; with BLANKS, ids are trailing comments


def read_columns(
    pieces: Iterable[bytes],
    name: str,
    layout: Layout,
    *,
    lines_before: int = 0,
    ids: list[str] | None = None,
) -> tuple[FloatArray, FloatArray | None]:
    """Read one or two numeric columns from every line; a field that is not a number is an error.

    If there are ids, each row's id (or "") is appended to ``ids``, if given.
    """
    firsts, seconds = [np.zeros(0)], [np.zeros(0)]
    line = lines_before
    texts = whole_lines(pieces, name=name)
    if ids is not None and (layout.separator == BLANKS or layout.row_id is not None):
        texts = _collect_ids(texts, name, layout, line, ids)
    parse = partial(_parse_columns, layout)
    for first, second, n_lines, bad in parallel.stream(parse, texts, lambda: READING_THREADS):
        firsts.append(first)
        seconds.append(second)
        line += n_lines
        if bad is not None:
            raise _bad_field(name, line + 1, layout, *bad)
    both = layout.second is not None
    return np.concatenate(firsts), np.concatenate(seconds) if both else None


def _collect_ids(
    texts: Iterable[bytes], name: str, layout: Layout, n_before: int, ids: list[str]
) -> Iterator[bytes]:
    """Yield the texts unchanged, and append the id of each row to the list."""
    for text in texts:
        if layout.row_id is None:
            if comments := re.findall(ROW_COMMENT, text):
                joined = b"\n".join(comments).decode("utf-8", "surrogateescape")
                ids += map(str.strip, joined.split("\n"))
        else:
            for number, line in text_lines([text], name, n_before):
                if line.strip():
                    fields = fields_of(line, layout.separator, f"{name}:{number}")
                    ids.append(fields[layout.row_id] if layout.row_id < len(fields) else "")
            n_before += text.count(b"\n")
        yield text


def _parse_columns(
    layout: Layout, text: bytes
) -> tuple[FloatArray, FloatArray, int, tuple[int, int, bytes] | None]:
    """Return both columns, the number of lines, and the status, column and token of a bad field."""
    capacity = len(text) // MIN_LINE + 1
    firsts, seconds = np.empty(capacity), np.empty(0 if layout.second is None else capacity)
    code = 0 if layout.separator == BLANKS else ord(layout.separator)
    second = -1 if layout.second is None else layout.second
    status, n_rows, _, n_lines, line_start, start, end = tokenizer.columns(
        text, code, layout.first, second, firsts, seconds
    )
    bad = None
    if status != tokenizer.OK:
        bad = (status, start - line_start + 1, text[start:end])
    return firsts[:n_rows].copy(), seconds[:n_rows].copy(), n_lines, bad


def _bad_field(
    name: str, line: int, layout: Layout, status: int, column: int, token: bytes
) -> DataError:
    where = f"{name}:{line}:{column}"
    shown = token[:40].decode("utf-8", "backslashreplace").rstrip("\r")
    if status == tokenizer.NUL_BYTE:
        return DataError(f"{where}: a NUL byte; expected text", "the file is binary")
    if layout.if_empty is not None and not shown:
        return DataError(f"{where}: the field is empty; expected {layout.what}", layout.if_empty)
    if status == tokenizer.NO_VALUE:
        return DataError(f"{where}: the line is too short; expected {layout.what}")
    if status == tokenizer.NOT_FINITE:
        return DataError(
            f"{where}: '{shown}' cannot be ranked; expected {layout.what}",
            "find the cause, or remove such rows from both files",
        )
    if status == tokenizer.VALUE_OVERFLOW:
        return DataError(f"{where}: '{shown}' is too large for a double")
    return DataError(f"{where}: cannot read '{shown}'; expected {layout.what}")
