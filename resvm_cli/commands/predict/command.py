"""The options of resvm predict, and the summary it prints."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from resvm_cli.errors import CommandLineError
from resvm_cli.options import shared
from resvm_cli.options.option_groups import advanced_option, argument, fold_options
from resvm_cli.options.values import parse_choice, parse_number, parse_task
from resvm_cli.parameters import RULE_NAMES, check_contamination
from resvm_cli.report.terminal import announce_stdin, print_json, print_result, say_row
from resvm_cli.running.run import done_when

if TYPE_CHECKING:
    from resvm_cli.commands.predict.predict import FilesResult, PredictResult
    from resvm_cli.commands.predict.scoring import PredictRequest
    from resvm_cli.files.predictions import FormatName


@fold_options
def predict(
    *,
    model: str = argument("MODEL", "Model directory written by resvm train."),
    files: list[str] | None = argument(
        "[FILE]...",
        "Rows to score: svmlight text or a table (- is stdin). Table columns are matched by"
        " name to the columns that the model was trained on.",
        default=None,
    ),
    table: shared.PredictedTableOptions,
    output: str = shared.output_option(
        "-o, --output FILE", "Output file (- is stdout).", default="-"
    ),
    out_dir: str | None = shared.output_option(
        "--out-dir DIR",
        "Write one output file per input, FILE.pred; skip outputs already finished.",
    ),
    annotate: str | None = shared.ANNOTATE,
    form: str = shared.output_option(
        "--format NAME",
        "text (label and decision value), or tsv, csv or jsonl with named columns.",
        default="text",
        completions=("text", "tsv", "csv", "jsonl"),
    ),
    votes: bool = shared.output_option("--votes", "Add the fraction of positive votes."),
    member_values: bool = advanced_option("--member-values", "Add each member's decision value."),
    probability: bool = shared.output_option(
        "--probability",
        "Add the probability that a row is positive, for rows from the same distribution as U;"
        " empty if unknown.",
    ),
    ids: bool = shared.output_option(
        "--ids",
        "Copy row ids to the output: trailing comments (# name), or the values in --id-column,"
        " which implies --ids.",
    ),
    json: bool = shared.JSON,
    threshold: str | None = shared.method_option(
        "-T, --threshold T",
        "Predict rows above this decision value as positive; recall=0.9 chooses the value"
        " that 90 % of the known positives exceed out of bag.",
        completions=("recall=",),
        show_default="the model's own",
    ),
    decision: str | None = shared.method_option(
        "--decision RULE",
        "Decision rule: votes (as in the paper) or mean (the members' mean value).",
        completions=("votes", "mean"),
        show_default="the model's own",
    ),
    contamination_pos: float | None = shared.method_option(
        "--contamination-pos A",
        "Fraction of P that is negative, for -T recall and --probability.",
        show_default="0; estimated for --probability",
    ),
    contamination_unl: float | None = shared.method_option(
        "--contamination-unl B",
        "Fraction of U that is positive, for --probability.",
        show_default="estimated",
    ),
    zero_based: bool = shared.ZERO_BASED,
    task: str | None = shared.TASK,
    cluster: shared.ClusterOptions,
    running: shared.RunningOptions,
) -> None:
    """Score rows with a model and write one line per row, in input order, as rows arrive.

    Values are written with full precision and do not depend on how rows are batched.

    For example:

    - `resvm predict model test.svm > test.pred`
    - `zcat test.svm.gz | resvm predict model --ids --votes --format tsv`
    - `resvm predict model test.svm -T recall=0.9 -o test.pred`
    """
    formats: tuple[FormatName, ...] = ("text", "tsv", "csv", "jsonl")
    format_name = parse_choice("--format", form, formats)
    level, recall = _threshold(threshold)
    rule = None if decision is None else parse_choice("--decision", decision, RULE_NAMES)
    if contamination_pos and recall is None and not probability:
        raise CommandLineError("--contamination-pos requires -T recall=R or --probability")
    if contamination_unl is not None and not probability:
        raise CommandLineError("--contamination-unl requires --probability")
    check_contamination(contamination_pos, contamination_unl)
    if json and output == "-" and out_dir is None:
        raise CommandLineError(
            "--json prints a summary on stdout, but the predictions are written there too",
            "write the predictions to a file (-o or --out-dir), or as JSON (--format jsonl)",
        )
    share = None if task is None else parse_task(task)
    sources = files or ["-"]
    if out_dir is None:
        if len(sources) > 1:
            raise CommandLineError(
                f"there are {len(sources)} input files, and each needs its own output",
                "use --out-dir DIR; for a single file: resvm predict MODEL FILE -o OUTPUT",
            )
        if share is not None:
            raise CommandLineError(
                "--task requires --out-dir, because tasks divide the input files"
            )
    elif output != "-" or annotate is not None:
        other = "-o" if output != "-" else "--annotate"
        raise CommandLineError(f"{other} and --out-dir cannot be combined")
    from resvm_cli.commands.predict import predict as job
    from resvm_cli.commands.predict.scoring import PredictRequest

    request = PredictRequest(
        model=model,
        source=sources[0],
        target=output,
        form=format_name,
        threshold=level,
        recall=recall,
        decision=rule,
        contamination_pos=contamination_pos,
        contamination_unl=contamination_unl,
        votes=votes,
        member_values=member_values,
        probability=probability,
        ids=ids or table.id_column is not None,
        table=None if vars(table) == vars(shared.PredictedTableOptions()) else table.reading(),
        annotate=annotate,
        zero_based=zero_based,
    )
    request.check()
    if out_dir is not None:
        with running.run(cluster) as run:
            result = job.predict_files(request, sources, out_dir, share, run)
        if not running.quiet:
            _show_files(result)
        if json:
            print_result("predict-files", result)
        return
    if sources == ["-"] and not running.quiet:
        announce_stdin()
    if output != "-" and not json:
        done_when(output)
    with running.run(cluster) as run:
        predicted = job.predict(request, run)
    if json:
        _print_prediction(predicted, request)


def _threshold(text: str | None) -> tuple[float | None, float | None]:
    """Parse -T: return a threshold, or the recall that it must reach."""
    if text is None:
        return None, None
    option = "-T/--threshold"
    if not text.startswith("recall="):
        return parse_number(option, text, "a number or recall=R"), None
    recall = parse_number(option, text.removeprefix("recall="), "a fraction in (0, 1]")
    if not 0 < recall <= 1:
        raise CommandLineError(f"{option} must be a fraction above 0 and at most 1, got '{text}'")
    return None, recall


def _show_files(result: FilesResult) -> None:
    text = f"{result.n_predicted:,} predicted"
    if result.n_skipped:
        text += f", {result.n_skipped:,} already finished"
    if result.n_elsewhere:
        text += f", {result.n_elsewhere:,} left to other tasks"
    say_row("files", text)
    say_row("written to", result.path)


def _print_prediction(result: PredictResult, request: PredictRequest) -> None:
    paths = {"model": request.model, "file": request.source, "output": request.target}
    share = None if result.n_unlike is None else result.n_unlike / max(1, result.n_rows)
    print_json("predict", {**paths, **asdict(result), "share_unlike": share})
