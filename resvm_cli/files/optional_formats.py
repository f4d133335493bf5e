"""Read Parquet files (with pyarrow) and AnnData files (.h5ad, with h5py)."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.files.array_files import (
    MAX_CELLS,
    MAX_FEATURES,
    SPARSE_PARTS,
    MatrixTable,
    Part,
    batch_rows,
    compressed_rows,
    dense_parts,
    optional_package,
    reading,
    require_matrix,
    require_pointers,
    require_rows,
    require_short,
    require_stored,
    table_block,
    text_of,
    unusable,
)
from resvm_cli.files.delimited import (
    MAX_ROWS,
    Column,
    Table,
    TableBlock,
    rows_at_once,
    unique_column_names,
)

PANDAS_INDEX = re.compile("__index_level_[0-9]+__")  # the unnamed index of a data frame
TEXT_TYPES = ("string", "large_string", "binary", "large_binary")
BATCH_ROWS = 1 << 12
ATTRIBUTES = ("encoding-type", "shape", "_index")  # the attributes of an HDF5 group that are read
MAX_CHUNK = 1 << 28  # bytes that HDF5 decompresses at once


class ParquetTable(Table):
    """The columns of a Parquet file, batch by batch."""

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        parquet = optional_package("pyarrow.parquet", "pyarrow", self.name, "Parquet")
        with reading(self.name, "Parquet"):  # includes pyarrow's own exceptions
            self._schema = parquet.read_schema(path)
            texts = [field.name for field in self._schema if str(field.type) in TEXT_TYPES]
            # a dictionary stores each distinct text only once
            self._file = parquet.ParquetFile(path, read_dictionary=texts, pre_buffer=False)
        self.columns = unique_column_names(self._schema.names, lambda number: self.name)
        self.unnamed = [name for name in self.columns if PANDAS_INDEX.fullmatch(name)]

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
                    raise unusable(self.name, field.name, problem)
                if types.is_fixed_size_binary(field.type):
                    require_short(self.name, field.name, field.type.byte_width)
        start = 0
        with reading(self.name, "Parquet"):
            self._require_sizes(set(names.values()))
            size = batch_rows(len(names), BATCH_ROWS)
            for batch in self._file.iter_batches(size, columns=list(names.values())):
                columns: list[Column] = [()] * len(self.columns)
                for number, name in names.items():
                    columns[number] = self._cells(name, batch.column(name))
                yield table_block(self, columns, batch.num_rows, start)
                start += batch.num_rows

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
            require_short(self.name, name, compute.max(lengths).as_py() or 0)
        texts = dict(zip(codes.to_pylist(), map(text_of, values.to_pylist()), strict=True))
        return [texts.get(code, "") for code in cells.indices.to_pylist()]


class _AnnData:
    """The datasets of an AnnData file, and the attributes of its groups, by path."""

    def __init__(self, name: str, file: Any) -> None:
        self._name = name
        self._data: dict[str, Any] = {}
        self._attributes: dict[str, dict[str, Any]] = {}
        self._add("", file)
        file.visititems(self._add)  # does not follow links to other files
        is_anndata = text_of(self._attributes[""].get("encoding-type")) == "anndata"
        if not is_anndata and not {"obs", "var"} <= self._attributes.keys():
            raise DataError(
                f"{name}: an HDF5 file, but not AnnData (.h5ad), the only kind that is supported",
                "save its matrix as .npy in Python: numpy.save('data.npy', h5py.File(FILE)[NAME])",
            )

    def _add(self, path: str, item: Any) -> None:
        if not hasattr(item, "dtype"):  # a group
            there = item.attrs
            self._attributes[path] = {name: there[name] for name in ATTRIBUTES if name in there}
        elif getattr(item, "shape", None) is not None:  # neither empty nor a named type
            self._data[path] = item

    def table(self) -> Table:
        if "X" in self._data:
            form, matrix = "dense", self._checked("X")
            require_matrix(self._name, matrix)
            shape = matrix.shape
            parts = partial(dense_parts, matrix, rows_at_once(shape[1]))
        else:
            form, shape = self._sparse_form()
            parts = partial(self._sparse_parts, form, shape)
        n_rows, width = shape
        names = self._names("var", width)
        columns = _made_unique([one or str(number + 1) for number, one in enumerate(names)])
        ids = self._index("obs")
        has_ids = ids in self._data and self._data[ids].shape == (n_rows,)
        if has_ids:
            columns = _made_unique([*columns, "obs_names"])
        read_ids = partial(self._texts, ids) if has_ids else None
        table = MatrixTable(self._name, columns, parts, read_ids)
        table.n_default = width
        table.n_sparse = 0 if form == "dense" else width
        table.id_column = columns[width] if has_ids else None
        return table

    def _checked(self, path: str) -> Any:
        """Return a dataset; raise an error if it claims far more bytes than the file stores."""
        item = self._data[path]
        if item.external is not None or item.is_virtual:
            raise DataError(
                f"{self._name}: '{path}' is stored in other files, which are not opened",
                "copy it into one file first",
            )
        n_claimed = math.prod(item.shape) * item.dtype.itemsize
        require_stored(self._name, path, n_claimed, item.id.get_storage_size())
        require_short(self._name, path, item.dtype.itemsize)
        n_chunk = math.prod(item.chunks or (0,)) * item.dtype.itemsize
        if n_chunk > MAX_CHUNK:
            raise DataError(
                f"{self._name}: '{path}' is stored in chunks of {n_chunk:,} bytes"
                f" (at most {MAX_CHUNK:,})",
                "write it in smaller chunks: h5repack",
            )
        return item

    def _index(self, group: str) -> str:
        """Return the path of the row or column names."""
        return f"{group}/{text_of(self._attributes[group].get('_index', '_index'))}"

    def _names(self, group: str, size: int) -> list[str]:
        names = self._texts(self._index(group), 0, size)
        if len(names) != size:
            raise ValueError(f"'{group}' does not name the {size:,} columns of 'X'")
        return [name.strip() for name in names]

    def _texts(self, path: str, start: int, stop: int) -> list[str]:
        values = self._checked(path)[start:stop].tolist()
        if not all(isinstance(value, str | bytes) for value in values):
            raise ValueError(f"'{path}' does not contain text")
        return list(map(text_of, values))

    def _sparse_form(self) -> tuple[str, tuple[int, int]]:
        attributes = self._attributes.get("X", {})
        form = text_of(attributes.get("encoding-type")).removesuffix("_matrix")
        paths = [f"X/{part}" for part in SPARSE_PARTS]
        if form not in ("csr", "csc") or not {*paths} <= self._data.keys():
            raise DataError(
                f"{self._name}: contains no matrix 'X', dense or sparse (csr, csc)",
                "in Python, set adata.X to the matrix of features, and save the file again",
            )
        values, _, pointers = map(self._checked, paths)
        n_rows, n_columns = map(int, attributes["shape"])
        length = n_rows if form == "csr" else n_columns
        if pointers.shape != (length + 1,) or n_columns > MAX_FEATURES:
            raise ValueError("'X' has an invalid shape")
        require_rows(n_rows, values.id.get_storage_size())
        return form, (n_rows, n_columns)

    def _sparse_parts(self, form: str, shape: tuple[int, int]) -> Iterator[Part]:
        """Yield the rows of a csr matrix as they are read; a csc matrix is read as a whole."""
        n_rows, n_columns = shape
        values, indices = self._data["X/data"], self._data["X/indices"]
        pointers = self._data["X/indptr"][:]
        if form == "csc":
            parts = values[:], indices[:], pointers
            rows = compressed_rows(self._name, form, parts, shape)
            for start in range(0, n_rows, MAX_ROWS):
                stop = min(start + MAX_ROWS, n_rows)
                yield start, stop, rows.slice(start, stop)
            return
        require_pointers(pointers, n_rows, values.shape[0])
        pointers = pointers.astype(np.int64)
        start = 0
        while start < n_rows:
            full = int(np.searchsorted(pointers, pointers[start] + MAX_CELLS, "right")) - 1
            stop = min(start + MAX_ROWS, n_rows, max(start + 1, full))
            own = slice(int(pointers[start]), int(pointers[stop]))
            parts = values[own], indices[own], pointers[start : stop + 1] - pointers[start]
            shape = stop - start, n_columns
            yield start, stop, compressed_rows(self._name, form, parts, shape, start)
            start = stop


def open_anndata(name: str, path: str) -> Table:
    """Open X of an AnnData file: observations (obs) are rows, variables (var) are columns."""
    h5py = optional_package("h5py", "h5py", name, "HDF5")
    with reading(name, "AnnData"):
        return _AnnData(name, h5py.File(path, "r")).table()


def _made_unique(names: list[str]) -> list[str]:
    """Append -1, -2 and so on to duplicate names, as AnnData itself does."""
    given = set(names)
    found: dict[str, None] = {}
    for name in names:
        unique = name
        if name in found:
            numbered = (f"{name}-{number}" for number in count(1))
            unique = next(one for one in numbered if one not in found and one not in given)
        found[unique] = None
    return list(found)
