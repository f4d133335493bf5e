"""Format results as text for a terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from perf.contest import Outcome, Row
from perf.sizes import Sizes

PACKAGES = (
    "resvm-cli",
    "numpy",
    "scikit-learn",
    "scikit-learn-intelex",
    "libsvm-official",
    "liblinear-official",
    "pulearn",
)


@dataclass(frozen=True)
class Table:
    """The results of all groups for one kind of work."""

    name: str
    title: str
    outcomes: Sequence[Outcome]


def heading(quick: bool) -> str:
    """Describe the machine and the versions that were measured."""
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    cores = len(os.sched_getaffinity(0))
    extent = " Quick run: smaller sets, figures are indications only." if quick else ""
    return (
        f"{_processor()}, {cores} cores, Python {platform.python_version()};"
        f" {', '.join(versions)}.{extent}"
    )


def text(table: Table) -> str:
    """Format a table for a terminal."""
    lines = [table.title, "=" * len(table.title)]
    for outcome in table.outcomes:
        lines += ["", outcome.title]
        cells = [_header(outcome), *(_cells(row, outcome) for row in outcome.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            name, *numbers, last = row
            middle = [cell.rjust(width) for cell, width in zip(numbers, widths[1:-1], strict=True)]
            lines.append("  ".join(["", name.ljust(widths[0]), *middle, last]).rstrip())
        lines += [f"  {verdict}" for verdict in outcome.verdicts]
    return "\n".join(lines) + "\n"


def markdown(tables: Sequence[Table], quick: bool) -> str:
    """Format all tables as Markdown for a document."""
    lines = [heading(quick)]
    for table in tables:
        lines += ["", f"### {table.title}"]
        for outcome in table.outcomes:
            header = _header(outcome)
            rule = ["---", *["--:"] * (len(header) - 2), "---"]
            cells = [header, rule, *(_cells(row, outcome) for row in outcome.rows)]
            lines += ["", f"**{outcome.title}**", ""]
            lines += ["| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in cells]
            if outcome.verdicts:
                lines += ["", *(f"- {verdict}" for verdict in outcome.verdicts)]
    return "\n".join(lines) + "\n"


def as_json(tables: Sequence[Table], sizes: Sizes, quick: bool) -> str:
    """Format everything that was measured as JSON."""
    whole = {
        "format": 1,
        "machine": heading(quick),
        "quick": quick,
        "sizes": asdict(sizes),
        "tables": [
            {
                "name": table.name,
                "title": table.title,
                "groups": [
                    {
                        "title": outcome.title,
                        "unit": outcome.unit,
                        "rows": [asdict(row) for row in outcome.rows],
                        "asked": [
                            {**asdict(verdict.asked), "ratio": verdict.ratio, "met": verdict.met}
                            for verdict in outcome.verdicts
                        ],
                    }
                    for outcome in table.outcomes
                ],
            }
            for table in tables
        ],
    }
    return json.dumps(whole, indent=2) + "\n"


def _header(outcome: Outcome) -> list[str]:
    rate = [outcome.unit] if outcome.unit else []
    return ["what was run", "seconds", "CPU", *rate, "ratio", "peak MB", "agreement"]


def _cells(row: Row, outcome: Outcome) -> list[str]:
    rate = [_number(row.rate)] if outcome.unit else []
    text = row.agreement
    if row.note:
        text = f"{text}; {row.note}" if text else row.note
    return [
        row.name,
        "-" if row.seconds is None else f"{row.seconds:.3f}",
        "-" if row.cpu_seconds is None else f"{row.cpu_seconds:.3f}",
        *rate,
        "-" if row.ratio is None else f"{row.ratio:.2f}",
        "-" if row.peak_mb is None else f"{row.peak_mb:.0f}",
        text,
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
