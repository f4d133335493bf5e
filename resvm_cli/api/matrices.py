"""Matrices, data frames and labels: check them, and convert them to P and U for the engine.

Data frames are tables, as on the command line: the same code encodes the rows of a file and of a
data frame, so both give the same model.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from resvm_cli.data import notes
from resvm_cli.data.delimited import Column, Table, TableBlock, rows_at_once, unique_column_names
from resvm_cli.data.encoding import ColumnRoles, FeatureMap, MissingRule
from resvm_cli.data.features import TableFeatures
from resvm_cli.data.inputs import RowInput, encode_alike
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.data.pudata import MemoryData
from resvm_cli.data.scaling import FeatureStats
from resvm_cli.errors import DataError, ParameterError, warn_caller
from resvm_cli.parameters import KernelName, ScaleChoice
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, IntArray, Rows
from resvm_cli.run import Run

Matrix: TypeAlias = Any  # a numpy array, a scipy sparse matrix, a DataFrame or a list of rows
Label: TypeAlias = float | int | str
PathName: TypeAlias = str | os.PathLike[str]

NUMBERS = (int, float, np.number, np.bool_)
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
ENCODE = "pass a data frame: its text columns are encoded as categories"
MISSING = f"{FILL_IN}: `missing='mean'`"
N_LABELS = 20  # labels listed in an error
CLEAR_PAIRS = ([0, 1], [-1, 1])  # pairs of labels in which only 1 can be the positive one
NUMBERED = (
    "StackingClassifier and VotingClassifier replace the sorted labels with 0 and 1: inside them,"
    " set `positive_label` to 0 or 1"
)


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


def require_rows(X: Matrix, name: str) -> None:
    if 0 in getattr(X, "shape", ())[:1]:
        raise DataError(f"{name} has no rows: 0 sample(s); at least one is needed")


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
        require_rows(frame, name)
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
        cells = [None if is_missing(cell) else cell for cell in values.tolist()]
        kinds = {type(cell) for cell in cells} - {type(None)}
        if not kinds or not all(issubclass(kind, NUMBERS) for kind in kinds):
            return ["" if cell is None else str(cell) for cell in cells]
        values = np.array([np.nan if cell is None else cell for cell in cells])
    with np.errstate(over="ignore"):  # infinite values are rejected
        return values.astype(np.float64)


def is_missing(cell: Any) -> bool:
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


def as_matrix(X: Matrix, name: str = "X") -> Any:
    """Return X as a numpy array or a scipy CSR matrix of finite numbers."""
    refuse_lossy(X, name)
    require_consistent(X, name)
    is_sparse = hasattr(X, "tocsr")
    matrix: Any = X if is_sparse else _dense(X, name)
    if len(matrix.shape) != 2:
        raise DataError(f"{name} has {len(matrix.shape)} dimensions; expected 2")
    if is_sparse and matrix.format != "csr":
        matrix = matrix.tocsr()
        require_consistent(matrix, name)  # other formats may hold anything
    with np.errstate(over="ignore"):
        finite = np.isfinite(np.asarray(matrix.data if is_sparse else matrix, np.float64))
    if not finite.all():
        if is_sparse:
            raise DataError(f"{name} contains values that are not finite", FILL_IN)
        row, column = (int(places[0]) for places in np.nonzero(~finite))
        where = f"row {row}, column {column} of {name}"
        raise DataError(f"{where}: {matrix[row, column]}; every value must be finite", MISSING)
    return matrix


def require_consistent(X: Matrix, name: str = "X") -> None:
    """Reject no rows, and a sparse matrix that would crash scipy: its indices do not fit."""
    require_rows(X, name)
    form = getattr(X, "format", None)
    try:
        if form == "coo":
            type(X)((X.data, (X.row, X.col)), shape=X.shape)  # checks the indices
        elif form in ("csr", "csc", "bsr"):
            # checking may shorten the arrays of a matrix, so it is done on another with the same
            type(X)((X.data, X.indices, X.indptr), shape=X.shape).check_format(full_check=True)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} is not a consistent sparse matrix: {error}") from None


def _dense(X: Matrix, name: str) -> FloatArray:
    try:
        values = np.asarray(X)
        refuse_lossy(values, name)  # in a list or a data frame
        with np.errstate(over="ignore"):  # infinite values are rejected
            return np.asarray(values, np.float64)
    except DataError:
        raise
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} is not a matrix of numbers: {error}", ENCODE) from None


def checked_names(name: str, values: Any, n_rows: int) -> list[str] | None:
    """Return one string per row of X; the index of a Series is ignored."""
    if values is None:
        return None
    try:
        names = [str(each) for each in values]
    except TypeError:
        raise ParameterError(f"`{name}` must have one value per row, got {values!r}") from None
    if len(names) != n_rows:
        raise ParameterError(f"`{name}` has {len(names):,} values, but X has {n_rows:,} rows")
    return names


def _is_clear(labels: npt.NDArray[Any], negative_label: Label | None) -> bool:
    """Whether 1 can only mean positive: all other labels are 0, or all are -1."""
    present = {value for value in labels.tolist() if not is_missing(value)}
    others = {value for value in present if value != negative_label}
    return others in ({1}, {0, 1}, {-1, 1})


def _unknown_label(message: str, labels: npt.NDArray[Any]) -> DataError:
    listed = ", ".join(sorted({repr(value) for value in labels.tolist()})[:N_LABELS])
    return DataError(message, f"the labels are {listed}; set `positive_label`")


def find_classes(labels: npt.NDArray[Any], negative: Any) -> npt.NDArray[Any]:
    """Return the two labels of an estimator's known positives and unlabeled rows, sorted."""
    from sklearn.utils.multiclass import type_of_target

    others: npt.NDArray[Any] = labels
    if negative is not None:
        others = labels if np.ndim(negative) else labels[labels != negative]
        if np.ndim(negative) or len(np.unique(others)) != 2:
            raise ParameterError(
                f"`negative_label` is {negative!r}; expected a label of y that leaves two others"
            )
    kind = type_of_target(others, input_name="y", raise_unknown=True)
    if kind != "binary":
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}."
        )
    classes = np.unique(others)
    if len(classes) < 2:
        raise ValueError(f"y has only one class, {classes.tolist()[0]!r}; two are needed")
    return classes


