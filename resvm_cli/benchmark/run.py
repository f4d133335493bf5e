"""The paper's experiments, or the same on the user's data: cell by cell, resumable, shareable.

Results are lines of a log that grows; what is there is not run again. Each line depends on its own
cell and method alone, so that a directory can be filled in any order and by any number of machines,
and later by more tasks or repetitions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from resvm_cli import __version__
from resvm_cli.benchmark.cells import Bench, Measured, Work, measure
from resvm_cli.benchmark.costs import Costs
from resvm_cli.benchmark.data import BenchmarkData, Missing, OwnData, missing_files
from resvm_cli.benchmark.draws import Cell
from resvm_cli.benchmark.join import place_of, united
from resvm_cli.benchmark.paper_tasks import OWN, PAPER_TASKS, SETTING_NAMES
from resvm_cli.benchmark.protocol import METHODS, Protocol
from resvm_cli.benchmark.results import (
    PLAN,
    RESULTS,
    TIMES,
    is_plan,
    is_result,
    is_times,
)
from resvm_cli.errors import CommandLineError, DataError, Interrupted
from resvm_cli.files.run_directory import RunDirectory
from resvm_cli.files.task_files import SavedShare, TaskFiles
from resvm_cli.running import parallel
from resvm_cli.running.array_tasks import Share
from resvm_cli.running.parallel import available_workers
from resvm_cli.svm.solver_libraries import package_version, silenced
from resvm_cli.training.data import Progress

MOST_REPETITIONS = 10_000


@dataclass(frozen=True)
class BenchmarkRequest:
    """What is to be run, and where the results go."""

    target: str
    protocol: Protocol
    data_dir: str = "."
    tasks: tuple[str, ...] = tuple(PAPER_TASKS)
    settings: tuple[str, ...] = SETTING_NAMES
    methods: tuple[str, ...] = METHODS
    repetitions: int = 20
    seed: int = 0
    own: OwnData | None = None
    contaminations_pos: tuple[float, ...] = (0.0,)  # of own data, or in the setting "own"
    contaminations_unl: tuple[float, ...] = (0.0,)
    resume: bool = False
    share: Share | None = None  # this share of the work alone
    jobs: int | None = None
    command: str = ""

    def check(self) -> None:
        """Refuse what cannot work, before any file is read."""
        if self.target in ("", "-"):
            raise CommandLineError("-o needs the name of a directory")
        if not 1 <= self.repetitions <= MOST_REPETITIONS:
            raise CommandLineError(
                f"--repetitions is {self.repetitions}; 1 to {MOST_REPETITIONS:,} was expected"
            )
        if self.seed < 0:
            raise CommandLineError(f"--seed is {self.seed}; it must not be negative")
        if self.protocol.trials < 1:
            raise CommandLineError(f"--trials is {self.protocol.trials}; at least 1 was expected")
        if self.own is not None:
            for name, size in (("--n-pos", self.own.n_pos), ("--n-unl", self.own.n_unl)):
                if size < 1:
                    raise CommandLineError(f"{name} is {size}; at least 1 was expected")
        for name, shares in (
            ("--contamination-pos", self.contaminations_pos),
            ("--contamination-unl", self.contaminations_unl),
        ):
            for share in shares:
                if not 0 <= share <= 1:
                    raise CommandLineError(f"{name} is {share:g}; a share from 0 to 1 is meant")

    @property
    def fixed(self) -> dict[str, Any]:
        """What every line of a directory has in common; a run is resumed only with the same."""
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
            content["own"] = {
                "task": own.name,
                "positive_label": own.positive_label,
                "n_pos": own.n_pos,
                "n_unl": own.n_unl,
                "groups": own.groups is not None,
            }
        return content

    def works(self, absent: Sequence[str] = ()) -> list[Work]:
        """In the order in which they are run and listed: a repetition of all before the next.

        Small tasks come first, so that a run cut short has much to show.
        """
        return [
            Work(cell, method)
            for cell in self._cells(absent)
            for method in METHODS
            if method in self.methods and method in self._methods_of(cell.task)
        ]

    def _cells(self, absent: Sequence[str]) -> Iterator[Cell]:
        names = [name for name in PAPER_TASKS if name in self.tasks and name not in absent]
        names.sort(key=lambda name: PAPER_TASKS[name].n_unl)
        if self.own is not None:
            names = [self.own.name]
        for repetition in range(self.repetitions):
            for name in names:
                if self.own is not None or OWN in self.settings:
                    for of_pos in self.contaminations_pos:
                        for of_unl in self.contaminations_unl:
                            yield Cell(OWN, name, repetition, of_pos, of_unl)
                    continue
                for setting in SETTING_NAMES:
                    if setting in self.settings:
                        shares = PAPER_TASKS[name].contaminations(setting)
                        yield Cell(setting, name, repetition, *shares)

    def _methods_of(self, task: str) -> tuple[str, ...]:
        return self.protocol.methods_of(self.family(task))

    def family(self, task: str) -> str:
        """The data set that a task is of."""
        return PAPER_TASKS[task].family if self.own is None else task


@dataclass(frozen=True)
class BenchmarkResult:
    """What was done, for the report."""

    path: str
    protocol: str
    n_results: int  # lines in all
    n_run: int  # lines of this run
    n_missing: int  # of the plan
    missing_tasks: tuple[int, ...]  # of an array job, that are still to come
    missing_data: tuple[Missing, ...]
    seconds: float


def run(
    request: BenchmarkRequest, progress: Progress, notice: Callable[[str], None]
) -> BenchmarkResult:
    """Run what is missing, line by line into the directory; or one task's share of it."""
    request.check()
    started = time.monotonic()
    if request.share is None:  # an existing directory is refused before anything is read
        RunDirectory(request.target, RESULTS, {}, resume=request.resume)
    absent: tuple[Missing, ...] = ()
    if request.own is None:
        chosen = [PAPER_TASKS[name] for name in request.tasks]
        absent = missing_files(request.data_dir, chosen)
    for one in absent:
        notice(
            f"{one.file} is not in {request.data_dir}: {', '.join(one.tasks)} left out;"
            f" it can be fetched from {one.address}"
        )
    works = request.works([task for one in absent for task in one.tasks])
    if not works:
        raise DataError("there is nothing to run", "give --data-dir, or other tasks or methods")
    tasks = list(dict.fromkeys(work.cell.task for work in works))
    paper = {name: PAPER_TASKS[name] for name in tasks} if request.own is None else {}
    data = BenchmarkData(request.data_dir, paper, request.own, request.seed)
    workers = request.jobs or available_workers()
    families = {task: request.family(task) for task in tasks}
    alone = min(workers, len(works)) == 1
    with parallel.inner_threads_held(), silenced():
        runner = _Runner(request, works, Bench(data, request.protocol, families, alone), workers)
        if request.share is not None:
            done = runner.share(progress, notice)
        else:
            done = runner.all(absent, progress, notice)
    n_results, n_run, n_missing, missing_tasks = done
    return BenchmarkResult(
        request.target,
        request.protocol.name,
        n_results,
        n_run,
        n_missing,
        missing_tasks,
        absent,
        time.monotonic() - started,
    )


