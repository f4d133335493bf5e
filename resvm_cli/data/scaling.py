"""Feature scaling: learned with a model and applied by it.

The linear scalings use the same arithmetic as scikit-learn for dense data, so the same constants
give bit-for-bit identical results: x / scale, x * scale + min, (x - mean) / scale. Quantile scaling
replaces a value with its rank, so that monotone transformations do not matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.parameters import ScalingName
from resvm_cli.records import dataclass
from resvm_cli.rows import Columns, FloatArray, IntArray, Rows, median
from resvm_cli.svm import _blocks

if TYPE_CHECKING:
    import numpy.typing as npt

# Statistics take six numbers per index, up to the largest index.
MAX_FEATURES = 1 << 26
# Scaling is advised if the widest feature is more than this many times as wide as the median one,
WIDE = 10.0
LARGE = 30.0  # or if an absolute value exceeds this
MIN_FILLED = 0.5  # from this fraction of nonzeros on, scaling may turn zeros into nonzeros
DENSE_CELLS = 1 << 21
QUANTILE_STEPS = 200  # steps between ranks 0 and 1; a curve has a knot for each step
MAX_KNOTS = 1 << 22  # for all features; a manifest with more would be too large to read


class FeatureStats:
    """Count, extremes, mean and variance of each feature, from one pass over blocks of rows.

    Entries are added one by one in row order, relative to each feature's first value. The result
    therefore does not depend on the block size, and values far from zero lose no digits.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        # count, first value, sum and sum of squares relative to it, minimum and maximum
        self._columns = np.zeros((6, 0))

    def add(self, rows: Rows) -> None:
        rows = rows.without_zeros()
        self.n_rows += len(rows)
        if not len(rows.values):
            return
        size, old = rows.max_index + 1, self._columns.shape[1]
        if size > MAX_FEATURES:
            raise DataError(
                f"feature {size - 1:,} cannot be scaled: the largest index allowed is"
                f" {MAX_FEATURES - 1:,}",
                "use `scale='none'`, or renumber the features",
            )
        if size > old:
            added = max(size, min(2 * old, MAX_FEATURES)) - old
            self._columns = np.pad(self._columns, ((0, 0), (0, added)))
        _blocks.summarize(rows.indices, rows.values, self._columns)

    def extremes(self, size: int) -> FloatArray:
        """Return the first features' numbers of nonzeros, minima and maxima, zeros included."""
        columns = np.zeros((6, size))
        known = self._columns[:, :size]
        columns[:, : known.shape[1]] = known
        count, low, high = columns[[0, 4, 5]]
        gaps = count < self.n_rows
        low[gaps], high[gaps] = np.minimum(low[gaps], 0.0), np.maximum(high[gaps], 0.0)
        return np.stack([count, low, high])

    def summary(self) -> FeatureSummary:
        """Return the statistics, zeros included, of every feature that occurs."""
        indices = np.flatnonzero(self._columns[0])
        count, pivot, total, squares, *_ = self._columns[:, indices]
        _, low, high = self.extremes(self._columns.shape[1])[:, indices]
        filled = count / self.n_rows
        with np.errstate(over="ignore", invalid="ignore"):
            apart = total / count
            # mean and variance of the nonzero entries
            mean = pivot + apart
            spread = np.maximum(0.0, squares / count - apart * apart)
            variance = filled * spread + filled * (1.0 - filled) * mean * mean
        return FeatureSummary(
            indices,
            low,
            high,
            filled * mean,
            variance,
            float(filled.mean()) if len(filled) else 0.0,
        )


@dataclass(frozen=True, eq=False)
class FeatureSummary:
    """Minimum, maximum, mean and variance of each feature that occurs."""

    indices: IntArray
    low: FloatArray
    high: FloatArray
    mean: FloatArray
    variance: FloatArray
    filled: float  # fraction of nonzero entries

    @property
    def advised(self) -> ScalingName | None:
        """The scaling to use, or None if none is needed; sparse rows remain sparse."""
        if self.advice() is None:
            return None
        return "standard" if self.filled >= MIN_FILLED else "maxabs"

    def advice(self) -> str | None:
        """Return why scaling is advisable, or None if it is not."""
        with np.errstate(over="ignore", invalid="ignore"):
            ranges = (self.high - self.low)[self.high > self.low]
            if not len(ranges):
                return None
            ratio = float(ranges.max()) / median(ranges)
        if ratio > WIDE:
            return f"the widest feature is {ratio:,.0f} times as wide as the median one"
        largest = float(max(np.abs(self.low).max(), np.abs(self.high).max()))
        if largest > LARGE:
            return f"values reach {largest:g}"
        return None


def scaling_advice(rows: Rows) -> str | None:
    """Return why scaling is advisable, judging by these rows, or None if it is not."""
    stats = FeatureStats()
    stats.add(Columns(rows.indices).placed(rows))
    return stats.summary().advice()


