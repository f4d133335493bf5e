"""resvm train, as a user runs it."""

from __future__ import annotations

import gzip
import json
import os
import platform
import re
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from resvm_cli.commands.train import parse_task
from resvm_cli.errors import CommandLineError
from resvm_cli.run import Share
from tests.conftest import assert_exit, data_arguments, train_arguments, write_svm

KERNELS = ["linear", "poly", "rbf", "sigmoid"]


def snapshot(path: Path) -> dict[str, bytes]:
    return {
        str(found.relative_to(path)): found.read_bytes()
        for found in sorted(path.rglob("*"))
        if found.is_file()
    }


def test_compression_spacing_zeros_and_pipes_do_not_change_the_model(problem, resvm, tmp_path):
    unl = (problem / "unl.svm").read_bytes()
    (tmp_path / "unl.gz").write_bytes(gzip.compress(unl))
    spaced = b"\xef\xbb\xbf# head\n\n" + unl.replace(b" ", b" \t ").replace(b"\n", b" # x\r\n")
    (tmp_path / "spaced").write_bytes(spaced)
    zeros = []
    for line in unl.decode().splitlines():
        values = dict(pair.split(":") for pair in line.split()[1:])
        zeros.append(" ".join(["0", *[f"{i}:{values.get(str(i), 0)}" for i in range(1, 6)]]))
    (tmp_path / "zeros").write_text("\n".join(zeros) + "\n")
    sources = {
        "plain": (problem / "unl.svm", None),
        "gzip": (tmp_path / "unl.gz", None),
        "spaced": (tmp_path / "spaced", None),
        "zeros": (tmp_path / "zeros", None),
        "stdin": ("-", unl),
        "gzip-stdin": ("-", gzip.compress(unl)),
    }
    models = {}
    for name, (path, stdin) in sources.items():
        files = ("-P", problem / "pos.svm", "-U", path, "-q", "-o", tmp_path / f"{name}.model")
        ran = resvm("train", "--no-auto", *files, "--n-models", 3, stdin=stdin)
        assert ran.code == 0, ran.err
        models[name] = snapshot(tmp_path / f"{name}.model")
    assert all(model == models["plain"] for model in models.values())


def test_nothing_in_a_model_tells_when_or_where_it_was_made(problem, resvm, tmp_path):
    resvm(*train_arguments(problem), "--n-models", 1, "-o", tmp_path / "m")
    manifest = (tmp_path / "m" / "manifest.json").read_text()
    assert str(tmp_path) not in manifest
    assert str(problem) not in manifest
    words = {word.strip('",') for word in manifest.split()}
    assert not words & {os.uname().nodename, str(date.today().year), platform.python_version()}


def test_files_that_count_from_zero_are_the_same_data(problem, resvm, tmp_path):
    rng = np.random.default_rng(0)
    p, u = rng.standard_normal((20, 4)) + 1, rng.standard_normal((40, 4))
    for base in (0, 1):
        folder = tmp_path / str(base)
        folder.mkdir()
        write_svm(folder / "pos.svm", p, first_index=base)
        write_svm(folder / "unl.svm", u, first_index=base)
    zero, one = tmp_path / "0", tmp_path / "1"
    refused = resvm(*train_arguments(zero), "-o", zero / "m")
    assert refused.code == 3
    assert "--zero-based" in refused.err
    assert resvm(*train_arguments(zero), "--zero-based", "-o", zero / "m").code == 0
    assert resvm(*train_arguments(one), "-o", one / "m").code == 0
    first = resvm("predict", zero / "m", zero / "unl.svm").out
    assert first == resvm("predict", one / "m", one / "unl.svm").out
    manifest = json.loads((zero / "m" / "manifest.json").read_text())
    assert (manifest["n_features"], manifest["zero_based"]) == (4, True)
    ranked = resvm("rank", *data_arguments(one), "--zero-based", "--model", one / "m")
    assert_exit(ranked, 2, "features counted from 1", "leave --zero-based out")


