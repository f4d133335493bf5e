"""Ranked rows with their columns: U, best first, or P, most suspicious first."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from resvm_cli.data import _numbers
from resvm_cli.data.fields import line_writer
from resvm_cli.data.streams import as_unicode
from resvm_cli.metrics.class_mixture import ClassMixture
from resvm_cli.ranking.scores import OutOfBagScores, rank_bounds
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray

if TYPE_CHECKING:
    import numpy.typing as npt

    AnyArray: TypeAlias = npt.NDArray[Any]

RankingFormat: TypeAlias = Literal["tsv", "csv", "jsonl"]
RANKING_FORMATS: tuple[RankingFormat, ...] = ("tsv", "csv", "jsonl")
COLUMNS = ("rank", "id", "known", "decision_value", "votes", "members", "rank_low", "rank_high")
PRECISION = ("precision", "precision_low", "precision_high")
PROBABILITY = "probability"
EXPECTED_FALSE = ("expected_false", "expected_false_low", "expected_false_high")
CONFORMAL = ("p_value", "q_value")
LINES_AT_ONCE = 4_000  # their texts stay in the cache
ROUNDING = 1e-9
NEAR_TIE = 0.01  # in units of the last digit; far above rounding errors


@dataclass(frozen=True, eq=False)
class Listing:
    """Rows in order of rank.

    If every member has seen a row, ``n_members`` is 0; if it is a row of P, its value is nan.
    """

    ids: list[str]
    known: npt.NDArray[np.bool_]
    values: FloatArray
    votes: FloatArray
    n_members: IntArray
    low: IntArray
    high: IntArray
    ranks: IntArray  # increasing, with gaps where rows were left out
    numbers: IntArray  # row numbers, P before U
    extra_columns: Mapping[str, FloatArray] = field(default_factory=dict)  # additional columns

    def __len__(self) -> int:
        return len(self.ids)

    def head(self, count: int) -> Listing:
        """Return the top rows."""
        return self.part(slice(0, count))

    def part(self, rows: slice) -> Listing:
        """Return consecutive rows."""
        return self._take(self.ids[rows], rows)

    def where(self, chosen: npt.NDArray[np.bool_]) -> Listing:
        """Return the chosen rows, which keep their ranks."""
        indices = np.flatnonzero(chosen)
        return self._take([self.ids[index] for index in indices.tolist()], indices)

    def _take(self, ids: list[str], part: slice | IntArray) -> Listing:
        own = vars(self).items()
        arrays = {name: column[part] for name, column in own if isinstance(column, np.ndarray)}
        extra_columns = {name: column[part] for name, column in self.extra_columns.items()}
        return replace(self, ids=ids, extra_columns=extra_columns, **arrays)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*COLUMNS, *self.extra_columns)

    def by_column(self) -> dict[str, list[Any]]:
        """Return the columns by name, with None for an empty cell."""
        return self._columns(lambda column: column.tolist(), None)

    def _columns(self, listed: Callable[[AnyArray], list[Any]], empty: Any) -> dict[str, list[Any]]:
        """Return the columns as lists made by ``listed``, with ``empty`` for an empty cell."""

        def cells(column: AnyArray, is_empty: npt.NDArray[np.bool_] | None = None) -> list[Any]:
            found = listed(column)
            if is_empty is None:
                is_empty = np.isnan(column)
            for row in np.flatnonzero(is_empty).tolist():
                found[row] = empty
            return found

        columns = [
            cells(self.ranks),
            self.ids,
            cells(self.known.astype(np.int64)),
            cells(self.values),
            cells(self.votes),
            cells(self.n_members),
            cells(self.low, self.n_members == 0),
            cells(self.high, self.n_members == 0),
        ]
        for name, column in self.extra_columns.items():
            columns.append(cells(_rounded(column, 10 if name in CONFORMAL else 4)))
        return dict(zip(self.columns, columns, strict=True))

    def lines(self, separator: str) -> str:
        """Return one line of text per row."""
        text = "".join(self.ids)
        if any(mark in text for mark in (separator, '"', "\r", "\n")):  # an id needs quotes
            return "".join(map(line_writer(separator), self.records()))
        columns = self._columns(_texts, "").values()
        return "".join([separator.join(row) + "\n" for row in zip(*columns, strict=True)])

    def records(self) -> Iterator[tuple[Any, ...]]:
        """Return one tuple of columns per row, with None for an empty cell."""
        return zip(*self.by_column().values(), strict=True)


def _texts(column: AnyArray) -> list[str]:
    """Return the numbers in a column as Python writes them."""
    if column.dtype != np.float64:
        return list(map(str, column.tolist()))
    text = _numbers.lines(None, np.ascontiguousarray(column), 1, b"\n")
    return text.decode("ascii").split("\n")[:-1]


def _rounded(column: FloatArray, digits: int) -> FloatArray:
    """Round like Python's round, which is exact but slow and is called only near ties."""
    scaled = column * 10.0**digits
    rounded: FloatArray = np.rint(scaled) / 10.0**digits
    for row in np.flatnonzero(np.abs(scaled - np.floor(scaled) - 0.5) < NEAR_TIE).tolist():
        rounded[row] = round(float(column[row]), digits)
    return rounded


