"""All errors that are not bugs, with their exit codes, and the warning class of the Python API."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

PYTHON_NAMES = {"output": "path"}  # parameters whose Python keyword differs from the option


class Message:
    """Text with parameter names that each front end renders in its own way.

    ``{n_pos}`` is ``--n-pos`` on the command line and ``n_pos`` in Python; ``{decision:mean}`` is
    ``--decision mean`` and ``decision="mean"``. All other fields are values passed by keyword.
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


Text: TypeAlias = "str | Message"  # a str is shown as is


def listed(names: Sequence[str], most: int) -> str:
    """Join names with commas; those beyond ``most`` are only counted."""
    more = f", and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


class _Fields(dict[str, Any]):
    """Values by name; any other field in a template refers to a parameter."""

    def __init__(self, values: Mapping[str, Any], name: Callable[[str, str], str]) -> None:
        super().__init__((field, render(value, name)) for field, value in values.items())
        self._name = name

    def __missing__(self, field: str) -> _Named:
        return _Named(field, self._name)


class _Named:
    """A parameter in a template; the format specification is the parameter's value."""

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
    """Render a message for one front end; return anything else unchanged."""
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

    def __init__(self, message: Text, hint: Text | None = None, **values: Any) -> None:
        if isinstance(message, str):
            message = Message(message, **values)
        if isinstance(hint, str):
            hint = Message(hint, **values)
        super().__init__(message, hint)


class DataError(ResvmError, ValueError):
    """The input data cannot be used as is."""

    exit_code = 3


class ModelError(ResvmError):
    """A model directory is missing, damaged or not written by resvm."""

    exit_code = 4


class SolverError(ModelError):
    """LIBSVM or LIBLINEAR rejected a training problem or failed to solve it."""


class FileError(ResvmError):
    """Reading or writing failed: no such file, no permission, a full disk, a closed stdout."""

    exit_code = 5


class MachineError(ResvmError):
    """The system ran out of memory or threads."""

    exit_code = 5


class ClusterError(ResvmError):
    """A cluster is unreachable, was lost, or has incompatible workers."""

    exit_code = 5


class ResultWarning(UserWarning):
    """A result may not be what you intended. The warning says why and what to try.

    ``warnings.simplefilter("ignore", resvm_cli.ResultWarning)`` silences all such warnings. They
    are also listed in the result's notes.
    """


def warn_caller(texts: Iterable[Text], category: type[Warning] = ResultWarning) -> None:
    """Issue warnings that point to the line that called the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_globals.get("__name__", "").startswith("resvm_cli.") and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    for text in texts:
        warnings.warn(str(text), category, stacklevel=level)


class ClosedPipe(Exception):
    """Our stdout was closed by its reader. Not an error: no one is left to read the output."""


class Interrupted(BaseException):
    """SIGINT or SIGTERM arrived. Not an Exception, so that no handler swallows it."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.exit_code = 128 + signal_number
