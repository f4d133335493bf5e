"""``tune``: find the hyperparameters that score best on P and U, with a log to resume from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from resvm_cli import __version__, randomness
from resvm_cli.errors import Interrupted, Message, ParameterError, ResvmError, Text
from resvm_cli.files.row_lists import read_names
from resvm_cli.files.run_directory import RunDirectory, TaskFiles
from resvm_cli.model.bags import require_weighted_draws
from resvm_cli.model.plan import problems
from resvm_cli.model.pu_data import PUData
from resvm_cli.parameters import SHARED_NAMES, TUNING_TABLE, RuleName, Setting
from resvm_cli.records import dataclass
from resvm_cli.rows import IntArray
from resvm_cli.running import parallel
from resvm_cli.running.run import Run, Share
from resvm_cli.svm.solver_libraries import silenced
from resvm_cli.training import best_json
from resvm_cli.training.data import TrainingData
from resvm_cli.training.input import TrainingInput
from resvm_cli.training.resource_budget import kept_nonzeros
from resvm_cli.tuning import committee
from resvm_cli.tuning.committee import Pooled
from resvm_cli.tuning.sample import TuningSample, within_memory
from resvm_cli.tuning.search import Outcome, ScoringTask
from resvm_cli.tuning.settings import DEFAULT_MEMBERS, TuningSettings
from resvm_cli.tuning.space import Candidate
from resvm_cli.tuning.trials import (
    TRIALS,
    KnownTrials,
    OpenSearch,
    Trial,
    TrialLog,
    Watch,
    is_known_trial,
    run_array_task,
    run_search,
)
from resvm_cli.tuning.validation import CandidateScorer, ScoredSample

# Members are added until two halves of the ensemble agree (paper, section 3.1).
MEMBER_STEPS = (25, 50, 100, 200, 400, 800)
SCORE_TOLERANCE = 0.02  # largest difference between the halves' criteria
TOP_FRACTION = 0.05  # of U
MIN_OVERLAP = 0.8  # between the top rows of the two halves


@dataclass(frozen=True)
class TuneRequest(TuningSettings):
    """What to tune, how, and where to write the log."""

    source: TrainingInput
    target: str
    folds_file: str | None = None
    resume: bool = False
    task: Share | None = None  # of an array job: score only this part of the candidates

    def check(self) -> None:
        """Reject requests that cannot work, before any file is read."""
        self.source.check()
        super().check()
        for method in self.methods if self.source.weights is not None else ():
            require_weighted_draws(method)
        if self.folds_file is not None and self.repeats > 1:
            raise ParameterError("give either {folds_file} or {repeats}, not both")

    def for_its_kernel(self) -> TuneRequest:
        """Return the request with its input read as the kernel needs it."""
        return replace(self, source=self.source.for_kernel(self.base.kernel))


@dataclass(frozen=True)
class Winner:
    """The best settings of one method, ready to be trained."""

    trial: Trial  # of the best setting
    settings: tuple[Setting, ...]
    params: dict[str, Any]  # as in best.json
    outcome: Outcome
    n_trials: int


@dataclass(frozen=True)
class EnsembleSize:
    """The score of an ensemble of this size, and how well its two halves agree."""

    n_models: int
    score: float
    difference: float  # between the criteria of the two halves
    overlap: float  # between the top rows of U of the two halves

    @property
    def stable(self) -> bool:
        return abs(self.difference) <= SCORE_TOLERANCE and self.overlap >= MIN_OVERLAP


@dataclass(frozen=True)
class SearchResult:
    """The result of all searches of a tuning run."""

    best: Winner
    winners: tuple[Winner, ...]  # one for each method, best first
    trials: tuple[Trial, ...]
    n_repeated: int  # trials taken from an earlier run
    outer: tuple[float, ...]  # the criterion on each outer fold, after its own search
    sizes: tuple[EnsembleSize, ...]  # those tried with n_models="auto"
    n_scored: tuple[int, int]  # rows of P and of U

    @property
    def params(self) -> dict[str, Any]:
        """The parameters as written to best.json."""
        return best_json.joined([winner.params for winner in self.winners])


@dataclass(frozen=True)
class TuneResult(SearchResult):
    """The result with its request, for the report."""

    request: TuneRequest
    notes: tuple[Text, ...]


def tune(
    request: TuneRequest, run: Run, watch: Watch = lambda done, total, best: None
) -> TuneResult:
    """Search, log every trial, and write the best parameters."""
    assert request.task is None
    request.check()
    request = request.for_its_kernel()
    # reject an existing directory before reading the data, which can take hours
    RunDirectory(request.target, TRIALS, {}, resume=request.resume)
    with _prepared(request, run) as ready:
        request, data, sample = ready.request, ready.data, ready.sample
        settings = _settings(request, data, sample)
        known = KnownTrials(_task_files(request, settings).read())
        directory = RunDirectory(request.target, TRIALS, settings, resume=request.resume)
        with directory.opened() as records:
            log = TrialLog(directory, records, request.metric, watch, known)
            try:
                found = _search_all(request, data, sample, log, ready.run)
            except Interrupted:
                run.notice(
                    Message(
                        "{n:,} trials are saved; continue with the same command and {resume:True}",
                        n=len(log.trials),
                    )
                )
                raise
            log.write_best(found.params)
    return TuneResult(**vars(found), request=request, notes=tuple(run.notes))


def tune_on(data: PUData, settings: TuningSettings, run: Run) -> SearchResult:
    """Search on data that is already in memory, without writing anything."""
    for text in data.notes:
        run.notice(text)
    sample = TuningSample.from_data(data, settings, run)
    log = TrialLog(
        None, (), settings.metric, lambda done, total, best: run.progress("tuning", done, total)
    )
    return _search_all(settings, data, sample, log, run)


@dataclass(frozen=True)
class TuneTaskResult:
    """What one task of an array job did, for the report."""

    path: str
    task: Share
    n_scored: int
    n_candidates: int  # in all open rounds
    missing: tuple[int, ...]  # tasks whose candidates have no scores yet
    notes: tuple[Text, ...]


def tune_task(
    request: TuneRequest, run: Run, watch: Watch = lambda done, total, best: None
) -> TuneTaskResult:
    """Score this task's part of the candidates known so far; ``tune`` will use the scores."""
    request.check()
    request = request.for_its_kernel()
    assert request.task is not None
    with _prepared(request, run) as ready:
        request, sample = ready.request, ready.sample
        assert request.task is not None
        files = _task_files(request, _settings(request, ready.data, sample))
        searches = [OpenSearch("main", sample, method, None) for method in request.methods]
        for fold, inner in sample.outer_samples(request):
            searches += [
                OpenSearch(f"outer-{fold}", inner, method, fold) for method in request.methods
            ]
        counts = run_array_task(searches, request, files, request.task, ready.run, watch)
    return TuneTaskResult(request.target, request.task, *counts, tuple(run.notes))


