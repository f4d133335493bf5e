"""What to train, as specified on the command line, in Python or in a ``best.json``.

Tuning writes its parameters to ``best.json``. Format 1 has one setting; format 2 has several, whose
members are pooled by weight. In format 3, a setting may have its own kernel, scaling and feature
weights.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from resvm_cli.errors import DataError, ParameterError
from resvm_cli.files.json_files import read_json
from resvm_cli.model.model_plan import ModelPlan
from resvm_cli.model.setting_plan import Plan
from resvm_cli.parameters import (
    FEATURE_KERNELS,
    KERNEL_NAMES,
    METHOD_NAMES,
    METHOD_TABLE,
    RULE_NAMES,
    SCALING_NAMES,
    TRAINING_TABLE,
    TUNED_NAMES,
    AutoName,
    MethodParameters,
    RuleName,
    ScaleChoice,
    Setting,
)
from resvm_cli.records import dataclass
from resvm_cli.svm.kernels import Kernel

TRAINING = {**METHOD_TABLE, **TRAINING_TABLE}
# If the user sets any of these, a ranking does not search for settings.
ENDS_SEARCH = (
    *("params", "n_models", "n_pos", "n_unl", "c_unl", "kernel", "gamma"),
    *("scale", "feature_weights"),
)
KIND = "resvm-params"
FORMATS = (1, 2, 3)
MAX_SETTINGS = 1000
WHOLE = tuple(name for name in TUNED_NAMES if METHOD_TABLE[name].kind == "integer")
REAL = tuple(name for name in TUNED_NAMES if METHOD_TABLE[name].kind == "number")
# The order of keys in the file; newer parameters follow.
ORDER = ("gamma", "degree", "coef0", "c_unl", "w_pos", "n_pos", "n_unl", "n_models")
OF_KERNEL = ("gamma", "coef0", "degree")


@dataclass(frozen=True)
class TrainingChoice:
    """What to train: the settings, or how to find them, and the decision rule."""

    settings: tuple[Setting, ...] = (Setting(MethodParameters()),)
    decision: RuleName | None = None  # None: votes, or the rule that tuning chose
    auto: AutoName | None = None
    kept: tuple[str, ...] = ()  # parameters that auto does not change

    @classmethod
    def from_params(cls, params: MethodParameters, **others: Any) -> TrainingChoice:
        return cls((Setting(params),), **others)

    @property
    def params(self) -> MethodParameters:
        """The first setting's parameters; use only those that all settings share."""
        return self.settings[0].params

    @property
    def rule(self) -> RuleName:
        return self.decision or "votes"

    def check(self) -> None:
        """Reject parameters that cannot work with any data."""
        for setting in self.settings:
            setting.params.check()
        if self.params.method == "cwsvm" and self.decision == "mean":
            raise ParameterError("{decision:mean} does not apply to cwsvm, which has one member")


def training_choice(given: Mapping[str, Any]) -> tuple[TrainingChoice, ScaleChoice | None]:
    """Return what to train and how to scale; ``given`` holds only what the user set."""
    values = {
        name: converted
        for name, parameter in TRAINING.items()
        if given.get(name) is not None
        and (converted := _converted(name, parameter, given[name])) is not None
    }
    params = method_parameters(values)
    decision, auto, source = (values.get(name) for name in ("decision", "auto", "params"))
    scale = values.get("scale")
    if source is None:
        choice = TrainingChoice.from_params(params, decision=decision)
        if auto is not None:
            choice = replace(choice, auto=auto, kept=tuple(sorted(given)))
            scale = scale or "auto"
    elif auto is not None:
        raise ParameterError("give either {auto} or {params}, not both")
    else:
        content = tuned_content(source, values.get("method"))
        settings = tuple(merged(params, content, values))
        choice = TrainingChoice(settings, decision or content.get("decision"))
        scale = scale or content["scale"]
    choice.check()
    return choice, None if scale in (None, "none") else scale


def ranking_choice(given: Mapping[str, Any]) -> tuple[TrainingChoice, ScaleChoice | None]:
    """Return what a ranking trains: settings found by ``auto``, unless the user chose some."""
    chosen = any(given.get(name) is not None for name in (*ENDS_SEARCH, "auto"))
    if not chosen and given.get("method", "resvm") == "resvm":
        given = {**given, "auto": "committee"}
    return training_choice(given)


