"""resvm predict."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from resvm_cli.errors import CommandLineError
from resvm_cli.options.option_groups import fold_options
from resvm_cli.options.running import ClusterOptions, Json, RunningOptions, Task, output_option
from resvm_cli.options.training import ZeroBased, method_option
from resvm_cli.options.values import offered, parse_choice, parse_number, parse_task
from resvm_cli.report.terminal import announce_stdin, print_json, print_result, say
from resvm_cli.running import interruption

if TYPE_CHECKING:
    from resvm_cli.commands.predict.predict import FilesResult, PredictResult
    from resvm_cli.commands.predict.scoring import PredictRequest, ThresholdRule
    from resvm_cli.files.predictions import FormatName
    from resvm_cli.parameters import RuleName
    from resvm_cli.running.array_tasks import Share

RULES: tuple[RuleName, ...] = ("votes", "mean")  # without importing numpy


@fold_options
def predict(
    *,
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A directory that resvm train wrote.")
    ],
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Rows to judge (svmlight; - is stdin)."),
    ] = None,
    output: Annotated[
        str, output_option("-o", "--output", metavar="FILE", help="Where to write (- is stdout).")
    ] = "-",
    out_dir: Annotated[
        str | None,
        output_option(
            metavar="DIR",
            help="An output for each file, FILE.pred; those that are finished are skipped.",
        ),
    ] = None,
    form: Annotated[
        str,
        output_option(
            "--format",
            metavar="NAME",
            autocompletion=offered("text", "tsv", "csv", "jsonl"),
            help="text (label and decision value), or tsv, csv, jsonl with named columns.",
        ),
    ] = "text",
    votes: Annotated[
        bool, output_option("--votes", help="Add the fraction of positive votes.")
    ] = False,
    member_values: Annotated[
        bool, output_option("--member-values", help="Add each member's decision value.")
    ] = False,
    ids: Annotated[
        bool,
        output_option("--ids", help="Carry each row's trailing comment (# name) to the output."),
    ] = False,
    json: Json = False,
    threshold: Annotated[
        str | None,
        method_option(
            "-T",
            "--threshold",
            metavar="T",
            autocompletion=offered("recall=", "top=", "fraction="),
            help="Positive above this decision value; or recall=0.9, top=100, fraction=0.01.",
            show_default="the model's own",
        ),
    ] = None,
    decision: Annotated[
        str | None,
        method_option(
            metavar="RULE",
            autocompletion=offered("votes", "mean"),
            help="Decision values: votes (the paper's) or mean (the members' mean value).",
            show_default="the model's own",
        ),
    ] = None,
    contamination_pos: Annotated[
        float,
        method_option(
            metavar="A", help="With -T recall: this share of the known positives is wrong."
        ),
    ] = 0.0,
    break_ties: Annotated[
        bool,
        method_option(
            "--break-ties", help="Order rows of equal votes by the sum of the members' values."
        ),
    ] = False,
    zero_based: ZeroBased = False,
    task: Task = None,
    cluster: ClusterOptions,
    running: RunningOptions,
) -> None:
    """Judge rows with a model: one line each, in order, as they arrive.

    Values are written so that they read back exactly, and do not depend on how rows were grouped.

    For example:

    - `resvm predict model test.svm > test.pred`
    - `zcat test.svm.gz | resvm predict model --ids --votes --format tsv`
    - `resvm predict model test.svm -T recall=0.9 -o test.pred`
    """
    formats: tuple[FormatName, ...] = ("text", "tsv", "csv", "jsonl")
    format_name = parse_choice("--format", form, formats)
    level = None if threshold is None else _threshold(threshold)
    rule = None if decision is None else parse_choice("--decision", decision, RULES)
    if contamination_pos and not (threshold or "").startswith("recall="):
        raise CommandLineError("--contamination-pos goes with -T recall=R")
    if not 0 <= contamination_pos < 1:
        raise CommandLineError(
            f"--contamination-pos is {contamination_pos:g}; a share from 0 to below 1 is meant"
        )
    if json and output == "-" and out_dir is None:
        raise CommandLineError(
            "--json tells of the predictions on stdout, where they go themselves",
            "say where they go: -o FILE or --out-dir DIR; or write them as JSON: --format jsonl",
        )
    share = None if task is None else parse_task(task)
    sources = files or ["-"]
    _check_outputs(sources, output, out_dir, share)
    from resvm_cli.commands.predict import predict as job
    from resvm_cli.commands.predict.scoring import PredictRequest

    request = PredictRequest(
        model=model,
        source=sources[0],
        target=output,
        form=format_name,
        threshold=level,
        decision=rule,
        contamination_pos=contamination_pos,
        break_ties=break_ties,
        votes=votes,
        member_values=member_values,
        ids=ids,
        zero_based=zero_based,
    )
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
        interruption.done_when(output)
    with running.run(cluster) as run:
        predicted = job.predict(request, run)
    if json:
        _print_prediction(predicted, request)


def _check_outputs(
    sources: list[str], output: str, out_dir: str | None, share: Share | None
) -> None:
    """Refuse several files with one place to go to."""
    if out_dir is not None:
        if output != "-":
            raise CommandLineError("-o and --out-dir exclude each other")
        return
    if len(sources) > 1:
        raise CommandLineError(
            f"{len(sources)} files: each needs an output of its own",
            "say where: --out-dir DIR; or for one: resvm predict MODEL FILE -o OUTPUT",
        )
    if share is not None:
        raise CommandLineError("--task goes with --out-dir: tasks share files")


def _threshold(text: str) -> float | ThresholdRule:
    """A number, or what the threshold is to reach."""
    option = "-T/--threshold"
    kind, equals, amount = text.partition("=")
    if not equals:
        return parse_number(option, text, "a number, recall=R, top=K or fraction=F")
    from resvm_cli.commands.predict.scoring import ThresholdRule

    if kind == "top":
        if not (amount.isdecimal() and len(amount) < 17 and 0 < int(amount) < 2**53):
            raise CommandLineError(f"{option} is '{text}'; a whole number of rows was expected")
        return ThresholdRule("top", int(amount))
    if kind not in ("recall", "fraction"):
        raise CommandLineError(
            f"{option} is '{text}'; a number, recall=R, top=K or fraction=F was expected"
        )
    share = parse_number(option, amount, "a share above 0, up to 1")
    if not 0 < share <= 1:
        raise CommandLineError(f"{option} is '{text}'; a share above 0, up to 1, was expected")
    return ThresholdRule(kind, share)  # type: ignore[arg-type]


def _show_files(result: FilesResult) -> None:
    """How many files were predicted, and how many were not."""
    text = f"{result.n_predicted:,} predicted"
    if result.n_skipped:
        text += f", {result.n_skipped:,} finished before"
    if result.n_elsewhere:
        text += f", {result.n_elsewhere:,} left to other tasks"
    say(f"{'files':>10}  {text}")
    say(f"{'written to':>10}  {result.path}")


def _print_prediction(result: PredictResult, request: PredictRequest) -> None:
    """How many rows were predicted, and how many are unlike those of training."""
    share = None if result.n_unlike is None else result.n_unlike / max(1, result.n_rows)
    print_json(
        "predict",
        {
            "model": request.model,
            "file": request.source,
            "output": request.target,
            **asdict(result),
            "share_unlike": share,
        },
    )
