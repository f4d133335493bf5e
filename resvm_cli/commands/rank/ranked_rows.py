"""Rankings as text: a line a row, best or most suspicious first."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli.files.delimited import line_writer
from resvm_cli.files.streams import as_unicode
from resvm_cli.rows import FloatArray, IntArray

RankingFormat: TypeAlias = Literal["tsv", "csv", "jsonl"]
RANKING_FORMATS: tuple[RankingFormat, ...] = ("tsv", "csv", "jsonl")
COLUMNS = (
    "rank",
    "id",
    "known",
    "decision_value",
    "votes",
    "members",
    "rank_low",
    "rank_high",
)
PRECISION = ("precision", "precision_low", "precision_high")
EXPECTED_FALSE = ("expected_false", "expected_false_low", "expected_false_high")
CONFORMAL = ("p_value", "q_value")
LINES_AT_ONCE = 20_000


@dataclass(frozen=True, eq=False)
class Listing:
    """Rows in the order of their ranks, from 1 on; nan where no member may judge a row."""

    ids: list[str]
    known: npt.NDArray[np.bool_]
    values: FloatArray
    votes: FloatArray
    n_members: IntArray
    low: IntArray | None  # None without intervals
    high: IntArray | None
    further: Mapping[str, FloatArray] = field(default_factory=dict)  # columns after the others
    ranks: IntArray | None = None  # where rows between were left out; None: 1, 2, ...
    numbers: IntArray | None = None  # of the rows, P before U

    def __len__(self) -> int:
        return len(self.ids)

    def head(self, count: int) -> Listing:
        """The first rows."""
        return self._slice(slice(0, count))

    def where(self, chosen: npt.NDArray[np.bool_]) -> Listing:
        """Some rows, at the ranks they have."""
        places = np.flatnonzero(chosen)
        some = self._take([self.ids[place] for place in places.tolist()], places)
        return replace(some, ranks=places + 1)

    def _slice(self, part: slice) -> Listing:
        return self._take(self.ids[part], part)

    def _take(self, ids: list[str], part: slice | IntArray) -> Listing:
        return Listing(
            ids,
            self.known[part],
            self.values[part],
            self.votes[part],
            self.n_members[part],
            None if self.low is None else self.low[part],
            None if self.high is None else self.high[part],
            {name: column[part] for name, column in self.further.items()},
            None if self.ranks is None else self.ranks[part],
            None if self.numbers is None else self.numbers[part],
        )

    @property
    def columns(self) -> tuple[str, ...]:
        return (*COLUMNS, *self.further)

    @property
    def expected_false(self) -> FloatArray | None:
        """Only of an audit."""
        return self.further.get(EXPECTED_FALSE[0])

    def records(self) -> Iterator[tuple[Any, ...]]:
        """A tuple of columns for each row; None where there is nothing to say."""
        for start in range(0, len(self), LINES_AT_ONCE):
            part = self._slice(slice(start, start + LINES_AT_ONCE))
            judged = part.n_members > 0
            nothing = [None] * len(part)
            columns: list[list[Any]] = [
                list(range(start + 1, start + 1 + len(part)))
                if part.ranks is None
                else part.ranks.tolist(),
                part.ids,
                part.known.astype(int).tolist(),
                [None if math.isnan(value) else value for value in part.values.tolist()],
                [None if math.isnan(value) else value for value in part.votes.tolist()],
                part.n_members.tolist(),
            ]
            for bound in (part.low, part.high):
                bounds = nothing if bound is None else np.where(judged, bound, -1).tolist()
                columns.append([None if rank == -1 else rank for rank in bounds])
            for name, column in part.further.items():
                digits = 10 if name in CONFORMAL else 4
                figures = column.tolist()
                columns.append([None if math.isnan(one) else round(one, digits) for one in figures])
            yield from zip(*columns, strict=True)


def format_ranking(form: RankingFormat, listing: Listing) -> Iterator[bytes]:
    """The text of a ranking, in pieces."""
    if form == "jsonl":
        names = listing.columns
        yield from _pieces(
            json.dumps(dict(zip(names, map(_plain, record), strict=True))) + "\n"
            for record in listing.records()
        )
        return
    line = line_writer("\t" if form == "tsv" else ",")
    yield _encoded(line(listing.columns))
    yield from _pieces(
        line("" if field is None else field for field in record) for record in listing.records()
    )


def _plain(field: Any) -> Any:
    return as_unicode(field) if isinstance(field, str) else field


def _pieces(lines: Iterator[str]) -> Iterator[bytes]:
    waiting: list[str] = []
    for line in lines:
        waiting.append(line)
        if len(waiting) == LINES_AT_ONCE:
            yield _encoded("".join(waiting))
            waiting = []
    yield _encoded("".join(waiting))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
