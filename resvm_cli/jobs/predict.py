"""A model and rows to labels and decision values, block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from resvm_cli import parallel
from resvm_cli.ensemble.model import Decisions, Ensemble, Predictor
from resvm_cli.errors import CommandLineError, DataError
from resvm_cli.files import model_dir
from resvm_cli.files.predictions import (
    FormatName,
    PredictionBlock,
    format_block,
    format_header,
    output,
)
from resvm_cli.files.stdout import STDOUT
from resvm_cli.files.streams import name_of, same_source
from resvm_cli.files.svmlight import Block, map_blocks
from resvm_cli.svm.pool import BLOCK_ROWS

# A rare feature that training happened to miss is no sign of other data.
STRANGE_SHARE = 0.01


@dataclass(frozen=True)
class PredictRequest:
    """What to predict and what to write of it."""

    model: str
    source: str = "-"
    target: str = "-"
    form: FormatName = "text"
    threshold: float | None = None  # None: the model's own
    break_ties: bool = False
    votes: bool = False
    member_values: bool = False
    ids: bool = False
    zero_based: bool = False
    jobs: int | None = None  # None: as many as there are cores


@dataclass(frozen=True)
class PredictResult:
    """How many rows were judged, and how many of them positive."""

    n_rows: int
    n_positive: int


@dataclass(frozen=True, eq=False)
class _Answer:
    """What is made of a block of rows where it is parsed."""

    written: PredictionBlock
    text: bytes
    first_bad: int | None  # a row whose value is not finite
    n_strange: int  # rows with features that training did not see
    largest: int  # index


def predict(
    request: PredictRequest,
    progress: Callable[[str, int, int | None], None],
    notice: Callable[[str], None] = lambda text: None,
) -> PredictResult:
    """Judge every row of the source and write one line for each, in order."""
    if request.target != STDOUT and same_source(request.source, request.target):
        raise CommandLineError(
            f"-o and the input are the same file: {request.source}", "choose another file with -o"
        )
    stored = model_dir.load(request.model)
    n_rows = n_positive = n_strange = n_named = 0
    largest = -1
    with parallel.inner_threads_held(), output(request.target) as write:
        predictor = Predictor(stored.ensemble, stored.scaling)
        if request.zero_based and not stored.zero_based:
            raise CommandLineError(
                "--zero-based, but the model was trained on features counted from 1",
                "train it with --zero-based too, or leave the option out",
            )
        last_feature = stored.manifest["n_features"] - (1 if stored.zero_based else 0)

        def judge(block: Block) -> _Answer:
            decisions = predictor.decisions(block.rows)
            written = _written(decisions, block, request, stored.ensemble)
            strange = 0
            if block.rows.max_index > last_feature:
                beyond = block.rows.indices > last_feature
                strange = len(np.unique(block.rows.row_numbers[beyond]))
            bad = np.flatnonzero(~np.isfinite(decisions.sums))
            return _Answer(
                written,
                format_block(request.form, written),
                int(bad[0]) if len(bad) else None,
                strange,
                block.rows.max_index,
            )

        for block, answer in map_blocks(
            judge,
            request.source,
            zero_based=stored.zero_based,
            with_comments=request.ids,
            workers=lambda: request.jobs or parallel.available_cores(),
            multiple=BLOCK_ROWS,
        ):
            if answer.first_bad is not None:
                raise _not_finite(name_of(request.source), int(block.lines[answer.first_bad]))
            if n_rows == 0:
                write(format_header(request.form, answer.written))
            write(answer.text)
            n_rows += len(block)
            n_positive += int((answer.written.labels == 1).sum())
            n_strange += answer.n_strange
            largest = max(largest, answer.largest)
            n_named += sum(map(bool, block.comments or ()))
            progress("predicting", n_rows, None)
    if n_strange > STRANGE_SHARE * n_rows:
        notice(
            f"{n_strange:,} of {n_rows:,} rows have features up to {largest};"
            f" the model was trained on features up to {last_feature}"
        )
    if request.ids and not n_named:
        notice("no row has a trailing comment (# name) to take its id from")
    return PredictResult(n_rows, n_positive)


def _written(
    decisions: Decisions, block: Block, request: PredictRequest, ensemble: Ensemble
) -> PredictionBlock:
    threshold = ensemble.default_threshold if request.threshold is None else request.threshold
    break_ties = request.break_ties and not ensemble.single  # one SVM's own values have none
    return PredictionBlock(
        labels=decisions.labels(threshold),
        decision_values=decisions.values_without_ties() if break_ties else decisions.values,
        votes=decisions.votes if request.votes else None,
        member_values=decisions.member_values if request.member_values else None,
        ids=block.comments,
    )


def _not_finite(name: str, line: int) -> DataError:
    return DataError(
        f"{name}:{line}: the row's decision value is not finite",
        "its values are far outside what the model was trained on: scale them as then",
    )