@dataclass(frozen=True, eq=False)
class _Prepared:
    """The data and the sample, with the request and run reduced to fit into memory."""

    request: TuneRequest
    data: TrainingData
    sample: TuningSample
    run: Run


@contextmanager
def _prepared(request: TuneRequest, run: Run) -> Iterator[_Prepared]:
    kept = kept_nonzeros(run.memory_mb)
    with (
        parallel.inner_threads_held(),
        silenced(),
        TrainingData(request.source, False, run, kept) as data,
    ):
        for text in data.notes:
            run.notice(text)
        sample = _sample(request, data, run)
        sample, request, within = within_memory(data, sample, request, run)
        yield _Prepared(request, data, sample, within)


def _task_files(request: TuneRequest, settings: dict[str, Any]) -> TaskFiles:
    return TaskFiles(
        request.target, settings, lambda record: is_known_trial(record, request.metric)
    )


def _sample(request: TuneRequest, data: TrainingData, run: Run) -> TuningSample:
    if request.folds_file is None:
        return TuningSample.from_data(data, request, run)
    folds = data.in_order(_fold_numbers(request.folds_file), request.folds_file)
    return TuningSample.from_data(data, request, run, folds, request.folds_file)


def _fold_numbers(path: str) -> IntArray:
    """Return the fold of each row; fold names are numbered from 0 in sorted order."""
    names = np.array(read_names(path), object)
    return np.unique(names, return_inverse=True)[1].reshape(-1)


