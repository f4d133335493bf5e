"""Where rows lie in a text, sparsely: enough to come back for some of them without reading it all.

A mark is the offset of a line and the number of rows before it. Marks thin out as a text grows, so
the index of a file of any size stays small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from resvm_cli.files import _svmlight as tokenizer
from resvm_cli.rows import IntArray, distinct

FIRST_SPACING = 1 << 13
MOST_MARKS = 1 << 17
LINE_SPACING = 1 << 15
END = 1 << 62  # beyond any text


class RowIndex:
    """Marks into a text, gathered while it is read for the first time."""

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._rows: list[int] = []
        self._spacing = FIRST_SPACING
        self._next = 0
        self.n_rows = 0

    def add(self, starts: IntArray) -> None:
        """Count in more rows, whose lines begin at these ascending offsets."""
        if len(starts):
            wanted = np.arange(self._next, int(starts[-1]) + 1, self._spacing)
            if len(wanted):
                places = distinct(np.searchsorted(starts, wanted))
                self._mark(starts[places].tolist(), (self.n_rows + places).tolist())
            self.n_rows += len(starts)

    def _mark(self, offsets: list[int], rows: list[int]) -> None:
        self._offsets += offsets
        self._rows += rows
        if len(self._offsets) > MOST_MARKS:
            self._offsets, self._rows = self._offsets[::2], self._rows[::2]
            self._spacing *= 2
        self._next = self._offsets[-1] + self._spacing

    def add_text(self, start: int, text: bytes) -> None:
        """Count in the lines that end in this text, each of them a row, unread."""
        counts = np.empty(-(-len(text) // LINE_SPACING), np.int64)
        tokenizer.newlines(text, LINE_SPACING, counts)
        for number, count in enumerate(counts.tolist()):
            position = number * LINE_SPACING
            if start + position >= self._next:
                first = start + position == 0
                line = 0 if first else text.find(b"\n", position) + 1
                if first or position < line <= position + LINE_SPACING:
                    self._mark([start + line], [self.n_rows + (not first)])
            self.n_rows += count

    def spans(self, numbers: IntArray) -> Spans:
        """The parts of the text that hold these ascending rows."""
        offsets, rows = np.array([*self._offsets, END]), np.array([*self._rows, self.n_rows])
        which = np.searchsorted(rows[:-1], numbers, side="right") - 1
        parts, first, part_of = np.unique(which, return_index=True, return_inverse=True)
        sizes = rows[parts + 1] - rows[parts]
        before = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        within = numbers - rows[which]
        return Spans(
            list(zip(offsets[parts].tolist(), offsets[parts + 1].tolist(), strict=True)),
            [part.tolist() for part in np.split(within, first[1:])],
            before[part_of] + within,
        )


@dataclass(frozen=True, eq=False)
class Spans:
    """Parts of a text, and where in them the rows are that were asked for."""

    bounds: list[tuple[int, int]]
    within: list[list[int]]  # for each part, the places of its rows
    places: IntArray  # the places counted over all parts together

    def lines(self, texts: Iterator[bytes]) -> Iterator[bytes]:
        """The lines asked for, from the parts' texts, where each line is a row."""
        for text, places in zip(texts, self.within, strict=True):
            lines = text.split(b"\n", places[-1] + 1)
            for place in places:
                yield lines[place] + b"\n"


def joined(texts: Iterator[bytes], size: int) -> Iterator[bytes]:
    """The same text in pieces of at least this size, but for the last."""
    waiting: list[bytes] = []
    length = 0
    for text in texts:
        waiting.append(text)
        length += len(text)
        if length >= size:
            yield b"".join(waiting)
            waiting, length = [], 0
    yield b"".join(waiting)
