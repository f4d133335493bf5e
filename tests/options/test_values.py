"""Options parsed into values, and usage errors in one style, with advice."""

from __future__ import annotations

import re
import shlex

import pytest

from resvm_cli.cli import COMMANDS, command_line
from resvm_cli.errors import CommandLineError
from resvm_cli.options.values import UsageError, explained, parse_task
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
        ("auto/4", {"HQ_TASK_ID": "2", "SLURM_ARRAY_TASK_ID": "7"}, Share(2, 4)),
        ("auto", {"LSB_JOBINDEX": "3", "LSB_JOBINDEX_END": "5"}, Share(3, 5)),
        ("auto/9", {"LSB_JOBINDEX": "3", "LSB_JOBINDEX_END": "5"}, Share(3, 9)),
        (
            "auto",
            {"AWS_BATCH_JOB_ARRAY_INDEX": "0", "AWS_BATCH_JOB_ARRAY_SIZE": "6"},
            Share(1, 6),
        ),
        ("auto/6", {"AWS_BATCH_JOB_ARRAY_INDEX": "5"}, Share(6, 6)),
        ("auto/3", {"JOB_COMPLETION_INDEX": "2"}, Share(3, 3)),
    ],
)
def test_a_task_is_read_from_the_text_or_the_array_job(text, environment, expected):
    assert parse_task(text, environment) == expected


@pytest.mark.parametrize(
    ("text", "environment", "words"),
    [
        ("0/4", {}, "I/N (I from 1 to N), auto or auto/N"),
        ("5/4", {}, "I/N (I from 1 to N), auto or auto/N"),
        ("3", {}, "I/N (I from 1 to N), auto or auto/N"),
        ("x/4", {}, "I/N (I from 1 to N), auto or auto/N"),
        ("1/" + "9" * 5000, {}, "I/N (I from 1 to N), auto or auto/N"),
        ("9" * 5000 + "/4", {}, "I/N (I from 1 to N), auto or auto/N"),
        ("auto/0", SLURM, "I/N (I from 1 to N), auto or auto/N"),
        ("auto", {}, "requires an array job"),
        ("auto", {"SGE_TASK_ID": "undefined"}, "requires an array job"),
        # a rerun of tasks 3 and 4, or of 3 and 7 to 9, does not reveal the number of tasks
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_MIN": "3"}, "the number of tasks is unknown"),
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_COUNT": "2"}, "the number of tasks is unknown"),
        ("auto", {"PBS_ARRAY_INDEX": "3"}, "the number of tasks is unknown"),
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_STEP": "2"}, "the number of tasks is unknown"),
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_ID": "5"}, "the number of tasks is unknown"),
        ("auto", {"JOB_COMPLETION_INDEX": "2"}, "the number of tasks is unknown"),
        ("auto", {"HQ_TASK_ID": "2"}, "the number of tasks is unknown"),
        ("auto", {"LSB_JOBINDEX": "0"}, "requires an array job"),
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
    return explained(caught.value, arguments, COMMANDS)


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("trian", "there is no command 'trian'", "did you mean train?"),
        ("xyzzy", "there is no command 'xyzzy'", "the commands are train, "),
        ("train --foo", "resvm train has no option --foo", "did you mean --force?"),
        ("--qqq", "resvm has no option --qqq", "`resvm --help` lists all options"),
        ("train -j x", "-j/--jobs must be an integer, got 'x'", "`resvm train --help`"),
        ("train -j 0", "-j/--jobs must be at least 1, got 0", "`resvm train --help`"),
        ("train -c much", "-c/--c-unl must be a number, got 'much'", "`resvm train --help`"),
        (
            "score --labels d.csv --positive-label hit",
            "--positive-label must be a number, got 'hit'",
            "labels in svmlight files are numbers; if the file is a table: resvm convert",
        ),
        (
            "score --bootstrap 2000000",
            "--bootstrap must be from 0 to 1000000, got 2000000",
            "`resvm score --help`",
        ),
        ("train -j", "-j needs a value", "`resvm train --help`"),
        ("train --force=3", "--force takes no value", "`resvm train --help`"),
        ("predict", "resvm predict: MODEL is missing", "resvm predict [OPTIONS] MODEL [FILE]..."),
        ("check", "resvm check: FILE... is missing", "resvm check [OPTIONS] FILE..."),
        ("simulate x y", "resvm simulate: unexpected argument: x y", "`resvm simulate --help`"),
        ("--debug", "missing command", "`resvm --help`"),
    ],
)
def test_what_is_refused_is_named_with_what_to_do(line, message, hint):
    error = refusal(line)
    assert error.message.startswith(message)
    assert error.hint is not None
    assert error.hint.startswith(hint)
    assert error.exit_code == 2


@pytest.mark.parametrize("command", ["train", "tune", "rank"])
def test_files_as_svm_train_takes_them_get_a_pointer_to_options(command):
    error = refusal(f"{command} -t 2 -c 10 train.svm model")
    expected = (
        f"resvm {command} takes its files as options, but got train.svm model without an option"
    )
    assert error.message == expected
    assert "--data train.svm --positive-label 1 -o model" in (error.hint or "")
    assert "-P pos.svm -U unl.svm" in (error.hint or "")


def test_a_command_to_copy_has_quoted_file_names():
    error = refusal("train 'my rows;.svm' 'the model'")
    assert "--data 'my rows;.svm' --positive-label 1 -o 'the model';" in (error.hint or "")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("train -s 0", "--method"),
        ("train -w1 5", "--w-pos"),
        ("train -b 1", "--probability"),
        ("train -v 5", "resvm tune -v"),
        ("train -n 0.5", "nu"),
        ("train -p 0.1", "epsilon"),
        ("predict model -b 1", "--probability"),
        ("tune -log2c -5,15,2", "-c 0.03125..32768"),
        ("tune -c 1 -log2g -5,15,2", "-g 0.0001..10"),
    ],
)
def test_options_of_libsvm_that_mean_nothing_here_are_explained(line, hint):
    assert hint in (refusal(line).hint or "")


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
