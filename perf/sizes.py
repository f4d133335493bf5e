"""How much work a run is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """The authors' example (digit 7 of mnist) unless told otherwise."""

    members: tuple[int, ...] = (50, 200)
    rows_pos: int = 50
    rows_unl: int = 2_000
    n_pos: int = 10
    n_unl: int = 100
    generated_rows: int = 20_000  # of a labelled set, where no data directory has it
    parse_rows: int | None = None  # None: the whole file
    test_rows: int = 10_000
    probe_rows: int = 500  # rows on which members' values are compared one by one
    long_rows: int = 1_000_000
    short_rows: int = 100_000
    part_rows: tuple[int, int] = (5_000, 20_000)  # of a set too long for a peer
    part_members: tuple[int, int] = (5, 20)  # of an ensemble too long for a peer
    repeats: int = 5
    timeout: float = 600.0


FULL = Sizes()
QUICK = Sizes(
    generated_rows=10_000,
    parse_rows=10_000,
    test_rows=1_000,
    probe_rows=200,
    long_rows=200_000,
    short_rows=50_000,
    part_rows=(2_000, 8_000),
    repeats=2,
    timeout=120.0,
)
