"""The report: tables, tests and gaps of one run, or of two runs side by side."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from experiments.paper import tables, verdicts
from experiments.paper.contamination import OwnTable, own_tables
from experiments.paper.data import COMPARED, OWN, PUBLISHED_CWSVM, SETTINGS, Cell
from experiments.paper.results import (
    CellResult,
    CellTime,
    StoredRun,
    read_published,
    read_published_parameters,
    read_run,
)
from experiments.paper.tables import IntervalWidth, Margin, Medians, SettingTable, WinCount
from resvm_cli.errors import DataError, ParameterError
from resvm_cli.records import dataclass

MAX_RUNS = 2  # that can be compared side by side
EVERY = "all"
KINDS = tuple(product((*SETTINGS, OWN), (*COMPARED, PUBLISHED_CWSVM)))


@dataclass(frozen=True)
class Cost:
    """Time taken by one method in one setting, including tuning."""

    setting: str
    method: str
    n_cells: int
    cpu_seconds: float
    seconds: float


@dataclass(frozen=True)
class RunReport:
    """All findings on one run, from one or more directories."""

    name: str
    path: str
    protocol: str
    record: Mapping[str, Any]  # commands, seed, versions and data, if they are known
    results: tuple[CellResult, ...]
    tables: tuple[SettingTable, ...]
    wins: tuple[WinCount, ...]
    tests: tuple[verdicts.OverallTest, ...]
    dominance: tuple[verdicts.Dominance, ...]
    medians: tuple[Medians, ...]
    widths: tuple[IntervalWidth, ...]
    margins: tuple[Margin, ...]
    conclusions: tuple[verdicts.PaperClaim, ...]
    own: tuple[OwnTable, ...]
    gaps: tuple[tuple[str, str], ...]  # settings and tasks of the paper without results
    costs: tuple[Cost, ...]


@dataclass(frozen=True)
class ComparedRow:
    """One setting and method in two runs, over the cells they have in common."""

    setting: str
    method: str
    n_tasks: int
    n_cells: int
    average_precision: tuple[float, float]  # means over tasks, in percent
    pr_auc_trapezoid: tuple[float, float]
    cpu_seconds: tuple[float, float] | None
    cpu_seconds_model: tuple[float, float] | None  # excluding scoring of test rows; None if unknown


def cost_ratio(costs: Sequence[tuple[float, float] | None]) -> float | None:
    """Return the second run's time as a fraction of the first run's; None if unknown."""
    known = [pair for pair in costs if pair is not None]
    total = sum(first for first, _ in known)
    return sum(second for _, second in known) / total if total else None


@dataclass(frozen=True)
class Comparison:
    """The comparison of two runs."""

    names: tuple[str, str]
    rows: tuple[ComparedRow, ...]


@dataclass(frozen=True)
class Report:
    """The report on one run, or on two runs and their comparison."""

    runs: tuple[RunReport, ...]
    comparison: Comparison | None


def report(directories: Sequence[str]) -> Report:
    """Read one or two runs, and report on them."""
    if len(directories) > MAX_RUNS:
        raise ParameterError("at most {most} runs can be compared", most=MAX_RUNS)
    runs = [read_run(directory) for directory in directories]
    names = [files.protocol for files in runs]
    if len(set(names)) < len(names):  # the same protocol with two seeds, or on two machines
        names = [os.path.normpath(files.path) for files in runs]
    reports = tuple(run_report(files, name) for files, name in zip(runs, names, strict=True))
    comparison = _comparison((names[0], names[1]), *runs) if len(runs) == 2 else None
    return Report(reports, comparison)


def run_report(files: StoredRun, name: str) -> RunReport:
    """Compute all findings on one run."""
    published, parameters = read_published(), read_published_parameters()
    present = dict.fromkeys(result.cell.task for result in files.results)
    of_paper = dict.fromkeys(task for _, task, _ in published)
    tasks = [*(task for task in of_paper if task in present),
             *(task for task in present if task not in of_paper)]  # fmt: skip
    by_setting: dict[str, list[CellResult]] = {
        setting: results
        for setting in SETTINGS
        if (results := [one for one in files.results if one.cell.setting == setting])
    }
    by_table = {
        setting: tables.setting_table(setting, results, tasks, published)
        for setting, results in by_setting.items()
    }
    shown = by_table.values()
    wins = tuple(one for table in shown for one in tables.win_counts(table, published))
    tests = tuple(one for table in shown for one in verdicts.overall_tests(table, published))
    widths = tuple(one for table in shown for one in tables.interval_widths(table, published))
    medians = tuple(
        one for pair in by_setting.items() for one in tables.parameter_medians(*pair, parameters)
    )
    dominance = tuple(one for pair in by_setting.items() for one in verdicts.dominance(*pair))
    conclusions = verdicts.conclusions(by_table, tests, wins, widths, dominance, medians)
    return RunReport(
        name=name,
        path=files.path,
        protocol=files.protocol,
        record=files.record,
        results=files.results,
        tables=tuple(shown),
        wins=wins,
        tests=tests,
        dominance=dominance,
        medians=medians,
        widths=widths,
        margins=tuple(one for table in shown for one in tables.margins(table)),
        conclusions=conclusions,
        own=own_tables([result for result in files.results if result.cell.setting == OWN]),
        gaps=_gaps(by_setting, published),
        costs=_costs(files),
    )


def _gaps(
    by_setting: Mapping[str, Sequence[CellResult]], published: tables.PublishedTable
) -> tuple[tuple[str, str], ...]:
    """Return the settings and tasks of the paper's tables that have no result."""
    done = {(one.cell.setting, one.cell.task) for own in by_setting.values() for one in own}
    return tuple(dict.fromkeys((s, task) for s, task, _ in published if (s, task) not in done))


