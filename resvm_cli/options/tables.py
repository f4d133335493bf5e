"""Options shared by the commands that read tables."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from resvm_cli.options.option_groups import option, option_group
from resvm_cli.options.running import output_option
from resvm_cli.options.training import data_option
from resvm_cli.options.values import parse_choice

if TYPE_CHECKING:
    from resvm_cli.tables.encoding import TableReading

column_option = partial(option, panel="Columns")

ANNOTATE = output_option(
    "--annotate FILE",
    "Write the table that was read with the results as further columns (.csv, .tsv or .parquet).",
)


@option_group
class TableFileOptions:
    """How the file of a table is written, and which column names its rows."""

    id_column: str | None = column_option("--id-column NAME", "Column with row ids.")
    missing: str | None = column_option(
        "--missing RULE",
        "Missing values: refuse (fail), drop the row, or fill in zero or the column's mean or"
        " median.",
        show_default="refuse",
        completions=("refuse", "drop", "zero", "mean", "median"),
    )
    separator: str | None = data_option(
        "--separator CHAR",
        "Column separator: a character, or tab.",
        show_default="the most frequent one in the first line",
    )
    header: bool | None = data_option(
        "--header/--no-header",
        "Whether the first line contains column names; if not, columns are numbered.",
        show_default="yes",
    )
    decimal_comma: bool = data_option("--decimal-comma", "Numbers are written 0,5 instead of 0.5.")
    array: str | None = data_option(
        "--array NAME", "Matrix to read, if an .npz or HDF5 file has several."
    )

    def reading(self, positive_labels: list[str] | None = None, **roles: Any) -> TableReading:
        """Return how to read a table, with further ``roles`` of its columns."""
        from resvm_cli.tables.encoding import MISSING_RULES, ColumnRoles, TableReading

        rule = self.missing
        return TableReading(
            ColumnRoles(
                row_id=self.id_column,
                positive_labels=tuple(positive_labels or ()),
                missing=None if rule is None else parse_choice("--missing", rule, MISSING_RULES),
                **roles,
            ),
            separator={"tab": "\t", "\\t": "\t"}.get(self.separator or "", self.separator),
            header=self.header,
            decimal_comma=self.decimal_comma,
            array=self.array,
        )


@option_group
class PredictedTableOptions(TableFileOptions):
    """The same for rows to predict: the model decides about missing values, and keeps all rows."""

    missing: str | None = column_option(
        "--missing RULE",
        "Missing values: as in training; zero fills in 0 where training refused or dropped them.",
        show_default="as in training",
        completions=("refuse", "zero", "mean", "median"),
    )


@option_group
class TableOptions(TableFileOptions):
    """The columns of a table that become features, and those that do not."""

    label_column: str | None = column_option("--label-column NAME", "Column with the labels.")
    columns: list[str] | None = column_option(
        "--columns NAMES",
        "Columns to use as features, separated by commas.",
        show_default="all others",
    )
    drop: list[str] | None = column_option("--drop NAMES", "Columns to drop.")
    categorical: list[str] | None = column_option(
        "--categorical NAMES", "Columns to one-hot encode.", show_default="text columns"
    )

    def reading(self, positive_labels: list[str] | None = None, **roles: Any) -> TableReading:
        return super().reading(
            positive_labels,
            label=self.label_column,
            only=_names(self.columns),
            dropped=_names(self.drop),
            categories=_names(self.categorical),
            **roles,
        )


def _names(given: list[str] | None) -> tuple[str, ...]:
    return tuple(name.strip() for text in given or () for name in text.split(","))
