"""Score how well a candidate separates P from U, on held-out folds or out of bag.

Every criterion compares known positives with unlabeled rows, each scored by members that have not
seen it. All candidates share the same folds and random streams, so that their scores differ because
of their parameters and not by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from resvm_cli import randomness
from resvm_cli.errors import DataError, Message, ParameterError, ResvmError
from resvm_cli.metrics.ranking import ScoredLabels, best_pu_score, pu_score
from resvm_cli.model.bags import PositiveWeights
from resvm_cli.model.ensemble import decide
from resvm_cli.model.out_of_bag import TrainingRows, UnseenMask, decide_out_of_bag
from resvm_cli.model.plan import Plan, bag_key, bag_of, problem_on, problems, resolve_defaults
from resvm_cli.model.shared_kernels import KernelTrainer
from resvm_cli.parameters import METRIC_NAMES, MetricName
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray
from resvm_cli.running.run import Run
from resvm_cli.svm.problem import Problem
from resvm_cli.tuning.sample import TuningSample
from resvm_cli.tuning.search import ScoringTask
from resvm_cli.tuning.settings import TuningSettings
from resvm_cli.tuning.space import Candidate

# roc_areas is the mean of these: full and partial ROC AUC, by votes and by mean value.
ROC_AREAS: tuple[MetricName, ...] = (
    "roc_auc",
    "partial_roc_auc",
    "roc_auc_of_mean",
    "partial_roc_auc_of_mean",
)
# Members are added until two halves of the ensemble agree (paper, section 3.1).
MEMBER_STEPS = (25, 50, 100, 200, 400, 800)
SCORE_TOLERANCE = 0.02  # largest difference between the halves' criteria
TOP_FRACTION = 0.05  # of U
MIN_OVERLAP = 0.8  # between the top rows of the two halves


@dataclass(frozen=True, eq=False)
class ScoredSample:
    """Rows of P and then of U, with decision values by members that have not seen them."""

    positive: npt.NDArray[np.bool_]  # whether it is a row of P
    values: FloatArray  # decision value d, with ties broken
    means: FloatArray  # the members' mean value
    predicted: npt.NDArray[np.bool_]  # whether predicted positive at the method's threshold
    folds: IntArray  # the fold each row was held out in
    rows: IntArray  # row numbers

    @cached_property
    def by_value(self) -> ScoredLabels:
        return ScoredLabels.from_scores(self.positive, self.values)

    @cached_property
    def by_mean(self) -> ScoredLabels:
        return ScoredLabels.from_scores(self.positive, self.means)

    def only(self, chosen: npt.NDArray[np.bool_]) -> ScoredSample:
        return ScoredSample(*(getattr(self, each.name)[chosen] for each in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[ScoredSample]) -> ScoredSample:
        columns = ([getattr(part, each.name) for part in parts] for each in fields(cls))
        return cls(*map(np.concatenate, columns))


@dataclass(frozen=True)
class Scores:
    """All criteria of a candidate, and how much the selection criterion varies, as logged."""

    values: dict[str, float]
    deviation: float  # of the criterion over folds
    recall: float
    fraction_positive: float
    n_judged: int


def score(rows: ScoredSample, metric: MetricName, up_to: float, *, by_folds: bool) -> Scores:
    """Compute all criteria: the mean over folds if ``by_folds``, else over all rows at once."""
    folds = [rows.only(rows.folds == fold) for fold in np.unique(rows.folds)]
    whole: dict[str, float] = {name: criterion(rows, name, up_to) for name in METRIC_NAMES}
    usable = [fold for fold in folds if fold.positive.any() and not fold.positive.all()]
    if by_folds:
        for name in METRIC_NAMES:
            if name != "pu_score_pooled":
                by_fold = [criterion(fold, name, up_to) for fold in usable]
                whole[name] = float(np.mean(by_fold)) if by_fold else 0.0
    spread = [criterion(fold, metric, up_to) for fold in usable]
    return Scores(
        whole,
        float(np.std(spread, ddof=1)) if len(spread) > 1 else 0.0,
        float(rows.predicted[rows.positive].mean()),
        float(rows.predicted.mean()),
        len(rows.values),
    )


def criterion(rows: ScoredSample, name: MetricName, up_to: float) -> float:
    """Compute one criterion; ``_of_mean`` ranks by mean values, others by d with ties broken."""
    if name in ("pu_score", "pu_score_pooled"):
        return float(pu_score(rows.predicted[rows.positive].mean(), rows.predicted.mean()))
    if name == "roc_areas":
        return float(np.mean([criterion(rows, area, up_to) for area in ROC_AREAS]))
    kind, of_mean, _ = name.partition("_of_mean")
    if kind == "best_pu_score":
        return best_pu_score(rows.positive, rows.means if of_mean else rows.values)[0]
    ranking = rows.by_mean if of_mean else rows.by_value
    if kind == "roc_auc":
        return float(ranking.roc_auc())
    if kind == "average_precision":
        return float(ranking.average_precision())
    return float(ranking.partial_roc_auc(up_to))


@dataclass(frozen=True, eq=False)
class CandidateScorer:
    """Scores candidates on one sample of P and U."""

    sample: TuningSample
    settings: TuningSettings

    @cached_property
    def _training_rows(self) -> TrainingRows:
        kernels = self.sample.kernels
        return TrainingRows(kernels.positives, kernels.unlabeled, groups=self.sample.folds.groups)

    def criterion(self, rows: ScoredSample) -> float:
        """Return the criterion by which candidates are selected."""
        return criterion(rows, self.settings.metric, self.settings.up_to)

    def plan(
        self,
        task: ScoringTask,
        rows_pos: int,
        rows_unl: int,
        seed: int,
        weights: PositiveWeights | None = None,
        rows_neg: int | None = None,
    ) -> Plan:
        """Return a task's plan for this many rows; gamma is a number, so no variance is needed."""
        params = task.candidate.parameters(self.settings.base, task.n_models, rows_pos, rows_unl)
        return resolve_defaults(
            replace(params, seed=seed),
            *(rows_pos, rows_unl, 1, lambda: 1.0, weights),
            rows_neg=self.sample.rows_neg if rows_neg is None else rows_neg,
        )

    def trainer(self, task: ScoringTask, run: Run) -> AbstractContextManager[KernelTrainer]:
        """Return a trainer for tasks of this kernel, scaling and weighting."""
        plan = self.plan(task, self.sample.rows_pos, self.sample.rows_unl, 0)
        kernels = self.sample.scaled[task.candidate.scale].kernels
        return kernels.trainer(plan.kernel, run, weighted=plan.relevance_power is not None)

    def scores(self, tasks: Sequence[ScoringTask], run: Run) -> list[Scores | ResvmError]:
        """Return each task's scores or the error that prevented them; all share one kernel."""
        settings = self.settings
        with self.trainer(tasks[0], run) as trainer:
            decide_rows = self.out_of_bag_rows if settings.oob else self.held_out_rows
            return [
                rows
                if isinstance(rows, ResvmError)
                else score(rows, settings.metric, settings.up_to, by_folds=not settings.oob)
                for rows in decide_rows(tasks, trainer)
            ]

    def held_out_rows(
        self, tasks: Sequence[ScoringTask], trainer: KernelTrainer
    ) -> list[ScoredSample | ResvmError]:
        """Score each row by an ensemble trained without its fold."""
        parts: list[list[ScoredSample]] = [[] for _ in tasks]
        failed: dict[int, ResvmError] = {}
        n_folds = self.sample.folds.n_folds
        for repeat, line in enumerate(self.sample.folds.parts):
            for fold in range(n_folds):
                going = [number for number in range(len(tasks)) if number not in failed]
                some = [tasks[number] for number in going]
                found = self.held_out_fold(some, trainer, line, fold, repeat * n_folds + fold)
                for number, rows in zip(going, found, strict=True):
                    if isinstance(rows, ResvmError):
                        failed[number] = rows
                    else:
                        parts[number].append(rows)
        return [
            failed.get(number) or ScoredSample.joined(parts[number]) for number in range(len(tasks))
        ]

    def held_out_fold(
        self,
        tasks: Sequence[ScoringTask],
        trainer: KernelTrainer,
        line: IntArray,
        fold: int,
        number: int,
        stream: int = randomness.FOLD,
    ) -> list[ScoredSample | ResvmError]:
        """Score the rows of one fold by ensembles trained on all other rows."""
        kept_pos = np.flatnonzero(line[: self.sample.rows_pos] != fold)
        kept_unl = np.flatnonzero(line[self.sample.rows_pos :] != fold)
        held = np.flatnonzero(line == fold)
        seed = randomness.fold_seed(self.settings.base.seed, number, stream)

        def scored(members: Sequence[Problem], values: FloatArray) -> ScoredSample:
            single = tasks[0].candidate.method == "cwsvm"
            decisions = decide(values, single)
            return ScoredSample(
                held < self.sample.rows_pos,
                decisions.values if single else decisions.values_without_ties(),
                decisions.means,
                decisions.labels(0.0 if single else 0.5) > 0,
                np.full(len(held), number),
                held,
            )

        return self._train_and_score(tasks, trainer, (kept_pos, kept_unl), seed, held, scored)

    def out_of_bag_rows(
        self, tasks: Sequence[ScoringTask], trainer: KernelTrainer
    ) -> list[ScoredSample | ResvmError]:
        """Score each row by the members whose bags do not contain it."""
        everything = np.arange(self.sample.rows_pos), np.arange(self.sample.rows_other)
        seed, scored = self.settings.base.seed, self.score_out_of_bag
        return self._train_and_score(tasks, trainer, everything, seed, None, scored)

    def _train_and_score(
        self,
        tasks: Sequence[ScoringTask],
        trainer: KernelTrainer,
        kept: tuple[IntArray, IntArray],
        seed: int,
        rows: IntArray | None,
        scored: Callable[[Sequence[Problem], FloatArray], ScoredSample],
    ) -> list[ScoredSample | ResvmError]:
        """Score ``rows`` after training on the kept ones; tasks with equal bags share them."""
        found: dict[int, ScoredSample | ResvmError] = {}
        same_bags: dict[tuple[object, ...], list[tuple[int, Plan]]] = {}
        weights = self.sample.positive_weights
        n_unl = int((kept[1] < self.sample.rows_unl).sum())
        sizes = len(kept[0]), n_unl, seed
        if weights is not None:
            try:
                weights = weights.take(kept[0])
            except DataError as error:
                return [error] * len(tasks)
        for number, task in enumerate(tasks):
            try:
                plan = self.plan(task, *sizes, weights, len(kept[1]) - n_unl)
            except (DataError, ParameterError) as error:
                found[number] = error
            else:
                same_bags.setdefault(bag_key(plan), []).append((number, plan))
        for plans in same_bags.values():
            first = plans[0][1]
            drawn = [bag_of(first, member) for member in range(first.n_models)]
            bags = [(kept[0][positive], kept[1][unlabeled]) for positive, unlabeled in drawn]
            ensembles = [
                [problem_on(bag, plan, member) for member, bag in enumerate(bags)]
                for _, plan in plans
            ]
            trained = trainer.ensemble_values(ensembles, rows)
            for (number, _), members, values in zip(plans, ensembles, trained, strict=True):
                if isinstance(values, ResvmError):
                    found[number] = values
                    continue
                try:
                    found[number] = scored(members, np.ascontiguousarray(values.T))
                except DataError as error:
                    found[number] = error
        return [found[number] for number in range(len(tasks))]

    def score_out_of_bag(self, members: Sequence[Problem], values: FloatArray) -> ScoredSample:
        """Score each row by the members that have not seen it.

        Bags hold a larger fraction of P than of U, and scores by few members vary more. So even in
        a random ranking, rows of P would fill the top and the bottom. To avoid this, each row of U
        is paired with a row of P and scored by members that have seen neither. Rows in every bag
        are left out. The folds only show how much the criterion varies.
        """
        rows = np.arange(self.sample.rows_pos + self.sample.rows_other)
        absent = UnseenMask(members, self._training_rows).all_unseen()
        bits = randomness.run_bits(self.settings.base.seed, randomness.PARTNERS)
        partners = randomness.shuffled(bits, self.sample.rows_other) % self.sample.rows_pos
        absent[self.sample.rows_pos :] &= absent[partners]
        decisions = decide_out_of_bag(values, absent)
        scored = ScoredSample(
            rows < self.sample.rows_pos,
            decisions.values_without_ties(),
            decisions.means,
            decisions.labels(0.5) > 0,
            self.sample.folds.parts[0],
            rows,
        ).only(decisions.n_members > 0)
        if not scored.positive.any() or scored.positive.all():
            which = "P" if not scored.positive.any() else "U"
            raise DataError(
                f"every bag holds every row of {which}: none can be scored out of bag",
                Message("use more members, smaller bags, or {folds} instead of {oob:True}"),
            )
        return scored


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


def ensemble_sizes(
    scorer: CandidateScorer, candidate: Candidate, run: Run
) -> Iterator[EnsembleSize]:
    """Yield larger and larger ensembles until their two disjoint halves agree out of bag."""
    largest = ScoringTask(candidate, MEMBER_STEPS[-1])
    sizes = scorer.sample.rows_pos, scorer.sample.rows_unl
    weights = scorer.sample.positive_weights
    plan = scorer.plan(largest, *sizes, scorer.settings.base.seed, weights)
    members = list(problems(plan, range(MEMBER_STEPS[-1])))
    values = np.zeros((len(scorer.sample.kernels.rows), 0))
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
            overlap = _overlap(*halves)
            size = EnsembleSize(n_models, scorer.criterion(whole), first - second, overlap)
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
