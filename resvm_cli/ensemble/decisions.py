"""Votes and decision values, decision rules and thresholds, and what a model's stored values tell.

A threshold is chosen out of bag to maximize recall² / fraction of U predicted positive (Lee and
Liu). A term that shrinks with the number of rows keeps the denominator away from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli.errors import ModelError
from resvm_cli.parameters import RULE_NAMES, MethodName, RuleName
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, IntArray, distinct, quantile

if TYPE_CHECKING:
    import numpy.typing as npt

    from resvm_cli.ensemble.ensemble import Section
    from resvm_cli.metrics.class_mixture import ClassMixture

# With fewer out-of-bag rows, no threshold is chosen.
MIN_POSITIVES = 10
MIN_UNLABELED = 20
SHRINKAGE = 0.3
# Even among rows like the training rows, about 1 in 100 is outside the usual range.
TAIL = 0.005
MIN_FOR_RANGE = 20
PLAIN_THRESHOLDS: dict[RuleName, float] = {"votes": 0.5, "mean": 0.0}


@dataclass(frozen=True, eq=False)
class Decisions:
    """Votes and decision values of a set of rows."""

    votes: FloatArray
    sums: FloatArray
    values: FloatArray  # d(x)
    means: FloatArray  # mean of the members' values or, with several sections, of their means
    n_members: IntArray  # how many members scored each row

    @classmethod
    def from_totals(
        cls,
        balance: FloatArray,
        sums: FloatArray,
        n_members: IntArray | FloatArray,
        n_models: int,
        means: FloatArray | None = None,
    ) -> Decisions:
        """Compute votes and d(x) from the members' signs and values, added up (paper, eq. 4 and 5).

        Sums over some members are scaled up to the number of all members, so that rows are
        comparable. All results are nan for a row without members.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            votes = (n_members + balance) / (2 * n_members)
            sums = sums * (n_models / n_members)
        values = np.where(votes <= 0, sums, np.where(votes >= 1, 1.0 + sums, votes))
        means = sums / n_models if means is None else means
        return cls(votes, sums, values, means, n_members.astype(np.int64))

    def by(self, rule: RuleName) -> FloatArray:
        return self.values if rule == "votes" else self.means

    def labels(self, threshold: float, rule: RuleName = "votes") -> IntArray:
        """Return +1 if the decision value exceeds the threshold, else -1 (paper, eq. 6)."""
        return np.where(self.by(rule) > threshold, 1, -1)

    def values_without_ties(self) -> FloatArray:
        """Return d(x), with ties between split votes broken by the sum of the members' values.

        The shift is less than half the smallest difference between two vote fractions, so no row
        overtakes one with more votes.
        """
        divided = (self.votes > 0) & (self.votes < 1)
        # the logistic function saturates for |s| > 37, which sums over members can exceed
        sigmoid = (1.0 + self.sums / (1.0 + np.abs(self.sums))) / 2
        shift = (1.0 - sigmoid) / (4 * np.maximum(self.n_members, 1))
        return np.where(divided, self.votes - shift, self.values)


def decide(
    member_values: FloatArray,
    sections: Sequence[Section] = (),
    *,
    unseen: BoolArray | None = None,
    single: bool = False,
) -> Decisions:
    """Combine member values, rows x members, of all members or of those that have not seen a row.

    With ``single``, the only member's value is the decision value.
    """
    n_rows, n_models = member_values.shape
    if unseen is not None:
        member_values = np.where(unseen, member_values, 0.0)

    def count(members: slice) -> IntArray:
        if unseen is None:
            return np.full(n_rows, len(range(*members.indices(n_models))))
        counts: IntArray = unseen[:, members].sum(axis=1)
        return counts

    means = None
    if len(sections) > 1:
        sums = [member_values[:, section.columns].sum(axis=1) for section in sections]
        means = mean_values(sums, [count(section.columns) for section in sections], sections)
    balance, total = np.sign(member_values).sum(axis=1), member_values.sum(axis=1)
    decisions = Decisions.from_totals(balance, total, count(slice(None)), n_models, means)
    return replace(decisions, values=member_values[:, 0].copy()) if single else decisions


