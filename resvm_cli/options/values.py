"""Parse what the user typed, and report errors that say what was expected."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from math import isfinite
from typing import Any, NamedTuple, TypeVar

import typer

from resvm_cli.errors import CommandLineError
from resvm_cli.parameters import KERNEL_NAMES, LIBSVM_KERNELS, KernelName
from resvm_cli.running.run import Share

Name = TypeVar("Name", bound=str)
AUTO = "auto"

# Typer bundles its own Click without exporting UsageError, the parent of BadParameter.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

# LIBSVM options and their equivalents in resvm.
OF_LIBSVM = {
    "-s": "all members are C-SVMs; --method chooses resvm, bagging or cwsvm",
    "-w": "--w-pos replaces -w1 as the weight of P, and -c is the penalty for U",
    "-b": "resvm predict --probability adds the probability that a row is positive",
    "-v": "resvm tune -v N scores by cross-validation",
    "-n": "all members are C-SVMs, which have no nu",
    "-p": "all members are C-SVMs, which have no epsilon",
    "-l": "use resvm train --scale minmax; the model stores the scaling",
}
# Options of LIBSVM's grid.py; typer sees only their first letter.
OF_GRID = {
    "-log2c": "-c takes values and ranges, not logarithms: -c 0.03125..32768, or -c 0.5,2,8",
    "-log2g": "-g takes values and ranges, not logarithms: -g 0.0001..10, or -g 0.01,0.1",
}
TEXT_LABEL = (  # instead of a number: the file is probably a table
    "labels in svmlight files are numbers; if the file is a table:"
    " resvm convert FILE --label-column COLUMN --positive-label LABEL -P pos.svm -U unl.svm"
)
# What Click's types expect, including ranges such as "int range".
EXPECTED = {
    "integer": "an integer",
    "int": "an integer",
    "float": "a number",
    "boolean": "true or false",
}


def offered(*names: str) -> Callable[[str], list[str]]:
    """Return a function that completes these names when the user presses Tab."""

    def offer(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return offer


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
            "-t/--kernel must be linear, poly, rbf, sigmoid, precomputed, 0 to 4, tanimoto or"
            f" minmax, got '{text}'"
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


def parse_task(text: str, environment: Mapping[str, str] = os.environ) -> Share:
    """Parse --task: I/N as given, or auto to read I and N from the batch system."""
    word, slash, after = text.partition("/")
    expected = CommandLineError(f"--task must be I/N (I from 1 to N), auto or auto/N, got '{text}'")
    count = None
    if slash:
        count = _number(after)
        if not count:
            raise expected
    if word == AUTO:
        return _of_array(environment, count)
    number = _number(word)
    if count is None or number is None or not 1 <= number <= count:
        raise expected
    return Share(number, count)


class _ArrayJob(NamedTuple):
    """The environment variables that a batch system sets for the tasks of an array job."""

    variable: str
    base: int = 1  # the number of the first task, if the system fixes it
    first: str = ""
    last: str = ""
    size: str = ""
    step: str = ""


# HyperQueue comes first: its workers are often array tasks of another batch system
_ARRAY_JOBS = (
    _ArrayJob("HQ_TASK_ID"),
    _ArrayJob(
        "SLURM_ARRAY_TASK_ID",
        first="SLURM_ARRAY_TASK_MIN",
        last="SLURM_ARRAY_TASK_MAX",
        size="SLURM_ARRAY_TASK_COUNT",
        step="SLURM_ARRAY_TASK_STEP",
    ),
    _ArrayJob("PBS_ARRAY_INDEX"),
    _ArrayJob("PBS_ARRAYID"),
    _ArrayJob(
        "SGE_TASK_ID", first="SGE_TASK_FIRST", last="SGE_TASK_LAST", step="SGE_TASK_STEPSIZE"
    ),
    _ArrayJob("LSB_JOBINDEX", last="LSB_JOBINDEX_END", step="LSB_JOBINDEX_STEP"),
    _ArrayJob("AWS_BATCH_JOB_ARRAY_INDEX", base=0, size="AWS_BATCH_JOB_ARRAY_SIZE"),
    _ArrayJob("JOB_COMPLETION_INDEX", base=0),
)
ARRAY_VARIABLES = tuple(job.variable for job in _ARRAY_JOBS)


def _of_array(environment: Mapping[str, str], count: int | None) -> Share:
    """Return the part of the array job according to the batch system's environment variables."""
    job, index = _array_index(environment)
    if count is not None:
        # rerunning only some tasks changes the first number and the count, but not task numbers
        number = index - job.base + 1
        if not 1 <= number <= count:
            tasks = f"{job.base} to {count + job.base - 1}"
            raise CommandLineError(
                f"{job.variable} is {index}, but the tasks are numbered {tasks}",
                f"the array must have {count} tasks, numbered {tasks}",
            )
        return Share(number, count)
    numbers = _task_numbers(job, environment)
    if index not in numbers:
        raise CommandLineError(
            f"--task auto: the number of tasks is unknown ({job.variable} is {index})",
            f"use --task auto/N, with an array of N tasks numbered from {job.base}",
        )
    return Share(numbers.index(index) + 1, len(numbers))


