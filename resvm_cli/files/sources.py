"""Inputs that are read more than once, and an index of their rows.

The second pass reads only the rows that were drawn. The index stores the offsets of some lines. As
the text grows, the offsets are thinned out, so the index stays small for files of any size.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import IO

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.files import streams
from resvm_cli.files.streams import PIECE, STDIN, cannot, inflated, name_of, open_source, raw_pieces
from resvm_cli.rows import IntArray, distinct

FIRST_SPACING = 1 << 13
MAX_MARKS = 1 << 17
END = 1 << 62  # beyond any text


class Source:
    """An input that can be read repeatedly; piped input is spooled in memory, then in TMPDIR."""

    def __init__(self, path: str, *, once: bool = False) -> None:
        self.name = name_of(path)
        self._path = path
        self._once = once  # read only once, so a pipe need not be spooled
        self._owned = path != STDIN
        self._descriptor = open_source(path)
        status = os.fstat(self._descriptor)
        self._regular = stat.S_ISREG(status.st_mode)
        self._stamp = (status.st_size, status.st_mtime_ns)
        self._base = os.lseek(self._descriptor, 0, os.SEEK_CUR) if self._regular else 0
        self._spool: IO[bytes] | None = None
        self._arriving: Iterator[bytes] = iter(())  # bytes that are not spooled yet
        self._spooling = threading.Lock()  # another thread may read the same input
        self._compressed = False  # if so, offsets in the text are not offsets in the file
        self.spooled_bytes = 0

    @property
    def plain_path(self) -> str | None:
        """The path if this is an uncompressed regular file; call ``pieces`` first."""
        return self._path if self._owned and self._regular and not self._compressed else None

    @property
    def spooled_to_disk(self) -> bool:
        return self.spooled_bytes > streams.SPOOL_MEMORY

    def pieces(self) -> Iterator[bytes]:
        """Yield the decompressed bytes from the beginning, in pieces of up to a megabyte."""
        text, self._compressed = inflated(self._raw(), self.name)
        return text

    def _raw(self) -> Iterator[bytes]:
        """Yield the bytes from the beginning; several passes may run at the same time."""
        if self._regular:
            return self._from_file()
        if self._once:
            return raw_pieces(self._descriptor, self.name)
        if self._spool is None:
            self._spool = streams.open_spool()
            self._arriving = raw_pieces(self._descriptor, self.name)
        return self._spooled()

    def _from_file(self) -> Iterator[bytes]:
        at = self._base
        try:
            while piece := os.pread(self._descriptor, PIECE, at):
                yield piece
                at += len(piece)
        except OSError as error:
            raise cannot("read", self.name, error) from None

    def _spooled(self) -> Iterator[bytes]:
        """Yield the spooled bytes, then spool and yield new bytes as they arrive."""
        at = 0
        while True:
            with self._spooling:
                piece = self._read_spool(at, at + PIECE) or self._arrived()
            if not piece:
                return
            yield piece
            at += len(piece)

    def _arrived(self) -> bytes:
        assert self._spool is not None
        piece = next(self._arriving, b"")
        try:
            self._spool.seek(self.spooled_bytes)
            self._spool.write(piece)
            self._spool.flush()
        except OSError as error:
            raise streams.cannot_spool(error, self.name) from None
        self.spooled_bytes += len(piece)
        return piece

    def _read_spool(self, start: int, stop: int) -> bytes:
        assert self._spool is not None
        self._spool.seek(start)
        return self._spool.read(min(stop, self.spooled_bytes) - start)

    def spans(self, bounds: Iterable[tuple[int, int]]) -> Iterator[bytes]:
        """Yield the decompressed bytes between each pair of offsets, in ascending order."""
        try:
            if self._compressed:
                yield from _between(self.pieces(), bounds)
            else:
                read = self._read_file if self._regular else self._read_spool
                for start, stop in bounds:
                    yield read(start, stop)
        except OSError as error:
            raise cannot("read", self.name, error) from None
        self._require_unchanged()

    def _read_file(self, start: int, stop: int) -> bytes:
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
            with suppress(OSError):  # on a full disk the last flush fails, which is harmless
                self._spool.close()
        if self._owned:
            os.close(self._descriptor)


def _between(pieces: Iterator[bytes], bounds: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    """Yield the parts of a stream between each pair of offsets, in ascending order."""
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


class RowIndex:
    """The offsets of some lines and the number of rows before each, recorded in the first pass."""

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._rows: list[int] = []
        self._spacing = FIRST_SPACING
        self._next = 0
        self.n_rows = 0

    def add(self, starts: IntArray) -> None:
        """Add rows whose lines start at these ascending offsets."""
        if len(starts):
            wanted = np.arange(self._next, int(starts[-1]) + 1, self._spacing)
            if len(wanted):
                marked = distinct(np.searchsorted(starts, wanted))
                self._mark(starts[marked].tolist(), (self.n_rows + marked).tolist())
            self.n_rows += len(starts)

    def _mark(self, offsets: list[int], rows: list[int]) -> None:
        self._offsets += offsets
        self._rows += rows
        if len(self._offsets) > MAX_MARKS:
            self._offsets, self._rows = self._offsets[::2], self._rows[::2]
            self._spacing *= 2
        self._next = self._offsets[-1] + self._spacing

    def spans(self, numbers: IntArray) -> tuple[list[tuple[int, int]], IntArray]:
        """Return the bounds of the parts of the text that contain these ascending rows.

        The second result is the position of each row among all rows of these parts.
        """
        offsets, rows = np.array([*self._offsets, END]), np.array([*self._rows, self.n_rows])
        which = np.searchsorted(rows[:-1], numbers, side="right") - 1
        parts, part_of = np.unique(which, return_inverse=True)
        sizes = rows[parts + 1] - rows[parts]
        before = np.cumsum(sizes) - sizes
        within = numbers - rows[which]
        bounds = list(zip(offsets[parts].tolist(), offsets[parts + 1].tolist(), strict=True))
        return bounds, before[part_of] + within


def join_texts(texts: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Join texts into pieces of at least ``size`` bytes, except for the last one."""
    waiting: list[bytes] = []
    length = 0
    for text in texts:
        waiting.append(text)
        length += len(text)
        if length >= size:
            yield b"".join(waiting)
            waiting, length = [], 0
    yield b"".join(waiting)
