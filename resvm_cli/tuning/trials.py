"""Run trials: score candidates in threads, log them in order, and replay them on resume.

The tasks of an array job divide a round among themselves. A round consists of the candidates that
the search can propose before it needs their scores. Each task writes its trials to its own file, so
that no two nodes write to the same file. The final run reads these trials instead of scoring the
candidates again.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

from resvm_cli.errors import DataError, Message, ResvmError
from resvm_cli.files.json_files import RunDirectory, TaskFiles
from resvm_cli.parameters import MethodName
from resvm_cli.records import dataclass
from resvm_cli.running.run import Run, Share, shares_holding
from resvm_cli.tuning.sample import TuningSample
from resvm_cli.tuning.search import Outcome, Scores, Search, Trial, TuningSettings, search
from resvm_cli.tuning.space import Candidate
from resvm_cli.tuning.validation import CandidateScorer

TRIALS, TIMINGS, BEST = "trials.jsonl", "timings.jsonl", "best.json"
MAX_BATCH = 8  # candidates with the same kernel that one thread trains together


def _recorded_scores(record: dict[str, Any], metric: str) -> Scores | None:
    """Return the scores of a logged trial, or None if any of them is not a number."""
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
    """Whether this is a complete, valid trial that a task of an array job has stored."""
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
        """Add a trial and return its record, as a task stores it: without the trial number."""
        content = {name: value for name, value in trial.record.items() if name != "trial"}
        record = {"trial": content, "seconds": round(seconds, 4)}
        self._records[_key(content)] = record
        return record

    def find(self, candidate: Candidate) -> dict[str, Any] | None:
        return self._records.get(
            _key({"method": candidate.method, "params": candidate.named_values})
        )


def _key(record: dict[str, Any]) -> str:
    return json.dumps([record.get("method"), record.get("params")], sort_keys=True)


@dataclass(eq=False)
class TrialLog:
    """The finished trials in order, in memory and optionally in a directory to resume from."""

    settings: TuningSettings
    run: Run
    known: KnownTrials = field(default_factory=KnownTrials)
    directory: RunDirectory | None = None
    records: Sequence[dict[str, Any]] = ()  # of an earlier run
    trials: list[Trial] = field(default_factory=list)
    n_repeated: int = 0
    _best: float | None = None
    _expected: int = 0

    def expect(self, count: int) -> None:
        self._expected += count
        self.tick()

    def tick(self) -> None:
        stage = "tuning"
        if self.directory is not None and self._best is not None:
            stage += f", best {self.settings.metric} {self._best:.4f}"
        self.run.progress(stage, len(self.trials), self._expected)

    def recorded(self, candidate: Candidate) -> Trial:
        """Return the next trial from the log of an earlier run."""
        number = len(self.trials)
        record = self.records[number]
        trial = self._from_record(candidate, record)
        if trial.record != record or (trial.scores is None and type(trial.error) is not str):
            assert self.directory is not None
            raise DataError(
                f"{self.directory.path}/{TRIALS}:{number + 1}: not the expected trial",
                Message("start over with another {output}"),
            )
        self.n_repeated += 1
        self._add(trial)
        return trial

    def taken(self, candidate: Candidate) -> Trial | None:
        """Return the next trial if a task of an array job has scored it, else None."""
        record = self.known.find(candidate)
        if record is None:
            return None
        trial = self._from_record(candidate, record["trial"])
        self.finished(trial, record["seconds"])
        return trial

    def _from_record(self, candidate: Candidate, record: dict[str, Any]) -> Trial:
        scores = None if "error" in record else _recorded_scores(record, self.settings.metric)
        return self.trial(candidate, scores, record.get("error"))

    def trial(self, candidate: Candidate, scores: Scores | None, error: str | None) -> Trial:
        score = None if scores is None else scores.values[self.settings.metric]
        members = self.settings.scored_members
        return Trial(len(self.trials), candidate, members, score, scores, error)

    def finished(self, trial: Trial, seconds: float) -> None:
        if self.directory is not None:
            self.directory.append(TRIALS, trial.record)
            self.directory.append(TIMINGS, {"trial": trial.number, "seconds": round(seconds, 4)})
        self._add(trial)
        self.tick()

    def _add(self, trial: Trial) -> None:
        self.trials.append(trial)
        if trial.score is not None:
            self._best = trial.score if self._best is None else max(self._best, trial.score)


def start(sample: TuningSample, method: MethodName, settings: TuningSettings) -> Search:
    informed = sample.informed(settings) if settings.search == "informed" else ()
    return search(sample.space(method, settings), settings, informed)


def run_search(sample: TuningSample, method: MethodName, log: TrialLog) -> Outcome:
    settings = log.settings
    scorer = CandidateScorer(sample, settings)
    going = start(sample, method, settings)
    try:
        candidates = next(going)
        while True:
            candidates = going.send([*_trials(scorer, candidates, log)])
    except StopIteration as ended:
        outcome: Outcome | None = ended.value
    if outcome is None:
        why = next((trial.error for trial in reversed(log.trials) if trial.error), "no trials")
        advice = Message("use cross-validation ({folds:5}), or train without tuning")
        raise DataError(
            f"no {method} candidate could be scored: {why}", advice if settings.oob else None
        )
    return outcome


def _trials(scorer: CandidateScorer, candidates: list[Candidate], log: TrialLog) -> Iterator[Trial]:
    """Yield the trials of these candidates: from the log, from an array job, or newly scored."""
    log.expect(len(candidates))
    n_logged = max(0, len(log.records) - len(log.trials))
    for candidate in candidates[:n_logged]:
        yield log.recorded(candidate)
    remaining = candidates[n_logged:]
    unknown = [candidate for candidate in remaining if log.known.find(candidate) is None]
    fresh = scored_trials(scorer, unknown, log)
    for candidate in remaining:
        trial = log.taken(candidate)
        if trial is None:
            trial, seconds = next(fresh)
            log.finished(trial, seconds)
        yield trial


def scored_trials(
    scorer: CandidateScorer, candidates: Sequence[Candidate], log: TrialLog
) -> Iterator[tuple[Trial, float]]:
    """Yield each candidate's trial, numbered to continue the log, and its time in seconds."""
    batches = list(_batches(candidates))

    def name(number: int) -> str:
        return f"the candidate {batches[number][0].named_values} or another one in its batch"

    scored = log.run.map_shared(_score_batch, scorer, batches, log.tick, name)
    for batch, (found, seconds) in zip(batches, scored, strict=True):
        for candidate, scores in zip(batch, found, strict=True):
            if isinstance(scores, ResvmError):
                yield log.trial(candidate, None, str(scores.message)), seconds
            else:
                yield log.trial(candidate, scores, None), seconds


