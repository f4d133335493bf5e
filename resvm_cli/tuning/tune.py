"""Find the hyperparameters that score best on P and U.

``tune`` logs every trial, so that it can be resumed. ``train --auto`` scores informed settings out
of bag, on rows in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from resvm_cli import __version__
from resvm_cli.errors import Interrupted, Message, ParameterError, ResvmError
from resvm_cli.files.json_files import RunDirectory, TaskFiles
from resvm_cli.model.pu_data import PUData
from resvm_cli.model.setting_plan import require_weighted_draws
from resvm_cli.parameters import SHARED_NAMES, TUNING_TABLE, MethodParameters, RuleName, Setting
from resvm_cli.records import dataclass
from resvm_cli.running import parallel
from resvm_cli.running.run import Run, Share
from resvm_cli.svm.kernels import Kernel
from resvm_cli.svm.libsvm import silenced
from resvm_cli.training.choice import TrainingChoice, best_json
from resvm_cli.training.data import TrainingData
from resvm_cli.training.input import TrainingInput
from resvm_cli.tuning.sample import TuningSample, within_memory
from resvm_cli.tuning.search import (
    DEFAULT_MEMBERS,
    INFORMED,
    MAX_SETTINGS,
    SCREENING_MEMBERS,
    Outcome,
    Pooled,
    Trial,
    TuningSettings,
    pooled,
    single,
)
from resvm_cli.tuning.space import Axis
from resvm_cli.tuning.trials import (
    BEST,
    TRIALS,
    KnownTrials,
    TaskResult,
    TrialLog,
    is_known_trial,
    run_array_task,
    run_search,
)
from resvm_cli.tuning.validation import CandidateScorer


@dataclass(frozen=True)
class TuneRequest(TuningSettings):
    """What to tune, how, and where to write the log."""

    source: TrainingInput
    target: str
    resume: bool = False

    def check(self) -> None:
        self.source.check()
        super().check()
        for method in self.methods if self.source.weights is not None else ():
            require_weighted_draws(method)


@dataclass(frozen=True)
class Winner:
    """The best settings of one method, ready to be trained."""

    trial: Trial  # the trial of the best setting
    settings: tuple[Setting, ...]
    params: dict[str, Any]  # as in best.json
    outcome: Outcome


@dataclass(frozen=True)
class SearchResult:
    """The result of all searches of a tuning run."""

    winners: tuple[Winner, ...]  # one for each method, best first
    trials: tuple[Trial, ...]
    n_repeated: int  # trials taken from an earlier run
    n_scored: tuple[int, int]  # rows of P and of U

    @property
    def best(self) -> Winner:
        return self.winners[0]

    @property
    def params(self) -> dict[str, Any]:
        """The content of best.json: the best method's parameters, then those of all methods."""
        if len(self.winners) == 1:
            return self.best.params
        methods = {winner.params["method"]: winner.params for winner in self.winners}
        return {**self.best.params, "methods": methods}


def tune(request: TuneRequest, run: Run) -> SearchResult:
    """Search, log every trial, and write the best parameters."""
    request.check()
    # reject an existing directory before reading the data, which can take hours
    RunDirectory(request.target, TRIALS, {}, resume=request.resume)
    with _prepared(request, run) as (request, data, sample, within):
        settings = _settings(request, data, sample)
        known = KnownTrials(_task_files(request, settings).read())
        directory = RunDirectory(request.target, TRIALS, settings, resume=request.resume)
        with directory.opened() as records:
            log = TrialLog(request, within, known, directory, records)
            try:
                found = _search_all(data, sample, log)
            except Interrupted:
                text = "{n:,} trials are saved; continue by adding {resume:True} to the command"
                run.notice(Message(text, n=len(log.trials)))
                raise
            directory.write(BEST, found.params)
    return found


def tune_on(data: PUData, settings: TuningSettings, run: Run) -> SearchResult:
    """Search on data that is already in memory, without writing anything."""
    for text in data.notes:
        run.notice(text)
    sample = TuningSample.from_data(data, settings, run)
    return _search_all(data, sample, TrialLog(settings, run))


