"""The interface to P and U for training, tuning and ranking, with an in-memory implementation.

P is small and stays in memory. U is read in blocks or by row number. The same rows give the same
model whether they come from files or from memory.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli import randomness
from resvm_cli.data import notes
from resvm_cli.data.scaling import FeatureStats, LinearScaling, QuantileScaling, Scaling
from resvm_cli.errors import DataError
from resvm_cli.parameters import ScaleChoice, ScalingName
from resvm_cli.records import dataclass
from resvm_cli.rows import DataSummary, FloatArray, Hashes, IntArray, Rows, distinct, variance
from resvm_cli.svm import kernels

if TYPE_CHECKING:
    import numpy.typing as npt

SAMPLE_ROWS = 10_000  # rows of P and rows of U from which quantiles and bins are learned
KEPT_BYTES = 12  # per nonzero of a row in memory: an index and a value
REFERENCE_ROWS = 2000  # rows of U whose duplicates are counted, to see how common they are
FIRST_BITS = 18
SHIFT = np.uint64(64 - FIRST_BITS)
MIN_WEIGHTED = 2  # rows of P with positive weight: with only one, all bags would be the same


@dataclass(frozen=True, eq=False)
class PositiveWeights:
    """How certain each label in P is, from 0 to 1; rows are drawn in proportion to this weight."""

    values: FloatArray  # empty if loaded from a manifest, which stores only a digest

    @classmethod
    def from_values(cls, values: npt.ArrayLike, name: str = "weights") -> PositiveWeights | None:
        """Check the weights; return None if all are equal, which is the same as no weights."""
        weights = np.asarray(values, np.float64)
        wrong = np.flatnonzero(~((weights >= 0) & (weights <= 1)))
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"{name}: the weight of row {row + 1:,} of P is {weights[row]:g},"
                " but weights must be from 0 to 1"
            )
        return cls._proportions(weights, name, "give a weight of 1 to positives that are certain")

    @classmethod
    def _proportions(cls, weights: FloatArray, name: str, hint: str) -> PositiveWeights | None:
        n_drawn = int((weights > 0).sum())
        if not n_drawn:
            raise DataError(f"{name}: all weights are 0, so no row of P can be drawn", hint)
        if (weights == weights[0]).all():
            return None
        if n_drawn < MIN_WEIGHTED:
            raise DataError(
                f"{name}: only one row of P has a weight above 0, so every bag would contain only"
                " that row",
                hint,
            )
        return cls(weights)

    def take(self, numbers: IntArray) -> PositiveWeights | None:
        """Return the weights of the given rows."""
        hint = "use fewer folds, or score out of bag (`oob=True`)"
        return self._proportions(self.values[numbers], "weights of the remaining rows", hint)

    @property
    def digest(self) -> str:
        """A digest for the manifest: redrawing the bags requires the same weights."""
        return hashlib.sha256(self.values.astype("<f8").tobytes()).hexdigest()

    @cached_property
    def _ends(self) -> FloatArray:
        return np.cumsum(self.values)

    def chosen(self, fractions: FloatArray) -> IntArray:
        """Return the first rows whose cumulative weights exceed these fractions of the total."""
        numbers = np.searchsorted(self._ends, fractions * self._ends[-1], "right")
        # the product may round up to the total weight
        last = int(np.flatnonzero(self.values)[-1])
        chosen: IntArray = np.minimum(numbers, last)
        return chosen


class RepeatedRows:
    """Finds rows of U that are also in P; rows without features do not count.

    Duplicates are common in some data, so those of the first rows of U are counted for comparison.
    """

    n_repeated = 0  # rows of U that are in P

    def __init__(self, positives: Rows) -> None:
        hashes = positives.content_hashes()
        self._n_own = len(hashes)
        self._known = _HashSet(hashes)
        self._copies = np.bincount(self._known.places(hashes)[1], minlength=len(self._known))
        self._found = np.zeros(len(self._known), bool)
        self._reference: _HashSet | None = None
        self._sightings = np.zeros(0, np.int64)

    def add(self, rows: Rows) -> None:
        """Add a block of U."""
        hashes = rows.content_hashes()
        if self._reference is None:
            self._reference = _HashSet(hashes[:REFERENCE_ROWS])
            self._sightings = np.zeros(len(self._reference), np.int64)
        found, places = self._known.places(hashes)
        self._found[places] = True
        self.n_repeated += len(found)
        np.add.at(self._sightings, self._reference.places(hashes)[1], 1)

    def note(self) -> str | None:
        """Return a note if more rows of P are in U than duplicates in the data explain."""
        n_found = int(self._copies[self._found].sum())
        usual = max(_fraction_repeated(self._copies), _fraction_repeated(self._sightings))
        return notes.in_both(n_found, self._n_own, self.n_repeated, usual)


class _HashSet:
    """Distinct hashes in ascending order, without 0, the hash of rows without features."""

    def __init__(self, hashes: Hashes) -> None:
        self._hashes = distinct(hashes[hashes != 0])
        # a hash that is not in the set usually differs from those in the set in its first bits
        self._starts = np.zeros(1 << FIRST_BITS, bool)
        self._starts[self._hashes >> SHIFT] = True

    def __len__(self) -> int:
        return len(self._hashes)

    def places(self, hashes: Hashes) -> tuple[IntArray, IntArray]:
        """Return which of these hashes are in the set, and their positions."""
        likely = np.flatnonzero(self._starts[hashes >> SHIFT])
        places = np.searchsorted(self._hashes, hashes[likely])
        found = np.flatnonzero(self._hashes[np.minimum(places, len(self) - 1)] == hashes[likely])
        return likely[found], places[found]


def _fraction_repeated(copies: IntArray) -> float:
    """Return the fraction of rows that have duplicates, given the number of rows per content."""
    return float(copies[copies > 1].sum() / max(1, copies.sum()))


class PUData(ABC):
    """P and U, summarized in one pass over all rows, and any known negatives.

    Known negatives are in memory, like P. They are numbered after the rows of U.
    """

    positives: Rows
    negatives: Rows = Rows.empty()

    def __init__(
        self,
        *,
        scale: ScaleChoice | None = None,
        zero_based: bool = False,
        features: int | None = None,
        positive_label: float | None = None,
    ) -> None:
        self.zero_based = zero_based
        self.positive_label = positive_label
        self.notes: list[str] = []
        self.summary_pos, self.summary_unl = DataSummary(), DataSummary()
        self.summary_neg = DataSummary()
        self._scale = scale
        self._declared_features = features
        self._stats = FeatureStats() if scale not in (None, "quantile") else None
        self._scalings: dict[ScalingName | None, Scaling | None] = {None: None}
        self.learned: dict[Any, Any] = {}  # what the method learned from sampled rows, by its key

    @property
    @abstractmethod
    def n_unlabeled(self) -> int: ...

    @abstractmethod
    def fetch_unlabeled(self, numbers: IntArray) -> Rows:
        """Return the rows of U with these numbers, given in ascending order."""

    def fetch(self, numbers: IntArray) -> Rows:
        """Return the rows of U and known negatives with these numbers, given in ascending order."""
        if not len(self.negatives):
            return self.fetch_unlabeled(numbers)
        first = int(np.searchsorted(numbers, self.n_unlabeled))
        known = self.negatives.take(numbers[first:] - self.n_unlabeled)
        return Rows.concatenate([self.fetch_unlabeled(numbers[:first]), known])

    def rows(self, numbers: IntArray) -> Rows:
        """Return the rows with these numbers (P is numbered first, then U), in the given order."""
        n_pos = len(self.positives)
        ascending = np.sort(numbers)
        first = int(np.searchsorted(ascending, n_pos))
        known = self.positives.take(ascending[:first])
        rows = Rows.concatenate([known, self.fetch(ascending[first:] - n_pos)])
        return rows.take(np.searchsorted(ascending, numbers))

    @abstractmethod
    def unlabeled(self) -> Iterator[Rows]:
        """Yield all rows of U in blocks, in order."""

    @abstractmethod
    def ids(self) -> list[str]:
        """Return one id per row: P, U, known negatives; rows without an id get their number."""

    @abstractmethod
    def groups(self) -> IntArray | None:
        """Return one group number per row: P, U, known negatives; None without groups."""

    @cached_property
    def positive_weights(self) -> PositiveWeights | None:
        """How certain each label in P is; None if all are equally certain."""
        return None

    @cached_property
    def encoding(self) -> dict[str, Any] | None:
        """How columns were turned into features, for the manifest; None without column names."""
        return None

    @cached_property
    def feature_names(self) -> Sequence[Any] | None:
        """The names of the features, in order; None if they only have numbers."""
        return None if self.encoding is None else self.encoding["features"]

    def feature_name(self, feature: int, names: Sequence[Any] | None = None) -> str:
        """Return a feature's name from ``names`` or the data, or its number if there are none."""
        return feature_name(
            feature, self.feature_names if names is None else names, self.zero_based
        )

    @property
    def n_kept(self) -> int:
        """The number of nonzero values of U in memory."""
        return self.summary_unl.n_nonzeros

    @property
    def n_features(self) -> int:
        """The declared number of features, or else the number implied by the largest index."""
        largest = max(summary.max_index for summary in self._summaries)
        seen = largest + 1 if self.zero_based else largest
        declared = self._declared_features
        if declared is not None and seen > declared:
            raise DataError(
                f"the data contains feature {largest}, but `features` is {declared}",
                "correct `features`, or leave it out",
            )
        return declared or max(0, seen)

    @cached_property
    def scaling(self) -> Scaling | None:
        """The requested scaling; for ``auto``, the one that the features call for."""
        if self._scale == "quantile":
            return self.scaling_by("quantile")
        if self._stats is None:
            return None
        summary = self._stats.summary()
        kind = summary.advised if self._scale == "auto" else self._scale
        return None if kind is None else LinearScaling.learn(kind, summary)

    def scaling_by(self, kind: ScalingName | None) -> Scaling | None:
        """Return the scaling of this kind: the requested one or quantile scaling."""
        if kind not in self._scalings:
            if kind == "quantile":
                self._scalings[kind] = QuantileScaling.learn(self.sampled_rows)
            else:
                assert self.scaling is not None
                assert self.scaling.kind == kind
                self._scalings[kind] = self.scaling
        return self._scalings[kind]

    @cached_property
    def sampled_rows(self) -> Rows:
        """A sample of unscaled rows for learning quantiles and bins without using labels."""
        bits = randomness.run_bits(0, randomness.QUANTILE_ROWS)
        positive = randomness.sample(bits, len(self.positives), SAMPLE_ROWS)
        unlabeled = randomness.sample(bits, self.n_unlabeled, SAMPLE_ROWS)
        negative = randomness.sample(bits, len(self.negatives), SAMPLE_ROWS)
        others = np.concatenate([unlabeled, self.n_unlabeled + negative])
        return self.rows(np.concatenate([positive, len(self.positives) + others]))

    @property
    def scaling_is_auto(self) -> bool:
        """Whether scaling is ``auto`` and thus depends on the features."""
        return self._scale == "auto"

    @property
    def scaling_is_open(self) -> bool:
        """Whether scaling is ``auto`` and the features call for scaling."""
        return self.scaling_is_auto and self.scaling is not None

    @property
    def scale(self) -> ScalingName | None:
        return None if self.scaling is None else self.scaling.kind

    def scaled(self, rows: Rows, kind: ScalingName | None) -> Rows:
        """Return the rows scaled, as members see them."""
        scaling = self.scaling_by(kind)
        return rows if scaling is None else scaling.apply(rows)

    def variance(self, kind: ScalingName | None) -> float:
        """Return the variance of P's and U's scaled entries; for quantile scaling, of a sample."""
        scaling = self.scaling_by(kind)
        if isinstance(scaling, LinearScaling) and self._stats is not None and self.n_features:
            spread = scaling.variance(self._stats.summary(), self.n_features)
            if not np.isfinite(spread):
                raise DataError(
                    "the variance of the scaled values is too large for a double",
                    "set `gamma` to a number, or use `scale='quantile'`",
                )
            return spread
        if scaling is not None:
            summary = DataSummary()
            summary.add(scaling.apply(self.sampled_rows))
            return variance((summary,), self.n_features)
        return variance(self._summaries, self.n_features)

    @property
    def _summaries(self) -> tuple[DataSummary, ...]:
        both = (self.summary_pos, self.summary_unl)
        return (*both, self.summary_neg) if len(self.negatives) else both

    def description(self) -> dict[str, Any]:
        weights, groups = self.positive_weights, self.groups()
        content = {
            "positive": _description_of_set(len(self.positives), self.summary_pos),
            "unlabeled": _description_of_set(self.n_unlabeled, self.summary_unl),
        }
        if weights is not None:
            content["positive"]["weights_sha256"] = weights.digest
        if len(self.negatives):
            content["negative"] = _description_of_set(len(self.negatives), self.summary_neg)
        if groups is not None:
            content["groups"] = _description_of_groups(groups)
        return content

    def _summarize(self, summary: DataSummary, rows: Rows) -> None:
        summary.add(rows)
        if self._stats is not None:
            self._stats.add(rows)


