"""Read Parquet and AnnData files (.h5ad); they need pyarrow and h5py.

The rows of an AnnData file are its observations (obs), such as cells or samples. Its features are
the columns of X, which are named by its variables (var), such as genes.
"""

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
    AnyArray,
    MatrixTable,
    Part,
    StoredArray,
    batch_rows,
    column_of,
    compressed_rows,
    dense_parts,
    package,
    reading,
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
ATTRIBUTES = ("encoding-type", "shape", "_index")  # those of an HDF5 group that are read
IDS = "obs_names"
SPARSE_PARTS = ("data", "indices", "indptr")


class ParquetTable(Table):
    """The columns of a Parquet file, batch by batch."""

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        parquet = package("pyarrow.parquet", "pyarrow", self.name, "Parquet")
        with reading(self.name, "Parquet"):  # includes pyarrow's own exceptions
            self._schema = parquet.read_schema(path)
            texts = [field.name for field in self._schema if str(field.type) in TEXT_TYPES]
            # a dictionary stores a repeated text only once
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
            self._require_stored(set(names.values()))
            size = batch_rows(len(names), BATCH_ROWS)
            for batch in self._file.iter_batches(size, columns=list(names.values())):
                columns: list[Column] = [()] * len(self.columns)
                for number, name in names.items():
                    columns[number] = self._cells(name, batch.column(name))
                yield table_block(self, columns, batch.num_rows, start)
                start += batch.num_rows

    def _require_stored(self, names: set[str]) -> None:
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
            with suppress(pyarrow.ArrowInvalid):  # missing values, and too large for doubles
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


def open_anndata(name: str, path: str) -> Table:
    """Open X of an AnnData file as a table, whose further columns are those of obs."""
    h5py = package("h5py", "h5py", name, "HDF5")
    with reading(name, "AnnData"):
        return _AnnData(name, h5py.File(path, "r")).table()


