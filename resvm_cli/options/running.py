"""Options that control how a command runs and what it prints, and the Run built from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from resvm_cli.options.option_groups import (
    OUTPUT,
    RUNNING,
    advanced_option,
    option,
    option_group,
)
from resvm_cli.parameters import METHOD_TABLE
from resvm_cli.report import console, terminal
from resvm_cli.running.run import Run

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


@contextmanager
def command_run(quiet: bool) -> Iterator[Run]:
    """Yield a run that reports to the terminal; if ``quiet``, only warnings."""
    note = None if quiet else terminal.note
    with console.Progress(quiet) as progress:
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
            from resvm_cli.cluster.engine import connected

            with connected(cluster.cluster, cluster.cluster_timeout, run.announce) as engine:
                yield replace(run, engine=engine)

    def _limited(self, run: Run) -> Run:
        return replace(run, jobs=self.jobs)


@option_group
class TrainingRunOptions(RunningOptions):
    """How a command that trains members runs."""

    memory_mb: float | None = running_option(
        "--memory-mb MB",
        "Limit memory use: fewer threads, smaller caches, and members trained in rounds.",
        min=1,
        show_default="no limit",
    )

    def _limited(self, run: Run) -> Run:
        return replace(run, jobs=self.jobs, memory_mb=self.memory_mb)
