"""The Python API warns about results that need attention, and about no others."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import resvm_cli
from resvm_cli import ResultWarning
from resvm_cli.sklearn import BaggingSVMClassifier, ClassWeightedSVMClassifier, RESVMClassifier
from tests.conftest import write_svm

FUNCTIONS = (resvm_cli.fit, resvm_cli.rank, resvm_cli.tune)
SMALL = {"n_models": 6}


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = (rng.random(200) < 0.2).astype(int)
    centre = np.where((y == 1) | (rng.random(200) < 0.1), 1.0, -1.0)
    return rng.standard_normal((200, 5)) + centre[:, None], y


def messages(function, *arguments, **keywords) -> list[str]:
    """Return the warnings of a call; they must be ours and point to this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*arguments, **keywords)
    assert {one.category for one in caught} <= {ResultWarning}
    assert {one.filename for one in caught} <= {__file__}
    return [str(one.message) for one in caught]


@pytest.mark.parametrize(
    "keywords",
    [{}, {"auto": True}, {"scale": "auto"}, {"scale": "standard"}, {"method": "bagging"}],
    ids=str,
)
def test_sound_data_gives_no_warning(rows, keywords):
    for function in FUNCTIONS[: 2 if "method" not in keywords else 1]:
        assert messages(function, *rows, **keywords) == []


def test_neither_a_search_nor_a_ranking_with_negatives_gives_a_warning(rows):
    X, y = rows
    assert messages(resvm_cli.tune, X, y) == []
    assert messages(resvm_cli.tune, X, y, max_unl=50, trials=3, **SMALL) == []
    assert messages(resvm_cli.rank, X, y, negatives=X[y == 0][:60]) == []
    assert messages(resvm_cli.rank, X, y, audit=True) == []
    for kind in (RESVMClassifier, BaggingSVMClassifier, ClassWeightedSVMClassifier):
        assert messages(kind().fit, X, y) == []


def test_features_on_different_scales_are_warned_of_and_noted(rows):
    X, y = rows
    X = X * [1, 1, 1, 1, 1000.0]
    for function, keywords in ((resvm_cli.fit, SMALL), (resvm_cli.rank, SMALL)):
        found, *_ = messages(function, X, y, **keywords)  # rank adds that a feature ranks better
        assert found.startswith("the features are not scaled")
        assert 'scale="standard"' in found
        assert messages(function, X, y, scale="standard", **keywords) == []
    estimator = RESVMClassifier(**SMALL)
    (found,) = messages(estimator.fit, X, y)
    assert list(estimator.notes_) == [found]


def test_labels_at_random_are_warned_of(rows):
    X, _ = rows
    y = (np.arange(200) % 5 == 0).astype(int)
    for found in (messages(resvm_cli.fit, X, y), messages(RESVMClassifier().fit, X, y)):
        assert len(found) == 1
        assert found[0].startswith("known positives are barely distinguishable from U")


@pytest.mark.parametrize("other", [0, -1, False])
def test_swapped_labels_are_warned_of_until_the_positive_one_is_named(rows, other):
    X, y = rows
    positive = True if other is False else 1
    swapped = np.where(y == 1, other, positive)
    text = (
        "163 rows have the label 1 (known positives), but only 37 rows are unlabeled: are the"
        " labels swapped? set positive_label to be sure"
    )
    for function in FUNCTIONS:
        told: list[str] = []
        more = {} if function is resvm_cli.tune else SMALL
        assert text in messages(function, X, swapped, notice=told.append, **more)
        assert text in told
        assert text not in messages(function, X, swapped, positive_label=other, **more)
    estimator = RESVMClassifier(**SMALL)
    assert text in messages(estimator.fit, X, swapped)
    assert text in estimator.notes_
    for label in (other, positive):  # either choice was intentional
        named = RESVMClassifier(positive_label=label, **SMALL)
        assert text not in messages(named.fit, X, swapped)
    np.testing.assert_array_equal(
        RESVMClassifier(positive_label=other, **SMALL).fit(X, swapped).score_samples(X),
        RESVMClassifier(**SMALL).fit(X, y).score_samples(X),
    )


def test_what_did_not_converge_is_one_warning_of_scikit_learn(rows, monkeypatch):
    estimator = RESVMClassifier(**SMALL)
    monkeypatch.setattr("resvm_cli.api.Model.n_unconverged", 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(*rows)
    (one,) = caught
    assert one.category is ConvergenceWarning
    assert str(one.message).startswith("2 of 6 members stopped at LIBSVM's iteration limit")
    assert one.filename == __file__


def test_the_category_can_be_ignored_or_made_an_error(rows):
    X, _ = rows
    y = (np.arange(200) % 5 == 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResultWarning)
        model = resvm_cli.fit(X, y)
    assert len(model.notes) == 1
    with pytest.raises(ResultWarning, match="barely distinguishable"):  # warnings are errors here
        resvm_cli.fit(X, y)
    assert issubclass(ResultWarning, UserWarning)


def test_the_command_line_prints_notes_and_no_warnings(rows, resvm, tmp_path):
    X, _ = rows
    write_svm(tmp_path / "data.svm", X, (np.arange(200) % 5 == 0).astype(float))
    ran = resvm(
        "train", "--data", tmp_path / "data.svm", "--positive-label", 1, "-o", tmp_path / "m"
    )
    assert "note  known positives are barely distinguishable from U" in ran.err
    assert "Warning" not in ran.err
