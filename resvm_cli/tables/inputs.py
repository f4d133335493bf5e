"""Open any input as blocks of rows: svmlight text, a table, or a sparse matrix.

The first bytes determine the format. Table code is imported only for tables, so that commands on
svmlight text start faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from resvm_cli.errors import DataError, Message, ParameterError
from resvm_cli.files.file_kinds import (
    READABLE,
    first_line,
    foreign_format,
    has_pairs,
    kind_of,
    with_head,
)
from resvm_cli.files.sources import Source
from resvm_cli.files.svmlight import BadLine, Block, format_number, parse_pieces

if TYPE_CHECKING:
    from resvm_cli.files.array_files import SparseFile
    from resvm_cli.files.delimited import Table
    from resvm_cli.files.file_kinds import Kind
    from resvm_cli.tables.encoding import FeatureMap, TableReading
    from resvm_cli.tables.features import TableFeatures

MAX_ROWS = 1 << 12  # per block of a sparse matrix
SHOWN = 20


class RowInput:
    """The rows of one input; each call of ``blocks`` reads them from the start.

    ``features`` encodes the columns of a table. It is None for svmlight text and for sparse
    matrices, whose features are only numbered.
    """

    def __init__(
        self,
        source: Source,
        reading: TableReading | None,
        *,
        zero_based: bool = False,
        known: bool = False,
    ) -> None:
        """Detect the input format; ``reading`` is None if no table parameters are given.

        With ``known`` features, a SMILES file can be read without naming its columns.
        """
        self.name = source.name
        self._reading = reading
        self.features: TableFeatures | None = None
        self.table: Table | None = None
        self._sparse: SparseFile | None = None
        self.source = source
        self._zero_based = zero_based
        head, text = with_head(source.pieces())
        self._started = [text]
        kind = kind_of(head, self.name)
        if kind == "smiles" and (known or (reading is not None and reading.roles.asked)):
            kind = "table"
        if kind not in READABLE:
            raise foreign_format(kind, self.name)
        # a single column looks like svmlight (no separator) but has no index:value pairs
        is_table = reading is not None and reading.is_table
        if kind == "svmlight" and (not is_table or has_pairs(first_line(head))):
            self._refuse_roles()
            return
        self._open_table(kind, text)

    def _open_table(self, kind: Kind, text: Iterator[bytes]) -> None:
        reading = self.reading
        if self._zero_based:
            raise ParameterError(
                "{file}: {zero_based} applies only to svmlight text",
                "omit it; rows of a precomputed kernel must be svmlight text",
                file=self.name,
            )
        if kind in ("svmlight", "table"):
            from resvm_cli.files.delimited import TextTable

            self.table = TextTable(
                self.name,
                self.pieces,
                separator=reading.separator,
                header=reading.header,
                decimal_comma=reading.decimal_comma,
            )
            return
        from resvm_cli.files.array_files import SparseFile, array_path, open_arrays

        with array_path(self.source, text) as path:
            if kind == "hdf5":
                from resvm_cli.files.optional_formats import open_anndata

                self.table = open_anndata(self.name, path)
                return
            if kind == "parquet":
                from resvm_cli.files.optional_formats import ParquetTable

                self.table = ParquetTable(self.name, path)
                return
            arrays = open_arrays(self.name, path, kind)
        if isinstance(arrays, SparseFile):
            self._refuse_roles()
            self._sparse = arrays
        else:
            self.table = arrays

    @property
    def reading(self) -> TableReading:
        if self._reading is None:
            from resvm_cli.tables.encoding import TableReading

            self._reading = TableReading()
        return self._reading

    @reading.setter
    def reading(self, reading: TableReading) -> None:
        self._reading = reading

    @property
    def is_text(self) -> bool:
        return self.table is None and self._sparse is None

    @property
    def n_features(self) -> int | None:
        """The number of features, if the input states it."""
        return None if self._sparse is None else self._sparse.n_features

    def encode(self, known: FeatureMap | None = None, *, selective: bool = False) -> None:
        """Encode the columns of a table as the ``known`` features or, if None, as new ones."""
        if self.table is not None:
            from resvm_cli.tables.features import TableFeatures

            roles = self.reading.roles
            self.features = TableFeatures(self.table, roles, known, selective=selective)

    def encode_like(self, known: FeatureMap | None, n_features: int = 0) -> None:
        """Encode the columns of a table as the features of a model.

        A model that was not trained on a table accepts a matrix with numbered columns, at least as
        many as the model has features.
        """
        if self.table is None:
            return
        if known is not None:
            if known.missing == "drop":
                known = replace(known, missing="refuse")
            self.encode(known)
            return
        if not self.table.n_numbered:
            raise DataError(
                f"{self.name}: a table, but the model was not trained on one, so it has no column"
                " names",
                Message(
                    "train on a table, or convert this one like the training data:"
                    " resvm convert FILE {like:MAP} {output:data.svm}"
                ),
            )
        if self.table.n_numbered < n_features:
            raise DataError(
                f"{self.name}: {self.table.n_numbered:,} columns, but the model was trained on"
                f" {n_features:,}",
                "provide the same columns as in training, in the same order",
            )
        only = tuple(self.table.columns[: self.table.n_numbered])
        roles = replace(self.reading.roles, only=only)
        self.reading = replace(self.reading, roles=roles)
        self.encode()

    def numeric_label(self, label: float | None, sign: str = "positive") -> float:
        """Return a label as a number: 1 or -1 for tables, as given for svmlight text."""
        if not self.is_text:
            return 1.0 if sign == "positive" else -1.0
        if label is None:
            raise ParameterError(
                "{" + sign + "_label} is '{text}'; a number was expected: {file} is svmlight text",
                "give one number; only a table can have text as labels, in its {label_column}",
                text=" and ".join(getattr(self.reading.roles, f"{sign}_labels")),
                file=self.name,
            )
        return label

    def no_positive_row(self) -> DataError:
        """Return the error to raise if no row has a positive label."""
        wanted = " or ".join(self.reading.roles.positive_labels)
        seen = [] if self.features is None else list(self.features.labels_seen)
        listed = ", ".join(text or "(none)" for text in seen[:SHOWN])
        return DataError(
            f"{self.name}: no row has the label {wanted}",
            f"labels in the file: {listed}" if listed else None,
        )

    def pieces(self) -> Iterator[bytes]:
        """Yield the decompressed bytes from the beginning, even if some came from a pipe."""
        return self._started.pop() if self._started else self.source.pieces()

    def blocks(
        self,
        *,
        with_comments: bool = True,
        marked: bool = True,
        workers: int = 0,
        on_bad_line: Callable[[BadLine], None] | None = None,
    ) -> Iterator[Block]:
        """Yield all rows. If ``marked``, labels become 1 (positive), -1 (known negative) or 0."""
        if self.features is not None:
            yield from self.features.blocks()
            return
        assert self.table is None  # encode must be called first
        blocks: Iterator[Block]
        if self._sparse is not None:
            blocks = self._sparse.block.slices(MAX_ROWS)
        else:
            blocks = parse_pieces(
                self.pieces(),
                self.name,
                zero_based=self._zero_based,
                with_comments=with_comments,
                workers=workers,
                on_bad_line=on_bad_line,
            )
        roles = None if self._reading is None else self._reading.roles
        if roles is None or not roles.positive_labels or not marked:
            yield from blocks
            return
        from resvm_cli.tables.cells import class_of

        of_label = class_of(roles.positive_labels, roles.negative_labels)
        for block in blocks:
            yield _marked(block, of_label)

    def _refuse_roles(self) -> None:
        for parameter in () if self._reading is None else self._reading.roles.asked:
            raise DataError(
                Message(
                    f"{{file}}: no named columns, so {{{parameter}}} cannot be used", file=self.name
                ),
                "omit the option: the rows already have labels and ids",
            )


def share_roles(first: RowInput, second: RowInput) -> None:
    """Give the columns of two tables the same roles, using the names in the first table.

    A column to drop may be missing from one of the tables.
    """
    assert first.table is not None
    assert second.table is not None
    names = first.table.columns
    known = [set(one.table.columns) for one in (first, second) if one.table is not None]

    def named(text: str) -> str:
        is_number = text not in names and text.isdecimal() and 1 <= int(text) <= len(names)
        return names[int(text) - 1] if is_number else text

    for one, here, other in ((first, known[0], known[1]), (second, known[1], known[0])):
        roles = one.reading.roles
        dropped = map(named, roles.dropped)
        roles = replace(
            roles,
            label=None if roles.label is None else named(roles.label),
            row_id=None if roles.row_id is None else named(roles.row_id),
            only=tuple(map(named, roles.only)),
            categories=tuple(map(named, roles.categories)),
            dropped=tuple(name for name in dropped if name in here or name not in other),
        )
        one.reading = replace(one.reading, roles=roles)


def _marked(block: Block, of_label: Callable[[str], float]) -> Block:
    texts = ["" if np.isnan(one) else format_number(one) for one in block.labels.tolist()]
    return replace(block, labels=np.array([of_label(text) for text in texts]))
