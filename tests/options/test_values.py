"""What the user typed, as values."""

from __future__ import annotations

import pytest

from resvm_cli.errors import CommandLineError
from resvm_cli.options.values import parse_members, parse_task
from resvm_cli.running.run import Share

SLURM = {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "4"}


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("3/16", {}, Share(3, 16)),
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_COUNT": "4"}, Share(3, 4)),
        (
            "auto",
            {**SLURM, "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_COUNT": "5"},
            Share(4, 5),
        ),
        ("auto/16", {**SLURM, "SLURM_ARRAY_TASK_MIN": "3"}, Share(3, 16)),
        ("auto/8", {"PBS_ARRAY_INDEX": "8"}, Share(8, 8)),
        ("auto/8", {"PBS_ARRAYID": "2"}, Share(2, 8)),
        (
            "auto",
            {"SGE_TASK_ID": "2", "SGE_TASK_FIRST": "1", "SGE_TASK_LAST": "9"},
            Share(2, 9),
        ),
    ],
)
def test_a_task_is_read_from_the_text_or_the_array_job(text, environment, expected):
    assert parse_task(text, environment) == expected


@pytest.mark.parametrize(
    ("text", "environment", "words"),
    [
        ("0/4", {}, "I/N, auto or auto/N"),
        ("5/4", {}, "I/N, auto or auto/N"),
        ("3", {}, "I/N, auto or auto/N"),
        ("x/4", {}, "I/N, auto or auto/N"),
        ("1/" + "9" * 5000, {}, "I/N, auto or auto/N"),
        ("9" * 5000 + "/4", {}, "I/N, auto or auto/N"),
        ("auto/0", SLURM, "I/N, auto or auto/N"),
        ("auto", {}, "not a task of an array job"),
        ("auto", {"SGE_TASK_ID": "undefined"}, "not a task of an array job"),
        # a rerun of the tasks 3 and 4, or of 3 and 7 to 9, says nothing of the whole
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_MIN": "3"}, "cannot tell the number of tasks"),
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_COUNT": "2"}, "cannot tell the number of tasks"),
        ("auto", {"PBS_ARRAY_INDEX": "3"}, "cannot tell the number of tasks"),
        ("auto/2", SLURM, "the tasks are 1 to 2"),
    ],
)
def test_a_task_that_is_not_one_is_refused(text, environment, words):
    with pytest.raises(CommandLineError, match=words):
        parse_task(text, environment)


def test_members_are_a_range():
    assert parse_members("0:25") == range(25)
    for text in ("3", "5:5", "7:3", "a:b", "-1:2", "0:" + "9" * 5000):
        with pytest.raises(CommandLineError, match="A:B was expected"):
            parse_members(text)
