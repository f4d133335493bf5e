"""The files of P, U and known negatives, opened with the same encoding of columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from resvm_cli.errors import DataError, ParameterError
from resvm_cli.files.sources import Source
from resvm_cli.tables.encoding import ColumnRoles, FeatureMap
from resvm_cli.tables.inputs import RowInput, share_roles
from resvm_cli.training.input import TrainingInput

if TYPE_CHECKING:
    from resvm_cli.tables.features import TableFeatures


class OpenedFiles:
    """Opens the files of a training input and decides how table columns are encoded."""

    def __init__(self, source: TrainingInput) -> None:
        self._input = source
        self._opened = ExitStack()
        self.close = self._opened.close
        self.tables: list[TableFeatures] = []  # of P and U, if they are tables

    def opened(self, path: str, *, once: bool) -> RowInput:
        table = self._input.table
        source = Source(path, once=once and not table.needs_two_passes)
        self._opened.callback(source.close)
        rows = RowInput(source, table, zero_based=self._input.zero_based)
        if self._input.unchecked and not rows.is_text:
            raise ParameterError(
                "{file} is not svmlight text, which {unchecked:True} requires", file=rows.name
            )
        return rows

    def encode(self, inputs: list[RowInput]) -> None:
        """Encode table columns as features, in the same way for P and U."""
        if len({one.table is None for one in inputs}) > 1:
            named, plain = sorted(inputs, key=lambda one: one.table is None)
            raise DataError(
                f"{named.name} is a table with named columns, but {plain.name} is not",
                "give both as tables, or convert both to svmlight text",
            )
        if inputs[0].table is None:
            return
        if len(inputs) > 1:
            share_roles(*inputs)
        for one in inputs:
            one.encode(self._input.encoding, selective=True)
        features = [one.features for one in inputs if one.features is not None]
        if len(features) > 1 and self._input.encoding is None:
            features[1].follow(features[0])
        features[0].decide()
        self.tables = features

    @property
    def encoding(self) -> dict[str, Any] | None:
        if not self.tables:
            return None
        first = self.tables[0]
        return replace(first.map, missing=first.missing).content()

    @contextmanager
    def open_alike(self, path: str, roles: ColumnRoles) -> Iterator[RowInput]:
        """Open another file with the same features as P and U, and these column roles."""
        source = Source(path, once=True)
        try:
            rows = RowInput(source, self._input.table, zero_based=self._input.zero_based)
            if rows.table is not None and self.tables:
                rows.reading = replace(rows.reading, roles=roles)
                rows.encode(FeatureMap.from_content(self.encoding or {}))
            else:
                rows.encode_like(None)
            yield rows
        finally:
            source.close()