def _search_all(
    settings: TuningSettings, data: PUData, sample: TuningSample, log: TrialLog, run: Run
) -> SearchResult:
    """Search for every method, then compute outer estimates and the ensemble size."""
    scale = data.scale
    winners = []
    for method in settings.methods:
        outcome = run_search(sample, method, settings, log, run)
        winners.append(winner_of(outcome, sample, settings, log, data, scale))
        for remark in outcome.edges:
            run.notice(remark)
    winners.sort(key=lambda winner: -winner.trial.score(settings.metric))
    outer = tuple(_outer_estimates(settings, sample, log, run))
    sizes: tuple[EnsembleSize, ...] = ()
    best = winners[0]
    candidate = best.trial.task.candidate
    if settings.n_models == "auto" and candidate.method == "resvm":
        scorer = CandidateScorer(sample, replace(settings, oob=True))
        sizes = tuple(ensemble_sizes(scorer, candidate, run))
        best.params["n_models"] = sizes[-1].n_models
    return SearchResult(
        best,
        tuple(winners),
        tuple(log.trials),
        log.n_repeated,
        outer,
        sizes,
        (sample.rows_pos, sample.rows_unl),
    )


def winner_of(
    outcome: Outcome,
    sample: TuningSample,
    settings: TuningSettings,
    log: TrialLog,
    data: PUData,
    scale: str | None,
) -> Winner:
    """Return the outcome of a search as settings to train and content for best.json."""
    chosen = _chosen(outcome, sample, settings, log)
    best = chosen[0].result if len(chosen) == 1 else outcome.best
    trial = log.trials[best.number]
    assert trial.scores is not None
    pooled_settings = [
        Setting(
            pooled.result.task.candidate.parameters(
                settings.base, pooled.n_models, len(data.positives), data.n_unlabeled
            ),
            pooled.weight,
            pooled.result.task.candidate.scale,
        )
        for pooled in chosen
    ]
    selected_by = {
        "metric": settings.metric,
        "score": trial.score(settings.metric),
        "deviation": trial.scores.deviation,
        "estimate": "oob" if settings.oob else "folds",
        "optimistic": True,
        "trial": trial.number,
    }
    decision: RuleName = "mean" if settings.search == "informed" else "votes"
    content = best_json.described(pooled_settings, decision, scale, selected_by, data.description())
    return Winner(trial, tuple(pooled_settings), content, outcome, len(log.trials))


def _chosen(
    outcome: Outcome, sample: TuningSample, settings: TuningSettings, log: TrialLog
) -> list[Pooled]:
    """Return the candidates that make up the model."""
    best = outcome.best
    asked = settings.n_models if isinstance(settings.n_models, int) else None
    if settings.committee > 1:
        return committee.pooled(outcome.results, asked, settings.committee)
    if settings.search == "informed":
        untuned = sample.informed(settings)[0]
        scores = log.trials[best.number].scores
        assert scores is not None
        error = float(scores.deviation / np.sqrt(sample.folds.n_folds))
        n_models = asked or DEFAULT_MEMBERS
        return [committee.single(outcome.results, untuned, n_models, error)]
    return [Pooled(best, 1.0, best.task.n_models)]


