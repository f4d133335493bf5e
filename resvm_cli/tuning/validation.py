"""A candidate judged on P and U alone: by folds, or out of bag with one ensemble.

The same folds and the same random streams serve every candidate, so that candidates differ by
their parameters and not by luck.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from resvm_cli import randomness
from resvm_cli.errors import DataError, Message, ParameterError, ResvmError
from resvm_cli.model.bags import PositiveWeights
from resvm_cli.model.ensemble import decide
from resvm_cli.model.out_of_bag import TrainingRows, UnseenMask, decide_out_of_bag
from resvm_cli.model.plan import Plan, bag_key, bag_of, problem_on, resolve_defaults
from resvm_cli.model.shared_kernels import KernelTrainer, SharedKernels
from resvm_cli.parameters import MethodParameters, MetricName
from resvm_cli.rows import FloatArray, IntArray, Rows
from resvm_cli.running.run import Run
from resvm_cli.svm.problem import Problem
from resvm_cli.tuning.criteria import JudgedRows, Scores, score
from resvm_cli.tuning.folds import Folds
from resvm_cli.tuning.search import Task
from resvm_cli.tuning.space import Candidate


def params_of(
    candidate: Candidate, base: MethodParameters, n_models: int, rows_pos: int, rows_unl: int
) -> MethodParameters:
    """A candidate's parameters for so many rows of P and of U."""
    n_pos = n_unl = None
    if candidate.method == "resvm":
        n_pos = min(int(candidate["n_pos"] or 1), rows_pos)
    if candidate.method != "cwsvm":
        per_pos = candidate["unl_per_pos"] or 1.0
        n_unl = min(max(1, round(per_pos * (n_pos or rows_pos))), rows_unl)
    return replace(
        base,
        method=candidate.method,
        gamma=candidate["gamma"] or base.gamma,
        degree=int(candidate["degree"] or base.degree),
        coef0=base.coef0 if candidate["coef0"] is None else candidate["coef0"],
        c_unl=candidate["c_unl"] or base.c_unl,
        w_pos=candidate["w_pos"],
        n_pos=n_pos,
        n_unl=n_unl,
        n_models=None if candidate.method == "cwsvm" else n_models,
    )


