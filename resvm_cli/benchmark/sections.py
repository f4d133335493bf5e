"""The sections of a benchmark report in reading order, and the paper's tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from resvm_cli import __version__
from resvm_cli.benchmark import findings
from resvm_cli.benchmark.data import COMPARED, METHODS, PUBLISHED_CWSVM
from resvm_cli.benchmark.rendering import (
    NOTHING,
    TITLES,
    Chart,
    ReportTable,
    Section,
    TableCell,
    cells,
    count,
    interval,
    number,
    p_value,
)
from resvm_cli.benchmark.report import BenchmarkReport, RunReport
from resvm_cli.benchmark.tables import MIN_REPETITIONS, MethodCell, SettingTable, TaskRow

TOO_FEW = "too few"
VERDICTS = ("above", "within", "below", TOO_FEW)


def sections(report: BenchmarkReport) -> list[Section]:
    found = []
    if report.comparison is not None:
        found.append(findings.comparison(report.comparison))
    for run in report.runs:
        start = f"{run.name}: " if len(report.runs) > 1 else ""
        found += [replace(one, title=start + one.title) for one in _run_sections(run)]
    return found


def _run_sections(run: RunReport) -> list[Section]:
    settings = [_setting(table, table is run.tables[0]) for table in run.tables]
    return [
        _what_was_run(run),
        *([_verdicts(run)] if run.tables else []),
        *([findings.conclusions(run)] if run.conclusions else []),
        *settings,
        *([_wins(run)] if run.wins else []),
        *([findings.tests(run)] if run.tests else []),
        *([findings.margins(run)] if run.margins else []),
        *([findings.dominance(run)] if run.dominance else []),
        *([findings.medians(run)] if run.medians else []),
        *([findings.widths(run)] if run.widths else []),
        *([_areas(run)] if run.tables else []),
        *(findings.own_data(own) for own in run.own),
        _gaps(run),
        *([_costs(run)] if run.costs else []),
    ]


def _what_was_run(run: RunReport) -> Section:
    lines = [f"Protocol {run.protocol}: {run.n_results:,} results, one per cell and method."]
    plan = run.plan
    tables: tuple[ReportTable, ...] = ()
    if plan is None:
        lines.append("There is no run.json, so it is unknown what was planned and what is missing.")
    else:
        lines += [f"Command: {command}" for command in plan.command.split("\n") if command]
        if plan.seed is not None:
            lines.append(f"Seed: {plan.seed}")
        if plan.versions:
            listed = ", ".join(f"{name} {value}" for name, value in plan.versions.items())
            lines.append(f"Versions: {listed}")
        if plan.data:
            rows = tuple(
                cells(
                    task, str(data.get("file") or "drawn, no file"),
                    ", ".join(one[:12] for one in str(data.get("digest", "")).split(", ")),
                )
                for task, data in plan.data.items()
            )  # fmt: skip
            tables = (ReportTable("Data", ("task", "file", "digest"), rows, 3),)
    if run.costs:
        hours = sum(cost.cpu_seconds for cost in run.costs) / 3600
        lines.append(f"Time: {hours:.2f} hours over all cells, including tuning.")
    lines.append(f"Reported by resvm {__version__}.")
    return Section("What was run", tuple(lines), tables)


def _verdicts(run: RunReport) -> Section:
    rows, sentences = [], []
    present = {cell.verdict for table in run.tables for row in table.rows for cell in row.cells}
    shown = VERDICTS if TOO_FEW in present else VERDICTS[:-1]
    for method in METHODS:
        found = [
            (cell.verdict, f"{row.task} ({table.setting})")
            for table in run.tables
            for row in table.rows
            if (cell := row.cell(method)) is not None and cell.verdict is not None
        ]
        if not found:
            continue
        names = {verdict: [name for one, name in found if one == verdict] for verdict in VERDICTS}
        counts = [len(names[verdict]) for verdict in shown]
        rows.append(cells(method, *counts, len(found), ", ".join(names["below"]) or "none"))
        n_judged = sum(counts[:3])
        if method == "resvm" and n_judged:
            sentences.append(
                f"resvm: {sum(counts[:2])} of {n_judged} cells are above or within the published"
                " interval."
            )
    sentences.append(
        "above: the mean is above the published 95 % interval; within: at least its lower bound"
        " minus one point; below: less than that. cwsvm-published (LIBLINEAR without a bias) is"
        " compared with the paper's cwsvm."
    )
    if TOO_FEW in present:
        sentences.append(f"{TOO_FEW}: a verdict requires at least {MIN_REPETITIONS} repetitions.")
    columns = ("method", *shown, "cells", "which are below")
    return Section("Verdicts", tuple(sentences), (ReportTable("", columns, tuple(rows)),))


def _setting(table: SettingTable, first: bool) -> Section:
    """Report the paper's table for one setting; the first one includes an explanation."""
    columns = ["task", "n"]
    for method in table.methods:
        columns += [method, "paper", "verdict"]
    columns += ["p", "stars", "paper", "wins", "paper"]
    rows = []
    for row in table.rows:
        means = [one.pr_auc_trapezoid.mean for one in row.cells if one.method in COMPARED]
        best = max(means, default=0.0)
        line = [*cells(row.task, row.n_compared)]
        for method in table.methods:
            line += _method_cells(row.cell(method), best)
        line += [p_value(row.p_resvm_over_bagging), _stars(row.stars), _stars(row.published_stars)]
        rows.append((*line, *_win_cells(table.methods, row)))
        extra = row.cell(PUBLISHED_CWSVM)
        if extra is not None and "cwsvm" in table.methods:
            start = cells(f"{row.task}, {PUBLISHED_CWSVM}", extra.pr_auc_trapezoid.n)
            own = _method_cells(extra, math.inf)
            rows.append((*start, *own, *[TableCell("")] * (len(columns) - 5)))
    sentences = []
    if first:
        sentences.append(
            "Area under the PR curve by trapezoids, in percent: mean and 95 % Student-t interval"
            " over n repetitions, next to the published interval. p and stars: one-sided paired"
            " Wilcoxon test of whether resvm is better than bagging (• p < 0.05, •• p < 0.01,"
            f" ••• p < 0.001). Wins ({'/'.join(table.methods)}): repetitions in which a method was"
            " best; ties for first place are split evenly. The paper has 20 repetitions."
        )
    if table.setting == "semi-supervised" and any(row.task == "covtype" for row in table.rows):
        sentences.append(
            "covtype with 100 repetitions, published: cwsvm 59.0-60.5 (8 wins), bagging 62.3-63.5"
            " (21 wins), resvm 63.8-65.8 (71 wins), p 2e-05."
        )
    title = TITLES[table.setting]
    chart = Chart("intervals", f"{title}: means and intervals", _intervals(table))
    return Section(
        title, tuple(sentences), (ReportTable("", tuple(columns), tuple(rows)),), (chart,)
    )


