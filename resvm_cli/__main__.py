"""Entry point of ``resvm`` and ``python -m resvm_cli``.

The command line takes a tenth of a second to import: an interrupt meanwhile ends the program
quietly. Nothing has been written by then.
"""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    os._exit(128 + number)


def program() -> NoReturn:
    """Run resvm and exit with its code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as for jobs in the background
            signal.signal(number, _leave)
    try:
        from resvm_cli import cli
    except (ImportError, MemoryError) as error:  # without address space nothing can be loaded
        told = f"resvm: error: cannot load what is needed: {error or 'out of memory'}\n"
        os.write(2, told.encode(errors="backslashreplace"))
        os.write(2, b"  hint: is memory limited (ulimit -v)?\n")
        os._exit(5)

    cli.program()


if __name__ == "__main__":
    program()
