"""Score blocks of rows with a model, and note what looks wrong about the rows.

Blocks are scored in local threads or on cluster workers. Notes point out rows that the model was
trained on, rows with features out of range, and rows unlike the training data.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli.errors import DataError, Message, ParameterError, Text, listed
from resvm_cli.files.predictions import FormatName, PredictionBlock, format_block
from resvm_cli.files.streams import name_of
from resvm_cli.files.svmlight import Block
from resvm_cli.model.decisions import are_unlike, is_beyond_chance, is_other_share, usual_range
from resvm_cli.model.ensemble import Decisions, Predictor
from resvm_cli.model.pu_data import SAMPLE_ROWS
from resvm_cli.model.scaling import FeatureRanges
from resvm_cli.model_files.directory import StoredModel
from resvm_cli.parameters import RuleName
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, RowDigest, Rows, distinct
from resvm_cli.svm import kernels
from resvm_cli.tables.inputs import RowInput

if TYPE_CHECKING:
    from resvm_cli.metrics.class_mixture import ClassMixture
    from resvm_cli.tables.encoding import TableReading

# A row is far from every support vector if all of them together add less than this fraction of rho.
NEGLIGIBLE = 1e-3
# A few rows with features unseen in training do not mean that all the data is different.
FRACTION_NEW = 0.01
SHOWN = 10  # features
SETS = ("positive", "unlabeled", "negative")  # keys in a manifest; the last is optional


@dataclass(frozen=True)
class PredictRequest:
    """The rows to predict, the model to use, and what to write."""

    model: str
    source: str = "-"
    target: str = "-"
    form: FormatName = "text"
    threshold: float | None = None  # None: the model's own
    recall: float | None = None  # choose a threshold that reaches this recall of P
    decision: RuleName | None = None  # None: the model's own
    contamination_pos: float | None = None  # None: 0 if ``recall`` is set, else estimated
    contamination_unl: float | None = None  # for probability; None: estimated
    votes: bool = False
    member_values: bool = False
    probability: bool = False
    ids: bool = False
    zero_based: bool = False
    table: TableReading | None = None  # how to read a table, if specified
    annotate: str | None = None  # where to write the table with its predictions

    def check(self) -> None:
        """Reject table parameters that cannot work, before any file is read."""
        if self.table is not None:
            self.table.check()
            if self.table.roles.missing == "drop":
                raise ParameterError(
                    "{missing:drop} cannot be used here: every row is predicted",
                    "fill in missing values: {missing:zero}",
                )
        if self.annotate is not None:
            from resvm_cli.tables.encoding import check_annotated

            check_annotated(self.annotate)


@dataclass(frozen=True, eq=False)
class ScoredBlock:
    """A scored block of rows with its output, as returned by a worker."""

    predictions: PredictionBlock
    text: bytes
    n_new_features: int  # rows with features absent from the training data
    n_unlike: int  # rows unlike the training rows
    outside: dict[int, int]  # rows outside the training range, by feature


@dataclass(frozen=True, eq=False)
class BlockScorer:
    """Scores blocks of rows, in this process or in others."""

    request: PredictRequest
    model: StoredModel
    decision: RuleName
    threshold: float
    classes: ClassMixture | None = None  # to compute the column probability

    @cached_property
    def usual(self) -> tuple[float, float] | None:
        """The range of out-of-bag mean values, without the tails; None if it is unknown."""
        table = self.model.out_of_bag
        means = None if table is None or self.model.ensemble.single else table.by("mean")
        return None if means is None else usual_range(*means)

    @cached_property
    def predictor(self) -> Predictor:
        return Predictor(self.model.ensemble)

    def __getstate__(self) -> dict[str, Any]:
        computed = ("predictor", "_rho", "_ranges")
        return {name: value for name, value in self.__dict__.items() if name not in computed}

    def score(self, block: Block) -> ScoredBlock:
        if self.model.ensemble.is_precomputed:
            self._require_kernel_values(block)
        member_values = self.predictor.member_values(block.rows)
        decisions = self.predictor.decide(member_values)
        bad = np.flatnonzero(~np.isfinite(decisions.sums))
        if len(bad):
            raise DataError(
                f"{self._location(block, bad)}: the row's decision value is not finite",
                "its features are far from the training data; scale both in the same way",
            )
        predictions = self._predictions(decisions, member_values, block)
        n_new = 0
        if block.rows.max_index > self.model.last_feature:
            new = block.rows.indices > self.model.last_feature
            n_new = len(distinct(block.rows.row_numbers[new]))
        return ScoredBlock(
            predictions,
            format_block(self.request.form, predictions),
            n_new,
            self._count_unlike(decisions, member_values),
            {} if self._ranges is None else self._ranges.count_outside(block.rows),
        )

    @cached_property
    def _ranges(self) -> FeatureRanges | None:
        return FeatureRanges.from_scalings(self.model.ensemble.scalings.values())

    @cached_property
    def _rho(self) -> FloatArray:
        """The rho of each rbf member, else nan; far from all support vectors, the value is -rho."""
        ensemble = self.model.ensemble
        rho = np.full(len(ensemble.members), np.nan)
        for group in ensemble.groups:
            if group.kernel.name == "rbf":
                rho[group.columns] = [member.rho for member in ensemble.members[group.columns]]
        return rho

    def _count_unlike(self, decisions: Decisions, member_values: FloatArray) -> int:
        """Count rows outside the usual range or far from every support vector."""
        if self.usual is None:
            return 0
        low, high = self.usual
        unlike = (decisions.means < low) | (decisions.means > high)
        counts = np.fmax.reduce(np.abs(member_values + self._rho), axis=1)
        unlike |= counts < NEGLIGIBLE * np.fmax.reduce(np.abs(self._rho))
        return int(np.count_nonzero(unlike))

    def _require_kernel_values(self, block: Block) -> None:
        """Reject rows without a serial number, which LIBSVM requires but prediction ignores."""
        unnumbered = np.setdiff1d(np.arange(len(block)), kernels.rows_with_serial(block.rows))
        if len(unnumbered):
            raise DataError(
                f"{self._location(block, unnumbered)}: the model has a precomputed kernel, but the"
                " row has no index 0",
                f"{kernels.ROW_FORMAT}; for prediction, any serial number will do",
            )

    def _location(self, block: Block, rows: IntArray) -> str:
        """Return the file and line of the first of these rows."""
        return f"{name_of(self.request.source)}:{block.lines[rows[0]]}"

    def _predictions(
        self, decisions: Decisions, member_values: FloatArray, block: Block
    ) -> PredictionBlock:
        request, values = self.request, decisions.by(self.decision)
        chances = None
        if request.probability:
            chances = np.full(len(values), np.nan)
            if self.classes is not None:
                chances = self.classes.probability(values)
        return PredictionBlock(
            labels=decisions.labels(self.threshold, self.decision),
            decision_values=values,
            votes=decisions.votes if request.votes else None,
            member_values=member_values if request.member_values else None,
            ids=block.comments,
            probability=chances,
        )


class InputNotes:
    """Counts what looks wrong about the rows, block by block, and describes it at the end."""

    def __init__(self, scorer: BlockScorer, rows: RowInput) -> None:
        self._request, self._decision = scorer.request, scorer.decision
        self._model = scorer.model
        self._rows = rows
        self._training_sets = _TrainingSets(scorer.model)
        self._outside: Counter[int] = Counter()  # rows outside the range of each feature
        self._n_new = self._n_named = self._n_unlike = 0
        self.n_rows = 0

    def add(self, block: Block, scored: ScoredBlock) -> None:
        self.n_rows += len(block)
        self._training_sets.add(block)
        self._outside.update(scored.outside)
        self._n_new += scored.n_new_features
        self._n_named += sum(map(bool, block.comments or ()))
        self._n_unlike += scored.n_unlike

    @property
    def n_unlike(self) -> int:
        """How many rows are unlike the training rows in their decision values or in one feature."""
        return max([self._n_unlike, *self._beyond().values()])

    def texts(self, n_positive: int) -> Iterator[Text]:
        """Yield the notes; ``n_positive`` rows are predicted positive."""
        model, n_rows = self._model, self.n_rows
        if sets := self._training_sets.found():
            yield (
                f"the model was trained on these rows ({' and '.join(sets)}), so their values are"
                " optimistic; resvm rank scores each row only with members that have not seen it"
            )
        if self._n_new > FRACTION_NEW * n_rows:
            yield (
                f"{self._n_new:,} of {n_rows:,} rows have feature indices above"
                f" {model.last_feature}, the largest in training"
            )
        if beyond := self._beyond():
            features = listed([f"{name} in {count:,}" for name, count in beyond.items()], SHOWN)
            yield (
                f"values outside the range of the training rows: {features} of {n_rows:,} rows;"
                " check that columns and units match the training data"
            )
        if are_unlike(self._n_unlike, n_rows):
            yield (
                f"{self._n_unlike:,} of {n_rows:,} rows are unlike the training rows: their"
                " decision values lie outside the range of 99 % of the out-of-bag values, or they"
                " are far from every support vector; check that they were preprocessed in the same"
                " way"
            )
        if self._request.threshold is None and self._request.recall is None and not sets:
            yield from self._share_note(n_positive)
        if self._request.ids and not self._n_named:
            yield self._no_ids()
        if self._rows.features is not None:
            from resvm_cli.tables.notes import notes_on_prediction

            yield from notes_on_prediction(self._rows.features)

    def _beyond(self) -> dict[str, int]:
        """Return the features that are out of range in too many rows, with the number of rows."""
        model = self._model
        n_trained = min(model.manifest["data"]["unlabeled"]["rows"], SAMPLE_ROWS)
        names = None if model.encoding is None else model.encoding.names
        return {
            str(feature) if names is None else names[feature - 1]: count
            for feature, count in sorted(self._outside.items())
            if are_unlike(count, self.n_rows)
            and is_beyond_chance(count, self.n_rows, n_trained, model.last_feature + 1)
        }

    def _share_note(self, n_positive: int) -> Iterator[Text]:
        """Yield a note if unusually many or few rows exceed the model's own threshold."""
        model = self._model
        threshold = model.decision.thresholds[self._decision]
        table = None if model.out_of_bag is None else model.out_of_bag.by(self._decision)
        if threshold.share is None or threshold.recall is None or table is None:
            return
        n_pos, n_unl = (model.manifest["data"][which]["rows"] for which in SETS[:2])
        # the square root of a count has a standard deviation of about 1/2
        n_scored = max(1, len(table[1]))
        root = math.sqrt(threshold.share * n_scored)
        low = max(0.0, root - 1.0) ** 2 / n_scored
        # rows may resemble U, or P and U together
        both = (threshold.recall * n_pos + threshold.share * n_unl) / (n_pos + n_unl)
        high = max(min(1.0, (root + 1.5) ** 2 / n_scored), both)
        if is_other_share(n_positive, self.n_rows, low, high):
            yield (
                f"{100 * n_positive / self.n_rows:.3g} % of the rows are predicted positive, but in"
                f" training {100 * threshold.share:.3g} % of U and {100 * both:.3g} % of P and U"
                " together were; unless you expect this, check that columns and units match the"
                " training data"
            )

    def _no_ids(self) -> Text:
        if self._rows.is_text:
            return "no row has a trailing comment (# name) to use as its id"
        if self._rows.features is None:
            return "a sparse matrix has no row ids"
        return Message("no row has an id; name the column that contains ids: {id_column:NAME}")


