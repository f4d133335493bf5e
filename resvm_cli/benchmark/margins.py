"""What the tables of a benchmark add up to: resvm's margins, widths of intervals, medians."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from resvm_cli.benchmark.published import PublishedParameters
from resvm_cli.benchmark.results import LIBLINEAR, Result
from resvm_cli.benchmark.tables import MethodCell, PublishedTable, SettingTable, TaskRow
from resvm_cli.metrics import significance

PARAMETERS = ("n_pos", "unl_per_pos", "w_pos")


@dataclass(frozen=True)
class Medians:
    """Medians of one tuned parameter of resvm over the digits of mnist."""

    setting: str
    parameter: str
    tasks: tuple[str, ...]
    values: tuple[float | None, ...]
    published: tuple[float, ...]
    mean: float | None
    published_mean: float


@dataclass(frozen=True)
class IntervalWidth:
    """How wide the intervals of a method are, and against how many resvm's is narrower."""

    setting: str
    method: str
    n_tasks: int
    mean: float
    median: float
    published_mean: float | None
    n_resvm_narrower: int | None
    p_resvm_narrower: float | None


@dataclass(frozen=True)
class Margin:
    """By how many points resvm is ahead of another method, in the mean over tasks."""

    setting: str
    tasks: str
    method: str
    n_tasks: int
    pr_auc_trapezoid: float
    average_precision: float
    published: float | None  # over the paper's cwsvm, or bagging, on the same tasks
    p_resvm_over: float | None  # one-sided, over tasks


def parameter_medians(
    setting: str,
    results: Sequence[Result],
    published: Mapping[tuple[str, str], PublishedParameters],
) -> tuple[Medians, ...]:
    """Medians of resvm's parameters on each digit that has any, beside the paper's."""
    tasks = tuple(task for own, task in published if own == setting)
    tables = []
    for parameter in PARAMETERS:
        values: list[float | None] = []
        for task in tasks:
            tuned = [
                value
                for result in results
                if result.task == task and result.method == "resvm"
                if (value := _parameter(result, parameter)) is not None
            ]
            values.append(float(np.median(tuned)) if tuned else None)
        known = [value for value in values if value is not None]
        beside = tuple(getattr(published[setting, task], parameter) for task in tasks)
        if known:
            tables.append(
                Medians(
                    setting, parameter, tasks, tuple(values), beside,
                    float(np.mean(known)), float(np.mean(beside)),
                )
            )  # fmt: skip
    return tuple(tables)


def _parameter(result: Result, name: str) -> float | None:
    """A chosen parameter; U's bag is counted in positives' bags, as in the paper."""

    def number(key: str) -> float | None:
        value = result.parameters.get(key)
        known = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if known else None  # type: ignore[arg-type]

    if name == "unl_per_pos" and number(name) is None:
        n_pos, n_unl = number("n_pos"), number("n_unl")
        return n_unl / n_pos if n_unl is not None and n_pos else None
    return number(name)


def interval_widths(table: SettingTable, published: PublishedTable) -> tuple[IntervalWidth, ...]:
    """Widths of each method's intervals over the tasks that have one for every method."""
    rows = [
        row
        for row in table.rows
        if all((cell := row.cell(m)) and cell.pr_auc_trapezoid.width is not None
               for m in table.methods)
    ]  # fmt: skip
    if not rows:
        return ()
    widths = {method: np.array([_width(row, method) for row in rows]) for method in table.methods}
    found = []
    for method, own in widths.items():
        beside = [
            published[table.setting, row.task, method].width
            for row in rows
            if (table.setting, row.task, method) in published
        ]
        narrower = p_value = None
        if method != "resvm" and "resvm" in widths:
            narrower = int((widths["resvm"] < own).sum())
            p_value = significance.wilcoxon_greater(own, widths["resvm"])
        found.append(
            IntervalWidth(
                table.setting, method, len(rows), float(own.mean()), float(np.median(own)),
                float(np.mean(beside)) if len(beside) == len(rows) else None, narrower, p_value,
            )
        )  # fmt: skip
    return tuple(found)


def _width(row: TaskRow, method: str) -> float:
    cell = row.cell(method)
    width = None if cell is None else cell.pr_auc_trapezoid.width
    assert width is not None
    return width


def margins(table: SettingTable) -> tuple[Margin, ...]:
    """By how much resvm is ahead: on the digits, on the other tasks and on all."""
    found = []
    for name in ("mnist", "other tasks", "all tasks"):
        of_mnist = {"mnist": (True,), "other tasks": (False,), "all tasks": (True, False)}[name]
        rows = [row for row in table.rows if (row.data_set == "mnist") in of_mnist]
        for method in ("bagging", "cwsvm", LIBLINEAR):
            pairs = [
                (first, second)
                for row in rows
                if (first := row.cell("resvm")) and (second := row.cell(method))
            ]
            kinds = {row.data_set == "mnist" for row in rows if row.cell(method)}
            if pairs and (name != "all tasks" or len(kinds) > 1):
                found.append(_margin(table.setting, name, method, pairs))
    return tuple(found)


def _margin(
    setting: str, tasks: str, method: str, pairs: Sequence[tuple[MethodCell, MethodCell]]
) -> Margin:
    ahead = [first.pr_auc_trapezoid.mean - second.pr_auc_trapezoid.mean for first, second in pairs]
    by_steps = [first.average_precision.mean - second.average_precision.mean
                for first, second in pairs]  # fmt: skip
    beside = [
        first.published.middle - second.published.middle
        for first, second in pairs
        if first.published and second.published
    ]
    return Margin(
        setting, tasks, method, len(pairs), float(np.mean(ahead)), float(np.mean(by_steps)),
        float(np.mean(beside)) if len(beside) == len(pairs) else None,
        significance.wilcoxon_greater(ahead, np.zeros(len(ahead))) if len(ahead) > 1 else None,
    )  # fmt: skip
