"""The share of a list that one task of an array job works on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """Share ``number`` of ``count``; numbers count from 1, as people do."""

    number: int
    count: int

    def of(self, total: int) -> range:
        """The positions in a list of this length that belong to the share; perhaps none."""
        return range(total * (self.number - 1) // self.count, total * self.number // self.count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def shares_holding(positions: Iterable[int], total: int, count: int) -> list[int]:
    """The numbers of the shares that hold these positions in a list."""
    wanted = set(positions)
    return [
        number
        for number in range(1, count + 1)
        if not wanted.isdisjoint(Share(number, count).of(total))
    ]


def as_ranges(numbers: Sequence[int]) -> str:
    """``3,7-9``: the form in which array jobs take the tasks to run."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
