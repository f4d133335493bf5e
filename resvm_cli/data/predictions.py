"""Write and read prediction files in every format of resvm predict, and write annotated tables.

Numbers are written so that they read back exactly. A file's format is detected from its first line.
The C tokenizer reads the numbers; Python handles individual lines only for ids and JSON.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

import numpy as np

from resvm_cli.data import _numbers
from resvm_cli.data.atomic import whole_file
from resvm_cli.data.fields import (
    BLANKS,
    Layout,
    fields_of,
    is_number,
    line_writer,
    read_columns,
    text_lines,
)
from resvm_cli.data.json_files import parse_object
from resvm_cli.data.streams import STDIN, as_unicode, changed, name_of, text_pieces
from resvm_cli.data.svmlight import format_number
from resvm_cli.errors import DataError, listed
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from resvm_cli.data.delimited import TableBlock
    from resvm_cli.data.features import TableFeatures

FormatName: TypeAlias = Literal["text", "tsv", "csv", "jsonl"]
SEPARATORS = {"text": " ", "tsv": "\t", "csv": ","}
VALUE, LABEL, ID = "decision_value", "label", "id"
DEFAULT_THRESHOLD = 0.5  # for files without labels
RANK_COLUMN = "rank"  # if present, rows are sorted by value, not in file order
MAX_HEAD = 1 << 24
MAX_DOUBLE = int(sys.float_info.max)
PREFIX = "resvm_"  # for a result column whose name the annotated table already uses
EXPECTED = (
    "expected the output of resvm predict (text, or tsv, csv, jsonl with column names),"
    " or one number per line"
)
BY_ORDER = "rows are joined by id if both files have ids; to join by order, remove the ids from one"
SHOWN = 3  # ids in a message
NO_VALUE = (
    "rank leaves it empty if every member was trained on the row; train with more members"
    " (resvm train `n_models=100`), or remove such rows, which come last in the ranking"
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
    for name, column in (
        ("label", block.labels),
        ("decision_value", block.decision_values),
        ("votes", block.votes),
        ("member_values", block.member_values),
    ):
        if column is not None:
            columns[name] = column.tolist()
    if block.probability is not None:
        chances = block.probability.tolist()
        columns["probability"] = [None if math.isnan(chance) else chance for chance in chances]
    records = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return _encoded("".join(f"{json.dumps(record)}\n" for record in records))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


Row: TypeAlias = Sequence[str | None]  # the cells of a row


@contextmanager
def annotated(
    path: str, names: Sequence[str]
) -> Iterator[Callable[[Iterable[Row], Mapping[str, list[Any]]], None]]:
    """Yield a function that writes rows of a table with these columns, and columns of results.

    The first call writes the names. A result whose name is in the table gets a prefix.
    """
    with whole_file(path) as file:
        line = line_writer(SEPARATORS[path[-3:].lower()])
        written: list[str] = []

        def write(rows: Iterable[Row], results: Mapping[str, list[Any]]) -> None:
            if not written:
                written.extend(names)
                for name in results:
                    while name in written:
                        name = PREFIX + name
                    written.append(name)
                file.write(_encoded(line(written)))
            cells = zip(*(map(_text, column) for column in results.values()), strict=True)
            for row, more in zip(rows, cells, strict=True):
                file.write(_encoded(line([*row, *more])))

        yield write


def _text(result: Any) -> Any:
    if result is None or result != result:
        return ""
    return format_number(result) if isinstance(result, float) else result


class Annotation(ExitStack):
    """The annotated table of a prediction, written block by block as rows are predicted."""

    def __init__(self, path: str, table: TableFeatures) -> None:
        super().__init__()
        self._name = table.table.name
        blocks = (_rows_of(block, rows) for block, rows in table.cells())
        self._rows = chain.from_iterable(blocks)
        self._write = self.enter_context(annotated(path, table.table.columns))

    def add(self, block: PredictionBlock) -> None:
        rows = list(islice(self._rows, len(block.labels)))
        if len(rows) < len(block.labels):
            raise changed(self._name)
        self._write(rows, {name: column.tolist() for name, column in block.columns.items()})


def write_annotated(
    path: str,
    tables: Sequence[TableFeatures],
    numbers: IntArray,
    n_first: int,
    results: Mapping[str, list[Any]],
) -> None:
    """Write all rows of one or two tables in their order; ``numbers`` says which have results.

    The row numbers of the second table start at ``n_first``. Cells are empty in rows without
    results, and in columns that only the other table has.
    """
    columns = list(dict.fromkeys(name for table in tables for name in table.table.columns))
    place_of = {number: place for place, number in enumerate(numbers.tolist())}
    with annotated(path, columns) as write:
        for table, number in zip(tables, (0, n_first), strict=False):
            own = {name: at for at, name in enumerate(table.table.columns)}
            for block, kept in table.cells():
                places: list[int | None] = [None] * block.n_rows
                for row in kept.tolist():
                    places[row] = place_of.get(number)
                    number += 1
                rows = (
                    [row[own[name]] if name in own else None for name in columns]
                    for row in _rows_of(block, np.arange(block.n_rows))
                )
                found = {
                    name: [None if place is None else column[place] for place in places]
                    for name, column in results.items()
                }
                write(rows, found)


def _rows_of(block: TableBlock, rows: IntArray) -> Iterator[tuple[str, ...]]:
    """Yield these rows of a block as text."""
    from resvm_cli.data.cell_values import texts_of

    columns = (
        texts_of(cells[rows])
        if isinstance(cells, np.ndarray)
        else [cells[row] for row in rows.tolist()]
        for cells in block.columns
    )
    return zip(*columns, strict=True)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Decision values in file order, with labels and ids if the file has them."""

    name: str
    values: FloatArray
    predicted_positive: BoolArray | None  # from the labels; None without labels
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

    def places_in(self, ids: list[str], name: str, warnings: list[str]) -> IntArray:
        """Return each row's place in the file ``name`` with these ids: by id, or by order.

        Rows are joined by id if both files have ids that differ. This file may lack rows of the
        other, with a warning.
        """
        own = self.ids or []
        differ = any(one and other and one != other for one, other in zip(own, ids, strict=False))
        if not self.ranked and not (differ or (any(own) and any(ids) and len(own) != len(ids))):
            return self._in_order(len(ids), name)
        if not (any(own) and any(ids)):
            raise DataError(
                f"{self.name} is a ranking: its rows are not in the order of {name}",
                "join by id: name the ids' column with `id_column`, or list the ids of the"
                " positives in `positive_ids` (rows without an id are identified by their numbers)",
            )
        # JSON escapes ids that are not UTF-8
        own, ids = list(map(as_unicode, own)), list(map(as_unicode, ids))
        for file, given in ((name, ids), (self.name, own)):
            row_id, count = Counter(given).most_common(1)[0]
            if count > 1:
                what = f"the id '{row_id}' is not unique" if row_id else "some rows have no id"
                raise DataError(f"{file}: {what}, so files cannot be joined", BY_ORDER)
        places = {row_id: number for number, row_id in enumerate(ids)}
        if lacking := [row_id for row_id in own if row_id not in places]:
            what = f"{len(lacking):,} of the {len(own):,} ids in {self.name} are not in {name}"
            raise DataError(f"{what}: {listed(lacking, SHOWN)}", BY_ORDER)
        if n_lacking := len(places.keys() - set(own)):
            warnings.append(
                f"{n_lacking:,} of the {len(ids):,} rows in {name} are not in {self.name}, so"
                " they do not count"
            )
        return np.array([places[row_id] for row_id in own])

    def _in_order(self, n_rows: int, name: str) -> IntArray:
        if longer := len(self.values) - n_rows:
            which = self.name if longer > 0 else name
            raise DataError(
                f"{self.name} has {len(self.values):,} predictions but {name} has"
                f" {n_rows:,} labels: {which} is longer by {abs(longer):,}",
                "without ids, both must have the same rows in the same order; or use"
                " `positive_ids`",
            )
        return np.arange(n_rows)


