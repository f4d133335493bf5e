"""All errors that are not bugs, with their exit codes, and the warning class of the Python API.

Messages name parameters in backticks, with values as in Python: `n_pos`, `kernel='linear'`. The
command line shows them as options: ``--n-pos``, ``--kernel linear``.
"""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any


def listed(names: Sequence[str], most: int) -> str:
    """Join names with commas; those beyond ``most`` are only counted."""
    more = f", and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


class ResvmError(Exception):
    """An error with a message for the user and an optional hint on the next line."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message}\n{hint}")
        self.message = message
        self.hint = hint

    def __reduce__(self) -> Any:
        return type(self), (self.message, self.hint)


class CommandLineError(ResvmError):
    """Invalid or incompatible options. Raised only by front ends."""

    exit_code = 2


class ParameterError(ResvmError, ValueError):
    """Invalid or incompatible parameters."""

    exit_code = 2


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


def warn_caller(texts: Iterable[str], category: type[Warning] = ResultWarning) -> None:
    """Issue warnings that point to the line that called the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_globals.get("__name__", "").startswith("resvm_cli.") and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    for text in texts:
        warnings.warn(text, category, stacklevel=level)


class ClosedPipe(Exception):
    """Our stdout was closed by its reader. Not an error: no one is left to read the output."""


# What asks a run to end: a user, a closed terminal, a scheduler's warning or a time limit.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU, signal.SIGUSR1)


class Interrupted(BaseException):
    """One of these signals arrived. Not an Exception, so that no handler swallows it."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.exit_code = 128 + signal_number
