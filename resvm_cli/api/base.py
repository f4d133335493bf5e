"""What the estimators share: fitting and predicting with the same engine as the commands.

``classes_`` is sorted and ``decision_function`` is positive for ``classes_[1]``, as scikit-learn
expects; ``decision_values`` are larger for likelier positives, whatever the labels. The parameters
are the options of ``resvm train``, and ``random_state`` is its seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from types import MethodType
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
except ModuleNotFoundError as problem:
    if (problem.name or "").partition(".")[0] != "sklearn":
        raise
    raise ModuleNotFoundError(
        "the estimators of resvm_cli need scikit-learn, which is not installed: pip install"
        " 'resvm-cli[sklearn]'; resvm_cli.rank and tune work without it",
        name="sklearn",
    ) from None
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.utils.validation import (
    assert_all_finite,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from resvm_cli import threads as parallel
from resvm_cli.api.arguments import INVALID, documented, entry, run_for, seed_from, shared_entries
from resvm_cli.api.matrices import (
    CLEAR_PAIRS,
    ROLES,
    PathName,
    as_matrix,
    column_names,
    encoded_rows,
    fill_labels,
    find_classes,
    find_positive,
    is_table,
    labeled_rows,
    refuse_lossy,
    require_consistent,
    require_labels,
    roles_from,
    stacked,
)
from resvm_cli.data.encoding import ColumnRoles
from resvm_cli.data.notes import notes_on_rows, unconverged
from resvm_cli.ensemble.decisions import Decisions, fitted_classes, unknown_probability
from resvm_cli.ensemble.ensemble import Predictor
from resvm_cli.ensemble.importance import FeatureImportance, feature_importance
from resvm_cli.ensemble.oob import UnseenMask
from resvm_cli.errors import DataError, ParameterError, warn_caller
from resvm_cli.parameters import MethodName, RuleName, check_contamination
from resvm_cli.rows import FloatArray, Rows
from resvm_cli.storage.model import StoredModel, check_model_target, stored_encoding
from resvm_cli.tuning.choice import read_params
from resvm_cli.tuning.learn import learn, redrawn_rows, save

ROWS_AT_ONCE = 1 << 13
ESTIMATE = "estimate"
FRACTIONS = ("contamination_pos", "contamination_unl")  # for predict_proba
LABELS = ("positive_label", "negative_label")
# Parameters that the engine does not have.
OWN_NAMES = ("random_state", "n_jobs", *LABELS, *FRACTIONS, *ROLES)
# Manifest entries that describe the model's files, not the model itself.
FILE_ENTRIES = ("kind", "format", "out_of_bag", "members", "manifest_sha256")
X_TYPE = "array, sparse matrix or DataFrame"
ROWS = [entry("X", X_TYPE, "Rows with the same columns as in training, in the same order.")]
TRAINING_ROWS = [
    entry("X", X_TYPE, "One row per example; known positives alone, with ``unlabeled``."),
    entry("y", "array", "Two labels: one for known positives and one for unlabeled rows."),
    entry("unlabeled", f"{X_TYPE}, optional", "Unlabeled rows, instead of y; labels are 1 and 0."),
    *shared_entries("groups", "weights"),
]
Estimator = TypeVar("Estimator", bound="PUClassifier")


class _IfFractionGiven:
    """A method that exists only if the fraction of positives in U is given."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def __get__(self, estimator: Any, kind: type) -> Any:
        if estimator is None:
            return self._method
        if not hasattr(estimator, FRACTIONS[1]):
            raise AttributeError(
                f"{estimator.method} trains every member on all of P, so it cannot estimate how"
                " likely a row is to be positive: use RESVMClassifier"
            )
        if getattr(estimator, FRACTIONS[1]) is None:
            raise AttributeError(
                "predict_proba needs contamination_unl: set it to the fraction of unlabeled rows"
                f" that are positive, or to {ESTIMATE!r}"
            )
        return MethodType(self._method, estimator)


