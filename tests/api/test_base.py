"""Estimators fit, predict and save the same bytes as the commands."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import resvm_cli
from resvm_cli import ResultWarning, RESVMClassifier
from resvm_cli.api import base
from resvm_cli.errors import DataError, ModelError
from tests.commands.test_train import snapshot
from tests.conftest import write_svm
from tests.fitting import estimator, fitted, options_of

# the rows of some tests are not scaled
pytestmark = pytest.mark.filterwarnings("ignore::resvm_cli.ResultWarning")
unconverged = pytest.mark.filterwarnings("ignore:.*LIBLINEAR:sklearn.exceptions.ConvergenceWarning")

SMALL = {"n_models": 5}
FORMATS = [f"{name}_array" for name in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")]
FORMATS += ["coo_matrix", "csr_matrix"]


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {**SMALL, "seed": 7, "n_pos": 9, "n_unl": 21, "w_pos": 2, "c_unl": 3},
        {**SMALL, "kernel": "linear"},
        {**SMALL, "kernel": "linear", "solver": "liblinear", "bias": 2},
        {**SMALL, "kernel": "poly", "degree": 2, "coef0": 1, "gamma": 0.01, "tolerance": 0.01},
        {**SMALL, "scale": "standard", "decision": "mean"},
        {**SMALL, "scale": "quantile", "feature_weights": "relevance:1.5"},
        {**SMALL, "scale": "auto", "gamma": "auto"},
        {**SMALL, "method": "bagging", "n_unl": 30},
        {"method": "cwsvm", "c_pos": 2},
        {"method": "cwsvm", "c_unl": 2, "w_pos": 3, "kernel": "linear"},
        {"auto": True, "n_models": 12, "seed": 2},
        {"auto": True, "n_pos": 12, "c_unl": 1, "scale": "none"},
    ],
    ids=lambda keywords: " ".join(map(str, options_of(keywords))),
)
@unconverged
def test_a_saved_estimator_is_the_model_that_train_writes(labeled, keywords, resvm, tmp_path):
    ran = resvm("train", *labeled.arguments, *options_of(keywords), "-o", tmp_path / "cli")
    assert ran.code == 0, ran.err
    written = snapshot(tmp_path / "cli")
    first = fitted(labeled.X, labeled.y, **keywords)
    first.save(tmp_path / "python")
    assert snapshot(tmp_path / "python") == written

    # a loaded estimator has the parameters that fit the same model again
    loaded = resvm_cli.load_model(tmp_path / "cli", classes=(0, 1))
    assert type(loaded) is type(first)
    for name in ("decision_values", "decision_function", "predict"):
        values = getattr(first, name)(labeled.X)
        np.testing.assert_array_equal(getattr(loaded, name)(labeled.X), values)
    clone(loaded).fit(labeled.X, labeled.y).save(tmp_path / "again")
    again = snapshot(tmp_path / "again")
    if "auto" in keywords:  # only the first manifest lists the candidates of the search
        del again["manifest.json"], written["manifest.json"]
    assert again == written


@pytest.mark.parametrize("form", [*(getattr(sparse, name) for name in FORMATS), np.ndarray.tolist])
@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
def test_every_form_of_matrix_gives_the_same_model(labeled, form, tmp_path):
    fitted(labeled.X, labeled.y, **SMALL).save(tmp_path / "dense")
    model = fitted(form(labeled.X), labeled.y.tolist(), **SMALL, n_jobs=2)
    model.save(tmp_path / "other")
    assert snapshot(tmp_path / "other") == snapshot(tmp_path / "dense")
    values = model.decision_values(form(labeled.X))
    np.testing.assert_array_equal(values, model.decision_values(labeled.X))


WEIGHTED = {"scale": "quantile", "feature_weights": "relevance"}


@pytest.mark.parametrize(("decision", "more"), [("votes", {}), ("mean", WEIGHTED)])
def test_predictions_are_those_of_predict(labeled, decision, more, resvm, tmp_path):
    model = fitted(labeled.X, labeled.y, **SMALL, **more, decision=decision)
    model.save(tmp_path / "m")
    ran = resvm("predict", tmp_path / "m", labeled.path, "--votes", "-q")
    table = np.array([line.split() for line in ran.out.decode().splitlines()], float)
    loaded = resvm_cli.load_model(tmp_path / "m", classes=(0, 1))
    for judge in (model, loaded, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(np.where(judge.predict(labeled.X), 1, -1), table[:, 0])
        np.testing.assert_array_equal(judge.decision_values(labeled.X), table[:, 1])
        np.testing.assert_array_equal(judge.predict_votes(labeled.X), table[:, 2])
        values = judge.decision_values(labeled.X)
        np.testing.assert_array_equal(judge.decision_function(labeled.X), values - judge.threshold_)
        assert judge.decision_ == decision
    assert model.member_values(labeled.X).shape == (130, 5)


def test_rows_have_the_same_values_in_blocks_of_any_size(labeled, monkeypatch):
    model = fitted(labeled.X, labeled.y, **SMALL)
    whole = model.decision_values(labeled.X)
    monkeypatch.setattr(base, "ROWS_AT_ONCE", 7)
    np.testing.assert_array_equal(model.decision_values(labeled.X), whole)


@pytest.mark.parametrize("keywords", [SMALL, {"auto": True, "n_models": 12, "scale": "minmax"}])
def test_a_model_that_was_loaded_or_unpickled_is_saved_as_it_was(labeled, keywords, tmp_path):
    model = fitted(labeled.X, labeled.y, **keywords)
    model.save(tmp_path / "first")
    resvm_cli.load_model(str(tmp_path / "first")).save(tmp_path / "second")
    again = pickle.loads(pickle.dumps(model))
    assert "_predictor" not in vars(again)  # it is made from the model
    again.save(tmp_path / "third")
    written = snapshot(tmp_path / "first")
    assert snapshot(tmp_path / "second") == snapshot(tmp_path / "third") == written
    with pytest.raises(ValueError, match="use `force=True`"):
        model.save(tmp_path / "first")
    model.save(tmp_path / "first", force=True)
    with pytest.raises(NotFittedError):
        clone(model).save(tmp_path / "fourth")


def test_a_model_of_features_counted_from_0_is_asked_by_column(labeled, resvm, tmp_path):
    write_svm(tmp_path / "0.svm", labeled.X, labeled.y.astype(float), first_index=0)
    ran = resvm(
        *("train", "--data", tmp_path / "0.svm", "--positive-label", 1, "--zero-based", "-q"),
        *("--n-models", 5, "-o", tmp_path / "m"),
    )
    assert ran.code == 0, ran.err
    ran = resvm("predict", tmp_path / "m", tmp_path / "0.svm", "-q")
    expected = [float(line.split()[1]) for line in ran.out.splitlines()]
    model = resvm_cli.load_model(tmp_path / "m")
    np.testing.assert_array_equal(model.decision_values(labeled.X), expected)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_a_model_refuses_rows_of_another_width(labeled, form, tmp_path):
    X, y = labeled.X, labeled.y
    model = fitted(form(X), y, n_models=2)
    model.save(tmp_path / "m")
    for judge in (model, resvm_cli.load_model(tmp_path / "m")):
        for width in (4, 5, 7, 12):
            other = form(np.hstack([X, X])[:, :width])
            with pytest.raises(ValueError, match=f"X has {width} features, but .* is expecting 6"):
                judge.predict(other)
    wide = fitted(np.pad(X, ((0, 0), (0, 3))), y, n_models=2)  # columns of zeros count
    assert wide.n_features_in_ == 9


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_precomputed_rows_have_a_value_for_each_training_row(labeled, form, tmp_path):
    K = labeled.X @ labeled.X.T
    first = fitted(form(K), labeled.y, kernel="precomputed", n_models=2)
    first.save(tmp_path / "m")
    for model in (first, resvm_cli.load_model(tmp_path / "m")):
        assert model.n_features_in_ == 130
        assert model.predict(form(K[:3])).shape == (3,)
        with pytest.raises(ValueError, match=r"X has 129 features, but .* expecting 130"):
            model.predict(form(K[:, :129]))
    assert first.__sklearn_tags__().input_tags.pairwise  # so tools split rows and columns alike
    with pytest.raises(ValueError, match="square"):
        fitted(K[:, :50], labeled.y, kernel="precomputed")


# What has not been checked by scipy: indices out of range, or rows that end beyond the entries.
BROKEN = {
    "column": ("csr", "indices", 99),
    "negative": ("csr", "indices", -1),
    "row end": ("csr", "indptr", 10**6),
    "row": ("csc", "indices", 10**6),
    "coordinate": ("coo", "col", 10**6),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_an_inconsistent_sparse_matrix_is_an_error(labeled, broken):
    form, attribute, value = BROKEN[broken]
    first = fitted(labeled.X, labeled.y, n_models=2)
    matrix = csr_matrix(labeled.X).asformat(form)
    getattr(matrix, attribute)[-1] = value
    for call in (
        lambda: fitted(matrix, labeled.y, n_models=2),
        lambda: first.predict(matrix),
        lambda: resvm_cli.rank(matrix, labeled.y),
        lambda: resvm_cli.tune(matrix, labeled.y),
    ):
        with pytest.raises(ValueError, match="X is not a consistent sparse matrix"):
            call()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_pos": 0}, "`n_pos` must be at least 1"),
        ({"gamma": "wide"}, "`gamma` must be a number"),
        ({"positive_label": 4}, "`positive_label` is 4"),
    ],
)
def test_a_failed_fit_changes_nothing(changed, message, labeled):
    X, y = labeled.X, labeled.y
    model = fitted(X, y, n_models=3)
    state, values = dict(vars(model)), model.decision_values(X)
    model.set_params(**changed)
    with pytest.raises(ValueError, match=message):
        model.fit(X[:, :5], y)
    model.set_params(**{name: state[name] for name in changed})
    assert vars(model) == state
    np.testing.assert_array_equal(model.decision_values(X), values)
    unfitted = estimator(n_pos=0)
    with pytest.raises(ValueError, match="n_pos"):
        unfitted.fit(X, y)
    assert vars(unfitted) == vars(estimator(n_pos=0))


def test_a_second_fit_leaves_nothing_of_the_first(rows):
    pandas = pytest.importorskip("pandas")
    X, y = rows
    model = fitted(pandas.DataFrame(X, columns=list("abcd")), y, **SMALL)
    model.fit(X[:, :2], y)
    assert "feature_names_in_" not in vars(model)
    assert model.n_features_in_ == 2


def test_groups_are_those_of_train(labeled, resvm, tmp_path):
    ran = resvm(
        *("train", *labeled.arguments, *options_of(SMALL)),
        *("--groups", labeled.path.parent / "groups", "-o", tmp_path / "cli"),
    )
    assert ran.code == 0, ran.err
    grouped = fitted(labeled.X, labeled.y, groups=labeled.groups, **SMALL)
    grouped.save(tmp_path / "groups")
    assert snapshot(tmp_path / "groups") == snapshot(tmp_path / "cli")


def test_probabilities_are_those_of_predict(labeled, resvm, tmp_path):
    X, y = labeled.X, labeled.y
    model = fitted(X, y, n_models=9, contamination_unl=0.2)
    model.save(tmp_path / "m")
    found = model.predict_proba(X)
    assert found.sum(axis=1) == pytest.approx(1)
    told = ["--probability", "--contamination-unl", 0.2]
    out = resvm("predict", tmp_path / "m", labeled.path, *told).out.split()
    assert found[:, 1].tolist() == [float(text) for text in out[2::3]]


def test_unknown_probabilities_are_an_error_that_says_what_to_give():
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((200, 3)), np.repeat([1, 0], [40, 160])
    model = fitted(X, y, n_models=9, contamination_unl="estimate")
    with pytest.raises(ModelError, match="give `contamination_unl`"):
        model.predict_proba(X)
    assert model.set_params(contamination_unl=0.1).predict_proba(X).shape == (200, 2)
    few = fitted(X[32:], y[32:], n_models=9, contamination_unl=0.1)
    with pytest.raises(ModelError, match="too few rows"):
        few.predict_proba(X)
    with pytest.raises(ValueError, match="`contamination_unl` must be below 1"):
        model.set_params(contamination_unl=2).predict_proba(X)


def test_rows_that_cannot_be_used_are_refused(labeled):
    X, y = labeled.X, labeled.y
    model = fitted(X, y, kernel="poly", n_models=2)
    with pytest.raises(ValueError, match="row 4 of X: the decision value is not finite"):
        model.predict(np.vstack([X[:4], np.full((1, 6), 1e200)]))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"n_pos": 0}, "^`n_pos` must be at least 1, got 0"),
        ({"n_pos": 2.5}, "`n_pos` must be an integer, got 2.5"),
        ({"c_unl": "x"}, "`c_unl` must be a number, got 'x'"),
        ({"kernel": "rbg"}, "`kernel` must be 'linear', .*'minmax' or 'laplacian', got 'rbg'"),
        ({"gamma": "wide"}, "`gamma` must be a number, 'scale' or 'auto', got 'wide'"),
        ({"scale": "log"}, "`scale` must be .* got 'log'"),
        ({"decision": "median"}, "`decision` must be 'votes' or 'mean', got 'median'"),
        ({"solver": "liblinear"}, "set `kernel='linear'`, or leave `solver` out"),
        ({"params": {}}, "params: contains no parameters"),
        ({"seed": -1}, "^`random_state` must be at least 0, got -1"),
        ({"n_jobs": 0}, "^`n_jobs` must not be 0"),
        ({"n_jobs": 1.5}, "^`n_jobs` must be an integer"),
        ({"groups": [1, 2]}, "`groups` has 2 values, but X has 130 rows"),
        ({"contamination_unl": "many"}, "`contamination_unl` must be"),
    ],
    ids=str,
)
def test_what_cannot_work_is_a_value_error_that_names_parameters(labeled, keywords, message):
    with pytest.raises(ValueError, match=message) as caught:
        fitted(labeled.X, labeled.y, **keywords)
    assert "--" not in str(caught.value)


def test_a_third_argument_is_neither_weights_nor_groups(rows):
    X, y = rows
    for function in (RESVMClassifier().fit, resvm_cli.tune, resvm_cli.rank):
        with pytest.raises(TypeError, match="positional argument"):
            function(X, y, np.ones(150))


def test_numbers_of_numpy_reach_the_manifest_as_plain_ones(rows, tmp_path):
    chosen = {"n_models": np.int32(3), "c_unl": np.float32(2), "gamma": np.float64(0.5)}
    fitted(*rows, **chosen).save(tmp_path / "m")
    manifest = json.loads((tmp_path / "m" / "manifest.json").read_text())
    assert manifest["groups"][0]["parameters"]["c_unl"] == 2.0


def test_parameters_that_are_given_win_over_params(rows):
    X, y = rows
    params = resvm_cli.tune(X, y, trials=2, n_models=4, committee=1).params
    manifest = fitted(X, y, params=params, n_pos=7).manifest_
    parameters = manifest["groups"][0]["parameters"]
    assert parameters["n_pos"] == 7
    assert parameters["n_unl"] == params["settings"][0]["n_unl"]


def test_known_negatives_have_a_third_label():
    X = np.random.default_rng(0).normal(size=(90, 2))
    X[:30] += 1.5
    y = np.repeat([1, 0, -1], [20, 50, 20])
    model = fitted(X, y, n_models=5, negative_label=-1, w_neg=2.0)
    assert model.classes_.tolist() == [0, 1]
    assert model.manifest_["data"]["negative"]["rows"] == 20
    assert set(model.predict(X)) <= {0, 1}
    assert 0.5 < model.score(X, y) <= 1
    named = np.array(["no", "open", "yes"])[y + 1]
    words = fitted(X, named, n_models=5, negative_label="no", positive_label="yes", w_neg=2.0)
    assert words.classes_.tolist() == ["open", "yes"]
    np.testing.assert_array_equal(words.decision_function(X), model.decision_function(X))
    with pytest.raises(ValueError, match=r"^`negative_label` is 3; expected a label of y"):
        fitted(X, y, negative_label=3)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_features_of_importance_are_numbered_and_named_like_columns(rows, kernel):
    pandas = pytest.importorskip("pandas")
    X, y = rows
    for matrix, names in ((pandas.DataFrame(X, columns=list("abcd")), "abcd"), (X, "0123")):
        found = fitted(matrix, y, kernel=kernel, **SMALL).importance(matrix, y)
        assert sorted((one.feature, one.name) for one in found) == [*enumerate(names)]


def test_importance_needs_the_known_negatives_of_fit(rows):
    X, y = rows
    labels = y.copy()
    labels[np.flatnonzero(y == 0)[:10]] = -1
    model = fitted(X, labels, negative_label=-1, n_models=20)
    assert len(model.importance(X, labels)) == 4
    with pytest.raises(ModelError, match="known_negatives"):
        model.set_params(negative_label=None).importance(X, labels)


def messages(function, *arguments, **keywords) -> list[str]:
    """Return the warnings of a call; they must be ours and point to this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*arguments, **keywords)
    assert {one.category for one in caught} <= {ResultWarning}
    assert {one.filename for one in caught} <= {__file__}
    return [str(one.message) for one in caught]


