"""The estimators pass scikit-learn's checks, work with its tools, and share models with resvm."""

from __future__ import annotations

import json
import pickle
import sys
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import get_scorer, make_scorer, recall_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import resvm_cli
from resvm_cli.errors import ModelError, ResultWarning
from resvm_cli.sklearn import (
    BaggingSVMClassifier,
    ClassWeightedSVMClassifier,
    RESVMClassifier,
    pu_score,
)
from resvm_cli.training.choice import best_json
from tests.api.test_functions import options_of, snapshot
from tests.conftest import write_svm
from tests.programs import run
from tests.training.test_choice import MIXED

ESTIMATORS = (RESVMClassifier, BaggingSVMClassifier, ClassWeightedSVMClassifier)
# Without pandas, or scipy's switch for other arrays, these checks report that they do nothing.
MAY_SKIP = {"check_array_api_input", "check_classifier_data_not_an_array"}


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    y = (rng.random(150) < 0.3).astype(int)
    centre = np.where((y == 1) | (rng.random(150) < 0.2), 1.0, -1.0)
    return rng.standard_normal((150, 4)) + centre[:, None], y


@pytest.mark.filterwarnings("default")  # scikit-learn's, about checks that do not apply
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_scikit_learn_finds_nothing_wrong(kind):
    checks = check_estimator(kind(), on_skip=None, on_fail="raise")
    assert len(checks) > 40
    assert {check["status"] for check in checks} <= {"passed", "skipped"}
    assert {check["check_name"] for check in checks if check["status"] == "skipped"} <= MAY_SKIP


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_tags_say_two_labels_and_sparse_rows(kind):
    tags = get_tags(kind())
    assert tags.input_tags.sparse
    assert not tags.classifier_tags.multi_class
    assert tags.target_tags.required


@pytest.mark.parametrize(
    ("estimator", "keywords"),
    [
        (RESVMClassifier(), {}),
        (
            RESVMClassifier(n_models=5, random_state=3, scale="minmax", decision="mean"),
            {"n_models": 5, "seed": 3, "scale": "minmax", "decision": "mean"},
        ),
        (
            RESVMClassifier(n_models=5, scale="quantile", feature_weights="relevance:1.5"),
            {"n_models": 5, "scale": "quantile", "feature_weights": "relevance:1.5"},
        ),
        (RESVMClassifier(auto=True, n_models=12), {"auto": True, "n_models": 12}),
        (RESVMClassifier(auto="single", n_pos=9), {"auto": "single", "n_pos": 9}),
        (BaggingSVMClassifier(n_models=5), {"method": "bagging", "n_models": 5}),
        (
            ClassWeightedSVMClassifier(c_unl=2, w_pos=3, kernel="linear"),
            {"method": "cwsvm", "c_unl": 2, "w_pos": 3, "kernel": "linear"},
        ),
    ],
    ids=str,
)
def test_a_saved_estimator_is_the_model_that_train_writes(
    rows, estimator, keywords, resvm, tmp_path
):
    X, y = rows
    write_svm(tmp_path / "data.svm", X, y.astype(float))
    ran = resvm(
        *("train", "--data", tmp_path / "data.svm", "--positive-label", 1, "-q"),
        *(*options_of(keywords), "-o", tmp_path / "cli"),
    )
    assert ran.code == 0, ran.err
    for number, matrix in enumerate((X, csr_matrix(X))):
        clone(estimator).fit(matrix, y).save(tmp_path / str(number))
        assert snapshot(tmp_path / str(number)) == snapshot(tmp_path / "cli")

    # a loaded estimator has the parameters that would fit the same model again
    loaded = type(estimator).load(tmp_path / "cli", classes=(0, 1))
    fitted = clone(estimator).fit(X, y)
    np.testing.assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    clone(loaded).fit(X, y).save(tmp_path / "again")
    assert snapshot(tmp_path / "again") == snapshot(tmp_path / "cli")


