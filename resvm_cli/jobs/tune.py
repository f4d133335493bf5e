"""P and U to the hyperparameters that judge them best: searched, logged, resumable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from resvm_cli import parallel
from resvm_cli.ensemble.methods import ResvmParams
from resvm_cli.errors import CommandLineError, Interrupted, ResvmError
from resvm_cli.files.logs import RunDirectory
from resvm_cli.jobs.training_data import Progress, TrainingData
from resvm_cli.jobs.trial_log import TRIALS, Trial, TrialLog, Watch
from resvm_cli.jobs.tune_request import TuneRequest
from resvm_cli.jobs.tuning_ground import Ground, settings_of
from resvm_cli.jobs.tuning_run import run_search
from resvm_cli.tuning.criteria import criterion
from resvm_cli.tuning.folds import Folds
from resvm_cli.tuning.growth import Growth, grow
from resvm_cli.tuning.search import Outcome
from resvm_cli.tuning.space import Axis
from resvm_cli.tuning.validation import Judge, params_of

PARAMS_KIND = "resvm-params"
AUTO_TRIALS = 60
AUTO_EXTENSIONS = 1


@dataclass(frozen=True)
class Winner:
    """The best of one method, and what is needed to train it."""

    trial: Trial
    params: dict[str, Any]  # as in best.json
    outcome: Outcome
    n_trials: int


@dataclass(frozen=True)
class TuneResult:
    """What a search found, for the report."""

    request: TuneRequest
    best: Winner
    winners: tuple[Winner, ...]  # one for each method, best first
    trials: tuple[Trial, ...]
    n_repeated: int  # trials taken from an earlier run
    outer: tuple[float, ...]  # the criterion on outer folds, each after a search of its own
    growth: tuple[Growth, ...]  # score against members, where they were grown
    n_judged: tuple[int, int]  # rows of P and of U
    notes: tuple[str, ...]


def tune(
    request: TuneRequest,
    progress: Progress,
    watch: Watch = lambda done, total, best: None,
    notice: Callable[[str], None] = lambda text: None,
) -> TuneResult:
    """Search, log every trial, write the best."""
    request.check()
    # an existing directory is refused before hours of reading
    RunDirectory(request.target, TRIALS, {}, resume=request.resume)
    notes: list[str] = []

    def tell(text: str) -> None:
        notes.append(text)
        notice(text)

    with (
        parallel.inner_threads_held(),
        TrainingData(request.source, keep_all=False, progress=progress) as data,
    ):
        for text in data.notes:
            tell(text)
        ground = Ground.of(request, data, tell)
        run = RunDirectory(
            request.target, TRIALS, settings_of(request, data, ground), resume=request.resume
        )
        with run.opened() as records:
            log = TrialLog(run, records, request.metric, watch)
            try:
                return _search_all(request, data, ground, log, tell, notes)
            except Interrupted:
                notice(
                    f"{len(log.trials):,} trials are kept; the same command with --resume goes on"
                )
                raise


def tune_quickly(
    data: TrainingData,
    params: ResvmParams,
    kept: Sequence[str],
    jobs: int | None,
    progress: Progress,
    notice: Callable[[str], None],
) -> Winner:
    """Search out of bag with rows that are already read, without a log: ``train --auto``.

    The parameters named in ``kept`` stay as they are.
    """
    if params.method != "resvm":
        raise CommandLineError(
            f"--auto judges out of bag, which --method {params.method} cannot be",
            "use resvm tune, which also judges by folds",
        )
    if data.input.unchecked:
        raise CommandLineError("--auto and --no-check exclude each other")
    request = TuneRequest(
        data.input,
        target="",
        base=replace(params, n_models=None, n_pos=None, n_unl=None, w_pos=None),
        axes=tuple(_fixed_axes(params, kept)),
        out_of_bag=True,
        strategy="halving",
        trials=AUTO_TRIALS,
        n_models=params.n_models or 50,
        max_extensions=AUTO_EXTENSIONS,
        jobs=jobs,
    )
    request.check()
    ground = Ground.of(request, data, notice)
    log = TrialLog(
        None, (), request.metric, lambda done, total, best: progress("tuning", done, total)
    )
    judge = ground.judge(request)
    outcome = run_search(judge, ground.space("resvm", request), request, log, None)
    return _winner(outcome, judge, request, log, data)


def _fixed_axes(params: ResvmParams, kept: Sequence[str]) -> Iterator[Axis]:
    """Axes of one value, for parameters that the user has chosen."""
    for name in ("gamma", "degree", "coef0", "n_pos", "w_pos", "c_unl"):
        value = getattr(params, name)
        if name in kept and isinstance(value, (int, float)):
            yield Axis(name, float(value), float(value))
    if "n_unl" in kept and params.n_unl:
        if "n_pos" not in kept or not params.n_pos:
            raise CommandLineError("--auto with --n-unl needs --n-pos too, or neither")
        ratio = params.n_unl / params.n_pos
        yield Axis("unl_per_pos", ratio, ratio)


def _search_all(
    request: TuneRequest,
    data: TrainingData,
    ground: Ground,
    log: TrialLog,
    notice: Callable[[str], None],
    notes: list[str],
) -> TuneResult:
    judge = ground.judge(request)
    winners = []
    for method in request.methods:
        outcome = run_search(judge, ground.space(method, request), request, log, None)
        winners.append(_winner(outcome, judge, request, log, data))
        for remark in outcome.edges:
            notice(remark)
    winners.sort(key=lambda winner: -winner.trial.score(request.metric))
    outer = tuple(_outer_estimates(request, ground, log))
    growth: tuple[Growth, ...] = ()
    best = winners[0]
    if request.n_models == "auto" and best.trial.task.candidate.method == "resvm":
        growth = tuple(grow(replace(judge, out_of_bag=True), best.trial.task.candidate))
        best.params["n_models"] = growth[-1].n_models
    content = dict(best.params)
    if len(winners) > 1:
        content["methods"] = {winner.params["method"]: winner.params for winner in winners}
    log.write_best(content)
    return TuneResult(
        request,
        best,
        tuple(winners),
        tuple(log.trials),
        log.n_repeated,
        outer,
        growth,
        (judge.rows_pos, judge.rows_unl),
        tuple(notes),
    )


def _winner(
    outcome: Outcome, judge: Judge, request: TuneRequest, log: TrialLog, data: TrainingData
) -> Winner:
    trial = log.trials[outcome.best.number]
    task = outcome.best.task
    params = params_of(
        task.candidate, request.base, task.n_models, judge.rows_pos, data.n_unlabeled
    )
    assert trial.scores is not None
    content: dict[str, Any] = {
        "kind": PARAMS_KIND,
        "format": 1,
        "method": params.method,
        "kernel": params.kernel,
    }
    if params.kernel != "linear":
        content["gamma"] = params.gamma
    if params.kernel == "poly":
        content["degree"] = params.degree
    if params.kernel in ("poly", "sigmoid"):
        content["coef0"] = params.coef0
    content["c_unl"] = params.c_unl
    for name, value in (
        ("w_pos", params.w_pos),
        ("n_pos", params.n_pos),
        ("n_unl", params.n_unl),
        ("n_models", params.n_models),
    ):
        if value is not None:
            content[name] = value
    content |= {
        "scale": request.source.scale or "none",
        "selected_by": {
            "metric": request.metric,
            "score": trial.score(request.metric),
            "deviation": trial.scores.deviation,
            "estimate": "oob" if request.out_of_bag else "folds",
            "optimistic": True,
            "trial": trial.number,
        },
        "data": data.description(),
        "seed": request.base.seed,
    }
    return Winner(trial, content, outcome, len(log.trials))


def _outer_estimates(request: TuneRequest, ground: Ground, log: TrialLog) -> Iterator[float]:
    """The criterion on rows that had no part in choosing: a search for each outer fold."""
    if not request.outer:
        return
    n_pos, n_unl = len(ground.workbench.positives), len(ground.workbench.unlabeled)
    outer = Folds.drawn(n_pos, n_unl, request.outer, request.base.seed + 1, 1, ground.folds.groups)
    line = outer.parts[0]
    for fold in range(request.outer):
        inner = ground.without(line, fold, request)
        judge = inner.judge(request)
        outcomes = [
            run_search(judge, inner.space(method, request), request, log, fold)
            for method in request.methods
        ]
        best = max(outcomes, key=lambda outcome: outcome.best.score or 0.0)
        whole = ground.judge(request)
        plan = whole.plan(best.best.task, n_pos, n_unl, 0)
        with ground.workbench.bench(plan.kernel) as bench:
            (held,) = whole.held_out_fold([best.best.task], bench, line, fold, 10_000 + fold)
        if isinstance(held, ResvmError):
            raise held
        yield criterion(held, request.metric, request.up_to)
