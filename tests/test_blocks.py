"""The C arithmetic over rows and blocks: against plain numpy, and refusing what does not fit."""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli.dataset import Columns, Rows
from resvm_cli.svm import _blocks
from resvm_cli.svm.nodes import NODE
from resvm_cli.svm.pool import Uses
from resvm_cli.svm.weights import Weights
from tests.programs import PATIENCE_SECONDS

RNG = np.random.default_rng(17)
ROWS = Rows.from_dense(RNG.standard_normal((40, 30)) * (RNG.random((40, 30)) < 0.4), 0)
ENTRIES = (ROWS.indptr, ROWS.indices, ROWS.values)


def powers(exponents):
    block = np.array(exponents, np.float64)
    _blocks.powers(block)
    return block


@pytest.mark.parametrize("reach", [1e-12, 1.0, 40.0, 708.0])
def test_powers_are_within_one_unit_in_the_last_place(reach):
    exponents = -reach * RNG.random(100_001)
    exact = np.exp(exponents.astype(np.longdouble))
    units = np.abs(powers(exponents) - exact) / np.spacing(exact.astype(np.float64))
    assert units.max() < 1


def test_powers_of_what_is_very_small_or_no_number():
    assert powers([0.0, -0.0, -np.inf, -746.5, -1e308]).tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert np.isnan(powers([np.nan])).all()
    # powers that are subnormal come in whole steps of the smallest number
    steps = powers([-710.0, -730.0, -745.0]) / 5e-324
    np.testing.assert_allclose(steps, np.exp([-710.0, -730.0, -745.0]) / 5e-324, atol=1)


def test_a_power_does_not_depend_on_its_place():
    exponents = -50 * RNG.random(37)
    together = powers(exponents)
    assert together.tolist() == [powers([one])[0] for one in exponents]


@pytest.mark.parametrize("n_members", [1, 7, 8, 9, 31, 32, 33, 40, 71])
def test_rows_are_weighed_in_the_order_of_their_entries(n_members):
    weights = RNG.standard_normal((n_members, 25))  # rows have five features more
    pool = Rows.from_dense(weights, 0)
    numbers = np.arange(n_members)
    uses = Uses.of(numbers, numbers, np.full(n_members, 2.0), n_members, n_members)
    columns = Columns(pool.indices)
    found = Weights(pool, uses, columns, dense=True).sums(ROWS)
    assert Weights(pool, uses, columns, dense=False).sums(ROWS).tobytes() == found.tobytes()
    expected = np.zeros((len(ROWS), n_members))
    for row in range(len(ROWS)):
        for entry in range(ROWS.indptr[row], ROWS.indptr[row + 1]):
            if ROWS.indices[entry] < 25:
                expected[row] += ROWS.values[entry] * (2 * weights[:, ROWS.indices[entry]])
    assert found.tobytes() == expected.tobytes()


@given(st.lists(st.integers(0, 39), max_size=50))
def test_rows_are_spread_over_the_features_they_have(chosen):
    numbers = np.array(chosen, np.int64)
    taken = ROWS.take(numbers)
    marks = np.zeros(30, bool)
    assert _blocks.mark(*ENTRIES, numbers, marks) == len(taken.values)
    assert np.array_equal(np.flatnonzero(marks), np.unique(taken.indices))
    places = np.arange(30, dtype=np.int32)[::-1].copy()
    matrix = np.zeros((len(numbers), 30))
    _blocks.spread(*ENTRIES, numbers, places, matrix, 30)
    expected = np.zeros((len(numbers), 30))
    expected[taken.row_numbers, 29 - taken.indices] = taken.values
    assert np.array_equal(matrix, expected)


def test_kernel_values_become_nodes_in_the_order_asked_for():
    values = RNG.standard_normal((6, 6))
    numbers = np.array([4, 0, 4])
    nodes = np.empty((3, 4), NODE)
    _blocks.gram(values, 6, numbers, nodes)
    assert nodes["value"][:, 0].tolist() == [1, 2, 3]
    assert np.array_equal(nodes["value"][:, 1:], values[numbers[:, None], numbers])
    assert not nodes["index"].any()


def ones(count, kind=np.float64):
    return np.ones(count, kind)


