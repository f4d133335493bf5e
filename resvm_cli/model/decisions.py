"""Decision rules and thresholds, and whether new rows resemble the training rows.

A threshold is chosen out of bag to maximize recall² / fraction of U predicted positive (Lee and
Liu). A term that shrinks with the number of rows keeps the denominator away from 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from resvm_cli.parameters import RULE_NAMES, RuleName
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, distinct, quantiles

# With fewer out-of-bag rows, no threshold is chosen.
MIN_POSITIVES = 10
MIN_UNLABELED = 20
SHRINKAGE = 0.3
# Even among rows like the training rows, about 1 in 100 is outside the usual range.
TAIL = 0.005
MIN_FOR_RANGE = 20
MIN_OUTSIDE, FRACTION_OUTSIDE = 3, 0.05
# The fraction predicted positive is unusual if it differs from U's by more than this factor.
MIN_FOR_SHARE, SHARE_RATIO = 100, 5.0
SURPRISE = 1e-6  # the p-value below which a difference is not attributed to chance
PLAIN_THRESHOLDS: dict[RuleName, float] = {"votes": 0.5, "mean": 0.0}


@dataclass(frozen=True)
class Threshold:
    """The value above which rows are predicted positive, with rates if it was chosen from data."""

    value: float
    recall: float | None = None  # out-of-bag recall of P
    share: float | None = None  # fraction of U and known negatives predicted positive, out of bag

    @property
    def chosen(self) -> bool:
        return self.recall is not None

    def description(self) -> dict[str, Any]:
        return {"value": self.value, "recall": self.recall, "share_unlabeled": self.share}

    @classmethod
    def from_description(cls, content: dict[str, Any]) -> Threshold:
        """Read from the manifest; raise ValueError if the content is invalid."""
        value, rates = content["value"], [content["recall"], content["share_unlabeled"]]
        if type(value) not in (int, float) or not np.isfinite(float(value)):
            raise ValueError("threshold")
        if rates != [None, None] and not all(
            type(rate) in (int, float) and 0 <= rate <= 1 for rate in rates
        ):
            raise ValueError("rates")
        return cls(float(value), *rates)


@dataclass(frozen=True)
class DecisionRule:
    """A model's decision rule, and a threshold for each rule."""

    rule: RuleName
    thresholds: dict[RuleName, Threshold]

    @classmethod
    def plain(cls, rule: RuleName = "votes", *, single: bool = False) -> DecisionRule:
        """Use the paper's threshold for votes, and 0 for mean values and for a single SVM."""
        values = PLAIN_THRESHOLDS | ({"votes": 0.0} if single else {})
        return cls(rule, {name: Threshold(value) for name, value in values.items()})

    @property
    def threshold(self) -> Threshold:
        return self.thresholds[self.rule]

    def description(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "thresholds": {name: self.thresholds[name].description() for name in RULE_NAMES},
        }

    @classmethod
    def from_description(cls, content: dict[str, Any]) -> DecisionRule:
        """Read from the manifest; raise ValueError if the content is invalid."""
        if content["rule"] not in RULE_NAMES or set(content["thresholds"]) != set(RULE_NAMES):
            raise ValueError("decision")
        thresholds = {
            name: Threshold.from_description(content["thresholds"][name]) for name in RULE_NAMES
        }
        return cls(content["rule"], thresholds)


def choose_threshold(
    known: FloatArray,
    unlabeled: FloatArray,
    contamination_pos: float = 0.0,
    negative: FloatArray | None = None,
    negative_share: float = 0.0,
) -> Threshold | None:
    """Return the best threshold for out-of-bag values of P and U; None if there are too few.

    Known negatives were rows of U before they were tested, so those above the threshold count as
    rows of U predicted positive. ``negative_share`` is their fraction of U.
    """
    if len(known) < MIN_POSITIVES or len(unlabeled) < MIN_UNLABELED:
        return None
    negative = np.zeros(0) if negative is None else negative
    cuts = possible_cuts(np.concatenate([known, unlabeled, negative]))
    recall, share = fractions_above(known, cuts), fractions_above(unlabeled, cuts)
    if len(negative):
        share += negative_share * (fractions_above(negative, cuts) - share)
    true_recall = corrected_recall(recall, share, contamination_pos)
    worth = true_recall**2 / (share + SHRINKAGE / np.sqrt(len(unlabeled)))
    best = int(np.argmax(worth))  # argmax returns the lowest threshold in a tie
    return Threshold(float(cuts[best]), float(recall[best]), float(share[best]))


