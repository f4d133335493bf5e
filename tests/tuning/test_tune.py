"""How many members n_models="auto" trains: until two halves of the ensemble agree."""

from __future__ import annotations

import numpy as np
import pytest

from resvm_cli.model.shared_kernels import SharedKernels
from resvm_cli.rows import Rows
from resvm_cli.running.run import Run
from resvm_cli.tuning.search import ScoringTask
from resvm_cli.tuning.validation import (
    MIN_OVERLAP,
    SCORE_TOLERANCE,
    EnsembleSize,
    criterion,
    ensemble_sizes,
)
from tests.tuning.test_validation import CANDIDATE, TASK, scorer


def test_members_are_grown_until_halves_agree():
    made = scorer(oob=True)
    steps = list(ensemble_sizes(made, CANDIDATE, Run()))
    assert [step.n_models for step in steps] == [25, 50, 100, 200, 400, 800][: len(steps)]
    assert steps[-1].stable or len(steps) == 6
    assert not any(step.stable for step in steps[:-1])
    with made.sample.kernels.trainer(made.plan(TASK, 24, 80, 7).kernel, Run()) as trainer:
        (rows,) = made.out_of_bag_rows([ScoringTask(CANDIDATE, 25)], trainer)
    assert steps[0].score == pytest.approx(criterion(rows, "roc_auc", 0.2))


@pytest.mark.parametrize(
    ("difference", "overlap", "stable"),
    [
        (0.0, 1.0, True),
        (SCORE_TOLERANCE, MIN_OVERLAP, True),
        (-SCORE_TOLERANCE, MIN_OVERLAP, True),
        (1.01 * SCORE_TOLERANCE, 1.0, False),
        (-1.01 * SCORE_TOLERANCE, 1.0, False),
        (0.0, 0.99 * MIN_OVERLAP, False),
    ],
)
def test_members_are_enough_when_halves_agree_on_the_score_and_on_the_top_of_u(
    difference, overlap, stable
):
    assert EnsembleSize(25, 0.7, difference, overlap).stable == stable


def test_halves_that_disagree_ask_for_more_members():
    # nothing tells P from U here, so what 25 members put on top is chance
    rng = np.random.default_rng(4)
    rows = [Rows.from_dense(rng.standard_normal((size, 3))) for size in (24, 80)]
    steps = list(
        ensemble_sizes(scorer(oob=True, kernels=SharedKernels(*rows, 100)), CANDIDATE, Run())
    )
    assert len(steps) > 1
    assert min(step.overlap for step in steps[:-1]) < MIN_OVERLAP
