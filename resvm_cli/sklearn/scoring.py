"""Which label is positive, scorers that need no negatives, and folds that contain known positives.

``pu_roc_auc`` is the default because it needs no threshold and preserves the order of models. If
the known positives are a random sample of all positives, the expected ROC AUC of P against U is
``1/2 + (1 - b) (AUC - 1/2)``, where AUC is that of positives against negatives and b is the
fraction of positives in U.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from resvm_cli.errors import DataError, ParameterError, warn_caller
from resvm_cli.metrics.ranking import pu_score as pu_score_of
from resvm_cli.rows import IntArray

CLEAR_PAIRS = ([0, 1], [-1, 1])  # pairs of labels in which only 1 can be the positive one
NUMBERED = (
    "StackingClassifier and VotingClassifier replace the sorted labels with 0 and 1: inside them,"
    " set {positive_label} to 0 or 1"
)
_area = make_scorer(roc_auc_score, response_method=("decision_function", "predict_proba"))


def find_classes(labels: npt.NDArray[Any], negative: Any) -> npt.NDArray[Any]:
    """Return the labels of known positives and unlabeled rows, sorted; there must be two."""
    others: npt.NDArray[Any] = labels
    if negative is not None:
        others = labels if np.ndim(negative) else labels[labels != negative]
        if np.ndim(negative) or len(np.unique(others)) != 2:
            raise ParameterError(
                "{negative_label} is {value!r}; expected a label of y that leaves two others",
                value=negative,
            )
    kind = type_of_target(others, input_name="y", raise_unknown=True)
    if kind != "binary":
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}."
        )
    classes = np.unique(others)
    if len(classes) < 2:
        raise ValueError(f"y has only one class, {classes[0]!r}; two are needed")
    return classes


def find_positive(classes: npt.NDArray[Any], chosen: Any) -> Any:
    """Return the class that marks known positives: the chosen one, or else the larger."""
    labels = classes.tolist()
    if chosen is None:
        if labels not in CLEAR_PAIRS:
            text = (
                f"{labels[1]!r} is taken as the label of known positives and {labels[0]!r} as"
                " the label of unlabeled rows; set positive_label to be sure"
            )
            warn_caller([text])
        return classes[1]
    if chosen not in labels:
        raise ParameterError(
            "{positive_label} is {value!r}, but y has {there}",
            NUMBERED if labels == [0, 1] else None,
            value=chosen,
            there=" and ".join(map(repr, labels)),
        )
    return classes[labels.index(chosen)]


def pu_roc_auc(
    estimator: Any, X: Any, y: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Score a fitted classifier by its ROC AUC of known positives against unlabeled rows.

    This is the chance that a known positive has a larger decision value than an unlabeled row. It
    needs no negatives and no threshold. Positives among the unlabeled rows pull it toward 1/2 by
    the same factor for every model. The best model still has the best score, but this score
    understates how well the model separates positives from negatives. Pass ``pu_roc_auc`` as
    ``scoring`` to any scikit-learn tool.

    Parameters
    ----------
    estimator : fitted classifier
        Any classifier with ``decision_function`` or ``predict_proba``.
    X : array, sparse matrix or DataFrame
        One row per example; the estimator must not have been fitted on any of them.
    y : array of labels
        The two labels that the estimator was fitted with. The score does not depend on which of
        them marks known positives.
    sample_weight : array, optional
        Weight of each row. A pair of rows counts in proportion to the product of their weights.

    Returns
    -------
    float
        From 0 to 1; 0.5 for a random order, nan if y has only one label.

    See Also
    --------
    pu_score : A score of the predicted labels, which also depends on the threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.model_selection import cross_val_score
    >>> from resvm_cli.sklearn import PUStratifiedKFold, RESVMClassifier, pu_roc_auc
    >>> X, positive = make_blobs([200, 100], centers=[[0, 0], [2, 2]], random_state=0)
    >>> y = positive * (np.arange(300) % 3 == 0)  # a third of the positives are labeled
    >>> areas = cross_val_score(
    ...     RESVMClassifier(n_models=10), X, y, scoring=pu_roc_auc, cv=PUStratifiedKFold(3)
    ... )
    >>> areas.round(2)
    array([0.83, 0.86, 0.86])
    """
    return float(_area(estimator, X, y, sample_weight=sample_weight))