def _score_batch(
    scorer: CandidateScorer, batch: list[Candidate]
) -> tuple[list[Scores | ResvmError], float]:
    """Score candidates together; return each one's scores and the mean time in seconds."""
    started = time.perf_counter()
    found = scorer.scores(batch, Run(jobs=1))
    return found, (time.perf_counter() - started) / len(batch)


def _batches(candidates: Sequence[Candidate]) -> Iterator[list[Candidate]]:
    """Yield consecutive candidates that have the same kernel, a few at a time."""
    for _, same in itertools.groupby(candidates, lambda candidate: candidate.kernel_key):
        of_kernel = list(same)
        for first in range(0, len(of_kernel), MAX_BATCH):
            yield of_kernel[first : first + MAX_BATCH]


def _open_round(
    sample: TuningSample, method: MethodName, log: TrialLog
) -> tuple[int, list[Candidate]] | None:
    """Return the first round that array tasks have not finished; None if all are finished."""
    going = start(sample, method, log.settings)
    number = 0
    try:
        candidates = next(going)
        while all(log.known.find(candidate) is not None for candidate in candidates):
            trials = [log.taken(candidate) for candidate in candidates]
            number += 1
            candidates = going.send([trial for trial in trials if trial is not None])
    except StopIteration:
        return None
    return number, candidates


@dataclass(frozen=True)
class TaskResult:
    """The result of one task of an array job."""

    n_scored: int
    n_candidates: int  # in all open rounds
    missing: tuple[int, ...]  # tasks with candidates that have no scores yet


def run_array_task(
    sample: TuningSample, settings: TuningSettings, files: TaskFiles, part: Share, run: Run
) -> TaskResult:
    """Score this task's share of the open round in each method's search."""
    known = KnownTrials(files.read())
    n_scored = n_candidates = 0
    missing: set[int] = set()
    for method in settings.methods:
        log = TrialLog(settings, run, known)
        open_round = _open_round(sample, method, log)
        if open_round is None:
            continue
        number, candidates = open_round
        own = [candidates[position] for position in part.of(len(candidates))]
        left = [candidate for candidate in own if known.find(candidate) is None]
        log.expect(len(left))
        kept = [record for candidate in own if (record := known.find(candidate)) is not None]
        if left:
            scorer = CandidateScorer(sample, settings)
            with files.saving(f"main-{method}-{number}", part, kept) as save:
                for trial, seconds in scored_trials(scorer, left, log):
                    save(known.add(trial, seconds))
                    n_scored += 1
                    log.finished(trial, seconds)
        unknown = [n for n, each in enumerate(candidates) if known.find(each) is None]
        missing.update(shares_holding(unknown, len(candidates), part.count))
        n_candidates += len(candidates)
    return TaskResult(n_scored, n_candidates, tuple(sorted(missing)))
