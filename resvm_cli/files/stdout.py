"""stdout, whose failures are ours to name: a reader gone, a full device, a closed descriptor."""

from __future__ import annotations

import errno
import io
import os
import sys

from resvm_cli.errors import ClosedPipe, FileError
from resvm_cli.files.streams import cannot

STDOUT = "-"


class _Stdout(io.RawIOBase):
    """The process's stdout, whose failures are ours to name: a reader gone, a full device."""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 1

    def isatty(self) -> bool:
        return os.isatty(1)

    def write(self, data: object, /) -> int:
        try:
            return os.write(1, data)  # type: ignore[arg-type]
        except BrokenPipeError:
            _abandon_stdout()
            raise ClosedPipe from None
        except OSError as error:
            _abandon_stdout()
            if error.errno == errno.EBADF:
                raise FileError("stdout: cannot write: it is closed") from None
            raise cannot("write", "stdout", error) from None


def guard_stdout() -> None:
    """Let everything that prints, ours or a library's, fail in the same way."""
    try:
        os.fstat(1)
    except OSError:
        # closed: keep the number from going to the next file that is opened; writing fails (EBADF)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 1)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Stdout()), "utf-8", "surrogateescape", newline="", line_buffering=True
    )


def write_stdout(data: bytes) -> None:
    """Write and flush: a block is with its reader before the next is computed."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _abandon_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush does not fail again."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    if nothing != 1:
        os.dup2(nothing, 1)
        os.close(nothing)
