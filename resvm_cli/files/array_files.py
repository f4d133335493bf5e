"""Read matrices from NumPy files; the readers of Parquet and AnnData share this code.

Loading a file never executes code: arrays of Python objects are rejected. Only the columns in use
are read, and no array is loaded that claims to be far larger than what the file stores.
"""

from __future__ import annotations

import math
import shlex
import struct
import tempfile
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from tokenize import TokenError
from types import ModuleType
from typing import Any, TypeAlias
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError, Message
from resvm_cli.files.delimited import (
    MAX_COLUMNS,
    Column,
    Table,
    TableBlock,
    rows_at_once,
    unique_column_names,
)
from resvm_cli.files.file_kinds import Kind
from resvm_cli.files.sources import Source
from resvm_cli.files.streams import cannot_spool
from resvm_cli.files.svmlight import Block
from resvm_cli.records import dataclass
from resvm_cli.rows import Rows

MAX_CELLS = 1 << 24  # per block
MAX_FEATURES = 2**31 - 2
MAX_TEXT = 1 << 14  # bytes in a cell
MAX_CHUNK = 1 << 28  # bytes that HDF5 decompresses at once
MAX_RATIO = 1 << 14  # claimed bytes per stored byte
MAX_EMPTY_ROWS = 1 << 20  # allowed in a sparse matrix, plus some per byte of entries
# Exceptions that the packages raise for a truncated or damaged file.
READ_ERRORS = (
    *(ValueError, TypeError, OSError, EOFError, LookupError, ArithmeticError, AttributeError),
    *(SyntaxError, TokenError, BadZipFile, struct.error, zlib.error),
    RuntimeError,  # an encrypted member, or (NotImplementedError) an unknown compression method
)
AnyArray: TypeAlias = npt.NDArray[Any]
Part: TypeAlias = "tuple[int, int, Rows | AnyArray]"  # bounds of some rows, and their matrix


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


def table_block(
    table: Table, columns: list[Column], n_rows: int, start: int, matrix: Rows | None = None
) -> TableBlock:
    """Return the block of a table whose first row is ``start``."""
    return TableBlock(
        columns,
        n_rows,
        lambda row, column: f"{table.name}: row {start + row + 1}, column {table.columns[column]}",
        np.arange(start + 1, start + n_rows + 1),
        matrix=matrix,
    )


def unusable(name: str, column: str, problem: str) -> DataError:
    hint = Message("omit it: {drop:{column}}", column=shlex.quote(column))
    return DataError(f"{name}: '{column}' has {problem}", hint)


