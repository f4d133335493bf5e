"""The directory of a tuning run: resumed after a kill, rejected if damaged or from another run."""

from __future__ import annotations

import json
import os
import shutil
import signal

import pytest

from tests.conftest import assert_exit, hidden_files
from tests.programs import resvm_signaled_at, run, run_resvm, script_command


def tune_arguments(problem, folder, *more):
    data = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q", "--n-models", 5]
    return ["tune", *data, "--trials", 3, "--no-extend", "-o", folder, *more]


def resume(problem, folder, *more, **options):
    return run_resvm(*tune_arguments(problem, folder, "--resume", *more), **options)


@pytest.fixture(scope="module")
def tuning(problem, tmp_path_factory):
    """The directory of a finished tuning run; tests change copies of it."""
    folder = tmp_path_factory.mktemp("tuning") / "t"
    assert_exit(run_resvm(*tune_arguments(problem, folder)), 0)
    return folder


@pytest.mark.parametrize("more", [(), ("--resume",)], ids=["again", "resume"])
def test_a_tuning_killed_while_it_writes_its_settings_can_be_run_again(more, problem, tmp_path):
    arguments = tune_arguments(problem, tmp_path / "t")
    ran = run(resvm_signaled_at("fsync", signal.SIGKILL, *arguments))
    assert ran.code == -signal.SIGKILL
    assert not (tmp_path / "t/settings.json").exists()
    assert_exit(run_resvm(*arguments, *more), 0)
    assert hidden_files(tmp_path / "t") == []


def test_a_tuning_on_a_full_disk_is_a_writing_error(problem, tmp_path):
    # a limit on file sizes fails like a full disk, and needs no privileges
    script = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        "from resvm_cli.cli.app import program; sys.argv[0] = 'resvm'; program()\n"
    )
    ran = run(
        script_command(
            script, "tune", "-P", problem / "pos.svm", "-U", problem / "unl.svm",
            "--trials", 30, "--n-models", 3, "-q", "-o", tmp_path / "t",
        )
    )  # fmt: skip
    assert_exit(ran, 5, "trials.jsonl: cannot write")


def test_deeply_nested_trials_are_damage(problem, tuning, tmp_path):
    folder = shutil.copytree(tuning, tmp_path / "t")
    trials = (folder / "trials.jsonl").read_bytes()
    (folder / "trials.jsonl").write_bytes(b"[" * 100_000 + b"\n" + trials)
    assert_exit(resume(problem, folder), 5, "trials.jsonl:1")


DAMAGE = {
    "lacks a key": lambda record: record.pop("recall"),
    "a string score": lambda record: record["values"].update(roc_areas="x"),
    "no score": lambda record: record["values"].pop("roc_areas"),
    "a list of scores": lambda record: record.update(values=[1]),
    "a long score": lambda record: record["values"].update(roc_areas=10**400),
    "a long deviation": lambda record: record.update(deviation=10**400),
    "a strange error": lambda record: record.update(error=[1]),
    "no parameters": lambda record: record.pop("params"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_trial_is_named_by_its_line(damage, problem, tuning, tmp_path):
    folder = shutil.copytree(tuning, tmp_path / "t")
    lines = (folder / "trials.jsonl").read_text().splitlines()
    record = json.loads(lines[1])
    DAMAGE[damage](record)
    lines[1] = json.dumps(record)
    (folder / "trials.jsonl").write_text("\n".join(lines) + "\n")
    ran = resume(problem, folder)
    assert ran.code in (3, 5), ran.err
    assert "Traceback" not in ran.err
    assert "trials.jsonl:2" in ran.err


@pytest.mark.parametrize("name", ["settings.json", "trials.jsonl"])
def test_a_file_with_a_key_twice_is_damaged(name, problem, tuning, tmp_path):
    folder = shutil.copytree(tuning, tmp_path / "t")
    text = (folder / name).read_text()
    (folder / name).write_text(text.replace("{", '{"seed": 3, "seed": 4, ', 1))
    assert_exit(resume(problem, folder), 5, name, "is damaged")


@pytest.mark.parametrize("name", ["settings.json", "trials.jsonl"])
def test_a_named_pipe_in_place_of_a_file_is_refused(name, problem, tuning, tmp_path):
    folder = shutil.copytree(tuning, tmp_path / "t")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert_exit(resume(problem, folder, patience=60), 5, name, "regular file")


def test_a_refused_tuning_leaves_no_lock(problem, tuning, tmp_path):
    folder = shutil.copytree(tuning, tmp_path / "t")
    assert_exit(resume(problem, folder, "--seed", 7), 2, "seed")
    assert hidden_files(folder) == []
