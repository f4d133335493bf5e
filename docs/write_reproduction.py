"""Write docs/reproduction/ and the tables of docs/reproduction.md from benchmark runs.

``python docs/write_reproduction.py --paper DIR... --fast DIR...`` joins the directories of each
protocol, stores their results without the PR curves (most of their size), and reports on them. In
reproduction.md it replaces the text between marks, so that no number in a table is typed by hand.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from resvm_cli.benchmark.data import PUBLISHED_CWSVM, SETTINGS
from resvm_cli.benchmark.join import joined_runs, read_directories
from resvm_cli.benchmark.rendering import markdown
from resvm_cli.benchmark.report import (
    BenchmarkReport,
    ComparedRow,
    RunReport,
    cost_ratio,
    report_on,
)
from resvm_cli.benchmark.results import CellResult
from resvm_cli.benchmark.sections import VERDICTS, sections
from resvm_cli.benchmark.tables import MethodCell, data_set_of

FOLDER = Path(__file__).parent
PAGE = "reproduction.md"
BLOCK = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- end of results -->)", re.S)
METHODS = ("resvm", "bagging", "cwsvm", PUBLISHED_CWSVM)
# Data sets whose grids were revised after a first run, and how many draws we had looked at.
REVISED = {"ijcnn1": 2, "covtype": 5}
FIRST_GRIDS = FOLDER / "reproduction/results-first-grids.jsonl"
SHORT = {"supervised": "supervised", "pu": "PU", "semi-supervised": "semi-supervised"}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], n_words: int = 1) -> str:
    """Format a Markdown table; the columns after the first ``n_words`` hold numbers."""
    marks = ["---"] * n_words + ["--:"] * (len(heads) - n_words)
    return "".join(f"| {' | '.join(row)} |\n" for row in (heads, marks, *rows))


def spread(counts: Sequence[int]) -> str:
    """Format counts as ``10``, ``5 to 10`` or, if there are none, a dash."""
    if not any(counts):
        return "-"
    low, high = min(counts), max(counts)
    return str(high) if low == high else f"{low} to {high}"


def cells(run: RunReport, method: str) -> list[tuple[str, str, MethodCell]]:
    """Return each setting and task with a method's result for them."""
    return [
        (one.setting, row.task, cell)
        for one in run.tables
        for row in one.rows
        if (cell := row.cell(method))
    ]


def what_was_run(report: BenchmarkReport) -> str:
    """Tabulate repetitions by data set and method, with their processor time."""
    rows = []
    for run in report.runs:
        found = {method: cells(run, method) for method in METHODS}
        names = dict.fromkeys(data_set_of(task) for of in found.values() for _, task, _ in of)
        for name in names:
            tasks = {
                task for of in found.values() for _, task, _ in of if data_set_of(task) == name
            }
            counts = []
            for of in found.values():
                own = [(task, one) for _, task, one in of if task in tasks]
                text = spread([one.pr_auc_trapezoid.n for _, one in own])
                n_tasks = len({task for task, _ in own})
                partly = 0 < n_tasks < len(tasks)
                counts.append(f"{text}, on {n_tasks} of {len(tasks)}" if partly else text)
            settings = {setting for of in found.values() for setting, task, _ in of
                        if data_set_of(task) == name}  # fmt: skip
            listed = ", ".join(SHORT[one] for one in SETTINGS if one in settings)
            rows.append([f"`{run.protocol}`", name, "all three" if len(settings) == 3 else listed,
                         *counts])  # fmt: skip
    hours = [_hours(run) for run in report.runs]
    heads = ["protocol", "data set", "settings", *METHODS]
    return f"{table(heads, rows, 3)}\nProcessor time: {', '.join(hours)}.\n"


def _hours(run: RunReport) -> str:
    """Format the processor time of a protocol, summed over the results that were timed."""
    taken = f"`{run.protocol}` {sum(cost.cpu_seconds for cost in run.costs) / 3600:.1f} h"
    n_timed = sum(cost.n_cells for cost in run.costs)
    return taken if n_timed == run.n_results else f"{taken} for {n_timed:,} of its results"


def verdicts(report: BenchmarkReport) -> str:
    """Count the cells above or within the published interval; list those of resvm below it."""
    run = report.runs[0]
    counted = []
    for method in METHODS:
        found = [cell.verdict for _, _, cell in cells(run, method)]
        compared = [verdict for verdict in found if verdict in VERDICTS[:3]]
        good = sum(verdict != "below" for verdict in compared)
        counted.append(f"{method} **{good} of {len(compared)}**")
    rows = [
        [f"{task}, {SHORT[setting]}", str(cell.pr_auc_trapezoid.n),
         f"{cell.pr_auc_trapezoid.mean:.1f}", f"{cell.published.low}-{cell.published.high}"]
        for setting, task, cell in cells(run, "resvm")
        if cell.verdict == "below" and cell.published
    ]  # fmt: skip
    text = f"Cells above the published interval or within it: {', '.join(counted)}.\n"
    if not rows:
        return f"{text}\nNo cell of resvm is below.\n"
    heads = ["below", "repetitions", "resvm here", "published"]
    return f"{text}\n{table(heads, rows)}"


