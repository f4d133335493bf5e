"""Numbers as text, from C: Python's repr is the oracle."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from resvm_cli.data import _numbers
from tests.misuse import (
    assert_refused,
)


def written(numbers: np.ndarray) -> list[str]:
    return _numbers.lines(None, np.ascontiguousarray(numbers), 1, b" ").decode("ascii").split("\n")


def assert_as_repr(numbers: np.ndarray) -> None:
    assert written(numbers) == [*map(repr, numbers.tolist()), ""]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.floats()))
@example([0.0, -0.0, float("nan"), float("inf"), -float("inf"), 5e-324, -2.2250738585072014e-308])
@example([9999999999999998.0, 1e16, 12345678901234567.0, 0.0001, 0.00001234, 1e22, 1e23, 123e-7])
def test_every_double_is_written_as_repr_does(numbers):
    assert_as_repr(np.array(numbers, np.float64))


def test_random_bits_are_written_as_repr_does():
    bits = np.random.default_rng(0).integers(0, 2**64, 200_000, np.uint64)
    assert_as_repr(bits.view(np.float64))


def test_random_bits_of_usual_sizes_are_written_as_repr_does():
    rng = np.random.default_rng(1)
    exponents = rng.integers(1023 - 135, 1023 + 155, 200_000, np.uint64)  # and a bit beyond
    bits = exponents << np.uint64(52) | rng.integers(0, 2**52, 200_000, np.uint64)
    assert_as_repr(bits.view(np.float64))


@pytest.mark.parametrize("n_digits", range(1, 18))
def test_short_decimals_are_written_as_repr_does(n_digits):
    rng = np.random.default_rng(n_digits)
    digits = rng.integers(10 ** (n_digits - 1), 10**n_digits, 5000).tolist()
    powers = rng.integers(-45, 30, 5000).tolist()
    texts = [f"{digit}e{power}" for digit, power in zip(digits, powers, strict=True)]
    assert_as_repr(np.array(texts, np.float64))


@pytest.mark.parametrize("away", [-2, -1, 0, 1, 2])
def test_powers_and_their_neighbours_are_written_as_repr_does(away):
    powers = [2.0**n for n in range(-1074, 1024)] + [float(f"1e{n}") for n in range(-323, 309)]
    numbers = np.array(powers)
    for _ in range(abs(away)):
        numbers = np.nextafter(numbers, np.inf if away > 0 else 0)
    assert_as_repr(numbers)
    assert_as_repr(-numbers)


def test_whole_numbers_are_written_as_repr_does():
    rng = np.random.default_rng(2)
    small = np.arange(-2000, 2000, dtype=np.float64)
    sizes = 2.0 ** rng.uniform(0, 63, 20_000)
    around = 2.0**53 + np.arange(-50, 50)
    assert_as_repr(np.concatenate([small, np.rint(sizes), around, -around]))


def test_threads_write_the_same_at_once():
    rng = np.random.default_rng(3)
    tables = [rng.standard_normal(20_000) * 10.0 ** rng.integers(-50, 50) for _ in range(8)]
    tables[3][::7] = 5e-324  # needs the interpreter
    expected = [written(table) for table in tables]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            assert list(pool.map(written, tables)) == expected
    assert expected[3] == [*map(repr, tables[3].tolist()), ""]


def plain_number(number: float) -> str:
    return repr(number).removesuffix(".0")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(-(2**31), 2**31 - 1), st.floats()), max_size=6)))
@example([[(-(2**31), -2.2250738585072014e-308)] * 40])  # nothing is longer
@example([[], [(1, -0.0), (2, 10.0)], []])
def test_rows_are_index_value_pairs(rows):
    pairs = [pair for row in rows for pair in row]
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    indices = np.array([index for index, _ in pairs], np.int32)
    values = np.array([value for _, value in pairs], np.float64)
    ends = np.full(len(rows), -1, np.int64)
    text = _numbers.rows(indptr, indices, values, ends).decode("ascii")
    found = [text[a:b] for a, b in itertools.pairwise([0, *ends.tolist()])]
    assert found == [" ".join(f"{i}:{plain_number(v)}" for i, v in row) for row in rows]
    assert len(text) == (ends[-1] if rows else 0)


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(1, 5), st.sampled_from([" ", "\t", ","]))
def test_lines_are_labels_and_numbers(data, n_columns, separator):
    table = data.draw(st.lists(st.lists(st.floats(), min_size=n_columns, max_size=n_columns)))
    whole = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=len(table), max_size=len(table))
    labels = data.draw(st.none() | whole)
    expected = ""
    for number, row in enumerate(table):
        fields = ([] if labels is None else [str(labels[number])]) + list(map(repr, row))
        expected += separator.join(fields) + "\n"
    found = _numbers.lines(
        None if labels is None else np.array(labels, np.int64),
        np.array(table, np.float64),
        n_columns,
        separator.encode("ascii"),
    )
    assert found.decode("ascii") == expected


def test_text_outgrows_its_first_room():
    longest = np.full(3000, -2.2250738585072014e-308)
    labels = np.full(1000, -(2**63))
    line = f"{-(2**63)} {' '.join(['-2.2250738585072014e-308'] * 3)}\n"
    assert _numbers.lines(labels, longest, 3, b" ").decode("ascii") == line * 1000


CALLS = {
    "rows": (
        _numbers.rows,
        {
            "indptr": np.array([0, 1, 3]),
            "indices": np.arange(3, dtype="i4"),
            "values": np.ones(3),
            "ends": np.zeros(2, np.int64),
        },
    ),
    "lines": (
        _numbers.lines,
        {
            "labels": np.ones(2, np.int64),
            "table": np.ones(6),
            "n_columns": 3,
            "separator": b",",
        },
    ),
}


@pytest.mark.parametrize("indptr", [[1, 1, 3], [0, -1, 3], [0, 3, 1], [0, 1, 4], [0, 2**62, 3]])
def test_rows_beyond_the_entries_are_refused(indptr):
    assert _numbers.rows(*CALLS["rows"][1].values()) == b"0:11:1 2:1"
    assert_refused(CALLS, "rows", "indptr", np.array(indptr), ValueError, "fit")


@pytest.mark.parametrize("n_columns", [0, -3, 4, 2**62])
def test_columns_that_the_table_does_not_have_are_refused(n_columns):
    assert _numbers.lines(*CALLS["lines"][1].values()) == b"1,1.0,1.0,1.0\n" * 2
    assert_refused(CALLS, "lines", "n_columns", n_columns, ValueError, "")
    with pytest.raises(ValueError, match="table does not fit n_columns"):
        _numbers.lines(None, np.ones(6), n_columns, b",")