class _TrainingSets:
    """Uses digests to detect whether a file contains the rows that the model was trained on.

    Computing digests takes about a tenth as long as parsing, and stops after as many rows as the
    model was trained on. If P and U came from one table, or from one file and a list of ids, their
    labels are unknown here. Such a file is recognized if its numbers of rows and nonzero values
    match and many of its first rows are support vectors.
    """

    def __init__(self, model: StoredModel) -> None:
        data = model.manifest["data"]
        self._sets = {which: data[which] for which in SETS if which in data}
        self._ensemble = model.ensemble
        self._label = model.manifest["labels"]["trained_on"]  # label of P in a labeled file
        self._max_rows = sum(each["rows"] for each in self._sets.values())
        self._n_rows = self._n_values = 0
        self._first: Rows | None = None
        self._digests = {True: RowDigest(), False: RowDigest()}

    def add(self, block: Block) -> None:
        self._n_rows += len(block)
        if self._n_rows > self._max_rows:
            return
        rows = block.rows.without_zeros()
        self._n_values += len(rows.values)
        self._first = rows if self._first is None else self._first
        known = None if self._label is None else block.labels == self._label
        if known is None or not known.any():
            self._digests[False].add(block.rows)
            return
        for kind, digest in self._digests.items():
            digest.add(block.rows.take(np.flatnonzero(known == kind)))

    def found(self) -> list[str]:
        """Return which of P and U the file contains, if it contains no other rows."""
        if self._n_rows > self._max_rows:
            return []
        digests = {each.digest() for each in self._digests.values() if each.n_rows}
        found = [
            letter
            for letter, each in zip("PU", self._sets.values(), strict=False)
            if each["sha256"] in digests
        ]
        return found or (["P", "U"] if self._is_whole() else [])

    def _is_whole(self) -> bool:
        """Whether the file seems to contain exactly the training rows."""
        rows, ensemble = self._first, self._ensemble
        counts = [each.get("nonzeros") for each in self._sets.values()]
        if rows is None or None in counts or self._n_rows != self._max_rows:
            return False
        if self._n_values != sum(counts) or ensemble.is_precomputed:
            return False
        for group in ensemble.groups:
            members = ensemble.members[group.columns]
            if members[0].weights is not None:
                continue  # linear members do not store support vectors
            numbers = distinct(np.concatenate([member.support for member in members]))
            support = ensemble.pool.take(numbers).content_hashes()
            own = ensemble.scaled(rows, group).content_hashes()
            if len(distinct(own)) < 0.9 * len(own):
                return False  # with many duplicates, other data may match too
            expected = 0.5 * len(distinct(support)) * len(rows) / self._n_rows
            return bool(np.isin(own, support).sum() >= max(1, expected))
        return False
