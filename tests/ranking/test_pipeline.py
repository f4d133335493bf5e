"""Ranking in memory: recovery, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.ensemble.plan import resolve_defaults
from resvm_cli.errors import DataError, ParameterError
from resvm_cli.parameters import Params, RankingParameters
from resvm_cli.ranking.listing import Recovery
from resvm_cli.ranking.pipeline import rank
from resvm_cli.ranking.scores import OutOfBagScores
from resvm_cli.run import Run
from tests import fitting
from tests.conftest import write_svm
from tests.fitting import problems


@given(st.lists(st.integers(0, 50), min_size=1), st.integers(1, 60))
def test_recall_counts_the_known_positives_that_have_fewer_rows_before_them(depths, depth):
    found = Recovery(np.array(depths), np.zeros(len(depths), int))
    assert found.recall_at(depth) == pytest.approx(np.mean([one < depth for one in depths]))


@given(st.lists(st.integers(0, 50), min_size=1), st.floats(0.01, 1))
def test_the_depth_of_a_share_is_the_least_that_holds_it(depths, share):
    found = Recovery(np.array(depths), np.zeros(len(depths), int))
    depth = found.depth_of(share)
    assert found.recall_at(depth) >= share - 1e-9
    assert found.recall_at(depth - 1) < share


def scores(values):
    array = np.array(values, float)
    return OutOfBagScores(array, array, np.ones(len(array), np.int64), None)


VALUES = st.lists(st.integers(0, 4), min_size=1, max_size=30)


@given(VALUES, VALUES, st.integers(0, 40))
def test_recall_is_the_mean_over_all_orders_of_tied_rows(known, unlabeled, depth):
    found = Recovery.from_values(scores(known), scores(unlabeled))
    expected = []
    for one in known:
        above = sum(other > one for other in unlabeled)
        places = range(above, above + unlabeled.count(one) + 1)  # rows of U before it
        expected.append(np.mean([place < depth for place in places]))
    assert found.recall_at(depth) == pytest.approx(np.mean(expected))


@given(VALUES, VALUES)
def test_the_depth_of_some_known_positives_is_the_least_where_as_many_are_expected(
    known, unlabeled
):
    found = Recovery.from_values(scores(known), scores(unlabeled))
    for number, depth in enumerate(found.depths.tolist(), 1):
        assert found.recall_at(depth) * len(known) >= number - 1e-6
        assert found.recall_at(depth - 1) * len(known) < number


def test_known_positives_tied_with_all_of_u_are_found_evenly():
    found = Recovery.from_values(scores([1.0] * 10), scores([1.0] * 99))
    assert [found.depth_of(share) for share in (0.1, 0.5, 0.9)] == [10, 50, 90]


def test_values_that_are_not_finite_are_refused_by_their_row(tmp_path):
    params = Params(kernel="poly", gamma=1.0, n_models=2, n_pos=2, n_unl=2)
    plan = resolve_defaults(params, 10, 20, 2, lambda: 1.0)
    bags = np.concatenate([task.unlabeled for task in problems(plan, range(2))])
    unseen = int(np.setdiff1d(np.arange(20), bags)[0])
    features = np.random.default_rng(0).standard_normal((30, 2))
    features[10 + unseen] = 1e200
    write_svm(tmp_path / "p.svm", features[:10])
    write_svm(tmp_path / "u.svm", features[10:])
    source = TrainingInput(str(tmp_path / "p.svm"), str(tmp_path / "u.svm"))
    with pytest.raises(DataError, match=f"row {unseen + 1} of U: .* not finite"):
        rank(source, replace(params, auto=False), RankingParameters(), Run())


def test_groups_are_looked_at_before_anything_is_trained(problem, monkeypatch, tmp_path):
    (tmp_path / "groups").write_text("one\n")
    source = TrainingInput(
        str(problem / "pos.svm"), str(problem / "unl.svm"), groups=str(tmp_path / "groups")
    )
    monkeypatch.setattr("resvm_cli.ranking.pipeline.learn", None)
    with pytest.raises(DataError, match="1 lines, but the data has 130 rows"):
        rank(source, Params(auto=False), RankingParameters(), Run())


def test_a_model_must_have_a_place_before_anything_is_read(tmp_path):
    source = TrainingInput("no-such-file", "nor-this")
    with pytest.raises(ParameterError, match="parent directory does not exist"):
        rank(source, Params(), RankingParameters(), Run(), target=str(tmp_path / "no" / "place"))


def test_importance_is_computed_where_every_bag_leaves_rows_out(tmp_path):
    features = np.random.default_rng(0).standard_normal((80, 3))
    features[:20] += 1
    write_svm(tmp_path / "p.svm", features[:20])
    write_svm(tmp_path / "u.svm", features[20:])
    source = TrainingInput(str(tmp_path / "p.svm"), str(tmp_path / "u.svm"))
    found = {}
    for method in ("resvm", "bagging"):
        choice = Params(method=method, n_models=9, auto=False)
        wanted = RankingParameters(importance=True)
        found[method] = len(rank(source, choice, wanted, Run()).importance)
    assert found == {"resvm": 3, "bagging": 0}


@pytest.mark.filterwarnings("ignore::resvm_cli.ResultWarning")
def test_rows_that_all_members_have_seen_are_ranked_but_not_counted():
    rng = np.random.default_rng(3)
    truth = np.arange(330) < 130
    X = (rng.random((330, 5)) < np.where(truth, 0.85, 0.3)[:, None]).astype(float)
    y = np.arange(330) < 30
    training = {"n_models": 20, "n_pos": 10}
    found = fitting.ranked(X, y, training, contamination_unl=0.3)
    columns, marked = found.columns, found.columns["members"] == 0
    assert 20 < marked.sum() < 200
    assert np.flatnonzero(marked & truth[found.rows]).mean() < np.flatnonzero(~marked).mean()
    assert (np.diff(columns["decision_value"]) <= 0).all()
    for name in ("precision", "probability"):
        assert np.isnan(columns[name]).tolist() == marked.tolist()
    listed = fitting.ranked(X, y, training, contamination_unl=0.3, fdr=0.4)
    assert 0 < len(listed) < (~marked).sum()
    assert listed.rows.tolist() == found.rows[~marked].tolist()[: len(listed)]
    tested = dict.fromkeys(found.index[marked][:3].tolist(), 1)
    plain, with_tested = (fitting.ranked(X, y, training, tested=each) for each in (None, tested))
    assert plain.to_frame().equals(with_tested.to_frame())
