"""The search for settings: score candidates in threads, log the trials, choose what is pooled.

``tune`` logs every trial in order, so that it can be resumed by replaying the log. Training scores
informed settings out of bag, on rows in memory.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any

from resvm_cli import __version__
from resvm_cli import threads as parallel
from resvm_cli.data.json_files import RunDirectory
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.data.pudata import PUData
from resvm_cli.data.pufiles import PUFiles
from resvm_cli.ensemble.plan import default_n_pos, require_weighted_draws
from resvm_cli.errors import DataError, Interrupted, ResvmError
from resvm_cli.parameters import SHARED_NAMES, TUNING_TABLE, Params, RuleName
from resvm_cli.records import dataclass
from resvm_cli.run import Run
from resvm_cli.svm.kernels import Kernel
from resvm_cli.svm.libsvm import silenced
from resvm_cli.tuning.candidates import (
    DEFAULT_MEMBERS,
    INFORMED,
    MAX_SETTINGS,
    SCREENING_MEMBERS,
    Outcome,
    Scores,
    SearchOptions,
    Trial,
    pool_best,
    search,
)
from resvm_cli.tuning.choice import best_json
from resvm_cli.tuning.sample import TuningSample, within_memory
from resvm_cli.tuning.space import Axis, Candidate
from resvm_cli.tuning.validation import CandidateScorer

TRIALS, TIMINGS, BEST = "trials.jsonl", "timings.jsonl", "best.json"
MAX_BATCH = 8  # candidates with the same kernel that one thread trains together


def _recorded_scores(record: dict[str, Any], metric: str) -> Scores | None:
    """Return the scores of a logged trial, or None if any of them is not a number."""
    values = record.get("values")
    if not isinstance(values, dict) or metric not in values:
        return None
    names = ("deviation", "recall", "fraction_positive", "n_judged")
    for number in (*values.values(), *(record.get(name, "") for name in names)):
        if not isinstance(number, int | float) or abs(number) > 2**53:  # nan is allowed
            return None
    return Scores(values, **{name: record[name] for name in names})


@dataclass(eq=False)
class TrialLog:
    """The finished trials in order, in memory and optionally in a directory to resume from."""

    settings: SearchOptions
    run: Run
    directory: RunDirectory | None = None
    records: Sequence[dict[str, Any]] = ()  # of an earlier run
    trials: list[Trial] = field(default_factory=list)
    n_expected: int = 0

    def tick(self) -> None:
        stage = "tuning"
        scores = [trial.score for trial in self.trials if trial.score is not None]
        if self.directory is not None and scores:
            stage += f", best {self.settings.metric} {max(scores):.4f}"
        self.run.progress(stage, len(self.trials), self.n_expected)

    def add(self, candidate: Candidate, scores: Scores | None, error: str | None) -> Trial:
        """Add the next trial: a candidate with its scores, or with the reason why it has none."""
        score = None if scores is None else scores.values[self.settings.metric]
        members = self.settings.scored_members
        self.trials.append(Trial(len(self.trials), candidate, members, score, scores, error))
        return self.trials[-1]

    def add_recorded(self, candidate: Candidate) -> Trial:
        """Add the next trial from the log of an earlier run."""
        record = self.records[len(self.trials)]
        scores = None if "error" in record else _recorded_scores(record, self.settings.metric)
        trial = self.add(candidate, scores, record.get("error"))
        if trial.record != record or (scores is None and type(trial.error) is not str):
            assert self.directory is not None
            raise DataError(
                f"{self.directory.path}/{TRIALS}:{trial.number + 1}: not the expected trial",
                "start over with another `path`",
            )
        return trial


def run_search(sample: TuningSample, log: TrialLog) -> Outcome:
    """Score what the search proposes, and return its outcome."""
    settings = log.settings
    scorer = CandidateScorer(sample, settings)
    informed = sample.informed(settings) if settings.search == "informed" else ()
    going = search(sample.space(settings), settings, informed)
    try:
        candidates = next(going)
        while True:
            candidates = going.send(_tried(scorer, candidates, log))
    except StopIteration as ended:
        outcome: Outcome | None = ended.value
    if outcome is None:
        why = next((trial.error for trial in reversed(log.trials) if trial.error), "no trials")
        advice = "use cross-validation (`folds=5`), or train without tuning"
        raise DataError(
            f"no {settings.base.method} candidate could be scored: {why}",
            advice if settings.oob else None,
        )
    for edge in outcome.edges:
        log.run.warn(edge)
    return outcome


def _tried(scorer: CandidateScorer, candidates: Sequence[Candidate], log: TrialLog) -> list[Trial]:
    log.n_expected += len(candidates)
    log.tick()
    n_logged = max(0, len(log.records) - len(log.trials))
    trials = [log.add_recorded(candidate) for candidate in candidates[:n_logged]]
    batches = list(_batches(candidates[n_logged:]))

    def name(number: int) -> str:
        return f"the candidate {batches[number][0].named_values} or another one in its batch"

    scored = log.run.map_shared(_score_batch, scorer, batches, log.tick, name)
    for batch, (found, seconds) in zip(batches, scored, strict=True):
        for candidate, scores in zip(batch, found, strict=True):
            if isinstance(scores, ResvmError):
                trial = log.add(candidate, None, str(scores.message))
            else:
                trial = log.add(candidate, scores, None)
            if log.directory is not None:
                log.directory.append(TRIALS, trial.record)
                timing = {"trial": trial.number, "seconds": round(seconds, 4)}
                log.directory.append(TIMINGS, timing)
            log.tick()
            trials.append(trial)
    return trials


def _score_batch(
    scorer: CandidateScorer, batch: list[Candidate]
) -> tuple[list[Scores | ResvmError], float]:
    """Score candidates together; return the scores or error of each, and the mean seconds."""
    started = time.perf_counter()
    found = scorer.scores(batch, Run(jobs=1))
    return found, (time.perf_counter() - started) / len(batch)


def _batches(candidates: Sequence[Candidate]) -> Iterator[list[Candidate]]:
    """Yield consecutive candidates that have the same kernel, a few at a time."""
    for _, same in itertools.groupby(candidates, lambda candidate: candidate.kernel_key):
        of_kernel = list(same)
        for first in range(0, len(of_kernel), MAX_BATCH):
            yield of_kernel[first : first + MAX_BATCH]


@dataclass(frozen=True)
class SearchResult:
    """The best settings, ready to be trained, and how they were found."""

    settings: tuple[Params, ...]
    params: dict[str, Any]  # as in best.json
    outcome: Outcome
    n_repeated: int  # trials taken from an earlier run
    n_scored: tuple[int, int]  # rows of P and of U


def tune(
    source: TrainingInput, tuning: SearchOptions, target: str, run: Run, *, resume: bool = False
) -> SearchResult:
    """Search, log every trial, and write the best parameters."""
    source.check()
    tuning.check()
    if source.weights is not None:
        require_weighted_draws(tuning.base.method)
    # reject an existing directory before reading the data, which can take hours
    RunDirectory(target, TRIALS, {}, resume=resume)
    source = source.for_kernel(tuning.base.kernel)
    with parallel.one_blas_thread(), silenced(), PUFiles(source, run) as data:
        for text in data.notes:
            run.warn(text)
        settle_scaling(data, tuning.base, run)
        sample = TuningSample.from_data(data, tuning, run)
        within = within_memory(data, sample, tuning, run)
        settings = _logged_settings(source, tuning, data, sample)
        directory = RunDirectory(target, TRIALS, settings, resume=resume)
        with directory.opened() as records:
            log = TrialLog(tuning, within, directory, records)
            try:
                found = _searched(data, sample, log)
            except Interrupted:
                n = len(log.trials)
                run.warn(f"{n:,} trials are saved; continue by adding `resume=True` to the command")
                raise
            directory.write(BEST, found.params)
    return found


def tune_on(data: PUData, settings: SearchOptions, run: Run) -> SearchResult:
    """Search on data that is already in memory, without writing anything."""
    for text in data.notes:
        run.warn(text)
    settle_scaling(data, settings.base, run)
    sample = TuningSample.from_data(data, settings, run)
    return _searched(data, sample, TrialLog(settings, run))


def search_settings(data: PUData, params: Params, run: Run) -> Params:
    """Choose by out-of-bag scores what the user left open: whether to scale, and the settings.

    Parameters that the user set are kept. The rows that are scored are in memory.
    """
    settle_scaling(data, params, run)
    if not params.searched:
        if params.auto and not params.settings:
            run.note(
                f"{params.method} is trained with fixed defaults, because out-of-bag scores cannot"
                " compare its settings; tune can, by cross-validation"
            )
        return params
    started = time.monotonic()
    n_pos = len(data.positives)
    tuning = SearchOptions(
        base=replace(params, n_models=None, n_pos=None, n_unl=None, w_pos=None),
        axes=tuple(_fixed_axes(params, n_pos)),
        oob=True,
        committee=MAX_SETTINGS,
        n_models=params.n_models,
        **INFORMED,
    )
    sample = TuningSample.from_data(data, tuning, run.silent())
    log = TrialLog(tuning, within_memory(data, sample, tuning, run))
    try:
        found = _searched(data, sample, log)
    except DataError:
        run.warn(
            f"no setting could be scored out of bag with {n_pos:,} row{'s' * (n_pos > 1)} of P, so"
            " the members have fixed defaults"
        )
        return params
    seconds = time.monotonic() - started
    score = found.outcome.best.score
    run.tell(
        f"{len(log.trials)} settings were scored out of bag in {seconds:.1f} s, and the best"
        f" {len(found.settings)} are pooled; ROC AUC of P against U up to {score:.3f}"
        " (optimistic, because it was selected)"
    )
    candidates = tuple(
        {"parameters": trial.candidate.named_values, "score": trial.score} for trial in log.trials
    )
    return replace(params, settings=found.settings, candidates=candidates)


def settle_scaling(data: PUData, params: Params, run: Run) -> None:
    """Unless the user has decided on scaling, compare the untuned setting with and without it."""
    if not data.scaling_is_open or data.scaling is None:
        return
    if not Kernel(params.kernel).takes_scaling:
        data.scaling = None
        return
    # rbf members, because linear ones are very slow on unscaled features
    settings = SearchOptions(
        base=Params(seed=params.seed, said=frozenset({"scale"})),
        oob=True,
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
    run.note(
        "the features are on different scales: the out-of-bag ROC AUC of P against U is"
        f" {scores[0]:.4f} with `scale={learned.kind!r}`, {scores[1]:.4f} without;"
        f" they are {'scaled' if helps else 'not scaled, unless a setting has its own scaling'}"
    )


def _fixed_axes(params: Params, n_positives: int) -> Iterator[Axis]:
    """Yield an axis with a single value for each parameter that the user has chosen."""
    for name in ("gamma", "degree", "coef0", "n_pos", "w_pos", "c_unl"):
        value = getattr(params, name)
        if name in params.said and isinstance(value, (int, float)):
            yield Axis(name, float(value), float(value))
    if "n_unl" in params.said and params.n_unl:
        ratio = params.n_unl / (params.n_pos or default_n_pos(n_positives))
        yield Axis("unl_per_pos", ratio, ratio)


def _searched(data: PUData, sample: TuningSample, log: TrialLog) -> SearchResult:
    """Run the search, and return the settings to train and the content of best.json."""
    settings = log.settings
    outcome = run_search(sample, log)
    best = outcome.best
    assert best.scores is not None
    if settings.committee > 1:
        chosen = pool_best(outcome.trials, settings.n_models, settings.committee)
    else:
        informed = settings.search == "informed"
        n_models = (settings.n_models or DEFAULT_MEMBERS) if informed else best.n_models
        chosen = [(best, 1.0, n_models)]
    pooled_settings = []
    for trial, weight, count in chosen:
        candidate, sizes = trial.candidate, (len(data.positives), data.n_unlabeled)
        params = candidate.parameters(settings.base, count, *sizes)
        pooled_settings.append(replace(params, weight=weight, scale=candidate.scale))
    selected_by = {
        "metric": settings.metric,
        "score": best.score,
        "deviation": best.scores.deviation,
        "estimate": "oob" if settings.oob else "folds",
        "optimistic": True,
        "trial": best.number,
    }
    decision: RuleName = "mean" if settings.search == "informed" else "votes"
    content = best_json(pooled_settings, decision, data.scale, selected_by, data.description())
    n_repeated = min(len(log.records), len(log.trials))
    n_scored = sample.rows_pos, sample.rows_unl
    return SearchResult(tuple(pooled_settings), content, outcome, n_repeated, n_scored)


def _logged_settings(
    source: TrainingInput, tuning: SearchOptions, data: PUData, sample: TuningSample
) -> dict[str, Any]:
    """Return all that determines the trials; a run is resumed only if none of it has changed."""
    shared = {name: getattr(tuning.base, name) for name in SHARED_NAMES}
    return {
        "kind": "resvm-tuning",
        "format": 1,
        "resvm": __version__,
        "data": data.description(),
        "scale": source.scale,
        "zero_based": source.zero_based,
        "groups": source.groups is not None,
        "method": tuning.base.method,
        "space": {axis.name: str(axis) for axis in sample.space(tuning).axes},
        **shared,
        **{name: getattr(tuning, name) for name in TUNING_TABLE},
        "folds": sample.folds.n_folds,
        "shared_kernels": sample.kernels.shares_kernels,
    }
