"""Results of a benchmark to the paper's tables: means, intervals, wins, stars and verdicts.

Areas are in percent from here on, as in the paper. What cannot be said is None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from resvm_cli.benchmark.published import PublishedResult
from resvm_cli.benchmark.results import AREAS, LIBLINEAR, METHODS, Result
from resvm_cli.metrics import significance
from resvm_cli.metrics.ranking import FloatArray

Verdict: TypeAlias = Literal["above", "within", "below"]
PublishedTable: TypeAlias = Mapping[tuple[str, str, str], PublishedResult]
TOLERANCE = 1.0  # points that a mean may lie below the published interval
STAR_LEVELS = (0.05, 0.01, 0.001)
REPETITIONS = 20  # of the paper: wins are scaled to as many where a run has more or fewer
CLASSES_OF = {"mnist": 10, "sensit": 3}


@dataclass(frozen=True)
class Estimate:
    """A mean over repetitions with Student's 95 % interval."""

    n: int
    mean: float
    low: float | None
    high: float | None

    @property
    def ends(self) -> tuple[float, float]:
        """Where its interval ends on an axis of percent, which Student's knows nothing of."""
        low, high = (self.mean if end is None else end for end in (self.low, self.high))
        return max(0.0, low), min(100.0, high)

    @property
    def width(self) -> float | None:
        """From bound to bound."""
        return None if self.low is None or self.high is None else self.high - self.low


@dataclass(frozen=True)
class MethodCell:
    """One method on one task: what it reached here, and in the paper."""

    method: str
    pr_auc_trapezoid: Estimate
    average_precision: Estimate
    roc_auc: Estimate
    wins: float | None  # None beside the three methods that are compared
    published: PublishedResult | None
    verdict: Verdict | None


@dataclass(frozen=True)
class TaskRow:
    """One task in one setting, by all methods."""

    task: str
    data_set: str
    n_compared: int  # repetitions that every compared method has finished
    cells: tuple[MethodCell, ...]
    p_resvm_over_bagging: float | None
    stars: int
    published_stars: int | None

    def cell(self, method: str) -> MethodCell | None:
        """What a method reached, if it was there."""
        return next((cell for cell in self.cells if cell.method == method), None)


@dataclass(frozen=True)
class SettingTable:
    """The paper's table of one setting."""

    setting: str
    methods: tuple[str, ...]  # of the three, those with results
    rows: tuple[TaskRow, ...]


@dataclass(frozen=True)
class WinCount:
    """Wins of a method in a setting, each task scaled to 20 repetitions; published beside."""

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
    """Digits and vehicle classes are tasks of one data set."""
    family, _, number = task.rpartition("-")
    return family if family in CLASSES_OF and number.isdecimal() else task


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and interval in percent of areas that are fractions."""
    sample = 100 * np.asarray(values, np.float64)
    low, high = significance.student_interval(sample)
    bounds = (None, None) if math.isnan(low) else (low, high)
    return Estimate(len(sample), float(sample.mean()), *bounds)


def judged(mean: float, published: PublishedResult) -> Verdict:
    """Above the published interval, within it or less than a point below, or below."""
    if mean > published.high:
        return "above"
    return "within" if mean >= published.low - TOLERANCE else "below"


def stars(p_value: float | None) -> int:
    """How many of the paper's three levels a p value passes."""
    return 0 if p_value is None else sum(p_value < level for level in STAR_LEVELS)


def compared_methods(results: Sequence[Result]) -> tuple[str, ...]:
    """Those of the three methods that have results."""
    present = {result.method for result in results}
    return tuple(method for method in METHODS if method in present)


def complete_areas(
    results: Sequence[Result], methods: Sequence[str], area: str = AREAS[0]
) -> FloatArray:
    """Areas of one task, repetitions x methods, of the repetitions that all methods finished."""
    found = {(result.repetition, result.method): getattr(result, area) for result in results}
    repetitions = sorted({repetition for repetition, _ in found})
    table = [
        [found[repetition, method] for method in methods]
        for repetition in repetitions
        if all((repetition, method) in found for method in methods)
    ]
    return np.array(table, np.float64).reshape(len(table), len(methods))


