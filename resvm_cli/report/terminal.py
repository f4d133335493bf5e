"""What a person sees: errors, progress and summaries on stderr, tables asked for on stdout."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from resvm_cli.errors import ResvmError
from resvm_cli.files.stdout import write_stdout

if TYPE_CHECKING:
    from resvm_cli.jobs.check import FileCheck
    from resvm_cli.jobs.inspect import Inspection
    from resvm_cli.jobs.simulate import SimulateResult
    from resvm_cli.jobs.train import TrainResult

FIRST_HEARTBEAT_SECONDS = 10.0
HEARTBEAT_SECONDS = 30.0


def say(text: str) -> None:
    """A line on stderr; a closed stderr is no reason to fail."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(text, file=sys.stderr, flush=True)  # noqa: T201


def note(text: str) -> None:
    say(f"{'note':>10}  {text}")


def no_note(text: str) -> None:
    """What a quiet run says instead."""


def announce_stdin() -> None:
    """Say what is waited for, where a person would otherwise see nothing."""
    if sys.stdin is not None and sys.stdin.isatty():
        note("reading rows from the terminal; Ctrl-D ends them")


def show_error(error: ResvmError) -> None:
    say(f"resvm: error: {error.message}")
    if error.hint:
        say(f"  hint: {error.hint}")


def print_data(text: str) -> None:
    """Text that the user asked to have on stdout."""
    write_stdout(text.encode("utf-8", "surrogateescape"))


def rendered(table: Any, width: int | None, *, colours: bool = False) -> str:
    """A rich table as text, without blanks at the ends of lines."""
    from io import StringIO

    from rich.console import Console

    text = StringIO()
    Console(file=text, force_terminal=colours, width=width, highlight=False).print(table)
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


