"""Where bytes come from: files, pipes and stdin, in pieces, once or twice.

A piece is whatever has arrived, up to a size: a slow pipe is answered line by line, a fast one in
large pieces.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import IO

from resvm_cli.errors import DataError, FileError
from resvm_cli.files.compression import PIECE, Inflated, inflated

SPOOL_MEMORY = 1 << 25
# A writer between two writes gets this long before its lines are taken as all there is.
PATIENCE_MILLISECONDS = 2

STDIN = "-"
# Four million values of a row; what has no newline is otherwise held in memory, whatever it is.
LONGEST_LINE = 1 << 26
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def name_of(path: str) -> str:
    """What messages call this input."""
    return "stdin" if path == STDIN else path


def comes_at_once(path: str) -> bool:
    """Whether all of an input is there to be read: a file, not a pipe someone may be writing to."""
    try:
        status = os.fstat(0) if path == STDIN else os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode)


def same_source(first: str, second: str) -> bool:
    """Whether two paths name one file or pipe."""

    def status(path: str) -> os.stat_result:
        return os.fstat(0) if path == STDIN else os.stat(path)

    try:
        return first == second or os.path.samestat(status(first), status(second))
    except OSError:
        return False


def cannot(action: str, path: str, error: OSError) -> FileError:
    """The error for a failed system call, in the user's words."""
    reason = error.strerror or str(error)
    hint = None
    if error.errno == errno.ENOENT:
        hint = "check the path; it is taken relative to the current directory"
    elif error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "free some space or write elsewhere"
    elif error.errno == errno.EISDIR:
        hint = "a file was expected here, not a directory"
    return FileError(f"{path}: cannot {action}: {reason}", hint)


def read_pieces(path: str) -> Iterator[bytes]:
    """The decompressed bytes of a file, or of stdin for ``-``, in pieces of about a megabyte."""
    name = name_of(path)
    descriptor = open_source(path)
    try:
        yield from inflated(raw_pieces(descriptor, name), name)
    finally:
        if path != STDIN:
            os.close(descriptor)


