"""A search driven to its end: tasks judged in threads, trials logged in their order."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from resvm_cli import parallel
from resvm_cli.errors import DataError, ResvmError
from resvm_cli.jobs.trial_log import Trial, TrialLog
from resvm_cli.jobs.tune_request import TuneRequest
from resvm_cli.tuning.criteria import Scores
from resvm_cli.tuning.search import Outcome, Search, Settings, search
from resvm_cli.tuning.space import Space
from resvm_cli.tuning.strategies import Result, Task
from resvm_cli.tuning.validation import Judge

TASKS_A_UNIT = 8  # of one kernel, trained by one thread, together where their bags are the same


def run_search(
    judge: Judge, space: Space, request: TuneRequest, log: TrialLog, outer: int | None
) -> Outcome:
    """Drive a search to its end."""
    n_models = 50 if request.n_models == "auto" else request.n_models
    settings = Settings(
        request.strategy, request.trials, n_models, request.max_extensions, request.base.seed
    )
    going: Search = search(space, settings)
    try:
        tasks = next(going)
        while True:
            trials = _judged(judge, tasks, request, log, outer)
            results = [
                Result(
                    trial.task, trial.score(request.metric) if trial.scores else None, trial.number
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
    judge: Judge, tasks: list[Task], request: TuneRequest, log: TrialLog, outer: int | None
) -> list[Trial]:
    """The tasks' trials: from the log, then by judging."""
    log.expect(len(tasks))
    trials: list[Trial] = []
    while len(trials) < len(tasks) and (known := log.recorded(tasks[len(trials)], outer)):
        trials.append(known)
    units = list(_units(tasks[len(trials) :]))
    workers = request.jobs or parallel.available_cores()

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
