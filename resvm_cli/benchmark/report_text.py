"""A benchmark's report as text: for a terminal, as Markdown, as CSV and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from resvm_cli.benchmark.report_cells import Section, Table
from resvm_cli.benchmark.report_sections import sections
from resvm_cli.files.delimited import line_writer
from resvm_cli.files.streams import as_unicode
from resvm_cli.report.terminal import finite, harmless, print_json, print_table

if TYPE_CHECKING:
    from resvm_cli.benchmark.report import BenchmarkReport, RunReport
    from resvm_cli.benchmark.tables import MethodCell

AREAS = ("pr_auc_trapezoid", "average_precision", "roc_auc")
CSV_COLUMNS = (
    "run", "protocol", "setting", "task", "method", "contamination_pos", "contamination_unl", "n",
    *(f"{area}{bound}" for area in AREAS for bound in ("", "_low", "_high")),
    "wins", "published_low", "published_high", "published_wins", "verdict",
    "p_resvm_over_bagging", "stars", "published_stars",
)  # fmt: skip
# What Markdown would take for markup, and a row of a table for the end of a cell.
MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~])")


def show(report: BenchmarkReport) -> None:
    """Everything on stdout, for people."""
    print_table("\n".join(_section_lines(sections(report))) + "\n")


def _section_lines(parts: Sequence[Section]) -> Iterator[str]:
    import textwrap

    for number, section in enumerate(parts):
        if number:
            yield ""
        yield section.title.upper()
        for sentence in section.sentences:
            yield from textwrap.wrap(harmless(sentence), 100, break_on_hyphens=False) or [""]
        for table in section.tables:
            yield ""
            if table.title:
                yield table.title
            yield from _prose_lines(table) if table.prose else _table_lines(table)


def _prose_lines(table: Table) -> Iterator[str]:
    """Rows of sentences, one below the other."""
    import textwrap

    for row in table.rows:
        for start, cell in zip(("- ", "  ", "  "), row, strict=False):
            yield from textwrap.wrap(
                harmless(cell.text), 100, initial_indent=start, subsequent_indent="  ",
                break_on_hyphens=False,
            )  # fmt: skip


def _table_lines(table: Table) -> Iterator[str]:
    lines = [table.columns, *([cell.text for cell in row] for row in table.rows)]
    texts = [[harmless(text) for text in line] for line in lines]
    widths = [max(len(line[place]) for line in texts) for place in range(len(table.columns))]
    numeric = [_is_numeric(table, place) for place in range(len(table.columns))]
    for line in texts:
        cells = [
            f"{text:>{width}}" if right else f"{text:<{width}}"
            for text, width, right in zip(line, widths, numeric, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def _is_numeric(table: Table, place: int) -> bool:
    return place >= table.n_names and any(row[place].value is not None for row in table.rows)


def markdown(report: BenchmarkReport) -> bytes:
    """The whole report as GitHub's Markdown."""
    lines = ["# Benchmark", ""]
    for section in sections(report):
        lines += [f"## {_escaped(section.title)}", ""]
        for sentence in section.sentences:
            lines += [_escaped(sentence), ""]
        for table in section.tables:
            if table.title:
                lines += [f"### {_escaped(table.title)}", ""]
            places = range(len(table.columns))
            rule = ["---:" if _is_numeric(table, place) else "---" for place in places]
            lines += [_row(table.columns), f"|{'|'.join(rule)}|"]
            for row in table.rows:
                marked = [
                    f"**{_escaped(cell.text)}**" if cell.mark in ("best", "below") and cell.text
                    else _escaped(cell.text)
                    for cell in row
                ]  # fmt: skip
                lines.append(f"| {' | '.join(marked)} |")
            lines.append("")
    return as_unicode("\n".join(lines)).encode()


def _row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, texts))} |"


def _escaped(text: str) -> str:
    return MARKUP.sub(r"\\\1", harmless(text))


def csv(report: BenchmarkReport) -> Iterator[bytes]:
    """A line for every setting, task, contamination and method."""
    line = line_writer(",")
    yield line(CSV_COLUMNS).encode()
    for run in report.runs:
        for record in _records(run):
            yield line("" if value is None else value for value in record).encode(
                "utf-8", "surrogateescape"
            )


def _records(run: RunReport) -> Iterator[list[Any]]:
    for table in run.tables:
        for row in table.rows:
            for cell in row.cells:
                published = cell.published
                yield [
                    run.name, run.protocol, table.setting, row.task, cell.method, None, None,
                    *_figures(cell),
                    *((None,) * 3 if published is None
                      else (published.low, published.high, published.wins)),
                    cell.verdict, row.p_resvm_over_bagging, row.stars, row.published_stars,
                ]  # fmt: skip
    for own in run.own:
        for level in own.rows:
            for cell in level.cells:
                yield [
                    run.name, run.protocol, "own", own.task, cell.method, level.contamination_pos,
                    level.contamination_unl, *_figures(cell), *(None,) * 4,
                    level.p_resvm_over_bagging, None, None,
                ]  # fmt: skip


def _figures(cell: MethodCell) -> list[Any]:
    figures: list[Any] = [cell.pr_auc_trapezoid.n]
    for area in AREAS:
        estimate = getattr(cell, area)
        figures += [estimate.mean, estimate.low, estimate.high]
    return [*figures, cell.wins]


def print_report(report: BenchmarkReport) -> None:
    """The whole report as versioned JSON on stdout."""
    content: dict[str, Any] = finite(asdict(report))
    print_json("benchmark-report", content)
