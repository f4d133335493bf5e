"""The effect of contamination: performance at each level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.paper.data import OWN
from experiments.paper.results import CellResult, read_run
from experiments.paper.tables import (
    Estimate,
    MethodCell,
    MethodRow,
    compared_methods,
    method_cells,
    p_resvm_over,
    paired_areas,
    wins_of,
)
from resvm_cli.errors import DataError, ParameterError
from resvm_cli.records import dataclass

AXES = {"contamination_pos": "P", "contamination_unl": "U"}
PANELS = tuple(AXES)[::-1]  # in the order of the paper's figure
EXAMPLE = (
    "for example: python -m experiments.paper run --protocol search --tasks synthetic"
    " --contamination-pos 0.3 --contamination-unl 0:0.6:0.1 -o DIR"
)


@dataclass(frozen=True)
class LevelRow(MethodRow):
    """All methods at one contamination level; wins and tests use average precision."""

    contamination_pos: float
    contamination_unl: float
    n_compared: int
    cells: tuple[MethodCell, ...]
    best: str | None
    p_resvm_over_bagging: float | None
    p_resvm_over_cwsvm: float | None


@dataclass(frozen=True)
class OwnTable:
    """One task at every contamination level tried."""

    task: str
    methods: tuple[str, ...]
    rows: tuple[LevelRow, ...]


def other_axis(axis: str) -> str:
    return next(other for other in AXES if other != axis)


def rows_along(axis: str, rows: Sequence[LevelRow]) -> Iterator[tuple[float, list[LevelRow]]]:
    """Yield the rows that vary along one axis, for each fixed level of the other axis."""
    other = other_axis(axis)
    for fixed in sorted({getattr(row, other) for row in rows}):
        along = [row for row in rows if getattr(row, other) == fixed]
        if len(along) > 1:
            yield fixed, along


def points_along(
    axis: str, rows: Sequence[LevelRow], method: str, area: str = "average_precision"
) -> list[tuple[float, Estimate]]:
    """Return the levels where a method has results, each with the estimate of ``area``."""
    cells = [(getattr(row, axis), row.cell(method)) for row in rows]
    return [(level, getattr(cell, area)) for level, cell in cells if cell is not None]


def own_tables(results: Sequence[CellResult]) -> tuple[OwnTable, ...]:
    """Return one table per task, with a row for each level of contamination."""
    found = []
    for task in dict.fromkeys(one.cell.task for one in results):
        own = [one for one in results if one.cell.task == task]
        methods = compared_methods(own)
        rows = tuple(
            _level_row(level, [one for one in own if one.cell.contamination == level], methods)
            for level in sorted({one.cell.contamination for one in own})
        )
        found.append(OwnTable(task, methods, rows))
    return tuple(found)


def _level_row(
    level: tuple[float, float], results: Sequence[CellResult], methods: Sequence[str]
) -> LevelRow:
    table = paired_areas(results, methods, "average_precision")
    wins = wins_of(table, methods)
    best = methods[int(table.mean(axis=0).argmax())] if wins else None
    return LevelRow(
        *level, len(table), tuple(method_cells(results, methods, wins)), best,
        p_resvm_over(table, methods, "bagging"), p_resvm_over(table, methods, "cwsvm"),
    )  # fmt: skip


@dataclass(frozen=True)
class LevelMean:
    """Area under the PR curve at one contamination level, in percent."""

    level: float
    area: Estimate


@dataclass(frozen=True)
class MethodLevels:
    """One method at all levels of one contamination axis."""

    method: str
    means: tuple[LevelMean, ...]


@dataclass(frozen=True)
class ContaminationPanel:
    """The effect of contaminating one set while the other is held fixed."""

    axis: str
    held: float
    methods: tuple[MethodLevels, ...]


@dataclass(frozen=True)
class ContaminationFigure:
    """The effect of contaminating U and P, as far as the runs varied them."""

    task: str
    protocol: str
    panels: tuple[ContaminationPanel, ...]


def contamination_figure(directories: Sequence[str]) -> ContaminationFigure:
    """Return the figure for one run, or for two runs that each vary one contamination."""
    if not directories:
        raise ParameterError("contamination requires the directories of one or two runs", EXAMPLE)
    if len(directories) > len(AXES):
        raise ParameterError("contamination requires one or two directories, got {n}",
                             n=len(directories))  # fmt: skip
    panels: dict[str, ContaminationPanel] = {}
    kinds: set[tuple[str, str]] = set()
    for files in map(read_run, directories):
        directory = files.path
        results = [one for one in files.results if one.cell.setting == OWN]
        kinds |= {(one.cell.task, one.protocol) for one in results}
        if len(kinds) > 1:
            listed = " and ".join(f"{task} by {protocol}" for task, protocol in sorted(kinds))
            raise DataError(
                f"{directory}: one figure cannot show results of {listed}",
                "give runs with the same task and protocol",
            )
        tables = own_tables(results)
        found = [_panel(directory, axis, own.rows) for own in tables for axis in PANELS]
        varied = [panel for panel in found if panel is not None]
        if not varied:
            raise DataError(f"{directory}: contamination does not vary", EXAMPLE)
        for panel in varied:
            if panel.axis in panels:
                raise DataError(
                    f"{directory}: varies {panel.axis}, as does {directories[0]}",
                    "give a run that varies contamination_unl, and one that varies"
                    " contamination_pos",
                )
            panels[panel.axis] = panel
    ((task, protocol),) = kinds
    in_order = tuple(panels[axis] for axis in PANELS if axis in panels)
    return ContaminationFigure(task, protocol, in_order)


def _panel(directory: str, axis: str, rows: Sequence[LevelRow]) -> ContaminationPanel | None:
    """Return the panel for one contamination axis, or None if it was not varied."""
    varied = list(rows_along(axis, rows))
    if not varied:
        return None
    if len(varied) > 1:
        other = other_axis(axis)
        raise DataError(
            f"{directory}: varies {axis} at several levels of {other}",
            f"a figure shows only one: run with a single {other}",
        )
    ((held, along),) = varied
    methods = dict.fromkeys(cell.method for row in along for cell in row.cells)
    levels = []
    for method in methods:
        points = points_along(axis, along, method, "pr_auc_trapezoid")
        levels.append(MethodLevels(method, tuple(LevelMean(*point) for point in points)))
    return ContaminationPanel(axis, held, tuple(levels))
