"""The files of a model's members, read as little as they are trusted.

A text is what the manifest's entry vouches for, or it is refused before anything is parsed.
"""

from __future__ import annotations

import hashlib
import itertools
import queue
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from resvm_cli.errors import ModelError
from resvm_cli.files.bounded_read import TRAIN_AGAIN, _read_into, _Room
from resvm_cli.running import parallel

MEMBERS = "members"
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
