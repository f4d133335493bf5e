"""The options of resvm rank, and where it writes its results."""

from __future__ import annotations

import shlex
from functools import partial
from typing import TYPE_CHECKING

import typer

from resvm_cli.errors import CommandLineError
from resvm_cli.options.option_groups import (
    explicit_options,
    fold_options,
    names_of,
    option,
    option_group,
    option_text,
    table_options,
)
from resvm_cli.options.shared import (
    ANNOTATE,
    FORCE,
    GROUPS,
    JSON,
    SEED,
    ClusterOptions,
    DataOptions,
    MethodOptions,
    TableOptions,
    TrainingRunOptions,
    given_values,
    method_option,
    output_option,
)
from resvm_cli.options.values import parse_choice
from resvm_cli.parameters import RANKING_TABLE

if TYPE_CHECKING:
    from resvm_cli.commands.rank.listing import RankingFormat
    from resvm_cli.commands.rank.rank import RankResult

ranking_option = partial(option, panel="Ranking")

# A name with one of these suffixes was meant for the ranking, not for a model directory.
LISTING_SUFFIXES = (".tsv", ".csv", ".jsonl", ".txt", ".html")
# Training options, which cannot be used with a stored model.
TRAINING_OPTIONS = (
    *(name for name in names_of(MethodOptions) if name != "decision"),
    *("scale", "features", "seed", "output", "force", "no_auto"),
)


@table_options(RANKING_TABLE)
class RankingOptions:
    """Which rows to list, and what to report about each."""

    negatives: str | None = ranking_option(
        "--negatives FILE",
        "Trusted negatives, which are scored but not trained on. They add conformal p-values, which"
        " --fdr then uses.",
    )
    tested: str | None = ranking_option(
        "--tested FILE",
        "Ids of tested rows of U and their outcomes (1 or 0), from a random sample of U or from all"
        " of the top rows. Estimates of precision then take them into account.",
    )
    exclude: str | None = ranking_option(
        "--exclude FILE", "With --next: ids of rows of U that cannot be tested, one per line."
    )
    feature_map: str | None = ranking_option(
        "--map FILE", "With --why: feature names, as written by resvm convert."
    )
    no_interval: bool = ranking_option(
        "--no-interval", "Leave rank_low and rank_high empty to save memory."
    )


@option_group
class ListingOptions:
    """Where to write the ranking, and in which format."""

    form: str = output_option(
        "--format NAME", "tsv, csv or jsonl.", default="tsv", completions=("tsv", "csv", "jsonl")
    )
    html: str | None = output_option(
        "--html FILE", "Write a web page with charts and a searchable ranking."
    )
    annotate: str | None = ANNOTATE
    why_out: str | None = output_option(
        "--why-out FILE", "With --why: write the reasons to a file as JSON Lines."
    )
    json: bool = JSON


@fold_options
def rank(
    context: typer.Context,
    *,
    data: DataOptions,
    table: TableOptions,
    groups: str | None = GROUPS,
    ranking: RankingOptions,
    model: str | None = method_option(
        "--model DIR", "Use a model trained on the same data instead of training one."
    ),
    no_auto: bool = method_option(
        "--no-auto",
        "Train with default settings instead of searching for better ones. Any explicit kernel,"
        " kernel parameter, scaling, or number of rows or members has the same effect.",
    ),
    method: MethodOptions,
    output: str | None = output_option("-o, --output DIR", "Save the trained model here."),
    force: bool = FORCE,
    listing: ListingOptions,
    seed: int = SEED,
    cluster: ClusterOptions,
    running: TrainingRunOptions,
) -> None:
    """Rank unlabeled rows, best first, or known positives, most suspicious first.

    Each row is scored only by members of the ensemble that have not seen it.

    For example:

    - `resvm rank --data genome.svm --positive-ids known.txt > ranking.tsv`
    - `resvm rank -P pos.svm -U unl.svm --top 100 --html ranking.html > top.tsv`
    - `resvm rank -P pos.svm -U unl.svm --audit > suspects.tsv`
    - `resvm rank -P pos.svm -N neg.svm -U unl.svm --next 96 > batch.tsv`
    - `resvm rank -P pos.svm -U unl.svm --why 10 > ranking.tsv`
    """
    from resvm_cli.commands.rank import rank as job
    from resvm_cli.commands.rank.listing import RANKING_FORMATS
    from resvm_cli.commands.rank.rank import RankRequest
    from resvm_cli.training.choice import ranking_choice, training_choice

    explicit = explicit_options(context)
    form = parse_choice("--format", listing.form, RANKING_FORMATS)
    if listing.json and "form" in explicit:
        raise CommandLineError("give either --json or --format, not both")
    if model is not None:
        _reject_training(context, explicit)
    if listing.why_out is not None and "why" not in explicit:
        raise CommandLineError("--why-out requires --why N")
    if output is not None and output.lower().endswith(LISTING_SUFFIXES):
        raise CommandLineError(
            f"-o is a directory for the model, but '{output}' looks like a file for the ranking",
            f"the ranking goes to stdout: resvm rank ... > {shlex.quote(output)}, without -o",
        )
    if force and output is None:
        raise CommandLineError("--force requires -o/--output")
    if no_auto and "auto" in explicit:
        raise CommandLineError("give either --auto or --no-auto, not both")
    given = given_values({**vars(method), **vars(data), "seed": seed}, explicit)
    choose = ranking_choice if model is None and not no_auto else training_choice
    choice, scale = choose(given)
    request = RankRequest(
        source=data.training_input(table, scale=scale, groups=groups),
        choice=choice,
        model=model,
        target=output,
        force=force,
        annotate=listing.annotate,
        intervals=not ranking.no_interval,
        page=listing.html is not None,
        importance=listing.html is not None,
        **{name: value for name, value in vars(ranking).items() if name != "no_interval"},
    )
    with running.run(cluster) as run:
        result = job.rank(request, run)
    _write(result, form, listing, running)


def _reject_training(context: typer.Context, explicit: set[str]) -> None:
    for name in TRAINING_OPTIONS:
        if name in explicit:
            option = option_text(context, name)
            raise CommandLineError(
                f"{option} is for training, but --model is already trained",
                f"omit {option} or --model",
            )


def _write(
    result: RankResult, form: RankingFormat, listing: ListingOptions, running: TrainingRunOptions
) -> None:
    from resvm_cli.commands.rank import report
    from resvm_cli.commands.rank.listing import format_ranking
    from resvm_cli.files.atomic import output as output_file
    from resvm_cli.report import terminal

    if listing.html is not None:
        with output_file(listing.html) as write:
            write(report.render_page(result, terminal.command_line()))
    if listing.why_out is not None:
        with output_file(listing.why_out) as write:
            write(report.reason_lines(result.reasons))
    if not running.quiet:
        report.show_ranking(result)
        report.show_reasons(result.reasons)
    if listing.json:
        report.print_ranking(result)
        return
    with output_file("-") as write:
        for part in format_ranking(form, result.listing):
            write(part)
