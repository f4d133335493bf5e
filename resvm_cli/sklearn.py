"""Estimators for scikit-learn (1.6 and later) that use the same engine as the commands.

``y`` has two labels: one of known positives and one of unlabeled rows. The positive one is
``positive_label``, or else the larger: 1 of 1 and 0, of 1 and -1, True of True and False.
``classes_`` is sorted and ``decision_function`` is positive for ``classes_[1]``, as scikit-learn
expects; ``score_samples`` is larger for likelier positives whatever the labels. The parameters are
the options of ``resvm train`` (docs/commands/train.md), and ``random_state`` is its seed: the same
rows give a byte-for-byte identical model.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from inspect import Parameter, Signature, signature
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
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from resvm_cli import api
from resvm_cli.api.matrices import PathName, refuse_lossy
from resvm_cli.errors import ModelError, ParameterError
from resvm_cli.metrics.ranking import pu_score as pu_score_of
from resvm_cli.model.ensemble import Decisions
from resvm_cli.model.plan import Plan
from resvm_cli.parameters import (
    METHOD_TABLE,
    SHARED_NAMES,
    MethodName,
    MethodParameters,
    Setting,
    check_contamination,
)
from resvm_cli.rows import FloatArray
from resvm_cli.training import best_json

MAX_SEED = 2**31 - 1
# Estimator parameters that the engine does not have.
FRACTIONS = ("contamination_pos", "contamination_unl")  # for predict_proba
ESTIMATOR_PARAMETERS = ("random_state", "jobs", "oob", "positive_label", *FRACTIONS)
ESTIMATE = "estimate"
NUMBERED = (
    "StackingClassifier and VotingClassifier replace the sorted labels by 0 and 1: inside these,"
    " set {positive_label} to 0 or 1"
)
CLEAR_PAIRS = ([0, 1], [-1, 1])  # labels of which 1 can only be the positive one

Estimator = TypeVar("Estimator", bound="_PUClassifier")


def _has_fractions(estimator: _PUClassifier) -> bool:
    """Tell scikit-learn whether predict_proba is available; else say why not."""
    settings = estimator.get_params(deep=False)
    if FRACTIONS[1] not in settings:
        raise AttributeError(
            f"{estimator.method} trains every member on all of P, so nothing tells how likely a row"
            " is positive: use RESVMClassifier"
        )
    if settings[FRACTIONS[1]] is None:
        raise AttributeError(
            "predict_proba needs contamination_unl: set it to the fraction of unlabeled rows that"
            f" are positive, or to {ESTIMATE!r}"
        )
    return True


def _constructor(method: MethodName, **more: Any) -> Any:
    """Return the ``__init__`` of an estimator, with the method's parameters from the table."""
    defaults = {
        name: parameter.default
        for name, parameter in METHOD_TABLE.items()
        if name not in ("method", "seed") and method not in parameter.unused
    }
    defaults |= {"scale": None, **more, "params": None}
    defaults |= {"positive_label": None, "jobs": None, "random_state": 0}

    def __init__(self: Any, **given: Any) -> None:
        for name in given:
            if name not in defaults:
                raise TypeError(f"__init__() got an unexpected keyword argument '{name}'")
        for name, default in defaults.items():
            setattr(self, name, given.get(name, default))

    keywords = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default)
        for name, default in defaults.items()
    ]
    itself = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    vars(__init__)["__signature__"] = Signature([itself, *keywords])
    return __init__