def read_predictions(
    path: str, *, with_ids: bool = False, require_ids: bool = True, id_column: str | None = None
) -> Predictions:
    """Read a prediction file (``-`` for stdin), optionally with ids.

    With both ``with_ids`` and ``require_ids``, a file without ids is an error. Without a column
    ``id``, ids come from ``id_column``, as in a table that was annotated.
    """
    name = name_of(path)
    pieces = text_pieces(path)
    layout, names, n_lines, text = _read_head(pieces, name, id_column)
    rows = chain([text], pieces)
    ids: list[str] | None = [] if with_ids else None
    positive: BoolArray | None = None
    if layout is None:
        values, positive, ranked = _read_json_lines(rows, name, n_lines, ids)
    else:
        ranked = RANK_COLUMN in names
        values, labels = read_columns(rows, name, layout, lines_before=n_lines, ids=ids)
        if labels is not None:
            positive = labels == 1
            if len(other := np.flatnonzero(~positive & (labels != -1))):
                raise DataError(
                    f"{name}: row {other[0] + 1} has the label {labels[other[0]]:g};"
                    " expected 1 or -1",
                    EXPECTED,
                )
    if not len(values):
        _refuse_empty(name)
    if not any(ids or ()):
        ids = None
        if with_ids and require_ids:
            raise DataError(
                f"{name}: contains no ids to join by",
                "resvm predict writes them: of a table with `id_column='NAME'`, of rows that end in"
                " an id (# name) with `ids=True`",
            )
    return Predictions(name, values, positive, ids, ranked)


