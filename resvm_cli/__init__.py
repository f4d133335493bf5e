"""Learn classifiers and rankings from positive and unlabeled data with robust ensembles of SVMs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resvm_cli.api import (
        Model,
        OutOfBagRows,
        Ranking,
        ResultWarning,
        SvmlightData,
        Tuning,
        fit,
        load,
        rank,
        read_svmlight,
        tune,
    )

__version__ = "0.3.0"
__all__ = [
    "Model",
    "OutOfBagRows",
    "Ranking",
    "ResultWarning",
    "SvmlightData",
    "Tuning",
    "fit",
    "load",
    "rank",
    "read_svmlight",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Import public names lazily, so that --help does not need numpy."""
    if name in __all__:
        return getattr(import_module("resvm_cli.api"), name)
    raise AttributeError(f"module 'resvm_cli' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
