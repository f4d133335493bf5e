"""The paper's tables: what was run, verdicts, each setting, wins and areas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from resvm_cli.benchmark.report_cells import (
    NOTHING,
    TITLES,
    Cell,
    Figure,
    Section,
    Table,
    count,
    interval,
    number,
    p_value,
)
from resvm_cli.benchmark.results import LIBLINEAR, METHODS

if TYPE_CHECKING:
    from resvm_cli.benchmark.report import RunReport
    from resvm_cli.benchmark.tables import MethodCell, SettingTable, TaskRow


def what_was_run(run: RunReport) -> Section:
    """The command, versions, data and hours behind the figures."""
    from resvm_cli import __version__

    lines = [f"Protocol {run.protocol}: {run.n_results:,} results, one a cell and method."]
    plan = run.plan
    if plan is None:
        lines.append("There is no run.json: what was planned, and what is missing, is not known.")
    else:
        if plan.command:
            lines += [f"Command: {command}" for command in plan.command.split("\n")]
        if plan.seed is not None:
            lines.append(f"Seed: {plan.seed}")
        if plan.versions:
            told = ", ".join(f"{name} {value}" for name, value in plan.versions.items())
            lines.append(f"Versions: {told}")
    hours = sum(cost.cpu_seconds for cost in run.costs) / 3600
    if run.costs:
        lines.append(f"Time: {hours:.2f} hours over all cells, tuning included.")
    lines.append(f"Reported by resvm {__version__}.")
    tables: tuple[Table, ...] = ()
    if plan is not None and plan.data:
        rows = tuple(
            (
                Cell(task),
                Cell(str(data.get("file") or "drawn, no file")),
                Cell(", ".join(one[:12] for one in str(data.get("digest", "")).split(", "))),
            )
            for task, data in plan.data.items()
        )
        tables = (Table("Data", ("task", "file", "digest"), rows, 3),)
    return Section("What was run", tuple(lines), tables)


def verdicts(run: RunReport) -> Section:
    """How many cells are above, within and below what was published."""
    rows = []
    told = []
    for method in (*reversed(METHODS), LIBLINEAR):
        cells = [
            (table.setting, row.task, cell)
            for table in run.tables
            for row in table.rows
            if (cell := row.cell(method)) is not None and cell.verdict is not None
        ]
        if not cells:
            continue
        counts = {
            verdict: [one for one in cells if one[2].verdict == verdict]
            for verdict in ("above", "within", "below")
        }
        below = ", ".join(f"{task} ({setting})" for setting, task, _ in counts["below"])
        good = len(cells) - len(counts["below"])
        rows.append(
            (
                Cell(method),
                *(Cell(str(len(counts[name])), len(counts[name])) for name in counts),
                Cell(str(len(cells)), len(cells)),
                Cell(below or "none"),
            )
        )
        if method == "resvm":
            told.append(
                f"resvm: {good} of {len(cells)} cells above or within the published interval."
            )
    told.append(
        "above: the mean is above the published 95 % interval; within: at least its lower bound"
        " less one point; below: less than that. cwsvm-published (LIBLINEAR without a bias) is"
        " judged by the paper's cwsvm."
    )
    table = Table(
        "", ("method", "above", "within", "below", "cells", "which are below"), tuple(rows)
    )
    return Section("Verdicts", tuple(told), (table,))


def _stars(count: int | None) -> Cell:
    return Cell(NOTHING if count is None else "•" * count, count or 0)


def setting(table: SettingTable, first: bool) -> Section:
    """The paper's table of one setting; the first one is explained."""
    columns = ["task", "n"]
    for method in table.methods:
        columns += [method, "paper", "verdict"]
    columns += ["p", "stars", "paper", "wins", "paper"]
    rows: list[tuple[Cell, ...]] = []
    for row in table.rows:
        best = max(
            (cell.pr_auc_trapezoid.mean for cell in row.cells if cell.method in METHODS),
            default=0.0,
        )
        line = [Cell(row.task), Cell(str(row.n_compared), row.n_compared)]
        for method in table.methods:
            line += _cells(row.cell(method), best)
        line += [p_value(row.p_resvm_over_bagging), _stars(row.stars), _stars(row.published_stars)]
        line += _win_cells(table.methods, row)
        rows.append(tuple(line))
        extra = row.cell(LIBLINEAR)
        if extra is not None:
            rest = [Cell("")] * 3 * (len(table.methods) - 1)
            if table.methods and table.methods[0] == "cwsvm":
                n = extra.pr_auc_trapezoid.n
                rows.append(
                    (
                        Cell(f"{row.task}, {LIBLINEAR}"), Cell(str(n), n),
                        *_cells(extra, math.inf), *rest, *[Cell("")] * 5,
                    )
                )  # fmt: skip
    told = []
    if first:
        told = [
            "Area under the PR curve by trapezoids, in percent: mean and 95 % Student-t interval"
            " over n repetitions, beside the published interval. p and stars: one-sided paired"
            " Wilcoxon test that resvm is greater than bagging (• p < 0.05, •• p < 0.01,"
            f" ••• p < 0.001). Wins ({'/'.join(table.methods)}): repetitions in which a method was"
            " best; a shared first place is divided evenly among those who share it. The paper has"
            " 20 repetitions.",
        ]
    covtype = next((row for row in table.rows if row.task == "covtype"), None)
    if table.setting == "semi-supervised" and covtype is not None:
        told.append(
            "covtype with 100 repetitions, published: cwsvm 59.0-60.5 (8 wins), bagging 62.3-63.5"
            " (21 wins), resvm 63.8-65.8 (71 wins), p 2e-05."
        )
    return Section(
        TITLES[table.setting],
        tuple(told),
        (Table("", tuple(columns), tuple(rows)),),
        (Figure("intervals", f"{TITLES[table.setting]}: means and intervals", _intervals(table)),),
    )


