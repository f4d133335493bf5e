"""resvm predict for many files: outputs whole or absent, shared by tasks, finished ones skipped."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import assert_exit, train_arguments


@pytest.fixture
def files(problem: Path, tmp_path: Path) -> list[Path]:
    lines = (problem / "test.svm").read_bytes().splitlines(keepends=True)
    paths = [tmp_path / f"rows-{number}.svm" for number in range(5)]
    for number, path in enumerate(paths):
        path.write_bytes(b"".join(lines[number * 60 : (number + 1) * 60]))
    return paths


def expected(resvm, model, path):
    return resvm("predict", model, path).out


def test_every_file_gets_the_output_it_would_have_alone(model, files, resvm, tmp_path):
    ran = resvm("predict", model, *files, "--out-dir", tmp_path / "preds")
    assert (ran.code, ran.out) == (0, b""), ran.err
    for path in files:
        written = tmp_path / "preds" / f"{path.name}.pred"
        assert written.read_bytes() == expected(resvm, model, path)


def test_tasks_share_the_files(model, files, resvm, tmp_path):
    target = tmp_path / "preds"
    for number in (2, 1, 3):
        ran = resvm(
            "predict", model, *files, "--out-dir", target, "--task", "auto/3", "-q",
            env={"SLURM_ARRAY_TASK_ID": str(number)},
        )  # fmt: skip
        assert (ran.code, ran.err) == (0, "")
    assert len(list(target.glob("*.pred"))) == 5


def test_files_of_other_tasks_are_counted(model, files, resvm, tmp_path):
    words = ["predict", model, *files, "--out-dir", tmp_path / "preds", "--task", "1/2"]
    told = resvm(*words).err
    predicted = len(list((tmp_path / "preds").glob("*.pred")))
    assert 0 < predicted < 5
    assert f"{predicted} predicted, {5 - predicted} left to other tasks" in told


def test_finished_files_are_skipped_and_changed_ones_are_not(
    problem, model, files, resvm, tmp_path
):
    target = tmp_path / "preds"
    command = ["predict", model, *files, "--out-dir", target]
    assert "5 predicted\n" in resvm(*command).err
    assert "0 predicted, 5 already finished" in resvm(*command).err
    (target / "rows-1.svm.pred").write_bytes(b"half")
    (target / "rows-2.svm.pred").unlink()
    (target / ".rows-3.svm.pred.json").write_bytes(b"{}")
    files[4].write_bytes(files[4].read_bytes() + b"1 1:1\n")
    assert "4 predicted, 1 already finished" in resvm(*command).err
    for path in files:
        assert (target / f"{path.name}.pred").read_bytes() == expected(resvm, model, path)
    assert "5 predicted\n" in resvm(*command, "-T", 0.3).err
    other = tmp_path / "other"
    assert resvm(*train_arguments(problem), "--n-models", 3, "-o", other).code == 0
    assert "5 predicted\n" in resvm("predict", other, *files, "--out-dir", target, "-T", 0.3).err


def test_a_bad_file_leaves_the_finished_ones_and_no_half_output(model, files, resvm, tmp_path):
    files[2].write_bytes(b"1 1:1\n1 nonsense\n")
    ran = resvm("predict", model, *files, "--out-dir", tmp_path / "preds")
    assert ran.code == 3
    assert "rows-2.svm:2" in ran.err
    assert sorted(path.name for path in (tmp_path / "preds").glob("*.pred")) == [
        "rows-0.svm.pred",
        "rows-1.svm.pred",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{0}", "{1}"], "each needs its own output"),
        (["{0}", "--task", "1/2"], "--task requires --out-dir"),
        (["{0}", "--out-dir", "preds", "-o", "x"], "cannot be combined"),
        (["-", "--out-dir", "preds"], "stdin has no name"),
        (["{0}", "copy/rows-0.svm", "--out-dir", "preds"], "would both be written to"),
    ],
)
def test_outputs_that_cannot_be_told_apart_are_refused(
    arguments, words, model, files, resvm, tmp_path
):
    (tmp_path / "copy").mkdir()
    shutil.copy(files[0], tmp_path / "copy")
    ran = resvm("predict", model, *(text.format(*files) for text in arguments), cwd=tmp_path)
    assert ran.code == 2
    assert words in ran.err
    assert not (tmp_path / "preds").exists()


def test_an_output_in_the_directory_is_not_one_of_the_inputs(model, files, resvm, tmp_path):
    predicted = files[0].with_name("rows-0.svm.pred")
    predicted.write_bytes(files[1].read_bytes())
    ran = resvm("predict", model, files[0], predicted, "--out-dir", predicted.parent)
    assert_exit(ran, 2, f"--out-dir would write to {predicted}, which is an input (FILE)")
    assert predicted.read_bytes() == files[1].read_bytes()
