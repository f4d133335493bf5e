"""The three estimators, with constructors and docstrings from the parameter table; their score."""

from __future__ import annotations

import os
from collections.abc import Sequence
from inspect import Parameter, Signature, signature
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from resvm_cli.api.arguments import (
    SHARED,
    TABLE_ROLES,
    documented,
    entry,
    require_known,
    table_entries,
)
from resvm_cli.api.base import LABELS, PUClassifier
from resvm_cli.api.matrices import CLEAR_PAIRS, PathName, find_positive
from resvm_cli.errors import ParameterError
from resvm_cli.metrics.ranking import pu_score as pu_score_of
from resvm_cli.parameters import METHOD_TABLE, TABLE, MethodName
from resvm_cli.storage.model import StoredModel, load_with_out_of_bag
from resvm_cli.tuning.choice import stored_parameters

# Parameters and attributes: type and meaning.
OWN = {
    **{name: SHARED[name] for name in (*TABLE_ROLES, "n_jobs", "random_state")},
    "oob": (
        "bool, default=True",
        "Whether to set ``oob_decision_values_`` and ``oob_members_``, which a grid search does not"
        " need.",
    ),
    "positive_label": (
        "label, optional",
        "The label of known positives. Default: the larger of the two labels, with a warning unless"
        " they are 1 and 0, or 1 and -1.",
    ),
    "negative_label": (
        "label, optional",
        "A third label, for known negatives. They have a separate penalty in training, and"
        " predictions give them the label of unlabeled rows. Default: y has two labels.",
    ),
    "contamination_pos": (
        "float, optional",
        "Fraction of known positives that are negative, for ``predict_proba``. Default: estimated.",
    ),
    "contamination_unl": (
        "float or 'estimate', optional",
        "Fraction of unlabeled rows that are positive; makes ``predict_proba`` available.",
    ),
}
ATTRIBUTES = {
    "classes_": ("array of two labels", "The labels, sorted."),
    "positive_label_": ("label", "The label in ``classes_`` that marks known positives."),
    "threshold_": ("float", "Rows with a larger decision value are predicted positive."),
    "decision_": ("{'votes', 'mean'}", "The rule that computes decision values."),
    "n_models_": ("int", "Number of members."),
    "notes_": ("tuple of str", "Notes about training; some were also issued as warnings."),
    "manifest_": ("dict", "The description of the model, as in its manifest.json."),
    "oob_decision_values_": (
        "array of float",
        "Decision values of the training rows, from members that have not seen them; nan for"
        " rows that every member has seen. Only if ``oob`` is true.",
    ),
    "oob_members_": (
        "array of int",
        "How many members have not seen each training row. Only if ``oob`` is true.",
    ),
    "n_features_in_": ("int", "Number of columns."),
    "feature_names_in_": ("array of str", "Names of the columns, if X is a DataFrame."),
}

Kind = TypeVar("Kind", bound=type)


def constructor(method: MethodName, **more: Any) -> Any:
    """Return the ``__init__`` of an estimator, with the method's parameters from the table."""
    names = [
        name
        for name, parameter in METHOD_TABLE.items()
        if name not in ("method", "seed") and method not in parameter.unused
    ]
    defaults: dict[str, Any] = dict.fromkeys([*names, "scale"])  # what is None is not given
    defaults |= {
        "auto": True,
        **more,
        **dict.fromkeys(["params", *LABELS, *TABLE_ROLES, "n_jobs"]),
        "random_state": 0,
    }

    def __init__(self: Any, **given: Any) -> None:
        require_known(given, defaults, "__init__")
        for name, default in defaults.items():
            setattr(self, name, given.get(name, default))

    keywords = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default)
        for name, default in defaults.items()
    ]
    itself = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    vars(__init__)["__signature__"] = Signature([itself, *keywords])
    return __init__


def with_parameters(kind: Kind) -> Kind:
    """Complete the docstring of an estimator: parameters from the table, and attributes."""
    defaults = {name: each.default for name, each in signature(kind).parameters.items()}
    entries = [
        *table_entries(TABLE, [name for name in defaults if name in TABLE], defaults),
        *(entry(name, *OWN[name]) for name in defaults if name in OWN),
    ]
    attributes = [
        entry(name, *text)
        for name, text in ATTRIBUTES.items()
        if "oob" in defaults or not name.startswith("oob_")
    ]
    return documented(parameters=entries, attributes=attributes)(kind)


@with_parameters
class RESVMClassifier(PUClassifier):
    """A robust ensemble of SVMs, each trained on rows of P and of U drawn with replacement.

    {parameters}

    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from resvm_cli import RESVMClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[:100] += 2  # the positives
    >>> y = (np.arange(300) < 40).astype(int)  # the known ones
    >>> estimator = RESVMClassifier(n_models=20).fit(X, y)
    >>> estimator.predict([[2, 2], [0, 0]])
    array([1, 0])
    >>> best = np.flatnonzero(y == 0)[np.argsort(-estimator.oob_decision_values_[y == 0])]
    >>> int((best[:50] < 100).sum())  # positives among the 50 best unlabeled rows
    46
    """

    method: ClassVar[MethodName] = "resvm"
    __init__ = constructor(
        "resvm", decision=None, oob=True, contamination_pos=None, contamination_unl=None
    )


