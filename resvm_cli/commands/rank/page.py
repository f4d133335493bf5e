"""The page of rank: its data, in columns, for the script that shows them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli import __version__
from resvm_cli.commands.rank.reasons_report import for_page
from resvm_cli.commands.rank.report import RECOVERED_SHARES
from resvm_cli.files.streams import name_of
from resvm_cli.report.html import page
from resvm_cli.report.training import bags_of

if TYPE_CHECKING:
    from resvm_cli.commands.rank.rank import RankResult
    from resvm_cli.commands.rank.ranked_rows import Listing
    from resvm_cli.rows import FloatArray
    from resvm_cli.training.input import TrainingInput

MOST_ROWS = 200_000  # a page of 10 MB
DRAWN_POINTS = 1500


def render(result: RankResult, source: TrainingInput | None = None, command: str = "") -> bytes:
    """The whole page, with the names of the data and the command where they are known."""
    plan = result.plan
    what = "known positives" if result.audit else "rows of U"
    if result.with_known:
        what = "rows of P and U"
    tiles: list[tuple[str, float | str]] = [
        (what + " ranked", result.n_listed),
        ("members", plan.n_models),
    ]
    curve: dict[str, Any] | None = None
    if (recovery := result.recovery) is not None:
        tiles += [
            (f"{100 * share:.0f} % of known positives found by rank", recovery.depth_of(share))
            for share in RECOVERED_SHARES
        ]
        share = np.arange(1, len(recovery.depths) + 1) / len(recovery.depths)
        drawn = np.unique(np.linspace(0, len(share) - 1, DRAWN_POINTS).astype(int))
        curve = {"rank": (recovery.depths[drawn] + 1).tolist(), "share": _rounded(share[drawn])}
    promise = result.promise
    if promise is not None and promise.contamination_unl is not None:
        name = "positives of U, expected"
        if not (promise.separable or promise.contamination_given):
            name += " (P and U overlap: cannot be known)"
        tiles.append((name, f"{100 * promise.contamination_unl.value:.1f} %"))
    if promise is not None and promise.fdr is not None:
        name = f"rows listed at a false discovery rate of {promise.fdr:g}"
        tiles.append((name, promise.n_listed or 0))
    if promise is not None and promise.n_unlike is not None:
        tiles.append(("trusted negatives unlike the rows of P and U", promise.n_unlike))
    if result.n_suspects is not None:
        tiles.append(("suspects among known positives", result.n_suspects))
    if result.n_unjudged:
        tiles.append(("rows without a value", result.n_unjudged))
    histogram = result.histogram
    data = {
        "heading": _heading(result, source),
        "data": _data(result, source),
        "command": command,
        "audit": result.audit,
        "tiles": tiles,
        "n_unl": plan.rows_unl,
        "notes": list(result.notes),
        "made": _made(result),
        "list": _columns(result.listing, result),
        "why": for_page(result.reasons),
        "known": None if result.audit or result.known is None else _columns(result.known, result),
        "recovery": curve,
        "histogram": histogram
        and {
            "edges": _rounded(histogram.edges),
            "positive": histogram.positive.tolist(),
            "other": histogram.other.tolist(),
        },
    }
    return page(f"resvm rank: {data['heading']}", "commands/rank/ranking.js", data)


def _heading(result: RankResult, source: TrainingInput | None) -> str:
    """What is listed, and of which file."""
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
        f"Made by resvm {__version__}: {plan.method}, {plan.plans[0].kernel.name} kernel,"
        f" {plan.n_models} members, each of {bags_of(plan.plans)}, by {result.rule},"
        f" seed {plan.seed}.",
        "Each row is judged only by the members that have seen neither it, nor a row of its group,"
        " nor a row equal to it.",
    ]
    if result.resamples:
        notes.append(
            f"95 % intervals of ranks come from {result.resamples} ensembles of members drawn again"
            " with replacement: they tell how much the order depends on the draw of bags, not on"
            " the draw of the data."
        )
    if result.n_suspects is not None:
        notes.append(
            "Suspects are as many known positives, the lowest, as are expected to be false, by the"
            " contamination of P that was given or else by one that is estimated."
        )
    else:
        notes.append("Bagging holds all of P in every bag: of known positives nothing can be said.")
    if result.reasons:
        notes.append(
            "Reasons tell what the mean value of the members that have not seen a row is made of:"
            " they add up to it. Click an id."
        )
    if len(result.listing) > MOST_ROWS:
        notes.append(f"The table holds the first {MOST_ROWS:,} rows.")
    return notes


def _columns(listing: Listing, result: RankResult) -> dict[str, Any]:
    """The list column by column: shorter than row by row, and read at once."""
    shown = listing.head(MOST_ROWS)
    kind = shown.known.astype(int)
    if result.n_suspects and result.known is not None:
        most = result.known.values[result.n_suspects - 1]
        kind[shown.known & (shown.values <= most)] = 2
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
    """A name that was no UTF-8 keeps its bytes in files; a page shows what it can."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _rounded(array: FloatArray, digits: int = 6) -> list[float | None]:
    return [None if math.isnan(value) else float(f"{value:.{digits}g}") for value in array.tolist()]
