"""P and U to the hyperparameters that judge them best: searched, logged, resumable."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from resvm_cli import __version__, parallel
from resvm_cli.dataset import IntArray, Rows
from resvm_cli.ensemble.methods import MethodName, ResvmParams, gamma_scale
from resvm_cli.ensemble.workbench import Workbench
from resvm_cli.errors import CommandLineError, DataError, ResvmError
from resvm_cli.files.logs import RunDirectory
from resvm_cli.files.streams import read_names
from resvm_cli.jobs.training_data import Progress, TrainingData
from resvm_cli.jobs.training_input import TrainingInput
from resvm_cli.jobs.trial_log import TRIALS, Trial, TrialLog, Watch
from resvm_cli.tuning.criteria import DEFAULT_METRIC, DEFAULT_UP_TO, MetricName, Scores, criterion
from resvm_cli.tuning.folds import Folds
from resvm_cli.tuning.growth import Growth, grow
from resvm_cli.tuning.search import Outcome, Search, Settings, search
from resvm_cli.tuning.space import Axis, Space, default_space
from resvm_cli.tuning.strategies import Result, StrategyName, Task
from resvm_cli.tuning.validation import Judge, params_of

PARAMS_KIND = "resvm-params"
SAMPLE_KEY = 0x73616D70
TASKS_A_UNIT = 8  # of one kernel, trained by one thread in a row


@dataclass(frozen=True)
class TuneRequest:
    """What to tune, how, and where the log goes."""

    source: TrainingInput
    target: str
    methods: tuple[MethodName, ...] = ("resvm",)
    base: ResvmParams = field(default_factory=ResvmParams)  # what candidates have in common
    axes: tuple[Axis, ...] = ()
    metric: MetricName = DEFAULT_METRIC
    up_to: float = DEFAULT_UP_TO
    out_of_bag: bool = False
    n_folds: int = 10
    repeats: int = 1
    folds_file: str | None = None
    strategy: StrategyName = "random"
    trials: int = 100
    n_models: int | Literal["auto"] = 50
    max_extensions: int = 3
    outer: int = 0
    contamination_pos: float | None = None
    contamination_unl: float | None = None
    max_unl: int = 5000
    gram_mb: float = 1024.0
    resume: bool = False
    jobs: int | None = None

    def check(self) -> None:
        """Refuse what cannot work, before any file is read."""
        self.source.check()
        self.base.check()
        if self.out_of_bag and set(self.methods) != {"resvm"}:
            raise CommandLineError(
                "--oob judges resvm only: bagging and cwsvm hold every known positive in every bag",
                "leave --oob out to judge by folds",
            )
        if self.out_of_bag and (self.repeats > 1):
            raise CommandLineError("--repeats goes with folds, not with --oob")
        if self.folds_file is not None and self.repeats > 1:
            raise CommandLineError("--folds-file and --repeats exclude each other")
        if self.n_models == "auto" and "resvm" not in self.methods:
            raise CommandLineError(
                "--n-models auto grows by out-of-bag values, which only --method resvm has"
            )
        for name, share in (
            ("--contamination-pos", self.contamination_pos),
            ("--contamination-unl", self.contamination_unl),
        ):
            if share is not None and not 0 <= share < 1:
                raise CommandLineError(f"{name} is {share:g}; a share from 0 to below 1 is meant")
        if not 0 < self.up_to <= 1:
            raise CommandLineError(f"--up-to is {self.up_to:g}; above 0 and up to 1 was expected")
        if self.outer == 1 or self.outer < 0:
            raise CommandLineError(f"--outer is {self.outer}; at least 2 folds were expected")


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
        ground = _Ground.of(request, data, tell)
        run = RunDirectory(
            request.target, TRIALS, _settings(request, data, ground), resume=request.resume
        )
        with run.opened() as records:
            log = TrialLog(run, records, request.metric, watch)
            return _search_all(request, data, ground, log, tell, notes)


AUTO_TRIALS = 60
AUTO_EXTENSIONS = 1


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
    ground = _Ground.of(request, data, notice)
    log = TrialLog(
        None, (), request.metric, lambda done, total, best: progress("tuning", done, total)
    )
    judge = ground.judge(request)
    outcome = _run_search(judge, ground.space("resvm", request), request, log, None)
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


@dataclass(frozen=True, eq=False)
class _Ground:
    """The rows that candidates are judged on."""

    workbench: Workbench
    folds: Folds
    gamma: float  # "scale"

    @classmethod
    def of(cls, request: TuneRequest, data: TrainingData, notice: Callable[[str], None]) -> _Ground:
        positives, unlabeled, numbers = judged_rows(data, request.max_unl, request.base.seed)
        if len(unlabeled) < data.n_unlabeled:
            notice(
                f"judging on {len(unlabeled):,} of {data.n_unlabeled:,} rows of U,"
                " drawn at random; --max-unl takes more"
            )
        n_pos = len(positives)
        groups = data.groups()
        kept = np.concatenate([np.arange(n_pos), n_pos + numbers])
        groups = None if groups is None else groups[kept]
        if request.folds_file is not None:
            parts = data.in_order(_fold_numbers(request.folds_file), request.folds_file)[kept]
            folds = Folds.given(parts, n_pos, groups, request.folds_file)
        else:
            n_folds = min(request.n_folds, n_pos) if request.out_of_bag else request.n_folds
            if request.out_of_bag and groups is not None:
                n_folds = min(n_folds, len(np.unique(groups[:n_pos])))
            folds = Folds.drawn(
                n_pos, len(unlabeled), n_folds, request.base.seed, request.repeats, groups
            )
        workbench = Workbench(positives, unlabeled, request.gram_mb)
        return cls(workbench, folds, gamma_scale(data.n_features, data.variance()))

    def without(self, line: IntArray, fold: int, request: TuneRequest) -> _Ground:
        """The same without the rows of an outer fold, and folds of its own."""
        n_pos = len(self.workbench.positives)
        kept = np.flatnonzero(line != fold)
        in_pos = kept[kept < n_pos]
        in_unl = kept[kept >= n_pos] - n_pos
        groups = None if self.folds.groups is None else self.folds.groups[kept]
        n_folds = min(request.n_folds, len(in_pos)) if request.out_of_bag else request.n_folds
        folds = Folds.drawn(
            len(in_pos), len(in_unl), n_folds, request.base.seed, request.repeats, groups
        )
        workbench = Workbench(
            self.workbench.positives.take(in_pos),
            self.workbench.unlabeled.take(in_unl),
            request.gram_mb,
        )
        return _Ground(workbench, folds, self.gamma)

    def judge(self, request: TuneRequest) -> Judge:
        return Judge(
            self.workbench,
            request.base,
            self.folds,
            request.out_of_bag,
            request.metric,
            request.up_to,
        )

    def space(self, method: MethodName, request: TuneRequest) -> Space:
        """Ranges for the smallest sets that a candidate of this method is trained on."""
        n_pos, n_unl = len(self.workbench.positives), len(self.workbench.unlabeled)
        if not request.out_of_bag:
            line = self.folds.parts[0]
            n_pos -= int(np.bincount(line[:n_pos]).max())
            n_unl -= int(np.bincount(line[len(self.workbench.positives) :]).max())
        axes = request.axes
        if len(request.methods) > 1:  # what the user gave applies to the methods that have it
            axes = tuple(axis for axis in axes if axis.name in _axes_of(method))
        return default_space(
            method,
            request.base.kernel,
            n_pos,
            n_unl,
            self.gamma,
            axes,
            request.contamination_pos,
            request.contamination_unl,
        )


def _axes_of(method: MethodName) -> tuple[str, ...]:
    own = {"resvm": ("n_pos", "unl_per_pos", "w_pos"), "bagging": ("unl_per_pos",)}
    return ("c_unl", "gamma", "degree", "coef0", *own.get(method, ("w_pos",)))


def judged_rows(data: TrainingData, max_unl: int, seed: int) -> tuple[Rows, Rows, IntArray]:
    """P, at most so many rows of U drawn at random, both scaled, and the numbers of the latter."""
    n_unl = data.n_unlabeled
    numbers = np.arange(n_unl)
    if n_unl > max_unl:
        bits = np.random.PCG64(np.random.SeedSequence((seed, SAMPLE_KEY)))
        numbers = np.sort(np.argsort(bits.random_raw(n_unl), kind="stable")[:max_unl])
    positives, unlabeled = data.positives, data.fetch(numbers)
    if data.scaling is not None:
        positives, unlabeled = data.scaling.apply(positives), data.scaling.apply(unlabeled)
    return positives, unlabeled, numbers


def _fold_numbers(path: str) -> IntArray:
    """Folds named by anything, numbered from 0 in the order of their names."""
    names = np.array(read_names(path), object)
    return np.unique(names, return_inverse=True)[1].reshape(-1)


def _settings(request: TuneRequest, data: TrainingData, ground: _Ground) -> dict[str, Any]:
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
            method: {axis.name: str(axis) for axis in ground.space(method, request).axes}
            for method in request.methods
        },
        "metric": request.metric,
        "up_to": request.up_to,
        "estimate": "oob" if request.out_of_bag else "folds",
        "folds": ground.folds.n_folds,
        "repeats": request.repeats,
        "folds_file": request.folds_file is not None,
        "search": request.strategy,
        "trials": request.trials,
        "n_models": request.n_models,
        "max_extensions": request.max_extensions,
        "outer": request.outer,
        "contamination": [request.contamination_pos, request.contamination_unl],
        "max_unl": request.max_unl,
        "shared_kernels": ground.workbench.shares_kernels,
    }


def _search_all(
    request: TuneRequest,
    data: TrainingData,
    ground: _Ground,
    log: TrialLog,
    notice: Callable[[str], None],
    notes: list[str],
) -> TuneResult:
    judge = ground.judge(request)
    winners = []
    for method in request.methods:
        outcome = _run_search(judge, ground.space(method, request), request, log, None)
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


def _run_search(
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
        answers = []
        started = time.perf_counter()
        for answer in judge.scores(unit):
            now = time.perf_counter()
            answers.append((answer, now - started))
            started = now
        return answers

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


def _outer_estimates(request: TuneRequest, ground: _Ground, log: TrialLog) -> Iterator[float]:
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
            _run_search(judge, inner.space(method, request), request, log, fold)
            for method in request.methods
        ]
        best = max(outcomes, key=lambda outcome: outcome.best.score or 0.0)
        whole = ground.judge(request)
        plan = whole.plan(best.best.task, n_pos, n_unl, 0)
        with ground.workbench.bench(plan.kernel) as bench:
            held = whole.held_out_fold(best.best.task, bench, line, fold, 10_000 + fold)
        yield criterion(held, request.metric, request.up_to)