@pytest.mark.parametrize(
    "parameters",
    [{}, {"auto": True}, {"scale": "auto"}, {"scale": "standard"}, {"method": "bagging"}],
    ids=str,
)
def test_sound_data_gives_no_warning(rows, parameters):
    assert messages(estimator(**parameters).fit, *rows) == []


def test_features_on_different_scales_are_noted_without_a_warning(rows):
    X, y = rows
    X = X * [1, 1, 1, 1000.0]
    for scale in (None, "standard"):
        model = estimator(scale=scale, **SMALL)
        assert messages(model.fit, X, y) == []
        noted = [note.startswith("the features are not scaled") for note in model.notes_]
        assert noted == [True] * (scale is None)
        assert {type(note) for note in model.notes_} <= {str}


def test_labels_at_random_are_warned_of(rows):
    X, _ = rows
    y = (np.arange(150) % 5 == 0).astype(int)
    model = estimator()
    [text] = messages(model.fit, X, y)
    assert text.startswith("known positives are barely distinguishable from U")
    assert model.notes_ == (text,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResultWarning)
        model.fit(X, y)
        warnings.simplefilter("error", ResultWarning)
        with pytest.raises(ResultWarning, match="barely distinguishable"):
            model.fit(X, y)


@pytest.mark.parametrize("other", [0, -1, False])
def test_swapped_labels_are_warned_of_until_the_positive_one_is_named(rows, other):
    X, y = rows
    positive = True if other is False else 1
    swapped = np.where(y == 1, other, positive)
    text = f"P has {np.sum(y == 0)} rows and U only {np.sum(y == 1)}, but U is usually the larger"
    model = estimator(**SMALL)
    for call in (model.fit, resvm_cli.rank, resvm_cli.tune):
        assert any(each.startswith(text) for each in messages(call, X, swapped))
    for label in (other, positive):  # either choice was intentional
        told = messages(estimator(positive_label=label, **SMALL).fit, X, swapped)
        assert not any(each.startswith(text) for each in told)
    named = fitted(X, swapped, positive_label=other, **SMALL)
    values = fitted(X, y, **SMALL).decision_values(X)
    np.testing.assert_array_equal(named.decision_values(X), values)


