"""Parse what the user typed, and report errors that say what was expected."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, TypeVar

import typer

from resvm_cli.errors import CommandLineError
from resvm_cli.parameters import KERNEL_NAMES, LIBSVM_KERNELS, KernelName
from resvm_cli.run import Share

Name = TypeVar("Name", bound=str)
AUTO = "auto"

# Typer bundles its own Click without exporting UsageError, the parent of BadParameter.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

# LIBSVM's options and their equivalents in resvm.
OF_LIBSVM = {
    "-s": "all members are C-SVMs; --method chooses resvm, bagging or cwsvm",
    "-w": "--w-pos replaces -w1 as the weight of P, and -c is the penalty for U",
    "-b": "resvm predict --probability adds the probability that a row is positive",
    "-v": "resvm tune -v N scores by cross-validation",
    "-l": "for svm-scale, use resvm train --scale minmax; for grid.py, resvm tune -c 0.03..32768",
}
FILES = (  # instead of svm-train train.svm model
    "files are options: -P pos.svm -U unl.svm -o model, or --data train.svm --positive-label 1"
)


def completer(*names: str) -> Callable[[str], list[str]]:
    """Return a function that completes these names when the user presses Tab."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def parse_choice(option: str, text: str, names: Sequence[Name]) -> Name:
    """Return the text if it is one of these names."""
    for name in names:
        if name == text:
            return name
    expected = f"{', '.join(names[:-1])} or {names[-1]}"
    raise CommandLineError(f"{option} must be {expected}, got '{text}'")


def parse_kernel(text: str) -> KernelName:
    """Return the kernel with this name or this LIBSVM number."""
    kernels: dict[str, KernelName] = {name: name for name in KERNEL_NAMES}
    kernels |= {"polynomial": "poly"}
    kernels |= {str(number): name for number, name in enumerate(LIBSVM_KERNELS)}
    if text.lower() not in kernels:
        raise CommandLineError(
            "-t/--kernel must be linear, poly, rbf, sigmoid, precomputed, 0 to 4, laplacian,"
            f" tanimoto or minmax, got '{text}'"
        )
    return kernels[text.lower()]


def single_number(labels: Sequence[str]) -> float | None:
    """Return the label as a number; None unless there is exactly one and it is a finite number."""
    number = number_or_text(labels[0]) if len(labels) == 1 else None
    return float(number) if isinstance(number, int | float) and isfinite(number) else None


def number_or_text(text: str) -> float | str:
    """Return the text as a number if it is one; otherwise, return the text."""
    try:
        return int(text) if re.fullmatch("[+-]?[0-9]{1,300}", text) else float(text)
    except ValueError:
        return text


def parse_number(option: str, text: str, expected: str = "a number") -> float:
    """Return a number from the command line; nan is rejected."""
    try:
        number = float(text)
        if number != number:
            raise ValueError
        return number
    except ValueError:
        raise CommandLineError(f"{option} must be {expected}, got '{text}'") from None


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


def parse_task(text: str, environment: Mapping[str, str] = os.environ) -> Share:
    """Parse --task: I/N as given, or auto/N to read I from the batch system."""
    word, _, after = text.partition("/")
    count = _number(after)
    number = _number(word)
    if word == AUTO and count:
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


def explain_usage_error(
    error: Any, arguments: Sequence[str], commands: Sequence[str]
) -> CommandLineError:
    """Return Click's error with a hint for those who expect LIBSVM's options or arguments."""
    words = ["resvm", *(word for word in arguments[:1] if word in commands)]
    command = " ".join(words) if error.ctx is None else error.ctx.command_path
    message = error.format_message()
    hint = OF_LIBSVM.get(getattr(error, "option_name", ""))
    if hint is None and "unexpected" in message and words[-1] in ("train", "tune", "rank"):
        hint = FILES
    shown = f"`{command} --help{'-all' * (' ' in command)}` lists all options"
    return CommandLineError(message, hint or shown)
