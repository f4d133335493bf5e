"""Parameters that a tuning chose, read back for training."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from resvm_cli.ensemble.methods import METHOD_NAMES, ResvmParams
from resvm_cli.errors import CommandLineError, DataError
from resvm_cli.files.logs import read_json
from resvm_cli.svm.kernels import KERNEL_NAMES

KIND = "resvm-params"
FORMAT = 1
SCALES = ("none", "minmax", "maxabs", "standard")
WHOLE = ("n_pos", "n_unl", "n_models", "degree")
REAL = ("gamma", "coef0", "c_unl", "w_pos")
OF_KERNEL = ("gamma", "coef0", "degree")


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
