"""Read matrices from NumPy files, with code that the Parquet and AnnData readers share.

Loading a file never executes code: arrays of Python objects are rejected. An array that claims to
be far larger than what the file stores is not loaded.
"""

from __future__ import annotations

import math
import shlex
import struct
import tempfile
import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from tokenize import TokenError
from types import ModuleType
from typing import Any, TypeAlias
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError, Message
from resvm_cli.files.delimited import MAX_COLUMNS, Column, Table, TableBlock, rows_at_once
from resvm_cli.files.sources import Source
from resvm_cli.files.streams import cannot_spool
from resvm_cli.files.svmlight import Block
from resvm_cli.records import dataclass
from resvm_cli.rows import Rows

MAX_CELLS = 1 << 24  # per block
MAX_FEATURES = 2**31 - 2
MAX_TEXT = 1 << 14  # bytes in a cell
MAX_RATIO = 1 << 14  # claimed bytes per stored byte
MAX_EMPTY_ROWS = 1 << 20  # rows allowed in a sparse matrix, plus 64 per byte of entries
SPARSE_PARTS = ("data", "indices", "indptr")
# Exceptions that the packages raise for a truncated or damaged file.
READ_ERRORS = (
    *(ValueError, TypeError, OSError, EOFError, LookupError, ArithmeticError, AttributeError),
    *(SyntaxError, TokenError, BadZipFile, struct.error, zlib.error),
    RuntimeError,  # an encrypted member, or (NotImplementedError) an unknown compression method
)
AnyArray: TypeAlias = npt.NDArray[Any]
Part: TypeAlias = "tuple[int, int, Rows | AnyArray]"  # bounds of a range of rows, their matrix


@contextmanager
def reading(name: str, kind: str) -> Iterator[None]:
    """Convert the exceptions that packages raise for a damaged file to a DataError."""
    try:
        yield
    except DataError:
        raise
    except READ_ERRORS as problem:
        raise DataError(
            f"{name}: cannot be read as {kind}: {problem}",
            "it may be damaged, or contain Python objects, which are never loaded",
        ) from None


