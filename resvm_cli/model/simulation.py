"""Draw P, U and test sets with known contamination from labeled rows or the paper's 2-D problem.

As in the paper, contamination flips labels: of n_pos known positives, round(a n_pos) are truly
negative; of n_unl unlabeled rows, round(b n_unl) are truly positive. No row is used twice.
"""

from __future__ import annotations

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, Rows

RADIUS = 4.0  # radius of the circle around which negatives lie


@dataclass(frozen=True)
class Sizes:
    """The sizes of the sets; None for the test set means all remaining rows."""

    n_pos: int
    n_unl: int
    contamination_pos: float = 0.0
    contamination_unl: float = 0.0
    test_pos: int | None = None
    test_neg: int | None = None

    @property
    def false_positives(self) -> int:
        return round(self.contamination_pos * self.n_pos)

    @property
    def hidden_positives(self) -> int:
        return round(self.contamination_unl * self.n_unl)

    @property
    def positives_needed(self) -> int:
        """The number of true positives needed for P, U and the test set."""
        return self.n_pos - self.false_positives + self.hidden_positives + (self.test_pos or 0)

    @property
    def negatives_needed(self) -> int:
        """The number of true negatives needed for P, U and the test set."""
        return self.false_positives + self.n_unl - self.hidden_positives + (self.test_neg or 0)


def truth_of(labels: FloatArray, positive_label: float, name: str) -> np.ndarray:
    """Return whether each row has the positive label; both classes must be present."""
    truth: np.ndarray = labels == positive_label
    if not truth.any() or truth.all():
        which = "no row has" if not truth.any() else "every row has"
        listed = ", ".join(f"{label:.12g}" for label in np.unique(labels)[:20])
        raise DataError(
            f"{name}: {which} the label {positive_label:.12g}", f"the labels are {listed}"
        )
    return truth


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of the three sets, each in random order."""

    positives: IntArray
    unlabeled: IntArray
    test: IntArray


def split(
    truth: np.ndarray, sizes: Sizes, rng: np.random.Generator, chances: FloatArray | None = None
) -> Split:
    """Draw the sets; ``chances`` are relative probabilities that a true positive is labeled."""
    positive, negative = np.flatnonzero(truth), np.flatnonzero(~truth)
    for name, present, needed in (
        ("positive", positive, sizes.positives_needed),
        ("negative", negative, sizes.negatives_needed),
    ):
        if len(present) < needed:
            raise DataError(
                f"{needed:,} truly {name} rows are needed, but there are only {len(present):,}",
                "choose smaller sets or a different contamination",
            )
    positive, negative = rng.permutation(positive), rng.permutation(negative)
    if chances is not None:
        # Efraimidis and Spirakis: the largest keys are a weighted sample without replacement
        keys = np.log(rng.random(len(positive))) / chances[positive]
        positive = positive[np.argsort(-keys, kind="stable")]
    n_known = sizes.n_pos - sizes.false_positives
    known, positive = positive[:n_known], rng.permutation(positive[n_known:])
    false, negative = negative[: sizes.false_positives], negative[sizes.false_positives :]
    hidden, positive = positive[: sizes.hidden_positives], positive[sizes.hidden_positives :]
    n_true = sizes.n_unl - sizes.hidden_positives
    unlabeled, negative = negative[:n_true], negative[n_true:]
    test = [positive[: sizes.test_pos], negative[: sizes.test_neg]]
    return Split(
        rng.permutation(np.concatenate([known, false])),
        rng.permutation(np.concatenate([hidden, unlabeled])),
        rng.permutation(np.concatenate(test)),
    )


def biased_chances(rows: Rows, rng: np.random.Generator) -> FloatArray:
    """Return relative labeling probabilities that depend on the features.

    They are e^z, where z is the standardized position along a random direction: a row one standard
    deviation further along is e times as likely to be labeled.

    """
    present, column = np.unique(rows.indices, return_inverse=True)
    direction = rng.standard_normal(len(present))
    with np.errstate(over="ignore", invalid="ignore"):
        along = np.bincount(
            rows.row_numbers, weights=rows.values * direction[column], minlength=len(rows)
        )
        deviation = float(along.std()) or 1.0
    if not np.isfinite(deviation):
        raise DataError("the values are too large for biased labeling", "scale them first")
    chances: FloatArray = np.exp(np.clip((along - along.mean()) / deviation, -8.0, 8.0))
    return chances


def synthetic(n_positive: int, n_negative: int, rng: np.random.Generator) -> FloatArray:
    """Draw the paper's 2-D problem: normal positives, then negatives around a circle."""
    angles = rng.uniform(0.0, 2.0 * np.pi, n_negative)
    circle = RADIUS * np.column_stack([np.cos(angles), np.sin(angles)])
    centers = np.concatenate([np.zeros((n_positive, 2)), circle])
    return centers + rng.standard_normal(centers.shape)
