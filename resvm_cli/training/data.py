"""P and U from files: every row is read and checked once; P is kept in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli.errors import DataError, Message
from resvm_cli.files.row_lists import RowIds, WeightLines, read_names
from resvm_cli.files.streams import name_of
from resvm_cli.files.svmlight import Block
from resvm_cli.model.pu_data import PositiveWeights, PUData
from resvm_cli.model.scaling import FeatureStats
from resvm_cli.model.set_checks import RepeatedRows, swapped_note
from resvm_cli.rows import BoolArray, DataSummary, IntArray, Rows, note_on_numbering
from resvm_cli.running.run import Run
from resvm_cli.tables.encoding import ColumnRoles
from resvm_cli.tables.inputs import RowInput
from resvm_cli.training.input import (
    QID,
    READING_THREADS,
    OpenedFiles,
    RowSets,
    SerialNumbers,
    TrainingInput,
    UnlabeledFile,
    max_kept,
    require_both_sets,
    require_not_positive,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from resvm_cli.tables.notes import ColumnExtremes


class TrainingData(PUData):
    """P and U in files, checked and summarized; close this once all rows have been fetched."""

    def __init__(self, source: TrainingInput, run: Run, *, keep_all: bool = False) -> None:
        """Read both sets; a large U is not kept in memory unless ``keep_all`` is true."""
        super().__init__(
            scale=source.scale,
            zero_based=source.zero_based,
            features=source.features,
            positive_label=source.positive_label,
        )
        self.input = source
        self._run = run
        self._extremes: ColumnExtremes | None = None  # only for table columns
        self.positives = Rows.empty()
        self._serials = SerialNumbers()
        self._qids: list[IntArray] = []  # in file order, only if groups are given by qid
        self._repeated: RepeatedRows | None = None  # None: no search for repeated rows
        # only if P and U are in two files; nan if a row has no label
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
        self._files = OpenedFiles(source)
        try:
            self._read(keep_all=keep_all)
        except BaseException:
            self._files.close()
            raise
        self._note_table()
        self._note_sets()
        self._note_numbering()
        spooled = self._file.rows.source
        if spooled.spooled_to_disk:
            run.remark(
                f"{spooled.name} was spooled to a temporary file"
                f" ({spooled.spooled_bytes:,} bytes) so that it can be read twice"
            )

    def __enter__(self) -> TrainingData:
        return self

    def __exit__(self, *details: object) -> None:
        self._files.close()

    @property
    def n_unlabeled(self) -> int:
        return self._sets.n_unlabeled

    @property
    def n_kept(self) -> int:
        return 0 if self._file.kept is None else self.summary_unl.n_nonzeros

    @property
    def encoding(self) -> dict[str, Any] | None:
        return self._files.encoding

    @cached_property
    def positive_weights(self) -> PositiveWeights | None:
        if self._weights is None:
            return None
        known = None
        if self.input.positive_ids is not None:
            known = self._row_ids.known_in_order(), self._row_ids.is_known
        values = self._weights.of_rows(len(self.positives), known)
        return PositiveWeights.from_values(values, self._weights.name)

    def ids(self) -> list[str]:
        """Return the ids of P, U and known negatives, with row numbers for rows without an id."""
        rows, unlabeled, negative = self._sets.in_files()
        if tables := self._files.tables:  # tables may have dropped rows
            rows = tables[0].rows_of_file(rows)
            unlabeled = tables[-1].rows_of_file(unlabeled)
            if self._sets.known is not None:
                negative = tables[0].rows_of_file(negative)
        numbers = np.concatenate([rows, unlabeled, negative]) + 1
        if not self._row_ids.ids:
            return list(map(str, numbers.tolist()))
        named = self.in_order(self._row_ids.named(), self._file.name)
        return [one or str(number) for one, number in zip(named, numbers.tolist(), strict=True)]

    def in_order(self, values: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
        """Reorder one value per row from data order to P, then U, then known negatives."""
        return self._sets.in_order(values, name)

    def groups(self) -> IntArray | None:
        """Return one group number per row of P, U and known negatives; None without groups."""
        return self._groups

    @cached_property
    def _groups(self) -> IntArray | None:
        if self.input.groups is None:
            return None
        if self.input.groups == QID:
            names: npt.NDArray[Any] = np.concatenate(self._qids)
            if (names < 0).any():
                raise DataError(
                    f"{int((names < 0).sum()):,} rows have no qid to name their group",
                    Message("add a qid: to each row, or give a file of group names: {groups:FILE}"),
                )
        else:
            names = np.array(read_names(self.input.groups), object)
        _, numbers = np.unique(self.in_order(names, self.input.groups), return_inverse=True)
        return numbers.reshape(-1)

    def unlabeled(self) -> Iterator[Rows]:
        """Yield all rows of U again, in order, in blocks."""
        return self._file.unlabeled(self._sets)

    def fetch_unlabeled(self, numbers: IntArray) -> Rows:
        """Return the rows of U with these numbers, which must be ascending."""
        return self._file.fetch(numbers, self._sets)

    def read_alike(self, path: str) -> Iterator[Block]:
        """Yield the rows of another file, with the same features as P and U."""
        with self._files.open_alike(path, ColumnRoles()) as rows:
            yield from rows.blocks(with_comments=False, marked=False)

    def require_tables(self) -> None:
        """Raise DataError unless P and U are tables, because only table rows can be annotated."""
        if not self._files.tables:
            raise DataError(
                Message("{file}: {annotate} needs a table with columns", file=self._file.name)
            )

    def annotate(self, path: str, numbers: IntArray, results: dict[str, list[Any]]) -> None:
        """Copy these rows (numbered with P before U) to a table, with the results as columns."""
        from resvm_cli.tables.notes import write_annotated

        sets = self._sets
        n_first = sets.n_pos if sets.known is None else sets.n_file
        write_annotated(path, self._files.tables, sets.order[numbers], n_first, results)

    def _read(self, *, keep_all: bool) -> None:
        source, files = self.input, self._files
        known = None if source.positives is None else files.opened(source.positives, once=True)
        if known is not None and known.is_text:  # U may be a pipe that is written after P
            self._read_positives(known)
        path = source.data if source.data is not None else source.unlabeled
        assert path is not None
        rows = files.opened(path, once=keep_all)
        limit = math.inf if keep_all else max_kept(self._run.memory_mb)
        self._file = UnlabeledFile(rows, source, limit)
        files.encode([rows] if known is None else [known, rows])
        if files.tables and source.encoding is None:
            from resvm_cli.tables.notes import ColumnExtremes

            self._extremes = ColumnExtremes()
        if known is not None and not known.is_text:
            self._read_positives(known)
        labels: set[float] = set()
        if source.data is not None:
            labels = self._read_labeled()
        else:
            self._read_unlabeled()
        if source.known_negatives is not None:
            self._read_negatives(source.known_negatives)
        for ids in filter(None, (self._row_ids, self._negative_ids)):
            notes = ids.finish(self._file.name, source.allow_missing)
            self.notes += [note for note in notes if note not in self.notes]
        require_both_sets(source, rows, self._sets, labels)
        if source.precomputed:
            self._serials.require_below(self.n_features)
        if source.drop_repeated:
            self._drop_repeated()

    def _blocks(self, rows: RowInput) -> Iterator[Block]:
        n_rows = 0
        with_ids = self._row_ids.from_comments or (
            self._negative_ids is not None and self._negative_ids.from_comments
        )
        for block in rows.blocks(
            with_comments=with_ids, marked=not rows.is_text, workers=READING_THREADS
        ):
            if self.input.precomputed:
                self._serials.check(block, rows.name)
            if with_ids and block.comments is None:
                block = replace(block, comments=[""] * len(block))
            if self.input.groups == QID:
                self._qids.append(block.qids)
            yield block
            n_rows += len(block)
            self._run.progress(f"reading {rows.name}", n_rows, None)

    def _read_positives(self, rows: RowInput) -> None:
        parts = []
        for block in self._blocks(rows):
            self._row_ids.add(block, rows.name)
            self._highest_label_pos = np.maximum(self._highest_label_pos, block.labels.max())
            self._summarize(self.summary_pos, block.rows)
            parts.append(block.rows)
        self.positives = Rows.concatenate(parts)
        if not self.input.precomputed:
            self._repeated = RepeatedRows(self.positives)

    def _read_unlabeled(self) -> None:
        """Read the file of U; check and summarize every row."""
        for block in self._blocks(self._file.rows):
            self._row_ids.add(block, self._file.name)
            self._file.add(block)
            self._lowest_label_unl = np.minimum(self._lowest_label_unl, block.labels.min())
            self._add_unlabeled(block.rows)
        self._sets = RowSets(self._file.n_rows, len(self.positives))

    def _read_labeled(self) -> set[float]:
        """Read a labeled file; check and summarize every row; return some of the labels."""
        source, rows = self.input, self._file.rows
        label = rows.numeric_label(source.positive_label) if source.has_label else None
        negative_label = None
        if source.has_negative_label:
            negative_label = rows.numeric_label(source.negative_label, "negative")
        positives: list[Rows] = []
        negatives: list[Rows] = []
        codes = [np.zeros(0, np.int8)]  # 1: in P, 0: in U, -1: a known negative
        labels: set[float] = set()
        for block in self._blocks(rows):
            positive = self._row_ids.add(block, rows.name)
            self._file.add(block)
            if source.has_label:
                block.require_labels(rows.name)
                if len(labels) < 20:
                    labels.update(np.unique(block.labels).tolist())
                positive = block.labels == label
            negative = self._negatives_of(block, positive, negative_label)
            codes.append(positive.astype(np.int8) - negative)
            positives.append(block.rows.take(np.flatnonzero(positive)))
            self._summarize(self.summary_pos, positives[-1])
            negatives.append(block.rows.take(np.flatnonzero(negative)))
            self._summarize(self.summary_neg, negatives[-1])
            self._add_unlabeled(block.rows.take(np.flatnonzero(codes[-1] == 0)))
        self.positives, self.negatives = map(Rows.concatenate, (positives, negatives))
        sizes = len(self.positives), len(self.negatives)
        code = np.concatenate(codes)
        self._sets = RowSets(self._file.n_rows, *sizes, (code > 0, code < 0))
        if self._stats is not None and not source.drop_repeated:
            self._stats.add(self.positives)  # before U, as with two files or in memory
            for part in self.unlabeled():
                self._stats.add(part)
            self._stats.add(self.negatives)
        return labels

    def _negatives_of(self, block: Block, positive: BoolArray, label: float | None) -> BoolArray:
        """Return which rows of a block are known negatives; reject any that are also in P."""
        if self._negative_ids is not None:
            negative = self._negative_ids.add(block, self._file.name)
            if len(both := np.flatnonzero(negative & positive)):
                raise DataError(
                    f"{self._file.name}:{block.lines[both[0]]}: this row of P is listed in"
                    f" {name_of(self.input.negative_ids or '')}",
                    "a row cannot be both a known positive and a known negative",
                )
            return negative
        if label is None:
            return np.zeros(len(block), bool)
        return np.asarray(block.labels == label, bool)

    def _read_negatives(self, path: str) -> None:
        """Read a file of known negatives."""
        parts: list[Block] = []
        roles = ColumnRoles(row_id=self.input.table.roles.row_id)
        with self._files.open_alike(path, roles) as rows:
            for block in self._blocks(rows):
                self._row_ids.add(block, rows.name)
                self._summarize(self.summary_neg, block.rows)
                parts.append(block)
        if not parts:
            raise DataError(f"{name_of(path)}: has no rows", "expected known negatives")
        whole = Block.concatenate(parts)
        self.negatives = whole.rows
        self._sets = replace(self._sets, n_neg=len(whole))
        ids = self._row_ids.named().tolist() or [""] * self._sets.n_rows
        require_not_positive(name_of(path), whole, self.positives, ids, self.input.precomputed)

    def _add_unlabeled(self, rows: Rows) -> None:
        if self._repeated is not None:
            self._repeated.add(rows)
        self._summarize(self.summary_unl, rows)
        self._file.keep(rows, self.summary_unl.n_nonzeros)

    def _summarize(self, summary: DataSummary, rows: Rows) -> None:
        summary.add(rows)
        # for a single labeled file, statistics are added at the end, P first
        self._learn(rows, positive=summary is self.summary_pos, stats=self.input.data is None)

    def _learn(self, rows: Rows, *, positive: bool, stats: bool = True) -> None:
        if self._stats is not None and stats:
            self._stats.add(rows)
        if self._extremes is not None:
            self._extremes.add(rows, positive=positive)

    def _drop_repeated(self) -> None:
        """Drop rows of U that are identical to a known row or share its id; this reads U again."""
        repeated = RepeatedRows(Rows.concatenate([self.positives, self.negatives]))
        kept: list[Rows] = []
        self.summary_unl = DataSummary()
        if self._stats is not None:
            self._stats = FeatureStats()
        if self._extremes is not None:
            self._extremes = type(self._extremes)()
        self._learn(self.positives, positive=True)
        dropped = self._with_known_ids()
        start = 0
        for rows in self.unlabeled():
            here = slice(start, start + len(rows))
            dropped[here] |= repeated.add(rows)
            rows = rows.take(np.flatnonzero(~dropped[here]))
            start = here.stop
            self.summary_unl.add(rows)
            self._learn(rows, positive=False)
            if self._file.kept is not None:
                kept.append(rows)
        self._learn(self.negatives, positive=False)
        if not self.summary_unl.n_rows:
            raise DataError(
                f"{self._file.name}: every row of U duplicates a known row; no other rows are left"
            )
        numbers = self._sets.rows_of_file(np.flatnonzero(dropped))
        known = "rows of P" if not len(self.negatives) else "rows of P or known negatives"
        self.notes.append(f"{len(numbers):,} rows of U duplicate {known} and are left out")
        left_out = np.zeros(self._sets.n_file, bool)
        left_out[numbers] = True
        self._sets = replace(self._sets, left_out=left_out)
        self._file.kept = None if self._file.kept is None else kept

    def _with_known_ids(self) -> BoolArray:
        """Return which rows of U have the id of a known row; none if ids are not kept."""
        if not any(self._row_ids.ids):
            return np.zeros(self.n_unlabeled, bool)
        ids = self.in_order(self._row_ids.named(), self._file.name).tolist()
        first, last = len(self.positives), len(self.positives) + self.n_unlabeled
        known = set(filter(None, ids[:first] + ids[last:]))
        return np.array([row_id in known for row_id in ids[first:last]], bool)

    def _note_table(self) -> None:
        tables = self._files.tables
        if not tables:
            return
        from resvm_cli.tables.notes import notes_on_training, remark_on_categories

        self.notes += notes_on_training(tables, known=self._extremes is None)
        if self._extremes is not None:
            if text := remark_on_categories(tables[0]):
                self._run.remark(text)
            self.notes += self._extremes.notes(tables[0].map.columns)

    def _note_sets(self) -> None:
        """Add notes if P and U seem to be swapped or to overlap."""
        labels = self._highest_label_pos, self._lowest_label_unl
        if self.input.data is not None:
            labels = math.nan, math.nan
        if note := swapped_note(*labels, len(self.positives), self.n_unlabeled):
            self.notes.append(note)
        kept = self._file.kept
        if self._repeated is None and kept is not None and not self.input.precomputed:
            self._repeated = RepeatedRows(self.positives)
            for rows in kept:
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
                        "{n:,} rows of U are identical to a known negative: they were tested, but"
                        " are ranked again; {advice}",
                        n=n_shared,
                        advice=advice,
                    )
                )
        self._note_doubts(None if self.input.drop_repeated else self._repeated, advice)

    def _note_numbering(self) -> None:
        if self.input.positives is not None:
            names = name_of(self.input.positives), self._file.name
            sets = zip(names, (self.summary_pos, self.summary_unl), strict=True)
            indices = [(name, each.min_index, each.max_index) for name, each in sets]
            if note := note_on_numbering(indices):
                self.notes.append(note)
