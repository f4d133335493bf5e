"""Keyword arguments, named as the options of the command line, to what the engine takes."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, get_args, runtime_checkable

import numpy as np

from resvm_cli.api.parameter_names import ParameterError
from resvm_cli.parameters import (
    AUTO_NAMES,
    KERNEL_NAMES,
    METHOD_NAMES,
    METRIC_NAMES,
    RULE_NAMES,
    SCALING_NAMES,
    SEARCH_NAMES,
    AutoName,
    KernelName,
    MethodName,
    MethodParameters,
    MetricName,
    RuleName,
    ScaleChoice,
    SearchName,
)
from resvm_cli.training import best_json as params_file
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.tuning.settings import TuningSettings, usual_search
from resvm_cli.tuning.space import AXIS_NAMES, Axis, parse_axis

ScaleName: TypeAlias = Literal["none", "minmax", "maxabs", "standard", "auto"]
Range: TypeAlias = float | str | Sequence[float]  # a number, "1..100:log", or a list
PathName: TypeAlias = str | os.PathLike[str]
SolverChoice: TypeAlias = Literal["auto", "libsvm", "liblinear"]

WHOLE = ("n_models", "n_pos", "n_unl", "degree", "seed")
REAL = ("gamma", "coef0", "c_unl", "w_pos", "c_pos", "bias", "tolerance", "cache_mb")
SHARES = ("up_to", "contamination_pos", "contamination_unl")
# The least that a search can do with.
LEAST = {
    "committee": 1,
    "folds": 2,
    "repeats": 1,
    "trials": 1,
    "max_extensions": 0,
    "outer": 0,
    "max_unl": 10,
}


@runtime_checkable
class ChosenParams(Protocol):
    """What a tuning came to."""

    params: dict[str, Any]


class TrainingOptions(TypedDict, total=False):
    """The options of ``resvm train``; what is not given is derived from the data."""

    method: MethodName
    n_models: int | None
    n_pos: int | None
    n_unl: int | None
    w_pos: float | None
    c_unl: float
    c_pos: float | None
    kernel: KernelName
    gamma: float | Literal["scale", "auto"]
    degree: int
    coef0: float
    solver: SolverChoice
    bias: float | None
    tolerance: float | None
    cache_mb: float
    scale: ScaleName
    decision: RuleName | None
    auto: bool | AutoName | None
    params: ChosenParams | Mapping[str, Any] | PathName | None
    seed: int


class TuningOptions(TypedDict, total=False):
    """The options of ``resvm tune``; ranges are a number, a list or a text such as 1..100:log."""

    method: MethodName | Literal["all"]
    n_models: int | Literal["auto"]
    kernel: KernelName
    tolerance: float | None
    cache_mb: float
    c_unl: Range
    w_pos: Range
    n_pos: Range
    unl_per_pos: Range
    gamma: Range
    degree: Range
    coef0: Range
    contamination_pos: float | None
    contamination_unl: float | None
    metric: MetricName
    up_to: float
    oob: bool
    folds: int
    repeats: int
    outer: int
    search: SearchName | None
    committee: int | None
    trials: int
    max_extensions: int
    max_unl: int | None
    gram_mb: float | None
    scale: ScaleName
    seed: int


def require_known(options: Mapping[str, Any], known: Any, function: str) -> None:
    """Refuse what is no parameter, as Python does."""
    for name in options:
        if name not in known.__annotations__:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")


def training_choice(options: TrainingOptions) -> tuple[TrainingChoice, ScaleChoice | None]:
    """What to train, and the scaling; what was not given is left open."""
    given: dict[str, Any] = dict(options)
    params = _params(given)
    decision: RuleName | None = None
    if given.get("decision") is not None:
        decision = _one_of("decision", given["decision"], RULE_NAMES)
    auto, source = _auto(given.get("auto")), given.get("params")
    scale = None if given.get("scale") is None else given["scale"]
    if source is None:
        choice = TrainingChoice.from_params(params, decision=decision)
        if auto is not None:
            choice = replace(choice, auto=auto, kept=tuple(sorted(given)))
            scale = "auto" if scale is None else scale
        choice.check()
        return choice, scale_choice("none" if scale is None else scale)
    if auto is not None:
        raise ParameterError("auto and params exclude each other")
    method = params.method if "method" in given else None
    if isinstance(source, (str, os.PathLike)):
        content = params_file.load_params(os.fspath(source), method)
    else:
        found = source.params if isinstance(source, ChosenParams) else source
        if not isinstance(found, Mapping):
            raise ParameterError(
                f"params is {source!r}; what tune returned, or a file of it, was expected"
            )
        content = params_file.checked(dict(found), "params", method)
    explicit = [name for name, value in given.items() if value is not None]
    settings = tuple(params_file.merged(params, content, explicit))
    choice = TrainingChoice(settings, decision or content.get("decision"))
    choice.check()
    return choice, scale_choice(content["scale"] if scale is None else scale)


def _params(given: Mapping[str, Any]) -> MethodParameters:
    values: dict[str, Any] = {}
    for name in (*WHOLE, *REAL):
        value = given.get(name)
        if value is None:
            continue
        if name == "gamma" and isinstance(value, str):
            values[name] = _one_of(name, value, ("scale", "auto"))
        else:
            values[name] = _whole(name, value) if name in WHOLE else _real(name, value)
    solvers: tuple[SolverChoice, ...] = get_args(SolverChoice)
    for name, names in (("method", METHOD_NAMES), ("kernel", KERNEL_NAMES), ("solver", solvers)):
        if given.get(name) is not None:
            values[name] = _one_of(name, given[name], names)
    return MethodParameters(**values)


def checked_jobs(value: Any) -> int | None:
    """So many threads, or None for all cores."""
    return None if value is None else _whole("jobs", value, 1)


def checked_top(value: Any) -> int | None:
    """So many rows of a ranking, or None for all."""
    return None if value is None else _whole("top", value, 1)


def checked_share(name: str, value: Any) -> float | None:
    """A number, whose range the engine knows."""
    return None if value is None else _real(name, value)


def checked_names(name: str, values: Any, n_rows: int) -> list[str] | None:
    """A text for each row of X; those of a Series come in its order, whatever its keys."""
    if values is None:
        return None
    try:
        names = [str(each) for each in values]
    except TypeError:
        raise ParameterError(f"{name} is {values!r}; one for each row was expected") from None
    if len(names) != n_rows:
        raise ParameterError(f"{len(names):,} {name}, and X has {n_rows:,} rows")
    return names


def _whole(name: str, value: Any, least: int | None = None) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise ParameterError(f"{name} is {value!r}; a whole number was expected") from None
    if least is not None and number < least:
        raise ParameterError(f"{name} is {number}; it must be at least {least}")
    return number


def _real(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is {value!r}; a number was expected") from None


def _one_of(name: str, value: Any, names: Sequence[Any]) -> Any:
    for known in names:
        if isinstance(value, str) and value == known:
            return known
    expected = f"{', '.join(map(repr, names[:-1]))} or {names[-1]!r}"
    raise ParameterError(f"{name} is {value!r}; {expected} was expected")


def _auto(value: Any) -> AutoName | None:
    if value is None or value is False:
        return None
    if value is True:
        return "committee"
    name: AutoName = _one_of("auto", value, AUTO_NAMES)
    return name


def scale_choice(value: Any) -> ScaleChoice | None:
    name: ScaleName = _one_of("scale", value, ("none", *SCALING_NAMES, "auto"))
    return None if name == "none" else name


def tuning_settings(options: TuningOptions) -> TuningSettings:
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    given |= {name: _whole(name, given[name], LEAST[name]) for name in LEAST if name in given}
    given |= {name: _real(name, given[name]) for name in SHARES if name in given}
    if "gram_mb" in given:
        given["gram_mb"] = _real("gram_mb", given["gram_mb"])
        if not 0 <= given["gram_mb"] < math.inf:
            raise ParameterError(f"gram_mb is {given['gram_mb']}; it must be finite and at least 0")
    axes = tuple(_axis(name, given[name]) for name in AXIS_NAMES if name in given)
    method = _one_of("method", given.get("method", "resvm"), (*METHOD_NAMES, "all"))
    n_models = given.get("n_models")
    if n_models is not None and n_models != "auto":
        n_models = _whole("n_models", n_models)
    search = given.get("search")
    if search is not None:
        search = _one_of("search", search, SEARCH_NAMES)
    usual = usual_search(
        METHOD_NAMES if method == "all" else (method,),
        by_folds=bool({"folds", "repeats"} & set(given)),
        narrowed=bool(axes or {"trials", "n_models"} & set(given)),
        oob=bool(given.get("oob", False)),
        search=search,
        committee=given.get("committee"),
        n_models=n_models,
        max_unl=given.get("max_unl"),
        gram_mb=given.get("gram_mb"),
    )
    base = {name: given.get(name) for name in ("kernel", "tolerance", "cache_mb", "seed")}
    if "metric" in given:
        usual["metric"] = _one_of("metric", given["metric"], METRIC_NAMES)
    usual |= {
        name: given[name]
        for name in (*SHARES, "repeats", "trials", "max_extensions", "outer")
        if name in given
    }
    if "folds" in given:
        usual["n_folds"] = given["folds"]
    return TuningSettings(base=_params(base), axes=axes, **usual)


def _axis(name: str, value: Range) -> Axis:
    """The values that are tried, as the command line writes them."""
    if isinstance(value, str):
        return parse_axis(name, value)
    numbers = [value] if np.ndim(value) == 0 else list(np.asarray(value).tolist())
    return parse_axis(name, ",".join(repr(_real(name, number)) for number in numbers))
