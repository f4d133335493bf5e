"""Report sections beyond the paper's tables: conclusions, tests, margins, the user's data."""

from __future__ import annotations

from resvm_cli.benchmark.contamination import AXES, OwnTable, other_axis, points_along, rows_along
from resvm_cli.benchmark.data import COMPARED, PUBLISHED_CWSVM
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
from resvm_cli.benchmark.report import ComparedRow, Comparison, RunReport, cost_ratio
from resvm_cli.benchmark.verdicts import OverallTest

PARAMETER_TITLES = {"n_pos": "n_pos", "unl_per_pos": "n_unl / n_pos", "w_pos": "w_pos"}
AXIS_TITLES = {axis: f"contamination of {name}" for axis, name in AXES.items()}
MIN_PAIRS = 5  # with fewer, no one-sided Wilcoxon test is significant at 5 %


def conclusions(run: RunReport) -> Section:
    marks = {"confirmed": "above", "weaker": "within", "not confirmed": "below"}
    rows = tuple(
        cells(one.claim, TableCell(one.finding, None, marks[one.finding]), one.evidence)
        for one in run.conclusions
    )
    table = ReportTable("", ("the paper's conclusion", "here", "evidence"), rows, 3, prose=True)
    sentence = (
        "confirmed: the test shows what the paper claims; weaker: it points in the same direction"
        " but does not fully support the claim; not confirmed: it does not. Tests are"
        " over the tasks of this run."
    )
    return Section("The paper's conclusions", (sentence,), (table,))


def tests(run: RunReport) -> Section:
    summary, pairs, charts = [], [], []
    sentences = [
        "Methods are ranked by their mean area on each task (1 is best). In tests over data sets,"
        " the tasks of one data set count as one: methods are ranked by their mean rank on them."
        " The paper columns show the same tests on the midpoints of the published intervals."
    ]
    if any(len(test.names) < 6 for test in run.tests):
        sentences.append("With five pairs or fewer, no two-sided Wilcoxon p is below 0.06.")
    for test in run.tests:
        names = TITLES[test.setting], f"{len(test.names)} {test.over}"
        title = f"{names[0]}, over {names[1]}"
        summary.append(cells(*names, *_summary(test)))
        pairs += [cells(*names, *row) for row in _pairs(test)]
        data = {
            "methods": test.result.methods,
            "ranks": test.result.average_ranks,
            "difference": test.result.critical_difference,
            "cliques": test.result.cliques,
        }
        charts.append(Chart("ranks", title, data))
        if test.left_out:
            listed = ", ".join(test.left_out)
            sentences.append(f"{title}: left out because no repetition is complete: {listed}.")
    methods = "/".join(run.tests[0].result.methods)
    columns = (
        "setting", "over", "Friedman p", "paper", f"average ranks, {methods}", "paper",
        "critical difference",
    )  # fmt: skip
    pair_columns = (
        "setting", "over", "pair", "Nemenyi p", "paper", "Wilcoxon p", "with Holm's correction",
        "paper",
    )  # fmt: skip
    tables = (
        ReportTable("Friedman's test and average ranks", columns, tuple(summary), 2),
        ReportTable("Pairs of methods", pair_columns, tuple(pairs), 3),
    )
    return Section("Tests over tasks and data sets", tuple(sentences), tables, tuple(charts))


def _summary(test: OverallTest) -> tuple[TableCell, ...]:
    result, theirs = test.result, test.published
    ranks = [
        TableCell("/".join(f"{rank:.2f}" for rank in one.average_ranks), one.average_ranks[-1])
        if one else NOTHING
        for one in (result, theirs)
    ]  # fmt: skip
    p_values = p_value(result.friedman_p), p_value(theirs.friedman_p if theirs else None)
    return (*p_values, *ranks, number(result.critical_difference, 2))


