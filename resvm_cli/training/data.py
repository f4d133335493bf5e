"""P and U from files: P is kept in memory, U is read once and then fetched by row number.

A member needs only n_unl rows of U. The first pass checks, counts and summarizes every line in
constant memory and records file offsets; the second pass fetches the drawn rows. A small U stays in
memory instead.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError, Message, ParameterError
from resvm_cli.files.compression import PIECE
from resvm_cli.files.row_lists import RowIds, WeightLines, read_names
from resvm_cli.files.sources import RowIndex, Source, join_texts
from resvm_cli.files.streams import name_of
from resvm_cli.files.svmlight import BadLine, Block, format_number, parse_pieces
from resvm_cli.model.bags import PositiveWeights
from resvm_cli.model.out_of_bag import EqualRows
from resvm_cli.model.pu_data import PUData
from resvm_cli.model.scaling import FeatureStats
from resvm_cli.model.set_checks import RepeatedRows, swapped_note
from resvm_cli.rows import BoolArray, DataSummary, IntArray, Rows, note_on_numbering
from resvm_cli.running.run import Run
from resvm_cli.svm import kernels
from resvm_cli.tables.encoding import ColumnRoles, FeatureMap
from resvm_cli.tables.inputs import RowInput, share_roles
from resvm_cli.training.input import QID, TrainingInput

if TYPE_CHECKING:
    from resvm_cli.tables.features import TableFeatures
    from resvm_cli.tables.notes import ColumnExtremes

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
        self._tables: list[TableFeatures] = []  # of P and U, if they are tables
        self._extremes: ColumnExtremes | None = None  # of columns that become features
        self.positives = Rows.empty()
        self._index = RowIndex()
        self._kept: list[Rows] | None = []
        self._text_digests: dict[str, Any] | None = None  # of an unchecked U
        self._last_serial = 0, ""  # the largest serial number and its location
        self._label: float | None = None  # of positives
        self._labels: set[float] = set()  # some of the labels present
        self._qids: list[IntArray] = []  # in file order, only if needed
        # with one labeled file, in file order
        self._is_positive: list[BoolArray] = []
        self._is_negative: list[BoolArray] = []
        self._negative_label: float | None = None
        self._left_out: BoolArray | None = None  # rows of the file that are dropped from U
        self._repeated: RepeatedRows | None = None  # None: not looked for
        # of two files; nan if a row has no label
        self._highest_label_pos, self._lowest_label_unl = -math.inf, math.inf
        keep_ids = source.keep_ids or source.drop_repeated or source.known_negatives is not None
        self._row_ids = RowIds(source.positive_ids, source.ids_file, keep=keep_ids)
        self._negative_ids: RowIds | None = None
        if source.negative_ids is not None:
            self._negative_ids = self._row_ids.of_negatives(source.negative_ids)
        self._weights: WeightLines | None = None
        if source.weights is not None:
            self._weights = WeightLines.read(
                source.weights, with_ids=source.positive_ids is not None
            )
        path = source.data if source.data is not None else source.unlabeled
        assert path is not None
        self._opened = ExitStack()
        try:
            known = None if source.positives is None else self._open(source.positives, once=True)
            if known is not None and known.is_text:  # U may be a pipe that is written after P
                self._read_positives(known)
            self._rows = self._open(path, once=keep_all)
            self._source = self._rows.source
            self._encode(known)
            if known is not None and not known.is_text:
                self._read_positives(known)
            self._read_unlabeled_input()
        except BaseException:
            self._opened.close()
            raise
        self._note_table()
        self._note_sets()
        self._note_numbering()
        if self._source.spooled_to_disk:
            run.remark(
                f"{self._source.name} was spooled to a temporary file"
                f" ({self._source.spooled_bytes:,} bytes) to be read twice"
            )

    def _read_unlabeled_input(self) -> None:
        if self.input.unchecked:
            self._count_unlabeled()
        else:
            self._read_unlabeled()
            if self.input.known_negatives is not None:
                self._read_negatives(self.input.known_negatives)
            for ids in filter(None, (self._row_ids, self._negative_ids)):
                notes = ids.finish(self._source.name, self.input.allow_missing)
                self.notes += [note for note in notes if note not in self.notes]
            self._require_both_sets()
            self._require_columns()
            if self.input.drop_repeated:
                self._drop_repeated()

    def _note_sets(self) -> None:
        """Add notes if P and U seem to be swapped or to overlap."""
        labels = self._highest_label_pos, self._lowest_label_unl
        if self.input.data is not None or not self.checked:
            labels = math.nan, math.nan
        if note := swapped_note(*labels, len(self.positives), self.n_unlabeled):
            self.notes.append(note)
        if self._repeated is None and self._kept is not None and not self.input.precomputed:
            self._repeated = RepeatedRows(self.positives)
            for rows in self._kept:
                self._repeated.add(rows)
        advice = Message("{drop_repeated:True} leaves them out of U")
        of_negative = " or a known negative" if len(self.negatives) else ""
        if n_shared := int(np.count_nonzero(self._with_known_ids())):
            self.notes.append(
                Message(
                    "{n:,} rows of U have the id of a row of P" + of_negative + "; {advice}",
                    n=n_shared,
                    advice=advice,
                )
            )
        elif self.input.known_negatives is not None and not self.input.drop_repeated:
            tested = RepeatedRows(self.negatives)
            if n_shared := sum(int(tested.add(rows).sum()) for rows in self.unlabeled()):
                self.notes.append(
                    Message(
                        "{n:,} rows of U equal a known negative: they were tested, but are ranked"
                        " again; {advice}",
                        n=n_shared,
                        advice=advice,
                    )
                )
        self._note_doubts(None if self.input.drop_repeated else self._repeated, advice)

    def _with_known_ids(self) -> BoolArray:
        """Return which rows of U have the id of a row of P or of a known negative.

        Ids are known only if they are kept.
        """
        if not any(self._row_ids.ids):
            return np.zeros(self.n_unlabeled, bool)
        ids = self.in_order(self._row_ids.named(), self._source.name).tolist()
        first, last = len(self.positives), len(self.positives) + self.n_unlabeled
        known = set(filter(None, ids[:first] + ids[last:]))
        return np.array([row_id in known for row_id in ids[first:last]], bool)

    def _drop_repeated(self) -> None:
        """Leave out rows of U that equal a known row or have its id, in one more pass over U."""
        repeated = RepeatedRows(Rows.concatenate([self.positives, self.negatives]))
        kept: list[Rows] = []
        summary, stats = DataSummary(), self._stats
        if stats is not None:
            stats = self._stats = FeatureStats()
            stats.add(self.positives)
        extremes = self._extremes
        if extremes is not None:
            extremes = self._extremes = type(extremes)()
            extremes.add(self.positives, positive=True)
            extremes.add(self.negatives, positive=False)
        dropped = self._with_known_ids()
        start = 0
        for rows in self.unlabeled():
            here = slice(start, start + len(rows))
            dropped[here] |= repeated.add(rows)
            rows = rows.take(np.flatnonzero(~dropped[here]))
            start = here.stop
            summary.add(rows)
            if stats is not None:
                stats.add(rows)
            if extremes is not None:
                extremes.add(rows, positive=False)
            if self._kept is not None:
                kept.append(rows)
        if stats is not None:
            stats.add(self.negatives)
        numbers = self._rows_of_file(np.flatnonzero(dropped))
        if not summary.n_rows:
            raise DataError(
                f"{self._source.name}: every row of U repeats a row of P; no other rows are left"
            )
        known = "rows of P" if not len(self.negatives) else "rows of P or known negatives"
        self.notes.append(f"{len(numbers):,} rows of U repeat {known} and are left out")
        self._left_out = np.zeros(self._index.n_rows, bool)
        self._left_out[numbers] = True
        self.summary_unl = summary
        self._kept = None if self._kept is None else kept
        vars(self).pop("_outside_unlabeled", None)

    def _note_numbering(self) -> None:
        if self.input.positives is not None:
            names = name_of(self.input.positives), self._source.name
            sets = zip(names, (self.summary_pos, self.summary_unl), strict=True)
            indices = [(name, each.min_index, each.max_index) for name, each in sets]
            if note := note_on_numbering(indices):
                self.notes.append(note)

    def __enter__(self) -> TrainingData:
        return self

    def __exit__(self, *details: object) -> None:
        self._opened.close()

    def _open(self, path: str, *, once: bool) -> RowInput:
        table = self.input.table
        source = Source(path, once=once and not table.needs_two_passes)
        self._opened.callback(source.close)
        rows = RowInput(source, table, zero_based=self.zero_based)
        if self.input.unchecked and not rows.is_text:
            raise ParameterError(
                "{unchecked:True} is for svmlight text, but {file} is not", file=rows.name
            )
        return rows

    def _encode(self, known: RowInput | None) -> None:
        """Let the columns of tables become features, in one encoding for P and U."""
        inputs = [self._rows] if known is None else [known, self._rows]
        if len({one.table is None for one in inputs}) > 1:
            named, plain = sorted(inputs, key=lambda one: one.table is None)
            raise DataError(
                f"{named.name} is a table with named columns, but {plain.name} is not",
                "give both as tables, or convert both to svmlight text",
            )
        if self.input.has_label:
            self._label = self._rows.numeric_label(self.input.positive_label)
        if self.input.has_negative_label:
            label = self.input.negative_label
            self._negative_label = self._rows.numeric_label(label, "negative")
        if self._rows.table is None:
            return
        if len(inputs) > 1:
            share_roles(*inputs)
        for one in inputs:
            one.encode(self.input.encoding, selective=True)
        features = [one.features for one in inputs if one.features is not None]
        if len(features) > 1 and self.input.encoding is None:
            features[1].follow(features[0])
        features[0].decide()
        self._tables = features
        if self.input.encoding is None:
            from resvm_cli.tables.notes import ColumnExtremes

            self._extremes = ColumnExtremes()

    @property
    def encoding(self) -> dict[str, Any] | None:
        if not self._tables:
            return None
        first = self._tables[0]
        return replace(first.map, missing=first.missing).content()

    def read_alike(self, path: str) -> Iterator[Block]:
        """Yield the rows of another file, with the features that P and U have."""
        with self._open_alike(path, ColumnRoles()) as rows:
            yield from rows.blocks(with_comments=False, marked=False)

    @contextmanager
    def _open_alike(self, path: str, roles: ColumnRoles) -> Iterator[RowInput]:
        """Open another file, with the features that P and U have; these have decided on roles."""
        source = Source(path, once=True)
        try:
            rows = RowInput(source, self.input.table, zero_based=self.zero_based)
            if rows.table is not None and self._tables:
                rows.reading = replace(rows.reading, roles=roles)
                rows.encode(FeatureMap.from_content(self.encoding or {}))
            else:
                rows.encode_like(None)
            yield rows
        finally:
            source.close()

    def _read_negatives(self, path: str) -> None:
        """Read a file of known negatives."""
        parts: list[Block] = []
        roles = ColumnRoles(row_id=self.input.table.roles.row_id)
        with self._open_alike(path, roles) as rows:
            for block in self._blocks(rows):
                self._annotate(block)
                self._row_ids.add(block, rows.name)
                self._summarize(self.summary_neg, block.rows)
                parts.append(block)
        if not parts:
            raise DataError(f"{name_of(path)}: has no rows", "known negatives were expected")
        whole = Block.concatenate(parts)
        self.negatives = whole.rows
        self._require_not_positive(name_of(path), whole)

    def _require_not_positive(self, name: str, block: Block) -> None:
        """Reject a known negative with the id of a row of P, or with equal content and no id."""
        ids = [*self._row_ids.named().tolist()] or [""] * (len(self._positive_rows))
        of_pos, own = ids[: len(self.positives)], ids[len(ids) - len(block) :]
        row_of = {row_id: row for row, row_id in enumerate(of_pos) if row_id}
        pairs = [(row, row_of[row_id]) for row, row_id in enumerate(own) if row_id in row_of]
        equal = EqualRows.find(block.rows, [self.positives], precomputed=self.input.precomputed)
        for content, of_p in zip(equal.found.tolist(), equal.numbers.tolist(), strict=True):
            for row in np.flatnonzero(equal.contents == content).tolist():
                if not (own[row] and of_pos[of_p]):  # different molecules may have equal features
                    pairs.append((row, of_p))
        if pairs:
            row, of_p = min(pairs)
            which = f"'{own[row]}'" if own[row] else f"row {of_p + 1:,}"
            raise DataError(
                f"{name}:{block.lines[row]}: this known negative is also {which} of P",
                "a row cannot be both: remove it from the known negatives or from P",
            )

    def require_tables(self) -> None:
        """Raise DataError unless P and U are tables, whose cells can be written again."""
        if not self._tables:
            raise DataError(
                Message("{file}: {annotate} needs a table with columns", file=self._source.name)
            )

    def annotate(self, path: str, numbers: IntArray, results: dict[str, list[Any]]) -> None:
        """Write the table again, with results: rows by number (P before U), in this order."""
        from resvm_cli.tables.annotate import write_annotated

        rows = self._rows_of_file(np.arange(self.n_unlabeled))
        if self._is_positive:
            n_first = self._index.n_rows
            in_file = np.concatenate([np.flatnonzero(self._positive_rows), rows])
        else:
            n_first = len(self.positives)
            in_file = np.concatenate([np.arange(n_first), n_first + rows])
        write_annotated(path, self._tables, in_file[numbers], n_first, results)

    def _note_table(self) -> None:
        if self._tables:
            from resvm_cli.tables.notes import notes_on_training, remark_on_categories

            known = self._extremes is None
            self.notes += notes_on_training(self._tables, known=known)
            if not known and (text := remark_on_categories(self._tables[0])):
                self._run.remark(text)
        if self._extremes is not None:
            self.notes += self._extremes.notes(self._tables[0].map.columns)

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
        n_left_out = 0 if self._left_out is None else int(np.count_nonzero(self._left_out))
        n_known = len(self.positives) + len(self.negatives) if self._is_positive else 0
        return self._index.n_rows - n_known - n_left_out

    def description(self) -> dict[str, Any]:
        """Describe the data for the manifest; an unchecked U is described by its text."""
        description = super().description()
        if self._text_digests is not None:
            numbers = {"rows": self.n_unlabeled, "nonzeros": None}
            description["unlabeled"] = numbers | self._text_digests
        return description

    def _blocks(self, rows: RowInput) -> Iterator[Block]:
        n_rows = 0
        with_ids = self._row_ids.from_comments or (
            self._negative_ids is not None and self._negative_ids.from_comments
        )
        for block in rows.blocks(
            with_comments=with_ids, marked=not rows.is_text, workers=READING_THREADS
        ):
            if self.input.precomputed:
                self._check_serials(block, rows.name)
            if with_ids and block.comments is None:
                block = replace(block, comments=[""] * len(block))
            yield block
            n_rows += len(block)
            self._run.progress(f"reading {rows.name}", n_rows, None)

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

    def _read_positives(self, rows: RowInput) -> None:
        parts = []
        for block in self._blocks(rows):
            self._annotate(block)
            self._row_ids.add(block, rows.name)
            self._highest_label_pos = np.maximum(self._highest_label_pos, block.labels.max())
            self._summarize(self.summary_pos, block.rows)
            parts.append(block.rows)
        self.positives = Rows.concatenate(parts)
        if not self.input.precomputed:
            self._repeated = RepeatedRows(self.positives)

    def _summarize(self, summary: DataSummary, rows: Rows) -> None:
        summary.add(rows)
        if self._stats is not None and self.input.data is None:
            self._stats.add(rows)
        if self._extremes is not None:
            self._extremes.add(rows, positive=summary is self.summary_pos)

    def _annotate(self, block: Block) -> None:
        if self.input.groups == QID:
            self._qids.append(block.qids)

    @cached_property
    def _positive_rows(self) -> npt.NDArray[np.bool_]:
        """Return which rows are in P, in the order of the data."""
        if self._is_positive:
            return np.concatenate(self._is_positive)
        n_rows = len(self.positives) + self._index.n_rows + len(self.negatives)
        return np.arange(n_rows) < len(self.positives)

    @cached_property
    def _negative_rows(self) -> BoolArray:
        """Return which rows are known negatives, in the order of the data: the last of files."""
        if self._is_negative:
            return np.concatenate(self._is_negative)
        return np.arange(len(self._positive_rows), 0, -1) <= len(self.negatives)

    @cached_property
    def _outside_unlabeled(self) -> BoolArray | None:
        """Which rows of the file are not in U: positives and dropped rows; None if all are."""
        if not self._is_positive:
            return self._left_out
        outside = self._positive_rows | self._negative_rows
        return outside if self._left_out is None else outside | self._left_out

    def _rows_of_file(self, numbers: IntArray) -> IntArray:
        """Return the row numbers in the file of these rows of U."""
        if self._outside_unlabeled is None:
            return numbers
        outside = np.flatnonzero(self._outside_unlabeled)
        # row u of U follows every other row that has at most u rows of U before it
        before = outside - np.arange(len(outside))
        return numbers + np.searchsorted(before, numbers, "right")

    def ids(self) -> list[str]:
        """Return one id per row: P, U, known negatives; by default the row number in its file."""
        rows = np.flatnonzero(self._positive_rows)
        unlabeled = self._rows_of_file(np.arange(self.n_unlabeled))
        negative = np.flatnonzero(self._negative_rows) if self._is_negative else np.zeros(0, int)
        if self._tables:  # which may have dropped rows
            rows = self._tables[0].rows_of_file(rows)
            unlabeled = self._tables[-1].rows_of_file(unlabeled)
            negative = self._tables[0].rows_of_file(negative)
        if not self._is_negative:
            negative = np.arange(len(self.negatives))
        numbers = np.concatenate([rows, unlabeled, negative]) + 1
        if not self._row_ids.ids:
            return list(map(str, numbers.tolist()))
        named = self.in_order(self._row_ids.named(), self._source.name)
        return [one or str(number) for one, number in zip(named, numbers.tolist(), strict=True)]

    def in_order(self, values: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
        """Reorder one value per row from the order of the data to P, U, known negatives."""
        is_positive = self._positive_rows
        if len(values) != len(is_positive):
            raise DataError(
                f"{name}: {len(values):,} lines, but the data has {len(is_positive):,} rows",
                Message("expected one line per row: P and then U, or in the order of {data}"),
            )
        outside = is_positive | self._negative_rows
        if self._left_out is not None and self._is_positive:
            outside = outside | self._left_out
        elif self._left_out is not None:
            outside[len(self.positives) :][: len(self._left_out)] |= self._left_out
        return np.concatenate([values[is_positive], values[~outside], values[self._negative_rows]])

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
        negatives: list[Rows] = []
        for block in self._blocks(self._rows):
            self._annotate(block)
            known = self._row_ids.add(block, self._source.name)
            if self._rows.is_text:
                self._index.add(block.starts)
            else:
                self._index.n_rows += len(block)
            if self.input.data is not None:
                if self.input.has_label:
                    block.require_labels(self._source.name)
                    if len(self._labels) < 20:
                        self._labels.update(np.unique(block.labels).tolist())
                    known = block.labels == self._label
                self._is_positive.append(known)
                rows = block.rows.take(np.flatnonzero(known))
                self._summarize(self.summary_pos, rows)
                parts.append(rows)
                negative = self._negatives_of(block, known)
                self._is_negative.append(negative)
                if negative.any():
                    negatives.append(block.rows.take(np.flatnonzero(negative)))
                    self._summarize(self.summary_neg, negatives[-1])
                block = block.take(np.flatnonzero(~(known | negative)))
            else:
                self._lowest_label_unl = np.minimum(self._lowest_label_unl, block.labels.min())
            if self._repeated is not None:
                self._repeated.add(block.rows)
            self._summarize(self.summary_unl, block.rows)
            if self._kept is not None:
                self._kept.append(block.rows)
                if self.summary_unl.n_nonzeros > self._max_kept and not self._keep_all:
                    self._kept = None
        if self.input.data is not None:
            self.positives = Rows.concatenate(parts)
            if negatives:
                self.negatives = Rows.concatenate(negatives)
            if self._stats is not None and not self.input.drop_repeated:
                self._stats.add(self.positives)  # before U, as from two files or from memory
                for rows in self.unlabeled():
                    self._stats.add(rows)
                self._stats.add(self.negatives)

    def _negatives_of(self, block: Block, positive: BoolArray) -> BoolArray:
        """Return which rows of a block are known negatives; none may be positive."""
        if self._negative_ids is not None:
            negative = self._negative_ids.add(block, self._source.name)
            if len(both := np.flatnonzero(negative & positive)):
                raise DataError(
                    f"{self._source.name}:{block.lines[both[0]]}: this row of P is listed in"
                    f" {name_of(self.input.negative_ids or '')}",
                    "a row cannot be both a known positive and a known negative",
                )
            return negative
        if self._negative_label is None:
            return np.zeros(len(block), bool)
        return np.asarray(block.labels == self._negative_label, bool)

    def _require_both_sets(self) -> None:
        name = self._source.name
        wanted = " or ".join(self.input.table.roles.positive_labels)
        if self.input.positive_label is not None and not wanted:
            wanted = format_number(self.input.positive_label)
        if self.input.has_label and not len(self.positives):
            if not self._rows.is_text:
                raise self._rows.no_positive_row()
            there = ", ".join(format_number(label) for label in sorted(self._labels)[:20])
            raise DataError(
                f"{name}: no row has the label {wanted}", f"labels in the file: {there}"
            )
        if self.input.has_negative_label and not len(self.negatives):
            labels = self.input.table.roles.negative_labels
            text = " or ".join(labels) or format_number(self.input.negative_label or 0.0)
            raise DataError(
                f"{name}: no row has the label {text} of known negatives",
                Message("correct {negative_label}, or leave it out"),
            )
        if not self.n_unlabeled and len(self.negatives):
            raise DataError(f"{name}: every row is known; no unlabeled rows are left")
        if not self.n_unlabeled:
            which = f"the label {wanted}"
            if self.input.positive_ids is not None:
                which = f"an id of {name_of(self.input.positive_ids)}"
            raise DataError(f"{name}: every row has {which}; no unlabeled rows are left")

    def _count_unlabeled(self) -> None:
        """Count lines and digest the text, without parsing rows."""
        self._kept = None
        digest, whole = hashlib.sha256(), hashlib.sha256()
        end = 0
        last = b"\n"
        for text in self._rows.pieces(COUNTING_PIECE):
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
        for block in self._rows.blocks(with_comments=False, workers=READING_THREADS):
            rows = block.rows
            if self._outside_unlabeled is not None:
                outside = self._outside_unlabeled[read : read + len(rows)]
                rows = rows.take(np.flatnonzero(~outside))
            read += len(block)
            of_unlabeled += len(rows)
            yield rows
        if of_unlabeled != self.n_unlabeled:
            raise DataError(
                f"{self._source.name}: {self.n_unlabeled:,} rows of U in the first pass, then"
                f" {of_unlabeled:,}",
                Message("{unchecked:True} needs one row per line"),
            )

    def fetch_unlabeled(self, numbers: IntArray) -> Rows:
        """Return the rows of U with these ascending numbers."""
        if self._kept is not None:
            if len(self._kept) > 1:
                self._kept = [Rows.concatenate(self._kept)]
            return self._kept[0].take(numbers) if self._kept else Rows.empty().take(numbers)
        if not self._rows.is_text:  # the whole table is read again
            return _chosen(self.unlabeled(), numbers)
        spans = self._index.spans(self._rows_of_file(numbers))
        texts = self._source.spans(spans.bounds)
        places = spans.positions
        name = self._source.name
        if self.input.unchecked:
            texts, places = spans.lines(texts), np.arange(len(numbers))

        def refuse(bad: BadLine) -> None:
            line = bad.line if not self.input.unchecked else numbers[bad.line - 1] + 1
            raise replace(bad, line=int(line)).error(name)

        blocks = parse_pieces(
            join_texts(texts, PIECE), name, zero_based=self.zero_based, on_bad_line=refuse
        )
        rows = _chosen((block.rows for block in blocks), places)
        if len(rows) != len(numbers):
            raise DataError(
                f"{name}: a line drawn as a row is blank or a comment",
                Message("{unchecked:True} needs one row per line"),
            )
        if self.input.unchecked:
            self.summary_unl.max_index = rows.max_index
            _ = self.n_features  # rejects features beyond the declared number
        return rows


def _chosen(blocks: Iterable[Rows], numbers: IntArray) -> Rows:
    """Return the rows with these ascending numbers, counted over all blocks."""
    parts: list[Rows] = []
    before = 0
    for rows in blocks:
        first, last = np.searchsorted(numbers, [before, before + len(rows)])
        parts.append(rows.take(numbers[first:last] - before))
        before += len(rows)
    return Rows.concatenate(parts)