def method_parameters(values: Mapping[str, Any]) -> MethodParameters:
    return MethodParameters(**{name: values[name] for name in METHOD_TABLE if name in values})


def _converted(name: str, parameter: Any, value: Any) -> Any:
    if name == "auto" and isinstance(value, bool):  # in Python, auto is a flag
        return "committee" if value else None
    return parameter.convert(value)


def tuned_content(source: Any, method: str | None) -> dict[str, Any]:
    """Return the content of a best.json, from a file, a tuning result or a mapping."""
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        return checked(read_json(path), path, method)
    found = getattr(source, "params", source)  # if source is the result of tuning
    if not isinstance(found, Mapping):
        raise ParameterError(
            "{params} must be the result of tune or the path of its best.json, got {value!r}",
            value=source,
        )
    return checked(dict(found), "params", method)


def best_json(
    settings: Sequence[Setting],
    decision: RuleName,
    scale: str | None,
    selected_by: dict[str, Any],
    data: dict[str, Any],
) -> dict[str, Any]:
    """Return the content of best.json: one method's parameters, and how they were chosen."""
    first = settings[0].params
    content: dict[str, Any] = {
        "kind": KIND,
        "format": 1 if len(settings) == 1 else 2,
        "method": first.method,
        "kernel": first.kernel,
    }
    own = [_own(setting, first) for setting in settings]
    if len(settings) == 1:
        scale = settings[0].scale or scale
        content |= {**parameters_of(first), **own[0]}
    else:
        content["settings"] = [
            {"weight": setting.weight, **parameters_of(setting.params), **words}
            for setting, words in zip(settings, own, strict=True)
        ]
    if any(own) or scale == "quantile":
        content["format"] = 3
    if decision != "votes":
        content["decision"] = decision
    return content | {
        "scale": scale or "none",
        "selected_by": selected_by,
        "data": data,
        "seed": first.seed,
    }


def _own(setting: Setting, first: MethodParameters) -> dict[str, str]:
    """Return the parts of a setting that only format 3 can store."""
    params = setting.params
    words = {
        "kernel": None if params.kernel == first.kernel else params.kernel,
        "feature_weights": None if params.feature_weights == "none" else params.feature_weights,
        "scale": setting.scale,
    }
    return {name: word for name, word in words.items() if word is not None}


def parameters_of(params: MethodParameters) -> dict[str, Any]:
    """Return, by name, the parameters that the kernel and the method use."""
    unused = {*OF_KERNEL} - {*Kernel(params.kernel).parameters}
    every = [*ORDER, *(name for name in TUNED_NAMES if name not in ORDER)]
    names = [name for name in every if name not in unused]
    return {name: getattr(params, name) for name in names if getattr(params, name) is not None}


def checked(content: dict[str, Any], path: str, method: str | None) -> dict[str, Any]:
    """Check the content of a best.json and return the part for this method."""
    if content.get("kind") != KIND:
        raise DataError(f"{path}: contains no parameters", "give a best.json written by resvm tune")
    if content.get("format") not in FORMATS or content["format"] is True:
        raise DataError(
            f"{path}: has format {content.get('format')!r}, but this version reads formats"
            f" {FORMATS[0]} to {FORMATS[-1]}",
            "use the version of resvm that wrote it, or a newer one",
        )
    if method is not None and method != content.get("method"):
        others = content.get("methods")
        if not isinstance(others, dict) or not isinstance(others.get(method), dict):
            raise ParameterError(
                "{path} contains parameters for {found}, not {wanted}",
                "leave {method} out, or tune with {method:" + method + "}",
                path=path,
                found=content.get("method"),
                wanted=method,
            )
        content = others[method]
    _check(path, content)
    return content


