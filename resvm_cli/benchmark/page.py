"""The page of a benchmark: its sections as data, for the script that draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from resvm_cli import __version__
from resvm_cli.benchmark.report_cells import Section
from resvm_cli.benchmark.report_sections import sections
from resvm_cli.report.html import page
from resvm_cli.report.terminal import finite

if TYPE_CHECKING:
    from resvm_cli.benchmark.report import BenchmarkReport


def render(report: BenchmarkReport) -> bytes:
    """The whole page."""
    names = " and ".join(run.name for run in report.runs)
    data: dict[str, Any] = {
        "heading": f"resvm benchmark: {names}",
        "made": f"Made by resvm {__version__}. Click on a column's name to sort by it.",
        "sections": [_section(section) for section in sections(report)],
    }
    return page(f"resvm benchmark: {names}", "report/benchmark.js", finite(data))


def _section(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "sentences": list(section.sentences),
        "tables": [
            {
                "title": table.title,
                "columns": list(table.columns),
                "names": table.n_names,
                "prose": table.prose,
                "rows": [
                    [[cell.text, cell.value, cell.mark] for cell in row] for row in table.rows
                ],
            }
            for table in section.tables
        ],
        "figures": [
            {"kind": figure.kind, "title": figure.title, **figure.data}
            for figure in section.figures
        ],
    }
