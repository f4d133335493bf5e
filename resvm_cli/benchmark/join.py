"""Runs of one benchmark put together: cells of several directories as if one run had done them.

Every line depends on its own cell, the seed and the grids alone, so that directories of the same
settings are parts of one run, wherever they were filled. A cell that two of them have must be the
same in both: otherwise they are of other versions or other data, and no joint report would be true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from resvm_cli.benchmark.paper_tasks import PAPER_TASKS, SETTING_NAMES
from resvm_cli.benchmark.protocol import METHODS
from resvm_cli.benchmark.results import (
    PLAN,
    RESULTS,
    TIMES,
    BenchmarkFiles,
    Plan,
    Result,
    plan_of,
    read_benchmark,
)
from resvm_cli.errors import CommandLineError, DataError
from resvm_cli.files.run_directory import RunDirectory
from resvm_cli.files.streams import same_source

ADVICE = "they are not of one run: report each alone"


@dataclass(frozen=True)
class JoinResult:
    """What was put together, for the report."""

    path: str
    protocol: str
    n_directories: int
    n_results: int


def join(directories: Sequence[str], target: str) -> JoinResult:
    """Write the results of several directories as those of one, which can be resumed."""
    if target in ("", "-"):
        raise CommandLineError("-o needs the name of a directory")
    read = read_all(directories)
    first = read[0].settings
    for files in read:
        if files.settings is None:
            raise DataError(f"{files.path}: there is no settings.json", "is it a run's directory?")
        if files.settings != first:
            names = {*files.settings, *(first or {})}
            changed = sorted(n for n in names if files.settings.get(n) != (first or {}).get(n))
            raise DataError(
                f"{files.path}: was run with other settings than {read[0].path}:"
                f" {', '.join(changed)}",
                "join runs of the same protocol, seed and grids",
            )
    whole = joined(read)
    directory = RunDirectory(target, RESULTS, dict(first or {}), resume=False)
    with directory.opened():
        directory.rewrite(TIMES, [dict(one.content) for one in whole.times])
        if plan := _plan(read):
            directory.write(PLAN, plan)
        directory.rewrite(RESULTS, [dict(one.content) for one in whole.results])
    protocol = whole.results[0].protocol
    return JoinResult(target, protocol, len(read), len(whole.results))


def read_all(directories: Sequence[str]) -> list[BenchmarkFiles]:
    """Read directories that are to be used together; each must have results, and be there once."""
    for place, directory in enumerate(directories):
        for other in directories[:place]:
            if same_source(other, directory):
                which = "the first directory" if other == directories[0] else other
                raise CommandLineError(f"{directory} is {which} once more")
    read = [read_benchmark(directory) for directory in directories]
    for files in read:
        if not files.results:
            raise DataError(f"{files.path}: no results yet", "wait for the first cell to end")
    return read


def of_one_run(read: Sequence[BenchmarkFiles]) -> list[BenchmarkFiles]:
    """The same, with those joined that have the same settings."""
    groups: list[list[BenchmarkFiles]] = []
    for files in read:
        for group in groups:
            if files.settings is not None and files.settings == group[0].settings:
                group.append(files)
                break
        else:
            groups.append([files])
    return [joined(group) for group in groups]


def joined(read: Sequence[BenchmarkFiles]) -> BenchmarkFiles:
    """Directories of the same settings as one, in the order of a run that did all at once."""
    if len(read) == 1:
        return read[0]
    results: dict[tuple[Any, ...], tuple[str, Result]] = {}
    times: dict[tuple[Any, ...], Any] = {}
    for files in read:
        for result in files.results:
            path, before = results.setdefault(result.cell, (files.path, result))
            if not before.agrees(result):
                raise DataError(
                    f"{files.path}/{RESULTS}:{result.line}: {result}, has other figures than"
                    f" {path}/{RESULTS}:{before.line}",
                    ADVICE,
                )
        for one in files.times:
            times.setdefault(one.cell, one)
    ordered = sorted((result for _, result in results.values()), key=lambda r: place_of(r.content))
    timed = sorted(times.values(), key=lambda one: place_of(one.content))
    path = ", ".join(files.path for files in read)
    content = _plan(read)
    plan = None if content is None else plan_of(content, PLAN)
    return BenchmarkFiles(path, tuple(ordered), plan, tuple(timed), read[0].settings)


def _plan(read: Sequence[BenchmarkFiles]) -> dict[str, Any] | None:
    """What all of them set out to do; None where one does not say."""
    content: dict[str, Any] = {}
    for files in read:
        if files.plan is None:
            return None
        now = _content(files.plan)
        for task in other_rows(content, now):
            raise DataError(f"{files.path}: has other rows of {task} than {read[0].path}", ADVICE)
        content = united(content, now)
    return content


def _content(plan: Plan) -> dict[str, Any]:
    return {
        **{one.name: getattr(plan, one.name) for one in fields(plan)},
        "repetitions": {
            f"{task}/{setting}": plan.n_repetitions(setting, task)
            for setting, task in plan.asked_for
        },
        "missing": [asdict(one) for one in plan.missing],
    }


def other_rows(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The tasks whose rows are not the same in two plans."""
    digests = [
        {task: described.get("digest") for task, described in plan.get("data", {}).items()}
        for plan in (before, now)
    ]
    return [
        task
        for task, digest in digests[0].items()
        if digest and digests[1].get(task, digest) not in (None, digest)
    ]


def united(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What two plans ask for in all."""
    data = {**before.get("data", {}), **now["data"]}
    repetitions = dict(before.get("repetitions", {}))
    for name, count in now["repetitions"].items():
        repetitions[name] = max(repetitions.get(name, 0), count)
    missing = {entry["task"]: entry for entry in (*before.get("missing", ()), *now["missing"])}
    versions = {name: value.split(", ") for name, value in before.get("versions", {}).items()}
    for name, value in now["versions"].items():
        versions[name] = _names(versions.get(name), value.split(", "), ())
    return {
        "format": 1,
        "protocol": now["protocol"],
        "seed": now["seed"],
        "tasks": _names(before.get("tasks"), now["tasks"], PAPER_TASKS),
        "settings": _names(before.get("settings"), now["settings"], SETTING_NAMES),
        "methods": _names(before.get("methods"), now["methods"], METHODS),
        "repetitions": repetitions,
        "data": data,
        "missing": [entry for task, entry in missing.items() if task not in data],
        "command": "\n".join(
            _names(before.get("command", "").split("\n"), now["command"].split("\n"), ())
        ),
        "versions": {name: ", ".join(values) for name, values in versions.items()},
    }


def _names(before: Iterable[str] | None, now: Iterable[str], order: Iterable[str]) -> list[str]:
    """Names of both, in the usual order."""
    names = dict.fromkeys(name for name in (*(before or ()), *now) if name)
    usual = [name for name in order if name in names]
    return [*usual, *(name for name in names if name not in usual)]


def place_of(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Where a line belongs among all."""
    task, setting = record["task"], record["setting"]
    size, order = 0, 0
    if task in PAPER_TASKS:
        size, order = PAPER_TASKS[task].n_unl, list(PAPER_TASKS).index(task)
    return (
        record["repetition"],
        size,
        order,
        task,
        SETTING_NAMES.index(setting) if setting in SETTING_NAMES else 0,
        record.get("contamination_pos", 0.0),
        record.get("contamination_unl", 0.0),
        METHODS.index(record["method"]),
    )
