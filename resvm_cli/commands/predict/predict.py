"""Predict labels and decision values block by block, for one file or many."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, replace
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli.commands.predict.scoring import (
    BlockScorer,
    PredictRequest,
    ScoredBlock,
    ThresholdRule,
)
from resvm_cli.errors import DataError, Message, ModelError, ParameterError, Text, listed
from resvm_cli.files.atomic import check_outputs, output
from resvm_cli.files.predictions import (
    BlockSpool,
    PredictionBlock,
    format_block,
    format_header,
    labeled,
)
from resvm_cli.files.run_directory import OutputDirectory, output_names
from resvm_cli.files.sources import Source
from resvm_cli.files.streams import STDIN, comes_at_once, file_digest, name_of
from resvm_cli.files.svmlight import Block, map_blocks
from resvm_cli.model.decisions import (
    are_unlike,
    is_beyond_chance,
    is_other_share,
    threshold_for_recall,
)
from resvm_cli.model.pu_data import SAMPLE_ROWS
from resvm_cli.model_files.directory import StoredModel, load_with_out_of_bag
from resvm_cli.model_files.out_of_bag_table import fitted_classes, unknown_probability
from resvm_cli.parameters import RuleName
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, RowDigest, Rows, distinct
from resvm_cli.running import parallel
from resvm_cli.running.run import Run, Share
from resvm_cli.tables.inputs import RowInput

if TYPE_CHECKING:
    from resvm_cli.metrics.class_mixture import ClassMixture
    from resvm_cli.tables.annotate import Annotation

# A few rows with features unseen in training do not mean that the data is different.
FRACTION_NEW = 0.01
SHOWN = 10  # features
MAX_CELLS = 1 << 22  # rows times members of one block: 32 MB
SUFFIXES = {"text": ".pred", "tsv": ".tsv", "csv": ".csv", "jsonl": ".jsonl"}
SETS = ("positive", "unlabeled", "negative")  # of a manifest; the last is optional
# Fields that do not affect the lines of output.
PATHS = ("model", "source", "target", "annotate")


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
    request: PredictRequest, sources: Sequence[str], target: str, share: Share | None, run: Run
) -> FilesResult:
    """Predict all files, or one task's share, into a directory; skip finished outputs."""
    if STDIN in sources:
        raise ParameterError("{out_dir} needs input files: stdin has no name for an output")
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
    if request.table is None:  # as in versions without tables
        del options["table"]
    return {
        "model": model.manifest["manifest_sha256"],
        "input": file_digest(source),
        "options": json.loads(json.dumps(options)),  # as read back: tuples become lists
    }


def load_model(request: PredictRequest) -> StoredModel:
    """Load the model with its out-of-bag values, which a recall threshold requires."""
    rule = request.threshold
    required = isinstance(rule, ThresholdRule) and rule.kind == "recall"
    return load_with_out_of_bag(request.model, required=required)


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
    rule = request.threshold if isinstance(request.threshold, ThresholdRule) else None
    threshold = model.decision.thresholds[decision].value
    if isinstance(request.threshold, float | int):
        threshold = request.threshold
    elif rule is not None and rule.kind == "recall":
        threshold = _threshold_for_recall(request, model, decision, rule.amount, run)
        rule = None
    classes = _classes(request, model, decision, run) if request.probability else None
    scorer = BlockScorer(request, model, decision, threshold, rule is None, classes)
    with ExitStack() as opened:
        opened.enter_context(parallel.inner_threads_held())
        source = Source(request.source, once=request.annotate is None)
        opened.callback(source.close)
        rows = RowInput(source, request.table, zero_based=model.zero_based)
        rows.encode_like(model.encoding, model.last_feature)
        annotation = None
        if request.annotate is not None:
            annotation = opened.enter_context(_annotation(request.annotate, rows))
        job = _Pass(scorer, rows, annotation, run)
        with output(request.target) as write:
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
        None if scorer.usual is None else max(job.n_unlike, job.n_beyond),
        tuple(run.notes),
    )


def _annotation(path: str, rows: RowInput) -> AbstractContextManager[Annotation]:
    if rows.features is None:
        raise DataError(
            Message("{file}: {annotate} needs a table with columns", file=rows.name),
            Message("omit {annotate}; predictions are written in row order"),
        )
    from resvm_cli.tables.annotate import Annotation

    return Annotation(path, rows.features)


