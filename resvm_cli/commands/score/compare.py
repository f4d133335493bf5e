"""Results of repeated runs to verdicts: per data set, and over all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from resvm_cli.commands.score.repeated_runs import Run, read_runs
from resvm_cli.errors import CommandLineError, DataError
from resvm_cli.files.streams import name_of
from resvm_cli.metrics import significance
from resvm_cli.metrics.ranking import FloatArray
from resvm_cli.metrics.significance import OverDataSets


@dataclass(frozen=True)
class DataSetResult:
    """One data set: the mean and wins of each method, and p that the reference is greater."""

    name: str
    n_repetitions: int
    means: tuple[float, ...]
    wins: tuple[int, ...]
    p_reference_greater: tuple[float | None, ...]  # None for the reference, and for single runs


@dataclass(frozen=True)
class CompareResult:
    """What repeated runs say."""

    path: str
    methods: tuple[str, ...]
    reference: str
    data_sets: tuple[DataSetResult, ...]
    overall: OverDataSets
    wins: tuple[int, ...]


def compare(path: str, reference: str | None = None) -> CompareResult:
    """Read the runs, pair them by repetition, and test."""
    runs = read_runs(path)
    name = name_of(path)
    methods = tuple(dict.fromkeys(run.method for run in runs))
    if len(methods) < 2:
        raise DataError(f"{name}: only the method {methods[0]}: there is nothing to compare")
    if reference is not None and reference not in methods:
        raise CommandLineError(
            f"--reference is '{reference}'; methods that are there: {', '.join(methods)}"
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


def _tables(runs: list[Run], methods: tuple[str, ...], name: str) -> dict[str, FloatArray]:
    """For each data set its values, repetitions x methods; every method in every repetition."""
    cells: dict[tuple[str, str, str], Run] = {}
    for run in runs:
        key = (run.data_set, run.repetition, run.method)
        if key in cells:
            raise DataError(
                f"{name}:{run.line}: {run.method} on {run.data_set}, repetition {run.repetition},"
                f" is already on line {cells[key].line}"
            )
        cells[key] = run
    tables = {}
    for data_set in dict.fromkeys(run.data_set for run in runs):
        repetitions = dict.fromkeys(run.repetition for run in runs if run.data_set == data_set)
        for repetition in repetitions:
            for method in methods:
                if (data_set, repetition, method) not in cells:
                    raise DataError(
                        f"{name}: no result of {method} on {data_set}, repetition {repetition}",
                        "runs are compared in pairs: every method needs every repetition",
                    )
        tables[data_set] = np.array(
            [[cells[data_set, rep, method].value for method in methods] for rep in repetitions]
        )
    return tables


def _data_set(name: str, table: FloatArray, reference: int) -> DataSetResult:
    p_values: list[float | None] = []
    for column in range(table.shape[1]):
        if column == reference or len(table) < 2:
            p_values.append(None)
        else:
            p_values.append(significance.wilcoxon_greater(table[:, reference], table[:, column]))
    return DataSetResult(
        name,
        len(table),
        tuple(float(mean) for mean in table.mean(axis=0)),
        tuple(significance.wins(table)),
        tuple(p_values),
    )