def mean_values(
    sums: Sequence[FloatArray], counts: Sequence[npt.NDArray[Any]], sections: Sequence[Section]
) -> FloatArray:
    """Return the weighted mean of the standardized section means; empty sections are skipped."""
    total: Any = 0.0
    weight: Any = 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for section_sums, count, section in zip(sums, counts, sections, strict=True):
            standard = (section_sums / count - section.shift) / section.spread
            total = total + np.where(count > 0, section.weight * standard, 0.0)
            weight = weight + np.where(count > 0, section.weight, 0.0)
        means: FloatArray = total / weight
    return means


@dataclass(frozen=True)
class Threshold:
    """The value above which rows are predicted positive, with rates if it was chosen from data."""

    value: float
    recall: float | None = None  # out-of-bag recall of P
    # fraction of U and known negatives predicted positive, out of bag
    fraction_positive: float | None = None

    @property
    def chosen(self) -> bool:
        return self.recall is not None

    def description(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "recall": self.recall,
            "fraction_unlabeled": self.fraction_positive,
        }

    @classmethod
    def from_description(cls, content: dict[str, Any]) -> Threshold:
        """Read from the manifest; raise ValueError, KeyError or TypeError if it is invalid."""
        value, rates = content["value"], [content["recall"], content["fraction_unlabeled"]]
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
        """Read from the manifest; raise ValueError, KeyError or TypeError if it is invalid."""
        if content["rule"] not in RULE_NAMES or set(content["thresholds"]) != set(RULE_NAMES):
            raise ValueError("decision")
        thresholds = {
            name: Threshold.from_description(content["thresholds"][name]) for name in RULE_NAMES
        }
        return cls(content["rule"], thresholds)


def choose_threshold(
    known: FloatArray,
    unlabeled: FloatArray,
    negative: FloatArray | None = None,
    negative_fraction: float = 0.0,
) -> Threshold | None:
    """Return the best threshold for out-of-bag values of P and U; None if there are too few.

    Known negatives were rows of U before they were tested, so those above the threshold count as
    rows of U predicted positive. ``negative_fraction`` is their fraction of U.
    """
    if len(known) < MIN_POSITIVES or len(unlabeled) < MIN_UNLABELED:
        return None
    negative = np.zeros(0) if negative is None else negative
    ordered = distinct(np.concatenate([known, unlabeled, negative]))
    between = ordered[:-1] + (ordered[1:] - ordered[:-1]) / 2
    cuts = np.concatenate([[np.nextafter(ordered[0], -np.inf)], between])
    recall, fraction = fractions_above(known, cuts), fractions_above(unlabeled, cuts)
    if len(negative):
        fraction += negative_fraction * (fractions_above(negative, cuts) - fraction)
    worth = recall**2 / (fraction + SHRINKAGE / np.sqrt(len(unlabeled)))
    best = int(np.argmax(worth))  # argmax returns the lowest threshold in a tie
    return Threshold(float(cuts[best]), float(recall[best]), float(fraction[best]))


def fractions_above(values: FloatArray, cuts: FloatArray) -> FloatArray:
    return 1.0 - np.searchsorted(np.sort(values), cuts, "right") / len(values)


def threshold_for_recall(
    known: FloatArray, unlabeled: FloatArray, recall: float, contamination_pos: float = 0.0
) -> Threshold:
    """Return the highest threshold that reaches this recall of the true positives.

    Mislabeled rows of P are assumed to score like U.
    """
    cuts = distinct(np.nextafter(known, -np.inf))  # just below a known positive
    recalls = fractions_above(known, cuts)
    fractions = fractions_above(unlabeled, cuts) if len(unlabeled) else np.zeros(len(cuts))
    corrected = (recalls - contamination_pos * fractions) / (1.0 - contamination_pos)
    enough = np.flatnonzero(corrected >= recall - 1e-9)
    best = int(enough[-1]) if len(enough) else 0
    return Threshold(float(cuts[best]), float(recalls[best]), float(fractions[best]))


def usual_range(known: FloatArray, unlabeled: FloatArray) -> tuple[float, float] | None:
    """Return the range of out-of-bag values without each set's tails; None if there are too few."""
    if min(len(known), len(unlabeled)) < MIN_FOR_RANGE:
        return None
    low, high = (
        [float(quantile(each, tail)) for each in (known, unlabeled)] for tail in (TAIL, 1 - TAIL)
    )
    return min(low), max(high)