class _TrainingSets:
    """Detects by digests whether a file contains the rows that the model was trained on.

    Computing digests takes about a tenth as long as parsing, and stops after as many rows as the
    model was trained on. If P and U came from one table, or from one file and a list of ids, their
    labels are unknown here. Such a file is recognized by its numbers of rows and of nonzero values
    if many of its first rows are support vectors.
    """

    def __init__(self, model: StoredModel) -> None:
        manifest = model.manifest
        described = manifest["data"]
        self._ensemble = model.ensemble
        self._described = [described[which] for which in SETS if which in described]
        self._n_values = 0
        self._first: Rows | None = None
        self._digest_of = {
            described[which]["sha256"]: letter
            for which, letter in (("positive", "P"), ("unlabeled", "U"))
            if not described[which].get("sampled")
        }
        self._label = manifest["labels"]["trained_on"]  # of P, in one labeled file
        self._n_most = sum(one["rows"] for one in self._described)
        self._digests = {True: RowDigest(), False: RowDigest()}
        self._n_rows = 0

    def add(self, block: Block) -> None:
        self._n_rows += len(block)
        if self._n_rows > self._n_most:
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
        """Return which of P and U the file consists of."""
        if self._n_rows > self._n_most:
            return []
        digests = [each.digest() for each in self._digests.values() if each.n_rows]
        found = sorted({self._digest_of[one] for one in digests if one in self._digest_of})
        return found or (["P", "U"] if self._is_whole() else [])

    def _is_whole(self) -> bool:
        """Whether the file seems to contain exactly the training rows."""
        ensemble, rows = self._ensemble, self._first
        counts = [one.get("nonzeros") for one in self._described]
        if rows is None or None in counts or self._n_rows != self._n_most:
            return False
        if self._n_values != sum(counts):
            return False
        for group in ensemble.groups:
            members = ensemble.members[group.columns]
            if members[0].weights is None and not ensemble.is_precomputed:
                numbers = distinct(np.concatenate([member.support for member in members]))
                support = ensemble.pool.take(numbers).content_hashes()
                own = ensemble.scaled(rows, group).content_hashes()
                if len(distinct(own)) < 0.9 * len(own):
                    return False  # rows repeat, so others may equal support vectors
                n_found = np.isin(own, support).sum()
                return bool(
                    n_found >= max(1, 0.5 * len(distinct(support)) * len(rows) / self._n_rows)
                )
        return False


