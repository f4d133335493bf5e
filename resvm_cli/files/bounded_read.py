"""New."""

from __future__ import annotations

import os
import stat

from resvm_cli.errors import ModelError

TRAIN_AGAIN = "copy the model again from where it was whole, or train it again"


class _Room:
    """Memory that texts are read into one after the other: fresh pages for each take longer."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def of(self, size: int) -> memoryview:
        """So many bytes; those handed out before are used again."""
        if len(self._bytes) < size:
            self._bytes = bytearray(size + size // 4)
        return memoryview(self._bytes)[:size]


def read_bounded(name: str, limit: int) -> bytes:
    """A regular file inside the model: ``limit`` bytes, and one more where there are."""
    return bytes(_read_into(_Room(), name, limit))


def _read_into(room: _Room, name: str, limit: int) -> memoryview:
    """The same, in a room for it."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ModelError(f"{name}: not a regular file", TRAIN_AGAIN)
            text, size = room.of(min(limit, status.st_size) + 1), 0
            while size < len(text) and (more := os.readv(descriptor, [text[size:]])):
                size += more
            return text[:size]
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ModelError(f"{name}: cannot read: {error.strerror}", TRAIN_AGAIN) from None
