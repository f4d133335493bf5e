"""Whether two programs found the same: a time counts only where they did."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Solvers stop short of the optimum, LIBSVM 1e-3 and LIBLINEAR (as resvm calls it) 1e-2, on values
# of order 1: members of one bag differ by about that, and by far more where the bag is another.
LIMITS = {"libsvm": 1e-2, "liblinear": 5e-2}


@dataclass(frozen=True)
class Agreement:
    """The verdict, and what it rests on."""

    agrees: bool
    text: str

    def __and__(self, other: Agreement) -> Agreement:
        return Agreement(self.agrees and other.agrees, f"{self.text}; {other.text}")


@dataclass(frozen=True, eq=False)
class Members:
    """Two programs' values of the same members on the same rows (rows x members).

    LIBLINEAR leaves some members unfinished, at its iteration limit; where a program stops then is
    chance, so the ``unfinished`` members that are furthest apart are not held to the limit.
    """

    reference: np.ndarray
    values: np.ndarray
    limit: float
    unfinished: int = 0

    @property
    def distances(self) -> np.ndarray:
        """How far apart each member's values are at most."""
        return np.abs(self.reference - self.values).max(axis=0)

    @property
    def slack(self) -> np.ndarray:
        """How far each member's values may be apart on other rows."""
        distances = self.distances
        slack = np.full(len(distances), self.limit)
        excused = np.argsort(distances)[len(distances) - self.unfinished :]
        slack[excused] = np.maximum(self.limit, 2 * distances[excused])
        return slack

    def agreement(self) -> Agreement:
        """Whether all that can be held to the limit keep it."""
        if self.reference.shape != self.values.shape:
            expected, shape = self.reference.shape, self.values.shape
            return Agreement(False, f"{shape} values where {expected} were expected")
        distances = np.sort(self.distances)
        held = len(distances) - self.unfinished
        worst = float(distances[:held].max(initial=0.0))
        within = f"within {worst:.1e} (limit {self.limit:g})"
        if not self.unfinished:
            return Agreement(worst <= self.limit, f"members {within}")
        return Agreement(
            worst <= self.limit,
            f"{held} members {within}, {self.unfinished} not finished by the solver",
        )


def votes_and_values(reference: np.ndarray, predictions: Path, slack: np.ndarray) -> Agreement:
    """Votes and d of a predictions file, as far as the members' slack leaves them open.

    A vote is open where a member's value lies within its slack of zero; d is the sum of the values
    (plus 1) where votes are unanimous, and the votes elsewhere.
    """
    written = np.loadtxt(predictions, ndmin=2)
    if len(written) != len(reference):
        return Agreement(False, f"{len(written)} rows where {len(reference)} were expected")
    d, votes = written[:, 1], written[:, 2]
    rounding = 1e-9
    least = (reference > slack).mean(axis=1) - rounding
    most = (reference > -slack).mean(axis=1) + rounding
    wrong = (votes < least) | (votes > most)
    sums = reference.sum(axis=1) + (votes == 1.0)
    unanimous = (votes == 0.0) | (votes == 1.0)
    wrong |= unanimous & (np.abs(d - sums) > slack.sum())
    wrong |= ~unanimous & (np.abs(d - votes) > rounding)
    if wrong.any():
        return Agreement(False, f"votes or d differ in {wrong.sum():,} of {len(d):,} rows")
    return Agreement(True, f"votes and d of {len(d):,} rows")


def labels(reference: np.ndarray, files: list[Path], slack: np.ndarray) -> Agreement:
    """Labels by member, one file each: all that stock predictors write."""
    written = np.column_stack([np.loadtxt(path) for path in files])
    expected = reference[:, : len(files)]
    decided = np.abs(expected) > slack[: len(files)]
    wrong = decided & (np.sign(expected) != np.sign(written))
    if wrong.any():
        return Agreement(False, f"{wrong.sum():,} labels differ")
    return Agreement(True, f"{written.size:,} labels of {len(files)} members")


def same_bytes(first: Path, second: Path) -> Agreement:
    """Two runs of resvm itself: nothing may differ."""
    if first.read_bytes() == second.read_bytes():
        return Agreement(True, "same bytes")
    return Agreement(False, "other bytes than with one thread")


def same_start(whole: Path, start: Path, n_rows: int) -> Agreement:
    """resvm on the first rows of a set: what it wrote of the whole begins with just that."""
    with whole.open("rb") as lines:
        same = b"".join(itertools.islice(lines, n_rows)) == start.read_bytes()
    return Agreement(same, "same bytes" if same else "other bytes than in the whole set")


def row_values(reference: np.ndarray, values: np.ndarray) -> Agreement:
    """Values of one model on all rows: both programs read the same numbers, so rounding only."""
    if reference.shape != values.shape:
        return Agreement(False, f"{len(values):,} rows where {len(reference):,} were expected")
    largest = float(np.abs(reference - values).max())
    return Agreement(largest <= 1e-9, f"values of {len(values):,} rows within {largest:.1e}")


def ranks(reference: np.ndarray, values: np.ndarray) -> Agreement:
    """Another method on the same data: how alike the rankings are, and no verdict."""
    from scipy.stats import spearmanr

    alike = float(spearmanr(reference, values).statistic)
    return Agreement(True, f"other bags: not compared (rank correlation {alike:.2f})")
