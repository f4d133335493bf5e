"""P and U from files: every row is read and checked once; P is kept in memory.

A member needs only n_unl rows of U. The first pass records file offsets in constant memory; later
passes fetch the drawn rows. A small U stays in memory instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from resvm_cli.data import notes
from resvm_cli.data.encoding import ColumnRoles, FeatureMap, no_column
from resvm_cli.data.inputs import RowInput, encode_alike
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.data.pudata import PositiveWeights, PUData, RepeatedRows
from resvm_cli.data.row_lists import RowIds, WeightLines, read_names
from resvm_cli.data.scaling import FeatureStats
from resvm_cli.data.streams import Source, changed, name_of
from resvm_cli.data.svmlight import Block, RowIndex, format_number, parse_spans
from resvm_cli.errors import DataError
from resvm_cli.rows import IntArray, RowDigest, Rows
from resvm_cli.run import Run
from resvm_cli.svm import kernels

if TYPE_CHECKING:
    import numpy.typing as npt

    from resvm_cli.data.features import TableFeatures

Codes: TypeAlias = "npt.NDArray[np.int8]"

QID = "qid"
POSITIVE, UNLABELED, NEGATIVE = 1, 0, -1  # the set that a row belongs to
# U stays in memory after the first pass if it has at most this many nonzeros: about 50 MB.
KEPT_NONZEROS = 1 << 22
READING_THREADS = 2
SHOWN_LABELS = 20
MAX_SHOWN, MAX_TEXTS = 5, 3  # columns beside a ranking, of which texts


class PUFiles(PUData):
    """P and U in files, checked and summarized; close this once all rows have been fetched.

    The *data order* of the rows is that of one labeled file, or P, U and known negatives in turn.
    """

    def __init__(self, source: TrainingInput, run: Run, *, keep_all: bool = False) -> None:
        """Read both sets; a large U is not kept in memory unless ``keep_all`` is true."""
        super().__init__(
            scale=source.scale,
            zero_based=source.zero_based,
            features=source.features,
            positive_label=source.positive_label,
        )
        self._input = source
        self._run = run
        self._opened = ExitStack()
        self._tables: list[TableFeatures] = []  # the features of P and U, if they are tables
        # of U and of P, only for columns of new tables
        self._extremes: tuple[FeatureStats, FeatureStats] | None = None
        self._index = RowIndex()  # of the file that contains U
        self._kept: list[Rows] | None = []  # the rows of U; None: they are read again
        self._max_kept = math.inf if keep_all else KEPT_NONZEROS
        # with one labeled file: the positions of P, known negatives, and both
        self._places: tuple[IntArray, IntArray] | None = None
        self._outside = np.zeros(0, np.int64)
        self._parts: dict[int, list[Rows]] = {POSITIVE: [], NEGATIVE: []}
        self._qids: list[IntArray] = []  # in data order, only if groups are given by qid
        self._last_serial = 0, ""  # the largest serial number of a precomputed kernel: where
        self._repeated: RepeatedRows | None = None  # None: no search for repeated rows
        # only if P and U are in two files; nan if a row has no label
        self._highest_label_pos, self._lowest_label_unl = -math.inf, math.inf
        keep_ids = source.keep_ids or source.negative_rows is not None
        self._row_ids = RowIds(
            source.positive_ids, source.negative_ids, source.ids_file, keep=keep_ids
        )
        self._weights: WeightLines | None = None
        if source.weights is not None:
            self._weights = WeightLines.read(
                source.weights, with_ids=source.positive_ids is not None
            )
        try:
            self._read(keep_all)
        except BaseException:
            self._opened.close()
            raise
        self._add_notes()

    def __enter__(self) -> PUFiles:
        return self

    def __exit__(self, *details: object) -> None:
        self._opened.close()

    def _open(self, path: str, *, once: bool) -> RowInput:
        table = self._input.table
        source = Source(path, once=once and not table.needs_two_passes)
        self._opened.callback(source.close)
        return RowInput(source, table, zero_based=self._input.zero_based)

    def _read(self, keep_all: bool) -> None:
        """Read each file once."""
        source = self._input
        first = None if source.positives is None else self._open(source.positives, once=True)
        if first is not None and first.is_text:  # U may be a pipe that is written after P
            self._read_positives(first)
        path = source.data if source.data is not None else source.unlabeled
        assert path is not None
        self._rows = rows = self._open(path, once=keep_all)
        inputs = [rows] if first is None else [first, rows]
        self._tables = encode_alike(inputs, source.encoding)
        self._fingerprints = source.encoding or inputs[0].fingerprints or rows.fingerprints
        if self._tables and source.encoding is None:
            self._extremes = FeatureStats(), FeatureStats()
        if first is not None and not first.is_text:
            self._read_positives(first)
        if first is None:
            self._read_labeled()
        else:
            for block, _ in self._blocks(rows):
                self._lowest_label_unl = np.minimum(self._lowest_label_unl, block.labels.min())
                self._index.add(block.starts)
                self._add(UNLABELED, block.rows)
        if source.negative_rows is not None:
            self._read_negatives(source.negative_rows)
        self.notes += self._row_ids.finish(rows.name)
        if not self.n_unlabeled:
            raise self._nothing_unlabeled()
        largest, where = self._last_serial
        if source.precomputed and largest >= self.n_features:
            raise DataError(
                f"{where}: the serial number is {largest:,}, but rows have only"
                f" {self.n_features - 1:,} kernel values",
                kernels.ROW_FORMAT,
            )

    def _blocks(self, rows: RowInput) -> Iterator[tuple[Block, Codes]]:
        """Yield the blocks of a file, and the sets that lists of ids put their rows in."""
        n_rows = 0
        with_ids = self._row_ids.from_comments
        for block in rows.blocks(
            with_comments=with_ids, marked=not rows.is_text, workers=READING_THREADS
        ):
            if self._input.precomputed:
                self._check_serials(block, rows.name)
            if with_ids and block.comments is None:
                block = replace(block, comments=[""] * len(block))
            if self._input.groups == QID:
                self._qids.append(block.qids)
            yield block, self._row_ids.add(block, rows.name)
            n_rows += len(block)
            self._run.progress(f"reading {rows.name}", n_rows, None)

    def _check_serials(self, block: Block, name: str) -> None:
        """Reject rows of a precomputed kernel without a serial number."""
        if wrong := kernels.wrong_serials(block.rows):
            row, fault = wrong[0]
            raise DataError(f"{name}:{block.lines[row]}: {fault}", kernels.ROW_FORMAT)
        numbers = kernels.serials(block.rows)
        last = int(numbers.argmax())
        found = int(numbers[last]), f"{name}:{block.lines[last]}"
        self._last_serial = max(self._last_serial, found, key=lambda pair: pair[0])

    def _add(self, code: int, rows: Rows) -> None:
        """Add rows to P, U or the known negatives."""
        if code == UNLABELED:
            if self._repeated is not None:
                self._repeated.add(rows)
            self.summary_unl.add(rows)
            if self._kept is not None:
                self._kept.append(rows)
                if self.summary_unl.n_nonzeros > self._max_kept:
                    self._kept = None
        else:
            self._parts[code].append(rows)
            (self.summary_pos if code == POSITIVE else self.summary_neg).add(rows)
        # for a single labeled file, statistics are added at the end, P first
        if self._stats is not None and self._input.data is None:
            self._stats.add(rows)
        if self._extremes is not None:
            self._extremes[code == POSITIVE].add(rows)

    def _read_positives(self, rows: RowInput) -> None:
        for block, _ in self._blocks(rows):
            self._highest_label_pos = np.maximum(self._highest_label_pos, block.labels.max())
            self._add(POSITIVE, block.rows)
        self.positives = Rows.concatenate(self._parts.pop(POSITIVE))
        if not self._input.precomputed:
            self._repeated = RepeatedRows(self.positives)

    def _read_negatives(self, path: str) -> None:
        """Read a file of known negatives, with the same features as P and U."""
        rows = self._open(path, once=True)
        if rows.table is not None and self._tables:
            rows.roles = ColumnRoles(row_id=rows.roles.row_id, header=rows.roles.header)
            rows.encode(FeatureMap.from_content(self.encoding or {}))
        else:
            rows.encode_like(self._fingerprints)
        lines = []
        for block, _ in self._blocks(rows):
            self._add(NEGATIVE, block.rows)
            lines.append(block.lines)
        if not lines:
            raise DataError(f"{name_of(path)}: has no rows", "expected known negatives")
        self.negatives = Rows.concatenate(self._parts.pop(NEGATIVE))
        self._require_no_positive(name_of(path), np.concatenate(lines))

    def _require_no_positive(self, name: str, lines: IntArray) -> None:
        """Reject a known negative with the id of a row of P or, if either has none, its content."""

        def contents(rows: Rows) -> list[bytes]:
            if self._input.precomputed:
                rows = rows.entries(rows.indices != kernels.SERIAL)
            return rows.without_zeros().content_keys()

        ids = self._row_ids.ids or [""] * self._n_rows
        of_pos, own = ids[: len(self.positives)], ids[-len(self.negatives) :]
        row_of = {row_id: row for row, row_id in enumerate(of_pos) if row_id}
        alike: dict[bytes, list[int]] = {key: [] for key in contents(self.negatives) if key}
        for row, key in enumerate(contents(self.positives)):
            if key in alike:
                alike[key].append(row)
        for row, (row_id, key) in enumerate(zip(own, contents(self.negatives), strict=True)):
            same = [row_of[row_id]] if row_id in row_of else []
            # different molecules may have identical features
            same += [of_p for of_p in alike.get(key, ()) if not (row_id and of_pos[of_p])]
            if same:
                which = f"'{row_id}'" if row_id else f"row {min(same) + 1:,}"
                raise DataError(
                    f"{name}:{lines[row]}: this known negative is also in P, as {which}",
                    "a row cannot be both: remove it from the known negatives or from P",
                )

    def _read_labeled(self) -> None:
        """Read one file whose labels or ids tell P, U and known negatives apart."""
        source, rows = self._input, self._rows
        label = rows.numeric_label(source.positive_label) if source.has_label else None
        negative_label = None
        if source.has_negative_label:
            negative_label = rows.numeric_label(source.negative_label, "negative")
        every: list[Codes] = []
        labels: set[float] = set()
        for block, codes in self._blocks(rows):
            self._index.add(block.starts)
            if label is not None:
                block.require_labels(rows.name)
                if len(labels) < SHOWN_LABELS:
                    labels.update(np.unique(block.labels).tolist())
                positive = block.labels == label
                if len(both := np.flatnonzero(positive & (codes == NEGATIVE))):
                    raise DataError(
                        f"{rows.name}:{block.lines[both[0]]}: this row of P is listed in"
                        f" {name_of(source.negative_ids or '')}",
                        "a row cannot be both a known positive and a known negative",
                    )
                codes[positive] = POSITIVE
            if negative_label is not None:
                codes[block.labels == negative_label] = NEGATIVE
            every.append(codes)
            for code in (POSITIVE, NEGATIVE, UNLABELED):
                chosen = np.flatnonzero(codes == code)
                alone = len(chosen) == len(block)
                self._add(code, block.rows if alone else block.rows.take(chosen))
        self.positives, self.negatives = (
            Rows.concatenate(self._parts.pop(code)) for code in (POSITIVE, NEGATIVE)
        )
        whole = np.concatenate([np.zeros(0, np.int8), *every])
        self._places = np.flatnonzero(whole == POSITIVE), np.flatnonzero(whole == NEGATIVE)
        self._outside = np.flatnonzero(whole)
        self._require_labels(labels)
        if self._stats is not None:
            for part in (self.positives, *self.unlabeled(), self.negatives):
                self._stats.add(part)

    def _require_labels(self, labels: set[float]) -> None:
        """Reject a labeled file without the labels that were asked for."""
        source, rows = self._input, self._rows
        if source.has_label and not len(self.positives):
            if not rows.is_text:
                raise rows.no_positive_row()
            shown = ", ".join(format_number(label) for label in sorted(labels)[:SHOWN_LABELS])
            raise DataError(
                f"{rows.name}: no row has the label {self._positive_labels}",
                f"labels in the file: {shown}",
            )
        if source.has_negative_label and not len(self.negatives):
            text = " or ".join(source.table.negative_labels)
            text = text or format_number(source.negative_label or 0.0)
            raise DataError(
                f"{rows.name}: no row has {text}, the label of known negatives",
                "correct `known_negatives='label=LABEL'`, or leave it out",
            )

    @property
    def _positive_labels(self) -> str:
        texts = " or ".join(self._input.table.positive_labels)
        return texts or format_number(self._input.positive_label or 0.0)

    def _nothing_unlabeled(self) -> DataError:
        source, name = self._input, self._rows.name
        if len(self.negatives):
            return DataError(
                f"{name}: every row is a known positive or negative; no unlabeled rows are left"
            )
        which = f"the label {self._positive_labels}"
        if source.positive_ids is not None:
            which = f"an id from {name_of(source.positive_ids)}"
        return DataError(f"{name}: every row has {which}; no unlabeled rows are left")

    @property
    def n_unlabeled(self) -> int:
        return self._index.n_rows - len(self._outside)

    @property
    def n_kept(self) -> int:
        return 0 if self._kept is None else self.summary_unl.n_nonzeros

    def unlabeled(self) -> Iterator[Rows]:
        if self._kept is not None:
            yield from self._kept
            return
        n_read, digest = 0, RowDigest()
        for block in self._rows.blocks(with_comments=False, workers=READING_THREADS):
            rows = block.rows
            first, last = np.searchsorted(self._outside, [n_read, n_read + len(rows)])
            if first < last:
                inside = np.ones(len(rows), bool)
                inside[self._outside[first:last] - n_read] = False
                rows = rows.take(np.flatnonzero(inside))
            n_read += len(block)
            digest.add(rows)
            yield rows
        if digest.digest() != self.summary_unl.digest():  # of another content of the same time
            raise changed(self._rows.name)

    def fetch_unlabeled(self, numbers: IntArray) -> Rows:
        if not len(numbers):
            return Rows.empty()
        if self._kept is not None or not self._rows.is_text:  # a whole table is read again
            return _chosen(self.unlabeled(), numbers)
        bounds, positions = self._index.spans(self._in_file(numbers))
        blocks = parse_spans(self._rows.source, bounds, zero_based=self._input.zero_based)
        return _chosen((block.rows for block in blocks), positions)

    @property
    def _n_rows(self) -> int:
        n_others = len(self.positives) + len(self.negatives)
        return self._index.n_rows + (0 if self._places is not None else n_others)

    def _in_file(self, numbers: IntArray) -> IntArray:
        """Return the positions of these rows of U in their file."""
        # row u of U follows every other row that has at most u rows of U before it
        before = self._outside - np.arange(len(self._outside))
        return numbers + np.searchsorted(before, numbers, "right")

    def _in_files(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the positions of P, U and known negatives, each in its own file."""
        unlabeled = self._in_file(np.arange(self.n_unlabeled))
        if self._places is None:
            return np.arange(len(self.positives)), unlabeled, np.arange(len(self.negatives))
        return self._places[0], unlabeled, self._places[1]

    @property
    def _order(self) -> IntArray:
        """The positions of P, U and known negatives in data order."""
        positive, unlabeled, negative = self._in_files()
        if self._places is None:
            unlabeled = len(positive) + unlabeled
            negative = len(positive) + len(unlabeled) + negative
        return np.concatenate([positive, unlabeled, negative])

    def _from_data_order(self, values: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
        """Reorder one value per row from data order to P, then U, then known negatives."""
        if len(values) != self._n_rows:
            raise DataError(
                f"{name}: {len(values):,} lines, but the data has {self._n_rows:,} rows",
                "expected one line per row: first P, then U, then known negatives, or in the order"
                " of `data`",
            )
        return values[self._order]

    def ids(self) -> list[str]:
        positive, unlabeled, negative = self._in_files()
        if tables := self._tables:  # tables may have dropped rows
            positive = tables[0].rows_of_file(positive)
            unlabeled = tables[-1].rows_of_file(unlabeled)
            if self._places is not None:
                negative = tables[0].rows_of_file(negative)
        numbers = map(str, (np.concatenate([positive, unlabeled, negative]) + 1).tolist())
        if not self._row_ids.ids:
            return list(numbers)
        return [row_id or number for row_id, number in zip(self._own_ids(), numbers, strict=True)]

    def _own_ids(self) -> list[str]:
        """Return the id of each row of P, U and known negatives; "" for a row without one."""
        ids = np.array(self._row_ids.ids, object)
        return list(self._from_data_order(ids, self._rows.name))

    def groups(self) -> IntArray | None:
        return self._groups

    @cached_property
    def _groups(self) -> IntArray | None:
        if self._input.groups is None:
            return None
        if self._input.groups == QID:
            names: npt.NDArray[Any] = np.concatenate(self._qids)
            if (names < 0).any():
                raise DataError(
                    f"{int((names < 0).sum()):,} rows have no qid to name their group",
                    "add a qid: to each row, or give a file of group names: `groups='FILE'`",
                )
        else:
            names = np.array(read_names(self._input.groups), object)
        ordered = self._from_data_order(names, self._input.groups)
        return np.unique(ordered, return_inverse=True)[1].reshape(-1)

    @cached_property
    def positive_weights(self) -> PositiveWeights | None:
        if self._weights is None:
            return None
        ids = None if self._input.positive_ids is None else self._row_ids
        values = self._weights.of_rows(len(self.positives), ids)
        return PositiveWeights.from_values(values, self._weights.name)

    @property
    def encoding(self) -> dict[str, Any] | None:
        if not self._tables:
            return None if self._fingerprints is None else self._fingerprints.content()
        first = self._tables[0]
        return replace(first.map, missing=first.missing).content()

    def require_tables(self) -> None:
        """Raise DataError unless P and U are tables, because only table rows can be annotated."""
        if not self._tables:
            raise DataError(f"{self._rows.name}: `annotate` needs a table with columns")

    def annotate(self, path: str, numbers: IntArray, results: dict[str, list[Any]]) -> None:
        """Copy these rows (numbered with P before U) to a table, with the results as columns."""
        from resvm_cli.data.predictions import write_annotated

        n_first = len(self.positives) if self._places is None else self._index.n_rows
        write_annotated(path, self._tables, self._order[numbers], n_first, results)

    def own_columns(self, names: Sequence[str], important: Sequence[str] = ()) -> list[str]:
        """Return the columns to show beside a ranking: these, or texts and important features."""
        for table in self._tables:
            for name in names:
                if name not in table.table.columns:
                    raise no_column(table.table, name, "show")
        if names and not self._tables:
            raise DataError(f"{self._rows.name}: `show` needs a table with columns")
        if names or not self._tables:
            return list(names)
        table = self._tables[0]
        texts = [column.name for column in table.map.columns if column.kind != "number"]
        features = [name.partition("=")[0] for name in important]
        others = [*(column.name for column in table.map.columns), *table.excluded]
        ranked = dict.fromkeys([*texts[:MAX_TEXTS], *features, *others])
        return [name for name in ranked if name in table.table.columns][:MAX_SHOWN]

    def texts(self, numbers: IntArray, names: Sequence[str]) -> dict[str, list[str]]:
        """Return these columns of rows (numbered with P before U) as text."""
        from resvm_cli.data.cell_values import texts_of

        texts = {name: [""] * len(numbers) for name in names}
        place_of = {row: place for place, row in enumerate(self._order[numbers].tolist())}
        n_first = len(self.positives) if self._places is None else self._index.n_rows
        for table, first in zip(self._tables, (0, n_first), strict=False):
            number = first
            for block, kept in table.cells():
                rows = [(row, place_of.get(number + at)) for at, row in enumerate(kept.tolist())]
                number += len(rows)
                for name in names:
                    cells = texts_of(block.columns[table.table.columns.index(name)])
                    for row, place in rows:
                        if place is not None:
                            texts[name][place] = cells[row]
        return texts

    def _add_notes(self) -> None:
        """Add notes on columns and on sets that seem to be swapped, or to share rows."""
        if tables := self._tables:
            self.notes += notes.notes_on_training(tables, known=self._extremes is None)
            if self._extremes is not None:
                if text := notes.remark_on_categories(tables[0]):
                    self._run.note(text)
                self.notes += notes.give_answer_away(tables[0].map.columns, *self._extremes)
        found: list[str | None] = []
        labels = math.nan, math.nan
        if self._input.positives is not None:
            labels = self._highest_label_pos, self._lowest_label_unl
            names = name_of(self._input.positives), self._rows.name
            sets = zip(names, (self.summary_pos, self.summary_unl), strict=True)
            found.append(notes.off_by_one([(name, s.min_index, s.max_index) for name, s in sets]))
        found.append(notes.swapped(len(self.positives), self.n_unlabeled, *labels))
        found += self._notes_on_shared_rows()
        self.notes += filter(None, found)
        source = self._rows.source
        if source.spooled_to_disk:
            self._run.note(
                f"{source.name} was spooled to a temporary file"
                f" ({source.spooled_bytes:,} bytes) so that it can be read twice"
            )

    def _notes_on_shared_rows(self) -> Iterator[str | None]:
        n_pos, n_known = len(self.positives), len(self.positives) + self.n_unlabeled
        ids = self._own_ids() if any(self._row_ids.ids) else []
        known = set(filter(None, ids[:n_pos] + ids[n_known:]))
        if n_shared := sum(row_id in known for row_id in ids[n_pos:n_known]):
            what = "a row of P or a known negative" if len(self.negatives) else "a row of P"
            yield f"{n_shared:,} rows of U have the id of {what}; leave them out of U"
        elif self._input.negative_rows is not None:
            tested = RepeatedRows(self.negatives)
            for rows in self.unlabeled():
                tested.add(rows)
            if tested.n_repeated:
                yield (
                    f"{tested.n_repeated:,} rows of U are identical to a known negative: they were"
                    " tested, but are ranked again; leave them out of U"
                )
        if self._repeated is None and self._kept is not None and not self._input.precomputed:
            self._repeated = RepeatedRows(self.positives)
            for rows in self._kept:
                self._repeated.add(rows)
        if self._repeated is not None:
            yield self._repeated.note()


def _chosen(blocks: Iterable[Rows], numbers: IntArray) -> Rows:
    """Return the rows with these ascending numbers, counted across all blocks."""
    parts: list[Rows] = []
    n_before = 0
    for rows in blocks:
        first, last = np.searchsorted(numbers, [n_before, n_before + len(rows)])
        if first < last:
            parts.append(rows.take(numbers[first:last] - n_before))
        n_before += len(rows)
    return Rows.concatenate(parts)
