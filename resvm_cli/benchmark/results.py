"""What a benchmark leaves in its directory, read strictly: plan, results, times.

A report made of a file that is not understood would be wrong without looking so: a line that is
damaged, cut off or contradicts another one is refused by its number.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from resvm_cli.benchmark.paper_tasks import OWN, PUBLISHED_CWSVM, SETTING_NAMES
from resvm_cli.errors import DataError, FileError
from resvm_cli.files.json_files import LARGEST, StrictRecord, is_whole, read_json, read_jsonl
from resvm_cli.files.run_directory import SETTINGS as RUN_SETTINGS

RESULTS = "results.jsonl"
PLAN = "run.json"
TIMES = "times.jsonl"
PLAN_FORMATS = (1,)

SETTINGS: tuple[str, ...] = SETTING_NAMES
SHORT = {"semi": "semi-supervised"}
METHODS = ("cwsvm", "bagging", "resvm")  # in the order of the paper's tables
LIBLINEAR = PUBLISHED_CWSVM
AREAS = ("pr_auc_trapezoid", "average_precision", "roc_auc")
CURVE_POINTS = 100  # of recall, at which the precision is kept


@dataclass(frozen=True)
class Result:
    """What one method reached on one cell: a task, a setting and a repetition."""

    line: int
    protocol: str
    setting: str
    task: str
    method: str
    repetition: int
    contamination_pos: float
    contamination_unl: float
    pr_auc_trapezoid: float
    average_precision: float
    roc_auc: float
    candidates: int | None
    parameters: Mapping[str, Any]
    curve: tuple[float, ...] | None  # precision at recall 0.01, 0.02 ... 1
    content: Mapping[str, Any] = field(default_factory=dict, repr=False)  # the line itself

    @property
    def cell(self) -> tuple[Any, ...]:
        """What stands in a run once."""
        return self.setting, self.task, self.method, self.repetition, *self.level

    @property
    def level(self) -> tuple[float, float]:
        """The contaminations of P and U."""
        return self.contamination_pos, self.contamination_unl

    def agrees(self, other: Result) -> bool:
        """Whether the areas are the same."""
        return all(getattr(self, name) == getattr(other, name) for name in AREAS)

    def __str__(self) -> str:
        return f"{self.method} on {self.task}, {self.setting}, repetition {self.repetition}"


@dataclass(frozen=True)
class MissingData:
    """A task whose file was not there, and where it is to be had."""

    task: str
    file: str
    fetch: str


@dataclass(frozen=True)
class Plan:
    """What a run set out to do."""

    protocol: str
    seed: int | None = None
    command: str = ""
    tasks: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    repetitions: Any = None
    missing: tuple[MissingData, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def asked_for(self) -> list[tuple[str, str]]:
        """Settings and tasks that go together; of a resumed run not all of both do."""
        return [
            (setting, task)
            for setting in self.settings
            for task in self.tasks
            if not isinstance(self.repetitions, dict) or self.n_repetitions(setting, task)
        ]

    def n_repetitions(self, setting: str, task: str) -> int:
        """How often a cell was to be repeated; 0 where the plan does not say.

        One number for all, or by task, by setting, or by one within the other.
        """
        value = self.repetitions
        for _ in range(2):
            if isinstance(value, dict):
                spelled = [setting, *(short for short, long in SHORT.items() if long == setting)]
                names = [f"{one}/{task}" for one in spelled] + [f"{task}/{one}" for one in spelled]
                value = next((value[n] for n in [*names, task, *spelled] if n in value), 0)
        return value if is_whole(value) else 0


@dataclass(frozen=True)
class Times:
    """How long one method took over one cell."""

    setting: str
    task: str
    method: str
    repetition: int
    contamination_pos: float
    contamination_unl: float
    seconds: float
    cpu_seconds: float
    cpu_seconds_test: float | None  # of them, for judging the test rows; None where not known
    content: Mapping[str, Any] = field(default_factory=dict, repr=False)  # the line itself

    @property
    def cell(self) -> tuple[object, ...]:
        """What was timed."""
        level = self.contamination_pos, self.contamination_unl
        return self.setting, self.task, self.method, self.repetition, *level


@dataclass(frozen=True)
class BenchmarkFiles:
    """All that a benchmark's directory holds; no plan and no times where there is no file."""

    path: str
    results: tuple[Result, ...]
    plan: Plan | None
    times: tuple[Times, ...]
    # what all lines of a directory have in common: protocol, seed, grids
    settings: Mapping[str, Any] | None = None


