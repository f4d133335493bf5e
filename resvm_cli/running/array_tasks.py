"""How the tasks of an array job divide a list among themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """Share ``number`` of ``count``; numbers start at 1."""

    number: int
    count: int

    def of(self, total: int) -> range:
        """Return this share's positions in a list of length ``total``; may be empty."""
        return range(total * (self.number - 1) // self.count, total * self.number // self.count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def shares_holding(positions: Iterable[int], total: int, count: int) -> list[int]:
    """Return the numbers of the shares that contain these positions of a list."""
    wanted = set(positions)
    return [
        number
        for number in range(1, count + 1)
        if not wanted.isdisjoint(Share(number, count).of(total))
    ]


def as_ranges(numbers: Sequence[int]) -> str:
    """Format task numbers as array jobs expect them, such as ``3,7-9``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
