"""The files of P, U and known negatives: how they are specified and opened, and their rows.

A member needs only n_unl rows of U. The first pass records file offsets in constant memory; later
passes fetch the drawn rows. A small U stays in memory instead.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli.errors import DataError, Message, ParameterError
from resvm_cli.files.sources import RowIndex, Source, join_texts
from resvm_cli.files.streams import PIECE, STDIN, name_of, same_source
from resvm_cli.files.svmlight import Block, format_number, parse_pieces
from resvm_cli.model.out_of_bag import EqualRows
from resvm_cli.parameters import KernelName, ScaleChoice
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, IntArray, Rows
from resvm_cli.svm import kernels
from resvm_cli.tables.encoding import ColumnRoles, FeatureMap, TableReading
from resvm_cli.tables.inputs import RowInput, share_roles

if TYPE_CHECKING:
    import numpy.typing as npt

    from resvm_cli.tables.features import TableFeatures

QID = "qid"
# U stays in memory after the first pass if it has at most this many nonzeros: about 50 MB.
KEPT_NONZEROS = 1 << 22
KEPT_BYTES = 12  # per nonzero of a row in memory: an index and a value
FRACTION_FOR_ROWS = 8  # at most 1/8 of a memory limit goes to rows of U that stay in memory
READING_THREADS = 2


@dataclass(frozen=True)
class TrainingInput:
    """The files of P and U (two files, or one labeled file) and how to read them."""

    positives: str | None = None
    unlabeled: str | None = None
    data: str | None = None
    positive_label: float | None = None
    zero_based: bool = False
    features: int | None = None
    scale: ScaleChoice | None = None
    groups: str | None = None  # a file with one group name per row, or "qid"
    weights: str | None = None  # a file with the confidence in each row of P
    positive_ids: str | None = None  # with data: a file of the ids of P, instead of a label
    known_negatives: str | None = None  # a file of known negatives
    negative_label: float | None = None  # with data: the label of known negatives
    negative_ids: str | None = None  # with data: a file of the ids of known negatives
    ids_file: str | None = None  # a file of all row ids; None: ids are trailing comments
    allow_missing: bool = False  # accept listed ids that no row has
    drop_repeated: bool = False  # drop rows of U that duplicate a known row
    keep_ids: bool = False
    precomputed: bool = False  # rows are kernel values; index 0 holds their serial number
    table: TableReading = field(default_factory=TableReading)  # how to read tables
    encoding: FeatureMap | None = None  # of a stored model: how columns become features

    def check(self) -> None:
        """Reject missing or contradictory inputs before any file is read."""
        if self.features is not None and self.features < 1:
            raise ParameterError("{features} must be at least 1, got {value}", value=self.features)
        self.table.check()
        for is_broken, problem, advice in self._rules():
            if is_broken:
                raise ParameterError(
                    problem,
                    advice or None,
                    column=shlex.quote(self.table.roles.label or ""),
                    name=name_of(self.positives or ""),
                )

    def _rules(self) -> Iterator[tuple[bool, str, str]]:
        """Yield for each rule whether it is broken, the error message, and advice, if any."""
        yield from self._rules_for_two_files() if self.data is None else self._rules_for_data()
        listed = self.positive_ids is not None or self.negative_ids is not None
        unused = self.allow_missing and not listed
        yield unused, "{allow_missing:True} requires {positive_ids}", ""
        uses_ids = listed or self.keep_ids or self.drop_repeated
        yield self.ids_file is not None and not uses_ids, "{ids_file} requires {positive_ids}", ""
        paths = (
            *(self.positives, self.unlabeled, self.data),
            *(self.positive_ids, self.ids_file, self.weights),
            *(self.known_negatives, self.negative_ids),
        )
        n_stdin = [name_of(path) for path in paths if path].count(name_of(STDIN))
        yield n_stdin > 1, "only one input can be stdin", ""

    def _rules_for_data(self) -> Iterator[tuple[bool, str, str]]:
        """Yield the rules for one labeled file."""
        roles = self.table.roles
        advice = "with {data}, give {negative_label} or {negative_ids}"
        problem = "{known_negatives} requires {positives} and {unlabeled}"
        yield self.known_negatives is not None, problem, advice
        both = self.has_negative_label and self.negative_ids is not None
        yield both, "give either {negative_label} or {negative_ids}, not both", ""
        alone = self.has_negative_label and not self.has_label
        yield alone, "{negative_label} needs {positive_label}", ""
        same = self.positive_label is not None and self.positive_label == self.negative_label
        same = same or bool(set(roles.positive_labels) & set(roles.negative_labels))
        yield same, "{positive_label} and {negative_label} are the same label", ""
        both = self.positives is not None or self.unlabeled is not None
        yield both, "give either {data}, or {positives} and {unlabeled}, not both", ""
        unknown = not self.has_label and self.positive_ids is None
        advice = "say which labels are positive: {label_column:{column}} {positive_label:LABEL}"
        yield unknown and roles.label is not None, "{label_column} needs {positive_label}", advice
        advice = "say which rows are positive: {data:train.svm} {positive_label:1}"
        yield unknown, "{data} needs {positive_label} or {positive_ids}", advice
        both = self.has_label and self.positive_ids is not None
        yield both, "give either {positive_label} or {positive_ids}, not both", ""

    def _rules_for_two_files(self) -> Iterator[tuple[bool, str, str]]:
        """Yield the rules for a file of P and a file of U."""
        advice = "if a file contains only known negatives, give it as {known_negatives}"
        yield self.has_negative_label, "{negative_label} requires {data}", advice
        yield self.negative_ids is not None, "{negative_ids} requires {data}", advice
        yield self.has_label, "{positive_label} requires {data}", ""
        advice = "if a file contains only known positives, give it as {positives}"
        yield self.positive_ids is not None, "{positive_ids} requires {data}", advice
        advice = (
            "give {positives:pos.svm} {unlabeled:unl.svm}, or {data:train.svm} {positive_label:1}"
        )
        yield self.positives is None, "{positives} (known positives) is missing", advice
        yield self.unlabeled is None, "{unlabeled} (unlabeled rows) is missing", advice
        same = same_source(self.positives or "", self.unlabeled or "")
        advice = "known positives and unlabeled rows must be in two different files"
        yield same, "{positives} and {unlabeled} are the same file: {name}", advice

    @property
    def has_label(self) -> bool:
        """Whether a label marks the known positives; only a table can have text labels."""
        return self.positive_label is not None or bool(self.table.roles.positive_labels)

    @property
    def has_negative_label(self) -> bool:
        """Whether a label marks the known negatives."""
        return self.negative_label is not None or bool(self.table.roles.negative_labels)

    def for_kernel(self, name: KernelName) -> TrainingInput:
        """Return the input for this kernel, without automatic scaling if it would do harm."""
        kernel = kernels.Kernel(name)
        if kernel.is_precomputed and self.scale not in (None, "auto"):
            raise ParameterError(
                "{scale:" + self.scale + "} does not apply to {kernel:precomputed}: rows contain"
                " kernel values, not features",
                "leave {scale} out; scale the features before computing the kernel",
            )
        scale = None if self.scale == "auto" and not kernel.takes_scaling else self.scale
        return replace(
            self,
            scale=scale,
            zero_based=self.zero_based or kernel.is_precomputed,
            precomputed=kernel.is_precomputed,
        )


@dataclass(frozen=True, eq=False)
class RowSets:
    """The rows of P, U and known negatives, in one labeled file or in a separate file each."""

    n_file: int  # number of rows in the file that contains U
    n_pos: int
    n_neg: int = 0
    # with one labeled file: which of its rows are in P, and which are known negatives
    known: tuple[BoolArray, BoolArray] | None = None
    left_out: BoolArray | None = None  # which rows of the file of U are dropped from U

    @property
    def n_unlabeled(self) -> int:
        n_left_out = 0 if self.left_out is None else int(np.count_nonzero(self.left_out))
        n_known = 0 if self.known is None else self.n_pos + self.n_neg
        return self.n_file - n_known - n_left_out

    @property
    def n_rows(self) -> int:
        return self.n_file if self.known is not None else self.n_pos + self.n_file + self.n_neg

    @cached_property
    def outside(self) -> BoolArray | None:
        """A mask of the rows in the file of U that are not in U; None if all rows are in U."""
        if self.known is None:
            return self.left_out
        outside = self.known[0] | self.known[1]
        return outside if self.left_out is None else outside | self.left_out

    def rows_of_file(self, numbers: IntArray) -> IntArray:
        """Return the positions of these rows of U in their file."""
        if self.outside is None:
            return numbers
        outside = np.flatnonzero(self.outside)
        # row u of U follows every other row that has at most u rows of U before it
        before = outside - np.arange(len(outside))
        return numbers + np.searchsorted(before, numbers, "right")

    def in_files(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the row numbers of P, U and known negatives within the files that contain them."""
        unlabeled = self.rows_of_file(np.arange(self.n_unlabeled))
        if self.known is None:
            return np.arange(self.n_pos), unlabeled, np.arange(self.n_neg)
        positive, negative = self.known
        return np.flatnonzero(positive), unlabeled, np.flatnonzero(negative)

    @property
    def order(self) -> IntArray:
        """The positions of P, U and known negatives among all rows of the data."""
        positive, unlabeled, negative = self.in_files()
        if self.known is None:
            unlabeled = self.n_pos + unlabeled
            negative = self.n_pos + self.n_file + negative
        return np.concatenate([positive, unlabeled, negative])

    def in_order(self, values: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
        """Reorder one value per row from data order to P, then U, then known negatives."""
        if len(values) != self.n_rows:
            raise DataError(
                f"{name}: {len(values):,} lines, but the data has {self.n_rows:,} rows",
                Message("expected one line per row: first P, then U, or in the order of {data}"),
            )
        return values[self.order]


class SerialNumbers:
    """Checks serial numbers of precomputed kernel rows: each when read, the largest at the end."""

    def __init__(self) -> None:
        self._largest, self._location = 0, ""

    def check(self, block: Block, name: str) -> None:
        """Reject rows without a serial number."""
        if wrong := kernels.wrong_serials(block.rows):
            row, fault = wrong[0]
            raise DataError(f"{name}:{block.lines[row]}: {fault}", kernels.ROW_FORMAT)
        numbers = kernels.serials(block.rows)
        last = int(numbers.argmax())
        if numbers[last] > self._largest:
            self._largest, self._location = int(numbers[last]), f"{name}:{block.lines[last]}"

    def require_below(self, n_features: int) -> None:
        if self._largest >= n_features:
            raise DataError(
                f"{self._location}: the serial number is {self._largest:,}, but rows have only"
                f" {n_features - 1:,} kernel values",
                kernels.ROW_FORMAT,
            )


def require_not_positive(
    name: str, negatives: Block, positives: Rows, ids: Sequence[str], precomputed: bool
) -> None:
    """Reject a known negative with the id of a row of P or, if either has none, the same content.

    ``ids`` lists the ids of all rows, P first and known negatives last.
    """
    of_pos, own = ids[: len(positives)], ids[len(ids) - len(negatives) :]
    row_of = {row_id: row for row, row_id in enumerate(of_pos) if row_id}
    pairs = [(row, row_of[row_id]) for row, row_id in enumerate(own) if row_id in row_of]
    equal = EqualRows.find(negatives.rows, [positives], precomputed=precomputed)
    for content, of_p in zip(equal.found.tolist(), equal.numbers.tolist(), strict=True):
        for row in np.flatnonzero(equal.contents == content).tolist():
            if not (own[row] and of_pos[of_p]):  # different molecules may have identical features
                pairs.append((row, of_p))
    if pairs:
        row, of_p = min(pairs)
        which = f"'{own[row]}'" if own[row] else f"row {of_p + 1:,}"
        raise DataError(
            f"{name}:{negatives.lines[row]}: this known negative is also in P, as {which}",
            "a row cannot be both: remove it from the known negatives or from P",
        )


def require_both_sets(
    source: TrainingInput, rows: RowInput, sets: RowSets, labels: Collection[float]
) -> None:
    """Reject data without rows in P, in U, or among the requested known negatives."""
    wanted = " or ".join(source.table.roles.positive_labels)
    if source.positive_label is not None and not wanted:
        wanted = format_number(source.positive_label)
    if source.has_label and not sets.n_pos:
        if not rows.is_text:
            raise rows.no_positive_row()
        there = ", ".join(format_number(label) for label in sorted(labels)[:20])
        raise DataError(
            f"{rows.name}: no row has the label {wanted}", f"labels in the file: {there}"
        )
    if source.has_negative_label and not sets.n_neg:
        text = " or ".join(source.table.roles.negative_labels)
        text = text or format_number(source.negative_label or 0.0)
        raise DataError(
            f"{rows.name}: no row has {text}, the label of known negatives",
            Message("correct {negative_label}, or leave it out"),
        )
    if not sets.n_unlabeled and sets.n_neg:
        raise DataError(
            f"{rows.name}: every row is a known positive or negative; no unlabeled rows are left"
        )
    if not sets.n_unlabeled:
        which = f"the label {wanted}"
        if source.positive_ids is not None:
            which = f"an id from {name_of(source.positive_ids)}"
        raise DataError(f"{rows.name}: every row has {which}; no unlabeled rows are left")


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
        return RowInput(source, table, zero_based=self._input.zero_based)

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
    """The file that contains U and, if only one labeled file is given, all other rows."""

    def __init__(self, rows: RowInput, source: TrainingInput, max_kept: float) -> None:
        """Rows of U stay in memory if they have at most ``max_kept`` nonzeros in total."""
        self.rows = rows
        self.name = rows.name
        self._zero_based = source.zero_based
        self._index = RowIndex()
        self._max_kept = max_kept
        self.kept: list[Rows] | None = []  # None: U is read again

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
        """Keep these rows of U in memory, or none at all if U has too many nonzeros."""
        if self.kept is not None:
            self.kept.append(rows)
            if n_nonzeros > self._max_kept:
                self.kept = None

    def unlabeled(self, sets: RowSets) -> Iterator[Rows]:
        """Yield all rows of U again, in order, in blocks."""
        if self.kept is not None:
            yield from self.kept
            return
        read = 0
        for block in self.rows.blocks(with_comments=False, workers=READING_THREADS):
            rows = block.rows
            if sets.outside is not None:
                rows = rows.take(np.flatnonzero(~sets.outside[read : read + len(rows)]))
            read += len(block)
            yield rows
        if read != self.n_rows:
            raise self._changed()

    def fetch(self, numbers: IntArray, sets: RowSets) -> Rows:
        """Return the rows of U with these numbers, which must be ascending."""
        if self.kept is not None:
            if len(self.kept) != 1:
                self.kept = [Rows.concatenate(self.kept)]
            return self.kept[0].take(numbers)
        if not len(numbers):
            return Rows.empty()
        if not self.rows.is_text:  # the whole table is read again
            return _chosen(self.unlabeled(sets), numbers)
        bounds, positions = self._index.spans(sets.rows_of_file(numbers))
        texts = join_texts(self.rows.source.spans(bounds), PIECE)
        blocks = parse_pieces(texts, self.name, zero_based=self._zero_based)
        rows = _chosen((block.rows for block in blocks), positions)
        if len(rows) != len(numbers):
            raise self._changed()
        return rows

    def _changed(self) -> DataError:
        return DataError(f"{self.name}: changed while it was being read", "try again")


def max_kept(limit_mb: float | None) -> float:
    """Return how many nonzeros of U may stay in memory after reading."""
    limit = math.inf if limit_mb is None else limit_mb * 1e6
    return min(KEPT_NONZEROS, limit / FRACTION_FOR_ROWS / (2 * KEPT_BYTES))


def _chosen(blocks: Iterable[Rows], numbers: IntArray) -> Rows:
    """Return the rows with these ascending numbers, counted across all blocks."""
    parts: list[Rows] = []
    before = 0
    for rows in blocks:
        first, last = np.searchsorted(numbers, [before, before + len(rows)])
        parts.append(rows.take(numbers[first:last] - before))
        before += len(rows)
    return Rows.concatenate(parts)
