"""Sentences, tables and figures of a report, and how its numbers are written."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resvm_cli.benchmark.tables import Estimate

TITLES = {
    "supervised": "Supervised",
    "pu": "PU learning",
    "semi-supervised": "Semi-supervised",
    "own": "Own data",
}
NOTHING = "-"


@dataclass(frozen=True)
class Cell:
    """Text of a table, what it is sorted by, and whether it is worth a look."""

    text: str
    value: float | None = None
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under column names; the first so many columns are names."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    n_names: int = 1
    prose: bool = False  # sentences in its cells


@dataclass(frozen=True)
class Figure:
    """What a page draws; elsewhere the tables say the same."""

    kind: str
    title: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Section:
    """A chapter of the report."""

    title: str
    sentences: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = field(default=())


def number(value: float | None, digits: int = 1, sign: bool = False) -> Cell:
    if value is None or math.isnan(value):
        return Cell(NOTHING)
    text = f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
    return Cell(text, value)


def count(value: float | None) -> Cell:
    """A count; halves and thirds of shared first places are shown where there are any."""
    if value is None:
        return Cell(NOTHING)
    return Cell(f"{value:.0f}" if abs(value - round(value)) < 1e-9 else f"{value:.1f}", value)


def p_value(value: float | None) -> Cell:
    if value is None or math.isnan(value):
        return Cell(NOTHING)
    return Cell(f"{value:.2g}", value, "best" if value < 0.05 else "")


def interval(value: Estimate, mark: str = "") -> Cell:
    if value.low is None or value.high is None:
        return Cell(f"{value.mean:.1f}", value.mean, mark)
    until = "-" if value.low >= 0 else " to "  # of few repetitions it may begin below 0
    text = f"{value.mean:.1f} ({value.low:.1f}{until}{value.high:.1f})"
    return Cell(text, value.mean, mark)