def batch_rows(n_columns: int, n_rows: int) -> int:
    """Return how many rows to read at once: at most ``n_rows``, and fewer if they are very long."""
    return min(n_rows, max(1, MAX_CELLS // max(1, n_columns)))


class StoredArray:
    """An array in a file; its values are read when they are needed."""

    def __init__(
        self,
        described: Any,
        load: Callable[[], Any],
        n_stored: int,
        n_chunk: int = 0,
    ) -> None:
        """``described`` has the shape and type of the array that ``load`` returns.

        In bytes, ``n_stored`` is its size in the file, and ``n_chunk`` what is decompressed at
        once.
        """
        self.shape: tuple[int, ...] = described.shape
        self.dtype: np.dtype[Any] = described.dtype
        self.n_stored = n_stored
        self._n_chunk = n_chunk
        self._load = load

    @cached_property
    def array(self) -> Any:
        return self._load()

    def part(self, start: int = 0, stop: int | None = None) -> AnyArray:
        return np.asarray(self.array[start:stop])

    def check(self, name: str, key: str) -> None:
        """Raise DataError if reading would take far more memory than the file's size justifies."""
        n_claimed = math.prod(self.shape) * self.dtype.itemsize
        require_stored(name, key, n_claimed, self.n_stored)
        require_short(name, key, self.dtype.itemsize)
        if self._n_chunk > MAX_CHUNK:
            raise DataError(
                f"{name}: '{key}' is stored in chunks of {self._n_chunk:,} bytes"
                f" (at most {MAX_CHUNK:,})",
                "write it in smaller chunks: h5repack",
            )

    def require_matrix(self, name: str) -> None:
        if len(self.shape) != 2 or self.dtype.kind not in "buif":
            raise DataError(
                f"{name}: an array with {len(self.shape)} dimensions and type {self.dtype}",
                "expected a matrix of real numbers, one row per example and one column per feature",
            )


class MatrixTable(Table):
    """A matrix, whose columns come first, and columns of values alongside it."""

    def __init__(
        self,
        name: str,
        columns: list[str],
        matrix: Callable[[], Iterator[Part]],
        beside: Sequence[Callable[[int, int], Column]],
    ) -> None:
        """``matrix`` reads the rows in order; ``beside`` has a reader of rows for each column."""
        self.name = name
        self.columns = columns
        self._matrix = matrix
        self._beside = beside
        self._width = len(columns) - len(beside)

    def blocks(
        self, used: Container[object] | None = None, numbers: Container[object] = ()
    ) -> Iterator[TableBlock]:
        with reading(self.name, "an array"):
            for start, stop, part in self._matrix():
                cells: list[Column] = [
                    read(start, stop) if used is None or number in used else ()
                    for number, read in enumerate(self._beside, self._width)
                ]
                if isinstance(part, Rows):
                    columns = [*[()] * self._width, *cells]
                    yield table_block(self, columns, stop - start, start, part)
                else:
                    yield table_block(self, [*part.T, *cells], stop - start, start)


def dense_parts(array: StoredArray, size: int) -> Iterator[Part]:
    """Yield a matrix, ``size`` rows at a time."""
    n_rows = array.shape[0]
    for start in range(0, n_rows, size):
        stop = min(start + size, n_rows)
        yield start, stop, _numbers(array.part(start, stop))


def require_stored(name: str, key: str, n_claimed: int, n_stored: int) -> None:
    if n_claimed > MAX_RATIO * (n_stored + 1024):
        raise DataError(
            f"{name}: '{key}' claims to have {n_claimed:,} bytes, but only {n_stored:,} are stored",
            "the file is damaged, or it was never filled in",
        )


def require_short(name: str, column: str, n_bytes: int) -> None:
    if n_bytes > MAX_TEXT:
        raise unusable(name, column, f"a value of {n_bytes:,} bytes (at most {MAX_TEXT:,})")


def text_of(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return "" if value is None else str(value)


@dataclass(frozen=True, eq=False)
class SparseFile:
    """The rows of a sparse matrix, which have neither labels nor ids."""

    block: Block
    n_features: int


def open_arrays(name: str, path: str, kind: Kind) -> Table | SparseFile:
    """Open the matrix in a NumPy file."""
    with reading(name, "a NumPy file"):
        content = np.load(path, mmap_mode="r" if kind == "npy" else None, allow_pickle=False)
        if kind == "npy":
            return _numbered(name, StoredArray(content, lambda: content, content.nbytes), {})
        members = [key for key in content.files if f"{key}.npy" in content.zip.namelist()]
        arrays = {key: _archived(content, key) for key in members}
    if {"format", "shape", "data"} <= set(arrays) and not arrays["format"].shape:
        with content:
            return _sparse_npz(name, arrays)
    matrices = [key for key, one in arrays.items() if len(one.shape) == 2]
    if len(matrices) != 1:
        raise DataError(
            f"{name}: contains {len(matrices)} matrices: {', '.join(sorted(matrices)) or 'none'}",
            "save the matrix of features in a file of its own, with numpy.save",
        )
    matrix = arrays[matrices[0]]
    matrix.check(name, matrices[0])
    beside = {key: one for key, one in arrays.items() if one.shape == matrix.shape[:1]}
    return _numbered(name, matrix, beside)


def _archived(archive: Any, key: str) -> StoredArray:
    """Describe an array in an .npz file, after reading only its header."""
    member = f"{key}.npy"
    with archive.zip.open(member) as file:
        if np.lib.format.read_magic(file) != (1, 0):  # later versions: for structured arrays
            raise ValueError(f"'{key}' has an unknown header")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    described = np.broadcast_to(np.empty((), dtype), shape)  # takes no memory
    return StoredArray(described, lambda: archive[key], archive.zip.getinfo(member).compress_size)


def _numbered(name: str, matrix: StoredArray, beside: dict[str, StoredArray]) -> Table:
    """Return a matrix whose columns are numbered, with named arrays of one value per row."""
    matrix.require_matrix(name)
    width = matrix.shape[1]
    if width > MAX_COLUMNS + matrix.n_stored:
        raise DataError(f"{name}: a matrix of {width:,} columns in only {matrix.n_stored:,} bytes")
    numbers = [str(number + 1) for number in range(width)]
    columns = unique_column_names([*numbers, *beside], lambda number: name)
    size = batch_rows(width, rows_at_once(len(columns)))
    readers = [partial(_column, name, key, array) for key, array in beside.items()]
    table = MatrixTable(name, columns, partial(dense_parts, matrix, size), readers)
    table.n_numbered = width
    return table


def _column(name: str, key: str, array: StoredArray, start: int, stop: int) -> Column:
    array.check(name, key)
    return column_of(name, key, array.part(start, stop))


def _sparse_npz(name: str, arrays: dict[str, StoredArray]) -> SparseFile:
    """Read a file written by scipy.sparse.save_npz."""

    def load(key: str) -> AnyArray:
        arrays[key].check(name, key)
        return np.asarray(arrays[key].array)

    with reading(name, "a scipy sparse matrix"):
        form = str(load("format").astype(str))
        if form not in ("csr", "csc"):
            raise DataError(
                f"{name}: a sparse matrix in the format '{form}'; expected csr or csc",
                "save it as such in Python: scipy.sparse.save_npz(FILE, matrix.tocsr())",
            )
        n_rows, n_columns = map(int, load("shape"))
        require_rows(n_rows, arrays["data"].n_stored)
        if n_columns > MAX_FEATURES:
            raise DataError(f"{name}: {n_columns:,} columns (at most {MAX_FEATURES:,})")
        parts = load("data"), load("indices"), load("indptr")
        rows = compressed_rows(name, form, parts, (n_rows, n_columns))
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
    """Return the rows of a csr or csc matrix, the first of which is row ``first`` of the file.

    ``parts`` are its values, indices and pointers. Raise ValueError if they disagree: scipy would
    trust them.
    """
    import scipy.sparse

    values, indices, pointers = parts
    length, width = shape if form == "csr" else shape[::-1]
    if values.dtype.kind not in "buif":
        raise ValueError(f"values of type {values.dtype}; expected real numbers")
    if indices.dtype.kind not in "iu" or values.ndim != 1 or indices.shape != values.shape:
        raise ValueError("indices are not one integer per value")
    require_pointers(pointers, length, len(values))
    if len(indices) and not (indices.min() >= 0 and indices.max() < width):
        raise ValueError("an index is out of range")
    # the sum of duplicates may be too large for small integers
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


def _numbers(array: AnyArray) -> AnyArray:
    """Return numbers as doubles, but keep integers: a double cannot represent all of them."""
    with np.errstate(over="ignore"):  # an infinite number is rejected later
        return array if array.dtype.kind in "iu" else array.astype(np.float64)


def column_of(name: str, key: str, array: AnyArray) -> Column:
    if array.dtype.kind in "buif":
        return _numbers(array)
    if array.dtype.kind in "Mm":
        array = np.where(np.isnat(array), "", array.astype(str))
    values = array.tolist()
    if not all(isinstance(value, str | bytes) for value in values):
        raise unusable(name, key, f"type {array.dtype}; expected numbers or text")
    return list(map(text_of, values))


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


def package(module: str, package: str, name: str, what: str) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise DataError(
            f"{name}: {what} files require the {package} package",
            f"pip install {package}, or resvm-cli[convert]",
        ) from None
