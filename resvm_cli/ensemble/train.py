"""Train the members of a plan on rows in memory, and score the rows that each has not seen.

Member i and its out-of-bag values depend only on (seed, i) and the data. Parts of a plan, joined in
member order, are therefore identical to a model trained in one run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from resvm_cli import threads as parallel
from resvm_cli.data.pudata import PUData
from resvm_cli.ensemble.ensemble import Ensemble
from resvm_cli.ensemble.members import Trainer, fit_members, rows_drawn
from resvm_cli.ensemble.oob import OutOfBagSample, TrainingRows, UnseenMask, stored_values
from resvm_cli.ensemble.plan import Plan
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, Rows, distinct
from resvm_cli.run import Run
from resvm_cli.svm.problem import Problem


@dataclass(frozen=True, eq=False)
class Part:
    """Consecutive members of a model."""

    plan: Plan
    members: range
    ensemble: Ensemble
    converged: tuple[bool, ...]
    sample: OutOfBagSample
    values: FloatArray  # members x sampled rows, P before U; nan if the member has seen the row
    problems: Sequence[Problem]
    drawn: IntArray  # ascending numbers of the rows of U that are in any bag
    unlabeled: Rows  # the drawn rows, unscaled

    @property
    def n_unconverged(self) -> int:
        return self.converged.count(False)


def train_part(
    plan: Plan,
    members: range,
    data: PUData,
    run: Run,
    on_members: Callable[[int], None] = lambda done: None,
) -> Part:
    """Train these members of the plan as one batch."""
    return next(train_parts(plan, [members], data, run, on_members))


def train_parts(
    plan: Plan,
    batches: Sequence[range],
    data: PUData,
    run: Run,
    on_members: Callable[[int], None] = lambda done: None,
) -> Iterator[Part]:
    """Yield each batch of members as soon as it is trained; rows are fetched once for all batches.

    ``on_members`` is called with the number of members trained so far.
    """
    tasks = {members: plan.problems(members) for members in batches}
    drawn = rows_drawn([problem for some in tasks.values() for problem in some])
    sample = OutOfBagSample.from_plan(plan)
    numbers = distinct(np.concatenate([drawn, sample.unlabeled]))
    fetched = data.fetch(numbers)
    unlabeled = fetched.take(np.searchsorted(numbers, drawn))
    unscaled = Rows.concatenate(
        [
            data.positives.take(sample.positive),
            fetched.take(np.searchsorted(numbers, sample.unlabeled)),
        ]
    )
    del fetched  # it may be large
    alone = sum(map(len, batches)) == 1 and not run.is_remote
    n_workers = run.workers()
    # before scaling, which may fill in rows without features
    training_rows = TrainingRows(data.positives, unlabeled, drawn, data.groups(), unscaled)
    numbers = np.concatenate([sample.positive, len(data.positives) + sample.unlabeled])
    n_columns = data.n_features + (0 if data.zero_based else 1)
    done = 0

    def tick(members: int) -> None:
        on_members(done + members)

    trainer = Trainer.from_data(plan, data, unlabeled, drawn, n_workers if alone else 1)
    for members, some in tasks.items():
        ensemble, converged = fit_members(trainer, some, run, single=plan.single, on_members=tick)
        values = np.zeros((len(some), 0))
        if len(sample):
            unseen = UnseenMask(some, training_rows).unseen(numbers, unscaled)
            threads = parallel.available_cores() if run.is_remote else n_workers
            values = stored_values(ensemble, unscaled, unseen, n_columns, threads)
        done += len(members)
        yield Part(plan, members, ensemble, converged, sample, values, some, drawn, unlabeled)