def test_libsvms_numbers_and_letters_mean_what_they_mean_there(problem, resvm, tmp_path):
    words = [*("-t", 1, "-d", 2, "-g", 0.5, "-r", 1, "-c", 3, "-e", 0.01), "--n-models", 1]
    ran = resvm(*train_arguments(problem), *words, "-o", tmp_path / "m")
    assert ran.code == 0, ran.err
    manifest = json.loads((tmp_path / "m" / "manifest.json").read_text())
    (group,) = manifest["groups"]
    assert group["kernel"] == {"name": "poly", "gamma": 0.5, "coef0": 1.0, "degree": 2}
    assert group["parameters"]["c_unl"] == 3.0
    assert group["parameters"]["tolerance"] == 0.01
    text = (tmp_path / "m" / "members" / "00000.model").read_text().splitlines()
    assert text[:5] == [
        "svm_type c_svc",
        "kernel_type polynomial",
        "degree 2",
        "gamma 0.5",
        "coef0 1.0",
    ]


def test_linear_members_are_collapsed_to_one_weight_vector(problem, resvm, tmp_path):
    resvm(*train_arguments(problem), "-t", "linear", "--n-models", 1, "-o", tmp_path / "m")
    lines = (tmp_path / "m" / "members" / "00000.model").read_text().splitlines()
    assert "total_sv 1" in lines
    assert "nr_sv 1 0" in lines
    assert lines[-1].startswith("1.0 1:")
    assert lines[-2] == "SV"


def test_one_file_under_two_names_is_not_two_sets(problem, resvm, tmp_path):
    (tmp_path / "link").symlink_to(problem / "pos.svm")
    ran = resvm(
        "train", "--no-auto", "-P", problem / "pos.svm", "-U", tmp_path / "link", cwd=tmp_path
    )
    assert ran.code == 2
    assert "-P and -U are the same" in ran.err


def test_stdin_under_two_names_is_not_two_sets(problem, resvm, tmp_path):
    text = (problem / "pos.svm").read_bytes()
    ran = resvm("train", "-P", "/dev/stdin", "-U", "-", cwd=tmp_path, stdin=text)
    assert ran.code == 2
    assert "-P and -U are the same" in ran.err


def test_values_beyond_doubles_are_refused_quietly(resvm, tmp_path):
    (tmp_path / "pos.svm").write_text("1 1:1e200\n1 1:-1e200\n")
    (tmp_path / "unl.svm").write_text("1 1:1\n1 2:1\n")
    ran = resvm(*train_arguments(tmp_path), "-o", tmp_path / "m")
    assert ran.code == 3
    assert "variance is too large" in ran.err
    assert "Warning" not in ran.err


def test_an_existing_model_needs_force_and_other_directories_are_safe(problem, resvm, tmp_path):
    target = tmp_path / "m"
    common = [*train_arguments(problem), "--n-models", 2, "-o", target]
    assert resvm(*common).code == 0
    before = snapshot(target)
    ran = resvm(*common, "--seed", 1)
    assert ran.code == 2
    assert "use --force" in ran.err
    assert snapshot(target) == before
    assert resvm(*common, "--seed", 1, "--force").code == 0
    assert snapshot(target) != before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    ran = resvm(*train_arguments(problem), "-o", tmp_path / "mine", "--force")
    assert ran.code == 2
    assert "not a resvm model" in ran.err
    assert os.listdir(tmp_path / "mine") == ["thesis.tex"]


def test_rows_without_features_and_a_single_positive_train(resvm, tmp_path):
    (tmp_path / "pos.svm").write_text("1 2:1\n")
    (tmp_path / "unl.svm").write_text("0\n0 1:0\n0 3:1\n")
    for kernel in KERNELS:
        ran = resvm(
            *train_arguments(tmp_path), "-t", kernel, "-o", tmp_path / kernel, "--n-models", 3
        )
        assert ran.code == 0, ran.err
        out = resvm("predict", tmp_path / kernel, tmp_path / "unl.svm").out
        assert len(out.splitlines()) == 3


