"""Solvers write to stderr past every setting of theirs; ours goes on."""

from __future__ import annotations

import os
import sys

from resvm_cli.svm.solver_libraries import silenced
from tests.programs import run, script_command

TALKING = """
import os, sys
from resvm_cli.svm.solver_libraries import silenced
print("before", file=sys.stderr)
with silenced():
    os.write(2, b"WARNING: reaching max number of iterations\\n")
    print("meanwhile", file=sys.stderr)
print("after", file=sys.stderr)
os.write(2, b"raw\\n")
"""


def test_what_c_code_writes_goes_nowhere_and_what_python_writes_is_seen():
    ran = run(script_command(TALKING))
    assert ran.code == 0, ran.err
    assert ran.err.split() == ["before", "meanwhile", "after", "raw"]


def test_a_stream_of_another_kind_is_left_alone(capsys):
    before = sys.stderr
    with silenced():
        assert sys.stderr is before
        sys.stderr.write("said\n")
    assert capsys.readouterr().err == "said\n"


def test_no_descriptor_is_left_open_where_stderr_is_no_file(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    count = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(5):
        with silenced():
            pass
    assert not count or len(os.listdir("/proc/self/fd")) == count
