"""The web page of resvm rank --html: charts and a searchable list, in one file.

A page holds its style, its script and its data. Its content security policy forbids all network
connections, so the page can be emailed and opened anywhere, and allows only our own script and
style, identified by their digests.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli import __version__
from resvm_cli.cli.terminal import harmless, in_options
from resvm_cli.data.streams import as_json, as_unicode, name_of, package_text

if TYPE_CHECKING:
    from resvm_cli.ranking.listing import Listing
    from resvm_cli.ranking.pipeline import RankResult
    from resvm_cli.ranking.reasons import Reasons
    from resvm_cli.rows import FloatArray

POLICY = (
    "default-src 'none'; style-src {style}; script-src {script}; img-src data:;"
    " base-uri 'none'; form-action 'none'"
)
MAX_ROWS = 200_000  # a page of 10 MB
DRAWN_POINTS = 1500
SHOWN_FEATURES, SHOWN_NAMES = 20, 8  # groups of correlated features, and names per group


def render_page(result: RankResult, summary: Sequence[tuple[str, str]], command: str) -> bytes:
    """Return the page, which repeats the summary and the command line."""
    recovery = histogram = None
    if result.recovery is not None:
        depths = result.recovery.depths
        fractions = np.arange(1, len(depths) + 1) / len(depths)
        drawn = np.unique(np.linspace(0, len(depths) - 1, DRAWN_POINTS).astype(int))
        recovery = {"rank": depths[drawn].tolist(), "share": _rounded(fractions[drawn])}
    if result.histogram is not None:
        histogram = {
            "edges": _rounded(result.histogram.edges),
            "positive": result.histogram.positive.tolist(),
            "other": result.histogram.other.tolist(),
        }
    heading, audit = harmless(_heading(result)), result.wanted.audit
    estimate = result.fdr_estimate
    data = {
        "heading": heading,
        "summary": summary,
        "command": command,
        "audit": audit,
        "n_unl": result.plan.rows_unl,
        "warnings": [in_options(text) for text in result.warnings],
        "notes": [in_options(text) for text in result.notes if text not in result.warnings],
        "made": _page_notes(result),
        "list": _columns(result.listing, result),
        "why": [_terms(reasons) for reasons in result.reasons],
        "known": None if audit or result.known is None else _columns(result.known, result),
        "importance": _importance(result),
        "cases": [] if estimate is None else [[*vars(case).values()] for case in estimate.cases],
        "recovery": recovery,
        "histogram": histogram,
    }
    return page(f"resvm rank: {heading}", data)


def page(title: str, data: dict[str, Any]) -> bytes:
    """Return a page that runs the script with ``data`` as the constant ``DATA``."""
    content = json.dumps(as_json(data), allow_nan=False, separators=(",", ":"))
    # only these characters could end a script element or open a comment in it
    content = content.replace("<", "\\u003c").replace("\u2028", "\\u2028")
    style = f"\n{package_text('commands/page.css')}"
    code = (
        '\n"use strict";\n'
        'const DATA = JSON.parse(document.getElementById("data").textContent);\n'
        f"{package_text('commands/page.js')}"
    )
    policy = POLICY.format(style=_digest(style), script=_digest(code))
    text = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="generator" content="resvm {__version__}">
<link rel="icon" href="data:,">
<title>{escape(as_unicode(title))}</title>
<style>{style}</style>
</head>
<body>
<main id="page"></main>
<noscript>This page draws its charts with JavaScript; please enable it.</noscript>
<script type="application/json" id="data">{content}</script>
<script>{code}</script>
</body>
</html>
"""
    return text.encode("utf-8")


def _digest(content: str) -> str:
    """Return the digest that makes a content security policy allow an element's content."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _heading(result: RankResult) -> str:
    """Return a heading that says what is listed, and from which file."""
    source, audit, path = result.source, result.wanted.audit, None
    if source is not None:
        path = source.data or (source.positives if audit else source.unlabeled)
    of = "" if path is None else f" of {name_of(path)}"
    if result.batch is not None:
        return f"Rows{of} to test next"
    return f"Known positives{of}, most suspicious first" if audit else f"Ranking{of}"


def _page_notes(result: RankResult) -> list[str]:
    """Return how the page was made, and what its figures mean."""
    notes = [
        f"Made by resvm {__version__}.",
        "Each row is scored only by members that have not seen the row itself, any row of its"
        " group, or any identical row.",
        f"95% intervals of ranks come from {result.resamples} resamples of the members. They show"
        " how much the order depends on the random bags, not on the data.",
    ]
    if result.n_suspects is not None:
        notes.append(
            "Suspects are the known positives with the lowest values. Their number is the number"
            " of false positives expected from the given or estimated contamination of P."
        )
    elif result.recovery is not None:
        why = "" if result.fdr_estimate is None else result.fdr_estimate.why_unknown
        notes.append(
            "Suspects among the known positives are ranked, but not counted"
            + (f": {why}." if why else ".")
        )
    else:
        notes.append("Bagging puts all of P in every bag, so known positives cannot be scored.")
    if result.reasons:
        notes.append(
            "Click an id to see the terms that add up to the row's mean value over the members that"
            " have not seen it."
        )
    if len(result.listing) > MAX_ROWS:
        notes.append(f"The table shows only the first {MAX_ROWS:,} rows.")
    return notes


def _columns(listing: Listing, result: RankResult) -> dict[str, Any]:
    """Return the list as columns, which are more compact than rows."""
    shown = listing.head(MAX_ROWS)
    kind = shown.known.astype(int)
    if result.n_suspects and result.known is not None:
        highest = result.known.values[result.n_suspects - 1]
        kind[shown.known & (shown.values <= highest)] = 2
    columns: dict[str, Any] = {
        "id": shown.ids,
        "own": {
            name: [texts.get(number, "") for number in shown.numbers.tolist()]
            for name, texts in result.own_columns.items()
        },
        "kind": kind.tolist() if kind.any() else None,
        "value": _rounded(shown.values),
        "votes": _rounded(shown.votes, 3),
        "members": shown.n_members.tolist(),
        "low": shown.low.tolist(),
        "high": shown.high.tolist(),
        "extra_columns": {
            name: _rounded(column, 4) for name, column in shown.extra_columns.items()
        },
    }
    if (shown.ranks > np.arange(1, len(shown) + 1)).any():  # rows were left out
        columns["rank"] = shown.ranks.tolist()
    return columns


def _rounded(array: FloatArray, digits: int = 6) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in array.tolist()]


def _terms(reasons: Reasons) -> dict[str, Any]:
    """Return names and amounts in the order in which the page shows them."""
    return {
        "sums": [(name, float(f"{amount:.4g}")) for name, amount in reasons.sums()],
        "lists": [
            (name, [(term.name, float(f"{term.amount:.4g}")) for term in terms])
            for name, terms in reasons.largest_terms()
        ],
    }


def _importance(result: RankResult) -> list[tuple[str, float, float]]:
    """Return the first groups of correlated features: names, importance and deviation."""
    shown = []
    by_group = itertools.groupby(result.importance, key=lambda feature: feature.group)
    for _, features in itertools.islice(by_group, SHOWN_FEATURES):
        group = list(features)
        names = ", ".join(feature.name for feature in group[:SHOWN_NAMES])
        if len(group) > SHOWN_NAMES:
            names += f" and {len(group) - SHOWN_NAMES:,} more"
        first = group[0]
        shown.append((names, float(f"{first.importance:.3g}"), float(f"{first.deviation:.3g}")))
    return shown
