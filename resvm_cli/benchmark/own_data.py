"""A benchmark of the user's own data: what each method reaches, by contamination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from resvm_cli.benchmark.results import Result
from resvm_cli.benchmark.tables import (
    MethodCell,
    compared_methods,
    complete_areas,
    method_cells,
    p_greater,
)
from resvm_cli.metrics import significance

AREA = "average_precision"
BORNE_POINTS = 5.0


@dataclass(frozen=True)
class LevelRow:
    """All methods at one contamination; wins and tests are by average precision."""

    contamination_pos: float
    contamination_unl: float
    n_compared: int
    cells: tuple[MethodCell, ...]
    best: str | None
    p_resvm_over_bagging: float | None
    p_resvm_over_cwsvm: float | None

    def cell(self, method: str) -> MethodCell | None:
        """What a method reached, if it was there."""
        return next((cell for cell in self.cells if cell.method == method), None)


@dataclass(frozen=True)
class Borne:
    """The most contamination at which a method loses less than 5 points of average precision."""

    method: str
    axis: str
    other: float  # contamination of the other set
    level: float
    clean: float  # mean average precision in percent at the least contamination
    lost: float  # points at ``level``
    next_level: float | None  # None: it bears all that was tried
    next_lost: float | None


@dataclass(frozen=True)
class OwnData:
    """One data set of the user's, at every contamination tried."""

    task: str
    methods: tuple[str, ...]
    rows: tuple[LevelRow, ...]
    borne: tuple[Borne, ...]

    @property
    def means(self) -> dict[str, float]:
        """Average precision of each method over the contaminations that all have, best first."""
        rows = [row for row in self.rows if all(row.cell(method) for method in self.methods)]
        found = {}
        for method in self.methods if rows else ():
            cells = [cell for row in rows if (cell := row.cell(method))]
            found[method] = sum(cell.average_precision.mean for cell in cells) / len(cells)
        return dict(sorted(found.items(), key=lambda one: -one[1]))

    @property
    def axes(self) -> tuple[str, ...]:
        """The contaminations that were varied."""
        names = ("contamination_pos", "contamination_unl")
        return tuple(name for name in names if len({getattr(row, name) for row in self.rows}) > 1)


def own_data(results: Sequence[Result]) -> tuple[OwnData, ...]:
    """The tables of every data set of the user's."""
    found = []
    for task in dict.fromkeys(result.task for result in results):
        own = [result for result in results if result.task == task]
        methods = compared_methods(own)
        rows = tuple(
            _row(level, [result for result in own if result.level == level], methods)
            for level in sorted({result.level for result in own})
        )
        found.append(OwnData(task, methods, rows, _borne(rows, methods)))
    return tuple(found)


def _row(level: tuple[float, float], results: Sequence[Result], methods: Sequence[str]) -> LevelRow:
    table = complete_areas(results, methods, AREA)
    wins: dict[str, float] = {}
    best = None
    if len(table) and len(methods) > 1:
        wins = dict(zip(methods, significance.shared_wins(table), strict=True))
        best = methods[int(table.mean(axis=0).argmax())]
    return LevelRow(
        *level, len(table), tuple(method_cells(results, methods, wins)), best,
        p_greater(table, methods, "resvm", "bagging"), p_greater(table, methods, "resvm", "cwsvm"),
    )  # fmt: skip


def _borne(rows: Sequence[LevelRow], methods: Sequence[str]) -> tuple[Borne, ...]:
    """Each method along each axis: how far, level by level, before more than 5 points are lost."""
    found = []
    for axis, other in (
        ("contamination_pos", "contamination_unl"),
        ("contamination_unl", "contamination_pos"),
    ):
        for fixed in sorted({getattr(row, other) for row in rows}):
            along = [row for row in rows if getattr(row, other) == fixed]
            if len(along) < 2:
                continue
            for method in methods:
                means = [
                    (getattr(row, axis), cell.average_precision.mean)
                    for row in along
                    if (cell := row.cell(method))
                ]
                if not means:
                    continue
                level, clean = means[0]
                lost, beyond = 0.0, None
                for further, mean in means[1:]:
                    if mean < clean - BORNE_POINTS:
                        beyond = further, clean - mean
                        break
                    level, lost = further, clean - mean
                found.append(
                    Borne(method, axis, fixed, level, clean, lost, *(beyond or (None, None)))
                )
    return tuple(found)