def read_benchmark(directory: str) -> BenchmarkFiles:
    """Read a directory that ``resvm benchmark run`` wrote, or refuse it."""
    if not os.path.isdir(directory):
        reason = (
            "is not a directory" if os.path.lexists(directory) else "there is no such directory"
        )
        raise FileError(f"{directory}: {reason}", "give the DIR of resvm benchmark run -o DIR")
    path = os.path.join(directory, RESULTS)
    if not os.path.lexists(path):
        raise FileError(
            f"{directory}: there is no {RESULTS}", "give the DIR of resvm benchmark run -o DIR"
        )
    plan_path = os.path.join(directory, PLAN)
    plan = None
    if os.path.lexists(plan_path):
        plan = plan_of(read_json(plan_path, may_wait=False), plan_path)
    results = _results(path, plan)
    times_path = os.path.join(directory, TIMES)
    times = _times(times_path) if os.path.lexists(times_path) else ()
    settings_path = os.path.join(directory, RUN_SETTINGS)
    settings = None
    if os.path.lexists(settings_path):
        settings = read_json(settings_path, may_wait=False)
    return BenchmarkFiles(directory, results, plan, times, settings)


def _setting_of(record: StrictRecord) -> str:
    return _setting(record.text("setting", (*SETTINGS, *SHORT, OWN)))


def _setting(name: str) -> str:
    return SHORT.get(name, name)


def is_result(record: Any) -> bool:
    """Whether this is what a line of results holds."""
    return _is_sound(record, lambda found: _result(0, found))


def is_times(record: Any) -> bool:
    """Whether this is what a line of times holds."""
    return _is_sound(record, _times_of)


def is_plan(content: dict[str, Any]) -> bool:
    """Whether this is a plan that a run may go on with."""
    return _is_sound(content, _require_plan)


def _is_sound(record: Any, read: Callable[[StrictRecord], object]) -> bool:
    if not isinstance(record, dict):
        return False
    try:
        read(StrictRecord("", record))
    except DataError:
        return False
    return True


def _require_plan(record: StrictRecord) -> None:
    for name in ("tasks", "settings", "methods"):
        record.names(name)
    if not all(map(is_whole, record.mapping("repetitions").values())):
        raise record.refused("repetitions", "whole numbers")
    lists: tuple[tuple[str, Any, str], ...] = (
        ("data", list(record.mapping("data").values()), "digest"),
        ("missing", record.content.get("missing", []), "task"),
    )
    for name, entries, part in lists:
        whole = isinstance(entries, list) and all(isinstance(one, dict) for one in entries)
        if not whole or not all(isinstance(one.get(part), str) for one in entries):
            raise record.refused(name, f"JSON objects with a {part}")
    if not isinstance(record.content.get("command", ""), str):
        raise record.refused("command", "a text")


def _results(path: str, plan: Plan | None) -> tuple[Result, ...]:
    found: dict[tuple[Any, ...], Result] = {}
    levels: dict[tuple[str, str], Result] = {}
    protocol = None if plan is None else plan.protocol
    for number, record in read_jsonl(path):
        result = _result(number, record)
        if protocol is None:
            protocol = result.protocol
        if result.protocol != protocol:
            raise DataError(
                f"{path}:{number}: a result of protocol {result.protocol} in a run of {protocol}",
                "protocols are kept in directories of their own",
            )
        before = found.setdefault(result.cell, result)
        if not before.agrees(result):
            raise DataError(
                f"{path}:{number}: {result}, has other figures than on line {before.line}",
                "was the directory written by two runs? Make it anew",
            )
        first = levels.setdefault((result.setting, result.task), result)
        if result.setting != OWN and result.level != first.level:
            raise DataError(
                f"{path}:{number}: {result.task}, {result.setting}, is contaminated by other shares"
                f" than on line {first.line}",
                "was the directory written by two runs? Make it anew",
            )
    return tuple(found.values())


