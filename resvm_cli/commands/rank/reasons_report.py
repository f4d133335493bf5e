"""Why rows rank where they do, for people, for programs and for a page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from resvm_cli.report.terminal import finite, say, with_unicode_names

if TYPE_CHECKING:
    from resvm_cli.commands.rank.reasons import Reasons

MOST_SHOWN = 20


def show(reasons: Sequence[Reasons]) -> None:
    """What speaks for and against rows; of many, as much as fits on a page."""
    for one in reasons[:MOST_SHOWN]:
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
    if len(reasons) > MOST_SHOWN:
        left = len(reasons) - MOST_SHOWN
        say(f"{'':>10}  and so for {left:,} more rows: --why-out FILE has them all")


def lines(reasons: Sequence[Reasons]) -> bytes:
    """A line of JSON for each row."""
    texts = [json.dumps(with_unicode_names(finite(asdict(one)))) + "\n" for one in reasons]
    return "".join(texts).encode()


def for_page(reasons: Sequence[Reasons]) -> list[dict[str, Any]]:
    """Names and amounts, in the order in which a page shows them."""
    return [
        {
            "sums": [[name, float(f"{amount:.4g}")] for name, amount in _sums(one)],
            "lists": [
                [name, [[each.name, float(f"{each.amount:.4g}")] for each in found]]
                for name, found in (
                    ("known positives that speak for it", one.positives),
                    ("rows of U that speak against it", one.unlabeled),
                    ("features that count", one.features),
                )
                if found
            ],
        }
        for one in reasons
    ]


def _sums(reasons: Reasons) -> Iterator[tuple[str, float]]:
    """What the value is the sum of."""
    for name, amount in (
        ("known positives", reasons.of_positives),
        ("rows of U", reasons.of_unlabeled),
        ("features", reasons.of_features),
        ("constant", reasons.constant),
    ):
        if amount is not None:
            yield name, amount
