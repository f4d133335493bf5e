"""resvm check: list every bad line or cell of a file and summarize the rest, in one pass.

numpy is imported inside functions, so that --help stays fast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from resvm_cli.cli import terminal
from resvm_cli.cli.option_groups import argument, expand_option_groups, option
from resvm_cli.cli.options import (
    JSON,
    QUIET,
    ZERO_BASED,
    MoleculeTableOptions,
    command_run,
    data_option,
)
from resvm_cli.errors import DataError, FileError, ParameterError, ResvmError
from resvm_cli.run import Run

if TYPE_CHECKING:
    from resvm_cli.data.encoding import ColumnRoles
    from resvm_cli.data.inputs import RowInput
    from resvm_cli.data.svmlight import BadLine, Block

MAX_NAMED = 20  # maximum number of features and labels to list
SHOWN_CELLS = 3  # of a column with bad cells


@expand_option_groups
def check(
    *,
    files: list[str] = argument("FILE...", "svmlight files or tables (- is stdin)."),
    table: MoleculeTableOptions,
    positive_label: list[str] | None = data_option(
        "--positive-label LABEL", "For tables: the label of positives, as in training."
    ),
    most: int = option(
        "--max N", "Maximum number of bad lines to list per file.", default=20, min=1
    ),
    zero_based: bool = ZERO_BASED,
    json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """List every bad line, then summarize the file (exit code 3 if any line is bad).

    Bad cells of a table are counted by column, with the first three of each. Missing values that
    training would fill in count as 0.

    For example:

    - `resvm check pos.svm unl.svm`
    - `resvm check patients.csv --id-column patient --label-column status --missing mean`
    """
    from resvm_cli.data.notes import off_by_one

    roles = table.roles(positive_label)
    reports, indices = [], []
    failures: list[ResvmError] = []
    with command_run(quiet) as run:
        for path in files:
            try:
                report, ends = _check_file(path, roles, zero_based, most, run)
            except FileError as error:
                failures.append(error)  # still check the other files
                continue
            reports.append(report)
            indices.append((report["path"], *ends))
            if not json:
                _show(report)
        if note := off_by_one(indices):
            run.warn(note)
    if json:
        terminal.print_json("check", {"files": reports})
    if unsound := [report["path"] for report in reports if not report["sound"]]:
        failures.append(DataError(f"bad lines in {', '.join(unsound)}"))
    for failure in failures[:-1]:
        terminal.show_error(failure)
    if failures:
        raise failures[-1]


def _check_file(
    path: str, roles: ColumnRoles, zero_based: bool, most: int, run: Run
) -> tuple[dict[str, Any], tuple[int, int]]:
    """Read a file to its end.

    Return the findings as ``--json`` prints them, and the smallest and largest index.
    """
    import numpy as np

    from resvm_cli.data.inputs import RowInput
    from resvm_cli.data.scaling import MAX_FEATURES, FeatureStats
    from resvm_cli.data.streams import Source, name_of
    from resvm_cli.data.svmlight import format_number
    from resvm_cli.rows import DataSummary, distinct

    name = name_of(path)
    bad: list[str] = []
    n_bad = n_empty = 0
    summary = DataSummary()
    stats: FeatureStats | None = FeatureStats()
    labels: Counter[float] = Counter()
    hashes = [np.zeros(0, np.uint64)]
    cells: dict[tuple[str, str], list[str]] = {}  # locations by column and problem
    if roles.missing in ("mean", "median"):
        roles = replace(roles, missing="zero")  # so that one pass is enough

    def add_bad_line(line: BadLine) -> None:
        nonlocal n_bad
        n_bad += 1
        if len(bad) < most:
            problem = line.error(name)
            bad.append(terminal.in_options(problem.message))
            if line.line == 1 and problem.hint:  # the whole file may be in another format
                bad[-1] += f"; {terminal.in_options(problem.hint)}"

    def rows_of(opened: RowInput) -> Iterator[Block]:
        nonlocal n_bad
        if opened.features is None:
            yield from opened.blocks(workers=1, marked=False, on_bad_line=add_bad_line)
            return
        for wrong, block in opened.features.checked_blocks():
            n_bad += len(wrong)
            for column, problem, where in wrong:
                cells.setdefault((column, problem), []).append(where)
            if block is not None:
                yield block

    with closing(Source(path, once=True)) as source:
        try:
            opened = RowInput(source, roles, zero_based=zero_based)
            opened.encode(selective=True)
            for block in rows_of(opened):
                summary.add(block.rows)
                rows = block.rows.without_zeros()
                stats = None if summary.max_index >= MAX_FEATURES else stats
                if stats is not None:
                    stats.add(rows)
                labels.update(block.labels[~np.isnan(block.labels)].tolist())
                hashes.append(rows.content_hashes())
                n_empty += int((rows.lengths == 0).sum())
                run.progress(f"checking {name}", summary.n_rows, None)
            if opened.features is not None:
                from resvm_cli.data.notes import notes_on_training

                for text in notes_on_training([opened.features], known=False):
                    run.warn(text)
        except (DataError, ParameterError) as error:  # still check the other files
            texts = [terminal.in_options(text) for text in (error.message, error.hint) if text]
            n_bad += 1
            bad[most - 1 :] = ["; ".join(texts)]
    for (column, problem), places in cells.items():
        counted = "1 row" if len(places) == 1 else f"{len(places):,} rows"
        more = ", ..." if len(places) > SHOWN_CELLS else ""
        shown = ", ".join(places[:SHOWN_CELLS]) + more
        bad.append(f"{name}: column '{column}': {problem} in {counted}: {shown}")
    if not summary.n_rows and not bad:
        n_bad, bad = 1, [f"{name}: no rows"]
    n_rows, n_nonzeros = summary.n_rows, summary.n_nonzeros
    n_features = max(0, summary.max_index + int(zero_based))
    ranges = stats.summary() if stats is not None and n_rows else None
    constant = [] if ranges is None else ranges.indices[ranges.low == ranges.high].tolist()
    report = {
        "path": name,
        "sound": not bad,
        "n_bad_lines": n_bad,
        "bad_lines": bad,
        "n_unlisted": 0 if cells else max(0, n_bad - len(bad)),
        "n_rows": n_rows,
        "n_features": n_features,
        "n_nonzeros": n_nonzeros,
        "density": n_nonzeros / max(1, n_rows * n_features),
        "smallest": float(summary.low) if n_nonzeros else None,
        "largest": float(summary.high) if n_nonzeros else None,
        "rows_without_features": n_empty,
        "labels": {format_number(one): count for one, count in labels.most_common(MAX_NAMED)},
        "n_labels": len(labels),
        "duplicate_rows": n_rows - len(distinct(np.concatenate(hashes))),
        "constant_features": constant[:MAX_NAMED],
        "n_constant_features": None if ranges is None else len(constant),
        "scaling": None if ranges is None else ranges.advice(),
    }
    return report, (summary.min_index, summary.max_index)


def _show(report: dict[str, Any]) -> None:
    """Print bad lines on stdout (as path:line, for editors), then a summary of the file."""
    lines = list(report["bad_lines"])
    if more := report["n_unlisted"]:
        lines.append(f"... and {more:,} more bad lines")
    if not report["n_rows"]:
        terminal.print_table("\n".join(lines) + "\n")
        return
    labels = ", ".join(f"{label} ({count:,})" for label, count in report["labels"].items())
    if more := report["n_labels"] - len(report["labels"]):
        labels += f", and {more:,} more"
    rows = {
        "state": "valid" if report["sound"] else "not valid, bad lines: {n_bad_lines:,}",
        "rows": "{n_rows:,}, {rows_without_features:,} of them without features",
        "features": "{n_features:,}",
        "nonzeros": f"{{n_nonzeros:,}} ({100 * report['density']:.3g}%)",
        "values": "{smallest:g} to {largest:g}" if report["n_nonzeros"] else "none",
        "labels": labels or "none",
        "duplicates": "{duplicate_rows:,} rows duplicate an earlier one",
    }
    if n_constant := report["n_constant_features"]:
        listed = ", ".join(map(str, report["constant_features"]))
        more = ", ..." if n_constant > len(report["constant_features"]) else ""
        rows["constant"] = f"{n_constant:,} features: {listed}{more}"
    rows["scaling"] = "features have similar ranges"
    if n_constant is None:
        rows["scaling"] = "too many features to examine individually"
    elif report["scaling"]:
        rows["scaling"] = f"advised: {report['scaling']}"
    lines.append(report["path"])
    lines += [f"{title:>10}  {text.format_map(report)}" for title, text in rows.items()]
    terminal.print_table("\n".join(lines) + "\n")
