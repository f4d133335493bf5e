"""Predictions read back: every format that predict writes, and bare numbers.

What a file is, its first line tells. Numbers go through the tokenizer; only where ids are wanted,
and for JSON lines, does Python look at each line.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError
from resvm_cli.files.delimited import fields_of
from resvm_cli.files.json_objects import unique_names
from resvm_cli.files.numeric_columns import BLANKS, Layout, read_columns
from resvm_cli.files.streams import BYTE_ORDER_MARK, STDIN, name_of, read_pieces, text_lines
from resvm_cli.rows import FloatArray

VALUE, LABEL, ID = "decision_value", "label", "id"
RANK_COLUMN = "rank"  # the rows are in the order of their values, not in that of their file
OUT_OF_BAG_COLUMN = "members"  # by how many members a row was judged: those whose bags lack it
Provenance: TypeAlias = Literal["held-out", "out-of-bag", "trained-on", "unknown"]
PROVENANCES: tuple[Provenance, ...] = ("held-out", "out-of-bag", "trained-on", "unknown")
_STATEMENT = re.compile(rb"#\s*values:\s*(held-out|out-of-bag|trained-on)\s*$")
_DECIMAL = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WORD = re.compile(rf"{_DECIMAL.pattern}|[-+]?(?:nan|inf(?:inity)?)", re.IGNORECASE | re.ASCII)
_INFINITY = re.compile(r"[-+]?inf(?:inity)?", re.IGNORECASE | re.ASCII)
LONGEST_HEAD = 1 << 24
EXPECTED = (
    "expected: what resvm predict writes (text, or tsv, csv, jsonl with its column names),"
    " or one number a line"
)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Decision values in the order of the file, and what else it says."""

    name: str
    values: FloatArray
    called: npt.NDArray[np.bool_] | None  # where its labels say positive; None without labels
    ids: list[str] | None
    provenance: Provenance
    ranked: bool = False  # what rank wrote, best first


@dataclass(frozen=True)
class _Head:
    """What the first lines say of a file."""

    form: Literal["text", "bare", "tsv", "csv", "jsonl"]
    names: list[str]  # of the columns, where they have names
    provenance: Provenance
    n_lines: int  # before the first row
    rest: bytes  # what has been read from the first row on


def read_predictions(path: str, *, with_ids: bool = False) -> Predictions:
    """A prediction file (``-`` for stdin), whole."""
    name = name_of(path)
    pieces = read_pieces(path)
    head = _head(pieces, name)
    text = chain([head.rest], pieces)
    ids: list[str] | None = None
    labels: npt.NDArray[np.floating[Any]] | None
    ranked = RANK_COLUMN in head.names
    if head.form == "jsonl":
        provenance, values, called, ids, ranked = _json_lines(text, name, head, with_ids)
    else:
        provenance = head.provenance
        if with_ids:
            ids, values, labels = _named_rows(text, name, head)
        else:
            layout = _layout(head)
            values, labels = read_columns(text, name, layout, lines_before=head.n_lines)
        called = None if labels is None else _called(labels, name)
    if not len(values):
        _refuse_empty(name)
    return Predictions(name, values, called, ids, provenance, ranked)


def _head(pieces: Iterator[bytes], name: str) -> _Head:
    """Read on until the first line that is neither blank nor a comment."""
    text = next(pieces, b"").removeprefix(BYTE_ORDER_MARK)
    provenance: Provenance = "unknown"
    n_lines = 0
    while True:
        line, newline, rest = text.partition(b"\n")
        if not newline:
            more = next(pieces, b"")
            if more and len(text) < LONGEST_HEAD:
                text += more
                continue
        if line.strip() and not line.lstrip().startswith(b"#"):
            break
        if statement := _STATEMENT.match(line.strip()):
            provenance = statement.group(1).decode()  # type: ignore[assignment]
        if not newline:
            _refuse_empty(name)
        n_lines += 1
        text = rest
    if len(line) > LONGEST_HEAD:
        where = f"{name}:{n_lines + 1}"
        raise DataError(f"{where}: not a prediction file: a line without end", EXPECTED)
    first = line.decode("utf-8", "backslashreplace").rstrip("\r")
    if first.lstrip().startswith("{"):
        return _Head("jsonl", [], provenance, n_lines, text)
    for form, separator in (("tsv", "\t"), ("csv", ",")):
        if VALUE not in first:
            break
        names = fields_of(first, separator, f"{name}:{n_lines + 1}")
        if VALUE in names:
            if OUT_OF_BAG_COLUMN in names and provenance == "unknown":
                provenance = "out-of-bag"
            return _Head(form, names, provenance, n_lines + 1, rest)  # type: ignore[arg-type]
    fields = first.partition("#")[0].split()
    if fields and all(_WORD.fullmatch(field) for field in fields[:2]):
        return _Head("bare" if len(fields) == 1 else "text", [], provenance, n_lines, text)
    raise _wrong_kind(name, n_lines + 1, first, fields)


def _wrong_kind(name: str, line: int, first: str, fields: list[str]) -> DataError:
    if len(fields) > 1 and re.fullmatch(r"\d+:\S+", fields[1]):
        return DataError(
            f"{name}: a svmlight file, not predictions",
            "predictions come first, then the rows' labels: score test.pred --labels test.svm",
        )
    shown = first if len(first) <= 60 else first[:60] + "..."
    return DataError(f"{name}:{line}: not a prediction file: '{shown}'", EXPECTED)


