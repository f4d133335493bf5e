"""Open the files of P, U and known negatives with one encoding, and fetch rows of U by number.

A member needs only n_unl rows of U. The first pass records file offsets in constant memory; later
passes fetch the drawn rows. A small U stays in memory instead.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli.errors import DataError, Message, ParameterError
from resvm_cli.files.sources import RowIndex, Source, join_texts
from resvm_cli.files.streams import PIECE
from resvm_cli.files.svmlight import BadLine, Block, parse_pieces
from resvm_cli.rows import IntArray, Rows
from resvm_cli.running.run import Run
from resvm_cli.tables.encoding import ColumnRoles, FeatureMap
from resvm_cli.tables.inputs import RowInput, share_roles
from resvm_cli.training.input import TrainingInput
from resvm_cli.training.row_sets import RowSets

if TYPE_CHECKING:
    from resvm_cli.tables.features import TableFeatures

# U stays in memory after the first pass if it has at most this many nonzeros: about 50 MB.
KEPT_NONZEROS = 1 << 22
KEPT_BYTES = 12  # per nonzero of a row in memory: an index and a value
FRACTION_FOR_ROWS = 8  # at most 1/8 of a memory limit goes to rows of U that stay in memory
SAMPLE_STEP = 1 << 26
SAMPLE_BYTES = 1 << 12
READING_THREADS = 2
COUNTING_PIECE = 1 << 18  # small enough to stay in the CPU cache between reading and counting


class OpenedFiles:
    """Opens the files of a training input and decides how table columns are encoded."""

    def __init__(self, source: TrainingInput) -> None:
        self._input = source
        self._opened = ExitStack()
        self.close = self._opened.close
        self.tables: list[TableFeatures] = []  # the features of P and U, if they are tables

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
        with closing(Source(path, once=True)) as source:
            rows = RowInput(source, self._input.table, zero_based=self._input.zero_based)
            if rows.table is not None and self.tables:
                rows.reading = replace(rows.reading, roles=roles)
                rows.encode(FeatureMap.from_content(self.encoding or {}))
            else:
                rows.encode_like(None)
            yield rows


class UnlabeledFile:
    """The file that contains U; a single labeled file also contains all other rows."""

    def __init__(self, rows: RowInput, source: TrainingInput, max_kept: float) -> None:
        """Rows of U stay in memory if they have at most ``max_kept`` nonzeros."""
        self.rows = rows
        self.name = rows.name
        self._zero_based = source.zero_based
        self._unchecked = source.unchecked
        self._index = RowIndex()
        self._max_kept = max_kept
        self.kept: list[Rows] | None = None if source.unchecked else []  # None: U is read again

    @property
    def n_rows(self) -> int:
        return self._index.n_rows

    def add(self, block: Block) -> None:
        """Count and index the next rows of the file."""
        if self.rows.is_text:
            self._index.add(block.starts)
        else:
            self._index.n_rows += len(block)

    def keep(self, rows: Rows, n_nonzeros: int) -> None:
        """Keep more rows of U in memory, or none if they have too many nonzeros in total."""
        if self.kept is not None:
            self.kept.append(rows)
            if n_nonzeros > self._max_kept:
                self.kept = None

    def count(self, run: Run) -> dict[str, Any]:
        """Count lines without parsing rows; return digests of the text."""
        digest, whole = hashlib.sha256(), hashlib.sha256()
        end = 0
        last = b"\n"
        for text in self.rows.pieces(COUNTING_PIECE):
            self._index.add_text(end, text)
            first = -(-max(0, end - SAMPLE_BYTES + 1) // SAMPLE_STEP) * SAMPLE_STEP
            for start in range(first, end + len(text), SAMPLE_STEP):
                digest.update(text[max(0, start - end) : start + SAMPLE_BYTES - end])
            whole.update(text)
            end += len(text)
            last = text[-1:]
            run.progress(f"counting rows of {self.name}", self._index.n_rows, None)
        self._index.n_rows += last != b"\n"
        if not self._index.n_rows:
            raise DataError(f"{self.name}: no rows", "the file is empty")
        digest.update(str(end).encode())
        return {
            "sha256": digest.hexdigest(),  # format 2 has no digest of the whole text
            "sampled": True,
            "text_sha256": whole.hexdigest(),
        }

    def unlabeled(self, sets: RowSets) -> Iterator[Rows]:
        """Yield all rows of U again, in order, in blocks."""
        if self.kept is not None:
            yield from self.kept
            return
        read = of_unlabeled = 0
        for block in self.rows.blocks(with_comments=False, workers=READING_THREADS):
            rows = block.rows
            if sets.outside is not None:
                rows = rows.take(np.flatnonzero(~sets.outside[read : read + len(rows)]))
            read += len(block)
            of_unlabeled += len(rows)
            yield rows
        if of_unlabeled != sets.n_unlabeled:
            raise DataError(
                f"{self.name}: the first pass found {sets.n_unlabeled:,} rows of U, this one"
                f" {of_unlabeled:,}",
                Message("{unchecked:True} needs one row per line"),
            )

    def fetch(self, numbers: IntArray, sets: RowSets) -> Rows:
        """Return the rows of U with these ascending numbers."""
        if self.kept is not None:
            if len(self.kept) != 1:
                self.kept = [Rows.concatenate(self.kept)]
            return self.kept[0].take(numbers)
        if not self.rows.is_text:  # the whole table is read again
            return _chosen(self.unlabeled(sets), numbers)
        spans = self._index.spans(sets.rows_of_file(numbers))
        texts = self.rows.source.spans(spans.bounds)
        positions = spans.positions
        if self._unchecked:
            texts, positions = spans.lines(texts), np.arange(len(numbers))

        def refuse(bad: BadLine) -> None:
            line = bad.line if not self._unchecked else numbers[bad.line - 1] + 1
            raise replace(bad, line=int(line)).error(self.name)

        blocks = parse_pieces(
            join_texts(texts, PIECE), self.name, zero_based=self._zero_based, on_bad_line=refuse
        )
        rows = _chosen((block.rows for block in blocks), positions)
        if len(rows) != len(numbers):
            raise DataError(
                f"{self.name}: a line drawn as a row is blank or a comment",
                Message("{unchecked:True} needs one row per line"),
            )
        return rows


def max_kept(limit_mb: float | None) -> float:
    """Return how many nonzeros of U may stay in memory after reading."""
    limit = math.inf if limit_mb is None else limit_mb * 1e6
    return min(KEPT_NONZEROS, limit / FRACTION_FOR_ROWS / (2 * KEPT_BYTES))


def _chosen(blocks: Iterable[Rows], numbers: IntArray) -> Rows:
    """Return the rows with these ascending numbers, counted over all blocks."""
    parts: list[Rows] = []
    before = 0
    for rows in blocks:
        first, last = np.searchsorted(numbers, [before, before + len(rows)])
        parts.append(rows.take(numbers[first:last] - before))
        before += len(rows)
    return Rows.concatenate(parts)
