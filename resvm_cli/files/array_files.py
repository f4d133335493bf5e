"""Read matrices from NumPy, Matrix Market, Parquet and HDF5 files.

Loading a file never executes code: arrays of Python objects are rejected. A plain file is
memory-mapped or read in blocks; a compressed file or a pipe is read into memory. NumPy, Parquet and
HDF5 files are read by their own packages. Matrix Market text is parsed here, because scipy's
compiled reader crashes on truncated files.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from tokenize import TokenError
from types import ModuleType
from typing import Any, BinaryIO, Literal, TypeAlias
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError, Message
from resvm_cli.files.compression import MAGICS
from resvm_cli.files.delimited import Column, Table, TableBlock, rows_at_once, unique_column_names
from resvm_cli.files.file_kinds import Kind
from resvm_cli.files.streams import STDIN, comes_at_once
from resvm_cli.files.svmlight import Block
from resvm_cli.rows import FloatArray, IntArray, Rows

LABELS, IDS = "labels", "ids"  # stored next to the arrays of a sparse matrix
SPARSE_KEYS = {"format", "shape", "data", "indices", "indptr"}  # written by scipy.sparse.save_npz
BATCH_ROWS = 1 << 12
MAX_FEATURES = MAX_SIZE = 2**31 - 2
# Exceptions that the packages raise for a truncated or damaged file.
READ_ERRORS = (
    ValueError,
    TypeError,
    OSError,
    EOFError,
    LookupError,
    ArithmeticError,
    RuntimeError,  # an encrypted member, or (NotImplementedError) an unknown compression
    AttributeError,
    SyntaxError,
    TokenError,
    BadZipFile,
    struct.error,
    zlib.error,
)
_BANNER = re.compile(
    rb"%%MatrixMarket\s+matrix\s+(coordinate|array)\s+(real|double|integer|pattern)"
    rb"\s+(general|symmetric|skew-symmetric)\s*",
    re.IGNORECASE,
)

_PLAIN = re.compile(rb"[-+.0-9eE\s]*")

ArrayFile: TypeAlias = "str | BinaryIO"


def _located(table: Table, start: int) -> Callable[[int, int], str]:
    """Return a function that locates the cells of a block whose first row is ``start``."""
    return lambda row, column: (
        f"{table.name}: row {start + row + 1}, column {table.columns[column]}"
    )


class ArrayTable(Table):
    """A matrix with numbered columns, plus named arrays with one value per row."""

    def __init__(self, name: str, matrix: Any, beside: Mapping[str, Any]) -> None:
        self.name = name
        self._matrix = matrix
        self._beside = dict(beside)
        self.columns = [str(number + 1) for number in range(matrix.shape[1])] + list(beside)

    def blocks(self) -> Iterator[TableBlock]:
        size = rows_at_once(len(self.columns))
        for start in range(0, self._matrix.shape[0], size):
            try:
                part = np.asarray(self._matrix[start : start + size], np.float64)
                columns: list[Column] = list(part.T)
                columns += [_column(array[start : start + size]) for array in self._beside.values()]
            except READ_ERRORS as problem:  # the file is read lazily
                raise _damaged(self.name, "HDF5", problem) from None
            yield TableBlock(columns, len(part), _located(self, start))


class ParquetTable(Table):
    """The columns of a Parquet file, batch by batch."""

    def __init__(self, name: str, file: ArrayFile) -> None:
        self.name = name
        parquet = _package("pyarrow.parquet", "pyarrow", self.name, "a Parquet file")
        try:
            self._file = parquet.ParquetFile(file)
            names = list(self._file.schema_arrow.names)
        except READ_ERRORS as problem:  # includes pyarrow's own exceptions
            raise _damaged(self.name, "Parquet", problem) from None
        self.columns = unique_column_names(names, lambda number: self.name)

    def blocks(self) -> Iterator[TableBlock]:
        start = 0
        for columns, n_rows in self._batches():
            yield TableBlock(columns, n_rows, _located(self, start))
            start += n_rows

    def _batches(self) -> Iterator[tuple[list[Column], int]]:
        try:
            for batch in self._file.iter_batches(batch_size=BATCH_ROWS):
                columns = [self._numbers_or_texts(column) for column in batch.columns]
                yield columns, batch.num_rows
        except READ_ERRORS as problem:
            raise _damaged(self.name, "Parquet", problem) from None

    def _numbers_or_texts(self, column: Any) -> Column:
        import pyarrow

        kind = column.type
        if pyarrow.types.is_dictionary(kind):
            column = column.dictionary_decode()
            kind = column.type
        if pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind):
            return np.asarray(column.cast("float64", safe=False).to_numpy(zero_copy_only=False))
        if pyarrow.types.is_boolean(kind):
            return np.asarray(column.cast("uint8").cast("float64").to_numpy(zero_copy_only=False))
        return ["" if one is None else str(one) for one in column.to_pylist()]


@dataclass(frozen=True, eq=False)
class SparseFile:
    """A sparse matrix, with labels and ids if the file has them."""

    name: str
    rows: Rows
    n_features: int
    labels: FloatArray | None = None
    ids: list[str] | None = None

    def block(self) -> Block:
        """All rows as one block."""
        return Block.from_rows(self.rows, self.labels, self.ids)


def open_arrays(name: str, file: ArrayFile, kind: Kind, array: str | None) -> Table | SparseFile:
    """Open the matrix in a file; ``array`` names it if the file has several."""
    if kind == "parquet":
        return ParquetTable(name, file)
    if kind == "matrix market":
        return _matrix_market(name, file)
    if kind == "hdf5":
        return _hdf5(name, file, array)
    mapped: Literal["r"] | None = "r" if kind == "npy" and isinstance(file, str) else None
    try:
        content = np.load(file, mmap_mode=mapped, allow_pickle=False)
        arrays = {} if kind == "npy" else {key: content[key] for key in content.files}
    except READ_ERRORS as problem:
        raise _damaged(name, "a NumPy file", problem) from None
    if kind == "npy":
        return ArrayTable(name, _matrix(content, name), {})
    if set(arrays) >= SPARSE_KEYS:
        return _sparse_npz(name, file, arrays)
    return _from_arrays(name, arrays, array)


def _sparse_npz(name: str, file: ArrayFile, arrays: dict[str, Any]) -> SparseFile:
    import scipy.sparse

    if not isinstance(file, str):
        file.seek(0)
    try:
        matrix = scipy.sparse.load_npz(file)
        # scipy's compiled code would follow bad indices out of bounds, and its check misses a
        # decreasing indptr if its last entry is 0
        if np.diff(matrix.indptr.astype(np.int64)).min(initial=0) < 0:
            raise ValueError("indptr decreases")
        matrix.check_format(full_check=True)
        matrix = matrix.tocsr()
        labels = np.asarray(arrays[LABELS], np.float64) if LABELS in arrays else None
        ids = [str(one) for one in arrays[IDS]] if IDS in arrays else None
        for beside in (labels, ids):
            if beside is not None and np.shape(beside) != (matrix.shape[0],):
                raise ValueError(f"expected {matrix.shape[0]:,} labels and ids, one per row")
    except READ_ERRORS as problem:
        raise _damaged(name, "a scipy sparse matrix", problem) from None
    return _sparse(name, matrix, labels, ids)


def _matrix_market(name: str, file: ArrayFile) -> Table | SparseFile:
    try:
        if isinstance(file, str):
            with open(file, "rb") as opened:
                matrix = parse_matrix_market(opened.read())
        else:
            matrix = parse_matrix_market(file.read())
    except (ValueError, OSError) as problem:
        raise _damaged(name, "Matrix Market", problem) from None
    if isinstance(matrix, np.ndarray):
        return ArrayTable(name, _matrix(matrix, name), {})
    return _sparse(name, matrix.tocsr())


def _hdf5(name: str, path: ArrayFile, array: str | None) -> Table | SparseFile:
    h5py = _package("h5py", "h5py", name, "an HDF5 file")
    found: dict[str, Any] = {}

    def take(key: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset):
            return
        if item.external is not None or item.is_virtual:
            raise DataError(
                f"{name}: '{key}' is stored in other files, which are not opened",
                "copy it into one file first, or convert those files",
            )
        found[key] = item.asstr() if h5py.check_string_dtype(item.dtype) else item

    try:
        h5py.File(path, "r").visititems(take)
        return _from_arrays(name, found, array)
    except DataError:
        raise
    except READ_ERRORS as problem:
        raise _damaged(name, "HDF5", problem) from None


def _from_arrays(name: str, arrays: dict[str, Any], wanted: str | None) -> Table:
    """Combine the feature matrix with the arrays that have one value per row."""
    matrices = {key for key, one in arrays.items() if len(_shape(one)) == 2}
    if wanted is None:
        if len(matrices) != 1:
            there = ", ".join(sorted(matrices)) or ", ".join(arrays) or "nothing"
            raise DataError(
                f"{name}: has {len(matrices)} matrices: {there}",
                Message("name the one with the features: {array}"),
            )
        (wanted,) = matrices
    if wanted not in matrices:
        raise DataError(
            f"{name}: has no matrix '{wanted}'",
            f"its matrices: {', '.join(sorted(matrices)) or 'none'}",
        )
    matrix = _matrix(arrays[wanted], name)
    beside = {
        key: one
        for key, one in arrays.items()
        if _shape(one) == (matrix.shape[0],) and key != wanted
    }
    return ArrayTable(name, matrix, beside)


def _shape(array: Any) -> tuple[int, ...]:
    # h5py's string arrays have a length but no shape
    return tuple(array.shape) if hasattr(array, "shape") else (len(array),)


def _matrix(array: Any, name: str) -> Any:
    shape = _shape(array)
    if len(shape) != 2 or array.dtype.kind not in "buif":
        raise DataError(
            f"{name}: an array with {len(shape)} dimensions and type {array.dtype}",
            "expected a matrix of real numbers, one row per example and one column per feature",
        )
    return array


def _column(values: Any) -> Column:
    array: npt.NDArray[Any] = np.asarray(values)
    if array.dtype.kind in "buif":
        return array.astype(np.float64)
    return [one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one) for one in array]


def _sparse(
    name: str, matrix: Any, labels: FloatArray | None = None, ids: list[str] | None = None
) -> SparseFile:
    if matrix.dtype.kind not in "buif":
        raise DataError(f"{name}: values of type {matrix.dtype}; expected real numbers")
    if matrix.shape[1] > MAX_FEATURES:
        raise DataError(f"{name}: {matrix.shape[1]:,} columns (at most {MAX_FEATURES:,})")
    rows = Rows.from_matrix(matrix)
    bad = np.flatnonzero(~np.isfinite(rows.values))
    if len(bad):
        row = int(np.searchsorted(rows.indptr, bad[0], "right"))
        raise DataError(
            f"{name}: row {row}, column {rows.indices[bad[0]]}: {rows.values[bad[0]]:g};"
            " expected a finite number",
            "leave unknown values out (they count as 0) or impute them first",
        )
    return SparseFile(name, rows, matrix.shape[1], labels, ids)


def write_npz(file: BinaryIO, block: Block, n_features: int, *, labels: bool, ids: bool) -> None:
    """Write a file that scipy.sparse.load_npz can read, optionally with labels and ids."""
    rows = block.rows
    beside: dict[str, Any] = {}
    if labels:
        beside[LABELS] = block.labels
    if ids:
        beside[IDS] = np.array(block.comments, np.str_)
    np.savez_compressed(
        file,
        format=np.array(b"csr"),
        shape=np.array([len(rows), n_features]),
        data=rows.values,
        indices=rows.indices - 1,
        indptr=rows.indptr,
        **beside,
    )


def write_npy(file: BinaryIO, block: Block, n_features: int) -> None:
    """Write the features as a dense matrix."""
    rows = block.rows
    matrix = np.zeros((len(rows), n_features))
    matrix[rows.row_numbers, rows.indices - 1] = rows.values
    np.save(file, matrix, allow_pickle=False)


def array_file(path: str, pieces: Iterable[bytes]) -> ArrayFile:
    """Return the path of a plain file; read any other input into memory."""
    if path != STDIN and comes_at_once(path):
        with open(path, "rb") as file:
            head = file.read(8)
        if not any(head.startswith(magic) for magic in MAGICS):
            return path
    return io.BytesIO(b"".join(pieces))


def _package(module: str, package: str, name: str, what: str) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise DataError(
            f"{name}: {what}, which needs the package {package}",
            f"pip install {package}, or resvm-cli[convert]",
        ) from None


def _damaged(name: str, kind: str, problem: Exception) -> DataError:
    return DataError(
        f"{name}: cannot be read as {kind}: {problem}",
        "it may be truncated, or contain Python objects, which are never loaded",
    )


def parse_matrix_market(text: bytes) -> Any:
    """Parse Matrix Market text to a dense array or a scipy sparse matrix.

    Raises ValueError if the text is invalid. Memory is bounded by the amount of numbers in the
    text, except that the stated number of rows is trusted.
    """
    banner, _, rest = text.partition(b"\n")
    words = _BANNER.fullmatch(banner)
    if words is None:
        raise ValueError(
            "expected '%%MatrixMarket matrix' on the first line, then coordinate or array; real,"
            " integer or pattern; general, symmetric or skew-symmetric"
        )
    form, field, symmetry = (word.lower().decode() for word in words.groups())
    while True:
        line, newline, rest = rest.partition(b"\n")
        if line.strip() and not line.startswith(b"%"):
            break
        if not newline:
            raise ValueError("the size line is missing")
    sizes = line.split()
    if len(sizes) != (3 if form == "coordinate" else 2) or not all(map(_is_count, sizes)):
        raise ValueError(f"the size line is {line[:60]!r}")
    n_rows, n_columns, *entries = map(int, sizes)
    if n_rows > MAX_SIZE or n_columns > MAX_SIZE:
        raise ValueError(f"{n_rows:,} rows by {n_columns:,} columns is too large")
    if not _PLAIN.fullmatch(rest):
        raise ValueError("expected plain numbers after the size line")
    numbers = np.array(rest.split(), np.float64)
    if symmetry != "general" and n_rows != n_columns:
        raise ValueError(f"{symmetry}, but not square")
    if form == "array":
        if field == "pattern" or symmetry != "general":
            raise ValueError("a dense matrix must be general")
        if len(numbers) != n_rows * n_columns:
            raise ValueError(f"expected {n_rows * n_columns:,} numbers, got {len(numbers):,}")
        return numbers.reshape(n_columns, n_rows).T
    return _entries(numbers, n_rows, n_columns, entries[0], field == "pattern", symmetry)


def _is_count(word: bytes) -> bool:
    return word.isdigit() and len(word) < 19


def _entries(
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
            f"expected {n_entries:,} entries of {width} numbers, got {len(numbers):,} numbers"
        )
    table = numbers.reshape(-1, width)
    rows, columns = _indices(table[:, 0], n_rows), _indices(table[:, 1], n_columns)
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


def _indices(numbers: FloatArray, limit: int) -> IntArray:
    """Convert row or column numbers to integers that start at 0."""
    if len(numbers) and not (numbers.min() >= 1 and numbers.max() <= limit):
        raise ValueError(f"a row or column number is not in 1..{limit:,}")
    whole = numbers.astype(np.int64)
    if (whole != numbers).any():
        raise ValueError("a row or column number is not an integer")
    return whole - 1
