"""Which share of the work is done here: an array job's tasks divide it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated

from resvm_cli.errors import CommandLineError
from resvm_cli.options.running import running_option
from resvm_cli.running.array_tasks import Share

AUTO = "auto"

Task = Annotated[
    str | None,
    running_option(
        metavar="I/N|auto[/N]",
        help="Do share I of N alone, I from 1; auto reads it from the array job"
        " (SLURM_ARRAY_TASK_ID, PBS_ARRAY_INDEX, SGE_TASK_ID).",
    ),
]
Members = Annotated[
    str | None,
    running_option(metavar="A:B", help="Train members A to B - 1 alone, counted from 0."),
]


def parse_task(text: str, environment: Mapping[str, str] = os.environ) -> Share:
    """I/N, or auto: the task's number in its array, of as many as the array or the text says."""
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
    """The share that a batch system's variables name."""
    name, number = _array_index(environment)
    if count is not None:
        # a rerun of some tasks has another first and another count: the numbers alone are the same
        if not 1 <= number <= count:
            raise CommandLineError(
                f"{name} is {number}, and the tasks are 1 to {count}",
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
            f"--task auto cannot tell how many tasks there are in all from {name} = {number}",
            "say so: --task auto/N, with an array numbered from 1 to N",
        )
    assert first is not None
    assert last is not None
    return Share(number - first + 1, last - first + 1)


def _array_index(environment: Mapping[str, str]) -> tuple[str, int]:
    for name in ("SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID", "SGE_TASK_ID"):
        number = _number(environment.get(name))
        if number is not None:  # SGE says undefined where there is no array
            return name, number
    raise CommandLineError(
        "--task auto, but this is no task of an array job:"
        " neither SLURM_ARRAY_TASK_ID, PBS_ARRAY_INDEX nor SGE_TASK_ID is set",
        "give the share itself: --task 3/16",
    )


def _number(text: str | None) -> int | None:
    """A whole number of no more digits than any count of tasks has."""
    return int(text) if text is not None and re.fullmatch("[0-9]{1,9}", text) else None


def parse_members(text: str) -> range:
    """A:B, the members from A to before B."""
    matched = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", text)
    if matched is None or not int(matched[1]) < int(matched[2]):
        raise CommandLineError(
            f"--members is '{text}'; A:B was expected, such as 0:25 for members 0 to 24"
        )
    return range(int(matched[1]), int(matched[2]))
