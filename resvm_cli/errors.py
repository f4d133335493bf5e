"""Every error that is not a bug, with its exit code, and the warning of the Python API."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

PYTHON_NAMES = {"output": "path"}  # where Python's keyword differs from the command line's


class Message:
    """Text that names parameters, which each front end renders in its own way.

    ``{n_pos}`` is ``--n-pos`` on the command line and ``n_pos`` in Python; ``{decision:mean}`` is
    ``--decision mean`` and ``decision="mean"``. All other fields are values given by keyword.
    """

    def __init__(self, template: str, **values: Any) -> None:
        self.template = template
        self.values = values

    def render(self, name: Callable[[str, str], str]) -> str:
        """Return the text, with each parameter rendered by ``name(parameter, value)``."""
        return self.template.format_map(_Fields(self.values, name))

    def __str__(self) -> str:
        return self.render(python_name)

    def __repr__(self) -> str:
        return f"Message({str(self)!r})"


Text: TypeAlias = "str | Message"  # a str is taken literally


def listed(names: Sequence[str], most: int) -> str:
    """Join names with commas; those beyond ``most`` are only counted."""
    more = f", and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


class _Fields(dict[str, Any]):
    """Values by name; any other field of a template is a parameter."""

    def __init__(self, values: Mapping[str, Any], name: Callable[[str, str], str]) -> None:
        super().__init__((field, render(value, name)) for field, value in values.items())
        self._name = name

    def __missing__(self, field: str) -> _Named:
        return _Named(field, self._name)


class _Named:
    """A parameter in a template; its format specification is its value."""

    def __init__(self, parameter: str, name: Callable[[str, str], str]) -> None:
        self._parameter = parameter
        self._name = name

    def __format__(self, value: str) -> str:
        return self._name(self._parameter, value)


def python_name(parameter: str, value: str) -> str:
    """Format a parameter as in Python code: ``n_pos``, ``kernel="linear"``, ``force=True``."""
    parameter = PYTHON_NAMES.get(parameter, parameter)
    if not value:
        return parameter
    literal = value in ("True", "False") or value.isdecimal()
    return f"{parameter}={value}" if literal else f'{parameter}="{value}"'


def render(text: Any, name: Callable[[str, str], str]) -> Any:
    """Render a text for one front end; anything but a message is returned unchanged."""
    return text.render(name) if isinstance(text, Message) else text


class ResvmError(Exception):
    """An error with a message for the user and an optional hint on the next line."""

    exit_code = 1

    def __init__(self, message: Text, hint: Text | None = None) -> None:
        super().__init__(str(message) if hint is None else f"{message}\n{hint}")
        self.message = message
        self.hint = hint

    def __reduce__(self) -> Any:
        return type(self), (self.message, self.hint)


class CommandLineError(ResvmError):
    """Invalid or incompatible options. Raised only by front ends."""

    exit_code = 2


class ParameterError(ResvmError, ValueError):
    """Invalid or incompatible parameters; the message and hint are templates, as in Message."""

    exit_code = 2

    def __init__(self, message: str, hint: str | None = None, **values: Any) -> None:
        super().__init__(
            Message(message, **values), None if hint is None else Message(hint, **values)
        )

    def __reduce__(self) -> Any:
        return _parameter_error, (self.message, self.hint)


def _parameter_error(message: Message, hint: Message | None) -> ParameterError:
    values = message.values
    return ParameterError(message.template, None if hint is None else hint.template, **values)


class DataError(ResvmError, ValueError):
    """Input data that cannot be used as is."""

    exit_code = 3


class ModelError(ResvmError):
    """A model directory that is missing, damaged or not written by resvm."""

    exit_code = 4


class SolverError(ModelError):
    """LIBSVM or LIBLINEAR rejected a problem or failed on it."""


class MemberTimeout(ModelError):
    """A solver exceeded its time limit; not the fault of a candidate, so not a SolverError."""


class FileError(ResvmError):
    """Reading or writing failed: no such file, no permission, a full disk, a closed stdout."""

    exit_code = 5


class MachineError(ResvmError):
    """The system has no memory or threads left."""

    exit_code = 5


class ClusterError(ResvmError):
    """A cluster that cannot be reached, was lost, or has incompatible workers."""

    exit_code = 5


class ResultWarning(UserWarning):
    """A result that may not be what was meant: the warning says why, and what to try.

    ``warnings.simplefilter("ignore", resvm_cli.ResultWarning)`` silences all of them. The result's
    notes repeat them.
    """


def warn_caller(texts: Iterable[Text], category: type[Warning] = ResultWarning) -> None:
    """Issue warnings that point at the line that called the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_globals.get("__name__", "").startswith("resvm_cli.") and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    for text in texts:
        warnings.warn(str(text), category, stacklevel=level)


class ClosedPipe(Exception):
    """The reader of our stdout is gone. Not an error: no one is left to read."""


class Interrupted(BaseException):
    """SIGINT or SIGTERM arrived. Not an Exception, so that no handler below swallows it."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.exit_code = 128 + signal_number