def whole_lines(
    pieces: Iterable[bytes], multiple: int = 1, *, name: str = "the input"
) -> Iterator[bytes]:
    """The same text, cut behind newlines only; a missing last newline is added.

    Cuts come behind a multiple of so many lines where a piece has as many. ``name`` is what a line
    without an end is refused by.
    """
    import numpy as np  # here: a command that reads nothing does not wait for it

    from resvm_cli.files import _svmlight as tokenizer

    carried: list[bytes] = []
    n_carried = 0  # complete lines among them: fewer than the multiple
    size = 0  # of what is carried
    for piece in pieces:
        cut = piece.rfind(b"\n") + 1
        if cut == 0:
            carried.append(piece)
            size += len(piece)
            if size > LONGEST_LINE:
                raise DataError(
                    f"{name}: a line of more than {LONGEST_LINE:,} bytes",
                    "text with one row a line was expected; is the file binary?",
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
    """A name as JSON and pages can hold it: bytes that are not UTF-8 are spelled out, as \\xff."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def text_lines(pieces: Iterable[bytes], name: str, before: int = 0) -> Iterator[tuple[int, str]]:
    """Numbered lines as text, without their newlines; bytes that are not UTF-8 are kept."""
    number = before
    for part in whole_lines(pieces, name=name):
        for line in part.decode("utf-8", "surrogateescape").split("\n")[:-1]:
            number += 1
            yield number, line


def without_mark(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same text without a byte-order mark at its beginning."""
    yield next(pieces, b"").removeprefix(BYTE_ORDER_MARK)
    yield from pieces


class Source:
    """An input that can be read again: a pipe is spooled, in memory at first, then to TMPDIR."""

    def __init__(self, path: str, *, once: bool = False) -> None:
        self.name = name_of(path)
        self._once = once  # it will not be read again: nothing needs to be spooled
        self._owned = path != STDIN
        self._descriptor = open_source(path)
        status = os.fstat(self._descriptor)
        self._regular = stat.S_ISREG(status.st_mode)
        self._stamp = (status.st_size, status.st_mtime_ns)
        self._base = os.lseek(self._descriptor, 0, os.SEEK_CUR) if self._regular else 0
        self._spool: IO[bytes] | None = None
        self._plain = True
        self.spooled_bytes = 0

    @property
    def spooled_to_disk(self) -> bool:
        return self.spooled_bytes > SPOOL_MEMORY

    def pieces(self, size: int = PIECE) -> Iterator[bytes]:
        """The decompressed bytes from the beginning, in pieces of up to this size."""
        text = inflated(self._raw(size), self.name)
        self._plain = not isinstance(text, Inflated)
        return text

    def _raw(self, size: int) -> Iterator[bytes]:
        if self._regular:
            os.lseek(self._descriptor, self._base, os.SEEK_SET)
            return raw_pieces(self._descriptor, self.name, size)
        if self._once:
            return raw_pieces(self._descriptor, self.name, size)
        if self._spool is None:
            return self._spooling()
        self._spool.seek(0)
        return iter(lambda: self._read_spool(size), b"")

    def _spooling(self) -> Iterator[bytes]:
        import tempfile

        place = os.environ.get("TMPDIR", "the temporary directory")
        try:
            self._spool = tempfile.SpooledTemporaryFile(  # noqa: SIM115 - close() does
                max_size=SPOOL_MEMORY, prefix="resvm-"
            )
            for piece in raw_pieces(self._descriptor, self.name):
                self._spool.write(piece)
                self.spooled_bytes += len(piece)
                yield piece
            self._spool.flush()
        except OSError as error:
            raise cannot(f"spool {self.name}", place, error) from None

    def _read_spool(self, size: int) -> bytes:
        assert self._spool is not None
        return self._spool.read(size)

    def spans(self, bounds: Iterable[tuple[int, int]]) -> Iterator[bytes]:
        """The decompressed bytes between these ascending offsets; skipped over where possible."""
        try:
            if not self._plain:
                yield from _cut(self.pieces(), bounds)
            elif self._regular:
                for start, stop in bounds:
                    yield self._read_at(start, stop)
            else:
                for start, stop in bounds:
                    assert self._spool is not None
                    self._spool.seek(start)
                    yield self._read_spool(min(stop, self.spooled_bytes) - start)
        except OSError as error:
            raise cannot("read", self.name, error) from None
        self._require_unchanged()

    def _read_at(self, start: int, stop: int) -> bytes:
        stop = min(stop, self._stamp[0] - self._base)
        parts = []
        while start < stop and (
            part := os.pread(self._descriptor, stop - start, self._base + start)
        ):
            parts.append(part)
            start += len(part)
        return b"".join(parts)

    def _require_unchanged(self) -> None:
        status = os.fstat(self._descriptor)
        if self._regular and self._stamp != (status.st_size, status.st_mtime_ns):
            raise DataError(f"{self.name}: changed while it was being read", "try again")

    def close(self) -> None:
        if self._spool is not None:
            with suppress(OSError):  # what a full disk did not take is not needed any more
                self._spool.close()
        if self._owned:
            os.close(self._descriptor)


def _cut(pieces: Iterator[bytes], bounds: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    """The parts of a stream between ascending offsets."""
    start_of_piece = 0
    piece = next(pieces, b"")
    for start, stop in bounds:
        parts = []
        while piece:
            end_of_piece = start_of_piece + len(piece)
            if start < end_of_piece:
                parts.append(piece[max(0, start - start_of_piece) : stop - start_of_piece])
            if stop <= end_of_piece:
                break
            start_of_piece = end_of_piece
            piece = next(pieces, b"")
        yield b"".join(parts)


def open_source(path: str) -> int:
    """A descriptor to read from; stdin's own for ``-``."""
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
    """The bytes of an open file or pipe, from where it stands."""
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
            arrival.poll()  # a non-blocking pipe would fail where there is nothing yet
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
    """Let a pipe hold a whole piece, so that a fast writer is met with large blocks."""
    import fcntl

    resize = getattr(fcntl, "F_SETPIPE_SZ", None)  # Linux
    if resize is not None:
        with suppress(OSError):  # a limit of the system: smaller blocks, the same values
            fcntl.fcntl(descriptor, resize, PIECE)
