"""Arrays in files: NumPy's, Matrix Market, Parquet and HDF5, each by the package that knows it.

Nothing in them is executed: arrays of Python objects are refused. A file that is plain on disk is
mapped or read in parts; one that is compressed or comes by a pipe is taken into memory.
"""

from __future__ import annotations

import io
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

from resvm_cli.errors import DataError
from resvm_cli.files.compression import MAGICS
from resvm_cli.files.file_kinds import Kind
from resvm_cli.files.matrix_market import parse_matrix_market
from resvm_cli.files.streams import STDIN, comes_at_once
from resvm_cli.files.svmlight import Block
from resvm_cli.files.tables import Column, Table, TableBlock, rows_at_once, unique_names
from resvm_cli.rows import FloatArray, Rows

LABELS, IDS = "labels", "ids"  # beside the arrays of a sparse matrix that resvm writes
SPARSE_KEYS = {"format", "shape", "data", "indices", "indptr"}  # of scipy.sparse.save_npz
BATCH_ROWS = 1 << 12
MOST_FEATURES = 2**31 - 2
# What a file that was cut short or changed makes the packages raise.
DAMAGES = (
    ValueError,
    TypeError,
    OSError,
    EOFError,
    LookupError,
    ArithmeticError,
    RuntimeError,  # an encrypted member; NotImplementedError too: an unknown compression
    AttributeError,
    SyntaxError,
    TokenError,
    BadZipFile,
    struct.error,
    zlib.error,
)

ArrayFile: TypeAlias = "str | BinaryIO"


class ArrayTable(Table):
    """A matrix whose columns go by number, and arrays of as many rows that go by name."""

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
            except DAMAGES as problem:  # of a file that is read as rows are asked for
                raise _damaged(self.name, "HDF5", problem) from None
            yield TableBlock(columns, len(part), self._places(start))

    def _places(self, start: int) -> Callable[[int, int], str]:
        return lambda row, column: (
            f"{self.name}: row {start + row + 1}, column {self.columns[column]}"
        )


class ParquetTable(Table):
    """The columns of a Parquet file, batch by batch."""

    def __init__(self, name: str, file: ArrayFile) -> None:
        self.name = name
        parquet = _package("pyarrow.parquet", "pyarrow", self.name, "a Parquet file")
        try:
            self._file = parquet.ParquetFile(file)
            names = list(self._file.schema_arrow.names)
        except DAMAGES as problem:  # those of pyarrow are among them
            raise _damaged(self.name, "Parquet", problem) from None
        self.columns = unique_names(names, lambda number: self.name)

    def blocks(self) -> Iterator[TableBlock]:
        start = 0
        for columns, n_rows in self._batches():
            yield TableBlock(columns, n_rows, self._places(start))
            start += n_rows

    def _batches(self) -> Iterator[tuple[list[Column], int]]:
        try:
            for batch in self._file.iter_batches(batch_size=BATCH_ROWS):
                columns = [self._numbers_or_texts(column) for column in batch.columns]
                yield columns, batch.num_rows
        except DAMAGES as problem:
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

    def _places(self, start: int) -> Callable[[int, int], str]:
        return lambda row, column: (
            f"{self.name}: row {start + row + 1}, column {self.columns[column]}"
        )


@dataclass(frozen=True, eq=False)
class SparseFile:
    """A sparse matrix, with labels and ids where they were stored beside it."""

    name: str
    rows: Rows
    n_features: int
    labels: FloatArray | None = None
    ids: list[str] | None = None

    def block(self) -> Block:
        """All of it, as rows of svmlight text are."""
        return Block.of(self.rows, self.labels, self.ids)


def open_arrays(name: str, file: ArrayFile, kind: Kind, array: str | None) -> Table | SparseFile:
    """The matrix of a file, which ``array`` names where it has several."""
    if kind == "parquet":
        return ParquetTable(name, file)
    if kind == "matrix market":
        return _matrix_market(name, file)
    if kind == "hdf5":
        return _hdf5(name, file, array)
    mapped: Literal["r"] | None = "r" if kind == "npy" and isinstance(file, str) else None
    try:
        content = np.load(file, mmap_mode=mapped, allow_pickle=False)
        if kind == "npy":
            return ArrayTable(name, _matrix(content, name), {})
        arrays = {key: content[key] for key in content.files}
    except DAMAGES as problem:
        raise _damaged(name, "NumPy's", problem) from None
    if set(arrays) >= SPARSE_KEYS:
        return _sparse_npz(name, file, arrays)
    return _from_arrays(name, arrays, array)


