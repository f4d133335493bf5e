"""Read NumPy and Parquet files, the latter with pyarrow.

Loading a file never executes code: arrays of Python objects are rejected. An array that claims to
be far larger than what the file stores is not loaded.
"""

from __future__ import annotations

import math
import os
import struct
import tempfile
import weakref
import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from tokenize import TokenError
from typing import Any, TypeAlias
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from resvm_cli.data.delimited import (
    MAX_COLUMNS,
    Column,
    Table,
    TableBlock,
    rows_at_once,
    unique_column_names,
)
from resvm_cli.data.streams import Source, cannot_spool, changed
from resvm_cli.data.svmlight import Block
from resvm_cli.errors import DataError
from resvm_cli.records import dataclass
from resvm_cli.rows import Rows

MAX_FEATURES = 2**31 - 2
MAX_RATIO = 1 << 14  # claimed bytes per stored byte
MAX_EMPTY_ROWS = 1 << 20  # rows allowed in a sparse matrix, plus 64 per byte of entries
MAX_TEXT = 1 << 14  # bytes in a cell of a Parquet file
TEXT_TYPES = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
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


def table_block(table: Table, columns: list[Column], n_rows: int, start: int) -> TableBlock:
    """Return a block of a table; it begins at row ``start``."""
    return TableBlock(columns, np.arange(start + 1, start + n_rows + 1), f"{table.name}: row ")


def require_stored(name: str, key: str, n_claimed: int, n_stored: int) -> None:
    if n_claimed > MAX_RATIO * (n_stored + 1024):
        raise DataError(
            f"{name}: '{key}' claims to have {n_claimed:,} bytes, but only {n_stored:,} are stored",
            "the file is damaged, or it was never filled in",
        )


class MatrixTable(Table):
    """A matrix as a table whose columns are numbered."""

    def __init__(self, name: str, matrix: AnyArray | _StoredRows, n_stored: int) -> None:
        if len(matrix.shape) != 2 or matrix.dtype.kind not in "buif":
            raise DataError(
                f"{name}: an array with {len(matrix.shape)} dimensions and type {matrix.dtype}",
                "expected a matrix of real numbers, one row per example and one column per feature",
            )
        width = matrix.shape[1]
        if width > MAX_COLUMNS + n_stored:
            raise DataError(f"{name}: a matrix of {width:,} columns in only {n_stored:,} bytes")
        self.name = name
        self.columns = [str(number + 1) for number in range(width)]
        self.n_numbered = width
        self._matrix = matrix

    def blocks(
        self, used: Container[object] | None = None, numbers: Container[object] = ()
    ) -> Iterator[TableBlock]:
        size = rows_at_once(self.n_numbered)
        for start in range(0, self._matrix.shape[0], size):
            part = self._matrix[start : start + size]
            if part.dtype.kind not in "iu":  # integers are kept exact
                with np.errstate(over="ignore"):  # an infinite number is rejected later
                    part = part.astype(np.float64)
            yield table_block(self, [*part.T], len(part), start)
        self.require_unchanged()


class _StoredRows:
    """The rows of a matrix in a file, read when needed: if a mapped file shrank, we would crash."""

    def __init__(self, name: str, path: str, mapped: np.memmap[Any, Any]) -> None:
        self.shape, self.dtype = mapped.shape, mapped.dtype
        self._name, self._offset = name, mapped.offset
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._descriptor)

    def __getitem__(self, rows: slice) -> AnyArray:
        start, stop, _ = rows.indices(self.shape[0])
        length = self.shape[1] * self.dtype.itemsize
        size, offset = (stop - start) * length, self._offset + start * length
        text = os.pread(self._descriptor, size, offset)
        if len(text) < size:
            raise changed(self._name)
        return np.frombuffer(text, self.dtype).reshape(stop - start, -1)


@dataclass(frozen=True, eq=False)
class SparseFile:
    """The rows of a sparse matrix, which have neither labels nor ids."""

    block: Block
    n_features: int


def open_arrays(name: str, path: str, kind: str) -> Table | SparseFile:
    """Open the table in a Parquet file, or the matrix in a NumPy file."""
    if kind == "parquet":
        return ParquetTable(name, path)
    with reading(name, "a NumPy file"):
        if kind == "npy":
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            in_order = array.flags.c_contiguous and array.ndim == 2 and array.size
            rows = _StoredRows(name, path, array) if in_order else array[:].copy("K")
            return MatrixTable(name, rows, array.nbytes)
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
            return MatrixTable(name, array, n_stored)


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
    values, indices, pointers = map(load, ("data", "indices", "indptr"))
    if n_rows > MAX_EMPTY_ROWS + 64 * values.nbytes:  # more memory than the entries justify
        raise ValueError(f"{n_rows:,} rows, but only {values.nbytes:,} bytes of entries")
    shape = (n_rows, n_columns) if form == "csr" else (n_columns, n_rows)
    matrix = _checked_matrix(values, indices, pointers, shape)
    rows = Rows.from_matrix(matrix if form == "csr" else matrix.T)
    bad = np.flatnonzero(~np.isfinite(rows.values))
    if len(bad):
        row = int(np.searchsorted(rows.indptr, bad[0], "right"))
        raise DataError(
            f"{name}: row {row}, column {rows.indices[bad[0]]}: {rows.values[bad[0]]:g};"
            " expected a finite number",
            "leave unknown values out (they count as 0) or impute them first",
        )
    block = replace(Block.from_rows(rows), lines=np.arange(1, len(rows) + 1))
    return SparseFile(block, n_columns)


