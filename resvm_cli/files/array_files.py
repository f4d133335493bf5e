"""Read matrices from NumPy files; the readers of HDF5 and Parquet share this code.

Loading a file never executes code: arrays of Python objects are rejected. Files are memory-mapped
or read a few rows at a time, and only the columns in use are read, so that a small file that claims
to be large cannot exhaust memory.
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
from itertools import repeat
from tokenize import TokenError
from types import ModuleType
from typing import IO, Any, TypeAlias
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

# The arrays that scipy.sparse.save_npz writes in addition to format, shape and data.
COMPRESSED = dict.fromkeys(("csr", "csc", "bsr"), ("indices", "indptr"))
SPARSE_INDICES = {**COMPRESSED, "coo": ("row", "col"), "dia": ("offsets",)}
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


@dataclass(frozen=True, eq=False)
class StoredArray:
    """An array in a file; ``slices(n)`` reads n rows at a time, from the first to the last."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    slices: Callable[[int], Iterator[AnyArray]]
    n_stored: int  # bytes in the file
    n_chunk: int = 0  # bytes that are decompressed together
    array: Any = None  # the array to slice; None if it is in an archive

    @classmethod
    def from_array(cls, array: Any, n_stored: int, n_chunk: int = 0) -> StoredArray:
        def slices(size: int) -> Iterator[AnyArray]:
            return (array[start : start + size] for start in range(0, array.shape[0], size))

        return cls(array.shape, array.dtype, slices, n_stored, n_chunk, array)

    def part(self, start: int, stop: int | None) -> AnyArray:
        return np.asarray(self.array[start:stop])

    @classmethod
    def from_archive(cls, archive: Any, key: str) -> StoredArray:
        """Wrap an array in an .npz file after reading only its header."""
        member = f"{key}.npy"

        def opened() -> tuple[IO[bytes], Any]:
            file = archive.zip.open(member)
            if np.lib.format.read_magic(file) != (1, 0):  # later versions: for structured arrays
                raise ValueError(f"'{key}' has an unknown header")
            return file, np.lib.format.read_array_header_1_0(file)

        file, (shape, fortran_order, dtype) = opened()
        file.close()
        n_stored = archive.zip.getinfo(member).compress_size

        def slices(size: int) -> Iterator[AnyArray]:
            if fortran_order or dtype.hasobject:
                yield from cls.from_array(archive[key], n_stored).slices(size)
                return
            with opened()[0] as file:
                for start in range(0, shape[0], size):
                    part = (min(size, shape[0] - start), *shape[1:])
                    text = file.read(math.prod(part) * dtype.itemsize)
                    yield np.frombuffer(text, dtype).reshape(part)

        return cls(shape, dtype, slices, n_stored)

    def check(self, name: str, key: str) -> None:
        """Raise DataError if reading would take far more memory than the file's size justifies."""
        n_claimed = math.prod(self.shape) * self.dtype.itemsize
        require_stored(name, key, n_claimed, self.n_stored)
        require_short(name, key, self.dtype.itemsize)
        if self.n_chunk > MAX_CHUNK:
            raise DataError(
                f"{name}: '{key}' is stored in chunks of {self.n_chunk:,} bytes"
                f" (at most {MAX_CHUNK:,})",
                "write it in smaller chunks: h5repack",
            )


class ArrayTable(Table):
    """A matrix with numbered columns, plus named arrays with one value per row."""

    def __init__(self, name: str, matrix: StoredArray, beside: dict[str, StoredArray]) -> None:
        if len(matrix.shape) != 2 or matrix.dtype.kind not in "buif":
            raise DataError(
                f"{name}: an array with {len(matrix.shape)} dimensions and type {matrix.dtype}",
                "expected a matrix of real numbers, one row per example and one column per feature",
            )
        if matrix.shape[1] > MAX_COLUMNS + matrix.n_stored:
            stored = f"{matrix.n_stored:,} bytes"
            raise DataError(f"{name}: a matrix of {matrix.shape[1]:,} columns in only {stored}")
        self.name = name
        self._matrix = matrix
        self._beside = beside
        self.n_numbered = matrix.shape[1]
        numbers = [str(number + 1) for number in range(self.n_numbered)]
        self.columns = unique_column_names([*numbers, *beside], lambda number: name)

    def blocks(
        self, used: Container[object] | None = None, numbers: Container[object] = ()
    ) -> Iterator[TableBlock]:
        n_rows, width = self._matrix.shape
        size = batch_rows(width, rows_at_once(len(self.columns)))
        parts: list[Iterator[Any]] = [self._matrix.slices(size)]
        for number, (key, array) in enumerate(self._beside.items(), width):
            if used is None or number in used:
                array.check(self.name, key)
                parts.append(map(partial(column_of, self.name, key), array.slices(size)))
            else:
                parts.append(repeat(()))
        with reading(self.name, "an array"):  # the file is read lazily
            for start in range(0, n_rows, size):
                matrix, *beside = map(next, parts)
                columns: list[Column] = [*_numbers(matrix).T, *beside]
                yield table_block(self, columns, len(matrix), start)


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