@dataclass(frozen=True, eq=False)
class _Ensemble:
    """A task's members, and what they say of some rows."""

    plan: Plan
    members: Sequence[Problem]
    values: FloatArray  # rows x members


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges candidates on one P and U."""

    kernels: SharedKernels
    base: MethodParameters  # what candidates have in common
    folds: Folds
    out_of_bag: bool
    metric: MetricName
    up_to: float
    positive_weights: PositiveWeights | None = None

    def rows_apart(self) -> tuple[Judge, list[Rows]]:
        """The judge without rows, and these."""
        return replace(self, kernels=self.kernels.on([Rows.empty()] * 2)), [
            self.kernels.positives,
            self.kernels.unlabeled,
        ]

    def with_rows(self, parts: list[Rows]) -> Judge:
        """The same on rows."""
        return replace(self, kernels=self.kernels.on(parts))

    @property
    def rows_pos(self) -> int:
        return len(self.kernels.positives)

    @property
    def rows_unl(self) -> int:
        return len(self.kernels.unlabeled)

    @cached_property
    def _training_rows(self) -> TrainingRows:
        kernels = self.kernels
        return TrainingRows(kernels.positives, kernels.unlabeled, groups=self.folds.groups)

    def plan(
        self,
        task: Task,
        rows_pos: int,
        rows_unl: int,
        seed: int,
        weights: PositiveWeights | None = None,
    ) -> Plan:
        """The task, settled for so many rows; gamma is a number, so no variance is asked for."""
        params = params_of(task.candidate, self.base, task.n_models, rows_pos, rows_unl)
        return resolve_defaults(
            replace(params, seed=seed), rows_pos, rows_unl, 1, lambda: 1.0, weights
        )

    def scores(self, tasks: Sequence[Task], run: Run) -> list[Scores | ResvmError]:
        """For each task of one kernel its scores, or why it has none."""
        kernel = self.plan(tasks[0], self.rows_pos, self.rows_unl, 0).kernel
        with self.kernels.trainer(kernel, run) as trainer:
            judge = self.out_of_bag_rows if self.out_of_bag else self.held_out_rows
            return [
                rows
                if isinstance(rows, ResvmError)
                else score(rows, self.metric, self.up_to, by_folds=not self.out_of_bag)
                for rows in judge(tasks, trainer)
            ]

    def held_out_rows(
        self, tasks: Sequence[Task], trainer: KernelTrainer
    ) -> list[JudgedRows | ResvmError]:
        """Each row judged by an ensemble trained without its fold."""
        parts: list[list[JudgedRows]] = [[] for _ in tasks]
        failed: dict[int, ResvmError] = {}
        for repeat, line in enumerate(self.folds.parts):
            for fold in range(self.folds.n_folds):
                going = [number for number in range(len(tasks)) if number not in failed]
                answers = self.held_out_fold(
                    [tasks[number] for number in going],
                    trainer,
                    line,
                    fold,
                    repeat * self.folds.n_folds + fold,
                )
                for number, answer in zip(going, answers, strict=True):
                    if isinstance(answer, ResvmError):
                        failed[number] = answer
                    else:
                        parts[number].append(answer)
        return [failed.get(number) or _joined(parts[number]) for number in range(len(tasks))]

    def held_out_fold(
        self,
        tasks: Sequence[Task],
        trainer: KernelTrainer,
        line: IntArray,
        fold: int,
        number: int,
        stream: int = randomness.FOLD,
    ) -> list[JudgedRows | ResvmError]:
        """The rows of one fold, judged by ensembles trained on all others."""
        kept_pos = np.flatnonzero(line[: self.rows_pos] != fold)
        kept_unl = np.flatnonzero(line[self.rows_pos :] != fold)
        held = np.flatnonzero(line == fold)
        seed = randomness.fold_seed(self.base.seed, number, stream)

        def judged(ensemble: _Ensemble) -> JudgedRows:
            single = ensemble.plan.method == "cwsvm"
            decisions = decide(ensemble.values, single)
            return JudgedRows(
                held < self.rows_pos,
                decisions.values if single else decisions.values_without_ties(),
                decisions.means,
                decisions.labels(0.0 if single else 0.5) > 0,
                np.full(len(held), number),
                held,
            )

        return self._judged(tasks, trainer, (kept_pos, kept_unl), seed, held, judged)

    def out_of_bag_rows(
        self, tasks: Sequence[Task], trainer: KernelTrainer
    ) -> list[JudgedRows | ResvmError]:
        """Each row judged by members whose bags lack it."""
        everything = np.arange(self.rows_pos), np.arange(self.rows_unl)

        def judged(ensemble: _Ensemble) -> JudgedRows:
            return self.judged_out_of_bag(ensemble.members, ensemble.values)

        return self._judged(tasks, trainer, everything, self.base.seed, None, judged)

    def _judged(
        self,
        tasks: Sequence[Task],
        trainer: KernelTrainer,
        kept: tuple[IntArray, IntArray],
        seed: int,
        rows: IntArray | None,
        judged: Callable[[_Ensemble], JudgedRows],
    ) -> list[JudgedRows | ResvmError]:
        """What is made of each task's ensemble, trained on the rows of P and of U that are kept.

        Tasks with the same bags are trained together: a bag is drawn and made ready once.
        """
        answers: dict[int, JudgedRows | ResvmError] = {}
        alike: dict[tuple[object, ...], list[tuple[int, Plan]]] = {}
        weights = self.positive_weights
        if weights is not None:
            try:
                weights = weights.take(kept[0])
            except DataError as error:
                return [error] * len(tasks)
        for number, task in enumerate(tasks):
            try:
                plan = self.plan(task, len(kept[0]), len(kept[1]), seed, weights)
            except (DataError, ParameterError) as error:
                answers[number] = error
            else:
                alike.setdefault(bag_key(plan), []).append((number, plan))
        for plans in alike.values():
            first = plans[0][1]
            drawn = [bag_of(first, member) for member in range(first.n_models)]
            bags = [(kept[0][positive], kept[1][unlabeled]) for positive, unlabeled in drawn]
            ensembles = [
                [problem_on(bag, plan, member) for member, bag in enumerate(bags)]
                for _, plan in plans
            ]
            answered = trainer.ensemble_values(ensembles, rows)
            for (number, plan), members, values in zip(plans, ensembles, answered, strict=True):
                if isinstance(values, ResvmError):
                    answers[number] = values
                    continue
                try:
                    ensemble = _Ensemble(plan, members, np.ascontiguousarray(values.T))
                    answers[number] = judged(ensemble)
                except DataError as error:
                    answers[number] = error
        return [answers[number] for number in range(len(tasks))]

    def judged_out_of_bag(self, members: Sequence[Problem], values: FloatArray) -> JudgedRows:
        """Each row judged by those members that have not seen it.

        Bags hold a larger share of P than of U. Rows judged by few members vary more, so that rows
        of P would fill the top and the bottom of a ranking that knows nothing: each row of U gets a
        row of P for a partner, and is judged by members that lack both. Rows in every bag are left
        out. The folds serve only to tell how far the criterion varies.
        """
        rows = np.arange(self.rows_pos + self.rows_unl)
        absent = UnseenMask(members, self._training_rows).all_unseen()
        bits = randomness.run_bits(self.base.seed, randomness.PARTNERS)
        partners = randomness.shuffled(bits, self.rows_unl) % self.rows_pos
        absent[self.rows_pos :] &= absent[partners]
        decisions = decide_out_of_bag(values, absent)
        judged = JudgedRows(
            rows < self.rows_pos,
            decisions.values_without_ties(),
            decisions.means,
            decisions.labels(0.5) > 0,
            self.folds.parts[0],
            rows,
        ).only(decisions.n_members > 0)
        if not judged.positive.any() or judged.positive.all():
            which = "P" if not judged.positive.any() else "U"
            raise DataError(
                f"every bag holds every row of {which}: none can be scored out of bag",
                Message("use more members, smaller bags, or {folds} instead of {oob:True}"),
            )
        return judged


def _joined(parts: list[JudgedRows]) -> JudgedRows:
    def column(name: str) -> FloatArray:
        return np.concatenate([getattr(part, name) for part in parts])

    return JudgedRows(
        column("positive").astype(bool),
        column("values"),
        column("means"),
        column("called").astype(bool),
        column("parts").astype(np.int64),
        column("rows").astype(np.int64),
    )
