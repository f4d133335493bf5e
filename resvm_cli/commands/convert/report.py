"""New."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resvm_cli.report.terminal import note, say

if TYPE_CHECKING:
    from resvm_cli.commands.convert.convert import ConvertResult


def show_conversion(result: ConvertResult) -> None:
    """What was read and where it went."""
    rows = f"{result.n_rows:,} rows"
    if result.n_positives is not None:
        rows += f", {result.n_positives:,} of them positive"
    say(f"{'read':>10}  {rows}, {result.n_features:,} features")
    for text in result.notes:
        note(text)
    if result.targets != ("-",):
        say(f"{'written to':>10}  {', '.join(result.targets)}")
