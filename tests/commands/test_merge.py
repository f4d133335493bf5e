"""resvm train in parts and resumed, and resvm merge, as a user runs them."""

from __future__ import annotations

import json
import re
import shutil
import signal
from pathlib import Path

import pytest

from resvm_cli.data.json_files import read_sealed, write_with_digest
from tests.commands.test_train import snapshot
from tests.conftest import SAMPLE, assert_exit, data_arguments, train_arguments
from tests.programs import run_resvm, start_resvm, until


def parts_of(folder: Path, count: int, target: Path, *more: object) -> list[Path]:
    paths = []
    for number in range(1, count + 1):
        paths.append(target / f"part-{number:02d}")
        ran = run_resvm(
            *train_arguments(folder), *more, "--task", f"{number}/{count}", "-o", paths[-1]
        )
        assert (ran.code, ran.out) == (0, b""), ran.err
    return [path for path in paths if path.exists()]


def interrupted(command: list[object], part: Path) -> None:
    """Train all members into a part like that of a run killed before it wrote the model."""
    assert_exit(run_resvm(*command, "--task", "1/1", "-o", part), 0)
    header = read_sealed(str(part / "part.json"))
    write_with_digest(str(part / "part.json"), header | {"task": None})


def test_settings_that_every_task_searches_merge_too(problem, resvm, tmp_path):
    command = ["train", *data_arguments(problem), "--n-models", 20]
    assert resvm(*command, "-o", tmp_path / "whole").code == 0
    parts = [tmp_path / f"part-{number}" for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        ran = resvm(*command[:-3], "--n-models", 20, "--task", f"{number}/2", "-o", part)
        assert ran.code == 0, ran.err
        assert "every task repeats the search" in ran.err
    assert resvm("merge", *parts, "-o", tmp_path / "joined", "-q").code == 0
    assert snapshot(tmp_path / "joined") == snapshot(tmp_path / "whole")


def test_more_tasks_than_members_leave_some_without_work(problem, resvm, tmp_path):
    few = ["-t", "linear", "--solver", "liblinear", "-e", 1e-9, "-c", 1e6, "--n-models", 3]
    parts = parts_of(problem, 5, tmp_path, *few)
    assert len(parts) == 3
    resvm(*train_arguments(problem), *few, "-o", tmp_path / "whole")
    assert_exit(resvm("merge", *parts[::-1], "-o", tmp_path / "joined", "-q"), 0, "iteration limit")
    assert snapshot(tmp_path / "joined") == snapshot(tmp_path / "whole")


def test_missing_tasks_are_named_as_an_array_takes_them(problem, resvm, tmp_path):
    parts = parts_of(problem, 5, tmp_path, "--n-models", 10)
    (parts[1] / "members/00003.json").unlink()
    ran = resvm("merge", *parts[:2], "-o", tmp_path / "joined")
    assert ran.code == 4
    assert "7 of 10 members are missing: 3-9" in ran.err
    assert "run these tasks of 5 again: 2-5 (Slurm: sbatch --array=2-5 ..." in ran.err
    # the part of an interrupted run has no task number, so only members are listed
    interrupted([*train_arguments(problem), "--n-models", 10], tmp_path / "m.part")
    (tmp_path / "m.part/members/00003.json").unlink()
    ran = resvm("merge", tmp_path / "m.part", "-o", tmp_path / "joined")
    assert "1 of 10 members are missing: 3" in ran.err
    assert "--array" not in ran.err


def test_a_finished_task_run_again_does_nothing_and_a_damaged_one_is_repaired(
    problem, resvm, tmp_path
):
    command = [*train_arguments(problem), "--n-models", 6, "--task", "1/2", "-o", tmp_path / "part"]
    assert resvm(*command).code == 0
    whole = snapshot(tmp_path / "part")
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "part").rglob("*")}
    assert json.loads(resvm(*command, "--json").out)["n_trained"] == 0
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "part").rglob("*")}
    (tmp_path / "part/members/00001.model").write_bytes(b"half")
    (tmp_path / "part/members/00002.json").write_bytes(b"{}")
    assert json.loads(resvm(*command, "--json").out)["n_trained"] == 2
    assert snapshot(tmp_path / "part") == whole


def test_parts_of_other_versions_are_refused(problem, resvm, tmp_path):
    from tests.storage.test_parts import _edit

    parts = parts_of(problem, 2, tmp_path, "--n-models", 4)
    _edit(parts[1] / "part.json", lambda header: header["description"]["versions"].update(resvm=""))
    ran = resvm("merge", *parts, "-o", tmp_path / "joined")
    assert ran.code == 4
    assert "different models: versions differ" in ran.err


def test_a_part_is_not_written_into_a_directory_of_something_else(problem, model, resvm, tmp_path):
    shutil.copytree(model, tmp_path / "model")
    before = snapshot(tmp_path / "model")
    ran = resvm(*train_arguments(problem), "--task", "1/2", "-o", tmp_path / "model")
    assert ran.code == 2
    assert "is not a part of a model" in ran.err
    assert snapshot(tmp_path / "model") == before


