"""What a ranking promises: how many of its rows are right, and which list keeps a promise.

Without negatives the promise rests on out-of-bag values of P and U, taken as mixtures of the same
two classes. With trusted negatives, which are scored and never trained on, it is a list of rows by
their conformal p-values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from resvm_cli.commands.rank.out_of_bag_scores import (
    OutOfBagScorer,
    TrustedNegatives,
    benjamini_hochberg,
)
from resvm_cli.commands.rank.ranked_rows import CONFORMAL, EXPECTED_FALSE, PRECISION, Listing
from resvm_cli.errors import DataError, Message, Text
from resvm_cli.files.streams import name_of
from resvm_cli.files.svmlight import read_file
from resvm_cli.metrics.class_mixture import (
    MIN_POSITIVES,
    MIN_UNLABELED,
    ClassMixture,
    IntervalsByDepth,
)
from resvm_cli.metrics.intervals import Interval
from resvm_cli.model.decisions import are_unlike, usual_range
from resvm_cli.rows import FloatArray, IntArray, Rows

ROUNDING = 1e-12


@dataclass(frozen=True)
class Promise:
    """What was found out of P and U, and of the list that --fdr asks for."""

    contamination_pos: Interval | None  # None: P was not judged, or too few rows to tell
    contamination_unl: Interval | None
    separable: bool
    contamination_given: bool  # that of U
    n_negatives: int | None  # trusted ones
    n_unlike: int | None = None  # of these, how many lie beyond the values of P and U
    fdr: float | None = None
    n_listed: int | None = None  # with fdr
    precision: Interval | None = None  # of that list, unless it is conformal

    @classmethod
    def of(
        cls,
        classes: ClassMixture | None,
        negatives: TrustedNegatives | None,
        n_unlike: int | None = None,
    ) -> Promise:
        """What the classes behind P and U say of them."""
        count = None if negatives is None else len(negatives.member_values)
        if classes is None:
            return cls(None, None, False, False, count, n_unlike)
        shares = classes.contamination_pos, classes.contamination_unl
        return cls(*shares, classes.separable, classes.b_known, count, n_unlike)


def with_precision(listing: Listing, classes: ClassMixture | None) -> Listing:
    """The list with the share of positives expected among the rows of U down to each row."""
    judged = listing.n_members > 0
    of_unl = judged & ~listing.known
    share = None if classes is None else classes.precision(int(of_unl.sum()))
    return _with(listing, PRECISION, share, np.where(judged, np.cumsum(of_unl), 0))


def with_expected_false(listing: Listing, classes: ClassMixture | None) -> Listing:
    """The audit with the number of false positives expected down to each row."""
    judged = listing.n_members > 0
    share = None if classes is None else classes.expected_false(int(judged.sum()))
    return _with(listing, EXPECTED_FALSE, share, np.where(judged, np.cumsum(judged), 0))


def _with(
    listing: Listing, names: tuple[str, ...], share: IntervalsByDepth | None, depths: IntArray
) -> Listing:
    """Columns of a figure and its bounds at these depths, nan at depth 0."""
    columns = {}
    for name, field in zip(names, ("value", "low", "high"), strict=True):
        by_depth = np.full(1, np.nan)
        if share is not None:
            by_depth = np.concatenate([by_depth, getattr(share, field)])
        columns[name] = by_depth[np.minimum(depths, len(by_depth) - 1)]
    return replace(listing, further={**columns, **listing.further})


def read_negatives(path: str, *, zero_based: bool) -> Rows:
    """Rows that are known to be negative."""
    rows = read_file(path, zero_based=zero_based).rows
    if not len(rows):
        raise DataError(f"{name_of(path)}: has no rows", "trusted negatives were expected")
    return rows


def scored_negatives(rows: Rows, judge: OutOfBagScorer) -> TrustedNegatives:
    """Trusted negatives, scored by every member."""
    values = judge.predictor.member_values(rows)
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise DataError(
            f"row {bad[0] + 1:,} of the trusted negatives: its decision value is not finite",
            Message("its values are far from those that members were trained on: {scale} them"),
        )
    return TrustedNegatives(values, judge.rule, judge.predictor.ensemble.groups)


def negatives_unlike(
    judge: OutOfBagScorer, known: FloatArray | None, unlabeled: FloatArray
) -> int | None:
    """How many trusted negatives lie beyond the values of P and U out of bag; None: unknown."""
    seen = usual_range(unlabeled if known is None else known, unlabeled)
    if judge.negatives is None or seen is None:
        return None
    decisions = judge.predictor.decide(judge.negatives.member_values)
    values = decisions.by(judge.rule)
    return int(np.count_nonzero((values < seen[0]) | (values > seen[1])))


def doubtful_negatives(promise: Promise) -> list[str]:
    """What to say of trusted negatives that are no sample of those in U."""
    count, n_unlike = promise.n_negatives, promise.n_unlike
    if count is None or n_unlike is None or not are_unlike(n_unlike, count):
        return []
    return [
        f"{n_unlike:,} of {count:,} trusted negatives are unlike the rows of P and U: their values"
        " lie beyond those of 99 % of these, judged out of bag; p-values hold where negatives are a"
        " fair sample of those in U"
    ]


def conformal_columns(p_values: FloatArray) -> dict[str, FloatArray]:
    """p-values, and for each the least false discovery rate at which its row is listed."""
    return dict(zip(CONFORMAL, (p_values, benjamini_hochberg(p_values)), strict=True))


def promised_list(listing: Listing, promise: Promise, fdr: float) -> tuple[Listing, Promise]:
    """The longest list whose share of negatives is expected to be no larger.

    With trusted negatives it is that of Benjamini and Hochberg.
    """
    if promise.n_negatives is not None:
        chosen = listing.further[CONFORMAL[1]] <= fdr + ROUNDING
        return listing.where(chosen), replace(promise, fdr=fdr, n_listed=int(chosen.sum()))
    precision, low, high = (listing.further[name] for name in PRECISION)
    length = int((precision >= 1 - fdr - ROUNDING).sum())  # it never rises down the list
    reached = None
    if length:
        last = length - 1
        reached = Interval(float(precision[last]), float(low[last]), float(high[last]))
    told = replace(promise, fdr=fdr, n_listed=length, precision=reached)
    return listing.head(length), told


def doubts(promise: Promise) -> list[Text]:
    """What counts against a list, or why there is none."""
    if promise.n_negatives is not None:
        if promise.n_listed:
            return []
        return [
            Message(
                "no list has this false discovery rate: {n:,} trusted negatives give p-values of"
                " {least:.2g} and above; give more of them, or a larger {fdr}",
                n=promise.n_negatives,
                least=1 / (1 + promise.n_negatives),
            )
        ]
    if promise.contamination_unl is None:
        return [
            f"too few rows to promise anything: at least {MIN_POSITIVES} known positives and"
            f" {MIN_UNLABELED} rows of U must be out of bag; the list is empty"
        ]
    told: list[Text] = []
    if not (promise.separable or promise.contamination_given):
        told.append(
            Message(
                "P and U overlap too much to estimate the fraction of positives in U, so the list"
                " may hold far fewer: give {contamination_unl} or {negatives}"
            )
        )
    if not promise.n_listed:
        told.append(Message("no list is expected to have this rate: try a larger {fdr}"))
    return told
