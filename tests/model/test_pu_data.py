"""P and U in memory."""

from __future__ import annotations

import numpy as np
import pytest

from resvm_cli.errors import DataError
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.rows import Rows


def test_groups_are_described_by_how_they_divide_the_rows_not_by_their_names():
    def described(groups):
        data = MemoryData.from_matrix(np.eye(5), np.arange(5) < 2, groups=groups)
        return data.description().get("groups")

    assert described(None) is None
    assert described(["b", "a", "b", "c", "a"]) == described([3, 9, 3, 1, 9])
    assert described(["b", "a", "b", "c", "a"])["count"] == 3
    assert described(["b", "a", "b", "c", "a"]) != described(["b", "a", "b", "c", "c"])


@pytest.mark.parametrize(
    ("known", "settings", "message"),
    [
        ([False] * 4, {}, "P has no rows"),
        ([True] * 4, {}, "U has no rows"),
        ([True, False], {}, "2 labels, but the matrix has 4 rows"),
        ([True, False, False, False], {"groups": [1, 2]}, "2 groups, but the data has 4 rows"),
        ([True, False, False, False], {"ids": list("abcde")}, "5 ids, but the data has 4 rows"),
        ([True, False, False, False], {"weights": [1, 1]}, "2 weights, but P has 1 rows"),
    ],
)
def test_what_does_not_fit_the_rows_is_refused(known, settings, message):
    with pytest.raises(DataError) as caught:
        MemoryData.from_matrix(np.eye(4), known, **settings)
    assert caught.value.message == message


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_only_finite_values_are_accepted(number):
    rows = Rows.from_dense(np.eye(2))
    strange = Rows(rows.indptr, rows.indices, np.array([1.0, number]))
    for positives, unlabeled, name in ((rows, strange, "U"), (strange, rows, "P")):
        with pytest.raises(DataError, match=f"{name} contains values that are not finite"):
            MemoryData(positives, unlabeled)


def test_rows_without_ids_are_numbered_in_each_set():
    known = np.array([False, True, False, True, False])
    assert MemoryData.from_matrix(np.eye(5), known).ids() == ["1", "2", "1", "2", "3"]
    named = MemoryData.from_matrix(np.eye(5), known, ids=list("abcde"))
    assert named.ids() == list("abcde")
