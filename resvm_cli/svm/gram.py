"""Kernel values that are given: rows of LIBSVM's precomputed kernel.

Such a row is ``0:serial 1:K(x, x1) 2:K(x, x2) ...``: its own number in the one matrix, and its
value with the row of each number. A value is looked up by its index, so those of zero may be left
out; LIBSVM itself looks it up by its place in the line, and needs them all.
"""

from __future__ import annotations

import numpy as np

from resvm_cli.errors import DataError
from resvm_cli.rows import Columns, FloatArray, IntArray, Rows

SERIAL = 0  # the index of a row's own number
ROW_FORMAT = "a row of the precomputed kernel is 0:serial 1:K(x,x1) 2:K(x,x2) ..."
# Values that were rounded, or come from single precision, may differ by so much of the largest.
ASYMMETRY = 1e-4


def has_serial(rows: Rows) -> IntArray:
    """The numbers of the rows that have an index 0, which comes first."""
    filled = np.flatnonzero(rows.lengths)
    given: IntArray = filled[rows.indices[rows.indptr[filled]] == SERIAL]
    return given


def wrong_serials(rows: Rows) -> list[tuple[int, str]]:
    """The rows whose serial number is missing or senseless, and what is wrong with it."""
    numbers = np.full(len(rows), np.nan)
    given = has_serial(rows)
    numbers[given] = rows.values[rows.indptr[given]]
    wrong = np.flatnonzero(~((numbers >= 1) & (numbers == np.floor(numbers))))
    return [(int(row), _fault(numbers[row])) for row in wrong]


def _fault(number: float) -> str:
    if np.isnan(number):
        return "its serial number, 0:N, is missing"
    return f"its serial number is {number:g}; whole numbers from 1 on were expected"


def serials(rows: Rows) -> IntArray:
    """The serial number of each row."""
    if wrong := wrong_serials(rows):
        raise DataError(f"row {wrong[0][0] + 1}: {wrong[0][1]}", ROW_FORMAT)
    return rows.values[rows.indptr[:-1]].astype(np.int64)


def numbered(rows: Rows, first: int = 1) -> Rows:
    """Rows of kernel values alone, each with the next serial number before them."""
    starts = rows.indptr[:-1]
    own = np.arange(first, first + len(rows), dtype=np.float64)
    return Rows(
        rows.indptr + np.arange(len(rows) + 1),
        np.insert(rows.indices, starts, SERIAL).astype(np.int32),
        np.insert(rows.values, starts, own),
    )


def serial_rows(rows: Rows) -> Rows:
    """Rows of their serial number alone: what LIBSVM's models have as support vectors."""
    numbers = serials(rows)
    places = np.arange(len(rows) + 1)
    return Rows(places, np.zeros(len(rows), np.int32), numbers.astype(np.float64))


def unit_rows(rows: Rows) -> Rows:
    """For each row one that is 1 at its serial number: a product with it looks up a value."""
    numbers = serials(rows)
    places = np.arange(len(rows) + 1)
    return Rows(places, numbers.astype(np.int32), np.ones(len(rows)))


def kernel_matrix(rows: Rows) -> FloatArray:
    """The values of these rows with each other: rows x rows."""
    numbers = serials(rows)
    columns = Columns(numbers.astype(np.int32))
    places = columns.places(rows.indices)
    known = (places >= 0) & (rows.indices != SERIAL)
    values = np.zeros((len(rows), len(columns)))
    values[rows.row_numbers[known], places[known]] = rows.values[known]
    # by lines, as the solver's nodes are made
    values = np.ascontiguousarray(values[:, columns.places(numbers.astype(np.int32))])
    _require_symmetry(values, numbers)
    return values


def _require_symmetry(values: FloatArray, numbers: IntArray) -> None:
    differences = np.abs(values - values.T)
    if differences.max(initial=0.0) <= ASYMMETRY * np.abs(values).max(initial=0.0):
        return
    one, other = np.unravel_index(int(differences.argmax()), values.shape)
    raise DataError(
        f"the kernel values are not symmetric: row {numbers[one]} has {values[one, other]:g} at"
        f" {numbers[other]}, and row {numbers[other]} has {values[other, one]:g} at {numbers[one]}",
        "serial numbers are those of the columns: of one matrix over P and U together",
    )