class Scaling(ABC):
    """Scaling constants for each feature of the training data; other features are not scaled."""

    kind: ScalingName
    indices: IntArray
    _constants: tuple[str, ...]  # the names of the other arrays

    @abstractmethod
    def _scaled(self, values: FloatArray, places: IntArray) -> FloatArray:
        """Return the scaled values of the features at these positions in ``indices``."""

    @abstractmethod
    def _is_sound(self) -> bool:
        """Whether constants from a manifest, already known to be finite vectors, are consistent."""

    def description(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).tolist() for name in self._constants}
        return {"kind": self.kind, "features": self.indices.tolist(), **arrays}

    @staticmethod
    def from_description(content: dict[str, Any]) -> Scaling:
        """Read from the manifest; raise ValueError if the content is invalid."""
        cls = QuantileScaling if content["kind"] == "quantile" else LinearScaling
        indices = np.array(content["features"], np.int64)
        arrays: dict[str, Any] = {
            name: np.array(content[name], np.int64 if name == "starts" else np.float64)
            for name in cls._constants
        }
        scaling = cls(kind=content["kind"], indices=indices, **arrays)
        if (
            not all(
                each.ndim == 1 and np.isfinite(each).all() for each in (indices, *arrays.values())
            )
            or (np.diff(indices) <= 0).any()
            or not scaling._is_sound()
        ):
            raise ValueError("scaling")
        return scaling

    @cached_property
    def moves_zeros(self) -> bool:
        """Whether zeros become nonzero, which makes rows dense."""
        return bool(self._zeros.any())

    @cached_property
    def _zeros(self) -> FloatArray:
        """The scaled value of zero for each feature."""
        return self._scaled(np.zeros(len(self.indices)), np.arange(len(self.indices)))

    def apply(self, rows: Rows) -> Rows:
        if not len(self.indices):
            return rows
        if not self.moves_zeros:
            _, _, values = self._scaled_entries(rows)
            return Rows(rows.indptr, rows.indices, values).without_zeros()
        step = max(1, DENSE_CELLS // len(self.indices))
        starts = range(0, len(rows), step)
        parts = (rows.slice(start, min(start + step, len(rows))) for start in starts)
        return Rows.concatenate([self._filled(part) for part in parts])

    def _scaled_entries(self, rows: Rows) -> tuple[IntArray, npt.NDArray[np.bool_], FloatArray]:
        """Return each entry's position in ``indices``, whether it has one, and its new value."""
        places = np.searchsorted(self.indices, rows.indices)
        places[places == len(self.indices)] = 0
        known = self.indices[places] == rows.indices
        values = rows.values.copy()
        values[known] = self._scaled(values[known], places[known])
        return places, known, values

    def _filled(self, rows: Rows) -> Rows:
        """Return dense rows: scaled values, and scaled zeros everywhere else."""
        places, known, values = self._scaled_entries(rows)
        filled = np.tile(self._zeros, (len(rows), 1))
        filled[rows.row_numbers[known], places[known]] = values[known]
        present = filled != 0
        indices = np.broadcast_to(self.indices.astype(np.int32), filled.shape)[present]
        ends = np.cumsum(present.sum(axis=1))
        dense = Rows(np.concatenate([[0], ends]).astype(np.int64), indices, filled[present])
        if known.all():
            return dense
        # features that the training data lacks keep their values and their order
        row = np.concatenate([dense.row_numbers, rows.row_numbers[~known]])
        indices = np.concatenate([dense.indices, rows.indices[~known]])
        values = np.concatenate([dense.values, values[~known]])
        order = np.lexsort((indices, row))
        ends = np.cumsum(np.bincount(row, minlength=len(rows)))
        indptr = np.concatenate([[0], ends]).astype(np.int64)
        return Rows(indptr, indices[order], values[order])


@dataclass(frozen=True, eq=False)
class LinearScaling(Scaling):
    """Each value is shifted and scaled by its feature's constants."""

    kind: ScalingName
    indices: IntArray
    shift: FloatArray
    factor: FloatArray
    _constants = ("shift", "factor")

    @classmethod
    def learn(cls, kind: ScalingName, features: FeatureSummary) -> LinearScaling:
        low, high = features.low, features.high
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            if kind == "maxabs":
                factor = _without_zeros(np.maximum(np.abs(low), np.abs(high)))
                shift = np.zeros_like(factor)
            elif kind == "minmax":
                factor = 1.0 / _without_zeros(high - low)
                shift = -low * factor
            else:
                constant = low == high  # the variance of a constant feature is only rounding error
                factor = np.where(constant, 1.0, np.sqrt(features.variance))
                factor, shift = _without_zeros(factor), features.mean
            unusable = ~(np.isfinite(factor) & np.isfinite(1.0 / factor) & np.isfinite(shift))
        if unusable.any():
            first = int(np.flatnonzero(unusable)[0])
            raise DataError(
                f"feature {features.indices[first]} ranges from {low[first]:g} to"
                f" {high[first]:g}: {kind} scaling is impossible in double precision",
                "leave the feature out, or rescale it first",
            )
        return cls(kind, features.indices, shift, factor)

    def _scaled(self, values: FloatArray, places: IntArray) -> FloatArray:
        if self.kind == "maxabs":
            return values / self.factor[places]
        if self.kind == "minmax":
            return values * self.factor[places] + self.shift[places]
        return (values - self.shift[places]) / self.factor[places]

    def variance(self, features: FeatureSummary, n_features: int) -> float:
        """Return the variance of all scaled entries, including zeros and empty features."""
        means = np.zeros(n_features)
        means[: len(self.indices)] = self._scaled(features.mean, np.arange(len(self.indices)))
        steps = self.factor if self.kind == "minmax" else 1.0 / self.factor
        with np.errstate(over="ignore", invalid="ignore"):
            return float((features.variance * steps * steps).sum() / n_features + means.var())

    def _is_sound(self) -> bool:
        shapes = self.indices.shape, self.shift.shape, self.factor.shape
        known = self.kind in ("minmax", "maxabs", "standard")
        return known and len(set(shapes)) == 1 and bool((self.factor != 0).all())


@dataclass(frozen=True, eq=False)
class QuantileScaling(Scaling):
    """Each value is replaced by its mid-rank among the training values, interpolated between knots.

    Features that are mostly zero are shifted so that zeros stay zero and rows stay sparse.
    """

    indices: IntArray
    starts: IntArray  # the knots of feature i are starts[i]:starts[i + 1]
    knots: FloatArray
    heights: FloatArray
    kind: ScalingName = "quantile"
    _constants = ("starts", "knots", "heights")

    @classmethod
    def learn(cls, rows: Rows) -> QuantileScaling:
        """Learn the ranks of each feature's values, zeros included, from these rows."""
        rows = rows.without_zeros()
        features, counts = np.unique(rows.indices, return_counts=True)
        gaps = len(rows) - counts
        feature = np.concatenate([np.searchsorted(features, rows.indices), np.flatnonzero(gaps)])
        values = np.concatenate([rows.values, np.zeros(np.count_nonzero(gaps))])
        weight = np.concatenate([np.ones(len(rows.values), np.int64), gaps[gaps > 0]])
        order = np.lexsort((values, feature))
        feature, values, weight = feature[order], values[order], weight[order]
        new = np.ones(len(values), bool)
        new[1:] = (feature[1:] != feature[:-1]) | (values[1:] != values[:-1])
        first = np.flatnonzero(new)
        weight = np.add.reduceat(weight, first) if len(first) else weight
        feature, values = feature[first], values[first]
        below = np.cumsum(weight) - weight - feature * len(rows)
        heights = (below + weight / 2) / max(1, len(rows))
        zero = np.zeros(len(features))
        zero[feature[values == 0]] = heights[values == 0]
        steps = QUANTILE_STEPS
        while np.count_nonzero(kept := _knots(feature, values, heights, steps)) > MAX_KNOTS:
            if not (steps := steps // 2):
                break
        heights -= np.where(2 * gaps > len(rows), zero, 0.0)[feature]
        starts = np.searchsorted(feature[kept], np.arange(len(features) + 1))
        return cls(features.astype(np.int64), starts, values[kept], heights[kept])

    def _scaled(self, values: FloatArray, places: IntArray) -> FloatArray:
        scaled = values.copy()
        _blocks.follow(scaled, places.astype(np.int32), self.starts, self.knots, self.heights)
        return scaled

    def _is_sound(self) -> bool:
        starts, size = self.starts, len(self.knots)
        if (
            len(self.heights) != size
            or len(starts) != len(self.indices) + 1
            or (starts[0], starts[-1]) != (0, size)
            or (np.diff(starts) <= 0).any()
        ):
            return False
        within = np.ones(max(0, size - 1), bool)  # whether a knot and the next share a feature
        within[starts[1:-1] - 1] = False
        return bool((np.diff(self.knots)[within] > 0).all())


def _knots(
    feature: IntArray, values: FloatArray, heights: FloatArray, steps: int
) -> npt.NDArray[np.bool_]:
    """Mark zeros, the first value of each step, and its last value if the next step is empty."""
    apart = np.diff(np.floor(heights * steps), prepend=-2.0, append=np.inf)
    apart[1:-1][np.diff(feature) != 0] = np.inf
    kept: npt.NDArray[np.bool_] = (apart[:-1] != 0) | (apart[1:] > 1) | (values == 0)
    return kept


def _without_zeros(scale: FloatArray) -> FloatArray:
    """Replace zero scales with 1, so that constant features are not divided by 0."""
    return np.where(scale == 0, 1.0, scale)
