"""P and U from files: P is kept in memory, U is read once and then fetched by row number.

A member needs only n_unl rows of U. The first pass checks, counts and summarizes every line in
constant memory and records file offsets; the second pass fetches the drawn rows. A small U stays in
memory instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError, Message
from resvm_cli.files.compression import PIECE
from resvm_cli.files.row_lists import RowIds, WeightLines, read_names
from resvm_cli.files.sources import RowIndex, Source, join_texts
from resvm_cli.files.streams import name_of, read_pieces
from resvm_cli.files.svmlight import BadLine, Block, format_number, parse_pieces
from resvm_cli.model.bags import PositiveWeights
from resvm_cli.model.pu_data import PUData
from resvm_cli.rows import IntArray, Rows, note_on_numbering
from resvm_cli.running.run import Run
from resvm_cli.svm import kernels
from resvm_cli.training.input import QID, TrainingInput

# U stays in memory after the first pass if it has at most this many nonzeros: about 50 MB.
KEPT_NONZEROS = 1 << 22
SAMPLE_STEP = 1 << 26
SAMPLE_BYTES = 1 << 12
READING_THREADS = 2
COUNTING_PIECE = 1 << 18  # small enough to stay in the CPU cache between reading and counting


class TrainingData(PUData):
    """Both sets, summarized; close it once the rows have been fetched."""

    def __init__(
        self,
        source: TrainingInput,
        keep_all: bool,
        run: Run,
        kept_nonzeros: int | None = None,
    ) -> None:
        """Read both sets; a U with more than ``kept_nonzeros`` values is reread to fetch rows."""
        super().__init__(
            scale=source.scale,
            zero_based=source.zero_based,
            features=source.features,
            positive_label=source.positive_label,
        )
        self.input = source
        self._keep_all = keep_all
        self._max_kept = KEPT_NONZEROS if kept_nonzeros is None else kept_nonzeros
        self._run = run
        self.positives = Rows.empty()
        self._index = RowIndex()
        self._kept: list[Rows] | None = []
        self._text_digests: dict[str, Any] | None = None  # of an unchecked U
        self._last_serial = 0, ""  # the largest serial number and its location
        self._labels: set[float] = set()  # some of the labels present
        self._qids: list[IntArray] = []  # in file order, only if needed
        self._is_positive: list[npt.NDArray[np.bool_]] = []  # with one labeled file, in file order
        self._row_ids = RowIds(source.positive_ids, source.ids_file, keep=source.keep_ids)
        self._weights: WeightLines | None = None
        if source.weights is not None:
            self._weights = WeightLines.read(
                source.weights, with_ids=source.positive_ids is not None
            )
        path = source.data if source.data is not None else source.unlabeled
        assert path is not None
        if source.data is None:
            assert source.positives is not None
            self._read_positives(source.positives)
        self._source = Source(path, once=keep_all)
        try:
            if source.unchecked:
                self._count_unlabeled()
            else:
                self._read_unlabeled()
                self.notes += self._row_ids.finish(self._source.name, source.allow_missing)
                self._require_both_sets()
                self._require_columns()
        except BaseException:
            self._source.close()
            raise
        self._note_equal_sets()
        self._note_numbering()
        if self._source.spooled_to_disk:
            self.notes.append(
                f"{self._source.name} was spooled to a temporary file"
                f" ({self._source.spooled_bytes:,} bytes) to be read twice"
            )

    def _note_numbering(self) -> None:
        if self.input.positives is not None:
            names = name_of(self.input.positives), self._source.name
            sets = list(zip(names, (self.summary_pos, self.summary_unl), strict=True))
            for name, each in sets:
                if each.n_rows and not each.n_nonzeros:  # an unchecked U has no rows here
                    self.notes.append(f"{name}: every value is 0; does it hold rows?")
            indices = [(name, each.min_index, each.max_index) for name, each in sets]
            if note := note_on_numbering(indices):
                self.notes.append(note)

    def __enter__(self) -> TrainingData:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._source.close()

    @property
    def checked(self) -> bool:
        return not self.input.unchecked

    @cached_property
    def positive_weights(self) -> PositiveWeights | None:
        if self._weights is None:
            return None
        known = None
        if self.input.positive_ids is not None:
            known = self._row_ids.known_in_order(), self._row_ids.is_known
        values = self._weights.of_rows(len(self.positives), known)
        return PositiveWeights.from_values(values, self._weights.name)

    @property
    def n_kept(self) -> int:
        return 0 if self._kept is None else self.summary_unl.n_nonzeros

    @property
    def n_unlabeled(self) -> int:
        return self._index.n_rows - (len(self.positives) if self._is_positive else 0)

    def description(self) -> dict[str, Any]:
        """Describe the data for the manifest; an unchecked U is described by its text."""
        description = super().description()
        if self._text_digests is not None:
            numbers = {"rows": self.n_unlabeled, "nonzeros": None}
            description["unlabeled"] = numbers | self._text_digests
        return description

    def _blocks(self, pieces: Iterator[bytes], name: str) -> Iterator[Block]:
        n_rows = 0
        for block in parse_pieces(
            pieces,
            name,
            zero_based=self.zero_based,
            with_comments=self._row_ids.from_comments,
            workers=READING_THREADS,
        ):
            if self.input.precomputed:
                self._check_serials(block, name)
            yield block
            n_rows += len(block)
            self._run.progress(f"reading {name}", n_rows, None)

    def _check_serials(self, block: Block, name: str) -> None:
        """Reject rows without a serial number; its range is checked at the end."""
        if wrong := kernels.wrong_serials(block.rows):
            row, fault = wrong[0]
            raise DataError(f"{name}:{block.lines[row]}: {fault}", kernels.ROW_FORMAT)
        numbers = kernels.serials(block.rows)
        last = int(numbers.argmax())
        if numbers[last] > self._last_serial[0]:
            self._last_serial = int(numbers[last]), f"{name}:{block.lines[last]}"

    def _require_columns(self) -> None:
        serial, location = self._last_serial
        if self.input.precomputed and serial >= self.n_features:
            raise DataError(
                f"{location}: the serial number is {serial:,}, but rows have only"
                f" {self.n_features - 1:,} kernel values",
                kernels.ROW_FORMAT,
            )

    def _read_positives(self, path: str) -> None:
        parts = []
        for block in self._blocks(read_pieces(path), name_of(path)):
            self._annotate(block)
            self._row_ids.add(block, name_of(path))
            self._summarize(self.summary_pos, block.rows)
            parts.append(block.rows)
        self.positives = Rows.concatenate(parts)

    def _annotate(self, block: Block) -> None:
        if self.input.groups == QID:
            self._qids.append(block.qids)

    @cached_property
    def _positive_rows(self) -> npt.NDArray[np.bool_]:
        """Return which rows are in P, in the order of the data."""
        if self._is_positive:
            return np.concatenate(self._is_positive)
        return np.arange(len(self.positives) + self.n_unlabeled) < len(self.positives)

    def _rows_of_file(self, numbers: IntArray) -> IntArray:
        """Return the row numbers in the file of these rows of U."""
        if not self._is_positive:
            return numbers
        positive = np.flatnonzero(self._positive_rows)
        # row u of U follows every positive that has at most u unlabeled rows before it
        before = positive - np.arange(len(positive))
        return numbers + np.searchsorted(before, numbers, "right")

    def ids(self) -> list[str]:
        """Return one id per row, first for P, then for U; by default the row number in its file."""
        rows = np.flatnonzero(self._positive_rows)
        unlabeled = self._rows_of_file(np.arange(self.n_unlabeled))
        numbers = np.concatenate([rows, unlabeled]) + 1
        if not self._row_ids.ids:
            return list(map(str, numbers.tolist()))
        named = self.in_order(self._row_ids.named(), self._source.name)
        return [one or str(number) for one, number in zip(named, numbers.tolist(), strict=True)]

    def in_order(self, values: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
        """Reorder one value per row from the order of the data to P before U."""
        is_positive = self._positive_rows
        if len(values) != len(is_positive):
            raise DataError(
                f"{name}: {len(values):,} lines, but the data has {len(is_positive):,} rows",
                Message("expected one line per row: P and then U, or in the order of {data}"),
            )
        return np.concatenate([values[is_positive], values[~is_positive]])

    def groups(self) -> IntArray | None:
        """Return one group number per row, first for P, then for U; None without groups."""
        return self._groups

    @cached_property
    def _groups(self) -> IntArray | None:
        if self.input.groups is None:
            return None
        if self.input.groups == QID:
            names: npt.NDArray[Any] = np.concatenate(self._qids)
            if (names < 0).any():
                raise DataError(
                    f"{int((names < 0).sum()):,} rows have no qid: that names their group",
                    Message("give each row a qid:, or a file of group names: {groups:FILE}"),
                )
        else:
            names = np.array(read_names(self.input.groups), object)
        _, numbers = np.unique(self.in_order(names, self.input.groups), return_inverse=True)
        return numbers.reshape(-1)

    def _read_unlabeled(self) -> None:
        """Check and summarize every row; in a single labeled file, separate the positives."""
        parts: list[Rows] = []
        for block in self._blocks(self._source.pieces(), self._source.name):
            self._annotate(block)
            known = self._row_ids.add(block, self._source.name)
            self._index.add(block.starts)
            if self.input.data is not None:
                if self.input.positive_label is not None:
                    block.require_labels(self._source.name)
                    if len(self._labels) < 20:
                        self._labels.update(np.unique(block.labels).tolist())
                    known = block.labels == self.input.positive_label
                self._is_positive.append(known)
                rows = block.rows.take(np.flatnonzero(known))
                self._summarize(self.summary_pos, rows)
                parts.append(rows)
                block = block.take(np.flatnonzero(~known))
            self._summarize(self.summary_unl, block.rows)
            if self._kept is not None:
                self._kept.append(block.rows)
                if self.summary_unl.n_nonzeros > self._max_kept and not self._keep_all:
                    self._kept = None
        if self.input.data is not None:
            self.positives = Rows.concatenate(parts)

    def _require_both_sets(self) -> None:
        name = self._source.name
        if self.input.positive_label is not None and not len(self.positives):
            there = ", ".join(format_number(label) for label in sorted(self._labels)[:20])
            raise DataError(
                f"{name}: no row has the label {format_number(self.input.positive_label)}",
                f"labels in the file: {there}",
            )
        if not self.n_unlabeled:
            which = f"the label {format_number(self.input.positive_label or 0.0)}"
            if self.input.positive_ids is not None:
                which = f"an id of {name_of(self.input.positive_ids)}"
            raise DataError(f"{name}: every row has {which}; no unlabeled rows are left")

    def _count_unlabeled(self) -> None:
        """Count lines and digest the text, without parsing rows."""
        self._kept = None
        digest, whole = hashlib.sha256(), hashlib.sha256()
        end = 0
        last = b"\n"
        for text in self._source.pieces(COUNTING_PIECE):
            self._index.add_text(end, text)
            first = -(-max(0, end - SAMPLE_BYTES + 1) // SAMPLE_STEP) * SAMPLE_STEP
            for start in range(first, end + len(text), SAMPLE_STEP):
                digest.update(text[max(0, start - end) : start + SAMPLE_BYTES - end])
            whole.update(text)
            end += len(text)
            last = text[-1:]
            self._run.progress(f"counting rows of {self._source.name}", self._index.n_rows, None)
        self._index.n_rows += last != b"\n"
        if not self._index.n_rows:
            raise DataError(f"{self._source.name}: no rows", "the file is empty")
        digest.update(str(end).encode())
        self._text_digests = {
            "sha256": digest.hexdigest(),  # format 2 has no digest of the whole text
            "sampled": True,
            "text_sha256": whole.hexdigest(),
        }

    def unlabeled(self) -> Iterator[Rows]:
        """Yield all rows of U again, in order, in blocks."""
        if self._kept is not None:
            yield from self._kept
            return
        read = of_unlabeled = 0
        for block in parse_pieces(
            self._source.pieces(),
            self._source.name,
            zero_based=self.zero_based,
            workers=READING_THREADS,
        ):
            rows = block.rows
            if self._is_positive:
                positive = self._positive_rows[read : read + len(rows)]
                rows = rows.take(np.flatnonzero(~positive))
            read += len(block)
            of_unlabeled += len(rows)
            yield rows
        if of_unlabeled != self.n_unlabeled:
            raise DataError(
                f"{self._source.name}: {self.n_unlabeled:,} rows of U in the first pass, then"
                f" {of_unlabeled:,}",
                Message("{unchecked:True} needs one row per line"),
            )

    def fetch(self, numbers: IntArray) -> Rows:
        """Return the rows of U with these ascending numbers."""
        if self._kept is not None:
            if len(self._kept) > 1:
                self._kept = [Rows.concatenate(self._kept)]
            return self._kept[0].take(numbers) if self._kept else Rows.empty().take(numbers)
        spans = self._index.spans(self._rows_of_file(numbers))
        texts = self._source.spans(spans.bounds)
        places = spans.positions
        name = self._source.name
        if self.input.unchecked:
            texts, places = spans.lines(texts), np.arange(len(numbers))
        parts: list[Rows] = []
        before = 0

        def refuse(bad: BadLine) -> None:
            line = bad.line if not self.input.unchecked else numbers[bad.line - 1] + 1
            raise replace(bad, line=int(line)).error(name)

        for block in parse_pieces(
            join_texts(texts, PIECE), name, zero_based=self.zero_based, on_bad_line=refuse
        ):
            first, last = np.searchsorted(places, [before, before + len(block)])
            parts.append(block.rows.take(places[first:last] - before))
            before += len(block)
        rows = Rows.concatenate(parts)
        if len(rows) != len(numbers):
            raise DataError(
                f"{name}: a line drawn as a row is blank or a comment",
                Message("{unchecked:True} needs one row per line"),
            )
        if self.input.unchecked:
            self.summary_unl.max_index = rows.max_index
            _ = self.n_features  # rejects features beyond the declared number
        return rows
