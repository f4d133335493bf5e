"""Each note appears for data that deserves it, and not for data that nearly does."""

from __future__ import annotations

import math

import numpy as np
import pytest

from resvm_cli.data import notes
from resvm_cli.data.encoding import MappedColumn
from resvm_cli.data.scaling import FeatureStats
from resvm_cli.rows import Rows


def test_swapped_sets_are_recognized_by_labels_or_sizes():
    assert "label in P is -1, and the smallest in U is 1" in str(notes.swapped(500, 100, -1, 1))
    assert "P has 1,001 rows and U only 100" in str(notes.swapped(1001, 100))
    assert notes.swapped(1000, 100, 1, -1) is None


@pytest.mark.parametrize("labels", [(1, 0), (0, 0), (2, 1), (math.nan, 1), (0, math.nan)])
def test_labels_that_do_not_contradict_the_files_are_not_noted(labels):
    assert notes.swapped(10, 10, *labels) is None


@pytest.mark.parametrize(
    ("first", "second", "noted"),
    [
        ((0, 9), (1, 10), True),
        ((1, 10), (0, 9), True),
        ((0, 9), (2, 10), True),  # the second counts from 1 and lacks its first feature
        ((0, 9), (0, 10), False),
        ((0, 9), (1, 9), False),  # both count from 0; the second lacks its first feature
        ((0, 9), (1, 11), False),
        ((0, 9), (2**31, -1), False),  # no features
    ],
)
def test_files_counted_from_0_and_from_1_are_told_apart(first, second, noted):
    assert (notes.off_by_one([("a", *first), ("b", *second)]) is not None) == noted


def notes_on(u: np.ndarray, p: np.ndarray, column: MappedColumn) -> list[str]:
    stats = FeatureStats(), FeatureStats()
    for rows, each in zip((u, p), stats, strict=True):
        for part in np.array_split(rows, 2):
            each.add(Rows.from_dense(part))
    return list(notes.give_answer_away([column], *stats))


@pytest.mark.parametrize(
    ("u", "p", "noted"),
    [
        ([0, 1], [2, 3], True),
        ([2, 3], [0, -1], True),
        ([0, 1], [1, 3], False),  # one value in common
    ],
)
def test_a_number_that_gives_the_answer_away_is_named(u, p, noted):
    column = MappedColumn("a b", "number", 1)
    sets = [np.array(values * 5, float)[:, None] for values in (u, p)]
    found = notes_on(*sets, column)
    assert len(found) == noted
    assert all("if it depends on the labels, it gives the answer away" in note for note in found)
    assert notes_on(sets[0], sets[1][:9], column) == []  # nine rows may differ by chance


@pytest.mark.parametrize(
    ("counts", "noted"),
    [
        ([[20, 0, 0], [0, 6, 4]], True),
        ([[19, 0, 1], [0, 6, 4]], False),  # a category in common
        ([[19, 0, 0], [0, 6, 3]], False),  # both have missing values
        ([[20, *[0] * 10], [0, *[1] * 10]], False),  # a category for each row of P
    ],
)
def test_categories_that_give_the_answer_away_are_named(counts, noted):
    sets = []
    for size, each in zip((20, 10), counts, strict=True):
        rows = np.zeros((size, len(each)))
        rows[np.arange(sum(each)), np.repeat(np.arange(len(each)), each)] = 1
        sets.append(rows)
    values = {str(number): number for number in range(1, len(counts[0]) + 1)}
    column = MappedColumn("a", "text", values=values)
    assert len(notes_on(*sets, column)) == noted


def test_sets_that_are_hardly_separable_are_noted():
    assert "ROC AUC 0.540 (0.500 to 0.580" in str(notes.hardly_separable(0.54, 0.5, 0.58))
    assert notes.hardly_separable(0.54, 0.501, 0.58) is None


@pytest.mark.parametrize("solver", ["libsvm", "liblinear"])
def test_members_that_did_not_converge_are_counted(solver):
    note = str(notes.unconverged(1, 50, solver))
    assert note.startswith(f"1 of 50 members stopped at {solver.upper()}'s iteration limit")
    assert notes.unconverged(0, 50, solver) is None


@pytest.mark.parametrize(("n_unlike", "n_rows"), [(51, 1000), (3, 10)])
def test_rows_unlike_the_training_rows_are_counted(n_unlike, n_rows):
    note = str(notes.unlike_training(n_unlike, n_rows))
    assert note.startswith(f"{n_unlike} of {n_rows:,} rows are unlike the training rows")
    assert notes.unlike_training(n_unlike - 1, n_rows) is None


@pytest.mark.parametrize(
    ("n_found", "usual", "noted"),
    [(3, 0.0, True), (2, 0.0, False), (46, 0.1, True), (45, 0.1, False)],
)
def test_rows_in_both_sets_are_counted_unless_duplicates_are_usual(n_found, usual, noted):
    note = notes.in_both(n_found, 100, 50, usual)
    assert (note is not None) == noted
    if noted:
        assert str(note).startswith(f"{n_found} of 100 rows of P are also in U (50 rows)")
