"""What a parameter is: its type, range, default and help, and how its values are checked.

The functions at the end declare parameters as dataclass fields; the table is in ``parameters.py``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, Literal, TypeAlias

from resvm_cli.errors import ParameterError
from resvm_cli.records import dataclass

# "words": a choice, optionally followed by a colon and a positive number
Kind: TypeAlias = Literal["integer", "number", "choice", "words", "text", "flag"]


@dataclass(frozen=True)
class Parameter:
    """One row of the table.

    ``help`` and ``shown`` name other parameters in backticks, as error messages do.
    """

    kind: Kind
    default: Any
    help: str
    low: float = -math.inf
    high: float = math.inf
    positive: bool = False  # must be above 0 and finite
    below: float = math.inf  # an exclusive upper bound
    also: float | None = None  # a special value outside the range
    choices: tuple[str, ...] = ()  # allowed names; for a number, words allowed instead
    shown: str | None = None  # text shown for the default; None: the value itself
    letter: str | None = None  # the short option, as in LIBSVM
    metavar: str | None = None
    panel: str = "Method"  # the heading under which --help lists it
    advanced: bool = False  # listed last in --help
    shared: bool = False  # tune accepts it and uses it for all candidates
    unused: Mapping[str, str] = field(default_factory=dict)  # method: why it ignores the parameter
    name: str = ""

    def convert(self, value: Any) -> Any:
        """Return the value as the engine expects it; raise ParameterError if it is invalid."""
        if self.kind == "words":
            return self._words(value)
        if self.kind == "choice" or (self.choices and isinstance(value, str)):
            return self._choice(value)
        if self.kind == "integer":
            return self._in_range(self._integer(value))
        if self.kind == "number":
            return self._in_range(self._number(value))
        return value

    def _choice(self, value: Any) -> str:
        if isinstance(value, str) and value in self.choices:
            return str(value)
        names = [*map(repr, self.choices)]
        if self.kind != "choice":
            names.insert(0, "a number")
        raise self._error(f"must be {_listed(names)}, got {value!r}")

    def _words(self, value: Any) -> str:
        name, colon, number = str(value).partition(":")
        try:
            valid = not colon or (name != "none" and 0 < float(number) < math.inf)
        except ValueError:
            valid = False
        if name not in self.choices or not valid:
            expected = _listed([*map(repr, self.choices), f"'{self.choices[-1]}:2'"])
            raise self._error(f"must be {expected}, got {value!r}")
        return f"{name}:{float(number)!r}".removesuffix(".0") if colon else name

    def _integer(self, value: Any) -> int:
        try:
            return operator.index(value)
        except TypeError:
            raise self._error(f"must be an integer, got {value!r}") from None

    def _number(self, value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise self._error(f"must be a number, got {value!r}") from None

    def _in_range(self, value: float) -> float:
        if value == self.also:
            return value
        if self.positive and not (value > 0 and math.isfinite(value)):
            raise self._error(f"must be positive and finite, got {value:g}")
        if isinstance(value, float) and not math.isfinite(value):
            raise self._error(f"must be finite, got {value:g}")
        if value < self.low:
            raise self._error(f"must be at least {self.low:g}, got {value}")
        if value > self.high:
            raise self._error(f"must be at most {self.high:,}, got {value}")
        if value >= self.below:
            raise self._error(f"must be below {self.below:g}, got {value:g}")
        return value

    def _error(self, text: str) -> ParameterError:
        return ParameterError(f"`{self.name}` {text}")


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def integer(default: int | str | None, text: str, **more: Any) -> Any:
    return declared("integer", default, text, metavar=more.pop("metavar", "N"), **more)


def number(default: float | str | None, text: str, **more: Any) -> Any:
    return declared("number", default, text, **more)


def fraction(text: str, metavar: str, **more: Any) -> Any:
    return number(None, text, low=0, below=1, metavar=metavar, **more)


def choice(default: str | None, choices: tuple[str, ...], text: str, **more: Any) -> Any:
    metavar = more.pop("metavar", "NAME")
    return declared("choice", default, text, choices=choices, metavar=metavar, **more)


def declared(kind: Kind, default: Any, text: str, **more: Any) -> Any:
    return field(default=default, metadata={"parameter": Parameter(kind, default, text, **more)})


def table(declared: Any) -> dict[str, Parameter]:
    """Return the parameters that a class declares, by name."""
    found = {each.name: each.metadata.get("parameter") for each in fields(declared)}
    # like dataclasses.replace, which would take a millisecond for all parameters
    return {
        name: Parameter(**{**vars(each), "name": name})
        for name, each in found.items()
        if each is not None
    }


def check_values(record: Any, parameters: Mapping[str, Parameter]) -> None:
    """Reject values that are out of range; None stands for a default that is derived later."""
    for name, parameter in parameters.items():
        if getattr(record, name) is not None:
            parameter.convert(getattr(record, name))
