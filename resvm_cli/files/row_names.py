"""What rows are called: their ids, which of them are known positives, their groups and labels.

Only names are kept, in memory by the number of rows; ids are matched block by block as a file is
read for the first time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError
from resvm_cli.files.numeric_columns import BLANKS, Layout, read_columns
from resvm_cli.files.streams import name_of, read_pieces, text_lines, without_mark
from resvm_cli.files.svmlight import Block
from resvm_cli.rows import FloatArray

SHOWN = 10
_SVMLIGHT = re.compile(r"(?:[-+.\deE]+\s+)?(?:qid:\d+\s+)?\d+:[-+.\deE]+(?:\s|$)")


def read_names(path: str) -> list[str]:
    """The lines of a text file, without blanks around them; a last empty line is none."""
    names = [line.strip() for _, line in text_lines(read_pieces(path), name_of(path))]
    if names and not names[-1]:
        names.pop()
    if not names:
        raise DataError(f"{name_of(path)}: is empty", "one name a line was expected")
    for number, name in enumerate(names, 1):
        if not name:
            raise DataError(
                f"{name_of(path)}:{number}: an empty line", "one name a line was expected"
            )
    return names


def read_row_ids(path: str) -> list[str]:
    """The ids of all rows, one a line."""
    names = read_names(path)
    _refuse_svmlight(
        names[0], f"{name_of(path)}:1", "rows that end in their ids (# name) need none"
    )
    return names


def read_known_ids(path: str) -> dict[str, int]:
    """Ids and their lines; blank lines and those that start with # are passed over."""
    name = name_of(path)
    lines: dict[str, int] = {}
    for number, line in text_lines(without_mark(read_pieces(path)), name):
        word = line.strip()
        if not word or word.startswith("#"):
            continue
        if not lines:
            _refuse_svmlight(word, f"{name}:{number}", "rows of known positives go to -P")
        if word in lines:
            raise DataError(
                f"{name}:{number}: '{word}' is listed twice, first in line {lines[word]}",
                f"keep each id once: sort -u {name}",
            )
        lines[word] = number
    if not lines:
        raise DataError(f"{name}: no ids", "one id a line was expected")
    return lines


def _refuse_svmlight(line: str, where: str, hint: str) -> None:
    if _SVMLIGHT.match(line):
        raise DataError(
            f"{where}: a svmlight row; one id a line was expected",
            f"a list of ids is plain text, one name a line; {hint}",
        )


def read_labels(path: str) -> FloatArray:
    """The label of every row of a svmlight file, or of a plain list; nothing else is read."""
    name = name_of(path)
    labels, _ = read_columns(
        without_mark(read_pieces(path)), name, Layout(BLANKS, 0, what="a numeric label")
    )
    if not len(labels):
        raise DataError(f"{name}: no labels", "the file is empty or holds only comments")
    infinite = np.flatnonzero(np.isinf(labels))
    if len(infinite):
        raise DataError(
            f"{name}: the label of row {infinite[0] + 1:,} is {labels[infinite[0]]:g};"
            " a finite number was expected"
        )
    return labels


class RowIds:
    """Ids in the order of the data, and where those of a list of known positives were found."""

    def __init__(self, known: str | None, names: str | None, *, keep: bool) -> None:
        """``known`` and ``names`` are files; without ``keep`` ids are matched and forgotten."""
        self._known_path, self._names_path = known, names
        self._known = None if known is None else read_known_ids(known)
        self._names = None if names is None else read_row_ids(names)
        self._keep = keep
        self._places: dict[str, int] = {}
        self._examples: list[str] = []
        self._n_nameless = 0
        self.n_rows = 0
        self.ids: list[str] = []

    @property
    def from_comments(self) -> bool:
        """Whether ids are looked for in the comments of rows."""
        return self._names is None and (self._keep or self._known is not None)

    def is_known(self, row_id: str) -> bool:
        """Whether the list of known positives has this id."""
        return self._known is not None and row_id in self._known

    def known_in_order(self) -> list[str]:
        """The ids of known positives that the data has, in its order."""
        return sorted(self._places, key=self._places.__getitem__)

    def add(self, block: Block, name: str) -> npt.NDArray[np.bool_]:
        """Take in the ids of a block; true where they are known."""
        if self._names is not None:
            ids: Sequence[str] = self._names[self.n_rows : self.n_rows + len(block)]
        else:
            ids = block.comments or ()
        if self._keep:
            self.ids.extend(ids)
        self.n_rows += len(block)
        chosen = np.zeros(len(block), bool)
        if self._known is not None:
            if len(self._examples) < 3:
                self._examples += [row_id for row_id in ids[:100] if row_id][:3]
            self._n_nameless += len(block) - sum(map(bool, ids))
            for number, row_id in enumerate(ids):
                if row_id in self._known:
                    line = int(block.lines[number])
                    if row_id in self._places:
                        raise DataError(
                            f"{name}:{line}: the id '{row_id}' comes twice,"
                            f" first in line {self._places[row_id]}; which row is meant?",
                            "give each row an id of its own",
                        )
                    self._places[row_id] = line
                    chosen[number] = True
        return chosen

    def finish(self, name: str, allow_missing: bool) -> list[str]:
        """Refuse what cannot be right once all rows were seen; what else there is to say."""
        notes: list[str] = []
        if self._names is not None and len(self._names) != self.n_rows:
            raise DataError(
                f"{name_of(self._names_path or '')}: {len(self._names):,} lines, and the data has"
                f" {self.n_rows:,} rows",
                "one id a row is expected: of P and then of U, or of --data in its order",
            )
        if self._known is not None:
            notes += self._missing(name, allow_missing)
            if self._n_nameless:
                notes.append(f"{name}: {self._n_nameless:,} rows have no id: they are unlabeled")
        if self._keep and (n_repeated := self._n_repeated()):
            notes.append(f"{name}: {n_repeated:,} ids repeat an earlier one")
        return notes

    def _n_repeated(self) -> int:
        named = [row_id for row_id in self.ids if row_id]
        return len(named) - len(set(named))

    def _missing(self, name: str, allowed: bool) -> list[str]:
        assert self._known is not None
        listed = name_of(self._known_path or "")
        if not self._examples:
            raise DataError(
                f"{name}: no row has an id to look for: none ends in a comment (# name)",
                "give the ids of all rows in their order, one a line: --ids-file FILE",
            )
        missing = [row_id for row_id in self._known if row_id not in self._places]
        if not missing:
            return []
        shown = ", ".join(missing[:SHOWN])
        if len(missing) > SHOWN:
            shown += f", and {len(missing) - SHOWN:,} more"
        summary = f"{len(missing):,} of the {len(self._known):,} ids of {listed} are not in {name}"
        if len(missing) == len(self._known):
            raise DataError(
                f"none of the {len(self._known):,} ids of {listed} is in {name}: {shown}",
                f"ids there look like this: {', '.join(self._examples[:3])}",
            )
        if not allowed:
            raise DataError(
                f"{summary}: {shown}",
                f"correct {listed}, or go on without them: --allow-missing",
            )
        return [f"{summary}: {shown}"]

    def named(self) -> npt.NDArray[np.object_]:
        """An id for each row; "" where it has none."""
        return np.array(self.ids, object)
