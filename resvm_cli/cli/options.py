"""Options that several commands share: how a command runs, the data it reads, and the method."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from resvm_cli.cli import terminal
from resvm_cli.cli.option_groups import (
    OUTPUT,
    RUNNING,
    advanced_option,
    option,
    option_group,
    table_options,
)
from resvm_cli.errors import CommandLineError
from resvm_cli.parameters import (
    KERNEL_NAMES,
    LIBSVM_KERNELS,
    METHOD_TABLE,
    TRAINING_TABLE,
    TUNING_TABLE,
    KernelName,
)
from resvm_cli.run import Run

if TYPE_CHECKING:
    from resvm_cli.data.encoding import ColumnRoles
    from resvm_cli.data.pu_input import TrainingInput

Name = TypeVar("Name", bound=str)

output_option = partial(option, panel=OUTPUT)
running_option = partial(option, panel=RUNNING)
column_option = partial(option, panel="Columns")
data_option = partial(option, panel="Data")
method_option = partial(option, panel="Method")

LABEL = "label="  # -N label=inactive
JSON = output_option("--json", "Print the result as JSON to stdout.")
FORCE = output_option("--force", "Replace an existing model.")
SEED = running_option("--seed N", METHOD_TABLE["seed"].help, default=0)
TASK = advanced_option(
    "--task I/N|auto/N",
    "Do only part I of N (I starts at 1); auto reads I from the environment of an array job"
    " (Slurm, PBS, Grid Engine, LSF, HyperQueue, AWS Batch, Kubernetes).",
)
QUIET = running_option("-q, --quiet", "Print only errors and warnings.")
ZERO_BASED = advanced_option("--zero-based", "Feature indices in the files start at 0.")
GROUPS = data_option(
    "--groups FILE|qid",
    "File with one group name per row, or qid to use the qid: fields in the data. No row is scored"
    " by a member that was trained on another row from the same group.",
)
ANNOTATE = output_option(
    "--annotate FILE",
    "Write all rows of the input table, in its order, with the results as additional columns (.csv"
    " or .tsv).",
)


def parse_choice(option: str, text: str, names: Sequence[Name]) -> Name:
    """Return the text if it is one of these names."""
    for name in names:
        if name == text:
            return name
    expected = f"{', '.join(names[:-1])} or {names[-1]}"
    raise CommandLineError(f"{option} must be {expected}, got '{text}'")


def parse_kernel(text: str) -> KernelName:
    """Return the kernel with this name or this LIBSVM number."""
    kernels: dict[str, KernelName] = {name: name for name in KERNEL_NAMES}
    kernels |= {"polynomial": "poly"}
    kernels |= {str(number): name for number, name in enumerate(LIBSVM_KERNELS)}
    if text.lower() not in kernels:
        raise CommandLineError(
            "-t/--kernel must be linear, poly, rbf, sigmoid, precomputed, 0 to 4, laplacian,"
            f" tanimoto or minmax, got '{text}'"
        )
    return kernels[text.lower()]


def single_number(labels: Sequence[str]) -> float | None:
    """Return the label as a number; None unless there is exactly one and it is a finite number."""
    number = number_or_text(labels[0]) if len(labels) == 1 else None
    return float(number) if isinstance(number, int | float) and isfinite(number) else None


def number_or_text(text: str) -> float | str:
    """Return the text as a number if it is one; otherwise, return the text."""
    try:
        return int(text) if re.fullmatch("[+-]?[0-9]{1,300}", text) else float(text)
    except ValueError:
        return text


def parse_number(option: str, text: str, expected: str = "a number") -> float:
    """Return a number from the command line; nan is rejected."""
    try:
        number = float(text)
        if number != number:
            raise ValueError
        return number
    except ValueError:
        raise CommandLineError(f"{option} must be {expected}, got '{text}'") from None


@contextmanager
def command_run(quiet: bool) -> Iterator[Run]:
    """Yield a run that reports to the terminal, or prints only warnings if ``quiet``."""
    shown = ("warning",) if quiet else ("warning", "note")

    def tell(kind: str, text: str) -> None:
        if kind in shown:
            terminal.say_row(kind, terminal.in_options(text))

    with terminal.Progress(quiet) as progress:
        yield Run(on_progress=progress, on_message=tell)


@option_group
class ClusterOptions:
    """The cluster that runs the tasks."""

    cluster: str | None = advanced_option(
        "--cluster ADDRESS|FILE|auto",
        "Run on a Dask cluster: tcp://host:8786, a scheduler file, or auto"
        " (DASK_SCHEDULER_ADDRESS).",
    )


@option_group
class RunningOptions:
    """How a command runs; none of these options affects the result."""

    jobs: int | None = running_option(
        "-j, --jobs N",
        "Number of threads; does not affect the result.",
        min=1,
        show_default="as many as the work can use",
    )
    quiet: bool = QUIET

    @contextmanager
    def run(self, cluster: ClusterOptions | None = None) -> Iterator[Run]:
        """Yield the command's run, on the cluster if one was given."""
        with command_run(self.quiet) as plain:
            limits = {name: value for name, value in vars(self).items() if name != "quiet"}
            run = replace(plain, **limits)
            if cluster is None or cluster.cluster is None:
                yield run
                return
            from resvm_cli.cluster import TIMEOUT_SECONDS, connected

            with connected(cluster.cluster, TIMEOUT_SECONDS, run.note) as engine:
                yield replace(run, engine=engine)


