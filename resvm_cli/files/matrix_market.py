"""Matrix Market text, read strictly: scipy's compiled reader crashes on a file that was cut short.

What is allocated is bounded by the numbers that are there; only the number of rows is believed.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from resvm_cli.rows import FloatArray, IntArray

MOST_ROWS = MOST_COLUMNS = 2**31 - 2
_BANNER = re.compile(
    rb"%%MatrixMarket\s+matrix\s+(coordinate|array)\s+(real|double|integer|pattern)"
    rb"\s+(general|symmetric|skew-symmetric)\s*",
    re.IGNORECASE,
)
_PLAIN = re.compile(rb"[-+.0-9eE\s]*")


def parse_matrix_market(text: bytes) -> Any:
    """A dense matrix, or one of scipy's sparse ones; ValueError says what is wrong."""
    banner, _, rest = text.partition(b"\n")
    words = _BANNER.fullmatch(banner)
    if words is None:
        raise ValueError(
            "its first line should be '%%MatrixMarket matrix', coordinate or array, real, integer"
            " or pattern, and general, symmetric or skew-symmetric"
        )
    form, field, symmetry = (word.lower().decode() for word in words.groups())
    while True:
        line, newline, rest = rest.partition(b"\n")
        if line.strip() and not line.startswith(b"%"):
            break
        if not newline:
            raise ValueError("the line of its size is missing")
    sizes = line.split()
    if len(sizes) != (3 if form == "coordinate" else 2) or not all(map(_is_count, sizes)):
        raise ValueError(f"the line of its size is {line[:60]!r}")
    n_rows, n_columns, *entries = map(int, sizes)
    if n_rows > MOST_ROWS or n_columns > MOST_COLUMNS:
        raise ValueError(f"{n_rows:,} rows of {n_columns:,} columns are too many")
    if not _PLAIN.fullmatch(rest):
        raise ValueError("below its size stand others than plain numbers")
    numbers = np.array(rest.split(), np.float64)
    if symmetry != "general" and n_rows != n_columns:
        raise ValueError(f"{symmetry}, and not square")
    if form == "array":
        if field == "pattern" or symmetry != "general":
            raise ValueError("a dense matrix of this kind is not read; write it as general")
        if len(numbers) != n_rows * n_columns:
            raise ValueError(f"{n_rows * n_columns:,} numbers belong there, not {len(numbers):,}")
        return numbers.reshape(n_columns, n_rows).T
    return _sparse(numbers, n_rows, n_columns, entries[0], field == "pattern", symmetry)


def _is_count(word: bytes) -> bool:
    return word.isdigit() and len(word) < 19


def _sparse(
    numbers: FloatArray,
    n_rows: int,
    n_columns: int,
    n_entries: int,
    pattern: bool,
    symmetry: str,
) -> Any:
    import scipy.sparse

    width = 2 if pattern else 3
    if len(numbers) != width * n_entries:
        raise ValueError(
            f"{n_entries:,} entries of {width} numbers belong there, and {len(numbers):,} numbers"
            " are there"
        )
    table = numbers.reshape(-1, width)
    rows, columns = _places(table[:, 0], n_rows), _places(table[:, 1], n_columns)
    values = np.ones(len(table)) if pattern else table[:, 2]
    if symmetry != "general":
        mirrored = rows != columns
        sign = -1.0 if symmetry == "skew-symmetric" else 1.0
        values = np.concatenate([values, sign * values[mirrored]])
        rows, columns = (
            np.concatenate([rows, columns[mirrored]]),
            np.concatenate([columns, rows[mirrored]]),
        )
    return scipy.sparse.coo_matrix((values, (rows, columns)), shape=(n_rows, n_columns))


def _places(numbers: FloatArray, limit: int) -> IntArray:
    """Row or column numbers, counted from 0."""
    if len(numbers) and not (numbers.min() >= 1 and numbers.max() <= limit):
        raise ValueError(f"an entry is not in rows or columns 1 to {limit:,}")
    places = numbers.astype(np.int64)
    if (places != numbers).any():
        raise ValueError("the number of a row or column is not whole")
    return places - 1
