"""Models that are replaced while others read them, left aside, or read-only."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import resvm_cli
from resvm_cli.commands.predict import PredictOptions, predict_rows
from resvm_cli.run import Run
from resvm_cli.storage import model as directory
from resvm_cli.storage.model import load_with_out_of_bag
from tests.conftest import assert_exit, train_arguments
from tests.programs import resvm_command, run, run_resvm, script_command, started


def train(problem, folder, *more):
    return run_resvm(*train_arguments(problem), "--n-models", 5, "-o", folder, *more)


@pytest.fixture(scope="module")
def other(problem, tmp_path_factory):
    """A model of the same data with the seed 5; that of ``model`` is 0."""
    folder = tmp_path_factory.mktemp("other") / "m"
    assert_exit(train(problem, folder, "--seed", 5), 0)
    return folder


def replace_often(target: Path, sources: list[Path], count: int) -> list[str]:
    """A program that replaces a model again and again by copies of others."""
    script = (
        "import sys; from pathlib import Path\n"
        "from resvm_cli.data.atomic import whole_directory\n"
        "target, count, *sources = sys.argv[1:]\n"
        "for number in range(int(count)):\n"
        "    source = Path(sources[number % len(sources)])\n"
        "    with whole_directory(target, may_replace=lambda path: True) as new:\n"
        "        (new / 'members').mkdir()\n"
        "        for file in sorted(source.rglob('*')):\n"
        "            if file.is_file():\n"
        "                (new / file.relative_to(source)).write_bytes(file.read_bytes())\n"
    )
    return script_command(script, target, count, *sources)


def test_a_reader_during_replacements_sees_old_or_new(model, other, tmp_path):
    shutil.copytree(model, tmp_path / "m")
    loads = 0
    seeds = set()
    with started(replace_often(tmp_path / "m", [other, model], 60)) as running:
        while running.poll() is None:
            stored = load_with_out_of_bag(str(tmp_path / "m"), required=True)
            seeds.add(stored.manifest["seed"])
            loads += 1
    assert running.returncode == 0
    assert loads > 5
    assert seeds == {0, 5}


@pytest.mark.parametrize("reader", ["predict", "api"])
def test_a_reader_of_out_of_bag_values_sees_those_of_its_model(
    reader, problem, model, other, tmp_path, monkeypatch
):
    target = tmp_path / "m"
    shutil.copytree(model, target)
    real = directory.load_out_of_bag
    replaced = []

    def late(path, manifest, **more):
        if not replaced:  # once: between the members and the table
            replaced.append(True)
            target.rename(tmp_path / "old")
            shutil.copytree(other, target)
        return real(path, manifest, **more)

    monkeypatch.setattr(directory, "load_out_of_bag", late)
    rows = str(problem / "test.svm")
    if reader == "predict":
        options = PredictOptions(output=str(tmp_path / "out"), threshold="recall=0.9")
        predict_rows(str(target), rows, options, Run())
    else:
        resvm_cli.load_model(target)
    assert replaced


def test_what_is_aside_and_no_model_is_left_alone(problem, model, tmp_path):
    shutil.copytree(model, tmp_path / "x")
    (tmp_path / ".x.resvm-old").mkdir()
    (tmp_path / ".x.resvm-old/thesis.tex").write_text("x")
    ran = train(problem, tmp_path / "x", "--force")
    assert_exit(ran, 5, "exists and is not a resvm model")
    assert (tmp_path / ".x.resvm-old/thesis.tex").read_text() == "x"


def test_a_model_that_was_left_aside_is_put_back(model, tmp_path):
    shutil.copytree(model, tmp_path / ".x.resvm-old")
    assert_exit(run_resvm("inspect", tmp_path / "x"), 0)
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root may write anywhere"
)
def test_a_read_only_model_can_be_replaced_again_and_again(problem, tmp_path):
    plain = ["setpriv", "--bounding-set=-dac_override", "--"] if os.geteuid() == 0 else []
    target = tmp_path / "m"
    for _ in range(3):
        command = resvm_command(*train_arguments(problem), "--n-models", 5, "-o", target, "--force")
        assert_exit(run([*plain, *command]), 0)
        assert os.listdir(tmp_path) == ["m"]
        (target / "members").chmod(0o555)
        target.chmod(0o555)
    for folder in (target, target / "members"):
        folder.chmod(0o755)
