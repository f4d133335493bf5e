"""What a benchmark has no results of, and why: planned and not done, or in the paper alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from resvm_cli.benchmark.paper_tasks import OWN
from resvm_cli.benchmark.results import (
    LIBLINEAR,
    BenchmarkFiles,
    MissingData,
    Plan,
)
from resvm_cli.benchmark.tables import PublishedTable, data_set_of

Level: TypeAlias = tuple[float, float] | None
Done: TypeAlias = Mapping[tuple[str, str, str, Level], int]
EVERY = "all"


@dataclass(frozen=True)
class Gap:
    """Cells that the report has no results of, and why; ``all`` stands for every name."""

    setting: str
    task: str
    method: str
    n_done: int
    n_planned: int | None
    reason: str


def gaps(files: BenchmarkFiles, published: PublishedTable) -> tuple[Gap, ...]:
    """What was planned and is not there, then what the paper has and the run had not planned."""
    plan = files.plan
    done = Counter(
        (one.setting, one.task, one.method, one.level if one.setting == OWN else None)
        for one in files.results
    )
    lacking = {} if plan is None else {one.task: one for one in plan.missing}
    found: list[Gap] = []
    if plan is not None:
        for setting, task in plan.asked_for:
            if _lacking(lacking, task) is None:
                found += _unfinished(plan, setting, task, done)
    if not all(setting == OWN for setting, *_ in done):
        found += _of_paper(plan, lacking, done, published)
    elif lacking:
        found += [Gap(OWN, task, EVERY, 0, None, _reason(data)) for task, data in lacking.items()]
    return tuple(_merged(found))


def _lacking(lacking: Mapping[str, MissingData], task: str) -> MissingData | None:
    """The data that a task wants, by its own name or that of its data set."""
    return lacking.get(task) or lacking.get(data_set_of(task))


def _reason(data: MissingData) -> str:
    reason = f"the file {data.file} was not there" if data.file else "its data was not there"
    if "://" in data.fetch:
        return f"{reason}; it can be fetched from {data.fetch}"
    return f"{reason}; {data.fetch}" if data.fetch else reason


def _unfinished(plan: Plan, setting: str, task: str, done: Done) -> Iterable[Gap]:
    """Methods with fewer repetitions than planned; one line where they are all as far."""
    wanted = plan.n_repetitions(setting, task)
    levels: list[Level] = [None]
    if setting == OWN:
        own = {level for name, of, _, level in done if (name, of) == (OWN, task) and level}
        levels = [*sorted(own)] or [(0.0, 0.0)]
    # cwsvm-published is linear, as mnist alone is
    methods = [m for m in plan.methods if m != LIBLINEAR or data_set_of(task) == "mnist"]
    for level in levels:
        counts = {method: done.get((setting, task, method, level), 0) for method in methods}
        name = task
        if level is not None and len(levels) > 1:
            name += f", P {100 * level[0]:g} %, U {100 * level[1]:g} %"
        short = {method: n for method, n in counts.items() if n < max(wanted, 1)}
        if len(short) == len(methods) and len(set(short.values())) == 1:
            short = {EVERY: next(iter(short.values()))}
        for method, n_done in short.items():
            reason = "not finished" if n_done else "nothing finished yet"
            yield Gap(setting, name, method, n_done, wanted or None, reason)


def _of_paper(
    plan: Plan | None, lacking: Mapping[str, MissingData], done: Done, published: PublishedTable
) -> Iterable[Gap]:
    """Cells of the paper's tables that have no result and were not to have one."""
    planned = set() if plan is None else {*plan.asked_for}
    present = {(setting, task) for setting, task, *_ in done}
    for setting, task in dict.fromkeys((setting, task) for setting, task, _ in published):
        data = _lacking(lacking, task)
        if (setting, task) in present or ((setting, task) in planned and data is None):
            continue
        reason = "not in this run" if data is None else _reason(data)
        yield Gap(setting, task, EVERY, 0, None, reason)


def _merged(found: list[Gap]) -> list[Gap]:
    """One line for what is missing in every setting for the same reason."""
    alike = Counter(replace(gap, setting=EVERY) for gap in found)
    n_settings = len({gap.setting for gap in found})
    merged = dict.fromkeys(
        replace(gap, setting=EVERY)
        if n_settings > 1 and alike[replace(gap, setting=EVERY)] == n_settings
        else gap
        for gap in found
    )
    return list(merged)
