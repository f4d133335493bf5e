"""``rank --next``: the rows of U to test next.

The batch is chosen greedily from the top of the ranking, where most positives are expected. A row
is passed over if it is in the same group as a chosen row or is a near-duplicate of one, because
testing both would add little information.
Near-duplicates with at least a fraction ``SURE`` of ``SURE_MEMBERS`` out-of-bag votes or more are
likely positives and are not passed over. Rows that were passed over are added, in order of rank,
only if no other rows are left. Identical rows appear once.

Two rows are near-duplicates if their squared distance in the space of the members' kernel,
K(x,x) + K(y,y) - 2 K(x,y), is at most ``NEAR`` times the median over all pairs of candidates.
"""

from __future__ import annotations

import numpy as np

from resvm_cli.data.pudata import PUData
from resvm_cli.ensemble.ensemble import Ensemble
from resvm_cli.ensemble.plan import Plan
from resvm_cli.errors import DataError
from resvm_cli.ranking.listing import Listing
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, Rows
from resvm_cli.svm.products import kernel_products, kernel_values

NEAR = 0.05  # like SURE, chosen on data sets that experiments/quality/campaigns.py does not use
SURE = 0.9
SURE_MEMBERS = 8  # fewer, even if unanimous, leave a mean probability below 0.9 (Laplace's rule)
# Candidates per row of the batch, and in total: their kernel matrix takes at most 128 MB.
CANDIDATES, MAX_CANDIDATES = 10, 4000


@dataclass(frozen=True)
class BatchSummary:
    """How the rows to test next were chosen."""

    n_rows: int
    n_near: int  # candidates passed over as near-duplicates
    n_same_group: int
    n_tested: int  # rows left out because their outcome is known


def choose_batch(
    listing: Listing,
    data: PUData,
    plan: Plan,
    ensemble: Ensemble,
    size: int,
    tested: IntArray | None = None,
) -> tuple[Listing, BatchSummary]:
    """Return the rows of a ranking of U to test next, in order of rank, and how they were chosen.

    ``tested`` has the numbers of the rows of U whose outcome is known.
    """
    ranked = np.arange(len(listing))
    if tested is not None:
        ranked = np.flatnonzero(~np.isin(listing.numbers, plan.rows_pos + tested))
    if not len(ranked):
        raise DataError("no row of U is left to test", "every row is already tested")
    most = min(MAX_CANDIDATES, CANDIDATES * min(size, len(ranked)))
    candidates, rows, copies = _distinct_rows(data, listing.numbers, ranked, most)
    size = min(size, len(candidates))
    numbers = listing.numbers[candidates]
    distances, groups = _distances(rows, ensemble), data.groups()
    group_of = None if groups is None else groups[numbers]
    is_sure = (listing.votes >= SURE) & (listing.n_members >= SURE_MEMBERS)
    nearest = np.full(len(candidates), np.inf)  # distance to the nearest chosen row
    in_used_group = np.zeros(len(candidates), bool)
    chosen: list[int] = []
    n_near = n_same_group = 0
    for index, row in enumerate(candidates.tolist()):
        if len(chosen) >= size:
            break
        if in_used_group[index]:
            n_same_group += 1
        elif nearest[index] <= NEAR and not is_sure[row]:
            n_near += 1
        else:
            chosen.append(row)
            nearest = np.minimum(nearest, distances[index])
            if group_of is not None:
                in_used_group |= group_of == group_of[index]
    n_near += int((copies < chosen[-1]).sum())
    passed_over = candidates[~np.isin(candidates, chosen)]
    mask = np.zeros(len(listing), bool)
    mask[chosen] = mask[passed_over[: size - len(chosen)]] = True
    n_tested = 0 if tested is None else len(tested)
    return listing.where(mask), BatchSummary(size, n_near, n_same_group, n_tested)


def _distinct_rows(
    data: PUData, numbers: IntArray, ranked: IntArray, most: int
) -> tuple[IntArray, Rows, IntArray]:
    """Return the first distinct rows among ``ranked``, at most ``most``, and the copies of them."""
    length = most
    while True:
        rows = data.rows(numbers[ranked[:length]])
        _, first = np.unique(rows.without_zeros().content_numbers(), return_index=True)
        if len(first) >= most or length >= len(ranked):
            first = np.sort(first)[:most]
            copies = np.delete(ranked[: len(rows)], first)
            return ranked[first], rows.take(first), copies
        length *= 4


def _distances(rows: Rows, ensemble: Ensemble) -> FloatArray:
    """Return the squared kernel distances between rows, as multiples of the median."""
    group = max(ensemble.sections, key=lambda one: one.weight)
    kernel = group.kernel
    products = kernel_products(ensemble.scaled(rows, group), kernel)
    values = kernel_values(kernel, products)
    own = values.diagonal()
    distances: FloatArray = np.maximum(own[:, None] + own[None, :] - 2 * values, 0.0)
    upper = distances[np.triu_indices(len(rows), 1)]
    typical = float(np.median(upper)) if len(upper) else 0.0
    return distances / (typical or 1.0)
