"""Progress on a terminal."""

from __future__ import annotations

from resvm_cli.report import console


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
