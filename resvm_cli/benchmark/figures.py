"""What the paper's four figures show, as numbers: computed, drawn again, or read from runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from resvm_cli.benchmark.cells import Bench, Tested, Work, tested
from resvm_cli.benchmark.data import BenchmarkData, missing_files
from resvm_cli.benchmark.draws import Cell
from resvm_cli.benchmark.own_data import LevelRow, own_data
from resvm_cli.benchmark.paper_tasks import OWN, PAPER_TASKS, SETTING_NAMES
from resvm_cli.benchmark.protocol import Protocol
from resvm_cli.benchmark.results import read_benchmark
from resvm_cli.benchmark.tables import Estimate
from resvm_cli.errors import CommandLineError, DataError
from resvm_cli.files.streams import same_source
from resvm_cli.metrics.curves import Points
from resvm_cli.model.drawing import negative_density, positive_density
from resvm_cli.rows import Rows
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.svm.solver_libraries import silenced

FigureName: TypeAlias = Literal["resampling", "densities", "curves", "contamination"]
FIGURE_NAMES: tuple[FigureName, ...] = get_args(FigureName)

# paper, section "Bootstrap resampling contaminated sets"
RESAMPLED_CONTAMINATION = 0.1
RESAMPLE_SIZES = (5, 10, 20, 50, 100, 200, 500, 1000)
TAIL = 0.025  # on either side of a 95 % interval
REACH = 7.0  # of the plane that densities are shown in, from the origin
GRID_POINTS = 141
AXES = ("contamination_unl", "contamination_pos")  # in the order of the paper's figure
EXAMPLE = (
    "resvm benchmark run --protocol search --tasks synthetic"
    " --contamination-pos 0.3 --contamination-unl 0:0.6:0.1 -o DIR makes one"
)


@dataclass(frozen=True)
class ResampleSize:
    """Contamination of bootstrap resamples of one size: its mean, and where 95 % of it lies."""

    size: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Resampling:
    """Contamination of bootstrap resamples by their size."""

    contamination: float  # of the set that is resampled
    sizes: tuple[ResampleSize, ...]


def resampling() -> Resampling:
    """Exact: the wrong rows of a resample are binomial, as each is drawn alike and put back."""
    share = RESAMPLED_CONTAMINATION
    return Resampling(share, tuple(_resample_size(size, share) for size in RESAMPLE_SIZES))


def _resample_size(size: int, share: float) -> ResampleSize:
    from scipy.special import bdtr

    below = bdtr(np.arange(size + 1), size, share)  # the chance of at most so many wrong rows
    low, high = np.searchsorted(below, [TAIL, 1 - TAIL])
    return ResampleSize(size, share, low / size, high / size)


@dataclass(frozen=True)
class DensityPanel:
    """One set in one setting: its density in the plane, and the rows of one draw."""

    setting: str
    name: Literal["P", "U"]
    contamination: float
    density: tuple[tuple[float, ...], ...]  # by the second coordinate, then by the first
    points: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Densities:
    """The synthetic problem in the paper's settings."""

    grid: tuple[float, ...]  # coordinates at which densities are known
    panels: tuple[DensityPanel, ...]


def densities(repetition: int = 0, seed: int = 0) -> Densities:
    """Densities that P and U are drawn from, and the rows that a benchmark draws."""
    _check(repetition, seed)
    task = PAPER_TASKS["synthetic"]
    data = BenchmarkData(".", {task.name: task}, None, seed)
    grid = np.linspace(-REACH, REACH, GRID_POINTS)
    radius = np.hypot(*np.meshgrid(grid, grid))
    positive, negative = positive_density(radius), negative_density(radius)
    panels = []
    for setting in SETTING_NAMES:
        of_pos, of_unl = task.contaminations(setting)
        drawn = data.draw(Cell(setting, task.name, repetition, of_pos, of_unl))
        p = (1 - of_pos) * positive + of_pos * negative
        u = of_unl * positive + (1 - of_unl) * negative
        panels += [
            DensityPanel(setting, "P", of_pos, _nested(p), _points(drawn.positives)),
            DensityPanel(setting, "U", of_unl, _nested(u), _points(drawn.unlabeled)),
        ]
    return Densities(tuple(grid.tolist()), tuple(panels))


def _nested(table: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in table.tolist())


def _points(rows: Rows) -> tuple[tuple[float, ...], ...]:
    dense = np.zeros((len(rows), 2))
    dense[rows.row_numbers, rows.indices - 1] = rows.values
    return _nested(dense)


@dataclass(frozen=True)
class CurvesRequest:
    """The repetition whose curves are drawn, and how its methods are tuned."""

    protocol: Protocol
    task: str = "synthetic"
    setting: str = "semi-supervised"
    repetition: int = 0
    data_dir: str = "."
    seed: int = 0


@dataclass(frozen=True)
class MethodCurve:
    """One method on the test rows: areas as in the results of a run, and points of its curves."""

    method: str
    pr_auc_trapezoid: float
    average_precision: float
    roc_auc: float
    recall: tuple[float, ...]
    precision: tuple[float, ...]
    fpr: tuple[float, ...]


@dataclass(frozen=True)
class Curves:
    """All methods of one repetition."""

    protocol: str
    task: str
    setting: str
    repetition: int
    prevalence: float  # of positives among the test rows
    curves: tuple[MethodCurve, ...]


