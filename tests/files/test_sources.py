"""Inputs that are read more than once."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from resvm_cli.files.compression import PIECE
from resvm_cli.files.sources import Source

TEXT = bytes(range(256)) * (3 * PIECE // 256)


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
    second = source.pieces(PIECE // 2)
    for number, piece in enumerate(second):
        read[0] += piece
        read[1] += next(first, b"") if number % 3 else b""
    read[1] += b"".join(first)
    assert read[0] == TEXT
    assert read[1] == TEXT
    assert b"".join(source.pieces()) == TEXT
