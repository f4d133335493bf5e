"""resvm check: list every bad line in a file and summarize the rest, in one pass.

numpy is imported inside functions, so that --help stays fast.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import closing
from dataclasses import asdict, field
from typing import TYPE_CHECKING, TypeAlias

from resvm_cli.errors import DataError, FileError, ParameterError, ResvmError
from resvm_cli.options.option_groups import argument, fold_options, option
from resvm_cli.options.shared import JSON, QUIET, ZERO_BASED, TableOptions, command_run
from resvm_cli.records import dataclass
from resvm_cli.report import terminal
from resvm_cli.running.run import Run

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from resvm_cli.files.svmlight import BadLine
    from resvm_cli.model.scaling import FeatureStats
    from resvm_cli.rows import FloatArray, Rows
    from resvm_cli.tables.encoding import TableReading

Hashes: TypeAlias = "npt.NDArray[np.uint64]"
MAX_NAMED = 20  # maximum number of features and labels to list


@fold_options
def check(
    *,
    files: list[str] = argument("FILE...", "svmlight files or tables (- is stdin)."),
    table: TableOptions,
    most: int = option(
        "--max N", "Maximum number of bad lines to list per file.", default=20, min=1
    ),
    zero_based: bool = ZERO_BASED,
    json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """List every bad line, then summarize the file (exit code 3 if any line is bad).

    Reading a table stops at a bad cell, so only the first bad cell is reported.

    For example:

    - `resvm check pos.svm unl.svm`
    """
    from resvm_cli.rows import note_on_numbering

    reading = table.reading()
    reports = []
    failures: list[ResvmError] = []
    with command_run(quiet) as run:
        for path in files:
            try:
                checked = _check_file(path, reading, zero_based, most, run)
            except FileError as error:
                failures.append(error)  # still check the other files
                continue
            reports.append(checked)
            if not json:
                show_check(checked)
        if note := note_on_numbering([(one.path, *one.indices) for one in reports]):
            run.notice(note)
    if json:
        found = [asdict(checked) for checked in reports]
        for each in found:
            del each["indices"]
        terminal.print_json("check", {"files": found})
    if unsound := [checked.path for checked in reports if not checked.sound]:
        failures.append(DataError(f"bad lines in {', '.join(unsound)}"))
    for failure in failures[:-1]:
        terminal.show_error(failure)
    if failures:
        raise failures[-1]


@dataclass
class FileCheck:
    """The findings for one file, counted as its rows are read."""

    path: str
    sound: bool = True
    n_bad_lines: int = 0
    bad_lines: list[str] = field(default_factory=list)  # the first ``most`` bad lines
    n_rows: int = 0
    n_features: int = 0
    n_nonzeros: int = 0
    density: float = 0.0
    explicit_zeros: int = 0
    smallest: float | None = None
    largest: float | None = None
    rows_without_features: int = 0
    rows_without_label: int = 0
    labels: dict[str, int] = field(default_factory=dict)  # only the most frequent labels
    n_labels: int = 0
    duplicate_rows: int = 0
    constant_features: list[int] = field(default_factory=list)
    n_constant_features: int = 0
    features_examined: bool = False  # False if there are too many features
    scaling: str | None = None  # why scaling is advised; None if it is not
    indices: tuple[int, int] = (sys.maxsize, -1)  # smallest, largest; not in the JSON output


def _check_file(
    path: str, reading: TableReading, zero_based: bool, most: int, run: Run
) -> FileCheck:
    """Read a complete file, skipping lines that cannot be parsed; stop at a bad cell in a table."""
    from resvm_cli.files.sources import Source
    from resvm_cli.files.streams import name_of
    from resvm_cli.tables.inputs import RowInput

    found = FileCheck(name_of(path))
    name, bad = found.path, found.bad_lines
    statistics = _Statistics(found)

    def add_bad_line(line: BadLine) -> None:
        found.n_bad_lines += 1
        if len(bad) < most:
            problem = line.error(name)
            bad.append(terminal.in_options(problem.message))
            if line.line == 1 and problem.hint:  # the whole file may be in another format
                bad[-1] += f"; {terminal.in_options(problem.hint)}"

    with closing(Source(path, once=not reading.needs_two_passes)) as source:
        try:
            opened = RowInput(source, reading, zero_based=zero_based)
            opened.encode(selective=True)
            for block in opened.blocks(workers=1, on_bad_line=add_bad_line):
                statistics.add(block.rows, block.labels)
                run.progress(f"checking {name}", found.n_rows, None)
            if opened.features is not None:
                from resvm_cli.tables.notes import notes_on_training

                for text in notes_on_training([opened.features], known=False):
                    run.notice(text)
        except (DataError, ParameterError) as error:  # still check the other files
            texts = [terminal.in_options(text) for text in (error.message, error.hint) if text]
            found.n_bad_lines += 1
            bad[most - 1 :] = ["; ".join(texts)]
    if not found.n_rows and not bad:
        found.n_bad_lines = 1
        bad.append(f"{name}: no rows")
    statistics.finish(zero_based=zero_based)
    return found


class _Statistics:
    """Computes the findings for a file from its rows."""

    def __init__(self, found: FileCheck) -> None:

        from resvm_cli.model.scaling import FeatureStats

        self._found = found
        self._labels: Counter[float] = Counter()
        self._stats: FeatureStats | None = FeatureStats()
        self._rows: list[Hashes] = []

    def add(self, rows: Rows, labels: FloatArray) -> None:
        import numpy as np

        from resvm_cli.model.scaling import MAX_FEATURES
        from resvm_cli.svm import _blocks

        found = self._found
        last = max(found.indices[1], rows.max_index)
        found.indices = min(found.indices[0], rows.min_index), last
        found.explicit_zeros += int((rows.values == 0).sum())
        rows = rows.without_zeros()
        missing = np.isnan(labels)
        found.rows_without_label += int(missing.sum())
        present, counts = np.unique(labels[~missing], return_counts=True)
        self._labels.update(dict(zip(present.tolist(), counts.tolist(), strict=True)))
        found.rows_without_features += int((rows.lengths == 0).sum())
        if len(rows.values):
            low, high = float(rows.values.min()), float(rows.values.max())
            found.smallest = low if found.smallest is None else min(found.smallest, low)
            found.largest = high if found.largest is None else max(found.largest, high)
        if last >= MAX_FEATURES:  # too many features to examine individually
            self._stats = None
        if self._stats is not None:
            self._stats.add(rows)
        hashes: Hashes = np.zeros(len(rows), np.uint64)
        _blocks.hash(rows.indptr, rows.indices, rows.values, hashes)
        self._rows.append(hashes)
        found.n_rows += len(rows)
        found.n_nonzeros += len(rows.values)

    def finish(self, *, zero_based: bool) -> None:
        """Add the findings that require the whole file."""
        import numpy as np

        from resvm_cli.files.svmlight import format_number
        from resvm_cli.rows import distinct

        found = self._found
        found.sound = not found.bad_lines
        found.n_features = max(0, found.indices[1] + (1 if zero_based else 0))
        found.density = found.n_nonzeros / max(1, found.n_rows * found.n_features)
        most_common = self._labels.most_common(MAX_NAMED)
        found.labels = {format_number(label): count for label, count in most_common}
        found.n_labels = len(self._labels)
        if self._rows:
            found.duplicate_rows = found.n_rows - len(distinct(np.concatenate(self._rows)))
        found.features_examined = self._stats is not None
        if self._stats is None or not found.n_rows:
            return
        summary = self._stats.summary()
        constant = summary.indices[summary.low == summary.high].tolist()
        found.constant_features = constant[:MAX_NAMED]
        found.n_constant_features = len(constant)
        found.scaling = summary.advice()


def show_check(check: FileCheck) -> None:
    """Print bad lines on stdout (as path:line, for editors), then a summary of the file."""
    lines = list(check.bad_lines)
    if check.n_bad_lines > len(check.bad_lines):
        lines.append(f"... and {check.n_bad_lines - len(check.bad_lines):,} more bad lines")
    if not check.n_rows:
        terminal.print_table("\n".join(lines) + "\n")
        return
    lines.append(check.path)
    labels = ", ".join(f"{label} ({count:,})" for label, count in check.labels.items())
    if check.n_labels > len(check.labels):
        labels += f", and {check.n_labels - len(check.labels):,} more"
    if check.rows_without_label:
        labels += f"{'; ' if labels else ''}{check.rows_without_label:,} rows without a label"
    values = "none"
    if check.smallest is not None:
        values = f"{check.smallest:g} to {check.largest:g}"
        if check.explicit_zeros:
            values += f", and {check.explicit_zeros:,} explicit zeros"
    rows = [
        ("state", "valid" if check.sound else f"not valid, bad lines: {check.n_bad_lines:,}"),
        ("rows", f"{check.n_rows:,}, {check.rows_without_features:,} of them without features"),
        ("features", f"{check.n_features:,}"),
        ("non-zeros", f"{check.n_nonzeros:,} ({100 * check.density:.3g} %)"),
        ("values", values),
        ("labels", labels),
        ("duplicates", f"{check.duplicate_rows:,} rows duplicate an earlier one"),
    ]
    if n_constant := check.n_constant_features:
        listed = ", ".join(map(str, check.constant_features))
        more = ", ..." if n_constant > len(check.constant_features) else ""
        rows.append(("constant", f"{n_constant:,} features: {listed}{more}"))
    scaling = "features have similar ranges"
    if check.scaling:
        scaling = f"advised: {check.scaling}"
    elif not check.features_examined:
        scaling = "too many features to examine individually"
    rows.append(("scaling", scaling))
    lines += [f"{name:>10}  {text}" for name, text in rows]
    terminal.print_table("\n".join(lines) + "\n")
