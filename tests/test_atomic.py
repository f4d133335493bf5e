"""A file is written whole or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from resvm_cli.errors import FileError
from resvm_cli.files.atomic import whole_file


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
