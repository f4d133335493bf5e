"""What to train, as specified on the command line, in Python or in a best.json."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from resvm_cli.errors import ParameterError
from resvm_cli.parameters import (
    METHOD_TABLE,
    TRAINING_TABLE,
    AutoName,
    MethodParameters,
    RuleName,
    ScaleChoice,
    Setting,
)
from resvm_cli.records import dataclass
from resvm_cli.training import best_json

TRAINING_NAMES = (*METHOD_TABLE, *TRAINING_TABLE)
# Whoever sets one of these has chosen what to train, so a ranking does not search for settings.
ENDS_SEARCH = (
    *("params", "n_models", "n_pos", "n_unl", "c_unl", "kernel", "gamma"),
    *("scale", "feature_weights"),
)


@runtime_checkable
class Tuned(Protocol):
    """The result of tuning."""

    params: dict[str, Any]


@dataclass(frozen=True)
class TrainingChoice:
    """What to train: the settings, or how to find them, and the decision rule."""

    settings: tuple[Setting, ...] = (Setting(MethodParameters()),)
    decision: RuleName | None = None  # None: votes, or the rule that tuning chose
    auto: AutoName | None = None
    kept: tuple[str, ...] = ()  # parameters that auto does not change

    @classmethod
    def from_params(cls, params: MethodParameters, **others: Any) -> TrainingChoice:
        """Make a choice of one setting."""
        return cls((Setting(params),), **others)

    @property
    def params(self) -> MethodParameters:
        """The first setting's parameters; use only those that all settings share."""
        return self.settings[0].params

    @property
    def rule(self) -> RuleName:
        """The decision rule of the model."""
        return self.decision or "votes"

    def check(self) -> None:
        """Reject parameters that cannot work with any data."""
        for setting in self.settings:
            setting.params.check()
        if self.params.method == "cwsvm" and self.decision == "mean":
            raise ParameterError("{decision:mean} has no meaning for cwsvm, which has one member")


def training_choice(given: Mapping[str, Any]) -> tuple[TrainingChoice, ScaleChoice | None]:
    """Return what to train and how to scale; ``given`` holds only what the user set."""
    values = {
        name: converted
        for name, parameter in {**METHOD_TABLE, **TRAINING_TABLE}.items()
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
        content = _tuned(source, values.get("method"))
        settings = tuple(best_json.merged(params, content, values))
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
    """Return the method parameters among these converted values."""
    return MethodParameters(**{name: values[name] for name in METHOD_TABLE if name in values})


def _converted(name: str, parameter: Any, value: Any) -> Any:
    if name == "auto" and isinstance(value, bool):  # a flag in Python
        return "committee" if value else None
    return parameter.convert(value)


def _tuned(source: Any, method: str | None) -> dict[str, Any]:
    """Return the content of a best.json, from a file, a tuning result or a mapping."""
    if isinstance(source, (str, os.PathLike)):
        return best_json.load_params(os.fspath(source), method)
    found = source.params if isinstance(source, Tuned) else source
    if not isinstance(found, Mapping):
        raise ParameterError(
            "{params} must be the result of tune or the path of its best.json, got {value!r}",
            value=source,
        )
    return best_json.checked(dict(found), "params", method)
