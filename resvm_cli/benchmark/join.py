"""Join several directories of one benchmark.

Every line depends only on its cell, the seed and the grids, so directories with the same settings
are parts of one run, no matter where they were produced. If two directories have different results
for the same cell, they come from different versions or data. That is an error, because a joint
report would be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from resvm_cli.benchmark.data import Cell
from resvm_cli.benchmark.results import (
    PLAN,
    RESULTS,
    TIMES,
    BenchmarkFiles,
    BenchmarkPlan,
    CellResult,
    CellTime,
    read_benchmark,
)
from resvm_cli.errors import DataError, ParameterError
from resvm_cli.files.json_files import RunDirectory
from resvm_cli.files.streams import same_source
from resvm_cli.records import dataclass

NOT_ONE_RUN = "they are not parts of one run: report each separately"


@dataclass(frozen=True)
class JoinResult:
    """The directories that were joined, and the number of results."""

    path: str
    protocol: str
    n_directories: int
    n_results: int


def join(directories: Sequence[str], output: str) -> JoinResult:
    """Write the results of several directories to a new one, which can be resumed."""
    if output in ("", "-"):
        raise ParameterError("{output} must be a directory name")
    parts = read_directories(directories)
    first = parts[0].settings or {}
    for files in parts:
        if files.settings is None:
            raise DataError(
                f"{files.path}: there is no settings.json",
                "is it the directory of a benchmark run?",
            )
        names = {*files.settings, *first}
        changed = sorted(name for name in names if files.settings.get(name) != first.get(name))
        if changed:
            raise DataError(
                f"{files.path}: was run with different settings than {parts[0].path}:"
                f" {', '.join(changed)}",
                "join runs with the same protocol, seed and grids",
            )
    whole = joined(parts)
    directory = RunDirectory(output, RESULTS, dict(first), resume=False)
    with directory.opened():
        directory.rewrite(TIMES, [dict(one.content) for one in whole.times])
        if (plan := _united_plan(parts)) is not None:
            directory.write(PLAN, plan.content())
        directory.rewrite(RESULTS, [dict(one.content) for one in whole.results])
    return JoinResult(output, whole.results[0].protocol, len(parts), len(whole.results))


def read_directories(directories: Sequence[str]) -> list[BenchmarkFiles]:
    """Read directories to be used together; raise an error for duplicates or missing results."""
    for other, directory in combinations(directories, 2):
        if same_source(other, directory):
            raise ParameterError("{path} is the same directory as {other}", path=directory,
                                 other=other)  # fmt: skip
    parts = [read_benchmark(directory) for directory in directories]
    for files in parts:
        if not files.results:
            raise DataError(f"{files.path}: no results yet", "wait for the first cell to finish")
    return parts


def joined_runs(parts: Sequence[BenchmarkFiles]) -> list[BenchmarkFiles]:
    """Return the runs in these directories, joining directories with equal settings."""
    runs: list[list[BenchmarkFiles]] = []
    for files in parts:
        for run in runs:
            if files.settings is not None and files.settings == run[0].settings:
                run.append(files)
                break
        else:
            runs.append([files])
    return [joined(run) for run in runs]


def joined(parts: Sequence[BenchmarkFiles]) -> BenchmarkFiles:
    """Join directories with equal settings, sorted as in a single run."""
    if len(parts) == 1:
        return parts[0]
    results: dict[Cell, tuple[str, CellResult]] = {}
    times: dict[Cell, CellTime] = {}
    for files in parts:
        for result in files.results:
            path, before = results.setdefault(result.cell, (files.path, result))
            if not before.agrees(result):
                raise DataError(
                    f"{files.path}/{RESULTS}:{result.line}: the areas of {result.cell} differ from"
                    f" those in {path}/{RESULTS}:{before.line}",
                    NOT_ONE_RUN,
                )
        for one in files.times:
            times.setdefault(one.cell, one)
    return BenchmarkFiles(
        ", ".join(files.path for files in parts),
        tuple(results[cell][1] for cell in sorted(results, key=lambda cell: cell.order)),
        _united_plan(parts),
        tuple(times[cell] for cell in sorted(times, key=lambda cell: cell.order)),
        parts[0].settings,
    )


def _united_plan(parts: Sequence[BenchmarkFiles]) -> BenchmarkPlan | None:
    """Return the combined plan of all directories; None if any of them has no plan."""
    united = BenchmarkPlan("")
    for files in parts:
        plan = files.plan
        if plan is None:
            return None
        for task in united.changed_tasks(plan):
            raise DataError(
                f"{files.path}: the rows of {task} differ from those of {parts[0].path}",
                NOT_ONE_RUN,
            )
        united = united.united(plan)
    return united
