"""Kernel blocks against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import pairwise_kernels

from resvm_cli.rows import Columns, Rows
from resvm_cli.svm.kernels import Kernel, squared_distances

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


def test_kernel_numbers_are_libsvms():
    assert [Kernel(name).number for name in ("linear", "poly", "rbf", "sigmoid")] == [0, 1, 2, 3]


def test_distances_from_differences_keep_digits_that_norms_lose():
    pool = np.array([[1e8, 1.0], [1e8, 1.5], [0.0, 0.0]])
    row = Rows.from_dense(np.array([[1e8, 1.25]]), first_index=0)
    exact = squared_distances(
        row, Rows.from_dense(pool, first_index=0), Columns(np.arange(2, dtype=np.int32))
    )
    assert exact[:2].tolist() == [0.0625, 0.0625]
    assert exact[2] == pytest.approx(1e16)


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
