"""The estimators pass scikit-learn's checks and work with its tools."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import resvm_cli
from resvm_cli import ClassWeightedSVMClassifier, RESVMClassifier, load_model
from resvm_cli.parameters import METHOD_TABLE
from tests.fitting import ESTIMATORS, estimator, fitted

KINDS = tuple(ESTIMATORS.values())
QUICK = ClassWeightedSVMClassifier()  # one member
# Without pandas, or scipy's switch for other arrays, these checks report that they do nothing.
MAY_SKIP = {"check_array_api_input", "check_classifier_data_not_an_array"}


@pytest.mark.filterwarnings("default")  # scikit-learn's, about checks that do not apply
@pytest.mark.parametrize("kind", KINDS)
def test_scikit_learn_finds_nothing_wrong(kind):
    checks = check_estimator(kind(), on_skip=None, on_fail="raise")
    assert len(checks) > 40
    assert {check["status"] for check in checks} <= {"passed", "skipped"}
    assert {check["check_name"] for check in checks if check["status"] == "skipped"} <= MAY_SKIP


@pytest.mark.parametrize("kind", KINDS)
def test_each_estimator_has_the_parameters_of_its_method(kind):
    unused = {name for name, row in METHOD_TABLE.items() if kind.method in row.unused}
    assert set(kind().get_params()) & set(METHOD_TABLE) == (
        set(METHOD_TABLE) - unused - {"method", "seed"}
    )
    with pytest.raises(TypeError, match="unexpected keyword argument 'n_bags'"):
        kind(n_bags=3)
    tags = get_tags(kind())
    assert tags.input_tags.sparse
    assert not tags.classifier_tags.multi_class
    assert tags.target_tags.required


def test_parameters_are_the_options_of_train_and_predict(resvm):
    shown = resvm("train", "--help-all").out.decode() + resvm("predict", "--help-all").out.decode()
    own = {"random_state", "n_jobs", "auto", "positive_label", "negative_label"}
    for kind in KINDS:
        for name in set(kind().get_params()) - own:
            assert f"--{name.replace('_', '-')}" in shown, name


def each_label_as_the_positive_one(test):
    """Run a test for three pairs of labels, with either label of each as the positive one."""
    pairs = [(0, 1), (1, -1), ("yes", "no")]
    cases = [case for pair in pairs for case in (pair, pair[::-1])]
    return pytest.mark.parametrize(("positive", "other"), cases)(test)


def named(y, positive, other):
    return np.where(y == 1, positive, other)


@each_label_as_the_positive_one
@pytest.mark.parametrize("method", ESTIMATORS)
def test_classes_are_sorted_whichever_label_is_positive(rows, method, positive, other):
    X, y = rows
    expected = fitted(X, y, method=method)
    labels = named(y, positive, other)
    model = fitted(X, labels, method=method, positive_label=positive)
    assert model.classes_.tolist() == sorted([positive, other])
    assert model.positive_label_ == positive
    assert model.manifest_["labels"]["trained_on"] == (
        None if isinstance(positive, str) else float(positive)
    )
    np.testing.assert_array_equal(model.decision_values(X), expected.decision_values(X))
    sign = 1 if positive > other else -1
    np.testing.assert_array_equal(model.decision_function(X), sign * expected.decision_function(X))
    np.testing.assert_array_equal(model.predict(X) == positive, expected.predict(X) == 1)
    area = roc_auc_score(y, model.decision_values(X))
    assert model.score(X, labels) == pytest.approx(area)
    # a row at the threshold is not predicted positive
    model.threshold_ = np.sort(model.decision_values(X))[-5]
    predicted, above = model.predict(X), model.decision_function(X) > 0
    over = model.decision_values(X) > model.threshold_
    np.testing.assert_array_equal(predicted == positive, over)
    np.testing.assert_array_equal(predicted == model.classes_[1], above)


@each_label_as_the_positive_one
def test_probabilities_are_in_the_order_of_the_classes(rows, positive, other):
    X, y = rows
    labels = named(y, positive, other)
    settings = {"positive_label": positive, "n_models": 9}
    expected = fitted(X, y, n_models=9, contamination_unl=0.2).predict_proba(X)
    model = fitted(X, labels, contamination_unl=0.2, **settings)
    chances = model.predict_proba(X)
    column = model.classes_.tolist().index(positive)
    np.testing.assert_array_equal(chances[:, [1 - column, column]], expected)
    estimated = fitted(X, labels, contamination_unl="estimate", **settings).predict_proba(X)
    assert roc_auc_score(y, estimated[:, column]) > 0.8


def test_probabilities_are_offered_only_if_the_fraction_is_given(rows):
    X, y = rows
    model = fitted(X, y, n_models=9)
    for one in (RESVMClassifier(), model, ESTIMATORS["bagging"]()):
        assert not hasattr(one, "predict_proba")
    with pytest.raises(AttributeError, match="set it to the fraction of unlabeled rows"):
        _ = model.predict_proba
    assert hasattr(RESVMClassifier(contamination_unl=0.1), "predict_proba")


def test_stacking_and_calibration_use_probabilities_if_they_are_offered(rows):
    X, y = rows
    one = estimator(n_models=9, contamination_unl=0.2)
    stacked = StackingClassifier([("pu", one)], cv=2).fit(X, y)
    assert stacked.stack_method_ == ["predict_proba"]
    plain = StackingClassifier([("pu", estimator(n_models=9))], cv=2).fit(X, y)
    assert plain.stack_method_ == ["decision_function"]
    for model in (stacked, plain, CalibratedClassifierCV(one, cv=2).fit(X, y)):
        assert roc_auc_score(y, model.predict_proba(X)[:, 1]) > 0.8


@each_label_as_the_positive_one
def test_tools_of_scikit_learn_agree_on_which_label_is_positive(rows, positive, other):
    X, y = rows
    labels = named(y, positive, other)
    one = ClassWeightedSVMClassifier(positive_label=positive)  # the fastest of the three
    model = clone(one).fit(X, labels)
    area = roc_auc_score(y, model.decision_values(X))
    assert area > 0.9
    assert get_scorer("roc_auc")(model, X, labels) == pytest.approx(area)
    assert get_scorer("accuracy")(model, X, labels) > 0.7

    # a kernel that is far too wide scores worst, and a search must not choose it
    pipeline, name = make_pipeline(StandardScaler(), one), "classweightedsvmclassifier__gamma"
    for scoring in (None, "roc_auc"):
        search = GridSearchCV(pipeline, {name: [1e3, 0.1]}, scoring=scoring, cv=2).fit(X, labels)
        assert search.best_params_ == {name: 0.1}
        assert search.best_score_ > 0.8

    calibrated = CalibratedClassifierCV(one, cv=2).fit(X, labels)
    column = calibrated.classes_.tolist().index(positive)
    assert roc_auc_score(y, calibrated.predict_proba(X)[:, column]) > 0.9

    # stacking numbers the sorted labels, and its inner estimators see those numbers
    number = int(positive > other)
    inner = clone(one).set_params(positive_label=number)
    stacked = StackingClassifier([("pu", inner)], cv=2).fit(X, labels)
    expected = clone(inner).fit(X, (labels == max(positive, other)).astype(int))
    values = stacked.named_estimators_["pu"].decision_values(X)
    np.testing.assert_array_equal(values, expected.decision_values(X))
    np.testing.assert_array_equal(values, model.decision_values(X))
    column = stacked.classes_.tolist().index(positive)
    assert roc_auc_score(y, stacked.predict_proba(X)[:, column]) > 0.9


def test_text_labels_of_a_table_are_not_guessed_and_may_be_missing(rows):
    pandas = pytest.importorskip("pandas")
    X, y = rows
    frame = pandas.DataFrame({"a": X[:, 0], "where": np.where(X[:, 1] > 0, "here", "there")})
    labels = pandas.Series(named(y, "hit", "no"))
    for table in (frame, X):
        with pytest.raises(ValueError, match="cannot tell which label marks known positives"):
            fitted(table, labels)
        model = fitted(table, labels.where(y == 1), positive_label="hit", n_models=3)
        assert model.classes_.tolist() == ["hit", "unlabeled"]
        assert model.score(table, labels.where(y == 1)) > 0.5
        with pytest.raises(ValueError, match=r"X has no rows: 0 sample\(s\)"):
            model.predict(table[:0])
    assert "where (2 values)" in " ".join(fitted(frame, y, n_models=3).notes_)


def test_a_label_that_is_not_there_is_refused(rows):
    X, y = rows
    stacking = StackingClassifier([("pu", RESVMClassifier(positive_label="hit"))])
    message = (
        "^`positive_label` is 'hit', but the labels in y are 0 and 1\n"
        ".*replace the sorted labels with 0 and 1"
    )
    with pytest.raises(ValueError, match=message):
        stacking.fit(X, named(y, "hit", "unknown"))


def test_scores_are_those_of_scikit_learn_whatever_the_weights(rows):
    X, y = rows
    model = clone(QUICK).fit(X, y)
    times = np.arange(150) % 4  # a weight counts as that many rows
    again = np.repeat(np.arange(150), times)
    expected = model.score(X[again], y[again])
    assert model.score(X, y, sample_weight=times) == pytest.approx(expected)
    assert model.score(X, y) != pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:Only one class is present")  # scikit-learn's
def test_labels_of_one_kind_have_no_score(rows):
    X, y = rows
    model = clone(QUICK).fit(X, y)
    assert np.isnan(model.score(X[y == 0], y[y == 0]))


def test_cross_validation_of_a_precomputed_kernel_takes_rows_and_columns(rows):
    X, y = rows
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    by_rows = cross_val_score(ClassWeightedSVMClassifier(gamma=0.1), X, y, cv=folds)
    K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    by_values = cross_val_score(ClassWeightedSVMClassifier(kernel="precomputed"), K, y, cv=folds)
    np.testing.assert_allclose(by_values, by_rows, atol=1e-3)


def test_a_loaded_estimator_knows_the_labels_it_is_given(rows, tmp_path):
    X, y = rows
    model = fitted(X, y, n_models=3)
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m", classes=("unknown", "hit"))
    assert loaded.classes_.tolist() == ["hit", "unknown"]
    np.testing.assert_array_equal(loaded.predict(X) == "hit", model.predict(X) == 1)
    np.testing.assert_array_equal(loaded.decision_function(X), -model.decision_function(X))
    again = clone(loaded).fit(X, named(y, "hit", "unknown"))
    np.testing.assert_array_equal(again.decision_values(X), model.decision_values(X))
    assert load_model(tmp_path / "m").get_params()["positive_label"] is None
    for classes in ((1,), (1, 1), (0, 1, 2)):
        with pytest.raises(ValueError, match=r"^`classes` must be two labels"):
            load_model(tmp_path / "m", classes=classes)


def test_a_tuned_estimator_is_shown_in_a_few_lines_and_cloned(rows):
    tuned = RESVMClassifier(params=resvm_cli.tune(*rows, trials=2, n_models=4, committee=1))
    assert repr(tuned).startswith("RESVMClassifier(params=<tuning: ")
    assert clone(tuned).params.params == tuned.params.params