class _AnnData:
    """The arrays of an AnnData file, and the attributes of its groups, by path."""

    def __init__(self, name: str, file: Any) -> None:
        self._name = name
        self._arrays: dict[str, StoredArray] = {}
        self._attributes: dict[str, dict[str, Any]] = {}
        self._add("", file)
        file.visititems(self._add)  # follows no link out of the file
        is_anndata = text_of(self._attributes[""].get("encoding-type")) == "anndata"
        if not is_anndata and not {"obs", "var"} <= self._attributes.keys():
            raise DataError(
                f"{name}: an HDF5 file that is not AnnData (.h5ad), which is not supported",
                "save its matrix as .npy in Python: numpy.save('data.npy', h5py.File(FILE)[NAME])",
            )

    def _add(self, key: str, item: Any) -> None:
        if not hasattr(item, "dtype"):  # a group
            there = item.attrs
            self._attributes[key] = {name: there[name] for name in ATTRIBUTES if name in there}
        elif item.shape is not None:
            if item.external is not None or item.is_virtual:
                raise DataError(
                    f"{self._name}: '{key}' is stored in other files, which are not opened",
                    "copy it into one file first",
                )
            n_chunk = math.prod(item.chunks or (0,)) * item.dtype.itemsize
            n_stored = item.id.get_storage_size()
            self._arrays[key] = StoredArray(item, lambda: item, n_stored, n_chunk)

    def table(self) -> Table:
        form = "dense" if "X" in self._arrays else self._sparse_form()
        n_rows, width = self._shape(form)
        variables = self._variables(width)
        taken = set(variables)
        observed = self._observed(n_rows)
        names = [one if one not in taken else f"obs.{one}" for one in observed]
        columns = [*_made_unique(variables), *_made_unique(names)]
        matrix = partial(self._sparse_parts, form, (n_rows, width))
        if form == "dense":
            matrix = partial(dense_parts, self._arrays["X"], rows_at_once(width))
        readers = [partial(self._cells, path) for path in observed.values()]
        table = MatrixTable(self._name, columns, matrix, readers)
        table.n_default = width
        table.n_sparse = 0 if form == "dense" else width
        table.id_column = columns[width] if observed else None
        return table

    def _sparse_form(self) -> str:
        known = text_of(self._attributes.get("X", {}).get("encoding-type"))
        form = known.removesuffix("_matrix")
        parts = {f"X/{part}" for part in SPARSE_PARTS}
        if form not in ("csr", "csc") or not parts <= self._arrays.keys():
            raise DataError(
                f"{self._name}: contains no matrix 'X', dense or sparse (csr, csc)",
                "in Python, set adata.X to the matrix of features, and save the file again",
            )
        return form

    def _shape(self, form: str) -> tuple[int, int]:
        if form == "dense":
            matrix = self._arrays["X"]
            matrix.check(self._name, "X")
            matrix.require_matrix(self._name)
            return matrix.shape[0], matrix.shape[1]
        for part in SPARSE_PARTS:
            self._arrays[f"X/{part}"].check(self._name, f"X/{part}")
        n_rows, n_columns = map(int, self._attributes["X"]["shape"])
        length = n_rows if form == "csr" else n_columns
        if self._arrays["X/indptr"].shape != (length + 1,) or n_columns > MAX_FEATURES:
            raise ValueError("'X' has an invalid shape")
        require_rows(n_rows, self._arrays["X/data"].n_stored)
        return n_rows, n_columns

    def _index(self, group: str) -> str:
        """Return the path of the row or column names."""
        return f"{group}/{text_of(self._attributes[group].get('_index', '_index'))}"

    def _variables(self, size: int) -> list[str]:
        names = self._cells(self._index("var"), 0, size)
        if len(names) != size or isinstance(names, np.ndarray):
            raise ValueError(f"'var' does not name the {size:,} columns of 'X'")
        return [name.strip() or str(number + 1) for number, name in enumerate(names)]

    def _observed(self, n_rows: int) -> dict[str, str]:
        """Return the paths of the columns of obs, by name; the first contains the ids."""
        index = self._index("obs")
        found = {IDS: index} if self._length(index) == n_rows else {}
        for path in [*self._arrays, *self._attributes]:
            group, _, column = path.rpartition("/")
            if group == "obs" and path != index and self._length(path) == n_rows:
                found.setdefault(column, path)
        return found

    def _length(self, path: str) -> int | None:
        for part in (path, f"{path}/codes", f"{path}/values"):
            if part in self._arrays and len(self._arrays[part].shape) == 1:
                return self._arrays[part].shape[0]
        return None

    def _cells(self, path: str, start: int, stop: int) -> Column:
        if path in self._arrays:
            return column_of(self._name, path, self._part(path, start, stop))
        if f"{path}/codes" in self._arrays:
            values = column_of(self._name, path, self._part(f"{path}/categories"))
            texts = [str(value) for value in values]
            codes = self._part(f"{path}/codes", start, stop).astype(np.int64)
            if len(codes) and codes.max() >= len(texts):
                raise ValueError(f"'{path}' has a code without a category")
            return [texts[code] if code >= 0 else "" for code in codes.tolist()]
        values = column_of(self._name, path, self._part(f"{path}/values", start, stop))
        missing = self._part(f"{path}/mask", start, stop).astype(bool)
        if isinstance(values, np.ndarray):
            return np.where(missing, np.nan, values)
        return ["" if gone else text for gone, text in zip(missing, values, strict=True)]

    def _part(self, path: str, start: int = 0, stop: int | None = None) -> AnyArray:
        array = self._arrays[path]
        array.check(self._name, path)
        return array.part(start, stop)

    def _sparse_parts(self, form: str, shape: tuple[int, int]) -> Iterator[Part]:
        """Yield rows of a csr matrix as they are read, or those of a csc matrix, read at once."""
        n_rows, n_columns = shape
        data, indices = self._arrays["X/data"], self._arrays["X/indices"]
        pointers = self._part("X/indptr")
        if form == "csc":
            parts = data.part(), indices.part(), pointers
            rows = compressed_rows(self._name, form, parts, shape)
            for start in range(0, n_rows, MAX_ROWS):
                stop = min(start + MAX_ROWS, n_rows)
                yield start, stop, rows.slice(start, stop)
            return
        require_pointers(pointers, n_rows, data.shape[0])
        pointers = pointers.astype(np.int64)
        start = 0
        while start < n_rows:
            full = int(np.searchsorted(pointers, pointers[start] + MAX_CELLS, "right")) - 1
            stop = min(start + MAX_ROWS, n_rows, max(start + 1, full))
            first, last = int(pointers[start]), int(pointers[stop])
            own = pointers[start : stop + 1] - first
            parts = data.part(first, last), indices.part(first, last), own
            yield (
                start,
                stop,
                compressed_rows(self._name, form, parts, (stop - start, n_columns), start),
            )
            start = stop


def _made_unique(names: list[str]) -> list[str]:
    """Append -1, -2 and so on to repeated names, as AnnData itself does."""
    given = set(names)
    found: dict[str, None] = {}
    for name in names:
        unique = name
        if name in found:
            numbered = (f"{name}-{number}" for number in count(1))
            unique = next(one for one in numbered if one not in found and one not in given)
        found[unique] = None
    return list(found)
