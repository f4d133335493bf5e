"""A benchmark's report as titles, sentences, tables and figures, for every format that shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from resvm_cli.files.benchmark_results import LIBLINEAR, METHODS

if TYPE_CHECKING:
    from resvm_cli.evaluation.significance import OverDataSets
    from resvm_cli.jobs.benchmark_own import OwnData
    from resvm_cli.jobs.benchmark_report import BenchmarkReport, Comparison, RunReport
    from resvm_cli.jobs.benchmark_tables import Estimate, MethodCell, SettingTable, TaskRow
    from resvm_cli.jobs.benchmark_verdicts import OverallTest

TITLES = {
    "supervised": "Supervised",
    "pu": "PU learning",
    "semi-supervised": "Semi-supervised",
    "own": "Own data",
}
PARAMETER_TITLES = {"n_pos": "n_pos", "unl_per_pos": "n_unl / n_pos", "w_pos": "w_pos"}
AXES = {
    "contamination_pos": "contamination of P",
    "contamination_unl": "contamination of U",
}
NOTHING = "-"


@dataclass(frozen=True)
class Cell:
    """Text of a table, what it is sorted by, and whether it is worth a look."""

    text: str
    value: float | None = None
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under column names; the first so many columns are names."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    n_names: int = 1


@dataclass(frozen=True)
class Figure:
    """What a page draws; elsewhere the tables say the same."""

    kind: str
    title: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Section:
    """A chapter of the report."""

    title: str
    sentences: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = field(default=())


def sections(report: BenchmarkReport) -> list[Section]:
    """Everything the report says, in the order a reader wants it."""
    found = []
    if report.comparison is not None:
        found.append(_comparison(report.comparison))
    for run in report.runs:
        start = f"{run.name}: " if len(report.runs) > 1 else ""
        for section in _run(run):
            found.append(
                Section(start + section.title, section.sentences, section.tables, section.figures)
            )
    return found


def _run(run: RunReport) -> list[Section]:
    parts = [_what_was_run(run)]
    if run.tables:
        parts.append(_summary(run))
    if run.conclusions:
        parts.append(_conclusions(run))
    parts += [_setting(table) for table in run.tables]
    if run.wins:
        parts.append(_wins(run))
    parts += _tests(run)
    if run.margins:
        parts.append(_margins(run))
    if run.dominance:
        parts.append(_dominance(run))
    if run.medians:
        parts.append(_medians(run))
    if run.widths:
        parts.append(_widths(run))
    if run.tables:
        parts.append(_areas(run))
    parts += [_own(own) for own in run.own]
    parts.append(_gaps(run))
    if run.costs:
        parts.append(_costs(run))
    return parts


def _number(value: float | None, digits: int = 1, sign: bool = False) -> Cell:
    if value is None or math.isnan(value):
        return Cell(NOTHING)
    text = f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
    return Cell(text, value)


def _whole(value: float | None) -> Cell:
    """A count; halves and thirds of shared first places are shown where there are any."""
    if value is None:
        return Cell(NOTHING)
    return Cell(f"{value:.0f}" if abs(value - round(value)) < 1e-9 else f"{value:.1f}", value)


def _p(value: float | None) -> Cell:
    if value is None or math.isnan(value):
        return Cell(NOTHING)
    return Cell(f"{value:.2g}", value, "best" if value < 0.05 else "")


def _interval(value: Estimate, mark: str = "") -> Cell:
    if value.low is None or value.high is None:
        return Cell(f"{value.mean:.1f}", value.mean, mark)
    return Cell(f"{value.mean:.1f} ({value.low:.1f}-{value.high:.1f})", value.mean, mark)


def _what_was_run(run: RunReport) -> Section:
    from resvm_cli import __version__

    lines = [f"Protocol {run.protocol}: {run.n_results:,} results, one a cell and method."]
    plan = run.plan
    if plan is None:
        lines.append("There is no run.json: what was planned, and what is missing, is not known.")
    else:
        if plan.command:
            lines.append(f"Command: {plan.command}")
        if plan.seed is not None:
            lines.append(f"Seed: {plan.seed}")
        if plan.versions:
            told = ", ".join(f"{name} {value}" for name, value in plan.versions.items())
            lines.append(f"Versions: {told}")
    hours = sum(cost.cpu_seconds for cost in run.costs) / 3600
    if run.costs:
        lines.append(f"Processor time: {hours:.2f} hours, tuning included.")
    lines.append(f"Reported by resvm {__version__}.")
    tables: tuple[Table, ...] = ()
    if plan is not None and plan.data:
        rows = tuple(
            (
                Cell(task),
                Cell(str(data.get("file", NOTHING))),
                Cell(str(data.get("digest", ""))[:16]),
            )
            for task, data in plan.data.items()
        )
        tables = (Table("Data", ("task", "file", "digest"), rows, 3),)
    return Section("What was run", tuple(lines), tables)


def _summary(run: RunReport) -> Section:
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


def _conclusions(run: RunReport) -> Section:
    marks = {"confirmed": "above", "weaker": "within", "not confirmed": "below"}
    rows = tuple(
        (Cell(one.claim), Cell(one.finding, None, marks[one.finding]), Cell(one.evidence))
        for one in run.conclusions
    )
    table = Table("", ("the paper's conclusion", "here", "by what"), rows, 3)
    told = (
        "confirmed: the test says what the paper says; weaker: it leans that way, without all that"
        " was claimed; not confirmed: it does not. Tests are over the tasks of this run.",
    )
    return Section("The paper's conclusions", told, (table,))


def _stars(count: int | None) -> Cell:
    return Cell(NOTHING if count is None else "•" * count, count or 0)


def _setting(table: SettingTable) -> Section:
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
        line += [_p(row.p_resvm_over_bagging), _stars(row.stars), _stars(row.published_stars)]
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
    order = ", ".join(table.methods)
    told = (
        "Area under the PR curve by trapezoids, in percent: mean and 95 % Student-t interval over"
        " n repetitions, beside the published interval. p and stars: one-sided paired Wilcoxon test"
        " that resvm is greater than bagging (• p < 0.05, •• p < 0.01, ••• p < 0.001). Wins"
        f" ({order}): repetitions in which a method was best; a shared first place is divided"
        " evenly among those who share it.",
    )
    return Section(
        TITLES[table.setting],
        told,
        (Table("", tuple(columns), tuple(rows)),),
        (Figure("intervals", f"{TITLES[table.setting]}: means and intervals", _intervals(table)),),
    )


def _cells(cell: MethodCell | None, best: float) -> list[Cell]:
    if cell is None:
        return [Cell(NOTHING)] * 3
    area = cell.pr_auc_trapezoid
    mine = _interval(area, "best" if area.mean == best else "")
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
        Cell("/".join(_whole(won).text for won in ours), ours[-1]) if whole else Cell(NOTHING),
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


def _wins(run: RunReport) -> Section:
    def rows(normalised: bool) -> tuple[tuple[Cell, ...], ...]:
        name = "normalised" if normalised else "total"
        return tuple(
            (
                Cell(TITLES[one.setting]), Cell(one.method),
                _number(getattr(one, name)), _number(getattr(one, f"{name}_share")),
                _number(getattr(one, f"published_{name}")),
                _number(getattr(one, f"published_{name}_share")),
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


def _tests(run: RunReport) -> list[Section]:
    if not run.tests:
        return []
    tables = []
    figures = []
    told = [
        "Methods are ranked by their mean area on each task (1 is best). Over data sets the tasks"
        " of one data set count together: methods are ranked by the mean of their ranks on its"
        " tasks. The paper's figures are those of the middles of its intervals, on the same tasks.",
    ]
    for test in run.tests:
        title = f"{TITLES[test.setting]}, over {len(test.names)} {test.over}"
        tables += _test_tables(title, test)
        figures.append(Figure("ranks", title, _ranks(test.result)))
        if test.left_out:
            told.append(
                f"{title}: left out, without a complete repetition: {', '.join(test.left_out)}."
            )
    return [Section("Tests over tasks and data sets", tuple(told), tuple(tables), tuple(figures))]


def _test_tables(title: str, test: OverallTest) -> list[Table]:
    result, beside = test.result, test.published
    rows: list[tuple[Cell, ...]] = []
    rows.append(
        (Cell("Friedman p"), _p(result.friedman_p), _p(beside.friedman_p if beside else None))
    )
    for number, method in enumerate(result.methods):
        theirs = None if beside is None else beside.average_ranks[number]
        rows.append(
            (
                Cell(f"average rank, {method}"),
                _number(result.average_ranks[number], 2), _number(theirs, 2),
            )
        )  # fmt: skip
    rows.append(
        (
            Cell("critical difference (Nemenyi, 5 %)"),
            _number(result.critical_difference, 2),
            _number(beside.critical_difference if beside else None, 2),
        )
    )
    ours = Table(title, ("", "here", "paper"), tuple(rows))
    pairs = []
    for number, pair in enumerate(result.pairs):
        other = None if beside is None else beside.pairs[number]
        pairs.append(
            (
                Cell(f"{pair.first}, {pair.second}"),
                _p(pair.nemenyi), _p(pair.wilcoxon), _p(pair.holm),
                _p(other.nemenyi if other else None), _p(other.holm if other else None),
            )
        )  # fmt: skip
    columns = ("pair", "Nemenyi p", "Wilcoxon p", "Holm", "paper, Nemenyi p", "paper, Holm")
    return [ours, Table(f"{title}: pairs", columns, tuple(pairs))]


def _ranks(result: OverDataSets) -> dict[str, Any]:
    return {
        "methods": list(result.methods),
        "ranks": list(result.average_ranks),
        "difference": result.critical_difference,
        "cliques": [list(group) for group in result.cliques],
    }


def _margins(run: RunReport) -> Section:
    rows = []
    for one in run.margins:
        remains = None
        if one.published is not None and one.published > 0:
            remains = 100 * one.pr_auc_trapezoid / one.published
        rows.append(
            (
                Cell(TITLES[one.setting]), Cell(one.tasks), Cell(one.method),
                Cell(str(one.n_tasks), one.n_tasks),
                _number(one.pr_auc_trapezoid, 1, True), _number(one.average_precision, 1, True),
                _number(one.published, 1, True), _number(remains, 0), _p(one.p_resvm_over),
            )
        )  # fmt: skip
    told = [
        "Points by which resvm is ahead, in the mean over tasks; the published margin of"
        " cwsvm-published is that over the paper's cwsvm. What remains: this margin as a share of"
        " the published one. p: one-sided Wilcoxon test over tasks.",
    ]
    for one in run.margins:
        if one.method == "cwsvm" and one.tasks == "mnist":
            sentence = (
                f"{TITLES[one.setting]}: over cwsvm solved exactly resvm is"
                f" {one.pr_auc_trapezoid:+.1f} points ahead on mnist"
            )
            if one.published is not None:
                sentence += f", of {one.published:+.1f} published"
            told.append(f"{sentence}; by average precision {one.average_precision:+.1f}.")
    columns = (
        "setting", "tasks", "over", "n", "trapezoids", "average precision", "paper",
        "remains, %", "p",
    )  # fmt: skip
    return Section(
        "What remains of resvm's margin", tuple(told), (Table("", columns, tuple(rows), 3),)
    )


def _dominance(run: RunReport) -> Section:
    rows = tuple(
        (
            Cell(TITLES[one.setting]), Cell(one.method), Cell(str(one.n), one.n),
            _number(100 * one.whole, 0), _number(100 * one.levels, 1), _number(one.shortfall, 1),
        )
        for one in run.dominance
    )  # fmt: skip
    told = (
        "resvm's precision against another method's at recall 0.01, 0.02 to 1, pair by pair of"
        " repetitions, over all digits: how often it is nowhere below, at how many levels of recall"
        " it is not below, and the largest shortfall in the mean.",
    )
    columns = (
        "setting", "resvm against", "pairs", "nowhere below, %", "levels not below, %",
        "largest shortfall, points",
    )  # fmt: skip
    figures = []
    for setting in dict.fromkeys(curve.setting for curve in run.curves):
        own = [curve for curve in run.curves if curve.setting == setting]
        data = {
            "methods": [curve.method for curve in own],
            "precision": [list(curve.precision) for curve in own],
        }
        figures.append(Figure("curves", f"{TITLES[setting]}: mean precision on mnist", data))
    return Section("PR dominance on mnist", told, (Table("", columns, rows, 2),), tuple(figures))


def _medians(run: RunReport) -> Section:
    tables = []
    for parameter, title in PARAMETER_TITLES.items():
        of_parameter = [one for one in run.medians if one.parameter == parameter]
        if not of_parameter:
            continue
        columns = (
            "setting",
            "",
            *(t.removeprefix("mnist-") for t in of_parameter[0].tasks),
            "mean",
        )
        rows: list[tuple[Cell, ...]] = []
        for one in of_parameter:
            for name, values, mean in (
                ("here", one.values, one.mean),
                ("paper", one.published, one.published_mean),
            ):
                cells = [
                    Cell(NOTHING) if v is None else Cell(f"{v:.3g}", v) for v in (*values, mean)
                ]
                rows.append((Cell(TITLES[one.setting]), Cell(name), *cells))
        tables.append(Table(title, columns, tuple(rows), 2))
    told = ("Medians over repetitions of what tuning chose for resvm, by digit.",)
    return Section("Tuned parameters on mnist", told, tuple(tables))


def _widths(run: RunReport) -> Section:
    rows = tuple(
        (
            Cell(TITLES[one.setting]), Cell(one.method), Cell(str(one.n_tasks), one.n_tasks),
            _number(one.mean, 2), _number(one.median, 2), _number(one.published_mean, 2),
            Cell(NOTHING) if one.n_resvm_narrower is None
            else Cell(f"{one.n_resvm_narrower} of {one.n_tasks}", one.n_resvm_narrower),
            _p(one.p_resvm_narrower),
        )
        for one in run.widths
    )  # fmt: skip
    told = (
        "Widths of the 95 % intervals in points, over tasks; on how many of them resvm's is"
        " narrower, with a one-sided Wilcoxon test over tasks. Fewer repetitions make wider"
        " intervals: only the methods compare, not this run with the paper.",
    )
    columns = ("setting", "method", "tasks", "mean", "median", "paper, mean", "resvm narrower", "p")
    return Section("Width of the intervals", told, (Table("", columns, rows, 2),))


def _areas(run: RunReport) -> Section:
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
                        *(_number(mean, 2) for mean in means),
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
                    else [_interval(cell.average_precision), _number(cell.roc_auc.mean)]
                )  # fmt: skip
            lines.append(tuple(line))
        title = f"{TITLES[table.setting]}: average precision (AP) and ROC area"
        tables.append(Table(title, tuple(columns), tuple(lines)))
    told = (
        "Trapezoids join the points of a PR curve by straight lines, which flatters tied scores, as"
        " votes are; average precision does not.",
    )
    return Section("Average precision and ROC area", told, tuple(tables))


def _own(own: OwnData) -> Section:
    rows = []
    names = [name for name in (*own.methods, LIBLINEAR) if any(r.cell(name) for r in own.rows)]
    for row in own.rows:
        for name in names:
            cell = row.cell(name)
            if cell is None:
                continue
            tests = {"bagging": row.p_resvm_over_bagging, "cwsvm": row.p_resvm_over_cwsvm}
            rows.append(
                (
                    Cell(name),
                    _number(100 * row.contamination_pos), _number(100 * row.contamination_unl),
                    Cell(str(cell.average_precision.n), cell.average_precision.n),
                    _interval(cell.average_precision, "best" if name == row.best else ""),
                    _interval(cell.pr_auc_trapezoid), _number(cell.roc_auc.mean),
                    _whole(cell.wins), _p(tests.get(name)),
                )
            )  # fmt: skip
    columns = (
        "method", "P, %", "U, %", "n", "average precision", "trapezoids", "ROC area", "wins",
        "p, resvm greater",
    )  # fmt: skip
    tables = [Table("By contamination of P and U", columns, tuple(rows))]
    told = [
        "Mean and 95 % Student-t interval in percent; wins and the one-sided paired Wilcoxon test"
        " are by average precision.",
    ]
    if own.borne:
        lines = tuple(
            (
                Cell(one.method), Cell(AXES[one.axis]), _number(100 * one.other),
                _number(one.clean), _number(100 * one.level),
            )
            for one in own.borne
        )  # fmt: skip
        tables.append(
            Table(
                "Contamination borne: up to here a method loses less than 5 points",
                ("method", "by", "of the other set, %", "at the least", "borne, %"), lines, 2,
            )
        )  # fmt: skip
    wins: dict[str, int] = {}
    for row in own.rows:
        if row.best is not None:
            wins[row.best] = wins.get(row.best, 0) + 1
    if wins:
        counts = ", ".join(f"{name} at {count}" for name, count in wins.items())
        told.append(f"Best mean, of {len(own.rows)} contaminations: {counts}.")
    return Section(f"Own data: {own.task}", tuple(told), tuple(tables), _contamination(own))


def _contamination(own: OwnData) -> tuple[Figure, ...]:
    """One chart for each run along an axis, the other contamination fixed."""
    figures = []
    axes = own.axes
    for axis in axes:
        other = next(name for name in AXES if name != axis)
        for fixed in sorted({getattr(row, other) for row in own.rows}):
            along = [row for row in own.rows if getattr(row, other) == fixed]
            if len({getattr(row, axis) for row in along}) < 2:
                continue
            series = []
            for method in own.methods:
                points = [(getattr(row, axis), cell.average_precision)
                          for row in along if (cell := row.cell(method))]  # fmt: skip
                series.append(
                    {
                        "x": [100 * level for level, _ in points],
                        "mean": [area.mean for _, area in points],
                        "low": [area.mean if area.low is None else area.low for _, area in points],
                        "high": [
                            area.mean if area.high is None else area.high for _, area in points
                        ],
                    }
                )
            title = (
                f"{own.task}: average precision by {AXES[axis]}, {AXES[other]} {100 * fixed:g} %"
            )
            data = {"methods": list(own.methods), "series": series, "axis": f"{AXES[axis]}, %"}
            figures.append(Figure("contamination", title, data))
    return tuple(figures)


def _gaps(run: RunReport) -> Section:
    if not run.gaps:
        known = (
            "Nothing that was planned is missing." if run.plan else "Not known without run.json."
        )
        return Section("Cells left out or missing", (known,))
    rows = tuple(
        (
            Cell(TITLES.get(gap.setting, gap.setting)), Cell(gap.task), Cell(gap.method),
            Cell(str(gap.n_done), gap.n_done),
            Cell(NOTHING) if gap.n_planned is None else Cell(str(gap.n_planned), gap.n_planned),
            Cell(gap.reason),
        )
        for gap in run.gaps
    )  # fmt: skip
    columns = ("setting", "task", "method", "done", "planned", "why")
    return Section("Cells left out or missing", (), (Table("", columns, rows, 3),))


def _costs(run: RunReport) -> Section:
    rows = tuple(
        (
            Cell(TITLES[one.setting]), Cell(one.method), Cell(str(one.n_cells), one.n_cells),
            _number(one.cpu_seconds / 60), _number(one.cpu_seconds / one.n_cells),
        )
        for one in run.costs
    )  # fmt: skip
    columns = ("setting", "method", "cells", "minutes", "seconds a cell")
    return Section("Processor time", (), (Table("", columns, rows, 2),))


def _comparison(comparison: Comparison) -> Section:
    first, second = comparison.names
    rows = []
    for one in comparison.rows:
        ap, trapezoid = one.average_precision, one.pr_auc_trapezoid
        minutes: list[Cell] = [Cell(NOTHING)] * 2
        if one.cpu_seconds is not None:
            minutes = [_number(seconds / 60) for seconds in one.cpu_seconds]
        rows.append(
            (
                Cell(TITLES[one.setting]), Cell(one.method), Cell(str(one.n_cells), one.n_cells),
                _number(ap[0], 2), _number(ap[1], 2), _number(ap[1] - ap[0], 2, True),
                _number(trapezoid[0], 2), _number(trapezoid[1], 2), *minutes,
                _number(one.cost_ratio, 3),
            )
        )  # fmt: skip
    told = [
        f"Over the cells that both have; means are over tasks. The ratio is {second}'s processor"
        f" time as a share of {first}'s.",
    ]
    for method in METHODS:
        own = [one for one in comparison.rows if one.method == method]
        cells = sum(one.n_tasks for one in own)
        if own:
            means = [sum(o.average_precision[i] * o.n_tasks for o in own) / cells for i in (0, 1)]
            sentence = (
                f"{method}: average precision {means[0]:.2f} by {first}, {means[1]:.2f} by"
                f" {second}, in the mean over {cells} tasks and settings"
            )
            timed = [one.cpu_seconds for one in own if one.cpu_seconds is not None]
            if timed and (total := sum(pair[0] for pair in timed)) > 0:
                share = sum(pair[1] for pair in timed) / total
                sentence += f", at {share:.3f} of the processor time"
            told.append(f"{sentence}.")
    columns = (
        "setting", "method", "cells", f"AP, {first}", f"AP, {second}", "difference",
        f"trapezoids, {first}", f"trapezoids, {second}", f"minutes, {first}", f"minutes, {second}",
        "ratio",
    )  # fmt: skip
    return Section(
        f"{first} and {second} side by side", tuple(told), (Table("", columns, tuple(rows), 2),)
    )
