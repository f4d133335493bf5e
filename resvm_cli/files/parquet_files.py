"""Read Parquet files batch by batch, and only the columns in use; write tables as Parquet."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

import numpy as np

from resvm_cli.files.array_files import (
    batch_rows,
    package,
    reading,
    require_short,
    require_stored,
    table_block,
    text_of,
    unusable,
)
from resvm_cli.files.delimited import Column, Table, TableBlock, unique_column_names
from resvm_cli.files.streams import as_unicode

PANDAS_INDEX = re.compile("__index_level_[0-9]+__")  # the unnamed index of a data frame
TEXT_TYPES = ("string", "large_string", "binary", "large_binary")
INTEGER_TYPES = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"}  # in int64
BATCH_ROWS = 1 << 12


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
        kinds = zip(self.columns, self._schema.types, strict=True)
        self.integers = {name for name, kind in kinds if str(kind) in INTEGER_TYPES}

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


@contextmanager
def parquet_writer(
    path: str, file: BinaryIO, names: Sequence[str], integers: Container[str]
) -> Iterator[Callable[[Sequence[list[Any]]], None]]:
    """Yield a function that writes a batch of rows, as columns; the first batch sets the types."""
    parquet = package("pyarrow.parquet", "pyarrow", path, "Parquet")
    pyarrow = package("pyarrow", "pyarrow", path, "Parquet")
    writers: list[Any] = []

    def write(columns: Sequence[list[Any]]) -> None:
        columns = [[*map(_plain, column)] for column in columns]
        if not writers:
            kinds = [
                pyarrow.int64() if name in integers else _kind(pyarrow, column)
                for name, column in zip(names, columns, strict=True)
            ]
            schema = pyarrow.schema(list(zip(names, kinds, strict=True)))
            writers.append(parquet.ParquetWriter(file, schema))
        schema = writers[0].schema
        typed = zip(columns, schema.types, strict=True)
        arrays = [pyarrow.array(column, kind) for column, kind in typed]
        writers[0].write_table(pyarrow.Table.from_arrays(arrays, schema=schema))

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()


def _plain(cell: Any) -> Any:
    if isinstance(cell, str):
        return as_unicode(cell)
    return None if cell != cell else cell  # nan: unknown


def _kind(pyarrow: Any, column: Sequence[Any]) -> Any:
    """Return the Parquet type of a column, judging by its first rows."""
    kinds = {type(cell) for cell in column} - {type(None)}
    if kinds == {int}:
        return pyarrow.int64() if max(filter(None, column), default=0) < 2**63 else pyarrow.uint64()
    return pyarrow.string() if str in kinds else pyarrow.float64()
