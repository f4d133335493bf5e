"""P and U as everything that trains, tunes or ranks asks for them, and their room in memory.

P is small and at hand; of U any rows can be fetched by number, or all of them in blocks. The same
rows give the same model whether they come from files or from memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError, Message
from resvm_cli.model.bags import PositiveWeights
from resvm_cli.model.scaling import FeatureStats, Scaling
from resvm_cli.parameters import ScaleChoice
from resvm_cli.rows import IntArray, Rows, Survey, variance
from resvm_cli.svm import kernels


class PUData(ABC):
    """Both sets, surveyed: what is told of them comes from one pass over every row."""

    positives: Rows

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
        self.survey_pos, self.survey_unl = Survey(), Survey()
        self._scale = scale
        self._declared_features = features
        self._stats = FeatureStats() if scale else None

    @property
    @abstractmethod
    def n_unlabeled(self) -> int: ...

    @abstractmethod
    def fetch(self, numbers: IntArray) -> Rows:
        """The rows of U of these ascending numbers."""

    @abstractmethod
    def unlabeled(self) -> Iterator[Rows]:
        """All rows of U, in order, in blocks."""

    @abstractmethod
    def ids(self) -> list[str]:
        """The id of each row of P and then of U; where it has none, its number."""

    @abstractmethod
    def groups(self) -> IntArray | None:
        """A number for each row of P and then of U, equal where groups are; None without any."""

    @property
    def positive_weights(self) -> PositiveWeights | None:
        """How sure each row of P is; None where all are equally sure."""
        return None

    @property
    def checked(self) -> bool:
        """Whether every row of U was looked at."""
        return True

    @property
    def n_kept(self) -> int:
        """How many numbers of U are in memory."""
        return self.survey_unl.n_nonzeros

    @property
    def n_features(self) -> int:
        """How many features there are: those declared, else up to the largest index seen."""
        largest = max(self.survey_pos.max_index, self.survey_unl.max_index)
        seen = largest + 1 if self.zero_based else largest
        declared = self._declared_features
        if declared is not None and seen > declared:
            raise DataError(
                Message(
                    "the data has feature {largest}, and {features} is {declared}",
                    largest=largest,
                    declared=declared,
                ),
                Message("correct {features}, or leave it out"),
            )
        return declared or max(0, seen)

    @cached_property
    def scaling(self) -> Scaling | None:
        """As asked for; where that is left open, what the features advise."""
        if self._stats is None:
            return None
        summary = self._stats.summary()
        kind = summary.advised if self._scale == "auto" else self._scale
        return None if kind is None else Scaling.learn(kind, summary)

    @property
    def scaling_was_left_open(self) -> bool:
        """Whether what the features advise was looked at already."""
        return self._scale == "auto"

    @property
    def scaling_is_open(self) -> bool:
        """Whether it was left open, and is advised."""
        return self.scaling_was_left_open and self.scaling is not None

    def scaled(self, rows: Rows) -> Rows:
        """Rows as members see them."""
        return rows if self.scaling is None else self.scaling.apply(rows)

    def variance(self) -> float:
        """Variance of all entries of P and U, as they will be trained on."""
        if self.scaling is not None and self._stats is not None and self.n_features:
            spread = self.scaling.variance(self._stats.summary(), self.n_features)
            if not np.isfinite(spread):
                raise DataError("the variance of the scaled values is too large for a double")
            return spread
        return variance((self.survey_pos, self.survey_unl), self.n_features)

    def description(self) -> dict[str, Any]:
        """What the manifest says of the data."""
        weights = self.positive_weights
        return {
            "positive": {
                "rows": len(self.positives),
                "nonzeros": self.survey_pos.n_nonzeros,
                "sha256": self.survey_pos.digest(),
                **({} if weights is None else {"weights_sha256": weights.digest}),
            },
            "unlabeled": {
                "rows": self.n_unlabeled,
                "nonzeros": self.survey_unl.n_nonzeros,
                "sha256": self.survey_unl.digest(),
            },
        }

    def _survey(self, survey: Survey, rows: Rows) -> None:
        survey.add(rows)
        if self._stats is not None:
            self._stats.add(rows)

    def _note_equal_sets(self) -> None:
        if self.survey_unl.n_rows and self.survey_pos.digest() == self.survey_unl.digest():
            self.notes.append("P and U hold the same rows: is one of the files the wrong one?")


class MemoryData(PUData):
    """Both sets as rows in memory."""

    def __init__(
        self,
        positives: Rows,
        unlabeled: Rows,
        *,
        groups: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        ids: Sequence[str] | None = None,
        scale: ScaleChoice | None = None,
        zero_based: bool = False,
        features: int | None = None,
        positive_label: float | None = None,
    ) -> None:
        """``groups`` and ``ids`` are of the rows of P, then of those of U; weights are of P."""
        super().__init__(
            scale=scale, zero_based=zero_based, features=features, positive_label=positive_label
        )
        n_rows = len(positives) + len(unlabeled)
        for name, rows in (("P", positives), ("U", unlabeled)):
            if not len(rows):
                raise DataError(f"{name} has no rows")
            if not np.isfinite(rows.values).all():
                raise DataError(f"{name} holds values that are not finite")
        for name, given in (("groups", groups), ("ids", ids)):
            if given is not None and len(np.asarray(given)) != n_rows:
                raise DataError(
                    f"{len(np.asarray(given)):,} {name}, and P and U have {n_rows:,} rows"
                )
        self._weights: PositiveWeights | None = None
        if weights is not None:
            if len(np.asarray(weights)) != len(positives):
                raise DataError(
                    f"{len(np.asarray(weights)):,} weights, and P has {len(positives):,} rows"
                )
            self._weights = PositiveWeights.of(weights)
        self.positives = positives
        self._unlabeled = unlabeled
        self._groups = None if groups is None else np.unique(groups, return_inverse=True)[1]
        self._ids = ids
        self._survey(self.survey_pos, positives)
        self._survey(self.survey_unl, unlabeled)
        self._note_equal_sets()

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        positive: npt.ArrayLike,
        *,
        precomputed: bool = False,
        **settings: Any,
    ) -> MemoryData:
        """A matrix, dense or of scipy's sparse ones, whose rows are of P where ``positive``.

        Kernel values that are given get serial numbers before them.
        """
        chosen = np.asarray(positive, bool)
        if chosen.shape != (matrix.shape[0],):
            raise DataError(f"{chosen.size:,} labels, and the matrix has {matrix.shape[0]:,} rows")
        zero_based = bool(settings.get("zero_based", False))
        rows = Rows.from_matrix(matrix, 0 if zero_based and not precomputed else 1)
        if precomputed:
            rows = kernels.with_serials(rows)
        return cls(
            rows.take(np.flatnonzero(chosen)), rows.take(np.flatnonzero(~chosen)), **settings
        )

    @property
    def n_unlabeled(self) -> int:
        return len(self._unlabeled)

    def fetch(self, numbers: IntArray) -> Rows:
        return self._unlabeled.take(numbers)

    def unlabeled(self) -> Iterator[Rows]:
        yield self._unlabeled

    def ids(self) -> list[str]:
        if self._ids is not None:
            return list(self._ids)
        sizes = (len(self.positives), self.n_unlabeled)
        return [str(number + 1) for size in sizes for number in range(size)]

    @property
    def positive_weights(self) -> PositiveWeights | None:
        return self._weights

    def groups(self) -> IntArray | None:
        return None if self._groups is None else self._groups.reshape(-1)
