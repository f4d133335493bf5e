"""A file is written whole or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from resvm_cli.data.atomic import check_outputs, whole_directory, whole_file
from resvm_cli.errors import FileError, ParameterError
from tests.conftest import hidden_files


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    with whole_file(str(path)) as handle:
        handle.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["out"]


def test_an_interruption_leaves_the_old_file(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")

    def interrupted() -> None:
        with whole_file(str(path)) as handle:
            handle.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]


def test_the_mode_is_that_of_a_plainly_created_file(tmp_path):
    before = os.umask(0o027)
    try:
        with whole_file(str(tmp_path / "out")) as handle:
            handle.write(b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


def test_the_mode_of_a_file_that_was_there_is_kept(tmp_path):
    (tmp_path / "out").write_text("old")
    (tmp_path / "out").chmod(0o600)
    with whole_file(str(tmp_path / "out")) as handle:
        handle.write(b"new")
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600


def test_a_long_name_is_no_trouble(tmp_path):
    with whole_file(str(tmp_path / ("x" * 255))) as handle:
        handle.write(b"new")
    assert (tmp_path / ("x" * 255)).read_text() == "new"


def test_a_link_keeps_pointing_at_the_file(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with whole_file(str(tmp_path / "link")) as handle:
        handle.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


def test_places_that_cannot_be_written_are_writing_errors(tmp_path):
    for path in (tmp_path, tmp_path / "no" / "where"):
        with pytest.raises(FileError, match="cannot write"), whole_file(str(path)):
            raise AssertionError("must not be reached")
    with pytest.raises(FileError, match="No space left"), whole_file("/dev/full") as handle:
        handle.write(b"x")
    with whole_file("/dev/null") as handle:
        handle.write(b"x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.fixture
def steps(monkeypatch):
    """What is synced and renamed, in order: the file behind it, and its size then."""
    done = []
    real = {name: getattr(os, name) for name in ("fsync", "rename", "replace")}

    def sync(descriptor: int) -> None:
        state = os.fstat(descriptor)
        done.append(("sync", state.st_ino, None if stat.S_ISDIR(state.st_mode) else state.st_size))
        real["fsync"](descriptor)

    def move(name):
        def moving(source, target) -> None:
            done.append(("move", os.stat(source).st_ino, None))
            real[name](source, target)

        return moving

    monkeypatch.setattr(os, "fsync", sync)
    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, move(name))
    return done


def test_a_file_is_on_the_disk_before_its_name_and_its_name_before_we_go_on(steps, tmp_path):
    # a crash after the rename must not leave an empty file where an old one was
    with whole_file(str(tmp_path / "out")) as handle:
        handle.write(b"content")
        assert steps == []
    number = (tmp_path / "out").stat().st_ino
    assert steps == [
        ("sync", number, len(b"content")),
        ("move", number, None),
        ("sync", tmp_path.stat().st_ino, None),
    ]


def test_so_is_all_of_a_directory(steps, tmp_path):
    (tmp_path / "out").mkdir()
    old = (tmp_path / "out").stat().st_ino
    with whole_directory(str(tmp_path / "out"), may_replace=lambda path: True) as directory:
        (directory / "members").mkdir()
        (directory / "manifest").write_bytes(b"whole")
        (directory / "members" / "first").write_bytes(b"member")
        assert steps == []
    target = tmp_path / "out"
    contents = [
        ("sync", (target / "manifest").stat().st_ino, 5),
        ("sync", (target / "members" / "first").stat().st_ino, 6),
        ("sync", (target / "members").stat().st_ino, None),
        ("sync", target.stat().st_ino, None),
    ]
    assert sorted(steps[:4], key=str) == sorted(contents, key=str)
    assert steps[4:] == [
        ("move", old, None),
        ("move", target.stat().st_ino, None),
        ("sync", tmp_path.stat().st_ino, None),
        ("move", old, None),  # under a name of ours, to be removed
    ]


def test_what_will_replace_a_file_is_private_and_named_after_its_process(tmp_path):
    (tmp_path / "out").write_text("secret")
    with whole_file(str(tmp_path / "out")) as handle:
        (made,) = hidden_files(tmp_path)
        assert f"-{os.getpid()}-" in made
        assert stat.S_IMODE((tmp_path / made).stat().st_mode) == 0o600
        handle.write(b"x")


def check(*outputs: object, inputs: tuple[object, ...] = ()) -> None:
    check_outputs(
        [(f"out {number}", str(path)) for number, path in enumerate(outputs)],
        [(f"in {number}", str(path)) for number, path in enumerate(inputs)],
    )


def test_an_input_is_recognized_by_its_path_and_its_inode(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = tmp_path / "rows"
    rows.write_text("1:1")
    (tmp_path / "hard").hardlink_to(rows)
    (tmp_path / "soft").symlink_to(rows)
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to("absent")
    for output in ("rows", "./rows", "folder/../rows", "hard", "soft", rows):
        with pytest.raises(ParameterError, match=r"out 0 would write to .* is an input \(in 1\)"):
            check(output, inputs=("absent", "rows"))
    with pytest.raises(ParameterError, match="out 0 would write to dangling"):
        check("dangling", inputs=("absent",))
    check("rows2", "rows3", inputs=("rows", "-"))


def test_stdin_is_the_file_that_it_is_redirected_from(tmp_path):
    rows = tmp_path / "rows"
    rows.write_text("1:1")
    saved, descriptor = os.dup(0), os.open(rows, os.O_RDONLY)
    try:
        os.dup2(descriptor, 0)
        with pytest.raises(ParameterError, match="is an input"):
            check(rows, inputs=("-",))
        check("-", tmp_path / "-", inputs=("-",))
    finally:
        os.dup2(saved, 0)
        os.close(descriptor)
        os.close(saved)


def test_outputs_that_replace_nothing_may_be_repeated(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("-", "/dev/null", "/dev/stdout", tmp_path / "pipe"):
        check(path, path, inputs=(path,))


def test_nothing_is_written_into_a_model_that_is_read(tmp_path):
    for name in ("manifest.json", "part.json"):
        model = tmp_path / f"of {name}"
        (model / "members").mkdir(parents=True)
        (model / name).write_text("{}")
        (tmp_path / f"link to {name}").symlink_to(model)
        for output in (model, model / name, model / "new.pred", model / "members" / "new"):
            with pytest.raises(ParameterError, match=r"which is (inside )?an input"):
                check(output, inputs=(tmp_path / f"link to {name}",))
        check(model, model / "new.pred")  # it is the command's own
        check(f"{model}.pred", tmp_path / "new", inputs=(model,))


def test_reports_may_go_into_the_directory_of_a_run_but_not_onto_its_files(tmp_path):
    run = tmp_path / "run"
    (run / "tasks").mkdir(parents=True)
    (run / "settings.json").write_text("{}")
    check(run / "report.html", run / "report.md", run / "report.csv", inputs=(run,))
    check(run, run / "plot.png")
    for name in ("results.jsonl", "plan.json", "tasks/1-of-2.json"):
        with pytest.raises(ParameterError, match="which is inside an input"):
            check(run / name, inputs=(run,))
        with pytest.raises(ParameterError, match="would both write to"):
            check(run, run / name)
        with pytest.raises(ParameterError, match="would both write to"):
            check(run / name, run)