def p_greater(table: FloatArray, methods: Sequence[str], first: str, second: str) -> float | None:
    """One-sided p that one method is greater than another in pairs; None where there are none."""
    if first not in methods or second not in methods or len(table) < 2:
        return None
    columns = methods.index(first), methods.index(second)
    return significance.wilcoxon_greater(table[:, columns[0]], table[:, columns[1]])


def setting_table(
    setting: str, results: Sequence[Result], tasks: Sequence[str], published: PublishedTable
) -> SettingTable:
    """The table of one setting; ``results`` are all of that setting."""
    methods = compared_methods(results)
    rows = []
    for task in tasks:
        own = [result for result in results if result.task == task]
        if own:
            rows.append(_row(setting, task, own, methods, published))
    return SettingTable(setting, methods, tuple(rows))


def method_cells(
    results: Sequence[Result], methods: Sequence[str], wins: Mapping[str, float]
) -> list[MethodCell]:
    """What each method reached on one task, without judging it."""
    cells = []
    for method in (*methods, LIBLINEAR):
        own = [result for result in results if result.method == method]
        if own:
            areas = {name: estimate([getattr(one, name) for one in own]) for name in AREAS}
            cells.append(MethodCell(method, **areas, wins=wins.get(method), published=None,
                                    verdict=None))  # fmt: skip
    return cells


def _row(
    setting: str,
    task: str,
    results: Sequence[Result],
    methods: Sequence[str],
    published: PublishedTable,
) -> TaskRow:
    table = complete_areas(results, methods)
    wins: dict[str, float] = {}
    if len(table) and len(methods) > 1:
        wins = dict(zip(methods, significance.shared_wins(table), strict=True))
    cells = []
    for cell in method_cells(results, methods, wins):
        beside = published.get(
            (setting, task, "cwsvm" if cell.method == LIBLINEAR else cell.method)
        )
        verdict = None if beside is None else judged(cell.pr_auc_trapezoid.mean, beside)
        cells.append(
            MethodCell(
                cell.method, cell.pr_auc_trapezoid, cell.average_precision, cell.roc_auc,
                cell.wins, beside, verdict,
            )
        )  # fmt: skip
    p_value = p_greater(table, methods, "resvm", "bagging")
    beside = published.get((setting, task, "resvm"))
    published_stars = None
    if beside is not None:
        # the paper names the level that p is below
        published_stars = 0 if beside.p_below is None else 1 + STAR_LEVELS.index(beside.p_below)
    return TaskRow(
        task, data_set_of(task), len(table), tuple(cells), p_value, stars(p_value), published_stars
    )


def win_counts(table: SettingTable, published: PublishedTable) -> tuple[WinCount, ...]:
    """Total wins, and normalised: those of several classes are divided by how many there are."""
    rows = [row for row in table.rows if row.n_compared and len(table.methods) > 1]
    if not rows:
        return ()
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row.data_set] = sizes.get(row.data_set, 0) + 1
    beside = all(
        (table.setting, row.task, method) in published for row in rows for method in METHODS
    )

    def counted(normalised: bool, from_paper: bool) -> dict[str, float]:
        sums = dict.fromkeys(table.methods, 0.0)
        for row in rows:
            weight = 1 / sizes[row.data_set] if normalised else 1.0
            for method in table.methods:
                if from_paper:
                    sums[method] += weight * published[table.setting, row.task, method].wins
                else:
                    cell = row.cell(method)
                    assert cell is not None
                    assert cell.wins is not None
                    sums[method] += weight * cell.wins * REPETITIONS / row.n_compared
        return sums

    ours = [counted(normalised, False) for normalised in (False, True)]
    theirs = [counted(normalised, True) if beside else {} for normalised in (False, True)]
    counts = []
    for method in table.methods:
        figures: list[float | None] = []
        for sums in (*ours, *theirs):
            value = sums.get(method)
            total = sum(sums.values())
            figures += [value, None if value is None or not total else 100 * value / total]
        counts.append(WinCount(table.setting, method, *figures))  # type: ignore[arg-type]
    return tuple(counts)
