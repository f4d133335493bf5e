"""Read files, pipes and stdin in pieces and lines, and write to stdout.

A piece is whatever has arrived, up to a maximum size: lines from a slow pipe are passed on
immediately, and a fast pipe yields large pieces.
"""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import IO

from resvm_cli.errors import ClosedPipe, DataError, FileError
from resvm_cli.files.compression import PIECE, inflated, opening

SPOOL_MEMORY = 1 << 25  # larger spools go to TMPDIR
# How long to wait for more data from a pipe before passing on what has arrived.
PATIENCE_MILLISECONDS = 2

STDIN = STDOUT = "-"
# About four million values. Without a limit, a binary file would be read into memory as one line.
MAX_LINE = 1 << 26
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def name_of(path: str) -> str:
    """Return the name of an input for use in messages."""
    return "stdin" if path == STDIN else path


def _status(path: str) -> os.stat_result:
    return os.fstat(0) if path == STDIN else os.stat(path)


def comes_at_once(path: str) -> bool:
    """Whether an input is a regular file, not a pipe that may still be written to."""
    try:
        return stat.S_ISREG(_status(path).st_mode)
    except OSError:
        return False


def same_source(first: str, second: str) -> bool:
    try:
        return first == second or os.path.samestat(_status(first), _status(second))
    except OSError:
        return False


def cannot(action: str, path: str, error: OSError) -> FileError:
    reason = error.strerror or str(error)
    hint = None
    if error.errno == errno.ENOENT:
        hint = "check the path; it is relative to the current directory"
    elif error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "free some disk space or write to another disk"
    elif error.errno == errno.EISDIR:
        hint = "expected a file, not a directory"
    return FileError(f"{path}: cannot {action}: {reason}", hint)


