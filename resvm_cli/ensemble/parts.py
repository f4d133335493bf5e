"""Part of a model: a run of its members, trained anywhere, and what they say of rows unseen.

Member i depends on (seed, i) and the data alone, and so do its values of the rows that are judged
out of bag: parts of one plan, put together in the order of their members, are the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from resvm_cli import randomness
from resvm_cli.dataset import FloatArray, IntArray, Rows
from resvm_cli.ensemble.fit import Fitted, fit, rows_drawn
from resvm_cli.ensemble.methods import Plan, problems
from resvm_cli.ensemble.model import Decisions
from resvm_cli.ensemble.out_of_bag import (
    Absences,
    TrainingRows,
    decide_out_of_bag,
    stored_values,
)
from resvm_cli.ensemble.pu_data import PUData
from resvm_cli.svm.problem import Problem

# So many known positives place a recall to a few hundredths; more would only cost time.
MOST_JUDGED = 1000


@dataclass(frozen=True, eq=False)
class Part:
    """A run of members of a plan."""

    plan: Plan
    members: range
    fitted: Fitted
    judged: IntArray  # rows of P that are judged by members that have not seen them
    values: FloatArray  # members x those rows; nan where the member has seen the row
    problems: Sequence[Problem]
    drawn: IntArray  # the rows of U that any of its bags holds, ascending
    unlabeled: Rows  # those rows, unscaled


def judged_rows(plan: Plan) -> IntArray:
    """The rows of P whose out-of-bag values belong to a model; of other methods none."""
    if plan.method != "resvm":
        return np.zeros(0, np.int64)
    bits = randomness.run_bits(plan.seed, randomness.OUT_OF_BAG_ROWS)
    return randomness.sample(bits, plan.rows_pos, MOST_JUDGED)


def train_part(
    plan: Plan,
    members: range,
    data: PUData,
    workers: Callable[[Rows, Rows], int] = lambda positives, unlabeled: 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Part:
    """These members of the plan at once."""
    return next(train_runs(plan, [members], data, workers, progress))


def train_runs(
    plan: Plan,
    runs: Sequence[range],
    data: PUData,
    workers: Callable[[Rows, Rows], int] = lambda positives, unlabeled: 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[Part]:
    """Run after run of members, each as it is finished; their rows are fetched once for all.

    ``workers`` is told the rows of P and of U, as members see them.
    """
    tasks = {run: list(problems(plan, run)) for run in runs}
    drawn = rows_drawn([problem for some in tasks.values() for problem in some])
    unlabeled = data.fetch(drawn)
    positives, drawn_rows = data.scaled(data.positives), data.scaled(unlabeled)
    n_workers = workers(positives, drawn_rows)
    judged = judged_rows(plan)
    rows = positives.take(judged)
    training_rows = TrainingRows(positives, drawn_rows, drawn, data.groups(), rows)
    n_columns = data.n_features + (0 if data.zero_based else 1)
    total = sum(map(len, runs))
    done = 0

    def tick(members: int, _: int) -> None:
        progress(done + members, total)

    for run, some in tasks.items():
        fitted = fit(
            some,
            positives,
            drawn_rows,
            drawn,
            single=plan.method == "cwsvm",
            workers=n_workers,
            progress=tick,
        )
        values = np.zeros((len(some), 0))
        if len(judged):
            absent = Absences(some, training_rows).absent(judged, rows)
            values = stored_values(fitted.ensemble, rows, absent, n_columns)
        done += len(run)
        yield Part(plan, run, fitted, judged, values, some, drawn, unlabeled)


def out_of_bag_decisions(values: FloatArray) -> Decisions:
    """What all members together say of the judged rows, from each one's values."""
    by_row = np.ascontiguousarray(values.T)
    return decide_out_of_bag(by_row, np.isfinite(by_row))
