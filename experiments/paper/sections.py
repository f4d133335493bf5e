"""The report as Markdown, section by section, and its cells as CSV."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from experiments.paper.contamination import AXES, LevelRow, OwnTable
from experiments.paper.data import COMPARED, METHODS, OWN, PUBLISHED_CWSVM, SETTINGS
from experiments.paper.report import ComparedRow, Comparison, Report, RunReport, cost_ratio
from experiments.paper.results import AREAS
from experiments.paper.tables import (
    MIN_REPETITIONS,
    Estimate,
    MethodCell,
    SettingTable,
    TaskRow,
    data_set_of,
)
from resvm_cli import __version__
from resvm_cli.data.fields import line_writer

NOTHING = "-"
TITLES = {
    "supervised": "Supervised",
    "pu": "PU learning",
    "semi-supervised": "Semi-supervised",
    OWN: "Given contamination",
}
PARAMETER_TITLES = {"n_pos": "n_pos", "unl_per_pos": "n_unl / n_pos", "w_pos": "w_pos"}
VERDICTS = ("above", "within", "below")
ALL_METHODS = (*COMPARED, PUBLISHED_CWSVM)
CSV_COLUMNS = (
    "run", "protocol", "setting", "task", "method", "contamination_pos", "contamination_unl", "n",
    *(f"{area}{bound}" for area in AREAS for bound in ("", "_low", "_high")),
    "wins", "published_low", "published_high", "published_wins", "verdict",
    "p_resvm_over_bagging", "stars", "published_stars",
)  # fmt: skip


def table(columns: Sequence[str], rows: Iterable[Sequence[str | int]], n_names: int = 1) -> str:
    """Format a Markdown table; the columns after the first ``n_names`` hold numbers."""
    marks = ["---"] * n_names + ["---:"] * (len(columns) - n_names)
    lines = [columns, marks, *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float | None, digits: int = 1, sign: bool = False) -> str:
    if value is None or math.isnan(value):
        return NOTHING
    return f"{value:{'+' if sign else ''}.{digits}f}"


def count(value: float | None) -> str:
    """Format a number of wins, which may be fractional because of ties."""
    if value is None:
        return NOTHING
    return number(value, 0 if abs(value - round(value)) < 1e-9 else 1)


def p_value(value: float | None) -> str:
    if value is None or math.isnan(value):
        return NOTHING
    return f"**{value:.2g}**" if value < 0.05 else f"{value:.2g}"


def interval(value: Estimate, best: bool = False) -> str:
    text = f"{value.mean:.1f}"
    if value.low is not None and value.high is not None:
        text += f" ({value.low:.1f}-{value.high:.1f})"
    return f"**{text}**" if best else text


def markdown(report: Report) -> str:
    """Return the whole report."""
    parts = []
    if report.comparison is not None:
        first, second = report.comparison.names
        parts.append((f"{first} and {second} side by side", comparison(report.comparison)))
    for run in report.runs:
        start = f"{run.name}: " if len(report.runs) > 1 else ""
        for title, section in SECTIONS:
            if text := section(run):
                parts.append((start + title, text))
    return "# Report\n\n" + "\n\n".join(f"## {title}\n\n{text}" for title, text in parts) + "\n"


def _what_was_run(run: RunReport) -> str:
    lines = [f"Protocol {run.protocol}: {len(run.results):,} results, one per cell and method."]
    lines += [f"    {command}" for command in run.record.get("commands", ())]
    if "versions" in run.record:
        listed = ", ".join(f"{name} {value}" for name, value in run.record["versions"].items())
        lines.append(f"Seed: {run.record['seed']}. Versions: {listed}.")
    if run.costs:
        hours = sum(cost.cpu_seconds for cost in run.costs) / 3600
        lines.append(f"Time: {hours:.2f} hours over all cells, including tuning.")
    lines.append(f"Reported by resvm {__version__}.")
    return "\n\n".join([*lines, _repetitions(run)])


def _repetitions(run: RunReport) -> str:
    """Tabulate repetitions by data set and method."""
    done: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    for one in (result.cell for result in run.results):
        of_method = done.setdefault((data_set_of(one.task), one.method), Counter())
        of_method[one.setting, one.task] += 1
    rows = []
    for name in dict.fromkeys(name for name, _ in done):
        counts = [sorted(done.get((name, method), Counter()).values()) for method in METHODS]
        spans = [
            NOTHING if not own else str(own[0]) if own[0] == own[-1] else f"{own[0]} to {own[-1]}"
            for own in counts
        ]
        rows.append([name, *spans])
    return table(["data set", *METHODS], rows)


def judged(run: RunReport, method: str) -> list[tuple[str, TaskRow, MethodCell]]:
    """Return each setting and row in which the paper has a result of a method, with ours."""
    return [
        (of.setting, row, cell)
        for of in run.tables
        for row in of.rows
        if (cell := row.cell(method)) is not None and cell.verdict is not None
    ]


def verdicts(run: RunReport) -> str:
    rows = []
    for method in METHODS:
        found = judged(run, method)
        names = {
            verdict: [f"{row.task} ({of})" for of, row, cell in found if cell.verdict == verdict]
            for verdict in (*VERDICTS, "too few")
        }
        if found:
            counts = [str(len(own)) for own in names.values()]
            rows.append([method, *counts, str(len(found)), ", ".join(names["below"]) or "none"])
    if not rows:
        return ""
    return "\n\n".join([
        "above: the mean is above the published 95% interval; within: at least its lower bound"
        " minus one point; below: less than that; too few: fewer than"
        f" {MIN_REPETITIONS} repetitions. cwsvm-published (LIBLINEAR without a bias) is compared"
        " with the paper's cwsvm.",
        table(["method", *VERDICTS, "too few", "cells", "which are below"], rows),
    ])  # fmt: skip


def conclusions(run: RunReport) -> str:
    if not run.conclusions:
        return ""
    rows = [[one.claim, one.finding, one.evidence.replace("<", "&lt;")] for one in run.conclusions]
    return table(["the paper's conclusion", "here", "evidence"], rows, 3)


def _settings(run: RunReport) -> str:
    parts = [
        "Area under the PR curve by trapezoids, in percent: mean and 95% Student-t interval over n"
        " repetitions, next to the published interval. p and stars: one-sided paired Wilcoxon test"
        " of whether resvm is better than bagging (• p < 0.05, •• p < 0.01, ••• p < 0.001). Wins:"
        " repetitions in which a method was best; ties for first place are split evenly."
    ]
    for one in run.tables:
        parts += [f"### {TITLES[one.setting]}", _setting(one)]
    return "\n\n".join(parts) if run.tables else ""


def _setting(one: SettingTable) -> str:
    """Return the paper's table for one setting."""
    columns = ["task", "n"]
    for method in one.methods:
        columns += [method, "paper", "verdict"]
    columns += ["p", "stars", "paper", f"wins ({'/'.join(one.methods)})", "paper"]
    rows = []
    for row in one.rows:
        means = [cell.pr_auc_trapezoid.mean for cell in row.cells if cell.method in COMPARED]
        line = [row.task, str(row.n_compared)]
        for method in one.methods:
            line += _method_cells(row.cell(method), max(means, default=0.0))
        line += [p_value(row.p_resvm_over_bagging), "•" * row.stars]
        line += [NOTHING if row.published_stars is None else "•" * row.published_stars]
        rows.append([*line, *_win_cells(one.methods, row)])
        extra = row.cell(PUBLISHED_CWSVM)
        if extra is not None and "cwsvm" in one.methods:
            start = [f"{row.task}, {PUBLISHED_CWSVM}", str(extra.pr_auc_trapezoid.n)]
            rows.append([*start, *_method_cells(extra, math.inf), *[""] * (len(columns) - 5)])
    return table(columns, rows)


