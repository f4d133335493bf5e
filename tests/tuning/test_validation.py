"""Candidates get the same scores as from a plain loop over scikit-learn's SVC, without leaks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC

from resvm_cli.ensemble.decisions import decide
from resvm_cli.errors import DataError, SolverError
from resvm_cli.parameters import METRIC_NAMES, Params
from resvm_cli.randomness import bag_bits, below, fold_seed
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from resvm_cli.svm import smo
from resvm_cli.svm.kernels import Kernel
from resvm_cli.tuning import validation
from resvm_cli.tuning.candidates import SearchOptions
from resvm_cli.tuning.sample import Folds, KernelTrainer, SharedKernels, TuningSample
from resvm_cli.tuning.space import Candidate
from resvm_cli.tuning.validation import CandidateScorer, ScoredSample, criterion, score
from tests.fitting import problems

RNG = np.random.default_rng(21)
P = RNG.standard_normal((24, 3)) + 1.2
U = RNG.standard_normal((80, 3))
CANDIDATE = Candidate(
    "resvm",
    (("gamma", 0.3), ("n_pos", 6.0), ("unl_per_pos", 3.0), ("w_pos", 2.0), ("c_unl", 0.7)),
)


def scorer(oob=False, groups=None, n_folds=4, *, kernels=None, n_models=8):
    folds = Folds.drawn(24, 80, n_folds, 7, groups=groups)
    kernels = kernels or SharedKernels(Rows.from_dense(P), Rows.from_dense(U), 100)
    base = Params(seed=7, tolerance=1e-6)
    settings = SearchOptions(base=base, oob=oob, metric="roc_auc", n_models=n_models)
    return CandidateScorer(TuningSample({None: kernels}, folds), settings)


def test_fold_values_are_those_of_scikit_learn_on_the_same_folds_and_bags():
    made = scorer()
    line = made.sample.folds.numbers
    with made.sample.kernels.trainer(Kernel("rbf", CANDIDATE["gamma"]), Run()) as trainer:
        (found,) = made.held_out_rows([CANDIDATE], trainer)
    rows = np.vstack([P, U])
    for fold in range(4):
        kept_pos = np.flatnonzero(line[:24] != fold)
        kept_unl = np.flatnonzero(line[24:] != fold)
        held = np.flatnonzero(line == fold)
        values = []
        for member in range(8):
            bits = bag_bits(fold_seed(7, fold), member)
            positive = kept_pos[below(bits, len(kept_pos), 6)]
            unlabeled = kept_unl[below(bits, len(kept_unl), 18)]
            svc = SVC(
                kernel="rbf", gamma=0.3, C=1.0, tol=1e-6,
                class_weight={1: 0.7 * 2.0 * 18 / 6, -1: 0.7},
            )  # fmt: skip
            svc.fit(np.vstack([P[positive], U[unlabeled]]), np.repeat([1, -1], [6, 18]))
            values.append(svc.decision_function(rows[held]))
        expected = decide(np.array(values).T.copy())
        part = found.only(found.folds == fold)
        assert np.array_equal(part.positive, held < 24)
        np.testing.assert_allclose(part.means, expected.sums / 8, atol=1e-4)
        np.testing.assert_allclose(part.values, expected.values_without_ties(), atol=1e-3)


def bags_of(made, monkeypatch):
    """Return the bags that scoring trains on, as row numbers of P and U."""
    bags = []
    real = KernelTrainer.ensemble_values

    def spying(self, ensembles, rows=None):
        bags.append([np.concatenate([p.positive, p.unlabeled + 24]) for p in ensembles[0]])
        return real(self, ensembles, rows)

    monkeypatch.setattr(KernelTrainer, "ensemble_values", spying)
    made.scores([CANDIDATE], Run())
    return bags


@pytest.mark.parametrize("grouped", [False, True])
def test_no_row_that_is_scored_nor_its_group_is_in_a_bag(grouped, monkeypatch):
    groups = RNG.integers(0, 30, 104) if grouped else np.arange(104)
    made = scorer(groups=groups if grouped else None)
    for fold, bags in enumerate(bags_of(made, monkeypatch)):
        held = groups[made.sample.folds.numbers == fold]
        for bag in bags:
            assert not np.isin(groups[bag], held).any()


def test_every_fold_draws_bags_of_its_own(monkeypatch):
    made = scorer()
    drawn = []
    for fold, bags in enumerate(bags_of(made, monkeypatch)):
        kept = np.flatnonzero(made.sample.folds.numbers != fold)
        # positions among the rows that are kept; all folds have the same size
        drawn.append(tuple(np.searchsorted(kept, bag).tobytes() for bag in bags))
    assert len(drawn) == len(set(drawn)) == 4


def test_the_seed_of_a_fold_depends_on_the_seed_and_on_the_fold():
    assert len({fold_seed(seed, fold) for seed in range(4) for fold in range(25)}) == 100
    assert fold_seed(3, 2) == fold_seed(3, 2)


def test_out_of_bag_values_come_from_members_that_lack_the_row_its_group_and_its_partner():
    groups = RNG.integers(0, 60, 104)
    made = scorer(oob=True, groups=groups, n_folds=3)
    plan = made.sample.plan(CANDIDATE, made.settings, (24, 80, 0), 7)
    with made.sample.kernels.trainer(plan.kernel, Run()) as trainer:
        (found,) = made.out_of_bag_rows([CANDIDATE], trainer)
    members = list(problems(plan, range(8)))
    with made.sample.kernels.trainer(plan.kernel, Run()) as trainer:
        (values,) = trainer.ensemble_values([members])
    bags = [groups[np.concatenate([one.positive, one.unlabeled + 24])] for one in members]
    expected = []
    for row in range(24):  # rows of P have no partner
        outside = [m for m, bag in enumerate(bags) if groups[row] not in bag]
        if outside:
            expected.append(values[outside, row].mean())
    assert found.means[found.positive] == pytest.approx(np.array(expected))


def test_knowing_nothing_scores_like_chance_out_of_bag(monkeypatch):
    """Rows of P are scored by fewer members, which alone must not move them to the top."""
    monkeypatch.setattr(validation, "PARTIAL_LIMIT", 0.05)
    rng = np.random.default_rng(3)
    sets = rng.standard_normal((60, 4)), rng.standard_normal((600, 4))
    bench = SharedKernels(Rows.from_dense(sets[0]), Rows.from_dense(sets[1]), 100)
    candidate = replace(
        CANDIDATE,
        values=(
            ("gamma", 1e3),
            ("n_pos", 40.0),
            ("unl_per_pos", 2.0),
            ("w_pos", 1.0),
            ("c_unl", 1.0),
        ),
    )
    found = []
    for seed in range(6):
        folds = Folds.drawn(60, 600, 5, seed)
        settings = SearchOptions(
            base=Params(seed=seed),
            oob=True,
            metric="partial_roc_auc",
            n_models=20,
        )
        made = CandidateScorer(TuningSample({None: bench}, folds), settings)
        (scores,) = made.scores([candidate], Run())
        found.append(scores.values["partial_roc_auc"])
    assert np.mean(found) < 0.1  # 0.025 is chance; without partners it is above 0.3


def test_scores_are_means_over_folds():
    made = scorer()
    (scores,) = made.scores([CANDIDATE], Run())
    with made.sample.kernels.trainer(Kernel("rbf", CANDIDATE["gamma"]), Run()) as trainer:
        (rows,) = made.held_out_rows([CANDIDATE], trainer)
    parts = [rows.only(rows.folds == part) for part in range(4)]
    for name in METRIC_NAMES:
        by_fold = [criterion(part, name) for part in parts]
        assert scores.values[name] == pytest.approx(np.mean(by_fold))
    deviation = np.std([criterion(part, "roc_auc") for part in parts], ddof=1)
    assert scores.deviation == pytest.approx(deviation)


def test_pu_score_is_the_papers():
    rows = ScoredSample(
        np.array([True, True, True, True, False, False]),
        np.zeros(6),
        np.zeros(6),
        np.array([True, True, True, False, True, False]),
        np.zeros(6, np.int64),
    )
    found = score(rows, "pu_score", by_folds=False)
    assert found.recall == 0.75
    assert found.fraction_positive == pytest.approx(4 / 6)
    assert found.values["pu_score"] == pytest.approx(0.75**2 / (4 / 6))


def test_bags_that_leave_no_row_out_are_an_error_of_that_candidate_alone():
    huge = replace(
        CANDIDATE, values=(("gamma", 0.3), ("n_pos", 24.0), ("unl_per_pos", 3.0), ("c_unl", 1.0))
    )
    made = scorer(oob=True, groups=np.zeros(104, np.int64), n_folds=1, n_models=3)
    (answer,) = made.scores([huge], Run())
    assert isinstance(answer, DataError)
    assert "none can be scored out of bag" in str(answer)


@pytest.mark.parametrize("gram_mb", [100, 0])
@pytest.mark.parametrize("oob", [False, True])
def test_candidates_scored_together_get_the_scores_they_get_alone(oob, gram_mb):
    def candidate(n_pos, c_unl):
        values = (("gamma", 0.3), ("n_pos", n_pos), ("unl_per_pos", 3.0), ("c_unl", c_unl))
        return replace(CANDIDATE, values=values)

    kernels = SharedKernels(Rows.from_dense(P), Rows.from_dense(U), gram_mb)
    made = scorer(oob, kernels=kernels, n_models=5)
    some = [candidate(6.0, 0.7), candidate(4.0, 0.7), candidate(6.0, 30.0)]
    assert made.scores(some, Run()) == [made.scores([one], Run())[0] for one in some]


def test_a_candidate_that_fails_leaves_the_others_alone(monkeypatch):
    made = scorer()
    other = replace(CANDIDATE, values=(*CANDIDATE.values[:-1], ("c_unl", 9.0)))
    (expected,) = made.scores([other], Run())
    real = smo.solve

    def failing(values, bags, problems):
        solved = real(values, bags, problems)
        for line, (first, *_) in enumerate(problems):
            if first.c_unl == 0.7:
                solved.rhos[line, -1] = np.nan
        return solved

    monkeypatch.setattr(smo, "solve", failing)
    failed, found = made.scores([CANDIDATE, other], Run())
    assert isinstance(failed, SolverError)
    assert found == expected