def _cells(cell: MethodCell | None, best: float) -> list[Cell]:
    if cell is None:
        return [Cell(NOTHING)] * 3
    area = cell.pr_auc_trapezoid
    mine = interval(area, "best" if area.mean == best else "")
    if cell.published is None or cell.verdict is None:
        return [mine, Cell(NOTHING), Cell(NOTHING)]
    beside = cell.published
    order = {"below": 0.0, "within": 1.0, "above": 2.0}
    return [
        mine,
        Cell(f"{beside.low:.1f}-{beside.high:.1f}", beside.middle),
        Cell(cell.verdict, order[cell.verdict], cell.verdict),
    ]


def _win_cells(methods: Sequence[str], row: TaskRow) -> list[Cell]:
    cells = [row.cell(method) for method in methods]
    ours = [cell.wins for cell in cells if cell is not None]
    theirs = [cell.published.wins for cell in cells if cell is not None and cell.published]
    whole = len(cells) == len(ours) and None not in ours
    return [
        Cell("/".join(count(won).text for won in ours), ours[-1]) if whole else Cell(NOTHING),
        Cell("/".join(map(str, theirs)), theirs[-1])
        if len(theirs) == len(cells)
        else Cell(NOTHING),
    ]


def _intervals(table: SettingTable) -> dict[str, Any]:
    return {
        "methods": [
            method
            for method in (*METHODS, LIBLINEAR)
            if any(row.cell(method) is not None for row in table.rows)
        ],
        "tasks": [
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
        ],
    }


def wins(run: RunReport) -> Section:
    """Total and normalised wins, as the paper counts them."""

    def rows(normalised: bool) -> tuple[tuple[Cell, ...], ...]:
        name = "normalised" if normalised else "total"
        return tuple(
            (
                Cell(TITLES[one.setting]), Cell(one.method),
                number(getattr(one, name)), number(getattr(one, f"{name}_share")),
                number(getattr(one, f"published_{name}")),
                number(getattr(one, f"published_{name}_share")),
            )
            for one in run.wins
        )  # fmt: skip

    columns = ("setting", "method", "wins", "%", "paper", "paper %")
    told = (
        "Wins of every task are scaled to 20 repetitions, as the paper has; the paper's are over"
        " the tasks of this run alone. Normalised: wins on the tasks of one data set are divided by"
        " how many there are, so that each data set counts for 20.",
    )
    return Section(
        "Wins",
        told,
        (Table("Total", columns, rows(False), 2), Table("Normalised", columns, rows(True), 2)),
    )


def areas(run: RunReport) -> Section:
    """Means over tasks, then every task."""
    rows = []
    for table in run.tables:
        for method in (*table.methods, LIBLINEAR):
            cells = [cell for row in table.rows if (cell := row.cell(method)) is not None]
            if cells:
                means = [
                    sum(getattr(cell, area).mean for cell in cells) / len(cells)
                    for area in ("average_precision", "pr_auc_trapezoid", "roc_auc")
                ]
                rows.append(
                    (
                        Cell(TITLES[table.setting]), Cell(method),
                        Cell(str(len(cells)), len(cells)),
                        *(number(mean, 2) for mean in means),
                    )
                )  # fmt: skip
    tables = [
        Table(
            "Means over tasks",
            ("setting", "method", "tasks", "average precision", "trapezoids", "ROC area"),
            tuple(rows), 2,
        )
    ]  # fmt: skip
    for table in run.tables:
        names = [
            name
            for name in (*table.methods, LIBLINEAR)
            if any(row.cell(name) is not None for row in table.rows)
        ]
        columns = ["task"]
        for name in names:
            columns += [f"{name}, AP", f"{name}, ROC"]
        lines = []
        for row in table.rows:
            line = [Cell(row.task)]
            for name in names:
                cell = row.cell(name)
                line += (
                    [Cell(NOTHING)] * 2 if cell is None
                    else [interval(cell.average_precision), number(cell.roc_auc.mean)]
                )  # fmt: skip
            lines.append(tuple(line))
        title = f"{TITLES[table.setting]}: average precision (AP) and ROC area"
        tables.append(Table(title, tuple(columns), tuple(lines)))
    told = (
        "Trapezoids join the points of a PR curve by straight lines, which flatters tied scores, as"
        " votes are; average precision does not.",
    )
    return Section("Average precision and ROC area", told, tuple(tables))
