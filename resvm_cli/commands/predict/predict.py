"""Predict labels and decision values block by block, for one file or many."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from resvm_cli.commands.predict.scoring import (
    BlockScorer,
    InputNotes,
    PredictRequest,
    ScoredBlock,
)
from resvm_cli.errors import DataError, Message, ModelError, ParameterError, Text
from resvm_cli.files.atomic import check_outputs, output
from resvm_cli.files.json_files import OutputDirectory, output_names
from resvm_cli.files.predictions import format_header
from resvm_cli.files.sources import Source
from resvm_cli.files.streams import STDIN, comes_at_once, file_digest
from resvm_cli.files.svmlight import Block, map_blocks
from resvm_cli.model.decisions import threshold_for_recall
from resvm_cli.model_files.directory import StoredModel, load_with_out_of_bag
from resvm_cli.model_files.out_of_bag_table import fitted_classes, unknown_probability
from resvm_cli.parameters import RuleName
from resvm_cli.records import dataclass
from resvm_cli.running import parallel
from resvm_cli.running.run import Run, Share
from resvm_cli.tables.inputs import RowInput

if TYPE_CHECKING:
    from resvm_cli.metrics.class_mixture import ClassMixture
    from resvm_cli.tables.notes import Annotation

MAX_CELLS = 1 << 22  # rows times members in one block, 32 MB
SUFFIXES = {"text": ".pred", "tsv": ".tsv", "csv": ".csv", "jsonl": ".jsonl"}
# Fields that do not affect the lines of output.
PATHS = ("model", "source", "target", "annotate")


@dataclass(frozen=True)
class PredictResult:
    """How many rows were scored, the threshold, and how many rows are predicted positive."""

    n_rows: int
    n_positive: int
    decision: RuleName
    threshold: float
    n_unlike: int | None  # rows unlike the training rows; None if the model cannot tell
    notes: tuple[Text, ...]


@dataclass(frozen=True)
class FilesResult:
    """How many files were predicted or skipped, for the report."""

    path: str
    n_predicted: int
    n_skipped: int  # already finished
    n_elsewhere: int  # left to other tasks


def predict_files(
    request: PredictRequest, sources: Sequence[str], target: str, share: Share | None, run: Run
) -> FilesResult:
    """Write predictions for all files, or for one task's share; skip finished outputs."""
    if STDIN in sources:
        raise ParameterError(
            "{out_dir} needs input files: outputs are named after them, and stdin has no name"
        )
    names = output_names(list(sources), SUFFIXES[request.form])
    targets = [(Message("{out_dir}"), os.path.join(target, name)) for name in names]
    check_outputs(targets, [("FILE", source) for source in sources])
    model = load_model(request)
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
    if request.table is None:  # same record as in versions without tables
        del options["table"]
    return {
        "model": model.manifest["manifest_sha256"],
        "input": file_digest(source),
        "options": json.loads(json.dumps(options)),  # as it will be read back: tuples become lists
    }


def load_model(request: PredictRequest) -> StoredModel:
    """Load the model with its out-of-bag values, which a recall threshold requires."""
    return load_with_out_of_bag(request.model, required=request.recall is not None)