def tune_task(request: TuneRequest, task: Share, run: Run) -> TaskResult:
    """Score this task's share of the candidates known so far; ``tune`` will use the scores."""
    request.check()
    with _prepared(request, run) as (request, data, sample, within):
        files = _task_files(request, _settings(request, data, sample))
        return run_array_task(sample, request, files, task, within)


def choose_settings(data: PUData, choice: TrainingChoice, run: Run) -> TrainingChoice:
    """Decide whether to scale; for ``auto``, also choose settings by their out-of-bag scores."""
    settle_scaling(data, choice.params, run)
    if choice.auto is None:
        return choice
    found = _tune_quickly(data, choice, run)
    winner, n_trials = found.best, len(found.trials)
    what = f"the best of {n_trials} settings has"
    if len(winner.settings) > 1:
        what = f"{len(winner.settings)} of {n_trials} settings are pooled; the best has"
    run.remark(
        f"tuned out of bag: {what} an ROC AUC of {winner.trial.score:.4f} for P against U"
        " (optimistic, because it was selected)"
    )
    decision = choice.decision or winner.params.get("decision", "votes")
    return replace(choice, settings=winner.settings, decision=decision, auto=None)


def _tune_quickly(data: PUData, choice: TrainingChoice, run: Run) -> SearchResult:
    """Score informed settings out of bag, on rows in memory."""
    params, kept = choice.params, choice.kept
    if params.method != "resvm":
        raise ParameterError(
            "{auto:True} scores out of bag, which {method:" + params.method + "} does not allow",
            "use tune, which can also use cross-validation",
        )
    settings = TuningSettings(
        base=replace(params, n_models=None, n_pos=None, n_unl=None, w_pos=None),
        axes=tuple(_fixed_axes(params, kept)),
        fixed=kept,
        oob=True,
        committee=1 if choice.auto == "single" else MAX_SETTINGS,
        n_models=params.n_models,
        **INFORMED,
    )
    settings.check()
    sample = TuningSample.from_data(data, settings, run.silent())
    sample, run = within_memory(data, sample, settings, run)
    return _search_all(data, sample, TrialLog(settings, run))


def settle_scaling(data: PUData, params: MethodParameters, run: Run) -> None:
    """Unless the user has decided on scaling, compare the untuned setting with and without it."""
    if not data.scaling_is_open or data.scaling is None:
        return
    if not Kernel(params.kernel).takes_scaling:
        data.scaling = None
        return
    # rbf members, because linear ones are very slow on unscaled features
    settings = TuningSettings(
        base=MethodParameters(seed=params.seed),
        oob=True,
        fixed=("scale",),
        n_models=SCREENING_MEMBERS,
        **INFORMED,
    )
    learned = data.scaling
    scores = []
    for scaling in (learned, None):
        data.scaling = scaling
        sample = TuningSample.from_data(data, settings, run.silent())
        untuned = sample.informed(settings)[:1]
        (score,) = CandidateScorer(sample, settings).scores(untuned, run)
        scores.append(0.0 if isinstance(score, ResvmError) else score.values[settings.metric])
    helps = scores[0] >= scores[1]
    data.scaling = learned if helps else None
    run.remark(
        Message(
            "the features are on different scales: the out-of-bag ROC AUC of P against U is"
            " {scaled:.4f} with {scale:" + learned.kind + "}, {plain:.4f} without; {what}",
            scaled=scores[0],
            plain=scores[1],
            what="they are scaled" if helps else "they are not scaled",
        )
    )


def _fixed_axes(params: MethodParameters, kept: Sequence[str]) -> Iterator[Axis]:
    """Yield an axis with a single value for each parameter that the user has chosen."""
    for name in ("gamma", "degree", "coef0", "n_pos", "w_pos", "c_unl"):
        value = getattr(params, name)
        if name in kept and isinstance(value, (int, float)):
            yield Axis(name, float(value), float(value))
    if "n_unl" in kept and params.n_unl:
        if "n_pos" not in kept or not params.n_pos:
            raise ParameterError("{auto:True} with {n_unl} also needs {n_pos}")
        ratio = params.n_unl / params.n_pos
        yield Axis("unl_per_pos", ratio, ratio)


