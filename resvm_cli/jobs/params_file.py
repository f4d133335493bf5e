"""Parameters that a tuning chose, as ``best.json``: made, written and read back here alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from resvm_cli.ensemble.params import METHOD_NAMES, ResvmParams
from resvm_cli.errors import CommandLineError, DataError
from resvm_cli.files.logs import read_json
from resvm_cli.svm.kernels import KERNEL_NAMES, Kernel

KIND = "resvm-params"
FORMAT = 1
SCALES = ("none", "minmax", "maxabs", "standard")
WHOLE = ("n_pos", "n_unl", "n_models", "degree")
REAL = ("gamma", "coef0", "c_unl", "w_pos")
OF_KERNEL = ("gamma", "coef0", "degree")


def described(
    params: ResvmParams, scale: str | None, selected_by: dict[str, Any], data: dict[str, Any]
) -> dict[str, Any]:
    """What the file says of one method's parameters, and how they were chosen."""
    kernel = Kernel(params.kernel)
    content: dict[str, Any] = {
        "kind": KIND,
        "format": FORMAT,
        "method": params.method,
        "kernel": params.kernel,
    }
    if kernel.uses_gamma:
        content["gamma"] = params.gamma
    if kernel.uses_degree:
        content["degree"] = params.degree
    if kernel.uses_coef0:
        content["coef0"] = params.coef0
    content["c_unl"] = params.c_unl
    for name in ("w_pos", "n_pos", "n_unl", "n_models"):
        if getattr(params, name) is not None:
            content[name] = getattr(params, name)
    return content | {
        "scale": scale or "none",
        "selected_by": selected_by,
        "data": data,
        "seed": params.seed,
    }


def joined(contents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One file of several methods' parameters, the best first."""
    if len(contents) == 1:
        return contents[0]
    return {**contents[0], "methods": {content["method"]: content for content in contents}}


def load_params(path: str, method: str | None) -> dict[str, Any]:
    """What a best.json says, of this method where it has several."""
    content = read_json(path)
    if content.get("kind") != KIND:
        raise DataError(f"{path}: holds no parameters", "give best.json, as resvm tune wrote it")
    if content.get("format") != FORMAT:
        raise DataError(
            f"{path}: format {content.get('format')!r}, and this version reads {FORMAT}",
            "use the version of resvm that wrote it, or a newer one",
        )
    if method is not None and method != content.get("method"):
        others = content.get("methods")
        if not isinstance(others, dict) or not isinstance(others.get(method), dict):
            raise CommandLineError(
                f"{path} holds parameters of {content.get('method')}, not of {method}",
                f"leave --method out, or tune with --method {method}",
            )
        content = others[method]
    _check(path, content)
    return content


def _check(path: str, content: dict[str, Any]) -> None:
    def require(holds: bool, name: str) -> None:
        if not holds:
            raise DataError(f"{path}: {name} is {content.get(name)!r}", "tune again")

    require(content.get("method") in METHOD_NAMES, "method")
    require(content.get("kernel") in KERNEL_NAMES, "kernel")
    require(content.get("scale") in SCALES, "scale")
    for name in WHOLE:
        require(name not in content or type(content[name]) is int, name)
    for name in REAL:
        require(name not in content or type(content[name]) in (int, float), name)


def merged(params: ResvmParams, content: dict[str, Any], explicit: Collection[str]) -> ResvmParams:
    """The file's parameters, where the user said nothing else."""
    names = {"method", "kernel", *WHOLE, *REAL} - set(explicit)
    if "kernel" in explicit and params.kernel != content["kernel"]:
        names -= set(OF_KERNEL)  # they were chosen for another kernel
    return replace(params, **{name: content[name] for name in names if name in content})