def pu_score(
    estimator: Any,
    X: Any,
    y: npt.ArrayLike,
    *,
    positive_label: Any = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Score predicted labels without negatives: recall² / fraction predicted positive.

    Recall is computed over the known positives. The score has no upper bound, and it is
    proportional to precision x recall if the known positives are a random sample of all positives.
    It depends on the threshold, so use it to choose one; to compare models by their ranking, use
    ``pu_roc_auc``. Pass ``pu_score`` as ``scoring`` to any scikit-learn tool.

    Parameters
    ----------
    estimator : fitted classifier
        Any classifier with two labels.
    X : array, sparse matrix or DataFrame
        One row per example; the estimator must not have been fitted on any of them.
    y : array of labels
        The two labels that the estimator was fitted with.
    positive_label : label, optional
        The label of known positives. Default: the ``positive_label`` of the estimator, or of the
        estimator inside a pipeline, search or calibration; if it is not set, the larger label.
    sample_weight : array, optional
        Weight of each row, for both the recall and the fraction.

    Returns
    -------
    float
        At least 0; nan if y has no known positives.

    Raises
    ------
    ValueError
        If the positive label is unknown, as in a ``StackingClassifier``. In that case use
        ``functools.partial(pu_score, positive_label=...)``.

    See Also
    --------
    pu_roc_auc : A score of decision values, which does not depend on the threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from resvm_cli.sklearn import RESVMClassifier, pu_score
    >>> X, positive = make_blobs([200, 100], centers=[[0, 0], [2, 2]], random_state=0)
    >>> y = positive * (np.arange(300) % 3 == 0)
    >>> fitted = RESVMClassifier(n_models=10).fit(X[::2], y[::2])
    >>> round(pu_score(fitted, X[1::2], y[1::2]), 2)
    2.12
    """
    labels, chosen = estimator.classes_.tolist(), [positive_label]
    if positive_label is None:
        chosen = [
            value
            for name, value in estimator.get_params().items()
            if name.rpartition("__")[2] == "positive_label" and value is not None
        ] or [labels[1]]
    if chosen[0] not in labels or any(each != chosen[0] for each in chosen):
        raise ParameterError(
            "pu_score cannot tell which of {labels} is positive",
            "set its {positive_label}, as in functools.partial(pu_score, positive_label=...)",
            labels=" and ".join(map(repr, labels)),
        )
    known, predicted = np.asarray(y) == chosen[0], estimator.predict(X) == chosen[0]
    weights = np.ones(len(known)) if sample_weight is None else np.asarray(sample_weight, float)
    if not weights[known].sum():
        return float("nan")
    recall = np.average(predicted[known], weights=weights[known])
    return float(pu_score_of(recall, np.average(predicted, weights=weights)))


class PUStratifiedKFold(StratifiedGroupKFold):
    """Split rows into random folds with the same fraction of known positives and a fixed seed.

    It differs from ``StratifiedKFold`` in four ways. It shuffles rows by default, because P often
    precedes U. It rejects more folds than there are known positives, because a fold without known
    positives has no score. It keeps groups together if you pass them. It orders each training set
    so that its first n rows also have the same fraction of known positives, which
    ``learning_curve`` needs.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=True
        Whether to assign rows to folds at random.
    random_state : int, RandomState or None, default=0
        The seed of the folds. None gives different folds every time.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.model_selection import learning_curve
    >>> from resvm_cli.sklearn import PUStratifiedKFold, RESVMClassifier
    >>> X, positive = make_blobs([200, 100], centers=[[0, 0], [2, 2]], random_state=0)
    >>> y = positive * (np.arange(300) % 3 == 0)
    >>> order = np.argsort(-y, kind="stable")  # P before U
    >>> sizes, _, scores = learning_curve(
    ...     RESVMClassifier(n_models=10),
    ...     X[order],
    ...     y[order],
    ...     cv=PUStratifiedKFold(3),
    ...     train_sizes=[0.5, 1.0],
    ... )
    >>> sizes, scores.mean(axis=1).round(2)
    (array([100, 200]), array([0.85, 0.85]))
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = True, random_state: Any = 0) -> None:
        state = random_state if shuffle else None
        super().__init__(n_splits=n_splits, shuffle=shuffle, random_state=state)
        self.random_state = random_state

    def split(
        self, X: Any, y: npt.ArrayLike, groups: npt.ArrayLike | None = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the indices of the training rows and of the test rows of each fold.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame
            One row per example; only their number matters.
        y : array of labels
            Two labels: one for known positives and one for unlabeled rows.
        groups : array, optional
            One group per row. A group is never in both the training set and the test set.

        Yields
        ------
        train, test : arrays of int
            Indices of rows.

        Raises
        ------
        ValueError
            If a label has fewer rows, or rows from fewer groups, than there are folds.
        """
        names, labels = np.unique(np.asarray(y), return_inverse=True)
        units = np.arange(len(labels)) if groups is None else np.asarray(groups)
        for label, name in enumerate(names.tolist()):
            n_units = len(np.unique(units[labels == label]))
            if n_units < self.n_splits:
                what = "rows" if groups is None else "groups of rows"
                raise DataError(
                    f"{n_units} {what} have the label {name!r}, too few for {self.n_splits} folds",
                    "use fewer folds, or label more rows",
                )
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        seed = self.random_state if self.shuffle else None
        folds = kind(self.n_splits, shuffle=self.shuffle, random_state=seed)
        rng = check_random_state(seed) if self.shuffle else None
        for train, test in folds.split(np.zeros(len(labels)), labels, groups):
            yield _interleaved(train, labels[train], rng), test


def _interleaved(rows: IntArray, labels: IntArray, rng: Any) -> IntArray:
    """Return the rows in an order that gives every prefix the same label fractions."""
    place = np.empty(len(rows))
    for label in np.unique(labels):
        (at,) = np.nonzero(labels == label)
        at = at if rng is None else rng.permutation(at)
        place[at] = (np.arange(len(at)) + 0.5) / len(at)
    order: IntArray = rows[np.argsort(place, kind="stable")]
    return order