def curves(request: CurvesRequest, run: Run) -> Curves:
    """The cell drawn, tuned, trained and tested once more, as a run does."""
    _check(request.repetition, request.seed)
    task = PAPER_TASKS[request.task]
    for absent in missing_files(request.data_dir, [task]):
        raise DataError(
            f"{absent.file} is not in {request.data_dir}",
            f"give --data-dir; the file can be fetched from {absent.address}",
        )
    data = BenchmarkData(request.data_dir, {task.name: task}, None, request.seed)
    shares = task.contaminations(request.setting)
    cell = Cell(request.setting, task.name, request.repetition, *shares)
    methods = request.protocol.methods_of(task.family)
    works = [Work(cell, method) for method in methods]
    bench = Bench(data, request.protocol, {task.name: task.family}, alone=False)
    results: list[Tested] = []
    with parallel.inner_threads_held(), silenced():
        tick = partial(_tell, run, results, len(works))
        tick()
        for result in run.map_shared(tested, bench, works, tick, lambda number: str(works[number])):
            results.append(result)
            tick()
    return Curves(
        request.protocol.name,
        task.name,
        request.setting,
        request.repetition,
        float(results[0].truth.mean()),
        tuple(_curve(method, result) for method, result in zip(methods, results, strict=True)),
    )


def _tell(run: Run, done: Sequence[Any], total: int) -> None:
    run.progress("methods", len(done), total)


def _curve(method: str, result: Tested) -> MethodCurve:
    points = Points.from_scores(result.truth, result.values).thinned()
    return MethodCurve(
        method,
        **result.areas(),
        recall=tuple(points.recall.tolist()),
        precision=tuple(points.precision.tolist()),
        fpr=tuple(points.fpr.tolist()),
    )


def _check(repetition: int, seed: int) -> None:
    for name, number in (("--repetition", repetition), ("--seed", seed)):
        if number < 0:
            raise CommandLineError(f"{name} is {number}; it must not be negative")


@dataclass(frozen=True)
class LevelMean:
    """The area under the PR curve at one contamination, in percent."""

    level: float
    area: Estimate


@dataclass(frozen=True)
class MethodLevels:
    """One method along a contamination."""

    method: str
    means: tuple[LevelMean, ...]


@dataclass(frozen=True)
class ContaminationPanel:
    """The effect of one contamination while the other is held."""

    axis: str
    held: float
    methods: tuple[MethodLevels, ...]


@dataclass(frozen=True)
class Contamination:
    """The effect of contamination in U and in P, as far as the runs have varied them."""

    task: str
    protocol: str
    panels: tuple[ContaminationPanel, ...]


def contamination(directories: Sequence[str]) -> Contamination:
    """From runs that varied one contamination each, or one run that varied both in turn."""
    if not directories:
        raise CommandLineError("contamination needs the DIR of a run, or of two", EXAMPLE)
    if len(directories) > len(AXES):
        raise CommandLineError(
            f"{len(directories)} directories were given; one or two were expected"
        )
    if len(directories) == 2 and same_source(*directories):
        raise CommandLineError(f"{directories[1]} is the first directory once more")
    panels: dict[str, ContaminationPanel] = {}
    kinds: set[tuple[str, str]] = set()
    for directory in directories:
        results = [one for one in read_benchmark(directory).results if one.setting == OWN]
        kinds |= {(one.task, one.protocol) for one in results}
        if len(kinds) > 1:
            listed = " and ".join(f"{task} by {protocol}" for task, protocol in sorted(kinds))
            raise DataError(
                f"{directory}: results of {listed} do not belong into one figure",
                "give runs of one task and one protocol",
            )
        found = [_panel(directory, axis, own.rows) for own in own_data(results) for axis in AXES]
        varied = [panel for panel in found if panel is not None]
        if not varied:
            raise DataError(f"{directory}: no contamination is varied there", EXAMPLE)
        for panel in varied:
            if panel.axis in panels:
                raise DataError(
                    f"{directory}: {panel.axis} is varied there as in {directories[0]}",
                    "give a run that varies contamination_unl, and one that varies"
                    " contamination_pos",
                )
            panels[panel.axis] = panel
    ((task, protocol),) = kinds
    return Contamination(task, protocol, tuple(panels[axis] for axis in AXES if axis in panels))


def _panel(directory: str, axis: str, rows: Sequence[LevelRow]) -> ContaminationPanel | None:
    """The rows along one contamination; None where it is not varied."""
    (other,) = (name for name in AXES if name != axis)
    lines = {
        held: [row for row in rows if getattr(row, other) == held]
        for held in sorted({getattr(row, other) for row in rows})
    }
    varied = {held: along for held, along in lines.items() if len(along) > 1}
    if len(varied) > 1:
        raise DataError(
            f"{directory}: {axis} is varied at several {other}",
            f"a figure holds one: run with a single --{other.replace('_', '-')}",
        )
    for held, along in varied.items():
        methods = dict.fromkeys(cell.method for row in along for cell in row.cells)
        return ContaminationPanel(
            axis,
            held,
            tuple(
                MethodLevels(
                    method,
                    tuple(
                        LevelMean(getattr(row, axis), cell.pr_auc_trapezoid)
                        for row in along
                        if (cell := row.cell(method)) is not None
                    ),
                )
                for method in methods
            ),
        )
    return None
