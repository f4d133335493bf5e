"""How work is done and who hears of it: one object from the front end to the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from resvm_cli.errors import Text
from resvm_cli.running.parallel import Engine


@dataclass(frozen=True, eq=False)
class Run:
    """Threads, memory, progress, notices and the cluster of one run.

    ``notes`` holds every notice so far, so that results can repeat them.
    """

    jobs: int | None = None  # threads; None: as many as the work is worth
    memory_mb: float | None = None  # None: no limit
    engine: Engine | None = None  # None: threads of this process
    on_progress: Callable[[str, int, int | None], None] | None = None
    on_notice: Callable[[Text], None] | None = None
    notes: list[Text] = field(default_factory=list)

    def progress(self, stage: str, done: int, total: int | None) -> None:
        """Report how far a stage is; ``total`` is None while nobody knows it."""
        if self.on_progress is not None:
            self.on_progress(stage, done, total)

    def announce(self, text: Text) -> None:
        """Tell the user what the run is about to do; results do not repeat it."""
        if self.on_notice is not None:
            self.on_notice(text)

    def notice(self, text: Text) -> None:
        """Tell the user something about the result, and keep it for the result."""
        self.notes.append(text)
        self.announce(text)
