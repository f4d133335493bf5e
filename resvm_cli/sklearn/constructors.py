"""Parameters of the estimators: their constructors and docstrings, from the parameter table."""

from __future__ import annotations

from inspect import Parameter, Signature, signature
from typing import Any, TypeVar

from resvm_cli import api
from resvm_cli.api.arguments import SHARED, documented, entry, shared_entries, table_entries
from resvm_cli.model.plan import Plan
from resvm_cli.parameters import METHOD_TABLE, TRAINING_TABLE, MethodName, MethodParameters, Setting
from resvm_cli.training.choice import best_json

# Parameters that are not in the table: type and meaning.
OWN = {
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
    "jobs": SHARED["jobs"],
    "n_jobs": SHARED["n_jobs"],
    "random_state": (
        "int, RandomState, Generator or None, default=0",
        "The seed: the same seed and data give a byte-for-byte identical model. From a generator, a"
        " seed is drawn; None stands for a random seed.",
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
OPTIONS = ("", "Parameters of ``resvm_cli.tune``, such as ``trials`` or a range for ``c_unl``.")
X_TYPE = "array, sparse matrix or DataFrame"
ROWS = [entry("X", X_TYPE, "Rows with the same columns as in training, in the same order.")]
TRAINING_ROWS = [
    entry("X", X_TYPE, "Numbers, one row per example."),
    entry("y", "array", "Two labels: one for known positives and one for unlabeled rows."),
    *shared_entries("groups", "weights"),
]

Kind = TypeVar("Kind")


def constructor(method: MethodName, **more: Any) -> Any:
    """Return the ``__init__`` of an estimator, with the method's parameters from the table."""
    defaults = {
        name: parameter.default
        for name, parameter in METHOD_TABLE.items()
        if name not in ("method", "seed") and method not in parameter.unused
    }
    defaults |= {"scale": None, **more, "params": None}
    defaults |= {
        "positive_label": None,
        "negative_label": None,
        "jobs": None,
        "n_jobs": None,
        "random_state": 0,
    }

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


def with_parameters(kind: type[Kind]) -> type[Kind]:
    """Complete the docstring of an estimator: parameters from the table, and attributes."""
    defaults = {name: each.default for name, each in signature(kind).parameters.items()}
    table = [name for name in defaults if name in METHOD_TABLE or name in TRAINING_TABLE]
    entries = [
        *table_entries({**METHOD_TABLE, **TRAINING_TABLE}, table, defaults),
        *(entry(name, *OWN[name]) for name in defaults if name in OWN),
    ]
    attributes = [
        entry(name, *text)
        for name, text in ATTRIBUTES.items()
        if "oob" in defaults or not name.startswith("oob_")
    ]
    return documented(parameters=entries, attributes=attributes)(kind)


class TunedParameters(dict[str, Any]):
    """Parameters chosen by ``tune``, with a short repr that leaves out digests."""

    def __repr__(self) -> str:
        chosen = [
            f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.items()
            if isinstance(value, (int, float, str)) and name not in ("kind", "format", "seed")
        ]
        return f"<tuned: {', '.join(chosen)}>"


def stored_parameters(kind: type, model: api.Model) -> dict[str, Any]:
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
    found |= {
        name: getattr(plan.plans[0], name) for name in ("tolerance", "solver", "bias", "w_neg")
    }
    if len(settings) == 1:
        found |= {"scale": scale or "none", **vars(settings[0].params)}
    else:
        found["params"] = best_json(settings, model.decision, scale, {}, {})
    declared = signature(kind).parameters
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