def _pairs(test: OverallTest) -> list[tuple[TableCell, ...]]:
    pairs = test.result.pairs
    published = test.published.pairs if test.published else [None] * len(pairs)
    return [
        cells(
            f"{pair.first}, {pair.second}",
            p_value(pair.nemenyi), p_value(other.nemenyi if other else None),
            p_value(pair.wilcoxon),
            p_value(pair.holm), p_value(other.holm if other else None),
        )
        for pair, other in zip(pairs, published, strict=True)
    ]  # fmt: skip


def margins(run: RunReport) -> Section:
    rows = []
    sentences = [
        "Points by which resvm is ahead, on average over tasks. For cwsvm-published, the published"
        " margin is the one over the paper's cwsvm. remains: this margin as a percentage of the"
        " published one. p: one-sided Wilcoxon test over tasks."
    ]
    for one in run.margins:
        remains = None
        if one.published is not None and one.published > 0:
            remains = 100 * one.pr_auc_trapezoid / one.published
        rows.append(
            cells(
                TITLES[one.setting], one.tasks, one.method, one.n_tasks,
                number(one.pr_auc_trapezoid, 1, True), number(one.average_precision, 1, True),
                number(one.published, 1, True), number(remains, 0), p_value(one.p_resvm_over),
            )
        )  # fmt: skip
        if one.method == "cwsvm" and one.tasks == "mnist":
            side = "ahead of" if one.pr_auc_trapezoid >= 0 else "behind"
            sentence = (
                f"{TITLES[one.setting]}: on mnist resvm is {abs(one.pr_auc_trapezoid):.1f} points"
                f" {side} cwsvm solved exactly"
            )
            if one.published is not None:
                sentence += f" (published: {one.published:+.1f})"
            sentences.append(f"{sentence}; by average precision {one.average_precision:+.1f}.")
    columns = (
        "setting", "tasks", "over", "n", "trapezoids", "average precision", "paper",
        "remains, %", "p",
    )  # fmt: skip
    table = ReportTable("", columns, tuple(rows), 3)
    return Section("What remains of resvm's margin", tuple(sentences), (table,))


def dominance(run: RunReport) -> Section:
    rows = tuple(
        cells(
            TITLES[one.setting], one.method, one.n, number(100 * one.whole, 0),
            number(100 * one.levels, 1), number(one.shortfall, 1),
        )
        for one in run.dominance
    )  # fmt: skip
    sentence = (
        "resvm's precision compared with another method's at recall 0.01, 0.02, ..., 1 in each"
        " repetition of each digit: the fraction of repetitions in which it is never lower, the"
        " fraction of recall levels at which it is not lower, and its largest shortfall, averaged"
        " over repetitions."
    )
    columns = (
        "setting", "resvm against", "pairs", "nowhere below, %", "levels not below, %",
        "largest shortfall, points",
    )  # fmt: skip
    charts = []
    for setting in dict.fromkeys(curve.setting for curve in run.curves):
        own = [curve for curve in run.curves if curve.setting == setting]
        data = {
            "methods": [curve.method for curve in own],
            "precision": [list(curve.precision) for curve in own],
        }
        charts.append(Chart("curves", f"{TITLES[setting]}: mean precision on mnist", data))
    table = ReportTable("", columns, rows, 2)
    return Section("PR dominance on mnist", (sentence,), (table,), tuple(charts))


def medians(run: RunReport) -> Section:
    tables = []
    for parameter, title in PARAMETER_TITLES.items():
        own = [one for one in run.medians if one.parameter == parameter]
        rows = []
        for one in own:
            for name, values in (
                ("here", (*one.values, one.mean)),
                ("paper", (*one.published, one.published_mean)),
            ):
                shown = [NOTHING if v is None else TableCell(f"{v:.3g}", v) for v in values]
                rows.append(cells(TITLES[one.setting], name, *shown))
        if own:
            digits = [task.removeprefix("mnist-") for task in own[0].tasks]
            tables.append(ReportTable(title, ("setting", "", *digits, "mean"), tuple(rows), 2))
    sentence = "Medians over repetitions of the parameters that tuning chose for resvm, by digit."
    return Section("Tuned parameters on mnist", (sentence,), tuple(tables))


