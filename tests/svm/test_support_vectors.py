"""Pooled kernel sums: against plain numpy, and rejecting what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli.rows import Columns, Rows
from resvm_cli.svm import _blocks, support_vectors
from resvm_cli.svm.kernels import Kernel
from resvm_cli.svm.support_vectors import (
    BLOCK_ROWS,
    LinearPool,
    Pool,
    SupportIndex,
    WeightedMember,
    WeightedPool,
)

RNG = np.random.default_rng(5)


WAYS = [{"dense": True}, {"dense": False}, {"dense": True, "sparse_rows": True}]


def pooled_sums(kernel, support, coefficients, queries, way):
    """Through a Pool; ``coefficients`` is support rows x members."""
    rows = Rows.from_dense(support, first_index=0)
    row, member = np.nonzero(coefficients)
    uses = SupportIndex.from_entries(row, member, coefficients[row, member], *coefficients.shape)
    block = Rows.from_dense(queries, first_index=0)
    made = Pool([(kernel, uses)], rows, Columns(rows.indices), **way)
    return made.sums(block)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(
    "n_support",
    [1, 16, 37, support_vectors.CHUNK, support_vectors.CHUNK + 1, 2 * support_vectors.CHUNK + 5],
)
def test_sums_are_those_of_the_whole_kernel_matrix(n_support, way):
    support = RNG.standard_normal((n_support, 6))
    queries = RNG.standard_normal((11, 8))  # two features that the pool lacks
    coefficients = RNG.standard_normal((n_support, 5)) * (RNG.random((n_support, 5)) < 0.3)
    padded = np.hstack([support, np.zeros((n_support, 2))])
    distances = ((queries[:, None, :] - padded[None]) ** 2).sum(axis=2)
    expected = np.exp(-0.3 * distances) @ coefficients
    found = pooled_sums(Kernel("rbf", gamma=0.3), support, coefficients, queries, way)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    expected = np.tanh(0.1 * (queries[:, :6] @ support.T) + 0.5) @ coefficients
    found = pooled_sums(
        Kernel("sigmoid", gamma=0.1, coef0=0.5), support, coefficients, queries, way
    )
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_members_with_several_kernels_share_a_pool(way):
    n_support = support_vectors.CHUNK + 37
    support, queries = RNG.standard_normal((n_support, 6)), RNG.standard_normal((11, 6))
    coefficients = RNG.standard_normal((n_support, 4)) * (RNG.random((n_support, 4)) < 0.3)
    rows = Rows.from_dense(support, first_index=0)
    distances = ((queries[:, None, :] - support[None]) ** 2).sum(axis=2)
    indexes, expected = [], 0.0
    for gamma, members in ((0.3, [0, 2]), (0.05, [1, 3])):
        own = np.zeros((n_support, 4))
        own[:, members] = coefficients[:, members]
        row, member = np.nonzero(own)
        uses = SupportIndex.from_entries(row, member, own[row, member], n_support, 4)
        indexes.append((Kernel("rbf", gamma=gamma), uses))
        expected += np.exp(-gamma * distances) @ own
    pool = Pool(indexes, rows, Columns(rows.indices), **way)
    found = pool.sums(Rows.from_dense(queries, first_index=0))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_sums_do_not_depend_on_other_rows(way):
    support = RNG.standard_normal((601, 9)) * (RNG.random((601, 9)) < 0.4)
    queries = RNG.standard_normal((23, 9)) * (RNG.random((23, 9)) < 0.4)
    coefficients = RNG.standard_normal((601, 3))
    kernel = Kernel("rbf", gamma=0.3)
    together = pooled_sums(kernel, support, coefficients, queries, way)
    for chosen in ([0], [22], [7, 3], range(1, 20)):
        some = pooled_sums(kernel, support, coefficients, queries[chosen], way)
        assert some.tobytes() == together[chosen].tobytes()


def test_an_entry_given_twice_counts_twice():
    uses = SupportIndex.from_entries(
        np.array([1, 0, 1]), np.array([0, 0, 0]), np.array([2.0, 5.0, 3.0]), 2, 1
    )
    assert uses.starts.tolist() == [0, 1, 3]
    assert uses.coefficients.tolist() == [5.0, 2.0, 3.0]


@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 9), st.integers(1, 30))
def test_weighted_lines_add_up_in_their_order(seed, height, n_members, width):
    rng = np.random.default_rng(seed)
    block = rng.standard_normal((height, width))
    counts = rng.integers(0, 5, height)
    starts = np.concatenate([[0], np.cumsum(counts)])
    members = rng.integers(0, n_members, starts[-1]).astype(np.int32)
    coefficients = rng.standard_normal(starts[-1])
    found = np.zeros((n_members, width))
    _blocks.add(block, starts, members, coefficients, found, width)
    expected = np.zeros((n_members, width))
    for line in range(height):
        for entry in range(starts[line], starts[line + 1]):
            expected[members[entry]] += coefficients[entry] * block[line]
    assert found.tobytes() == expected.tobytes()


def test_exponents_are_exactly_the_formula_and_keep_nan():
    block = RNG.standard_normal((7, 5))
    block[2, 3] = np.nan
    rows, supports = RNG.random(5), RNG.random(7)
    expected = np.maximum((block * -2.0 + rows) + supports[:, None], 0.0) * -0.7
    _blocks.exponents(block, rows, supports, 0.7)
    np.testing.assert_array_equal(block, expected)
    assert np.isnan(block[2, 3])


def entries(starts=(0, 1, 2), members=(0, 1)):
    return np.array(starts, np.int64), np.array(members, np.int32), np.ones(2)


def test_columns_find_the_same_places_with_and_without_a_table(monkeypatch):
    from resvm_cli import rows as dataset

    indices = RNG.choice(3000, 200).astype(np.int32)
    asked = RNG.integers(0, 5000, 500).astype(np.int32)
    table = Columns(indices, lasting=True).places(asked)
    for name in ("SMALL_TABLE", "LASTING_TABLE", "TABLE_REACH"):
        monkeypatch.setattr(dataset, name, 0)
    assert np.array_equal(Columns(indices).places(asked), table)
    assert set(indices.tolist()) == set(asked[table >= 0].tolist()) | (
        set(indices.tolist()) - set(asked.tolist())
    )


def test_block_sizes_are_multiples_of_blas_micro_kernels():
    assert (
        BLOCK_ROWS % 24
        == BLOCK_ROWS % 16
        == support_vectors.CHUNK % support_vectors.COLUMN_STEP
        == 0
    )


def test_sparse_weights_of_one_row_per_member_equal_those_that_are_summed():
    rows = Rows.from_dense(np.array([[1.0, 0, -2, 0], [0, 3, 0, 0.1], [7, 0, 0, 0]]), first_index=0)
    queries = Rows.from_dense(RNG.standard_normal((5, 4)), first_index=0)
    numbers, members = np.array([2, 0, 1, 0]), np.arange(4)
    coefficients = np.array([0.3, 1.0, -1.0, 2.0])
    alone = SupportIndex.from_entries(numbers, members, coefficients, 3, 4)
    # a member of two rows has all added up
    added = SupportIndex.from_entries(
        np.append(numbers, [0, 1]),
        np.append(members, [4, 4]),
        np.append(coefficients, [1, 1]),
        3,
        5,
    )
    columns = Columns(rows.indices)
    ours = LinearPool(rows, alone, columns, dense=False).sums(queries)
    theirs = LinearPool(rows, added, columns, dense=False).sums(queries)
    assert ours.tolist() == theirs[:, :4].tolist()


WEIGHTED_KERNELS = [
    Kernel("rbf", gamma=0.3),
    Kernel("poly", gamma=0.4, coef0=0.5, degree=3),
    Kernel("sigmoid", gamma=0.1, coef0=0.2),
]


def weighted_members(kernel, sizes=(5, 1, 40), n_features=6):
    """Members with own factors, some zero, and own support vectors, multiplied by them."""
    found = []
    for size in sizes:
        factors = RNG.random(n_features) * (RNG.random(n_features) < 0.7)
        factors[0] += 1.0
        support = RNG.standard_normal((size, n_features)) * factors
        weights = Rows.from_dense([factors], 0)
        rows = Rows.from_dense(support, 0)
        found.append(WeightedMember(kernel, rows, RNG.standard_normal(size), weights))
    return found


def weighted_pool(members, n_features=6, *, dense):
    return WeightedPool(members, Columns(np.arange(n_features, dtype=np.int32)), dense=dense)


def spread(rows, width):
    matrix = np.zeros((len(rows), width))
    matrix[rows.row_numbers, rows.indices] = rows.values
    return matrix


def summed(member, queries):
    """The sum of coefficient times K(w x, s), straight from LIBSVM's formulas."""
    width = queries.shape[1]
    support, (factors,) = spread(member.rows, width), spread(member.weights, width)
    weighted, kernel = queries * factors, member.kernel
    dots = weighted @ support.T
    if kernel.name == "rbf":
        apart = weighted[:, None, :] - support[None]
        values = np.exp(-kernel.gamma * (apart * apart).sum(axis=2))
    elif kernel.name == "poly":
        values = (kernel.gamma * dots + kernel.coef0) ** kernel.degree
    else:
        values = np.tanh(kernel.gamma * dots + kernel.coef0)
    return values @ member.coefficients, np.abs(values) @ np.abs(member.coefficients)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("kernel", WEIGHTED_KERNELS, ids=lambda kernel: kernel.name)
