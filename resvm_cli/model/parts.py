"""Part of a model: a run of its members, trained anywhere, and what they say of rows unseen.

Member i depends on (seed, i) and the data alone, and so do its values of the rows that are judged
out of bag: parts of one plan, put together in the order of their members, are the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from resvm_cli import randomness
from resvm_cli.model.decisions import DecisionRule, choose_threshold
from resvm_cli.model.ensemble import Decisions, Group
from resvm_cli.model.members import Fitted, Trainer, fit_by, rows_drawn
from resvm_cli.model.out_of_bag import (
    Absences,
    TrainingRows,
    decide_out_of_bag,
    stored_values,
)
from resvm_cli.model.plan import ModelPlan, standardised
from resvm_cli.model.pu_data import PUData
from resvm_cli.parameters import RULE_NAMES, RuleName
from resvm_cli.rows import FloatArray, IntArray, Rows, distinct
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.svm.problem import Problem

# Rows judged out of bag: all of small sets, else so many that judging takes a fraction of the time
# of training (pairs of rows whose kernel values are needed tell both), a third of them of P.
SMALL_SETS = 1500
LEAST_JUDGED, MOST_JUDGED = 600, 2000
SHARE_OF_PAIRS = 0.2
SHARE_OF_POSITIVES = 1 / 3


@dataclass(frozen=True, eq=False)
class JudgedNumbers:
    """The rows of P and of U whose out-of-bag values belong to a model."""

    positive: IntArray
    unlabeled: IntArray

    def __len__(self) -> int:
        return len(self.positive) + len(self.unlabeled)

    @classmethod
    def of(cls, plan: ModelPlan) -> JudgedNumbers:
        """Drawn from the seed; none where members have seen every known positive."""
        if plan.method != "resvm":
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))
        bits = randomness.run_bits(plan.seed, randomness.OUT_OF_BAG_ROWS)
        total = _n_judged(plan)
        positive = randomness.sample(bits, plan.rows_pos, round(SHARE_OF_POSITIVES * total))
        return cls(positive, randomness.sample(bits, plan.rows_unl, total - len(positive)))


def _n_judged(plan: ModelPlan) -> int:
    n_rows = plan.rows_pos + plan.rows_unl
    if n_rows <= SMALL_SETS:
        return 3 * n_rows  # a third of which are all there are
    pairs = sum(each.n_models * each.bag_size**2 for each in plan.plans)
    pool = min(n_rows, sum(each.n_models * each.bag_size for each in plan.plans))
    return min(MOST_JUDGED, max(LEAST_JUDGED, int(SHARE_OF_PAIRS * pairs / pool)))


@dataclass(frozen=True, eq=False)
class Part:
    """A run of members of a model."""

    plan: ModelPlan
    members: range
    fitted: Fitted
    judged: JudgedNumbers
    values: FloatArray  # members x judged rows, P before U; nan where the member has seen the row
    problems: Sequence[Problem]
    drawn: IntArray  # the rows of U that any of its bags holds, ascending
    unlabeled: Rows  # those rows, unscaled


def train_part(
    plan: ModelPlan,
    members: range,
    data: PUData,
    run: Run,
    on_members: Callable[[int], None] = lambda done: None,
    on_rows: Callable[[int], None] = lambda n_rows: None,
) -> Part:
    """These members of the plan at once."""
    return next(train_runs(plan, [members], data, run, on_members, on_rows))


def train_runs(
    plan: ModelPlan,
    batches: Sequence[range],
    data: PUData,
    run: Run,
    on_members: Callable[[int], None] = lambda done: None,
    on_rows: Callable[[int], None] = lambda n_rows: None,
) -> Iterator[Part]:
    """Batch after batch of members, each as it is finished; their rows are fetched once for all.

    ``on_members`` is told how many members are done, ``on_rows`` how many rows were fetched for
    training, before it starts.
    """
    tasks = {members: plan.problems(members) for members in batches}
    drawn = rows_drawn([problem for some in tasks.values() for problem in some])
    judged = JudgedNumbers.of(plan)
    numbers = distinct(np.concatenate([drawn, judged.unlabeled]))
    fetched = data.fetch(numbers)
    unlabeled = fetched.take(np.searchsorted(numbers, drawn))
    unscaled = Rows.concatenate(
        [
            data.positives.take(judged.positive),
            fetched.take(np.searchsorted(numbers, judged.unlabeled)),
        ]
    )
    del fetched  # it may be large
    judged_rows = data.scaled(unscaled)
    positives, drawn_rows = data.scaled(data.positives), data.scaled(unlabeled)
    on_rows(len(positives) + len(drawn_rows))
    n_workers = run.workers()
    # before scaling, which may give values to rows without features
    training_rows = TrainingRows(data.positives, unlabeled, drawn, data.groups(), unscaled)
    places = np.concatenate([judged.positive, len(positives) + judged.unlabeled])
    n_columns = data.n_features + (0 if data.zero_based else 1)
    done = 0

    def tick(members: int) -> None:
        on_members(done + members)

    alone = sum(map(len, batches)) == 1 and not run.is_remote
    trainer = Trainer.of(positives, drawn_rows, drawn, n_workers if alone else 1)
    for members, some in tasks.items():
        fitted = fit_by(trainer, some, run, single=plan.single, on_members=tick)
        values = np.zeros((len(some), 0))
        if len(judged):
            absent = Absences(some, training_rows).absent(places, unscaled)
            judging = parallel.available_cores() if run.is_remote else n_workers
            values = stored_values(fitted.ensemble, judged_rows, absent, n_columns, judging)
        done += len(members)
        yield Part(plan, members, fitted, judged, values, some, drawn, unlabeled)


@dataclass(frozen=True, eq=False)
class Conclusion:
    """What all members together say of the judged rows, and what follows for new ones."""

    groups: tuple[Group, ...]  # standardised
    rule: DecisionRule
    judged: JudgedNumbers
    decisions: Decisions  # of the judged rows, P before U

    def values(self, rule: RuleName) -> tuple[FloatArray, FloatArray]:
        """Decision values of the rows of P and of U that some member has not seen."""
        values, unseen = self.decisions.by(rule), self.decisions.n_members > 0
        of_p = np.arange(len(values)) < len(self.judged.positive)
        return values[unseen & of_p], values[unseen & ~of_p]


def conclude(
    plan: ModelPlan, rule: RuleName, judged: JudgedNumbers, values: FloatArray
) -> Conclusion:
    """From each member's values of the rows it has not seen, members x rows."""
    groups = plan.groups()
    by_row = np.ascontiguousarray(values.T)
    absent = np.isfinite(by_row)
    if len(groups) > 1 and len(judged):
        groups = tuple(_standardised(group, by_row, absent, judged) for group in groups)
    decisions = decide_out_of_bag(by_row, absent, groups)
    decided = DecisionRule.plain(rule, single=plan.single)
    conclusion = Conclusion(groups, decided, judged, decisions)
    for name in RULE_NAMES if len(judged) else ():
        threshold = choose_threshold(*conclusion.values(name))
        if threshold is not None:
            decided.thresholds[name] = threshold
    return conclusion


def _standardised(
    group: Group, values: FloatArray, absent: np.ndarray, judged: JudgedNumbers
) -> Group:
    """By the mean and the deviation of its mean value over rows of U."""
    members = slice(group.members.start, group.members.stop)
    of_u = slice(len(judged.positive), len(judged))
    seen_by = absent[of_u, members]
    counts = seen_by.sum(axis=1)
    sums = np.where(seen_by, values[of_u, members], 0.0).sum(axis=1)
    means = sums[counts > 0] / counts[counts > 0]
    if len(means) < 2:
        return group
    return standardised(group, float(means.mean()), float(means.std()))
