"""``rank --fdr``: how many false positives to expect in a list, and where to cut the list off.

Without trusted negatives, the estimate is based on the out-of-bag values of P and U, modeled as
mixtures of the same two classes. With trusted negatives, which are scored but never trained on, the
list is chosen by conformal p-values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from resvm_cli.commands.rank.listing import CONFORMAL, PRECISION, Listing
from resvm_cli.commands.rank.out_of_bag_scores import (
    OutOfBagScorer,
    OutOfBagScores,
    TrustedNegatives,
)
from resvm_cli.errors import DataError, Message, Text
from resvm_cli.files.streams import name_of
from resvm_cli.files.svmlight import Block
from resvm_cli.metrics.class_mixture import (
    MIN_POSITIVES,
    MIN_UNLABELED,
    ClassMixture,
    RankedOutcomes,
)
from resvm_cli.metrics.intervals import Interval
from resvm_cli.model.decisions import are_unlike, usual_range
from resvm_cli.model.out_of_bag import EqualRows
from resvm_cli.model.pu_data import PUData
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, Rows
from resvm_cli.training.data import TrainingData

if TYPE_CHECKING:
    import numpy.typing as npt

ROUNDING = 1e-12
SUPPOSED = (0.01, 0.05, 0.1, 0.2, 0.4)  # fractions of U
SUPPOSED_DEPTHS = (10, 20, 50, 100, 500)


@dataclass(frozen=True)
class WhatIf:
    """How many of the top rows would be positive if this fraction of U were positive."""

    contamination_unl: float
    n_first: int
    n_positive: float


@dataclass(frozen=True)
class FdrEstimate:
    """The contamination of P and U, and the expected precision of the list that ``fdr`` chose."""

    contamination_pos: Interval | None  # None: P has no scores, or too few rows
    contamination_unl: Interval | None
    separable: bool
    claimed: bool  # whether precision is stated: if separable, or if b or outcomes are given
    n_negatives: int | None = None  # number of trusted negatives
    n_unlike: int | None = None  # trusted negatives with values outside the range of P and U
    fdr: float | None = None
    n_listed: int | None = None  # length of the list, if ``fdr`` is given
    precision: Interval | None = None  # precision of that list, unless p-values chose it
    cases: tuple[WhatIf, ...] = ()  # empty if precision is stated
    why_unknown: str = ""  # empty if precision is stated

    @classmethod
    def from_classes(cls, classes: ClassMixture | None) -> FdrEstimate:
        """Return the estimate before a list is chosen."""
        if classes is None:
            return cls(None, None, separable=False, claimed=False)
        fractions = classes.contamination_pos, classes.contamination_unl
        found = cls(*fractions, classes.separable, classes.claims)
        if classes.claims:
            return found
        cases = tuple(what_if(classes)) if classes.sampled else ()
        return replace(found, cases=cases, why_unknown=classes.why_unknown)


def what_if(classes: ClassMixture) -> Iterator[WhatIf]:
    """Yield the expected numbers of positives for each fraction that the values of U allow."""
    n_unl = int(classes.binned.unlabeled.sum())
    most = min(classes.contamination_unl.high, 1 - (classes.a or 0.0))
    fractions = [some for some in SUPPOSED if some < most]
    depths = [some for some in SUPPOSED_DEPTHS if some <= n_unl]
    if not fractions or not depths:
        return
    for b, supposed in zip(fractions, classes.with_b(fractions), strict=True):
        precision = supposed.precision(depths[-1]).value
        for depth in depths:
            yield WhatIf(b, depth, round(depth * float(precision[depth - 1]), 1))


def read_negatives(path: str, data: TrainingData) -> tuple[Rows, Callable[[int], str]]:
    """Read a file of trusted negatives; also return a function that locates a row by number."""
    name, blocks = name_of(path), list(data.read_alike(path))
    if not blocks:
        raise DataError(f"{name}: no rows", "the file should contain trusted negatives")
    negatives = Block.concatenate(blocks)
    return negatives.rows, lambda row: f"{name}:{negatives.lines[row]}"


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes of tested rows of U, by row number."""

    numbers: IntArray
    positive: npt.NDArray[np.bool_]

    @classmethod
    def from_ids(cls, outcomes: Mapping[str, tuple[bool, str]], ids: Sequence[str]) -> Outcomes:
        """Find tested rows among the ids of U; each outcome comes with its location."""
        number_of: dict[str, int] = {}
        for number, row_id in enumerate(ids):
            if row_id in outcomes:
                if row_id in number_of:
                    where = outcomes[row_id][1]
                    raise DataError(f"{where}: '{row_id}' is the id of several rows of U")
                number_of[row_id] = number
        for row_id, (_, where) in outcomes.items():
            if row_id not in number_of:
                raise DataError(
                    f"{where}: '{row_id}' is not the id of a row of U",
                    "list outcomes of unlabeled rows only",
                )
        positive = [outcomes[row_id][0] for row_id in number_of]
        return cls(np.array([*number_of.values()], np.int64), np.array(positive, bool))

    def ranked(self, unlabeled: FloatArray) -> RankedOutcomes | None:
        """Return the tested rows that have a value; None if there are none."""
        scored = ~np.isnan(unlabeled)
        kept = scored[self.numbers]
        if not kept.any():
            return None
        numbers = (np.cumsum(scored) - 1)[self.numbers[kept]]
        return RankedOutcomes.from_rows(numbers, self.positive[kept], unlabeled[scored])


