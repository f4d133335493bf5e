"""What every method promises: resvm, bagging, cwsvm, and the pooled settings of a search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import resvm_cli
from resvm_cli.api.base import PUClassifier
from tests import libsvm_oracle
from tests.conftest import make_block, write_svm
from tests.fitting import fitted
from tests.programs import run_resvm

pytestmark = pytest.mark.filterwarnings("ignore::resvm_cli.ResultWarning")

SMALL = {"trials": 1, "search": "random", "scale": "none", "no_extend": True}
SEARCHES: dict[str, dict[str, Any]] = {
    "resvm": {**SMALL, "n_models": 7},
    "bagging": {**SMALL, "n_models": 5, "method": "bagging"},
    "cwsvm": {**SMALL, "method": "cwsvm"},
    "pooled": {"n_models": 8, "trials": 6, "committee": 3, "scale": "none"},
}


class Trained(NamedTuple):
    """Rows, their labels, the settings that a search chose, and the model that train wrote."""

    folder: Path
    X: np.ndarray
    y: np.ndarray
    model: PUClassifier

    @property
    def train(self) -> list[object]:
        data = ("--data", self.folder / "rows.svm", "--positive-label", 1, "-q")
        return ["train", *data, "--params", self.folder / "best.json", "-o"]


@pytest.fixture(scope="module", params=SEARCHES)
def trained(request, tmp_path_factory) -> Trained:
    folder = tmp_path_factory.mktemp(request.param)
    rng = np.random.default_rng(5)
    y = np.repeat([1, 0], [25, 60])
    X = (rng.normal(size=(85, 4)) + y[:, None]).round(3)
    X[30] = X[2]  # a row of U that is also in P
    write_svm(folder / "rows.svm", X, y.astype(float))
    found = resvm_cli.tune(X, y, **SEARCHES[request.param])
    (folder / "best.json").write_text(json.dumps(found.params))
    assert (len(found.params["settings"]) > 1) == (request.param == "pooled")
    method = found.params["method"]
    one = Trained(folder, X, y, fitted(X, y, method=method, params=found))
    assert run_resvm(*one.train, folder / "model", "-j", 1).code == 0
    return one


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_the_same_seed_gives_the_same_bytes_on_any_number_of_threads(trained, tmp_path):
    assert run_resvm(*trained.train, tmp_path / "m", "-j", 3).code == 0
    assert contents(tmp_path / "m") == contents(trained.folder / "model")
    trained.model.save(tmp_path / "python")
    assert contents(tmp_path / "python") == contents(trained.folder / "model")


def test_parts_joined_are_the_whole(trained, tmp_path):
    parts = [tmp_path / f"part-{number}" for number in (1, 2, 3)]
    for number, part in enumerate(parts, 1):
        assert run_resvm(*trained.train, part, "--task", f"{number}/3").code == 0
    made = [part for part in parts if part.exists()]  # cwsvm has one member for three tasks
    assert run_resvm("merge", *made, "-q", "-o", tmp_path / "m").code == 0
    assert contents(tmp_path / "m") == contents(trained.folder / "model")


def test_a_model_read_back_predicts_the_same(trained, tmp_path):
    values = trained.model.decision_values(trained.X)
    loaded = resvm_cli.load_model(trained.folder / "model")
    np.testing.assert_array_equal(loaded.decision_values(trained.X), values)
    ran = run_resvm("predict", trained.folder / "model", trained.folder / "rows.svm")
    lines = [line.split() for line in ran.out.decode().splitlines()]
    assert [float(value) for _, value in lines] == values.tolist()
    assert [int(label) for label, _ in lines] == loaded.predict(trained.X).tolist()


def test_libsvm_reads_every_member(trained):
    values = trained.model.member_values(trained.X)
    rows = make_block(trained.X).rows
    for number in range(trained.model.n_models_):
        path = trained.folder / "model" / "members" / f"{number:05d}.model"
        expected = libsvm_oracle.predict_values(path, rows)
        np.testing.assert_allclose(values[:, number], expected, rtol=1e-9, atol=1e-9)


def test_a_row_has_its_value_alone_and_in_any_order(trained):
    values = trained.model.decision_values(trained.X)
    order = np.random.default_rng(0).permutation(len(trained.X))
    permuted = trained.model.decision_values(trained.X[order])
    np.testing.assert_allclose(permuted, values[order], rtol=1e-12, atol=1e-12)
    alone = [trained.model.decision_values(row[None])[0] for row in trained.X]
    np.testing.assert_allclose(alone, values, rtol=1e-12, atol=1e-12)


def out_of_bag(trained: Trained, rule: str) -> np.ndarray:
    """Each row's decision value by the members whose bags lack its content; paper, eq. 6."""
    values, n_models = trained.model.member_values(trained.X), trained.model.n_models_
    pos, unl = trained.X[trained.y == 1], trained.X[trained.y == 0]
    bags = [
        {*map(tuple, pos[bag.positive]), *map(tuple, unl[bag.unlabeled])}
        for bag in trained.model._model.plan.problems(range(n_models))
    ]
    groups, start = [], 0
    for group in trained.model.manifest_["groups"]:
        members = range(start, start + group["parameters"]["n_models"])
        groups.append((group, members))
        start = members.stop
    decided = []
    for row, own in zip(trained.X, values, strict=True):
        unseen = [number for number in range(n_models) if tuple(row) not in bags[number]]
        if not unseen:
            decided.append(np.nan)
        elif rule == "votes":
            vote = (len(unseen) + np.sign(own[unseen]).sum()) / (2 * len(unseen))
            total = own[unseen].mean() * n_models
            decided.append(total if vote == 0 else 1 + total if vote == 1 else vote)
        else:
            means = [
                (group["weight"], (own[mine].mean() - group["shift"]) / group["scale"])
                for group, members in groups
                if (mine := [number for number in unseen if number in members])
            ]
            decided.append(np.average([m for _, m in means], weights=[w for w, _ in means]))
    return np.array(decided)


def test_out_of_bag_values_are_those_of_the_members_whose_bags_lack_the_row(trained):
    expected = out_of_bag(trained, trained.model.decision_)
    if trained.model.method == "cwsvm":
        assert np.isnan(expected).all()
        return
    # bagging has all of P in each bag
    for audit in (False, True) if trained.model.method == "resvm" else (False,):
        ranking = resvm_cli.rank(trained.X, trained.y, model=trained.model, audit=audit)
        assert set(ranking.rows) == set(np.flatnonzero(trained.y == int(audit)))
        values, right = ranking.columns["decision_value"], expected[ranking.rows]
        scored = ranking.columns["members"] > 0  # other rows of U are ranked, but not out of bag
        np.testing.assert_array_equal(scored, ~np.isnan(right))
        # by votes, ties are broken by less than half a vote
        most = 0.25 / ranking.columns["members"][scored]
        most *= trained.model.decision_ == "votes"
        assert (np.abs(values - right)[scored] <= most + 1e-9).all()
