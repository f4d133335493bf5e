"""Run trials: score candidates in threads, log them in order, and replay them on resume.

The tasks of an array job share a round: the candidates that the search can propose before it needs
scores. Each task writes its trials to its own file, so that no two nodes write to the same file.
The final run reads these trials instead of scoring the candidates again.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, field
from typing import Any

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
class Trial(ScoredTask):
    """One line of the log: a scored candidate, or why it has no score."""

    scores: Scores | None = None
    error: str | None = None
    outer: int | None = None  # the outer fold that its search leaves out

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

    def add(self, trial: Trial, seconds: float) -> dict[str, Any]:
        """Add a trial; return the record that a task stores, without its trial number."""
        content = {name: value for name, value in trial.record.items() if name != "trial"}
        record = {"trial": content, "seconds": round(seconds, 4)}
        self._records[_key(content)] = record
        return record

    def find(self, task: ScoringTask, outer: int | None) -> dict[str, Any] | None:
        return self._records.get(_key(Trial(task, None, 0, outer=outer).record))


def _key(record: dict[str, Any]) -> str:
    named = [record.get(name) for name in ("outer", "method", "params", "n_models")]
    return json.dumps(named, sort_keys=True)


@dataclass(eq=False)
class TrialLog:
    """A log of finished trials in task order, in memory or also in a directory to resume from."""

    _directory: RunDirectory | None
    _records: Sequence[dict[str, Any]]  # of an earlier run
    _metric: str
    _run: Run
    known: KnownTrials = field(default_factory=KnownTrials)
    trials: list[Trial] = field(default_factory=list)
    n_repeated: int = 0
    _best: float | None = None
    _expected: int = 0

    def expect(self, count: int) -> None:
        self._expected += count
        self.tick()

    def tick(self) -> None:
        stage = "tuning"
        if self._directory is not None and self._best is not None:
            stage += f", best {self._metric} {self._best:.4f}"
        self._run.progress(stage, len(self.trials), self._expected)

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

    def taken(self, task: ScoringTask, outer: int | None) -> Trial | None:
        """Return the next trial if a task of an array job has scored it, else None."""
        record = self.known.find(task, outer)
        if record is None:
            return None
        trial = self._trial(task, record["trial"], outer)
        self.finished(trial, record["seconds"])
        return trial

    def _trial(self, task: ScoringTask, record: dict[str, Any], outer: int | None) -> Trial:
        scores = None if "error" in record else _recorded_scores(record, self._metric)
        return self.trial(task, scores, record.get("error"), outer)

    def trial(
        self, task: ScoringTask, scores: Scores | None, error: str | None, outer: int | None
    ) -> Trial:
        score = None if scores is None else scores.values[self._metric]
        return Trial(task, score, len(self.trials), scores, error, outer)

    def finished(self, trial: Trial, seconds: float) -> None:
        if self._directory is not None:
            self._directory.append(TRIALS, trial.record)
            self._directory.append(TIMINGS, {"trial": trial.number, "seconds": round(seconds, 4)})
        self._add(trial)
        self.tick()

    def _add(self, trial: Trial) -> None:
        self.trials.append(trial)
        if trial.score is not None and trial.outer is None:
            self._best = trial.score if self._best is None else max(self._best, trial.score)


def start(sample: TuningSample, method: MethodName, settings: TuningSettings) -> Search:
    informed = sample.informed(settings) if settings.search == "informed" else ()
    return search(sample.space(method, settings), settings, informed)


def run_search(
    sample: TuningSample,
    method: MethodName,
    settings: TuningSettings,
    log: TrialLog,
    run: Run,
    outer: int | None = None,
) -> Outcome:
    scorer = CandidateScorer(sample, settings)
    going = start(sample, method, settings)
    try:
        tasks = next(going)
        while True:
            tasks = going.send([*_trials(scorer, tasks, log, run, outer)])
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
) -> Iterator[Trial]:
    """Yield the trials of these tasks, from the log, from an array job, or scored now."""
    log.expect(len(tasks))
    remaining = deque(tasks)
    while remaining and (logged := log.recorded(remaining[0], outer)):
        remaining.popleft()
        yield logged
    unknown = [task for task in remaining if log.known.find(task, outer) is None]
    fresh = scored_trials(scorer, unknown, log, run, outer)
    for task in remaining:
        trial = log.taken(task, outer)
        if trial is None:
            trial, seconds = next(fresh)
            log.finished(trial, seconds)
        yield trial


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
                yield log.trial(task, None, str(scores.message), outer), seconds
            else:
                yield log.trial(task, scores, None, outer), seconds


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
        self, settings: TuningSettings, log: TrialLog
    ) -> tuple[str, list[ScoringTask]] | None:
        """Return the label and tasks of the first open round; None if the search has ended."""
        going = start(self.sample, self.method, settings)
        number = 0
        try:
            tasks = next(going)
            while all(log.known.find(task, self.outer) is not None for task in tasks):
                trials = [log.taken(task, self.outer) for task in tasks]
                number += 1
                tasks = going.send([trial for trial in trials if trial is not None])
        except StopIteration:
            return None
        return f"{self.name}-{self.method}-{number}", tasks


@dataclass(frozen=True)
class TaskResult:
    """What one task of an array job did."""

    n_scored: int
    n_candidates: int  # in all open rounds
    missing: tuple[int, ...]  # tasks whose candidates have no scores yet


def run_array_task(
    searches: Sequence[OpenSearch],
    settings: TuningSettings,
    files: TaskFiles,
    part: Share,
    run: Run,
) -> TaskResult:
    """Score this task's part of the open round of each search."""
    known = KnownTrials(files.read())
    n_scored = n_candidates = 0
    missing: set[int] = set()
    for each in searches:
        log = TrialLog(None, (), settings.metric, run, known)
        open_round = each.first_open_round(settings, log)
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
                    save(known.add(trial, seconds))
                    n_scored += 1
                    log.finished(trial, seconds)
        unknown = [n for n, task in enumerate(tasks) if known.find(task, each.outer) is None]
        missing.update(shares_holding(unknown, len(tasks), part.count))
        n_candidates += len(tasks)
    return TaskResult(n_scored, n_candidates, tuple(sorted(missing)))
