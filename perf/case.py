"""Define what is measured: cases, groups of cases to compare, and target ratios."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perf.agreement import Agreement
from perf.measure import Steps

LEAST_SHARE = 0.1  # minimum time difference between the parts, as a fraction of the longer time


@dataclass(frozen=True)
class Part:
    """Two parts of a case that takes too long, for extrapolating its total time linearly.

    Two parts are needed to separate the time of the work from that of start-up and parsing.
    """

    smaller: Steps
    amounts: tuple[int, int]
    whole: int
    unit: str

    def seconds(self, smaller: float, larger: float) -> float | None:
        """Extrapolate the total time; None if the two times are too close together."""
        less, more = self.amounts
        if larger - smaller < LEAST_SHARE * larger:
            return None
        return larger + (larger - smaller) / (more - less) * (self.whole - more)

    def __str__(self) -> str:
        return f"{self.amounts[1]:,} of {self.whole:,} {self.unit} run, extrapolated"


@dataclass(frozen=True)
class Case:
    """One program that does one piece of work."""

    name: str
    steps: Steps
    stdout: Path | None = None
    threads: int | None = 1
    prepare: Callable[[], object] | None = None  # once, not timed
    reset: Callable[[], object] | None = None  # before each run, not timed
    check: Callable[[], Agreement] | None = None  # after the first run; None: nothing to compare
    less: Steps | None = None  # a command for start-up alone, whose time is subtracted
    part: Part | None = None
    amount: float | None = None  # amount of work, if different from the group's


@dataclass(frozen=True)
class Asked:
    """A target ratio between resvm and a peer; if there are several peers, the best one counts."""

    what: str
    bound: float
    ours: str
    theirs: tuple[str, ...]
    at: Literal["least", "most"]
    of: Literal["seconds", "peak_mb"] = "seconds"


@dataclass(frozen=True)
class Group:
    """Cases that do the same work; the first is the baseline for the others."""

    title: str
    cases: Sequence[Case]
    asked: Sequence[Asked] = ()
    amount: float | None = None  # amount of work, for a rate
    unit: str = ""
    repeats: int = 1  # multiplies the number of repeats; short cases need more
