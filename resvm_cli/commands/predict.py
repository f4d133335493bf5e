"""resvm predict: its options, the scoring of rows block by block, and the summary it prints.

numpy is imported inside functions, so that --help stays fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from resvm_cli import threads as parallel
from resvm_cli.cli import options as shared
from resvm_cli.cli.option_groups import (
    advanced_option,
    argument,
    expand_option_groups,
    option_group,
)
from resvm_cli.cli.terminal import (
    PREVIEW_ROWS,
    announce_stdin,
    print_json,
    print_preview,
    shows_preview,
)
from resvm_cli.errors import CommandLineError, DataError, ModelError
from resvm_cli.parameters import RULE_NAMES, RuleName, check_contamination
from resvm_cli.records import dataclass
from resvm_cli.run import Run

if TYPE_CHECKING:
    from resvm_cli.data.encoding import ColumnRoles
    from resvm_cli.data.inputs import RowInput
    from resvm_cli.data.predictions import FormatName, PredictionBlock
    from resvm_cli.data.svmlight import Block
    from resvm_cli.ensemble.decisions import Decisions
    from resvm_cli.ensemble.ensemble import Predictor
    from resvm_cli.metrics.class_mixture import ClassMixture
    from resvm_cli.rows import FloatArray, IntArray
    from resvm_cli.storage.model import StoredModel

MAX_CELLS = 1 << 22  # rows times members in one block, 32 MB
# A row is far from every support vector if all of them together add less than this fraction of rho.
NEGLIGIBLE = 1e-3

ScoredBlock: TypeAlias = "tuple[PredictionBlock, bytes, int]"


@option_group
class PredictOptions:
    """What to write, and the rule by which rows are predicted positive."""

    output: str = shared.output_option(
        "-o, --output FILE", "Output file (- is stdout).", default="-"
    )
    annotate: str | None = shared.ANNOTATE
    form: str | None = shared.output_option(
        "--format NAME",
        "text (label and decision value), or tsv, csv or jsonl with named columns.",
        completions=("text", "tsv", "csv", "jsonl"),
        show_default="tsv for a table, text for svmlight",
    )
    votes: bool = shared.output_option("--votes", "Add the fraction of positive votes.")
    member_values: bool = advanced_option("--member-values", "Add each member's decision value.")
    probability: bool = shared.output_option(
        "--probability",
        "Add the probability that a row is positive, for rows from the same distribution as U;"
        " empty if unknown.",
    )
    ids: bool = shared.output_option(
        "--ids",
        "Copy row ids to the output: trailing comments (# name), or the values in --id-column,"
        " which implies --ids.",
    )
    json: bool = shared.JSON
    threshold: str | None = shared.method_option(
        "-T, --threshold T",
        "Predict rows above this decision value as positive; recall=0.9 chooses the value"
        " that 90% of the known positives exceed out of bag.",
        completions=("recall=",),
        show_default="the model's own",
    )
    decision: str | None = shared.method_option(
        "--decision RULE",
        "Decision rule: votes (as in the paper) or mean (the members' mean value).",
        completions=("votes", "mean"),
        show_default="the model's own",
    )
    contamination_pos: float | None = shared.method_option(
        "--contamination-pos A",
        "Fraction of P that is negative, for -T recall and --probability.",
        show_default="0; estimated for --probability",
    )
    contamination_unl: float | None = shared.method_option(
        "--contamination-unl B",
        "Fraction of U that is positive, for --probability.",
        show_default="estimated",
    )

    @property
    def format_name(self) -> FormatName:
        formats: tuple[FormatName, ...] = ("text", "tsv", "csv", "jsonl")
        return shared.parse_choice("--format", self.form or "text", formats)

    @property
    def rule(self) -> RuleName | None:
        rule = self.decision
        return None if rule is None else shared.parse_choice("--decision", rule, RULE_NAMES)

    def threshold_or_recall(self) -> tuple[float | None, float | None]:
        """Parse -T: return a threshold, or the recall that it must reach."""
        text, option = self.threshold, "-T/--threshold"
        if text is None:
            return None, None
        if not text.startswith("recall="):
            return shared.parse_number(option, text, "a number or recall=R"), None
        recall = shared.parse_number(option, text.removeprefix("recall="), "a fraction in (0, 1]")
        if not 0 < recall <= 1:
            raise CommandLineError(
                f"{option} must be a fraction above 0 and at most 1, got '{text}'"
            )
        return None, recall

    def check(self) -> None:
        """Reject options that cannot work, before any file is read."""
        _, _, (_, recall) = self.format_name, self.rule, self.threshold_or_recall()
        if self.contamination_pos and recall is None and not self.probability:
            raise CommandLineError("--contamination-pos requires -T recall=R or --probability")
        if self.contamination_unl is not None and not self.probability:
            raise CommandLineError("--contamination-unl requires --probability")
        check_contamination(self.contamination_pos, self.contamination_unl)
        if self.json and self.output == "-":
            raise CommandLineError(
                "--json prints a summary on stdout, but the predictions are written there too",
                "write the predictions to a file (-o), or as JSON (--format jsonl)",
            )
        if self.annotate is not None:
            from resvm_cli.data.encoding import check_annotated

            check_annotated(self.annotate)


@expand_option_groups
def predict(
    *,
    model: str = argument("MODEL", "Model directory written by resvm train."),
    file: str = argument(
        "[FILE]",
        "Rows to score: svmlight text or a table (- is stdin). Table columns are matched by"
        " name to the columns that the model was trained on.",
        default="-",
    ),
    table: shared.PredictedTableOptions,
    options: PredictOptions,
    cluster: shared.ClusterOptions,
    running: shared.RunningOptions,
) -> None:
    """Score rows with a model and write one line per row, in input order, as rows arrive.

    Values are written with full precision and do not depend on how rows are batched.

    For example:

    - `resvm predict model test.svm > test.pred`
    - `resvm predict model new.csv --id-column patient -o predictions.tsv`
    - `zcat test.svm.gz | resvm predict model --ids --votes --format tsv`
    - `resvm predict model test.svm -T recall=0.9 -o test.pred`
    """
    options.check()
    if table.missing == "drop":
        raise CommandLineError(
            "--missing drop cannot be used here: every row is predicted",
            "fill in missing values (--missing zero), and leave out invalid molecules",
        )
    if table.id_column is not None:
        options = PredictOptions(**{**vars(options), "ids": True})
    roles = None if vars(table) == vars(shared.PredictedTableOptions()) else table.roles()
    if file == "-" and not running.quiet:
        announce_stdin()
    with running.run(cluster) as run:
        result = predict_rows(model, file, options, run, roles)
    if options.json:
        paths = {"model": model, "file": file, "output": options.output}
        print_json("predict", {**paths, **result})


def predict_rows(
    path: str, source: str, options: PredictOptions, run: Run, roles: ColumnRoles | None = None
) -> dict[str, Any]:
    """Score every row of the source and write one line per row, in order; return a summary."""
    from resvm_cli.data.atomic import output
    from resvm_cli.data.inputs import RowInput
    from resvm_cli.data.notes import notes_on_prediction, notes_on_rows, unlike_training
    from resvm_cli.data.predictions import Annotation, format_header
    from resvm_cli.data.streams import Source, is_regular_file
    from resvm_cli.storage.model import load_with_out_of_bag

    # a recall threshold requires the out-of-bag values
    model = load_with_out_of_bag(path, required=options.threshold_or_recall()[1] is not None)
    with ExitStack() as opened:
        opened.enter_context(parallel.one_blas_thread())
        opened_source = Source(source, once=options.annotate is None)
        opened.callback(opened_source.close)
        encoding = model.encoding
        rows = RowInput(opened_source, roles, zero_based=model.zero_based, known=encoding)
        rows.encode_like(encoding, model.last_feature)
        preview: list[PredictionBlock] | None = None
        if options.form is None:
            preview = [] if shows_preview(options.output) and not options.json else None
            form = "text" if rows.table is None else "tsv"
            options = PredictOptions(**{**vars(options), "form": form})
        scorer = _scorer(path, model, source, options, run)
        annotation = None
        if options.annotate is not None:
            if rows.features is None:
                raise DataError(
                    f"{rows.name}: --annotate needs a table with columns",
                    "omit --annotate; predictions are written in row order",
                )
            annotation = opened.enter_context(Annotation(options.annotate, rows.features))
        n_rows = n_positive = n_unlike = 0
        with output(options.output) as write:
            for block, (predictions, text, n_unlike_here) in _scored(
                scorer, rows, is_regular_file(source), run
            ):
                if preview is not None:
                    preview += [predictions] if n_rows < PREVIEW_ROWS else []
                else:
                    if not n_rows:
                        write(format_header(options.format_name, predictions))
                    write(text)
                if annotation is not None:
                    annotation.add(predictions)
                n_rows += len(block)
                n_positive += int((predictions.labels == 1).sum())
                n_unlike += n_unlike_here
                run.progress("predicting", n_rows, None)
            if not n_rows:
                hint = None if rows.table is None else "the file contains only column names"
                raise DataError(f"{rows.name}: no rows", hint)
        if preview is not None:
            print_preview(_first_rows(preview), n_rows)
        if note := unlike_training(n_unlike, n_rows):
            run.warn(note)
        if rows.features is not None:
            for note in notes_on_rows(rows.features, "the model"):
                run.warn(note)
            for note in notes_on_prediction(rows.features):
                run.note(note)
    return {
        "n_rows": n_rows,
        "n_positive": n_positive,
        "decision": scorer.rule,
        "threshold": scorer.threshold,
        "n_unlike": None if scorer.usual is None else n_unlike,
        "notes": run.notes,
        "fraction_unlike": None if scorer.usual is None else n_unlike / n_rows,
    }


def _first_rows(blocks: list[PredictionBlock]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for block in blocks:
        named = {} if block.ids is None else {"id": block.ids}
        values = {name: column.tolist() for name, column in block.columns.items()}
        for name, column in (named | values).items():
            columns.setdefault(name, []).extend(column)
    return columns


def _scorer(
    path: str, model: StoredModel, source: str, options: PredictOptions, run: Run
) -> BlockScorer:
    """Return what scores blocks by the chosen rule and threshold."""
    from resvm_cli.data.streams import name_of
    from resvm_cli.ensemble.decisions import (
        fitted_classes,
        threshold_for_recall,
        unknown_probability,
        usual_range,
    )

    rule = options.rule or model.decision.rule
    if options.rule == "mean" and model.ensemble.single:
        raise CommandLineError("--decision mean does not apply to cwsvm, which has only one member")
    classes, table = None, model.out_of_bag
    threshold, recall = options.threshold_or_recall()
    if recall is not None and table is not None:
        known, unlabeled = table.by(rule)
        mislabeled = options.contamination_pos or 0.0
        if mislabeled and not len(unlabeled):
            raise ModelError(
                f"{path}: no out-of-bag values for U are stored; --contamination-pos requires them",
                "train it again",
            )
        reached = threshold_for_recall(known, unlabeled, recall, mislabeled)
        threshold = reached.value
        run.note(
            f"T = {threshold:.6g}: {round((reached.recall or 0.0) * len(known)):,} of"
            f" {len(known):,} known positives score above it out of bag"
        )
    if threshold is None:
        threshold = model.decision.thresholds[rule].value
    if options.probability:
        fractions = options.contamination_pos, options.contamination_unl
        classes = fitted_classes(table, model.manifest["method"], rule, *fractions)
        unknown = unknown_probability(classes)
        if unknown is not None:
            run.warn(f"--probability: {unknown.message}; {unknown.hint}")
    usual = None
    if table is not None and not model.ensemble.single:
        usual = usual_range(*table.by("mean"))
    return BlockScorer(model, name_of(source), options, rule, threshold, classes, usual)


def _scored(
    scorer: BlockScorer, rows: RowInput, at_once: bool, run: Run
) -> Iterator[tuple[Block, ScoredBlock]]:
    """Yield each block of rows with its scores, as rows arrive."""
    from resvm_cli.data.svmlight import map_blocks

    if not rows.is_text:
        blocks = rows.blocks()
        if not scorer.options.ids:
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
        with_comments=scorer.options.ids,
        multiple=multiple if at_once else 1,
        max_rows=max(1, MAX_CELLS // (multiple * n_members)) * multiple,
    )


def _score_rows(scorer: BlockScorer, block: Block) -> tuple[Block, ScoredBlock]:
    return block, scorer.score(block)


@dataclass(frozen=True, eq=False)
class BlockScorer:
    """Scores blocks of rows, in threads of this process or on workers of a cluster."""

    model: StoredModel
    source: str  # the name of the input, for messages
    options: PredictOptions
    rule: RuleName
    threshold: float
    classes: ClassMixture | None  # to compute the column probability
    usual: tuple[float, float] | None  # the range of out-of-bag mean values, without the tails

    @cached_property
    def predictor(self) -> Predictor:
        from resvm_cli.ensemble.ensemble import Predictor

        return Predictor(self.model.ensemble)

    @cached_property
    def _rho(self) -> FloatArray:
        """The rho of members whose values are -rho far from all support vectors, else nan."""
        import numpy as np

        ensemble = self.model.ensemble
        rho = np.full(len(ensemble.members), np.nan)
        for group in ensemble.sections:
            if group.kernel.uses_distances:
                rho[group.columns] = [member.rho for member in ensemble.members[group.columns]]
        return rho

    def __getstate__(self) -> dict[str, Any]:
        computed = ("predictor", "_rho")
        return {name: value for name, value in self.__dict__.items() if name not in computed}

    def score(self, block: Block) -> ScoredBlock:
        """Return predictions, their text, and the number of rows unlike the training rows."""
        import numpy as np

        from resvm_cli.data.predictions import PredictionBlock, format_block

        if self.model.ensemble.is_precomputed:
            from resvm_cli.svm import kernels

            # LIBSVM requires serial numbers, which prediction ignores
            unnumbered = np.setdiff1d(np.arange(len(block)), kernels.rows_with_serial(block.rows))
            if len(unnumbered):
                raise DataError(
                    f"{self._location(block, unnumbered)}: the model has a precomputed kernel, but"
                    " the row has no index 0",
                    f"{kernels.ROW_FORMAT}; for prediction, any serial number will do",
                )
        options, member_values = self.options, self.predictor.member_values(block.rows)
        decisions = self.predictor.decide(member_values)
        bad = np.flatnonzero(~np.isfinite(decisions.sums))
        if len(bad):
            raise DataError(
                f"{self._location(block, bad)}: the row's decision value is not finite",
                "its features are far from the training data; scale both in the same way",
            )
        values, chances = decisions.by(self.rule), None
        if options.probability:
            chances = np.full(len(values), np.nan)
            if self.classes is not None:
                chances = self.classes.probability(values)
        predictions = PredictionBlock(
            labels=decisions.labels(self.threshold, self.rule),
            decision_values=values,
            votes=decisions.votes if options.votes else None,
            member_values=member_values if options.member_values else None,
            ids=block.comments,
            probability=chances,
        )
        text = format_block(options.format_name, predictions)
        return predictions, text, self._count_unlike(decisions, member_values)

    def _count_unlike(self, decisions: Decisions, member_values: FloatArray) -> int:
        """Count rows outside the usual range or far from every support vector."""
        import numpy as np

        if self.usual is None:
            return 0
        low, high = self.usual
        unlike = (decisions.means < low) | (decisions.means > high)
        amounts = np.fmax.reduce(np.abs(member_values + self._rho), axis=1)
        unlike |= amounts < NEGLIGIBLE * np.fmax.reduce(np.abs(self._rho))
        return int(np.count_nonzero(unlike))

    def _location(self, block: Block, rows: IntArray) -> str:
        """Return the file and line of the first of these rows."""
        return f"{self.source}:{block.lines[rows[0]]}"