def widths(run: RunReport) -> Section:
    rows = []
    for one in run.widths:
        narrower = None
        if one.n_resvm_narrower is not None:
            narrower = TableCell(f"{one.n_resvm_narrower} of {one.n_tasks}", one.n_resvm_narrower)
        rows.append(
            cells(
                TITLES[one.setting], one.method, one.n_tasks, number(one.mean, 2),
                number(one.median, 2), number(one.published_mean, 2), narrower,
                p_value(one.p_resvm_narrower),
            )
        )  # fmt: skip
    sentence = (
        "Widths of the 95 % intervals in points, over tasks, and the number of tasks on which"
        " resvm's is narrower, with a one-sided Wilcoxon test over tasks. Fewer repetitions give"
        " wider intervals, so compare the methods with each other, not with the paper."
    )
    columns = ("setting", "method", "tasks", "mean", "median", "paper, mean", "resvm narrower", "p")
    table = ReportTable("", columns, tuple(rows), 2)
    return Section("Width of the intervals", (sentence,), (table,))


def own_data(own: OwnTable) -> Section:
    rows = []
    for row in own.rows:
        tests = {"bagging": row.p_resvm_over_bagging, "cwsvm": row.p_resvm_over_cwsvm}
        for name in (*own.methods, PUBLISHED_CWSVM):
            cell = row.cell(name)
            if cell is not None:
                rows.append(
                    cells(
                        name, number(100 * row.contamination_pos),
                        number(100 * row.contamination_unl), cell.average_precision.n,
                        interval(cell.average_precision, "best" if name == row.best else ""),
                        interval(cell.pr_auc_trapezoid), number(cell.roc_auc.mean),
                        count(cell.wins), p_value(tests.get(name)),
                    )
                )  # fmt: skip
    columns = (
        "method", "P, %", "U, %", "n", "average precision", "trapezoids", "ROC AUC", "wins",
        "p, resvm greater",
    )  # fmt: skip
    tables = [ReportTable("By contamination of P and U", columns, tuple(rows))]
    sentences = [
        *_which_method(own),
        *_how_much(own),
        "A method tolerates a level of contamination that costs it at most 5 points. Means and"
        " 95 % Student-t intervals are in percent; wins and the one-sided paired Wilcoxon test use"
        " average precision.",
    ]
    if own.borne:
        lines = tuple(
            cells(
                one.method, AXIS_TITLES[one.axis], number(100 * one.other), number(one.clean),
                number(100 * one.level),
            )
            for one in own.borne
        )  # fmt: skip
        title = "Contamination that costs at most 5 points"
        heads = ("method", "by", "other set, %", "AP at lowest level", "tolerated, %")
        tables.append(ReportTable(title, heads, lines, 2))
    return Section(f"Your data: {own.task}", tuple(sentences), tuple(tables), _levels(own))


def _which_method(own: OwnTable) -> list[str]:
    if len(own.methods) < 2 or not own.means:
        return []
    wins = dict.fromkeys(own.means, 0)
    for row in own.rows:
        if row.best is not None:
            wins[row.best] += 1
    (best, mean), *others = own.means.items()
    rest = ", ".join(f"{name} {of_other:.1f}" for name, of_other in others)
    counts = ", ".join(f"{name} {n_best}" for name, n_best in wins.items())
    sentences = [
        f"Best method: {best}, with a mean average precision of {mean:.1f} over all levels of"
        f" contamination ({rest}). Levels at which each method is best: {counts}."
    ]
    if min(row.n_compared for row in own.rows) < MIN_PAIRS:
        sentences.append(
            f"With fewer than {MIN_PAIRS} repetitions, no difference can be significant (p below"
            " 0.05): run more before you choose."
        )
    return sentences