def predict(request: PredictRequest, run: Run, model: StoredModel | None = None) -> PredictResult:
    """Score every row of the source and write one line per row, in order.

    The model is loaded unless ``model`` is given.
    """
    model = model or load_model(request)
    if request.zero_based and not model.zero_based:
        raise ParameterError(
            "the model was trained on feature indices that start at 1, not with {zero_based:True}",
            "train it with {zero_based:True} too, or omit {zero_based:True}",
        )
    if request.decision == "mean" and model.ensemble.single:
        raise ParameterError("{decision:mean} does not apply to cwsvm, which has only one member")
    decision = request.decision or model.decision.rule
    threshold = model.decision.thresholds[decision].value
    if request.threshold is not None:
        threshold = request.threshold
    elif request.recall is not None:
        threshold = _threshold_for_recall(request, model, decision, request.recall, run)
    classes = _classes(request, model, decision, run) if request.probability else None
    scorer = BlockScorer(request, model, decision, threshold, classes)
    with ExitStack() as opened:
        opened.enter_context(parallel.inner_threads_held())
        source = Source(request.source, once=request.annotate is None)
        opened.callback(source.close)
        rows = RowInput(source, request.table, zero_based=model.zero_based)
        rows.encode_like(model.encoding, model.last_feature)
        annotation = None
        if request.annotate is not None:
            annotation = opened.enter_context(_annotation(request.annotate, rows))
        notes = InputNotes(scorer, rows)
        n_positive = 0
        with output(request.target) as write:
            for number, (block, scored) in enumerate(_scored(scorer, rows, run)):
                if not number:
                    write(format_header(request.form, scored.predictions))
                notes.add(block, scored)
                write(scored.text)
                if annotation is not None:
                    annotation.add(scored.predictions)
                n_positive += int((scored.predictions.labels == 1).sum())
                run.progress("predicting", notes.n_rows, None)
            if not notes.n_rows:
                hint = None if rows.table is None else "the file contains only column names"
                raise DataError(f"{rows.name}: no rows", hint)
        for text in notes.texts(n_positive):
            run.notice(text)
    return PredictResult(
        notes.n_rows,
        n_positive,
        decision,
        threshold,
        None if scorer.usual is None else notes.n_unlike,
        tuple(run.notes),
    )


def _annotation(path: str, rows: RowInput) -> AbstractContextManager[Annotation]:
    if rows.features is None:
        raise DataError(
            Message("{file}: {annotate} needs a table with columns", file=rows.name),
            Message("omit {annotate}; predictions are written in row order"),
        )
    from resvm_cli.tables.notes import Annotation

    return Annotation(path, rows.features)


def _scored(scorer: BlockScorer, rows: RowInput, run: Run) -> Iterator[tuple[Block, ScoredBlock]]:
    """Yield each block of rows with its scores, as rows arrive."""
    request = scorer.request
    if not rows.is_text:
        blocks = rows.blocks()
        if not request.ids:
            blocks = (replace(block, comments=None) for block in blocks)
        return run.map_shared(_score_rows, scorer, blocks)
    multiple = scorer.predictor.rows_multiple
    n_members = len(scorer.model.ensemble.members)
    return map_blocks(
        BlockScorer.score,
        scorer,
        rows.pieces(),
        rows.name,
        run,
        zero_based=scorer.model.zero_based,
        with_comments=request.ids,
        multiple=multiple if comes_at_once(request.source) else 1,
        max_rows=max(1, MAX_CELLS // (multiple * n_members)) * multiple,
    )


def _score_rows(scorer: BlockScorer, block: Block) -> tuple[Block, ScoredBlock]:
    return block, scorer.score(block)


def _threshold_for_recall(
    request: PredictRequest, model: StoredModel, decision: RuleName, recall: float, run: Run
) -> float:
    """Return the highest threshold that reaches this recall of the true positives out of bag."""
    assert model.out_of_bag is not None
    values = model.out_of_bag.by(decision)
    if values is None:
        raise ModelError(
            f"{request.model}: was written by an older version, which did not store out-of-bag mean"
            " values",
            Message("train it again, or use {decision:votes}"),
        )
    known, unlabeled = values
    mislabeled = request.contamination_pos or 0.0
    if mislabeled and not len(unlabeled):
        raise ModelError(
            Message(
                "{model}: no out-of-bag values for U are stored; {contamination_pos} requires them",
                model=request.model,
            ),
            "train it again",
        )
    threshold = threshold_for_recall(known, unlabeled, recall, mislabeled)
    above = round((threshold.recall or 0.0) * len(known))
    run.remark(
        f"T = {threshold.value:.6g}: {above:,} of {len(known):,} known positives score above it"
        " out of bag"
    )
    return threshold.value


def _classes(
    request: PredictRequest, model: StoredModel, decision: RuleName, run: Run
) -> ClassMixture | None:
    """Return the mixture model that gives each row's probability; warn if it cannot give any."""
    fractions = request.contamination_pos, request.contamination_unl
    classes = fitted_classes(model.out_of_bag, model.manifest["method"], decision, *fractions)
    unknown = unknown_probability(classes)
    if unknown is not None:
        run.notice(
            Message("{probability:True}: {why}; {hint}", why=unknown.message, hint=unknown.hint)
        )
    return classes
