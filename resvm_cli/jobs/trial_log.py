"""The trials of a tuning: one line each, in task order, replayed when a run is resumed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from resvm_cli.errors import DataError
from resvm_cli.files.logs import RunDirectory
from resvm_cli.tuning.criteria import Scores
from resvm_cli.tuning.strategies import Task

TRIALS, TIMINGS, BEST = "trials.jsonl", "timings.jsonl", "best.json"


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
            names = ("values", "deviation", "recall", "fraction_positive", "n_judged")
            scores = Scores(**{name: record[name] for name in names})
        trial = Trial(number, task, scores, record.get("error"), outer)
        if trial.record != record:
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