def revised(report: BenchmarkReport, results: Iterable[CellResult]) -> str:
    """Compare resvm with the first grids, the revised ones, and on draws not looked at before."""
    first: dict[tuple[str, str], list[float]] = {}
    for line in FIRST_GRIDS.read_text().splitlines():
        one = json.loads(line)
        first.setdefault((one["setting"], one["task"]), []).append(100 * one["pr_auc_trapezoid"])
    rows = []
    for setting, task, cell in cells(report.runs[0], "resvm"):
        if task in REVISED and cell.published:
            unseen = [
                100 * one.pr_auc_trapezoid
                for one in results
                if (one.cell.setting, one.cell.task, one.cell.method) == (setting, task, "resvm")
                and one.cell.repetition >= REVISED[task]
            ]
            rows.append(
                [f"{task}, {SHORT[setting]}", _mean(first.get((setting, task), [])),
                 f"{cell.pr_auc_trapezoid.mean:.1f} ({cell.pr_auc_trapezoid.n})", _mean(unseen),
                 f"{cell.published.low}-{cell.published.high}"]
            )  # fmt: skip
    heads = ["resvm (draws)", "first grid", "revised", "of them not looked at", "published"]
    return table(heads, rows)


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.1f} ({len(values)})" if values else "-"


def margins(report: BenchmarkReport) -> str:
    """Tabulate how many points resvm is ahead on mnist, here and in the paper."""
    names = {
        "bagging": "bagging",
        "cwsvm": "cwsvm, solved exactly (published cwsvm)",
        PUBLISHED_CWSVM: "cwsvm-published, LIBLINEAR without a bias",
    }
    rows = []
    for method, name in names.items():
        row = [name]
        for setting in SETTINGS:
            wanted = (setting, "mnist", method)
            found = [
                one
                for one in report.runs[0].margins
                if (one.setting, one.tasks, one.method) == wanted and one.published is not None
            ]
            row += [f"{one.pr_auc_trapezoid:+.1f} ({one.published:+.1f})" for one in found] or ["-"]
        rows.append(row)
    return table(["ahead of: here (published)", *SHORT.values()], rows)


def conclusions(report: BenchmarkReport) -> str:
    """Tabulate the paper's conclusions, one by one."""
    rows = [
        [one.claim, one.finding, one.evidence.replace("|", "/").replace("<", "&lt;")]
        for one in report.runs[0].conclusions
    ]
    return table(["the paper's conclusion", "here", "evidence"], rows, 3)


def fast(report: BenchmarkReport) -> str:
    """Compare today's recommendation with the paper's protocol, by method."""
    if report.comparison is None:
        return "Not run.\n"
    rows = []
    for method in METHODS:
        own = [row for row in report.comparison.rows if row.method == method]
        if own:
            rows += [_compared(method, SHORT[row.setting], [row]) for row in own]
            rows.append(_compared(method, "all", own))
    heads = ["method", "setting", "results", "average precision, `paper`", "`fast`", "difference",
             "time, `fast` / `paper`", "without scoring test rows"]  # fmt: skip
    return table(heads, rows, 2)


def _compared(method: str, setting: str, rows: Sequence[ComparedRow]) -> list[str]:
    n_tasks = sum(row.n_tasks for row in rows)
    first, second = (
        sum(row.n_tasks * row.average_precision[place] for row in rows) / n_tasks
        for place in (0, 1)
    )
    ratios = [
        cost_ratio([row.cpu_seconds for row in rows]),
        cost_ratio([row.cpu_seconds_model for row in rows]),
    ]
    n_cells = sum(row.n_cells for row in rows)
    return [method, setting, str(n_cells), f"{first:.1f}", f"{second:.1f}",
            f"{second - first:+.1f}",
            *("-" if ratio is None else f"{ratio:.3f}" for ratio in ratios)]  # fmt: skip


BLOCKS = {
    "run": what_was_run,
    "verdicts": verdicts,
    "margins": margins,
    "conclusions": conclusions,
    "fast": fast,
}


def filled(text: str, report: BenchmarkReport, results: Sequence[CellResult]) -> str:
    """Return a page with the text between its marks replaced."""
    blocks = {**BLOCKS, "revised": partial(revised, results=results)}
    return BLOCK.sub(lambda found: f"{found[1]}\n{blocks[found[2]](report)}\n{found[3]}", text)


def compact(results: Iterable[CellResult]) -> str:
    """Format results without their PR curves, as JSON lines."""
    return "".join(
        json.dumps({name: value for name, value in one.content.items() if name != "curve"}) + "\n"
        for one in results
    )


def write(paper: Sequence[str], fast: Sequence[str], folder: Path) -> None:
    """Write all files of the reproduction."""
    runs = joined_runs(read_directories([*paper, *fast]))  # read once: files may be growing
    report = report_on(runs)
    for run in runs:
        name = run.results[0].protocol
        (folder / f"reproduction/results-{name}.jsonl").write_text(compact(run.results))
    (folder / "reproduction/report.md").write_bytes(markdown(sections(report)))
    page = folder / PAGE
    page.write_text(filled(page.read_text(), report, runs[0].results))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paper", nargs="+", required=True, metavar="DIR")
    parser.add_argument("--fast", nargs="*", default=[], metavar="DIR")
    given = parser.parse_args()
    write(given.paper, given.fast, FOLDER)


if __name__ == "__main__":
    main()
