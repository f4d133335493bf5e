"""A file is written whole or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from resvm_cli.errors import FileError
from resvm_cli.files.atomic import whole_directory, whole_file
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


def test_temporary_files_are_private_and_named_after_their_process(tmp_path):
    with whole_file(str(tmp_path / "out")) as handle:
        (made,) = hidden_files(tmp_path)
        assert f"-{os.getpid()}-" in made
        assert stat.S_IMODE((tmp_path / made).stat().st_mode) == 0o600
        handle.write(b"x")
