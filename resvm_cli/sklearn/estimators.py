"""The three estimators, with constructors and docstrings made from the parameter table."""

from __future__ import annotations

from inspect import Parameter, Signature, signature
from typing import Any, ClassVar, TypeVar

from resvm_cli.api.arguments import SHARED, documented, entry, require_known, table_entries
from resvm_cli.parameters import METHOD_TABLE, MethodName
from resvm_cli.sklearn.base import PUClassifier
from resvm_cli.training.choice import TRAINING

# Parameters that are not in the table: type and meaning.
OWN = {
    **{name: SHARED[name] for name in ("jobs", "n_jobs")},
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
    "random_state": (
        "int, RandomState, Generator or None, default=0",
        "The seed: the same seed and data give a byte-for-byte identical model. A generator is used"
        " to draw a seed; None stands for a random one.",
    ),
}
ATTRIBUTES = {
    "classes_": ("array of two labels", "The labels, sorted."),
    "positive_label_": ("label", "The label in ``classes_`` that marks known positives."),
    "model_": ("resvm_cli.Model", "The trained ensemble."),
    "threshold_": ("float", "Rows with a larger decision value are predicted positive."),
    "decision_": ("{'votes', 'mean'}", "How decision values are computed."),
    "n_models_": ("int", "Number of members."),
    "notes_": ("tuple of str", "Notes about the training; some were also issued as warnings."),
    "oob_decision_values_": (
        "array of float",
        "Decision values of the training rows, from members that have not seen them; nan if all"
        " have. Only if ``oob`` is true.",
    ),
    "oob_members_": (
        "array of int",
        "How many members have not seen each training row. Only if ``oob`` is true.",
    ),
    "tuning_": ("resvm_cli.Tuning", "The trials; set by ``tune``."),
    "n_features_in_": ("int", "Number of columns."),
    "feature_names_in_": ("array of str", "Names of the columns, if X is a DataFrame."),
}

Kind = TypeVar("Kind")


def constructor(method: MethodName, **more: Any) -> Any:
    """Return the ``__init__`` of an estimator, with the method's parameters from the table."""
    defaults = {
        name: parameter.default
        for name, parameter in METHOD_TABLE.items()
        if name not in ("method", "seed") and method not in parameter.unused
    }
    defaults |= {"scale": None, **more, "params": None}
    defaults |= dict.fromkeys(("positive_label", "negative_label", "jobs", "n_jobs"))
    defaults["random_state"] = 0

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


def with_parameters(kind: type[Kind]) -> type[Kind]:
    """Complete the docstring of an estimator: parameters from the table, and attributes."""
    defaults = {name: each.default for name, each in signature(kind).parameters.items()}
    entries = [
        *table_entries(TRAINING, [name for name in defaults if name in TRAINING], defaults),
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
    >>> from resvm_cli.sklearn import RESVMClassifier
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
        "resvm", decision=None, auto=False, oob=True, contamination_pos=None, contamination_unl=None
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
    >>> from resvm_cli.sklearn import BaggingSVMClassifier
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
    >>> from resvm_cli.sklearn import ClassWeightedSVMClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[:100] += 2
    >>> y = (np.arange(300) < 40).astype(int)
    >>> ClassWeightedSVMClassifier(w_pos=2).fit(X, y).predict([[2, 2], [0, 0]])
    array([1, 0])
    """

    method: ClassVar[MethodName] = "cwsvm"
    __init__ = constructor("cwsvm")
