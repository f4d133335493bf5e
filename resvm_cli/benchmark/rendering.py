"""The sections of a report, rendered for the terminal or as Markdown, CSV, JSON and HTML."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from resvm_cli import __version__
from resvm_cli.benchmark.contamination import AXES, LevelRow
from resvm_cli.benchmark.data import OWN
from resvm_cli.benchmark.report import BenchmarkReport, RunReport
from resvm_cli.benchmark.results import AREAS
from resvm_cli.benchmark.tables import Estimate, MethodCell, TaskRow
from resvm_cli.files.fields import line_writer
from resvm_cli.files.streams import as_unicode
from resvm_cli.records import dataclass
from resvm_cli.report.charts import page
from resvm_cli.report.terminal import harmless, print_table

TITLES = {
    "supervised": "Supervised",
    "pu": "PU learning",
    "semi-supervised": "Semi-supervised",
    "own": "Your data",
}
CSV_COLUMNS = (
    "run", "protocol", "setting", "task", "method", "contamination_pos", "contamination_unl", "n",
    *(f"{area}{bound}" for area in AREAS for bound in ("", "_low", "_high")),
    "wins", "published_low", "published_high", "published_wins", "verdict",
    "p_resvm_over_bagging", "stars", "published_stars",
)  # fmt: skip
# Characters that Markdown would interpret as markup or as the end of a table cell.
MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~])")


@dataclass(frozen=True)
class TableCell:
    """The text of a table cell, its sort value, and whether it is highlighted."""

    text: str
    value: float | None = None
    mark: str = ""


NOTHING = TableCell("-")
PAGE_WIDTH = 100  # in characters, for the report as text
CONTINUATIONS = ("paper", "verdict", "with Holm's correction")  # each belongs to the column before


@dataclass(frozen=True)
class ReportTable:
    """Rows under column names."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    n_names: int = 1  # number of leading columns that contain names
    prose: bool = False  # cells contain sentences

    def is_numeric(self, column: int) -> bool:
        values = [row[column].value for row in self.rows]
        return column >= self.n_names and any(value is not None for value in values)


