"""What a person and a program see of a ranking besides its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from resvm_cli.report.machine import print_json
from resvm_cli.report.terminal import say

if TYPE_CHECKING:
    from resvm_cli.jobs.rank import RankResult

SHARES = (0.5, 0.9)
DEPTHS = (10, 100, 1000)


def show_ranking(result: RankResult) -> None:
    """How rows were judged, and what that says of the list."""
    plan = result.plan
    told = [
        ("data", f"{plan.rows_pos:,} positive, {plan.rows_unl:,} unlabeled rows"),
        (
            "ensemble",
            f"{plan.method}, {plan.kernel.name}: {plan.n_models} members, each of"
            f" {plan.n_pos:,} positive and {plan.n_unl:,} unlabeled rows; seed {plan.seed}",
        ),
    ]
    if result.model is not None:
        told.append(("model", result.model))
    what = "known positives" if result.audit else "rows of U"
    if result.with_known:
        what = "rows of P and U"
    told.append(("ranked", f"{result.n_listed:,} {what} out of bag"))
    recovery = result.recovery
    if recovery is not None:
        found = " and ".join(
            f"{100 * share:.0f} % by rank {recovery.depth_of(share):,}" for share in SHARES
        )
        told.append(("recall", f"known positives would be found: {found} of U"))
    if result.n_suspects is not None:
        why = "look more like U"
        if result.listing.expected_false is not None:
            why = "should be false by --contamination-pos"
        told.append(("suspects", f"{result.n_suspects:,} of the known positives {why}"))
    for name, text in told:
        say(f"{name:>10}  {text}")


def print_ranking(result: RankResult) -> None:
    """The whole result as JSON."""
    plan = result.plan
    recovery: dict[str, Any] | None = None
    if result.recovery is not None:
        recovery = {
            f"{100 * share:.0f}_percent_by_rank": result.recovery.depth_of(share)
            for share in SHARES
        }
        recovery["share_among_first"] = {
            str(depth): result.recovery.recall_at(depth) for depth in DEPTHS
        }
    names = result.listing.columns
    print_json(
        "rank",
        {
            "audit": result.audit,
            "with_known": result.with_known,
            "method": plan.method,
            "n_members": plan.n_models,
            "seed": plan.seed,
            "rows_pos": plan.rows_pos,
            "rows_unl": plan.rows_unl,
            "model": result.model,
            "n_ranked": result.n_listed,
            "n_without_value": result.n_unjudged,
            "n_suspects": result.n_suspects,
            "resamples": result.resamples,
            "known_positives_found": recovery,
            "notes": list(result.notes),
            "rows": [dict(zip(names, one, strict=True)) for one in result.listing.records()],
        },
    )