class _Pass:
    """One pass that scores all rows block by block and counts what to report."""

    def __init__(
        self, scorer: BlockScorer, rows: RowInput, annotation: Annotation | None, run: Run
    ) -> None:
        self._rows = rows
        self._annotation = annotation
        self._scorer = scorer
        self._request = scorer.request
        self._run = run
        self._n_new = self._n_named = self._n_written = 0
        self._max_index = -1
        self._outside: Counter[int] = Counter()  # rows outside the range of each feature
        self._trained_on = _TrainingSets(scorer.model)
        self.n_rows = self.n_positive = self.n_unlike = 0
        self.n_beyond = 0  # rows outside the range of one feature, if there are unusually many

    def blocks(self) -> Iterator[ScoredBlock]:
        """Yield each block of rows with its scores, as rows arrive."""
        for block, scored in self._scored():
            if scored.first_bad is not None:
                where = f"{self._rows.name}:{block.lines[scored.first_bad]}"
                raise DataError(
                    f"{where}: the row's decision value is not finite",
                    "its features are far from the training data; scale both in the same way",
                )
            self.n_rows += len(block)
            self._trained_on.add(block)
            self.n_unlike += scored.n_unlike
            self._outside.update(scored.outside)
            self._n_new += scored.n_new_features
            self._max_index = max(self._max_index, scored.max_index)
            self._n_named += sum(map(bool, block.comments or ()))
            yield scored
            self._run.progress("predicting", self.n_rows, None)
        if not self.n_rows:
            hint = None if self._rows.table is None else "the file contains only column names"
            raise DataError(f"{self._rows.name}: no rows", hint)

    def _scored(self) -> Iterator[tuple[Block, ScoredBlock]]:
        scorer, run, name = self._scorer, self._run, name_of(self._request.source)
        rows = self._rows
        if rows.is_text:
            multiple = scorer.predictor.rows_multiple
            n_members = len(scorer.model.ensemble.members)
            yield from map_blocks(
                BlockScorer.score,
                scorer,
                rows.pieces(),
                name,
                run,
                zero_based=scorer.model.zero_based,
                with_comments=self._request.ids,
                multiple=multiple if comes_at_once(self._request.source) else 1,
                max_rows=max(1, MAX_CELLS // (multiple * n_members)) * multiple,
            )
            return
        blocks = self._rows.blocks()
        if not self._request.ids:
            blocks = (replace(block, comments=None) for block in blocks)
        yield from run.map_shared(_score_rows, scorer, blocks)

    def write(
        self, write: Callable[[bytes], object], block: PredictionBlock, text: bytes | None = None
    ) -> None:
        if self._n_written == 0:
            write(format_header(self._request.form, block))
        write(format_block(self._request.form, block) if text is None else text)
        if self._annotation is not None:
            self._annotation.add(block)
        self._n_written += len(block.labels)
        self.n_positive += int((block.labels == 1).sum())

    def _note_ranges(self) -> None:
        """Warn about features with values outside the training ranges that scalings store."""
        model = self._scorer.model
        n_trained = min(model.manifest["data"]["unlabeled"]["rows"], SAMPLE_ROWS)
        names = None if model.encoding is None else model.encoding.names
        beyond = {
            str(feature) if names is None else names[feature - 1]: count
            for feature, count in sorted(self._outside.items())
            if are_unlike(count, self.n_rows)
            and is_beyond_chance(count, self.n_rows, n_trained, model.last_feature + 1)
        }
        if not beyond:
            return
        self.n_beyond = max(beyond.values())
        features = listed([f"{name} in {count:,}" for name, count in beyond.items()], SHOWN)
        self._run.notice(
            f"values outside the range of the training rows: {features} of"
            f" {self.n_rows:,} rows; check that columns and units match the training data"
        )

    def _note_share(self) -> None:
        """Warn if unusually many or few rows exceed the model's own threshold."""
        model = self._scorer.model
        threshold = model.decision.thresholds[self._scorer.decision]
        table = None if model.out_of_bag is None else model.out_of_bag.by(self._scorer.decision)
        if threshold.share is None or threshold.recall is None or table is None:
            return
        n_pos, n_unl = (model.manifest["data"][which]["rows"] for which in SETS[:2])
        # the square root of a count has a standard deviation of about 1/2
        n_scored = max(1, len(table[1]))
        root = math.sqrt(threshold.share * n_scored)
        low = max(0.0, root - 1.0) ** 2 / n_scored
        # rows may be like U, or like the rows that P and U were made of
        both = (threshold.recall * n_pos + threshold.share * n_unl) / (n_pos + n_unl)
        high = max(min(1.0, (root + 1.5) ** 2 / n_scored), both)
        if is_other_share(self.n_positive, self.n_rows, low, high):
            share = self.n_positive / self.n_rows
            self._run.notice(
                f"{100 * share:.3g} % of the rows are predicted positive, but in training"
                f" {100 * threshold.share:.3g} % of U and {100 * both:.3g} % of P and U together"
                " were; unless you expect this, check that columns and units match the training"
                " data"
            )

    def finish(self) -> None:
        """Warn the user about rows that look wrong."""
        if sets := self._trained_on.found():
            self._run.notice(
                f"the model was trained on these rows ({' and '.join(sets)}), so their values are"
                " optimistic; resvm rank scores each row only with members that have not seen it"
            )
        if self._n_new > FRACTION_NEW * self.n_rows:
            self._run.notice(
                f"{self._n_new:,} of {self.n_rows:,} rows have feature indices up to"
                f" {self._max_index}, but the model was trained on indices up to"
                f" {self._scorer.model.last_feature}"
            )
        self._note_ranges()
        if are_unlike(self.n_unlike, self.n_rows):
            self._run.notice(
                f"{self.n_unlike:,} of {self.n_rows:,} rows are unlike the training rows: their"
                " decision values lie outside the range of 99 % of the out-of-bag values, or they"
                " are far from every support vector; check that they were preprocessed in the same"
                " way"
            )
        if self._request.threshold is None and not sets:
            self._note_share()
        if self._request.ids and not self._n_named:
            self._run.notice(_no_ids(self._rows))
        if self._rows.features is not None:
            from resvm_cli.tables.notes import notes_on_prediction

            for text in notes_on_prediction(self._rows.features):
                self._run.notice(text)


def _no_ids(rows: RowInput) -> Text:
    if rows.is_text:
        return "no row has a trailing comment (# name) to use as its id"
    if rows.features is None:
        return "a sparse matrix has no row ids"
    return Message("no row has an id; name the column that contains ids: {id_column:NAME}")


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
            f"{request.model}: an older version wrote this model, without out-of-bag mean values",
            Message("train it again, or use {decision:votes}"),
        )
    known, unlabeled = values
    mislabeled = request.contamination_pos or 0.0
    if mislabeled and not len(unlabeled):
        raise ModelError(
            Message(
                "{model}: no out-of-bag values of U are stored; {contamination_pos} requires them",
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
    """Return the mixture that gives the probability of a row; warn if it is unknown."""
    fractions = request.contamination_pos, request.contamination_unl
    classes = fitted_classes(model.out_of_bag, model.manifest["method"], decision, *fractions)
    unknown = unknown_probability(classes)
    if unknown is not None:
        run.notice(
            Message("{probability:True}: {why}; {hint}", why=unknown.message, hint=unknown.hint)
        )
    return classes


def _predict_top(
    job: _Pass, rule: ThresholdRule, write: Callable[[bytes], object], run: Run
) -> None:
    """Predict the top rows of the file as positive, after scoring all rows."""
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
            f"{job.n_positive:,} rows are predicted positive instead of {wanted:,}, because"
            f" several are tied at {least:.6g}"
        )
    elif job.n_positive < wanted:
        run.notice(
            f"only {job.n_rows:,} rows: all of them are predicted positive ({wanted:,} requested)"
        )


def _largest(kept: FloatArray, values: FloatArray, count: int) -> FloatArray:
    """Return the ``count`` largest values of both arrays."""
    both = np.concatenate([kept, values])
    return both if len(both) <= count else np.partition(both, len(both) - count)[-count:]
