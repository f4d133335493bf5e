"""What an ensemble calls positive: the rule of its decision values, and thresholds chosen for it.

A threshold is chosen from rows that the judging members have not seen: the largest recall of P
squared by the share of U that is called (Lee and Liu), the share kept from nearly nothing by a term
that shrinks with the number of rows judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from resvm_cli.parameters import RULE_NAMES, RuleName
from resvm_cli.rows import FloatArray, distinct, quantiles

# Fewer rows than these, judged out of bag, place no threshold.
LEAST_POSITIVES = 10
LEAST_UNLABELED = 20
SHRINKAGE = 0.3
# Of rows like those of training about 1 in 100 lies outside the usual range.
TAIL = 0.005
MIN_FOR_RANGE = 20
MIN_OUTSIDE, FRACTION_OUTSIDE = 3, 0.05
PLAIN_THRESHOLDS: dict[RuleName, float] = {"votes": 0.5, "mean": 0.0}


@dataclass(frozen=True)
class Threshold:
    """Rows of larger decision values are called positive; recall and share where it was chosen."""

    value: float
    recall: float | None = None  # of P, out of bag
    share: float | None = None  # of U that is called, out of bag

    @property
    def chosen(self) -> bool:
        return self.recall is not None

    def description(self) -> dict[str, Any]:
        return {"value": self.value, "recall": self.recall, "share_unlabeled": self.share}

    @classmethod
    def from_description(cls, content: dict[str, Any]) -> Threshold:
        """From the manifest; ValueError where it makes no sense."""
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
    """The rule that belongs to a model, and the threshold of either."""

    rule: RuleName
    thresholds: dict[RuleName, Threshold]

    @classmethod
    def plain(cls, rule: RuleName = "votes", *, single: bool = False) -> DecisionRule:
        """The paper's thresholds, and 0 for one SVM's own value and for means."""
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
        """From the manifest; ValueError where it makes no sense."""
        if content["rule"] not in RULE_NAMES or set(content["thresholds"]) != set(RULE_NAMES):
            raise ValueError("decision")
        thresholds = {
            name: Threshold.from_description(content["thresholds"][name]) for name in RULE_NAMES
        }
        return cls(content["rule"], thresholds)


def choose_threshold(
    known: FloatArray, unlabeled: FloatArray, contamination_pos: float = 0.0
) -> Threshold | None:
    """The best threshold for out-of-bag values of P and U; None where there are too few.

    Of the values of P so large a share is taken to be false, and to look like U.
    """
    if len(known) < LEAST_POSITIVES or len(unlabeled) < LEAST_UNLABELED:
        return None
    cuts = possible_cuts(np.concatenate([known, unlabeled]))
    recall, share = called_shares(known, cuts), called_shares(unlabeled, cuts)
    true_recall = corrected_recall(recall, share, contamination_pos)
    worth = true_recall**2 / (share + SHRINKAGE / np.sqrt(len(unlabeled)))
    best = int(np.argmax(worth))  # the first of equal ones: the lowest
    return Threshold(float(cuts[best]), float(recall[best]), float(share[best]))


def possible_cuts(values: FloatArray) -> FloatArray:
    """One below all values, and between neighbouring ones, ascending."""
    ordered = distinct(values)
    between = ordered[:-1] + (ordered[1:] - ordered[:-1]) / 2
    return np.concatenate([[np.nextafter(ordered[0], -np.inf)], between])


def called_shares(values: FloatArray, cuts: FloatArray) -> FloatArray:
    """For each cut the share of the values above it."""
    return 1.0 - np.searchsorted(np.sort(values), cuts, "right") / len(values)


def corrected_recall(recall: FloatArray, share: FloatArray, contamination_pos: float) -> FloatArray:
    """The recall of true positives, where false ones among P are called as rows of U are."""
    if not contamination_pos:
        return recall
    return np.clip((recall - contamination_pos * share) / (1.0 - contamination_pos), 0.0, 1.0)


def threshold_for_recall(
    known: FloatArray, unlabeled: FloatArray, recall: float, contamination_pos: float = 0.0
) -> Threshold:
    """The highest threshold above which this share of the true positives lies."""
    cuts = distinct(np.nextafter(known, -np.inf))  # just below a known positive
    recalls = called_shares(known, cuts)
    shares = called_shares(unlabeled, cuts) if len(unlabeled) else np.zeros(len(cuts))
    corrected = corrected_recall(recalls, shares, contamination_pos)
    enough = np.flatnonzero(corrected >= recall - 1e-9)
    best = int(enough[-1]) if len(enough) else 0
    return Threshold(float(cuts[best]), float(recalls[best]), float(shares[best]))


def usual_range(known: FloatArray, unlabeled: FloatArray) -> tuple[float, float] | None:
    """From the lowest to the highest value out of bag, of P or U, without the tails of each.

    None where there are too few values to tell.
    """
    if min(len(known), len(unlabeled)) < MIN_FOR_RANGE:
        return None
    tails = [quantiles(each, [TAIL, 1 - TAIL]) for each in (known, unlabeled)]
    return min(low for low, _ in tails), max(high for _, high in tails)


def are_unlike(n_outside: int, n_rows: int) -> bool:
    """Whether more rows lie outside the usual range than chance explains."""
    return n_outside >= MIN_OUTSIDE and n_outside > FRACTION_OUTSIDE * n_rows
