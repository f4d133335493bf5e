"""The report on a benchmark: tables, tests and gaps of one run, or two runs side by side."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeAlias

import numpy as np

from resvm_cli.benchmark import tables, verdicts
from resvm_cli.benchmark.contamination import OwnTable, own_tables
from resvm_cli.benchmark.data import COMPARED, OWN, PUBLISHED_CWSVM, SETTINGS, Cell
from resvm_cli.benchmark.join import joined_runs, read_directories
from resvm_cli.benchmark.results import (
    BenchmarkFiles,
    BenchmarkPlan,
    CellResult,
    CellTime,
    MissingTask,
    read_published,
    read_published_parameters,
)
from resvm_cli.benchmark.tables import IntervalWidth, Margin, Medians, SettingTable, WinCount
from resvm_cli.errors import DataError, ParameterError
from resvm_cli.records import dataclass

MAX_RUNS = 2  # that can be compared side by side
EVERY = "all"
KINDS = tuple(product((*SETTINGS, OWN), (*COMPARED, PUBLISHED_CWSVM)))
# (setting, task, method, contamination in the setting "own") -> finished repetitions
Done: TypeAlias = Mapping[tuple[str, str, str, tuple[float, float] | None], int]


@dataclass(frozen=True)
class Gap:
    """Cells without results, and the reason; ``all`` stands for every name."""

    setting: str
    task: str
    method: str
    n_done: int
    n_planned: int | None
    reason: str


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
    plan: BenchmarkPlan | None
    n_results: int
    tables: tuple[SettingTable, ...]
    wins: tuple[WinCount, ...]
    tests: tuple[verdicts.OverallTest, ...]
    dominance: tuple[verdicts.Dominance, ...]
    curves: tuple[verdicts.MeanCurve, ...]
    medians: tuple[Medians, ...]
    widths: tuple[IntervalWidth, ...]
    margins: tuple[Margin, ...]
    conclusions: tuple[verdicts.PaperClaim, ...]
    own: tuple[OwnTable, ...]
    gaps: tuple[Gap, ...]
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
class BenchmarkReport:
    """The report on one run, or on two runs and their comparison."""

    runs: tuple[RunReport, ...]
    comparison: Comparison | None


def report(directories: Sequence[str]) -> BenchmarkReport:
    """Read directories and report on them; directories with equal settings form one run."""
    return report_on(joined_runs(read_directories(directories)))


def report_on(runs: Sequence[BenchmarkFiles]) -> BenchmarkReport:
    if len(runs) > MAX_RUNS:
        raise ParameterError(
            "the directories contain {n} runs with different protocols, seeds or grids;"
            " at most {most} can be compared",
            n=len(runs), most=MAX_RUNS,
        )  # fmt: skip
    names = [files.results[0].protocol for files in runs]
    if len(set(names)) < len(names):  # the same protocol with two seeds, or on two machines
        names = [os.path.normpath(files.path) for files in runs]
    reports = tuple(run_report(files, name) for files, name in zip(runs, names, strict=True))
    comparison = _comparison((names[0], names[1]), *runs) if len(runs) == 2 else None
    return BenchmarkReport(reports, comparison)


def run_report(files: BenchmarkFiles, name: str) -> RunReport:
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
    compared = [verdicts.dominance(setting, results) for setting, results in by_setting.items()]
    dominance = tuple(one for of_setting, _ in compared for one in of_setting)
    conclusions = verdicts.conclusions(by_table, tests, wins, widths, dominance, medians)
    return RunReport(
        name=name,
        path=files.path,
        protocol=files.results[0].protocol,
        plan=files.plan,
        n_results=len(files.results),
        tables=tuple(shown),
        wins=wins,
        tests=tests,
        dominance=dominance,
        curves=tuple(curve for _, curves in compared for curve in curves),
        medians=medians,
        widths=widths,
        margins=tuple(one for table in shown for one in tables.margins(table)),
        conclusions=conclusions,
        own=own_tables([result for result in files.results if result.cell.setting == OWN]),
        gaps=gaps(files, published),
        costs=_costs(files),
    )


def gaps(files: BenchmarkFiles, published: tables.PublishedTable) -> tuple[Gap, ...]:
    """Return planned cells without results, then cells of the paper that were not planned."""
    plan = files.plan or BenchmarkPlan("")
    done = Counter(
        (cell.setting, cell.task, cell.method, cell.contamination if cell.setting == OWN else None)
        for cell in (one.cell for one in files.results)
    )
    missing = {one.task: one for one in plan.missing}
    found: list[Gap] = []
    for setting, task in plan.pairs:
        if task not in missing:
            found += _unfinished(plan, setting, task, done)
    if not all(setting == OWN for setting, *_ in done):
        found += _not_planned(plan, missing, done, published)
    else:
        found += [Gap(OWN, task, EVERY, 0, None, _reason(one)) for task, one in missing.items()]
    alike = Counter(replace(gap, setting=EVERY) for gap in found)
    n_settings = len({setting for setting, *_ in done} | {gap.setting for gap in found})
    merged = []  # one line for cells that are missing in every setting for the same reason
    for gap in found:
        everywhere = replace(gap, setting=EVERY)
        merged.append(everywhere if alike[everywhere] == n_settings > 1 else gap)
    return tuple(dict.fromkeys(merged))


def _reason(missing: MissingTask) -> str:
    return f"the file {missing.file} was missing; download it from {missing.fetch}"


def _unfinished(plan: BenchmarkPlan, setting: str, task: str, done: Done) -> Iterable[Gap]:
    """Yield methods with fewer repetitions than planned; one line if all have the same number."""
    wanted = plan.n_repetitions(setting, task)
    levels: list[tuple[float, float] | None] = [None]
    if setting == OWN:
        own = {level for name, of, _, level in done if (name, of) == (OWN, task) and level}
        levels = [*sorted(own)] or [(0.0, 0.0)]
    # cwsvm-published is linear, and mnist is the only linear data set
    methods = [
        m for m in plan.methods if m != PUBLISHED_CWSVM or tables.data_set_of(task) == "mnist"
    ]
    for level in levels:
        counts = {method: done.get((setting, task, method, level), 0) for method in methods}
        name = task
        if level is not None and len(levels) > 1:
            name += f", P {100 * level[0]:g} %, U {100 * level[1]:g} %"
        short = {method: n for method, n in counts.items() if n < wanted}
        if len(short) == len(methods) and len(set(short.values())) == 1:
            short = {EVERY: next(iter(short.values()))}
        for method, n_done in short.items():
            reason = "not finished" if n_done else "nothing finished yet"
            yield Gap(setting, name, method, n_done, wanted, reason)


def _not_planned(
    plan: BenchmarkPlan,
    missing: Mapping[str, MissingTask],
    done: Done,
    published: tables.PublishedTable,
) -> Iterable[Gap]:
    """Return cells of the paper's tables that have no result and were not planned."""
    present = {(setting, task) for setting, task, *_ in done}
    for pair in dict.fromkeys((setting, task) for setting, task, _ in published):
        data = missing.get(pair[1])
        if pair not in present and (pair not in plan.pairs or data is not None):
            reason = "not in this run" if data is None else _reason(data)
            yield Gap(*pair, EVERY, 0, None, reason)


def _costs(files: BenchmarkFiles) -> tuple[Cost, ...]:
    found = []
    for kind in KINDS:
        own = [one for one in files.times if (one.cell.setting, one.cell.method) == kind]
        if own:
            seconds = sum(one.cpu_seconds for one in own), sum(one.seconds for one in own)
            found.append(Cost(*kind, len(own), *seconds))
    return tuple(found)


def _comparison(
    names: tuple[str, str], first: BenchmarkFiles, second: BenchmarkFiles
) -> Comparison:
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
