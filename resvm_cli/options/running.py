"""How a command runs and what it says: jobs, progress and results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Annotated

import typer

from resvm_cli.errors import CommandLineError
from resvm_cli.options.option_groups import option_group
from resvm_cli.report import terminal
from resvm_cli.running.run import Run

output_option = partial(typer.Option, rich_help_panel="Output")
running_option = partial(typer.Option, rich_help_panel="Running")

Json = Annotated[bool, output_option("--json", help="The result as JSON on stdout.")]
Force = Annotated[bool, output_option("--force", help="Replace a model that is already there.")]
Seed = Annotated[
    int,
    running_option(metavar="N", help="Same seed, same data: the same model, byte for byte."),
]
Quiet = Annotated[
    bool, running_option("-q", "--quiet", help="No progress, no summary; errors only.")
]


@contextmanager
def command_run(quiet: bool) -> Iterator[Run]:
    """A run that reports to the terminal, unless it is quiet."""
    note = None if quiet else terminal.note
    with terminal.Progress(quiet) as progress:
        yield Run(on_progress=progress, on_notice=note, on_announce=note)


@option_group
class ClusterOptions:
    """Where tasks are sent to."""

    cluster: Annotated[
        str | None,
        running_option(
            metavar="ADDRESS|FILE|auto",
            help="Work on a Dask cluster: tcp://host:8786, a scheduler file, or auto"
            " (DASK_SCHEDULER_ADDRESS).",
        ),
    ] = None
    cluster_timeout: Annotated[
        float,
        running_option(
            metavar="S", min=0.1, help="So long a scheduler or workers are waited for, in seconds."
        ),
    ] = 30.0

    @contextmanager
    def connected(self, run: Run) -> Iterator[Run]:
        """The run, with its tasks sent to the cluster if one was given."""
        if self.cluster is None:
            yield run
            return
        if run.on_wait is not None:  # it watches the solvers of this process
            raise CommandLineError(
                "--member-timeout and --cluster exclude each other",
                "limit the workers instead: dask worker --lifetime",
            )
        from resvm_cli.cluster.engine import connected

        with connected(self.cluster, self.cluster_timeout, run.announce) as engine:
            yield replace(run, engine=engine)


@option_group
class RunningOptions:
    """How a job runs; none of it changes a result."""

    jobs: Annotated[
        int | None,
        running_option(
            "-j",
            "--jobs",
            metavar="N",
            min=1,
            help="Threads; changes no result.",
            show_default="by the work",
        ),
    ] = None
    quiet: Quiet = False

    @contextmanager
    def run(self, cluster: ClusterOptions | None = None) -> Iterator[Run]:
        """The command's run, on the cluster where one was asked for."""
        with command_run(self.quiet) as plain:
            limited = self._limited(plain)
            if cluster is None:
                yield limited
                return
            with cluster.connected(limited) as run:
                yield run

    def _limited(self, run: Run) -> Run:
        return replace(run, jobs=self.jobs)


@option_group
class TrainingRunOptions(RunningOptions):
    """How a job that trains runs."""

    member_timeout: Annotated[
        float | None,
        running_option(
            metavar="SECONDS",
            help="Give up, with nothing written, when the solver takes longer over one member.",
            show_default="no limit",
        ),
    ] = None

    memory_mb: Annotated[
        float | None,
        running_option(
            metavar="MB",
            min=1,
            help="Stay within so much memory: fewer threads, smaller caches, members in rounds.",
            show_default="no limit",
        ),
    ] = None

    def _limited(self, run: Run) -> Run:
        """With what it may take of memory; from here on members are timed."""
        run = replace(run, jobs=self.jobs, memory_mb=self.memory_mb)
        if self.member_timeout is None:
            return run
        if not self.member_timeout > 0:
            raise CommandLineError("--member-timeout must be above 0")
        from resvm_cli.svm.problem import limit_members

        return replace(run, on_wait=limit_members(self.member_timeout))