@dataclass(frozen=True)
class Chart:
    """A chart on the HTML page; other formats show the same data in tables."""

    kind: str
    title: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Section:
    """One section of the report."""

    title: str
    sentences: tuple[str, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    charts: tuple[Chart, ...] = ()


def cells(*parts: TableCell | str | int | None) -> tuple[TableCell, ...]:
    """Return a row of cells; numbers sort by value, and None is shown as a dash."""
    row = []
    for part in parts:
        if part is None:
            row.append(NOTHING)
        elif isinstance(part, TableCell):
            row.append(part)
        else:
            row.append(TableCell(str(part), part if isinstance(part, int) else None))
    return tuple(row)


def number(value: float | None, digits: int = 1, sign: bool = False) -> TableCell:
    if value is None or math.isnan(value):
        return NOTHING
    return TableCell(f"{value:{'+' if sign else ''}.{digits}f}", value)


def count(value: float | None) -> TableCell:
    """Format a number of wins, which may be fractional because of ties."""
    if value is None:
        return NOTHING
    return number(value, 0 if abs(value - round(value)) < 1e-9 else 1)


def p_value(value: float | None) -> TableCell:
    if value is None or math.isnan(value):
        return NOTHING
    return TableCell(f"{value:.2g}", value, "best" if value < 0.05 else "")


def interval(value: Estimate, mark: str = "") -> TableCell:
    text = f"{value.mean:.1f}"
    if value.low is not None and value.high is not None:
        dash = "-" if value.low >= 0 else " to "  # with few repetitions, the bound may be negative
        text += f" ({value.low:.1f}{dash}{value.high:.1f})"
    return TableCell(text, value.mean, mark)


def show(sections: Sequence[Section]) -> None:
    print_table("\n".join(_text_lines(sections)) + "\n")


def _text_lines(sections: Sequence[Section]) -> Iterator[str]:
    for index, section in enumerate(sections):
        if index:
            yield ""
        yield section.title.upper()
        for sentence in section.sentences:
            yield from _wrapped(sentence) or [""]
        for table in section.tables:
            yield ""
            if table.title:
                yield table.title
            yield from _prose_lines(table) if table.prose else _table_lines(table)


def _wrapped(text: str, first: str = "", later: str = "") -> list[str]:
    indents: Any = {"initial_indent": first, "subsequent_indent": later}
    return textwrap.wrap(harmless(text), PAGE_WIDTH, break_on_hyphens=False, **indents)


def _prose_lines(table: ReportTable) -> Iterator[str]:
    for row in table.rows:
        for start, cell in zip(("- ", "  ", "  "), row, strict=False):
            yield from _wrapped(cell.text, start, "  ")


def _table_lines(table: ReportTable) -> Iterator[str]:
    lines = [table.columns, *([cell.text for cell in row] for row in table.rows)]
    texts = [[harmless(text) for text in line] for line in lines]
    columns = range(len(table.columns))
    widths = [max(len(line[column]) for line in texts) for column in columns]
    aligned = [">" if table.is_numeric(column) else "<" for column in columns]
    for number, part in enumerate(_parts(table, widths)):
        if number:
            yield ""
        for line in texts:
            if number and not any(line[column] for column in part[table.n_names :]):
                continue  # a row that an earlier part has shown
            padded = [f"{line[column]:{aligned[column]}{widths[column]}}" for column in part]
            yield "  ".join(padded).rstrip()


def _parts(table: ReportTable, widths: Sequence[int]) -> list[list[int]]:
    """Divide the columns of a table into parts that fit the page; each starts with the names."""
    names = list(range(table.n_names))
    parts, group = [list(names)], []
    for column in range(table.n_names, len(table.columns)):
        group.append(column)
        if table.columns[column + 1 : column + 2] and table.columns[column + 1] in CONTINUATIONS:
            continue
        width = sum(widths[one] + 2 for one in [*parts[-1], *group]) - 2
        if width > PAGE_WIDTH and parts[-1] != names:
            parts.append(list(names))
        parts[-1] += group
        group = []
    return parts


def markdown(sections: Sequence[Section]) -> bytes:
    lines = ["# Benchmark", ""]
    for section in sections:
        lines += [f"## {_escaped(section.title)}", ""]
        for sentence in section.sentences:
            lines += [_escaped(sentence), ""]
        for table in section.tables:
            if table.title:
                lines += [f"### {_escaped(table.title)}", ""]
            rule = ["---:" if table.is_numeric(c) else "---" for c in range(len(table.columns))]
            lines += [_markdown_row(map(_escaped, table.columns)), f"|{'|'.join(rule)}|"]
            for row in table.rows:
                lines.append(_markdown_row(map(_markdown_cell, row)))
            lines.append("")
    return as_unicode("\n".join(lines)).encode()


def _markdown_row(texts: Iterator[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _markdown_cell(cell: TableCell) -> str:
    text = _escaped(cell.text)
    return f"**{text}**" if cell.mark in ("best", "below") and text else text


def _escaped(text: str) -> str:
    return MARKUP.sub(r"\\\1", harmless(text))


def html(report: BenchmarkReport, sections: Sequence[Section]) -> bytes:
    """Return a self-contained HTML page with sortable tables and charts."""
    title = f"resvm benchmark: {' and '.join(run.name for run in report.runs)}"
    data = {
        "heading": title,
        "made": f"Made by resvm {__version__}. Click a column name to sort by it.",
        "sections": [_section_data(section) for section in sections],
    }
    return page(title, "benchmark/benchmark.js", data)


def _section_data(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "sentences": list(section.sentences),
        "tables": [
            {
                "title": table.title,
                "columns": list(table.columns),
                "names": table.n_names,
                "prose": table.prose,
                "rows": [[[one.text, one.value, one.mark] for one in row] for row in table.rows],
            }
            for table in section.tables
        ],
        "figures": [
            {"kind": chart.kind, "title": chart.title, **chart.data} for chart in section.charts
        ],
    }


def csv(report: BenchmarkReport) -> Iterator[bytes]:
    """Yield CSV with one line per setting, task, contamination and method."""
    line = line_writer(",")
    yield line(CSV_COLUMNS).encode()
    for run in report.runs:
        for record in _csv_records(run):
            texts = ("" if value is None else value for value in record)
            yield line(texts).encode("utf-8", "surrogateescape")


def _csv_records(run: RunReport) -> Iterator[list[Any]]:
    rows: list[tuple[str, str, TaskRow | LevelRow]] = [
        *((table.setting, row.task, row) for table in run.tables for row in table.rows),
        *((OWN, own.task, row) for own in run.own for row in own.rows),
    ]
    for setting, task, row in rows:
        levels = [getattr(row, name, None) for name in AXES]
        tests = [getattr(row, name, None) for name in CSV_COLUMNS[-3:]]
        for cell in row.cells:
            theirs = cell.published
            published = (theirs.low, theirs.high, theirs.wins) if theirs else (None,) * 3
            key = run.name, run.protocol, setting, task, cell.method
            yield [*key, *levels, *_areas(cell), *published, cell.verdict, *tests]


def _areas(cell: MethodCell) -> list[Any]:
    values: list[Any] = [cell.pr_auc_trapezoid.n]
    for area in AREAS:
        estimate = getattr(cell, area)
        values += [estimate.mean, estimate.low, estimate.high]
    return [*values, cell.wins]
