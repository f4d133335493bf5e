"""Scorers and folds agree with scikit-learn's metrics and work in its tools."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import StackingClassifier
from sklearn.metrics import recall_score, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from resvm_cli.sklearn import (
    BaggingSVMClassifier,
    ClassWeightedSVMClassifier,
    PUStratifiedKFold,
    RESVMClassifier,
    pu_roc_auc,
    pu_score,
)

ESTIMATORS = (RESVMClassifier, BaggingSVMClassifier, ClassWeightedSVMClassifier)
LABELS = [(1, 0), (1, -1), (0, 1), (2, 1), ("hit", "unknown"), (True, False)]
QUICK = ClassWeightedSVMClassifier()  # one member


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Return P before U, as when files are stacked."""
    rng = np.random.default_rng(11)
    y = np.repeat([1, 0], [45, 105])
    centre = np.where((y == 1) | (rng.random(150) < 0.2), 1.0, -1.0)
    return rng.standard_normal((150, 4)) + centre[:, None], y


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize(("positive", "other"), LABELS)
def test_score_is_the_area_of_p_against_u_whatever_the_labels(rows, kind, positive, other):
    X, y = rows
    labels = np.where(y == 1, positive, other)
    fitted = kind(positive_label=positive).fit(X, labels)
    area = roc_auc_score(y, fitted.score_samples(X))
    assert fitted.score(X, labels) == pytest.approx(area)
    assert pu_roc_auc(fitted, X, labels) == fitted.score(X, labels)
    weights = np.linspace(0.1, 2, 150)
    weighted = roc_auc_score(y, fitted.score_samples(X), sample_weight=weights)
    assert fitted.score(X, labels, weights) == pytest.approx(weighted)
    assert weighted != area
    assert fitted.score(X, labels) != pytest.approx((fitted.predict(X) == labels).mean())


def test_rows_of_weight_zero_do_not_count(rows):
    X, y = rows
    fitted = clone(QUICK).fit(X, y)
    counted = np.arange(150) % 2 == 0
    for scorer in (pu_roc_auc, pu_score):
        expected = scorer(fitted, X[counted], y[counted])
        assert scorer(fitted, X, y, sample_weight=counted) == pytest.approx(expected)
        assert scorer(fitted, X, y) != pytest.approx(expected)
    assert np.isnan(pu_score(fitted, X, y, sample_weight=y == 0))


def test_a_weight_counts_as_that_many_rows(rows):
    X, y = rows
    fitted = clone(QUICK).fit(X, y)
    times = np.arange(150) % 4
    again = np.repeat(np.arange(150), times)
    for scorer in (pu_roc_auc, pu_score):
        expected = scorer(fitted, X[again], y[again])
        assert scorer(fitted, X, y, sample_weight=times) == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:Only one class is present")  # scikit-learn's
def test_labels_of_one_kind_have_no_score(rows):
    X, y = rows
    fitted = clone(QUICK).fit(X, y)
    assert np.isnan(fitted.score(X[y == 0], y[y == 0]))
    assert np.isnan(pu_score(fitted, X[y == 0], y[y == 0]))


@pytest.mark.parametrize(
    ("positive", "other", "scoring"),
    [
        *((*labels, pu_score) for labels in LABELS),
        *((*labels, scoring) for labels in LABELS[2:5:2] for scoring in (None, pu_roc_auc)),
    ],
)
def test_tools_of_scikit_learn_score_without_negatives(rows, positive, other, scoring):
    X, y = rows
    labels = np.where(y == 1, positive, other)
    pipeline = make_pipeline(StandardScaler(), ClassWeightedSVMClassifier(positive_label=positive))
    folds = PUStratifiedKFold(3)
    scores = cross_val_score(pipeline, X, labels, scoring=scoring, cv=folds)
    for score, (train, test) in zip(scores, folds.split(X, labels), strict=True):
        fitted = clone(pipeline).fit(X[train], labels[train])
        if scoring is pu_score:
            found = fitted.predict(X[test]) == positive
            expected = recall_score(y[test], found) ** 2 / found.mean()
        else:
            expected = roc_auc_score(y[test], fitted.score_samples(X[test]))
        assert score == pytest.approx(expected)
    # a kernel that is far too narrow must not win
    grid = {"classweightedsvmclassifier__gamma": [1e3, 0.1]}
    search = GridSearchCV(pipeline, grid, scoring=scoring, cv=folds).fit(X, labels)
    assert search.best_params_ == {"classweightedsvmclassifier__gamma": 0.1}
    assert search.score(X, labels) > 0.8
    sizes, _, curve = learning_curve(
        pipeline, X, labels, scoring=scoring, cv=folds, train_sizes=[10, 100]
    )
    assert sizes.tolist() == [10, 100]
    assert np.isfinite(curve).all()