def find_positive(classes: npt.NDArray[Any], chosen: Any, *, is_array: bool = True) -> Any:
    """Return the class that marks known positives: the chosen one, or else the larger.

    Text is not guessed, except in numpy arrays, because scikit-learn's ``check_estimator`` uses it.
    """
    labels = classes.tolist()
    if chosen is None:
        if not is_array and isinstance(labels[0], str):
            raise _unknown_label("cannot tell which label marks known positives", classes)
        if labels not in CLEAR_PAIRS:
            text = (
                f"{labels[1]!r} is taken as the label of known positives and {labels[0]!r} as"
                " the label of unlabeled rows; set positive_label to be sure"
            )
            warn_caller([text])
        return classes[1]
    if chosen not in labels:
        raise ParameterError(
            f"`positive_label` is {chosen!r}, but the labels in y are"
            f" {' and '.join(map(repr, labels))}",
            NUMBERED if labels == [0, 1] else None,
        )
    return classes[labels.index(chosen)]


def fill_labels(y: Any, positive: Any, negative: Any, other: Any = None) -> Any:
    """Return y with a label for its missing ones: that of unlabeled rows, or else 0 or text."""
    array = np.asarray(y, object if isinstance(y, list) else None)
    cells = array.tolist() if array.ndim == 1 else []
    if not any(map(is_missing, cells)):
        return y
    if positive is None:
        raise DataError(
            "y has missing labels (NaN or None)",
            "set `positive_label`; rows without a label are then unlabeled",
        )
    present = [cell for cell in cells if not is_missing(cell)]
    is_text = any(isinstance(cell, str) for cell in present)
    unused = ["unlabeled"] if is_text else [0, -1, 1]
    others = [cell for cell in (*present, *unused) if cell not in (positive, negative)]
    other = others[0] if other is None else other
    filled = [other if is_missing(cell) else cell for cell in cells]
    return np.array(filled, object if is_text else None)


def require_labels(X: Matrix, y: Any) -> None:
    """Reject a column name, and indexes of X and y with the same labels in different orders.

    If the labels differ, rows are matched by position, as in scikit-learn.
    """
    if isinstance(y, str):
        raise DataError(
            f"y is a column name, '{y}'; expected the column itself",
            f"pass X.drop(columns={y!r}) and X[{y!r}]",
        )
    if not (hasattr(X, "iloc") and hasattr(y, "iloc")) or X.index.equals(y.index):
        return
    if Counter(X.index.tolist()) == Counter(y.index.tolist()):
        raise DataError(
            "the indexes of X and y have the same labels in different orders",
            "pass y.loc[X.index] to match rows by label, or y.to_numpy() to match by position",
        )


def choose_sets(
    X: Matrix, y: Any, positives: Matrix, unlabeled: Matrix, function: str
) -> tuple[Matrix, Any, Matrix]:
    """Return the rows, their labels, and unlabeled rows if P and U are two arguments."""
    if positives is None and unlabeled is None and X is not None and y is not None:
        return X, y, None
    if positives is None or unlabeled is None or X is not None or y is not None:
        raise TypeError(f"{function}() takes either X and y, or positives and unlabeled")
    return positives, None, unlabeled


