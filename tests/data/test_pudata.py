"""P and U in memory."""

from __future__ import annotations

import numpy as np
import pytest

from resvm_cli.data.pudata import MemoryData, RepeatedRows
from resvm_cli.errors import DataError
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


RNG = np.random.default_rng(5)
UNL = RNG.gamma(2.0, 40.0, (600, 8))
POS = RNG.gamma(3.0, 40.0, (80, 8))
POS[:, 0] += 200


def rows(matrix: np.ndarray) -> Rows:
    return Rows.from_dense(matrix)


def repeated(positives: np.ndarray, unlabeled: np.ndarray) -> RepeatedRows:
    found = RepeatedRows(rows(positives))
    for start in range(0, len(unlabeled), 100):
        found.add(rows(unlabeled[start : start + 100]))
    return found


def test_rows_of_p_in_u_are_counted_whatever_the_blocks():
    note = str(repeated(POS, np.vstack([UNL, POS[:20], POS[:5]])).note())
    assert note.startswith("20 of 80 rows of P are also in U (25 rows)")


def test_two_equal_rows_and_rows_without_features_are_no_sign():
    assert repeated(POS, np.vstack([UNL, POS[:2]])).note() is None
    empty = np.zeros((40, 8))
    assert repeated(np.vstack([POS, empty]), np.vstack([UNL, empty])).note() is None


def test_explicit_zeros_do_not_hide_a_repeated_row():
    zeros = Rows(np.array([0, 2]), np.array([1, 2], np.int32), np.array([3.0, 0.0]))
    found = RepeatedRows(rows(np.array([[3.0, 0.0]])))
    found.add(zeros)
    assert found.n_repeated == 1


def test_natural_duplicates_are_no_sign_but_all_of_p_in_u_is():
    """Rows of few binary features repeat by themselves."""
    matrix = (RNG.random((4000, 9)) < 0.25).astype(float)
    assert repeated(matrix[:200], matrix[200:]).note() is None
    some = RNG.standard_normal((2000, 4))
    some[RNG.permutation(2000)[:100]] = some[RNG.permutation(2000)[:100]]
    assert repeated(some[:200], some[200:]).note() is None
    assert repeated(some[:200], some).note() is not None


def test_notes_of_rows_in_memory_count_repeated_rows():
    data = MemoryData(rows(POS), rows(np.vstack([UNL, POS])))
    assert any("80 of 80 rows of P are also in U" in str(note) for note in data.notes)
    assert MemoryData(rows(POS), rows(UNL)).notes == []