def _refuse_empty(name: str) -> NoReturn:
    hint = "the file is empty"
    if name == name_of(STDIN):
        hint = "did the command before the pipe fail?"
    raise DataError(f"{name}: no predictions", hint)


def _number(text: str) -> float | None:
    """What the tokenizer takes for a number; None for all else that float() would take."""
    if _DECIMAL.fullmatch(text):
        number = float(text)
        return None if math.isinf(number) else number
    return float(text) if _INFINITY.fullmatch(text) else None


def _layout(head: _Head) -> Layout:
    what = "a decision value"
    if head.form == "bare":
        return Layout(BLANKS, 0, what=what)
    if head.form == "text":
        return Layout(BLANKS, 1, 0, "a label and a decision value")
    separator = "\t" if head.form == "tsv" else ","
    label = head.names.index(LABEL) if LABEL in head.names else None
    return Layout(separator, head.names.index(VALUE), label, what)


def _called(labels: npt.NDArray[np.floating[Any]], name: str) -> npt.NDArray[np.bool_]:
    called = labels == 1
    other = np.flatnonzero(~called & (labels != -1))
    if len(other):
        raise DataError(
            f"{name}: row {other[0] + 1} is labelled {labels[other[0]]:g}; predict writes 1 or -1",
            EXPECTED,
        )
    return np.asarray(called)


def _lines(text: Iterable[bytes], name: str, before: int) -> Iterator[tuple[int, str]]:
    for number, line in text_lines(text, name, before):
        if line.strip():
            yield number, line.rstrip("\r")


def _named_rows(
    text: Iterable[bytes], name: str, head: _Head
) -> tuple[list[str], FloatArray, FloatArray | None]:
    """Ids with values and labels, row by row."""
    ids: list[str] = []
    values: list[float] = []
    labels: list[float] = []
    layout = _layout(head)
    columns = head.form in ("tsv", "csv")
    if columns and ID not in head.names:
        _refuse_nameless(name)
    place = head.names.index(ID) if columns else 0
    for number, line in _lines(text, name, head.n_lines):
        if columns:
            fields = fields_of(line, layout.separator, f"{name}:{number}")
            ids.append(fields[place] if place < len(fields) else "")
        else:
            before, _, comment = line.partition("#")
            if not before.strip():
                continue
            fields = before.split()
            ids.append(comment.strip())
        values.append(_field(fields, layout.first, f"{name}:{number}", layout.what))
        if layout.second is not None:
            labels.append(_field(fields, layout.second, f"{name}:{number}", layout.what))
    if ids and not any(ids):
        _refuse_nameless(name)
    return ids, np.array(values), np.array(labels) if layout.second is not None else None


def _refuse_nameless(name: str) -> NoReturn:
    raise DataError(
        f"{name}: has no ids to join by",
        "run predict with --ids, on rows that end in their names (# name)",
    )


def _field(fields: list[str], place: int, where: str, what: str) -> float:
    number = _number(fields[place]) if place < len(fields) else None
    if number is None or math.isnan(number):
        shown = fields[place] if place < len(fields) else ""
        raise DataError(f"{where}: cannot read '{shown}'; {what} was expected")
    return number


def _json_record(line: str) -> dict[str, Any] | None:
    """A JSON object with a number as its decision value."""
    try:
        record = _DECODER.decode(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    value = record.get(VALUE)
    if type(value) is int:
        return record if abs(value) <= sys.float_info.max else None
    return record if type(value) is float else None


def _json_number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("too large for a double")
    return number


# one for all lines: json.loads would make another for each
_DECODER = json.JSONDecoder(parse_float=_json_number, object_pairs_hook=unique_names)


def _json_label(label: Any, where: str) -> float:
    if type(label) not in (int, float) or label not in (1, -1):
        shown = json.dumps(label)[:40]
        raise DataError(f"{where}: is labelled {shown}; predict writes 1 or -1", EXPECTED)
    return float(label)


def _json_lines(
    text: Iterable[bytes], name: str, head: _Head, with_ids: bool
) -> tuple[Provenance, FloatArray, npt.NDArray[np.bool_] | None, list[str] | None, bool]:
    values: list[float] = []
    labels: list[float] = []
    ids: list[str] = []
    provenance = head.provenance
    ranked = False
    for number, line in _lines(text, name, head.n_lines):
        where = f"{name}:{number}"
        record = _json_record(line)
        if record is None:
            raise DataError(f"{where}: not a JSON object with a number {VALUE}", EXPECTED)
        values.append(float(record[VALUE]))
        if math.isnan(values[-1]):
            raise DataError(f"{where}: nan has no rank; a decision value was expected")
        if LABEL in record:
            labels.append(_json_label(record[LABEL], where))
        if len(labels) not in (0, len(values)):
            raise DataError(f"{where}: a label is on some rows and not on all", EXPECTED)
        if with_ids:
            ids.append(str(record.get(ID, "")))
        if OUT_OF_BAG_COLUMN in record and provenance == "unknown":
            provenance = "out-of-bag"
        ranked |= RANK_COLUMN in record
    if with_ids and not any(ids):
        _refuse_nameless(name)
    called = np.array(labels) == 1 if labels else None
    return provenance, np.array(values), called, ids if with_ids else None, ranked
