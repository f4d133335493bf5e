"""How long the solver may take over one member.

A C call cannot be cancelled: where one does not end, the program does, from the thread that waits
for results. It is told which member that was.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from resvm_cli.errors import MemberTimeout

_running: dict[int, tuple[float, str]] = {}  # by thread: since when, and what
_limited = False


def limit_members(seconds: float) -> Callable[[], None]:
    """Time members from here on; what is returned raises once one takes longer than this."""
    global _limited
    _limited = True

    def watch() -> None:
        now = time.monotonic()
        for began, name in list(_running.values()):
            if now - began > seconds:
                raise MemberTimeout(
                    f"{name}: the solver has not ended after {now - began:.0f} s",
                    "scale the features (--scale standard), or lower -c or raise -e; or give it"
                    " longer with --member-timeout",
                )

    return watch


def members_are_limited() -> bool:
    """Whether it matters how long one member takes."""
    return _limited


@contextmanager
def timed(name: str) -> Iterator[None]:
    """A solver call of this thread."""
    thread = threading.get_ident()
    _running[thread] = time.monotonic(), name
    try:
        yield
    finally:
        del _running[thread]