def _costs(files: StoredRun) -> tuple[Cost, ...]:
    found = []
    for kind in KINDS:
        own = [one for one in files.times if (one.cell.setting, one.cell.method) == kind]
        if own:
            seconds = sum(one.cpu_seconds for one in own), sum(one.seconds for one in own)
            found.append(Cost(*kind, len(own), *seconds))
    return tuple(found)


def _comparison(names: tuple[str, str], first: StoredRun, second: StoredRun) -> Comparison:
    """Compare results and times of two runs over the cells they have in common."""
    results = [{one.cell: one for one in files.results} for files in (first, second)]
    times = [{one.cell: one for one in files.times} for files in (first, second)]
    rows = []
    common = [cell for cell in results[0] if cell in results[1]]
    for kind in KINDS:
        cells = [cell for cell in common if (cell.setting, cell.method) == kind]
        if cells:
            rows.append(_compared_row(*kind, cells, results, times))
    if not rows:
        raise DataError(
            f"{first.path} and {second.path} have no cell in common",
            "report each separately, or run both with the same tasks, settings and methods",
        )
    return Comparison(names, tuple(rows))


def _compared_row(
    setting: str,
    method: str,
    cells: Sequence[Cell],
    results: Sequence[Mapping[Cell, CellResult]],
    times: Sequence[Mapping[Cell, CellTime]],
) -> ComparedRow:
    by_task: dict[object, list[Cell]] = {}
    for cell in cells:
        by_task.setdefault((cell.task, cell.contamination), []).append(cell)

    def means(area: str) -> tuple[float, float]:
        first, second = (
            np.mean([np.mean([getattr(run[cell], area) for cell in own])
                     for own in by_task.values()])
            for run in results
        )  # fmt: skip
        return 100 * float(first), 100 * float(second)

    timed = [(times[0][cell], times[1][cell]) for cell in cells if all(cell in of for of in times)]
    totals = [(one.cpu_seconds, other.cpu_seconds) for one, other in timed]
    models = [
        (one.cpu_seconds - one.cpu_seconds_test, other.cpu_seconds - other.cpu_seconds_test)
        for one, other in timed
        if one.cpu_seconds_test is not None and other.cpu_seconds_test is not None
    ]
    return ComparedRow(
        setting, method, len(by_task), len(cells), means("average_precision"),
        means("pr_auc_trapezoid"), _summed(totals), _summed(models),
    )  # fmt: skip


def _summed(pairs: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    return (sum(one for one, _ in pairs), sum(two for _, two in pairs)) if pairs else None