def rank_rows(
    ids: list[str], scored: OutOfBagScores, *, known: bool, first: int = 0, workers: int = 1
) -> Listing:
    """Sort rows of U, highest value first, or of P (``known``), lowest value first.

    Ties are in order of row number, and rows without a value come last. Row numbers start at
    ``first``.
    """
    assert scored.resampled is not None
    order = np.argsort(scored.values if known else -scored.values, kind="stable")
    ranks = np.arange(1, len(order) + 1)
    of_rows = np.empty(len(order), np.int64)
    of_rows[order] = ranks
    low, high = rank_bounds(
        scored.resampled, of_rows, scored.values, lowest_first=known, workers=workers
    )
    return Listing(
        [ids[number] for number in order.tolist()],
        np.full(len(order), known),
        scored.values[order],
        scored.votes[order],
        scored.n_members[order],
        low[order],
        high[order],
        ranks,
        order + first,
    )


def add_estimates(listing: Listing, classes: ClassMixture | None, *, known: bool) -> Listing:
    """Add what to expect of the rows down to each rank, and each row's probability in U."""
    scored = listing.n_members > 0
    n_scored = int(scored.sum())
    if known:
        names = EXPECTED_FALSE
        figure = None if classes is None else classes.expected_false(n_scored)
    else:
        names = PRECISION
        figure = None if classes is None else classes.precision(n_scored)
    depths = np.where(scored, np.cumsum(scored), 0)
    columns = {}
    for name, part in zip(names, ("value", "low", "high"), strict=True):
        by_depth = np.full(1, np.nan)  # at depth 0
        if figure is not None:
            by_depth = np.concatenate([by_depth, getattr(figure, part)])
        columns[name] = by_depth[np.minimum(depths, len(by_depth) - 1)]
    if not known:
        columns[PROBABILITY] = np.full(len(listing), np.nan)
        if classes is not None:
            columns[PROBABILITY][scored] = classes.probability(listing.values[scored])
    return replace(listing, extra_columns=columns)


@dataclass(frozen=True, eq=False)
class Recovery:
    """The ranks in U at which known positives would be found if they were unlabeled.

    Tied rows have no order, so results are expectations over all orders of tied rows.
    """

    before: IntArray  # the number of rows of U above each known positive
    tied: IntArray  # the number of rows of U with the same value

    @classmethod
    def from_values(cls, known: OutOfBagScores, unlabeled: OutOfBagScores) -> Recovery | None:
        """Compute depths from out-of-bag values of P and U; None if no row of P has one."""
        values = known.values[known.scored]
        if not len(values):
            return None
        ascending = np.sort(unlabeled.values)
        up_to = np.searchsorted(ascending, values, "right")
        return cls(len(ascending) - up_to, up_to - np.searchsorted(ascending, values, "left"))

    def recall_at(self, depth: int) -> float:
        """Return the fraction of known positives found in the top ``depth`` rows."""
        # a row may have any of t + 1 positions among t tied rows
        found = np.clip((depth - self.before) / (self.tied + 1), 0.0, 1.0)
        return float(found.sum() / len(found))

    @cached_property
    def depths(self) -> IntArray:
        """The number of rows to examine to find one known positive, two, and so on."""
        rates = 1.0 / (self.tied + 1)
        depths = np.concatenate([self.before, self.before + self.tied + 1])
        order = np.argsort(depths, kind="stable")
        depths, changes = depths[order], np.concatenate([rates, -rates])[order]
        # between two depths, the number found grows linearly
        growth = np.maximum(np.cumsum(changes)[:-1] * np.diff(depths), 0.0)
        n_found = np.concatenate([[0.0], np.cumsum(growth)])
        wanted = np.arange(1, len(rates) + 1) * (1 - ROUNDING)
        last = np.searchsorted(n_found, wanted)
        part = (n_found[last] - wanted) / (n_found[last] - n_found[last - 1])
        exact = depths[last] - part * (depths[last] - depths[last - 1])
        result: IntArray = np.ceil(exact).astype(np.int64)
        return result

    def depth_of(self, fraction: float) -> int:
        """Return the number of rows to examine to find this fraction of the known positives."""
        return int(self.depths[int(np.ceil(round(fraction * len(self.depths), 9))) - 1])


def format_ranking(form: RankingFormat, listing: Listing) -> Iterator[bytes]:
    """Yield the text of a ranking in pieces."""
    names = listing.columns
    separator = "\t" if form == "tsv" else ","
    if form != "jsonl":
        yield _encoded(line_writer(separator)(names))
    for start in range(0, len(listing), LINES_AT_ONCE):
        part = listing.part(slice(start, start + LINES_AT_ONCE))
        if form != "jsonl":
            yield _encoded(part.lines(separator))
            continue
        part = replace(part, ids=list(map(as_unicode, part.ids)))
        lines = (json.dumps(dict(zip(names, each, strict=True))) for each in part.records())
        yield _encoded("".join(f"{line}\n" for line in lines))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