def _description_of_set(n_rows: int, summary: DataSummary) -> dict[str, Any]:
    return {"rows": n_rows, "nonzeros": summary.n_nonzeros, "sha256": summary.digest()}


def feature_name(feature: int, names: Sequence[Any] | None, zero_based: bool) -> str:
    """Return a feature's name, or its number if features have no names."""
    if names is None:
        return str(feature)
    index = feature if zero_based else feature - 1
    if index >= len(names):
        raise DataError(
            f"the model uses feature {feature:,}, but the feature map ends at {len(names):,}",
            "use the feature map that was written together with the training rows",
        )
    return str(names[index])


def _description_of_groups(groups: IntArray) -> dict[str, Any]:
    """Describe how rows are grouped, regardless of the groups' names."""
    _, first, numbers = np.unique(groups, return_index=True, return_inverse=True)
    # number the groups by first appearance
    in_order = np.argsort(np.argsort(first))[numbers.reshape(-1)]
    digest = hashlib.sha256(in_order.astype("<i8").tobytes()).hexdigest()
    return {"count": len(first), "sha256": digest}


class MemoryData(PUData):
    """P, U and any known negatives as rows in memory."""

    def __init__(
        self,
        positives: Rows,
        unlabeled: Rows,
        negatives: Rows | None = None,
        *,
        groups: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        ids: Sequence[str] | None = None,
        feature_names: Sequence[Any] | None = None,
        encoding: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        """Check and summarize the rows.

        ``groups`` and ``ids`` have one entry per row (P, then U, then known negatives), and
        ``weights`` one per row of P.
        """
        super().__init__(**settings)
        negatives = self.negatives if negatives is None else negatives
        for name, rows in (("P", positives), ("U", unlabeled), ("N", negatives)):
            if not len(rows) and name != "N":
                raise DataError(f"{name} has no rows")
            if not np.isfinite(rows.values).all():
                raise DataError(f"{name} contains values that are not finite")
        n_rows = len(positives) + len(unlabeled) + len(negatives)
        for name, given, whose, size in (
            ("groups", groups, "the data has", n_rows),
            ("ids", ids, "the data has", n_rows),
            ("weights", weights, "P has", len(positives)),
        ):
            if given is not None and len(np.asarray(given)) != size:
                raise DataError(f"{len(np.asarray(given)):,} {name}, but {whose} {size:,} rows")
        if weights is not None:
            self.positive_weights = PositiveWeights.from_values(weights)
        self.positives = positives
        self._unlabeled = unlabeled
        self.negatives = negatives
        self._groups = None
        if groups is not None:
            self._groups = np.unique(groups, return_inverse=True)[1].reshape(-1)
        self._ids = ids
        self.feature_names = feature_names
        self.encoding = encoding
        self._summarize(self.summary_pos, positives)
        self._summarize(self.summary_unl, unlabeled)
        self._summarize(self.summary_neg, negatives)
        repeated = RepeatedRows(positives)
        repeated.add(unlabeled)
        if note := repeated.note():
            self.notes.append(note)

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        positive: npt.ArrayLike,
        negative: npt.ArrayLike | None = None,
        *,
        precomputed: bool = False,
        **settings: Any,
    ) -> MemoryData:
        """Split a matrix or rows by masks of P and known negatives.

        Kernel values get serial numbers.
        """
        chosen = np.asarray(positive, bool)
        zero_based = bool(settings.get("zero_based", False))
        rows = matrix
        if not isinstance(matrix, Rows):
            rows = Rows.from_matrix(matrix, 0 if zero_based and not precomputed else 1)
        if chosen.shape != (len(rows),):
            raise DataError(f"{chosen.size:,} labels, but the matrix has {len(rows):,} rows")
        if precomputed:
            rows = kernels.with_serials(rows)
        known = np.zeros(len(chosen), bool) if negative is None else np.asarray(negative, bool)
        parts = [np.flatnonzero(mask) for mask in (chosen, ~(chosen | known), known)]
        return cls(*map(rows.take, parts), **settings)

    @property
    def n_unlabeled(self) -> int:
        return len(self._unlabeled)

    def fetch_unlabeled(self, numbers: IntArray) -> Rows:
        return self._unlabeled.take(numbers)

    def unlabeled(self) -> Iterator[Rows]:
        yield self._unlabeled

    def ids(self) -> list[str]:
        if self._ids is not None:
            return list(self._ids)
        sizes = (len(self.positives), self.n_unlabeled, len(self.negatives))
        return [str(number + 1) for size in sizes for number in range(size)]

    def groups(self) -> IntArray | None:
        return self._groups