def _method_cells(cell: MethodCell | None, best: float) -> list[str]:
    """Return our interval, the published interval, and the verdict."""
    if cell is None:
        return [NOTHING] * 3
    area, theirs = cell.pr_auc_trapezoid, cell.published
    mine = interval(area, area.mean == best)
    if theirs is None or cell.verdict is None:
        return [mine, NOTHING, NOTHING]
    verdict = f"**{cell.verdict}**" if cell.verdict == "below" else cell.verdict
    return [mine, f"{theirs.low:.1f}-{theirs.high:.1f}", verdict]


def _win_cells(methods: Sequence[str], row: TaskRow) -> list[str]:
    found = [cell for method in methods if (cell := row.cell(method)) is not None]
    ours = [cell.wins for cell in found if cell.wins is not None]
    theirs = [cell.published.wins for cell in found if cell.published]
    return [
        NOTHING if not wins or len(wins) < len(methods) else "/".join(map(count, wins))
        for wins in (ours, theirs)
    ]


def _wins(run: RunReport) -> str:
    if not run.wins:
        return ""
    columns = ["setting", "method", "wins", "%", "paper", "paper %"]
    parts = [
        "Wins on every task are scaled to 20 repetitions, as in the paper; the paper's wins are"
        " over the tasks of this run. Normalized: wins on a data set are divided by the number of"
        " its tasks, so that each data set counts for 20."
    ]
    for title, name in (("Total", "total"), ("Normalized", "normalised")):
        fields = (name, f"{name}_share", f"published_{name}", f"published_{name}_share")
        rows = [
            [TITLES[one.setting], one.method, *(number(getattr(one, field)) for field in fields)]
            for one in run.wins
        ]
        parts += [f"### {title}", table(columns, rows, 2)]
    return "\n\n".join(parts)


