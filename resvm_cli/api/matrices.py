"""Matrices: read them from files, check them, and convert them to P and U for the engine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli.data.encoding import FeatureMap, MappedColumn
from resvm_cli.data.notes import swapped
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.data.pudata import MemoryData
from resvm_cli.errors import DataError, ParameterError, warn_caller
from resvm_cli.parameters import KernelName, ScaleChoice
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, IntArray
from resvm_cli.run import Run

Matrix: TypeAlias = Any  # a numpy array, a scipy sparse matrix, a DataFrame or a list of rows
Label: TypeAlias = float | int | str
PathName: TypeAlias = str | os.PathLike[str]

ENCODE = "leave out text columns, or encode them as numbers, one column per value"
FILL_IN = "leave such rows out, or fill in a number such as the column mean"
LOSSY_KINDS = {"c": "complex numbers", "M": "dates", "m": "time spans"}
N_LABELS = 20  # labels listed in an error
CLEAR_PAIRS = ([0, 1], [-1, 1])  # pairs of labels in which only 1 can be the positive one
NUMBERED = (
    "StackingClassifier and VotingClassifier replace the sorted labels with 0 and 1: inside them,"
    " set `positive_label` to 0 or 1"
)


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
        if not is_sparse:
            row, column = (int(places[0]) for places in np.nonzero(~finite))
            where = f"row {row}, column {_column_name(X, column)} of {name}"
            raise DataError(f"{where}: {matrix[row, column]}; every value must be finite", FILL_IN)
        raise DataError(f"{name} contains values that are not finite", FILL_IN)
    return matrix


def require_consistent(X: Matrix, name: str = "X") -> None:
    """Reject a sparse matrix whose indices do not fit its shape, which would crash scipy."""
    form = getattr(X, "format", None)
    try:
        if form == "coo":
            type(X)((X.data, (X.row, X.col)), shape=X.shape)  # checks the indices
        elif form in ("csr", "csc", "bsr"):
            # checking may shorten the arrays of a matrix, so it is done on another with the same
            type(X)((X.data, X.indices, X.indptr), shape=X.shape).check_format(full_check=True)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} is not a consistent sparse matrix: {error}") from None


def refuse_lossy(values: Any, name: str) -> None:
    """Reject arrays whose meaning would be lost if numpy converted them to plain numbers."""
    if hasattr(values, "filled") and np.any(values.mask):
        raise DataError(f"{name} has masked values", FILL_IN)
    is_frame = hasattr(values, "columns") and hasattr(values, "dtypes")
    dtypes = values.dtypes if is_frame else [getattr(values, "dtype", None)]
    for column, dtype in enumerate(dtypes):
        if (kind := getattr(dtype, "kind", "")) in LOSSY_KINDS:
            where = f"column {_column_name(values, column)} of {name}" if is_frame else name
            raise DataError(
                f"{where} contains {LOSSY_KINDS[kind]}; expected real numbers",
                "convert them to columns of real numbers",
            )


def _dense(X: Matrix, name: str) -> FloatArray:
    try:
        values = X if hasattr(X, "iloc") else np.asarray(X)
        refuse_lossy(values, name)  # in a list or an Arrow table
        with np.errstate(over="ignore"):  # infinite values are rejected
            return np.asarray(values, np.float64)
    except DataError:
        raise
    except (TypeError, ValueError) as error:
        if not hasattr(X, "iloc"):
            raise DataError(f"{name} is not a matrix of numbers: {error}", ENCODE) from None
    columns = []
    for column in range(X.shape[1]):
        try:
            columns.append(X.iloc[:, column].to_numpy(np.float64, na_value=np.nan))
        except (TypeError, ValueError):
            where = f"column {_column_name(X, column)} of {name}"
            raise DataError(f"{where} contains values that are not numbers", ENCODE) from None
    return np.column_stack(columns)


def _column_name(X: Matrix, column: int) -> str:
    names = _column_names(X)
    return str(column) if names is None else f"'{names[column]}'"


def _column_names(X: Matrix) -> tuple[Any, ...] | None:
    """Return the column names of a DataFrame or an Arrow table, None for other matrices."""
    names = getattr(X, "column_names", None)  # Arrow; in a DataFrame, at most one column
    return tuple(names if isinstance(names, list) else getattr(X, "columns", ())) or None


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
    present = {value for value in labels.tolist() if value is not None and value == value}
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
        raise ValueError(f"y has only one class, {classes[0]!r}; two are needed")
    return classes


def find_positive(classes: npt.NDArray[Any], chosen: Any) -> Any:
    """Return the class that marks known positives: the chosen one, or else the larger."""
    labels = classes.tolist()
    if chosen is None:
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


def require_same_order(X: Matrix, y: Any) -> None:
    """Reject a DataFrame and a Series whose indexes have the same labels in different orders.

    If the labels differ, rows are matched by position, as in scikit-learn.
    """
    if not (hasattr(X, "iloc") and hasattr(y, "iloc")) or X.index.equals(y.index):
        return
    if Counter(X.index.tolist()) == Counter(y.index.tolist()):
        raise DataError(
            "the indexes of X and y have the same labels in different orders",
            "pass y.loc[X.index] to match rows by label, or y.to_numpy() to match by position",
        )


def row_index(X: Matrix, ids: Any, n_rows: int) -> Any:
    """Return the labels of the rows of X: ``ids``, or the index of a DataFrame, or 0, 1, ..."""
    if ids is not None:
        checked_names("ids", ids, n_rows)
        return np.fromiter(ids, object, n_rows)
    has_index = hasattr(X, "iloc") and hasattr(X, "index")
    return X.index if has_index else np.arange(n_rows)


@dataclass(frozen=True, eq=False)
class LabeledMatrix:
    """A matrix, and which of its rows are known positives or known negatives."""

    matrix: Any
    positive: BoolArray
    negative: BoolArray
    label: Label
    names: tuple[Any, ...] | None  # of the columns

    @property
    def order(self) -> IntArray:
        """The row indices of P, then of U, then of known negatives."""
        masks = self.positive, ~(self.positive | self.negative), self.negative
        return np.concatenate([np.flatnonzero(mask) for mask in masks])

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
        """Return P and U for the engine; ``ids`` name the rows of X."""
        source = TrainingInput(scale=scale, zero_based=zero_based).for_kernel(kernel)
        n_rows, n_columns = self.matrix.shape
        if source.precomputed and n_rows != n_columns:
            raise DataError(
                f"X has {n_rows:,} rows and {n_columns:,} columns; a precomputed kernel"
                " matrix must be square"
            )
        # as strings, as in a file: folds are drawn in the order of the sorted names
        names = checked_names("groups", groups, n_rows)
        if weights is not None:
            refuse_lossy(weights, "weights")
            weights = np.asarray(weights, np.float64)
            if weights.shape != self.positive.shape:
                raise DataError(f"{weights.size:,} weights, but X has {n_rows:,} rows")
            weights = weights[self.positive]
        return MemoryData.from_matrix(
            self.matrix,
            self.positive,
            self.negative,
            groups=None if names is None else np.array(names, object)[self.order],
            weights=weights,
            ids=None if ids is None else [ids[row] for row in self.order.tolist()],
            feature_names=None if source.precomputed else self.names or range(n_columns),
            encoding=None if source.precomputed else self._encoding(),
            scale=source.scale,
            precomputed=source.precomputed,
            zero_based=source.zero_based,
            features=int(n_columns) + source.precomputed,
            positive_label=None if isinstance(self.label, (str, bytes)) else float(self.label),
        )

    def _encoding(self) -> dict[str, Any] | None:
        """Return how columns become features, as in a table; None unless names are distinct."""
        names = self.names or ()
        if not names or len({name for name in names if type(name) is str}) < len(names):
            return None
        columns = [MappedColumn(name, "number", first) for first, name in enumerate(names, 1)]
        return FeatureMap(columns, list(names), "refuse").content()


def labeled_rows(
    X: Matrix,
    y: npt.ArrayLike,
    label: Label | None,
    negative_label: Label | None,
    run: Run,
) -> LabeledMatrix:
    """Check rows and labels; without ``label``, 1 marks known positives if others are 0 or -1."""
    refuse_lossy(y, "y")
    matrix, labels = as_matrix(X), np.asarray(y)
    if labels.shape != (matrix.shape[0],):
        shape = "x".join(map(str, labels.shape))
        raise DataError(f"y has {shape} labels, but X has {matrix.shape[0]:,} rows")
    require_same_order(X, y)
    for name, given in (("positive_label", label), ("negative_label", negative_label)):
        if given is not None and np.ndim(given):
            raise ParameterError(f"`{name}` must be one label, got {given!r}")
    is_open = label is None
    try:
        if label is None:
            if not _is_clear(labels, negative_label):
                raise _unknown_label("cannot tell which label marks known positives", labels)
            label = 1
        positive = np.asarray(labels == label, bool)
        negative = np.zeros(len(labels), bool)
        if negative_label is not None:
            negative = np.asarray(labels == negative_label, bool)
    except TypeError:  # pandas.NA cannot be compared
        raise DataError("y has missing values", "give unlabeled rows a label such as 0") from None
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
    n_pos, n_unl = int(positive.sum()), int((~(positive | negative)).sum())
    if is_open and (note := swapped(n_pos, n_unl, ratio=1.0)):
        run.warn(note)
    return LabeledMatrix(matrix, positive, negative, label, _column_names(X))


class SvmlightData(NamedTuple):
    """The contents of an svmlight file.

    Attributes
    ----------
    X : scipy.sparse.csr_matrix
        One row per line.
    y : array of float
        Labels; nan if a line has none.
    ids : list of str
        Trailing comments; empty if a line has none.
    """

    X: Any
    y: FloatArray
    ids: list[str]


def read_svmlight(
    path: PathName, *, zero_based: bool = False, features: int | None = None
) -> SvmlightData:
    """Read an svmlight file, plain or compressed.

    Parameters
    ----------
    path : str or path-like
        The file.
    zero_based : bool, default=False
        Whether features are numbered from 0.
    features : int, optional
        Number of columns. Default: up to the largest feature index in the file.

    Returns
    -------
    SvmlightData
        ``X`` (a CSR matrix), ``y`` (labels) and ``ids`` (trailing comments).

    Raises
    ------
    ValueError
        If a line is malformed; the message gives its number.
    FileError
        If the file cannot be read.

    Examples
    --------
    >>> import resvm_cli
    >>> with open("example.svm", "w") as file:
    ...     count = file.write("1 1:0.5 3:2 # first\\n0 2:1 # second\\n")
    >>> X, y, ids = resvm_cli.read_svmlight("example.svm")
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> y, ids
    (array([1., 0.]), ['first', 'second'])
    """
    from scipy.sparse import csr_matrix

    from resvm_cli.data.inputs import read_file

    block = read_file(os.fspath(path), zero_based=zero_based, with_comments=True)
    rows = block.rows
    first = 0 if zero_based else 1
    width = rows.max_index + 1 - first if features is None else features
    if rows.max_index - first >= width:
        raise DataError(f"{path}: has feature {rows.max_index}, more than features={features}")
    matrix = csr_matrix(
        (rows.values, rows.indices - first, rows.indptr), shape=(len(rows), max(0, width))
    )
    return SvmlightData(matrix, block.labels, list(block.comments or ()))
