"""P and U to the hyperparameters that judge them best: searched, logged, resumable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from resvm_cli import __version__, randomness
from resvm_cli.errors import (
    Interrupted,
    Message,
    ParameterError,
    ResvmError,
    Text,
)
from resvm_cli.files.row_lists import read_names
from resvm_cli.files.run_directory import RunDirectory, TaskFiles
from resvm_cli.model.bags import require_weighted_draws
from resvm_cli.model.pu_data import PUData
from resvm_cli.parameters import MethodName, RuleName, Setting
from resvm_cli.rows import IntArray
from resvm_cli.running import parallel
from resvm_cli.running.array_tasks import Share
from resvm_cli.running.run import Run
from resvm_cli.svm.solver_libraries import silenced
from resvm_cli.training import best_json as params_file
from resvm_cli.training.data import TrainingData
from resvm_cli.training.input import TrainingInput
from resvm_cli.training.resource_budget import kept_nonzeros
from resvm_cli.tuning import committee
from resvm_cli.tuning.committee import Pooled
from resvm_cli.tuning.criteria import criterion
from resvm_cli.tuning.ensemble_size import Growth, grow
from resvm_cli.tuning.folds import Folds
from resvm_cli.tuning.sample import TuningSample, within_memory
from resvm_cli.tuning.search import Outcome
from resvm_cli.tuning.settings import USUAL_MEMBERS, TuningSettings
from resvm_cli.tuning.tasks import TaskResult, judge_share
from resvm_cli.tuning.trials import (
    TRIALS,
    KnownTrials,
    Trial,
    TrialLog,
    Watch,
    is_known_trial,
    run_search,
)
from resvm_cli.tuning.validation import params_of


@dataclass(frozen=True)
class TuneRequest(TuningSettings):
    """What to tune, how, and where the log goes."""

    source: TrainingInput
    target: str
    folds_file: str | None = None
    resume: bool = False
    share: Share | None = None  # judge this share of the candidates alone

    def check(self) -> None:
        """Refuse what cannot work, before any file is read."""
        self.source.check()
        super().check()
        for method in self.methods if self.source.weights is not None else ():
            require_weighted_draws(method)
        if self.folds_file is not None and self.repeats > 1:
            raise ParameterError("give either {folds_file} or {repeats}, not both")

    def for_its_kernel(self) -> TuneRequest:
        """With the input read as its kernel asks for."""
        return replace(self, source=self.source.for_kernel(self.base.kernel))


@dataclass(frozen=True)
class Winner:
    """The best of one method, and what is needed to train it."""

    trial: Trial  # of the best setting
    settings: tuple[Setting, ...]
    params: dict[str, Any]  # as in best.json
    outcome: Outcome
    n_trials: int


@dataclass(frozen=True)
class SearchResult:
    """What a search found."""

    best: Winner
    winners: tuple[Winner, ...]  # one for each method, best first
    trials: tuple[Trial, ...]
    n_repeated: int  # trials taken from an earlier run
    outer: tuple[float, ...]  # the criterion on outer folds, each after a search of its own
    growth: tuple[Growth, ...]  # score against members, where they were grown
    n_judged: tuple[int, int]  # rows of P and of U

    @property
    def params(self) -> dict[str, Any]:
        """As in best.json."""
        return params_file.joined([winner.params for winner in self.winners])


@dataclass(frozen=True)
class TuneResult(SearchResult):
    """What was asked for and found, for the report."""

    request: TuneRequest
    notes: tuple[Text, ...]


def tune(
    request: TuneRequest, run: Run, watch: Watch = lambda done, total, best: None
) -> TuneResult:
    """Search, log every trial, write the best."""
    assert request.share is None
    request.check()
    request = request.for_its_kernel()
    # an existing directory is refused before hours of reading
    RunDirectory(request.target, TRIALS, {}, resume=request.resume)
    with _prepared(request, run) as ready:
        request, data, sample = ready.request, ready.data, ready.sample
        settings = _settings(request, data, sample)
        elsewhere = KnownTrials(_task_files(request, settings).read())
        directory = RunDirectory(request.target, TRIALS, settings, resume=request.resume)
        with directory.opened() as records:
            log = TrialLog(directory, records, request.metric, watch, elsewhere)
            try:
                found = _search_all(request, data, sample, log, ready.run)
            except Interrupted:
                run.notice(
                    Message(
                        "{n:,} trials are kept; the same command with {resume:True} continues",
                        n=len(log.trials),
                    )
                )
                raise
            log.write_best(found.params)
    return TuneResult(**vars(found), request=request, notes=tuple(run.notes))


def tune_on(data: PUData, settings: TuningSettings, run: Run) -> SearchResult:
    """Search on sets that are read already; nothing is written."""
    for text in data.notes:
        run.notice(text)
    sample = TuningSample.of(data, settings, run)
    log = TrialLog(
        None, (), settings.metric, lambda done, total, best: run.progress("tuning", done, total)
    )
    return _search_all(settings, data, sample, log, run)


def tune_share(
    request: TuneRequest, run: Run, watch: Watch = lambda done, total, best: None
) -> TaskResult:
    """Judge a share of the candidates that can be judged now, for the tuning to take up."""
    request.check()
    request = request.for_its_kernel()
    assert request.share is not None
    with _prepared(request, run) as ready:
        request, sample = ready.request, ready.sample
        assert request.share is not None
        files = _task_files(request, _settings(request, ready.data, sample))
        searches: list[tuple[str, TuningSample, MethodName, int | None]]
        searches = [("main", sample, method, None) for method in request.methods]
        for fold, inner in _outer_samples(request, sample):
            searches += [(f"outer-{fold}", inner, method, fold) for method in request.methods]
        counts = judge_share(searches, request, files, request.share, ready.run, watch)
    return TaskResult(request.target, request.share, *counts, tuple(run.notes))


@dataclass(frozen=True, eq=False)
class _Prepared:
    """Rows that are read and drawn, and how they are judged within the memory there is."""

    request: TuneRequest
    data: TrainingData
    sample: TuningSample
    run: Run  # with as many threads as there is room for


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
        return TuningSample.of(data, request, run)
    folds = data.in_order(_fold_numbers(request.folds_file), request.folds_file)
    return TuningSample.of(data, request, run, folds, request.folds_file)


def _fold_numbers(path: str) -> IntArray:
    """Folds named by anything, numbered from 0 in the order of their names."""
    names = np.array(read_names(path), object)
    return np.unique(names, return_inverse=True)[1].reshape(-1)


def _search_all(
    request: TuningSettings,
    data: PUData,
    sample: TuningSample,
    log: TrialLog,
    run: Run,
) -> SearchResult:
    """Every method's search, the best of them first."""
    judge = sample.judge(request)
    scale = None if data.scaling is None else data.scaling.kind
    winners = []
    for method in request.methods:
        outcome = run_search(sample, method, request, log, run)
        winners.append(winner_of(outcome, sample, request, log, data, scale))
        for remark in outcome.edges:
            run.notice(remark)
    winners.sort(key=lambda winner: -winner.trial.score(request.metric))
    outer = tuple(_outer_estimates(request, sample, log, run))
    growth: tuple[Growth, ...] = ()
    best = winners[0]
    if request.n_models == "auto" and best.trial.task.candidate.method == "resvm":
        growth = tuple(grow(replace(judge, out_of_bag=True), best.trial.task.candidate, run))
        best.params["n_models"] = growth[-1].n_models
    return SearchResult(
        best,
        tuple(winners),
        tuple(log.trials),
        log.n_repeated,
        outer,
        growth,
        (judge.rows_pos, judge.rows_unl),
    )


