"""The trials of a tuning: judged in threads, logged in task order, replayed on resuming."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from resvm_cli import parallel
from resvm_cli.ensemble.params import MethodName
from resvm_cli.errors import DataError, ResvmError
from resvm_cli.files.logs import RunDirectory
from resvm_cli.tuning.criteria import Scores
from resvm_cli.tuning.sample import TuningSample
from resvm_cli.tuning.search import Outcome, Result, Search, Task, search
from resvm_cli.tuning.settings import TuningSettings
from resvm_cli.tuning.validation import Judge

TRIALS, TIMINGS, BEST = "trials.jsonl", "timings.jsonl", "best.json"
TASKS_A_UNIT = 8  # of one kernel, trained by one thread, together where their bags are the same


@dataclass(frozen=True)
class Trial:
    """One line of the log."""

    number: int
    task: Task
    scores: Scores | None
    error: str | None = None
    outer: int | None = None

    def score(self, metric: str) -> float:
        assert self.scores is not None
        return self.scores.values[metric]

    def score_or_none(self, metric: str) -> float | None:
        return None if self.scores is None else self.scores.values[metric]

    @property
    def record(self) -> dict[str, Any]:
        base: dict[str, Any] = {"trial": self.number}
        if self.outer is not None:
            base["outer"] = self.outer
        base |= {
            "method": self.task.candidate.method,
            "params": dict(self.task.candidate.values),
            "n_models": self.task.n_models,
        }
        return base | (asdict(self.scores) if self.scores else {"error": self.error})


def _recorded_scores(record: dict[str, Any], metric: str) -> Scores | None:
    """The scores of a line, where they are numbers that a trial may have."""
    values = record.get("values")
    if not isinstance(values, dict) or metric not in values:
        return None
    names = ("deviation", "recall", "fraction_positive", "n_judged")
    numbers = [*values.values(), *(record.get(name, "") for name in names)]
    if not all(map(_is_number, numbers)):
        return None
    return Scores(values, **{name: record[name] for name in names})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not abs(value) > 2**53  # nan is one


# Told how many trials are done, of how many, and the best so far.
Watch: TypeAlias = Callable[[int, int, "Trial | None"], None]


class TrialLog:
    """Trials as they finish, in task order; those of an earlier run are not repeated.

    Without a directory they are only kept in mind.
    """

    def __init__(
        self,
        run: RunDirectory | None,
        records: Sequence[dict[str, Any]],
        metric: str,
        watch: Watch,
    ) -> None:
        self._run = run
        self._records = records
        self._metric = metric
        self._watch = watch
        self.trials: list[Trial] = []
        self.n_repeated = 0
        self._best: Trial | None = None
        self._expected = 0

    def expect(self, count: int) -> None:
        self._expected += count
        self._watch(len(self.trials), self._expected, self._best)

    def tick(self) -> None:
        self._watch(len(self.trials), self._expected, self._best)

    def recorded(self, task: Task, outer: int | None) -> Trial | None:
        """The next trial, if an earlier run has it."""
        number = len(self.trials)
        if number >= len(self._records):
            return None
        record = self._records[number]
        scores = None
        if "error" not in record:
            scores = _recorded_scores(record, self._metric)
        trial = Trial(number, task, scores, record.get("error"), outer)
        if trial.record != record or (scores is None and type(trial.error) is not str):
            assert self._run is not None
            raise DataError(
                f"{self._run.path}/{TRIALS}:{number + 1}: is not the trial that belongs there",
                "begin anew with another -o",
            )
        self.n_repeated += 1
        self._add(trial)
        return trial

    def finished(self, trial: Trial, seconds: float) -> None:
        if self._run is not None:
            self._run.append(TRIALS, trial.record)
            self._run.append(TIMINGS, {"trial": trial.number, "seconds": round(seconds, 4)})
        self._add(trial)
        self.tick()

    def _add(self, trial: Trial) -> None:
        self.trials.append(trial)
        if trial.scores is None or trial.outer is not None:
            return
        if self._best is None or trial.score(self._metric) > self._best.score(self._metric):
            self._best = trial

    def write_best(self, content: dict[str, Any]) -> None:
        if self._run is not None:
            self._run.write(BEST, content)


def run_search(
    sample: TuningSample,
    method: MethodName,
    settings: TuningSettings,
    log: TrialLog,
    workers: int,
    outer: int | None = None,
) -> Outcome:
    """Drive the search for one method to its end."""
    judge, space = sample.judge(settings), sample.space(method, settings)
    informed = sample.informed(settings) if settings.strategy == "informed" else ()
    going: Search = search(space, settings.search, informed)
    try:
        tasks = next(going)
        while True:
            trials = _judged(judge, tasks, log, workers, outer)
            results = [
                Result(
                    trial.task, trial.score(settings.metric) if trial.scores else None, trial.number
                )
                for trial in trials
            ]
            tasks = going.send(results)
    except StopIteration as ended:
        outcome: Outcome | None = ended.value
    if outcome is None:
        why = next((trial.error for trial in reversed(log.trials) if trial.error), "no trials")
        raise DataError(f"no candidate of {space.method} could be judged: {why}")
    return outcome


def _judged(
    judge: Judge, tasks: list[Task], log: TrialLog, workers: int, outer: int | None
) -> list[Trial]:
    """The tasks' trials: from the log, then by judging."""
    log.expect(len(tasks))
    trials: list[Trial] = []
    while len(trials) < len(tasks) and (known := log.recorded(tasks[len(trials)], outer)):
        trials.append(known)
    units = list(_units(tasks[len(trials) :]))

    def work(unit: list[Task]) -> list[tuple[Scores | ResvmError, float]]:
        started = time.perf_counter()
        answers = judge.scores(unit)
        seconds = (time.perf_counter() - started) / len(unit)  # they are judged together
        return [(answer, seconds) for answer in answers]

    for unit, answers in zip(units, parallel.run(work, units, workers, log.tick), strict=True):
        for task, (answer, seconds) in zip(unit, answers, strict=True):
            trial = Trial(
                len(log.trials),
                task,
                None if isinstance(answer, ResvmError) else answer,
                answer.message if isinstance(answer, ResvmError) else None,
                outer,
            )
            log.finished(trial, seconds)
            trials.append(trial)
    return trials


def _units(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Tasks of one kernel that follow each other, a few at a time."""
    unit: list[Task] = []
    for task in tasks:
        key = task.candidate.kernel_key
        if unit and (unit[0].candidate.kernel_key != key or len(unit) == TASKS_A_UNIT):
            yield unit
            unit = []
        unit.append(task)
    if unit:
        yield unit
