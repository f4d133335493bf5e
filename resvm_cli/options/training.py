"""Options shared by train, tune and rank: the data (P and U) and the method."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from resvm_cli.options.option_groups import option, table_options
from resvm_cli.options.values import number_or_text, parse_kernel, single_number
from resvm_cli.parameters import METHOD_TABLE, TRAINING_TABLE, TUNING_TABLE, ScaleChoice

if TYPE_CHECKING:
    from resvm_cli.options.tables import TableOptions
    from resvm_cli.training.choice import TrainingChoice
    from resvm_cli.training.input import TrainingInput

data_option = partial(option, panel="Data")
method_option = partial(option, panel="Method")

ZERO_BASED = data_option("--zero-based", "Feature indices in the files start at 0.")
GROUPS = data_option(
    "--groups FILE|qid",
    "A file with one group name per row, or qid to use the qid: fields of the data. Rows of one"
    " group are never split between a bag and the rows that it scores.",
)


@table_options({"scale": TRAINING_TABLE["scale"]}, last=True)
class DataOptions:
    """P and U, as two files or one; the fields have the same names as in TrainingInput."""

    positives: str | None = data_option(
        "-P, --positives FILE",
        "Known positives: svmlight text or a table (CSV, TSV, Parquet, .npy, .npz, Matrix Market,"
        " HDF5, .h5ad); - is stdin.",
    )
    unlabeled: str | None = data_option("-U, --unlabeled FILE", "Unlabeled rows.")
    data: str | None = data_option("--data FILE", "One labeled file instead of -P and -U.")
    positive_label: list[str] | None = data_option(
        "--positive-label LABEL",
        "With --data: rows with this label are P, all others are U. In a table, the label may be"
        " text, and there may be several.",
    )
    positive_ids: str | None = data_option(
        "--positive-ids FILE",
        "With --data: rows whose ids are listed in this file, one per line, are P; all others are"
        " U.",
    )
    ids_file: str | None = data_option(
        "--ids-file FILE",
        "Ids of all rows in order, one per line.",
        show_default="--id-column, or trailing comments, # name",
    )
    allow_missing: bool = data_option(
        "--allow-missing", "Continue if some ids in --positive-ids are not in the data."
    )
    drop_repeated: bool = data_option(
        "--drop-repeated", "Leave out rows of U that equal a row of P or have its id."
    )
    weights: str | None = data_option(
        "--weights FILE",
        "Confidence in each known positive: one number from 0 to 1 per row of P (with"
        " --positive-ids: after each id). Bags draw rows of P in proportion to it.",
    )
    zero_based: bool = ZERO_BASED
    features: int | None = data_option(
        "--features N", "Number of features.", show_default="the largest index"
    )

    def chosen_scale(self) -> ScaleChoice | None:
        """Return the scaling chosen by --scale."""
        name = TRAINING_TABLE["scale"].convert(vars(self)["scale"])
        return None if name == "none" else name

    def training_input(
        self,
        scale: ScaleChoice | None,
        table: TableOptions,
        *,
        groups: str | None = None,
        unchecked: bool = False,
        keep_ids: bool = False,
    ) -> TrainingInput:
        """Return the data to train on; ``scale`` may come from --params instead of --scale."""
        from resvm_cli.training.input import TrainingInput

        reading = table.reading(self.positive_label)
        label = single_number(reading.roles.positive_labels)
        declared = {**vars(self), "scale": scale, "positive_label": label, "table": reading}
        return TrainingInput(**declared, groups=groups, unchecked=unchecked, keep_ids=keep_ids)


METHOD_OPTIONS = {
    name: row
    for name, row in {**TRAINING_TABLE, **METHOD_TABLE}.items()
    if row.panel not in ("Data", "Running")
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

    def given(self, others: Mapping[str, Any], explicit: Collection[str]) -> dict[str, Any]:
        """Return what the user gave of these options and ``others``, converted for the engine."""
        return given_values({**vars(self), **others}, explicit)

    def choice(
        self, others: Mapping[str, Any], explicit: Collection[str]
    ) -> tuple[TrainingChoice, ScaleChoice | None]:
        """Return what to train and how to scale, from these options and ``others``."""
        from resvm_cli.training.choice import training_choice

        return training_choice(self.given(others, explicit))


def given_values(values: Mapping[str, Any], explicit: Collection[str]) -> dict[str, Any]:
    """Return the values that the user gave, converted for the engine."""
    given = {name: value for name, value in values.items() if name in explicit}
    if "kernel" in given:
        given["kernel"] = parse_kernel(given["kernel"])
    for name in NUMBERS_OR_WORDS:
        if isinstance(given.get(name), str):
            given[name] = number_or_text(given[name])
    return given
