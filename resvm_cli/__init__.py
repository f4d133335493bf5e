"""Learn classifiers and rankings from positive and unlabeled data with robust ensembles of SVMs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resvm_cli.api.estimators import (
        BaggingSVMClassifier,
        ClassWeightedSVMClassifier,
        RESVMClassifier,
        load_model,
    )
    from resvm_cli.api.functions import Ranking, Tuning, rank, tune
    from resvm_cli.errors import ResultWarning

__version__ = "0.3.0"
__all__ = [
    "BaggingSVMClassifier",
    "ClassWeightedSVMClassifier",
    "RESVMClassifier",
    "Ranking",
    "ResultWarning",
    "Tuning",
    "load_model",
    "rank",
    "tune",
]
# The modules of public names; all others are in api.estimators, which needs scikit-learn.
_MODULES = {
    **dict.fromkeys(("Ranking", "Tuning", "rank", "tune"), "api.functions"),
    "ResultWarning": "errors",
}


def __getattr__(name: str) -> Any:
    """Import public names lazily, so that --help does not need numpy."""
    if name in __all__:
        module = _MODULES.get(name, "api.estimators")
        return getattr(import_module(f"resvm_cli.{module}"), name)
    raise AttributeError(f"module 'resvm_cli' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