def _tests(run: RunReport) -> str:
    if not run.tests:
        return ""
    summary, pairs = [], []
    for test in run.tests:
        names = [TITLES[test.setting], f"{len(test.names)} {test.over}"]
        ours, theirs = test.result, test.published
        ranks = [
            "/".join(f"{rank:.2f}" for rank in one.average_ranks) if one else NOTHING
            for one in (ours, theirs)
        ]
        summary.append([
            *names, p_value(ours.friedman_p), p_value(theirs.friedman_p if theirs else None),
            *ranks, number(ours.critical_difference, 2),
        ])  # fmt: skip
        published = theirs.pairs if theirs else [None] * len(ours.pairs)
        for pair, other in zip(ours.pairs, published, strict=True):
            pairs.append([
                *names, f"{pair.first}, {pair.second}",
                p_value(pair.nemenyi), p_value(other.nemenyi if other else None),
                p_value(pair.wilcoxon), p_value(pair.holm), p_value(other.holm if other else None),
            ])  # fmt: skip
    methods = "/".join(run.tests[0].result.methods)
    columns = ["setting", "over", "Friedman p", "paper", f"average ranks, {methods}", "paper",
               "critical difference"]  # fmt: skip
    pair_columns = ["setting", "over", "pair", "Nemenyi p", "paper", "Wilcoxon p",
                    "with Holm's correction", "paper"]  # fmt: skip
    return "\n\n".join([
        "Methods are ranked by their mean area on each task (1 is best). In tests over data sets,"
        " the tasks of one data set count as one: methods are ranked by their mean rank on them."
        " The paper columns show the same tests on the midpoints of the published intervals.",
        table(columns, summary, 2),
        table(pair_columns, pairs, 3),
    ])  # fmt: skip


def margins(run: RunReport, tasks: str = "") -> str:
    """Tabulate by how many points resvm is ahead, on average over all or some of the tasks."""
    rows = []
    for one in run.margins:
        remains = None
        if one.published is not None and one.published > 0:
            remains = 100 * one.pr_auc_trapezoid / one.published
        if tasks in ("", one.tasks):
            rows.append([
                TITLES[one.setting], one.tasks, one.method, str(one.n_tasks),
                number(one.pr_auc_trapezoid, 1, True), number(one.average_precision, 1, True),
                number(one.published, 1, True), number(remains, 0), p_value(one.p_resvm_over),
            ])  # fmt: skip
    columns = ["setting", "tasks", "resvm over", "n", "trapezoids", "average precision", "paper",
               "remains, %", "p"]  # fmt: skip
    return table(columns, rows, 3) if rows else ""


def _dominance(run: RunReport) -> str:
    rows = [
        [TITLES[one.setting], one.method, str(one.n), number(100 * one.whole, 0),
         number(100 * one.levels, 1), number(one.shortfall, 1)]
        for one in run.dominance
    ]  # fmt: skip
    columns = ["setting", "resvm against", "pairs", "nowhere below, %", "levels not below, %",
               "largest shortfall, points"]  # fmt: skip
    return table(columns, rows, 2) if rows else ""


