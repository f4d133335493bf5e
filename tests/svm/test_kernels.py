"""Kernel blocks against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import pairwise_kernels

from resvm_cli.ensemble.ensemble import Member, Predictor
from resvm_cli.rows import Columns, Rows
from resvm_cli.run import Run
from resvm_cli.svm.kernels import Kernel, distances_to
from resvm_cli.svm.products import Bag, bag_values, kernel_products, kernel_values
from resvm_cli.tuning.sample import SharedKernels
from tests.ensemble.test_ensemble import ensemble_of

RNG = np.random.default_rng(2)
X, POOL = RNG.standard_normal((7, 5)), RNG.standard_normal((4, 5))


def values(kernel: Kernel) -> np.ndarray:
    return kernel.values(X @ POOL.T, (X**2).sum(axis=1), (POOL**2).sum(axis=1))


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (Kernel("linear"), {}),
        (Kernel("rbf", gamma=0.3), {"gamma": 0.3}),
        (Kernel("sigmoid", gamma=0.2, coef0=-0.4), {"gamma": 0.2, "coef0": -0.4}),
        *[
            (
                Kernel("poly", gamma=0.7, coef0=1.5, degree=d),
                {"gamma": 0.7, "coef0": 1.5, "degree": d},
            )
            for d in (1, 2, 3, 4, 7)
        ],
    ],
)
def test_the_same_values_as_scikit_learn(kernel, options):
    assert values(kernel) == pytest.approx(
        pairwise_kernels(X, POOL, metric=kernel.name, **options), rel=1e-12
    )


@pytest.mark.parametrize("density", [0.05, 0.9])
def test_laplacian_values_are_scikit_learns_on_every_way(density):
    kernel = Kernel("laplacian", gamma=0.3)
    dense = RNG.standard_normal((40, 30)) * (RNG.random((40, 30)) < density)
    dense[5], dense[6] = dense[4] + 1e7, dense[4] + 1e7 + 0.5  # norms are huge, differences small
    rows, expected = Rows.from_dense(dense), pairwise_kernels(dense, metric="laplacian", gamma=0.3)
    near = np.flatnonzero(~np.isin(np.arange(40), [5, 6]))
    some = np.ix_(near, near)
    bag = Bag.from_rows(rows).part(np.arange(40), kernel)
    with SharedKernels(rows, Rows.empty(), 100.0).trainer(kernel, Run()) as trainer:
        ways = bag_values(kernel, bag), kernel_values(kernel, kernel_products(rows, kernel))
        for found in (*ways, trainer._values):
            np.testing.assert_allclose(found[some], expected[some], rtol=1e-13)
    coefficients, weights = RNG.standard_normal(40), RNG.random(30)
    member = Member(np.arange(40), coefficients, 0.25, 10)
    found = Predictor(ensemble_of(kernel, rows, [member], True)).member_values(rows)[:, 0]
    np.testing.assert_allclose(found, expected @ coefficients - 0.25, rtol=1e-9)
    factors = Rows.one_row(np.arange(1, 31), weights)  # rows are multiplied by a member's weights
    member = Member(np.arange(40), coefficients, 0.25, 10, factors)
    expected = pairwise_kernels(dense * weights, metric="laplacian", gamma=0.3)
    weighted = ensemble_of(kernel, rows.times(factors), [member] * 2, False)
    found = Predictor(weighted).member_values(rows)
    np.testing.assert_allclose(found[:, 1], expected @ coefficients - 0.25, rtol=1e-9)


def test_kernel_numbers_are_libsvms():
    assert [Kernel(name).number for name in ("linear", "poly", "rbf", "sigmoid")] == [0, 1, 2, 3]


def test_distances_from_differences_keep_digits_that_norms_lose():
    pool = np.array([[1e8, 1.0], [1e8, 1.5], [0.0, 0.0]])
    row = Rows.from_dense(np.array([[1e8, 1.25]]), first_index=0)
    columns, pool = Columns(np.arange(2, dtype=np.int32)), Rows.from_dense(pool, first_index=0)
    for name, expected, far in (("rbf", 0.0625, 1e16), ("laplacian", 0.25, 1e8)):
        exact = distances_to(row, pool, columns, Kernel(name, gamma=1.0))
        assert exact[:2].tolist() == [expected, expected]
        assert exact[2] == pytest.approx(far)


def test_the_error_bound_of_exponents_holds():
    rng = np.random.default_rng(0)
    kernel = Kernel("rbf", gamma=0.7)
    for scale in (1.0, 1e3, 1e6):
        rows, pool = scale + rng.standard_normal((2, 50, 20))
        norms, pool_norms = (rows**2).sum(axis=1), (pool**2).sum(axis=1)
        found = kernel.exponents(rows @ pool.T, norms, pool_norms)
        exact = -0.7 * ((rows[:, None, :] - pool[None, :, :]) ** 2).sum(axis=2)
        bound = kernel.exponent_errors(norms, pool_norms.max())
        assert (np.abs(found - exact).max(axis=1) <= bound + 1e-12).all()
