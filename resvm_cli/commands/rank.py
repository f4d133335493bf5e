"""resvm rank."""

from __future__ import annotations

from typing import Annotated

import typer

from resvm_cli.commands import options as given
from resvm_cli.errors import CommandLineError
from resvm_cli.report import machine, summaries, terminal

RANKING = "Ranking"
# What a stored model has settled already.
OF_TRAINING = (
    ("params", "--params"),
    ("auto", "--auto"),
    ("method", "--method"),
    ("n_models", "--n-models"),
    ("n_pos", "--n-pos"),
    ("n_unl", "--n-unl"),
    ("w_pos", "--w-pos"),
    ("c_unl", "-c/--c-unl"),
    ("c_pos", "--c-pos"),
    ("kernel", "-t/--kernel"),
    ("gamma", "-g/--gamma"),
    ("degree", "-d/--degree"),
    ("coef0", "-r/--coef0"),
    ("solver", "--solver"),
    ("bias", "-B/--bias"),
    ("tolerance", "-e/--tolerance"),
    ("cache_mb", "-m/--cache-mb"),
    ("scale", "--scale"),
    ("features", "--features"),
    ("seed", "--seed"),
    ("output", "-o/--output"),
    ("force", "--force"),
)


def rank(
    context: typer.Context,
    positives: given.Positives = None,
    unlabeled: given.Unlabeled = None,
    data: given.Data = None,
    positive_ids: given.PositiveIds = None,
    positive_label: given.PositiveLabel = None,
    ids_file: given.IdsFile = None,
    allow_missing: given.AllowMissing = False,
    groups: given.Groups = None,
    zero_based: given.ZeroBased = False,
    features: given.Features = None,
    scale: given.Scale = "none",
    audit: Annotated[
        bool,
        typer.Option(
            "--audit",
            help="List the known positives instead, most suspicious first.",
            rich_help_panel=RANKING,
        ),
    ] = False,
    contamination_pos: Annotated[
        float | None,
        typer.Option(
            metavar="A",
            help="With --audit: the share of P believed to be wrong; adds expected_false.",
            rich_help_panel=RANKING,
        ),
    ] = None,
    contamination_unl: Annotated[
        float | None,
        typer.Option(
            metavar="B",
            help="With it: the share of U believed to be positive.",
            show_default="0",
            rich_help_panel=RANKING,
        ),
    ] = None,
    with_known: Annotated[
        bool,
        typer.Option(
            "--with-known",
            help="Rank the rows of P among those of U.",
            rich_help_panel=RANKING,
        ),
    ] = False,
    top: Annotated[
        int | None,
        typer.Option(
            "-k",
            "--top",
            metavar="N",
            min=1,
            help="Write the first rows only.",
            rich_help_panel=RANKING,
        ),
    ] = None,
    no_interval: Annotated[
        bool,
        typer.Option(
            "--no-interval",
            help="Leave rank_low and rank_high empty: saves memory.",
            rich_help_panel=RANKING,
        ),
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Instead of training: a model trained on the same data.",
            rich_help_panel=given.METHOD,
        ),
    ] = None,
    params: given.Params = None,
    auto: given.Auto = False,
    method: given.Method = "resvm",
    n_models: given.NModels = None,
    n_pos: given.NPos = None,
    n_unl: given.NUnl = None,
    w_pos: given.WPos = None,
    c_unl: given.CUnl = 1.0,
    c_pos: given.CPos = None,
    kernel: given.KernelChoice = "rbf",
    gamma: given.Gamma = "scale",
    degree: given.Degree = 3,
    coef0: given.Coef0 = 0.0,
    solver: given.Solver = "auto",
    bias: given.Bias = None,
    tolerance: given.Tolerance = None,
    cache_mb: given.CacheMb = 100.0,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Keep the trained model there.",
            rich_help_panel=given.OUTPUT,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace a model that is already there.", rich_help_panel=given.OUTPUT
        ),
    ] = False,
    form: Annotated[
        str,
        typer.Option(
            "--format", metavar="NAME", help="tsv, csv or jsonl.", rich_help_panel=given.OUTPUT
        ),
    ] = "tsv",
    html: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A page with the ranking to search and sort, and charts.",
            rich_help_panel=given.OUTPUT,
        ),
    ] = None,
    json: given.Json = False,
    seed: given.Seed = 0,
    jobs: given.Jobs = None,
    quiet: given.Quiet = False,
) -> None:
    """Rank unlabeled rows, best first, or known positives, most suspicious first.

    Each row is judged only by the members of the ensemble that have not seen it.
    """
    from resvm_cli.files.atomic import output as output_file
    from resvm_cli.files.ranked_rows import RANKING_FORMATS, format_ranking
    from resvm_cli.jobs import rank as job
    from resvm_cli.jobs.rank import RankRequest
    from resvm_cli.jobs.training_input import TrainingInput

    said = given.explicit(context)
    given.require_one_of("--format", form, RANKING_FORMATS)
    if json and "form" in said:
        raise CommandLineError("--json and --format exclude each other")
    if model is not None:
        for name, option in OF_TRAINING:
            if name in said:
                raise CommandLineError(
                    f"{option} is for training, and --model is trained already",
                    f"leave {option} out, or --model",
                )
    if force and output is None:
        raise CommandLineError("--force goes with -o/--output")
    asked, scale = given.asked_params(
        said,
        params,
        scale,
        method=method,
        kernel=kernel,
        gamma=gamma,
        coef0=coef0,
        degree=degree,
        c_unl=c_unl,
        w_pos=w_pos,
        c_pos=c_pos,
        n_models=n_models,
        n_pos=n_pos,
        n_unl=n_unl,
        solver=solver,
        bias=bias,
        tolerance=tolerance,
        cache_mb=cache_mb,
        seed=seed,
    )
    request = RankRequest(
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
            keep_ids=True,
        ),
        asked,
        auto=sorted(said) if auto else None,
        model=model,
        target=output,
        force=force,
        audit=audit,
        with_known=with_known,
        top=top,
        contamination_pos=contamination_pos,
        contamination_unl=contamination_unl,
        intervals=not no_interval,
        page=html is not None,
        jobs=jobs,
    )
    with terminal.Progress(quiet) as progress:
        result = job.rank(request, progress, terminal.no_note if quiet else terminal.note)
    if html is not None:
        from resvm_cli.report import ranking_page

        with output_file(html) as write:
            write(ranking_page.render(result))
    if not quiet:
        summaries.show_ranking(result)
    if json:
        machine.print_ranking(result)
        return
    with output_file("-") as write:
        for part in format_ranking(form, result.listing):  # type: ignore[arg-type]
            write(part)
