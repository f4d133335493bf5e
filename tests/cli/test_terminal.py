"""Messages name options; tables are aligned; progress is drawn, or told by heartbeats."""

from __future__ import annotations

import io
import json
import os
import pty
import sys
from contextlib import suppress

import pytest

from resvm_cli.cli import terminal as module
from resvm_cli.cli.options import command_run
from resvm_cli.cli.terminal import aligned, print_json, say_row
from tests.programs import script_command, started

TEXT = "`n_pos` is 3: try `scale='auto'`"


def test_notes_name_options_in_json(capfdbinary):
    print_json("train", {"notes": (TEXT, "as it is: n_pos")})
    found = json.loads(capfdbinary.readouterr().out)
    assert found["notes"] == ["--n-pos is 3: try --scale auto", "as it is: n_pos"]


@pytest.mark.parametrize("quiet", [False, True])
def test_warnings_and_notes_name_options_and_quiet_leaves_warnings(quiet, capsys):
    with command_run(quiet) as run:
        run.note("`n_pos` is 3")
        run.warn("try `scale='auto'`")
    note = "" if quiet else "      note  --n-pos is 3\n"
    assert capsys.readouterr().err == note + "   warning  try --scale auto\n"


def test_only_a_terminal_sees_colors(monkeypatch, capsys):
    say_row("warning", "a")
    assert capsys.readouterr().err == "   warning  a\n"
    monkeypatch.setattr(sys, "stderr", Terminal())
    say_row("warning", "a\x1b")
    say_row("note", "b")
    monkeypatch.setenv("NO_COLOR", "1")
    say_row("warning", "c")
    text = "\x1b[33m   warning\x1b[0m  a\\x1b\n      note  b\n   warning  c\n"
    assert sys.stderr.getvalue() == text


def test_columns_of_a_table_are_aligned():
    rows = [["trial", "method", "score"], ["7", "[red]a", "0.5"], ["12", "b", ""]]
    assert aligned(rows, left=(1,)) == [
        "trial  method  score",
        "    7  [red]a    0.5",
        "   12  b",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Bars:
    def __init__(self):
        self.removed = []

    def remove_task(self, task):
        self.removed.append(task)


def test_a_new_stage_replaces_the_bar_of_the_last_one():
    progress = module.Progress(quiet=False)
    progress._forget()  # nothing is drawn yet
    progress._live, progress._task = Bars(), 3
    progress._forget()
    assert (progress._live.removed, progress._task) == ([3], None)
    progress._forget()
    assert progress._live.removed == [3]


def test_a_short_job_draws_no_bar(monkeypatch):
    clock, drawn = [10.0], []
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(module.sys, "stderr", Terminal())
    monkeypatch.setattr(module.Progress, "_draw", lambda self, *amounts: drawn.append(amounts))
    progress = module.Progress(quiet=False)
    for clock[0] in (10.0, 10.2, 10.4):
        progress("training", 1, 2)
    assert drawn == [("training", 1, 2)]


def test_a_job_that_says_how_long_it_will_take_is_not_contradicted(monkeypatch, capsys):
    clock = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    with module.Progress(quiet=False) as progress:
        for second in range(12):
            clock[0] = float(second)
            progress("search, about 2 h left", second, 100)
    assert capsys.readouterr().err == "resvm: search, about 2 h left: 10 of 100, 10 s\n"


def test_a_terminal_sees_a_progress_bar_and_elsewhere_heartbeats(monkeypatch, capsys):
    clock = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    with module.Progress(quiet=False) as progress:
        for second in range(100):
            clock[0] = float(second)
            progress("training", second, 100)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "resvm: training: 10 of 100, 10 s, about 90 s left"
    assert len(lines) == 3
    with module.Progress(quiet=False) as progress:
        progress("tuning", 0, 10)
        for second in (40.0, 70.0):
            clock[0] = 200.0 + second
            progress("training", int(second) - 40, 50)
    assert capsys.readouterr().err.splitlines()[-1].startswith("resvm: training: 30 of 50, 30 s")
    with module.Progress(quiet=True) as progress:
        clock[0] += 1000
        progress("training", 1, 2)
    assert capsys.readouterr().err == ""


def test_on_a_terminal_progress_is_drawn():
    script = (
        "from itertools import count; from types import SimpleNamespace\n"
        "from resvm_cli.cli import terminal as module\n"
        "module.time = SimpleNamespace(monotonic=count(0, 0.1).__next__)\n"
        "with module.Progress(False) as p:\n"
        "    for i in range(12): p('training', i, 12)\n"
    )
    primary, secondary = pty.openpty()
    drawn = b""
    environment = {**os.environ, "TERM": "xterm"}
    with started(script_command(script), stderr=secondary, env=environment) as process:
        os.close(secondary)
        with suppress(OSError):  # Linux reports the closed end this way
            while piece := os.read(primary, 4096):
                drawn += piece
    os.close(primary)
    assert process.returncode == 0
    assert b"training" in drawn
    assert b"/12" in drawn