def _medians(run: RunReport) -> str:
    parts = []
    for parameter, title in PARAMETER_TITLES.items():
        own = [one for one in run.medians if one.parameter == parameter]
        rows = []
        for one in own:
            for name, values in (
                ("here", (*one.values, one.mean)),
                ("paper", (*one.published, one.published_mean)),
            ):
                shown = [NOTHING if value is None else f"{value:.3g}" for value in values]
                rows.append([TITLES[one.setting], name, *shown])
        if own:
            digits = [task.removeprefix("mnist-") for task in own[0].tasks]
            parts += [f"### {title}", table(["setting", "", *digits, "mean"], rows, 2)]
    return "\n\n".join(parts)


def _widths(run: RunReport) -> str:
    rows = []
    for one in run.widths:
        narrower = NOTHING
        if one.n_resvm_narrower is not None:
            narrower = f"{one.n_resvm_narrower} of {one.n_tasks}"
        rows.append([
            TITLES[one.setting], one.method, str(one.n_tasks), number(one.mean, 2),
            number(one.median, 2), number(one.published_mean, 2), narrower,
            p_value(one.p_resvm_narrower),
        ])  # fmt: skip
    columns = ["setting", "method", "tasks", "mean", "median", "paper, mean", "resvm narrower", "p"]
    return table(columns, rows, 2) if rows else ""


def _areas(run: RunReport) -> str:
    means, parts = [], []
    for one in run.tables:
        present = {cell.method for row in one.rows for cell in row.cells}
        names = [method for method in ALL_METHODS if method in present]
        for name in names:
            own = [cell for row in one.rows if (cell := row.cell(name)) is not None]
            averages = [
                number(sum(getattr(cell, area).mean for cell in own) / len(own), 2)
                for area in ("average_precision", "pr_auc_trapezoid", "roc_auc")
            ]
            means.append([TITLES[one.setting], name, str(len(own)), *averages])
        rows = []
        for row in one.rows:
            line = [row.task]
            for name in names:
                cell = row.cell(name)
                line += (
                    [NOTHING] * 2 if cell is None
                    else [interval(cell.average_precision), number(cell.roc_auc.mean)]
                )  # fmt: skip
            rows.append(line)
        columns = ["task", *(f"{name}, {area}" for name in names for area in ("AP", "ROC"))]
        parts += [f"### {TITLES[one.setting]}", table(columns, rows)]
    columns = ["setting", "method", "tasks", "average precision", "trapezoids", "ROC AUC"]
    return "\n\n".join(["### Means over tasks", table(columns, means, 2), *parts] if means else [])


def _own(run: RunReport) -> str:
    return "\n\n".join(_levels(own) for own in run.own)


def _levels(own: OwnTable) -> str:
    rows = []
    for row in own.rows:
        tests = {"bagging": row.p_resvm_over_bagging, "cwsvm": row.p_resvm_over_cwsvm}
        for name in (*own.methods, PUBLISHED_CWSVM):
            cell = row.cell(name)
            if cell is not None:
                rows.append([
                    own.task, name, number(100 * row.contamination_pos),
                    number(100 * row.contamination_unl), str(cell.average_precision.n),
                    interval(cell.average_precision, name == row.best),
                    interval(cell.pr_auc_trapezoid), number(cell.roc_auc.mean),
                    count(cell.wins), p_value(tests.get(name)),
                ])  # fmt: skip
    columns = ["task", "method", "P, %", "U, %", "n", "average precision", "trapezoids", "ROC AUC",
               "wins", "p, resvm greater"]  # fmt: skip
    return table(columns, rows, 2)


def _gaps(run: RunReport) -> str:
    settings: dict[str, list[str]] = {}
    for setting, task in run.gaps if run.tables else ():
        settings.setdefault(task, []).append(setting)
    rows = [
        [task, "all" if len(own) == len(SETTINGS) else ", ".join(own)]
        for task, own in settings.items()
    ]
    return table(["task", "settings"], rows, 2) if rows else ""