def read_pieces(path: str) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file (``-`` for stdin) in pieces of about a megabyte."""
    name = name_of(path)
    descriptor = open_source(path)
    try:
        yield from inflated(raw_pieces(descriptor, name), name)
    finally:
        if path != STDIN:
            os.close(descriptor)


def text_pieces(path: str) -> Iterator[bytes]:
    """Yield the pieces of a text file like ``read_pieces``, without a leading byte-order mark."""
    return without_mark(read_pieces(path))


def read_regular(path: str, limit: int = -1, *, follow_links: bool = True) -> bytes:
    """Read a regular file, or its first ``limit`` bytes; reject pipes, as they may never end."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow_links else os.O_NOFOLLOW)
    try:
        with open(os.open(path, flags), "rb") as handle:
            status = os.fstat(handle.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise FileError(f"{path}: not a regular file")
            # read() allocates its limit at once, and ours may far exceed the file size
            return handle.read(min(limit, status.st_size + 1))
    except OSError as error:
        raise cannot("read", path, error) from None


def file_digest(path: str) -> str:
    """Return the SHA-256 digest of a file as it is stored, without decompressing it."""
    import hashlib

    digest = hashlib.sha256()
    descriptor = open_source(path)
    try:
        for piece in raw_pieces(descriptor, path):
            digest.update(piece)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


def open_spool() -> IO[bytes]:
    """Open a temporary file that stays in memory while it is small."""
    import tempfile

    try:
        return tempfile.SpooledTemporaryFile(max_size=SPOOL_MEMORY, prefix="resvm-")
    except OSError as error:
        raise cannot_spool(error) from None


def cannot_spool(error: OSError, name: str = "") -> FileError:
    directory = os.environ.get("TMPDIR", "the temporary directory")
    return cannot(f"spool {name}".strip(), directory, error)


def whole_lines(
    pieces: Iterable[bytes], multiple: int = 1, *, name: str = "the input"
) -> Iterator[bytes]:
    """Regroup text into pieces of complete lines; add a newline at the end if it is missing.

    The number of lines in a long piece is a multiple of ``multiple``.
    """
    import numpy as np  # imported here so that commands that read nothing start faster

    from resvm_cli.files import _svmlight as tokenizer

    carried: list[bytes] = []
    n_carried = 0  # complete lines carried over: fewer than the multiple
    size = 0  # bytes carried over
    for piece in pieces:
        cut = piece.rfind(b"\n") + 1
        if cut == 0:
            carried.append(piece)
            size += len(piece)
            if size > MAX_LINE:
                raise DataError(
                    f"{name}: a line is longer than {MAX_LINE:,} bytes",
                    "expected text with one row per line; is the file binary?",
                )
            continue
        view = memoryview(piece)
        beyond = 0
        if multiple > 1:
            tokenizer.newlines(view[:cut], cut, count := np.zeros(1, np.int64))
            n_lines = n_carried + int(count[0])
            beyond = n_lines % multiple if n_lines > multiple else 0
            for _ in range(beyond):
                cut = piece.rfind(b"\n", 0, cut - 1) + 1
        whole = cut == len(piece) and not carried
        yield piece if whole else b"".join([*carried, view[:cut]])
        carried = [piece[cut:]] if cut < len(piece) else []
        size = len(piece) - cut
        n_carried = beyond
    rest = b"".join(carried)
    if rest:
        yield rest if rest.endswith(b"\n") else rest + b"\n"


def as_unicode(text: str) -> str:
    """Replace bytes that are not valid UTF-8 with escapes such as \\xff."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def text_lines(pieces: Iterable[bytes], name: str, before: int = 0) -> Iterator[tuple[int, str]]:
    """Yield numbered lines without their newlines; invalid UTF-8 bytes become surrogates."""
    number = before
    for part in whole_lines(pieces, name=name):
        for line in part.decode("utf-8", "surrogateescape").split("\n")[:-1]:
            number += 1
            yield number, line


def without_mark(pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield opening(pieces, [BYTE_ORDER_MARK]).removeprefix(BYTE_ORDER_MARK)
    yield from pieces


def open_source(path: str) -> int:
    """Open a file for reading and return its descriptor (``-`` for stdin)."""
    try:
        if path == STDIN:
            if sys.stdin is None:
                raise FileError("stdin: cannot read: it is closed")
            return sys.stdin.fileno()
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise IsADirectoryError(errno.EISDIR, "Is a directory")
    except OSError as error:
        raise cannot("read", name_of(path), error) from None
    return descriptor


def raw_pieces(descriptor: int, name: str, size_of_piece: int = PIECE) -> Iterator[bytes]:
    """Yield the bytes of an open file or pipe from its current position."""
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode):
            while piece := os.read(descriptor, size_of_piece):
                yield piece
            return
        if stat.S_ISFIFO(mode):
            _widen(descriptor)
        arrival = select.poll()
        arrival.register(descriptor, select.POLLIN)
        while True:
            arrival.poll()  # reading an empty non-blocking pipe would fail
            piece = os.read(descriptor, PIECE)
            if not piece:
                return
            parts, size = [piece], len(piece)
            while size < PIECE and arrival.poll(PATIENCE_MILLISECONDS):
                more = os.read(descriptor, PIECE - size)
                if not more:
                    break
                parts.append(more)
                size += len(more)
            yield b"".join(parts)
    except OSError as error:
        raise cannot("read", name, error) from None


def _widen(descriptor: int) -> None:
    """Enlarge a pipe's buffer to the size of a piece, so that a fast writer fills large pieces."""
    import fcntl

    resize = getattr(fcntl, "F_SETPIPE_SZ", None)  # Linux
    if resize is not None:
        with suppress(OSError):  # above the system's limit: pieces stay smaller
            fcntl.fcntl(descriptor, resize, PIECE)


class _Stdout(io.RawIOBase):
    """Stdout of this process; raises our own errors if the pipe is closed or the disk is full."""

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
    """Replace sys.stdout so that a failed write, ours or a library's, raises our own errors."""
    try:
        os.fstat(1)
    except OSError:
        # closed: occupy descriptor 1, or the next file opened would get it; writes fail (EBADF)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 1)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Stdout()), "utf-8", "surrogateescape", newline="", line_buffering=True
    )


def write_stdout(data: bytes) -> None:
    """Write and flush, so that the reader gets this block before we compute the next one."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _abandon_stdout() -> None:
    """Redirect stdout to /dev/null, so that the flush at exit does not fail again."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    if nothing != 1:
        os.dup2(nothing, 1)
        os.close(nothing)


def package_text(name: str) -> str:
    """Read a text file that ships with the package; ``name`` is its path in the package."""
    from importlib.resources import files  # imported here because few runs need it

    return (files("resvm_cli") / name).read_text(encoding="utf-8")
