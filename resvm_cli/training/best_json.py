"""Parameters chosen by tuning, in the format of ``best.json``.

Format 1 holds one setting; format 2 holds several settings, whose members are pooled by weight.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from resvm_cli.errors import DataError, ParameterError
from resvm_cli.files.json_files import read_json
from resvm_cli.parameters import (
    KERNEL_NAMES,
    METHOD_NAMES,
    METHOD_TABLE,
    RULE_NAMES,
    SCALING_NAMES,
    TUNED_NAMES,
    MethodParameters,
    RuleName,
    Setting,
)
from resvm_cli.svm.kernels import Kernel

KIND = "resvm-params"
FORMATS = (1, 2)
MAX_SETTINGS = 1000
WHOLE = tuple(name for name in TUNED_NAMES if METHOD_TABLE[name].kind == "integer")
REAL = tuple(name for name in TUNED_NAMES if METHOD_TABLE[name].kind == "number")
# The order of keys in the file; newer parameters follow.
ORDER = ("gamma", "degree", "coef0", "c_unl", "w_pos", "n_pos", "n_unl", "n_models")
OF_KERNEL = ("gamma", "coef0", "degree")


def described(
    settings: Sequence[Setting],
    decision: RuleName,
    scale: str | None,
    selected_by: dict[str, Any],
    data: dict[str, Any],
) -> dict[str, Any]:
    """Return the content of the file: one method's parameters, and how they were chosen."""
    first = settings[0].params
    content: dict[str, Any] = {
        "kind": KIND,
        "format": 1 if len(settings) == 1 else 2,
        "method": first.method,
        "kernel": first.kernel,
    }
    if len(settings) == 1:
        content |= parameters_of(first)
    else:
        content["settings"] = [
            {"weight": setting.weight, **parameters_of(setting.params)} for setting in settings
        ]
    if decision != "votes":
        content["decision"] = decision
    return content | {
        "scale": scale or "none",
        "selected_by": selected_by,
        "data": data,
        "seed": first.seed,
    }


def parameters_of(params: MethodParameters) -> dict[str, Any]:
    """Return the parameters that apply to its kernel and method, by name."""
    kernel = Kernel(params.kernel)
    every = [*ORDER, *(name for name in TUNED_NAMES if name not in ORDER)]
    names = [name for name in every if getattr(kernel, f"uses_{name}", True)]
    return {name: getattr(params, name) for name in names if getattr(params, name) is not None}


def joined(contents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Combine the parameters of several methods into one file, the best method first."""
    if len(contents) == 1:
        return contents[0]
    return {**contents[0], "methods": {content["method"]: content for content in contents}}


def load_params(path: str, method: str | None) -> dict[str, Any]:
    """Read a best.json and return its content, for this method if it has several."""
    return checked(read_json(path), path, method)


def checked(content: dict[str, Any], path: str, method: str | None) -> dict[str, Any]:
    """Check the content of a best.json and return the part for this method."""
    if content.get("kind") != KIND:
        raise DataError(f"{path}: contains no parameters", "give a best.json written by resvm tune")
    if content.get("format") not in FORMATS or content["format"] is True:
        raise DataError(
            f"{path}: format {content.get('format')!r}, but this version reads"
            f" {' and '.join(map(str, FORMATS))}",
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
            raise DataError(f"{path}: {name} is {str(value)[:100]!r}", "tune again")

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


def merged(
    params: MethodParameters, content: dict[str, Any], explicit: Collection[str]
) -> list[Setting]:
    """Return the file's settings, overridden by the parameters that the user set."""
    names = {*WHOLE, *REAL} - set(explicit)
    if "kernel" in explicit and params.kernel != content["kernel"]:
        names -= set(OF_KERNEL)  # they were chosen for another kernel
    of_all = {name: content[name] for name in {"method", "kernel"} - set(explicit)}
    settings = content.get("settings", [content])
    if "n_models" in explicit and len(settings) > 1:
        total = max(params.n_models or 1, len(settings))
        params = replace(params, n_models=total // len(settings))
    return [
        Setting(
            replace(params, **of_all, **{name: setting[name] for name in names if name in setting}),
            float(setting.get("weight", 1.0)),
        )
        for setting in settings
    ]
