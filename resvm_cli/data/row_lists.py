"""Read files with one entry per line: row ids, known positives, groups, labels, weights, outcomes.

Ids are matched block by block during the first pass over the rows.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from resvm_cli.data.encoding import ColumnNumbers, ColumnRoles
from resvm_cli.data.fields import BLANKS, Layout, is_number, read_columns, text_lines
from resvm_cli.data.inputs import RowInput, first_line, has_pairs, with_head
from resvm_cli.data.streams import Source, name_of, text_pieces, without_mark
from resvm_cli.data.svmlight import Block
from resvm_cli.errors import DataError, listed
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray

if TYPE_CHECKING:
    import numpy.typing as npt

    from resvm_cli.data.delimited import Table

SHOWN, SHOWN_EXAMPLES = 10, 3
IF_POSITIVES = "pass the rows of known positives as `positives`"
IF_NEGATIVES = "with `data`, list their ids; a file of rows requires `positives` and `unlabeled`"
ONE_PER_ROW = "expected one number from 0 to 1 per row of P, in order"
ONE_PER_ID = "expected an id from `positive_ids` and a number from 0 to 1 per line"
OUTCOMES = {"1": True, "+1": True, "0": False, "-1": False}
ONE_OUTCOME = "expected an id and 1 (positive) or 0 (negative) per line"
_SVMLIGHT = re.compile(r"(?:[-+.\deE]+\s+)?(?:qid:\d+\s+)?\d+:[-+.\deE]+(?:\s|$)")


def read_names(path: str) -> list[str]:
    """Read the stripped lines of a text file; an empty last line is ignored."""
    source = name_of(path)
    names = [line.strip() for _, line in text_lines(text_pieces(path), source)]
    if names and not names[-1]:
        names.pop()
    if not names:
        raise DataError(f"{source}: is empty", "expected one name per line")
    if "" in names:
        line = names.index("") + 1
        raise DataError(f"{source}:{line}: an empty line", "expected one name per line")
    return names


def read_row_ids(path: str) -> list[str]:
    names = read_names(path)
    where = f"{name_of(path)}:1"
    _refuse_svmlight(names[0], where, "rows that end in an id (# name) do not need a list of ids")
    return names


def _entries(path: str) -> Iterator[tuple[int, str]]:
    """Yield numbered, stripped lines; comments (#) are skipped."""
    for number, line in text_lines(text_pieces(path), name_of(path)):
        text = line.strip()
        if not text.startswith("#"):
            yield number, text


def _id_and_value(text: str) -> tuple[str, str]:
    """Split a line at its last tab, or at its last blank if it has no tab."""
    row_id, _, value = text.rpartition("\t" if "\t" in text else " ")
    return row_id.strip(), value.strip()


def read_known_ids(path: str, if_rows: str = IF_POSITIVES) -> dict[str, int]:
    """Read ids with their line numbers; ``if_rows`` is the advice if the file contains rows."""
    name = name_of(path)
    lines: dict[str, int] = {}
    for number, word in _entries(path):
        if not word:
            continue
        if not lines:
            _refuse_svmlight(word, f"{name}:{number}", if_rows)
        if word in lines:
            raise DataError(
                f"{name}:{number}: '{word}' is listed twice, first on line {lines[word]}",
                f"keep each id once: sort -u {shlex.quote(path)}",
            )
        lines[word] = number
    if not lines:
        raise DataError(f"{name}: no ids", "expected one id per line")
    return lines


def _refuse_svmlight(line: str, where: str, hint: str) -> None:
    if _SVMLIGHT.match(line):
        raise DataError(f"{where}: an svmlight row; expected one id per line", hint)


def read_labels(
    path: str, label_column: str | None = None, id_column: str | None = None
) -> tuple[FloatArray | list[str], list[str]]:
    """Read labels and ids: of a table, of an svmlight file or of a list, with comments as ids.

    The labels of a table are text, as are those of a list that does not begin with a number.
    """
    name = name_of(path)
    with closing(Source(path, once=True)) as source:
        rows = RowInput(source, ColumnRoles(label=label_column, row_id=id_column))
        if rows.table is not None:
            return _labels_of_table(rows.table, rows.roles)
        head, text = with_head(without_mark(rows.pieces()))
        first, ids = first_line(head), list[str]()
        if first and not has_pairs(first) and not is_number(first.split()[0]):
            cells = [line.partition(" #") for _, line in text_lines(text, name)]
            cells = [parts for parts in cells if parts[0].strip() and parts[0].strip()[0] != "#"]
            return [one.strip() for one, _, _ in cells], [row_id.strip() for *_, row_id in cells]
        layout = Layout(BLANKS, 0, what="a numeric label")
        labels, _ = read_columns(text, name, layout, ids=ids)
    if not len(labels):
        raise DataError(f"{name}: no labels", "the file is empty or has only comments")
    infinite = np.flatnonzero(np.isinf(labels))
    if len(infinite):
        raise DataError(
            f"{name}: the label of row {infinite[0] + 1:,} is {labels[infinite[0]]:g};"
            " expected a finite number"
        )
    return labels, ids


def _labels_of_table(table: Table, roles: ColumnRoles) -> tuple[list[str], list[str]]:
    from resvm_cli.data.cell_values import ids_of, texts_of

    columns = ColumnNumbers(table, roles)
    at, id_at = columns.label, columns.row_id
    if at is None:
        raise DataError(
            f"{table.name}: a table; which column has the labels?",
            f"name it: `label_column='NAME'`; the columns are: {listed(table.columns, SHOWN)}",
        )
    id_at = columns.by_name.get("id") if id_at is None else id_at
    labels: list[str] = []
    ids: list[str] = []
    for block in table.blocks({at, id_at}):
        texts = [text.strip() for text in texts_of(block.columns[at])]
        if "" in texts:
            where = block.where(texts.index(""))
            raise DataError(f"{where}: no label in column '{table.columns[at]}'")
        labels += texts
        ids += [""] * len(texts) if id_at is None else ids_of(block, id_at)
    return labels, ids


class RowIds:
    """The ids of all rows, and which of them are listed as known positives or known negatives."""

    def __init__(
        self, positives: str | None, negatives: str | None, names: str | None, *, keep: bool
    ) -> None:
        """Read the lists at these paths. Without ``keep``, ids are matched but not stored."""
        self._lists = {path: code for path, code in ((positives, 1), (negatives, -1)) if path}
        self._listed: dict[str, int] = {}  # each listed id: 1 if in P, -1 if a known negative
        self._names_path = names or ""
        if positives is not None:
            self._listed = dict.fromkeys(read_known_ids(positives), 1)
        self._names = None if names is None else read_row_ids(names)
        if negatives is not None:
            self._list_negatives(negatives, name_of(positives or ""))
        self._keep = keep
        self._lines: dict[str, int] = {}  # where each listed id was found
        self._examples: list[str] = []
        self._n_without_id = 0
        self._is_text = True  # whether rows may end in a comment, as in svmlight text
        self._n_rows = 0
        self.ids: list[str] = []

    def _list_negatives(self, path: str, other: str) -> None:
        for row_id, line in read_known_ids(path, IF_NEGATIVES).items():
            if row_id in self._listed:
                raise DataError(
                    f"{name_of(path)}:{line}: '{row_id}' is also listed in {other}",
                    "a row cannot be both a known positive and a known negative",
                )
            self._listed[row_id] = -1

    @property
    def from_comments(self) -> bool:
        """Whether ids are taken from the comments of rows."""
        return self._names is None and (self._keep or bool(self._lists))

    def is_positive(self, row_id: str) -> bool:
        """Whether an id is listed as a known positive."""
        return self._listed.get(row_id) == 1

    @property
    def positives(self) -> list[str]:
        """The ids of the listed known positives that were found, in data order."""
        return list(filter(self.is_positive, self._lines))

    def add(self, block: Block, name: str) -> npt.NDArray[np.int8]:
        """Add the ids of a block; return 1 for listed positives, -1 for negatives, else 0."""
        if self._names is not None:
            ids: Sequence[str] = self._names[self._n_rows : self._n_rows + len(block)]
        else:
            ids = block.comments or ()
            self._is_text &= bool((block.starts >= 0).all())  # only text has offsets
        if self._keep:
            self.ids.extend(ids)
        self._n_rows += len(block)
        codes = np.zeros(len(block), np.int8)
        if not self._lists:
            return codes
        if len(self._examples) < SHOWN_EXAMPLES:
            self._examples += [row_id for row_id in ids[:100] if row_id][:SHOWN_EXAMPLES]
        self._n_without_id += len(block) - sum(map(bool, ids))
        for number, row_id in enumerate(ids):
            if row_id in self._listed:
                line = int(block.lines[number])
                if row_id in self._lines:
                    raise DataError(
                        f"{name}:{line}: the id '{row_id}' appears twice,"
                        f" first on line {self._lines[row_id]}",
                        "give each row its own id",
                    )
                self._lines[row_id] = line
                codes[number] = self._listed[row_id]
        return codes

    def finish(self, name: str) -> Iterator[str]:
        """Check the ids after all rows have been read; yield notes for the user."""
        if self._names is not None and len(self._names) != self._n_rows:
            raise DataError(
                f"{name_of(self._names_path)}: {len(self._names):,} lines for"
                f" {self._n_rows:,} rows of data",
                "expected one id per row: first P, then U, then known negatives, or in the order"
                " of `data`",
            )
        for path, code in self._lists.items():
            yield from self._missing(name, name_of(path), code)
        if self._lists and self._n_without_id:
            yield f"{name}: {self._n_without_id:,} rows without an id count as unlabeled"
        counts = Counter(filter(None, self.ids))
        if repeated := [row_id for row_id, count in counts.items() if count > 1]:
            yield f"{name}: ids of more than one row: {listed(repeated, SHOWN)}"

    def _missing(self, name: str, file: str, code: int) -> Iterator[str]:
        """Yield a note on the ids of a list that no row has; reject a list of other ids."""
        if not self._examples:
            what, hint = "ends in an id (# name)", ""
            if not self._is_text:
                what = "has an id"
                hint = "if a column contains ids, name it: `id_column='NAME'`; or "
            hint += "list the ids of all rows, one per line and in order, with `ids_file`"
            raise DataError(f"{name}: no row {what}", hint)
        listed_ids = [row_id for row_id, own in self._listed.items() if own == code]
        missing = [row_id for row_id in listed_ids if row_id not in self._lines]
        shown, n_listed = listed(missing, SHOWN), len(listed_ids)
        if len(missing) == n_listed:
            raise DataError(
                f"none of the {n_listed:,} ids in {file} is in {name}: {shown}",
                f"the ids in the data look like this: {', '.join(self._examples[:SHOWN_EXAMPLES])}",
            )
        if missing:
            yield f"{len(missing):,} of the {n_listed:,} ids in {file} are not in {name}: {shown}"


@dataclass(frozen=True, eq=False)
class WeightLines:
    """The lines of a weight file: how certain each known positive is, from 0 to 1."""

    name: str
    values: FloatArray
    lines: dict[str, int]  # the line of each id; empty if the weights are in row order

    @classmethod
    def read(cls, path: str, *, with_ids: bool) -> WeightLines:
        """Read a weight file; comments (#) are skipped; blank lines may occur only at the end."""
        name = name_of(path)
        expected = ONE_PER_ID if with_ids else ONE_PER_ROW
        values: list[float] = []
        lines: dict[str, int] = {}
        blank = 0
        for number, text in _entries(path):
            if not text:
                blank = blank or number
                continue
            if blank:
                raise DataError(f"{name}:{blank}: an empty line", expected)
            row_id, weight = _id_and_value(text)
            if bool(row_id) != with_ids:
                what = "no id before the weight" if with_ids else f"'{text}' is not a number"
                raise DataError(f"{name}:{number}: {what}", expected)
            if not is_number(weight) or not 0 <= float(weight) <= 1:
                what = f"the weight is '{weight}'; expected a number from 0 to 1"
                raise DataError(f"{name}:{number}: {what}")
            if row_id in lines:
                what = f"'{row_id}' already has a weight, on line {lines[row_id]}"
                raise DataError(f"{name}:{number}: {what}")
            if with_ids:
                lines[row_id] = number
            values.append(float(weight))
        if not values:
            raise DataError(f"{name}: no weights", expected)
        return cls(name, np.array(values), lines)

    def of_rows(self, n_rows: int, ids: RowIds | None) -> FloatArray:
        """Return the weight of each row of P, matched by id, or by order if there are no ids."""
        if ids is None:
            if len(self.values) != n_rows:
                raise DataError(
                    f"{self.name}: {len(self.values):,} weights for {n_rows:,} rows of P",
                    ONE_PER_ROW,
                )
            return self.values
        for row_id, line in self.lines.items():
            if not ids.is_positive(row_id):
                raise DataError(
                    f"{self.name}:{line}: '{row_id}' is not a known positive",
                    "give weights only to ids in `positive_ids`",
                )
        if missing := [row_id for row_id in ids.positives if row_id not in self.lines]:
            raise DataError(
                f"{self.name}: {len(missing):,} known positives have no weight, for example"
                f" '{missing[0]}'",
                ONE_PER_ID,
            )
        weights = dict(zip(self.lines, self.values.tolist(), strict=True))
        return np.array([weights[row_id] for row_id in ids.positives])


def read_outcomes(path: str) -> dict[str, tuple[bool, str]]:
    """Read the ids of tested rows, with outcomes and locations; comments (#) are skipped."""
    name = name_of(path)
    found: dict[str, tuple[bool, str]] = {}
    for number, text in _entries(path):
        if not text:
            continue
        where = f"{name}:{number}"
        row_id, value = _id_and_value(text)
        outcome = OUTCOMES.get(value)
        if not row_id or outcome is None:
            what = f"the outcome is '{value}'" if row_id else "no id before the outcome"
            raise DataError(f"{where}: {what}", ONE_OUTCOME)
        if row_id in found:
            raise DataError(f"{where}: '{row_id}' already has an outcome, at {found[row_id][1]}")
        found[row_id] = outcome, where
    if not found:
        raise DataError(f"{name}: no tested rows", ONE_OUTCOME)
    return found