@option_group
class TableFileOptions:
    """The format of a table, and its id column."""

    id_column: str | None = column_option("--id-column NAME", "Column with row ids.")
    missing: str | None = column_option(
        "--missing RULE",
        "How to handle missing values: refuse (stop with an error), drop the row, or fill in zero"
        " or the column's mean or median.",
        show_default="refuse",
        completions=("refuse", "drop", "zero", "mean", "median"),
    )
    no_header: bool = advanced_option(
        "--no-header", "The first line has no column names; columns are numbered."
    )

    def roles(self, positive_labels: list[str] | None = None, **roles: Any) -> ColumnRoles:
        """Return how to read a table, with additional ``roles`` of its columns."""
        from resvm_cli.data.encoding import MISSING_RULES, ColumnRoles

        rule = self.missing
        return ColumnRoles(
            row_id=self.id_column,
            positive_labels=tuple(positive_labels or ()),
            missing=None if rule is None else parse_choice("--missing", rule, MISSING_RULES),
            header=not self.no_header,
            **roles,
        )


@option_group
class PredictedTableOptions(TableFileOptions):
    """The format of rows to predict; the model fills in missing values, and no row is dropped."""

    missing: str | None = column_option(
        "--missing RULE",
        "How to handle missing values. If training refused or dropped them, zero fills in 0.",
        show_default="as in training",
        completions=("refuse", "zero", "mean", "median"),
    )


@option_group
class TableOptions(TableFileOptions):
    """Which columns of a table become features, and which do not."""

    label_column: str | None = column_option("--label-column NAME", "Column with the labels.")
    columns: list[str] | None = column_option(
        "--columns NAMES",
        "Columns to use as features, separated by commas.",
        show_default="all others",
    )
    drop: list[str] | None = column_option("--drop NAMES", "Columns to leave out.")
    categorical: list[str] | None = column_option(
        "--categorical NAMES", "Columns to one-hot encode.", show_default="text columns"
    )

    def roles(self, positive_labels: list[str] | None = None, **roles: Any) -> ColumnRoles:
        return super().roles(
            positive_labels,
            label=self.label_column,
            only=split_names(self.columns),
            dropped=split_names(self.drop),
            categories=split_names(self.categorical),
            **roles,
        )


@option_group
class MoleculeTableOptions(TableOptions):
    """The columns of a table, one of which may contain molecules."""

    smiles_column: str | None = column_option(
        "--smiles-column NAME",
        "Column with SMILES strings, which become Morgan fingerprints (RDKit); other columns are"
        " features only if listed in --columns. For training, the kernel is then tanimoto, unless"
        " you set another; for minmax, the fingerprints have counts.",
    )

    def roles(self, positive_labels: list[str] | None = None, **roles: Any) -> ColumnRoles:
        return super().roles(positive_labels, smiles=self.smiles_column, **roles)


def split_names(given: list[str] | None) -> tuple[str, ...]:
    return tuple(name.strip() for text in given or () for name in text.split(","))


