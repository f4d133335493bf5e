"""New."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from resvm_cli.report.json_output import print_json
from resvm_cli.report.terminal import print_table

if TYPE_CHECKING:
    from resvm_cli.commands.check.check import FileCheck


def show_check(check: FileCheck) -> None:
    """Bad lines first, as an editor can jump to them, then what the file holds, on stdout."""
    lines = list(check.bad_lines)
    if check.n_bad_lines > len(check.bad_lines):
        lines.append(f"... and {check.n_bad_lines - len(check.bad_lines):,} more bad lines")
    if not check.n_rows:
        print_table("\n".join(lines) + "\n")
        return
    lines.append(check.path)
    labels = ", ".join(f"{label} ({count:,})" for label, count in check.labels.items())
    if check.n_labels > len(check.labels):
        labels += f", and {check.n_labels - len(check.labels):,} more"
    if check.rows_without_label:
        labels += f"{'; ' if labels else ''}{check.rows_without_label:,} rows without"
    values = "none"
    if check.smallest is not None:
        values = f"{check.smallest:g} to {check.largest:g}"
        if check.explicit_zeros:
            values += f", and {check.explicit_zeros:,} explicit zeros"
    rows = [
        ("state", "sound" if check.sound else f"not sound, bad lines: {check.n_bad_lines:,}"),
        ("rows", f"{check.n_rows:,}, {check.rows_without_features:,} of them without features"),
        ("features", f"{check.n_features:,}"),
        ("non-zeros", f"{check.n_nonzeros:,} ({100 * check.density:.3g} %)"),
        ("values", values),
        ("labels", labels),
        ("repeated", f"{check.duplicate_rows:,} rows repeat an earlier one"),
    ]
    if check.n_constant_features:
        rows.append(("constant", _listed(check.n_constant_features, check.constant_features)))
    if check.n_duplicate_features:
        groups = [" = ".join(map(str, group[:5])) for group in check.duplicate_features]
        rows.append(("the same", _listed(check.n_duplicate_features, groups)))
    scaling = "features are of similar range"
    if check.scaling:
        scaling = f"advisable: {check.scaling}"
    elif not check.features_examined:
        scaling = "too many features to look at each"
    rows.append(("scaling", scaling))
    lines += [f"{name:>10}  {text}" for name, text in rows]
    print_table("\n".join(lines) + "\n")


def _listed(count: int, names: Sequence[object]) -> str:
    shown = ", ".join(str(name) for name in names)
    return f"{count:,} features: {shown}" + (", ..." if count > len(names) else "")


def print_check(checks: list[FileCheck]) -> None:
    print_json("check", {"files": [asdict(check) for check in checks]})
