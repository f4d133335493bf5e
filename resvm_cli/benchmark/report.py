"""Benchmarks to reports: one directory's tables, tests and gaps, or two side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from resvm_cli.benchmark.gaps import Gap, gaps
from resvm_cli.benchmark.join import of_one_run, read_all
from resvm_cli.benchmark.margins import (
    IntervalWidth,
    Margin,
    Medians,
    interval_widths,
    margins,
    parameter_medians,
)
from resvm_cli.benchmark.own_data import OwnData, own_data
from resvm_cli.benchmark.paper_tasks import OWN
from resvm_cli.benchmark.published import read_published, read_published_parameters
from resvm_cli.benchmark.results import (
    LIBLINEAR,
    METHODS,
    SETTINGS,
    BenchmarkFiles,
    Plan,
    Result,
    Times,
)
from resvm_cli.benchmark.tables import (
    PublishedTable,
    SettingTable,
    WinCount,
    setting_table,
    win_counts,
)
from resvm_cli.benchmark.verdicts import (
    Conclusion,
    Dominance,
    MeanCurve,
    OverallTest,
    conclusions,
    dominance,
    overall_tests,
)
from resvm_cli.errors import CommandLineError, DataError

MOST_RUNS = 2  # side by side


@dataclass(frozen=True)
class Cost:
    """Time of one method in one setting, tuning included."""

    setting: str
    method: str
    n_cells: int
    cpu_seconds: float
    seconds: float


@dataclass(frozen=True)
class RunReport:
    """All that one run says, in one directory or several."""

    name: str
    path: str
    protocol: str
    plan: Plan | None
    n_results: int
    tables: tuple[SettingTable, ...]
    wins: tuple[WinCount, ...]
    tests: tuple[OverallTest, ...]
    dominance: tuple[Dominance, ...]
    curves: tuple[MeanCurve, ...]
    medians: tuple[Medians, ...]
    widths: tuple[IntervalWidth, ...]
    margins: tuple[Margin, ...]
    conclusions: tuple[Conclusion, ...]
    own: tuple[OwnData, ...]
    gaps: tuple[Gap, ...]
    costs: tuple[Cost, ...]


@dataclass(frozen=True)
class ComparedRow:
    """One setting and method under two protocols, over the cells that both have."""

    setting: str
    method: str
    n_tasks: int
    n_cells: int
    average_precision: tuple[float, float]  # means over tasks, in percent
    pr_auc_trapezoid: tuple[float, float]
    cpu_seconds: tuple[float, float] | None
    cpu_seconds_model: tuple[float, float] | None  # without judging test rows, where it is known

    @property
    def cost_ratio(self) -> float | None:
        """What the second costs of the first."""
        return cost_ratio([self.cpu_seconds])

    @property
    def cost_ratio_model(self) -> float | None:
        """The same without judging the test rows."""
        return cost_ratio([self.cpu_seconds_model])


def cost_ratio(costs: Sequence[tuple[float, float] | None]) -> float | None:
    """What all the second cost, as a share of all the first; None where nothing is known."""
    known = [pair for pair in costs if pair is not None]
    total = sum(first for first, _ in known)
    return sum(second for _, second in known) / total if total else None


@dataclass(frozen=True)
class Comparison:
    """Two protocols side by side."""

    names: tuple[str, str]
    rows: tuple[ComparedRow, ...]


@dataclass(frozen=True)
class BenchmarkReport:
    """One run or two, and what tells them apart."""

    runs: tuple[RunReport, ...]
    comparison: Comparison | None


def report(directories: Sequence[str]) -> BenchmarkReport:
    """Read the directories and say what they show; those of the same settings are one run."""
    return report_on(of_one_run(read_all(directories)))


def report_on(read: Sequence[BenchmarkFiles]) -> BenchmarkReport:
    """What one run shows, or two side by side."""
    if len(read) > MOST_RUNS:
        raise CommandLineError(
            f"the directories are of {len(read)} runs, of other protocols, seeds or grids;"
            f" at most {MOST_RUNS} can be set side by side"
        )
    names = [files.results[0].protocol for files in read]
    if len(set(names)) < len(names):  # the same protocol twice: two seeds, or two machines
        names = [os.path.normpath(files.path) for files in read]
    runs = tuple(run_report(files, name) for files, name in zip(read, names, strict=True))
    comparison = None
    if len(read) == 2:
        comparison = _comparison((names[0], names[1]), read[0], read[1])
    return BenchmarkReport(runs, comparison)


def run_report(files: BenchmarkFiles, name: str) -> RunReport:
    """All that one run says, in one directory or several."""
    published, parameters = read_published(), read_published_parameters()
    tasks = _in_order(files.results, published)
    tables: list[SettingTable] = []
    wins: list[WinCount] = []
    tests: list[OverallTest] = []
    widths: list[IntervalWidth] = []
    ahead: list[Margin] = []
    medians: list[Medians] = []
    dominances: list[Dominance] = []
    curves: list[MeanCurve] = []
    for setting in SETTINGS:
        results = [result for result in files.results if result.setting == setting]
        if not results:
            continue
        table = setting_table(setting, results, tasks, published)
        tables.append(table)
        wins += win_counts(table, published)
        tests += overall_tests(table, published)
        widths += interval_widths(table, published)
        ahead += margins(table)
        medians += parameter_medians(setting, results, parameters)
        of_setting, means = dominance(setting, results)
        dominances += of_setting
        curves += means
    by_setting = {table.setting: table for table in tables}
    return RunReport(
        name=name,
        path=files.path,
        protocol=files.results[0].protocol,
        plan=files.plan,
        n_results=len(files.results),
        tables=tuple(tables),
        wins=tuple(wins),
        tests=tuple(tests),
        dominance=tuple(dominances),
        curves=tuple(curves),
        medians=tuple(medians),
        widths=tuple(widths),
        margins=tuple(ahead),
        conclusions=conclusions(by_setting, tests, wins, widths, dominances, medians),
        own=own_data([result for result in files.results if result.setting == OWN]),
        gaps=gaps(files, published),
        costs=_costs(files),
    )


def _in_order(results: Sequence[Result], published: PublishedTable) -> list[str]:
    """Tasks in the order of the paper's tables, then others as they come."""
    present = dict.fromkeys(result.task for result in results)
    of_paper = dict.fromkeys(task for _, task, _ in published)
    return [*(task for task in of_paper if task in present),
            *(task for task in present if task not in of_paper)]  # fmt: skip