DIGITS = ["-P", SAMPLE / "digits" / "pos.svm", "-U", SAMPLE / "digits" / "unl.svm"]
LONG = ["train", "--no-auto", *DIGITS, "--n-models", 400, "-j", 1]


@pytest.fixture(scope="module")
def whole(resvm, tmp_path_factory):
    """A model that was trained without interruption."""
    target = tmp_path_factory.mktemp("long") / "whole"
    assert resvm(*LONG, "-q", "-o", target).code == 0
    return target


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_training_goes_on_to_the_same_bytes(number, whole, resvm, tmp_path):
    common, target = LONG, tmp_path / "model"
    with start_resvm(*common, "--resume", "-o", target) as running:
        until(lambda: len(list(tmp_path.glob("model.part/members/*.json"))) > 8)
        running.send_signal(number)
        err = running.stderr.read().decode()
    assert running.returncode == (143 if number == signal.SIGTERM else -9)
    if number == signal.SIGTERM:
        saved = re.search(r"([\d,]+) of ([\d,]+) members are saved in", err)
        assert saved is not None
        kept, total = (int(count.replace(",", "")) for count in saved.groups())
        assert 8 < kept < total
        assert "--resume to continue" in err
    assert not target.exists()
    # forgetting --resume loses nothing
    ran = resvm(*common, "-q", "-o", target)
    assert (ran.code, "contains an interrupted training run" in ran.err) == (2, True)
    ran = resvm(*common, "--resume", "-o", target)
    assert ran.code == 0, ran.err
    assert "members are already trained" in ran.err
    assert snapshot(target) == snapshot(whole)
    assert not (tmp_path / "model.part").exists()


def test_an_interrupted_training_may_be_forgotten(problem, resvm, tmp_path):
    command = [*train_arguments(problem), "--n-models", 4]
    interrupted(command, tmp_path / "model.part")
    assert resvm(*command, "-o", tmp_path / "model").code == 2
    assert resvm(*command, "-o", tmp_path / "model", "--force").code == 0
    assert not (tmp_path / "model.part").exists()


@pytest.mark.parametrize(
    ("begun", "more"),
    [([], []), (["members"], ["--resume"]), ([".resvm-new-0-1-2"], ["--force"])],
)
def test_a_training_killed_at_its_very_beginning_leaves_nothing(
    begun, more, problem, resvm, tmp_path
):
    place = tmp_path / "model.part"
    place.mkdir()
    for name in begun:
        (place / name).mkdir()
    ran = resvm(*train_arguments(problem), "--n-models", 2, *more, "-o", tmp_path / "model")
    assert ran.code == 0, ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_part_whose_model_is_there_is_taken_away_and_no_other(problem, resvm, tmp_path):
    command = [*train_arguments(problem), "--n-models", 4]
    target, place = tmp_path / "model", tmp_path / "model.part"
    assert resvm(*command, "-o", target).code == 0
    whole = snapshot(target)
    interrupted(command, place)
    # killed after the model was written: the part is no longer needed
    for more in ([], ["--resume"]):
        ran = resvm(*command, *more, "-o", target)
        assert (ran.code, "a model already exists there" in ran.err) == (2, True)
        assert not place.exists()
    interrupted([*command, "--seed", 1], place)
    members = snapshot(place)
    assert resvm(*command, "-o", target).code == 2
    assert (snapshot(place), snapshot(target)) == (members, whole)
    assert resvm(*command, "--force", "-o", target).code == 0
    assert not place.exists()
    assert snapshot(target) == whole


def test_what_is_no_part_is_left_alone(problem, resvm, tmp_path):
    (tmp_path / "model.part").mkdir()
    (tmp_path / "model.part" / "letters").write_text("mine")
    for more in ([], ["--resume"], ["--force"]):
        ran = resvm(*train_arguments(problem), *more, "-o", tmp_path / "model")
        assert ran.code == 2
        assert snapshot(tmp_path / "model.part") == {"letters": b"mine"}


@pytest.fixture(scope="module")
def killed(problem, tmp_path_factory):
    """A model and its parts, as left by a run killed after writing the model."""
    folder = tmp_path_factory.mktemp("killed")
    command = [*train_arguments(problem), "--n-models", 3]
    assert_exit(run_resvm(*command, "-o", folder / "m"), 0)
    interrupted(command, folder / "m.part")
    return folder


@pytest.mark.parametrize(
    ("left", "command"),
    [
        (["part.json"], ["--resume", "--n-models", 3]),
        ([], ["--resume", "--n-models", 3]),
        (["part.json", "members/00000.model"], ["--resume", "--n-models", 3]),
    ],
    ids=str,
)
def test_parts_of_a_finished_model_are_removed_by_the_next_run(
    left, command, killed, problem, tmp_path
):
    folder = shutil.copytree(killed, tmp_path / "folder")
    for path in [path for path in (folder / "m.part").rglob("*") if path.is_file()]:
        if str(path.relative_to(folder / "m.part")) not in left:
            path.unlink()
    if not any(name.startswith("members") for name in left):
        (folder / "m.part/members").rmdir()
    assert_exit(run_resvm(*train_arguments(problem), *command, "-o", folder / "m"), 2)
    assert [path.name for path in folder.iterdir()] == ["m"]
