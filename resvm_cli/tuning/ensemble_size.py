"""How many members are enough: more until two halves of the ensemble say the same.

Paper, section 3.1: members add stability up to a plateau. Two halves that share no member are
compared out of bag by their criterion and by which rows of U they put on top.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from resvm_cli.model.plan import problems
from resvm_cli.running.run import Run
from resvm_cli.tuning.criteria import JudgedRows, criterion
from resvm_cli.tuning.search import Task
from resvm_cli.tuning.space import Candidate
from resvm_cli.tuning.validation import Judge

STEPS = (25, 50, 100, 200, 400, 800)
SCORE_TOLERANCE = 0.02
TOP_SHARE = 0.05  # of U
OVERLAP = 0.8


@dataclass(frozen=True)
class Growth:
    """What so many members give."""

    n_models: int
    score: float
    difference: float  # of the criterion between halves
    overlap: float  # of the rows of U that halves put on top

    @property
    def stable(self) -> bool:
        return abs(self.difference) <= SCORE_TOLERANCE and self.overlap >= OVERLAP


def grow(judge: Judge, candidate: Candidate, run: Run) -> Iterator[Growth]:
    """More and more members, until halves agree or there are many."""
    most = Task(candidate, STEPS[-1])
    sizes = judge.rows_pos, judge.rows_unl
    plan = judge.plan(most, *sizes, judge.base.seed, judge.positive_weights)
    members = list(problems(plan, range(STEPS[-1])))
    values = np.zeros((judge.rows_pos + judge.rows_unl, 0))
    with judge.kernels.trainer(plan.kernel, run) as trainer:
        for n_models in STEPS:
            more = trainer.member_values(members[values.shape[1] : n_models]).T
            values = np.ascontiguousarray(np.hstack([values, more]))
            whole = judge.judged_out_of_bag(members[:n_models], values)
            halves = [
                judge.judged_out_of_bag(
                    members[side:n_models:2], np.ascontiguousarray(values[:, side::2])
                )
                for side in (0, 1)
            ]
            first, second = (criterion(half, judge.metric, judge.up_to) for half in halves)
            step = Growth(
                n_models,
                criterion(whole, judge.metric, judge.up_to),
                first - second,
                _overlap(*halves),
            )
            yield step
            if step.stable:
                return


def _overlap(first: JudgedRows, second: JudgedRows) -> float:
    """The share of the top rows of U that two rankings have in common."""
    tops = []
    for judged in (first, second):
        unlabeled = np.flatnonzero(~judged.positive)
        count = max(10, round(TOP_SHARE * len(unlabeled)))
        order = np.argsort(-judged.values[unlabeled], kind="stable")[:count]
        tops.append(set(judged.rows[unlabeled[order]].tolist()))
    return len(tops[0] & tops[1]) / max(1, min(map(len, tops)))