def test_what_did_not_converge_is_one_warning_of_scikit_learn(rows, monkeypatch):
    learn = base.learn

    def unconverged(*arguments):
        part, model = learn(*arguments)
        model.manifest["unconverged"] = 2
        return part, model

    monkeypatch.setattr(base, "learn", unconverged)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator(n_models=6).fit(*rows)
    [one] = caught
    assert one.category is ConvergenceWarning
    assert str(one.message).startswith("2 of 6 members stopped at LIBSVM's iteration limit")
    assert one.filename == __file__


def test_labels_in_another_order_than_the_rows_are_refused(rows):
    pandas = pytest.importorskip("pandas")
    X, y = rows
    index = pandas.Index([f"gene-{number * 7 % 150}" for number in range(150)])
    frame, series = pandas.DataFrame(X, index=index), pandas.Series(y, index=index)
    shuffled = series.iloc[::-1]
    frame.columns = list("abcd")
    expected = fitted(frame, y, **SMALL).decision_values(frame)
    for given in (series, series.set_axis(range(150)), shuffled.loc[index]):
        values = fitted(frame, given, **SMALL).decision_values(frame)
        np.testing.assert_array_equal(values, expected)
    for call in (estimator().fit, resvm_cli.rank, resvm_cli.tune):
        with pytest.raises(DataError, match="same labels in different orders") as caught:
            call(frame, shuffled)
        assert "y.loc[X.index]" in str(caught.value.hint)


def test_a_saved_model_knows_the_columns_of_its_frame(rows, resvm, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = rows
    frame = pandas.DataFrame(X, columns=list("abcd"))
    first = fitted(frame, y, **SMALL)
    first.save(tmp_path / "m")
    for model in (first, resvm_cli.load_model(tmp_path / "m")):
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[["b", "a", "c", "d"]])
    frame[["c", "a", "d", "b"]].to_csv(tmp_path / "rows.csv", index=False)
    ran = resvm("predict", tmp_path / "m", tmp_path / "rows.csv", "--format", "tsv")
    values = [float(line.split(b"\t")[1]) for line in ran.out.splitlines()[1:]]
    assert values == first.decision_values(frame).tolist()
