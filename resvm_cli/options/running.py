"""Options that control how a command runs, and the Run built from them, with its progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from resvm_cli.errors import CommandLineError
from resvm_cli.options.option_groups import (
    OUTPUT,
    RUNNING,
    advanced_option,
    option,
    option_group,
)
from resvm_cli.parameters import METHOD_TABLE
from resvm_cli.report import terminal
from resvm_cli.running.run import Run

FIRST_HEARTBEAT_SECONDS = 10.0
HEARTBEAT_SECONDS = 30.0

output_option = partial(option, panel=OUTPUT)
running_option = partial(option, panel=RUNNING)

JSON = output_option("--json", "Print the result as JSON to stdout.")
FORCE = output_option("--force", "Replace an existing model.")
SEED = running_option("--seed N", METHOD_TABLE["seed"].help, default=0)
TASK = advanced_option(
    "--task I/N|auto[/N]",
    "Do only part I of N (I starts at 1); auto reads I and N from the environment of an array job"
    " (Slurm, PBS, Grid Engine, LSF, HyperQueue, AWS Batch, Kubernetes).",
)
QUIET = running_option("-q, --quiet", "Print only errors and warnings.")


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
            terminal.say(f"resvm: {stage}: {amount}, {now - self._stage_began:.0f} s{left}")

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


@contextmanager
def command_run(quiet: bool) -> Iterator[Run]:
    """Yield a run that reports to the terminal; if ``quiet``, only warnings."""
    note = None if quiet else terminal.note
    with Progress(quiet) as progress:
        yield Run(on_progress=progress, on_notice=terminal.note, on_remark=note, on_announce=note)


@option_group
class ClusterOptions:
    """The cluster that runs the tasks."""

    cluster: str | None = advanced_option(
        "--cluster ADDRESS|FILE|auto",
        "Run on a Dask cluster: tcp://host:8786, a scheduler file, or auto"
        " (DASK_SCHEDULER_ADDRESS).",
    )
    cluster_timeout: float = advanced_option(
        "--cluster-timeout SECONDS",
        "Seconds to wait for the scheduler and its workers.",
        default=30.0,
        min=0.1,
    )


@option_group
class RunningOptions:
    """How a command runs; none of these options affects the result."""

    jobs: int | None = running_option(
        "-j, --jobs N",
        "Number of threads; does not affect the result.",
        min=1,
        show_default="as many as the work can use",
    )
    quiet: bool = QUIET

    @contextmanager
    def run(self, cluster: ClusterOptions | None = None) -> Iterator[Run]:
        """Yield the command's run, on the cluster if one was given."""
        with command_run(self.quiet) as plain:
            run = self._limited(plain)
            if cluster is None or cluster.cluster is None:
                yield run
                return
            if run.on_wait is not None:  # the timeout only covers solvers in this process
                raise CommandLineError(
                    "give either --member-timeout or --cluster, not both",
                    "limit the workers instead: dask worker --lifetime",
                )
            from resvm_cli.cluster.engine import connected

            with connected(cluster.cluster, cluster.cluster_timeout, run.announce) as engine:
                yield replace(run, engine=engine)

    def _limited(self, run: Run) -> Run:
        return replace(run, jobs=self.jobs)


@option_group
class TrainingRunOptions(RunningOptions):
    """How a command that trains members runs."""

    member_timeout: float | None = advanced_option(
        "--member-timeout SECONDS",
        "Stop without writing anything if a member takes longer to train.",
        show_default="no limit",
    )

    memory_mb: float | None = running_option(
        "--memory-mb MB",
        "Limit memory use: fewer threads, smaller caches, and members trained in rounds.",
        min=1,
        show_default="no limit",
    )

    def _limited(self, run: Run) -> Run:
        """Return the run with limits on threads, memory and time per member."""
        run = replace(run, jobs=self.jobs, memory_mb=self.memory_mb)
        if self.member_timeout is None:
            return run
        if not self.member_timeout > 0:
            raise CommandLineError("--member-timeout must be positive")
        from resvm_cli.svm.problem import limit_members

        return replace(run, on_wait=limit_members(self.member_timeout))