def open_arrays(name: str, path: str, kind: Kind, array: str | None) -> Table | SparseFile:
    """Open the matrix in a NumPy file; ``array`` names it if there are several."""
    with reading(name, "a NumPy file"):
        content = np.load(path, mmap_mode="r" if kind == "npy" else None, allow_pickle=False)
        if kind == "npy":
            return _dense(name, content)
        members = [key for key in content.files if f"{key}.npy" in content.zip.namelist()]
        arrays = {key: StoredArray.from_archive(content, key) for key in members}
    if {"format", "shape", "data"} <= set(arrays) and not arrays["format"].shape:
        return _sparse_npz(name, content, arrays)
    return from_arrays(name, arrays, array)


def _sparse_npz(name: str, content: Any, arrays: dict[str, StoredArray]) -> SparseFile:
    """Read a file written by scipy.sparse.save_npz; first check the arrays that scipy trusts."""
    import scipy.sparse

    def load(key: str) -> Any:
        arrays[key].check(name, key)
        return content[key]

    with reading(name, "a scipy sparse matrix"):
        form = str(load("format").astype(str))
        if form not in SPARSE_INDICES:
            raise ValueError(f"unknown format '{form}'")
        n_rows, n_columns = map(int, load("shape"))
        data = load("data")
        if data.dtype.kind in "iuf":  # the sum of duplicates may be too large for small integers
            data = data.astype(np.float64, copy=False)
        require_rows(n_rows, data.nbytes)
        indices = [*(load("coords") if "coords" in arrays else map(load, SPARSE_INDICES[form]))]
        if any(one.dtype.kind not in "iu" or one.ndim != 1 for one in indices):
            raise ValueError("indices are not lists of integers")
        if form == "dia":  # diagonals outside the matrix are empty, and scipy may overflow on them
            inside = (-n_rows < indices[0]) & (indices[0] < n_columns)
            data, indices = data[inside], [indices[0][inside]]
        elif form == "coo":  # scipy may truncate an index to 32 bits before it checks the range
            for numbers, size in zip(indices, (n_rows, n_columns), strict=True):
                if len(numbers) and not (numbers.min() >= 0 and numbers.max() < size):
                    raise ValueError(f"a row or column number is not in 0..{size - 1:,}")
        elif np.diff(indices[1].astype(np.int64)).min(initial=0) < 0:  # scipy may miss this
            raise ValueError("indptr decreases")
        stored = (data, tuple(indices)) if form == "coo" else (data, *indices)
        matrix = getattr(scipy.sparse, f"{form}_matrix")(stored, shape=(n_rows, n_columns))
        if form in COMPRESSED:
            matrix.check_format(full_check=True)
        return _sparse(name, matrix)


def require_rows(n_rows: int, n_bytes: int) -> None:
    """Raise ValueError if the rows would need far more memory than their entries."""
    if n_rows > MAX_EMPTY_ROWS + 64 * n_bytes:
        raise ValueError(f"{n_rows:,} rows, but only {n_bytes:,} bytes of entries")


def from_arrays(name: str, arrays: dict[str, StoredArray], wanted: str | None) -> Table:
    """Combine the feature matrix with the arrays that have one value per row."""
    matrices = {key for key, one in arrays.items() if len(one.shape) == 2}
    if wanted is None:
        if len(matrices) != 1:
            there = ", ".join(sorted(matrices)) or ", ".join(arrays) or "nothing"
            raise DataError(
                f"{name}: contains {len(matrices)} matrices: {there}",
                Message("choose the one with the features: {array}"),
            )
        (wanted,) = matrices
    if wanted not in matrices:
        raise no_matrix(name, wanted, matrices)
    matrix = arrays[wanted]
    matrix.check(name, wanted)
    beside = {key: one for key, one in arrays.items() if one.shape == matrix.shape[:1]}
    return ArrayTable(name, matrix, beside)


def no_matrix(name: str, wanted: str, matrices: Iterable[str]) -> DataError:
    there = ", ".join(sorted(matrices)) or "none"
    return DataError(f"{name}: contains no matrix '{wanted}'", f"available matrices: {there}")


def _dense(name: str, array: AnyArray) -> Table:
    return ArrayTable(name, StoredArray.from_array(array, array.nbytes), {})


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


def _sparse(name: str, matrix: Any) -> SparseFile:
    if matrix.dtype.kind not in "buif":
        raise DataError(f"{name}: values of type {matrix.dtype}; expected real numbers")
    if matrix.shape[1] > MAX_FEATURES:
        raise DataError(f"{name}: {matrix.shape[1]:,} columns (at most {MAX_FEATURES:,})")
    rows = finite_rows(name, matrix)
    block = replace(Block.from_rows(rows), lines=np.arange(1, len(rows) + 1))
    return SparseFile(block, matrix.shape[1])


def finite_rows(name: str, matrix: Any, start: int = 0) -> Rows:
    """Return the rows of a sparse matrix whose first row is row ``start`` of the file."""
    rows = Rows.from_matrix(matrix)
    bad = np.flatnonzero(~np.isfinite(rows.values))
    if len(bad):
        row = start + int(np.searchsorted(rows.indptr, bad[0], "right"))
        raise DataError(
            f"{name}: row {row}, column {rows.indices[bad[0]]}: {rows.values[bad[0]]:g};"
            " expected a finite number",
            "leave unknown values out (they count as 0) or impute them first",
        )
    return rows


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