@with_parameters
class BaggingSVMClassifier(PUClassifier):
    """Bagging SVM: each member is trained on all of P against rows of U drawn with replacement.

    No row of P is out of bag, so ``oob_decision_values_`` is nan for known positives.

    {parameters}

    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from resvm_cli import BaggingSVMClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[:100] += 2
    >>> y = (np.arange(300) < 40).astype(int)
    >>> BaggingSVMClassifier(n_models=20).fit(X, y).predict([[2, 2], [0, 0]])
    array([1, 0])
    """

    method: ClassVar[MethodName] = "bagging"
    __init__ = constructor("bagging", decision=None, oob=True)


@with_parameters
class ClassWeightedSVMClassifier(PUClassifier):
    """Class-weighted SVM: one model trained on all of P and U, with a penalty for each class.

    {parameters}

    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from resvm_cli import ClassWeightedSVMClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[:100] += 2
    >>> y = (np.arange(300) < 40).astype(int)
    >>> ClassWeightedSVMClassifier(w_pos=2).fit(X, y).predict([[2, 2], [0, 0]])
    array([1, 0])
    """

    method: ClassVar[MethodName] = "cwsvm"
    __init__ = constructor("cwsvm")


def load_model(path: PathName, classes: Sequence[Any] = (-1, 1)) -> PUClassifier:
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
        A fitted estimator of the class that corresponds to the model's method, without
        out-of-bag values of the training rows.

    Raises
    ------
    ModelError
        If the model does not exist or is damaged.

    Examples
    --------
    >>> import numpy as np
    >>> import resvm_cli
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[:100] += 2
    >>> y = (np.arange(300) < 40).astype(int)
    >>> estimator = resvm_cli.RESVMClassifier(n_models=5).fit(X, y)
    >>> estimator.save("example-model", force=True)
    >>> again = resvm_cli.load_model("example-model", classes=(0, 1))
    >>> bool((again.predict(X) == estimator.predict(X)).all())
    True
    """
    return estimator_of(load_with_out_of_bag(os.fspath(path), required=False), classes)


def estimator_of(model: StoredModel, classes: Sequence[Any] = (-1, 1)) -> PUClassifier:
    """Return a fitted estimator that has a model's parameters and predicts with it."""
    if len(classes) != 2 or classes[0] == classes[1]:
        raise ParameterError(
            f"`classes` must be two labels, the positive one last, got {classes!r}"
        )
    method = model.manifest["method"]
    kind: Any = next(each for each in PUClassifier.__subclasses__() if each.method == method)
    parameters = stored_parameters(model.plan, model.decision.rule)
    declared = signature(kind).parameters
    parameters["random_state"] = parameters.pop("seed", declared["random_state"].default)
    if list(classes) not in CLEAR_PAIRS:
        parameters["positive_label"] = classes[1]
    estimator: PUClassifier = kind(
        **{name: each for name, each in parameters.items() if name in declared}
    )
    estimator.classes_ = np.unique(classes)
    estimator.positive_label_ = find_positive(estimator.classes_, estimator.positive_label)
    estimator.notes_ = ()
    # rows of a precomputed kernel also have a serial number
    estimator.n_features_in_ = int(model.manifest["n_features"]) - model.ensemble.is_precomputed
    estimator._adopt(model)
    if (known := estimator._model.encoding) is not None:
        columns = [column.name for column in known.columns]
        estimator.n_features_in_ = len(columns)
        estimator.feature_names_in_ = np.array(columns, object)
        if not known.is_plain:  # so that it can be fitted again on the same table
            texts = [column.name for column in known.columns if column.kind == "text"]
            molecules = [column.name for column in known.columns if column.kind == "morgan"]
            estimator.set_params(
                columns=[name for name in columns if name not in molecules] or None,
                categorical=texts or None,
                smiles_column=molecules[0] if molecules else None,
                missing=known.missing,
            )
    return estimator


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
    the estimators' ``score``, which is scikit-learn's ``"roc_auc"``. Pass ``pu_score`` as
    ``scoring`` to any scikit-learn tool.

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

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from resvm_cli import RESVMClassifier, pu_score
    >>> X, positive = make_blobs([200, 100], centers=[[0, 0], [2, 2]], random_state=0)
    >>> y = positive * (np.arange(300) % 3 == 0)  # a third of the positives are labeled
    >>> fitted = RESVMClassifier(n_models=10).fit(X[::2], y[::2])
    >>> round(pu_score(fitted, X[1::2], y[1::2]), 2)
    1.97
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
            f"pu_score cannot tell which of {' and '.join(map(repr, labels))} is positive",
            "set its `positive_label`, as in functools.partial(pu_score, positive_label=...)",
        )
    known, predicted = np.asarray(y) == chosen[0], estimator.predict(X) == chosen[0]
    weights = np.ones(len(known)) if sample_weight is None else np.asarray(sample_weight, float)
    if not weights[known].sum():
        return float("nan")
    recall = np.average(predicted[known], weights=weights[known])
    return float(pu_score_of(recall, np.average(predicted, weights=weights)))
