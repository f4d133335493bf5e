"""Blocks of rows judged by a model, in threads here or on workers elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.files.predictions import PredictionBlock, format_block
from resvm_cli.files.streams import name_of
from resvm_cli.files.svmlight import Block
from resvm_cli.model.ensemble import Decisions, Predictor
from resvm_cli.model_files.directory import StoredModel
from resvm_cli.model_files.out_of_bag_table import OutOfBag
from resvm_cli.parameters import RuleName
from resvm_cli.rows import FloatArray, distinct, quantiles
from resvm_cli.svm import kernels

if TYPE_CHECKING:
    from resvm_cli.commands.predict.predict import PredictRequest

# Of rows like those of training, P or U, about 1 in 100 lies outside what was seen out of bag.
OUTSIDE_TAIL = 0.005
NOTHING = 1e-3  # of a member's constant: less than that all support rows together add
LEAST_SEEN = 20  # rows judged out of bag: fewer give no range
# So many rows, and so large a share of them, are no chance.
LEAST_FAR, FAR_SHARE = 3, 0.05


@dataclass(frozen=True, eq=False)
class Answer:
    """What is made of a block of rows where it is parsed."""

    written: PredictionBlock
    text: bytes
    first_bad: int | None  # a row whose value is not finite
    n_strange: int  # rows with features that training did not see
    n_far: int  # rows unlike those of training
    largest: int  # index


@dataclass(frozen=True, eq=False)
class BlockJudge:
    """Judges blocks of rows, in threads here or on workers elsewhere."""

    request: PredictRequest
    stored: StoredModel
    decision: RuleName
    threshold: float
    formatted: bool
    seen: tuple[float, float] | None  # mean values out of bag, but for their tails

    @cached_property
    def predictor(self) -> Predictor:
        return Predictor(self.stored.ensemble, self.stored.scaling)

    def __getstate__(self) -> dict[str, Any]:
        computed = ("predictor", "_rho")
        return {name: value for name, value in self.__dict__.items() if name not in computed}

    def judge(self, block: Block) -> Answer:
        if self.stored.ensemble.is_precomputed:
            self._require_kernel_values(block)
        member_values = self.predictor.member_values(block.rows)
        decisions = self.predictor.decide(member_values)
        written = self._written(decisions, member_values, block)
        largest = block.rows.max_index
        strange = 0
        if largest > self.stored.last_feature:
            beyond = block.rows.indices > self.stored.last_feature
            strange = len(distinct(block.rows.row_numbers[beyond]))
        bad = np.flatnonzero(~np.isfinite(decisions.sums))
        return Answer(
            written,
            format_block(self.request.form, written) if self.formatted else b"",
            int(bad[0]) if len(bad) else None,
            strange,
            self._count_far(decisions, member_values),
            largest,
        )

    @cached_property
    def _rho(self) -> FloatArray | None:
        """What members say of rows that are like no other."""
        ensemble = self.stored.ensemble
        if ensemble.groups[0].kernel.name != "rbf":
            return None
        return np.array([member.rho for member in ensemble.members])

    def _count_far(self, decisions: Decisions, member_values: FloatArray) -> int:
        """Rows beyond what was seen out of bag, or so far off that no support row counts."""
        if self.seen is None:
            return 0
        low, high = self.seen
        far = (decisions.means < low) | (decisions.means > high)
        if self._rho is not None:
            counts = np.abs(member_values + self._rho).max(axis=1)
            far |= counts < NOTHING * np.abs(self._rho).max()
        return int(np.count_nonzero(far))

    def _require_kernel_values(self, block: Block) -> None:
        """Refuse rows of features; what number a row has makes no difference here."""
        unnumbered = np.setdiff1d(np.arange(len(block)), kernels.rows_with_serial(block.rows))
        if len(unnumbered):
            place = f"{name_of(self.request.source)}:{block.lines[unnumbered[0]]}"
            raise DataError(
                f"{place}: the model has a precomputed kernel, and index 0 is missing",
                f"{kernels.ROW_FORMAT}; here any number will do as serial",
            )

    def _written(
        self, decisions: Decisions, member_values: FloatArray, block: Block
    ) -> PredictionBlock:
        request, values = self.request, decisions.by(self.decision)
        # means, and one SVM's own values, have no ties
        if request.break_ties and self.decision == "votes" and not self.stored.ensemble.single:
            values = decisions.values_without_ties()
        return PredictionBlock(
            labels=decisions.labels(self.threshold, self.decision),
            decision_values=values,
            votes=decisions.votes if request.votes else None,
            member_values=member_values if request.member_values else None,
            ids=block.comments,
        )


def values_seen(table: OutOfBag | None, stored: StoredModel) -> tuple[float, float] | None:
    """The range of mean values out of bag, of P or of U, but for their tails; None if unknown."""
    if table is None or stored.ensemble.single:
        return None
    values = table.by("mean")
    return None if values is None else range_seen(*values)


def range_seen(known: FloatArray, unlabeled: FloatArray) -> tuple[float, float] | None:
    """From the lowest to the highest value of either set, but for its tails."""
    if min(len(known), len(unlabeled)) < LEAST_SEEN:
        return None
    tails = [quantiles(each, [OUTSIDE_TAIL, 1 - OUTSIDE_TAIL]) for each in (known, unlabeled)]
    return min(low for low, _ in tails), max(high for _, high in tails)