def stacked(X: Matrix, unlabeled: Matrix) -> Any:
    """Return the matrices of P and U as one."""
    from scipy.sparse import issparse, vstack

    matrices = as_matrix(X, "P"), as_matrix(unlabeled, "U")
    widths = [matrix.shape[1] for matrix in matrices]
    if widths[0] != widths[1]:
        raise DataError(f"P has {widths[0]:,} columns, but U has {widths[1]:,}")
    return vstack(matrices, "csr") if any(map(issparse, matrices)) else np.vstack(matrices)


@dataclass(frozen=True, eq=False)
class LabeledRows:
    """Rows to learn from, and which of them are known positives or known negatives."""

    rows: Any  # a matrix, or Rows if ``tables`` encode the columns
    positive: BoolArray
    negative: BoolArray
    label: Label | None
    given: Sequence[Matrix]  # X, or P and U
    sizes: Sequence[int]
    numbers: IntArray  # of the rows among those given, as rows with missing values may be dropped
    tables: Sequence[TableFeatures] = ()
    ids: Sequence[str] | None = None  # from a column

    @property
    def order(self) -> IntArray:
        """The numbers of the rows of P, then of U, then of known negatives."""
        masks = self.positive, ~(self.positive | self.negative), self.negative
        return np.concatenate([self.numbers[mask] for mask in masks])

    def index(self, ids: Any) -> Any:
        """Return the labels of the given rows: ids, or the index of data frames, or 0, 1, ..."""
        n_rows = sum(self.sizes)
        if ids is not None:
            checked_names("ids", ids, n_rows)
            return np.fromiter(ids, object, n_rows)
        if self.ids is not None:
            index = np.full(n_rows, "", object)
            index[self.numbers] = self.ids
            return index
        if all(hasattr(each, "iloc") and hasattr(each, "index") for each in self.given):
            first, *others = (each.index for each in self.given)
            return first.append(others) if others else first
        return np.concatenate([np.arange(size) for size in self.sizes])

    def data(
        self,
        groups: Sequence[Any] | None,
        scale: ScaleChoice | None,
        *,
        kernel: KernelName = "rbf",
        zero_based: bool = False,
        weights: npt.ArrayLike | None = None,
        ids: Sequence[str] | None = None,
    ) -> MemoryData:
        """Return P and U for the engine; ``ids`` name the given rows."""
        source = TrainingInput(scale=scale, zero_based=zero_based).for_kernel(kernel)
        n_rows, order, n_columns = sum(self.sizes), self.order, 0
        if not self.tables:
            n_columns = int(self.rows.shape[1])
            if source.precomputed and n_rows != n_columns:
                raise DataError(
                    f"X has {n_rows:,} rows and {n_columns:,} columns; a precomputed kernel"
                    " matrix must be square"
                )
        # as strings, as in a file: folds are drawn in the order of the sorted names
        group_names = checked_names("groups", groups, n_rows)
        if weights is not None:
            refuse_lossy(weights, "weights")
            weights = np.asarray(weights, np.float64)
            if weights.shape not in ((n_rows,), (self.sizes[0],)):
                raise DataError(f"{weights.size:,} weights, but X has {n_rows:,} rows")
            weights = weights[order[: int(self.positive.sum())]]
        features: FeatureMap | None = None
        if self.tables:
            features = replace(self.tables[0].map, missing=self.tables[0].missing)
        columns = None if source.precomputed else column_names(self.given[0]) or range(n_columns)
        data = MemoryData.from_matrix(
            self.rows,
            self.positive,
            self.negative,
            groups=None if group_names is None else np.array(group_names, object)[order],
            weights=weights,
            ids=None if ids is None else [ids[row] for row in order.tolist()],
            feature_names=columns if features is None else features.names,
            encoding=None if features is None else features.content(),
            scale=source.scale,
            precomputed=source.precomputed,
            zero_based=source.zero_based,
            features=None if features is not None else n_columns + source.precomputed,
            positive_label=None if isinstance(self.label, str | None) else float(self.label),
        )
        if features is not None:
            data.notes[:0] = self._notes(features, data)
        return data

    def _notes(self, features: FeatureMap, data: MemoryData) -> list[str]:
        """Return the notes on columns that the command line gives."""
        known = self.tables[0].is_known
        found = [*notes.notes_on_training(self.tables, known=known)]
        if not known:
            unlabeled, positive = FeatureStats(), FeatureStats()
            positive.add(data.positives)
            for rows in (*data.unlabeled(), data.negatives):
                unlabeled.add(rows)
            found += notes.give_answer_away(features.columns, unlabeled, positive)
        return found


