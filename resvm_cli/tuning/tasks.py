"""A tuning shared by the tasks of an array job: each judges its share of a round of candidates.

A task's trials go to a file of its own, so that no two nodes write to one; the tuning itself takes
them from there as if it had judged them. A round is what the search can propose before it must know
scores: all candidates at first, then the next round of halving or an extended range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from resvm_cli.errors import Text
from resvm_cli.files.run_directory import TaskFiles
from resvm_cli.parameters import MethodName
from resvm_cli.running.array_tasks import Share, shares_holding
from resvm_cli.running.run import Run
from resvm_cli.tuning.sample import TuningSample
from resvm_cli.tuning.search import Task
from resvm_cli.tuning.settings import TuningSettings
from resvm_cli.tuning.trials import KnownTrials, TrialLog, Watch, judged_units, rounds
from resvm_cli.tuning.validation import Judge


@dataclass(frozen=True)
class TaskResult:
    """What a task did, for the report."""

    path: str
    share: Share
    n_judged: int
    n_candidates: int  # of all rounds that are open
    missing: tuple[int, ...]  # tasks whose candidates are not judged yet
    notes: tuple[Text, ...]


def judge_share(
    searches: Sequence[tuple[str, TuningSample, MethodName, int | None]],
    settings: TuningSettings,
    files: TaskFiles,
    share: Share,
    run: Run,
    watch: Watch,
) -> tuple[int, int, tuple[int, ...]]:
    """Judge this task's share of the open round of each search.

    Tells how many were judged, of how many, and which tasks are still to come.
    """
    known = KnownTrials(files.read())
    n_judged = n_candidates = 0
    missing: set[int] = set()
    for name, sample, method, outer in searches:
        log = TrialLog(None, (), settings.metric, watch)
        open_round = _first_open(name, sample, method, outer, settings, known, log)
        if open_round is None:
            continue
        label, judge, tasks = open_round
        own = [tasks[place] for place in share.of(len(tasks))]
        left = [task for task in own if known.find(task, outer) is None]
        log.expect(len(left))
        kept = [record for task in own if (record := known.find(task, outer)) is not None]
        if left:
            with files.saving(label, share, kept) as save:
                for trial, seconds in judged_units(judge, left, log, run, outer):
                    known.add(trial, seconds)
                    save(KnownTrials.stored(trial, seconds))
                    n_judged += 1
                    log.finished(trial, seconds)
        unknown = [place for place, task in enumerate(tasks) if known.find(task, outer) is None]
        missing.update(shares_holding(unknown, len(tasks), share.count))
        n_candidates += len(tasks)
    return n_judged, n_candidates, tuple(sorted(missing))


def _first_open(
    name: str,
    sample: TuningSample,
    method: MethodName,
    outer: int | None,
    settings: TuningSettings,
    known: KnownTrials,
    log: TrialLog,
) -> tuple[str, Judge, list[Task]] | None:
    """The first round that is not all known; None where the search is at its end."""
    going = rounds(sample, method, settings)
    number = 0
    try:
        tasks = next(going)
        while all(known.find(task, outer) is not None for task in tasks):
            trials = [log.taken(known, task, outer) for task in tasks]
            number += 1
            tasks = going.send(trials)
    except StopIteration:
        return None
    return f"{name}-{method}-{number}", sample.judge(settings), tasks
