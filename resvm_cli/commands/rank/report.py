"""The report of rank: a summary, JSON, reasons, and the HTML page, which Python can write too."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli import __version__
from resvm_cli.files.streams import name_of
from resvm_cli.report.terminal import as_json, print_json, say_row
from resvm_cli.report.training import bags_of, rows_of

if TYPE_CHECKING:
    from resvm_cli.commands.rank.batch import BatchSummary
    from resvm_cli.commands.rank.fdr import FdrEstimate
    from resvm_cli.commands.rank.listing import Listing
    from resvm_cli.commands.rank.rank import RankResult
    from resvm_cli.commands.rank.reasons import Contribution, Reasons
    from resvm_cli.metrics.intervals import Interval
    from resvm_cli.rows import FloatArray

RECOVERED_FRACTIONS = (0.5, 0.9)  # recall levels at which ranks are reported
SHOWN_DEPTH = 50  # the summary shows cases for at most this many rows
MAX_PAGE_ROWS = 200_000  # a page of 10 MB
DRAWN_POINTS = 1500
SHOWN_FEATURES, SHOWN_NAMES = 20, 8  # groups of correlated features, and names in a group
RANKED_DEPTHS = (10, 100, 1000)
MAX_SHOWN = 20  # rows whose reasons are printed


def show_ranking(result: RankResult) -> None:
    """Print how rows were scored and what is expected of the list, on stderr."""
    rows = _summary(result)
    if model := result.request.model or result.request.target:
        rows.insert(2, ("model", model))
    for name, text in rows:
        say_row(name, text)


def _summary(result: RankResult) -> list[tuple[str, str]]:
    """Return a summary, for the terminal and the page."""
    plan, request, recovery = result.plan, result.request, result.recovery
    listed = "known positives" if request.audit else "rows of U"
    if request.with_known:
        listed = "rows of P and U"
    rows = [
        ("data", rows_of(plan)),
        (
            "ensemble",
            f"{plan.method}, {plan.kernel_names}: {plan.n_models} members, each trained on"
            f" {bags_of(plan.plans)}; decision rule {request.rule}; seed {plan.seed}",
        ),
        ("ranked", f"{result.n_listed:,} {listed}, scored out of bag"),
    ]
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
        rows.append(("suspects", _uncounted(result.fdr_estimate)))
    if result.batch is not None:
        rows.append(("next", batch_text(result.batch)))
    return rows


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
            rows += [("positives", _unknown_text(estimate, fraction)), *_case_rows(estimate)]
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
    renamed = {"n_unlike": "n_negatives_unlike"}
    return {
        renamed.get(name, name): value
        for name, value in asdict(estimate).items()
        if name not in ("claimed", "why_unknown")
    }


def show_reasons(reasons: Sequence[Reasons]) -> None:
    """Print what counts for and against the first rows, on stderr."""
    for one in reasons[:MAX_SHOWN]:
        parts = ", ".join(f"{name} {amount:+.3g}" for name, amount in _sums(one))
        say_row("why", f"rank {one.rank:,}, {one.id}: {one.mean_value:.4g} = {parts}")
        for name, found in _terms(one):
            texts = (f"{each.name} ({each.amount:+.3g})" for each in found)
            say_row("", f"{name}: {', '.join(texts)}")
    if len(reasons) > MAX_SHOWN:
        left = len(reasons) - MAX_SHOWN
        say_row("", f"and {left:,} more rows: --why-out FILE writes all of them")


def reason_lines(reasons: Sequence[Reasons]) -> bytes:
    """Return one line of JSON per row."""
    texts = [json.dumps(as_json(asdict(one))) + "\n" for one in reasons]
    return "".join(texts).encode()


def render_page(result: RankResult, command: str = "") -> bytes:
    """Return the HTML page, with the names of the data files and the command if known."""
    audit = result.request.audit
    curve: dict[str, Any] | None = None
    if (recovery := result.recovery) is not None:
        found = np.arange(1, len(recovery.depths) + 1) / len(recovery.depths)
        drawn = np.unique(np.linspace(0, len(found) - 1, DRAWN_POINTS).astype(int))
        curve = {"rank": recovery.depths[drawn].tolist(), "share": _rounded(found[drawn])}
    histogram = result.histogram
    data = {
        "heading": _heading(result),
        "summary": _summary(result),
        "command": command,
        "audit": audit,
        "n_unl": result.plan.rows_unl,
        "notes": list(result.notes),
        "made": _made(result),
        "list": _columns(result.listing, result),
        "why": _page_reasons(result.reasons),
        "known": None if audit or result.known is None else _columns(result.known, result),
        "importance": _importance(result),
        "recovery": curve,
        "histogram": histogram
        and {
            "edges": _rounded(histogram.edges),
            "positive": histogram.positive.tolist(),
            "other": histogram.other.tolist(),
        },
    }
    from resvm_cli.report.charts import page

    return page(f"resvm rank: {data['heading']}", "commands/rank/ranking.js", data)


def _heading(result: RankResult) -> str:
    """Return a heading that says what is listed, and from which file."""
    source, audit = result.request.source, result.request.audit
    path = source.data or (source.positives if audit else source.unlabeled)
    of = "" if path is None else f" of {name_of(path)}"
    if result.batch is not None:
        return f"Rows{of} to test next"
    return f"Known positives{of}, most suspicious first" if audit else f"Ranking{of}"


def _made(result: RankResult) -> list[str]:
    notes = [
        f"Made by resvm {__version__}.",
        "Each row is scored only by members that have not seen the row itself, any row of its"
        " group, or any identical row.",
    ]
    if result.resamples:
        notes.append(
            f"95 % intervals of ranks come from {result.resamples} resamples of the members. They"
            " show how much the order depends on the random bags, not on the data."
        )
    if result.n_suspects is not None:
        notes.append(
            "Suspects are the known positives with the lowest values. Their number is the number"
            " of false positives expected from the given or estimated contamination of P."
        )
    elif result.recovery is not None:
        notes.append(f"Suspects among the known positives are {_uncounted(result.fdr_estimate)}.")
    else:
        notes.append("Bagging has all of P in every bag, so known positives cannot be scored.")
    if result.reasons:
        notes.append(
            "Click an id to see the terms that add up to the row's mean value over the members that"
            " have not seen it."
        )
    if len(result.listing) > MAX_PAGE_ROWS:
        notes.append(f"The table shows only the first {MAX_PAGE_ROWS:,} rows.")
    return notes


def _columns(listing: Listing, result: RankResult) -> dict[str, Any]:
    """Return the list as columns, which are more compact than rows."""
    shown = listing.head(MAX_PAGE_ROWS)
    kind = shown.known.astype(int)
    if result.n_suspects and result.known is not None:
        highest = result.known.values[result.n_suspects - 1]
        kind[shown.known & (shown.values <= highest)] = 2
    columns: dict[str, Any] = {
        "id": shown.ids,
        "kind": kind.tolist() if kind.any() else None,
        "value": _rounded(shown.values),
        "votes": _rounded(shown.votes, 3),
        "members": shown.n_members.tolist(),
        "low": None if shown.low is None else shown.low.tolist(),
        "high": None if shown.high is None else shown.high.tolist(),
        "further": {name: _rounded(column, 4) for name, column in shown.further.items()},
    }
    if (shown.ranks > np.arange(1, len(shown) + 1)).any():  # rows were left out
        columns["rank"] = shown.ranks.tolist()
    return columns


def _rounded(array: FloatArray, digits: int = 6) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in array.tolist()]


def _importance(result: RankResult) -> list[tuple[str, float, float]]:
    """Return the first groups of correlated features: names, importance and deviation."""
    shown: list[tuple[str, float, float]] = []
    by_group = itertools.groupby(result.importance, key=lambda one: one.group)
    for _, some in itertools.islice(by_group, SHOWN_FEATURES):
        group = list(some)
        names = ", ".join(one.name for one in group[:SHOWN_NAMES])
        if len(group) > SHOWN_NAMES:
            names += f" and {len(group) - SHOWN_NAMES:,} more"
        one = group[0]
        shown.append((names, float(f"{one.importance:.3g}"), float(f"{one.deviation:.3g}")))
    return shown


def _page_reasons(reasons: Sequence[Reasons]) -> list[dict[str, Any]]:
    """Return names and amounts in the order in which the page shows them."""
    return [
        {
            "sums": [[name, float(f"{amount:.4g}")] for name, amount in _sums(one)],
            "lists": [
                [name, [[each.name, float(f"{each.amount:.4g}")] for each in found]]
                for name, found in _terms(one)
            ],
        }
        for one in reasons
    ]


def _terms(reasons: Reasons) -> Iterator[tuple[str, Sequence[Contribution]]]:
    """Yield the lists of largest terms that are not empty."""
    for name, found in (
        ("known positives that support it", reasons.positives),
        ("rows of U that count against it", reasons.unlabeled),
        ("features with the largest weight", reasons.features),
        ("features with the largest effect", reasons.effect_terms),
    ):
        if found:
            yield name, found


def _sums(reasons: Reasons) -> Iterator[tuple[str, float]]:
    """Yield the terms that add up to the value."""
    for name, amount in (
        ("known positives", reasons.of_positives),
        ("rows of U", reasons.of_unlabeled),
        ("features", reasons.of_features),
        ("constant", reasons.constant),
    ):
        if amount is not None:
            yield name, amount


def batch_text(batch: BatchSummary) -> str:
    """Describe how the rows to test next were chosen."""
    texts = [f"{batch.n_rows:,} rows by rank"]
    if batch.n_explored:
        texts[0] = f"{batch.n_rows - batch.n_explored:,} rows by rank"
        texts.append(f"{batch.n_explored:,} on which members disagree")
    for count, what in (
        (batch.n_near, "near-duplicate{} passed over"),
        (batch.n_same_group, "row{} from chosen groups passed over"),
        (batch.n_excluded, "row{} excluded"),
        (batch.n_tested, "tested row{} left out"),
    ):
        if count:
            texts.append(f"{count:,} {what.format('' if count == 1 else 's')}")
    return ", ".join(texts)


def _case_rows(estimate: FdrEstimate) -> list[tuple[str, str]]:
    """Return a summary row: how many of the first rows to expect if fractions of U are positive."""
    depth = max((case.n_first for case in estimate.cases if case.n_first <= SHOWN_DEPTH), default=0)
    cases = [case for case in estimate.cases if case.n_first == depth]
    texts = [f"if {100 * case.contamination_unl:.0f} %, {case.n_positive:.0f}" for case in cases]
    if not texts:
        return []
    texts[0] = texts[0].replace(",", " of U is positive,") + f" of the first {depth}"
    return [("expected", "; ".join(texts))]


def _uncounted(estimate: FdrEstimate | None) -> str:
    """Return why suspects are not counted."""
    why = f": {estimate.why_unknown}" if estimate is not None and estimate.why_unknown else ""
    return "ranked, but not counted" + why


def _unknown_text(estimate: FdrEstimate, fraction: Interval) -> str:
    """Return what is known about the positives in U if they cannot be estimated."""
    ceiling = math.ceil(100 * fraction.high)
    at_most = f", but at most {ceiling} % of U" if fraction.high < 1 else ""
    return f"unknown{at_most}: {estimate.why_unknown}"
