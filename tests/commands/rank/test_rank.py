"""Ranking in memory: recovery, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli.commands.rank.listing import Recovery
from resvm_cli.commands.rank.rank import RankRequest, rank
from resvm_cli.errors import DataError, ParameterError
from resvm_cli.model.plan import problems, resolve_defaults
from resvm_cli.parameters import MethodParameters
from resvm_cli.running.run import Run
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.input import TrainingInput
from tests.conftest import write_svm


@given(st.lists(st.integers(0, 50), min_size=1), st.integers(1, 60))
def test_recall_counts_the_known_positives_that_have_fewer_rows_before_them(depths, depth):
    found = Recovery(np.sort(np.array(depths)))
    assert found.recall_at(depth) == pytest.approx(np.mean([one < depth for one in depths]))


@given(st.lists(st.integers(0, 50), min_size=1), st.floats(0.01, 1))
def test_the_depth_of_a_share_is_the_least_that_holds_it(depths, share):
    found = Recovery(np.sort(np.array(depths)))
    depth = found.depth_of(share)
    assert found.recall_at(depth) >= share - 1e-9
    assert found.recall_at(depth - 1) < share


def test_values_that_are_not_finite_are_refused_by_their_row(tmp_path):
    params = MethodParameters(kernel="poly", gamma=1.0, n_models=2, n_pos=2, n_unl=2)
    plan = resolve_defaults(params, 10, 20, 2, lambda: 1.0)
    bags = np.concatenate([task.unlabeled for task in problems(plan, range(2))])
    unseen = int(np.setdiff1d(np.arange(20), bags)[0])
    features = np.random.default_rng(0).standard_normal((30, 2))
    features[10 + unseen] = 1e200
    write_svm(tmp_path / "p.svm", features[:10])
    write_svm(tmp_path / "u.svm", features[10:])
    source = TrainingInput(str(tmp_path / "p.svm"), str(tmp_path / "u.svm"))
    with pytest.raises(DataError, match=f"row {unseen + 1} of U: .* not finite"):
        rank(RankRequest(source=source, choice=TrainingChoice.from_params(params)), Run())


def test_groups_are_looked_at_before_anything_is_trained(problem, monkeypatch, tmp_path):
    (tmp_path / "groups").write_text("one\n")
    source = TrainingInput(
        str(problem / "pos.svm"), str(problem / "unl.svm"), groups=str(tmp_path / "groups")
    )
    monkeypatch.setattr("resvm_cli.commands.rank.rank.train_on", None)
    with pytest.raises(DataError, match="1 lines, but the data has 130 rows"):
        rank(RankRequest(source=source), Run())


def test_a_model_must_have_a_place_before_anything_is_read(tmp_path):
    source = TrainingInput("no-such-file", "nor-this")
    with pytest.raises(ParameterError, match="parent directory does not exist"):
        rank(RankRequest(source=source, target=str(tmp_path / "no" / "place")), Run())
