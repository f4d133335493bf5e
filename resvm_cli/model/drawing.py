"""P, U and test sets from labelled rows, with the stated share of wrong labels in each.

As in the paper, contamination flips labels: of n_pos known positives, round(a n_pos) are truly
negative; of n_unl unlabeled rows, round(b n_unl) are truly positive. No row is used twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.rows import FloatArray, IntArray, Rows


@dataclass(frozen=True)
class Sizes:
    """How large the sets are to be; None for the test set means all that is left."""

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
        """True positives that P, U and the test set take."""
        return self.n_pos - self.false_positives + self.hidden_positives + (self.test_pos or 0)

    @property
    def negatives_needed(self) -> int:
        """True negatives that P, U and the test set take."""
        return self.false_positives + self.n_unl - self.hidden_positives + (self.test_neg or 0)


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of the three sets, each in random order."""

    positives: IntArray
    unlabeled: IntArray
    test: IntArray


def split(
    truth: np.ndarray, sizes: Sizes, rng: np.random.Generator, chances: FloatArray | None = None
) -> Split:
    """Draw the sets from rows whose true class is known (+1 where ``truth``).

    With ``chances``, true positives are known with these relative chances and not at random.
    """
    positive, negative = np.flatnonzero(truth), np.flatnonzero(~truth)
    for name, there, needed in (
        ("positive", positive, sizes.positives_needed),
        ("negative", negative, sizes.negatives_needed),
    ):
        if len(there) < needed:
            raise DataError(
                f"{needed:,} truly {name} rows are needed and {len(there):,} are there",
                "ask for smaller sets, or another contamination",
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
    """Relative chances to be known that depend on the features: e^z along a random direction.

    z is standardized, so a row one deviation further along is e times as likely to be known.
    """
    present, place = np.unique(rows.indices, return_inverse=True)
    direction = rng.standard_normal(len(present))
    with np.errstate(over="ignore", invalid="ignore"):
        along = np.bincount(
            rows.row_numbers, weights=rows.values * direction[place], minlength=len(rows)
        )
        deviation = float(along.std()) or 1.0
    if not np.isfinite(deviation):
        raise DataError("the values are too large for biased labelling", "scale them first")
    chances: FloatArray = np.exp(np.clip((along - along.mean()) / deviation, -8.0, 8.0))
    return chances