class PUClassifier(ClassifierMixin, BaseEstimator):
    """Base class of the three estimators."""

    method: ClassVar[MethodName]
    positive_label: Any
    negative_label: Any
    n_jobs: int | None
    random_state: Any
    _model: StoredModel  # the ensemble, as commands use it

    @documented(parameters=TRAINING_ROWS, raises=[INVALID])
    def fit(
        self: Estimator,
        X: Any,
        y: npt.ArrayLike | None = None,
        *,
        unlabeled: Any = None,
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
        """
        fitted = copy(self)  # so that an error changes nothing
        roles, run = roles_from(self.get_params(deep=False)), run_for(self.n_jobs)
        parameters = {"method": self.method, "seed": seed_from(self.random_state)}
        parameters |= self._options()
        params = read_params(parameters, molecules=roles.smiles is not None)
        X, labels, label, unlabeled = fitted._validated(X, y, unlabeled, roles, params.kernel)
        fitted._fractions()
        with parallel.one_blas_thread():
            labeled = labeled_rows(
                *(X, labels, label, self.negative_label, run),
                unlabeled=unlabeled,
                roles=roles,
                kernel=params.kernel,
            )
            data = labeled.data(groups, params.data_scale, kernel=params.kernel, weights=weights)
            part, model = learn(data, params, run)
            fitted._adopt(model)
        fitted.notes_ = tuple(run.notes)
        self.__dict__.clear()
        self.__dict__.update(fitted.__dict__)
        n_unconverged, solver = int(model.manifest["unconverged"]), part.plan.settings[0].solver
        note = unconverged(n_unconverged, self.n_models_, solver)
        warn_caller(text for text in run.warnings if text != note)
        warn_caller([] if note is None else [note], ConvergenceWarning)
        return self

    @documented(parameters=ROWS)
    def decision_function(self, X: Any) -> FloatArray:
        """Return a number for each row, above 0 if its predicted label is ``classes_[1]``.

        It is the decision value minus the threshold, or its negative if ``positive_label_`` is
        ``classes_[0]``. To rank rows, use ``decision_values``.

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

        {parameters}

        Returns
        -------
        array of float
            Larger for likelier positives, whatever the labels; above ``threshold_`` if the row is
            predicted positive.
        """
        return self._decisions(X).by(self.decision_)

    @documented(parameters=ROWS)
    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return labels: ``positive_label_`` where the decision value exceeds the threshold.

        {parameters}

        Returns
        -------
        array of labels
            One of ``classes_`` per row.
        """
        of_second = self.decision_function(X) > 0
        labels: npt.NDArray[Any] = self.classes_[of_second.astype(int)]
        return labels

    @_IfFractionGiven
    @documented(parameters=ROWS)
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, for new rows from the same distribution as U.

        ``contamination_unl`` must be set. The probability is computed from the out-of-bag values
        that are stored with the model, as in ``rank``. The predicted label need not have the larger
        probability, because the threshold is not based on probabilities.

        {parameters}

        Returns
        -------
        array, rows x 2
            One column for each of ``classes_``.
        """
        values = self.decision_values(X)
        classes = fitted_classes(
            self._model.out_of_bag, self.method, self.decision_, *self._fractions()
        )
        if unknown := unknown_probability(classes):
            raise unknown
        assert classes is not None
        chances = classes.probability(values)
        columns = [1 - chances, chances]
        return np.column_stack(
            columns if self.positive_label_ == self.classes_[1] else columns[::-1]
        )

    @documented(parameters=ROWS)
    def predict_votes(self, X: Any) -> FloatArray:
        """Return the fraction of members that predict each row positive.

        {parameters}

        Returns
        -------
        array of float
            From 0 to 1.
        """
        return self._decisions(X).votes

    @documented(parameters=ROWS)
    def member_values(self, X: Any) -> FloatArray:
        """Return the decision value of each member for each row.

        {parameters}

        Returns
        -------
        array of float
            One row per row of X, one column per member.
        """
        return np.concatenate(self._each_block(X, Predictor.member_values))

    def score(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the ROC AUC of known positives against unlabeled rows.

        Positives among the unlabeled rows pull it toward 1/2 by the same factor for every model.

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
        (other,) = self.classes_[self.classes_ != self.positive_label_]
        y = fill_labels(y, self.positive_label_, self.negative_label, _plain(other))
        if self.negative_label is not None:  # known negatives count as unlabeled rows
            y = np.where(np.asarray(y) == self.negative_label, other, np.asarray(y))
        return float(get_scorer("roc_auc")(self, X, y, sample_weight=sample_weight))

    @documented(parameters=TRAINING_ROWS)
    def importance(
        self,
        X: Any,
        y: npt.ArrayLike | None = None,
        *,
        unlabeled: Any = None,
        groups: Sequence[Any] | None = None,
        weights: npt.ArrayLike | None = None,
    ) -> tuple[FeatureImportance, ...]:
        """Return the features in order of out-of-bag permutation importance, largest first.

        It is the mean drop in the members' ROC AUC of P against U when the feature and those
        correlated with it are permuted. All arguments must be those of ``fit``.

        {parameters}

        Returns
        -------
        tuple of FeatureImportance
            Each has ``feature`` (a column number, from 0), ``name`` (the column's name or
            number), ``importance``, ``deviation`` (the standard deviation over members) and
            ``group`` (the same for correlated features).

        Raises
        ------
        ModelError
            If the model was trained on different rows, or its kernel is precomputed.
        ValueError
            If every member has seen all of P, as in bagging and cwsvm.
        """
        self._rows(X)  # checks the columns
        model, run = self._model, run_for(self.n_jobs)
        with parallel.one_blas_thread():
            kernel = model.ensemble.sections[0].kernel.name
            labeled = labeled_rows(
                *(X, y, _plain(self.positive_label_), self.negative_label, run),
                unlabeled=unlabeled,
                roles=roles_from(self.get_params(deep=False)),
                known=model.encoding,
                kernel=kernel,
            )
            data = labeled.data(
                groups, None, kernel=kernel, zero_based=model.zero_based, weights=weights
            )
            plan, problems, drawn = redrawn_rows(model, "model", data, run)
            mask = UnseenMask(problems, drawn)
            features = feature_importance(model.ensemble, data, mask, plan.seed, run)
        first = 0 if model.zero_based else 1
        return tuple(replace(each, feature=each.feature - first) for each in features)

    def save(self, path: PathName, *, force: bool = False) -> None:
        """Write a model directory that ``load_model`` and the commands can read.

        Parameters
        ----------
        path : str or path-like
            The directory to create.
        force : bool, default=False
            Whether to replace an existing model.
        """
        check_is_fitted(self)
        check_model_target(os.fspath(path), force=force)
        save(self._model, os.fspath(path), force=force)

    @cached_property
    def _predictor(self) -> Predictor:
        return Predictor(self._model.ensemble)

    def __getstate__(self) -> dict[str, Any]:
        """Return everything except the predictor, which is made again when it is needed."""
        return {name: each for name, each in super().__getstate__().items() if name != "_predictor"}

    def _adopt(self, model: StoredModel) -> None:
        """Set the attributes that describe a model."""
        manifest = {name: each for name, each in model.manifest.items() if name not in FILE_ENTRIES}
        encoding = model.encoding or stored_encoding(manifest)
        self._model = replace(model, manifest=manifest, encoding=encoding)
        self._predictor = Predictor(model.ensemble)
        self.manifest_ = manifest
        self.threshold_ = model.decision.threshold.value
        self.decision_: RuleName = model.decision.rule
        self.n_models_ = len(model.ensemble.members)

    def _validated(
        self, X: Any, y: Any, unlabeled: Any, roles: ColumnRoles, kernel: str
    ) -> tuple[Any, Any, Any, Any]:
        """Set what the data says; return the rows, their labels, that of P, and any U."""
        require_consistent(X)
        require_labels(X, y)
        given = [X] if unlabeled is None else [X, unlabeled]
        if unlabeled is not None and y is not None:
            raise ParameterError("give either `y` or `unlabeled`, not both")
        if kernel != "precomputed" and is_table(given, roles):
            validate_data(self, X, skip_check_array=True)
            if unlabeled is not None:
                self.classes_, self.positive_label_ = np.array([0, 1]), 1
                return X, None, None, unlabeled
            if y is None:
                raise ValueError("y is None, but fit requires y, or `unlabeled` rows")
            labels = fill_labels(y, self.positive_label, self.negative_label)
            rows, labels = X, column_or_1d(labels, warn=True)
            assert_all_finite(labels, input_name="y")
        else:
            if unlabeled is not None:
                n_pos, X = as_matrix(X).shape[0], stacked(*given)
                y = (np.arange(X.shape[0]) < n_pos).astype(int)
            labels = fill_labels(y, self.positive_label, self.negative_label)
            rows, labels = validate_data(self, X, labels, accept_sparse="csr", dtype=np.float64)
            refuse_lossy(X, "X")  # after scikit-learn's checks, which have their own messages
        refuse_lossy(y, "y")
        self.classes_ = find_classes(labels, self.negative_label)
        is_array = isinstance(y, np.ndarray) and column_names(X) is None
        self.positive_label_ = find_positive(self.classes_, self.positive_label, is_array=is_array)
        if self.positive_label is None and self.classes_.tolist() in CLEAR_PAIRS:
            return rows, labels, None, None  # the engine warns if most rows are positive
        return rows, labels, _plain(self.positive_label_), None

    def _rows(self, X: Any) -> Rows:
        """Return rows to predict, with the features of the model."""
        check_is_fitted(self)
        require_consistent(X)
        model, known = self._model, self._model.encoding
        is_matrix = column_names(X) is None
        numbered = not hasattr(X, "tocsr") and known is not None and known.columns[0].name == "1"
        if known is not None and (numbered or not is_matrix):
            if known.is_plain:  # in the same order, as in scikit-learn
                validate_data(self, X, skip_check_array=True, reset=False)
            rows, table = encoded_rows(X, known)
            warn_caller(notes_on_rows(table, "the model"))
            return rows
        if known is None or known.is_plain:
            matrix = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
            refuse_lossy(X, "X")
        else:
            matrix = as_matrix(X)
            if matrix.shape[1] != len(known.names):
                raise DataError(
                    f"X has {matrix.shape[1]:,} columns, but the model has"
                    f" {len(known.names):,} features",
                    "pass a data frame with the columns of the training rows",
                )
        counted_from_0 = model.zero_based and not model.ensemble.is_precomputed
        return Rows.from_matrix(matrix, 0 if counted_from_0 else 1)

    def _each_block(self, X: Any, apply: Callable[[Predictor, Rows], Any]) -> list[Any]:
        """Return what a method of the predictor returns for each block of rows."""
        rows = self._rows(X)
        blocks = [
            rows.slice(start, min(start + ROWS_AT_ONCE, len(rows)))
            for start in range(0, len(rows), ROWS_AT_ONCE)
        ]
        with parallel.one_blas_thread():
            each = partial(apply, self._predictor)
            return list(parallel.run(each, blocks, run_for(self.n_jobs).threads()))

    def _decisions(self, X: Any) -> Decisions:
        parts = self._each_block(X, Predictor.decisions)
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        joined = Decisions(*map(np.concatenate, columns))
        bad = np.flatnonzero(~np.isfinite(joined.sums))
        if len(bad):
            raise DataError(
                f"row {bad[0]} of X: the decision value is not finite",
                "the row is far from the training rows: was it scaled in the same way?",
            )
        return joined

    def _fractions(self) -> list[float | None]:
        """Return contamination_pos and contamination_unl; None means that it is estimated."""
        values = [getattr(self, name, None) for name in FRACTIONS]
        fractions = [None if value == ESTIMATE else value for value in values]
        check_contamination(*fractions)
        return fractions

    def _options(self) -> dict[str, Any]:
        """Return the engine parameters that the user set."""
        return {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in OWN_NAMES and value is not None
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        tags.classifier_tags.multi_class = False
        return tags


def _plain(label: Any) -> Any:
    """Return a label of an array as Python's own type."""
    return label.item() if hasattr(label, "item") else label