def require_untrained(
    negatives: Rows, locate: Callable[[int], str], data: PUData, *, precomputed: bool
) -> None:
    """Reject trusted negatives that are trained on; ``locate`` maps a row number to a location."""
    for trained in (data.negatives, data.positives):
        equal = EqualRows.find(negatives, [trained], precomputed=precomputed)
        if not len(equal.found):
            continue
        first = int(np.isin(equal.contents, equal.found).argmax())
        what = "is also a known negative, which is trained on"
        hint = "trusted negatives must not be trained on: remove it from one of the sets"
        if trained is data.positives:
            row = int(equal.numbers[equal.found == equal.contents[first]][0])
            what = f"equals row {row + 1:,} of P"
            hint = "a row cannot be both: remove it from the trusted negatives or from P"
        raise DataError(f"{locate(first)}: this trusted negative {what}", hint)


def scored_negatives(
    rows: Rows, scorer: OutOfBagScorer, unlabeled: Iterable[Rows]
) -> tuple[TrustedNegatives, list[str]]:
    """Score trusted negatives with the members that have not seen them; also return notes."""
    precomputed = scorer.predictor.ensemble.is_precomputed
    equal = EqualRows.find(rows, unlabeled, precomputed=precomputed)
    unseen = scorer.unseen_mask.unseen_like(equal)
    values = scorer.member_values(rows, "the trusted negatives")
    notes = []
    if len(equal.found):
        n_equal = int(np.isin(equal.contents, equal.found).sum())
        note = (
            f"{n_equal:,} of {len(rows):,} trusted negatives are also rows of U:"
            " they are scored only by members whose bags do not contain them"
        )
        if n_lost := int((~unseen.any(axis=1)).sum()):
            note += f"; {n_lost:,} of them are in every bag and are ignored"
        notes.append(note)
    groups = scorer.predictor.ensemble.groups
    return TrustedNegatives.from_values(values, unseen, scorer.rule, groups), notes


def estimated(
    listing: Listing,
    known: OutOfBagScores | None,
    unlabeled: OutOfBagScores,
    classes: ClassMixture | None,
    scorer: OutOfBagScorer,
    fdr: float | None,
) -> tuple[Listing, FdrEstimate | None, list[Text]]:
    """Return the list, cut off at ``fdr`` if given, its estimated precision, and warnings."""
    negatives = scorer.negatives
    if known is None and negatives is None:
        return listing, None, []
    estimate = FdrEstimate.from_classes(classes)
    warnings: list[Text] = []
    if negatives is not None:
        values = negatives.decisions().by(scorer.rule)
        n_unlike = None
        if usual := usual_range((unlabeled if known is None else known).present, unlabeled.present):
            n_unlike = int(np.count_nonzero((values < usual[0]) | (values > usual[1])))
        if n_unlike is not None and are_unlike(n_unlike, len(values)):
            warnings.append(
                f"{n_unlike:,} of {len(values):,} trusted negatives are unlike the rows of P and U:"
                " their decision values lie outside the range of 99 % of these rows; p-values are"
                " valid only if the trusted negatives are a representative sample of the negatives"
                " in U"
            )
        estimate = replace(estimate, n_negatives=len(values), n_unlike=n_unlike)
    if fdr is not None:
        listing, estimate = cut_at_fdr(listing, estimate, classes, fdr)
        if not estimate.n_listed:
            warnings.append(_why_empty(estimate))
    return listing, estimate, warnings


def cut_at_fdr(
    listing: Listing, estimate: FdrEstimate, classes: ClassMixture | None, fdr: float
) -> tuple[Listing, FdrEstimate]:
    """Return the longest list whose expected false discovery rate is at most ``fdr``.

    With trusted negatives, the Benjamini-Hochberg procedure chooses this list.
    """
    if estimate.n_negatives is not None:
        chosen = listing.further[CONFORMAL[1]] <= fdr + ROUNDING
        return listing.where(chosen), replace(estimate, fdr=fdr, n_listed=int(chosen.sum()))
    if estimate.contamination_unl is not None and not estimate.claimed:
        raise DataError(
            f"the false discovery rate of a list is unknown: {estimate.why_unknown}",
            Message("give {contamination_unl}, {tested} or {negatives}"),
        )
    length, reached = 0, None
    if classes is not None:
        expected = classes.mean_precision(int((listing.n_members > 0).sum()))
        length = int(np.flatnonzero(expected >= 1 - fdr - ROUNDING).max(initial=-1)) + 1
    if length:
        reached = Interval(*(float(listing.further[name][length - 1]) for name in PRECISION))
    chosen_estimate = replace(estimate, fdr=fdr, n_listed=length, precision=reached)
    return listing.head(length), chosen_estimate


def _why_empty(estimate: FdrEstimate) -> Text:
    """Explain why no list has the requested false discovery rate."""
    if estimate.n_negatives is not None:
        return Message(
            "no list has this false discovery rate: with {n:,} trusted negatives, p-values are at"
            " least {lowest:.2g}; give more negatives or a larger {fdr}",
            n=estimate.n_negatives,
            lowest=1 / (1 + estimate.n_negatives),
        )
    if estimate.contamination_unl is None:
        return (
            f"too few rows for an estimate; at least {MIN_POSITIVES} known positives and"
            f" {MIN_UNLABELED} rows of U must be out of bag; the list is empty"
        )
    text = "no list is expected to have a false discovery rate this low; try a larger {fdr}"
    if estimate.contamination_unl.low < estimate.contamination_unl.high:
        text += ", or give the fraction of U that is positive ({contamination_unl}) or the"
        text += " outcomes of tests ({tested}), because estimates alone rarely support a list"
    return Message(text)