@pytest.mark.parametrize("scale", [None, "standard"])
@pytest.mark.parametrize("order", [slice(None), slice(1, None)])
def test_a_loaded_model_of_mixed_settings_is_fitted_again(rows, scale, order, tmp_path):
    params = best_json(MIXED[order], "mean", scale, {}, {})
    RESVMClassifier(params=params).fit(*rows).save(tmp_path / "m")
    loaded = RESVMClassifier.load(tmp_path / "m", classes=(0, 1))
    clone(loaded).fit(*rows).save(tmp_path / "again")
    assert snapshot(tmp_path / "again") == snapshot(tmp_path / "m")


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_sign_of_the_decision_function_is_the_label(rows, kind):
    X, y = rows
    fitted = kind().fit(X, y)
    model = resvm_cli.fit(X, y, method=kind.method)
    values = model.decision_values(X)
    np.testing.assert_array_equal(fitted.decision_values(X), values)
    np.testing.assert_array_equal(fitted.decision_function(X), values - model.threshold.value)
    np.testing.assert_array_equal(fitted.predict(X) == 1, fitted.decision_function(X) > 0)
    np.testing.assert_array_equal(fitted.predict(X) == 1, model.predict(X) == 1)
    np.testing.assert_array_equal(fitted.predict_votes(X), model.votes(X))
    assert fitted.threshold_ == model.threshold.value
    assert fitted.n_models_ == (1 if kind is ClassWeightedSVMClassifier else 50)


@pytest.mark.parametrize(
    "names", [(0, 1), (-1, 1), (False, True), ("a", "b"), (3.0, 7.0), ("neg", "pos")]
)
def test_any_two_labels_will_do_and_the_larger_is_positive(rows, names):
    X, y = rows
    labels = np.array(names, object if isinstance(names[0], str) else None)[y]
    if names[0] in (0, -1):
        fitted = RESVMClassifier(n_models=5).fit(X, labels)
    else:
        with pytest.warns(UserWarning, match=f"^{names[1]!r} is taken as the label of known pos"):
            fitted = RESVMClassifier(n_models=5).fit(X, labels)
    plain = RESVMClassifier(n_models=5).fit(X, y)
    assert fitted.classes_.tolist() == list(names)
    np.testing.assert_array_equal(fitted.predict(X) == names[1], plain.predict(X) == 1)
    trained_on = fitted.model_.manifest["labels"]["trained_on"]
    assert trained_on == (None if isinstance(names[0], str) else float(names[1]))


def test_one_label_or_three_are_refused(rows):
    X, y = rows
    with pytest.raises(ValueError, match="one class"):
        RESVMClassifier().fit(X, np.ones(150))
    with pytest.raises(ValueError, match="Only binary classification"):
        RESVMClassifier().fit(X, y + (np.arange(150) == 0) * 2)


def test_out_of_bag_values_are_those_of_the_engine(rows):
    X, y = rows
    fitted = RESVMClassifier(n_models=20).fit(X, y)
    expected = resvm_cli.fit(X, y, n_models=20, oob=True).oob
    assert expected is not None
    np.testing.assert_array_equal(fitted.oob_decision_values_, expected.decision_values)
    np.testing.assert_array_equal(fitted.oob_members_, expected.members)
    fitted.set_params(oob=False).fit(X, y)
    assert not hasattr(fitted, "oob_members_")
    assert not hasattr(ClassWeightedSVMClassifier().fit(X, y), "oob_members_")


def test_groups_keep_rows_from_judging_their_like(rows):
    X, y = rows
    groups = np.arange(150) // 2
    fitted = RESVMClassifier(n_models=20).fit(X, y, groups=groups)
    expected = resvm_cli.fit(X, y, n_models=20, oob=True, groups=groups).oob
    assert expected is not None
    np.testing.assert_array_equal(fitted.oob_members_, expected.members)
    assert (fitted.oob_members_ <= RESVMClassifier(n_models=20).fit(X, y).oob_members_).all()


@pytest.mark.parametrize("name", ["fit", "tune"])
def test_a_third_argument_is_neither_weights_nor_groups(rows, name):
    X, y = rows
    for function in (getattr(RESVMClassifier(), name), getattr(resvm_cli, name)):
        with pytest.raises(TypeError, match="positional argument"):
            function(X, y, np.ones(150))


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_masked_rows_labels_and_dates_are_refused(rows, kind):
    X, y = rows
    masked = np.ma.masked_less(X, 0)
    fitted = kind().fit(X, y)
    for refused in (lambda: kind().fit(masked, y), lambda: fitted.predict(masked)):
        with pytest.raises(ValueError, match=r"^X has masked values"):
            refused()
    with pytest.raises(ValueError, match=r"^y has masked values"):
        kind().fit(X, np.ma.masked_equal(y, 0))
    with pytest.raises(ValueError, match=r"^X contains dates"):
        kind().fit(X.astype("M8[D]"), y)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_pickled_estimator_judges_and_is_saved_alike(rows, kind, tmp_path):
    X, y = rows
    fitted = kind().fit(X, y)
    restored = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(restored.decision_function(X), fitted.decision_function(X))
    fitted.save(tmp_path / "fitted")
    restored.save(tmp_path / "restored")
    assert snapshot(tmp_path / "fitted") == snapshot(tmp_path / "restored")


