"""Inputs that are read more than once."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from resvm_cli.errors import DataError
from resvm_cli.files.sources import Source
from resvm_cli.files.streams import PIECE

TEXT = bytes(range(256)) * (9 * PIECE // 256)


@pytest.fixture(params=["file", "pipe"])
def source(request, tmp_path: Path):
    path = tmp_path / "input"
    if request.param == "file":
        path.write_bytes(TEXT)
    else:
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=(TEXT,))
        writer.start()
    source = Source(str(path))
    yield source
    source.close()
    if request.param == "pipe":
        writer.join()


def test_passes_that_go_on_at_once_do_not_disturb_each_other(source):
    first = source.pieces()
    read = [b"", next(first)]
    second = source.pieces()
    for number, piece in enumerate(second):
        read[0] += piece
        for _ in range(number % 3):
            read[1] += next(first, b"")
    read[1] += b"".join(first)
    assert read[0] == TEXT
    assert read[1] == TEXT
    assert b"".join(source.pieces()) == TEXT


@pytest.mark.parametrize("same_size", [False, True])
def test_parts_of_a_file_that_has_changed_are_refused(same_size, tmp_path):
    path = tmp_path / "input"
    path.write_bytes(TEXT)
    source = Source(str(path))
    assert b"".join(source.spans([(0, 9), (12, 20)])) == TEXT[:9] + TEXT[12:20]
    if same_size:
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    else:
        with path.open("ab") as file:
            file.write(b"more")
    with pytest.raises(DataError, match="changed while it was being read"):
        list(source.spans([(0, 9)]))
    source.close()