def _task_numbers(job: _ArrayJob, environment: Mapping[str, str]) -> range:
    """Return the numbers of all tasks in the array, or an empty range if they are unknown."""
    first, last, total, step = (_number(environment.get(name)) for name in job[2:])
    if not job.first:
        first = job.base
    if first not in (0, 1) or step not in (None, 1):
        return range(0)
    if last is None and not job.last and total is not None:
        last = first + total - 1
    if last is None or total not in (None, last - first + 1):
        return range(0)
    return range(first, last + 1)


def _array_index(environment: Mapping[str, str]) -> tuple[_ArrayJob, int]:
    for job in _ARRAY_JOBS:
        index = _number(environment.get(job.variable))
        # outside array jobs, SGE sets its variable to undefined and LSF to 0
        if index is not None and (job.variable, index) != ("LSB_JOBINDEX", 0):
            return job, index
    *others, last = ARRAY_VARIABLES
    raise CommandLineError(
        f"--task auto requires an array job, but none of {', '.join(others)} and {last} is set",
        "give the task explicitly: --task 3/16",
    )


def _number(text: str | None) -> int | None:
    """Return an integer of at most nine digits, or None."""
    return int(text) if text is not None and re.fullmatch("[0-9]{1,9}", text) else None


def explained(error: Any, arguments: Sequence[str], commands: Sequence[str]) -> CommandLineError:
    """Return typer's error in our own words, with a hint."""
    context = error.ctx
    if context is not None:
        command = context.command_path
    else:
        command = " ".join(["resvm", *(word for word in arguments[:1] if word in commands)])
    message = str(error.message)
    every = f"`{command} --help` lists all options"
    if hasattr(error, "possibilities"):
        option = next((word for word in arguments if word in OF_GRID), error.option_name)
        return _unknown_option(command, option, error.possibilities or (), every)
    if hasattr(error, "param_type"):
        usage = context.command.get_usage(context).removeprefix("Usage: ").replace("{", "")
        return CommandLineError(
            f"{command}: {error.param.human_readable_name} is missing", usage.replace("}", "")
        )
    if getattr(error, "param", None) is not None:
        name = "/".join(error.param.opts) if error.param.param_type_name == "option" else ""
        hint = TEXT_LABEL if name == "--positive-label" else every
        return CommandLineError(_bad_value(name or error.param.human_readable_name, message), hint)
    if hasattr(error, "option_name"):  # -j at the end of the line, or --json=yes
        without = "requires" in message
        return CommandLineError(
            f"{error.option_name} {'needs a value' if without else 'takes no value'}", every
        )
    if unknown := re.match("No such command '(.*?)'", message):
        near = get_close_matches(unknown[1], commands, 1)
        hint = f"did you mean {near[0]}?" if near else f"the commands are {', '.join(commands)}"
        return CommandLineError(f"there is no command '{unknown[1]}'", hint)
    if surplus := re.match(r"Got unexpected extra argument\S* \((.*)\)", message):
        return _surplus(command, _words(surplus[1], arguments), every)
    return CommandLineError(message[:1].lower() + message[1:].rstrip("."), every)


def _unknown_option(command: str, option: str, near: Sequence[str], every: str) -> CommandLineError:
    hint = OF_LIBSVM.get(option) or OF_GRID.get(option)
    if hint is None:
        hint = f"did you mean {' or '.join(sorted(near))}?" if near else every
    return CommandLineError(f"{command} has no option {option}", hint)


def _bad_value(option: str, message: str) -> str:
    if wrong := re.fullmatch(r"'(.*)' is not a valid ([a-z ]+?)\.?", message, re.DOTALL):
        expected = EXPECTED.get(wrong[2].removesuffix(" range"), wrong[2])
        return f"{option} must be {expected}, got '{wrong[1]}'"
    if outside := re.fullmatch(r"(.*) is not in the range x>=(\S+?)\.?", message):
        return f"{option} must be at least {outside[2]}, got {outside[1]}"
    if outside := re.fullmatch(r"(.*) is not in the range (\S+)<=x<=(\S+?)\.?", message):
        return f"{option} must be from {outside[2]} to {outside[3]}, got {outside[1]}"
    return f"{option}: {message.rstrip('.')}"


def _words(text: str, arguments: Sequence[str]) -> Sequence[str]:
    """Return the arguments that typer's message joins with spaces."""
    ends = range(len(arguments) + 1)
    slices = (arguments[start:end] for start in ends for end in ends)
    return next((words for words in slices if " ".join(words) == text), text.split())


def _surplus(command: str, words: Sequence[str], every: str) -> CommandLineError:
    named = " ".join(words)
    if command.split()[-1] not in ("train", "tune", "rank"):
        return CommandLineError(f"{command}: unexpected argument: {named}", every)
    # svm-train train.svm model
    data, *target = map(shlex.quote, words[:2])
    where = f" -o {target[0]}" if target else ""
    return CommandLineError(
        f"{command} takes its files as options, but got {named} without an option",
        f"one labeled file: --data {data} --positive-label 1{where};"
        " two files: -P pos.svm -U unl.svm",
    )
