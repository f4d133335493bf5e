"""Read a benchmark's results, times and plan strictly, and the paper's published tables.

A report on a misread file would be wrong without looking wrong. Therefore, a line that is damaged
or truncated, or that contradicts another line, is an error; the message gives its line number.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, field
from typing import Any, TypeAlias, TypeVar

from resvm_cli.benchmark.data import METHODS, OWN, PAPER_TASKS, SETTINGS, Cell
from resvm_cli.errors import DataError, FileError, Message
from resvm_cli.files.fields import fields_of
from resvm_cli.files.json_files import SETTINGS as SETTINGS_FILE
from resvm_cli.files.json_files import parse_object, read_json
from resvm_cli.files.streams import comes_at_once, package_text, read_pieces
from resvm_cli.records import dataclass

RESULTS = "results.jsonl"
PLAN = "run.json"
TIMES = "times.jsonl"
PLAN_FORMAT = 1
AREAS = ("pr_auc_trapezoid", "average_precision", "roc_auc")
CURVE_POINTS = 100  # number of recall levels at which the precision is stored
RUN_DIRECTORY = Message("give a directory written by resvm benchmark run {output:DIR}")
PARAMETERS = ("n_pos", "unl_per_pos", "w_pos")  # of resvm, as published
TWO_RUNS = "was the directory written by two runs? Run the benchmark again in a new one"
LARGEST = sys.float_info.max
MAX_COUNT = 2**31
DELETE_LINE = Message("delete the line and repeat the run with {resume:True}")
RESUME = Message("repeat the run with {resume:True}: it removes such lines and recomputes them")
# by setting and task, then by parameter
PublishedParameters: TypeAlias = Mapping[tuple[str, str], Mapping[str, float]]


def read_jsonl(path: str) -> Iterator[tuple[int, StrictRecord]]:
    """Yield the objects in a JSON lines file, with their line numbers."""
    if not comes_at_once(path):
        raise FileError(f"{path}: not a regular file", "expected the directory of a run")
    lines = b"".join(read_pieces(path)).split(b"\n")
    for number, line in enumerate(lines[:-1], 1):
        where = f"{path}:{number}"
        try:
            content = parse_object(line)
        except ValueError as error:
            raise DataError(f"{where}: the line is damaged: {error}", RESUME) from None
        yield number, StrictRecord(where, content)
    if lines[-1]:
        raise DataError(f"{path}:{len(lines)}: the line is truncated", RESUME)


def is_whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < MAX_COUNT


class StrictRecord:
    """A JSON object whose fields are read by name and checked for type and range."""

    def __init__(self, where: str, content: dict[str, Any]) -> None:
        self.where = where
        self.content = content

    def refused(self, name: str, expected: str) -> DataError:
        if name not in self.content:
            return DataError(f"{self.where}: no {name}; expected {expected}", DELETE_LINE)
        given = json.dumps(self.content[name])
        given = given if len(given) < 60 else f"{given[:57]}..."
        return DataError(f"{self.where}: {name} is {given}; expected {expected}", DELETE_LINE)

    def text(self, name: str, among: tuple[str, ...] = ()) -> str:
        value = self.content.get(name)
        if not isinstance(value, str) or not value or (among and value not in among):
            raise self.refused(name, f"one of {', '.join(among)}" if among else "a name")
        return value

    def number(self, name: str, low: float, high: float, default: float | None = None) -> float:
        value: Any = self.content.get(name, default)
        if type(value) not in (int, float) or not low <= value <= min(high, LARGEST):
            bounds = f"from {low:g} to {high:g}" if math.isfinite(high) else f"of at least {low:g}"
            raise self.refused(name, f"a number {bounds}")
        return float(value)

    def whole(self, name: str) -> int:
        value: Any = self.content.get(name)
        if not is_whole(value):
            raise self.refused(name, "a non-negative integer")
        return int(value)

    def names(self, name: str) -> tuple[str, ...]:
        value = self.content.get(name, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.refused(name, "a list of names")
        return tuple(value)

    def mapping(self, name: str) -> dict[str, Any]:
        value = self.content.get(name, {})
        if not isinstance(value, dict):
            raise self.refused(name, "a JSON object")
        return value


@dataclass(frozen=True)
class CellResult:
    """The result of one method on one cell."""

    line: int
    protocol: str
    cell: Cell
    pr_auc_trapezoid: float
    average_precision: float
    roc_auc: float
    parameters: Mapping[str, Any]
    curve: tuple[float, ...] | None  # precision at recall 0.01, 0.02 ... 1
    content: Mapping[str, Any] = field(repr=False)  # the line itself

    @classmethod
    def from_record(cls, record: StrictRecord, line: int = 0) -> CellResult:
        """Parse and check a line of results.jsonl; ``candidates`` is checked but not stored."""
        if record.content.get("candidates"):
            record.whole("candidates")
        return cls(
            line=line,
            protocol=record.text("protocol"),
            cell=_cell(record),
            parameters=_parameters(record),
            curve=_curve(record),
            content=record.content,
            **{name: record.number(name, 0, 1) for name in AREAS},
        )

    def agrees(self, other: CellResult) -> bool:
        return all(getattr(self, name) == getattr(other, name) for name in AREAS)


@dataclass(frozen=True)
class CellTime:
    """The time one method took on one cell."""

    cell: Cell
    seconds: float
    cpu_seconds: float
    cpu_seconds_test: float | None  # the part spent scoring test rows; None if unknown
    content: Mapping[str, Any] = field(repr=False)  # the line itself

    @classmethod
    def from_record(cls, record: StrictRecord) -> CellTime:
        """Parse and check a line of times.jsonl."""
        seconds = record.number("seconds", 0, math.inf)
        # if cells shared a process, CPU time is unknown: use the elapsed time
        cpu_seconds = record.number("cpu_seconds", 0, math.inf, seconds)
        test = None
        if "cpu_seconds_test" in record.content:
            test = record.number("cpu_seconds_test", 0, math.inf)
        return cls(_cell(record), seconds, cpu_seconds, test, record.content)


Line = TypeVar("Line", CellResult, CellTime)


def _cell(record: StrictRecord) -> Cell:
    return Cell(
        setting=record.text("setting", (*SETTINGS, OWN)),
        task=record.text("task"),
        repetition=record.whole("repetition"),
        contamination_pos=record.number("contamination_pos", 0, 1, 0.0),
        contamination_unl=record.number("contamination_unl", 0, 1, 0.0),
        method=record.text("method", METHODS),
    )


def _parameters(record: StrictRecord) -> dict[str, Any]:
    parameters = record.mapping("parameters")
    for value in parameters.values():
        if isinstance(value, int | float) and not abs(value) <= LARGEST:
            raise record.refused("parameters", "finite numbers")
    return parameters


def _curve(record: StrictRecord) -> tuple[float, ...] | None:
    values = record.content.get("curve")
    if values is None:
        return None
    whole = isinstance(values, list) and len(values) == CURVE_POINTS
    if not whole or not all(type(one) in (int, float) and 0 <= one <= 1 for one in values):
        raise record.refused("curve", f"{CURVE_POINTS} precisions from 0 to 1")
    return tuple(map(float, values))


def parsed(record: Any, kind: type[Line]) -> Line | None:
    """Return a line as a result or a time; None if it is not a valid one."""
    try:
        return kind.from_record(StrictRecord("", record)) if isinstance(record, dict) else None
    except DataError:
        return None


@dataclass(frozen=True)
class MissingTask:
    """A task whose data file was not found, and where to get it."""

    task: str
    file: str
    fetch: str


@dataclass(frozen=True)
class BenchmarkPlan:
    """What a run was asked to do, as recorded in run.json."""

    protocol: str
    seed: int | None = None
    command: str = ""
    tasks: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    repetitions: Mapping[str, int] = field(default_factory=dict)  # keyed by "task/setting"
    missing: tuple[MissingTask, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def from_file(cls, content: dict[str, Any], path: str) -> BenchmarkPlan:
        record = StrictRecord(path, content)
        if content.get("format") != PLAN_FORMAT or content["format"] is True:
            raise DataError(
                f"{path}: format {content.get('format')!r}, but this version reads {PLAN_FORMAT}",
                "use the version of resvm that wrote it, or a newer one",
            )
        repetitions = record.mapping("repetitions")
        if not all(map(is_whole, repetitions.values())):
            raise record.refused("repetitions", "whole numbers")
        data, missing = record.mapping("data"), content.get("missing", [])
        _require_text(record, "data", list(data.values()), "digest")
        _require_text(record, "missing", missing, "task")
        if not isinstance(content.get("command", ""), str):
            raise record.refused("command", "a text")
        seed = content.get("seed")
        return cls(
            protocol=record.text("protocol"),
            seed=seed if type(seed) is int else None,
            command=content.get("command", ""),
            tasks=record.names("tasks"),
            settings=record.names("settings"),
            methods=record.names("methods"),
            repetitions=repetitions,
            missing=tuple(
                MissingTask(*(str(one.get(name, "")) for name in ("task", "file", "fetch")))
                for one in missing
            ),
            versions={name: str(value) for name, value in record.mapping("versions").items()},
            data=data,
        )

    def content(self) -> dict[str, Any]:
        names = ("protocol", "seed", "tasks", "settings", "methods", "repetitions", "data")
        return {
            "format": PLAN_FORMAT,
            **{name: getattr(self, name) for name in names},
            "missing": [asdict(one) for one in self.missing],
            "command": self.command,
            "versions": self.versions,
        }

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The planned pairs of setting and task; resumed runs may leave out some combinations."""
        return [
            (setting, task)
            for setting in self.settings
            for task in self.tasks
            if self.n_repetitions(setting, task)
        ]

    def n_repetitions(self, setting: str, task: str) -> int:
        """Return the planned number of repetitions; 0 if the plan has no such cell."""
        return self.repetitions.get(f"{task}/{setting}", 0)

    def changed_tasks(self, later: BenchmarkPlan) -> list[str]:
        """Return the tasks whose rows differ in a later plan."""
        digests = [{task: of.get("digest") for task, of in p.data.items()} for p in (self, later)]
        return [
            task
            for task, digest in digests[0].items()
            if digest and digests[1].get(task, digest) not in (None, digest)
        ]

    def united(self, later: BenchmarkPlan) -> BenchmarkPlan:
        data = {**self.data, **later.data}
        repetitions = dict(self.repetitions)
        for name, count in later.repetitions.items():
            repetitions[name] = max(repetitions.get(name, 0), count)
        missing = {one.task: one for one in (*self.missing, *later.missing)}
        versions = dict(self.versions)
        for name, value in later.versions.items():
            known = versions.get(name, "").split(", ")
            versions[name] = ", ".join(_names(known, value.split(", ")))
        return BenchmarkPlan(
            protocol=later.protocol,
            seed=later.seed,
            command="\n".join(_names(self.command.split("\n"), later.command.split("\n"))),
            tasks=_names(self.tasks, later.tasks, PAPER_TASKS),
            settings=_names(self.settings, later.settings, SETTINGS),
            methods=_names(self.methods, later.methods, METHODS),
            repetitions=repetitions,
            missing=tuple(one for task, one in missing.items() if task not in data),
            versions=versions,
            data=data,
        )


