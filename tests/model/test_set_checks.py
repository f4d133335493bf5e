"""Signs of misuse are found where they are, and sound data passes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from resvm_cli.model.pu_data import MemoryData
from resvm_cli.model.set_checks import (
    RepeatedRows,
    empty_note,
    preparation_note,
    swapped_note,
)
from resvm_cli.rows import Rows

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


def minmax(matrix: np.ndarray) -> np.ndarray:
    return (matrix - matrix.min(0)) / (matrix.max(0) - matrix.min(0))


def standard(matrix: np.ndarray) -> np.ndarray:
    return np.round((matrix - matrix.mean(0)) / matrix.std(0), 6)


@pytest.mark.parametrize(
    ("labels", "sizes", "words"),
    [
        ((-1, 1), (500, 100), "label in P is -1, and the smallest in U is 1"),
        ((0, 1), (10, 100), "label in P is 0"),
        ((math.nan, math.nan), (1000, 100), "1,000 rows and U only 100"),
        ((1, -1), (1000, 100), "swapped?"),
    ],
)
def test_swapped_sets_are_noticed_by_labels_or_sizes(labels, sizes, words):
    assert words in str(swapped_note(*labels, *sizes))


@pytest.mark.parametrize(
    "labels", [(1, -1), (1, 0), (0, 0), (2, 1), (-1, -1), (math.nan, 1), (0, math.nan), (7, 0)]
)
def test_labels_and_sizes_of_sound_sets_are_not_noticed(labels):
    assert swapped_note(*labels, 999, 100) is None


def test_a_p_of_empty_rows_is_noticed():
    empty = np.zeros((10, 3))
    assert "10 of 10 rows of P have no features" in str(empty_note(rows(empty)))
    empty[:6, 0] = 1
    assert empty_note(rows(empty)) is None
    data = MemoryData(rows(np.zeros((10, 3))), rows(UNL))
    assert any("no features" in str(note) for note in data.notes)


def test_rows_of_p_in_u_are_counted_whatever_the_blocks():
    note = str(repeated(POS, np.vstack([UNL, POS[:20], POS[:5]])).note("drop them"))
    assert note.startswith("20 of 80 rows of P are also in U (25 rows)")
    assert note.endswith("drop them")


def test_two_equal_rows_and_rows_without_features_are_no_sign():
    assert repeated(POS, np.vstack([UNL, POS[:2]])).note("") is None
    empty = np.zeros((40, 8))
    assert repeated(np.vstack([POS, empty]), np.vstack([UNL, empty])).note("") is None


def test_explicit_zeros_do_not_hide_a_repeated_row():
    zeros = Rows(np.array([0, 2]), np.array([1, 2], np.int32), np.array([3.0, 0.0]))
    found = RepeatedRows(rows(np.array([[3.0, 0.0]])))
    assert found.add(zeros).tolist() == [True]


def test_natural_duplicates_are_no_sign_but_all_of_p_in_u_is():
    """Rows of few binary features repeat by themselves."""
    matrix = (RNG.random((4000, 9)) < 0.25).astype(float)
    assert repeated(matrix[:200], matrix[200:]).note("") is None
    some = RNG.standard_normal((2000, 4))
    some[RNG.permutation(2000)[:100]] = some[RNG.permutation(2000)[:100]]
    assert repeated(some[:200], some[200:]).note("") is None
    assert repeated(some[:200], some).note("") is not None


def test_notes_of_rows_in_memory_count_repeated_rows():
    data = MemoryData(rows(POS), rows(np.vstack([UNL, POS])))
    assert any("80 of 80 rows of P are also in U" in str(note) for note in data.notes)
    assert MemoryData(rows(POS), rows(UNL)).notes == []


@pytest.mark.parametrize(
    ("positives", "unlabeled", "words"),
    [
        (minmax(POS), UNL, "8 features have the same largest value, 1"),
        (minmax(POS), minmax(UNL), "8 features have the same largest value, 1"),
        (standard(POS), standard(UNL), "8 features have mean 0 and standard deviation 1"),
        (POS, standard(UNL), "often negative in U, but never in P"),
        (POS, UNL / 255, "times as much in P as in U"),
        (POS / 255, UNL, "times as much in U as in P"),
        (np.hstack([POS * 0, POS]), np.hstack([UNL, UNL * 0]), "100 % of the entries of P"),
    ],
)
def test_sets_prepared_differently_are_noticed(positives, unlabeled, words):
    note = str(preparation_note(rows(positives), rows(unlabeled)))
    assert words in note
    assert note.endswith("are P and U encoded and scaled alike?")


def test_sets_that_are_easy_to_separate_or_scaled_together_are_not_noticed():
    both = np.vstack([POS, UNL])
    binary = (RNG.random((680, 8)) < 0.5).astype(float)
    binary[:80, 0], binary[80:, 0] = 1, 0
    for matrix in (both, minmax(both), standard(both), binary, np.round(both / 40)):
        assert preparation_note(rows(matrix[:80]), rows(matrix[80:])) is None
    assert preparation_note(rows(POS + 1e4), rows(UNL)) is None  # far away
    twice, half = np.hstack([POS, POS]), np.hstack([UNL, UNL * 0])
    assert preparation_note(rows(twice), rows(half)) is None  # U lacks half of the entries of P
    rarely_negative = np.vstack([POS, np.full((1, 8), -1.0)])
    assert preparation_note(rows(rarely_negative), rows(UNL)) is None
    tight = UNL.mean(0) + 0.2 * (POS - POS.mean(0))
    assert preparation_note(rows(tight), rows(UNL)) is None


def test_a_largest_value_that_many_rows_share_is_no_sign_of_scaling():
    rng = np.random.default_rng(4)
    counts = np.minimum(rng.poisson(3.0, (60, 5)), 4) + rng.random((60, 5)).round(1)
    shared = np.where(counts > 3, 4.0, counts)  # as measured by an instrument that saturates
    assert preparation_note(rows(shared), rows(0.9 * counts)) is None


@pytest.mark.parametrize(("shift", "width"), [(0.0, 3.0), (5.0, 1.0)])
def test_a_mean_of_0_or_a_deviation_of_1_alone_is_no_sign_of_scaling(shift, width):
    values = width * standard(np.random.default_rng(5).normal(size=(80, 6))) + shift
    others = np.random.default_rng(6).normal(shift + 0.1, width, (300, 6))
    assert preparation_note(rows(values), rows(others)) is None


def test_a_few_negative_values_are_no_sign_of_centering():
    few = POS.copy()
    few[0] = -0.01
    assert preparation_note(rows(few), rows(UNL)) is None
