"""``rank --fdr``: how many false positives to expect in a list, and where to cut the list off.

Without known negatives, the estimate is based on the out-of-bag values of P and U, modeled as
mixtures of the same two classes. With known negatives, the list is chosen by conformal p-values
from their out-of-bag values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.metrics.class_mixture import (
    MIN_POSITIVES,
    MIN_UNLABELED,
    ClassMixture,
    RankedOutcomes,
)
from resvm_cli.metrics.intervals import Interval
from resvm_cli.ranking.listing import CONFORMAL, PRECISION, Listing
from resvm_cli.ranking.scores import OutOfBagScores
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray

if TYPE_CHECKING:
    import numpy.typing as npt

ROUNDING = 1e-12
TIE = 1e-9  # smaller differences are rounding errors, because the order of summation varies
ASSUMPTION = "P is a random sample of the positives"


@dataclass(frozen=True)
class WhatIf:
    """How many of the first rows are positive, with bounds, if this fraction of U is."""

    contamination_unl: float
    n_first: int
    n_positive: float
    low: float
    high: float


@dataclass(frozen=True)
class FdrEstimate:
    """The contamination of P and U, and the expected precision of the list that ``fdr`` chose."""

    contamination_pos: Interval | None  # None: P has no scores, or too few rows
    contamination_unl: Interval | None
    separable: bool
    precision_is_known: (
        bool  # whether precision is stated: if separable, or if b or outcomes are given
    )
    n_negatives: int | None = None  # number of known negatives that calibrated the list
    fdr: float | None = None
    n_listed: int | None = None  # length of the list, if ``fdr`` is given
    precision: Interval | None = None  # precision of that list, unless p-values chose it
    cases: tuple[WhatIf, ...] = ()  # empty if b or outcomes are given
    why_unknown: str = ""  # empty if precision is stated
    assumption: str = ""  # what all of this rests on

    @classmethod
    def from_classes(cls, classes: ClassMixture | None) -> FdrEstimate:
        """Return the estimate before a list is chosen."""
        if classes is None:
            return cls(None, None, separable=False, precision_is_known=False)
        cases = tuple(
            WhatIf(b, n_first, round(found.value, 1), found.low, found.high)
            for b, n_first, found in classes.what_if()
        )
        known = classes.precision_is_known
        return cls(
            classes.contamination_pos,
            classes.contamination_unl,
            classes.separable,
            known,
            cases=cases,
            why_unknown="" if known else classes.why_unknown,
            assumption=ASSUMPTION,
        )


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

    def ranked(self, unlabeled: OutOfBagScores) -> RankedOutcomes | None:
        """Return the tested rows that have an out-of-bag value; None if there are none."""
        scored = unlabeled.scored
        kept = scored[self.numbers]
        if not kept.any():
            return None
        numbers = (np.cumsum(scored) - 1)[self.numbers[kept]]
        return RankedOutcomes.from_rows(numbers, self.positive[kept], unlabeled.present)


def apply_fdr_estimate(
    listing: Listing,
    classes: ClassMixture | None,
    negatives: OutOfBagScores | None,
    fdr: float | None,
) -> tuple[Listing, FdrEstimate, list[str]]:
    """Return the list, cut off at ``fdr`` if given, its estimated precision, and warnings.

    It is the longest list that is expected to hold at most ``fdr`` false rows. If known negatives
    are given, they calibrate the list, and the Benjamini-Hochberg procedure cuts it off.
    """
    estimate = FdrEstimate.from_classes(classes)
    if fdr is None:
        return listing, estimate, []
    scored = listing.n_members > 0
    if negatives is not None:
        p_values = conformal_p_values(np.where(scored, listing.values, np.nan), negatives.present)
        q_values = benjamini_hochberg(p_values)
        columns = dict(zip(CONFORMAL, (p_values, q_values), strict=True))
        listing = replace(listing, extra_columns={**listing.extra_columns, **columns})
        chosen = q_values <= fdr + ROUNDING
        length = int(chosen.sum())
        estimate = replace(estimate, n_negatives=len(negatives.present))
    else:
        length = 0
        if classes is not None:
            if classes.b is None and classes.tested is None:
                raise DataError(
                    "the false discovery rate of a list depends on the fraction of U that is"
                    " positive, which values alone do not tell",
                    "give `contamination_unl`, `tested` or `known_negatives`",
                )
            length = classes.n_listed(fdr)
        chosen = scored & (np.cumsum(scored) <= length)
    listing, estimate = listing.where(chosen), replace(estimate, fdr=fdr, n_listed=length)
    if negatives is None and length:
        precision = Interval(*(float(listing.extra_columns[name][-1]) for name in PRECISION))
        estimate = replace(estimate, precision=precision)
    return listing, estimate, [] if length else [_why_empty(estimate)]


def conformal_p_values(values: FloatArray, negatives: FloatArray) -> FloatArray:
    """Return, for each value, the fraction of negatives at or above it, counting the row itself.

    If a row is a negative like these, all ranks of its value among theirs are equally likely,
    whatever the model (Vovk; Bates et al. 2023).
    """
    lowest = values - TIE * (1 + np.abs(values))
    above = len(negatives) - np.searchsorted(np.sort(negatives), lowest, "left")
    return np.where(np.isnan(values), np.nan, (1 + above) / (1 + len(negatives)))


def benjamini_hochberg(p_values: FloatArray) -> FloatArray:
    """Return q-values: the lowest false discovery rate at which a row is listed; nan stays nan."""
    result = np.full(len(p_values), np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    ratios = p_values[order] * len(order) / np.arange(1, len(order) + 1)
    result[order] = np.minimum(np.minimum.accumulate(ratios[::-1])[::-1], 1.0)
    return result


def _why_empty(estimate: FdrEstimate) -> str:
    """Explain why no list has the requested false discovery rate."""
    if estimate.n_negatives is not None:
        lowest = 1 / (1 + estimate.n_negatives)
        return (
            f"no list has this false discovery rate: with {estimate.n_negatives:,} known"
            f" negatives, p-values are at least {lowest:.2g}; give more negatives or a larger `fdr`"
        )
    if estimate.contamination_unl is None:
        return (
            f"too few rows for an estimate; at least {MIN_POSITIVES} known positives and"
            f" {MIN_UNLABELED} rows of U must be out of bag; the list is empty"
        )
    return "no list is certain enough to have a false discovery rate this low; try a larger `fdr`"
