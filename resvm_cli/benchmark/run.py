"""Run the missing cells of a benchmark and record their results.

Every line of results depends only on its cell. Therefore, cells can run in any order and on any
number of machines, and tasks or repetitions can be added later.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import product
from math import inf
from typing import Any

import numpy as np

from resvm_cli import __version__
from resvm_cli.benchmark.cells import Bench, Protocol, TimeLeft, measure
from resvm_cli.benchmark.data import (
    METHODS,
    OWN,
    PAPER_TASKS,
    SETTINGS,
    BenchmarkData,
    Cell,
    MissingFile,
    OwnData,
    missing_files,
)
from resvm_cli.benchmark.results import (
    PLAN,
    RESULTS,
    TIMES,
    BenchmarkPlan,
    CellResult,
    CellTime,
    MissingTask,
    parsed,
)
from resvm_cli.errors import DataError, Interrupted, Message, ParameterError
from resvm_cli.files.json_files import RunDirectory, TaskFiles
from resvm_cli.parameter_types import Kind, Parameter
from resvm_cli.records import dataclass
from resvm_cli.running import parallel
from resvm_cli.running.run import Run, Share
from resvm_cli.svm.libsvm import package_version, silenced

MAX_REPETITIONS = 10_000


@dataclass(frozen=True)
class BenchmarkRequest:
    """What to run, and where the results go."""

    output: str
    protocol: Protocol
    data_dir: str = "."
    tasks: tuple[str, ...] = tuple(PAPER_TASKS)
    settings: tuple[str, ...] = SETTINGS
    methods: tuple[str, ...] = METHODS
    repetitions: int = 20
    seed: int = 0
    own: OwnData | None = None
    contamination_pos: tuple[float, ...] = (0.0,)  # for the user's data or the setting "own"
    contamination_unl: tuple[float, ...] = (0.0,)
    resume: bool = False
    share: Share | None = None  # None: all cells
    command: str = ""

    def check(self) -> None:
        """Reject invalid values before any file is read."""
        if self.output in ("", "-"):
            raise ParameterError("{output} must be a directory name")
        check_range(1, MAX_REPETITIONS, repetitions=self.repetitions)
        check_range(0, seed=self.seed)
        check_range(1, trials=self.protocol.trials)
        if self.own is not None:
            check_range(1, n_pos=self.own.n_pos, n_unl=self.own.n_unl)
        for of_pos, of_unl in product(self.contamination_pos, self.contamination_unl):
            check_range(0, 1, contamination_pos=of_pos, contamination_unl=of_unl)

    @property
    def common(self) -> dict[str, Any]:
        """The settings shared by all lines in a directory; a resumed run must use the same ones."""
        own = self.own
        content: dict[str, Any] = {
            "kind": "resvm-benchmark",
            "format": 1,
            "protocol": self.protocol.name,
            "seed": self.seed,
            "own": None,
        }
        if self.protocol.name == "paper":
            content["grids"] = dict(self.protocol.grids.content)
        elif self.protocol.name == "search":
            content["trials"] = self.protocol.trials
        if own is not None:
            sizes = {name: getattr(own, name) for name in ("positive_label", "n_pos", "n_unl")}
            content["own"] = {"task": own.name, **sizes, "groups": own.groups is not None}
        return content

    def cells(self, missing: Sequence[str] = ()) -> list[Cell]:
        """Return all cells in the order in which they are run and listed.

        A repetition is finished for all tasks before the next one starts, and small tasks come
        first, so that an interrupted run has useful results.
        """
        if self.own is not None:
            names = [self.own.name]
        else:
            names = [name for name in PAPER_TASKS if name in self.tasks and name not in missing]
        cells = [
            Cell(setting, name, repetition, *levels, method)
            for repetition in range(self.repetitions)
            for name in names
            for setting, levels in self._levels(name)
            for method in self.protocol.methods(name if self.own else PAPER_TASKS[name].family)
            if method in self.methods
        ]
        return sorted(cells, key=lambda cell: cell.order[:2])

    def _levels(self, task: str) -> list[tuple[str, tuple[float, float]]]:
        """Return the settings of a task, each with the contamination of P and U."""
        if self.own is not None or OWN in self.settings:
            return [(OWN, pair) for pair in product(self.contamination_pos, self.contamination_unl)]
        chosen = [setting for setting in SETTINGS if setting in self.settings]
        return [(setting, PAPER_TASKS[task].contaminations(setting)) for setting in chosen]


def check_range(low: float, high: float = inf, **numbers: float) -> None:
    for name, number in numbers.items():
        kind: Kind = "integer" if isinstance(number, int) else "number"
        Parameter(kind, None, "", low, high, name=name).convert(number)


@dataclass(frozen=True)
class BenchmarkResult:
    """Summary of a run."""

    path: str
    protocol: str
    n_results: int  # total number of lines
    n_run: int  # lines added by this run
    n_missing: int  # planned cells without a result
    missing_tasks: tuple[int, ...]  # array tasks that have not run yet
    missing_data: tuple[MissingFile, ...]
    seconds: float


def run_benchmark(request: BenchmarkRequest, run: Run) -> BenchmarkResult:
    """Run all missing cells, or one array task's share."""
    request.check()
    started = time.monotonic()
    if request.share is None:  # if the directory exists, fail before reading anything
        RunDirectory(request.output, RESULTS, {}, resume=request.resume)
    missing: tuple[MissingFile, ...] = ()
    if request.own is None:
        missing = missing_files(request.data_dir, [PAPER_TASKS[name] for name in request.tasks])
    for one in missing:
        run.notice(
            f"{one.file} is not in {request.data_dir}: skipping {', '.join(one.tasks)};"
            f" download it from {one.address}"
        )
    cells = request.cells([task for one in missing for task in one.tasks])
    if not cells:
        raise DataError(
            "there is nothing to run", Message("set {data_dir}, or choose other tasks or methods")
        )
    data = BenchmarkData(request.data_dir, request.own, request.seed)
    bench = Bench(data, request.protocol, alone=min(run.workers(), len(cells)) == 1)
    with parallel.inner_threads_held(), silenced():
        runner = _Runner(request, cells, bench, run)
        done = runner.run_all(missing) if request.share is None else runner.run_share(request.share)
    return BenchmarkResult(
        request.output, request.protocol.name, *done, missing, time.monotonic() - started
    )