@contextmanager
def _prepared(
    request: TuneRequest, run: Run
) -> Iterator[tuple[TuneRequest, TrainingData, TuningSample, Run]]:
    """Yield the request adapted to its kernel, the data, the sample, and a run that fits memory."""
    request = replace(request, source=request.source.for_kernel(request.base.kernel))
    with parallel.inner_threads_held(), silenced(), TrainingData(request.source, run) as data:
        for text in data.notes:
            run.notice(text)
        sample = TuningSample.from_data(data, request, run)
        sample, within = within_memory(data, sample, request, run)
        yield request, data, sample, within


def _task_files(request: TuneRequest, settings: dict[str, Any]) -> TaskFiles:
    return TaskFiles(
        request.target, settings, lambda record: is_known_trial(record, request.metric)
    )


def _search_all(data: PUData, sample: TuningSample, log: TrialLog) -> SearchResult:
    """Run the search for every method."""
    winners = []
    for method in log.settings.methods:
        outcome = run_search(sample, method, log)
        winners.append(_winner(outcome, sample, log.settings, data))
        for remark in outcome.edges:
            log.run.notice(remark)
    winners.sort(key=lambda winner: -(winner.trial.score or 0.0))
    n_scored = sample.rows_pos, sample.rows_unl
    return SearchResult(tuple(winners), tuple(log.trials), log.n_repeated, n_scored)


def _winner(
    outcome: Outcome, sample: TuningSample, settings: TuningSettings, data: PUData
) -> Winner:
    """Return the winner of a search: the settings to train and the content of best.json."""
    chosen = _chosen(outcome, sample, settings)
    trial = chosen[0].trial
    assert trial.scores is not None
    pooled_settings = []
    for each in chosen:
        candidate, sizes = each.trial.candidate, (len(data.positives), data.n_unlabeled)
        params = candidate.parameters(settings.base, each.n_models, *sizes)
        pooled_settings.append(Setting(params, each.weight, candidate.scale))
    selected_by = {
        "metric": settings.metric,
        "score": trial.score,
        "deviation": trial.scores.deviation,
        "estimate": "oob" if settings.oob else "folds",
        "optimistic": True,
        "trial": trial.number,
    }
    decision: RuleName = "mean" if settings.search == "informed" else "votes"
    content = best_json(pooled_settings, decision, data.scale, selected_by, data.description())
    return Winner(trial, tuple(pooled_settings), content, outcome)


def _chosen(outcome: Outcome, sample: TuningSample, settings: TuningSettings) -> list[Pooled]:
    """Return the candidates that make up the model, best first."""
    best = outcome.best
    if settings.committee > 1:
        return pooled(outcome.trials, settings.n_models, settings.committee)
    if settings.search == "informed":
        assert best.scores is not None
        error = float(best.scores.deviation / np.sqrt(sample.folds.n_folds))
        trial = single(outcome.trials, sample.informed(settings)[0], error)
        return [Pooled(trial, 1.0, settings.n_models or DEFAULT_MEMBERS)]
    return [Pooled(best, 1.0, best.n_models)]


def _settings(request: TuneRequest, data: PUData, sample: TuningSample) -> dict[str, Any]:
    """Return all that determines the trials; a run is resumed only if none of it has changed."""
    shared = {name: getattr(request.base, name) for name in SHARED_NAMES if name != "cache_mb"}
    return {
        "kind": "resvm-tuning",
        "format": 2,
        "resvm": __version__,
        "data": data.description(),
        "scale": request.source.scale,
        "zero_based": request.source.zero_based,
        "groups": request.source.groups is not None,
        "methods": list(request.methods),
        "space": {
            method: {axis.name: str(axis) for axis in sample.space(method, request).axes}
            for method in request.methods
        },
        **shared,
        **{name: getattr(request, name) for name in TUNING_TABLE},
        "folds": sample.folds.n_folds,
        "shared_kernels": sample.kernels.shares_kernels,
    }
