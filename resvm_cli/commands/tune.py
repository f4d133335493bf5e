"""resvm tune."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from resvm_cli.commands import options as given
from resvm_cli.errors import CommandLineError
from resvm_cli.report import machine, terminal

SPACE = "Search space: a number, a list 1,10 or a range 1..10[:log|:linear]"
SEARCH = "Search"
ESTIMATE = "Estimate"


def _axis(option: str, text: str, *letters: str) -> Any:
    return typer.Option(
        *letters, option, metavar="RANGE", help=text, show_default=False, rich_help_panel=SPACE
    )


def tune(
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Where trials and best.json go.",
            rich_help_panel=given.OUTPUT,
        ),
    ] = "resvm-tuning",
    positives: given.Positives = None,
    unlabeled: given.Unlabeled = None,
    data: given.Data = None,
    positive_label: given.PositiveLabel = None,
    positive_ids: given.PositiveIds = None,
    ids_file: given.IdsFile = None,
    allow_missing: given.AllowMissing = False,
    zero_based: given.ZeroBased = False,
    features: given.Features = None,
    scale: given.Scale = "none",
    groups: given.Groups = None,
    max_unl: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=10,
            help="Judge on at most so many rows of U, drawn at random.",
            rich_help_panel=given.DATA,
        ),
    ] = 5000,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="resvm, bagging, cwsvm, or all three on the same folds.",
            rich_help_panel=given.METHOD,
        ),
    ] = "resvm",
    kernel: given.KernelChoice = "rbf",
    n_models: Annotated[
        str,
        typer.Option(
            metavar="N|auto",
            help="Members; auto grows the winner until halves of it agree.",
            rich_help_panel=given.METHOD,
        ),
    ] = "50",
    tolerance: given.Tolerance = None,
    cache_mb: given.CacheMb = 100.0,
    c_unl: Annotated[str | None, _axis("--c-unl", "Penalty of rows of U.", "-c")] = None,
    w_pos: Annotated[str | None, _axis("--w-pos", "Weight of P against U.")] = None,
    n_pos: Annotated[str | None, _axis("--n-pos", "Rows of P in a bag.")] = None,
    unl_per_pos: Annotated[
        str | None,
        _axis("--unl-per-pos", "Rows of U in a bag for each of P (bagging: of all P)."),
    ] = None,
    gamma: Annotated[str | None, _axis("--gamma", "Of rbf, poly and sigmoid.", "-g")] = None,
    degree: Annotated[str | None, _axis("--degree", "Of poly.", "-d")] = None,
    coef0: Annotated[str | None, _axis("--coef0", "Of poly and sigmoid.", "-r")] = None,
    contamination_pos: Annotated[
        float | None,
        typer.Option(
            metavar="A",
            help="Share of P believed to be wrong: narrows the default ranges.",
            rich_help_panel=SPACE,
        ),
    ] = None,
    contamination_unl: Annotated[
        float | None,
        typer.Option(
            metavar="B",
            help="Share of U believed to be positive: narrows the default ranges.",
            rich_help_panel=SPACE,
        ),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            rich_help_panel=ESTIMATE,
            help="partial_roc_auc, roc_auc, average_precision, best_pu_score (each also with"
            " _of_mean), pu_score (the paper's) or pu_score_pooled.",
        ),
    ] = "partial_roc_auc",
    up_to: Annotated[
        float,
        typer.Option(
            metavar="F",
            help="The fraction of U that partial_roc_auc looks at.",
            rich_help_panel=ESTIMATE,
        ),
    ] = 0.2,
    oob: Annotated[
        bool,
        typer.Option(
            "--oob",
            help="Judge out of bag: ten times cheaper than ten folds (resvm only).",
            rich_help_panel=ESTIMATE,
        ),
    ] = False,
    folds: Annotated[
        int,
        typer.Option("-v", "--folds", metavar="N", min=2, rich_help_panel=ESTIMATE, help="Folds."),
    ] = 10,
    repeats: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Repeat with other folds.", rich_help_panel=ESTIMATE),
    ] = 1,
    folds_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Your own folds: a name a row, of P and then U.",
            rich_help_panel=ESTIMATE,
        ),
    ] = None,
    outer: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="An honest estimate: repeat the search without each of N outer folds.",
            show_default="none",
            rich_help_panel=ESTIMATE,
        ),
    ] = 0,
    search: Annotated[
        str,
        typer.Option(metavar="NAME", help="random, grid or halving.", rich_help_panel=SEARCH),
    ] = "random",
    trials: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Candidates of random and halving.",
            rich_help_panel=SEARCH,
        ),
    ] = 100,
    max_extensions: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="How often ranges whose edge wins are extended.",
            rich_help_panel=SEARCH,
        ),
    ] = 3,
    no_extend: Annotated[
        bool,
        typer.Option("--no-extend", help="Only warn of edges.", rich_help_panel=SEARCH),
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue, or begin, the tuning in -o.", rich_help_panel=given.OUTPUT
        ),
    ] = False,
    plot: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Draw the score against each parameter (.png, .svg, .pdf).",
            rich_help_panel=given.OUTPUT,
        ),
    ] = None,
    json: given.Json = False,
    gram_mb: Annotated[
        float,
        typer.Option(
            metavar="MB",
            min=0,
            help="Room for kernel values that candidates share.",
            rich_help_panel=given.RUNNING,
        ),
    ] = 1024.0,
    seed: given.Seed = 0,
    jobs: given.Jobs = None,
    quiet: given.Quiet = False,
) -> None:
    """Choose hyperparameters without negatives; resumable.

    Every trial is logged as it finishes; best.json is what `resvm train --params` reads.
    """
    from resvm_cli.ensemble.params import METHOD_NAMES, ResvmParams
    from resvm_cli.files.atomic import output as output_file
    from resvm_cli.jobs import tune as job
    from resvm_cli.jobs.training_input import TrainingInput
    from resvm_cli.jobs.tune import TuneRequest
    from resvm_cli.report import tuning_table
    from resvm_cli.tuning.criteria import METRIC_NAMES
    from resvm_cli.tuning.search import STRATEGY_NAMES
    from resvm_cli.tuning.space import parse_axis

    kind = None
    if plot is not None:
        from resvm_cli.report import plots

        kind = plots.kind_of(plot)
    given.require_one_of("--metric", metric, METRIC_NAMES)
    given.require_one_of("--search", search, STRATEGY_NAMES)
    axes = [
        parse_axis(name, text)
        for name, text in (
            ("gamma", gamma),
            ("degree", degree),
            ("coef0", coef0),
            ("n_pos", n_pos),
            ("unl_per_pos", unl_per_pos),
            ("w_pos", w_pos),
            ("c_unl", c_unl),
        )
        if text is not None
    ]
    members: int | str = n_models
    if n_models != "auto":
        if not n_models.isdigit() or not int(n_models):
            raise CommandLineError(f"--n-models is '{n_models}'; a number or auto was expected")
        members = int(n_models)
    request = TuneRequest(
        TrainingInput(
            positives,
            unlabeled,
            data,
            positive_label,
            zero_based,
            features,
            given.parse_scale(scale),
            groups=groups,
            positive_ids=positive_ids,
            ids_file=ids_file,
            allow_missing=allow_missing,
        ),
        target=output,
        methods=METHOD_NAMES if method == "all" else (given.parse_method(method),),
        base=ResvmParams(
            kernel=given.parse_kernel(kernel), tolerance=tolerance, cache_mb=cache_mb, seed=seed
        ),
        axes=tuple(axes),
        metric=metric,  # type: ignore[arg-type]
        up_to=up_to,
        out_of_bag=oob,
        n_folds=folds,
        repeats=repeats,
        folds_file=folds_file,
        strategy=search,  # type: ignore[arg-type]
        trials=trials,
        n_models=members,  # type: ignore[arg-type]
        max_extensions=0 if no_extend else max_extensions,
        outer=outer,
        contamination_pos=contamination_pos,
        contamination_unl=contamination_unl,
        max_unl=max_unl,
        gram_mb=gram_mb,
        resume=resume,
        jobs=jobs,
    )
    with terminal.Progress(quiet) as progress:
        result = job.tune(
            request,
            progress,
            tuning_table.watcher(progress, metric),
            terminal.no_note if quiet else terminal.note,
        )
    if plot is not None and kind is not None:
        with output_file(plot) as write:
            write(plots.tuning_scores(result, kind))
    if not quiet:
        tuning_table.show_tuning(result)
    if json:
        machine.print_tuning(result)
