"""Predict labels and decision values block by block, for one file or many."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from math import ceil
from typing import Any

import numpy as np

from resvm_cli.commands.predict.scoring import (
    BlockScorer,
    PredictRequest,
    ScoredBlock,
    ThresholdRule,
)
from resvm_cli.errors import DataError, Message, ModelError, ParameterError, Text
from resvm_cli.files.atomic import check_outputs, output
from resvm_cli.files.predictions import (
    BlockSpool,
    PredictionBlock,
    format_block,
    format_header,
    labeled,
)
from resvm_cli.files.run_directory import OutputDirectory, output_names
from resvm_cli.files.streams import STDIN, file_digest, name_of
from resvm_cli.files.svmlight import map_blocks
from resvm_cli.model.decisions import are_unlike, threshold_for_recall
from resvm_cli.model_files.directory import StoredModel, load_with_out_of_bag
from resvm_cli.parameters import RuleName
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray
from resvm_cli.running import parallel
from resvm_cli.running.run import Run, Share

# A few rows with features unseen in training do not mean that the data is different.
FRACTION_NEW = 0.01
MAX_CELLS = 1 << 22  # rows times members of one block: 32 MB
SUFFIXES = {"text": ".pred", "tsv": ".tsv", "csv": ".csv", "jsonl": ".jsonl"}
# Fields that do not affect the lines of output.
PATHS = ("model", "source", "target")


@dataclass(frozen=True)
class PredictResult:
    """How many rows were scored, the threshold, and how many rows are predicted positive."""

    n_rows: int
    n_positive: int
    decision: RuleName
    threshold: float | None  # None: the requested number of top rows is positive
    n_unlike: int | None  # rows unlike the training rows; None if the model cannot tell
    notes: tuple[Text, ...]


@dataclass(frozen=True)
class FilesResult:
    """How many files were predicted or skipped, for the report."""

    path: str
    n_predicted: int
    n_skipped: int  # finished before
    n_elsewhere: int  # left to other tasks


def predict_files(
    request: PredictRequest,
    sources: Sequence[str],
    target: str,
    share: Share | None,
    run: Run,
) -> FilesResult:
    """Predict all files, or one task's share, into a directory; skip finished outputs."""
    if STDIN in sources:
        raise ParameterError("{out_dir} needs input files: stdin has no name for an output")
    names = output_names(list(sources), SUFFIXES[request.form])
    targets = [(Message("{out_dir}"), os.path.join(target, name)) for name in names]
    check_outputs(targets, [("FILE", source) for source in sources])
    model = load_model(request, run)
    outputs = OutputDirectory(target)
    own = share.of(len(sources)) if share is not None else range(len(sources))
    n_skipped = 0
    for number in own:
        made_from = _made_from(request, model, sources[number])
        if outputs.is_finished(names[number], made_from):
            n_skipped += 1
            continue
        one = replace(request, source=sources[number], target=outputs.output_path(names[number]))
        predict(one, run.with_own_notes(), model)
        outputs.finish(names[number], made_from)
    return FilesResult(target, len(own) - n_skipped, n_skipped, len(sources) - len(own))


def _made_from(request: PredictRequest, model: StoredModel, source: str) -> dict[str, Any]:
    """Return everything that an output depends on: the model, the input and the options."""
    options = {name: value for name, value in asdict(request).items() if name not in PATHS}
    return {
        "model": model.manifest["manifest_sha256"],
        "input": file_digest(source),
        "options": options,
    }


def load_model(request: PredictRequest, run: Run) -> StoredModel:
    """Load the model with its out-of-bag values, which a recall threshold requires."""
    rule = request.threshold
    required = isinstance(rule, ThresholdRule) and rule.kind == "recall"
    stored, table = load_with_out_of_bag(request.model, required=required, workers=run.threads)
    return replace(stored, out_of_bag=table)


def predict(request: PredictRequest, run: Run, model: StoredModel | None = None) -> PredictResult:
    """Score every row of the source and write one line per row, in order.

    The model is loaded unless ``model`` is given.
    """
    model = model or load_model(request, run)
    if request.zero_based and not model.zero_based:
        raise ParameterError(
            "the model was trained on features counted from 1, not with {zero_based:True}",
            "train it with {zero_based:True} too, or leave {zero_based} out",
        )
    if request.decision == "mean" and model.ensemble.single:
        raise ParameterError("{decision:mean} has no meaning for cwsvm, which has one member")
    decision = request.decision or model.decision.rule
    rule = request.threshold if isinstance(request.threshold, ThresholdRule) else None
    threshold = model.decision.thresholds[decision].value
    if isinstance(request.threshold, float | int):
        threshold = request.threshold
    elif rule is not None and rule.kind == "recall":
        threshold = _threshold_for_recall(request, model, decision, rule.amount, run)
        rule = None
    scorer = BlockScorer.for_model(request, model, decision, threshold, formatted=rule is None)
    job = _Pass(scorer, run)
    with parallel.inner_threads_held(), output(request.target) as write:
        if rule is None:
            for block in job.blocks():
                job.write(write, block.predictions, block.text)
        else:
            _predict_top(job, rule, write, run)
    job.finish()
    return PredictResult(
        job.n_rows,
        job.n_positive,
        decision,
        threshold if rule is None else None,
        None if scorer.usual is None else job.n_unlike,
        tuple(run.notes),
    )


