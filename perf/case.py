"""What is measured: cases, the groups they compete in, and the figures that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perf.agreement import Agreement
from perf.measure import Steps

LEAST_SHARE = 0.1  # of the larger part's time, that the smaller one must have been shorter


@dataclass(frozen=True)
class Part:
    """A case too long to be run whole: two parts of it, from which the whole follows linearly.

    Two, because start-up and parsing must not be multiplied along with the work.
    """

    smaller: Steps
    amounts: tuple[int, int]
    whole: int
    unit: str

    def seconds(self, smaller: float, larger: float) -> float | None:
        """The whole, or None where the two parts are too alike to tell."""
        less, more = self.amounts
        if larger - smaller < LEAST_SHARE * larger:
            return None
        return larger + (larger - smaller) / (more - less) * (self.whole - more)

    def __str__(self) -> str:
        return f"{self.amounts[1]:,} of {self.whole:,} {self.unit} run, extrapolated"


@dataclass(frozen=True)
class Case:
    """One program on one piece of work."""

    name: str
    steps: Steps
    stdout: Path | None = None
    threads: int | None = 1
    prepare: Callable[[], object] | None = None  # once, outside the time
    reset: Callable[[], object] | None = None  # before each run, outside the time
    check: Callable[[], Agreement] | None = None  # after the first run; None: nothing to compare
    less: Steps | None = None  # start-up: measured too, and taken off
    part: Part | None = None
    amount: float | None = None  # of work, where it is not the group's


@dataclass(frozen=True)
class Asked:
    """A ratio the project holds itself to; of several peers the best counts."""

    what: str
    bound: float
    ours: str
    theirs: tuple[str, ...]
    at: Literal["least", "most"]
    of: Literal["seconds", "peak_mb"] = "seconds"


@dataclass(frozen=True)
class Group:
    """Cases that do the same work; the first is the one others are compared with."""

    title: str
    cases: Sequence[Case]
    asked: Sequence[Asked] = ()
    amount: float | None = None  # of work, for a rate
    unit: str = ""
    repeats: int = 1  # times the number of repeats: short cases need more
