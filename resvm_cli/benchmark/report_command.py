"""resvm benchmark report."""

from __future__ import annotations

from typing import Annotated

import typer

from resvm_cli.errors import CommandLineError
from resvm_cli.options.running import Json, Quiet, output_option


def report(
    directories: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...",
            help="What resvm benchmark run wrote. Those of the same protocol, seed and grids are"
            " joined; two protocols or seeds are set side by side.",
        ),
    ],
    markdown: Annotated[
        str | None, output_option(metavar="FILE", help="All tables as Markdown (- is stdout).")
    ] = None,
    csv: Annotated[
        str | None,
        output_option(metavar="FILE", help="A line a task, setting and method (- is stdout)."),
    ] = None,
    html: Annotated[
        str | None,
        output_option(metavar="FILE", help="One page with tables to sort, and figures."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The tables of a benchmark beside the published ones, with tests and verdicts.

    For example:

    - `resvm benchmark report bench --html bench.html`
    - `resvm benchmark report paper fast --markdown both.md -q`
    """
    from resvm_cli.benchmark import page as benchmark_page
    from resvm_cli.benchmark import report as job
    from resvm_cli.benchmark import report_text as benchmark_text
    from resvm_cli.files.atomic import output

    to_stdout = [path for path in (markdown, csv, html) if path == "-"]
    if len(to_stdout) + json > 1:
        raise CommandLineError("only one of --markdown, --csv, --html and --json can go to stdout")
    result = job.report(directories)
    if markdown is not None:
        with output(markdown) as write:
            write(benchmark_text.markdown(result))
    if csv is not None:
        with output(csv) as write:
            for line in benchmark_text.csv(result):
                write(line)
    if html is not None:
        with output(html) as write:
            write(benchmark_page.render(result))
    if json:
        benchmark_text.print_report(result)
    elif not quiet and not to_stdout:
        benchmark_text.show(result)


def join(
    directories: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...",
            help="Directories of resvm benchmark run, of the same protocol, seed and grids.",
        ),
    ],
    output: Annotated[str, output_option("-o", "--output", metavar="DIR", help="A new directory.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Put the results of several directories together, as if one run had done them.

    A cell that two directories have must be the same in both.

    For example:

    - `resvm benchmark join monday tuesday -o both`
    """
    from resvm_cli.benchmark import join as job
    from resvm_cli.benchmark import summaries
    from resvm_cli.report import terminal

    result = job.join(directories, output)
    if not quiet:
        summaries.show_joined(result)
    if json:
        terminal.print_result("benchmark-join", result)
