"""Bytes in and out: files, pipes and stdin read in pieces, decompressed by their magic bytes.

A piece is whatever has arrived, up to a size: a slow pipe is answered line by line, a fast one in
large pieces.
"""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import IO, Protocol

from resvm_cli.errors import ClosedPipe, DataError, FileError

PIECE = 1 << 20
SPOOL_MEMORY = 1 << 25
# A writer between two writes gets this long before its lines are taken as all there is.
PATIENCE_MILLISECONDS = 2

STDIN = "-"
STDOUT = "-"

MAGICS = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")


def name_of(path: str) -> str:
    """What messages call this input."""
    return "stdin" if path == STDIN else path


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


class Source:
    """An input that can be read again: a pipe is spooled, in memory at first, then to TMPDIR."""

    def __init__(self, path: str, *, once: bool = False) -> None:
        self.name = name_of(path)
        self._once = once  # it will not be read again: nothing needs to be spooled
        self._owned = path != STDIN
        self._descriptor = open_source(path)
        found = os.fstat(self._descriptor)
        self._regular = stat.S_ISREG(found.st_mode)
        self._stamp = (found.st_size, found.st_mtime_ns)
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
        self._plain = not isinstance(text, _Inflated)
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
        found = os.fstat(self._descriptor)
        if self._regular and self._stamp != (found.st_size, found.st_mtime_ns):
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


def inflated(raw: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Pieces decompressed, where their first bytes say that they are compressed."""
    head = next(raw, b"")
    # a pipe may give less than a magic at first; text is not held back for more
    while head and any(magic != head and magic.startswith(head) for magic in MAGICS):
        more = next(raw, b"")
        if not more:
            break
        head += more

    def pieces() -> Iterator[bytes]:
        if head:
            yield head
        yield from raw

    compressed = _decoder_for(head, name)
    if compressed is None:
        return pieces()
    kind, new, errors = compressed
    return _Inflated(_inflate(pieces(), new, errors, name, kind))


def _damaged(name: str, kind: str, reason: str) -> DataError:
    return DataError(
        f"{name}: {kind} data is damaged: {reason}",
        "the file may have been cut short while copying; compare its size or checksum",
    )


class _Decoder(Protocol):
    """What bz2 and lzma offer, and the adapters below for the others."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Gzip:
    """zlib behind the interface of bz2 and lzma; it checks the CRC itself (wbits 31)."""

    def __init__(self) -> None:
        import zlib

        self._zlib = zlib.decompressobj(31)
        self.eof = False
        self.needs_input = True
        self.unused_data = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        tail = self._zlib.unconsumed_tail
        text = self._zlib.decompress(tail + data if tail else data, max_length)
        self.eof = self._zlib.eof
        self.unused_data = self._zlib.unused_data
        self.needs_input = not self._zlib.unconsumed_tail and len(text) < max_length
        return text


class _Zstandard:
    """The zstandard package behind the same interface.

    One call's output has no limit there, so it gets small bites: at worst one expands to 32 MB.
    """

    BITE = 1 << 10

    def __init__(self) -> None:
        import zstandard

        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._waiting = memoryview(b"")
        self.eof = False
        self.needs_input = True
        self.unused_data = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        waiting = memoryview(data) if data else self._waiting
        parts: list[bytes] = []
        size = 0
        while waiting and size < max_length and not self.eof:
            parts.append(self._frame.decompress(waiting[: self.BITE]))
            size += len(parts[-1])
            waiting = waiting[self.BITE :]
            self.eof = self._frame.eof
        if self.eof:
            self.unused_data = self._frame.unused_data + bytes(waiting)
        self._waiting = waiting
        self.needs_input = not waiting
        return b"".join(parts)


def _decoder_for(
    head: bytes, name: str
) -> tuple[str, Callable[[], _Decoder], tuple[type[Exception], ...]] | None:
    """Name, maker and errors of the decompressor that these first bytes ask for, if any."""
    if head.startswith(b"\x1f\x8b"):
        import zlib

        return "gzip", _Gzip, (zlib.error,)
    if head.startswith(b"BZh"):
        import bz2

        return "bzip2", bz2.BZ2Decompressor, (OSError, ValueError)
    if head.startswith(b"\xfd7zXZ\x00"):
        import lzma

        return "xz", lzma.LZMADecompressor, (lzma.LZMAError,)
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        try:
            import zstandard
        except ImportError:
            raise DataError(
                f"{name}: zstandard data, and the package that reads it is not installed",
                "pip install zstandard, or pipe it in: zstdcat FILE | resvm ...",
            ) from None
        return "zstandard", _Zstandard, (zstandard.ZstdError,)
    return None


class _Inflated(Iterator[bytes]):
    """Pieces that came out of a decompressor: their offsets are not those of the file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def __next__(self) -> bytes:
        return next(self._pieces)


def _inflate(
    pieces: Iterator[bytes],
    new: Callable[[], _Decoder],
    errors: tuple[type[Exception], ...],
    name: str,
    kind: str,
) -> Iterator[bytes]:
    decoder = new()
    for piece in pieces:
        while piece:
            if decoder.eof:
                if not piece.strip(b"\0"):
                    break  # padding behind the last stream, as tapes and xz leave it
                decoder = new()
            try:
                text = decoder.decompress(piece, PIECE)
                while not decoder.eof and not decoder.needs_input:
                    yield text
                    text = decoder.decompress(b"", PIECE)
            except errors as error:
                raise _damaged(name, kind, str(error)) from None
            if text:
                yield text
            piece = decoder.unused_data if decoder.eof else b""
    if not decoder.eof:
        raise _damaged(name, kind, "it ends too early")


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
