"""Read HDF5 files: a matrix with arrays alongside it, or an AnnData file (.h5ad).

The rows of an AnnData file are its observations (obs), such as cells or samples. Its features are
the columns of X, which are named by its variables (var), such as genes. Only h5py is needed.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from itertools import count
from typing import Any

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.files.array_files import (
    MAX_CELLS,
    MAX_FEATURES,
    AnyArray,
    StoredArray,
    column_of,
    finite_rows,
    from_arrays,
    no_matrix,
    package,
    reading,
    require_rows,
    table_block,
    text_of,
)
from resvm_cli.files.delimited import MAX_ROWS, Column, Table, TableBlock, rows_at_once
from resvm_cli.rows import IntArray, Rows

Attributes = Mapping[str, Mapping[str, Any]]  # of each group, by its path; "" is the root
ATTRIBUTES = ("encoding-type", "shape", "_index")  # those that are read
MATRIX, IDS = "X", "obs_names"


def open_hdf5(name: str, path: str, array: str | None) -> Table:
    """Open the matrix in an HDF5 file; ``array`` names it if there are several."""
    h5py = package("h5py", "h5py", name, "HDF5")
    found: dict[str, StoredArray] = {}
    attributes: dict[str, dict[str, Any]] = {}

    def take(key: str, item: Any) -> None:
        if isinstance(item, h5py.Group):
            attributes[key] = {name: item.attrs[name] for name in ATTRIBUTES if name in item.attrs}
        if not isinstance(item, h5py.Dataset) or item.shape is None:
            return
        if item.external is not None or item.is_virtual:
            raise DataError(
                f"{name}: '{key}' is stored in other files, which are not opened",
                "copy it into one file first, or convert those files",
            )
        n_chunk = math.prod(item.chunks or (0,)) * item.dtype.itemsize
        found[key] = StoredArray.from_array(item, item.id.get_storage_size(), n_chunk)

    with reading(name, "HDF5"):
        file = h5py.File(path, "r")
        take("", file)
        file.visititems(take)  # follows no link out of the file
        if is_anndata(found, attributes):
            return AnnDataTable(name, found, attributes, array)
        return from_arrays(name, found, array)


def is_anndata(arrays: Mapping[str, StoredArray], attributes: Attributes) -> bool:
    """Whether an HDF5 file has the layout of AnnData."""
    if text_of(attributes.get("", {}).get("encoding-type")) == "anndata":
        return True
    return {"obs", "var"} <= attributes.keys() and any(one in arrays for one in ("X", "X/data"))


class AnnDataTable(Table):
    """An AnnData file as a table: its variables are the first columns, then those of obs."""

    def __init__(
        self,
        name: str,
        arrays: dict[str, StoredArray],
        attributes: Attributes,
        wanted: str | None,
    ) -> None:
        """``wanted`` is the path of a matrix other than X, such as layers/counts."""
        self.name = name
        self._arrays, self._attributes = arrays, attributes
        self._key = key = wanted or MATRIX
        with reading(name, "AnnData"):
            self._form = "dense" if key in arrays else self._sparse_form(key)
            self._size = n_rows, n_variables = self._shape()
            variables = self._names("raw/var" if key == "raw/X" else "var", n_variables)
            self._observed = self._observation_columns(n_rows)
        self._n_variables = self.n_default = n_variables
        self.n_sparse = 0 if self._form == "dense" else n_variables
        taken = set(variables)
        observed = [one if one not in taken else f"obs.{one}" for one in self._observed]
        self.columns = [*_made_unique(variables), *_made_unique(observed)]
        if self._observed:
            self.id_column = self.columns[self._n_variables]

    def _sparse_form(self, key: str) -> str:
        known = text_of(self._attributes.get(key, {}).get("encoding-type"))
        form = known.removesuffix("_matrix")
        parts = {f"{key}/{part}" for part in ("data", "indices", "indptr")}
        if form not in ("csr", "csc") or not parts <= self._arrays.keys():
            matrices = [one for one in self._arrays if len(self._arrays[one].shape) == 2]
            matrices += [one.removesuffix("/indptr") for one in self._arrays if "/indptr" in one]
            raise no_matrix(self.name, key, matrices)
        for part in parts:
            self._arrays[part].check(self.name, part)
        return form

    def _shape(self) -> tuple[int, int]:
        if self._form == "dense":
            matrix = self._arrays[self._key]
            matrix.check(self.name, self._key)
            if len(matrix.shape) != 2 or matrix.dtype.kind not in "buif":
                raise ValueError(f"'{self._key}' is not a matrix of real numbers")
            return matrix.shape[0], matrix.shape[1]
        n_rows, n_columns = map(int, self._attributes[self._key]["shape"])
        length = n_rows if self._form == "csr" else n_columns
        if self._arrays[f"{self._key}/indptr"].shape != (length + 1,) or n_columns > MAX_FEATURES:
            raise ValueError(f"'{self._key}' has an invalid shape")
        require_rows(n_rows, self._arrays[f"{self._key}/data"].n_stored)
        return n_rows, n_columns

    def _index(self, group: str) -> str:
        """Return the path of the row or column names."""
        return f"{group}/{text_of(self._attributes[group].get('_index', '_index'))}"

    def _names(self, group: str, size: int) -> list[str]:
        names = self._cells(self._index(group), 0, size)
        if len(names) != size or isinstance(names, np.ndarray):
            raise ValueError(f"'{group}' does not name the {size:,} columns of '{self._key}'")
        return [name.strip() or str(number + 1) for number, name in enumerate(names)]

    def _observation_columns(self, n_rows: int) -> dict[str, str]:
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
            return column_of(self.name, path, self._part(path, start, stop))
        if f"{path}/codes" in self._arrays:
            values = column_of(self.name, path, self._part(f"{path}/categories"))
            texts = [str(value) for value in values]
            codes = self._part(f"{path}/codes", start, stop).astype(np.int64)
            if len(codes) and codes.max() >= len(texts):
                raise ValueError(f"'{path}' has a code without a category")
            return [texts[code] if code >= 0 else "" for code in codes.tolist()]
        values = column_of(self.name, path, self._part(f"{path}/values", start, stop))
        missing = self._part(f"{path}/mask", start, stop).astype(bool)
        if isinstance(values, np.ndarray):
            return np.where(missing, np.nan, values)
        return ["" if gone else text for gone, text in zip(missing, values, strict=True)]

    def _part(self, path: str, start: int = 0, stop: int | None = None) -> AnyArray:
        array = self._arrays[path]
        array.check(self.name, path)
        return array.part(start, stop)

    def blocks(
        self, used: Container[object] | None = None, numbers: Container[object] = ()
    ) -> Iterator[TableBlock]:
        observed = list(self._observed.values())
        with reading(self.name, "AnnData"):
            for start, stop, matrix in self._matrices():
                cells: list[Column] = []
                for number, path in enumerate(observed, self._n_variables):
                    wanted = used is None or number in used
                    cells.append(self._cells(path, start, stop) if wanted else ())
                if isinstance(matrix, Rows):
                    columns = [*[()] * self._n_variables, *cells]
                    yield table_block(self, columns, stop - start, start, matrix)
                else:
                    yield table_block(self, [*matrix.T, *cells], stop - start, start)

    def _matrices(self) -> Iterator[tuple[int, int, Rows | AnyArray]]:
        """Yield row bounds with the rows themselves."""
        n_rows, n_columns = self._size
        if self._form == "dense":
            array = self._arrays[self._key]
            size = rows_at_once(n_columns)
            for start in range(0, n_rows, size):
                stop = min(start + size, n_rows)
                part = array.part(start, stop)
                yield start, stop, part if part.dtype.kind in "iu" else part.astype(np.float64)
            return
        pointers = self._part(f"{self._key}/indptr").astype(np.int64)
        n_stored = self._arrays[f"{self._key}/data"].shape[0]
        if np.diff(pointers).min(initial=0) < 0 or pointers[0] != 0 or pointers[-1] > n_stored:
            raise ValueError("indptr decreases or exceeds the data")
        if self._form == "csc":
            rows = self._rows(pointers, n_rows, 0, n_columns)
            for start in range(0, n_rows, MAX_ROWS):
                stop = min(start + MAX_ROWS, n_rows)
                yield start, stop, rows.slice(start, stop)
            return
        start = 0
        while start < n_rows:
            full = int(np.searchsorted(pointers, pointers[start] + MAX_CELLS, "right")) - 1
            stop = min(start + MAX_ROWS, n_rows, max(start + 1, full))
            yield start, stop, self._rows(pointers, n_columns, start, stop)
            start = stop

    def _rows(self, pointers: IntArray, width: int, start: int, stop: int) -> Rows:
        """Read some rows (csr), or read and transpose all columns (csc)."""
        import scipy.sparse

        first, last = int(pointers[start]), int(pointers[stop])
        values = self._arrays[f"{self._key}/data"].part(first, last).astype(np.float64)
        indices = self._arrays[f"{self._key}/indices"].part(first, last).astype(np.int64)
        if len(indices) and not (indices.min() >= 0 and indices.max() < width):
            raise ValueError("an index is out of range")
        parts = values, indices, pointers[start : stop + 1] - first
        matrix = scipy.sparse.csr_matrix(parts, shape=(stop - start, width))
        whole = matrix if self._form == "csr" else matrix.T.tocsr()
        return finite_rows(self.name, whole, 0 if self._form == "csc" else start)


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