def test_weighted_sums_are_those_of_weighted_rows(kernel, dense):
    members = weighted_members(kernel)
    queries = RNG.standard_normal((11, 8))  # two features that no member has
    # a row that becomes a support vector once it is weighted, and some that are far away
    (factors,) = spread(members[0].weights, 8)
    support = spread(members[0].rows, 8)[2]
    queries[0] = np.divide(support, factors, out=np.ones(8), where=factors > 0)
    if kernel.name == "rbf":
        queries[1:4] *= 1e4
        queries[4, 0] += 1e7
    found = weighted_pool(members, dense=dense).sums(Rows.from_dense(queries, 0))
    for number, member in enumerate(members):
        expected, size = summed(member, queries)
        assert (np.abs(found[:, number] - expected) <= 1e-12 * size).all()


def test_weighted_rbf_values_of_rows_far_out_come_from_differences():
    kernel = Kernel("rbf", gamma=1.0)
    weights = Rows.from_dense([[0.5, 2.0, 0.0]], 0)
    raw = np.array([[2e6 + 0.2, 0.3, 9.0], [2e6 + 1.2, 0.3, -9.0]])
    rows = Rows.from_dense(raw, 0).times(weights)
    members = [WeightedMember(kernel, rows, np.array([1.0, 10.0]), weights)]
    for dense in (True, False):
        found = weighted_pool(members, 3, dense=dense).sums(Rows.from_dense(raw, 0))
        expected = [1 + 10 * np.exp(-0.25), np.exp(-0.25) + 10]
        assert found[:, 0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dense", [True, False])
def test_a_huge_value_of_a_feature_that_a_member_ignores_is_ignored(dense):
    kernel = Kernel("rbf", gamma=1.0)
    members = [
        WeightedMember(kernel, Rows.from_dense([place], 0), np.ones(1), Rows.from_dense([place], 0))
        for place in ([1.0, 0.0], [0.0, 1.0])
    ]
    queries = Rows.from_dense([[1.0, 1e200], [-1e300, 1.0], [1e200, 1e200]], 0)
    with np.errstate(over="ignore", invalid="ignore"):
        found = weighted_pool(members, 2, dense=dense).sums(queries)
    assert found.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("kernel", WEIGHTED_KERNELS, ids=lambda kernel: kernel.name)
def test_weighted_sums_do_not_depend_on_other_rows_or_members(kernel, dense):
    members = weighted_members(kernel, sizes=(7, 90, 33), n_features=40)
    pool = weighted_pool(members, 40, dense=dense)
    queries = RNG.standard_normal((BLOCK_ROWS, 40))
    queries[[3, 50]] *= 1e6
    rows = Rows.from_dense(queries, 0)
    whole = pool.sums(rows)
    for step in (1, 5, BLOCK_ROWS - 1):
        parts = [
            rows.slice(start, min(start + step, BLOCK_ROWS)) for start in range(0, BLOCK_ROWS, step)
        ]
        assert np.concatenate([pool.sums(part) for part in parts]).tobytes() == whole.tobytes()
    for number, member in enumerate(members):
        alone = weighted_pool([member], 40, dense=dense).sums(rows)
        assert alone[:, 0].tobytes() == whole[:, number].tobytes()
