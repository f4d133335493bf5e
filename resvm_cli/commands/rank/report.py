"""The report of rank: a summary, JSON and reasons."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from resvm_cli.commands.rank.page import (
    RECOVERED_FRACTIONS,
    batch_text,
    case_rows,
    listed_rows,
    sums,
    uncounted,
    unknown_text,
)
from resvm_cli.report.terminal import as_json, print_json, say_row
from resvm_cli.report.training import bags_of, rows_of

if TYPE_CHECKING:
    from resvm_cli.commands.rank.fdr import FdrEstimate
    from resvm_cli.commands.rank.rank import RankResult
    from resvm_cli.commands.rank.reasons import Reasons
    from resvm_cli.metrics.intervals import Interval


RANKED_DEPTHS = (10, 100, 1000)
MAX_SHOWN = 20  # rows whose reasons are printed


def show_ranking(result: RankResult) -> None:
    """Print how rows were scored and what is expected of the list, on stderr."""
    plan, request = result.plan, result.request
    rows = [
        ("data", rows_of(plan)),
        (
            "ensemble",
            f"{plan.method}, {plan.kernel_names}: {plan.n_models} members, each trained on"
            f" {bags_of(plan.plans)}; decision rule {request.rule}; seed {plan.seed}",
        ),
    ]
    if model := request.model or request.target:
        rows.append(("model", model))
    rows.append(("ranked", f"{result.n_listed:,} {listed_rows(result)}, scored out of bag"))
    recovery = result.recovery
    if recovery is not None:
        half, most = RECOVERED_FRACTIONS
        rows.append(
            (
                "recall",
                f"{100 * half:.0f} % of the known positives would be found by rank"
                f" {recovery.depth_of(half):,} of U, {100 * most:.0f} % by rank"
                f" {recovery.depth_of(most):,}",
            )
        )
    if result.fdr_estimate is not None:
        rows += _estimate_rows(result.fdr_estimate)
    if result.n_suspects is not None:
        rows.append(("suspects", f"{_suspects(result)} of the known positives look false"))
    elif request.audit:
        rows.append(("suspects", uncounted(result.fdr_estimate)))
    if result.batch is not None:
        rows.append(("next", batch_text(result.batch)))
    for name, text in rows:
        say_row(name, text)


def _suspects(result: RankResult) -> str:
    """Return the number of suspects, with bounds if their fraction of P was estimated."""
    text = f"{result.n_suspects:,}"
    estimate = result.fdr_estimate
    if estimate is not None and (a := estimate.contamination_pos) is not None and a.low < a.high:
        low, high = (round(result.plan.rows_pos * x) for x in (a.low, a.high))
        text += f" ({low:,} to {high:,})" if low < high else ""
    return text


def _estimate_rows(estimate: FdrEstimate) -> list[tuple[str, str]]:
    """Return summary lines about the positives in U and the list that --fdr chose."""
    rows = []
    if (fraction := estimate.contamination_unl) is not None:
        if estimate.claimed:
            rows.append(("positives", f"{_percent(fraction)} of U, estimated"))
        else:
            rows += [("positives", unknown_text(estimate, fraction)), *case_rows(estimate)]
    if estimate.fdr is not None:
        text = f"{estimate.n_listed:,} rows"
        if estimate.precision is not None:
            text += f", {_percent(estimate.precision)} of them expected to be positive"
        elif estimate.n_negatives is not None:
            text += (
                f" chosen by conformal p-values from {estimate.n_negatives:,} trusted negatives:"
                f" at most {100 * estimate.fdr:g} % of them are expected to be false"
            )
        rows.append(("list", text))
    return rows


def _percent(fraction: Interval) -> str:
    text = f"{100 * fraction.value:.0f} %"
    if fraction.low < fraction.high:
        text += f" ({100 * fraction.low:.0f} to {100 * fraction.high:.0f})"
    return text


def print_ranking(result: RankResult) -> None:
    """Print the complete result as JSON."""
    plan, request = result.plan, result.request
    recovery: dict[str, Any] | None = None
    if result.recovery is not None:
        recovery = {
            f"{100 * fraction:.0f}_percent_by_rank": result.recovery.depth_of(fraction)
            for fraction in RECOVERED_FRACTIONS
        }
        recovery["share_among_first"] = {
            str(depth): result.recovery.recall_at(depth) for depth in RANKED_DEPTHS
        }
    names, estimate = result.listing.columns, result.fdr_estimate
    print_json(
        "rank",
        {
            "audit": request.audit,
            "with_known": request.with_known,
            "method": plan.method,
            "decision": request.rule,
            "n_members": plan.n_models,
            "seed": plan.seed,
            "rows_pos": plan.rows_pos,
            "rows_unl": plan.rows_unl,
            **({"rows_neg": plan.rows_neg} if plan.rows_neg else {}),
            "model": request.model or request.target,
            "n_ranked": result.n_listed,
            "n_without_value": result.n_unscored,
            "n_suspects": result.n_suspects,
            "resamples": result.resamples,
            "known_positives_found": recovery,
            "promise": None if estimate is None else _estimate_json(estimate),
            "baselines": [asdict(one) for one in result.baselines],
            "notes": list(result.notes),
            "why": [asdict(one) for one in result.reasons] if result.reasons else None,
            **({} if result.batch is None else {"next": asdict(result.batch)}),
            "rows": [dict(zip(names, record, strict=True)) for record in result.listing.records()],
        },
    )


def _estimate_json(estimate: FdrEstimate) -> dict[str, Any]:
    def bounded(fraction: Interval | None) -> Any:
        return None if fraction is None else asdict(fraction)

    return {
        "contamination_pos": bounded(estimate.contamination_pos),
        "contamination_unl": bounded(estimate.contamination_unl),
        "separable": estimate.separable,
        "n_negatives": estimate.n_negatives,
        "n_negatives_unlike": estimate.n_unlike,
        "fdr": estimate.fdr,
        "n_listed": estimate.n_listed,
        "precision": bounded(estimate.precision),
        "cases": [asdict(case) for case in estimate.cases],
    }


def show_reasons(reasons: Sequence[Reasons]) -> None:
    """Print what counts for and against the first rows, on stderr."""
    for one in reasons[:MAX_SHOWN]:
        parts = ", ".join(f"{name} {amount:+.3g}" for name, amount in sums(one))
        say_row("why", f"rank {one.rank:,}, {one.id}: {one.mean_value:.4g} = {parts}")
        for name, found in (
            ("for", one.positives),
            ("against", one.unlabeled),
            ("features", one.features),
            ("effects", one.effect_terms),
        ):
            if found:
                texts = (f"{each.name} ({each.amount:+.3g})" for each in found)
                say_row("", f"{name}: {', '.join(texts)}")
    if len(reasons) > MAX_SHOWN:
        left = len(reasons) - MAX_SHOWN
        say_row("", f"and {left:,} more rows: --why-out FILE writes all of them")


def reason_lines(reasons: Sequence[Reasons]) -> bytes:
    """Return one line of JSON per row."""
    texts = [json.dumps(as_json(asdict(one))) + "\n" for one in reasons]
    return "".join(texts).encode()
