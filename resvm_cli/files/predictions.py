"""Write and read prediction files in every format of resvm predict.

Numbers are written so that they read back exactly. A file's format is detected from its first line.
The C tokenizer reads the numbers; Python handles individual lines only for ids and JSON.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

import numpy as np

from resvm_cli.errors import DataError, Message
from resvm_cli.files import _numbers
from resvm_cli.files.fields import (
    BLANKS,
    Layout,
    fields_of,
    is_number,
    line_writer,
    read_columns,
    text_lines,
    whole_lines,
)
from resvm_cli.files.json_files import parse_object
from resvm_cli.files.streams import STDIN, as_unicode, name_of, text_pieces
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray

if TYPE_CHECKING:
    import numpy.typing as npt

FormatName: TypeAlias = Literal["text", "tsv", "csv", "jsonl"]
SEPARATORS = {"text": " ", "tsv": "\t", "csv": ","}
VALUE, LABEL, ID = "decision_value", "label", "id"
DEFAULT_THRESHOLD = 0.5  # for files without labels
RANK_COLUMN = "rank"  # if present, rows are sorted by value, not in file order
MAX_HEAD = 1 << 24
EXPECTED = (
    "expected the output of resvm predict (text, or tsv, csv, jsonl with column names),"
    " or one number per line"
)
NO_VALUE = Message(
    "rank leaves it empty if every member was trained on the row; use more members"
    " ({n_models}), or remove such rows, which come last in the ranking"
)


@dataclass(frozen=True, eq=False)
class PredictionBlock:
    """Predictions for some rows; columns that were not requested are None."""

    labels: IntArray
    decision_values: FloatArray
    votes: FloatArray | None
    member_values: FloatArray | None
    ids: list[str] | None
    probability: FloatArray | None = None  # nan if unknown

    @property
    def columns(self) -> dict[str, IntArray | FloatArray]:
        """The columns that were requested, except ids."""
        found: dict[str, IntArray | FloatArray] = {
            "label": self.labels,
            "decision_value": self.decision_values,
        }
        if self.votes is not None:
            found["votes"] = self.votes
        if self.member_values is not None:
            found |= {f"member_{n}": column for n, column in enumerate(self.member_values.T)}
        if self.probability is not None:
            found["probability"] = self.probability
        return found


def format_header(form: FormatName, block: PredictionBlock) -> bytes:
    """Return the header line, or nothing for formats without one."""
    if form not in ("tsv", "csv"):
        return b""
    names = ["id"] if block.ids is not None else []
    return _encoded(line_writer(SEPARATORS[form])([*names, *block.columns]))


def format_block(form: FormatName, block: PredictionBlock) -> bytes:
    if form == "jsonl":
        return _format_json(block)
    given = (block.decision_values, block.votes, block.member_values, block.probability)
    columns = [column for column in given if column is not None]
    unknown = block.probability is not None and bool(np.isnan(block.probability).any())
    if unknown:
        columns.pop()
    table = np.ascontiguousarray(np.column_stack(columns))
    labels = np.ascontiguousarray(block.labels, np.int64)
    text = _numbers.lines(labels, table, table.shape[1], SEPARATORS[form].encode("ascii"))
    if unknown:  # in all rows or none; text needs a word here, as its separator is a blank
        cell = SEPARATORS[form] + ("nan" if form == "text" else "")
        text = text.replace(b"\n", f"{cell}\n".encode("ascii"))
    if block.ids is None:
        return text
    lines = zip(block.ids, text.decode("ascii").splitlines(), strict=True)
    if form == "text":  # after a #, as in the input, so that ids may contain blanks
        named = [f"{line} # {name}\n" if name else f"{line} #\n" for name, line in lines]
    else:  # an empty second field adds the separator after the id
        write = line_writer(SEPARATORS[form])
        named = [f"{write((name, ''))[:-1]}{line}\n" for name, line in lines]
    return _encoded("".join(named))


def _format_json(block: PredictionBlock) -> bytes:
    columns: dict[str, list[Any]] = {}
    if block.ids is not None:
        columns["id"] = [*map(as_unicode, block.ids)]
    columns |= {"label": block.labels.tolist(), "decision_value": block.decision_values.tolist()}
    if block.votes is not None:
        columns["votes"] = block.votes.tolist()
    if block.member_values is not None:
        columns["member_values"] = block.member_values.tolist()
    if block.probability is not None:
        chances = block.probability.tolist()
        columns["probability"] = [None if math.isnan(chance) else chance for chance in chances]
    records = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return _encoded("".join(f"{json.dumps(record)}\n" for record in records))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@dataclass(frozen=True, eq=False)
class Predictions:
    """Decision values in file order, with labels and ids if the file has them."""

    name: str
    values: FloatArray
    predicted_positive: npt.NDArray[np.bool_] | None  # from the labels; None without labels
    ids: list[str] | None
    ranked: bool = False  # written by rank, best first

    def implied_threshold(self) -> tuple[float, str]:
        """Return the threshold that the predicted labels imply, and its origin."""
        predicted = self.predicted_positive
        if predicted is None:
            return DEFAULT_THRESHOLD, "the default"
        lowest = float(self.values[predicted].min(initial=np.inf))
        highest = float(self.values[~predicted].max(initial=-np.inf))
        if highest >= lowest:
            return DEFAULT_THRESHOLD, "the default: no threshold separates the file's labels"
        for usual in (DEFAULT_THRESHOLD, 0.0):
            if highest <= usual < lowest:
                return usual, "the file's labels"
        if np.isfinite(highest):
            return highest, "the file's labels"
        return float(np.nextafter(lowest, -np.inf)), "the file's labels"

    def in_order_of(self, ids: list[str], name: str, hint: str | None = None) -> Predictions:
        """Return the rows in the order of ``ids``, which come from the file ``name``."""
        assert self.ids is not None
        index = {row_id: number for number, row_id in enumerate(ids)}
        if len(index) < len(ids):
            repeated = Counter(ids).most_common(1)[0][0]
            what = f"the id '{repeated}' is not unique" if repeated else "some rows have no id"
            raise DataError(f"{name}: {what}, so files cannot be joined", hint)
        if len(self.ids) != len(ids) or set(self.ids) != index.keys():
            apart = set(self.ids) ^ index.keys()
            what = "an id is not unique"
            if apart:
                what = f"{len(apart):,} ids are in only one of them, such as '{max(apart)}'"
            raise DataError(f"{name} and {self.name} do not have the same rows: {what}", hint)
        order = np.empty(len(index), np.int64)
        order[[index[row_id] for row_id in self.ids]] = np.arange(len(index))
        predicted = self.predicted_positive
        predicted = None if predicted is None else predicted[order]
        return replace(self, values=self.values[order], predicted_positive=predicted, ids=ids)


@dataclass(frozen=True)
class _Head:
    """The format of a file, and the text read to detect it."""

    layout: Layout | None  # None: JSON lines
    names: list[str]  # column names, if any
    n_lines: int  # lines before the first row
    rest: bytes  # text already read, starting at the first row


def read_predictions(path: str, *, with_ids: bool = False, require_ids: bool = True) -> Predictions:
    """Read a prediction file (``-`` for stdin), optionally with ids.

    With both ``with_ids`` and ``require_ids``, a file without ids is an error.
    """
    name = name_of(path)
    pieces = text_pieces(path)
    head = _head(pieces, name)
    text: Iterator[bytes] = chain([head.rest], pieces)
    ids: list[str] | None = None
    labels: npt.NDArray[np.floating[Any]] | None
    ranked = RANK_COLUMN in head.names
    if head.layout is None:
        values, positive, ids, ranked = _json_lines(text, name, head, with_ids)
    else:
        comments: list[str] | None = None
        if with_ids and not head.names:
            ids = comments = []
        elif with_ids and ID in head.names:
            ids = []
            text = _noting_ids(text, name, head, head.layout.separator, ids)
        values, labels = read_columns(
            text, name, head.layout, lines_before=head.n_lines, comments=comments
        )
        positive = None if labels is None else _are_positive(labels, name)
    if not len(values):
        _refuse_empty(name)
    if not any(ids or ()):
        ids = None
        if with_ids and require_ids:
            raise DataError(
                f"{name}: contains no ids to join by",
                Message("run predict with {ids:True} on rows that end in an id (# name)"),
            )
    return Predictions(name, values, positive, ids, ranked)


def _head(pieces: Iterator[bytes], name: str) -> _Head:
    """Read up to the first line that is neither blank nor a comment."""
    text = next(pieces, b"")
    n_lines = 0
    while True:
        line, newline, rest = text.partition(b"\n")
        if not newline:
            more = next(pieces, b"")
            if more and len(text) < MAX_HEAD:
                text += more
                continue
        if line.strip() and not line.lstrip().startswith(b"#"):
            break
        if not newline:
            _refuse_empty(name)
        n_lines += 1
        text = rest
    if len(line) > MAX_HEAD:
        where = f"{name}:{n_lines + 1}"
        raise DataError(f"{where}: not a prediction file: the line is too long", EXPECTED)
    first = line.decode("utf-8", "backslashreplace").rstrip("\r")
    if first.lstrip().startswith("{"):
        return _Head(None, [], n_lines, text)
    what = "a decision value"
    for separator in "\t,":
        if VALUE not in first:
            break
        names = fields_of(first, separator, f"{name}:{n_lines + 1}")
        if VALUE in names:
            label = names.index(LABEL) if LABEL in names else None
            layout = Layout(separator, names.index(VALUE), label, what, if_empty=NO_VALUE)
            return _Head(layout, names, n_lines + 1, rest)
    fields = first.partition("#")[0].split()
    if fields and all(map(is_number, fields[:2])):
        layout = Layout(BLANKS, 0, what=what)
        if len(fields) > 1:
            layout = Layout(BLANKS, 1, 0, "a label and a decision value")
        return _Head(layout, [], n_lines, text)
    raise _wrong_kind(name, n_lines + 1, first, fields)


def _wrong_kind(name: str, line: int, first: str, fields: list[str]) -> DataError:
    if len(fields) > 1 and re.fullmatch(r"\d+:\S+", fields[1]):
        return DataError(
            f"{name}: an svmlight file, not predictions",
            Message("pass the predictions first and the true labels as {labels}"),
        )
    shown = first if len(first) <= 60 else first[:60] + "..."
    return DataError(f"{name}:{line}: not a prediction file: '{shown}'", EXPECTED)


def _refuse_empty(name: str) -> NoReturn:
    hint = "the file is empty"
    if name == name_of(STDIN):
        hint = "did the command before the pipe fail?"
    raise DataError(f"{name}: no predictions", hint)


def _are_positive(labels: npt.NDArray[np.floating[Any]], name: str) -> npt.NDArray[np.bool_]:
    positive = labels == 1
    other = np.flatnonzero(~positive & (labels != -1))
    if len(other):
        raise DataError(
            f"{name}: row {other[0] + 1} has the label {labels[other[0]]:g}; expected 1 or -1",
            EXPECTED,
        )
    return np.asarray(positive)


def _lines(text: Iterable[bytes], name: str, before: int) -> Iterator[tuple[int, str]]:
    for number, line in text_lines(text, name, before):
        if line.strip():
            yield number, line.rstrip("\r")


def _noting_ids(
    text: Iterable[bytes], name: str, head: _Head, separator: str, ids: list[str]
) -> Iterator[bytes]:
    """Yield the text as complete lines, and append the id of each row to ``ids``."""
    id_column, n_lines = head.names.index(ID), head.n_lines
    for part in whole_lines(text, name=name):
        for number, line in _lines([part], name, n_lines):
            fields = fields_of(line, separator, f"{name}:{number}")
            ids.append(fields[id_column] if id_column < len(fields) else "")
        n_lines += part.count(b"\n")
        yield part


def _json_value(record: dict[str, Any], where: str) -> float:
    value = record.get(VALUE)
    if type(value) is int and abs(value) <= sys.float_info.max:
        return float(value)
    if value is None and VALUE in record:
        raise DataError(f"{where}: the row has no decision value", NO_VALUE)
    if type(value) is not float:
        raise DataError(f"{where}: not a JSON object with a numeric {VALUE}", EXPECTED)
    if math.isnan(value):
        raise DataError(f"{where}: nan cannot be ranked; expected a decision value")
    return value


def _json_label(label: Any, where: str) -> float:
    if type(label) not in (int, float) or label not in (1, -1):
        shown = json.dumps(label)[:40]
        raise DataError(f"{where}: the label is {shown}; expected 1 or -1", EXPECTED)
    return float(label)


def _json_lines(
    text: Iterable[bytes], name: str, head: _Head, with_ids: bool
) -> tuple[FloatArray, npt.NDArray[np.bool_] | None, list[str] | None, bool]:
    values: list[float] = []
    labels: list[float] = []
    ids: list[str] = []
    ranked = False
    for number, line in _lines(text, name, head.n_lines):
        where = f"{name}:{number}"
        try:
            record = parse_object(line, allow_nan=True)
        except ValueError as error:
            raise DataError(f"{where}: not a JSON object: {error}", EXPECTED) from None
        values.append(_json_value(record, where))
        if LABEL in record:
            labels.append(_json_label(record[LABEL], where))
        if len(labels) not in (0, len(values)):
            raise DataError(f"{where}: only some of the rows have a label", EXPECTED)
        if with_ids:
            ids.append(str(record.get(ID, "")))
        ranked |= RANK_COLUMN in record
    positive = np.array(labels) == 1 if labels else None
    return np.array(values), positive, ids if with_ids else None, ranked