class Progress:
    """How far a job is: a live bar on a terminal, elsewhere a line now and then."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._live: Any = None
        self._task: Any = None
        self._stage = ""
        self._started = self._stage_began = time.monotonic()
        self._next = self._started + FIRST_HEARTBEAT_SECONDS
        self._next_refresh = self._started + 0.3

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if self._quiet or sys.stderr is None:
            return
        now = time.monotonic()
        if stage.partition(",")[0] != self._stage:  # what follows a comma may change on the way
            self._stage = stage.partition(",")[0]
            self._stage_began = now
            self._forget()
        if sys.stderr.isatty():
            # short jobs are over before a bar is worth drawing, or rich worth importing
            if now >= self._next_refresh:
                self._draw(stage, done, total)
        elif now >= self._next:
            self._next = now + HEARTBEAT_SECONDS
            amount = f"{done:,} rows" if total is None else f"{done:,} of {total:,}"
            left = ""
            if total is not None and 0 < done < total:
                left = f", about {(now - self._stage_began) * (total - done) / done:.0f} s left"
            say(f"resvm: {stage}: {amount}, {now - self._started:.0f} s{left}")

    def _draw(self, stage: str, done: int, total: int | None) -> None:
        if self._live is None:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )
            from rich.progress import Progress as Bar

            self._live = Bar(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._live.start()
        if self._task is None:
            self._task = self._live.add_task(stage, total=total)
        self._live.update(self._task, completed=done, total=total, description=stage)

    def _forget(self) -> None:
        if self._live is not None and self._task is not None:
            self._live.remove_task(self._task)
        self._task = None


def show_training(result: TrainResult) -> None:
    """What was chosen and where it went."""
    plan = result.plan
    kernel = plan.kernel
    described: str = kernel.name
    if kernel.uses_gamma:
        described += f", gamma {kernel.gamma!r}"
    if kernel.uses_coef0:
        described += f", coef0 {kernel.coef0:g}"
    if kernel.uses_degree:
        described += f", degree {kernel.degree}"
    solver: str = plan.solver
    if plan.solver == "liblinear":
        solver += f", bias {plan.bias:g}" if plan.bias else ", bias the mean row norm of each bag"
    if scaling := result.manifest["scaling"]:
        described += f"; features scaled by {scaling['kind']}"
    penalties = f"C_P {plan.c_pos:.12g}, C_U {plan.c_unl:.12g}"
    if plan.w_pos is not None and plan.method != "bagging":
        penalties += f" (w_pos {plan.w_pos:g})"
    rows = [
        (
            "data",
            f"{plan.rows_pos:,} positive, {plan.rows_unl:,} unlabeled rows, "
            f"{result.manifest['n_features']:,} features",
        ),
        ("method", plan.method),
        ("kernel", described),
        ("penalties", penalties),
        ("solver", solver),
    ]
    if plan.method != "cwsvm":
        rows.append(
            (
                "members",
                f"{plan.n_models}, each of {plan.n_pos:,} positive"
                f" and {plan.n_unl:,} unlabeled rows",
            )
        )
    rows.append(("seed", str(plan.seed)))
    for name, told in rows:
        say(f"{name:>10}  {told}")
    say(f"{'model':>10}  {result.path}")


def show_simulation(result: SimulateResult) -> None:
    """What was drawn and where it went."""
    for name, told in (
        ("pos.svm", f"{result.n_pos:,} rows, {result.false_positives:,} of them truly negative"),
        ("unl.svm", f"{result.n_unl:,} rows, {result.hidden_positives:,} of them truly positive"),
        ("test.svm", f"{result.test_pos:,} positive, {result.test_neg:,} negative rows"),
        ("truth.csv", "which rows of pos.svm and unl.svm are mislabelled"),
        ("seed", str(result.seed)),
        ("written to", result.path),
    ):
        say(f"{name:>10}  {told}")
    if not (result.test_pos and result.test_neg):
        note("no row of one class was left for test.svm: ask for smaller sets")


def show_check(found: FileCheck) -> None:
    """Bad lines first, as an editor can jump to them, then what the file holds, on stdout."""
    lines = list(found.bad_lines)
    if found.n_bad_lines > len(found.bad_lines):
        lines.append(f"... and {found.n_bad_lines - len(found.bad_lines):,} more bad lines")
    if not found.n_rows:
        print_data("\n".join(lines) + "\n")
        return
    lines.append(found.path)
    labels = ", ".join(f"{label} ({count:,})" for label, count in found.labels.items())
    if found.n_labels > len(found.labels):
        labels += f", and {found.n_labels - len(found.labels):,} more"
    if found.rows_without_label:
        labels += f"{'; ' if labels else ''}{found.rows_without_label:,} rows without"
    values = "none"
    if found.smallest is not None:
        values = f"{found.smallest:g} to {found.largest:g}"
        if found.explicit_zeros:
            values += f", and {found.explicit_zeros:,} explicit zeros"
    told = [
        ("state", "sound" if found.sound else f"not sound, bad lines: {found.n_bad_lines:,}"),
        ("rows", f"{found.n_rows:,}, {found.rows_without_features:,} of them without features"),
        ("features", f"{found.n_features:,}"),
        ("non-zeros", f"{found.n_nonzeros:,} ({100 * found.density:.3g} %)"),
        ("values", values),
        ("labels", labels),
        ("repeated", f"{found.duplicate_rows:,} rows repeat an earlier one"),
    ]
    if found.n_constant_features:
        told.append(("constant", _listed(found.n_constant_features, found.constant_features)))
    if found.n_duplicate_features:
        groups = [" = ".join(map(str, group[:5])) for group in found.duplicate_features]
        told.append(("the same", _listed(found.n_duplicate_features, groups)))
    scaling = "features are of similar range"
    if found.scaling:
        scaling = f"advisable: {found.scaling}"
    elif not found.features_examined:
        scaling = "too many features to look at each"
    told.append(("scaling", scaling))
    lines += [f"{name:>10}  {text}" for name, text in told]
    print_data("\n".join(lines) + "\n")


def _listed(count: int, names: Sequence[object]) -> str:
    shown = ", ".join(str(name) for name in names)
    return f"{count:,} features: {shown}" + (", ..." if count > len(names) else "")


def show_inspection(found: Inspection) -> None:
    """A table of what a model holds, on stdout."""
    from rich.table import Table
    from rich.text import Text

    manifest = found.manifest
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")

    def pairs(mapping: dict[str, Any]) -> str:
        return ", ".join(
            f"{name} {format(value, 'g') if float(format(value, 'g')) == value else repr(value)}"
            if isinstance(value, float)
            else f"{name} {value}"
            for name, value in mapping.items()
            if value is not None
        )

    kernel = dict(manifest["kernel"])
    name = kernel.pop("name")
    table.add_row("model", Text(found.path))
    table.add_row("state", "intact: every digest verified")
    table.add_row("method", manifest["method"])
    table.add_row("kernel", f"{name}, {pairs(kernel)}" if kernel else name)
    table.add_row("parameters", pairs(manifest["parameters"]))
    table.add_row("seed", str(manifest["seed"]))
    table.add_row("members", f"{found.n_members:,} ({found.n_bytes:,} bytes)")
    vectors = "weight vectors" if name == "linear" else "support vectors"
    table.add_row(vectors, f"{found.n_support_vectors:,}, {found.n_pool:,} distinct")
    if judged := manifest.get("out_of_bag"):
        table.add_row("out of bag", f"{judged['positives']:,} known positives judged")
    if manifest["unconverged"]:
        table.add_row("unconverged", f"{manifest['unconverged']} members")
    features = f"{manifest['n_features']:,}"
    if manifest["scaling"]:
        features += f", scaled by {manifest['scaling']['kind']}"
    table.add_row("features", features + (", counted from 0" if manifest["zero_based"] else ""))
    for which, data in manifest["data"].items():
        table.add_row(which, f"{data['rows']:,} rows, sha256 {data['sha256'][:16]}...")
    table.add_row("versions", pairs(manifest["versions"]))
    table.add_row("format", str(manifest["format"]))
    colours = sys.stdout is not None and sys.stdout.isatty()
    print_data(rendered(table, None if colours else 100, colours=colours))