def _outer_estimates(
    settings: TuningSettings, sample: TuningSample, log: TrialLog, run: Run
) -> Iterator[float]:
    """Yield the criterion on each outer fold, after a search without the rows of that fold."""
    for fold, inner in sample.outer_samples(settings):
        outcomes = [
            run_search(inner, method, settings, log, run, fold) for method in settings.methods
        ]
        best = max(outcomes, key=lambda outcome: outcome.best.score or 0.0).best.task
        scorer = CandidateScorer(sample, settings)
        line = sample.outer_folds(settings).parts[0]
        with scorer.trainer(best, run) as trainer:
            (held,) = scorer.held_out_fold([best], trainer, line, fold, fold, randomness.OUTER_FOLD)
        if isinstance(held, ResvmError):
            raise held
        yield scorer.criterion(held)


def ensemble_sizes(
    scorer: CandidateScorer, candidate: Candidate, run: Run
) -> Iterator[EnsembleSize]:
    """Yield larger and larger ensembles until their two disjoint halves agree out of bag."""
    largest = ScoringTask(candidate, MEMBER_STEPS[-1])
    sizes = scorer.rows_pos, scorer.rows_unl
    weights = scorer.sample.positive_weights
    plan = scorer.plan(largest, *sizes, scorer.settings.base.seed, weights)
    members = list(problems(plan, range(MEMBER_STEPS[-1])))
    values = np.zeros((sum(sizes), 0))
    with scorer.trainer(largest, run) as trainer:
        for n_models in MEMBER_STEPS:
            more = trainer.member_values(members[values.shape[1] : n_models]).T
            values = np.ascontiguousarray(np.hstack([values, more]))
            whole = scorer.score_out_of_bag(members[:n_models], values)
            halves = [
                scorer.score_out_of_bag(
                    members[side:n_models:2], np.ascontiguousarray(values[:, side::2])
                )
                for side in (0, 1)
            ]
            first, second = map(scorer.criterion, halves)
            size = EnsembleSize(
                n_models, scorer.criterion(whole), first - second, _overlap(*halves)
            )
            yield size
            if size.stable:
                return


def _overlap(first: ScoredSample, second: ScoredSample) -> float:
    """Return the fraction of the top rows of U that two rankings have in common."""
    tops = []
    for rows in (first, second):
        unlabeled = np.flatnonzero(~rows.positive)
        count = max(10, round(TOP_FRACTION * len(unlabeled)))
        order = np.argsort(-rows.values[unlabeled], kind="stable")[:count]
        tops.append(set(rows.rows[unlabeled[order]].tolist()))
    return len(tops[0] & tops[1]) / max(1, min(map(len, tops)))


# Parameters that are logged under another name or do not affect the trials.
NOT_LOGGED = ("oob", "contamination_pos", "contamination_unl", "gram_mb", "cache_mb")


def _settings(request: TuneRequest, data: PUData, sample: TuningSample) -> dict[str, Any]:
    """Return everything that determines the trials; a run can only be resumed with the same."""
    logged = {
        "kind": "resvm-tuning",
        "format": 1,
        "resvm": __version__,
        "data": data.description(),
        "scale": request.source.scale,
        "zero_based": request.source.zero_based,
        "groups": request.source.groups is not None,
        "methods": list(request.methods),
        "kernel": request.base.kernel,
        "seed": request.base.seed,
        "tolerance": request.base.tolerance,
        "space": {
            method: {axis.name: str(axis) for axis in sample.space(method, request).axes}
            for method in request.methods
        },
        "metric": request.metric,
        "up_to": request.up_to,
        "estimate": "oob" if request.oob else "folds",
        "folds": sample.folds.n_folds,
        "repeats": request.repeats,
        "folds_file": request.folds_file is not None,
        "search": request.search,
        "committee": request.committee,
        "trials": request.trials,
        "n_models": request.n_models,
        "max_extensions": request.max_extensions,
        "outer": request.outer,
        "contamination": [request.contamination_pos, request.contamination_unl],
        "max_unl": request.max_unl,
        "shared_kernels": sample.kernels.shares_kernels,
    }
    every = {name: getattr(request.base, name) for name in SHARED_NAMES}
    every |= {name: getattr(request, name) for name in TUNING_TABLE}
    known = {*logged, *NOT_LOGGED}
    return logged | {name: value for name, value in every.items() if name not in known}
