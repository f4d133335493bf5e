"""The report of rank: a summary, JSON, reasons, and the HTML page."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli import __version__
from resvm_cli.files.streams import name_of
from resvm_cli.report.terminal import finite, print_json, say, with_unicode_names
from resvm_cli.report.training import bags_of

if TYPE_CHECKING:
    from resvm_cli.commands.rank.fdr import FdrEstimate
    from resvm_cli.commands.rank.listing import Listing
    from resvm_cli.commands.rank.rank import RankResult
    from resvm_cli.commands.rank.reasons import Reasons
    from resvm_cli.metrics.intervals import Interval
    from resvm_cli.rows import FloatArray
    from resvm_cli.training.input import TrainingInput


UNCOUNTED = "ranked, but not counted, because P and U overlap"
RECOVERED_FRACTIONS = (
    0.5,
    0.9,
)  # of known positives, whose ranks are reported
RANKED_DEPTHS = (10, 100, 1000)
SHOWN_DEPTH = 50  # of the cases in the summary
MAX_SHOWN = 20  # rows whose reasons are printed
MAX_PAGE_ROWS = 200_000  # a page of 10 MB
DRAWN_POINTS = 1500


def show_ranking(result: RankResult) -> None:
    """Print how rows were scored and what is expected of the list, on stderr."""
    plan = result.plan
    rows = [
        ("data", f"{plan.rows_pos:,} positive, {plan.rows_unl:,} unlabeled rows"),
        (
            "ensemble",
            f"{plan.method}, {plan.kernel_names}: {plan.n_models} members, each of"
            f" {bags_of(plan.plans)}; by {result.rule}; seed {plan.seed}",
        ),
    ]
    if result.model is not None:
        rows.append(("model", result.model))
    rows.append(("ranked", f"{result.n_listed:,} {_listed_rows(result)} out of bag"))
    recovery = result.recovery
    if recovery is not None:
        ranks = " and ".join(
            f"{100 * fraction:.0f} % by rank {recovery.depth_of(fraction):,}"
            for fraction in RECOVERED_FRACTIONS
        )
        rows.append(("recall", f"known positives would be found: {ranks} of U"))
    if result.fdr_estimate is not None:
        rows += _estimate_rows(result.fdr_estimate)
    if result.n_suspects is not None:
        rows.append(("suspects", f"{_suspects(result)} of the known positives look false"))
    elif result.audit:
        rows.append(("suspects", UNCOUNTED))
    for name, text in rows:
        say(f"{name:>10}  {text}")


def _suspects(result: RankResult) -> str:
    """Return the number of suspects, with bounds if their fraction of P was estimated."""
    text = f"{result.n_suspects:,}"
    estimate = result.fdr_estimate
    if estimate is not None and (a := estimate.contamination_pos) is not None and a.low < a.high:
        text += " ({:,.0f} to {:,.0f})".format(*(result.plan.rows_pos * x for x in (a.low, a.high)))
    return text


def _listed_rows(result: RankResult) -> str:
    if result.with_known:
        return "rows of P and U"
    return "known positives" if result.audit else "rows of U"


def _estimate_rows(estimate: FdrEstimate) -> list[tuple[str, str]]:
    """Return summary lines about the positives in U and the list that --fdr chose."""
    rows = []
    if (fraction := estimate.contamination_unl) is not None:
        if estimate.claimed:
            rows.append(("positives", f"{_percent(fraction)} of U, estimated"))
        else:
            text = (
                f"at most {_ceiling(fraction)} of U; how many is unknown, because P and U overlap"
            )
            rows += [("positives", text), *_case_rows(estimate)]
    if estimate.fdr is not None:
        text = f"{estimate.n_listed:,} rows"
        if estimate.precision is not None:
            text += f", {_percent(estimate.precision)} of them expected to be positive"
        elif estimate.n_negatives is not None:
            text += (
                f" by conformal p-values from {estimate.n_negatives:,} trusted negatives: at most"
                f" {100 * estimate.fdr:g} % of the rows are expected to be false"
            )
        rows.append(("list", text))
    return rows


def _case_rows(estimate: FdrEstimate) -> list[tuple[str, str]]:
    """Return a line about the first rows if certain fractions of U were positive."""
    depth = max((case.n_first for case in estimate.cases if case.n_first <= SHOWN_DEPTH), default=0)
    cases = [case for case in estimate.cases if case.n_first == depth]
    texts = [f"if {100 * case.contamination_unl:.0f} %: {case.n_positive:.0f}" for case in cases]
    if not texts:
        return []
    texts[0] = texts[0].replace(":", " of U are positive:") + f" of the first {depth}"
    return [("expected", "; ".join(texts))]


def _ceiling(fraction: Interval) -> str:
    return f"{math.ceil(100 * fraction.high)} %"


def _percent(fraction: Interval) -> str:
    text = f"{100 * fraction.value:.0f} %"
    if fraction.low < fraction.high:
        text += f" ({100 * fraction.low:.0f} to {100 * fraction.high:.0f})"
    return text


def print_ranking(result: RankResult) -> None:
    """Print the complete result as JSON."""
    plan = result.plan
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
            "n_without_value": result.n_unscored,
            "n_suspects": result.n_suspects,
            "resamples": result.resamples,
            "known_positives_found": recovery,
            "promise": None if estimate is None else _estimate_json(estimate),
            "notes": list(result.notes),
            "why": [finite(asdict(one)) for one in result.reasons] if result.reasons else None,
            "rows": [dict(zip(names, record, strict=True)) for record in result.listing.records()],
        },
    )


def _estimate_json(estimate: FdrEstimate) -> dict[str, Any]:
    def bounded(fraction: Interval | None) -> Any:
        return None if fraction is None else finite(asdict(fraction))

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
        parts = ", ".join(f"{name} {amount:+.3g}" for name, amount in _sums(one))
        say(f"{'why':>10}  rank {one.rank:,}, {one.id}: {one.mean_value:.4g} = {parts}")
        for name, found in (
            ("for", one.positives),
            ("against", one.unlabeled),
            ("features", one.features),
        ):
            if found:
                texts = (f"{each.name} ({each.amount:+.3g})" for each in found)
                say(f"{'':>10}  {name}: {', '.join(texts)}")
    if len(reasons) > MAX_SHOWN:
        left = len(reasons) - MAX_SHOWN
        say(f"{'':>10}  and {left:,} more rows: --why-out FILE writes all of them")


def reason_lines(reasons: Sequence[Reasons]) -> bytes:
    """Return one line of JSON per row."""
    texts = [json.dumps(with_unicode_names(finite(asdict(one)))) + "\n" for one in reasons]
    return "".join(texts).encode()


def _page_reasons(reasons: Sequence[Reasons]) -> list[dict[str, Any]]:
    """Return names and amounts in the order in which the page shows them."""
    return [
        {
            "sums": [[name, float(f"{amount:.4g}")] for name, amount in _sums(one)],
            "lists": [
                [name, [[each.name, float(f"{each.amount:.4g}")] for each in found]]
                for name, found in (
                    ("known positives that support it", one.positives),
                    ("rows of U that count against it", one.unlabeled),
                    ("features with the largest weight", one.features),
                )
                if found
            ],
        }
        for one in reasons
    ]


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


def render_page(
    result: RankResult, source: TrainingInput | None = None, command: str = ""
) -> bytes:
    """Return the HTML page, with the names of the data files and the command if known."""
    curve: dict[str, Any] | None = None
    if (recovery := result.recovery) is not None:
        found = np.arange(1, len(recovery.depths) + 1) / len(recovery.depths)
        drawn = np.unique(np.linspace(0, len(found) - 1, DRAWN_POINTS).astype(int))
        curve = {"rank": recovery.depths[drawn].tolist(), "share": _rounded(found[drawn])}
    histogram = result.histogram
    data = {
        "heading": _heading(result, source),
        "data": _data(result, source),
        "command": command,
        "audit": result.audit,
        "tiles": list(_tiles(result)),
        "n_unl": result.plan.rows_unl,
        "notes": list(result.notes),
        "made": _made(result),
        "list": _columns(result.listing, result),
        "why": _page_reasons(result.reasons),
        "known": None if result.audit or result.known is None else _columns(result.known, result),
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


def _tiles(result: RankResult) -> Iterator[tuple[str, float | str]]:
    """Yield the figures at the top of the page."""
    yield _listed_rows(result) + " ranked", result.n_listed
    yield "members", result.plan.n_models
    if result.recovery is not None:
        for fraction in RECOVERED_FRACTIONS:
            name = f"{100 * fraction:.0f} % of known positives found by rank"
            yield name, result.recovery.depth_of(fraction)
    if (estimate := result.fdr_estimate) is not None:
        if estimate.contamination_unl is not None:
            name = "positives in U, estimated"
            unl = estimate.contamination_unl
            if estimate.claimed:
                yield name, f"{100 * unl.value:.1f} %"
            else:
                yield name + f" (at most {_ceiling(unl)})", "unknown"
        if estimate.fdr is not None:
            name = f"rows listed at a false discovery rate of {estimate.fdr:g}"
            yield name, estimate.n_listed or 0
        if estimate.n_unlike is not None:
            yield "trusted negatives unlike the rows of P and U", estimate.n_unlike
    if result.n_suspects is not None:
        yield "suspects among known positives", result.n_suspects
    if result.n_unscored:
        yield "rows without a value", result.n_unscored


def _heading(result: RankResult, source: TrainingInput | None) -> str:
    """Return a heading that says what is listed, and from which file."""
    path = None
    if source is not None:
        path = source.data or (source.positives if result.audit else source.unlabeled)
    of = "" if path is None else f" of {name_of(path)}"
    return f"Known positives{of}, most suspicious first" if result.audit else f"Ranking{of}"


def _data(result: RankResult, source: TrainingInput | None) -> str:
    plan = result.plan
    of_p = of_u = whole = ""
    if source is not None and source.data is not None:
        whole = f", of {name_of(source.data)}"
        if source.positive_ids is not None:
            of_p = f" (ids of {name_of(source.positive_ids)})"
    elif source is not None and source.positives is not None and source.unlabeled is not None:
        of_p, of_u = f" of {name_of(source.positives)}", f" of {name_of(source.unlabeled)}"
    return f"{plan.rows_pos:,} known positives{of_p}, {plan.rows_unl:,} unlabeled rows{of_u}{whole}"


def _made(result: RankResult) -> list[str]:
    plan = result.plan
    notes = [
        f"Made by resvm {__version__}: {plan.method}, {plan.kernel_names} kernel,"
        f" {plan.n_models} members, each of {bags_of(plan.plans)}, by {result.rule},"
        f" seed {plan.seed}.",
        "Each row is scored only by members that have not seen the row itself, any row of its"
        " group, or any identical row.",
    ]
    if result.resamples:
        notes.append(
            f"95 % intervals of ranks come from {result.resamples} resamples of the members. They"
            " show how much the order depends on the random bags, not on the choice of the data."
        )
    if result.n_suspects is not None:
        notes.append(
            "Suspects are the known positives with the lowest values. Their number is the number"
            " of false positives expected from the given or estimated contamination of P."
        )
    elif result.recovery is not None:
        notes.append(f"Suspects among the known positives are {UNCOUNTED}.")
    else:
        notes.append("Bagging has all of P in every bag, so known positives cannot be scored.")
    if result.fdr_estimate is not None:
        for _, text in _case_rows(result.fdr_estimate):
            notes.append(f"Precision is unknown, because P and U overlap. Positives, {text}.")
    if result.reasons:
        notes.append(
            "Reasons show the terms that add up to a row's mean value over the members that have"
            " not seen it. Click an id."
        )
    if len(result.listing) > MAX_PAGE_ROWS:
        notes.append(f"The table shows only the first {MAX_PAGE_ROWS:,} rows.")
    return notes


def _columns(listing: Listing, result: RankResult) -> dict[str, Any]:
    """Return the list by columns, which is more compact than by rows."""
    shown = listing.head(MAX_PAGE_ROWS)
    kind = shown.known.astype(int)
    if result.n_suspects and result.known is not None:
        highest = result.known.values[result.n_suspects - 1]
        kind[shown.known & (shown.values <= highest)] = 2
    columns: dict[str, Any] = {
        "id": [_printable(name) for name in shown.ids],
        "kind": kind.tolist() if kind.any() else None,
        "value": _rounded(shown.values),
        "votes": _rounded(shown.votes, 3),
        "members": shown.n_members.tolist(),
        "low": None if shown.low is None else shown.low.tolist(),
        "high": None if shown.high is None else shown.high.tolist(),
        "further": {name: _rounded(column, 4) for name, column in shown.further.items()},
    }
    if shown.ranks is not None:
        columns["rank"] = shown.ranks.tolist()
    return columns


def _printable(name: str) -> str:
    """Return a name for the page, with bytes that are not UTF-8 replaced."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _rounded(array: FloatArray, digits: int = 6) -> list[float | None]:
    return [None if math.isnan(value) else float(f"{value:.{digits}g}") for value in array.tolist()]