def possible_cuts(values: FloatArray) -> FloatArray:
    """Return ascending cuts: one below all values, and one between neighboring values."""
    ordered = distinct(values)
    between = ordered[:-1] + (ordered[1:] - ordered[:-1]) / 2
    return np.concatenate([[np.nextafter(ordered[0], -np.inf)], between])


def fractions_above(values: FloatArray, cuts: FloatArray) -> FloatArray:
    return 1.0 - np.searchsorted(np.sort(values), cuts, "right") / len(values)


def corrected_recall(recall: FloatArray, share: FloatArray, contamination_pos: float) -> FloatArray:
    """Return the recall of true positives, assuming that mislabeled rows of P score like U."""
    if not contamination_pos:
        return recall
    return np.clip((recall - contamination_pos * share) / (1.0 - contamination_pos), 0.0, 1.0)


def threshold_for_recall(
    known: FloatArray, unlabeled: FloatArray, recall: float, contamination_pos: float = 0.0
) -> Threshold:
    """Return the highest threshold that reaches this recall of the true positives."""
    cuts = distinct(np.nextafter(known, -np.inf))  # just below a known positive
    recalls = fractions_above(known, cuts)
    shares = fractions_above(unlabeled, cuts) if len(unlabeled) else np.zeros(len(cuts))
    corrected = corrected_recall(recalls, shares, contamination_pos)
    enough = np.flatnonzero(corrected >= recall - 1e-9)
    best = int(enough[-1]) if len(enough) else 0
    return Threshold(float(cuts[best]), float(recalls[best]), float(shares[best]))


def usual_range(known: FloatArray, unlabeled: FloatArray) -> tuple[float, float] | None:
    """Return the range of out-of-bag values without each set's tails; None if there are too few."""
    if min(len(known), len(unlabeled)) < MIN_FOR_RANGE:
        return None
    tails = [quantiles(each, [TAIL, 1 - TAIL]) for each in (known, unlabeled)]
    return min(low for low, _ in tails), max(high for _, high in tails)


def is_beyond_chance(n_outside: int, n_rows: int, n_trained: int, n_tests: int) -> bool:
    """Whether rows like the training rows would almost never be out of range this often.

    If new rows are like the training rows, any ``n_outside`` of all these rows are equally likely
    to have the largest values.
    """
    drawn = _log_choices(n_rows, n_outside) - _log_choices(n_rows + n_trained, n_outside)
    return drawn + math.log(2 * n_tests) < math.log(SURPRISE)


def _log_choices(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def is_other_share(n_positive: int, n_rows: int, low: float, high: float) -> bool:
    """Whether the fraction predicted positive is too far from the usual range to be due to chance.

    Chernoff's bound on the binomial tail needs no special functions.
    """
    share = n_positive / max(1, n_rows)
    if n_rows < MIN_FOR_SHARE or low / SHARE_RATIO <= share <= high * SHARE_RATIO:
        return False
    usual = low if share < low else high
    if usual >= 1:  # no smaller share can be due to chance
        return True
    pairs = ((share, usual), (1 - share, 1 - usual))
    divergence = sum(own * math.log(own / other) for own, other in pairs if own)
    return -n_rows * divergence < math.log(SURPRISE)


def are_unlike(n_outside: int, n_rows: int) -> bool:
    """Whether more rows lie outside the usual range than chance would explain."""
    return n_outside >= MIN_OUTSIDE and n_outside > FRACTION_OUTSIDE * n_rows