@contextmanager
def array_path(source: Source, pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the path of a plain file; copy any other input to a temporary file.

    A temporary file is unlinked when the context ends, but open handles can still read it.
    """
    if source.plain_path is not None:
        yield source.plain_path
        return
    with tempfile.NamedTemporaryFile(prefix="resvm-") as copy:
        try:
            copy.writelines(pieces)
            copy.flush()
        except OSError as error:
            raise cannot_spool(error, source.name) from None
        yield copy.name


def optional_package(module: str, package: str, name: str, what: str) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise DataError(
            f"{name}: {what} files require the {package} package",
            f"pip install {package}, or resvm-cli[convert]",
        ) from None


def table_block(
    table: Table, columns: list[Column], n_rows: int, start: int, matrix: Rows | None = None
) -> TableBlock:
    """Return a block of a table; it begins at row ``start``."""
    return TableBlock(
        columns,
        n_rows,
        lambda row, column: f"{table.name}: row {start + row + 1}, column {table.columns[column]}",
        np.arange(start + 1, start + n_rows + 1),
        matrix=matrix,
    )


def batch_rows(n_columns: int, n_rows: int) -> int:
    """Return how many rows to read at once: at most ``n_rows``, or fewer if rows are very long."""
    return min(n_rows, max(1, MAX_CELLS // max(1, n_columns)))


def text_of(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return "" if value is None else str(value)


def require_stored(name: str, key: str, n_claimed: int, n_stored: int) -> None:
    if n_claimed > MAX_RATIO * (n_stored + 1024):
        raise DataError(
            f"{name}: '{key}' claims to have {n_claimed:,} bytes, but only {n_stored:,} are stored",
            "the file is damaged, or it was never filled in",
        )


def unusable(name: str, column: str, problem: str) -> DataError:
    hint = Message("omit it: {drop:{column}}", column=shlex.quote(column))
    return DataError(f"{name}: '{column}' has {problem}", hint)


def require_short(name: str, column: str, n_bytes: int) -> None:
    if n_bytes > MAX_TEXT:
        raise unusable(name, column, f"a value of {n_bytes:,} bytes (at most {MAX_TEXT:,})")


class MatrixTable(Table):
    """A matrix as a table, with a column of row ids if there are any."""

    def __init__(
        self,
        name: str,
        columns: list[str],
        matrix: Callable[[], Iterator[Part]],
        ids: Callable[[int, int], Column] | None = None,
    ) -> None:
        """``matrix`` reads the rows in order; ``ids`` reads the ids of a range of rows."""
        self.name = name
        self.columns = columns
        self._matrix = matrix
        self._ids = ids

    def blocks(
        self, used: Container[object] | None = None, numbers: Container[object] = ()
    ) -> Iterator[TableBlock]:
        with reading(self.name, "an array"):
            for start, stop, part in self._matrix():
                ids = [] if self._ids is None else [self._ids(start, stop)]
                if isinstance(part, Rows):
                    columns = [*[()] * self.n_sparse, *ids]
                    yield table_block(self, columns, stop - start, start, part)
                else:
                    yield table_block(self, [*part.T, *ids], stop - start, start)


def require_matrix(name: str, array: Any) -> None:
    if len(array.shape) != 2 or array.dtype.kind not in "buif":
        raise DataError(
            f"{name}: an array with {len(array.shape)} dimensions and type {array.dtype}",
            "expected a matrix of real numbers, one row per example and one column per feature",
        )


def dense_parts(array: Any, size: int) -> Iterator[Part]:
    """Yield a matrix, ``size`` rows at a time; integers are kept exact."""
    n_rows = array.shape[0]
    for start in range(0, n_rows, size):
        stop = min(start + size, n_rows)
        part = np.asarray(array[start:stop])
        if part.dtype.kind not in "iu":
            with np.errstate(over="ignore"):  # an infinite number is rejected later
                part = part.astype(np.float64)
        yield start, stop, part


@dataclass(frozen=True, eq=False)
class SparseFile:
    """The rows of a sparse matrix, which have neither labels nor ids."""

    block: Block
    n_features: int


def open_arrays(name: str, path: str, kind: str) -> Table | SparseFile:
    """Open the matrix in a NumPy file."""
    with reading(name, "a NumPy file"):
        if kind == "npy":
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            return _numbered(name, array, array.nbytes)
        with np.load(path, allow_pickle=False) as content:
            members = [key for key in content.files if f"{key}.npy" in content.zip.namelist()]
            if {"format", "shape", "data"} <= set(members):
                return _sparse_npz(name, partial(_member, name, content))
            if len(members) != 1:
                there = ", ".join(members) or "none"
                raise DataError(
                    f"{name}: contains {len(members)} arrays: {there}",
                    "save the matrix of features in a separate file, with numpy.save",
                )
            array = _member(name, content, members[0])
            n_stored = content.zip.getinfo(f"{members[0]}.npy").compress_size
            return _numbered(name, array, n_stored)


def _member(name: str, archive: Any, key: str) -> AnyArray:
    """Load an array of an .npz file, unless its header claims too much."""
    member = f"{key}.npy"
    with archive.zip.open(member) as file:
        if np.lib.format.read_magic(file) != (1, 0):  # later versions: for structured arrays
            raise ValueError(f"'{key}' has an unknown header")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    n_claimed = math.prod(shape) * dtype.itemsize
    require_stored(name, key, n_claimed, archive.zip.getinfo(member).compress_size)
    return np.asarray(archive[key])


def _numbered(name: str, matrix: AnyArray, n_stored: int) -> Table:
    """Return a matrix as a table whose columns are numbered."""
    require_matrix(name, matrix)
    width = matrix.shape[1]
    if width > MAX_COLUMNS + n_stored:
        raise DataError(f"{name}: a matrix of {width:,} columns in only {n_stored:,} bytes")
    numbers = [str(number + 1) for number in range(width)]
    size = batch_rows(width, rows_at_once(width))
    table = MatrixTable(name, numbers, partial(dense_parts, matrix, size))
    table.n_numbered = width
    return table


def _sparse_npz(name: str, load: Callable[[str], AnyArray]) -> SparseFile:
    """Read a file written by scipy.sparse.save_npz."""
    form = str(load("format").astype(str))
    if form not in ("csr", "csc"):
        raise DataError(
            f"{name}: a sparse matrix in the format '{form}'; expected csr or csc",
            "save it as such in Python: scipy.sparse.save_npz(FILE, matrix.tocsr())",
        )
    n_rows, n_columns = map(int, load("shape"))
    if n_columns > MAX_FEATURES:
        raise DataError(f"{name}: {n_columns:,} columns (at most {MAX_FEATURES:,})")
    values, indices, pointers = map(load, SPARSE_PARTS)
    require_rows(n_rows, values.nbytes)
    rows = compressed_rows(name, form, (values, indices, pointers), (n_rows, n_columns))
    block = replace(Block.from_rows(rows), lines=np.arange(1, len(rows) + 1))
    return SparseFile(block, n_columns)


def require_rows(n_rows: int, n_bytes: int) -> None:
    """Raise ValueError if the rows would need far more memory than their entries."""
    if n_rows > MAX_EMPTY_ROWS + 64 * n_bytes:
        raise ValueError(f"{n_rows:,} rows, but only {n_bytes:,} bytes of entries")


def compressed_rows(
    name: str,
    form: str,
    parts: tuple[AnyArray, AnyArray, AnyArray],
    shape: tuple[int, int],
    first: int = 0,
) -> Rows:
    """Return the rows of a csr or csc matrix; its first row is row ``first`` of the file.

    ``parts`` are its values, indices and pointers. Raise ValueError if they are inconsistent:
    scipy would not notice.
    """
    import scipy.sparse

    values, indices, pointers = parts
    length, width = shape if form == "csr" else shape[::-1]
    if values.dtype.kind not in "buif":
        raise ValueError(f"values of type {values.dtype}; expected real numbers")
    if indices.dtype.kind not in "iu" or values.ndim != 1 or indices.shape != values.shape:
        raise ValueError("expected one integer index per value")
    require_pointers(pointers, length, len(values))
    if len(indices) and not (indices.min() >= 0 and indices.max() < width):
        raise ValueError("an index is out of range")
    # a small integer type may be too small for the sum of duplicate entries
    stored = values.astype(np.float64), indices.astype(np.int64), pointers.astype(np.int64)
    matrix = scipy.sparse.csr_matrix(stored, shape=(length, width))
    rows = Rows.from_matrix(matrix if form == "csr" else matrix.T)
    bad = np.flatnonzero(~np.isfinite(rows.values))
    if len(bad):
        row = first + int(np.searchsorted(rows.indptr, bad[0], "right"))
        raise DataError(
            f"{name}: row {row}, column {rows.indices[bad[0]]}: {rows.values[bad[0]]:g};"
            " expected a finite number",
            "leave unknown values out (they count as 0) or impute them first",
        )
    return rows


def require_pointers(pointers: AnyArray, length: int, n_values: int) -> None:
    if pointers.dtype.kind not in "iu" or pointers.shape != (length + 1,):
        raise ValueError(f"indptr does not have {length + 1:,} integers")
    numbers = pointers.astype(np.int64)
    if np.diff(numbers).min(initial=0) < 0 or numbers[0] != 0 or numbers[-1] > n_values:
        raise ValueError("indptr decreases or exceeds the data")
