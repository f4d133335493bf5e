"""Run trials: score candidates in threads, log them in order, and replay them on resume.

The tasks of an array job share a round: the candidates that the search can propose before it needs
scores. Each task writes its trials to its own file, so that no two nodes write to the same file.
The final run reads these trials instead of scoring the candidates again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from resvm_cli.errors import DataError, Message, ResvmError
from resvm_cli.files.run_directory import RunDirectory, TaskFiles
from resvm_cli.parameters import MethodName
from resvm_cli.records import dataclass
from resvm_cli.running.run import Run, Share, shares_holding
from resvm_cli.tuning.sample import TuningSample
from resvm_cli.tuning.search import Outcome, ScoredTask, ScoringTask, Search, search
from resvm_cli.tuning.settings import TuningSettings
from resvm_cli.tuning.validation import CandidateScorer, Scores

TRIALS, TIMINGS, BEST = "trials.jsonl", "timings.jsonl", "best.json"
MAX_BATCH = 8  # tasks of one kernel that one thread trains together


@dataclass(frozen=True)
class Trial:
    """One line of the log: a scored candidate, or why it has no score."""

    number: int
    task: ScoringTask
    scores: Scores | None
    error: str | None = None
    outer: int | None = None  # the outer fold that its search leaves out

    def score(self, metric: str) -> float:
        assert self.scores is not None
        return self.scores.values[metric]

    @property
    def record(self) -> dict[str, Any]:
        base: dict[str, Any] = {"trial": self.number}
        if self.outer is not None:
            base["outer"] = self.outer
        base |= {
            "method": self.task.candidate.method,
            "params": self.task.candidate.named_values,
            "n_models": self.task.n_models,
        }
        return base | (asdict(self.scores) if self.scores else {"error": self.error})


def _recorded_scores(record: dict[str, Any], metric: str) -> Scores | None:
    """Return the scores of a logged trial; None if they are not numbers."""
    values = record.get("values")
    if not isinstance(values, dict) or metric not in values:
        return None
    names = ("deviation", "recall", "fraction_positive", "n_judged")
    numbers = [*values.values(), *(record.get(name, "") for name in names)]
    if not all(map(_is_number, numbers)):
        return None
    return Scores(values, **{name: record[name] for name in names})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not abs(value) > 2**53  # nan is allowed


def is_known_trial(record: Any, metric: str) -> bool:
    """Return whether this is a complete, valid trial as stored by a task of an array job."""
    if not isinstance(record, dict) or not _is_number(record.get("seconds")):
        return False
    trial = record.get("trial")
    if not isinstance(trial, dict):
        return False
    if "error" in trial:
        return type(trial["error"]) is str
    return _recorded_scores(trial, metric) is not None


class KnownTrials:
    """Trials scored by tasks of an array job, looked up by candidate."""

    def __init__(self, records: Iterable[dict[str, Any]] = ()) -> None:
        self._records = {_key(record["trial"]): record for record in records}

    @staticmethod
    def stored(trial: Trial, seconds: float) -> dict[str, Any]:
        """Return the record that a task stores, without its trial number."""
        record = {name: value for name, value in trial.record.items() if name != "trial"}
        return {"trial": record, "seconds": round(seconds, 4)}

    def add(self, trial: Trial, seconds: float) -> None:
        record = self.stored(trial, seconds)
        self._records[_key(record["trial"])] = record

    def find(self, task: ScoringTask, outer: int | None) -> dict[str, Any] | None:
        return self._records.get(_key(Trial(0, task, None, None, outer).record))


def _key(record: dict[str, Any]) -> str:
    named = [record.get(name) for name in ("outer", "method", "params", "n_models")]
    return json.dumps(named, sort_keys=True)


# Called with the number of trials done, their total, and the best so far.
Watch: TypeAlias = Callable[[int, int, "Trial | None"], None]


class TrialLog:
    """A log of finished trials in task order; trials of an earlier run are not repeated.

    Without a directory, trials are only kept in memory.
    """

    def __init__(
        self,
        directory: RunDirectory | None,
        records: Sequence[dict[str, Any]],
        metric: str,
        watch: Watch,
        known: KnownTrials | None = None,
    ) -> None:
        self.known = known or KnownTrials()
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

    def recorded(self, task: ScoringTask, outer: int | None) -> Trial | None:
        """Return the next trial if an earlier run has logged it, else None."""
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

    def taken(self, known: KnownTrials, task: ScoringTask, outer: int | None) -> Trial:
        """Return the next trial, which a task of an array job has scored."""
        record = known.find(task, outer)
        assert record is not None
        trial = self._trial(task, record["trial"], outer)
        self.finished(trial, record["seconds"])
        return trial

    def _trial(self, task: ScoringTask, record: dict[str, Any], outer: int | None) -> Trial:
        """Return the next trial, built from its record."""
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
) -> Generator[list[ScoringTask], list[Trial], Outcome | None]:
    """Search for one method: yield the tasks of each round and receive their trials."""
    space = sample.space(method, settings)
    informed = sample.informed(settings) if settings.search == "informed" else ()
    going: Search = search(space, settings.search_settings, informed)
    try:
        tasks = next(going)
        while True:
            trials = yield tasks
            results = [
                ScoredTask(
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
    """Run the search for one method to its end."""
    scorer = CandidateScorer(sample, settings)
    going = rounds(sample, method, settings)
    try:
        tasks = next(going)
        while True:
            tasks = going.send(_trials(scorer, tasks, log, run, outer))
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


def _trials(
    scorer: CandidateScorer, tasks: list[ScoringTask], log: TrialLog, run: Run, outer: int | None
) -> list[Trial]:
    """Return the trials of these tasks, from the log, from an array job, or scored now."""
    log.expect(len(tasks))
    trials: list[Trial] = []
    while len(trials) < len(tasks) and (logged := log.recorded(tasks[len(trials)], outer)):
        trials.append(logged)
    remaining = tasks[len(trials) :]
    known = log.known
    unknown = [task for task in remaining if known.find(task, outer) is None]
    fresh = scored_trials(scorer, unknown, log, run, outer)
    for task in remaining:
        if known.find(task, outer) is not None:
            trials.append(log.taken(known, task, outer))
            continue
        trial, seconds = next(fresh)
        log.finished(trial, seconds)
        trials.append(trial)
    return trials


def scored_trials(
    scorer: CandidateScorer,
    tasks: Sequence[ScoringTask],
    log: TrialLog,
    run: Run,
    outer: int | None,
) -> Iterator[tuple[Trial, float]]:
    """Yield each task's trial, numbered as the next in the log, and the seconds it took."""
    batches = list(_batches(tasks))

    def name(number: int) -> str:
        return f"the candidate {batches[number][0].candidate.named_values} or one of the next"

    scored = run.map_shared(_score_batch, scorer, batches, log.tick, name)
    for batch, (found, seconds) in zip(batches, scored, strict=True):
        for task, scores in zip(batch, found, strict=True):
            if isinstance(scores, ResvmError):
                trial = Trial(len(log.trials), task, None, str(scores.message), outer)
            else:
                trial = Trial(len(log.trials), task, scores, None, outer)
            yield trial, seconds