def _checked_matrix(
    values: AnyArray, indices: AnyArray, pointers: AnyArray, shape: tuple[int, int]
) -> Any:
    """Return a compressed matrix; raise ValueError if its arrays disagree."""
    import scipy.sparse

    kinds = {indices.dtype.kind, pointers.dtype.kind}
    if values.dtype.kind not in "buif" or not kinds <= {"i", "u"} or values.ndim != 1:
        raise ValueError("expected real numbers, with an integer index each")
    # a small integer type may be too small for the sum of duplicate entries
    stored = values.astype(np.float64), indices.astype(np.int64), pointers.astype(np.int64)
    matrix = scipy.sparse.csr_matrix(stored, shape=shape)
    matrix.check_format(full_check=True)
    return matrix


class ParquetTable(Table):
    """The columns of a Parquet file, batch by batch."""

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        try:
            from pyarrow import parquet
        except ImportError:
            raise DataError(
                f"{name}: Parquet files require the pyarrow package",
                "pip install pyarrow, or resvm-cli[convert]",
            ) from None
        with reading(self.name, "Parquet"):  # includes pyarrow's own exceptions
            self._schema = parquet.read_schema(path)
            texts = [field.name for field in self._schema if str(field.type) in TEXT_TYPES]
            # a dictionary stores each distinct text only once
            self._file = parquet.ParquetFile(path, read_dictionary=texts, pre_buffer=False)
        self.columns = unique_column_names(self._schema.names, self.name)

    def blocks(
        self, used: Container[object] | None = None, numbers: Container[object] = ()
    ) -> Iterator[TableBlock]:
        from pyarrow import types

        names = {}
        for number, field in enumerate(self._schema):
            if used is None or number in used:
                names[number] = field.name
                if types.is_nested(field.type):
                    problem = f"type {field.type}; expected numbers or text"
                    raise _unusable(self.name, field.name, problem)
                if types.is_fixed_size_binary(field.type):
                    _require_short(self.name, field.name, field.type.byte_width)
        start = 0
        with reading(self.name, "Parquet"):
            self._require_sizes(set(names.values()))
            for batch in self._batches(list(names.values())):
                columns: list[Column] = [()] * len(self.columns)
                for number, name in names.items():
                    columns[number] = self._cells(name, batch.column(name))
                yield table_block(self, columns, batch.num_rows, start)
                start += batch.num_rows
        self.require_unchanged()

    def _batches(self, names: list[str]) -> Iterator[Any]:
        """Yield as many rows at a time as of any table, whatever the row groups of the file."""
        import pyarrow

        size = rows_at_once(len(self.columns))
        parts: list[Any] = []
        n_rows = 0
        for batch in self._file.iter_batches(size, columns=names):
            while batch.num_rows:
                parts.append(batch.slice(0, size - n_rows))
                batch = batch.slice(parts[-1].num_rows)
                n_rows = (n_rows + parts[-1].num_rows) % size
                if n_rows == 0:
                    yield pyarrow.Table.from_batches(parts).unify_dictionaries()
                    parts = []
        if parts:
            yield pyarrow.Table.from_batches(parts).unify_dictionaries()

    def _require_sizes(self, names: set[str]) -> None:
        content = self._file.metadata
        for group in map(content.row_group, range(content.num_row_groups)):
            for chunk in map(group.column, range(content.num_columns)):
                if (name := chunk.path_in_schema) in names:
                    sizes = chunk.total_uncompressed_size, chunk.total_compressed_size
                    require_stored(self.name, name, *sizes)

    def _cells(self, name: str, cells: Any) -> Column:
        import pyarrow
        from pyarrow import compute, types

        cells = cells.combine_chunks()
        if types.is_dictionary(cells.type) and str(cells.type.value_type) not in TEXT_TYPES:
            cells = cells.dictionary_decode()
        if types.is_boolean(cells.type):
            cells = cells.cast("uint8")
        if types.is_floating(cells.type):
            return np.asarray(cells.to_numpy(zero_copy_only=False), np.float64)
        if types.is_integer(cells.type):
            with suppress(pyarrow.ArrowInvalid):  # missing values and huge integers
                exact = cells.cast("float64") if cells.null_count else cells
                return np.asarray(exact.to_numpy(zero_copy_only=False))
        if not types.is_dictionary(cells.type):
            cells = cells.dictionary_encode()
        codes = cells.indices.drop_null().unique()
        values = cells.dictionary.take(codes)
        if str(values.type) in TEXT_TYPES:
            lengths = compute.binary_length(values)
            _require_short(self.name, name, compute.max(lengths).as_py() or 0)
        texts = dict(zip(codes.to_pylist(), map(_text_of, values.to_pylist()), strict=True))
        return [texts.get(code, "") for code in cells.indices.to_pylist()]


def _text_of(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return "" if value is None else str(value)


def _unusable(name: str, column: str, problem: str) -> DataError:
    return DataError(f"{name}: '{column}' has {problem}", f"omit it: `drop={column!r}`")


def _require_short(name: str, column: str, n_bytes: int) -> None:
    if n_bytes > MAX_TEXT:
        raise _unusable(name, column, f"a value of {n_bytes:,} bytes (at most {MAX_TEXT:,})")