def _result(number: int, record: StrictRecord) -> Result:
    areas = {name: record.number(name, 0, 1) for name in AREAS}
    return Result(
        line=number,
        protocol=record.text("protocol"),
        setting=_setting_of(record),
        task=record.text("task"),
        method=record.text("method", (*METHODS, LIBLINEAR)),
        repetition=record.whole("repetition"),
        contamination_pos=record.number("contamination_pos", 0, 1, 0.0),
        contamination_unl=record.number("contamination_unl", 0, 1, 0.0),
        candidates=record.whole("candidates") if record.content.get("candidates") else None,
        parameters=_parameters(record),
        curve=_curve(record),
        content=record.content,
        **areas,
    )


def _parameters(record: StrictRecord) -> dict[str, Any]:
    parameters = record.mapping("parameters")
    for value in parameters.values():
        if isinstance(value, int | float) and not abs(value) <= LARGEST:
            raise record.refused("parameters", "finite numbers")
    return parameters


def _curve(record: StrictRecord) -> tuple[float, ...] | None:
    written = record.content.get("curve")
    if written is None:
        return None
    expected = f"{CURVE_POINTS} precisions from 0 to 1"
    try:
        words = written.split() if isinstance(written, str) else written
        curve = tuple(float(word) for word in words)
    except (TypeError, ValueError, OverflowError):
        raise record.refused("curve", expected) from None
    if len(curve) != CURVE_POINTS or not all(0 <= value <= 1 for value in curve):
        raise record.refused("curve", expected)
    return curve


def _times(path: str) -> tuple[Times, ...]:
    times: dict[tuple[object, ...], Times] = {}
    for _, record in read_jsonl(path):
        one = _times_of(record)
        times[one.cell] = one  # a cell that a kill undid was timed again
    return tuple(times.values())


def _times_of(record: StrictRecord) -> Times:
    seconds = record.number("seconds", 0, math.inf)
    return Times(
        setting=_setting_of(record),
        task=record.text("task"),
        method=record.text("method", (*METHODS, LIBLINEAR)),
        repetition=record.whole("repetition"),
        contamination_pos=record.number("contamination_pos", 0, 1, 0.0),
        contamination_unl=record.number("contamination_unl", 0, 1, 0.0),
        seconds=seconds,
        # of works that shared a process only the time by the clock is known
        cpu_seconds=record.number("cpu_seconds", 0, math.inf, seconds),
        cpu_seconds_test=record.number("cpu_seconds_test", 0, math.inf)
        if "cpu_seconds_test" in record.content
        else None,
        content=record.content,
    )


def plan_of(content: dict[str, Any], path: str) -> Plan:
    """What a run set out to do, as its file says."""
    record = StrictRecord(path, content)
    if content.get("format") not in PLAN_FORMATS or content["format"] is True:
        raise DataError(
            f"{path}: format {content.get('format')!r}, and this version reads"
            f" {' and '.join(map(str, PLAN_FORMATS))}",
            "use the version of resvm that wrote it, or a newer one",
        )
    missing = content.get("missing", [])
    if not isinstance(missing, list) or not all(isinstance(one, dict) for one in missing):
        raise record.refused("missing", "a list of JSON objects")
    settings = [_setting(name) for name in record.names("settings")]
    seed = content.get("seed")
    data = record.mapping("data")
    return Plan(
        protocol=record.text("protocol"),
        seed=seed if type(seed) is int else None,
        command=str(content.get("command", "")),
        tasks=record.names("tasks"),
        settings=tuple(settings),
        methods=record.names("methods"),
        repetitions=content.get("repetitions"),
        missing=tuple(
            MissingData(*(str(one.get(name, "")) for name in ("task", "file", "fetch")))
            for one in missing
        ),
        versions={str(name): str(value) for name, value in record.mapping("versions").items()},
        data={name: value for name, value in data.items() if isinstance(value, dict)},
    )
