"""Entry point for ``resvm`` and ``python -m resvm_cli``.

Importing the command line takes a tenth of a second. An interrupt during that time ends the program
quietly, because nothing has been written yet. By default, Python runs its garbage collector after
every 700 new objects. A small run creates 50,000 objects and little garbage, so this would waste
10 ms.
"""

from __future__ import annotations

import gc
import os
import signal
from types import FrameType
from typing import NoReturn

from resvm_cli.errors import SIGNALS

NEW_OBJECTS = 100_000  # between two runs of the garbage collector


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    os._exit(128 + number)


def program() -> NoReturn:
    """Run resvm and exit with its exit code."""
    gc.set_threshold(NEW_OBJECTS)
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # ignored in background jobs
            signal.signal(number, _leave)
    try:
        from resvm_cli.cli import app
    except (ImportError, MemoryError, OSError) as error:  # too little address space or files
        message = f"resvm: error: cannot load a library: {error or 'out of memory'}\n"
        os.write(2, message.encode(errors="backslashreplace"))
        os.write(2, b"  hint: are memory or open files limited (ulimit -v -n)?\n")
        os._exit(5)

    app.program()


if __name__ == "__main__":
    program()
