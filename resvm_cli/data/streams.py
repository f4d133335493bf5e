"""Read files, pipes and stdin in pieces, decompressed, and write to stdout.

A piece is whatever has arrived, up to a maximum size: lines from a slow pipe are passed on
immediately, and a fast pipe yields large pieces. Compression (gzip, bzip2, xz, zstandard) is
recognized by the first bytes.
"""

from __future__ import annotations

import errno
import io
import math
import os
import select
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from resvm_cli.errors import ClosedPipe, DataError, FileError

if TYPE_CHECKING:
    import bz2
    import lzma

PIECE = 1 << 20  # bytes per piece
SPOOL_MEMORY = 1 << 25  # larger spools go to TMPDIR
# How long to wait for more data from a pipe before passing on what has arrived.
PATIENCE_MILLISECONDS = 2

STDIN = STDOUT = "-"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAGICS = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")
_Decoder: TypeAlias = "bz2.BZ2Decompressor | lzma.LZMADecompressor | _Gzip | _Zstandard"


def name_of(path: str) -> str:
    """Return the name of an input for use in messages."""
    return "stdin" if path == STDIN else path


def _status(path: str) -> os.stat_result:
    return os.fstat(0) if path == STDIN else os.stat(path)


def is_regular_file(path: str) -> bool:
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


def file_error(action: str, path: str, error: OSError) -> FileError:
    reason = error.strerror or str(error)
    hint = None
    if error.errno == errno.ENOENT:
        hint = "check the path; it is relative to the current directory"
    elif error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "free some disk space or write to another disk"
    elif error.errno == errno.EISDIR:
        hint = "expected a file, not a directory"
    return FileError(f"{path}: cannot {action}: {reason}", hint)


def changed(name: str) -> DataError:
    return DataError(f"{name}: changed while it was being read", "try again")


def _stamp(descriptor: int) -> tuple[int, int]:
    """Return values that change when the content of a file does."""
    status = os.fstat(descriptor)
    return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else (0, 0)


def read_pieces(path: str) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file (``-`` for stdin) in pieces of about a megabyte."""
    name = name_of(path)
    descriptor = open_source(path)
    try:
        pieces, _ = inflated(raw_pieces(descriptor, name), name)
        yield from pieces
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
        raise file_error("read", path, error) from None


def open_spool() -> IO[bytes]:
    """Open a temporary file that stays in memory while it is small."""
    import tempfile

    try:
        return tempfile.SpooledTemporaryFile(max_size=SPOOL_MEMORY, prefix="resvm-")
    except OSError as error:
        raise cannot_spool(error) from None


def cannot_spool(error: OSError, name: str = "") -> FileError:
    directory = os.environ.get("TMPDIR", "the temporary directory")
    return file_error(f"spool {name}".strip(), directory, error)


def as_unicode(text: str) -> str:
    """Replace bytes that are not valid UTF-8 with escapes such as \\xff."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def as_json(value: Any) -> Any:
    """Return the data as valid Unicode, with None for nan and infinities, which JSON lacks."""
    if isinstance(value, dict):
        return {as_unicode(str(key)): as_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(entry) for entry in value]
    if isinstance(value, str):
        return as_unicode(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
        raise file_error("read", name_of(path), error) from None
    return descriptor


def raw_pieces(descriptor: int, name: str) -> Iterator[bytes]:
    """Yield the bytes of an open file or pipe from its current position."""
    try:
        stamp = _stamp(descriptor)
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            _widen(descriptor)
        arrival = select.poll()
        arrival.register(descriptor, select.POLLIN)
        while True:
            arrival.poll()  # reading an empty non-blocking pipe would fail
            piece = os.read(descriptor, PIECE)
            if not piece:
                if stamp != _stamp(descriptor):
                    raise changed(name)
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
        raise file_error("read", name, error) from None


def _widen(descriptor: int) -> None:
    """Enlarge a pipe's buffer to PIECE bytes, so that a fast writer can fill whole pieces."""
    import fcntl

    resize = getattr(fcntl, "F_SETPIPE_SZ", None)  # Linux
    if resize is not None:
        with suppress(OSError):  # above the system's limit: pieces stay smaller
            fcntl.fcntl(descriptor, resize, PIECE)


def opening(pieces: Iterator[bytes], prefixes: Iterable[bytes]) -> bytes:
    """Return enough of the first bytes to tell whether they begin with one of the prefixes."""
    head = next(pieces, b"")
    # a pipe may deliver a prefix in parts; do not wait for more if this cannot begin one
    while head and any(prefix != head and prefix.startswith(head) for prefix in prefixes):
        more = next(pieces, b"")
        if not more:
            break
        head += more
    return head


def inflated(raw: Iterator[bytes], name: str) -> tuple[Iterator[bytes], bool]:
    """Decompress pieces that begin with a known magic number; also return whether they do."""
    head = opening(raw, MAGICS)
    pieces = chain([head] if head else [], raw)
    compressed = _decoder_for(head, name)
    if compressed is None:
        return pieces, False
    kind, new, errors = compressed
    return _inflate(pieces, new, errors, name, kind), True


def _damaged(name: str, kind: str, reason: str) -> DataError:
    return DataError(
        f"{name}: damaged {kind} data: {reason}",
        "the file may have been truncated when it was copied; compare its size or checksum",
    )


class _Gzip:
    """Give zlib the interface of bz2 and lzma; with wbits=31, zlib verifies the CRC itself."""

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
    """Give the zstandard package the same interface.

    It cannot limit the output of a call, so we pass it small pieces of input, each of which
    decompresses to at most 32 MB.
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
    """Return the decompressor's name, constructor and exceptions; None for plain data."""
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
                f"{name}: reading zstandard data requires the zstandard package",
                "pip install zstandard, or decompress in a pipe: zstdcat FILE | resvm ...",
            ) from None
        return "zstandard", _Zstandard, (zstandard.ZstdError,)
    return None


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
                    break  # zero padding after the last stream, as in xz files or on tapes
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
        raise _damaged(name, kind, "unexpected end of data")


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
            raise file_error("write", "stdout", error) from None


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


