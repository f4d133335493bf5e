"""resvm train."""

from __future__ import annotations

from typing import Annotated

import typer

from resvm_cli.commands import options as given
from resvm_cli.report import machine, summaries, terminal


def train(
    context: typer.Context,
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
    no_check: given.NoCheck = False,
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
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Where the model goes.",
            rich_help_panel=given.OUTPUT,
        ),
    ] = "resvm-model",
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace a model that is already there.", rich_help_panel=given.OUTPUT
        ),
    ] = False,
    json: given.Json = False,
    seed: given.Seed = 0,
    jobs: given.Jobs = None,
    quiet: given.Quiet = False,
) -> None:
    """Learn from known positives and unlabeled rows; write a model directory.

    Without any parameter a robust ensemble of 50 rbf SVMs is trained, with bag sizes and gamma
    derived from the data; what was chosen is printed.
    """
    from resvm_cli.jobs import train as job
    from resvm_cli.jobs.training_input import TrainingInput

    said = given.explicit(context)
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
    source = TrainingInput(
        positives,
        unlabeled,
        data,
        positive_label,
        zero_based,
        features,
        given.parse_scale(scale),
        no_check,
        positive_ids=positive_ids,
        ids_file=ids_file,
        allow_missing=allow_missing,
    )
    with terminal.Progress(quiet) as progress:
        result = job.train(
            source,
            asked,
            output,
            auto=sorted(said) if auto else None,
            force=force,
            jobs=jobs,
            progress=progress,
            notice=terminal.no_note if quiet else terminal.note,
        )
    if not quiet:
        summaries.show_training(result)
    if json:
        machine.print_training(result)
