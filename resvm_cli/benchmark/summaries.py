"""New."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resvm_cli.report.terminal import say

if TYPE_CHECKING:
    from resvm_cli.benchmark.join import JoinResult
    from resvm_cli.benchmark.run import BenchmarkResult


def show_benchmark(result: BenchmarkResult) -> None:
    """How much was run, and what comes next."""
    say(f"{'results':>10}  {result.n_results:,}, {result.n_run:,} of them new")
    if result.missing_tasks:
        from resvm_cli.running.array_tasks import as_ranges

        say(f"{'missing':>10}  {result.n_missing:,}; --array={as_ranges(result.missing_tasks)}")
    say(f"{'took':>10}  {result.seconds:,.0f} s")
    say(f"{'directory':>10}  {result.path}; resvm benchmark report {result.path} has the tables")


def show_joined(result: JoinResult) -> None:
    """How many results came together, and what comes next."""
    say(f"{'results':>10}  {result.n_results:,} of {result.n_directories} directories")
    say(f"{'directory':>10}  {result.path}; resvm benchmark report {result.path} has the tables")
