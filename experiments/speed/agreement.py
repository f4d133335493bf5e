"""Check that two programs agree: a time counts only if the results agree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Solvers stop within a tolerance of the optimum. resvm uses 1e-3 for LIBSVM and 1e-2 for LIBLINEAR.
# With values of order 1, members trained on the same bag differ by about that much, and members
# trained on different bags by far more.
LIMITS = {"libsvm": 1e-2, "liblinear": 5e-2}


@dataclass(frozen=True)
class Agreement:
    """Whether two programs agree, and a text that says how closely."""

    agrees: bool
    text: str

    def __and__(self, other: Agreement) -> Agreement:
        return Agreement(self.agrees and other.agrees, f"{self.text}; {other.text}")


@dataclass(frozen=True, eq=False)
class Members:
    """The values of two programs for the same members on the same rows (rows x members).

    LIBLINEAR stops some members at its iteration limit, at a point that depends on chance. The
    ``unfinished`` members that differ most are therefore exempt from the limit.
    """

    reference: np.ndarray
    values: np.ndarray
    limit: float
    unfinished: int = 0

    @property
    def distances(self) -> np.ndarray:
        """The largest difference between the two programs for each member."""
        return np.abs(self.reference - self.values).max(axis=0)

    @property
    def slack(self) -> np.ndarray:
        """How much the values of each member may differ on rows other than these."""
        distances = self.distances
        slack = np.full(len(distances), self.limit)
        excused = np.argsort(distances)[len(distances) - self.unfinished :]
        slack[excused] = np.maximum(self.limit, 2 * distances[excused])
        return slack

    def agreement(self) -> Agreement:
        """Check that all members that are not exempt are within the limit."""
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
    """Check votes and d in a predictions file, allowing for the members' slack.

    A vote may go either way if the member's value differs from zero by no more than its slack. If
    the votes are unanimous, d is the sum of the values (plus 1 if all are positive). Otherwise, d
    is the fraction of positive votes.
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
    """Check labels in one file per member; the original predictors write nothing else."""
    written = np.column_stack([np.loadtxt(path) for path in files])
    expected = reference[:, : len(files)]
    decided = np.abs(expected) > slack[: len(files)]
    wrong = decided & (np.sign(expected) != np.sign(written))
    if wrong.any():
        return Agreement(False, f"{wrong.sum():,} labels differ")
    return Agreement(True, f"{written.size:,} labels of {len(files)} members")


def same_bytes(first: Path, second: Path) -> Agreement:
    """Check that two runs of resvm wrote the same bytes."""
    if first.read_bytes() == second.read_bytes():
        return Agreement(True, "same bytes")
    return Agreement(False, "other bytes than with one thread")


def row_values(reference: np.ndarray, values: np.ndarray) -> Agreement:
    """Check one model's values on all rows.

    Both programs read the same numbers, so the values may differ only by rounding.
    """
    if reference.shape != values.shape:
        return Agreement(False, f"{len(values):,} rows where {len(reference):,} were expected")
    largest = float(np.abs(reference - values).max())
    return Agreement(largest <= 1e-9, f"values of {len(values):,} rows within {largest:.1e}")


def ranks(reference: np.ndarray, values: np.ndarray) -> Agreement:
    """Report the rank correlation with another method on the same data, without a verdict."""
    from scipy.stats import spearmanr

    alike = float(spearmanr(reference, values).statistic)
    return Agreement(True, f"other bags: not compared (rank correlation {alike:.2f})")
