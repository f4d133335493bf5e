"""A model and rows to labels and decision values, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Literal, TypeAlias

import numpy as np

from resvm_cli.errors import DataError, Message, ModelError, ParameterError, Text
from resvm_cli.files.atomic import output
from resvm_cli.files.predictions import (
    BlockSpool,
    FormatName,
    PredictionBlock,
    format_block,
    format_header,
    labeled,
)
from resvm_cli.files.streams import STDOUT, name_of, same_source
from resvm_cli.files.svmlight import map_blocks
from resvm_cli.model.decisions import threshold_for_recall
from resvm_cli.model_files.directory import StoredModel, load_with_out_of_bag
from resvm_cli.model_files.out_of_bag_table import OutOfBag
from resvm_cli.parameters import RuleName
from resvm_cli.rows import FloatArray
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.training.block_scoring import FAR_SHARE, LEAST_FAR, Answer, BlockJudge, values_seen

LoadedModel: TypeAlias = "tuple[StoredModel, OutOfBag | None]"

# A rare feature that training happened to miss is no sign of other data.
STRANGE_SHARE = 0.01
MOST_CELLS = 1 << 22  # of members' values of the rows that are judged at a time: 32 MB


@dataclass(frozen=True)
class ThresholdRule:
    """A threshold by what it is to reach: a recall, or how many rows of the file to call."""

    kind: Literal["recall", "top", "fraction"]
    amount: float


@dataclass(frozen=True)
class PredictRequest:
    """What to predict and what to write of it."""

    model: str
    source: str = "-"
    target: str = "-"
    form: FormatName = "text"
    threshold: float | ThresholdRule | None = None  # None: the model's own
    decision: RuleName | None = None  # None: the model's own
    contamination_pos: float = 0.0  # with a recall: this share of P is false
    break_ties: bool = False
    votes: bool = False
    member_values: bool = False
    ids: bool = False
    zero_based: bool = False


@dataclass(frozen=True)
class PredictResult:
    """How many rows were judged, by which threshold, and how many of them positive."""

    n_rows: int
    n_positive: int
    decision: RuleName
    threshold: float | None  # None: the best rows were called, however many were asked for
    n_unlike: int | None  # rows unlike those of training; None where the model cannot tell
    notes: tuple[Text, ...]


def predict(request: PredictRequest, run: Run, model: LoadedModel | None = None) -> PredictResult:
    """Judge every row of the source and write one line for each, in order.

    The model is read unless it is given.
    """
    if request.target != STDOUT and same_source(request.source, request.target):
        raise ParameterError(
            "{output} and the input are the same file: {source}",
            "choose another file for {output}",
            source=request.source,
        )
    stored, table = model or load_model(request, run)
    if request.zero_based and not stored.zero_based:
        raise ParameterError(
            "the model was trained on features counted from 1, not with {zero_based:True}",
            "train it with {zero_based:True} too, or leave that out",
        )
    if request.decision == "mean" and stored.ensemble.single:
        raise ParameterError("{decision:mean} has no meaning for cwsvm, which has one member")
    decision = request.decision or stored.decision.rule
    rule = request.threshold if isinstance(request.threshold, ThresholdRule) else None
    threshold = stored.decision.thresholds[decision].value
    if isinstance(request.threshold, float | int):
        threshold = request.threshold
    elif rule is not None and rule.kind == "recall":
        assert table is not None
        threshold = _threshold_for_recall(request, table, decision, rule.amount, run)
        rule = None
    job = _Judging(request, stored, table, decision, run)
    with parallel.inner_threads_held(), output(request.target) as write:
        if rule is None:
            for answer in job.answers(threshold, formatted=True):
                job.write(write, answer.written, answer.text)
        else:
            _predict_best(job, rule, write, run)
    job.finish()
    return PredictResult(
        job.n_rows,
        job.n_positive,
        decision,
        threshold if rule is None else None,
        job.n_unlike,
        tuple(run.notes),
    )


def load_model(request: PredictRequest, run: Run) -> LoadedModel:
    """The model, with its out-of-bag values: they must be there where a recall is asked for."""
    rule = request.threshold
    required = isinstance(rule, ThresholdRule) and rule.kind == "recall"
    return load_with_out_of_bag(request.model, required=required, workers=run.threads)


class _Judging:
    """One pass over the rows: judged block by block, with what is counted on the way."""

    def __init__(
        self,
        request: PredictRequest,
        stored: StoredModel,
        table: OutOfBag | None,
        decision: RuleName,
        run: Run,
    ) -> None:
        self._request = request
        self._decision = decision
        self._stored = stored
        self._run = run
        self._last_feature = stored.last_feature
        self._n_strange = self._n_named = self._n_written = self._n_far = 0
        self._seen = values_seen(table, stored)
        self._largest = -1
        self.n_rows = self.n_positive = 0

    @property
    def n_unlike(self) -> int | None:
        """How many rows were unlike those of training, where the model can tell."""
        return None if self._seen is None else self._n_far

    def answers(self, threshold: float, *, formatted: bool) -> Iterator[Answer]:
        """What is to be written of every block of rows, as they arrive."""
        request = self._request
        judge = BlockJudge(request, self._stored, self._decision, threshold, formatted, self._seen)
        multiple, n_members = judge.predictor.rows_multiple, len(self._stored.ensemble.members)
        for block, answer in map_blocks(
            BlockJudge.judge,
            judge,
            request.source,
            self._run,
            zero_based=self._stored.zero_based,
            with_comments=request.ids,
            multiple=multiple,
            max_rows=max(1, MOST_CELLS // (multiple * n_members)) * multiple,
        ):
            if answer.first_bad is not None:
                raise _not_finite(name_of(request.source), int(block.lines[answer.first_bad]))
            self.n_rows += len(block)
            self._n_strange += answer.n_strange
            self._n_far += answer.n_far
            self._largest = max(self._largest, answer.largest)
            self._n_named += sum(map(bool, block.comments or ()))
            yield answer
            self._run.progress("predicting", self.n_rows, None)

    def write(
        self, write: Callable[[bytes], object], block: PredictionBlock, text: bytes | None = None
    ) -> None:
        if self._n_written == 0:
            write(format_header(self._request.form, block))
        write(format_block(self._request.form, block) if text is None else text)
        self._n_written += len(block.labels)
        self.n_positive += int((block.labels == 1).sum())

    def finish(self) -> None:
        """Say what looked wrong."""
        if self._n_strange > STRANGE_SHARE * self.n_rows:
            self._run.notice(
                f"{self._n_strange:,} of {self.n_rows:,} rows have features up to {self._largest};"
                f" the model was trained on features up to {self._last_feature}"
            )
        if self._n_far >= LEAST_FAR and self._n_far > FAR_SHARE * self.n_rows:
            self._run.notice(
                f"{self._n_far:,} of {self.n_rows:,} rows are unlike what the model was trained on:"
                " their values lie beyond those of 99 % of the training rows, judged out of bag, or"
                " they are far from every support row; were they prepared in the same way?"
            )
        if self._request.ids and not self._n_named:
            self._run.notice("no row has a trailing comment (# name) to take its id from")


def _threshold_for_recall(
    request: PredictRequest,
    table: OutOfBag,
    decision: RuleName,
    recall: float,
    run: Run,
) -> float:
    """The highest threshold above which this share of the true positives lies, out of bag."""
    values = table.by(decision)
    if values is None:
        raise ModelError(
            f"{request.model}: holds no out-of-bag values by the mean: an older version wrote it",
            Message("train it again, or use {decision:votes}"),
        )
    known, unlabeled = values
    if request.contamination_pos and not len(unlabeled):
        raise ModelError(
            Message(
                "{model}: holds no out-of-bag values of U, which {contamination_pos} needs",
                model=request.model,
            ),
            "train it again",
        )
    threshold = threshold_for_recall(known, unlabeled, recall, request.contamination_pos)
    above = round((threshold.recall or 0.0) * len(known))
    run.notice(
        f"T = {threshold.value:.6g}: {above:,} of {len(known):,} known positives lie above it,"
        " out of bag"
    )
    return threshold.value


def _predict_best(
    job: _Judging,
    rule: ThresholdRule,
    write: Callable[[bytes], object],
    run: Run,
) -> None:
    """Call the best rows of the file positive: all are judged and kept before any is written."""
    with BlockSpool() as spool:
        best: FloatArray = np.zeros(0)
        for answer in job.answers(0.0, formatted=False):
            spool.add(answer.written)
            if rule.kind == "top":
                best = _largest(best, answer.written.decision_values, int(rule.amount))
        wanted = int(rule.amount)
        if rule.kind == "fraction":
            wanted = max(1, ceil(round(rule.amount * job.n_rows, 9)))
            for block in spool:
                best = _largest(best, block.decision_values, wanted)
        least = float(best.min())
        for block in spool:
            job.write(write, labeled(block, least))
    if job.n_positive > wanted:
        run.notice(
            f"{job.n_positive:,} rows are called positive, not {wanted:,}:"
            f" those that tie at {least:.6g} are called together"
        )
    elif job.n_positive < wanted:
        run.notice(f"all {job.n_rows:,} rows are called positive: there are no {wanted:,}")


def _largest(kept: FloatArray, values: FloatArray, count: int) -> FloatArray:
    """The largest so many of both."""
    both = np.concatenate([kept, values])
    return both if len(both) <= count else np.partition(both, len(both) - count)[-count:]


def _not_finite(name: str, line: int) -> DataError:
    return DataError(
        f"{name}:{line}: the row's decision value is not finite",
        "its values are far outside what the model was trained on: scale them as then",
    )
