"""Inputs read in pieces: compressed, from pipes, or more than once."""

from __future__ import annotations

import errno
import fcntl
import gzip
import os
import threading
from pathlib import Path

import pytest

from resvm_cli.data import streams
from resvm_cli.data.streams import PIECE, Source
from resvm_cli.errors import DataError
from tests.conftest import SAMPLE
from tests.programs import run, script_command


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_a_very_long_line_is_refused_in_little_memory(model, tmp_path):
    for name, byte in (("bomb.gz", b"\0"), ("ones.gz", b"1")):
        whole = gzip.compress(byte * (1 << 20), compresslevel=1)  # a file may have many members
        (tmp_path / name).write_bytes(whole * 200)
    script = (
        "import sys; from resvm_cli.cli.app import main\n"
        "sys.argv[0] = 'resvm'\n"
        "try: main()\n"
        "except SystemExit as done: code = done.code\n"
        # not getrusage, which also counts what the process was forked from
        "lines = open('/proc/self/status').read().splitlines()\n"
        "print(next(int(line.split()[1]) for line in lines if line.startswith('VmHWM')) // 1024)\n"
        "sys.exit(code)\n"
    )
    bomb, ones = tmp_path / "bomb.gz", tmp_path / "ones.gz"
    for command in (
        ("predict", model, bomb),
        ("check", ones),
        ("score", bomb, "--labels", SAMPLE / "digits/test.svm"),
        ("score", SAMPLE / "digits/test.svm", "--labels", ones),
        ("rank", "--data", SAMPLE / "digits/test.svm", "--positive-ids", ones),
    ):
        ran = run(script_command(script, *command))
        assert ran.code == 3, (command, ran.err)
        assert int(ran.out.split()[-1]) < 400, (command, ran.out)


@pytest.mark.skipif(not hasattr(fcntl, "F_GETPIPE_SZ"), reason="Linux can enlarge pipes")
def test_a_pipe_that_is_read_holds_a_whole_piece():
    reading, writing = os.pipe()
    try:
        streams._widen(reading)
        assert fcntl.fcntl(reading, fcntl.F_GETPIPE_SZ) == streams.PIECE
    finally:
        os.close(reading)
        os.close(writing)


def test_a_full_temporary_directory_is_named(monkeypatch):
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setenv("TMPDIR", "/scratch/small")
    assert "/scratch/small" in str(streams.cannot_spool(full, "stdin").message)
    monkeypatch.delenv("TMPDIR")
    assert "the temporary directory" in str(streams.cannot_spool(full).message)


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
