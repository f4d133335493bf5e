"""New."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resvm_cli.report.terminal import print_json, say

if TYPE_CHECKING:
    from resvm_cli.training.parts import PartResult


def show_part(part: PartResult) -> None:
    """Which members a part holds, and what comes next."""
    if not part.members:
        return
    first, last = part.members[0], part.members[-1]
    say(f"{'members':>10}  {first} to {last} of {part.n_models}, {part.n_trained} of them new")
    say(f"{'part':>10}  {part.path}")


def print_part(part: PartResult) -> None:
    print_json(
        "part",
        {
            "part": part.path,
            "first": part.members.start,
            "last": part.members.stop - 1,
            "n_trained": part.n_trained,
            "n_members": part.n_models,
        },
    )
