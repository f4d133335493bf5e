"""Everything that can go wrong and is not a bug, with the exit code a batch job sees."""

from __future__ import annotations


class ResvmError(Exception):
    """An error with a message for the user and, where there is one, a hint on the next line."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class CommandLineError(ResvmError):
    """Options that do not make sense, alone or together."""

    exit_code = 2


class DataError(ResvmError):
    """Input data that cannot be used as it is."""

    exit_code = 3


class ModelError(ResvmError):
    """A model directory that is missing, damaged or not ours."""

    exit_code = 4


class SolverError(ModelError):
    """LIBSVM or LIBLINEAR refused a problem or failed on it."""


class MemberTimeout(ModelError):
    """A solver did not end in the time it was given; no candidate's fault, so not a SolverError."""


class FileError(ResvmError):
    """Reading or writing failed: no such file, no permission, a full disk, a closed stdout."""

    exit_code = 5


class MachineError(ResvmError):
    """The system gave no memory or no thread, as it would give no room on a disk."""

    exit_code = 5


class ClusterError(ResvmError):
    """A cluster that cannot be reached, has gone, or is not ours to compute with."""

    exit_code = 5


class ClosedPipe(Exception):
    """The reader of our stdout has gone: not an error, there is nobody left to write for."""


class Interrupted(BaseException):
    """SIGINT or SIGTERM arrived. Not an Exception, so that no handler below swallows it."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.exit_code = 128 + signal_number