@option_group
class SourceOptions:
    """P and U, in two files or one; the fields have the same names as in TrainingInput."""

    positives: str | None = data_option(
        "-P, --positives FILE",
        "Known positives: svmlight text or a table (CSV, TSV, Parquet, .npy, .npz); - is stdin.",
    )
    unlabeled: str | None = data_option("-U, --unlabeled FILE", "Unlabeled rows.")
    data: str | None = data_option("--data FILE", "One labeled file instead of -P and -U.")
    positive_label: list[str] | None = data_option(
        "--positive-label LABEL",
        "With --data: rows with this label are P; all others are U. For tables, labels may be text,"
        " and the option may be repeated.",
    )
    positive_ids: str | None = data_option(
        "--positive-ids FILE",
        "With --data: rows whose ids are listed in this file, one per line, are P; all others are"
        " U.",
    )
    known_negatives: list[str] | None = data_option(
        "-N, --known-negatives FILE|label=LABEL",
        "Known negatives: a file of their rows; with --data, a file of their ids, one per line, or"
        " label=LABEL (may be repeated if labels are text). Members treat them like rows of U, but"
        " with a separate penalty (--w-neg).",
        completions=("label=",),
    )
    ids_file: str | None = data_option(
        "--ids-file FILE",
        "Ids of all rows, one per line, in row order.",
        show_default="--id-column, or trailing comments (# id)",
    )

    def training_input(self, table: TableOptions, **more: Any) -> TrainingInput:
        """Return the data to train on; ``more`` sets other fields of TrainingInput."""
        from resvm_cli.data.pu_input import TrainingInput

        negatives, negative_labels = self._known_negatives()
        roles = table.roles(self.positive_label, negative_labels=negative_labels)
        fields = {
            "positive_label": single_number(roles.positive_labels),
            "negative_label": single_number(negative_labels),
            "known_negatives": negatives,
        }
        return TrainingInput(**{**vars(self), **fields, **more}, table=roles)

    def _known_negatives(self) -> tuple[str | None, tuple[str, ...]]:
        """Return the file given with -N, and the labels."""
        given = self.known_negatives or []
        labels = [text.removeprefix(LABEL) for text in given if text.startswith(LABEL)]
        files = [text for text in given if not text.startswith(LABEL)]
        if len(files) + bool(labels) > 1:
            raise CommandLineError(
                f"-N/--known-negatives was given {len(given)} times; expected one file"
                " or, with --data, one or more label=LABEL"
            )
        if files and self.data is not None and files[0] != "-" and not os.path.exists(files[0]):
            raise CommandLineError(
                f"-N/--known-negatives: there is no file '{files[0]}'",
                f"to name a label, write -N {shlex.quote(LABEL + files[0])}",
            )
        return (files[0] if files else None), tuple(labels)


@option_group
class DataOptions(SourceOptions):
    """The data to train on, and how to read it."""

    weights: str | None = data_option(
        "--weights FILE",
        "Confidence in each known positive, from 0 to 1: one number per row of P or, with"
        " --positive-ids, one id and number per line. Rows of P are drawn in proportion to these"
        " numbers.",
    )
    zero_based: bool = ZERO_BASED


NO_AUTO = method_option("--no-auto", terminal.in_options(TRAINING_TABLE["auto"].help))
METHOD_OPTIONS = {
    name: row
    for name, row in {**TRAINING_TABLE, **METHOD_TABLE}.items()
    if name not in ("auto", "seed")
}
# Parameters that take a number or a word; typer passes both as text.
NUMBERS_OR_WORDS = {
    name
    for name, row in {**METHOD_TABLE, **TUNING_TABLE}.items()
    if row.choices and row.kind in ("integer", "number")
}


@table_options(METHOD_OPTIONS)
class MethodOptions:
    """The parameters of an ensemble, or how to choose them."""

    no_auto: bool = NO_AUTO


def given_values(values: Mapping[str, Any], explicit: Collection[str]) -> dict[str, Any]:
    """Return the values that the user set, converted for the engine."""
    given = {name: value for name, value in values.items() if name in explicit}
    if given.pop("no_auto", False):
        given["auto"] = False
    if "kernel" in given:
        given["kernel"] = parse_kernel(given["kernel"])
    for name in NUMBERS_OR_WORDS:
        if isinstance(given.get(name), str):
            given[name] = number_or_text(given[name])
    return given