def test_data_without_any_feature_still_trains(resvm, tmp_path):
    (tmp_path / "pos.svm").write_text("1\n1\n")
    (tmp_path / "unl.svm").write_text("0\n0\n0\n")
    ran = resvm(*train_arguments(tmp_path), "-o", tmp_path / "m", "--n-models", 3)
    assert ran.code == 0, ran.err
    assert resvm("predict", tmp_path / "m", tmp_path / "unl.svm").code == 0
    assert resvm("inspect", tmp_path / "m").code == 0  # no known positive is out of bag


@pytest.fixture
def grouped(problem, resvm, tmp_path):
    """Files of groups for 130 rows, and a model trained with the first."""
    names = {
        "groups": [f"g{row // 4}" for row in range(130)],
        "renamed": [f"{-row // 4 * 4}" for row in range(0, -130, -1)],
        "other": [f"g{row // 5}" for row in range(130)],
    }
    for name, lines in names.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    command = [*train_arguments(problem), "--n-models", 3, "--groups", tmp_path / "groups"]
    ran = resvm(*command, "-o", tmp_path / "m")
    assert ran.code == 0, ran.err
    return tmp_path


def test_a_model_trained_with_groups_says_so(problem, grouped, resvm):
    manifest = json.loads((grouped / "m/manifest.json").read_text())
    assert manifest["data"]["groups"]["count"] == 33
    assert "33 groups, sha256" in resvm("inspect", grouped / "m").out.decode()
    assert resvm("predict", grouped / "m", problem / "test.svm").code == 0


def test_rank_needs_the_groups_that_the_model_was_trained_with(problem, grouped, resvm):
    data, model = data_arguments(problem), grouped / "m"
    before = snapshot(model)
    command = ["rank", *data, "--model", model]
    assert_exit(resvm(*command), 4, "was trained with --groups", "give the --groups")
    ran = resvm(*command, "--groups", grouped / "other")
    assert_exit(ran, 4, "was trained with different --groups", "give the --groups")
    assert snapshot(model) == before
    ranks = [
        resvm("rank", *data, "--model", model, "--groups", grouped / name).out
        for name in ("groups", "renamed")
    ]
    assert ranks[0] == ranks[1] != b""


def test_a_task_or_an_interrupted_run_is_not_continued_with_other_groups(problem, grouped, resvm):
    command = [*train_arguments(problem), "--n-models", 4]
    part = [*command, "--task", "1/2", "-o", grouped / "part"]
    assert resvm(*part, "--groups", grouped / "groups").code == 0
    assert_exit(resvm(*part), 2, "a part of another model", "data.groups differ")
    assert_exit(resvm(*part, "--groups", grouped / "other"), 2, "data.groups differ")
    assert resvm(*part, "--groups", grouped / "renamed").code == 0
    os.rename(grouped / "part", grouped / "new.part")
    ran = resvm(*command, "--resume", "-o", grouped / "new", "--groups", grouped / "other")
    assert_exit(ran, 2, "data.groups differ")


def test_quiet_keeps_warnings_and_hides_remarks_and_summaries(problem, resvm, tmp_path):
    both = (problem / "pos.svm").read_bytes() + (problem / "unl.svm").read_bytes()
    (tmp_path / "both.svm").write_bytes(both)
    ran = resvm(
        *("train", "-P", problem / "pos.svm", "-U", tmp_path / "both.svm", "-o", tmp_path / "m"),
        "-q",
    )
    assert ran.code == 0, ran.err
    assert "30 of 30 rows of P are also in U" in ran.err
    assert "leave them out of U" in ran.err
    assert "scored out of bag" not in ran.err
    assert "ROC AUC " not in ran.err
    assert len(ran.err.splitlines()) == 1


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