def multiply(starts=(0, 1, 2), lines=(0, 2), block=None, room=None):
    """A matrix of three lines and two columns, the second of which every feature is, with ROWS."""
    _blocks.multiply(
        *ENTRIES,
        ones(30, "i4"),
        *(np.array(starts), np.array(lines, np.int32), np.array([3.0, 5.0])),
        np.zeros((3, 40)) if block is None else block,
        np.zeros((8, 3)) if room is None else room,
    )


def test_a_sparse_matrix_is_multiplied_entry_by_entry():
    block = np.full((3, 40), np.nan)
    multiply(block=block)
    sums = [ROWS.values[a:b].tolist() for a, b in itertools.pairwise(ROWS.indptr)]
    assert not block[:2].any()
    assert block[2].tolist() == [functools.reduce(lambda t, v: t + v * 5.0, s, 0.0) for s in sums]


@pytest.mark.parametrize(
    "call",
    [
        lambda: _blocks.weigh(*ENTRIES, ones(30, "i4"), ones(15), np.zeros((40, 8)), 8),
        lambda: _blocks.weigh(*ENTRIES, ones(30, "i4"), ones(16), np.zeros((39, 8)), 8),
        lambda: _blocks.weigh(*ENTRIES, ones(30, "i4"), ones(16), np.zeros((40, 7)), 7),
        lambda: _blocks.weigh(*ENTRIES, ones(30, "i4"), ones(16), np.zeros((40, 8)), 0),
        lambda: _blocks.weigh(ones(0, "i8"), *ENTRIES[1:], ones(30, "i4"), ones(16), ones(0), 8),
        lambda: multiply(np.array([0, 2, 1])),
        lambda: multiply(np.array([0, 1, 3])),
        lambda: multiply(np.array([0, -1, 2])),
        lambda: multiply(np.array([0, 1])),
        lambda: multiply(lines=(0, 3)),
        lambda: multiply(lines=(0, -1)),
        lambda: multiply(block=np.zeros((3, 39))),
        lambda: multiply(room=np.zeros((8, 2))),
        lambda: _blocks.mark(*ENTRIES, np.array([40]), ones(30, bool)),
        lambda: _blocks.mark(*ENTRIES, np.array([-1]), ones(30, bool)),
        lambda: _blocks.mark(*ENTRIES, np.arange(40), ones(29, bool)),
        lambda: _blocks.mark(ROWS.indptr[::-1].copy(), *ENTRIES[1:], np.array([0]), ones(30, bool)),
        lambda: _blocks.mark(ROWS.indptr, ROWS.indices[:9], ROWS.values, np.array([3]), ones(30)),
        lambda: _blocks.spread(*ENTRIES, np.arange(40), ones(30, "i4"), np.zeros((40, 1)), 1),
        lambda: _blocks.spread(*ENTRIES, np.arange(40), -ones(30, "i4"), np.zeros((40, 9)), 9),
        lambda: _blocks.spread(*ENTRIES, np.arange(40), ones(29, "i4"), np.zeros((40, 9)), 9),
        lambda: _blocks.spread(*ENTRIES, np.arange(40), ones(30, "i4"), np.zeros((39, 9)), 9),
        lambda: _blocks.gram(ones(9), 3, np.array([3]), np.empty((1, 2), NODE)),
        lambda: _blocks.gram(ones(9), 3, np.array([-1]), np.empty((1, 2), NODE)),
        lambda: _blocks.gram(ones(8), 3, np.array([0]), np.empty((1, 2), NODE)),
        lambda: _blocks.gram(ones(9), 3, np.array([0, 1]), np.empty((2, 2), NODE)),
        lambda: _blocks.gram(ones(9), 0, np.array([0]), np.empty((1, 2), NODE)),
    ],
)
def test_what_does_not_fit_is_refused(call):
    with pytest.raises(ValueError, match="do not fit"):
        call()


def test_each_thread_hears_of_its_own_iterations():
    tell = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(_blocks.listener())
    heard = []

    def train(count):
        tell(b"\noptimization finished, #iter = %d\n" % count)
        tell(b"nu = 0.5\n")
        ready.wait(PATIENCE_SECONDS)
        heard.append((count, _blocks.heard(), _blocks.heard()))

    ready = threading.Barrier(2)
    threads = [threading.Thread(target=train, args=(count,)) for count in (17, 10_000_001)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert sorted(heard) == [(17, 17, 0), (10_000_001, 10_000_001, 0)]
