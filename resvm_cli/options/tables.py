"""Options shared by the commands that read tables."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resvm_cli.options.option_groups import option_group
from resvm_cli.options.running import output_option
from resvm_cli.options.training import data_option
from resvm_cli.options.values import offered, parse_choice

if TYPE_CHECKING:
    from resvm_cli.tables.encoding import TableReading

column_option = partial(typer.Option, rich_help_panel="Columns")

Annotate = Annotated[
    str | None,
    output_option(
        metavar="FILE",
        help="Write the table that was read with the results as further columns (.csv, .tsv or"
        " .parquet).",
    ),
]


@option_group
class TableFileOptions:
    """How the file of a table is written, and which column names its rows."""

    id_column: Annotated[
        str | None,
        column_option(metavar="NAME", help="Column with row ids."),
    ] = None
    missing: Annotated[
        str | None,
        column_option(
            metavar="RULE",
            show_default="refuse",
            autocompletion=offered("refuse", "drop", "zero", "mean", "median"),
            help="Missing values: refuse (fail), drop the row, or fill in zero or the column's"
            " mean or median.",
        ),
    ] = None
    separator: Annotated[
        str | None,
        data_option(
            metavar="CHAR",
            help="Column separator: a character, or tab.",
            show_default="the most frequent one in the first line",
        ),
    ] = None
    header: Annotated[
        bool | None,
        data_option(
            "--header/--no-header",
            help="Whether the first line contains column names; if not, columns are numbered.",
            show_default="yes",
        ),
    ] = None
    decimal_comma: Annotated[
        bool,
        data_option("--decimal-comma", help="Numbers are written 0,5 instead of 0.5."),
    ] = False
    array: Annotated[
        str | None,
        data_option(metavar="NAME", help="Matrix to read, if an .npz or HDF5 file has several."),
    ] = None

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

    missing: Annotated[
        str | None,
        column_option(
            metavar="RULE",
            show_default="as in training",
            autocompletion=offered("refuse", "zero", "mean", "median"),
            help="Missing values: as in training; zero fills in 0 where training refused or dropped"
            " them.",
        ),
    ] = None


@option_group
class TableOptions(TableFileOptions):
    """The columns of a table that become features, and those that do not."""

    label_column: Annotated[
        str | None, column_option(metavar="NAME", help="Column with the labels.")
    ] = None
    columns: Annotated[
        list[str] | None,
        column_option(
            metavar="NAMES",
            help="Columns to use as features, separated by commas.",
            show_default="all others",
        ),
    ] = None
    drop: Annotated[list[str] | None, column_option(metavar="NAMES", help="Columns to drop.")] = (
        None
    )
    categorical: Annotated[
        list[str] | None,
        column_option(
            metavar="NAMES",
            help="Columns to one-hot encode.",
            show_default="text columns",
        ),
    ] = None

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
