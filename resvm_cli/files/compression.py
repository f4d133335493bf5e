"""Decompress gzip, bzip2, xz and zstandard data, recognized by its first bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from resvm_cli.errors import DataError

if TYPE_CHECKING:
    import bz2
    import lzma

PIECE = 1 << 20  # bytes per piece
MAGICS = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")
_Decoder: TypeAlias = "bz2.BZ2Decompressor | lzma.LZMADecompressor | _Gzip | _Zstandard"


def opening(pieces: Iterator[bytes], prefixes: Iterable[bytes]) -> bytes:
    """Return enough of the first bytes to tell whether they begin with one of the prefixes."""
    head = next(pieces, b"")
    # a pipe may deliver a prefix in parts; do not wait for more if this cannot be one
    while head and any(prefix != head and prefix.startswith(head) for prefix in prefixes):
        more = next(pieces, b"")
        if not more:
            break
        head += more
    return head


def inflated(raw: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Return the pieces, decompressed if the first bytes are a known magic number."""
    head = opening(raw, MAGICS)
    pieces = chain([head] if head else [], raw)
    compressed = _decoder_for(head, name)
    if compressed is None:
        return pieces
    kind, new, errors = compressed
    return Inflated(_inflate(pieces, new, errors, name, kind))


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


class Inflated(Iterator[bytes]):
    """Decompressed pieces, in a class of their own because offsets in them are not file offsets."""

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
