"""The options of resvm train."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from resvm_cli.errors import CommandLineError
from resvm_cli.options import shared
from resvm_cli.options.option_groups import (
    advanced_option,
    explicit_options,
    fold_options,
    names_of,
)
from resvm_cli.options.values import parse_task
from resvm_cli.report import training
from resvm_cli.report.terminal import print_result, say_row
from resvm_cli.running.run import done_when

if TYPE_CHECKING:
    from resvm_cli.commands.train.train import PartResult


@fold_options
def train(
    context: typer.Context,
    *,
    data: shared.DataOptions,
    table: shared.TableOptions,
    groups: str | None = shared.GROUPS,
    method: shared.MethodOptions,
    output: str = shared.output_option(
        "-o, --output DIR", "Model directory to write.", default="resvm-model"
    ),
    force: bool = shared.FORCE,
    json: bool = shared.JSON,
    resume: bool = shared.output_option(
        "--resume",
        "Continue an interrupted run from its finished members, which are saved next to -o.",
    ),
    grow: int | None = advanced_option(
        "--grow N", "Add members to the model in -o until it has N."
    ),
    task: str | None = shared.TASK,
    seed: int = shared.SEED,
    cluster: shared.ClusterOptions,
    running: shared.TrainingRunOptions,
) -> None:
    """Train a model on known positives and unlabeled rows.

    The default is a robust ensemble of 50 SVMs with rbf kernels. Bag sizes and gamma are derived
    from the data and printed.

    For example:

    - `resvm train -P pos.svm -U unl.svm -o model`
    - `resvm train -P pos.svm -U unl.svm --auto -o model`
    - `resvm train --data train.svm --positive-label 1 -t linear -o model`
    """
    explicit = explicit_options(context)
    _check_together(explicit)
    from resvm_cli.commands.train import train as job
    from resvm_cli.training.choice import training_choice

    if grow is not None:
        source = data.training_input(table, scale=None, groups=groups)
        with running.run(cluster) as run:
            result = job.grow(source, output, grow, run)
        training.report(result, json=json, quiet=running.quiet)
        return
    given = shared.given_values({**vars(method), **vars(data), "seed": seed}, explicit)
    choice, scale = training_choice(given)
    source = data.training_input(table, scale=scale, groups=groups)
    if task is not None:
        share = parse_task(task)
        with running.run(cluster) as run:
            part = job.train_share(source, choice, share, output, run)
        if not running.quiet and part.first <= part.last:
            _show_part(part)
        if json:
            print_result("part", part)
        return
    if not json:
        done_when(output)
    with running.run(cluster) as run:
        result = job.train(source, choice, output, run, force=force, resume=resume)
    training.report(result, json=json, quiet=running.quiet)


def _check_together(explicit: set[str]) -> None:
    """Reject options that cannot be combined, and tasks that would share an output path."""
    if {"grow", "task"} <= explicit:
        raise CommandLineError("--grow and --task cannot be combined")
    mode = "grow" if "grow" in explicit else "task"
    if mode not in explicit:
        return
    refused, why = {"force", "resume"}, "rerun the same command to resume an interrupted part"
    if mode == "grow":
        refused |= {*names_of(shared.MethodOptions), "scale", "seed"}
        why = "the model records how it was trained"
    for name in sorted(refused & explicit):
        option = name.replace("_", "-")
        raise CommandLineError(f"--{mode} and --{option} cannot be combined", why)
    if mode == "task" and "output" not in explicit:
        raise CommandLineError(
            "--task requires -o: every part needs its own directory", "for example, -o part-3"
        )


def _show_part(result: PartResult) -> None:
    members = f"{result.first} to {result.last} of {result.n_members}"
    say_row("members", f"{members}, {result.n_trained} of them new")
    say_row("part", result.part)
