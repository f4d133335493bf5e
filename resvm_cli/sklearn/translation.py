"""Labels and parameters of scikit-learn, translated for the engine and back."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import type_of_target

from resvm_cli import api
from resvm_cli.errors import ParameterError, warn_caller
from resvm_cli.model.plan import Plan
from resvm_cli.parameters import METHOD_TABLE, MethodParameters, Setting
from resvm_cli.training.choice import best_json

CLEAR_PAIRS = ([0, 1], [-1, 1])  # pairs of labels in which only 1 can be the positive one
NUMBERED = (
    "StackingClassifier and VotingClassifier replace the sorted labels with 0 and 1: inside them,"
    " set {positive_label} to 0 or 1"
)


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


def engine_labels(
    labels: npt.NDArray[Any], positive: Any, negative: Any
) -> tuple[npt.NDArray[Any], Any, Any]:
    """Return the labels to train on, and those of known positives and known negatives."""
    if isinstance(positive, (np.number, np.bool_, float, int)):
        return labels, positive.item() if hasattr(positive, "item") else positive, negative
    # a manifest stores only numbers
    others = "0" if negative is None else np.where(labels == negative, "-1", "0")
    return np.where(labels == positive, "1", others), "1", None if negative is None else "-1"


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
    values["gamma"] = plan.kernel.gamma or "scale"  # linear kernels have no gamma
    if plan.w_pos is not None:
        del values["c_pos"]
    names = [name for name in METHOD_TABLE if name in values and name not in ("seed", "cache_mb")]
    return MethodParameters(**{name: values[name] for name in names})
