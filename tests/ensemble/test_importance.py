"""Importance of features: exact changes of values, correlated features, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from resvm_cli.ensemble import importance
from resvm_cli.ensemble.ensemble import Predictor
from resvm_cli.errors import DataError, ModelError
from resvm_cli.rows import Rows
from tests.fitting import fitted

SMALL = {"n_models": 15, "n_jobs": 1}


def drawn(seed=0):
    """Return rows whose first two features tell P from U, and labels of P."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 5, size=(300, 6)).astype(float)
    matrix[:120, :2] += 3
    return matrix, np.arange(300) < 80


@pytest.mark.parametrize(
    "options",
    [
        *({"kernel": name} for name in ("rbf", "linear", "poly", "sigmoid", "tanimoto", "minmax")),
        {"feature_weights": "relevance", "scale": "standard"},
        {"kernel": "laplacian", "scale": "standard"},
    ],
)
@pytest.mark.filterwarnings("ignore::resvm_cli.ResultWarning")
def test_permuted_values_are_those_of_rows_with_permuted_features(options):
    matrix, labels = drawn()
    ensemble = fitted(matrix, labels, **options, **SMALL)._model.ensemble
    group = ensemble.sections[0]
    rows = Rows.from_dense(matrix[:40])
    scaled = ensemble.scaled(rows, group).without_zeros()
    permuted = importance._Permuted(ensemble, group, 3, scaled, np.arange(1, 7))
    order = np.random.default_rng(1).permutation(40)
    columns, moved = np.array([1, 4]), np.arange(40)
    dense = permuted._rows[:, columns]
    found = permuted._changed(columns, dense, dense[order], moved)
    changed = matrix[:40].copy()
    changed[:, columns] = changed[order][:, columns]
    expected = Predictor(ensemble).member_values(Rows.from_dense(changed))[:, 3]
    assert found - ensemble.members[3].rho == pytest.approx(expected, rel=1e-7, abs=1e-7)


def test_the_features_that_matter_come_first_whatever_the_kernel_and_threads():
    matrix, labels = drawn()
    for options in ({}, {"kernel": "linear"}, {"kernel": "minmax"}):
        model = fitted(matrix, labels, **options, **SMALL)
        found = model.importance(matrix, labels)
        assert {one.feature for one in found[:2]} == {0, 1}
        assert sorted(one.feature for one in found) == list(range(6))
        assert found[0].importance > 0.05 > abs(found[-1].importance)
        assert found[0].deviation > 0
        two = fitted(matrix, labels, n_models=15, n_jobs=2, **options)
        assert two.importance(matrix, labels) == found


def test_correlated_features_are_permuted_together_and_share_their_importance():
    matrix, labels = drawn()
    alone = fitted(matrix, labels, **SMALL).importance(matrix, labels)
    doubled = np.column_stack([matrix, -2 * matrix[:, 0]])
    found = fitted(doubled, labels, scale="standard", **SMALL).importance(doubled, labels)
    assert len({one.group for one in alone}) == 6
    together = [one for one in found if one.feature in (0, 6)]
    assert len({(one.group, one.importance) for one in together}) == 1
    assert [one.group for one in found] == sorted(one.group for one in found)
    assert together[0].importance > 0.05


def test_of_many_features_those_that_alone_tell_p_from_u_are_permuted(monkeypatch):
    matrix, labels = drawn()
    monkeypatch.setattr(importance, "MAX_FEATURES", 3)
    found = fitted(matrix, labels, **SMALL).importance(matrix, labels)
    assert {0, 1} <= {one.feature for one in found}
    assert len(found) <= 3


def test_only_rows_that_a_member_has_not_seen_are_permuted(monkeypatch):
    matrix, labels = drawn()
    model = fitted(matrix, labels, n_pos=60, **SMALL)
    sizes = []
    make = importance._Permuted

    def permuted(ensemble, group, member, rows, features):
        sizes.append(len(rows))
        return make(ensemble, group, member, rows, features)

    monkeypatch.setattr(importance, "_Permuted", permuted)
    monkeypatch.setattr(importance, "MEMBER_UNLABELED", 7)
    model.importance(matrix, labels)
    assert len(sizes) == 15
    assert max(sizes) < 80 + 7 - 20  # 60 draws from 80 rows take more than 20 different ones


def test_rows_of_sorted_files_are_drawn_at_random(monkeypatch):
    matrix, labels = drawn()
    monkeypatch.setattr(importance, "MEMBER_POSITIVES", 10)
    monkeypatch.setattr(importance, "MEMBER_UNLABELED", 20)
    # the first rows of U, 80 to 120, are hidden positives: no feature tells P from them
    for one in fitted(matrix, labels, **SMALL).importance(matrix, labels)[:2]:
        assert one.feature in (0, 1)
        assert one.importance > 0.05


def test_models_without_features_or_rows_out_of_bag_are_refused():
    matrix, labels = drawn()
    bagging = fitted(matrix, labels, method="bagging", **SMALL)
    with pytest.raises(DataError, match="every member has seen almost all of P"):
        bagging.importance(matrix, labels)
    precomputed = fitted(matrix @ matrix.T, labels, kernel="precomputed", **SMALL)
    with pytest.raises(ModelError, match="the kernel is precomputed"):
        precomputed.importance(matrix @ matrix.T, labels)


def test_other_rows_are_refused():
    matrix, labels = drawn()
    model = fitted(matrix, labels, **SMALL)
    with pytest.raises(ModelError, match="trained on different data"):
        model.importance(matrix + 1, labels)


def test_a_single_feature_is_a_group_of_its_own():
    [group] = importance._correlated(drawn()[0][:, :1])
    assert group.tolist() == [0]
