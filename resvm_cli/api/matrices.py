"""Matrices: read them from files, check them, and convert them to P and U for the engine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from resvm_cli.errors import DataError, Message, ParameterError
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.parameters import KernelName, ScaleChoice
from resvm_cli.records import dataclass
from resvm_cli.rows import BoolArray, FloatArray, IntArray
from resvm_cli.running.run import Run
from resvm_cli.tables.encoding import FeatureMap, MappedColumn
from resvm_cli.training.input import TrainingInput

Matrix: TypeAlias = Any  # a numpy array, a scipy sparse matrix, a DataFrame or a list of rows
Label: TypeAlias = float | int | str
PathName: TypeAlias = str | os.PathLike[str]

ENCODE = "leave out text columns, or encode them as numbers, one column per value"
FILL_IN = "leave such rows out, or fill in a number such as the column mean"
SAME_COLUMNS = "give the same columns as in training, in the same order"
LOSSY_KINDS = {"c": "complex numbers", "M": "dates", "m": "time spans"}
N_LABELS = 20  # labels listed in an error
N_LISTED = 3  # differing columns named in an error


def as_matrix(X: Matrix, name: str = "X") -> Any:
    """Return X as a numpy array or a scipy CSR matrix of finite numbers."""
    refuse_lossy(X, name)
    is_sparse = hasattr(X, "tocsr")
    matrix: Any = X if is_sparse else _dense(X, name)
    if len(matrix.shape) != 2:
        raise DataError(f"{name} has {len(matrix.shape)} dimensions; expected 2")
    matrix = matrix.tocsr() if is_sparse else matrix
    with np.errstate(over="ignore"):
        finite = np.isfinite(np.asarray(matrix.data if is_sparse else matrix, np.float64))
    if not finite.all():
        if not is_sparse:
            row, column = (int(places[0]) for places in np.nonzero(~finite))
            where = f"row {row}, column {_column_name(X, column)} of {name}"
            raise DataError(f"{where}: {matrix[row, column]}; every value must be finite", FILL_IN)
        raise DataError(f"{name} contains values that are not finite", FILL_IN)
    return matrix


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


@dataclass(frozen=True)
class ColumnLayout:
    """How many columns a matrix has and, for a DataFrame, their names."""

    count: int
    names: tuple[Any, ...] | None

    @classmethod
    def from_matrix(cls, X: Matrix, matrix: Any) -> ColumnLayout:
        """Return the layout of X; ``matrix`` is X as returned by ``as_matrix``."""
        return cls(int(matrix.shape[1]), _column_names(X))

    def encoding(self) -> dict[str, Any] | None:
        """Return how columns become features, as for a table; None unless all have names."""
        names = self.names or ()
        if not names or len({name for name in names if type(name) is str}) < len(names):
            return None
        columns = [MappedColumn(name, "number", first) for first, name in enumerate(names, 1)]
        return FeatureMap(columns, list(names), "refuse").content()

    def require(self, found: ColumnLayout, name: str = "X") -> None:
        """Reject X if the number, names or order of its columns differ."""
        if found.count != self.count:
            message = (
                f"{name} has {found.count:,} columns, but the model was trained on {self.count:,}"
            )
        elif self.names is None or found.names is None or found.names == self.names:
            return
        else:
            message = f"the columns of {name} differ from the training columns"
        raise DataError("; ".join([message, *self._differences(found)]), SAME_COLUMNS)

    def _differences(self, found: ColumnLayout) -> list[str]:
        """Describe the first names that differ."""
        if self.names is None or found.names is None:
            return []
        new = [repr(name) for name in found.names if name not in self.names]
        missing = [repr(name) for name in self.names if name not in found.names]
        if new or missing:
            listed = {"not in training": new, "missing": missing}
            return [
                f"{what}: {', '.join(some[:N_LISTED])}" for what, some in listed.items() if some
            ]
        pairs = enumerate(zip(found.names, self.names, strict=False))
        moved = [
            f"column {at} is {one!r}, not {other!r}" for at, (one, other) in pairs if one != other
        ]
        return moved[:N_LISTED]


def checked_names(name: str, values: Any, n_rows: int) -> list[str] | None:
    """Return one string per row of X; the index of a Series is ignored."""
    if values is None:
        return None
    try:
        names = [str(each) for each in values]
    except TypeError:
        raise ParameterError(
            "{" + name + "} must have one value per row, got {value!r}", value=values
        ) from None
    if len(names) != n_rows:
        raise ParameterError(
            "{" + name + "} has {found:,} values, but X has {n_rows:,} rows",
            found=len(names),
            n_rows=n_rows,
        )
    return names


def _is_clear(labels: npt.NDArray[Any], negative_label: Label | None) -> bool:
    """Whether 1 can only mean positive: all other labels are 0, or all are -1."""
    present = {value for value in labels.tolist() if value is not None and value == value}
    others = {value for value in present if value != negative_label}
    return others in ({1}, {0, 1}, {-1, 1})


def _unknown_label(message: str, labels: npt.NDArray[Any]) -> DataError:
    listed = ", ".join(sorted({repr(value) for value in labels.tolist()})[:N_LABELS])
    return DataError(
        message, Message("the labels are {listed}; set {positive_label}", listed=listed)
    )


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
    label: Label
    columns: ColumnLayout
    negative: BoolArray

    @classmethod
    def from_arrays(
        cls, X: Matrix, y: npt.ArrayLike, label: Label | None, negative_label: Label | None = None
    ) -> LabeledMatrix:
        """Check labels; without ``label``, 1 marks known positives if all others are 0 or -1."""
        refuse_lossy(y, "y")
        matrix, labels = as_matrix(X), np.asarray(y)
        if labels.shape != (matrix.shape[0],):
            shape = "x".join(map(str, labels.shape))
            raise DataError(f"y has {shape} labels, but X has {matrix.shape[0]:,} rows")
        require_same_order(X, y)
        for name, one in (("positive_label", label), ("negative_label", negative_label)):
            if one is not None and np.ndim(one):
                raise ParameterError("{" + name + "} must be one label, got {value!r}", value=one)
        try:
            if label is None and not _is_clear(labels, negative_label):
                raise _unknown_label("cannot tell which label marks known positives", labels)
            label = 1 if label is None else label
            positive = np.asarray(labels == label, bool)
            negative = np.zeros(len(labels), bool)
            if negative_label is not None:
                negative = np.asarray(labels == negative_label, bool)
        except TypeError:  # pandas.NA cannot be compared
            raise DataError(
                "y has missing values", "give unlabeled rows a label such as 0"
            ) from None
        if not positive.any():
            raise _unknown_label(f"no row has {label!r}, the label of known positives", labels)
        if positive.all():
            raise DataError(f"every row has the label {label}; there are no unlabeled rows")
        if negative_label is not None and negative_label == label:
            raise ParameterError("{positive_label} and {negative_label} are the same label")
        if negative_label is not None and not negative.any():
            raise DataError(
                f"no row has {negative_label!r}, the label of known negatives",
                Message("leave {negative_label} out if no row is a known negative"),
            )
        if (positive | negative).all():
            raise DataError(
                "every row is a known positive or negative; there are no unlabeled rows"
            )
        return cls(matrix, positive, label, ColumnLayout.from_matrix(X, matrix), negative)

    @property
    def order(self) -> IntArray:
        """The row indices, first of P, then of U, then of known negatives."""
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
        of_rows = None if names is None else np.array(names, object)[self.order]
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
            groups=of_rows,
            weights=weights,
            ids=None if ids is None else [ids[row] for row in self.order.tolist()],
            feature_names=None if source.precomputed else self.columns.names or range(n_columns),
            encoding=None if source.precomputed else self.columns.encoding(),
            scale=source.scale,
            precomputed=source.precomputed,
            zero_based=source.zero_based,
            features=int(n_columns) + source.precomputed,
            positive_label=None if isinstance(self.label, (str, bytes)) else float(self.label),
        )


def labeled_rows(
    X: Matrix,
    y: npt.ArrayLike,
    positive_label: Label | None,
    negative_label: Label | None,
    run: Run,
) -> LabeledMatrix:
    """Check rows and labels; without ``positive_label``, warn if most rows are positive."""
    labeled = LabeledMatrix.from_arrays(X, y, positive_label, negative_label)
    n_pos = int(labeled.positive.sum())
    n_unl = len(labeled.positive) - n_pos - int(labeled.negative.sum())
    if positive_label is None and n_pos > n_unl:
        run.notice(
            Message(
                "{n_pos:,} rows have the label 1 (known positives), but only {n_unl:,} rows are"
                " unlabeled: are the labels swapped? set {positive_label} to be sure",
                n_pos=n_pos,
                n_unl=n_unl,
            )
        )
    return labeled


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
        Number of columns. Default: the largest feature index in the file.

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

    from resvm_cli.tables.inputs import read_file

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