def _score_batch(
    scorer: CandidateScorer, batch: list[ScoringTask]
) -> tuple[list[Scores | ResvmError], float]:
    """Score tasks together; return the scores of each task and the mean seconds per task."""
    started = time.perf_counter()
    found = scorer.scores(batch, Run(jobs=1))
    return found, (time.perf_counter() - started) / len(batch)


def _batches(tasks: Sequence[ScoringTask]) -> Iterator[list[ScoringTask]]:
    """Yield consecutive tasks of one kernel, a few at a time."""
    batch: list[ScoringTask] = []
    for task in tasks:
        key = task.candidate.kernel_key
        if batch and (batch[0].candidate.kernel_key != key or len(batch) == MAX_BATCH):
            yield batch
            batch = []
        batch.append(task)
    if batch:
        yield batch


@dataclass(frozen=True)
class OpenSearch:
    """One of the searches that the tasks of an array job share."""

    name: str
    sample: TuningSample
    method: MethodName
    outer: int | None  # the outer fold that it leaves out

    def first_open_round(
        self, settings: TuningSettings, known: KnownTrials, log: TrialLog
    ) -> tuple[str, list[ScoringTask]] | None:
        """Return the label and tasks of the first open round; None if the search has ended."""
        going = rounds(self.sample, self.method, settings)
        number = 0
        try:
            tasks = next(going)
            while all(known.find(task, self.outer) is not None for task in tasks):
                trials = [log.taken(known, task, self.outer) for task in tasks]
                number += 1
                tasks = going.send(trials)
        except StopIteration:
            return None
        return f"{self.name}-{self.method}-{number}", tasks


def run_array_task(
    searches: Sequence[OpenSearch],
    settings: TuningSettings,
    files: TaskFiles,
    part: Share,
    run: Run,
    watch: Watch,
) -> tuple[int, int, tuple[int, ...]]:
    """Score this task's part of the open round of each search.

    Return the number of candidates scored, the number in all open rounds, and the missing tasks.
    """
    known = KnownTrials(files.read())
    n_scored = n_candidates = 0
    missing: set[int] = set()
    for each in searches:
        log = TrialLog(None, (), settings.metric, watch)
        open_round = each.first_open_round(settings, known, log)
        if open_round is None:
            continue
        label, tasks = open_round
        own = [tasks[number] for number in part.of(len(tasks))]
        left = [task for task in own if known.find(task, each.outer) is None]
        log.expect(len(left))
        kept = [record for task in own if (record := known.find(task, each.outer)) is not None]
        if left:
            scorer = CandidateScorer(each.sample, settings)
            with files.saving(label, part, kept) as save:
                for trial, seconds in scored_trials(scorer, left, log, run, each.outer):
                    known.add(trial, seconds)
                    save(KnownTrials.stored(trial, seconds))
                    n_scored += 1
                    log.finished(trial, seconds)
        unknown = [n for n, task in enumerate(tasks) if known.find(task, each.outer) is None]
        missing.update(shares_holding(unknown, len(tasks), part.count))
        n_candidates += len(tasks)
    return n_scored, n_candidates, tuple(sorted(missing))