def test_several_scores_at_once(rows):
    found = cross_validate(
        QUICK, *rows, scoring={"area": pu_roc_auc, "pu": pu_score}, cv=PUStratifiedKFold(3)
    )
    assert (found["test_area"] > 0.5).all()
    assert (found["test_pu"] > 1).all()


def test_stacked_classifiers_are_scored(rows):
    X, y = rows
    labels = np.where(y == 1, "hit", "unknown")
    inner = ClassWeightedSVMClassifier(positive_label=0)
    stacked = StackingClassifier([("pu", inner)], cv=PUStratifiedKFold(3)).fit(X, labels)
    chances = stacked.predict_proba(X)[:, 0]
    assert pu_roc_auc(stacked, X, labels) == pytest.approx(roc_auc_score(y, chances))
    assert partial(pu_score, positive_label="hit")(stacked, X, labels) > 1


def test_each_row_is_tested_once_and_folds_have_known_positives(rows):
    X, y = rows
    tested = []
    for train, test in PUStratifiedKFold(4).split(X, y):
        assert sorted([*train, *test]) == list(range(150))
        assert y[test].sum() in (11, 12)
        tested += test.tolist()
    assert sorted(tested) == list(range(150))


def test_the_beginning_of_a_training_set_is_like_the_whole(rows):
    X, y = rows
    for folds in (PUStratifiedKFold(3), PUStratifiedKFold(3, shuffle=False)):
        for train, _ in folds.split(X, y):
            fraction = y[train].mean()
            found = np.cumsum(y[train])
            assert np.abs(found - fraction * np.arange(1, len(train) + 1)).max() <= 1
    train, _ = next(StratifiedKFold(3).split(X, y))
    assert y[train][:30].all()  # no model can be fitted on them


def test_folds_are_random_and_repeatable(rows):
    X, y = rows

    def tests(folds):
        return [test.tolist() for _, test in folds.split(X, y)]

    def trains(folds):
        return [train.tolist() for train, _ in folds.split(X, y)]

    assert tests(PUStratifiedKFold(3)) == tests(PUStratifiedKFold(3))
    assert trains(PUStratifiedKFold(3)) == trains(PUStratifiedKFold(3))
    assert tests(PUStratifiedKFold(3)) != tests(PUStratifiedKFold(3, random_state=1))
    assert tests(PUStratifiedKFold(3, shuffle=False)) == tests(StratifiedKFold(3))
    shown = "PUStratifiedKFold(n_splits=3, random_state=0, shuffle=True)"
    assert repr(PUStratifiedKFold(3)) == shown


def test_groups_are_kept_together(rows):
    X, y = rows
    groups = np.arange(150) // 5
    for train, test in PUStratifiedKFold(3).split(X, y, groups):
        assert not set(groups[train]) & set(groups[test])
        assert 0.2 < y[test].mean() < 0.4
    scores = cross_val_score(QUICK, X, y, groups=groups, cv=PUStratifiedKFold(3))
    assert np.isfinite(scores).all()


def test_more_folds_than_known_positives_are_refused(rows):
    X, y = rows
    few = np.where(np.arange(150) < 3, "hit", "unknown")
    with pytest.raises(ValueError, match=r"^3 rows have the label 'hit', too few for 4 folds"):
        next(PUStratifiedKFold(4).split(X, few))
    with pytest.raises(
        ValueError, match=r"^2 groups of rows have the label 1, too few for 3 folds"
    ):
        next(
            PUStratifiedKFold(3).split(X, y, np.where(y == 1, np.arange(150) // 40, np.arange(150)))
        )