class _PUClassifier(ClassifierMixin, BaseEstimator):
    """Base class of the three estimators."""

    method: ClassVar[MethodName]

    def fit(
        self: Estimator,
        X: Any,
        y: npt.ArrayLike,
        *,
        groups: Sequence[Any] | None = None,
        weights: npt.ArrayLike | None = None,
    ) -> Estimator:
        """Learn from known positives and unlabeled rows; see ``resvm_cli.fit``.

        Rows of one group are never split between a bag and the rows that it scores. ``weights``
        gives the confidence in known positives, from 0 to 1, one number per row of X (resvm only).
        """
        X, labels, label = self._validated(X, y)
        settings = self.get_params(deep=False)
        self._fractions()
        model = api.fit(
            X,
            labels,
            positive_label=label,
            groups=groups,
            weights=weights,
            oob=bool(settings.get("oob", False)),
            jobs=settings["jobs"],
            method=self.method,
            seed=self._seed(),
            **self._options(),
        )
        self._take(model)
        if model.n_unconverged:
            warnings.warn(
                f"{model.n_unconverged} of {model.n_models} members stopped"
                " at the solver's iteration limit: scale the features or lower c_unl",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def tune(
        self: Estimator,
        X: Any,
        y: npt.ArrayLike,
        *,
        groups: Sequence[Any] | None = None,
        weights: npt.ArrayLike | None = None,
        **options: Any,
    ) -> Estimator:
        """Choose parameters without negatives and set ``params`` to them, for ``fit`` to use.

        ``options`` are the parameters of ``resvm_cli.tune``; ``tuning_`` holds the trials.
        """
        X, labels, label = self._validated(X, y)
        given = self._options()
        shared = {name: given[name] for name in (*SHARED_NAMES, "scale") if name in given}
        tuning = api.tune(
            X,
            labels,
            positive_label=label,
            groups=groups,
            weights=weights,
            method=self.method,
            **{"seed": self._seed(), "jobs": self.get_params()["jobs"], **shared, **options},
        )
        self.tuning_ = tuning
        return self.set_params(params=_Chosen(tuning.params))  # type: ignore[no-any-return]

    def decision_function(self, X: Any) -> FloatArray:
        """Return a number for each row, above 0 if it is predicted to be of ``classes_[1]``.

        It is the decision value minus the threshold, negated if ``positive_label_`` is
        ``classes_[0]``. To rank rows, use ``score_samples``.
        """
        margins = self.decision_values(X) - self.threshold_
        if self.positive_label_ == self.classes_[1]:
            return margins
        # a row at the threshold is not predicted positive, so it belongs to classes_[1]
        return np.where(margins == 0, np.finfo(float).tiny, -margins)

    def decision_values(self, X: Any) -> FloatArray:
        """Return the decision values that ``resvm predict`` writes."""
        return self._decisions(X).by(self.model_.decision)

    def score_samples(self, X: Any) -> FloatArray:
        """Return the decision values: larger for likelier positives, whatever the labels."""
        return self.decision_values(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return labels: ``positive_label_`` if the decision value exceeds the threshold."""
        of_second = self.decision_function(X) > 0
        labels: npt.NDArray[Any] = self.classes_[of_second.astype(int)]
        return labels

    @available_if(_has_fractions)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the chance of each of ``classes_``, for new rows like the unlabeled ones.

        ``contamination_unl`` must be set. The larger chance need not be that of the predicted
        label, because the threshold is not chosen by it. If P and U overlap too much to estimate
        the chance, it is an error.
        """
        rows = self._rows(X)
        chances: FloatArray = self.model_.predict_proba(rows, **self._fractions())
        return chances if self.positive_label_ == self.classes_[1] else chances[:, ::-1]

    def predict_votes(self, X: Any) -> FloatArray:
        """Return the fraction of members that predict each row positive."""
        return self._decisions(X).votes

    def save(self, path: PathName, *, force: bool = False) -> None:
        """Write the model directory that the commands read."""
        check_is_fitted(self)
        self.model_.save(path, force=force)

    @classmethod
    def load(cls: type[Estimator], path: PathName, classes: Sequence[Any] = (-1, 1)) -> Estimator:
        """Load a model that ``save`` or ``resvm train`` wrote.

        Models do not store labels: ``classes`` gives the label of unlabeled rows, then that of
        positives. Fitting the estimator again on the same rows gives the same model.
        """
        model = api.load(path)
        if model.method != cls.method:
            fitting = {each.method: each.__name__ for each in _PUClassifier.__subclasses__()}
            raise ModelError(
                f"{os.fspath(path)}: holds a {fitting[model.method]}, not a {cls.__name__}"
            )
        found = cls(**_stored_parameters(cls, model))
        found.classes_ = np.unique(classes)
        if len(classes) != 2 or len(found.classes_) != 2:
            raise ParameterError(
                "{classes} must be two labels, that of positives last, got {value!r}", value=classes
            )
        if list(classes) not in CLEAR_PAIRS:
            found.set_params(positive_label=classes[1])
        found.positive_label_ = found._positive_label()
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

    def _validated(self, X: Any, y: npt.ArrayLike) -> tuple[Any, npt.NDArray[Any], Any]:
        """Return the rows, their labels, and the label of known positives."""
        rows, labels = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        refuse_lossy(X, "X")  # after scikit-learn's own checks, with their own messages
        refuse_lossy(y, "y")
        kind = type_of_target(labels, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(f"y has only one class, {self.classes_[0]!r}; two are needed")
        label = self.positive_label_ = self._positive_label()
        if isinstance(label, (np.number, np.bool_, float, int)):
            return rows, labels, label.item() if hasattr(label, "item") else label
        return rows, np.where(labels == label, "1", "0"), "1"  # a manifest stores only numbers

    def _positive_label(self) -> Any:
        """Return the one of ``classes_`` that marks known positives."""
        chosen, labels = self.get_params(deep=False)["positive_label"], self.classes_.tolist()
        if chosen is None:
            if labels not in CLEAR_PAIRS:
                warnings.warn(
                    f"{labels[1]!r} is taken as the label of known positives and {labels[0]!r} as"
                    " that of unlabeled rows; set positive_label to be sure",
                    UserWarning,
                    stacklevel=4,
                )
            return self.classes_[1]
        if chosen not in labels:
            raise ParameterError(
                "{positive_label} is {value!r}, but y has {there}",
                NUMBERED if labels == [0, 1] else None,
                value=chosen,
                there=" and ".join(map(repr, labels)),
            )
        return self.classes_[labels.index(chosen)]

    def _decisions(self, X: Any) -> Decisions:
        rows = self._rows(X)
        return self.model_.decisions(rows)

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        rows = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        refuse_lossy(X, "X")
        return rows

    def _fractions(self) -> dict[str, float | None]:
        """Return contamination_pos and contamination_unl, None if they are to be estimated."""
        settings = self.get_params(deep=False)
        values = {name: settings.get(name) for name in FRACTIONS}
        found = {name: None if each == ESTIMATE else each for name, each in values.items()}
        check_contamination(*found.values())
        return found

    def _seed(self) -> int:
        state = self.get_params(deep=False)["random_state"]
        if isinstance(state, (int, np.integer)):
            if state < 0:
                raise ParameterError("{random_state} must be at least 0, got {value}", value=state)
            return int(state)
        try:
            return int(check_random_state(state).randint(MAX_SEED))
        except ValueError as error:
            raise ParameterError("{random_state}: {error}", error=error) from None

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


class RESVMClassifier(_PUClassifier):
    """A robust ensemble of SVMs, each trained on rows of P and of U drawn with replacement.

    The parameters are those of ``resvm train``, plus ``auto`` (True to score settings out of bag
    and pool the best, or "single" to use only the best one; parameters that differ from their
    defaults are not changed), ``params`` (the result of ``tune``), ``oob`` (whether to set
    ``oob_decision_values_`` and ``oob_members_``), ``positive_label``, ``jobs`` and
    ``random_state``. ``contamination_unl``, the fraction of U that is positive or "estimate", makes
    ``predict_proba`` available; ``contamination_pos``, the fraction of P that is negative, is
    estimated by default.
    """

    method: ClassVar[MethodName] = "resvm"
    __init__ = _constructor(
        "resvm", decision=None, auto=False, oob=True, contamination_pos=None, contamination_unl=None
    )


class BaggingSVMClassifier(_PUClassifier):
    """Bagging SVM: each member is trained on all of P against rows of U drawn with replacement.

    No row of P is out of bag, so ``oob_decision_values_`` is nan for known positives.
    """

    method: ClassVar[MethodName] = "bagging"
    __init__ = _constructor("bagging", decision=None, oob=True)


class ClassWeightedSVMClassifier(_PUClassifier):
    """Class-weighted SVM: one model trained on all of P and U, with a penalty for each class."""

    method: ClassVar[MethodName] = "cwsvm"
    __init__ = _constructor("cwsvm")


class _Chosen(dict[str, Any]):
    """Parameters chosen by ``tune``, with a short repr that leaves out digests."""

    def __repr__(self) -> str:
        chosen = [
            f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.items()
            if isinstance(value, (int, float, str)) and name not in ("kind", "format", "seed")
        ]
        return f"<tuned: {', '.join(chosen)}>"


def pu_score(estimator: Any, X: Any, y: npt.ArrayLike, *, positive_label: Any = None) -> float:
    """Score without negatives: recall² of known positives / fraction predicted positive.

    The positive label is by default the ``positive_label`` of the estimator, or of the one inside
    a pipeline, search or calibration; if that is not set, the larger label.
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
    return float(pu_score_of(predicted[known].mean(), predicted.mean())) if known.any() else np.nan


def _stored_parameters(kind: type[_PUClassifier], model: api.Model) -> dict[str, Any]:
    """Return the parameters with which this estimator class would fit the same model again."""
    plan = model.stored.plan
    if plan is None:
        return {}
    # quantiles can be used alongside another scaling of the data
    scale = next((kind for kind in plan.scalings if kind != "quantile"), "quantile")
    settings = [
        Setting(_planned_parameters(each), weight, None if each.scale == scale else each.scale)
        for each, weight in zip(plan.plans, plan.weights, strict=True)
    ]
    found: dict[str, Any] = {"random_state": plan.seed, "decision": model.decision}
    found |= {name: getattr(plan.plans[0], name) for name in ("tolerance", "solver", "bias")}
    if len(settings) == 1:
        found |= {"scale": scale or "none", **vars(settings[0].params)}
    else:
        found["params"] = best_json.described(settings, model.decision, scale, {}, {})
    declared = signature(kind.__init__).parameters
    return {name: value for name, value in found.items() if name in declared}


def _planned_parameters(plan: Plan) -> MethodParameters:
    """Return the parameters of one setting of a model, except its seed and cache size."""
    values = {**vars(plan.kernel), **vars(plan), "kernel": plan.kernel.name}
    values["feature_weights"] = plan.feature_weights
    values["gamma"] = plan.kernel.gamma or "scale"  # linear members have none
    if plan.w_pos is not None:
        del values["c_pos"]
    names = [name for name in METHOD_TABLE if name in values and name not in ("seed", "cache_mb")]
    return MethodParameters(**{name: values[name] for name in names})