class _Runner:
    """Works carried out and written down."""

    def __init__(
        self, request: BenchmarkRequest, works: Sequence[Work], bench: Bench, workers: int
    ) -> None:
        self._request = request
        self._works = works
        self._bench = bench
        self._workers = workers
        self._costs = Costs(bench)
        self._files = TaskFiles(request.target, request.fixed, _is_stored)
        self._digests: dict[str, str] = {}
        self._elsewhere: dict[tuple[Any, ...], Measured] = {}
        for record in self._files.read():
            result = record["result"]
            self._require_same_rows(result["task"], record.get("data"))
            self._elsewhere[_key(result)] = Measured(result, record["times"])

    def _digest(self, task: str) -> str:
        if task not in self._digests:
            self._digests[task] = self._bench.data.description(task)["digest"]
        return self._digests[task]

    def _require_same_rows(self, task: str, digest: str | None) -> None:
        """Refuse results of other rows than those of now, where they say of which they are."""
        if digest is not None and task in self._bench.families and digest != self._digest(task):
            raise CommandLineError(
                f"{self._request.target}: was begun with other rows of {task}",
                "use the same data, or begin anew with another -o",
            )

    def _measured(
        self, works: Sequence[Work], progress: Progress, notice: Callable[[str], None], total: int
    ) -> Iterator[tuple[Work, Measured]]:
        """Each work's line, in order, as it is ready."""
        costs, left, done = self._costs, list(works), total - len(works)

        def tick() -> None:
            progress(f"benchmark{costs.left(left, self._workers)}", done, total)

        tick()
        measured = parallel.run_shared(
            measure, self._bench, works, self._workers, tick, lambda number: str(works[number])
        )
        for work, one in zip(works, measured, strict=True):
            told = costs.known
            costs.add(work, one.times["seconds"])
            left.remove(work)
            done += 1
            if not told and left:
                notice(
                    f"{total:,} results in all, {len(left):,} to come{costs.left(left, 1)} on one"
                    " core, by the first of them"
                )
            tick()
            yield work, one

    def share(
        self, progress: Progress, notice: Callable[[str], None]
    ) -> tuple[int, int, int, tuple[int, ...]]:
        """This task's share, into a file of its own; every so-manieth, so that shares are alike."""
        share = self._request.share
        assert share is not None
        own = self._works[share.number - 1 :: share.count]
        logged = self._logged()
        known = {*logged, *self._elsewhere}
        kept = [one for work in own if (one := self._elsewhere.get(self._name(work))) is not None]
        left = [work for work in own if self._name(work) not in known]
        records = [self._stored(one) for one in kept]
        if left:
            name = self._request.protocol.name
            with SavedShare(self._files, name, share, records) as saved:
                for work, one in self._measured(left, progress, notice, len(own)):
                    known.add(self._name(work))
                    saved.add(self._stored(one))
        unknown = [self._name(work) not in known for work in self._works]
        tasks = sorted({1 + place % share.count for place in np.flatnonzero(unknown).tolist()})
        return len(own), len(left), sum(unknown), tuple(tasks)

    def _logged(self) -> set[tuple[Any, ...]]:
        """What a run without ``--task`` has finished in this directory, or is finishing."""
        request = self._request
        directory = RunDirectory(
            request.target, RESULTS, request.fixed, resume=True, lines_stand_alone=True
        )
        names = {_key(record) for record in directory.recorded() if is_result(record)}
        if names:
            self._require_same_data(self._plan_before(directory))
        return names

    def _stored(self, one: Measured) -> dict[str, Any]:
        digest = self._digest(one.record["task"])
        return {"result": one.record, "times": one.times, "data": digest}

    def all(
        self, absent: Sequence[Missing], progress: Progress, notice: Callable[[str], None]
    ) -> tuple[int, int, int, tuple[int, ...]]:
        """All that is missing, into the log."""
        request = self._request
        directory = RunDirectory(
            request.target, RESULTS, request.fixed, resume=request.resume, lines_stand_alone=True
        )
        n_run = 0
        with directory.opened() as records:
            for line in directory.damaged:
                notice(f"{line}: was damaged; what it held is run again")
            lines = self._known(records)
            if len(lines) < len(records):
                directory.rewrite(RESULTS, lines.values())
            directory.write(PLAN, self._plan(directory, absent))
            todo = [work for work in self._works if self._name(work) not in lines]
            fresh = [work for work in todo if self._name(work) not in self._elsewhere]
            measured = self._measured(fresh, progress, notice, len(self._works))
            try:
                for work in todo:
                    name = self._name(work)
                    one = self._elsewhere.get(name)
                    if one is None:
                        _, one = next(measured)
                        n_run += 1
                    directory.append(TIMES, one.times)
                    directory.append(RESULTS, one.record)
                    lines[name] = one.record
            except Interrupted:
                notice(f"{len(lines):,} results are kept; the same command with --resume goes on")
                raise
            self._settle_order(directory, lines)
        return len(lines), n_run, 0, ()

    def _known(self, records: Sequence[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
        """The lines of an earlier run, each once, or why they cannot be its."""
        path, name = f"{self._request.target}/{RESULTS}", self._request.protocol.name
        advice = "take that line out, and what it held is run again; or begin anew with another -o"
        lines: dict[tuple[Any, ...], dict[str, Any]] = {}
        for number, record in enumerate(records, 1):
            if not is_result(record):
                raise DataError(f"{path}:{number}: is no result of a benchmark", advice)
            if record["protocol"] != name:
                told = f"a result of protocol {record['protocol']} in a run of {name}"
                raise DataError(f"{path}:{number}: {told}", advice)
            if lines.setdefault(_key(record), record) != record:
                told = "stands there before with other figures"
                raise DataError(f"{path}:{number}: the same cell {told}", advice)
        return lines

    def _settle_order(
        self, directory: RunDirectory, lines: dict[tuple[Any, ...], dict[str, Any]]
    ) -> None:
        """In the order of a run that did all at once, whatever runs there were."""
        ordered = sorted(lines.values(), key=place_of)
        if ordered != list(lines.values()):
            directory.rewrite(RESULTS, ordered)

    def _name(self, work: Work) -> tuple[Any, ...]:
        return _key(work.key(self._request.protocol.name))

    def _plan_before(self, directory: RunDirectory) -> dict[str, Any]:
        before = directory.read(PLAN) or {}
        if not is_plan(before):
            raise DataError(
                f"{self._request.target}/{PLAN}: is no plan of a benchmark",
                "begin anew with another -o",
            )
        return before

    def _require_same_data(self, before: dict[str, Any]) -> None:
        for task, described in before.get("data", {}).items():
            self._require_same_rows(task, described["digest"])

    def _plan(self, directory: RunDirectory, absent: Sequence[Missing]) -> dict[str, Any]:
        """What was asked for in all, with what an earlier run asked for."""
        request, works, before = self._request, self._works, self._plan_before(directory)
        now = {
            "protocol": request.protocol.name,
            "seed": request.seed,
            "tasks": list(self._bench.families),
            "settings": [work.cell.setting for work in works],
            "methods": [work.method for work in works],
            "repetitions": {
                f"{work.cell.task}/{work.cell.setting}": request.repetitions for work in works
            },
            "data": {task: self._bench.data.description(task) for task in self._bench.families},
            "missing": [
                {"task": task, "file": one.file, "fetch": one.address}
                for one in absent
                for task in one.tasks
            ],
            "command": request.command,
            "versions": {
                "resvm": __version__,
                "numpy": np.__version__,
                "libsvm": package_version("libsvm"),
                "liblinear": package_version("liblinear"),
            },
        }
        self._require_same_data(before)
        return united(before, now)


def _key(record: dict[str, Any]) -> tuple[Any, ...]:
    names = ("setting", "task", "method", "repetition")
    shares = ("contamination_pos", "contamination_unl")  # 0 where a line says none
    return *(record[name] for name in names), *(record.get(name, 0.0) for name in shares)


def _is_stored(record: Any) -> bool:
    if not isinstance(record, dict):
        return False
    if type(record.get("data", "")) is not str:
        return False
    return is_result(record.get("result")) and is_times(record.get("times"))
