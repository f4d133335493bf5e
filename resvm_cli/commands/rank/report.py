"""New."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from resvm_cli.report.terminal import finite, print_json, say
from resvm_cli.report.training import bags_of

if TYPE_CHECKING:
    from resvm_cli.commands.rank.fdr import Promise
    from resvm_cli.commands.rank.rank import RankResult
    from resvm_cli.metrics.intervals import Interval


# shares of the known positives: by which ranks they would be found
RECOVERED_SHARES = (0.5, 0.9)


def show_ranking(result: RankResult) -> None:
    """How rows were judged, and what that says of the list."""
    plan = result.plan
    rows = [
        ("data", f"{plan.rows_pos:,} positive, {plan.rows_unl:,} unlabeled rows"),
        (
            "ensemble",
            f"{plan.method}, {plan.plans[0].kernel.name}: {plan.n_models} members, each of"
            f" {bags_of(plan.plans)}; by {result.rule}; seed {plan.seed}",
        ),
    ]
    if result.model is not None:
        rows.append(("model", result.model))
    what = "known positives" if result.audit else "rows of U"
    if result.with_known:
        what = "rows of P and U"
    rows.append(("ranked", f"{result.n_listed:,} {what} out of bag"))
    recovery = result.recovery
    if recovery is not None:
        ranks = " and ".join(
            f"{100 * share:.0f} % by rank {recovery.depth_of(share):,}"
            for share in RECOVERED_SHARES
        )
        rows.append(("recall", f"known positives would be found: {ranks} of U"))
    if result.promise is not None:
        rows += _promise(result.promise)
    if result.n_suspects is not None:
        rows.append(("suspects", f"{result.n_suspects:,} of the known positives look false"))
    for name, text in rows:
        say(f"{name:>10}  {text}")


def _promise(promise: Promise) -> list[tuple[str, str]]:
    """What is expected of U, and of the list that was asked for."""
    rows = []
    if (share := promise.contamination_unl) is not None:
        text = f"{_percent(share)} of U expected"
        if not (promise.separable or promise.contamination_given):
            text += ": cannot be known, P and U overlap"
        rows.append(("positives", text))
    if promise.fdr is not None:
        text = f"{promise.n_listed:,} rows"
        if promise.precision is not None:
            text += f", {_percent(promise.precision)} of them positive, expected"
        elif promise.n_negatives is not None:
            text += (
                f" by conformal p-values of {promise.n_negatives:,} trusted negatives: at most"
                f" {100 * promise.fdr:g} % of them false, expected"
            )
        rows.append(("list", text))
    return rows


def _percent(share: Interval) -> str:
    text = f"{100 * share.value:.0f} %"
    if share.low < share.high:
        text += f" ({100 * share.low:.0f} to {100 * share.high:.0f})"
    return text


RANKED_DEPTHS = (10, 100, 1000)


def print_ranking(result: RankResult) -> None:
    """The whole result as JSON."""
    plan = result.plan
    recovery: dict[str, Any] | None = None
    if result.recovery is not None:
        recovery = {
            f"{100 * share:.0f}_percent_by_rank": result.recovery.depth_of(share)
            for share in RECOVERED_SHARES
        }
        recovery["share_among_first"] = {
            str(depth): result.recovery.recall_at(depth) for depth in RANKED_DEPTHS
        }
    names = result.listing.columns
    print_json(
        "rank",
        {
            "audit": result.audit,
            "with_known": result.with_known,
            "method": plan.method,
            "decision": result.rule,
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
            "promise": None if result.promise is None else _promise_json(result.promise),
            "notes": list(result.notes),
            "why": [finite(asdict(one)) for one in result.reasons] if result.reasons else None,
            "rows": [dict(zip(names, record, strict=True)) for record in result.listing.records()],
        },
    )


def _promise_json(promise: Promise) -> dict[str, Any]:
    def bounded(share: Interval | None) -> Any:
        return None if share is None else finite(asdict(share))

    return {
        "contamination_pos": bounded(promise.contamination_pos),
        "contamination_unl": bounded(promise.contamination_unl),
        "separable": promise.separable,
        "n_negatives": promise.n_negatives,
        "n_negatives_unlike": promise.n_unlike,
        "fdr": promise.fdr,
        "n_listed": promise.n_listed,
        "precision": bounded(promise.precision),
    }
