"""Score blocks of rows with a model, in local threads or on cluster workers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli.errors import DataError, ParameterError
from resvm_cli.files.predictions import FormatName, PredictionBlock, format_block
from resvm_cli.files.streams import name_of
from resvm_cli.files.svmlight import Block
from resvm_cli.model.decisions import usual_range
from resvm_cli.model.ensemble import Decisions, Predictor
from resvm_cli.model.scaling import FeatureRanges
from resvm_cli.model_files.directory import StoredModel
from resvm_cli.parameters import RuleName
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray, distinct
from resvm_cli.svm import kernels

if TYPE_CHECKING:
    from resvm_cli.metrics.class_mixture import ClassMixture
    from resvm_cli.tables.encoding import TableReading

# A row is far away if all support vectors together add less than this fraction of the constant.
NEGLIGIBLE = 1e-3


@dataclass(frozen=True)
class PredictRequest:
    """The rows to predict, the model to use, and what to write."""

    model: str
    source: str = "-"
    target: str = "-"
    form: FormatName = "text"
    threshold: float | None = None  # None: the model's own
    recall: float | None = None  # place the threshold so that it reaches this recall of P
    decision: RuleName | None = None  # None: the model's own
    contamination_pos: float | None = None  # None: 0 with a recall, else estimated
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
        """The rho of rbf members, else nan: -rho is the value far from all support vectors."""
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