def _stars(number_of: int | None) -> TableCell:
    return TableCell("-" if number_of is None else "•" * number_of, number_of or 0)


def _method_cells(cell: MethodCell | None, best: float) -> list[TableCell]:
    """Return cells for our interval, the published interval, and the verdict."""
    if cell is None:
        return [NOTHING] * 3
    area, theirs = cell.pr_auc_trapezoid, cell.published
    mine = interval(area, "best" if area.mean == best else "")
    if theirs is None or cell.verdict is None:
        return [mine, NOTHING, NOTHING]
    order = float(VERDICTS[::-1].index(cell.verdict))
    mark = "" if cell.verdict == TOO_FEW else cell.verdict
    published = TableCell(f"{theirs.low:.1f}-{theirs.high:.1f}", theirs.middle)
    return [mine, published, TableCell(cell.verdict, order, mark)]


def _win_cells(methods: Sequence[str], row: TaskRow) -> list[TableCell]:
    found = [cell for method in methods if (cell := row.cell(method)) is not None]
    ours = [cell.wins for cell in found if cell.wins is not None]
    theirs = [cell.published.wins for cell in found if cell.published]
    line = []
    for wins in (ours, theirs):
        if not wins or len(wins) < len(methods):
            line.append(NOTHING)
        else:
            line.append(TableCell("/".join(count(won).text for won in wins), wins[-1]))
    return line


