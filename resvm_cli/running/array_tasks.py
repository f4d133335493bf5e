"""One of several equal shares of a list, as the tasks of an array job divide it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """Share ``number`` of ``count``; numbers count from 1, as people do."""

    number: int
    count: int

    def of(self, total: int) -> range:
        """The places of a list of this length that are in the share; perhaps none."""
        return range(total * (self.number - 1) // self.count, total * self.number // self.count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def shares_holding(places: Iterable[int], total: int, count: int) -> list[int]:
    """The numbers of the shares that hold these places of a list."""
    wanted = set(places)
    return [
        number
        for number in range(1, count + 1)
        if not wanted.isdisjoint(Share(number, count).of(total))
    ]


def as_ranges(numbers: Sequence[int]) -> str:
    """``3,7-9``: as array jobs are told which tasks to run."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