def test_the_scorer_is_recall_squared_by_the_share_that_is_called(rows):
    X, y = rows
    fitted = RESVMClassifier(n_models=5).fit(X, y)
    called = fitted.predict(X)
    expected = recall_score(y, called) ** 2 / called.mean()
    assert pu_score(fitted, X, y) == pytest.approx(expected)
    assert np.isnan(pu_score(fitted, X, np.zeros(150)))
    fitted.threshold_ = np.inf
    assert pu_score(fitted, X, y) == 0.0


def test_a_grid_search_in_a_pipeline_finds_the_penalty_that_scores_best(rows):
    X, y = rows
    pipeline = make_pipeline(StandardScaler(), RESVMClassifier(n_models=5, oob=False))
    grid = {"resvmclassifier__c_unl": [1e-4, 1.0], "resvmclassifier__w_pos": [0.5, 1.0]}
    search = GridSearchCV(pipeline, grid, scoring=pu_score, cv=3).fit(X, y)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(X).shape == (150,)
    scores = cross_val_score(pipeline, X, y, scoring=pu_score, cv=3)
    by_hand = cross_val_score(
        pipeline,
        X,
        y,
        scoring=make_scorer(lambda true, called: called[true == 1].mean() ** 2 / called.mean()),
        cv=3,
    )
    np.testing.assert_allclose(scores, by_hand)


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (RESVMClassifier(), {}),
        (BaggingSVMClassifier(n_models=4), {"trials": 2, "folds": 3}),
        (ClassWeightedSVMClassifier(scale="minmax"), {"trials": 2, "folds": 3}),
    ],
    ids=str,
)
def test_tuning_chooses_what_the_engine_chooses_and_is_then_fitted(
    rows, estimator, options, tmp_path
):
    X, y = rows
    tuned = clone(estimator).tune(X, y, **options)
    with pytest.raises(NotFittedError):
        tuned.predict(X)
    shared = {"scale": "minmax"} if estimator.get_params()["scale"] else {}
    expected = resvm_cli.tune(X, y, method=estimator.method, **shared, **options)
    assert tuned.params == expected.params
    assert tuned.tuning_.trials == expected.trials
    clone(tuned).fit(X, y).save(tmp_path / "tuned")
    more = {"n_models": 4} if isinstance(estimator, BaggingSVMClassifier) else {}
    resvm_cli.fit(X, y, params=expected, method=estimator.method, **more).save(tmp_path / "plain")
    assert snapshot(tmp_path / "tuned") == snapshot(tmp_path / "plain")


def test_a_parameter_that_is_not_the_default_wins_over_params(rows):
    X, y = rows
    params = resvm_cli.tune(X, y, trials=2, n_models=4, committee=1).params
    fitted = RESVMClassifier(params=params, n_pos=7).fit(X, y)
    parameters = fitted.model_.manifest["groups"][0]["parameters"]
    assert parameters["n_pos"] == 7
    assert parameters["n_unl"] == params["n_unl"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_pos": 0}, "^n_pos must be at least 1, got 0"),
        ({"random_state": -1}, "^random_state must be at least 0, got -1"),
        ({"kernel": "x"}, "^kernel must be .* got 'x'"),
        ({"auto": True, "n_unl": 5}, "auto=True with n_unl also needs n_pos"),
    ],
    ids=str,
)
def test_errors_name_parameters(rows, parameters, message):
    with pytest.raises(ValueError, match=message):
        RESVMClassifier(**parameters).fit(*rows)


def test_random_states_that_are_no_number_give_a_seed(rows):
    X, y = rows
    first, second = (
        RESVMClassifier(n_models=3, random_state=np.random.RandomState(5)).fit(X, y)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.decision_values(X), second.decision_values(X))
    assert RESVMClassifier(n_models=1, random_state=None).fit(X, y).model_.manifest["seed"] >= 0
    assert (
        RESVMClassifier(n_models=1, random_state=np.int64(9)).fit(X, y).model_.manifest["seed"] == 9
    )


