"""Termination signals: when they take effect, and when they arrive too late.

A signal is deferred while an output is renamed to its final path. Once all requested output exists,
it has no effect.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from resvm_cli.errors import Interrupted

_awaited: str | None = None  # once this output exists, the command is done
_done = False
_signals_wait = False
_waiting: int | None = None


def done_when(path: str) -> None:
    """Declare that the command is done once this output exists."""
    global _awaited, _done
    _awaited, _done = _true_path(path), False


def is_done() -> bool:
    return _done


def arrived(number: int) -> None:
    """Handle a signal now, or at the end of a section that must not be interrupted."""
    global _waiting
    if _signals_wait:
        _waiting = number
    else:
        raise Interrupted(number)


@contextmanager
def held(path: str) -> Iterator[None]:
    """Defer signals while an output is moved to its path, until the move succeeds or fails."""
    global _signals_wait, _done, _waiting
    _signals_wait = True
    try:
        yield
        _done = _done or (_awaited is not None and _true_path(path) == _awaited)
    finally:
        _signals_wait = False
        number, _waiting = _waiting, None
        if number is not None:
            raise Interrupted(number)


def _true_path(path: str) -> str:
    try:
        return os.path.realpath(path)
    except OSError:  # the working directory is gone
        return path
