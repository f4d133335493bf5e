"""Judged rows as lists: U from the best down, P from the most suspicious down."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from resvm_cli.commands.rank.fdr import conformal_columns, with_expected_false, with_precision
from resvm_cli.commands.rank.out_of_bag_scores import OutOfBagScores, rank_bounds
from resvm_cli.commands.rank.ranked_rows import Listing
from resvm_cli.commands.rank.request import RankRequest
from resvm_cli.metrics.class_mixture import ClassMixture
from resvm_cli.model.plan import ModelPlan
from resvm_cli.rows import IntArray


@dataclass(frozen=True, eq=False)
class Recovery:
    """How known positives, judged as if they were unlabeled, are found by going down U."""

    depths: IntArray  # for each of them, ascending: how many rows of U come before it

    @classmethod
    def of(cls, known: OutOfBagScores, unlabeled: OutOfBagScores) -> Recovery | None:
        """From out-of-bag values of P and U; None where no row of P was judged."""
        values = known.values[known.scored]
        if not len(values):
            return None
        ascending = np.sort(unlabeled.values[unlabeled.scored])
        before = len(ascending) - np.searchsorted(ascending, values, "right")
        return cls(np.sort(before))

    def recall_at(self, depth: int) -> float:
        """The share that would be among the first ``depth`` rows."""
        return float(np.searchsorted(self.depths, depth, "left") / len(self.depths))

    def depth_of(self, share: float) -> int:
        """How many rows must be looked at to find this share."""
        return int(self.depths[int(np.ceil(round(share * len(self.depths), 9))) - 1]) + 1


def listings(
    request: RankRequest,
    ids: list[str],
    plan: ModelPlan,
    known: OutOfBagScores | None,
    unlabeled: OutOfBagScores,
    classes: ClassMixture | None,
) -> tuple[Listing, Listing | None]:
    """The list that was asked for, and P audited where that is shown."""
    audited = None
    if known is not None and (request.audit or request.page):
        audited = _audit(ids[: plan.rows_pos], known, classes)
    if request.audit:
        assert audited is not None
        return audited, audited
    judged, n_known = unlabeled, 0
    if request.with_known:
        assert known is not None
        judged, n_known = OutOfBagScores.joined(known, unlabeled), plan.rows_pos
    first = plan.rows_pos - n_known
    listing = _list(ids[first:], judged, n_known, first, lowest_first=False)
    if known is not None:
        listing = with_precision(listing, classes)
    return listing, audited


def _list(
    ids: list[str], judged: OutOfBagScores, n_known: int, first: int = 0, *, lowest_first: bool
) -> Listing:
    """Rows, numbered from ``first``, in order; equal ones by number, those without a value last."""
    order = np.argsort(judged.values if lowest_first else -judged.values, kind="stable")
    low = high = None
    if judged.resampled is not None:
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(1, len(order) + 1)
        low, high = rank_bounds(judged.resampled, ranks, lowest_first=lowest_first)
        low, high = low[order], high[order]
    return Listing(
        [ids[number] for number in order.tolist()],
        order < n_known,
        judged.values[order],
        judged.votes[order],
        judged.n_members[order],
        low,
        high,
        {} if judged.p_values is None else conformal_columns(judged.p_values[order]),
        numbers=order + first,
    )


def _audit(ids: list[str], known: OutOfBagScores, classes: ClassMixture | None) -> Listing:
    if known.resampled is not None:  # ranks take the place of values, which others may need
        known = replace(known, resampled=known.resampled.copy())
    return with_expected_false(_list(ids, known, len(ids), lowest_first=True), classes)
