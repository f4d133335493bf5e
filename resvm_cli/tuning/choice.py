"""What the user says, from the command line, Python or a ``best.json``.

Tuning writes the settings it chose to ``best.json``; the members of several are pooled by weight.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from resvm_cli.data.json_files import read_json
from resvm_cli.ensemble.plan import Plan, SettingPlan
from resvm_cli.errors import DataError, ParameterError
from resvm_cli.parameters import (
    FEATURE_KERNELS,
    KERNEL_NAMES,
    METHOD_NAMES,
    METHOD_TABLE,
    RULE_NAMES,
    SCALING_NAMES,
    TABLE,
    TUNED_NAMES,
    Params,
    RuleName,
)
from resvm_cli.storage.model import load_model
from resvm_cli.svm.kernels import Kernel

KIND = "resvm-params"
FORMAT = 1
MAX_SETTINGS = 1000
WHOLE = tuple(name for name in TUNED_NAMES if METHOD_TABLE[name].kind == "integer")
REAL = tuple(name for name in TUNED_NAMES if METHOD_TABLE[name].kind == "number")
# The order of keys in the file; newer parameters follow.
ORDER = ("gamma", "degree", "coef0", "c_unl", "w_pos", "n_pos", "n_unl", "n_models")
OF_KERNEL = ("gamma", "coef0", "degree")


def read_params(given: Mapping[str, Any], *, molecules: bool = False) -> Params:
    """Return the parameters that the user set, and those of the file that ``params`` names.

    ``given`` holds only what the user set. The kernel of ``molecules`` is tanimoto by default.
    """
    if molecules and given.get("kernel") is None and given.get("params") is None:
        given = {**given, "kernel": "tanimoto"}
    values = {
        name: TABLE[name].convert(given[name])
        for name in TABLE
        if name != "params" and given.get(name) is not None
    }
    # with scale="auto", a search may still try other scalings
    said = frozenset(name for name, value in values.items() if (name, value) != ("scale", "auto"))
    params = Params(**values, said=said)
    source = given.get("params")
    if source is not None:
        content = tuned_content(source, values.get("method"))
        settings = merged(params, content)
        params = replace(
            settings[0],
            settings=settings,
            decision=params.decision or content["decision"],
            scale=params.scale or data_scale(content["settings"]),
        )
    params.check()
    return params


def tuned_content(source: Any, method: str | None) -> dict[str, Any]:
    """Return the content of a best.json, from a file, a model, a tuning result or a mapping."""
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if os.path.isdir(path):
            model = load_model(path)
            return checked(planned_content(model.plan, model.decision.rule), path, method)
        return checked(read_json(path), path, method)
    found = getattr(source, "params", source)  # if source is the result of tuning
    if not isinstance(found, Mapping):
        raise ParameterError(
            "`params` must be the result of tune, or the path of its best.json or of a model, got"
            f" {source!r}"
        )
    return checked(dict(found), "params", method)


def best_json(
    settings: Sequence[Params],
    decision: RuleName,
    scale: str | None,
    selected_by: dict[str, Any],
    data: dict[str, Any],
) -> dict[str, Any]:
    """Return the content of best.json: one method's settings, and how they were chosen.

    ``scale`` is the scaling of settings that do not name their own.
    """
    return {
        "kind": KIND,
        "format": FORMAT,
        "method": settings[0].method,
        "settings": [
            {
                "weight": setting.weight,
                "kernel": setting.kernel,
                "scale": setting.scale or scale or "none",
                "feature_weights": setting.feature_weights,
                **parameters_of(setting),
            }
            for setting in settings
        ],
        "decision": decision,
        "selected_by": selected_by,
        "data": data,
        "seed": settings[0].seed,
    }


def parameters_of(params: Params) -> dict[str, Any]:
    """Return, by name, the parameters that the kernel and the method use."""
    unused = {*OF_KERNEL} - {*Kernel(params.kernel).parameters}
    every = [*ORDER, *(name for name in TUNED_NAMES if name not in ORDER)]
    names = [name for name in every if name not in unused]
    return {name: getattr(params, name) for name in names if getattr(params, name) is not None}


def checked(content: dict[str, Any], path: str, method: str | None) -> dict[str, Any]:
    """Check the content of a best.json."""
    if content.get("kind") != KIND:
        raise DataError(f"{path}: contains no parameters", "give a best.json written by resvm tune")
    if content.get("format") != FORMAT or content["format"] is True:
        raise DataError(
            f"{path}: has format {content.get('format')!r}, but this version reads {FORMAT}",
            "use the version of resvm that wrote it",
        )

    def require(holds: bool, name: str, value: Any) -> None:
        if not holds:
            raise DataError(f"{path}: invalid {name} {str(value)[:100]!r}", "run tune again")

    require(content.get("method") in METHOD_NAMES, "method", content.get("method"))
    require(content.get("decision") in RULE_NAMES, "decision", content.get("decision"))
    settings: Any = content.get("settings")
    require(isinstance(settings, list) and 0 < len(settings) <= MAX_SETTINGS, "settings", settings)
    for setting in settings:
        require(isinstance(setting, dict), "settings", setting)
    for setting in settings:
        for name in WHOLE:
            value = setting.get(name, 1)
            require(type(value) is int and abs(value) < 2**53, name, value)
        for name in (*REAL, "weight"):
            value = setting.get(name, None if name == "weight" else 1.0)
            number = type(value) is float or (type(value) is int and abs(value) < 2**53)
            require(number and math.isfinite(value), name, value)
        require(setting["weight"] > 0, "weight", setting["weight"])
        kernel, scale = setting.get("kernel"), setting.get("scale")
        require(kernel in KERNEL_NAMES, "kernel", kernel)
        require(scale in ("none", *SCALING_NAMES), "scale", scale)
        # besides the scaling of the data, a setting may scale by quantiles
        require(scale in (data_scale(settings), "quantile"), "scale", scale)
        first = settings[0]["kernel"]
        mixed = kernel != first or scale != settings[0]["scale"]
        require(not mixed or {kernel, first} <= {*FEATURE_KERNELS}, "kernel", kernel)
        weights = setting.get("feature_weights")
        try:
            METHOD_TABLE["feature_weights"].convert(weights)
        except ParameterError:
            require(False, "feature_weights", weights)
    if method is not None and method != content["method"]:
        raise ParameterError(
            f"{path} contains parameters for {content['method']}, not {method}",
            "leave `method` out",
        )
    return content


def data_scale(settings: Sequence[Mapping[str, Any]]) -> Any:
    """Return the scaling of the data: that of the settings that do not use quantiles, if any."""
    scales = (setting.get("scale") for setting in settings)
    return next((scale for scale in scales if scale != "quantile"), "quantile")


def merged(params: Params, content: dict[str, Any]) -> tuple[Params, ...]:
    """Return the file's settings, overridden by the parameters that the user set."""
    settings = content["settings"]
    names = {*WHOLE, *REAL} - params.said
    words, takes_scaling = {"kernel", "feature_weights"} - params.said, True
    if "kernel" in params.said and params.kernel != settings[0]["kernel"]:
        names -= set(OF_KERNEL)  # they were chosen for another kernel
        takes_scaling = params.kernel in FEATURE_KERNELS
    if not takes_scaling:
        words -= {"feature_weights"}
    if "n_models" in params.said and len(settings) > 1:
        total = max(params.n_models or 1, len(settings))
        params = replace(params, n_models=total // len(settings))
    shared = data_scale(settings)
    chosen = []
    for setting in settings:
        values = {name: setting[name] for name in (*names, *words) if name in setting}
        own = takes_scaling and "scale" not in params.said and setting["scale"] != shared
        scale = setting["scale"] if own else None
        values |= {"method": content["method"], "scale": scale, "weight": float(setting["weight"])}
        chosen.append(replace(params, **values))
    return tuple(chosen)


def stored_parameters(plan: Plan, decision: RuleName) -> dict[str, Any]:
    """Return the parameters needed to train the model of this plan again."""
    first = plan.settings[0]
    found: dict[str, Any] = {"seed": plan.seed, "decision": decision, "auto": False}
    found |= {name: getattr(first, name) for name in ("tolerance", "bias", "w_neg")}
    found["solver"] = first.solver_parameter
    if len(plan.settings) == 1:
        values = vars(_planned_parameters(first))
        method = {name: values[name] for name in METHOD_TABLE}
        return {**method, **found, "scale": first.scale or "none"}
    return {**found, "params": planned_content(plan, decision)}


def planned_content(plan: Plan, decision: RuleName) -> dict[str, Any]:
    """Return the parameters of a plan as the content of a best.json."""
    # quantiles can be used alongside another scaling of the data
    scale = next((kind for kind in plan.scalings if kind != "quantile"), "quantile")
    settings = []
    for each in plan.settings:
        own = None if each.scale == scale else each.scale
        settings.append(replace(_planned_parameters(each), weight=each.weight, scale=own))
    return best_json(settings, decision, scale, {}, {})


def _planned_parameters(plan: SettingPlan) -> Params:
    """Return the parameters of one setting of a model, except its seed."""
    values = {**vars(plan.kernel), **vars(plan), "kernel": plan.kernel.name}
    values["feature_weights"] = plan.feature_weights
    values["solver"] = plan.solver_parameter
    values["gamma"] = plan.kernel.gamma or "scale"  # linear kernels have no gamma
    if plan.w_pos is not None:
        del values["c_pos"]
    names = [name for name in METHOD_TABLE if name in values and name != "seed"]
    return Params(**{name: values[name] for name in names})