def test_members_that_did_not_converge_are_a_warning_of_scikit_learn(rows, monkeypatch):
    monkeypatch.setattr("resvm_cli.api.Model.n_unconverged", 2)
    with pytest.warns(ConvergenceWarning, match="2 of 3 members"):
        RESVMClassifier(n_models=3).fit(*rows)


def test_a_model_of_another_method_is_not_loaded(rows, tmp_path):
    BaggingSVMClassifier(n_models=2).fit(*rows).save(tmp_path / "m")
    with pytest.raises(ModelError, match="contains a BaggingSVMClassifier, not a RESVMClassifier"):
        RESVMClassifier.load(tmp_path / "m")
    assert BaggingSVMClassifier.load(tmp_path / "m").classes_.tolist() == [-1, 1]


def test_parameters_are_the_options_of_train_and_predict(resvm):
    shown = resvm("train", "--help").out.decode() + resvm("predict", "--help").out.decode()
    for kind in ESTIMATORS:
        for name in set(kind().get_params()) - {"random_state", "n_jobs", "oob"}:
            assert f"--{name.replace('_', '-')}" in shown, name


def test_numbers_of_numpy_reach_the_manifest_as_plain_ones(rows, tmp_path):
    chosen = {"n_models": np.int32(3), "c_unl": np.float32(2), "gamma": np.float64(0.5)}
    RESVMClassifier(**chosen).fit(*rows).save(tmp_path / "m")
    manifest = json.loads((tmp_path / "m" / "manifest.json").read_text())
    assert manifest["groups"][0]["parameters"]["c_unl"] == 2.0


def each_label_as_the_positive_one(test):
    """Run a test for three pairs of labels, with either label of each as the positive one."""
    pairs = [(0, 1), (1, -1), ("yes", "no")]
    cases = [case for pair in pairs for case in (pair, pair[::-1])]
    return pytest.mark.parametrize(("positive", "other"), cases)(test)


def named(y, positive, other):
    return np.where(y == 1, positive, other)


@each_label_as_the_positive_one
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_classes_are_sorted_whichever_label_is_positive(rows, kind, positive, other):
    X, y = rows
    expected = kind().fit(X, y)
    fitted = kind(positive_label=positive).fit(X, named(y, positive, other))
    assert fitted.classes_.tolist() == sorted([positive, other])
    assert fitted.positive_label_ == positive
    np.testing.assert_array_equal(fitted.score_samples(X), expected.decision_values(X))
    np.testing.assert_array_equal(fitted.decision_values(X), expected.decision_values(X))
    sign = 1 if positive > other else -1
    np.testing.assert_array_equal(fitted.decision_function(X), sign * expected.decision_function(X))
    np.testing.assert_array_equal(fitted.predict(X) == positive, expected.predict(X) == 1)
    # a row at the threshold is not predicted positive
    fitted.threshold_ = np.sort(fitted.score_samples(X))[-5]
    predicted, above = fitted.predict(X), fitted.decision_function(X) > 0
    np.testing.assert_array_equal(
        predicted == positive, fitted.score_samples(X) > fitted.threshold_
    )
    np.testing.assert_array_equal(predicted == fitted.classes_[1], above)


@each_label_as_the_positive_one
def test_probabilities_are_in_the_order_of_the_classes(rows, positive, other):
    X, y = rows
    labels = named(y, positive, other)
    settings = {"positive_label": positive, "n_models": 9}
    fitted = RESVMClassifier(contamination_unl=0.2, **settings).fit(X, labels)
    chances = fitted.predict_proba(X)
    column = fitted.classes_.tolist().index(positive)
    expected = fitted.model_.predict_proba(X, contamination_unl=0.2)
    np.testing.assert_array_equal(chances[:, [1 - column, column]], expected)
    estimated = clone(fitted).set_params(contamination_unl="estimate").fit(X, labels)
    own = fitted.model_.predict_proba(X)
    np.testing.assert_array_equal(estimated.predict_proba(X)[:, column], own[:, 1])
    assert roc_auc_score(y, chances[:, column]) > 0.8


