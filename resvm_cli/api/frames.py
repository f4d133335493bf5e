"""Data frames as tables: text, categories, molecules and missing values, as on the command line.

The same code encodes the rows of a file and of a data frame, so both give the same model.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from resvm_cli.data.delimited import Column, Table, TableBlock, rows_at_once, unique_column_names
from resvm_cli.data.encoding import ColumnRoles, FeatureMap, MissingRule
from resvm_cli.data.features import TableFeatures
from resvm_cli.data.inputs import RowInput
from resvm_cli.errors import DataError, ParameterError
from resvm_cli.rows import Rows

Matrix: TypeAlias = Any  # a numpy array, a scipy sparse matrix, a DataFrame or a list of rows

FILL_IN = "leave such rows out, or fill in a number such as the column mean"
LOSSY_KINDS = {"c": "complex numbers", "M": "dates", "m": "time spans"}
# Parameters that say how to read a table, with the names of their options.
ROLES = {
    "columns": "only",
    "drop": "dropped",
    "categorical": "categories",
    "id_column": "row_id",
    "missing": "missing",
    "smiles_column": "smiles",
}


def roles_from(given: Mapping[str, Any]) -> ColumnRoles:
    """Return how to read a table; several names may be in a list, or separated by commas."""
    roles: dict[str, Any] = {}
    for name, role in ROLES.items():
        value = given.get(name)
        several = role in ("only", "dropped", "categories")
        values: list[Any] = [value]
        if several and value is not None:
            values = value.split(",") if isinstance(value, str) else np.ravel(value).tolist()
        if not all(each is None or isinstance(each, str) for each in values):
            raise ParameterError(f"`{name}` must be text, got {value!r}")
        roles[role] = tuple(each for each in values if each is not None) if several else value
    if (rule := roles["missing"]) not in (None, *get_args(MissingRule)):
        rules = ", ".join(get_args(MissingRule))
        raise ParameterError(f"`missing` must be one of {rules}, got {rule!r}")
    return ColumnRoles(**roles)


def refuse_lossy(values: Any, name: str) -> None:
    """Reject arrays whose meaning would be lost if numpy converted them to plain numbers."""
    if hasattr(values, "filled") and np.any(values.mask):
        raise DataError(f"{name} has masked values", FILL_IN)
    if (kind := getattr(getattr(values, "dtype", None), "kind", "")) in LOSSY_KINDS:
        raise DataError(
            f"{name} contains {LOSSY_KINDS[kind]}; expected real numbers",
            "convert them to columns of real numbers",
        )


def column_names(X: Matrix) -> tuple[Any, ...] | None:
    """Return the column names of a DataFrame or an Arrow table, None for other matrices."""
    names = getattr(X, "column_names", None)  # Arrow; in a DataFrame, at most one column
    return tuple(names if isinstance(names, list) else getattr(X, "columns", ())) or None


class FrameTable(Table):
    """A data frame, or a matrix with numbered columns, as a table."""

    def __init__(self, frame: Matrix, name: str = "X") -> None:
        self.name = name
        names = column_names(frame)
        if names is None:
            frame = np.asarray(frame)
            if frame.ndim != 2:
                raise DataError(f"{name} has {frame.ndim} dimensions; expected 2")
            columns = [*frame.T]
            names = tuple(range(1, len(columns) + 1))
        elif hasattr(frame, "iloc"):  # names may repeat
            columns = [frame.iloc[:, number].to_numpy() for number in range(len(names))]
        else:
            columns = [frame[each].to_numpy() for each in names]
        self.columns = unique_column_names([*map(str, names)], name)
        self.n_rows = len(frame)
        self._cells = [
            _cells(values, f"column '{each}' of {name}")
            for each, values in zip(names, columns, strict=True)
        ]

    def blocks(
        self, used: Container[object] | None = None, numbers: Container[object] = ()
    ) -> Iterator[TableBlock]:
        del used, numbers
        size = rows_at_once(len(self.columns))
        for start in range(0, self.n_rows, size):
            cells = [column[start : start + size] for column in self._cells]
            lines = np.arange(start, min(start + size, self.n_rows))
            yield TableBlock(cells, lines, f"{self.name}: row ")


def _cells(column: Any, name: str) -> Column:
    """Return a column as numbers, with nan for missing ones, or as text, with ""."""
    values: npt.NDArray[Any] = np.asarray(column)
    if values.dtype.kind == "M":
        texts = np.datetime_as_string(values, unit="auto").tolist()
        return ["" if text == "NaT" else text for text in texts]
    refuse_lossy(values, name)
    if values.dtype.kind in "iu":  # kept exact
        return values
    if values.dtype.kind not in "bf":
        cells = [None if _is_missing(cell) else cell for cell in values.tolist()]
        kinds = {type(cell) for cell in cells} - {type(None)}
        if not kinds or not all(issubclass(kind, NUMBERS) for kind in kinds):
            return ["" if cell is None else str(cell) for cell in cells]
        values = np.array([np.nan if cell is None else cell for cell in cells])
    with np.errstate(over="ignore"):  # infinite values are rejected
        return values.astype(np.float64)


NUMBERS = (int, float, np.number, np.bool_)


def _is_missing(cell: Any) -> bool:
    try:
        return cell is None or bool(cell != cell)
    except TypeError:  # pandas.NA
        return True


def is_table(inputs: Sequence[Matrix], roles: ColumnRoles) -> bool:
    """Whether inputs become features by column: data frames, or matrices with roles."""
    if any(hasattr(each, "tocsr") for each in inputs):
        for parameter in roles.named_parameters:
            raise DataError(f"X is a sparse matrix, without column names for `{parameter}`")
        return False
    names = [column_names(each) or () for each in inputs]
    distinct = all(each and len({n for n in each if type(n) is str}) == len(each) for each in names)
    return distinct or roles != ColumnRoles()


def encoded_rows(frame: Matrix, known: FeatureMap) -> tuple[Rows, TableFeatures]:
    """Return rows to predict as the features of a model."""
    rows = RowInput.from_table(FrameTable(frame), ColumnRoles())
    rows.encode_like(known)
    assert rows.features is not None
    return Rows.concatenate([block.rows for block in rows.blocks()]), rows.features