class _Runner:
    """Runs cells and records their results."""

    def __init__(
        self, request: BenchmarkRequest, cells: list[Cell], bench: Bench, run: Run
    ) -> None:
        self._request = request
        self._cells = cells
        self._bench = bench
        self._run = run
        self._time_left = TimeLeft(bench)
        self._task_files = TaskFiles(request.output, request.common, _is_task_record)
        self._tasks = tuple(dict.fromkeys(cell.task for cell in cells))
        self._digests: dict[str, str] = {}
        self._from_tasks: dict[Cell, dict[str, Any]] = {}  # results of array tasks
        for record in self._task_files.read():
            self._require_same_rows(record["result"]["task"], record.get("data"))
            if result := parsed(record["result"], CellResult):
                self._from_tasks[result.cell] = record

    def run_all(self, missing: Sequence[MissingFile]) -> tuple[int, int, int, tuple[int, ...]]:
        """Run all missing cells and append their results to the directory."""
        directory = self._directory(resume=self._request.resume)
        n_run = 0
        with directory.opened() as records:
            for line in directory.damaged:
                self._run.notice(f"{line}: was damaged; its cell is run again")
            lines = self._lines(records)
            if len(lines) < len(records):
                directory.rewrite(RESULTS, lines.values())
            directory.write(PLAN, self._plan(directory, missing).content())
            todo = [cell for cell in self._cells if cell not in lines]
            fresh = [cell for cell in todo if cell not in self._from_tasks]
            measured = self._measure(fresh, len(self._cells))
            try:
                for cell in todo:
                    one = self._from_tasks.get(cell)
                    if one is None:
                        one = next(measured)
                        n_run += 1
                    directory.append(TIMES, one["times"])
                    directory.append(RESULTS, one["result"])
                    lines[cell] = one["result"]
            except Interrupted:
                text = "{n:,} results are kept; {resume:True} with the same command continues"
                self._run.notice(Message(text, n=len(lines)))
                raise
            # sort the lines, so that the file is the same as after a single run
            ordered = [lines[cell] for cell in sorted(lines, key=lambda cell: cell.order)]
            if ordered != list(lines.values()):
                directory.rewrite(RESULTS, ordered)
        return len(lines), n_run, 0, ()

    def run_share(self, share: Share) -> tuple[int, int, int, tuple[int, ...]]:
        """Run every k-th cell, so that all array tasks take about the same time."""
        own = self._cells[share.number - 1 :: share.count]
        known = {*self._cells_in_log(), *self._from_tasks}
        todo = [cell for cell in own if cell not in known]
        kept = [self._from_tasks[cell] for cell in own if cell in self._from_tasks]
        if todo:
            records = [self._task_record(one) for one in kept]
            with self._task_files.saving(self._request.protocol.name, share, records) as save:
                for cell, one in zip(todo, self._measure(todo, len(own)), strict=True):
                    known.add(cell)
                    save(self._task_record(one))
        unknown = [number for number, cell in enumerate(self._cells) if cell not in known]
        tasks = sorted({1 + number % share.count for number in unknown})
        return len(own), len(todo), len(unknown), tuple(tasks)

    def _measure(self, cells: list[Cell], total: int) -> Iterator[dict[str, Any]]:
        """Yield the result of each cell, in order, as soon as it is ready."""
        time_left, left, done = self._time_left, list(cells), total - len(cells)
        workers = self._run.workers()

        def tick() -> None:
            phrase = time_left.phrase(left, workers)
            self._run.progress(f"benchmark{phrase}", done, total)

        tick()
        measured = self._run.map_shared(
            measure, self._bench, cells, tick, lambda number: str(cells[number])
        )
        for cell, one in zip(cells, measured, strict=True):
            first = not time_left.phrase(left, 1)
            time_left.add(cell, one["times"]["seconds"])
            left.remove(cell)
            done += 1
            if first and left:
                self._run.announce(
                    f"{total:,} results in total, {len(left):,} to go{time_left.phrase(left, 1)}"
                    " on one core, estimated from the first"
                )
            tick()
            yield one

    def _directory(self, *, resume: bool) -> RunDirectory:
        request = self._request
        return RunDirectory(
            request.output, RESULTS, request.common, resume=resume, lines_stand_alone=True
        )

    def _cells_in_log(self) -> set[Cell]:
        """Return the cells already finished in the results of this directory."""
        directory = self._directory(resume=True)
        results = [parsed(record, CellResult) for record in directory.recorded()]
        cells = {result.cell for result in results if result is not None}
        if cells:
            self._plan_before(directory)
        return cells

    def _lines(self, records: Sequence[dict[str, Any]]) -> dict[Cell, dict[str, Any]]:
        """Return the distinct lines of earlier runs; reject lines that do not belong here."""
        path, name = f"{self._request.output}/{RESULTS}", self._request.protocol.name
        lines: dict[Cell, dict[str, Any]] = {}
        for number, record in enumerate(records, 1):
            problem, result = "", parsed(record, CellResult)
            if result is None:
                problem = "not a result of a benchmark"
            elif result.protocol != name:
                problem = f"the protocol is {result.protocol}, but the run uses {name}"
            elif lines.setdefault(result.cell, record) != record:
                problem = "an earlier line has different values for the same cell"
            if problem:
                raise DataError(
                    f"{path}:{number}: {problem}",
                    Message(
                        "remove the line to run its cell again, or start over with another {output}"
                    ),
                )
        return lines

    def _plan(self, directory: RunDirectory, missing: Sequence[MissingFile]) -> BenchmarkPlan:
        """Return the combined plan of this run and earlier runs in the directory."""
        request, cells, bench = self._request, self._cells, self._bench
        plan = BenchmarkPlan(
            protocol=request.protocol.name,
            seed=request.seed,
            command=request.command,
            tasks=self._tasks,
            settings=tuple(cell.setting for cell in cells),
            methods=tuple(cell.method for cell in cells),
            repetitions={f"{cell.task}/{cell.setting}": request.repetitions for cell in cells},
            missing=tuple(
                MissingTask(task, one.file, one.address) for one in missing for task in one.tasks
            ),
            versions={
                "resvm": __version__,
                "numpy": np.__version__,
                "libsvm": package_version("libsvm"),
                "liblinear": package_version("liblinear"),
            },
            data={task: bench.data.description(task) for task in self._tasks},
        )
        return self._plan_before(directory).united(plan)

    def _plan_before(self, directory: RunDirectory) -> BenchmarkPlan:
        """Return the plan of earlier runs in the directory; raise an error if their data differ."""
        content = directory.read(PLAN)
        if content is None:
            return BenchmarkPlan(self._request.protocol.name)
        path = f"{self._request.output}/{PLAN}"
        try:
            plan = BenchmarkPlan.from_file(content, path)
        except DataError as error:
            raise DataError(error.message, Message("start over with another {output}")) from None
        for task, described in plan.data.items():
            self._require_same_rows(task, described["digest"])
        return plan

    def _require_same_rows(self, task: str, digest: str | None) -> None:
        if digest is not None and task in self._tasks and digest != self._digest(task):
            raise ParameterError(
                "{path}: was started with different rows of {task_name}",
                "use the same data, or start over with another {output}",
                path=self._request.output, task_name=task,
            )  # fmt: skip

    def _digest(self, task: str) -> str:
        if task not in self._digests:
            self._digests[task] = self._bench.data.description(task)["digest"]
        return self._digests[task]

    def _task_record(self, one: dict[str, Any]) -> dict[str, Any]:
        return {**one, "data": self._digest(one["result"]["task"])}


def _is_task_record(record: Any) -> bool:
    if not isinstance(record, dict) or type(record.get("data", "")) is not str:
        return False
    result, times = parsed(record.get("result"), CellResult), parsed(record.get("times"), CellTime)
    return result is not None and times is not None
