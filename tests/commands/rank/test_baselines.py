"""Baselines: placements by features, nearest known positives, and when the note speaks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import resvm_cli
from resvm_cli.commands.rank import baselines
from resvm_cli.commands.rank.baselines import Baseline, nearness
from resvm_cli.metrics.intervals import Interval
from resvm_cli.model.ensemble import Ensemble, Group
from resvm_cli.rows import Rows
from resvm_cli.svm.kernels import Kernel

LABELS = np.arange(300) < 60


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def mixed(rng):
    """Return rows with dense, sparse, negative and tied features; the third one tells P from U."""
    matrix = rng.normal(size=(300, 6))
    matrix[:, 1] = rng.integers(-1, 2, size=300)
    matrix[:, 3] *= rng.random(300) < 0.2
    matrix[:, 2] -= 1.5 * LABELS
    return matrix


def test_sums_of_placements_are_the_roc_auc_of_each_feature(rng):
    matrix = mixed(rng)
    rows = Rows.from_dense(matrix).without_zeros()
    folds = np.arange(60) % baselines.N_FOLDS
    sums = baselines._sums_by_fold(rows, rows.indices.astype(np.int64) - 1, 6, 60, folds)
    for fold, line in enumerate(sums):
        chosen = np.concatenate([folds == fold, np.ones(240, bool)])
        expected = [roc_auc_score(LABELS[chosen], matrix[chosen, j]) for j in range(6)]
        assert line / 12 == pytest.approx(expected)


def test_the_single_feature_is_chosen_without_the_rows_it_is_judged_on(rng):
    noise = rng.normal(size=(300, 400))
    rows = Rows.from_dense(noise)
    best = max(abs(roc_auc_score(LABELS, column) - 0.5) for column in noise.T)
    _, (above, _) = baselines._single_feature(rows, 60, np.arange(60) % baselines.N_FOLDS)
    assert best > 0.12
    assert abs(above.mean() - 0.5) < best - 0.05


def test_the_single_feature_may_point_either_way(rng):
    rows = Rows.from_dense(mixed(rng)).without_zeros()
    feature, (above, below) = baselines._single_feature(rows, 60, np.arange(60) % 5)
    assert feature == 3
    assert above.mean() > 0.75
    assert above.mean() == pytest.approx(below.mean())


def test_a_feature_is_chosen_by_some_rows_of_u_and_judged_on_all(rng, monkeypatch):
    monkeypatch.setattr(baselines, "CHOOSING_ROWS", 50)
    matrix = mixed(rng)
    rows = Rows.from_dense(matrix).without_zeros()
    used = []
    real = baselines._sums_by_fold

    def sums(some, *others):
        used.append(len(some))
        return real(some, *others)

    monkeypatch.setattr(baselines, "_sums_by_fold", sums)
    folds = np.arange(60) % 5
    feature, (above, below) = baselines._single_feature(rows, 60, folds)
    assert used == [60 + 48]
    assert feature == 3
    assert len(below) == 240
    expected = roc_auc_score(LABELS, -matrix[:, 2])  # every fold chooses it
    assert above.mean() == pytest.approx(expected)


@pytest.mark.parametrize("name", ["rbf", "tanimoto", "minmax"])
def test_the_nearest_known_positive_is_never_the_row_its_equal_or_of_its_group(rng, name):
    matrix = rng.integers(0, 2, size=(40, 12)).astype(float)
    matrix[7] = matrix[3]
    matrix[30] = matrix[5]
    rows = Rows.from_dense(matrix)
    ensemble = Ensemble((Group(Kernel(name, gamma=0.3), range(1)),), Rows.empty(), (), False)
    contents, groups = rows.content_numbers(), np.arange(40) // 2
    found = nearness(rows, 20, ensemble, contents, groups)
    for row, value in enumerate(found):
        others = [
            number
            for number in range(20)
            if groups[number] != groups[row] and contents[number] != contents[row]
        ]
        if name == "rbf":
            expected = -((matrix[others] - matrix[row]) ** 2).sum(axis=1)
        else:
            both = np.minimum(matrix[others], matrix[row]).sum(axis=1)
            expected = both / (matrix[others].sum(axis=1) + matrix[row].sum() - both)
        assert value == pytest.approx(expected.max())


def test_a_note_needs_a_difference_of_one_standard_error():
    def beaten(value, error):
        bounds = Interval(value, value - 1.959964 * error, value + 1.959964 * error)
        return Baseline("nearest_positive", None, 0.8, 0.8, bounds).is_beaten

    assert beaten(0.01, 0.05)
    assert beaten(-0.04, 0.05)
    assert not beaten(-0.06, 0.05)
    assert not beaten(0.0, 0.0)


def test_rank_says_if_one_feature_ranks_better(rng):
    matrix = rng.normal(size=(600, 60))
    matrix[:200, 4] += 3.0
    matrix[:, 0] *= 1000  # not scaled: distances are those of this feature alone
    with pytest.warns(resvm_cli.ResultWarning):
        ranking = resvm_cli.rank(matrix, np.arange(600) < 80, auto=False, n_models=20, jobs=1)
    assert any("no better than feature 4 alone" in note for note in ranking.notes)
    by_feature, by_nearest = ranking.baselines
    assert by_feature.roc_auc > by_feature.ensemble_roc_auc
    assert by_nearest.feature is None


def test_rank_is_silent_if_the_ensemble_is_better_and_any_number_of_threads_agrees(rng):
    matrix = rng.normal(size=(700, 8))
    matrix[:200] += 0.8
    labels = np.arange(700) < 80
    rankings = [
        resvm_cli.rank(matrix, labels, auto=False, n_models=30, jobs=jobs) for jobs in (1, 2)
    ]
    assert not any("no better than" in note for note in rankings[0].notes)
    assert len(rankings[0].baselines) == 2
    assert rankings[0].baselines == rankings[1].baselines


@pytest.mark.filterwarnings("ignore::resvm_cli.ResultWarning")
def test_bagging_small_p_and_precomputed_kernels_have_no_baselines(rng, monkeypatch):
    matrix = rng.normal(size=(200, 4))
    matrix[:60] += 3
    monkeypatch.setattr(baselines, "MIN_POSITIVES", 20)
    for labels, data, options in (
        (np.arange(200) < 30, matrix, {"method": "bagging"}),
        (np.arange(200) < 15, matrix, {}),
        (np.arange(200) < 30, matrix @ matrix.T, {"kernel": "precomputed"}),
    ):
        ranking = resvm_cli.rank(data, labels, auto=False, n_models=20, jobs=1, **options)
        assert ranking.baselines == ()
