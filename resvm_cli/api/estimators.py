"""The three estimators, with constructors and docstrings from the parameter table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from inspect import Parameter, Signature, signature
from typing import Any, ClassVar, TypeVar

import numpy as np

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
from resvm_cli.parameters import METHOD_TABLE, TABLE, MethodName
from resvm_cli.storage.model import StoredModel, load_with_out_of_bag
from resvm_cli.tuning.choice import stored_parameters

# Parameters and attributes: type and meaning.
OWN = {
    **{name: SHARED[name] for name in (*TABLE_ROLES, "n_jobs", "random_state")},
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
    attributes = [entry(name, *text) for name, text in ATTRIBUTES.items()]
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
    """

    method: ClassVar[MethodName] = "resvm"
    __init__ = constructor("resvm", decision=None, contamination_pos=None, contamination_unl=None)


@with_parameters
class BaggingSVMClassifier(PUClassifier):
    """Bagging SVM: each member is trained on all of P against rows of U drawn with replacement.

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
    __init__ = constructor("bagging", decision=None)


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
    >>> resvm_cli.RESVMClassifier(n_models=5).fit(X, y).save("example-model", force=True)
    >>> resvm_cli.load_model("example-model", classes=(0, 1)).predict([[2, 2], [0, 0]])
    array([1, 0])
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
