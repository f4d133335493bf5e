"""The C arithmetic over rows and blocks: against plain numpy, and rejecting what does not fit."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli.rows import Columns, Rows
from resvm_cli.svm import _blocks
from resvm_cli.svm.support_vectors import LinearPool, SupportIndex
from tests.misuse import (
    assert_refused,
)
from tests.programs import PATIENCE_SECONDS

RNG = np.random.default_rng(17)
ROWS = Rows.from_dense(RNG.standard_normal((40, 30)) * (RNG.random((40, 30)) < 0.4), 0)
ENTRIES = (ROWS.indptr, ROWS.indices, ROWS.values)


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6))
def test_entries_by_column_keep_the_order_of_rows(columns):
    indices = np.array([column for row in columns for column in row], np.int32)
    lines = np.array([number for number, row in enumerate(columns) for _ in row], np.int32)
    starts = np.cumsum([0, *map(len, columns)])
    values = np.arange(len(indices)) + 0.5
    found = np.zeros(11, np.int64), np.zeros_like(lines), np.zeros_like(values)
    _blocks.transpose(starts, indices, values, *found)
    order = np.argsort(indices, kind="stable")
    assert found[0].tolist() == np.searchsorted(indices[order], np.arange(11)).tolist()
    assert found[1].tolist() == lines[order].tolist()
    assert found[2].tolist() == values[order].tolist()


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 3e38, -3e38]


@given(
    st.lists(st.floats(width=32) | st.sampled_from(SPECIAL), max_size=50),
    st.booleans(),
)
def test_ranks_are_those_of_a_stable_sort(values, descending):
    line = np.array(values, np.float32)
    expected = np.empty(len(line), np.int32)
    order = np.argsort(-line if descending else line, kind="stable")
    expected[order] = np.arange(1, len(line) + 1)
    # ranks take the room of the values they come from
    _blocks.rank(line, descending, np.empty(2 * len(line), np.uint64), line.view(np.int32))
    assert line.view(np.int32).tolist() == expected.tolist()


def test_every_bit_of_a_value_counts_in_its_rank():
    line = RNG.permutation(np.linspace(-1, 1, 200_001)).astype(np.float32)
    ranks = np.empty(len(line), np.int32)
    _blocks.rank(line, False, np.empty(2 * len(line), np.uint64), ranks)
    assert np.array_equal(np.argsort(ranks), np.argsort(line, kind="stable"))


def followed(values, knots, heights):
    found = np.array(values, np.float64)
    starts = np.array([0, len(knots)])
    _blocks.follow(
        found, np.zeros(len(found), np.int32), starts, np.array(knots), np.array(heights)
    )
    return found


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9, unique=True).map(sorted),
    st.lists(st.floats(-2e3, 2e3), max_size=20),
)
def test_curves_are_linear_between_their_knots_and_flat_beyond(knots, values):
    heights = np.linspace(-1.0, 1.0, len(knots)) ** 3
    expected = np.interp([*values, *knots], knots, heights)
    assert followed([*values, *knots], knots, heights) == pytest.approx(expected, abs=1e-12)
    assert followed(knots, knots, heights).tobytes() == heights.tobytes()


def test_knots_too_far_apart_for_a_double_are_followed_too():
    found = followed([-0.85e308, 0.0, 0.85e308], [-1.7e308, 1.7e308], [0.0, 1.0])
    assert found == pytest.approx([0.25, 0.5, 0.75])
    tiny = 5e-324
    assert followed([4 * tiny], [3 * tiny, 5 * tiny], [0.0, 1.0]).tolist() == [0.5]


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-1e3, 1e3)), max_size=30))
def test_statistics_are_added_entry_by_entry(entries):
    statistics = np.zeros((6, 5))
    for part in (entries[:7], entries[7:]):
        indices = np.array([index for index, _ in part], np.int32)
        _blocks.summarize(indices, np.array([value for _, value in part]), statistics)
    for index, found in enumerate(statistics.T):
        values = [value for place, value in entries if place == index]
        if values:
            apart = [value - values[0] for value in values]
            squares = functools.reduce(lambda total, one: total + one * one, apart, 0.0)
            sums = functools.reduce(lambda total, one: total + one, apart, 0.0), squares
            expected = [len(values), values[0], *sums, min(values), max(values)]
        else:
            expected = [0.0] * 6
        assert found.tolist() == expected


def exponentials(exponents):
    block = np.array(exponents, np.float64)
    _blocks.exp(block)
    return block


@pytest.mark.parametrize("reach", [1e-12, 1.0, 40.0, 708.0])
def test_exponentials_are_within_one_unit_in_the_last_place(reach):
    exponents = -reach * RNG.random(100_001)
    exact = np.exp(exponents.astype(np.longdouble))
    units = np.abs(exponentials(exponents) - exact) / np.spacing(exact.astype(np.float64))
    assert units.max() < 1


def test_exponentials_of_very_small_numbers_and_nan():
    assert exponentials([0.0, -0.0, -np.inf, -746.5, -1e308]).tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert np.isnan(exponentials([np.nan])).all()
    assert exponentials([-708.001, -730.0]).tolist() == [0.0, 0.0]


def times_plus(a, b, c, *, fused):
    return float(Fraction(a) * Fraction(b) + Fraction(c)) if fused else a * b + c


def exponential(x, *, fused):
    """The steps of the C code, one by one."""
    n = float(np.rint(x * float.fromhex("0x1.71547652b82fep0")))
    high, low = map(float.fromhex, ("0x1.62e42fefa38p-1", "0x1.ef35793c7673p-45"))  # ln 2
    r = times_plus(-n, low, x - n * high, fused=fused)
    q = 1 / math.factorial(13)
    for k in range(12, 1, -1):
        q = times_plus(q, r, 1 / math.factorial(k), fused=fused)
    return math.ldexp(1.0 + times_plus(r * r, q, r, fused=fused), int(n))


@pytest.mark.parametrize("reach", [1e-9, 1.0, 708.0])
def test_exponentials_have_the_same_bits_with_vectors_of_any_width(reach):
    exponents = -reach * RNG.random(307)
    expected = [[exponential(x, fused=fused) for x in exponents] for fused in (True, False)]
    assert exponentials(exponents).tolist() in expected


def test_an_exponential_does_not_depend_on_its_position():
    exponents = -50 * RNG.random(37)
    together = exponentials(exponents)
    assert together.tolist() == [exponentials([one])[0] for one in exponents]


@pytest.mark.parametrize("n_members", [1, 7, 8, 9, 31, 32, 33, 40, 71])
def test_weights_are_multiplied_in_the_order_of_a_rows_entries(n_members):
    weights = RNG.standard_normal((n_members, 25))  # rows have five features more
    pool = Rows.from_dense(weights, 0)
    numbers = np.arange(n_members)
    uses = SupportIndex.from_entries(
        numbers, numbers, np.full(n_members, 2.0), n_members, n_members
    )
    columns = Columns(pool.indices)
    found = LinearPool(pool, uses, columns, dense=True).sums(ROWS)
    assert LinearPool(pool, uses, columns, dense=False).sums(ROWS).tobytes() == found.tobytes()
    expected = np.zeros((len(ROWS), n_members))
    for row in range(len(ROWS)):
        for entry in range(ROWS.indptr[row], ROWS.indptr[row + 1]):
            if ROWS.indices[entry] < 25:
                expected[row] += ROWS.values[entry] * (2 * weights[:, ROWS.indices[entry]])
    assert found.tobytes() == expected.tobytes()


def tiled(n_rows, width):
    """Rows, the places of their features, and weights for a multiple of STEP members."""
    rows, table = ROWS.slice(0, n_rows), np.arange(30, dtype=np.int32)[::-1] - 3
    return rows, (rows.indptr, rows.indices, rows.values, table, RNG.standard_normal(27 * width))


@pytest.mark.parametrize("n_rows", [1, 7, 8, 9, 23, 40])
@pytest.mark.parametrize("width", [8, 24, 32, 72])
def test_products_have_the_same_bits_by_row_and_by_member(n_rows, width):
    _, arguments = tiled(n_rows, width)
    by_row, by_member = np.empty((n_rows, width)), np.empty((width, n_rows))
    _blocks.multiply_tiles(*arguments, by_row, width, False)
    _blocks.multiply_tiles(*arguments, by_member, width, True)
    assert by_member.T.tobytes() == by_row.tobytes()


@pytest.mark.parametrize("table", [np.arange(400), np.arange(400)[::-1], RNG.permutation(400)])
def test_products_of_wide_rows_are_added_in_the_order_of_a_rows_entries(table):
    rows = Rows.from_dense(RNG.standard_normal((70, 400)) * (RNG.random((70, 400)) < 0.4), 0)
    weights, found = RNG.standard_normal((400, 8)), np.empty((70, 8))
    arguments = rows.indptr, rows.indices, rows.values, table.astype(np.int32), weights
    _blocks.multiply_tiles(*arguments, found, 8, False)
    expected = np.zeros((70, 8))
    for row in range(70):
        for entry in range(rows.indptr[row], rows.indptr[row + 1]):
            expected[row] += rows.values[entry] * weights[table[rows.indices[entry]]]
    assert found.tobytes() == expected.tobytes()


@given(st.lists(st.integers(0, 39), max_size=50))
def test_rows_are_spread_over_the_features_they_have(chosen):
    numbers = np.array(chosen, np.int64)
    taken = ROWS.take(numbers)
    seen = np.zeros(30, np.int32)
    _blocks.spread(*ENTRIES, numbers, seen, np.empty(0), 0)
    assert np.array_equal(np.flatnonzero(seen == 1), np.unique(taken.indices))
    places = np.arange(30, dtype=np.int32)[::-1].copy()
    matrix = np.zeros((len(numbers), 30))
    _blocks.spread(*ENTRIES, numbers, places, matrix, 30)
    expected = np.zeros((len(numbers), 30))
    expected[taken.row_numbers, 29 - taken.indices] = taken.values
    assert np.array_equal(matrix, expected)


def ones(count, kind=np.float64):
    return np.ones(count, kind)


def test_a_sparse_matrix_is_multiplied_entry_by_entry():
    # a matrix of three lines and two columns, the second of which every feature is
    matrix = (np.array([0, 1, 2]), np.array([0, 2], np.int32), np.array([3.0, 5.0]))
    block = np.full((3, 40), np.nan)
    _blocks.multiply(*ENTRIES, ones(30, "i4"), *matrix, block, np.zeros((8, 3)), False)
    sums = [ROWS.values[a:b].tolist() for a, b in itertools.pairwise(ROWS.indptr)]
    assert not block[:2].any()
    assert block[2].tolist() == [functools.reduce(lambda t, v: t + v * 5.0, s, 0.0) for s in sums]


def common_part(one, other):
    return min(abs(one), abs(other)) if one * other > 0 else 0.0


@pytest.mark.parametrize("full", [False, True])
def test_the_part_in_common_may_replace_a_product(full):
    if full:  # a column with all lines
        matrix = (np.array([0, 3]), np.arange(3, dtype=np.int32), np.array([2.0, -0.5, 0.5]))
        block = np.full((3, 40), np.nan)
        _blocks.multiply(*ENTRIES, np.zeros(30, "i4"), *matrix, block, np.zeros((8, 3)), True)
        for held, line in zip(matrix[2], block, strict=True):
            assert line.tolist() == [
                functools.reduce(lambda t, v, held=held: t + common_part(v, held), some, 0.0)
                for some in (ROWS.values[a:b].tolist() for a, b in itertools.pairwise(ROWS.indptr))
            ]
        return
    matrix = (np.array([0, 1, 2]), np.array([0, 2], np.int32), np.array([3.0, 0.5]))
    block = np.full((3, 40), np.nan)
    _blocks.multiply(*ENTRIES, ones(30, "i4"), *matrix, block, np.zeros((8, 3)), True)
    sums = [ROWS.values[a:b].tolist() for a, b in itertools.pairwise(ROWS.indptr)]
    assert not block[:2].any()
    assert block[2].tolist() == [
        functools.reduce(lambda t, v: t + common_part(v, 0.5), s, 0.0) for s in sums
    ]


OF_ROWS = {"starts": ROWS.indptr, "indices": ROWS.indices, "values": ROWS.values}
USES = {
    "starts": np.array([0, 2, 3]),
    "members": np.array([0, 1, 1], np.int32),
    "coefficients": ones(3),
}
CALLS = {
    "exponents": (
        _blocks.exponents,
        {"block": ones((2, 4)), "row_norms": ones(4), "support_norms": ones(2), "gamma": 1.0},
    ),
    "exp": (_blocks.exp, {"block": -ones(4)}),
    "add": (_blocks.add, {"block": ones((2, 4)), **USES, "sums": ones((2, 4)), "width": 4}),
    "multiply_tiles": (
        _blocks.multiply_tiles,
        {
            **OF_ROWS,
            "places": ones(30, "i4"),
            "weights": ones(16),
            "sums": ones((40, 8)),
            "width": 8,
            "by_member": False,
        },
    ),
    "multiply": (
        _blocks.multiply,
        {
            **OF_ROWS,
            "places": ones(30, "i4"),
            "column_starts": np.array([0, 1, 2]),
            "lines": np.array([0, 2], "i4"),
            "line_values": ones(2),
            "block": ones((3, 40)),
            "scratch": ones((8, 3)),
            "minimum": False,
        },
    ),
    "spread": (
        _blocks.spread,
        {
            **OF_ROWS,
            "numbers": np.arange(40),
            "places": np.arange(30, dtype="i4"),
            "matrix": np.zeros((40, 30)),
            "width": 30,
        },
    ),
    "solve": (
        _blocks.solve,
        {
            "values": np.eye(3),
            "height": 3,
            "numbers": np.array([2, 0, 1, 2, 2]),
            "starts": np.array([0, 2, 5]),
            "n_positive": np.array([1, 2]),
            "n_negative": np.zeros(2, np.int64),
            "settings": ones((2, 2, 4)),
            "scratch": np.zeros(2 * 3**2 + _blocks.LINE_PADDING, "f4"),
            "coefficients": np.zeros((2, 5)),
            "rhos": np.zeros((2, 2)),
            "steps": np.zeros((2, 2), np.int64),
        },
    ),
    "transpose": (
        _blocks.transpose,
        {
            **OF_ROWS,
            "column_starts": np.zeros(31, np.int64),
            "lines": np.zeros(len(ROWS.values), "i4"),
            "line_values": np.zeros(len(ROWS.values)),
        },
    ),
    "rank": (
        _blocks.rank,
        {
            "values": ones(3, "f4"),
            "descending": False,
            "scratch": np.zeros(6, "u8"),
            "ranks": np.zeros(3, "i4"),
        },
    ),
    "follow": (
        _blocks.follow,
        {
            "values": ones(2),
            "curves": np.array([0, 1], "i4"),
            "starts": np.array([0, 2, 3]),
            "knots": np.array([0.0, 2.0, 0.0]),
            "heights": ones(3),
        },
    ),
    "summarize": (
        _blocks.summarize,
        {"indices": ROWS.indices, "values": ROWS.values, "statistics": np.zeros((6, 30))},
    ),
}

BEYOND = {
    ("add", "starts"): [[-1, 2, 3], [0, 3, 2], [0, 2, 4]],
    ("add", "members"): [[0, 1, 2], [0, -1, 1]],
    ("multiply_tiles", "starts"): [ROWS.indptr[::-1], ROWS.indptr + 1],
    ("multiply_tiles", "places"): [[2] * 30],
    ("multiply", "starts"): [ROWS.indptr - 1],
    ("multiply", "places"): [[2] * 30],
    ("multiply", "column_starts"): [[0, 2, 1], [0, 1, 3], [0, -1, 2]],
    ("multiply", "lines"): [[0, 3], [0, -1]],
    ("spread", "starts"): [ROWS.indptr + 1],
    ("spread", "indices"): [ROWS.indices + 1],
    ("spread", "numbers"): [[*range(39), 40], [-1, *range(39)]],
    ("spread", "places"): [[30] * 30, [-1] * 30],
    ("transpose", "starts"): [ROWS.indptr[::-1], ROWS.indptr + 1, [1, *ROWS.indptr[1:]]],
    ("transpose", "indices"): [ROWS.indices + 1, ROWS.indices - 1],
    ("summarize", "indices"): [ROWS.indices + 1, ROWS.indices - 1],
    ("solve", "numbers"): [[2, 0, 1, 3, 2], [2, 0, -1, 2, 2]],
    ("solve", "starts"): [[0, 6, 5], [0, 2, 4], [0, 0, 5], [1, 2, 5]],
    ("solve", "n_positive"): [[3, 1], [1, -1]],
    ("solve", "n_negative"): [[2, 0], [0, -1]],
    ("follow", "curves"): [[0, 2], [-1, 0]],
    ("follow", "starts"): [[-1, 2, 3], [0, 2, 4], [0, 0, 3], [0, 3, 2]],
}  # fmt: skip


@pytest.mark.parametrize(("function", "name"), BEYOND)
def test_numbers_that_point_beyond_an_array_are_rejected(function, name):
    kind = CALLS[function][1][name].dtype
    for values in BEYOND[function, name]:
        assert_refused(CALLS, function, name, np.array(values, kind), ValueError, "does not fit")


@pytest.mark.parametrize(
    ("function", "name", "value", "said"),
    [
        ("add", "width", 0, "block does not fit width"),
        ("add", "width", -4, "block does not fit width"),
        ("add", "width", 3, "block does not fit width"),
        ("multiply_tiles", "width", 0, "width does not fit"),
        ("multiply_tiles", "width", 7, "width does not fit"),
        ("multiply_tiles", "width", -8, "width does not fit"),
        ("multiply_tiles", "width", 2**62, "weights does not fit width"),
        ("solve", "height", 0, "values does not fit height"),
        ("solve", "height", 2, "values does not fit height"),
        ("solve", "height", 2**62, "values does not fit height"),
    ],
)
def test_sizes_that_do_not_fit_are_rejected(function, name, value, said):
    call, arguments = CALLS[function]
    with pytest.raises(ValueError, match=said):
        call(*{**arguments, name: value}.values())


def test_each_thread_has_its_own_iterations():
    printed = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(_blocks.print_function())
    seen = []

    def train(count):
        printed(b"\noptimization finished, #iter = %d\n" % count)
        printed(b"nu = 0.5\n")
        ready.wait(PATIENCE_SECONDS)
        seen.append((count, _blocks.iterations(), _blocks.iterations()))

    ready = threading.Barrier(2)
    threads = [threading.Thread(target=train, args=(count,)) for count in (17, 10_000_001)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert sorted(seen) == [(17, 17, 0), (10_000_001, 10_000_001, 0)]
