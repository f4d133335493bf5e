"""``rank --next``: the rows of U to test next.

The batch is chosen greedily. Most of it comes from the top of the ranking, where most positives are
expected. A fraction ``explore`` of it consists of rows on which members disagree (votes closest to
1/2), because the next model learns most from them. A row is passed over if it is in the same group
as a chosen row, or a near-duplicate of one: testing both would teach little more than testing one.
Near-duplicates with at least a fraction ``SURE`` of the votes are likely positives and are not
passed over. Rows that were passed over are added, in order of rank, only if no others are left.

Two rows are near-duplicates if their squared distance in the space of the members' kernel,
K(x,x) + K(y,y) - 2 K(x,y), is at most ``NEAR`` times the median over all pairs of candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from resvm_cli.commands.rank.listing import EXPLORED, Listing
from resvm_cli.errors import DataError
from resvm_cli.model.model_plan import ModelPlan
from resvm_cli.model.pu_data import PUData
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, IntArray
from resvm_cli.svm.products import kernel_products, kernel_values

NEAR = 0.05  # like SURE, chosen on data sets that studies/campaigns.py does not use
SURE = 0.9
# Candidates per row of the batch, and in total: their kernel matrix takes at most 128 MB.
CANDIDATES, MAX_CANDIDATES = 10, 4000


@dataclass(frozen=True)
class BatchSummary:
    """How the rows to test next were chosen."""

    n_rows: int
    n_explored: int  # chosen because members disagree
    n_near: int  # candidates passed over as near-duplicates
    n_same_group: int
    n_excluded: int
    n_tested: int  # rows left out because their outcome is known


def excluded_rows(ids: Sequence[str], excluded: Iterable[tuple[str, str]]) -> BoolArray:
    """Return a mask of the rows with an excluded id; each id comes with its location."""
    wanted, known = dict(excluded), set(ids)
    for row_id, location in wanted.items():
        if row_id not in known:
            raise DataError(
                f"{location}: '{row_id}' is not the id of a row of U",
                "list the ids of unlabeled rows that cannot be tested",
            )
    return np.array([row_id in wanted for row_id in ids], bool)


def choose_batch(
    listing: Listing,
    data: PUData,
    plan: ModelPlan,
    size: int,
    explore: float = 0.0,
    excluded: BoolArray | None = None,
    tested: IntArray | None = None,
) -> tuple[Listing, BatchSummary]:
    """Return the rows of a ranking of U to test next, in order of rank, and how they were chosen.

    ``excluded`` marks rows of U, by number, that cannot be tested; ``tested`` are the numbers of
    rows whose outcome is known.
    """
    possible = listing.n_members > 0
    if excluded is not None:
        possible &= ~excluded[listing.numbers - plan.rows_pos]
    if tested is not None:
        possible &= ~np.isin(listing.numbers, plan.rows_pos + tested)
    ranked = np.flatnonzero(possible)
    if not len(ranked):
        raise DataError(
            "no row of U is left to test", "every row is excluded, already tested or unscored"
        )
    size = min(size, len(ranked))
    n_explored = min(round(explore * size), size)
    most = min(MAX_CANDIDATES, CANDIDATES * size)
    uncertain = ranked[np.argsort(np.abs(listing.votes[ranked] - 0.5), kind="stable")]
    firsts = ranked[:most]
    doubtful = uncertain[: CANDIDATES * n_explored][:most]
    candidates = np.unique(np.concatenate([firsts, doubtful]))
    groups = data.groups()
    choice = _Choice(
        candidates,
        _distances(data, plan, listing.numbers[candidates]),
        None if groups is None else groups[listing.numbers[candidates]],
        listing.votes[candidates] >= SURE,
    )
    choice.add(firsts, size - n_explored)
    choice.add(doubtful, size)
    explored = list(choice.chosen)[size - n_explored :]
    choice.add(candidates, size)
    chosen = np.array(list(choice.chosen), np.int64)
    left = ranked[~np.isin(ranked, chosen)]
    chosen = np.sort(np.append(chosen, left[: size - len(chosen)]))
    mask = np.zeros(len(listing), bool)
    mask[chosen] = True
    batch = listing.where(mask)
    marks = np.isin(chosen, explored).astype(float)
    batch = replace(batch, further={**batch.further, EXPLORED: marks})
    return batch, BatchSummary(
        size,
        len(explored),
        len(choice.near),
        len(choice.same_group),
        0 if excluded is None else int(excluded.sum()),
        0 if tested is None else len(tested),
    )


def _distances(data: PUData, plan: ModelPlan, numbers: IntArray) -> FloatArray:
    """Return the squared kernel distances of rows, as multiples of their median."""
    first = plan.plans[int(np.argmax(plan.weights))]
    kernel = first.kernel
    products = kernel_products(data.scaled(data.rows(numbers), first.scale), kernel)
    values = products if kernel.is_precomputed else kernel_values(kernel, products)
    own = values.diagonal()
    distances: FloatArray = np.maximum(own[:, None] + own[None, :] - 2 * values, 0.0)
    upper = distances[np.triu_indices(len(numbers), 1)]
    typical = float(np.median(upper)) if len(upper) else 0.0
    return distances / (typical or 1.0)


class _Choice:
    """Candidates chosen one at a time."""

    def __init__(
        self, candidates: IntArray, distances: FloatArray, groups: IntArray | None, sure: BoolArray
    ) -> None:
        self._candidates = candidates
        self._distances = distances
        self._groups = groups
        self._sure = sure
        self._nearest = np.full(len(candidates), np.inf)  # distance to the nearest chosen row
        self._in_used_group = np.zeros(len(candidates), bool)
        self.chosen: dict[int, None] = {}  # in the order in which rows were chosen
        self.near: set[int] = set()
        self.same_group: set[int] = set()

    def add(self, rows: IntArray, size: int) -> None:
        """Choose from these candidates, in this order, until ``size`` are chosen.

        Near-duplicates and rows of chosen groups are passed over.
        """
        for index in np.searchsorted(self._candidates, rows).tolist():
            row = int(self._candidates[index])
            if len(self.chosen) >= size:
                return
            if row in self.chosen:
                continue
            if self._in_used_group[index]:
                self.same_group.add(row)
            elif self._nearest[index] <= NEAR and not self._sure[index]:
                self.near.add(row)
            else:
                self.chosen[row] = None
                self._nearest = np.minimum(self._nearest, self._distances[index])
                if self._groups is not None:
                    self._in_used_group |= self._groups == self._groups[index]