def _read_head(
    pieces: Iterator[bytes], name: str, id_column: str | None
) -> tuple[Layout | None, list[str], int, bytes]:
    """Read up to the first line that is neither blank nor a comment.

    Return the layout of the rows (None: JSON lines), the names of the columns, if any, the number
    of lines before the first row, and the text that was read from there on.
    """
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
    where = f"{name}:{n_lines + 1}"
    if len(line) > MAX_HEAD:
        raise DataError(f"{where}: not a prediction file: the line is too long", EXPECTED)
    first = line.decode("utf-8", "backslashreplace").rstrip("\r")
    if first.lstrip().startswith("{"):
        return None, [], n_lines, text
    what = "a decision value"
    for separator in "\t,":
        if VALUE not in first:
            break
        names = fields_of(first, separator, where)
        number_of = {name: number for number, name in enumerate(names)}
        value, label = (  # an annotated table may have had such columns itself
            number_of.get(PREFIX + key, number_of.get(key)) for key in (VALUE, LABEL)
        )
        if value is not None:
            row_id = number_of.get(ID, number_of.get(id_column or ID))
            layout = Layout(separator, value, label, what, NO_VALUE, row_id)
            return layout, names, n_lines + 1, rest
    fields = first.partition("#")[0].split()
    if fields and all(map(is_number, fields[:2])):
        layout = Layout(BLANKS, 0, what=what)
        if len(fields) > 1:
            layout = Layout(BLANKS, 1, 0, "a label and a decision value")
        return layout, [], n_lines, text
    raise _wrong_kind(name, n_lines + 1, first, fields)


def _wrong_kind(name: str, line: int, first: str, fields: list[str]) -> DataError:
    if len(fields) > 1 and re.fullmatch(r"\d+:\S+", fields[1]):
        return DataError(
            f"{name}: an svmlight file, not predictions",
            "pass the predictions first and the true labels as `labels`",
        )
    shown = first if len(first) <= 60 else first[:60] + "..."
    return DataError(f"{name}:{line}: not a prediction file: '{shown}'", EXPECTED)


def _refuse_empty(name: str) -> NoReturn:
    hint = "the file is empty"
    if name == name_of(STDIN):
        hint = "did the command before the pipe fail?"
    raise DataError(f"{name}: no predictions", hint)


def _read_json_lines(
    text: Iterable[bytes], name: str, n_before: int, ids: list[str] | None
) -> tuple[FloatArray, BoolArray | None, bool]:
    """Return the values, whether each row is predicted positive, and whether it is a ranking."""
    values: list[float] = []
    labels: list[float] = []
    ranked = False
    for number, line in text_lines(text, name, n_before):
        if not line.strip():
            continue
        where = f"{name}:{number}"
        try:
            record = parse_object(line.rstrip("\r"), allow_nan=True)
        except ValueError as error:
            raise DataError(f"{where}: not a JSON object: {error}", EXPECTED) from None
        value = record.get(VALUE)
        if value is None and VALUE in record:
            raise DataError(f"{where}: the row has no decision value", NO_VALUE)
        if type(value) is not float and (type(value) is not int or abs(value) > MAX_DOUBLE):
            raise DataError(f"{where}: not a JSON object with a numeric {VALUE}", EXPECTED)
        if math.isnan(value):
            raise DataError(f"{where}: nan cannot be ranked; expected a decision value")
        values.append(float(value))
        if LABEL in record:
            label = record[LABEL]
            if type(label) not in (int, float) or label not in (1, -1):
                raise DataError(
                    f"{where}: the label is {json.dumps(label)[:40]}; expected 1 or -1", EXPECTED
                )
            labels.append(label)
        if len(labels) not in (0, len(values)):
            raise DataError(f"{where}: only some of the rows have a label", EXPECTED)
        if ids is not None:
            ids.append(str(record.get(ID, "")))
        ranked |= RANK_COLUMN in record
    return np.array(values), np.array(labels) == 1 if labels else None, ranked
