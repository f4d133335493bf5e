"""Fill the tables of docs/reproduction.md from the stored runs, so that no number is typed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from experiments.paper.report import Report, report
from experiments.paper.sections import (
    TITLES,
    comparison,
    conclusions,
    judged,
    margins,
    table,
    verdicts,
)

BLOCK = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- end of results -->)", re.S)
FIRST_GRIDS = "results-first-grids.jsonl"  # beside the stored runs
# Data sets whose grids were revised after a first run, and how many draws we had looked at.
REVISED = {"ijcnn1": 2, "covtype": 5}


def fill(page: str, *runs: str) -> None:
    """Replace the text between the marks of a page."""
    whole, first_grids = report(runs), Path(runs[0]).with_name(FIRST_GRIDS)
    path = Path(page)
    path.write_text(filled(path.read_text(), whole, first_grids))


def filled(text: str, whole: Report, first_grids: Path) -> str:
    paper = whole.runs[0]
    blocks: dict[str, Callable[[], str]] = {
        "verdicts": partial(verdicts, paper),
        "revised": partial(_revised, whole, first_grids),
        "margins": partial(margins, paper, "mnist"),
        "conclusions": partial(conclusions, paper),
        "fast": lambda: "" if whole.comparison is None else comparison(whole.comparison),
    }
    return BLOCK.sub(lambda found: f"{found[1]}\n{blocks[found[2]]()}\n\n{found[3]}", text)


def _revised(whole: Report, first_grids: Path) -> str:
    """Compare resvm with the first grids, the revised ones, and on draws not looked at before."""
    first: dict[tuple[str, str], list[float]] = {}
    for line in first_grids.read_text().splitlines():
        one = json.loads(line)
        first.setdefault((one["setting"], one["task"]), []).append(one["pr_auc_trapezoid"])
    paper = whole.runs[0]
    rows = []
    for setting, row, cell in judged(paper, "resvm"):
        if row.task in REVISED and cell.published:
            unseen = [
                one.pr_auc_trapezoid
                for one in paper.results
                if (one.cell.setting, one.cell.task, one.cell.method)
                == (setting, row.task, "resvm")
                and one.cell.repetition >= REVISED[row.task]
            ]
            rows.append([
                f"{row.task}, {TITLES[setting]}", _mean(first.get((setting, row.task), [])),
                f"{cell.pr_auc_trapezoid.mean:.1f} ({cell.pr_auc_trapezoid.n})", _mean(unseen),
                f"{cell.published.low}-{cell.published.high}",
            ])  # fmt: skip
    heads = ["resvm (draws)", "first grid", "revised", "of them not looked at", "published"]
    return table(heads, rows)


def _mean(areas: Sequence[float]) -> str:
    return f"{100 * sum(areas) / len(areas):.1f} ({len(areas)})" if areas else "-"