def _costs(run: RunReport) -> str:
    rows = [
        [TITLES[one.setting], one.method, str(one.n_cells), number(one.cpu_seconds / 60),
         number(one.cpu_seconds / one.n_cells)]
        for one in run.costs
    ]  # fmt: skip
    return (
        table(["setting", "method", "cells", "minutes", "seconds per cell"], rows, 2)
        if rows
        else ""
    )


SECTIONS: tuple[tuple[str, Callable[[RunReport], str]], ...] = (
    ("What was run", _what_was_run),
    ("Verdicts", verdicts),
    ("The paper's conclusions", conclusions),
    ("The paper's tables", _settings),
    ("Wins", _wins),
    ("Tests over tasks and data sets", _tests),
    ("What remains of resvm's margin", margins),
    ("PR dominance on mnist", _dominance),
    ("Tuned parameters on mnist", _medians),
    ("Width of the intervals", _widths),
    ("Average precision and ROC AUC", _areas),
    ("Given contamination", _own),
    ("Cells of the paper without results", _gaps),
    ("Time", _costs),
)


def comparison(compared: Comparison) -> str:
    """Tabulate two runs side by side, over the cells that both have; means are over tasks."""
    first, second = compared.names
    rows = []
    for method in ALL_METHODS:
        own = [row for row in compared.rows if row.method == method]
        rows += [_compared(TITLES[row.setting], [row]) for row in own]
        if len(own) > 1:
            rows.append(_compared("all", own))
    columns = ["setting", "method", "cells", f"AP, {first}", f"AP, {second}", "difference",
               f"trapezoids, {first}", f"trapezoids, {second}", f"min, {first}", f"min, {second}",
               "ratio", "ratio, models"]  # fmt: skip
    kept = [n for n in range(len(columns)) if n < 8 or any(row[n] != NOTHING for row in rows)]
    return table([columns[n] for n in kept], [[row[n] for n in kept] for row in rows], 2)


def _compared(setting: str, rows: Sequence[ComparedRow]) -> list[str]:
    """Return a line of the comparison; ratios are of the times, in total and without test rows."""
    n_tasks = sum(row.n_tasks for row in rows)
    ap, trapezoids = (
        [sum(getattr(row, area)[run] * row.n_tasks for row in rows) / n_tasks for run in (0, 1)]
        for area in ("average_precision", "pr_auc_trapezoid")
    )
    timed = [row.cpu_seconds for row in rows if row.cpu_seconds is not None]
    minutes = [number(sum(pair[run] for pair in timed) / 60 if timed else None) for run in (0, 1)]
    return [
        setting, rows[0].method, str(sum(row.n_cells for row in rows)),
        number(ap[0], 2), number(ap[1], 2), number(ap[1] - ap[0], 2, True),
        number(trapezoids[0], 2), number(trapezoids[1], 2), *minutes,
        number(cost_ratio(timed), 3), number(cost_ratio([row.cpu_seconds_model for row in rows]), 3),
    ]  # fmt: skip


def csv(report: Report) -> Iterator[bytes]:
    """Yield CSV with one line per setting, task, contamination and method."""
    line = line_writer(",")
    yield line(CSV_COLUMNS).encode()
    for run in report.runs:
        for record in _csv_records(run):
            yield line("" if value is None else value for value in record).encode()


def _csv_records(run: RunReport) -> Iterator[list[Any]]:
    rows: list[tuple[str, str, TaskRow | LevelRow]] = [
        *((table.setting, row.task, row) for table in run.tables for row in table.rows),
        *((OWN, own.task, row) for own in run.own for row in own.rows),
    ]
    for setting, task, row in rows:
        levels = [getattr(row, name, None) for name in AXES]
        tests = [getattr(row, name, None) for name in CSV_COLUMNS[-3:]]
        for cell in row.cells:
            theirs = cell.published
            published = (theirs.low, theirs.high, theirs.wins) if theirs else (None,) * 3
            key = run.name, run.protocol, setting, task, cell.method
            yield [*key, *levels, *_cell_values(cell), *published, cell.verdict, *tests]


def _cell_values(cell: MethodCell) -> list[Any]:
    values: list[Any] = [cell.pr_auc_trapezoid.n]
    for area in AREAS:
        estimate = getattr(cell, area)
        values += [estimate.mean, estimate.low, estimate.high]
    return [*values, cell.wins]