def _how_much(own: OwnTable) -> list[str]:
    sentences = []
    for one in own.borne:
        if one.next_level is None or one.next_lost is None:
            text = f"{one.method} tolerates every level tried, up to {100 * one.level:g} %"
        else:
            text = (
                f"{one.method} tolerates {100 * one.level:g} %; at {100 * one.next_level:g} %, it"
                f" loses {one.next_lost:.1f} of its {one.clean:.1f} points"
            )
        held = f"with {AXES[other_axis(one.axis)]} {100 * one.other:g} % contaminated"
        sentences.append(f"Contamination of {AXES[one.axis]}, {held}: {text}.")
    return sentences


def _levels(own: OwnTable) -> tuple[Chart, ...]:
    """Return one chart per contamination axis, with the other axis held fixed."""
    charts = []
    for axis in AXES:
        for fixed, along in rows_along(axis, own.rows):
            series = [
                {
                    "x": [100 * level for level, _ in points],
                    "mean": [area.mean for _, area in points],
                    "low": [area.bounds[0] for _, area in points],
                    "high": [area.bounds[1] for _, area in points],
                }
                for points in (points_along(axis, along, method) for method in own.methods)
            ]
            held = f"{AXIS_TITLES[other_axis(axis)]} {100 * fixed:g} %"
            title = f"{own.task}: average precision by {AXIS_TITLES[axis]}, {held}"
            label = f"{AXIS_TITLES[axis]}, %"
            data = {"methods": list(own.methods), "series": series, "axis": label}
            charts.append(Chart("contamination", title, data))
    return tuple(charts)


def comparison(compared: Comparison) -> Section:
    first, second = compared.names
    rows = []
    for one in compared.rows:
        ap, trapezoid = one.average_precision, one.pr_auc_trapezoid
        seconds = one.cpu_seconds or (None, None)
        rows.append(
            cells(
                TITLES[one.setting], one.method, one.n_cells,
                number(ap[0], 2), number(ap[1], 2), number(ap[1] - ap[0], 2, True),
                number(trapezoid[0], 2), number(trapezoid[1], 2),
                *(number(None if time is None else time / 60) for time in seconds),
                number(cost_ratio([one.cpu_seconds]), 3),
                number(cost_ratio([one.cpu_seconds_model]), 3),
            )
        )  # fmt: skip
    sentences = [
        f"Only cells that both runs have are compared; means are over tasks. ratio: {second}'s time"
        f" as a fraction of {first}'s, in total and for the models alone (tuning and training,"
        " without scoring test rows)."
    ]
    for method in COMPARED:
        own = [one for one in compared.rows if one.method == method]
        if own:
            sentences.append(_compared(method, first, second, own))
    columns = (
        "setting", "method", "cells", f"AP, {first}", f"AP, {second}", "difference",
        f"trapezoids, {first}", f"trapezoids, {second}", f"min, {first}", f"min, {second}",
        "ratio", "ratio, models",
    )  # fmt: skip
    table = ReportTable("", columns, tuple(rows), 2)
    return Section(f"{first} and {second} side by side", tuple(sentences), (table,))


def _compared(method: str, first: str, second: str, rows: list[ComparedRow]) -> str:
    n_tasks = sum(one.n_tasks for one in rows)
    means = [sum(o.average_precision[i] * o.n_tasks for o in rows) / n_tasks for i in (0, 1)]
    sentence = (
        f"{method}: average precision {means[0]:.2f} by {first}, {means[1]:.2f} by {second}, on"
        f" average over {n_tasks} tasks and settings"
    )
    ratio = cost_ratio([one.cpu_seconds for one in rows])
    of_model = cost_ratio([one.cpu_seconds_model for one in rows])
    if ratio is not None:
        sentence += f", at {ratio:.3f} of the time"
    if of_model is not None:
        sentence += f" ({of_model:.3f} without scoring test rows)"
    return f"{sentence}."
