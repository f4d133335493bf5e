"""Signals that ask the program to end: when they take effect, and when they come too late.

While an output is put in its place a signal waits; once all that was asked for is there, it changes
nothing any more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from resvm_cli.errors import Interrupted

_awaited: str | None = None  # the output with which the command is done
_done = False
_signals_wait = False
_waiting: int | None = None


def done_when(path: str) -> None:
    """Say that the command has nothing left to do once this output is in its place."""
    global _awaited, _done
    _awaited, _done = _true_path(path), False


def is_done() -> bool:
    return _done


def arrived(number: int) -> None:
    """Take in a signal: now, or when what must not be interrupted is over."""
    global _waiting
    if _signals_wait:
        _waiting = number
    else:
        raise Interrupted(number)


@contextmanager
def held(path: str) -> Iterator[None]:
    """Put an output in its place; a signal waits until that is done, or has failed."""
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