def _require_text(record: StrictRecord, name: str, entries: Any, part: str) -> None:
    objects = isinstance(entries, list) and all(isinstance(one, dict) for one in entries)
    if not objects or not all(isinstance(one.get(part), str) for one in entries):
        raise record.refused(name, f"JSON objects with a {part}")


def _names(
    first: Iterable[str], second: Iterable[str], order: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the names in either plan, those in ``order`` first."""
    names = dict.fromkeys(name for name in (*first, *second) if name)
    usual = [name for name in order if name in names]
    return *usual, *(name for name in names if name not in usual)


@dataclass(frozen=True)
class BenchmarkFiles:
    """The content of a benchmark directory; plan and times may be missing."""

    path: str
    results: tuple[CellResult, ...]
    plan: BenchmarkPlan | None
    times: tuple[CellTime, ...]
    settings: Mapping[str, Any] | None = None  # shared by all lines: protocol, seed, grids


def read_benchmark(directory: str) -> BenchmarkFiles:
    """Read a directory that ``resvm benchmark run`` wrote."""
    if not os.path.isdir(directory):
        reason = "is not a directory" if os.path.lexists(directory) else "no such directory"
        raise FileError(f"{directory}: {reason}", RUN_DIRECTORY)
    paths = {
        name: path
        for name in (RESULTS, PLAN, TIMES, SETTINGS_FILE)
        if os.path.lexists(path := os.path.join(directory, name))
    }
    if RESULTS not in paths:
        raise FileError(f"{directory}: there is no {RESULTS}", RUN_DIRECTORY)
    plan = settings = None
    if PLAN in paths:
        plan = BenchmarkPlan.from_file(read_json(paths[PLAN], may_wait=False), paths[PLAN])
    results = _read_results(paths[RESULTS], plan)
    times: dict[Cell, CellTime] = {}
    if TIMES in paths:
        for _, record in read_jsonl(paths[TIMES]):
            time = CellTime.from_record(record)
            times[time.cell] = time  # a run that was killed may time a cell twice
    if SETTINGS_FILE in paths:
        settings = read_json(paths[SETTINGS_FILE], may_wait=False)
    return BenchmarkFiles(directory, results, plan, tuple(times.values()), settings)


def _read_results(path: str, plan: BenchmarkPlan | None) -> tuple[CellResult, ...]:
    found: dict[Cell, CellResult] = {}
    firsts: dict[tuple[str, str], CellResult] = {}
    protocol = None if plan is None else plan.protocol
    for number, record in read_jsonl(path):
        result = CellResult.from_record(record, number)
        cell, where = result.cell, f"{path}:{number}"
        if protocol is None:
            protocol = result.protocol
        if result.protocol != protocol:
            raise DataError(
                f"{where}: the protocol is {result.protocol}, but the run uses {protocol}",
                "use a separate directory for each protocol",
            )
        before = found.setdefault(cell, result)
        if not before.agrees(result):
            raise DataError(
                f"{where}: the areas of {cell} differ from those in line {before.line}", TWO_RUNS
            )
        first = firsts.setdefault((cell.setting, cell.task), result)
        if cell.setting != OWN and cell.contamination != first.cell.contamination:
            raise DataError(
                f"{where}: the contamination of {cell.task}, {cell.setting}, differs from that in"
                f" line {first.line}",
                TWO_RUNS,
            )
    return tuple(found.values())


@dataclass(frozen=True)
class PublishedResult:
    """A cell of the paper's tables: interval of the PR AUC in percent, and wins out of 20."""

    setting: str
    task: str
    method: str
    low: float
    high: float
    wins: int
    p_below: float | None  # resvm over bagging, one-sided; None if not significant

    @property
    def middle(self) -> float:
        """The midpoint of the interval, which is the mean over repetitions."""
        return (self.low + self.high) / 2

    @property
    def width(self) -> float:
        return self.high - self.low


def read_published() -> dict[tuple[str, str, str], PublishedResult]:
    """Read the paper's PR AUCs by setting, task and method, in the order of its tables."""
    return {
        (setting, task, method): PublishedResult(
            setting, task, method, float(low), float(high), int(wins), float(p) if p else None
        )
        for setting, task, method, low, high, wins, p in _published_rows("published.csv")
    }


def read_published_parameters() -> PublishedParameters:
    """Read the paper's medians of resvm's tuned parameters on each mnist digit."""
    return {
        (setting, task): dict(zip(PARAMETERS, map(float, values), strict=True))
        for setting, task, *values in _published_rows("published_parameters.csv")
    }


def _published_rows(name: str) -> Iterator[list[str]]:
    lines = package_text(f"benchmark/{name}").splitlines()
    for number, line in enumerate(lines[1:], 2):
        yield fields_of(line, ",", f"{name}:{number}")
