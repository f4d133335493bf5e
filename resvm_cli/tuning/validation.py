"""Score how well a candidate separates P from U, on held-out folds or out of bag.

Every criterion compares known positives with unlabeled rows, and each row is scored by members that
have not seen it. All candidates share the same folds and random streams, so that their scores
differ because of their parameters, not by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cached_property

import numpy as np

from resvm_cli import randomness
from resvm_cli.ensemble.decisions import decide
from resvm_cli.ensemble.oob import TrainingRows, UnseenMask
from resvm_cli.ensemble.plan import SettingPlan, bag_key, bag_of, problem_on
from resvm_cli.errors import DataError, ParameterError, ResvmError
from resvm_cli.metrics.ranking import ScoredLabels, best_pu_score, pu_score
from resvm_cli.parameters import METRIC_NAMES, MetricName
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, IntArray
from resvm_cli.run import Run
from resvm_cli.svm.kernels import Problem
from resvm_cli.tuning.candidates import Scores, SearchOptions
from resvm_cli.tuning.sample import KernelTrainer, TuningSample
from resvm_cli.tuning.space import Candidate

PARTIAL_LIMIT = 0.2  # fraction of U that partial areas cover
# roc_areas is the mean of these: full and partial ROC AUC, by votes and by mean value.
ROC_AREAS: tuple[MetricName, ...] = (
    "roc_auc",
    "partial_roc_auc",
    "roc_auc_of_mean",
    "partial_roc_auc_of_mean",
)


@dataclass(frozen=True, eq=False)
class ScoredSample:
    """Rows of P, then of U, with decision values from members that have not seen them."""

    positive: BoolArray  # whether each row is in P
    values: FloatArray  # decision value d, with ties broken
    means: FloatArray  # the members' mean value
    predicted: BoolArray  # whether each row is predicted positive at the method's threshold
    folds: IntArray  # the fold that each row was held out in

    @cached_property
    def by_value(self) -> ScoredLabels:
        return ScoredLabels.from_scores(self.positive, self.values)

    @cached_property
    def by_mean(self) -> ScoredLabels:
        return ScoredLabels.from_scores(self.positive, self.means)

    def only(self, chosen: BoolArray) -> ScoredSample:
        return ScoredSample(*(getattr(self, each.name)[chosen] for each in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[ScoredSample]) -> ScoredSample:
        columns = ([getattr(part, each.name) for part in parts] for each in fields(cls))
        return cls(*map(np.concatenate, columns))


def score(rows: ScoredSample, metric: MetricName, *, by_folds: bool) -> Scores:
    """Compute all criteria, as means over folds if ``by_folds``, else over all rows at once."""
    folds = [rows.only(rows.folds == fold) for fold in np.unique(rows.folds)]
    usable = [fold for fold in folds if fold.positive.any() and not fold.positive.all()]
    parts = usable if by_folds else [rows]
    values: dict[str, float] = {
        name: float(np.mean([criterion(part, name) for part in parts])) if parts else 0.0
        for name in METRIC_NAMES
    }
    spread = [criterion(fold, metric) for fold in usable]
    return Scores(
        values,
        float(np.std(spread, ddof=1)) if len(spread) > 1 else 0.0,
        float(rows.predicted[rows.positive].mean()),
        float(rows.predicted.mean()),
        len(rows.values),
    )


def criterion(rows: ScoredSample, name: MetricName) -> float:
    """Compute one criterion, by mean values if its name ends in ``_of_mean``, else by d."""
    if name == "roc_areas":
        return float(np.mean([criterion(rows, area) for area in ROC_AREAS]))
    if name == "pu_score":
        return float(pu_score(rows.predicted[rows.positive].mean(), rows.predicted.mean()))
    if name == "best_pu_score":
        return best_pu_score(rows.positive, rows.values)[0]
    if name == "average_precision":
        return float(rows.by_value.average_precision())
    ranking = rows.by_mean if name.endswith("_of_mean") else rows.by_value
    if name.startswith("partial"):
        return float(ranking.partial_roc_auc(PARTIAL_LIMIT))
    return float(ranking.roc_auc())


@dataclass(frozen=True, eq=False)
class CandidateScorer:
    """Scores candidates on one sample of P and U."""

    sample: TuningSample
    settings: SearchOptions

    @cached_property
    def _training_rows(self) -> TrainingRows:
        kernels = self.sample.kernels
        return TrainingRows(kernels.positives, kernels.unlabeled, groups=self.sample.folds.groups)

    def scores(self, candidates: Sequence[Candidate], run: Run) -> list[Scores | ResvmError]:
        """Return each candidate's scores or error; all candidates must have the same kernel."""
        settings = self.settings
        plan = self.sample.plan(candidates[0], settings)
        kernels = self.sample.scaled[candidates[0].scale]
        weighted = plan.relevance_power is not None
        with kernels.trainer(plan.kernel, run, weighted=weighted) as trainer:
            decide_rows = self.out_of_bag_rows if settings.oob else self.held_out_rows
            return [
                rows
                if isinstance(rows, ResvmError)
                else score(rows, settings.metric, by_folds=not settings.oob)
                for rows in decide_rows(candidates, trainer)
            ]

    def held_out_rows(
        self, candidates: Sequence[Candidate], trainer: KernelTrainer
    ) -> list[ScoredSample | ResvmError]:
        """Score each row with an ensemble trained without its fold."""
        parts: list[list[ScoredSample]] = [[] for _ in candidates]
        failed: dict[int, ResvmError] = {}
        for fold in range(self.sample.folds.n_folds):
            going = [number for number in range(len(candidates)) if number not in failed]
            some = [candidates[number] for number in going]
            for number, rows in zip(going, self._held_out(fold, some, trainer), strict=True):
                if isinstance(rows, ResvmError):
                    failed[number] = rows
                else:
                    parts[number].append(rows)
        return [
            failed.get(number) or ScoredSample.joined(part) for number, part in enumerate(parts)
        ]

    def _held_out(
        self, fold: int, candidates: Sequence[Candidate], trainer: KernelTrainer
    ) -> list[ScoredSample | ResvmError]:
        """Score the rows of one fold with ensembles trained on all other rows."""
        folds = self.sample.folds.numbers
        kept_pos = np.flatnonzero(folds[: self.sample.rows_pos] != fold)
        kept_unl = np.flatnonzero(folds[self.sample.rows_pos :] != fold)
        held = np.flatnonzero(folds == fold)
        seed = randomness.fold_seed(self.settings.base.seed, fold)

        def scored(members: Sequence[Problem], values: FloatArray) -> ScoredSample:
            single = candidates[0].method == "cwsvm"
            decisions = decide(values, single=single)
            return ScoredSample(
                held < self.sample.rows_pos,
                decisions.values if single else decisions.values_without_ties(),
                decisions.means,
                decisions.labels(0.0 if single else 0.5) > 0,
                folds[held],
            )

        return self._train_and_score(candidates, trainer, (kept_pos, kept_unl), seed, held, scored)

    def out_of_bag_rows(
        self, candidates: Sequence[Candidate], trainer: KernelTrainer
    ) -> list[ScoredSample | ResvmError]:
        """Score each row with the members whose bags do not contain it."""
        everything = np.arange(self.sample.rows_pos), np.arange(self.sample.rows_other)
        seed, scored = self.settings.base.seed, self._score_out_of_bag
        return self._train_and_score(candidates, trainer, everything, seed, None, scored)

    def _train_and_score(
        self,
        candidates: Sequence[Candidate],
        trainer: KernelTrainer,
        kept: tuple[IntArray, IntArray],
        seed: int,
        rows: IntArray | None,
        scored: Callable[[Sequence[Problem], FloatArray], ScoredSample],
    ) -> list[ScoredSample | ResvmError]:
        """Train on the kept rows and score ``rows``; identical bags are drawn only once."""
        found: dict[int, ScoredSample | ResvmError] = {}
        same_bags: dict[tuple[object, ...], list[tuple[int, SettingPlan]]] = {}
        weights = self.sample.positive_weights
        n_unl = int((kept[1] < self.sample.rows_unl).sum())
        sizes = len(kept[0]), n_unl, len(kept[1]) - n_unl
        if weights is not None:
            try:
                weights = weights.take(kept[0])
            except DataError as error:
                return [error] * len(candidates)
        for number, candidate in enumerate(candidates):
            try:
                plan = self.sample.plan(candidate, self.settings, sizes, seed, weights)
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
        return [found[number] for number in range(len(candidates))]

    def _score_out_of_bag(self, members: Sequence[Problem], values: FloatArray) -> ScoredSample:
        """Score each row with the members that have not seen it.

        A bag contains a larger fraction of P than of U, so rows of P are scored by fewer members
        and their scores vary more. Even in a random ranking, they would fill the top and the
        bottom. To avoid this, each row of U is paired with a row of P and scored by members that
        have seen neither. Rows that are in every bag are left out. The folds only show how much the
        criterion varies.
        """
        rows = np.arange(self.sample.rows_pos + self.sample.rows_other)
        absent = UnseenMask(members, self._training_rows).all_unseen()
        bits = randomness.run_bits(self.settings.base.seed, randomness.PARTNERS)
        partners = randomness.shuffled(bits, self.sample.rows_other) % self.sample.rows_pos
        absent[self.sample.rows_pos :] &= absent[partners]
        decisions = decide(values, unseen=absent)
        scored = ScoredSample(
            rows < self.sample.rows_pos,
            decisions.values_without_ties(),
            decisions.means,
            decisions.labels(0.5) > 0,
            self.sample.folds.numbers,
        ).only(decisions.n_members > 0)
        if not scored.positive.any() or scored.positive.all():
            which = "P" if not scored.positive.any() else "U"
            raise DataError(
                f"every bag contains every row of {which}: none can be scored out of bag",
                "use more members, smaller bags, or `folds`",
            )
        return scored
