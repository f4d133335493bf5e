"""What the estimators share: fitting, tuning and predicting with the engine of the commands.

``y`` has two labels: one for known positives and one for unlabeled rows. The positive one is
``positive_label``, or else the larger: 1 rather than 0 or -1, True rather than False.
``classes_`` is sorted and ``decision_function`` is positive for ``classes_[1]``, as scikit-learn
expects; ``score_samples`` is larger for likelier positives whatever the labels. The parameters are
the options of ``resvm train`` (docs/commands/train.md), and ``random_state`` is its seed: the same
rows give a byte-for-byte identical model.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
except ModuleNotFoundError as problem:
    if (problem.name or "").partition(".")[0] != "sklearn":
        raise
    raise ModuleNotFoundError(
        "resvm_cli.sklearn needs scikit-learn, which is not installed: pip install"
        " 'resvm-cli[sklearn]'; resvm_cli.fit, rank and tune work without it",
        name="sklearn",
    ) from None
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from resvm_cli import api
from resvm_cli.api import functions
from resvm_cli.api.arguments import (
    INVALID,
    SAVING,
    documented,
    entry,
    run_for,
    seed_from,
    shared_entries,
)
from resvm_cli.api.matrices import (
    ColumnLayout,
    PathName,
    labeled_rows,
    refuse_lossy,
    require_same_order,
)
from resvm_cli.errors import ModelError, ParameterError, warn_caller
from resvm_cli.parameters import SHARED_NAMES, MethodName, check_contamination
from resvm_cli.rows import FloatArray
from resvm_cli.sklearn.scoring import CLEAR_PAIRS, find_classes, find_positive, pu_roc_auc
from resvm_cli.training.choice import stored_parameters
from resvm_cli.training.train import unfinished_note

# Estimator parameters that the engine does not have.
FRACTIONS = ("contamination_pos", "contamination_unl")  # for predict_proba
LABELS = ("positive_label", "negative_label")
ESTIMATOR_PARAMETERS = ("random_state", "jobs", "n_jobs", "oob", *LABELS, *FRACTIONS)
ESTIMATE = "estimate"
X_TYPE = "array, sparse matrix or DataFrame"
ROWS = [entry("X", X_TYPE, "Rows with the same columns as in training, in the same order.")]
TRAINING_ROWS = [
    entry("X", X_TYPE, "Numbers, one row per example."),
    entry("y", "array", "Two labels: one for known positives and one for unlabeled rows."),
    *shared_entries("groups", "weights"),
]
OPTIONS = (
    "**options\n    Parameters of ``resvm_cli.tune``, such as ``trials`` or a range for ``c_unl``."
)

Estimator = TypeVar("Estimator", bound="PUClassifier")


class TunedParameters(dict[str, Any]):
    """Parameters chosen by ``tune``, with a short repr that leaves out digests."""

    def __repr__(self) -> str:
        chosen = [
            f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.items()
            if isinstance(value, (int, float, str)) and name not in ("kind", "format", "seed")
        ]
        return f"<tuned: {', '.join(chosen)}>"


def _has_fractions(estimator: PUClassifier) -> bool:
    """Tell scikit-learn whether predict_proba is available; if not, say why."""
    if not hasattr(estimator, FRACTIONS[1]):
        raise AttributeError(
            f"{estimator.method} trains every member on all of P, so it cannot estimate how likely"
            " a row is to be positive: use RESVMClassifier"
        )
    if getattr(estimator, FRACTIONS[1]) is None:
        raise AttributeError(
            "predict_proba needs contamination_unl: set it to the fraction of unlabeled rows that"
            f" are positive, or to {ESTIMATE!r}"
        )
    return True


class PUClassifier(ClassifierMixin, BaseEstimator):
    """Base class of the three estimators."""

    method: ClassVar[MethodName]
    positive_label: Any
    negative_label: Any
    jobs: int | None
    n_jobs: int | None
    random_state: Any

    @documented(parameters=TRAINING_ROWS, raises=[INVALID])
    def fit(
        self: Estimator,
        X: Any,
        y: npt.ArrayLike,
        *,
        groups: Sequence[Any] | None = None,
        weights: npt.ArrayLike | None = None,
    ) -> Estimator:
        """Learn from known positives and unlabeled rows.

        {parameters}

        Returns
        -------
        self
            The fitted estimator.

        {raises}

        Warns
        -----
        ResultWarning
            If the result needs attention; ``notes_`` has these and other notes.
        ConvergenceWarning
            If members stopped at the solver's iteration limit.
        """
        X, labels, label, negative = self._validated(X, y)
        self._fractions()
        run = run_for(self.jobs, self.n_jobs)
        labeled = labeled_rows(X, labels, label, negative, run)
        if (names := getattr(self, "feature_names_in_", None)) is not None:
            labeled = replace(labeled, columns=ColumnLayout(len(names), tuple(names)))
        parameters = {"method": self.method, "seed": self._seed(), **self._options()}
        oob = bool(getattr(self, "oob", False))
        model = functions.fit_on(run, labeled, groups, weights, oob, parameters)
        self._take(model)
        assert model.stored.plan is not None
        unfinished = [*map(str, unfinished_note(model.stored.plan, model.n_unconverged))]
        warn_caller(text for text in run.concerns if str(text) not in unfinished)
        warn_caller(unfinished, ConvergenceWarning)
        return self

    @documented(parameters=[*TRAINING_ROWS, OPTIONS], raises=[INVALID])
    def tune(
        self: Estimator,
        X: Any,
        y: npt.ArrayLike,
        *,
        groups: Sequence[Any] | None = None,
        weights: npt.ArrayLike | None = None,
        **options: Any,
    ) -> Estimator:
        """Choose parameters without known negatives, and store them in ``params`` for ``fit``.

        {parameters}

        Returns
        -------
        self
            The estimator, not fitted yet; ``tuning_`` holds the trials.

        {raises}
        """
        X, labels, label, negative = self._validated(X, y)
        given = self._options()
        shared = {name: given[name] for name in (*SHARED_NAMES, "scale") if name in given}
        tuning = api.tune(
            X,
            labels,
            positive_label=label,
            negative_label=negative,
            groups=groups,
            weights=weights,
            method=self.method,
            **{"seed": self._seed(), "jobs": self.jobs, "n_jobs": self.n_jobs, **shared, **options},
        )
        self.tuning_ = tuning
        return self.set_params(params=TunedParameters(tuning.params))  # type: ignore[no-any-return]

    @documented(parameters=ROWS)
    def decision_function(self, X: Any) -> FloatArray:
        """Return a number for each row, above 0 if its predicted label is ``classes_[1]``.

        It is the decision value minus the threshold, negated if ``positive_label_`` is
        ``classes_[0]``. To rank rows, use ``score_samples``.

        {parameters}

        Returns
        -------
        array of float
            One number per row.
        """
        margins = self.decision_values(X) - self.threshold_
        if self.positive_label_ == self.classes_[1]:
            return margins
        # a row at the threshold is not predicted positive, so it belongs to classes_[1]
        return np.where(margins == 0, np.finfo(float).tiny, -margins)

    @documented(parameters=ROWS)
    def decision_values(self, X: Any) -> FloatArray:
        """Return the decision values that ``resvm predict`` writes.

        They are larger for likelier positives, whatever the labels. ``score_samples`` returns the
        same values.

        {parameters}

        Returns
        -------
        array of float
            Above ``threshold_`` if the row is predicted positive.
        """
        rows = self._rows(X)  # first, because it checks that there is a model
        return self.model_.decision_values(rows)

    score_samples = decision_values

    @documented(parameters=ROWS)
    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return labels: ``positive_label_`` if the decision value exceeds the threshold.

        {parameters}

        Returns
        -------
        array of labels
            One of ``classes_`` per row.
        """
        of_second = self.decision_function(X) > 0
        labels: npt.NDArray[Any] = self.classes_[of_second.astype(int)]
        return labels

    @available_if(_has_fractions)  # type: ignore[untyped-decorator]
    @documented(parameters=ROWS)
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, for new rows from the same distribution as U.

        ``contamination_unl`` must be set. The predicted label need not have the larger probability,
        because the threshold is not based on it.

        {parameters}

        Returns
        -------
        array, rows x 2
            One column for each of ``classes_``.

        Raises
        ------
        ModelError
            If P and U overlap too much to estimate the probability.
        """
        rows = self._rows(X)
        chances = self.model_.predict_proba(rows, **self._fractions())
        return chances if self.positive_label_ == self.classes_[1] else chances[:, ::-1]

    @documented(parameters=ROWS)
    def predict_votes(self, X: Any) -> FloatArray:
        """Return the fraction of members that predict each row positive.

        {parameters}

        Returns
        -------
        array of float
            From 0 to 1.
        """
        rows = self._rows(X)
        return self.model_.votes(rows)

    def score(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the ROC AUC of known positives against unlabeled rows: ``pu_roc_auc``.

        Accuracy, the score of other classifiers, would reward a model for predicting that
        unlabeled positives are negative. The ROC AUC, unlike ``pu_score``, needs no threshold, and
        the model with the best area on P and U can be expected to be the best on positives and
        negatives.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame
            Rows that the estimator was not fitted on.
        y : array of labels
            The two labels that the estimator was fitted with.
        sample_weight : array, optional
            Weight of each row.

        Returns
        -------
        float
            From 0 to 1; 0.5 for a random order, nan if y has only one label.
        """
        if self.negative_label is not None:  # known negatives count as unlabeled rows
            (other,) = self.classes_[self.classes_ != self.positive_label_]
            y = np.where(np.asarray(y) == self.negative_label, other, np.asarray(y))
        return pu_roc_auc(self, X, y, sample_weight=sample_weight)

    @documented(**SAVING)
    def save(self, path: PathName, *, force: bool = False) -> None:
        """Write the model directory that the commands read.

        {parameters}

        {raises}
        """
        check_is_fitted(self)
        self.model_.save(path, force=force)

    @classmethod
    def load(cls: type[Estimator], path: PathName, classes: Sequence[Any] = (-1, 1)) -> Estimator:
        """Load a model that ``save`` or ``resvm train`` wrote.

        Fitting the estimator again on the same rows gives the same model.

        Parameters
        ----------
        path : str or path-like
            The model directory.
        classes : sequence of two labels, default=(-1, 1)
            The label of unlabeled rows, then the label of positives. Models do not store labels.

        Returns
        -------
        estimator
            A fitted estimator of this class.

        Raises
        ------
        ModelError
            If the model does not exist, is damaged, or uses another method.
        """
        model = api.load(path)
        if model.method != cls.method:
            fitting = {each.method: each.__name__ for each in PUClassifier.__subclasses__()}
            raise ModelError(
                f"{os.fspath(path)}: contains a {fitting[model.method]}, not a {cls.__name__}"
            )
        stored = stored_parameters(model.stored.plan, model.decision)
        declared = signature(cls).parameters
        stored["random_state"] = stored.pop("seed", declared["random_state"].default)
        found = cls(**{name: value for name, value in stored.items() if name in declared})
        found.classes_ = np.unique(classes)
        if len(classes) != 2 or len(found.classes_) != 2:
            raise ParameterError(
                "{classes} must be two labels, the positive one last, got {value!r}", value=classes
            )
        if list(classes) not in CLEAR_PAIRS:
            found.set_params(positive_label=classes[1])
        found.positive_label_ = find_positive(found.classes_, found.positive_label)
        found.n_features_in_ = model.n_features
        found._take(model)
        return found

    def _take(self, model: api.Model) -> None:
        self.model_ = model
        self.threshold_ = model.threshold.value
        self.decision_ = model.decision
        self.n_models_ = model.n_models
        self.notes_ = model.notes
        for name in ("oob_decision_values_", "oob_members_"):
            self.__dict__.pop(name, None)  # from an earlier fit
        if model.oob is not None:
            self.oob_decision_values_ = model.oob.decision_values
            self.oob_members_ = model.oob.members

    def _validated(self, X: Any, y: npt.ArrayLike) -> tuple[Any, npt.NDArray[Any], Any, Any]:
        """Return the rows, labels for the engine, and the labels that mark known rows."""
        rows, labels = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        refuse_lossy(X, "X")  # after scikit-learn's own checks, with their own messages
        refuse_lossy(y, "y")
        require_same_order(X, y)
        negative = self.negative_label
        self.classes_ = find_classes(labels, negative)
        self.positive_label_ = find_positive(self.classes_, self.positive_label)
        if self.positive_label is None and self.classes_.tolist() in CLEAR_PAIRS:
            return rows, labels, None, negative  # the engine warns if most rows are positive
        label = self.positive_label_
        return rows, labels, label.item() if hasattr(label, "item") else label, negative

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        rows = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        refuse_lossy(X, "X")
        return rows

    def _fractions(self) -> dict[str, float | None]:
        """Return contamination_pos and contamination_unl; None stands for an estimate."""
        values = {name: getattr(self, name, None) for name in FRACTIONS}
        found = {name: None if each == ESTIMATE else each for name, each in values.items()}
        check_contamination(*found.values())
        return found

    def _seed(self) -> int:
        return seed_from(np.random if self.random_state is None else self.random_state)

    def _options(self) -> dict[str, Any]:
        """Return the engine parameters that differ from their defaults."""
        declared = signature(type(self).__init__).parameters
        return {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in ESTIMATOR_PARAMETERS
            and not (value is declared[name].default or value == declared[name].default)
        }

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")  # tune sets attributes without fitting a model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags
