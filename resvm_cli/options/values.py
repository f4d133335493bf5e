"""Parse the text of an option into its value."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from resvm_cli.errors import CommandLineError
from resvm_cli.parameters import KERNEL_NAMES, LIBSVM_KERNELS, KernelName
from resvm_cli.running.run import Share

Name = TypeVar("Name", bound=str)


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
    raise CommandLineError(f"{option} is '{text}'; {expected} was expected")


def parse_kernel(text: str) -> KernelName:
    """Return a kernel given by name or by LIBSVM's number."""
    kernels: dict[str, KernelName] = {name: name for name in KERNEL_NAMES}
    kernels |= {"polynomial": "poly"}
    kernels |= {str(number): name for number, name in enumerate(LIBSVM_KERNELS)}
    if text.lower() not in kernels:
        raise CommandLineError(
            f"-t/--kernel is '{text}'; linear, poly, rbf, sigmoid, precomputed, 0 to 4,"
            " tanimoto or minmax was expected"
        )
    return kernels[text.lower()]


def number_or_text(text: str) -> float | str:
    """Return a number if the text is one, else the text."""
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
        raise CommandLineError(f"{option} is '{text}'; {expected} was expected") from None


AUTO = "auto"


def parse_task(text: str, environment: Mapping[str, str] = os.environ) -> Share:
    """Return the part of an array job: I/N, or auto to read it from the batch system."""
    word, slash, after = text.partition("/")
    expected = CommandLineError(f"--task is '{text}'; I/N, auto or auto/N was expected, I from 1")
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


def _of_array(environment: Mapping[str, str], count: int | None) -> Share:
    """Return the part given by the batch system's environment variables."""
    name, number = _array_index(environment)
    if count is not None:
        # a rerun of some tasks has a different first number and count, but tasks keep their numbers
        if not 1 <= number <= count:
            raise CommandLineError(
                f"{name} is {number}, but the tasks are 1 to {count}",
                f"number the array from 1: --array=1-{count}",
            )
        return Share(number, count)
    known = {
        "SLURM_ARRAY_TASK_ID": ("SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX"),
        "SGE_TASK_ID": ("SGE_TASK_FIRST", "SGE_TASK_LAST"),
    }
    first, last = (_number(environment.get(which)) for which in known.get(name, ("", "")))
    total = _number(environment.get("SLURM_ARRAY_TASK_COUNT"))
    whole = first is not None and last is not None and total in (None, last - first + 1)
    if not whole or first not in (0, 1):
        raise CommandLineError(
            f"--task auto cannot tell the number of tasks from {name} = {number}",
            "use --task auto/N, with an array numbered from 1 to N",
        )
    assert first is not None
    assert last is not None
    return Share(number - first + 1, last - first + 1)


def _array_index(environment: Mapping[str, str]) -> tuple[str, int]:
    for name in ("SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID", "SGE_TASK_ID"):
        number = _number(environment.get(name))
        if number is not None:  # SGE sets it to undefined outside array jobs
            return name, number
    raise CommandLineError(
        "--task auto, but this is not a task of an array job:"
        " neither SLURM_ARRAY_TASK_ID, PBS_ARRAY_INDEX nor SGE_TASK_ID is set",
        "give the task explicitly: --task 3/16",
    )


def _number(text: str | None) -> int | None:
    """Return an integer of at most nine digits, or None."""
    return int(text) if text is not None and re.fullmatch("[0-9]{1,9}", text) else None


def parse_members(text: str) -> range:
    """Parse A:B, which means members A to B - 1."""
    matched = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", text)
    if matched is None or not int(matched[1]) < int(matched[2]):
        raise CommandLineError(
            f"--members is '{text}'; A:B was expected, such as 0:25 for members 0 to 24"
        )
    return range(int(matched[1]), int(matched[2]))
