"""Compute the paper's tables from results: means, intervals, wins, verdicts, margins, medians.

Areas are in percent, as in the paper. None means that a value cannot be computed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from experiments.paper.data import COMPARED, PUBLISHED_CWSVM
from experiments.paper.results import (
    AREAS,
    PARAMETERS,
    CellResult,
    PublishedParameters,
    PublishedResult,
)
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray

Verdict: TypeAlias = Literal["above", "within", "below", "too few"]
PublishedTable: TypeAlias = Mapping[tuple[str, str, str], PublishedResult]
TOLERANCE = 1.0  # points by which a mean may fall below the published interval
MIN_REPETITIONS = 5  # for a verdict; a mean of fewer is too uncertain
STAR_LEVELS = (0.05, 0.01, 0.001)
REPETITIONS = 20  # in the paper; wins are scaled to this number
MULTICLASS = ("mnist", "sensit")  # data sets with several tasks


@dataclass(frozen=True)
class Estimate:
    """A mean over repetitions with its 95% Student's t interval, clipped to 0..100%."""

    n: int
    mean: float
    low: float | None
    high: float | None

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval, for drawing; with one repetition, both ends are the mean."""
        low, high = (self.mean if end is None else end for end in (self.low, self.high))
        return low, high

    @property
    def width(self) -> float | None:
        return None if self.low is None or self.high is None else self.high - self.low


@dataclass(frozen=True)
class MethodCell:
    """The result of one method on one task, here and in the paper."""

    method: str
    pr_auc_trapezoid: Estimate
    average_precision: Estimate
    roc_auc: Estimate
    wins: float | None  # None for methods other than the three compared
    published: PublishedResult | None
    verdict: Verdict | None


class MethodRow:
    """A table row with one cell per method that has results."""

    cells: tuple[MethodCell, ...]

    def cell(self, method: str) -> MethodCell | None:
        return next((cell for cell in self.cells if cell.method == method), None)


@dataclass(frozen=True)
class TaskRow(MethodRow):
    """All methods on one task in one setting."""

    task: str
    data_set: str
    n_compared: int  # repetitions that all compared methods have finished
    cells: tuple[MethodCell, ...]
    p_resvm_over_bagging: float | None
    stars: int
    published_stars: int | None


@dataclass(frozen=True)
class SettingTable:
    """The paper's table for one setting."""

    setting: str
    methods: tuple[str, ...]  # the compared methods that have results
    rows: tuple[TaskRow, ...]


@dataclass(frozen=True)
class WinCount:
    """Wins of a method in a setting, scaled to 20 repetitions per task, and published wins."""

    setting: str
    method: str
    total: float
    total_share: float
    normalised: float
    normalised_share: float
    published_total: float | None  # over the same tasks
    published_total_share: float | None
    published_normalised: float | None
    published_normalised_share: float | None


def data_set_of(task: str) -> str:
    """Return the data set of a task; the classes of mnist and sensit are separate tasks."""
    family, _, number = task.rpartition("-")
    return family if family in MULTICLASS and number.isdecimal() else task


def wilcoxon_p(first: npt.ArrayLike, second: npt.ArrayLike, alternative: str = "greater") -> float:
    """Return the p-value of Wilcoxon's signed-rank test; 1 if all pairs are equal."""
    from scipy.stats import wilcoxon

    difference = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    if not np.any(difference):
        return 1.0
    return float(wilcoxon(difference, alternative=alternative).pvalue)


def student_interval(values: npt.ArrayLike) -> tuple[float, float]:
    """Return Student's 95% t interval of the mean; nan if there are fewer than two values."""
    from scipy.stats import t

    sample = np.asarray(values, np.float64)
    if len(sample) < 2:
        return float("nan"), float("nan")
    reach = t.ppf((1 + 0.95) / 2, len(sample) - 1) * sample.std(ddof=1) / math.sqrt(len(sample))
    return float(sample.mean() - reach), float(sample.mean() + reach)


def estimate(values: Sequence[float]) -> Estimate:
    """Return mean and interval in percent, from areas given as fractions."""
    sample = 100 * np.asarray(values, np.float64)
    low, high = student_interval(sample)
    bounds = (None, None) if math.isnan(low) else (max(0.0, low), min(100.0, high))
    return Estimate(len(sample), float(sample.mean()), *bounds)


def verdict_on(ours: Estimate, published: PublishedResult) -> Verdict:
    """Compare a mean with the published interval, with a tolerance of one point below it."""
    if ours.n < MIN_REPETITIONS:
        return "too few"
    if ours.mean > published.high:
        return "above"
    return "within" if ours.mean >= published.low - TOLERANCE else "below"


def stars(p_value: float | None) -> int:
    """Count how many of the paper's three significance levels a p-value passes."""
    return 0 if p_value is None else sum(p_value < level for level in STAR_LEVELS)


def compared_methods(results: Sequence[CellResult]) -> tuple[str, ...]:
    present = {result.cell.method for result in results}
    return tuple(method for method in COMPARED if method in present)


