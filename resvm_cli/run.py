"""The context of a run: threads, progress and notes, passed from front end to engine.

This module also handles shares of array jobs and termination signals. A signal is deferred while an
output is renamed to its final path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

from resvm_cli import threads as parallel
from resvm_cli.errors import Interrupted
from resvm_cli.records import dataclass

Task = TypeVar("Task")
Result = TypeVar("Result")
Shared = TypeVar("Shared")

Progress: TypeAlias = Callable[[str, int, "int | None"], None]
MAX_THREADS = 256  # `jobs` may be any number, but a process can only start so many threads


@dataclass(frozen=True, eq=False)
class Run:
    """Threads, progress, notes and the cluster of one run.

    ``notes`` holds every warning and note so far, so that results can repeat them; ``warnings``
    only the warnings. Copies made by ``dataclasses.replace`` share both. A Run never leaves its
    process.
    """

    jobs: int | None = None  # threads; None: as many as the work justifies
    engine: Any = None  # the Cluster that runs tasks; None: threads of this process
    on_progress: Progress | None = None
    on_message: Callable[[str, str], None] | None = None  # "warning" or "note", and its text
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __reduce__(self) -> Any:
        raise TypeError("a Run cannot be pickled: its callbacks cannot be sent to another process")

    def progress(self, stage: str, done: int, total: int | None) -> None:
        """Report the progress of a stage; ``total`` is None while it is unknown."""
        if self.on_progress is not None:
            self.on_progress(stage, done, total)

    def warn(self, text: str) -> None:
        """Say that the data or the result may not be what the user intended."""
        self.warnings.append(text)
        self._tell("warning", text)

    def note(self, text: str) -> None:
        """Tell the user what was chosen or done."""
        self._tell("note", text)

    def tell(self, text: str) -> None:
        """Tell the user what results must not repeat, such as times."""
        if self.on_message is not None:
            self.on_message("note", text)

    def _tell(self, kind: str, text: str) -> None:
        self.notes.append(text)
        if self.on_message is not None:
            self.on_message(kind, text)

    def silent(self) -> Run:
        """Return a copy without callbacks, for a step that should not report anything."""
        return replace(self, notes=[], warnings=[], on_progress=None, on_message=None)

    @property
    def is_remote(self) -> bool:
        return self.engine is not None

    def threads(self) -> int:
        """Return how many threads of this process may run at the same time."""
        return min(self.jobs or parallel.available_cores(), MAX_THREADS)

    def workers(self) -> int:
        """Return how many tasks may run at the same time, here or on the cluster."""
        if self.jobs is None and self.engine is not None:
            return int(self.engine.n_workers)
        return self.threads()

    def map_shared(
        self,
        function: Callable[[Shared, Task], Result],
        shared: Shared,
        tasks: Iterable[Task],
        tick: Callable[[], None] = lambda: None,
        name: Callable[[int], str] = lambda number: f"task {number + 1}",
    ) -> Iterator[Result]:
        """Yield the results of ``function(shared, task)`` in the order of the tasks.

        Tasks may arrive one by one. On a cluster the function is imported by name, and tasks and
        results must be picklable. ``tick`` is called periodically while waiting for a result.
        ``name`` describes a task in the error message if the task kills its worker.
        """
        if self.engine is not None:
            results: Iterator[Result] = self.engine.run(function, shared, tasks, tick, name)
            return results
        if isinstance(tasks, Sequence):
            return parallel.run(partial(function, shared), tasks, self.workers(), tick)
        return parallel.stream(partial(function, shared), tasks, self.workers, tick)


@dataclass(frozen=True)
class Share:
    """Share ``number`` of ``count``; numbers start at 1."""

    number: int
    count: int

    def of(self, total: int) -> range:
        """Return this share's positions in a list of length ``total``; may be empty."""
        return range(total * (self.number - 1) // self.count, total * self.number // self.count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def shares_holding(positions: Iterable[int], total: int, count: int) -> list[int]:
    """Return the numbers of the shares that contain these positions of a list."""
    wanted = set(positions)
    return [
        number
        for number in range(1, count + 1)
        if not wanted.isdisjoint(Share(number, count).of(total))
    ]


def as_ranges(numbers: Sequence[int]) -> str:
    """Format task numbers as array jobs expect them, such as ``3,7-9``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


_signals_wait = False
_waiting: int | None = None


def signal_arrived(number: int) -> None:
    """Handle a signal now, or at the end of a section that must not be interrupted."""
    global _waiting
    if _signals_wait:
        _waiting = number
    else:
        raise Interrupted(number)


@contextmanager
def signals_held() -> Iterator[None]:
    """Defer signals while an output is moved to its path, until the move succeeds or fails."""
    global _signals_wait, _waiting
    _signals_wait = True
    try:
        yield
    finally:
        _signals_wait = False
        number, _waiting = _waiting, None
        if number is not None:
            raise Interrupted(number)
