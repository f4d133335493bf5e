"""Progress of long work on stderr: a live bar on a terminal, heartbeat lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

from resvm_cli.report.terminal import say

FIRST_HEARTBEAT_SECONDS = 10.0
HEARTBEAT_SECONDS = 30.0


class Progress:
    """Shows progress: a live bar on a terminal, otherwise a line every 30 seconds."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._live: Any = None
        self._task: Any = None
        self._stage = ""
        self._started = self._stage_began = time.monotonic()
        self._next = self._started + FIRST_HEARTBEAT_SECONDS
        self._next_refresh = self._started + 0.3

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if self._quiet or sys.stderr is None:
            return
        now = time.monotonic()
        if stage.partition(",")[0] != self._stage:  # the part after a comma may change
            self._stage = stage.partition(",")[0]
            self._stage_began = now
            self._forget()
        if sys.stderr.isatty():
            # a short job finishes before a bar is worth drawing
            if now >= self._next_refresh:
                self._draw(stage, done, total)
        elif now >= self._next:
            self._next = now + HEARTBEAT_SECONDS
            amount = f"{done:,} rows" if total is None else f"{done:,} of {total:,}"
            left = ""
            # jobs with tasks of different sizes estimate the time left themselves
            if total is not None and 0 < done < total and not stage.endswith(" left"):
                left = f", about {(now - self._stage_began) * (total - done) / done:.0f} s left"
            say(f"resvm: {stage}: {amount}, {now - self._stage_began:.0f} s{left}")

    def _draw(self, stage: str, done: int, total: int | None) -> None:
        if self._live is None:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )
            from rich.progress import Progress as Bar

            self._live = Bar(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._live.start()
        if self._task is None:
            self._task = self._live.add_task(stage, total=total)
        self._live.update(self._task, completed=done, total=total, description=stage)

    def _forget(self) -> None:
        if self._live is not None and self._task is not None:
            self._live.remove_task(self._task)
        self._task = None