def winner_of(
    outcome: Outcome,
    sample: TuningSample,
    settings: TuningSettings,
    log: TrialLog,
    data: PUData,
    scale: str | None,
) -> Winner:
    """What a search came to, as it is trained and written."""
    members = _members(outcome, sample, settings, log)
    best = members[0].result if len(members) == 1 else outcome.best
    trial = log.trials[best.number]
    assert trial.scores is not None
    chosen = [
        Setting(
            params_of(
                pooled.result.task.candidate,
                settings.base,
                pooled.n_models,
                len(data.positives),
                data.n_unlabeled,
            ),
            pooled.weight,
        )
        for pooled in members
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
    content = params_file.described(chosen, decision, scale, selected_by, data.description())
    return Winner(trial, tuple(chosen), content, outcome, len(log.trials))


def _members(
    outcome: Outcome, sample: TuningSample, settings: TuningSettings, log: TrialLog
) -> list[Pooled]:
    """Who takes part in the model."""
    best = outcome.best
    asked = settings.n_models if isinstance(settings.n_models, int) else None
    untuned = sample.informed(settings)[0] if settings.methods == ("resvm",) else None
    if settings.committee > 1:
        return committee.pooled(outcome.results, untuned, asked, settings.committee)
    if settings.search == "informed":
        scores = log.trials[best.number].scores
        assert scores is not None
        error = float(scores.deviation / np.sqrt(sample.folds.n_folds))
        n_models = asked or USUAL_MEMBERS
        return [committee.single(outcome.results, untuned, n_models, error)]
    return [Pooled(best, 1.0, best.task.n_models)]


def _outer_estimates(
    request: TuningSettings, sample: TuningSample, log: TrialLog, run: Run
) -> Iterator[float]:
    """The criterion on rows that had no part in choosing: a search for each outer fold."""
    n_pos, n_unl = len(sample.kernels.positives), len(sample.kernels.unlabeled)
    for fold, inner in _outer_samples(request, sample):
        outcomes = [
            run_search(inner, method, request, log, run, fold) for method in request.methods
        ]
        best = max(outcomes, key=lambda outcome: outcome.best.score or 0.0)
        whole = sample.judge(request)
        plan = whole.plan(best.best.task, n_pos, n_unl, 0)
        line = _outer_folds(request, sample).parts[0]
        with sample.kernels.trainer(plan.kernel, run) as trainer:
            (held,) = whole.held_out_fold(
                [best.best.task], trainer, line, fold, fold, randomness.OUTER_FOLD
            )
        if isinstance(held, ResvmError):
            raise held
        yield criterion(held, request.metric, request.up_to)


def _outer_folds(request: TuningSettings, sample: TuningSample) -> Folds:
    return Folds.drawn(
        len(sample.kernels.positives),
        len(sample.kernels.unlabeled),
        request.outer,
        request.base.seed,
        groups=sample.folds.groups,
        stream=randomness.OUTER_FOLDS,
    )


def _outer_samples(
    request: TuningSettings, sample: TuningSample
) -> Iterator[tuple[int, TuningSample]]:
    """Each outer fold with the rows that are not of it."""
    if request.outer:
        line = _outer_folds(request, sample).parts[0]
        for fold in range(request.outer):
            yield fold, sample.without(line, fold, request)


def _settings(request: TuneRequest, data: PUData, sample: TuningSample) -> dict[str, Any]:
    """All that decides what the trials are; a run is resumed only with the same."""
    base = asdict(request.base)
    return {
        "kind": "resvm-tuning",
        "format": 1,
        "resvm": __version__,
        "data": data.description(),
        "scale": request.source.scale,
        "zero_based": request.source.zero_based,
        "groups": request.source.groups is not None,
        "methods": list(request.methods),
        "kernel": base["kernel"],
        "seed": base["seed"],
        "tolerance": base["tolerance"],
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