def _check(path: str, content: dict[str, Any]) -> None:
    def require(holds: bool, name: str, value: Any) -> None:
        if not holds:
            raise DataError(f"{path}: invalid {name} {str(value)[:100]!r}", "run tune again")

    require(content.get("method") in METHOD_NAMES, "method", content.get("method"))
    require(content.get("kernel") in KERNEL_NAMES, "kernel", content.get("kernel"))
    require(content.get("scale") in ("none", *SCALING_NAMES), "scale", content.get("scale"))
    require(content.get("decision", "votes") in RULE_NAMES, "decision", content.get("decision"))
    settings = content.get("settings", [content])
    require(isinstance(settings, list) and 0 < len(settings) <= MAX_SETTINGS, "settings", settings)
    for setting in settings:
        require(isinstance(setting, dict), "settings", setting)
        for name in WHOLE:
            value = setting.get(name, 1)
            require(type(value) is int and abs(value) < 2**53, name, value)
        for name in (*REAL, "weight"):
            value = setting.get(name, 1.0)
            number = type(value) is float or (type(value) is int and abs(value) < 2**53)
            require(number and math.isfinite(value), name, value)
        require(setting.get("weight", 1.0) > 0, "weight", setting.get("weight"))
        require(setting.get("kernel", "rbf") in KERNEL_NAMES, "kernel", setting.get("kernel"))
        scaled = setting is not content and "scale" in setting
        require(not scaled or setting["scale"] == "quantile", "scale", setting.get("scale"))
        kernel = setting.get("kernel", content["kernel"])
        mixed = scaled or kernel != content["kernel"]
        require(not mixed or {kernel, content["kernel"]} <= {*FEATURE_KERNELS}, "kernel", kernel)
        weights = setting.get("feature_weights", "none")
        try:
            METHOD_TABLE["feature_weights"].convert(weights)
        except ParameterError:
            require(False, "feature_weights", weights)


def merged(
    params: MethodParameters, content: dict[str, Any], explicit: Collection[str]
) -> list[Setting]:
    """Return the file's settings, overridden by the parameters that the user set."""
    names = {*WHOLE, *REAL} - set(explicit)
    words, takes_scaling = {"method", "kernel", "feature_weights"} - set(explicit), True
    if "kernel" in explicit and params.kernel != content["kernel"]:
        names -= set(OF_KERNEL)  # they were chosen for another kernel
        takes_scaling = params.kernel in FEATURE_KERNELS
    if not takes_scaling:
        words -= {"feature_weights"}
    settings = content.get("settings", [content])
    if "n_models" in explicit and len(settings) > 1:
        total = max(params.n_models or 1, len(settings))
        params = replace(params, n_models=total // len(settings))
    found = []
    for setting in settings:
        chosen = {name: setting[name] for name in names if name in setting}
        for name in words:
            if word := setting.get(name, content.get(name)):
                chosen[name] = word
        own = takes_scaling and "scale" not in explicit and setting is not content
        weight = float(setting.get("weight", 1.0))
        scale = setting.get("scale") if own else None
        found.append(Setting(replace(params, **chosen), weight, scale))
    return found


def stored_parameters(plan: ModelPlan | None, decision: RuleName) -> dict[str, Any]:
    """Return the parameters that train the model of this plan again."""
    if plan is None:
        return {}
    # quantiles can be used alongside another scaling of the data
    scale = next((kind for kind in plan.scalings if kind != "quantile"), "quantile")
    settings = [
        Setting(_planned_parameters(each), weight, None if each.scale == scale else each.scale)
        for each, weight in zip(plan.plans, plan.weights, strict=True)
    ]
    found: dict[str, Any] = {"seed": plan.seed, "decision": decision}
    found |= {
        name: getattr(plan.plans[0], name) for name in ("tolerance", "solver", "bias", "w_neg")
    }
    if len(settings) == 1:
        return {**vars(settings[0].params), **found, "scale": scale or "none"}
    return {**found, "params": best_json(settings, decision, scale, {}, {})}


def _planned_parameters(plan: Plan) -> MethodParameters:
    """Return the parameters of one setting of a model, except its seed and cache size."""
    values = {**vars(plan.kernel), **vars(plan), "kernel": plan.kernel.name}
    values["feature_weights"] = plan.feature_weights
    values["gamma"] = plan.kernel.gamma or "scale"  # linear kernels have no gamma
    if plan.w_pos is not None:
        del values["c_pos"]
    names = [name for name in METHOD_TABLE if name in values and name not in ("seed", "cache_mb")]
    return MethodParameters(**{name: values[name] for name in names})
