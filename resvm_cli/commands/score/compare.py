"""Compare methods over repeated runs read from CSV, per data set and over all data sets."""

from __future__ import annotations

import math

import numpy as np

from resvm_cli.errors import DataError, ParameterError
from resvm_cli.files.delimited import fields_of, read_number
from resvm_cli.files.streams import name_of, text_lines, text_pieces
from resvm_cli.metrics import significance
from resvm_cli.metrics.ranking import FloatArray
from resvm_cli.metrics.significance import OverDataSets
from resvm_cli.records import dataclass

COLUMNS = ("data set", "repetition", "method", "value")
OTHER_NAMES = {"task": "dataset"}


def read_runs(path: str) -> dict[tuple[str, str, str], float]:
    """Return values by data set, repetition and method; columns may be in any order."""
    name = name_of(path)
    lines = text_lines(text_pieces(path), name)
    first = next(lines, None)
    if first is None:
        raise DataError(f"{name}: empty", f"expected columns: {', '.join(COLUMNS)}")
    separator = "\t" if "\t" in first[1] else ","
    named = fields_of(first[1], separator, f"{name}:1")
    header = [_plain(word) for word in named]
    missing = [column for column in COLUMNS if _plain(column) not in header]
    if missing:
        raise DataError(
            f"{name}:1: no column '{missing[0]}' among {', '.join(named)}",
            f"expected columns: {', '.join(COLUMNS)} (a column named task is used as data set)",
        )
    twice = [column for column in COLUMNS if header.count(_plain(column)) > 1]
    if twice:
        raise DataError(f"{name}:1: several columns match {twice[0]}", "keep one of them")
    positions = [header.index(_plain(column)) for column in COLUMNS]
    runs: dict[tuple[str, str, str], float] = {}
    line_of: dict[tuple[str, str, str], int] = {}
    for number, line in lines:
        fields = fields_of(line, separator, f"{name}:{number}")
        if not any(field.strip() for field in fields):
            continue
        try:
            data_set, repetition, method, written = (
                fields[position].strip() for position in positions
            )
            value = read_number(written)
        except (IndexError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise DataError(
                f"{name}:{number}: expected a data set, a repetition, a method and a number"
            )
        key = (data_set, repetition, method)
        if key in runs:
            raise DataError(
                f"{name}:{number}: {method} on {data_set}, repetition {repetition}, is also on line"
                f" {line_of[key]}"
            )
        runs[key], line_of[key] = value, number
    if not runs:
        raise DataError(f"{name}: no results below the header")
    return runs


def _plain(word: str) -> str:
    """Normalize a column name: Data set, data_set, dataset and task are all the same."""
    plain = word.strip().lower().replace(" ", "").replace("_", "").replace("-", "")
    return OTHER_NAMES.get(plain, plain)


@dataclass(frozen=True)
class DataSetResult:
    """One data set: means, wins, and p-values that the reference method is better."""

    name: str
    n_repetitions: int
    means: tuple[float, ...]
    wins: tuple[int, ...]
    # None for the reference itself, and if there is only one repetition
    p_reference_greater: tuple[float | None, ...]


@dataclass(frozen=True)
class CompareResult:
    """How the methods compare over all data sets."""

    path: str
    methods: tuple[str, ...]
    reference: str
    data_sets: tuple[DataSetResult, ...]
    overall: OverDataSets
    wins: tuple[int, ...]


def compare(path: str, reference: str | None = None) -> CompareResult:
    """Read the runs, pair them by repetition, and test for differences."""
    runs = read_runs(path)
    name = name_of(path)
    methods = tuple(dict.fromkeys(method for _, _, method in runs))
    if len(methods) < 2:
        raise DataError(f"{name}: {methods[0]} is the only method, so there is nothing to compare")
    if reference is not None and reference not in methods:
        raise ParameterError(
            "{reference} is '{given}' but the methods are {methods}",
            given=reference,
            methods=", ".join(methods),
        )
    tables = _tables(runs, methods, name)
    means = np.array([table.mean(axis=0) for table in tables.values()])
    overall = significance.over_data_sets(methods, means)
    if reference is None:
        reference = methods[int(np.argmin(overall.average_ranks))]
    column = methods.index(reference)
    data_sets = tuple(_data_set(name, table, column) for name, table in tables.items())
    wins = tuple(int(sum(column)) for column in zip(*(one.wins for one in data_sets), strict=True))
    return CompareResult(path, methods, reference, data_sets, overall, wins)


def _tables(
    runs: dict[tuple[str, str, str], float], methods: tuple[str, ...], name: str
) -> dict[str, FloatArray]:
    """Return a complete array of values (repetitions x methods) for each data set."""
    repetitions: dict[str, dict[str, None]] = {}
    for data_set, repetition, _ in runs:
        repetitions.setdefault(data_set, {})[repetition] = None
        for method in methods:
            if (data_set, repetition, method) not in runs:
                raise DataError(
                    f"{name}: no result of {method} on {data_set}, repetition {repetition}",
                    "runs are compared in pairs: every method needs every repetition",
                )
    return {
        data_set: np.array([[runs[data_set, one, method] for method in methods] for one in found])
        for data_set, found in repetitions.items()
    }


def _data_set(name: str, table: FloatArray, reference: int) -> DataSetResult:
    p_values = [
        significance.wilcoxon_p(table[:, reference], values)
        if column != reference and len(table) > 1
        else None
        for column, values in enumerate(table.T)
    ]
    return DataSetResult(
        name,
        len(table),
        tuple(float(mean) for mean in table.mean(axis=0)),
        tuple(significance.wins(table)),
        tuple(p_values),
    )