def paired_areas(
    results: Sequence[CellResult], methods: Sequence[str], area: str = AREAS[0]
) -> FloatArray:
    """Return areas (repetitions x methods) for the repetitions that all methods finished."""
    found = {(one.cell.repetition, one.cell.method): getattr(one, area) for one in results}
    repetitions = sorted({repetition for repetition, _ in found})
    table = [
        [found[repetition, method] for method in methods]
        for repetition in repetitions
        if all((repetition, method) in found for method in methods)
    ]
    return np.array(table, np.float64).reshape(len(table), len(methods))


def wins_of(table: FloatArray, methods: Sequence[str]) -> dict[str, float]:
    """Count how often each method was best, splitting ties; empty if nothing can be compared."""
    if not len(table) or len(methods) < 2:
        return {}
    best = table == table.max(axis=1, keepdims=True)
    wins = (best / best.sum(axis=1, keepdims=True)).sum(axis=0)
    return dict(zip(methods, wins.tolist(), strict=True))


def p_resvm_over(table: FloatArray, methods: Sequence[str], other: str) -> float | None:
    """Return the p-value of a one-sided paired test of resvm against another method."""
    if not {"resvm", other} <= {*methods} or len(table) < 2:
        return None
    return wilcoxon_p(table[:, methods.index("resvm")], table[:, methods.index(other)])


def setting_table(
    setting: str, results: Sequence[CellResult], tasks: Sequence[str], published: PublishedTable
) -> SettingTable:
    methods = compared_methods(results)
    rows = []
    for task in tasks:
        own = [result for result in results if result.cell.task == task]
        if own:
            rows.append(_task_row(setting, task, own, methods, published))
    return SettingTable(setting, methods, tuple(rows))


def method_cells(
    results: Sequence[CellResult], methods: Sequence[str], wins: Mapping[str, float]
) -> list[MethodCell]:
    """Return the results of each method on one task, without the published ones."""
    cells = []
    for method in (*methods, PUBLISHED_CWSVM):
        own = [result for result in results if result.cell.method == method]
        if own:
            areas = {name: estimate([getattr(one, name) for one in own]) for name in AREAS}
            cells.append(MethodCell(method, **areas, wins=wins.get(method), published=None,
                                    verdict=None))  # fmt: skip
    return cells


def _task_row(
    setting: str,
    task: str,
    results: Sequence[CellResult],
    methods: Sequence[str],
    published: PublishedTable,
) -> TaskRow:
    table = paired_areas(results, methods)
    cells = method_cells(results, methods, wins_of(table, methods))
    for number, cell in enumerate(cells):
        name = "cwsvm" if cell.method == PUBLISHED_CWSVM else cell.method
        if (theirs := published.get((setting, task, name))) is not None:
            verdict = verdict_on(cell.pr_auc_trapezoid, theirs)
            cells[number] = replace(cell, published=theirs, verdict=verdict)
    p_value = p_resvm_over(table, methods, "bagging")
    published_stars = None
    if (theirs := published.get((setting, task, "resvm"))) is not None:
        # the paper gives only the level that p is below
        published_stars = 0 if theirs.p_below is None else 1 + STAR_LEVELS.index(theirs.p_below)
    return TaskRow(
        task, data_set_of(task), len(table), tuple(cells), p_value, stars(p_value), published_stars
    )


def win_counts(table: SettingTable, published: PublishedTable) -> tuple[WinCount, ...]:
    """Return total wins, and wins normalized so that each data set counts as one task."""
    rows = [row for row in table.rows if row.n_compared and len(table.methods) > 1]
    if not rows:
        return ()
    sizes = Counter(row.data_set for row in rows)
    keys = [(table.setting, row.task, method) for row in rows for method in COMPARED]
    sources = (False, True) if all(key in published for key in keys) else (False,)
    figures: dict[str, list[float | None]] = {method: [] for method in table.methods}
    for from_paper in sources:
        for normalized in (False, True):
            sums = dict.fromkeys(table.methods, 0.0)
            for row in rows:
                weight = 1 / sizes[row.data_set] if normalized else 1.0
                for method in table.methods:
                    if from_paper:
                        sums[method] += weight * published[table.setting, row.task, method].wins
                    else:
                        wins = _cell(row, method).wins or 0.0
                        sums[method] += weight * wins * REPETITIONS / row.n_compared
            total = sum(sums.values())
            for method, value in sums.items():
                figures[method] += [value, 100 * value / total if total else None]
    return tuple(
        WinCount(table.setting, method, *own, *[None] * (8 - len(own)))  # type: ignore[arg-type]
        for method, own in figures.items()
    )


def _cell(row: TaskRow, method: str) -> MethodCell:
    """Return the cell of a compared method in a row that is known to have it."""
    cell = row.cell(method)
    assert cell is not None
    return cell


def mean_areas(rows: Sequence[TaskRow], methods: Sequence[str]) -> FloatArray:
    return np.array([[_cell(row, name).pr_auc_trapezoid.mean for name in methods] for row in rows])


