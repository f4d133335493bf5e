"""The trials of a tuning: judged in threads, logged in task order, replayed on resuming."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from resvm_cli.errors import DataError, Message, ResvmError
from resvm_cli.files.run_directory import RunDirectory
from resvm_cli.parameters import MethodName
from resvm_cli.running.run import Run
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


def is_known_trial(record: Any, metric: str) -> bool:
    """Whether this is a trial as it is handed on, with all that is taken from it."""
    if not isinstance(record, dict) or not _is_number(record.get("seconds")):
        return False
    trial = record.get("trial")
    if not isinstance(trial, dict):
        return False
    if "error" in trial:
        return type(trial["error"]) is str
    return _recorded_scores(trial, metric) is not None


class KnownTrials:
    """Trials that were judged elsewhere, found by what was judged."""

    def __init__(self, records: Iterable[dict[str, Any]] = ()) -> None:
        self._records = {_key(record["trial"]): record for record in records}

    @staticmethod
    def stored(trial: Trial, seconds: float) -> dict[str, Any]:
        """As it is handed on: its number is known to the search alone."""
        record = {name: value for name, value in trial.record.items() if name != "trial"}
        return {"trial": record, "seconds": round(seconds, 4)}

    def add(self, trial: Trial, seconds: float) -> None:
        record = self.stored(trial, seconds)
        self._records[_key(record["trial"])] = record

    def find(self, task: Task, outer: int | None) -> dict[str, Any] | None:
        return self._records.get(_key(Trial(0, task, None, None, outer).record))


def _key(record: dict[str, Any]) -> str:
    named = [record.get(name) for name in ("outer", "method", "params", "n_models")]
    return json.dumps(named, sort_keys=True)


# Told how many trials are done, of how many, and the best so far.
Watch: TypeAlias = Callable[[int, int, "Trial | None"], None]


class TrialLog:
    """Trials as they finish, in task order; those of an earlier run are not repeated.

    Without a directory they are only kept in mind.
    """

    def __init__(
        self,
        directory: RunDirectory | None,
        records: Sequence[dict[str, Any]],
        metric: str,
        watch: Watch,
        elsewhere: KnownTrials | None = None,
    ) -> None:
        self.elsewhere = elsewhere or KnownTrials()
        self._directory = directory
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
        trial = self._trial(task, record, outer)
        if trial.record != record or (trial.scores is None and type(trial.error) is not str):
            assert self._directory is not None
            raise DataError(
                f"{self._directory.path}/{TRIALS}:{number + 1}: not the trial that belongs there",
                Message("start again with another {output}"),
            )
        self.n_repeated += 1
        self._add(trial)
        return trial

    def taken(self, known: KnownTrials, task: Task, outer: int | None) -> Trial:
        """The next trial, which was judged elsewhere."""
        record = known.find(task, outer)
        assert record is not None
        trial = self._trial(task, record["trial"], outer)
        self.finished(trial, record["seconds"])
        return trial

    def _trial(self, task: Task, record: dict[str, Any], outer: int | None) -> Trial:
        """The next trial, from its record."""
        scores = None if "error" in record else _recorded_scores(record, self._metric)
        return Trial(len(self.trials), task, scores, record.get("error"), outer)

    def finished(self, trial: Trial, seconds: float) -> None:
        if self._directory is not None:
            self._directory.append(TRIALS, trial.record)
            self._directory.append(TIMINGS, {"trial": trial.number, "seconds": round(seconds, 4)})
        self._add(trial)
        self.tick()

    def _add(self, trial: Trial) -> None:
        self.trials.append(trial)
        if trial.scores is None or trial.outer is not None:
            return
        if self._best is None or trial.score(self._metric) > self._best.score(self._metric):
            self._best = trial

    def write_best(self, content: dict[str, Any]) -> None:
        if self._directory is not None:
            self._directory.write(BEST, content)


def rounds(
    sample: TuningSample, method: MethodName, settings: TuningSettings
) -> Generator[list[Task], list[Trial], Outcome | None]:
    """The search for one method: yields the tasks of a round, is sent their trials."""
    space = sample.space(method, settings)
    informed = sample.informed(settings) if settings.search == "informed" else ()
    going: Search = search(space, settings.search_settings, informed)
    try:
        tasks = next(going)
        while True:
            trials = yield tasks
            results = [
                Result(
                    trial.task, trial.score(settings.metric) if trial.scores else None, trial.number
                )
                for trial in trials
            ]
            tasks = going.send(results)
    except StopIteration as ended:
        outcome: Outcome | None = ended.value
        return outcome


def run_search(
    sample: TuningSample,
    method: MethodName,
    settings: TuningSettings,
    log: TrialLog,
    run: Run,
    outer: int | None = None,
) -> Outcome:
    """Drive the search for one method to its end."""
    judge = sample.judge(settings)
    going = rounds(sample, method, settings)
    try:
        tasks = next(going)
        while True:
            tasks = going.send(_judged(judge, tasks, log, run, outer))
    except StopIteration as ended:
        outcome: Outcome | None = ended.value
    if outcome is None:
        why = next((trial.error for trial in reversed(log.trials) if trial.error), "no trials")
        advice = Message("use cross-validation ({folds:5}), or train without tuning")
        raise DataError(
            f"no candidate of {method} could be scored: {why}",
            advice if settings.oob else None,
        )
    return outcome


def _judged(
    judge: Judge, tasks: list[Task], log: TrialLog, run: Run, outer: int | None
) -> list[Trial]:
    """The tasks' trials: from the log, then from elsewhere or by judging."""
    log.expect(len(tasks))
    trials: list[Trial] = []
    while len(trials) < len(tasks) and (known := log.recorded(tasks[len(trials)], outer)):
        trials.append(known)
    remaining = tasks[len(trials) :]
    elsewhere = log.elsewhere
    fresh = judged_units(
        judge,
        [task for task in remaining if elsewhere.find(task, outer) is None],
        log,
        run,
        outer,
    )
    for task in remaining:
        if elsewhere.find(task, outer) is not None:
            trials.append(log.taken(elsewhere, task, outer))
            continue
        trial, seconds = next(fresh)
        log.finished(trial, seconds)
        trials.append(trial)
    return trials


def judged_units(
    judge: Judge, tasks: Sequence[Task], log: TrialLog, run: Run, outer: int | None
) -> Iterator[tuple[Trial, float]]:
    """Each task's trial, numbered as the next of the log, and the seconds it took."""
    units = list(_units(tasks))

    def name(number: int) -> str:
        return f"the candidate {dict(units[number][0].candidate.values)} or one of the next"

    judged = run.map_shared(_judge_unit, judge, units, log.tick, name)
    for unit, answers in zip(units, judged, strict=True):
        for task, (answer, seconds) in zip(unit, answers, strict=True):
            trial = Trial(
                len(log.trials),
                task,
                None if isinstance(answer, ResvmError) else answer,
                str(answer.message) if isinstance(answer, ResvmError) else None,
                outer,
            )
            yield trial, seconds


def _judge_unit(judge: Judge, unit: list[Task]) -> list[tuple[Scores | ResvmError, float]]:
    """The scores of each task, and the seconds it took."""
    started = time.perf_counter()
    answers = judge.scores(unit, Run(jobs=1))
    seconds = (time.perf_counter() - started) / len(unit)  # they are judged together
    return [(answer, seconds) for answer in answers]


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
