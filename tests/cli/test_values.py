"""Options parsed into values, and usage errors in one style, with advice."""

from __future__ import annotations

import re
import shlex

import pytest

from resvm_cli.cli.app import COMMANDS, command_line
from resvm_cli.cli.values import UsageError, explain_usage_error, parse_task
from resvm_cli.errors import CommandLineError
from resvm_cli.run import Share

SLURM = {"SLURM_ARRAY_TASK_ID": "3"}


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("3/16", {}, Share(3, 16)),
        ("auto/16", SLURM, Share(3, 16)),
        ("auto/8", {"PBS_ARRAY_INDEX": "8"}, Share(8, 8)),
        ("auto/8", {"PBS_ARRAYID": "2"}, Share(2, 8)),
        ("auto/9", {"SGE_TASK_ID": "2"}, Share(2, 9)),
        ("auto/4", {"HQ_TASK_ID": "2", "SLURM_ARRAY_TASK_ID": "7"}, Share(2, 4)),
        ("auto/9", {"LSB_JOBINDEX": "3"}, Share(3, 9)),
        ("auto/6", {"AWS_BATCH_JOB_ARRAY_INDEX": "5"}, Share(6, 6)),
        ("auto/3", {"JOB_COMPLETION_INDEX": "2"}, Share(3, 3)),
    ],
)
def test_a_task_is_read_from_the_text_or_the_array_job(text, environment, expected):
    assert parse_task(text, environment) == expected


@pytest.mark.parametrize(
    ("text", "environment", "words"),
    [
        *(
            (text, SLURM, "--task must be I/N (I from 1 to N) or auto/N, got")
            for text in ("0/4", "5/4", "3", "x/4", "auto", "auto/0", "1/" + "9" * 5000)
        ),
        ("auto/2", {"SGE_TASK_ID": "undefined"}, "requires an array job"),
        ("auto/2", {"LSB_JOBINDEX": "0"}, "requires an array job"),
        ("auto/2", SLURM, "the tasks are numbered 1 to 2"),
        ("auto/3", {"JOB_COMPLETION_INDEX": "3"}, "the tasks are numbered 0 to 2"),
        ("auto/3", {"HQ_TASK_ID": "0"}, "the tasks are numbered 1 to 3"),
    ],
)
def test_a_task_that_is_not_one_is_refused(text, environment, words):
    with pytest.raises(CommandLineError, match=re.escape(words)):
        parse_task(text, environment)


def refusal(line: str) -> CommandLineError:
    arguments = shlex.split(line)
    with pytest.raises(UsageError) as caught:
        command_line(COMMANDS)(arguments, prog_name="resvm", standalone_mode=False)
    return explain_usage_error(caught.value, arguments, COMMANDS)


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("trian", "No such command 'trian'. Did you mean 'train'", "`resvm --help`"),
        (
            "train --foo",
            "No such option: --foo (Possible options: --force)",
            "`resvm train --help-all`",
        ),
        ("train -j 0", "Invalid value for '-j' / '--jobs': 0 is not", "`resvm train --help-all`"),
        ("train -j", "Option '-j' requires an argument.", "`resvm train --help-all`"),
        ("predict", "Missing argument 'MODEL'.", "`resvm predict --help-all` lists all options"),
        ("simulate x y", "Got unexpected extra argument(s) (x y)", "`resvm simulate --help-all`"),
        (
            "train -t 2 -c 10 train.svm model",
            "Got unexpected extra argument(s)",
            "files are options",
        ),
        ("train -s 0", "No such option: -s", "all members are C-SVMs; --method chooses"),
        ("train -w1 5", "No such option: -w", "--w-pos replaces -w1"),
        ("predict model -b 1", "No such option: -b", "resvm predict --probability"),
        ("train -v 5", "No such option: -v", "resvm tune -v"),
        ("tune -log2c -5,15,2", "No such option: -l", "for svm-scale, use resvm train --scale"),
        ("--debug", "Missing command.", "`resvm --help`"),
    ],
)
def test_what_is_refused_is_named_with_what_to_do(line, message, hint):
    error = refusal(line)
    assert error.message.startswith(message)
    assert error.hint is not None
    assert error.hint.startswith(hint)
    assert error.exit_code == 2


def test_the_program_says_it_in_two_lines_and_exits_with_2(resvm):
    ran = resvm("train", "-t", 2, "-c", 10, "train.svm", "model")
    assert (ran.code, ran.out) == (2, b"")
    first, second = ran.err.splitlines()
    assert first.startswith("resvm: error: ")
    assert second.startswith("  hint: ")


def test_nothing_at_all_shows_the_help(resvm):
    ran = resvm()
    assert ran.code == 0
    assert b"Usage: resvm" in ran.out
