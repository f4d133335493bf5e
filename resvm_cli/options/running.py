"""How a command runs and what it says: jobs, progress and results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Annotated, Any

import typer

from resvm_cli.errors import CommandLineError
from resvm_cli.options.option_groups import option_family
from resvm_cli.report import terminal

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


@option_family
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

    def connected(
        self, running: RunningOptions, target: str | None = None
    ) -> AbstractContextManager[Any]:
        """Within this context tasks go to the cluster, where one was asked for.

        Beside the target large rows are put for workers that see it.
        """
        if self.cluster is None:
            return nullcontext()
        # it watches the solvers of this process
        if isinstance(running, TrainingRunOptions) and running.member_timeout is not None:
            raise CommandLineError(
                "--member-timeout and --cluster exclude each other",
                "limit the workers instead: dask worker --lifetime",
            )
        folder = None if target is None else os.path.dirname(target.rstrip(os.sep)) or os.curdir
        return self._engine(self.cluster, running.notice, folder)

    @contextmanager
    def _engine(
        self, address: str, notice: Callable[[str], None], folder: str | None
    ) -> Iterator[None]:
        from resvm_cli.cluster.engine import connected
        from resvm_cli.running import parallel

        with (
            connected(address, self.cluster_timeout, notice, folder) as engine,
            parallel.carried_out_by(engine),
        ):
            yield


@option_family
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

    def progress(self) -> terminal.Progress:
        """Where the job reports how far it is."""
        return terminal.Progress(self.quiet)

    @property
    def notice(self) -> Callable[[str], None]:
        """Where the job says what the user should know."""
        return terminal.no_note if self.quiet else terminal.note


@option_family
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

    def progress(self) -> terminal.Progress:
        """Where the job reports how far it is; from here on members are timed."""
        if self.member_timeout is not None:
            if not self.member_timeout > 0:
                raise CommandLineError("--member-timeout must be above 0")
            from resvm_cli.svm.problem import limit_members

            limit_members(self.member_timeout)
        return super().progress()
