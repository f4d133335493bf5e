"""Models and rows from files."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from resvm_cli.api.matrices import ColumnLayout, PathName
from resvm_cli.api.results import Model
from resvm_cli.errors import DataError
from resvm_cli.model_files.directory import load_with_out_of_bag
from resvm_cli.rows import FloatArray


class SvmlightData(NamedTuple):
    """The contents of an svmlight file.

    Attributes
    ----------
    X : scipy.sparse.csr_matrix
        One row per line.
    y : array of float
        Labels; nan where a line has none.
    ids : list of str
        Trailing comments, empty where a line has none.
    """

    X: Any
    y: FloatArray
    ids: list[str]


def load(path: PathName) -> Model:
    """Load a model that ``resvm train`` or ``Model.save`` wrote.

    Parameters
    ----------
    path : str or path-like
        The model directory.

    Returns
    -------
    Model
        The same model, without ``oob``, ``notes`` and the names of columns.

    Raises
    ------
    ModelError
        If there is no such model, or it is damaged.

    Examples
    --------
    >>> import numpy as np
    >>> import resvm_cli
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[:100] += 2
    >>> model = resvm_cli.fit(X, np.arange(300) < 40, n_models=5)
    >>> manifest = model.save("example-model", force=True)
    >>> again = resvm_cli.load("example-model")
    >>> bool((again.votes(X) == model.votes(X)).all())
    True
    """
    stored = load_with_out_of_bag(os.fspath(path), required=False)
    columns = None
    if stored.encoding is not None:  # a table's features, by name
        names = tuple(stored.encoding.names)
        columns = ColumnLayout(len(names), names)
    return Model(stored, stored.out_of_bag, columns=columns)


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
        If a line is not in the format, with the number of the line.
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

    from resvm_cli.files.svmlight import read_file

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
