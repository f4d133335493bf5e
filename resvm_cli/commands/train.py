"""The options of resvm train."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

import typer

from resvm_cli.cli import options as shared
from resvm_cli.cli.option_groups import expand_option_groups, explicit_options
from resvm_cli.cli.terminal import print_json, say_row
from resvm_cli.cli.training_report import report
from resvm_cli.errors import CommandLineError
from resvm_cli.run import Share

# The number of an array job's task, and the number of the first task. HyperQueue comes first,
# because its workers are often tasks of another array job.
TASK_VARIABLES = {
    "HQ_TASK_ID": 1,
    "SLURM_ARRAY_TASK_ID": 1,
    "PBS_ARRAY_INDEX": 1,
    "PBS_ARRAYID": 1,
    "SGE_TASK_ID": 1,
    "LSB_JOBINDEX": 1,
    "AWS_BATCH_JOB_ARRAY_INDEX": 0,
    "JOB_COMPLETION_INDEX": 0,
}


@expand_option_groups
def train(
    context: typer.Context,
    *,
    data: shared.DataOptions,
    table: shared.MoleculeTableOptions,
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
    task: str | None = shared.TASK,
    seed: int = shared.SEED,
    cluster: shared.ClusterOptions,
    running: shared.RunningOptions,
) -> None:
    """Train a model on known positives and unlabeled rows.

    What you do not set is searched: about ten settings are scored out of bag, and the best ones are
    pooled. `--no-auto` gives the fixed defaults of the paper.

    For example:

    - `resvm train -P pos.svm -U unl.svm -o model`
    - `resvm train --data train.svm --positive-label 1 -t linear -o model`
    - `resvm train -P pos.svm -U unl.svm --no-auto -o model`
    """
    explicit = explicit_options(context)
    if task is not None:
        for name in ("force", "resume"):
            if name in explicit:
                raise CommandLineError(
                    f"--task and --{name} cannot be combined",
                    "rerun the same command to resume an interrupted part",
                )
        if "output" not in explicit:
            raise CommandLineError(
                "--task requires -o: every part needs its own directory", "for example, -o part-3"
            )
    from resvm_cli.tuning import learn as job
    from resvm_cli.tuning.choice import read_params

    params = read_params(
        shared.given_values({**vars(method), **vars(data), "seed": seed}, explicit),
        molecules=table.smiles_column is not None,
    )
    source = data.training_input(table, scale=params.data_scale, groups=groups)
    if task is not None:
        share = parse_task(task)
        with running.run(cluster) as run:
            part = job.train_share(source, params, share, output, run)
        if not running.quiet and part["first"] <= part["last"]:
            members = "{first} to {last} of {n_members}, {n_trained} of them new"
            say_row("members", members.format(**part))
            say_row("part", part["part"])
        if json:
            print_json("train", part)
        return
    with running.run(cluster) as run:
        result = job.train(source, params, output, run, force=force, resume=resume)
    report("train", result, json=json, quiet=running.quiet)


def parse_task(text: str, environment: Mapping[str, str] = os.environ) -> Share:
    """Parse --task: I/N as given, or auto/N to read I from the batch system."""
    word, _, after = text.partition("/")
    count = _number(after)
    number = _number(word)
    if word == "auto" and count:
        number = _task_of_array(count, environment)
    if not count or number is None or not 1 <= number <= count:
        raise CommandLineError(f"--task must be I/N (I from 1 to N) or auto/N, got '{text}'")
    return Share(number, count)


def _task_of_array(count: int, environment: Mapping[str, str]) -> int:
    """Return the number of this task of an array job, from 1."""
    for variable, first in TASK_VARIABLES.items():
        index = _number(environment.get(variable, ""))
        # outside array jobs, SGE sets its variable to undefined and LSF to 0
        if index is None or (variable, index) == ("LSB_JOBINDEX", 0):
            continue
        if not first <= index < first + count:
            tasks = f"{first} to {first + count - 1}"
            raise CommandLineError(
                f"{variable} is {index}, but the tasks are numbered {tasks}",
                f"the array must have {count} tasks, numbered {tasks}",
            )
        return index - first + 1
    *others, last = TASK_VARIABLES
    raise CommandLineError(
        f"--task auto/N requires an array job, but none of {', '.join(others)} and {last} is set",
        "give the task explicitly: --task 3/16",
    )


def _number(text: str) -> int | None:
    """Return an integer of at most nine digits, or None."""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else None
