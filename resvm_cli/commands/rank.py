"""resvm rank: its options, where it writes its results, and the summary it prints."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from resvm_cli.cli.option_groups import (
    expand_option_groups,
    explicit_options,
    option,
    option_group,
    option_text,
    table_options,
)
from resvm_cli.cli.options import (
    ANNOTATE,
    FORCE,
    GROUPS,
    JSON,
    METHOD_OPTIONS,
    NO_AUTO,
    SEED,
    ClusterOptions,
    DataOptions,
    MoleculeTableOptions,
    RunningOptions,
    given_values,
    method_option,
    output_option,
    parse_choice,
    split_names,
)
from resvm_cli.cli.terminal import (
    PREVIEW_ROWS,
    command_line,
    print_json,
    print_preview,
    say_row,
    shows_preview,
)
from resvm_cli.cli.training_report import bags_of, rows_of
from resvm_cli.errors import CommandLineError
from resvm_cli.parameters import RANKING_TABLE, RankingParameters

if TYPE_CHECKING:
    from resvm_cli.metrics.intervals import Interval
    from resvm_cli.ranking.batch import BatchSummary
    from resvm_cli.ranking.pipeline import RankResult
    from resvm_cli.ranking.precision import FdrEstimate
    from resvm_cli.ranking.reasons import Reasons

ranking_option = partial(option, panel="Ranking")

MAX_SHOWN = 20  # rows whose reasons are printed
NOT_SHOWN = "known|members|.*_(low|high)"  # columns left out on a terminal
# Options of training, which cannot be used with a stored model.
TRAINING_OPTIONS = ("kernel", "params", "no_auto", "seed", "save_model", "force")


@table_options(RANKING_TABLE)
class RankingOptions:
    """Which rows to list, and what to report about each."""

    tested: str | None = ranking_option(
        "--tested FILE",
        "Ids of tested rows of U and their outcomes (1 or 0). The rows must be a random sample of U"
        " or all of the top rows. Estimates of precision take the outcomes into account.",
    )
    feature_map: str | None = ranking_option(
        "--map FILE", "With --why: feature names, as written by resvm convert."
    )


@table_options({name: METHOD_OPTIONS[name] for name in ("params", "kernel")})
class TrainingOptions:
    """How to train; for all other parameters, train a model first."""

    no_auto: bool = NO_AUTO


@option_group
class ListingOptions:
    """Where to write the ranking, and in which format."""

    output: str = output_option(
        "-o, --output FILE", "Write the ranking here (- is stdout).", default="-"
    )
    form: str = output_option(
        "--format NAME", "tsv, csv or jsonl.", default="tsv", completions=("tsv", "csv", "jsonl")
    )
    html: str | None = output_option(
        "--html FILE", "Write a web page with charts and a searchable ranking."
    )
    show: list[str] | None = output_option(
        "--show NAMES",
        "With --html: columns of the table to show beside each row, separated by commas.",
        show_default="texts and the most important ones",
    )
    annotate: str | None = ANNOTATE
    json: bool = JSON


@expand_option_groups
def rank(
    context: typer.Context,
    *,
    data: DataOptions,
    table: MoleculeTableOptions,
    groups: str | None = GROUPS,
    ranking: RankingOptions,
    model: str | None = method_option(
        "--model DIR", "Use a model trained on the same data instead of training one."
    ),
    training: TrainingOptions,
    save_model: str | None = output_option("--save-model DIR", "Save the trained model here."),
    force: bool = FORCE,
    listing: ListingOptions,
    seed: int = SEED,
    cluster: ClusterOptions,
    running: RunningOptions,
) -> None:
    """Rank unlabeled rows, best first, or known positives, most suspicious first.

    Each row is scored only by members of the ensemble that have not seen it. The ensemble is a
    model, or is trained as `train` does by default.

    For example:

    - `resvm rank --data genome.svm --positive-ids known.txt -o ranking.tsv`
    - `resvm rank --data compounds.csv --smiles-column smiles --positive-ids hits.txt -o list.tsv`
    - `resvm rank -P pos.svm -U unl.svm --top 100 --html ranking.html -o top.tsv`
    - `resvm rank -P pos.svm -U unl.svm --audit -o suspects.tsv`
    - `resvm rank -P pos.svm -N neg.svm -U unl.svm --next 96 -o batch.tsv`
    - `resvm rank -P pos.svm -U unl.svm --why 10 -o ranking.tsv`
    """
    from resvm_cli.data.atomic import output
    from resvm_cli.ranking import pipeline as job
    from resvm_cli.ranking.listing import RANKING_FORMATS, format_ranking
    from resvm_cli.tuning.choice import read_params

    explicit = explicit_options(context)
    form = parse_choice("--format", listing.form, RANKING_FORMATS)
    if listing.json and "form" in explicit:
        raise CommandLineError("give either --json or --format, not both")
    for name in TRAINING_OPTIONS if model is not None else ():
        if name in explicit:
            option = option_text(context, name)
            raise CommandLineError(
                f"{option} is for training, but --model is already trained",
                f"omit {option} or --model",
            )
    if listing.show and listing.html is None:
        raise CommandLineError("--show requires --html FILE")
    if force and save_model is None:
        raise CommandLineError("--force requires --save-model")
    given = given_values({**vars(training), "seed": seed}, explicit)
    params = read_params(given, molecules=table.smiles_column is not None)
    wanted = RankingParameters(
        **vars(ranking),
        annotate=listing.annotate,
        page=listing.html is not None,
        show=split_names(listing.show),
        importance=listing.html is not None,
    )
    source = data.training_input(table, scale=params.data_scale, groups=groups)
    with running.run(cluster) as run:
        result = job.rank(source, params, wanted, run, model=model, target=save_model, force=force)
    if listing.html is not None:
        from resvm_cli.commands.page import render_page

        with output(listing.html) as write:
            write(render_page(result, summary(result), command_line()))
    if not running.quiet:
        show_ranking(result)
        show_reasons(result.reasons)
    if listing.json:
        print_ranking(result)
        if listing.output == "-":
            return
    if "form" not in explicit and shows_preview(listing.output):
        columns = result.listing.head(PREVIEW_ROWS).by_column().items()
        shown = {name: cells for name, cells in columns if not re.fullmatch(NOT_SHOWN, name)}
        print_preview(shown, len(result.listing))
        return
    with output(listing.output) as write:
        for part in format_ranking(form, result.listing):
            write(part)


def show_ranking(result: RankResult) -> None:
    """Print to stderr how rows were scored and what to expect of the list."""
    rows = summary(result)
    if result.model is not None:
        rows.insert(2, ("model", result.model))
    for name, text in rows:
        say_row(name, text)


def summary(result: RankResult) -> list[tuple[str, str]]:
    """Return a summary, for the terminal and the page."""
    plan, wanted, recovery = result.plan, result.wanted, result.recovery
    listed = "known positives" if wanted.audit else "rows of U"
    rows = [
        ("data", rows_of(plan)),
        (
            "ensemble",
            f"{plan.method}, {plan.kernel_names}: {plan.n_models} members, each trained on"
            f" {bags_of(plan.settings)}; decision rule {result.stored.decision.rule};"
            f" seed {plan.seed}",
        ),
        ("ranked", f"{result.n_listed:,} {listed}, scored out of bag"),
    ]
    if recovery is not None:
        half, most = map(recovery.depth_of, (0.5, 0.9))
        text = (
            f"50% of the known positives would be found by rank {half:,} of U, 90% by rank {most:,}"
        )
        rows.append(("recall", text))
    if (estimate := result.fdr_estimate) is not None:
        rows += _estimate_rows(estimate)
    if result.n_suspects is not None:
        text, a = f"{result.n_suspects:,}", None if estimate is None else estimate.contamination_pos
        if a is not None:  # with bounds if their fraction of P was estimated
            low, high = (round(plan.rows_pos * x) for x in (a.low, a.high))
            text += f" ({low:,} to {high:,})" if low < high else ""
        rows.append(("suspects", f"{text} of the known positives look false"))
    elif wanted.audit:
        why = f": {estimate.why_unknown}" if estimate is not None and estimate.why_unknown else ""
        rows.append(("suspects", f"ranked, but not counted{why}"))
    if result.batch is not None:
        rows.append(("next", _batch_text(result.batch)))
    return rows


def _estimate_rows(estimate: FdrEstimate) -> list[tuple[str, str]]:
    """Return summary lines about the positives in U and the list that --fdr chose."""
    rows = []
    if (fraction := estimate.contamination_unl) is not None:
        if estimate.precision_is_known:
            given = "" if fraction.low < fraction.high else " as given; precision is right"
            text = f"{_percent(fraction)} of U{given or ','} if {estimate.assumption}"
            rows.append(("positives", text))
        else:
            rows.append(("positives", _unknown_text(estimate, fraction)))
        rows += _case_rows(estimate)
    if estimate.fdr is not None:
        text = f"{estimate.n_listed:,} rows"
        if estimate.precision is not None:
            text += f", {_percent(estimate.precision)} of them expected to be positive"
        elif estimate.n_negatives is not None:
            text += (
                f" chosen by conformal p-values from {estimate.n_negatives:,} known negatives:"
                f" at most {100 * estimate.fdr:g}% of the list is expected to be false"
            )
        rows.append(("list", text))
    return rows


def _percent(fraction: Interval) -> str:
    text = f"{100 * fraction.value:.0f}%"
    if fraction.low < fraction.high:
        text += f" ({100 * fraction.low:.0f} to {100 * fraction.high:.0f})"
    return text


def print_ranking(result: RankResult) -> None:
    """Print the complete result as JSON."""
    plan = result.plan
    recovery: dict[str, Any] | None = None
    if result.recovery is not None:
        recovery = {
            "50_percent_by_rank": result.recovery.depth_of(0.5),
            "90_percent_by_rank": result.recovery.depth_of(0.9),
            "fraction_among_first": {
                str(depth): result.recovery.recall_at(depth) for depth in (10, 100, 1000)
            },
        }
    estimate: dict[str, Any] | None = None
    if result.fdr_estimate is not None:
        estimate = asdict(result.fdr_estimate)
        del estimate["precision_is_known"], estimate["why_unknown"]
    names = result.listing.columns
    print_json(
        "rank",
        {
            "audit": result.wanted.audit,
            "method": plan.method,
            "decision": result.stored.decision.rule,
            "n_members": plan.n_models,
            "seed": plan.seed,
            "rows_pos": plan.rows_pos,
            "rows_unl": plan.rows_unl,
            **({"rows_neg": plan.rows_neg} if plan.rows_neg else {}),
            "model": result.model,
            "n_ranked": result.n_listed,
            "n_without_value": result.n_unscored,
            "n_suspects": result.n_suspects,
            "resamples": result.resamples,
            "known_positives_found": recovery,
            "fdr_estimate": estimate,
            "notes": list(result.notes),
            "why": [asdict(reasons) for reasons in result.reasons] if result.reasons else None,
            **({} if result.batch is None else {"next": asdict(result.batch)}),
            "rows": [dict(zip(names, record, strict=True)) for record in result.listing.records()],
        },
    )


def show_reasons(of_rows: Sequence[Reasons]) -> None:
    """Print to stderr what counts for and against the top rows."""
    for reasons in of_rows[:MAX_SHOWN]:
        parts = ", ".join(f"{name} {amount:+.3g}" for name, amount in reasons.sums())
        say_row("why", f"rank {reasons.rank:,}, {reasons.id}: {reasons.mean_value:.4g} = {parts}")
        for name, terms in reasons.largest_terms():
            texts = (f"{term.name} ({term.amount:+.3g})" for term in terms)
            say_row("", f"{name}: {', '.join(texts)}")
    if len(of_rows) > MAX_SHOWN:
        left = len(of_rows) - MAX_SHOWN
        say_row("", f"and {left:,} more rows: --json prints all of them")


def _batch_text(batch: BatchSummary) -> str:
    """Describe how the rows to test next were chosen."""
    texts = [f"{batch.n_rows:,} rows by rank"]
    for count, what in (
        (batch.n_near, "near-duplicate{} passed over"),
        (batch.n_same_group, "row{} from chosen groups passed over"),
        (batch.n_tested, "tested row{} left out"),
    ):
        if count:
            texts.append(f"{count:,} {what.format('' if count == 1 else 's')}")
    return ", ".join(texts)


def _case_rows(estimate: FdrEstimate) -> list[tuple[str, str]]:
    """Return summary rows: how many of the first rows are positive, by fraction of U."""
    rows: list[tuple[str, str]] = []
    for b in dict.fromkeys(case.contamination_unl for case in estimate.cases):
        cases = [case for case in estimate.cases if case.contamination_unl == b]
        counts = [f"{case.n_positive:.0f} ({case.low:.0f} to {case.high:.0f})" for case in cases]
        if rows:
            rows.append(("", f"if {100 * b:g}%: {', '.join(counts)}"))
        else:
            lengths = [
                f"{count} of {case.n_first}" for count, case in zip(counts, cases, strict=True)
            ]
            text = f"if {100 * b:g}% of U is positive: {', '.join(lengths)} rows"
            rows.append(("expected", text))
    return rows


def _unknown_text(estimate: FdrEstimate, fraction: Interval) -> str:
    """Return what is known about the positives in U if their fraction cannot be estimated."""
    ceiling = math.ceil(100 * fraction.high)
    at_most = f", but at most {ceiling}% of U" if fraction.high < 1 else ""
    return f"unknown{at_most}: {estimate.why_unknown}"
