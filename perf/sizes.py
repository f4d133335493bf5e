"""Sizes that determine how much work one run of the measurements does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Sizes of all work; the defaults are the authors' example (digit 7 of mnist)."""

    members: tuple[int, ...] = (50, 200)
    rows_pos: int = 50
    rows_unl: int = 2_000
    n_pos: int = 10
    n_unl: int = 100
    generated_rows: int = 20_000  # in place of a labeled data set that is not in the data directory
    parse_rows: int | None = None  # None: the whole file
    test_rows: int = 10_000
    probe_rows: int = 500  # rows on which each member's values are compared
    long_rows: int = 1_000_000
    short_rows: int = 100_000
    part_rows: tuple[int, int] = (5_000, 20_000)  # for peers that would take too long on all rows
    part_members: tuple[int, int] = (2, 8)  # for peers that would take too long for all members
    large_members: int = 40  # number of members with larger bags
    large_rows: tuple[int, int] = (1_000, 40_000)  # rows of P and U for the larger bags
    large_bag: tuple[int, int] = (100, 1_000)
    large_test_rows: int = 20_000
    hard_rows: tuple[int, int] = (1_000, 20_000)
    hard_bag: tuple[int, int] = (100, 500)  # for members with large penalties
    hard_penalty: float = 100.0
    ranked_rows: int = 100_000
    scored_rows: int = 2_000_000
    many_members: int = 3_200
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
    large_members=10,
    large_rows=(200, 4_000),
    large_test_rows=2_000,
    hard_rows=(200, 4_000),
    ranked_rows=10_000,
    scored_rows=100_000,
    many_members=400,
    repeats=2,
    timeout=120.0,
)