@dataclass(frozen=True)
class Medians:
    """Medians of one tuned resvm parameter for the digits of mnist."""

    setting: str
    parameter: str
    tasks: tuple[str, ...]
    values: tuple[float | None, ...]
    published: tuple[float, ...]
    mean: float | None
    published_mean: float


def parameter_medians(
    setting: str, results: Sequence[CellResult], published: PublishedParameters
) -> tuple[Medians, ...]:
    """Return the medians of resvm's parameters on each digit, with the paper's medians."""
    tasks = tuple(task for own, task in published if own == setting)
    tables = []
    for parameter in PARAMETERS:
        values: list[float | None] = []
        for task in tasks:
            tuned = [
                value
                for one in results
                if one.cell.task == task and one.cell.method == "resvm"
                if (value := _parameter(one.parameters, parameter)) is not None
            ]
            values.append(float(np.median(tuned)) if tuned else None)
        known = [value for value in values if value is not None]
        theirs = tuple(published[setting, task][parameter] for task in tasks)
        if known:
            means = float(np.mean(known)), float(np.mean(theirs))
            tables.append(Medians(setting, parameter, tasks, tuple(values), theirs, *means))
    return tuple(tables)


def _parameter(parameters: Mapping[str, object], name: str) -> float | None:
    """Return a tuned parameter; ``unl_per_pos`` may be derived from the two bag sizes."""
    value = parameters.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if name == "unl_per_pos":
        n_pos, n_unl = _parameter(parameters, "n_pos"), _parameter(parameters, "n_unl")
        return n_unl / n_pos if n_unl is not None and n_pos else None
    return None


@dataclass(frozen=True)
class IntervalWidth:
    """Interval widths of a method, and how often resvm's interval is narrower."""

    setting: str
    method: str
    n_tasks: int
    mean: float
    median: float
    published_mean: float | None
    n_resvm_narrower: int | None
    p_resvm_narrower: float | None


def interval_widths(table: SettingTable, published: PublishedTable) -> tuple[IntervalWidth, ...]:
    """Return each method's interval widths over the tasks where all methods have one."""
    found: dict[str, dict[str, float]] = {method: {} for method in table.methods}
    for row in table.rows:
        cells = [cell for method in table.methods if (cell := row.cell(method))]
        own = [width for cell in cells if (width := cell.pr_auc_trapezoid.width) is not None]
        if len(own) == len(table.methods):
            for method, width in zip(table.methods, own, strict=True):
                found[method][row.task] = width
    widths = {name: np.array(list(of_task.values())) for name, of_task in found.items() if of_task}
    rows = []
    for method, own_widths in widths.items():
        keys = [(table.setting, task, method) for task in found[method]]
        theirs = [published[key].width for key in keys if key in published]
        narrower = p_value = None
        if method != "resvm" and "resvm" in widths:
            narrower = int((widths["resvm"] < own_widths).sum())
            p_value = wilcoxon_p(own_widths, widths["resvm"])
        rows.append(
            IntervalWidth(
                table.setting, method, len(keys), float(own_widths.mean()),
                float(np.median(own_widths)),
                float(np.mean(theirs)) if len(theirs) == len(keys) else None, narrower, p_value,
            )
        )  # fmt: skip
    return tuple(rows)


@dataclass(frozen=True)
class Margin:
    """How many points resvm is ahead of another method, averaged over tasks."""

    setting: str
    tasks: str
    method: str
    n_tasks: int
    pr_auc_trapezoid: float
    average_precision: float
    published: float | None  # margin over the paper's cwsvm or bagging, on the same tasks
    p_resvm_over: float | None  # one-sided, over tasks


def margins(table: SettingTable) -> tuple[Margin, ...]:
    """Return resvm's margins on the mnist digits, on the other tasks, and on all tasks."""
    found = []
    for name, kinds in (("mnist", {True}), ("other tasks", {False}), ("all tasks", {True, False})):
        for method in ("bagging", "cwsvm", PUBLISHED_CWSVM):
            rows = [row for row in table.rows if row.cell(method)]
            if name == "all tasks" and {row.data_set == "mnist" for row in rows} != kinds:
                continue
            pairs = [
                (first, second)
                for row in rows
                if (row.data_set == "mnist") in kinds
                if (first := row.cell("resvm")) and (second := row.cell(method))
            ]
            if pairs:
                found.append(_margin(table.setting, name, method, pairs))
    return tuple(found)


def _margin(
    setting: str, tasks: str, method: str, pairs: Sequence[tuple[MethodCell, MethodCell]]
) -> Margin:
    ahead = [one.pr_auc_trapezoid.mean - other.pr_auc_trapezoid.mean for one, other in pairs]
    by_steps = [one.average_precision.mean - other.average_precision.mean for one, other in pairs]
    theirs = [
        one.published.middle - other.published.middle
        for one, other in pairs
        if one.published and other.published
    ]
    return Margin(
        setting, tasks, method, len(pairs), float(np.mean(ahead)), float(np.mean(by_steps)),
        float(np.mean(theirs)) if len(theirs) == len(pairs) else None,
        wilcoxon_p(ahead, np.zeros(len(ahead))) if len(ahead) > 1 else None,
    )  # fmt: skip