def _intervals(table: SettingTable) -> dict[str, Any]:
    tasks = [
        {
            "task": row.task,
            "cells": [
                {
                    "method": cell.method,
                    "mean": cell.pr_auc_trapezoid.mean,
                    "low": cell.pr_auc_trapezoid.low,
                    "high": cell.pr_auc_trapezoid.high,
                    "published": cell.published and [cell.published.low, cell.published.high],
                }
                for cell in row.cells
            ],
        }
        for row in table.rows
    ]
    return {"methods": _present(table), "tasks": tasks}


def _present(table: SettingTable) -> list[str]:
    """Return the methods that have results in a table."""
    present = {cell.method for row in table.rows for cell in row.cells}
    return [method for method in (*COMPARED, PUBLISHED_CWSVM) if method in present]


def _wins(run: RunReport) -> Section:
    columns = ("setting", "method", "wins", "%", "paper", "paper %")
    tables = []
    for title, name in (("Total", "total"), ("Normalized", "normalised")):
        fields = (name, f"{name}_share", f"published_{name}", f"published_{name}_share")
        rows = tuple(
            cells(TITLES[one.setting], one.method, *(number(getattr(one, f)) for f in fields))
            for one in run.wins
        )
        tables.append(ReportTable(title, columns, rows, 2))
    sentence = (
        "Wins on every task are scaled to 20 repetitions, as in the paper; the paper's wins are"
        " over the tasks of this run. Normalized: wins on a data set are divided by the number of"
        " its tasks, so that each data set counts for 20."
    )
    return Section("Wins", (sentence,), tuple(tables))


def _areas(run: RunReport) -> Section:
    means, tables = [], []
    for table in run.tables:
        names = _present(table)
        for name in names:
            own = [cell for row in table.rows if (cell := row.cell(name)) is not None]
            sums = [
                sum(getattr(cell, area).mean for cell in own)
                for area in ("average_precision", "pr_auc_trapezoid", "roc_auc")
            ]
            averages = [number(total / len(own), 2) for total in sums]
            means.append(cells(TITLES[table.setting], name, len(own), *averages))
        rows = []
        for row in table.rows:
            line = [TableCell(row.task)]
            for name in names:
                cell = row.cell(name)
                line += (
                    [NOTHING] * 2 if cell is None
                    else [interval(cell.average_precision), number(cell.roc_auc.mean)]
                )  # fmt: skip
            rows.append(tuple(line))
        columns = ["task", *(f"{name}, {area}" for name in names for area in ("AP", "ROC"))]
        title = f"{TITLES[table.setting]}: average precision (AP) and ROC AUC"
        tables.append(ReportTable(title, tuple(columns), tuple(rows)))
    columns = ["setting", "method", "tasks", "average precision", "trapezoids", "ROC AUC"]
    tables.insert(0, ReportTable("Means over tasks", tuple(columns), tuple(means), 2))
    sentence = (
        "Trapezoids join the points of a PR curve with straight lines, which is optimistic for tied"
        " scores such as votes. Average precision is not."
    )
    return Section("Average precision and ROC AUC", (sentence,), tuple(tables))


def _gaps(run: RunReport) -> Section:
    title = "Cells left out or missing"
    if not run.gaps:
        return Section(
            title, ("No planned cell is missing." if run.plan else "Unknown without run.json.",)
        )
    rows = tuple(
        cells(
            TITLES.get(gap.setting, gap.setting), gap.task, gap.method, gap.n_done, gap.n_planned,
            gap.reason,
        )
        for gap in run.gaps
    )  # fmt: skip
    columns = ("setting", "task", "method", "done", "planned", "reason")
    return Section(title, (), (ReportTable("", columns, rows, 3),))


def _costs(run: RunReport) -> Section:
    rows = tuple(
        cells(
            TITLES[one.setting], one.method, one.n_cells, number(one.cpu_seconds / 60),
            number(one.cpu_seconds / one.n_cells),
        )
        for one in run.costs
    )  # fmt: skip
    columns = ("setting", "method", "cells", "minutes", "seconds per cell")
    return Section("Time", (), (ReportTable("", columns, rows, 2),))