def test_probabilities_are_offered_only_if_the_fraction_is_given(rows):
    X, y = rows
    fitted = RESVMClassifier(n_models=9).fit(X, y)
    for estimator in (RESVMClassifier(), fitted, BaggingSVMClassifier()):
        assert not hasattr(estimator, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        _ = fitted.predict_proba
    assert "set it to the fraction of unlabeled rows" in str(caught.value.__cause__)
    assert hasattr(RESVMClassifier(contamination_unl=0.1), "predict_proba")
    for wrong in (1.5, "many"):
        with pytest.raises(ValueError, match="contamination_unl must be"):
            RESVMClassifier(contamination_unl=wrong).fit(X, y)
    mixed = np.random.default_rng(1).standard_normal(X.shape)
    estimator = RESVMClassifier(contamination_unl="estimate", n_models=9)
    with pytest.warns(ResultWarning, match="barely distinguishable"):
        estimator.fit(mixed, y)
    with pytest.raises(ModelError, match="give contamination_unl"):
        estimator.predict_proba(X)


def test_stacking_and_calibration_use_probabilities_if_they_are_offered(rows):
    X, y = rows
    estimator = RESVMClassifier(n_models=9, contamination_unl=0.2)
    stacked = StackingClassifier([("pu", estimator)], cv=2).fit(X, y)
    assert stacked.stack_method_ == ["predict_proba"]
    plain = StackingClassifier([("pu", RESVMClassifier(n_models=9))], cv=2).fit(X, y)
    assert plain.stack_method_ == ["decision_function"]
    for fitted in (stacked, plain, CalibratedClassifierCV(estimator, cv=2).fit(X, y)):
        assert roc_auc_score(y, fitted.predict_proba(X)[:, 1]) > 0.8


@each_label_as_the_positive_one
def test_tools_of_scikit_learn_agree_on_which_label_is_positive(rows, positive, other):
    X, y = rows
    labels = named(y, positive, other)
    estimator = ClassWeightedSVMClassifier(positive_label=positive)  # the fastest of the three
    fitted = clone(estimator).fit(X, labels)
    area = roc_auc_score(y, fitted.score_samples(X))
    assert area > 0.9
    assert get_scorer("roc_auc")(fitted, X, labels) == pytest.approx(area)
    assert get_scorer("accuracy")(fitted, X, labels) > 0.7

    # a kernel that is far too wide scores worst, and a search must not choose it
    grid = {"gamma": [1e3, 0.1]}
    search = GridSearchCV(estimator, grid, scoring="roc_auc", cv=2).fit(X, labels)
    assert search.best_params_ == {"gamma": 0.1}
    assert search.best_score_ > 0.8
    assert pu_score(search, X, labels) == pu_score(search.best_estimator_, X, labels) > 1

    calibrated = CalibratedClassifierCV(estimator, cv=2).fit(X, labels)
    column = calibrated.classes_.tolist().index(positive)
    assert roc_auc_score(y, calibrated.predict_proba(X)[:, column]) > 0.9
    assert pu_score(calibrated, X, labels) > 1

    # stacking numbers the sorted labels, and its inner estimators see those numbers
    number = int(positive > other)
    inner = clone(estimator).set_params(positive_label=number)
    stacked = StackingClassifier([("pu", inner)], cv=2).fit(X, labels)
    expected = clone(inner).fit(X, (labels == max(positive, other)).astype(int))
    values = stacked.named_estimators_["pu"].score_samples(X)
    np.testing.assert_array_equal(values, expected.score_samples(X))
    np.testing.assert_array_equal(values, fitted.score_samples(X))
    column = stacked.classes_.tolist().index(positive)
    assert roc_auc_score(y, stacked.predict_proba(X)[:, column]) > 0.9
    assert partial(pu_score, positive_label=positive)(stacked, X, labels) > 1


def test_a_label_that_is_not_there_is_refused(rows):
    X, y = rows
    names = named(y, "hit", "unknown")
    message = "^positive_label is 'hits', but y has 'hit' and 'unknown'$"
    with pytest.raises(ValueError, match=message):
        RESVMClassifier(positive_label="hits").fit(X, names)
    stacking = StackingClassifier([("pu", RESVMClassifier(positive_label="hit"))])
    message = (
        "^positive_label is 'hit', but y has 0 and 1\n.*replace the sorted labels with 0 and 1"
    )
    with pytest.raises(ValueError, match=message):
        stacking.fit(X, names)


def test_the_scorer_refuses_to_guess_the_positive_label(rows):
    X, y = rows
    inner = RESVMClassifier(n_models=2, oob=False, positive_label=0)
    stacked = StackingClassifier([("pu", inner)], cv=2).fit(X, named(y, "hit", "unknown"))
    with pytest.raises(ValueError, match="cannot tell which of 'hit' and 'unknown' is positive"):
        pu_score(stacked, X, named(y, "hit", "unknown"))


def test_labels_that_do_not_tell_which_is_positive_are_a_warning(rows):
    X, y = rows
    message = (
        "^2 is taken as the label of known positives and 1 as the label of unlabeled rows; set"
    )
    with pytest.warns(UserWarning, match=message) as caught:
        RESVMClassifier(n_models=2).fit(X, y + 1)
    assert caught[0].filename == __file__
    RESVMClassifier(n_models=2, positive_label=2).fit(X, y + 1)  # and no warning is an error here


def test_a_loaded_estimator_knows_the_labels_it_is_given(rows, tmp_path):
    X, y = rows
    fitted = RESVMClassifier(n_models=3).fit(X, y)
    fitted.save(tmp_path / "m")
    loaded = RESVMClassifier.load(tmp_path / "m", classes=("unknown", "hit"))
    assert loaded.classes_.tolist() == ["hit", "unknown"]
    np.testing.assert_array_equal(loaded.predict(X) == "hit", fitted.predict(X) == 1)
    np.testing.assert_array_equal(loaded.decision_function(X), -fitted.decision_function(X))
    again = clone(loaded).fit(X, named(y, "hit", "unknown"))
    np.testing.assert_array_equal(again.score_samples(X), fitted.score_samples(X))
    assert RESVMClassifier.load(tmp_path / "m").get_params()["positive_label"] is None
    for classes in ((1,), (1, 1), (0, 1, 2)):
        with pytest.raises(ValueError, match=r"^classes must be two labels"):
            RESVMClassifier.load(tmp_path / "m", classes=classes)


def test_a_tuned_estimator_is_shown_in_a_few_lines(rows):
    X, y = rows
    tuned = RESVMClassifier().tune(X, y, trials=2, n_models=4, committee=1)
    shown = repr(tuned)
    assert "sha256" not in shown
    assert f"n_pos={tuned.params['n_pos']}" in shown
    again = clone(tuned)
    assert again.params == tuned.params


def test_without_scikit_learn_the_import_names_the_pip_command():
    blocked = "import sys; sys.modules['sklearn'] = None; import resvm_cli.sklearn"
    ran = run([sys.executable, "-c", blocked])
    assert ran.code == 1
    assert "ModuleNotFoundError: resvm_cli.sklearn needs scikit-learn" in ran.err
    assert "pip install 'resvm-cli[sklearn]'" in ran.err
    ran = run([sys.executable, "-c", blocked.replace("'sklearn'", "'joblib'")])  # of scikit-learn
    assert ran.err.splitlines()[-1].startswith("ModuleNotFoundError: import of joblib halted")


def test_known_negatives_have_a_third_label_and_give_the_model_of_fit():
    X = np.random.default_rng(0).normal(size=(90, 2))
    X[:30] += 1.5
    y = np.repeat([1, 0, -1], [20, 50, 20])
    estimator = RESVMClassifier(n_models=5, negative_label=-1, w_neg=2.0).fit(X, y)
    expected = resvm_cli.fit(X, y, n_models=5, negative_label=-1, w_neg=2.0)
    assert estimator.classes_.tolist() == [0, 1]
    assert estimator.model_.stored.manifest == expected.stored.manifest
    assert set(estimator.predict(X)) <= {0, 1}
    assert np.isfinite(estimator.oob_decision_values_[-20:]).any()  # of known negatives
    assert 0.5 < estimator.score(X, y) <= 1
    named = np.array(["no", "open", "yes"])[y + 1]
    words = RESVMClassifier(n_models=5, negative_label="no", positive_label="yes").fit(X, named)
    assert words.classes_.tolist() == ["open", "yes"]
    numbers = RESVMClassifier(n_models=5, negative_label=-1).fit(X, y)
    np.testing.assert_array_equal(words.decision_function(X), numbers.decision_function(X))
