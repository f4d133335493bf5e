"""Python and the command line give the same bytes for the same rows, options and seed."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file

import resvm_cli
from resvm_cli.api import matrices, results
from resvm_cli.errors import DataError, ModelError
from resvm_cli.model import out_of_bag
from tests.conftest import write_svm
from tests.programs import run, script_command

# the rows of these tests are not scaled
pytestmark = pytest.mark.filterwarnings("ignore::resvm_cli.ResultWarning")

SMALL = {"n_models": 5}
SPARSE_NAMES = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")


class Labelled(NamedTuple):
    """A labeled file and its contents."""

    path: Path
    X: np.ndarray
    y: np.ndarray
    ids: list[str]
    groups: list[str]

    @property
    def arguments(self) -> list[object]:
        return ["--data", self.path, "--positive-label", 1, "-q"]


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Labelled:
    """Return two clouds of rows in random order, so that P and U alternate."""
    rng = np.random.default_rng(3)
    y = (rng.random(130) < 0.3).astype(int)
    centre = np.where((y == 1) | (rng.random(130) < 0.2), 1.0, -1.0)
    X = (rng.standard_normal((130, 6)) + centre[:, None]) * (rng.random((130, 6)) < 0.8)
    X[:, 2] *= 50
    X[3] = X[40]
    ids = [f"row {number}" for number in range(130)]
    groups = [f"g{number}" for number in rng.integers(0, 60, 130)]
    folder = tmp_path_factory.mktemp("labelled")
    path = write_svm(folder / "data.svm", X, y.astype(float), comments=ids)
    (folder / "groups").write_text("\n".join(groups) + "\n")
    return Labelled(path, X, y, ids, groups)


def options_of(keywords: dict[str, object]) -> list[object]:
    """Return keywords as command-line options."""
    found: list[object] = []
    for name, value in keywords.items():
        if name == "auto" and value is True:
            value = "committee"
        found += ["--" + name.replace("_", "-"), value]
    return found


def snapshot(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {**SMALL, "seed": 7, "n_pos": 9, "n_unl": 21, "w_pos": 2, "c_unl": 3},
        {**SMALL, "kernel": "linear"},
        {**SMALL, "kernel": "linear", "solver": "liblinear", "bias": 2},
        {**SMALL, "kernel": "poly", "degree": 2, "coef0": 1, "gamma": 0.01, "tolerance": 0.01},
        {**SMALL, "scale": "standard", "decision": "mean"},
        {**SMALL, "scale": "auto", "gamma": "auto"},
        {**SMALL, "method": "bagging", "n_unl": 30},
        {"method": "cwsvm", "c_pos": 2},
        {"auto": True, "n_models": 12, "seed": 2},
        {"auto": "single", "n_pos": 12, "c_unl": 1, "scale": "none"},
    ],
    ids=lambda keywords: " ".join(map(str, options_of(keywords))),
)
def test_a_model_is_the_one_that_train_writes(labelled, keywords, resvm, tmp_path):
    ran = resvm("train", *labelled.arguments, *options_of(keywords), "-o", tmp_path / "cli")
    assert ran.code == 0, ran.err
    written = snapshot(tmp_path / "cli")
    model = resvm_cli.fit(labelled.X, labelled.y, **keywords)
    model.save(str(tmp_path / "python"))
    assert snapshot(tmp_path / "python") == written


FORMATS = [f"{name}_{kind}" for name in SPARSE_NAMES for kind in ("matrix", "array")]


@pytest.mark.parametrize("form", [*(getattr(sparse, name) for name in FORMATS), np.ndarray.tolist])
@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
def test_every_form_of_matrix_gives_the_same_model(labelled, form, tmp_path):
    resvm_cli.fit(labelled.X, labelled.y, **SMALL).save(tmp_path / "dense")
    model = resvm_cli.fit(form(labelled.X), labelled.y.tolist(), **SMALL, jobs=2)
    model.save(tmp_path / "other")
    assert snapshot(tmp_path / "other") == snapshot(tmp_path / "dense")
    values = model.decision_values(form(labelled.X))
    np.testing.assert_array_equal(values, model.decision_values(labelled.X))


def test_columns_of_zeros_at_the_end_count_as_features_do_for_train(labelled, resvm, tmp_path):
    resvm(
        *("train", *labelled.arguments, *options_of(SMALL)),
        *("--features", 9, "-o", tmp_path / "cli"),
    )
    wide = np.hstack([labelled.X, np.zeros((130, 3))])
    resvm_cli.fit(wide, labelled.y, **SMALL).save(tmp_path / "python")
    assert snapshot(tmp_path / "python") == snapshot(tmp_path / "cli")


def test_groups_are_those_of_train(labelled, resvm, tmp_path):
    ran = resvm(
        *("train", *labelled.arguments, *options_of(SMALL)),
        *("--groups", labelled.path.parent / "groups", "-o", tmp_path / "cli"),
    )
    assert ran.code == 0, ran.err
    resvm_cli.fit(labelled.X, labelled.y, groups=labelled.groups, **SMALL).save(tmp_path / "groups")
    resvm_cli.fit(labelled.X, labelled.y, **SMALL).save(tmp_path / "none")
    assert snapshot(tmp_path / "groups") == snapshot(tmp_path / "cli")
    assert snapshot(tmp_path / "groups") != snapshot(tmp_path / "none")


@pytest.mark.parametrize("decision", ["votes", "mean"])
def test_predictions_are_those_of_predict(labelled, decision, resvm, tmp_path):
    model = resvm_cli.fit(labelled.X, labelled.y, **SMALL, decision=decision)
    model.save(tmp_path / "m")
    ran = resvm("predict", tmp_path / "m", labelled.path, "--votes", "-q")
    table = np.array([line.split() for line in ran.out.decode().splitlines()], float)
    for judge in (model, resvm_cli.load(str(tmp_path / "m")), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(judge.predict(labelled.X), table[:, 0])
        np.testing.assert_array_equal(judge.decision_values(labelled.X), table[:, 1])
        np.testing.assert_array_equal(judge.votes(labelled.X), table[:, 2])
        assert judge.decision == decision
    assert model.member_values(labelled.X).shape == (130, 5)
    assert (model.predict(labelled.X, threshold=np.inf) == -1).all()


def test_probabilities_are_those_of_predict(labelled, resvm, tmp_path):
    X, y = labelled.X, labelled.y
    model = resvm_cli.fit(X, y, n_models=9)
    model.save(tmp_path / "m")
    found = model.predict_proba(X, contamination_unl=0.2)
    assert found.sum(axis=1) == pytest.approx(1)
    told = ["--probability", "--contamination-unl", 0.2]
    out = resvm("predict", tmp_path / "m", labelled.path, *told).out.split()
    assert found[:, 1].tolist() == [float(text) for text in out[2::3]]
    with pytest.raises(ValueError, match="contamination_unl must be below 1"):
        model.predict_proba(X, contamination_unl=2)


def test_unknown_probabilities_are_an_error_that_says_what_to_give():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((200, 3)), np.arange(200) < 40
    model = resvm_cli.fit(X, y.astype(int), n_models=9)
    with pytest.raises(ModelError, match="give contamination_unl"):
        model.predict_proba(X)
    assert model.predict_proba(X, contamination_unl=0.1).shape == (200, 2)
    with pytest.raises(ModelError, match='use method="resvm"'):
        resvm_cli.fit(X, y.astype(int), method="cwsvm").predict_proba(X)
    few = resvm_cli.fit(X[32:], y[32:].astype(int), n_models=9)
    with pytest.raises(ModelError, match="too few rows"):
        few.predict_proba(X, contamination_unl=0.1)


def test_rows_are_judged_alike_in_blocks_of_any_size(labelled, monkeypatch):
    model = resvm_cli.fit(labelled.X, labelled.y, **SMALL)
    whole = model.decision_values(labelled.X)
    monkeypatch.setattr(results, "ROWS_AT_ONCE", 7)
    np.testing.assert_array_equal(model.decision_values(labelled.X), whole)
    assert model.decision_values(labelled.X[:0]).shape == (0,)


@pytest.mark.parametrize("keywords", [SMALL, {"auto": True, "n_models": 12, "scale": "minmax"}])
def test_a_model_that_was_loaded_or_unpickled_is_saved_as_it_was(labelled, keywords, tmp_path):
    model = resvm_cli.fit(labelled.X, labelled.y, **keywords)
    model.save(tmp_path / "first")
    resvm_cli.load(str(tmp_path / "first")).save(tmp_path / "second")
    size = len(pickle.dumps(model))
    model.decision_values(labelled.X)
    assert len(pickle.dumps(model)) == size  # the scorer is built again
    pickle.loads(pickle.dumps(model)).save(tmp_path / "third")
    written = snapshot(tmp_path / "first")
    assert snapshot(tmp_path / "second") == snapshot(tmp_path / "third") == written
    with pytest.raises(ValueError, match="use force=True"):
        model.save(tmp_path / "first")
    model.save(tmp_path / "first", force=True)


def test_a_model_of_features_counted_from_0_is_asked_by_column(labelled, resvm, tmp_path):
    write_svm(tmp_path / "0.svm", labelled.X, labelled.y.astype(float), first_index=0)
    ran = resvm(
        *("train", "--data", tmp_path / "0.svm", "--positive-label", 1, "--zero-based", "-q"),
        *("--n-models", 5, "-o", tmp_path / "m"),
    )
    assert ran.code == 0, ran.err
    ran = resvm("predict", tmp_path / "m", tmp_path / "0.svm", "-q")
    expected = [float(line.split()[1]) for line in ran.out.splitlines()]
    model = resvm_cli.load(str(tmp_path / "m"))
    np.testing.assert_array_equal(model.decision_values(labelled.X), expected)


def test_out_of_bag_values_are_those_stored_with_the_model(labelled):
    model = resvm_cli.fit(labelled.X, labelled.y, oob=True, n_models=20, decision="mean")
    assert model.oob is not None
    assert model.table is not None
    seen_by_all = model.oob.members == 0
    np.testing.assert_array_equal(np.isnan(model.oob.decision_values), seen_by_all)
    for positive, stored in ((True, model.table.positive), (False, ~model.table.positive)):
        rows = np.flatnonzero((labelled.y == 1) == positive)[model.table.rows[stored] - 1]
        np.testing.assert_array_equal(model.oob.decision_values[rows], model.table.means[stored])
        np.testing.assert_array_equal(model.oob.members[rows], model.table.members[stored])


@pytest.mark.parametrize("decision", ["votes", "mean"])
def test_where_a_sample_is_stored_all_rows_are_scored(labelled, decision, monkeypatch):
    keywords = {"oob": True, "n_models": 20, "decision": decision, "groups": labelled.groups}
    whole = resvm_cli.fit(labelled.X, labelled.y, **keywords).oob
    monkeypatch.setattr(out_of_bag, "_sample_size", lambda plan: 40)
    some = resvm_cli.fit(labelled.X, labelled.y, **keywords).oob
    assert whole is not None
    assert some is not None
    np.testing.assert_array_equal(some.members, whole.members)
    np.testing.assert_allclose(some.decision_values, whole.decision_values, rtol=1e-9)


def test_bagging_has_out_of_bag_values_of_unlabeled_rows_alone(labelled):
    oob = resvm_cli.fit(labelled.X, labelled.y, method="bagging", oob=True, n_models=30).oob
    assert oob is not None
    assert np.isnan(oob.decision_values[labelled.y == 1]).all()
    assert np.isfinite(oob.decision_values[labelled.y == 0]).any()
    assert resvm_cli.fit(labelled.X, labelled.y, method="cwsvm", oob=True).oob is None


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"trials": 4, "c_unl": "0.1..10", "n_pos": [5, 10], "seed": 3, "n_models": 6},
        {"method": "bagging", "trials": 3, "folds": 3, "n_models": 4, "metric": "pu_score"},
        {"method": "cwsvm", "search": "grid", "gamma": 0.1, "c_unl": "1,10", "folds": 3},
    ],
    ids=["informed", "random", "bagging", "cwsvm"],
)
def test_a_tuning_is_the_one_that_tune_writes_and_is_fitted_as_train_does(
    labelled, keywords, resvm, tmp_path
):
    texts = {
        name: ",".join(map(str, value)) if isinstance(value, list) else value
        for name, value in keywords.items()
    }
    ran = resvm("tune", *labelled.arguments, *options_of(texts), "-o", tmp_path / "t")
    assert ran.code == 0, ran.err
    tuning = resvm_cli.tune(labelled.X, labelled.y, **keywords)
    assert tuning.params == json.loads((tmp_path / "t" / "best.json").read_text())
    lines = (tmp_path / "t" / "trials.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert json.loads(json.dumps(tuning.trials)) == [one for one in records if "trial" in one]

    best = tmp_path / "t" / "best.json"
    ran = resvm(
        *("train", *labelled.arguments, "--params", best, "--n-models", 12)
        if keywords.get("method") != "cwsvm"
        else ("train", *labelled.arguments, "--params", best),
        *("-o", tmp_path / "cli"),
    )
    assert ran.code == 0, ran.err
    more = {} if keywords.get("method") == "cwsvm" else {"n_models": 12}
    for number, params in enumerate((tuning, tuning.params, str(best))):
        model = resvm_cli.fit(labelled.X, labelled.y, params=params, **more)
        model.save(tmp_path / str(number))
        assert snapshot(tmp_path / str(number)) == snapshot(tmp_path / "cli")


@pytest.mark.parametrize(
    ("keywords", "arguments"),
    [
        ({}, []),
        ({"with_known": True, "top": 11}, ["--with-known", "--top", 11]),
        ({"audit": True, "contamination_pos": 0.1}, ["--audit", "--contamination-pos", 0.1]),
        ({"intervals": False, "method": "bagging"}, ["--no-interval", "--method", "bagging"]),
        ({"decision": "votes"}, ["--decision", "votes"]),
    ],
    ids=["U", "both", "audit", "bagging", "votes"],
)
def test_a_ranking_is_the_one_that_rank_prints(labelled, keywords, arguments, resvm):
    ran = resvm("rank", *labelled.arguments, "--n-models", 9, *arguments)
    assert ran.code == 0, ran.err
    found = resvm_cli.rank(labelled.X, labelled.y, ids=labelled.ids, n_models=9, **keywords)
    assert found.text() == ran.out.decode()
    assert [labelled.ids[row] for row in found.rows] == found.ids
    np.testing.assert_array_equal(labelled.y[found.rows] == 1, found.known)


def test_a_model_ranks_the_rows_it_was_trained_on_and_no_others(labelled, tmp_path):
    model = resvm_cli.fit(labelled.X, labelled.y, n_models=9)
    model.save(tmp_path / "m")
    trained = resvm_cli.rank(labelled.X, labelled.y, n_models=9)
    for stored in (model, str(tmp_path / "m")):
        assert resvm_cli.rank(labelled.X, labelled.y, model=stored).text() == trained.text()
    with pytest.raises(ModelError, match="trained on different data"):
        resvm_cli.rank(labelled.X * 2, labelled.y, model=model)
    with pytest.raises(ValueError, match="n_models is for training"):
        resvm_cli.rank(labelled.X, labelled.y, model=model, n_models=3)


@pytest.mark.parametrize("intervals", [True, False])
def test_the_columns_of_a_ranking_have_names_of_their_own(labelled, intervals):
    found = resvm_cli.rank(labelled.X, labelled.y, n_models=9, intervals=intervals)
    columns = found.columns
    assert found.members.tolist() == columns["members"]
    for name in ("rank_low", "rank_high"):
        bounds = getattr(found, name)
        assert (bounds is None) != intervals
        assert columns[name] == ([None] * len(found) if bounds is None else bounds.tolist())
    assert found.expected_false is None
    assert set(found.further) <= set(columns)
    audited = resvm_cli.rank(labelled.X, labelled.y, n_models=9, audit=True, intervals=False)
    assert len(audited.expected_false) == len(audited)
    assert audited.precision is None


def test_labels_of_which_none_is_unlabeled_are_refused(labelled):
    with pytest.raises(ValueError, match="positive_label and negative_label are the same label"):
        resvm_cli.fit(labelled.X, labelled.y, positive_label=1, negative_label=1)
    with pytest.raises(ValueError, match="every row is a known positive or negative"):
        resvm_cli.fit(labelled.X, labelled.y, positive_label=1, negative_label=0)


def test_a_model_of_format_1_is_not_saved_again(tmp_path):
    model = resvm_cli.load(Path(__file__).parents[1] / "golden" / "format-1")
    with pytest.raises(ModelError, match="has format 1, but this version writes"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_rows_without_a_label_are_unlabeled(labelled):
    missing = np.where(labelled.y == 1, 1.0, np.nan)
    found, expected = (resvm_cli.fit(labelled.X, y, n_models=3) for y in (missing, labelled.y))
    assert found.manifest["data"] == expected.manifest["data"]


@pytest.mark.parametrize("function", [resvm_cli.fit, resvm_cli.tune, resvm_cli.rank])
def test_jobs_count_from_1_and_n_jobs_counts_as_in_scikit_learn(labelled, function):
    small = {"n_models": 3, "trials": 2} if function is resvm_cli.tune else {"n_models": 3}
    with pytest.raises(ValueError, match=r"^jobs must be at least 1"):
        function(labelled.X, labelled.y, jobs=0, **small)
    assert function(labelled.X, labelled.y, n_jobs=-1, **small) is not None


def test_the_features_of_a_ranking_are_numbered_as_columns(labelled):
    found = resvm_cli.rank(labelled.X, labelled.y, n_models=9, importance=True, why=2)
    width = labelled.X.shape[1]
    assert {one.feature for one in found.importance} == set(range(width))
    assert {one.feature for reason in found.reasons for one in reason.effects} <= set(range(width))


def test_a_model_ranks_only_with_the_weights_it_was_trained_with(labelled):
    weights = np.linspace(0.5, 1.0, len(labelled.y))
    plain = resvm_cli.fit(labelled.X, labelled.y, n_models=9)
    weighted = resvm_cli.fit(labelled.X, labelled.y, n_models=9, weights=weights)
    for model, given, told in (
        (plain, weights, "was trained without weights"),
        (weighted, None, "was trained with weights"),
        (weighted, weights[::-1], "was trained with different weights"),
    ):
        with pytest.raises(ModelError, match=told):
            resvm_cli.rank(labelled.X, labelled.y, model=model, weights=given)
    assert len(resvm_cli.rank(labelled.X, labelled.y, model=weighted, weights=weights))


def test_what_the_engine_says_is_kept_and_handed_on(labelled):
    told: list[str] = []
    model = resvm_cli.fit(labelled.X, labelled.y, n_models=3, n_pos=500, notice=told.append)
    assert list(model.notes) == told
    assert any("bags contain n_pos = 500 rows of P" in note for note in told)
    assert {type(note) for note in told} == {str}
    assert any("not scaled" in note and 'scale="standard"' in note for note in told)


def test_progress_is_reported(labelled):
    seen: list[tuple[str, int, int | None]] = []
    resvm_cli.fit(labelled.X, labelled.y, n_models=3, progress=lambda *one: seen.append(one))
    assert ("training", 3, 3) in seen


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"n_pos": 0}, "^n_pos must be at least 1, got 0"),
        ({"n_pos": 2.5}, "n_pos must be an integer, got 2.5"),
        ({"c_unl": "x"}, "c_unl must be a number, got 'x'"),
        (
            {"kernel": "rbg"},
            "kernel must be 'linear', 'poly', 'rbf', 'sigmoid', 'precomputed', 'tanimoto' or",
        ),
        ({"gamma": "wide"}, "gamma must be a number, 'scale' or 'auto', got 'wide'"),
        ({"scale": "log"}, "scale must be .* got 'log'"),
        ({"decision": "median"}, "decision must be 'votes' or 'mean', got 'median'"),
        ({"auto": "best"}, "auto must be 'committee' or 'single', got 'best'"),
        ({"method": "bagging", "n_pos": 3}, 'n_pos does not apply to method="bagging"'),
        ({"method": "cwsvm", "decision": "mean"}, 'decision="mean" does not apply'),
        ({"method": "bagging", "auto": True}, "auto=True scores out of bag"),
        ({"solver": "liblinear"}, 'set kernel="linear", or leave solver out'),
        ({"auto": True, "params": {}}, "give either auto or params, not both"),
        ({"params": {}}, "params: contains no parameters"),
        ({"seed": -1}, "^seed must be at least 0, got -1"),
        ({"groups": [1, 2]}, "groups has 2 values, but X has 130 rows"),
        ({"positive_label": 4}, "the labels are 0, 1; set positive_label"),
    ],
    ids=str,
)
def test_what_cannot_work_is_a_value_error_that_names_parameters(labelled, keywords, message):
    with pytest.raises(ValueError, match=message) as caught:
        resvm_cli.fit(labelled.X, labelled.y, **keywords)
    assert "--" not in str(caught.value)


def test_rows_that_cannot_be_used_are_refused(labelled):
    X, y = labelled.X, labelled.y
    for bad, labels, message in (
        (X, y[:5], "y has 5 labels, but X has 130 rows"),
        (X[0], y, "X has 1 dimensions"),
        (np.where(X[3, 1] == X, np.nan, X), y, "row 3, column 1 of X: nan; every value"),
        (X, np.ones(130), "there are no unlabeled rows"),
    ):
        with pytest.raises(ValueError, match=message):
            resvm_cli.fit(bad, labels)
    model = resvm_cli.fit(X, y, kernel="poly", n_models=2)
    with pytest.raises(ValueError, match="row 4 of X: the decision value is not finite"):
        model.predict(np.vstack([X[:4], np.full((1, 6), 1e200)]))
    with pytest.raises(ValueError, match="ids has 3 values, but X has 130 rows"):
        resvm_cli.rank(X, y, ids=["a", "b", "c"])


def test_parameters_of_a_ranking_that_contradict_each_other_are_refused(labelled):
    with pytest.raises(ValueError, match="fdr and top both set the length of the list"):
        resvm_cli.rank(labelled.X, labelled.y, fdr=0.1, top=5, n_models=2)


def test_a_parameter_that_is_not_there_is_refused_as_python_does(labelled):
    for function in (resvm_cli.fit, resvm_cli.tune, resvm_cli.rank):
        with pytest.raises(TypeError, match="unexpected keyword argument 'n_model'"):
            function(labelled.X, labelled.y, n_model=3)


def test_text_labels_are_labels(labelled, tmp_path):
    names = np.where(labelled.y == 1, "hit", "unknown")
    by_name = resvm_cli.fit(labelled.X, names, positive_label="hit", **SMALL)
    by_number = resvm_cli.fit(labelled.X, labelled.y, **SMALL)
    assert by_name.manifest["labels"]["trained_on"] is None
    assert by_number.manifest["labels"]["trained_on"] == 1.0
    values = by_number.decision_values(labelled.X)
    np.testing.assert_array_equal(by_name.decision_values(labelled.X), values)


@pytest.mark.parametrize("zero_based", [False, True])
def test_a_svmlight_file_is_read_as_scikit_learn_reads_it(labelled, zero_based, tmp_path):
    first = 0 if zero_based else 1
    path = write_svm(tmp_path / "x.svm", labelled.X, labelled.y.astype(float), first_index=first)
    X, y, ids = resvm_cli.read_svmlight(path, zero_based=zero_based)
    expected, labels = load_svmlight_file(str(path), zero_based=zero_based)
    assert X.shape == expected.shape
    assert (expected != X).nnz == 0
    np.testing.assert_array_equal(y, labels)
    assert ids == [""] * 130
    assert resvm_cli.read_svmlight(labelled.path).ids == labelled.ids
    assert resvm_cli.read_svmlight(labelled.path, features=10).X.shape == (130, 10)
    with pytest.raises(ValueError, match="more than features=3"):
        resvm_cli.read_svmlight(labelled.path, features=3)


def test_importing_the_package_is_cheap_and_scikit_learn_is_not_needed():
    script = """if True:
        import sys, resvm_cli
        assert "numpy" not in sys.modules
        assert "fit" in dir(resvm_cli)
        resvm_cli.fit
        assert "numpy" in sys.modules
        assert not {"sklearn", "typer", "rich"} & set(sys.modules)
        assert not hasattr(resvm_cli, "nothing")
    """
    ran = run(script_command(script))
    assert ran.code == 0, ran.err


class Cells(np.ndarray):
    """The part of a pandas Series that the code uses."""

    def to_numpy(self, dtype, na_value):
        return np.asarray(self, dtype)


class Frame:
    """The part of a pandas DataFrame that the code uses."""

    def __init__(self, cells, columns):
        self.cells, self.columns, self.shape = cells, columns, cells.shape
        self.dtypes, self.iloc = [cells.dtype] * len(columns), cells.view(Cells)

    def __array__(self, dtype=None, copy=None):
        return self.cells.astype(dtype)


def test_a_value_that_is_no_number_is_named_by_row_and_column(labelled):
    X = labelled.X.astype(object)
    X[2, 4] = "high"
    with pytest.raises(
        ValueError, match=r"^column 'e' of X contains values that are not numbers\nleave out"
    ):
        resvm_cli.fit(Frame(X, list("abcdef")), labelled.y)
    with pytest.raises(ValueError, match=r"^X is not a matrix of numbers: .*'high'"):
        resvm_cli.fit(X, labelled.y)
    X[2, 4] = np.nan
    with pytest.raises(ValueError, match=r"^row 2, column 'e' of X: nan; .*\nleave such rows out"):
        resvm_cli.fit(Frame(X, list("abcdef")), labelled.y)
    with pytest.raises(ValueError, match=r"^row 2, column 4 of X: nan"):
        resvm_cli.fit(X, labelled.y)
    with pytest.raises(ValueError, match=r"^X contains values that are not finite"):
        resvm_cli.fit(csr_matrix(X.astype(float)), labelled.y)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_a_model_refuses_rows_of_another_width(labelled, form, tmp_path):
    X, y = labelled.X, labelled.y
    model = resvm_cli.fit(form(X), y, n_models=2)
    for width in (4, 5, 7, 12):
        other = form(np.hstack([X, X])[:, :width])
        message = f"^X has {width} columns, but the model was trained on 6\ngive the same columns"
        for judge in (model.predict, model.votes, model.member_values):
            with pytest.raises(ValueError, match=message):
                judge(other)
        with pytest.raises(ValueError, match=r"^negatives has"):
            resvm_cli.rank(form(X), y, negatives=other, n_models=2)
        with pytest.raises(ValueError, match=r"^X has"):
            resvm_cli.rank(other, y, model=model)
    values = model.decision_values(X)
    np.testing.assert_array_equal(model.decision_values(csr_matrix(X)), values)


def test_a_loaded_model_knows_only_its_last_feature(labelled, tmp_path):
    resvm_cli.fit(labelled.X, labelled.y, n_models=2).save(tmp_path / "m")
    model = resvm_cli.load(tmp_path / "m")
    wide = np.pad(labelled.X, ((0, 0), (0, 2)))
    values = model.decision_values(labelled.X)
    np.testing.assert_array_equal(model.decision_values(wide), values)
    with pytest.raises(ValueError, match="X has 4 columns, but the model was trained on 6"):
        model.predict(labelled.X[:, :4])
    narrow = csr_matrix(labelled.X[:, :4])  # rows of a file end with their last feature
    expected = model.decision_values(np.pad(labelled.X[:, :4], ((0, 0), (0, 2))))
    np.testing.assert_array_equal(model.decision_values(narrow), expected)
    wide[7, 7] = 1
    for form in (np.asarray, csr_matrix):
        with pytest.raises(ValueError, match="X has 8 columns, but the model was trained on 6"):
            model.predict(form(wide))


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_precomputed_rows_have_a_value_for_each_training_row(labelled, form, tmp_path):
    K = labelled.X @ labelled.X.T
    fitted = resvm_cli.fit(K, labelled.y, kernel="precomputed", n_models=2)
    fitted.save(tmp_path / "m")
    for model in (fitted, resvm_cli.load(tmp_path / "m")):
        assert model.n_features == 130
        assert model.predict(form(K[:3])).shape == (3,)
        for width in (129, 131):
            with pytest.raises(ValueError, match=f"X has {width} columns, but .* trained on 130"):
                model.predict(form(np.hstack([K, K])[:, :width]))


def test_columns_of_other_names_or_in_another_order_are_refused(labelled):
    X, y = labelled.X, labelled.y
    model = resvm_cli.fit(Frame(X, list("abcdef")), y, n_models=2)
    values = model.decision_values(X)  # an array has no names to compare
    np.testing.assert_array_equal(model.decision_values(Frame(X, list("abcdef"))), values)
    for names, message in (
        ("abdcef", "column 2 is 'd', not 'c'; column 3 is 'c', not 'd'\n"),
        ("xbcdez", "not in training: 'x', 'z'; missing: 'a', 'f'\n"),
        ("uvwxyz", "not in training: 'u', 'v', 'w'; missing: 'a', 'b', 'c'\n"),
    ):
        with pytest.raises(ValueError, match=f"^the columns of X differ from .*; {message}"):
            model.predict(Frame(X, list(names)))
    with pytest.raises(ValueError, match=r"^X has 5 columns, .* trained on 6; missing: 'c'"):
        model.predict(Frame(X[:, :5], list("abdef")))
    known, others = Frame(X, list("abcdef")), Frame(X[:4], list("abcdeg"))
    with pytest.raises(ValueError, match=r"^the columns of negatives differ"):
        resvm_cli.rank(known, y, negatives=others, n_models=2)
    unnamed = resvm_cli.fit(X, y, n_models=2)
    np.testing.assert_array_equal(unnamed.decision_values(Frame(X, list("fedcba"))), values)


def test_columns_of_arrow_tables_have_names_too(labelled):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(dict(zip("abcdef", labelled.X.T, strict=True)))
    model = resvm_cli.fit(table, labelled.y, n_models=2)
    values = model.decision_values(labelled.X[:9])
    np.testing.assert_array_equal(model.decision_values(table.slice(0, 9)), values)
    with pytest.raises(ValueError, match="column 0 is 'b', not 'a'"):
        model.predict(table.select(list("bacdef")))


def test_what_is_returned_is_shown_in_a_line(labelled):
    model = resvm_cli.fit(labelled.X, labelled.y, n_models=2)
    limit = f"{model.threshold.value:.4g}"
    assert repr(model) == f"<resvm model: 2 members, 6 features, positive above {limit} by votes>"
    single = resvm_cli.fit(labelled.X, labelled.y, method="cwsvm")
    assert repr(single).startswith("<cwsvm model: 1 member, 6 features, positive above ")
    ranking = resvm_cli.rank(labelled.X, labelled.y, n_models=2)
    first = ", ".join(ranking.ids[:3])
    assert repr(ranking) == f"<ranking of {len(ranking):,} rows: {first}, ...>"
    tuning = resvm_cli.tune(labelled.X, labelled.y, trials=2, n_models=2)
    n_trials = len(tuning.trials)
    assert repr(tuning) == f"<tuning: {n_trials} trials, the best in params>"


def test_the_columns_of_a_ranking_are_those_of_its_text(labelled):
    ranking = resvm_cli.rank(labelled.X, labelled.y, n_models=9, top=5, contamination_unl=0.2)
    names, *lines = (line.split("\t") for line in ranking.text().splitlines())
    assert list(ranking.columns) == names
    records = zip(*ranking.columns.values(), strict=True)
    assert [list(map(str, record)) for record in records] == lines


def test_ids_come_in_the_order_of_the_rows_whatever_their_keys(labelled):
    by_list = resvm_cli.rank(labelled.X, labelled.y, ids=labelled.ids, n_models=2, top=5)
    keyed = dict.fromkeys(labelled.ids)  # it has no key 0
    found = resvm_cli.rank(labelled.X, labelled.y, ids=keyed, n_models=2, top=5)
    assert found.ids == by_list.ids


def test_labels_that_do_not_compare_are_listed(labelled):
    y = np.where(labelled.y == 1, "hit", None)
    with pytest.raises(ValueError, match=r"the labels are 'hit', None; set positive_label"):
        resvm_cli.fit(labelled.X, y)


def test_p_values_of_noise_are_uniform_even_if_the_negatives_are_rows_of_u():
    small = []
    for seed in range(3):
        rows = np.random.default_rng(seed).standard_normal((160, 10))
        known = np.arange(160) < 40
        several = {"n_unl": 150, "c_unl": 10.0, "n_models": 20, "seed": seed, "intervals": False}
        ranking = resvm_cli.rank(rows, known, negatives=rows[80:], **several)
        assert any("80 of 80 trusted negatives are also rows of U" in one for one in ranking.notes)
        small.append(ranking.listing.further["p_value"] <= 0.05)
    assert np.mean(small) < 0.08  # 0.37 if members score the negatives that they were trained on


def test_a_negative_that_is_a_known_positive_is_refused(labelled):
    known = labelled.X[labelled.y == 1][[4]]
    with pytest.raises(ValueError, match=r"negatives: row 2: this trusted negative equals row 5"):
        resvm_cli.rank(labelled.X, labelled.y, negatives=np.vstack([known + 9, known]), **SMALL)


def test_trusted_negatives_are_scaled_once(labelled):
    several = {"scale": "maxabs", "intervals": False, **SMALL}
    negatives = labelled.X[labelled.y != 1][:9] * 0.75
    p_values = [
        resvm_cli.rank(
            labelled.X * unit, labelled.y, negatives=negatives * unit, **several
        ).listing.further["p_value"]
        for unit in (1.0, 1024.0)  # both are exact
    ]
    assert np.array_equal(*p_values, equal_nan=True)
    assert len(set(p_values[0])) > 3


def test_trusted_negatives_of_a_precomputed_kernel_are_those_of_its_features():
    X = np.round(np.random.default_rng(0).normal(0, 8, (100, 5))) / 8  # all products are exact
    known = np.arange(100) < 30
    negatives = np.vstack([X[~known][:20], X[~known][20:40] + 3 / 16])
    several = {"intervals": False, "n_models": 9, "c_unl": 1.0}
    linear = resvm_cli.rank(X, known, negatives=negatives, kernel="linear", **several)
    precomputed = resvm_cli.rank(
        X @ X.T, known, negatives=negatives @ X.T, kernel="precomputed", **several
    )
    assert any("20 of 40 trusted negatives are also" in note for note in precomputed.notes)
    p_values = [
        one.listing.further["p_value"][np.argsort(one.rows)] for one in (linear, precomputed)
    ]
    assert np.allclose(*p_values, equal_nan=True)
    with pytest.raises(ValueError, match="equals row 1 of P"):
        resvm_cli.rank(X @ X.T, known, negatives=X[known] @ X.T, kernel="precomputed", **several)


def wide_numbers(X):
    """Return the same numbers in types that double precision represents exactly."""
    whole = np.clip(np.rint(4 * X), -100, 100)
    yield whole, whole
    for kind in (np.float16, np.float32, np.longdouble, np.int8, np.int64, object, str, ">f8"):
        yield whole, whole.astype(int).astype(kind)
    yield whole, np.ma.array(whole)
    yield whole != 0, whole != 0
    for kind in (np.longdouble, np.int8, bool):
        yield whole.astype(kind), csr_matrix(whole.astype(kind))


def test_numbers_of_every_type_are_converted_exactly(labelled):
    for plain, typed in wide_numbers(labelled.X):
        found = matrices.as_matrix(typed)
        found = found.toarray() if hasattr(found, "toarray") else found
        np.testing.assert_array_equal(found.astype(float), plain.astype(float))


@pytest.mark.parametrize(
    ("convert", "message"),
    [
        (lambda X: X * 1j, "^X contains complex numbers; expected real numbers\nconvert them"),
        (lambda X: (X * 1j).tolist(), "^X contains complex numbers"),
        (lambda X: csr_matrix(X * 1j), "^X contains complex numbers"),
        (lambda X: sparse.dok_array(X * 1j), "^X contains complex numbers"),
        (lambda X: Frame(X * 1j, list("abcdef")), "^column 'a' of X contains complex numbers"),
        (lambda X: X.astype("M8[D]"), "^X contains dates"),
        (lambda X: list(X.astype("m8[D]")), "^X contains time spans"),
        (lambda X: np.ma.masked_equal(X, X[3, 1]), "^X has masked values\nleave such rows out"),
        (lambda X: X.astype(np.longdouble) * np.longdouble("1e400"), "of X: -?inf; every value"),
        (lambda X: csr_matrix(X.astype(np.longdouble) * np.longdouble("1e400")), "not finite"),
    ],
)
def test_values_that_would_lose_their_meaning_are_refused(labelled, convert, message):
    X = np.where(labelled.X == 0, 1, labelled.X)
    for given in (resvm_cli.fit, resvm_cli.tune, resvm_cli.rank):
        with pytest.raises(ValueError, match=message):
            given(convert(X), labelled.y)
    model = resvm_cli.fit(X, labelled.y, n_models=1)
    with pytest.raises(ValueError, match=message):
        model.predict(convert(X))


def test_masked_labels_and_weights_are_refused(labelled):
    first = np.arange(130) == 0
    with pytest.raises(ValueError, match=r"^y has masked values"):
        resvm_cli.fit(labelled.X, np.ma.array(labelled.y, mask=first))
    with pytest.raises(ValueError, match=r"^weights has masked values"):
        resvm_cli.fit(labelled.X, labelled.y, weights=np.ma.array(np.ones(130), mask=first))


def test_data_frames_of_every_type_are_converted_or_refused(labelled):
    pandas = pytest.importorskip("pandas")
    whole = pandas.DataFrame(np.clip(np.rint(labelled.X), -9, 9), columns=list("abcdef"))
    for kind in ("Int64", "Float64", "float32", "int8", "category", pandas.SparseDtype(float, 0)):
        np.testing.assert_array_equal(matrices.as_matrix(whole.astype({"b": kind})), whole)
        np.testing.assert_array_equal(matrices.as_matrix(whole.astype(kind)), whole)
    for kind in ("Int64", "Float64", "boolean"):
        some = (whole != 0) if kind == "boolean" else whole
        missing = some.astype({"b": kind})
        missing.loc[4, "b"] = pandas.NA
        with pytest.raises(ValueError, match=r"^row 4, column 'b' of X: nan; every value"):
            matrices.as_matrix(missing)
    dates = whole.assign(t=pandas.to_datetime("2026-01-01"))
    with pytest.raises(ValueError, match=r"^column 't' of X contains dates"):
        matrices.as_matrix(dates)
    with pytest.raises(ValueError, match=r"^column 't' of X contains values that are not numbers"):
        matrices.as_matrix(whole.assign(t="x"))


@pytest.mark.parametrize("other", [0, -1, False, 0.0, np.nan, None])
def test_1_marks_known_positives_if_the_other_label_cannot(labelled, other):
    positive = True if other is False else 1
    y = np.array([positive if label == 1 else other for label in labelled.y])
    values = resvm_cli.fit(labelled.X, y, **SMALL).decision_values(labelled.X)
    expected = resvm_cli.fit(labelled.X, labelled.y, **SMALL).decision_values(labelled.X)
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize(
    ("labels", "listed"),
    [
        ((2, 1), "1, 2"),
        ((1, 2), "1, 2"),
        ((0, 2), "0, 2"),
        ((0, 1, -1), "-1, 0, 1"),
        ((0.5, 1), "0.5, 1.0"),
        (("0", "1"), "'0', '1'"),
        (("yes", "no"), "'no', 'yes'"),
    ],
)
def test_labels_of_which_either_may_be_positive_need_the_positive_one(labelled, labels, listed):
    y = np.array(labels)[labelled.y * (1 + np.arange(130) % 2) % len(labels)]
    message = f"^cannot tell which label marks known positives\nthe labels are {listed}; set"
    for function in (resvm_cli.fit, resvm_cli.tune, resvm_cli.rank):
        with pytest.raises(ValueError, match=message):
            function(labelled.X, y)
    for positive in labels:
        model = resvm_cli.fit(labelled.X, y, positive_label=positive, **SMALL)
        expected = resvm_cli.fit(labelled.X, y == positive, **SMALL)
        values = expected.decision_values(labelled.X)
        np.testing.assert_array_equal(model.decision_values(labelled.X), values)


def test_labels_that_pandas_cannot_compare_are_refused(labelled):
    pandas = pytest.importorskip("pandas")
    y = labelled.y.astype(object)
    y[3] = pandas.NA
    for label in (None, 1):
        with pytest.raises(ValueError, match=r"^y has missing values\ngive unlabeled rows a label"):
            resvm_cli.fit(labelled.X, y, positive_label=label)


def test_outcomes_of_tested_rows_are_given_by_id():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 3)), np.repeat([1, 0], [30, 70])
    names = [f"row-{number}" for number in range(100)]
    assert np.isnan(resvm_cli.rank(X, y, n_models=5).probability).all()
    tested = {f"row-{number}": int(number % 2) for number in range(30, 60)}
    ranking = resvm_cli.rank(X, y, ids=names, tested=tested, n_models=5)
    assert 0.2 < ranking.precision[-1] < 0.8
    by_number = {number: number % 2 == 1 for number in range(30, 60)}
    again = resvm_cli.rank(X, y, tested=by_number, n_models=5)
    assert again.precision.tolist() == ranking.precision.tolist()
    for bad, said in (({"row-31": 2}, "row-31"), ({"row-0": 1}, "of U"), ({"nobody": 1}, "nobody")):
        with pytest.raises(DataError, match=said):
            resvm_cli.rank(X, y, ids=names, tested=bad, n_models=5)
