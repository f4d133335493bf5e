"""Progress on a terminal."""

from __future__ import annotations

import io

from rich.table import Table

from resvm_cli.report import console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Bars:
    def __init__(self):
        self.removed = []

    def remove_task(self, task):
        self.removed.append(task)


def test_a_new_stage_replaces_the_bar_of_the_last_one():
    progress = console.Progress(quiet=False)
    progress._forget()  # nothing is drawn yet
    progress._live, progress._task = Bars(), 3
    progress._forget()
    assert (progress._live.removed, progress._task) == ([3], None)
    progress._forget()
    assert progress._live.removed == [3]


def test_a_short_job_draws_no_bar(monkeypatch):
    clock, drawn = [10.0], []
    monkeypatch.setattr(console.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(console.sys, "stderr", Terminal())
    monkeypatch.setattr(console.Progress, "_draw", lambda self, *amounts: drawn.append(amounts))
    progress = console.Progress(quiet=False)
    for clock[0] in (10.0, 10.2, 10.4):
        progress("training", 1, 2)
    assert drawn == [("training", 1, 2)]


def test_cells_of_a_table_are_taken_literally():
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_row("[red]a[/red]", ":smile:")
    assert console.rendered(table, 80, colors=True) == "[red]a[/red]  :smile:\n"
