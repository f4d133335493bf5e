"""Tables, and progress on stderr, drawn with rich."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from resvm_cli.report.terminal import harmless, say

FIRST_HEARTBEAT_SECONDS = 10.0
HEARTBEAT_SECONDS = 30.0


def rendered(table: Any, width: int | None, *, colors: bool = False) -> str:
    """Render a rich table as text, without trailing spaces; cells are taken literally."""
    from io import StringIO

    from rich.console import Console
    from rich.segment import Segment, Segments

    text = StringIO()
    console = Console(
        file=text, force_terminal=colors, width=width, highlight=False, markup=False, emoji=False
    )
    for line in console.render_lines(table, pad=False):
        parts = [Segment(harmless(part.text), part.style, part.control) for part in line]
        console.print(Segments([*parts, Segment.line()]), soft_wrap=True, end="")
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
