"""Read the results and times of a run, and the paper's published tables.

A run is the directory that the run command writes, or a file of its results alone. Lines that
contradict one another are an error, because a report on them would be wrong without looking wrong.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, TypeAlias

from experiments.paper.data import METHODS, OWN, SETTINGS, Cell
from resvm_cli.data.json_files import parse_object
from resvm_cli.errors import DataError, FileError
from resvm_cli.records import dataclass

RESULTS, TIMES, RECORD = "results.jsonl", "times.jsonl", "run.json"
AREAS = ("pr_auc_trapezoid", "average_precision", "roc_auc")
CURVE_POINTS = 100  # number of recall levels at which the precision is stored
PARAMETERS = ("n_pos", "unl_per_pos", "w_pos")  # of resvm, as published
# by setting and task, then by parameter
PublishedParameters: TypeAlias = Mapping[tuple[str, str], Mapping[str, float]]


def cell_of(record: Mapping[str, Any]) -> Cell:
    """Return the cell of a line of results or times; raise ValueError if it has none."""
    cell = Cell(
        record["setting"], record["task"], record["repetition"],
        float(record.get("contamination_pos", 0)), float(record.get("contamination_unl", 0)),
        record["method"],
    )  # fmt: skip
    if cell.setting not in (*SETTINGS, OWN) or cell.method not in METHODS:
        raise ValueError(f"unknown setting {cell.setting!r} or method {cell.method!r}")
    return cell


@dataclass(frozen=True)
class CellResult:
    """The result of one method on one cell."""

    protocol: str
    cell: Cell
    pr_auc_trapezoid: float
    average_precision: float
    roc_auc: float
    parameters: Mapping[str, Any]
    curve: tuple[float, ...] | None  # precision at recall 0.01, 0.02 ... 1

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> CellResult:
        areas = [record[name] for name in AREAS]
        if not all(isinstance(area, int | float) and 0 <= area <= 1 for area in areas):
            raise ValueError(f"areas must be numbers from 0 to 1, got {areas}")
        curve = record.get("curve")
        if curve is not None and len(curve) != CURVE_POINTS:
            raise ValueError(f"a curve must have {CURVE_POINTS} values, got {len(curve)}")
        return cls(
            record["protocol"],
            cell_of(record),
            **dict(zip(AREAS, areas, strict=True)),
            parameters=record.get("parameters", {}),
            curve=None if curve is None else tuple(curve),
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

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> CellTime:
        # if cells shared a process, CPU time is unknown: use the elapsed time
        cpu_seconds = record.get("cpu_seconds", record["seconds"])
        return cls(cell_of(record), record["seconds"], cpu_seconds, record.get("cpu_seconds_test"))


@dataclass(frozen=True)
class StoredRun:
    """The content of a run; times and the record of what was run may be missing."""

    path: str
    protocol: str
    results: tuple[CellResult, ...]
    times: tuple[CellTime, ...] = ()
    record: Mapping[str, Any] = field(default_factory=dict)


def read_run(path: str) -> StoredRun:
    """Read a directory that the run command wrote, or a file of results."""
    if os.path.isfile(path):
        results = _read_results(path)
        return StoredRun(path, results[0].protocol, results)
    results = _read_results(os.path.join(path, RESULTS))
    times: dict[Cell, CellTime] = {}
    file = os.path.join(path, TIMES)
    for where, record in _records(file) if os.path.exists(file) else ():
        try:
            time = CellTime.from_record(record)
        except (KeyError, ValueError) as error:
            raise DataError(f"{where}: {error}") from None
        times[time.cell] = time  # a run that was killed may time a cell twice
    record_file = Path(path, RECORD)
    record = json.loads(record_file.read_text()) if record_file.exists() else {}
    return StoredRun(path, results[0].protocol, results, tuple(times.values()), record)


def _records(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects in a file of JSON lines, each with its place."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}", "give a run's directory or results") from None
    for number, line in enumerate(lines, 1):
        try:
            yield f"{path}:{number}", parse_object(line)
        except ValueError as error:
            raise DataError(f"{path}:{number}: the line is damaged: {error}") from None


def _read_results(path: str) -> tuple[CellResult, ...]:
    found: dict[Cell, CellResult] = {}
    protocols: set[str] = set()
    for where, record in _records(path):
        try:
            result = CellResult.from_record(record)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{where}: not a result: {error}") from None
        protocols.add(result.protocol)
        if len(protocols) > 1:
            raise DataError(f"{where}: results of two protocols: {', '.join(sorted(protocols))}")
        if not found.setdefault(result.cell, result).agrees(result):
            raise DataError(f"{where}: an earlier line has other areas for {result.cell}")
    if not found:
        raise DataError(f"{path}: no results yet", "wait for the first cell to finish")
    return tuple(found.values())


@dataclass(frozen=True)
class PublishedResult:
    """A cell of the paper's tables: interval of the PR AUC in percent, and wins out of 20."""

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
            float(low), float(high), int(wins), float(p) if p else None
        )
        for setting, task, method, low, high, wins, p in _published_rows("published.csv")
    }


def read_published_parameters() -> PublishedParameters:
    """Read the paper's medians of resvm's tuned parameters on each mnist digit."""
    return {
        (setting, task): dict(zip(PARAMETERS, map(float, values), strict=True))
        for setting, task, *values in _published_rows("published_parameters.csv")
    }


def _published_rows(name: str) -> list[list[str]]:
    with open(Path(__file__).with_name(name), newline="") as file:
        return list(csv.reader(file))[1:]