class _Pass:
    """One pass that scores all rows block by block and counts what to report."""

    def __init__(self, scorer: BlockScorer, run: Run) -> None:
        self._scorer = scorer
        self._request = scorer.request
        self._run = run
        self._n_new = self._n_named = self._n_written = 0
        self._max_index = -1
        self.n_rows = self.n_positive = self.n_unlike = 0

    def blocks(self) -> Iterator[ScoredBlock]:
        """Yield each block of rows with its scores, as rows arrive."""
        request, model = self._request, self._scorer.model
        multiple = self._scorer.predictor.rows_multiple
        for block, scored in map_blocks(
            BlockScorer.score,
            self._scorer,
            request.source,
            self._run,
            zero_based=model.zero_based,
            with_comments=request.ids,
            multiple=multiple,
            max_rows=max(1, MAX_CELLS // (multiple * len(model.ensemble.members))) * multiple,
        ):
            if scored.first_bad is not None:
                raise _not_finite(name_of(request.source), int(block.lines[scored.first_bad]))
            self.n_rows += len(block)
            self.n_unlike += scored.n_unlike
            self._n_new += scored.n_new_features
            self._max_index = max(self._max_index, scored.max_index)
            self._n_named += sum(map(bool, block.comments or ()))
            yield scored
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
        """Warn the user about rows that look wrong."""
        if self._n_new > FRACTION_NEW * self.n_rows:
            self._run.notice(
                f"{self._n_new:,} of {self.n_rows:,} rows have features up to {self._max_index};"
                f" the model was trained on features up to {self._scorer.model.last_feature}"
            )
        if are_unlike(self.n_unlike, self.n_rows):
            self._run.notice(
                f"{self.n_unlike:,} of {self.n_rows:,} rows are unlike the training rows: their"
                " values lie outside the range of 99 % of the out-of-bag values, or they are"
                " far from every support vector; were they preprocessed in the same way?"
            )
        if self._request.ids and not self._n_named:
            self._run.notice("no row has a trailing comment (# name) to use as its id")


def _threshold_for_recall(
    request: PredictRequest, model: StoredModel, decision: RuleName, recall: float, run: Run
) -> float:
    """Return the highest threshold that reaches this recall of the true positives out of bag."""
    assert model.out_of_bag is not None
    values = model.out_of_bag.by(decision)
    if values is None:
        raise ModelError(
            f"{request.model}: has no out-of-bag values for the mean: written by an older version",
            Message("train it again, or use {decision:votes}"),
        )
    known, unlabeled = values
    if request.contamination_pos and not len(unlabeled):
        raise ModelError(
            Message(
                "{model}: has no out-of-bag values of U, which {contamination_pos} needs",
                model=request.model,
            ),
            "train it again",
        )
    threshold = threshold_for_recall(known, unlabeled, recall, request.contamination_pos)
    above = round((threshold.recall or 0.0) * len(known))
    run.notice(
        f"T = {threshold.value:.6g}: {above:,} of {len(known):,} known positives score above it"
        " out of bag"
    )
    return threshold.value


def _predict_top(
    job: _Pass, rule: ThresholdRule, write: Callable[[bytes], object], run: Run
) -> None:
    """Predict the top rows of the file positive; all rows are scored before any is written."""
    with BlockSpool() as spool:
        best: FloatArray = np.zeros(0)
        for scored in job.blocks():
            spool.add(scored.predictions)
            if rule.kind == "top":
                best = _largest(best, scored.predictions.decision_values, int(rule.amount))
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
            f"{job.n_positive:,} rows are predicted positive, not {wanted:,}: several tie at"
            f" {least:.6g}"
        )
    elif job.n_positive < wanted:
        run.notice(
            f"only {job.n_rows:,} rows: all of them are predicted positive ({wanted:,} requested)"
        )


def _largest(kept: FloatArray, values: FloatArray, count: int) -> FloatArray:
    """Return the ``count`` largest values of both arrays."""
    both = np.concatenate([kept, values])
    return both if len(both) <= count else np.partition(both, len(both) - count)[-count:]


def _not_finite(name: str, line: int) -> DataError:
    return DataError(
        f"{name}:{line}: the row's decision value is not finite",
        "its values are far from those of the training rows; scale both in the same way",
    )