HEADER = "set\trow\tdecision_value\tmean_value\tmembers"
MAX_DIGITS = 18


@dataclass(frozen=True, eq=False)
class OutOfBag:
    """Rows, numbered from 1, and their decision values from members that have not seen them."""

    positive: npt.NDArray[np.bool_]  # true for P
    rows: IntArray
    values: FloatArray  # decision values under the votes rule
    means: FloatArray
    members: IntArray  # the number of such members
    negative: npt.NDArray[np.bool_]  # true for known negatives; the remaining rows are in U

    def negatives_by(self, rule: RuleName) -> FloatArray:
        """Return the decision values of known negatives under this rule."""
        return self._by(rule)[self.negative]

    @property
    def unlabeled(self) -> npt.NDArray[np.bool_]:
        return ~(self.positive | self.negative)

    def by(self, rule: RuleName) -> tuple[FloatArray, FloatArray]:
        """Return the decision values of P and U under this rule."""
        values = self._by(rule)
        return values[self.positive], values[self.unlabeled]

    def _by(self, rule: RuleName) -> FloatArray:
        return self.values if rule == "votes" else self.means

    def format(self) -> bytes:
        """Format as text, one line per row, with numbers that can be read back exactly."""
        columns = zip(
            np.where(self.positive, "P", np.where(self.negative, "N", "U")).tolist(),
            self.rows.tolist(),
            self.values.tolist(),
            self.means.tolist(),
            self.members.tolist(),
            strict=True,
        )
        lines = [
            f"{name}\t{row}\t{value!r}\t{mean!r}\t{members}"
            for name, row, value, mean, members in columns
        ]
        return ("\n".join([HEADER, *lines]) + "\n").encode("ascii")

    @classmethod
    def parse(cls, text: bytes) -> OutOfBag:
        """Parse the output of ``format``; raise ValueError for anything else."""
        lines = text.decode("ascii").split("\n")
        if lines[0] != HEADER or lines[-1]:
            raise ValueError("not a table of out-of-bag values")
        fields = [line.split("\t") for line in lines[1:-1]]
        if any(len(row) != 5 or row[0] not in ("P", "U", "N") for row in fields):
            raise ValueError("expected five columns")
        numbers = np.array([[float(row[2]), float(row[3])] for row in fields]).reshape(-1, 2)
        if not np.isfinite(numbers).all():
            raise ValueError("a value is not finite")
        return cls(
            np.array([row[0] == "P" for row in fields], bool),
            np.array([_count(row[1]) for row in fields], np.int64),
            numbers[:, 0],
            numbers[:, 1],
            np.array([_count(row[4]) for row in fields], np.int64),
            np.array([row[0] == "N" for row in fields], bool),
        )


def fitted_classes(
    table: OutOfBag | None,
    method: MethodName,
    rule: RuleName,
    contamination_pos: float | None,
    contamination_unl: float | None,
) -> ClassMixture | None:
    """Fit a class mixture to a model's out-of-bag values; return None if there are too few."""
    if table is None:
        raise ModelError(
            "the model cannot estimate probabilities because it has no out-of-bag values:"
            f" {method} trains every member on all of P",
            "train another model: resvm train `method='resvm'`",
        )
    from resvm_cli.metrics.class_mixture import ClassMixture  # imports scipy, which is slow

    fractions = contamination_pos, contamination_unl
    sampled = not table.negative.any()
    return ClassMixture.fit(*table.by(rule), *fractions, sampled=sampled)


def unknown_probability(classes: ClassMixture | None) -> ModelError | None:
    """Return an error that explains why probabilities are unknown; None if they are known."""
    if classes is None:
        return ModelError(
            "too few rows of P or U are out of bag to estimate probabilities",
            "train on more rows, or with smaller bags (`n_pos`, `n_unl`)",
        )
    if classes.precision_is_known:
        return None
    return ModelError(
        f"probabilities cannot be estimated: {classes.why_unknown}",
        "give `contamination_unl`, the fraction of U that is positive",
    )


def _count(text: str) -> int:
    if not text.isdigit() or len(text) > MAX_DIGITS:
        raise ValueError("not a count")
    return int(text)