def _costs(files: BenchmarkFiles) -> tuple[Cost, ...]:
    found = []
    for setting in (*SETTINGS, OWN):
        for method in (*METHODS, LIBLINEAR):
            own = [t for t in files.times if t.setting == setting and t.method == method]
            if own:
                found.append(
                    Cost(
                        setting, method, len(own), sum(one.cpu_seconds for one in own),
                        sum(one.seconds for one in own),
                    )
                )  # fmt: skip
    return tuple(found)


def _comparison(
    names: tuple[str, str], first: BenchmarkFiles, second: BenchmarkFiles
) -> Comparison:
    """Both over the cells that both have; of the times too."""
    results: list[dict[tuple[Any, ...], Result]] = [
        {
            (one.setting, one.task, one.method, one.repetition, *one.level): one
            for one in files.results
        }
        for files in (first, second)
    ]
    times = [{one.cell: one for one in files.times} for files in (first, second)]
    shared = [cell for cell in results[0] if cell in results[1]]
    rows = []
    for setting in (*SETTINGS, OWN):
        for method in (*METHODS, LIBLINEAR):
            cells = [cell for cell in shared if (cell[0], cell[2]) == (setting, method)]
            if cells:
                rows.append(_compared(setting, method, cells, results, times))
    if not rows:
        raise DataError(
            f"{first.path} and {second.path} have no cell in common",
            "report each alone, or run both with the same tasks, settings and methods",
        )
    return Comparison(names, tuple(rows))


def _compared(
    setting: str,
    method: str,
    cells: Sequence[tuple[Any, ...]],
    results: Sequence[dict[tuple[Any, ...], Result]],
    times: Sequence[dict[tuple[Any, ...], Times]],
) -> ComparedRow:
    by_task: dict[object, list[tuple[Any, ...]]] = {}
    for cell in cells:
        by_task.setdefault((cell[1], *cell[4:]), []).append(cell)

    def mean(area: str, of_run: dict[tuple[Any, ...], Result]) -> float:
        means = [np.mean([getattr(of_run[cell], area) for cell in own]) for own in by_task.values()]
        return 100 * float(np.mean(means))

    timed = [
        tuple(of_run[cell] for of_run in times)
        for cell in cells
        if all(cell in of_run for of_run in times)
    ]
    split = [both for both in timed if all(one.cpu_seconds_test is not None for one in both)]
    return ComparedRow(
        setting, method, len(by_task), len(cells),
        (mean("average_precision", results[0]), mean("average_precision", results[1])),
        (mean("pr_auc_trapezoid", results[0]), mean("pr_auc_trapezoid", results[1])),
        _summed([[one.cpu_seconds for one in both] for both in timed]),
        _summed([[one.cpu_seconds - (one.cpu_seconds_test or 0.0) for one in both]
                 for both in split]),
    )  # fmt: skip


def _summed(pairs: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    return (sum(one for one, _ in pairs), sum(two for _, two in pairs)) if pairs else None
