"""The files of a model's members, read as little as they are trusted.

A text is what the manifest's entry vouches for, or it is refused before anything is parsed.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import queue
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from resvm_cli.errors import ModelError
from resvm_cli.running import parallel

MEMBERS = "members"
TRAIN_AGAIN = "copy the model again from where it was whole, or train it again"
LEAST_SHARED_BYTES = 1 << 24  # of members that are read in threads: starting them takes time too
BATCH_BYTES = 1 << 20  # that a thread reads before it hands them over


def member_name(number: int) -> str:
    return f"{MEMBERS}/{number:05d}.model"


def member_texts(
    path: str, entries: list[dict[str, Any]], workers: Callable[[], int]
) -> Iterator[tuple[str, memoryview]]:
    """The members' names and texts, in order; each text is there until the next is asked for."""
    ends = list(itertools.accumulate(entry["bytes"] for entry in entries))
    names = [f"{path}/{member_name(number)}" for number in range(len(entries))]
    if ends[-1] < LEAST_SHARED_BYTES or (n_workers := workers()) == 1:
        room = _Room()
        for name, entry in zip(names, entries, strict=True):
            yield name, _read_member(name, entry, room)
        return
    unused: queue.SimpleQueue[_Room] = queue.SimpleQueue()

    def read_one(number: int) -> tuple[_Room, memoryview]:
        try:
            room = unused.get_nowait()
        except queue.Empty:
            room = _Room()
        return room, _read_member(names[number], entries[number], room)

    def read(numbers: Sequence[int]) -> list[tuple[_Room, memoryview]]:
        return list(map(read_one, numbers))

    batches = itertools.groupby(range(len(entries)), lambda number: ends[number] // BATCH_BYTES)
    tasks = [list(numbers) for _, numbers in batches]
    read_texts = itertools.chain.from_iterable(parallel.run(read, tasks, n_workers))
    for name, (room, text) in zip(names, read_texts, strict=True):
        yield name, text
        unused.put(room)


def read_member(path: str, number: int, entry: dict[str, Any]) -> bytes:
    """A member's text, which is what the manifest's entry vouches for."""
    return bytes(_read_member(f"{path}/{member_name(number)}", entry, _Room()))


def _read_member(name: str, entry: dict[str, Any], room: _Room) -> memoryview:
    text = _read_into(room, name, entry["bytes"])
    if len(text) != entry["bytes"] or hashlib.sha256(text).hexdigest() != entry["sha256"]:
        raise ModelError(f"{name}: changed since it was written (digest differs)", TRAIN_AGAIN)
    return text


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
