"""What would let other tests pass unnoticed: lost time-outs, exit codes, output and arguments."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.forks import forks
from tests.programs import (
    Ran,
    resvm_command,
    run,
    run_resvm,
    started,
    until,
)

# a program with one of its own, which holds the pipe open and would outlive the first
FAMILY = ["sh", "-c", "sleep 600 & echo $!; wait"]

linux = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")


def gone(number: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet has ended too."""
    try:
        with open(f"/proc/{number}/stat") as state:
            return state.read().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


@linux
def test_what_takes_too_long_is_killed_with_all_that_it_started():
    family = []

    def waiting() -> None:
        with started(FAMILY, patience=0.5, stdout=subprocess.PIPE) as running:
            family.extend([running.pid, int(running.stdout.readline())])
            assert running.stdout.read() == b""  # returns because both were killed

    with pytest.raises(TimeoutError, match=r"killed after 0\.5 s"):
        waiting()
    until(lambda: all(map(gone, family)))


def test_an_end_that_comes_is_waited_for():
    with started(["sh", "-c", "read line; exit 7"], stdin=subprocess.PIPE) as running:
        pass
    assert running.returncode == 7
    command = ["sh", "-c", 'cat; echo "$SAID" >&2; exit 3']
    assert run(command, stdin=b"given", env={"SAID": "said"}) == Ran(3, b"given", "said\n")


def test_a_forked_resvm_is_told_all_that_a_started_one_is(tmp_path):
    (tmp_path / "rows").write_text("x\n")
    for arguments in (["check", "rows"], ["check", "-"], ["--nothing"], ["predict"]):
        started_one = run(
            resvm_command(*arguments),
            cwd=tmp_path,
            stdin=b"1 1:2\n",
            env={"COLUMNS": "100", "NO_COLOR": "1"},
        )
        assert run_resvm(*arguments, cwd=tmp_path, stdin=b"1 1:2\n") == started_one


def test_a_forked_resvm_is_killed_when_patience_ends(tmp_path):
    os.mkfifo(tmp_path / "rows")  # nobody writes there
    with pytest.raises(TimeoutError, match=r"killed after 0\.5 s: resvm check"):
        run_resvm("check", tmp_path / "rows", patience=0.5)


def test_two_runs_in_a_row_hash_differently():
    assert forks() is not forks()
