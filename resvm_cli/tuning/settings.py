"""How candidates are found and scored, independent of the data and the output directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from resvm_cli.errors import ParameterError
from resvm_cli.parameters import (
    FEATURE_KERNELS,
    METHOD_NAMES,
    METHOD_TABLE,
    SHARED_NAMES,
    TUNED_METHOD,
    TUNING_TABLE,
    MethodName,
    MethodParameters,
    Parameter,
    ScalingName,
    TuningParameters,
    check_values,
)
from resvm_cli.records import dataclass
from resvm_cli.training.choice import method_parameters
from resvm_cli.tuning.space import AXIS_NAMES, Axis, parse_axis

DEFAULT_MEMBERS = 50
SCREENING_MEMBERS = 8  # members used to score an informed candidate
MAX_SETTINGS = 6  # per committee; more take longer and are no better
# What an informed search uses unless the user says otherwise: the criterion that a committee
# ranks by, how many rows of U are scored, and how much memory their kernel values may take.
INFORMED: dict[str, Any] = {
    "search": "informed",
    "metric": "roc_auc_of_mean",
    "max_unl": 1500,
    "gram_mb": 150.0,
}
TUNING_NAMES = ("method", *SHARED_NAMES, *AXIS_NAMES, *TUNING_TABLE, "scale")


@dataclass(frozen=True, kw_only=True)
class TuningSettings(TuningParameters):
    """The parameters of tuning, with the methods and ranges to search."""

    methods: tuple[MethodName, ...] = ("resvm",)
    base: MethodParameters = field(default_factory=MethodParameters)  # shared by all candidates
    axes: tuple[Axis, ...] = ()
    fixed: tuple[str, ...] = ()  # the parameters in base that the user chose

    @property
    def other_scalings(self) -> tuple[ScalingName, ...]:
        """The scalings that informed candidates need besides the data's own."""
        scalable = self.base.kernel in FEATURE_KERNELS and "scale" not in self.fixed
        return ("quantile",) if self.search == "informed" and scalable else ()

    @property
    def scored_members(self) -> int:
        """The number of members with which a candidate is scored."""
        n_models = self.n_models or DEFAULT_MEMBERS
        return min(n_models, SCREENING_MEMBERS) if self.search == "informed" else n_models

    def check(self) -> None:
        """Reject settings that cannot work, before any file is read."""
        self.base.check()
        check_values(self, TUNING_TABLE)
        if self.oob and set(self.methods) != {"resvm"}:
            raise ParameterError(
                "{oob:True} works only for resvm: bagging and cwsvm put every known positive into"
                " every bag",
                "leave {oob} out to use cross-validation",
            )
        if self.oob and self.repeats > 1:
            raise ParameterError("{repeats} applies to folds, not to {oob:True}")
        if self.search == "informed" and set(self.methods) != {"resvm"}:
            raise ParameterError(
                "{search:informed} works only for resvm",
                "use {search:random} or grid",
            )


def tuning_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of TuningSettings; ``given`` holds only what the user set."""
    given = {name: value for name, value in given.items() if value is not None}
    tuning = {
        name: parameter.convert(given[name])
        for name, parameter in TUNING_TABLE.items()
        if name in given
    }
    axes = tuple(_axis(name, given[name]) for name in AXIS_NAMES if name in given)
    method = TUNED_METHOD.convert(given.get("method", "resvm"))
    methods = METHOD_NAMES if method == "all" else (method,)
    base = {name: METHOD_TABLE[name].convert(given[name]) for name in SHARED_NAMES if name in given}
    by_folds = bool({"folds", "repeats", "folds_file"} & set(given))
    # informed settings do not use ranges, trials or a number of members
    narrowed = bool(axes or {"trials", "n_models"} & set(given))
    oob = tuning.get("oob", False) or (methods == ("resvm",) and not by_folds)
    informed = tuning.get("search", "informed" if oob and not narrowed else "random") == "informed"
    usual = {**INFORMED, "committee": MAX_SETTINGS} if informed else {"search": "random"}
    return {
        **usual,
        **tuning,
        "oob": oob,
        "methods": methods,
        "base": method_parameters(base),
        "axes": axes,
        "fixed": tuple(name for name in (*SHARED_NAMES, "scale") if name in given),
    }


def _axis(name: str, value: Any) -> Axis:
    """Return the axis for a number, a list, or a string such as ``1..100:log``."""
    if isinstance(value, str):
        return parse_axis(name, value)
    numbers = [value] if np.ndim(value) == 0 else list(np.asarray(value).tolist())
    real = Parameter("number", None, "", name=name)
    return parse_axis(name, ",".join(repr(real.convert(number)) for number in numbers))