def _sparse_npz(name: str, file: ArrayFile, arrays: dict[str, Any]) -> SparseFile:
    import scipy.sparse

    if not isinstance(file, str):
        file.seek(0)
    try:
        matrix = scipy.sparse.load_npz(file)
        # else its compiled code would follow indices out of the arrays; it does not look at rows
        # whose bounds fall where the last bound is 0
        if np.diff(matrix.indptr.astype(np.int64)).min(initial=0) < 0:
            raise ValueError("the bounds of its rows fall")
        matrix.check_format(full_check=True)
        matrix = matrix.tocsr()
        labels = np.asarray(arrays[LABELS], np.float64) if LABELS in arrays else None
        ids = [str(one) for one in arrays[IDS]] if IDS in arrays else None
        for beside in (labels, ids):
            if beside is not None and np.shape(beside) != (matrix.shape[0],):
                raise ValueError(f"labels or ids are not {matrix.shape[0]:,}, one a row")
    except DAMAGES as problem:
        raise _damaged(name, "scipy's", problem) from None
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
    h5py = _package("h5py", "h5py", name, "a HDF5 file")
    found: dict[str, Any] = {}

    def take(key: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset):
            return
        if item.external is not None or item.is_virtual:
            raise DataError(
                f"{name}: '{key}' lies in other files, which are not opened",
                "copy it into one file first, or convert those files",
            )
        found[key] = item.asstr() if h5py.check_string_dtype(item.dtype) else item

    try:
        h5py.File(path, "r").visititems(take)
        return _from_arrays(name, found, array)
    except DAMAGES as problem:
        raise _damaged(name, "HDF5", problem) from None


def _from_arrays(name: str, arrays: dict[str, Any], wanted: str | None) -> Table:
    """The matrix among named arrays, and those of one dimension that have a value a row."""
    matrices = {key for key, one in arrays.items() if len(_shape(one)) == 2}
    if wanted is None:
        if len(matrices) != 1:
            there = ", ".join(sorted(matrices)) or ", ".join(arrays) or "nothing"
            raise DataError(
                f"{name}: holds {len(matrices)} matrices: {there}",
                "say which has the features: --array NAME",
            )
        (wanted,) = matrices
    if wanted not in matrices:
        raise DataError(
            f"{name}: has no matrix '{wanted}'",
            f"matrices that are there: {', '.join(sorted(matrices)) or 'none'}",
        )
    matrix = _matrix(arrays[wanted], name)
    beside = {
        key: one
        for key, one in arrays.items()
        if _shape(one) == (matrix.shape[0],) and key != wanted
    }
    return ArrayTable(name, matrix, beside)


def _shape(array: Any) -> tuple[int, ...]:
    # what h5py gives for texts has a length and no shape
    return tuple(array.shape) if hasattr(array, "shape") else (len(array),)


def _matrix(array: Any, name: str) -> Any:
    shape = _shape(array)
    if len(shape) != 2 or array.dtype.kind not in "buif":
        raise DataError(
            f"{name}: an array of {len(shape)} dimensions of type {array.dtype}",
            "a matrix of real numbers was expected: a row an example, a column a feature",
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
        raise DataError(f"{name}: numbers of type {matrix.dtype}; real ones were expected")
    if matrix.shape[1] > MOST_FEATURES:
        raise DataError(f"{name}: {matrix.shape[1]:,} columns; {MOST_FEATURES:,} features at most")
    rows = Rows.from_matrix(matrix)
    bad = np.flatnonzero(~np.isfinite(rows.values))
    if len(bad):
        row = int(np.searchsorted(rows.indptr, bad[0], "right"))
        raise DataError(
            f"{name}: row {row}, column {rows.indices[bad[0]]}: {rows.values[bad[0]]:g};"
            " every number must be finite",
            "leave unknown values out (they count as 0) or impute them first",
        )
    return SparseFile(name, rows, matrix.shape[1], labels, ids)


def write_npz(file: BinaryIO, block: Block, n_features: int, *, labels: bool, ids: bool) -> None:
    """What scipy.sparse.load_npz reads, with labels and ids beside it."""
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
    """The features as a dense matrix."""
    rows = block.rows
    matrix = np.zeros((len(rows), n_features))
    matrix[rows.row_numbers, rows.indices - 1] = rows.values
    np.save(file, matrix, allow_pickle=False)


def array_file(path: str, pieces: Iterable[bytes]) -> ArrayFile:
    """A file where it lies, or all of its text in memory where it cannot be read there."""
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
            f"{name}: {what}, and the package that reads it is not installed: {package}",
            f"pip install {package}, or resvm-cli[convert]",
        ) from None


def _damaged(name: str, kind: str, problem: Exception) -> DataError:
    return DataError(
        f"{name}: cannot be read as a file of {kind} format: {problem}",
        "the file may have been cut short, or hold Python objects, which are never loaded",
    )
