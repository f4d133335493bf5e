"""Rows in a file that others read by its path: plain arrays, and a digest that is told apart.

Nothing in it is executed, and every array is checked before it is used as rows.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.files.atomic import whole_file
from resvm_cli.files.streams import cannot
from resvm_cli.rows import Rows

PIECE = 1 << 22


def write_rows(path: str, parts: Sequence[Rows]) -> str:
    """Write sets of rows; tells the digest of what was written."""
    digest = hashlib.sha256()
    sizes = [(len(rows), len(rows.values)) for rows in parts]
    with whole_file(path) as handle:
        arrays: list[np.ndarray[Any, Any]] = [np.array([len(parts), *sum(sizes, ())], np.int64)]
        for rows in parts:
            arrays += [rows.indptr.astype(np.int64), rows.values, rows.indices.astype(np.int32)]
        for array in arrays:
            text = np.ascontiguousarray(array).data.cast("B")
            digest.update(text)
            handle.write(text)
    return digest.hexdigest()


def read_rows(path: str, digest: str) -> list[Rows]:
    """The rows of a file with this digest; DataError where it has another."""
    try:
        with open(path, "rb") as handle:
            size = os.fstat(handle.fileno()).st_size
            text = bytearray(size)
            found = hashlib.sha256()
            view, place = memoryview(text), 0
            while place < size and (count := handle.readinto(view[place : place + PIECE])):
                found.update(view[place : place + count])
                place += count
    except OSError as error:
        raise cannot("read", path, error) from None
    if place < size or found.hexdigest() != digest:
        raise DataError(f"{path}: holds other rows than were written", "run the command again")
    return _parts(np.frombuffer(text, np.uint8))


def _parts(text: np.ndarray[Any, Any]) -> list[Rows]:
    """The digest is right: this was written here."""
    place = 0

    def take(count: int, kind: str) -> np.ndarray[Any, Any]:
        nonlocal place
        n_bytes = count * np.dtype(kind).itemsize
        # a copy, as arrays of numbers must lie at multiples of their size
        array = np.frombuffer(text[place : place + n_bytes].tobytes(), kind)
        place += n_bytes
        return array

    (n_parts,) = take(1, "i8").tolist()
    sizes = take(2 * n_parts, "i8").reshape(-1, 2).tolist()
    found = []
    for n_rows, n_values in sizes:
        indptr, values = take(n_rows + 1, "i8"), take(n_values, "f8")
        found.append(Rows(indptr, take(n_values, "i4"), values))
    return found


def remove_rows(path: str) -> None:
    """Take such a file away."""
    with suppress(OSError):
        os.unlink(path)
