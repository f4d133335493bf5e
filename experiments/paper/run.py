"""Run the missing cells of an experiment and record their results.

Every line of results depends only on its cell. Therefore, cells can run in any order, and tasks or
repetitions can be added later.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from experiments.paper.cells import GRIDS, Bench, Protocol, measure
from experiments.paper.data import (
    METHODS,
    OWN,
    PAPER_TASKS,
    SETTINGS,
    BenchmarkData,
    Cell,
    missing_files,
)
from experiments.paper.results import RECORD, RESULTS, TIMES, cell_of
from resvm_cli import __version__
from resvm_cli import threads as parallel
from resvm_cli.data.atomic import whole_file
from resvm_cli.data.json_files import RunDirectory
from resvm_cli.errors import DataError, Interrupted, ParameterError
from resvm_cli.records import dataclass
from resvm_cli.run import Run
from resvm_cli.svm.libsvm import package_version, silenced


@dataclass(frozen=True)
class Experiment:
    """What to run, and where the results go."""

    output: str
    protocol: Protocol
    data_dir: str = "."
    tasks: tuple[str, ...] = tuple(PAPER_TASKS)
    settings: tuple[str, ...] = SETTINGS
    methods: tuple[str, ...] = METHODS
    repetitions: int = 20
    seed: int = 0
    contamination_pos: tuple[float, ...] = (0.0,)  # for the setting "own"
    contamination_unl: tuple[float, ...] = (0.0,)
    resume: bool = False
    command: str = ""

    @property
    def common(self) -> dict[str, Any]:
        """The settings shared by all lines in a directory; a resumed run must use the same ones."""
        content: dict[str, Any] = {"protocol": self.protocol.name, "seed": self.seed}
        if self.protocol.name == "paper":
            content["grids"] = GRIDS
        elif self.protocol.name == "search":
            content["trials"] = self.protocol.trials
        return content

    def cells(self, missing: Sequence[str] = ()) -> list[Cell]:
        """Return all cells in the order in which they are run and listed.

        A repetition is finished for all tasks before the next one starts, and small tasks come
        first, so that an interrupted run has useful results.
        """
        cells = [
            Cell(setting, name, repetition, *levels, method)
            for repetition in range(self.repetitions)
            for name in PAPER_TASKS
            if name in self.tasks and name not in missing
            for setting, levels in self._levels(name)
            for method in self.protocol.methods(PAPER_TASKS[name].family)
            if method in self.methods
        ]
        return sorted(cells, key=lambda cell: cell.order[:2])

    def _levels(self, task: str) -> list[tuple[str, tuple[float, float]]]:
        """Return the settings of a task, each with the contamination of P and U."""
        if OWN in self.settings:
            return [(OWN, pair) for pair in product(self.contamination_pos, self.contamination_unl)]
        chosen = [setting for setting in SETTINGS if setting in self.settings]
        return [(setting, PAPER_TASKS[task].contaminations(setting)) for setting in chosen]


def run_experiment(experiment: Experiment, run: Run) -> tuple[int, int]:
    """Run all missing cells; return the number of results, and how many of them are new."""
    directory = RunDirectory(
        experiment.output, RESULTS, experiment.common, resume=experiment.resume
    )
    missing = missing_files(experiment.data_dir, [PAPER_TASKS[name] for name in experiment.tasks])
    for one in missing:
        run.warn(
            f"{one.file} is not in {experiment.data_dir}: skipping {', '.join(one.tasks)};"
            f" download it from {one.address}"
        )
    cells = experiment.cells([task for one in missing for task in one.tasks])
    if not cells:
        raise DataError("there is nothing to run", "choose another --data-dir, tasks or methods")
    data = BenchmarkData(experiment.data_dir, experiment.seed)
    bench = Bench(data, experiment.protocol, alone=min(run.workers(), len(cells)) == 1)
    with parallel.one_blas_thread(), silenced(), directory.opened() as records:
        _record(directory, experiment, {cell.task for cell in cells}, data)
        lines = {cell_of(record): record for record in records}
        todo = [cell for cell in cells if cell not in lines]
        try:
            for cell, new in zip(todo, _measure(bench, todo, len(cells), run), strict=True):
                directory.append(TIMES, new["times"])
                directory.append(RESULTS, new["result"])
                lines[cell] = new["result"]
        except Interrupted:
            run.warn(f"{len(lines):,} results are kept; --resume continues")
            raise
        _sort(Path(experiment.output, RESULTS), lines)
    return len(lines), len(todo)


def _measure(bench: Bench, cells: list[Cell], total: int, run: Run) -> Iterator[dict[str, Any]]:
    """Yield the result of each cell, in order, as soon as it is ready."""
    done = total - len(cells)

    def tick() -> None:
        run.progress("cells", done, total)

    tick()
    for one in run.map_shared(measure, bench, cells, tick):
        done += 1
        tick()
        yield one


def _sort(path: Path, lines: dict[Cell, dict[str, Any]]) -> None:
    """Write the lines of results in the order of a single run, if they are not in it."""
    ordered = sorted(lines, key=lambda cell: cell.order)
    if ordered != list(lines):
        with whole_file(str(path)) as handle:
            for cell in ordered:
                handle.write(json.dumps(lines[cell]).encode() + b"\n")


def _record(
    directory: RunDirectory, experiment: Experiment, tasks: set[str], data: BenchmarkData
) -> None:
    """Record commands, versions and data; raise an error if a task had other rows before."""
    before = directory.read(RECORD) or {"commands": [], "data": {}}
    described = {task: data.description(task) for task in PAPER_TASKS if task in tasks}
    for task, one in described.items():
        if before["data"].get(task, one) != one:
            raise ParameterError(
                "{path}: was started with different rows of {task_name}",
                "use the same data, or start over with another {output}",
                path=experiment.output, task_name=task,
            )  # fmt: skip
    versions = {name: package_version(name) for name in ("libsvm", "liblinear")}
    content = {
        "commands": list(dict.fromkeys([*before["commands"], experiment.command])),
        "seed": experiment.seed,
        "versions": {"resvm": __version__, "numpy": np.__version__, **versions},
        "data": {**before["data"], **described},
    }
    directory.write(RECORD, content)
