"""Signals that ask the program to end: when they take effect, and when they come too late.

A signal waits while an output is renamed to its final path. Once everything requested is there, it
has no effect.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from resvm_cli.errors import Interrupted

_awaited: str | None = None  # once this output is there, the command is done
_done = False
_signals_wait = False
_waiting: int | None = None


def done_when(path: str) -> None:
    """Declare that the command is done once this output is at its path."""
    global _awaited, _done
    _awaited, _done = _true_path(path), False


def is_done() -> bool:
    return _done


def arrived(number: int) -> None:
    """Handle a signal now, or when what must not be interrupted is over."""
    global _waiting
    if _signals_wait:
        _waiting = number
    else:
        raise Interrupted(number)


@contextmanager
def held(path: str) -> Iterator[None]:
    """Move an output to its path; a signal waits until that is done or has failed."""
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
