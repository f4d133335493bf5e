"""Read files with one entry per line: row ids, known positives, groups, labels, weights, outcomes.

Ids are matched block by block during the first pass over the rows.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from resvm_cli.errors import DataError, Message, Text, listed
from resvm_cli.files.fields import BLANKS, Layout, is_number, read_columns, text_lines
from resvm_cli.files.streams import name_of, text_pieces
from resvm_cli.files.svmlight import Block
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray

if TYPE_CHECKING:
    import numpy.typing as npt

SHOWN = 10
ONE_PER_ROW = "expected one number from 0 to 1 per row of P, in order"
ONE_PER_ID = Message("expected an id from {positive_ids} and a number from 0 to 1 per line")
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


def read_known_ids(path: str, rows: str = "positives") -> dict[str, int]:
    """Read ids with their line numbers.

    ``rows`` is the parameter to suggest if the file contains rows instead.
    """
    name = name_of(path)
    lines: dict[str, int] = {}
    for number, word in _entries(path):
        if not word:
            continue
        if not lines:
            hint = Message("pass the rows of known " + rows[-9:] + " as {" + rows + "}")
            _refuse_svmlight(word, f"{name}:{number}", hint)
        if word in lines:
            raise DataError(
                f"{name}:{number}: '{word}' is listed twice, first on line {lines[word]}",
                f"keep each id once: sort -u {shlex.quote(path)}",
            )
        lines[word] = number
    if not lines:
        raise DataError(f"{name}: no ids", "expected one id per line")
    return lines


def _refuse_svmlight(line: str, where: str, hint: Text) -> None:
    if _SVMLIGHT.match(line):
        raise DataError(f"{where}: an svmlight row; expected one id per line", hint)


def read_labels(path: str, ids: list[str] | None = None) -> FloatArray:
    """Read the labels of an svmlight file or a plain list; the rest of each line is not parsed.

    If ``ids`` is given, each row's id (its trailing comment) is appended to it.
    """
    name = name_of(path)
    layout = Layout(BLANKS, 0, what="a numeric label")
    labels, _ = read_columns(text_pieces(path), name, layout, comments=ids)
    if not len(labels):
        raise DataError(f"{name}: no labels", "the file is empty or has only comments")
    infinite = np.flatnonzero(np.isinf(labels))
    if len(infinite):
        raise DataError(
            f"{name}: the label of row {infinite[0] + 1:,} is {labels[infinite[0]]:g};"
            " expected a finite number"
        )
    return labels


class RowIds:
    """The ids of all rows, and the line numbers of the known positives (or known negatives)."""

    def __init__(self, known: str | None, names: str | None, *, keep: bool) -> None:
        """``known`` and ``names`` are paths. Without ``keep``, ids are matched but not stored."""
        self._known_path, self._names_path = known, names
        self._known = None if known is None else read_known_ids(known)
        self._names = None if names is None else read_row_ids(names)
        self._keep = keep
        self._lines: dict[str, int] = {}
        self._examples: list[str] = []
        self._n_without_id = 0
        self._is_text = True  # whether rows may end in a comment, as in svmlight text
        self.n_rows = 0
        self.ids: list[str] = []

    def of_negatives(self, known: str) -> RowIds:
        """Return the ids with known negatives instead of known positives; no id may be both."""
        found = RowIds(None, None, keep=False)
        found._known_path, found._known = known, read_known_ids(known, "known_negatives")
        found._names, found._names_path = self._names, self._names_path
        for row_id, line in found._known.items():
            if self.is_known(row_id):
                raise DataError(
                    f"{name_of(known)}:{line}: '{row_id}' is also listed in"
                    f" {name_of(self._known_path or '')}",
                    "a row cannot be both a known positive and a known negative",
                )
        return found

    @property
    def from_comments(self) -> bool:
        """Whether ids are taken from the comments of rows."""
        return self._names is None and (self._keep or self._known is not None)

    def is_known(self, row_id: str) -> bool:
        return self._known is not None and row_id in self._known

    def known_in_order(self) -> list[str]:
        return sorted(self._lines, key=self._lines.__getitem__)

    def add(self, block: Block, name: str) -> npt.NDArray[np.bool_]:
        """Add the ids of a block; return a mask of its known positives."""
        if self._names is not None:
            ids: Sequence[str] = self._names[self.n_rows : self.n_rows + len(block)]
        else:
            ids = block.comments or ()
            self._is_text &= bool((block.starts >= 0).all())  # only text has offsets
        if self._keep:
            self.ids.extend(ids)
        self.n_rows += len(block)
        chosen = np.zeros(len(block), bool)
        if self._known is not None:
            if len(self._examples) < 3:
                self._examples += [row_id for row_id in ids[:100] if row_id][:3]
            self._n_without_id += len(block) - sum(map(bool, ids))
            for number, row_id in enumerate(ids):
                if row_id in self._known:
                    line = int(block.lines[number])
                    if row_id in self._lines:
                        raise DataError(
                            f"{name}:{line}: the id '{row_id}' appears twice,"
                            f" first on line {self._lines[row_id]}",
                            "give each row its own id",
                        )
                    self._lines[row_id] = line
                    chosen[number] = True
        return chosen

    def finish(self, name: str, allow_missing: bool) -> list[str]:
        """Check the ids after all rows have been read; return notes for the user."""
        notes: list[str] = []
        if self._names is not None and len(self._names) != self.n_rows:
            raise DataError(
                f"{name_of(self._names_path or '')}: {len(self._names):,} lines for"
                f" {self.n_rows:,} rows of data",
                Message("expected one id per row: first P, then U, or in the order of {data}"),
            )
        if self._known is not None:
            notes += self._missing(name, allow_missing)
            if self._n_without_id:
                notes.append(
                    f"{name}: {self._n_without_id:,} rows without an id count as unlabeled"
                )
        named = list(filter(None, self.ids))
        if n_repeated := len(named) - len(set(named)):
            notes.append(f"{name}: {n_repeated:,} ids repeat an earlier one")
        return notes

    def _missing(self, name: str, allowed: bool) -> list[str]:
        assert self._known is not None
        file = name_of(self._known_path or "")
        if not self._examples:
            what, hint = "ends in an id (# name)", ""
            if not self._is_text:
                what = "has an id"
                hint = "if a column contains ids, name it: {id_column:NAME}; or "
            hint += "list the ids of all rows, one per line and in order, with {ids_file}"
            raise DataError(f"{name}: no row {what}", Message(hint))
        missing = [row_id for row_id in self._known if row_id not in self._lines]
        if not missing:
            return []
        shown = listed(missing, SHOWN)
        summary = f"{len(missing):,} of the {len(self._known):,} ids in {file} are not in {name}"
        if len(missing) == len(self._known):
            raise DataError(
                f"none of the {len(self._known):,} ids in {file} is in {name}: {shown}",
                f"the ids in the data look like this: {', '.join(self._examples[:3])}",
            )
        if not allowed:
            raise DataError(
                f"{summary}: {shown}",
                Message("correct {file}, or use {allow_missing:True}", file=file),
            )
        return [f"{summary}: {shown}"]

    def named(self) -> npt.NDArray[np.object_]:
        """Return the id of each row; "" for a row without an id."""
        return np.array(self.ids, object)


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
        expected: Text = ONE_PER_ID if with_ids else ONE_PER_ROW
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

    def of_rows(
        self, n_rows: int, known: tuple[Sequence[str], Callable[[str], bool]] | None
    ) -> FloatArray:
        """Return the weight of each row of P, matched by order or by id.

        ``known`` is a pair: the ids of P in order, and a function that tests whether an id is a
        known positive.
        """
        if known is None:
            if len(self.values) != n_rows:
                raise DataError(
                    f"{self.name}: {len(self.values):,} weights for {n_rows:,} rows of P",
                    ONE_PER_ROW,
                )
            return self.values
        in_order, is_known = known
        for row_id, line in self.lines.items():
            if not is_known(row_id):
                raise DataError(
                    f"{self.name}:{line}: '{row_id}' is not a known positive",
                    Message("give weights only to ids in {positive_ids}"),
                )
        missing = [row_id for row_id in in_order if row_id not in self.lines]
        if missing:
            raise DataError(
                f"{self.name}: {len(missing):,} known positives have no weight, for example"
                f" '{missing[0]}'",
                ONE_PER_ID,
            )
        weights = dict(zip(self.lines, self.values.tolist(), strict=True))
        return np.array([weights[row_id] for row_id in in_order])


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
