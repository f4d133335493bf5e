"""A benchmark's report in the order a reader wants it, for every format that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resvm_cli.benchmark import report_findings as findings
from resvm_cli.benchmark import report_settings as settings
from resvm_cli.benchmark.report import cost_ratio
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
    from resvm_cli.benchmark.own_data import OwnData
    from resvm_cli.benchmark.report import BenchmarkReport, Comparison, RunReport

AXES = {
    "contamination_pos": "contamination of P",
    "contamination_unl": "contamination of U",
}
LEAST_PAIRS = 5  # of which a one-sided Wilcoxon test can be significant at 5 %


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
    parts = [settings.what_was_run(run)]
    if run.tables:
        parts.append(settings.verdicts(run))
    if run.conclusions:
        parts.append(findings.conclusions(run))
    parts += [settings.setting(table, table is run.tables[0]) for table in run.tables]
    if run.wins:
        parts.append(settings.wins(run))
    if run.tests:
        parts.append(findings.tests(run))
    if run.margins:
        parts.append(findings.margins(run))
    if run.dominance:
        parts.append(findings.dominance(run))
    if run.medians:
        parts.append(findings.medians(run))
    if run.widths:
        parts.append(findings.widths(run))
    if run.tables:
        parts.append(settings.areas(run))
    parts += [_own(own) for own in run.own]
    parts.append(_gaps(run))
    if run.costs:
        parts.append(_costs(run))
    return parts


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
                    number(100 * row.contamination_pos), number(100 * row.contamination_unl),
                    Cell(str(cell.average_precision.n), cell.average_precision.n),
                    interval(cell.average_precision, "best" if name == row.best else ""),
                    interval(cell.pr_auc_trapezoid), number(cell.roc_auc.mean),
                    count(cell.wins), p_value(tests.get(name)),
                )
            )  # fmt: skip
    columns = (
        "method", "P, %", "U, %", "n", "average precision", "trapezoids", "ROC area", "wins",
        "p, resvm greater",
    )  # fmt: skip
    tables = [Table("By contamination of P and U", columns, tuple(rows))]
    told = [
        *_which_method(own),
        *_how_much(own),
        "A method bears what costs it less than 5 points. Mean and 95 % Student-t interval in"
        " percent; wins and the one-sided paired Wilcoxon test are by average precision.",
    ]
    if own.borne:
        lines = tuple(
            (
                Cell(one.method), Cell(AXES[one.axis]), number(100 * one.other),
                number(one.clean), number(100 * one.level),
            )
            for one in own.borne
        )  # fmt: skip
        tables.append(
            Table(
                "Contamination borne: up to here a method loses less than 5 points",
                ("method", "by", "of the other set, %", "at the least", "borne, %"), lines, 2,
            )
        )  # fmt: skip
    return Section(f"Own data: {own.task}", tuple(told), tuple(tables), _contamination(own))


def _which_method(own: OwnData) -> list[str]:
    """The answer to a user's first question."""
    if len(own.methods) < 2 or not own.means:
        return []
    wins = dict.fromkeys(own.means, 0)
    for row in own.rows:
        if row.best is not None:
            wins[row.best] += 1
    best, *others = own.means.items()
    beside = ", ".join(f"{name} {mean:.1f}" for name, mean in others)
    told = [
        f"Which method: {best[0]}, with an average precision of {best[1]:.1f} in the mean over"
        f" all contaminations ({beside}). Contaminations at which each"
        f" is best: {', '.join(f'{name} {n_best}' for name, n_best in wins.items())}."
    ]
    fewest = min(row.n_compared for row in own.rows)
    if fewest < LEAST_PAIRS:
        told.append(
            f"With fewer than {LEAST_PAIRS} repetitions no difference can be significant (p below"
            " 0.05): take more before you choose."
        )
    return told


def _how_much(own: OwnData) -> list[str]:
    """The answer to the second: what each method bears."""
    told = []
    for one in own.borne:
        name, other = ("P", "U") if one.axis == "contamination_pos" else ("U", "P")
        start = f"How much contamination of {name}, with {100 * one.other:g} % of {other}:"
        if one.next_level is None or one.next_lost is None:
            text = f"{one.method} bears all that was tried, {100 * one.level:g} %"
        else:
            text = (
                f"{one.method} bears {100 * one.level:g} %; at {100 * one.next_level:g} % it has"
                f" lost {one.next_lost:.1f} points of its {one.clean:.1f}"
            )
        told.append(f"{start} {text}.")
    return told


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
                        "low": [area.ends[0] for _, area in points],
                        "high": [area.ends[1] for _, area in points],
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
            number(one.cpu_seconds / 60), number(one.cpu_seconds / one.n_cells),
        )
        for one in run.costs
    )  # fmt: skip
    columns = ("setting", "method", "cells", "minutes", "seconds a cell")
    return Section("Time", (), (Table("", columns, rows, 2),))


def _comparison(comparison: Comparison) -> Section:
    first, second = comparison.names
    rows = []
    for one in comparison.rows:
        ap, trapezoid = one.average_precision, one.pr_auc_trapezoid
        minutes: list[Cell] = [Cell(NOTHING)] * 2
        if one.cpu_seconds is not None:
            minutes = [number(seconds / 60) for seconds in one.cpu_seconds]
        rows.append(
            (
                Cell(TITLES[one.setting]), Cell(one.method), Cell(str(one.n_cells), one.n_cells),
                number(ap[0], 2), number(ap[1], 2), number(ap[1] - ap[0], 2, True),
                number(trapezoid[0], 2), number(trapezoid[1], 2), *minutes,
                number(one.cost_ratio, 3), number(one.cost_ratio_model, 3),
            )
        )  # fmt: skip
    told = [
        f"Over the cells that both have; means are over tasks. The ratio is {second}'s time"
        f" as a share of {first}'s: of all, and of the models alone (choosing and training, without"
        " judging test rows).",
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
            share = cost_ratio([one.cpu_seconds for one in own])
            of_model = cost_ratio([one.cpu_seconds_model for one in own])
            if share is not None:
                sentence += f", at {share:.3f} of the time"
            if of_model is not None:
                sentence += f" ({of_model:.3f} without judging test rows)"
            told.append(f"{sentence}.")
    columns = (
        "setting", "method", "cells", f"AP, {first}", f"AP, {second}", "difference",
        f"trapezoids, {first}", f"trapezoids, {second}", f"min, {first}", f"min, {second}",
        "ratio", "ratio, models",
    )  # fmt: skip
    return Section(
        f"{first} and {second} side by side", tuple(told), (Table("", columns, tuple(rows), 2),)
    )