class Source:
    """An input that can be read repeatedly; piped input is spooled in memory, then in TMPDIR."""

    def __init__(self, path: str, *, once: bool = False) -> None:
        self.name = name_of(path)
        self._path = path
        self._once = once  # read only once, so a pipe need not be spooled
        self._owned = path != STDIN
        self._descriptor = open_source(path)
        self._regular = stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        self._stamp = _stamp(self._descriptor)
        self._base = os.lseek(self._descriptor, 0, os.SEEK_CUR) if self._regular else 0
        self._spool: IO[bytes] | None = None
        self._arriving: Iterator[bytes] = iter(())  # bytes that are not spooled yet
        self._reading = threading.Lock()  # another thread may read the same input
        self._compressed = False  # if so, offsets in the text are not offsets in the file
        self.spooled_bytes = 0

    @property
    def plain_path(self) -> str | None:
        """The path if this is an uncompressed regular file; call ``pieces`` first."""
        return self._path if self._owned and self._regular and not self._compressed else None

    @property
    def spooled_to_disk(self) -> bool:
        return self.spooled_bytes > SPOOL_MEMORY

    def pieces(self) -> Iterator[bytes]:
        """Yield the decompressed bytes from the beginning, in pieces of up to a megabyte."""
        text, self._compressed = inflated(self._raw(), self.name)
        return text

    def _raw(self) -> Iterator[bytes]:
        """Yield the bytes from the beginning; several passes may run at the same time."""
        if not self._regular and self._once:
            yield from raw_pieces(self._descriptor, self.name)
            return
        if not self._regular and self._spool is None:
            self._spool = open_spool()
            self._arriving = raw_pieces(self._descriptor, self.name)
        at = 0
        while True:
            with self._reading:
                piece = self._read(at, PIECE) or self._arrived()
            if not piece:
                self.require_unchanged()
                return
            yield piece
            at += len(piece)

    def _read(self, start: int, size: int) -> bytes:
        """Return some of the bytes of the file, or of those that are spooled."""
        try:
            if self._spool is None:
                return os.pread(self._descriptor, size, self._base + start)
            self._spool.seek(start)
            return self._spool.read(size)
        except OSError as error:
            raise file_error("read", self.name, error) from None

    def _arrived(self) -> bytes:
        """Spool and return the bytes that arrive next; return b"" at the end."""
        if self._spool is None:
            return b""
        piece = next(self._arriving, b"")
        try:
            self._spool.seek(self.spooled_bytes)
            self._spool.write(piece)
            self._spool.flush()
        except OSError as error:
            raise cannot_spool(error, self.name) from None
        self.spooled_bytes += len(piece)
        return piece

    def spans(self, bounds: Iterable[tuple[int, int]]) -> Iterator[bytes]:
        """Yield the decompressed bytes between each pair of offsets, in ascending order."""
        if self._compressed:
            yield from _between(self.pieces(), bounds)
        else:
            for start, stop in bounds:
                while start < stop and (piece := self._read(start, min(stop - start, PIECE))):
                    yield piece
                    start += len(piece)
        self.require_unchanged()

    def require_unchanged(self) -> None:
        """Raise DataError if the file was written to since it was opened."""
        if self._stamp != _stamp(self._descriptor):
            raise changed(self.name)

    def close(self) -> None:
        if self._spool is not None:
            with suppress(OSError):  # on a full disk the last flush fails, which is harmless
                self._spool.close()
        if self._owned:
            os.close(self._descriptor)


def _between(pieces: Iterator[bytes], bounds: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    """Yield the parts of a stream between each pair of offsets, in ascending order."""
    start_of_piece = 0
    piece = next(pieces, b"")
    for start, stop in bounds:
        while piece:
            end_of_piece = start_of_piece + len(piece)
            if start < end_of_piece:
                yield piece[max(0, start - start_of_piece) : stop - start_of_piece]
            if stop <= end_of_piece:
                break
            start_of_piece = end_of_piece
            piece = next(pieces, b"")