def labeled_rows(
    X: Matrix,
    y: npt.ArrayLike | None,
    label: Label | None,
    negative_label: Label | None,
    run: Run,
    *,
    unlabeled: Matrix = None,
    roles: ColumnRoles | None = None,
    known: FeatureMap | None = None,
    kernel: KernelName = "rbf",
) -> LabeledRows:
    """Check rows and labels; without ``label``, 1 marks known positives if others are 0 or -1.

    Without ``y``, X contains P, and ``unlabeled`` contains U.
    """
    given, roles = [X] if unlabeled is None else [X, unlabeled], roles or ColumnRoles()
    if known is None:
        roles = TrainingInput(table=roles).for_kernel(kernel).table
    tables: list[TableFeatures] = []
    ids = None
    if kernel != "precomputed" and is_table(given, roles):
        names = ["X"] if unlabeled is None else ["P", "U"]
        frames = [FrameTable(each, name) for each, name in zip(given, names, strict=True)]
        sizes = [frame.n_rows for frame in frames]
        tables = encode_alike([RowInput.from_table(frame, roles) for frame in frames], known)
        blocks = [list(table.blocks()) for table in tables]
        if known is None and (note := notes.remark_on_categories(tables[0])):
            run.note(note)
        rows = Rows.concatenate([block.rows for each in blocks for block in each])
        kept = [np.arange(sum(map(len, each))) for each in blocks]
        kept = [table.rows_of_file(each) for table, each in zip(tables, kept, strict=True)]
        numbers = np.concatenate([kept[0], *(sizes[0] + each for each in kept[1:])])
        if roles.row_id is not None:
            ids = [row_id for each in blocks for block in each for row_id in block.comments or ()]
    else:
        rows = as_matrix(X)
        sizes = [rows.shape[0]]
        if unlabeled is not None:
            rows = stacked(rows, unlabeled)
            sizes.append(rows.shape[0] - sizes[0])
        numbers = np.arange(rows.shape[0])
    n_rows = sum(sizes)
    is_open = label is None
    if unlabeled is not None:
        positive = np.arange(n_rows) < sizes[0]
        negative = np.zeros(n_rows, bool)
    else:
        require_labels(X, y)
        refuse_lossy(y, "y")
        labels = np.asarray(y)
        if labels.dtype == object:  # pandas.NA cannot be compared
            labels = np.frompyfunc(lambda cell: None if is_missing(cell) else cell, 1, 1)(labels)
        if labels.shape != (n_rows,):
            shape = "x".join(map(str, labels.shape))
            raise DataError(f"y has {shape} labels, but X has {n_rows:,} rows")
        label, positive, negative = _read_labels(labels, label, negative_label)
    positive, negative = positive[numbers], negative[numbers]
    n_pos, n_unl = int(positive.sum()), int((~(positive | negative)).sum())
    ratio = 1.0 if is_open and unlabeled is None else notes.SWAPPED_RATIO
    if is_open and (note := notes.swapped(n_pos, n_unl, ratio=ratio)):
        run.warn(note)
    return LabeledRows(rows, positive, negative, label, given, sizes, numbers, tables, ids)


def _read_labels(
    labels: npt.NDArray[Any], label: Label | None, negative_label: Label | None
) -> tuple[Label, BoolArray, BoolArray]:
    """Return the label of known positives, and which rows are known positives or negatives."""
    for name, given in (("positive_label", label), ("negative_label", negative_label)):
        if given is not None and np.ndim(given):
            raise ParameterError(f"`{name}` must be one label, got {given!r}")
    if label is None:
        if not _is_clear(labels, negative_label):
            raise _unknown_label("cannot tell which label marks known positives", labels)
        label = 1
    positive = np.asarray(labels == label, bool)
    negative = np.zeros(len(labels), bool)
    if negative_label is not None:
        negative = np.asarray(labels == negative_label, bool)
    if not positive.any():
        raise _unknown_label(f"no row has {label!r}, the label of known positives", labels)
    if positive.all():
        raise DataError(f"every row has the label {label}; there are no unlabeled rows")
    if negative_label is not None and negative_label == label:
        raise ParameterError("`positive_label` and `negative_label` are the same label")
    if negative_label is not None and not negative.any():
        raise DataError(
            f"no row has {negative_label!r}, the label of known negatives",
            "leave `negative_label` out if no row is a known negative",
        )
    if (positive | negative).all():
        raise DataError("every row is a known positive or negative; there are no unlabeled rows")
    return label, positive, negative
