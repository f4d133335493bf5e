"""Kernel values by products of whole bags: LIBSVM's numbers, and its solutions."""

from __future__ import annotations

import numpy as np
import pytest

from resvm_cli.data.pudata import MemoryData
from resvm_cli.ensemble.ensemble import Predictor
from resvm_cli.ensemble.plan import Plan
from resvm_cli.parameters import LIBSVM_KERNELS, Params
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from resvm_cli.svm import libsvm, products, smo
from resvm_cli.svm.kernels import Kernel, Problem
from resvm_cli.svm.libsvm import NodeArray
from resvm_cli.svm.products import Bag, bag_values
from tests.fitting import train_part

RNG = np.random.default_rng(11)
X = RNG.standard_normal((60, 9)) * (RNG.random((60, 9)) < 0.7)
X[:25] += 0.6
OF_FEATURES = LIBSVM_KERNELS[:4]
KERNELS = {name: Kernel(name, gamma=0.2, coef0=0.5, degree=2) for name in OF_FEATURES}

RBF = Kernel("rbf", gamma=1.0)


def whole_bag(rows):
    return Bag.from_rows(rows).part(np.arange(len(rows)), RBF)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("name", OF_FEATURES)
def test_kernel_values_have_the_solution_that_libsvm_finds_from_rows(name, dense, monkeypatch):
    rows = Rows.from_dense(X)
    positive, unlabeled = np.arange(25), np.arange(25, 60)
    problem = Problem(positive, unlabeled, 2.0, 1.0, KERNELS[name], 1e-6, 100.0)
    plain = libsvm.train(problem, NodeArray(rows), positive, unlabeled)
    monkeypatch.setattr(products, "MIN_DENSITY", 0.0 if dense else 2.0)
    bag = whole_bag(rows)
    assert bag.is_dense == dense
    values = bag_values(KERNELS[name], bag)
    pooled = smo.solve(values, smo.Bags.from_parts([(positive, unlabeled)]), [[problem]]).solution(
        0
    )
    assert np.array_equal(pooled.support, plain.support)
    np.testing.assert_allclose(pooled.coefficients, plain.coefficients, atol=1e-4)
    assert pooled.rho == pytest.approx(plain.rho, abs=1e-4)


def test_only_features_that_are_present_take_memory():
    rows = Rows(np.array([0, 2, 3]), np.array([5, 900, 5], np.int32), np.array([1.0, 2.0, 3.0]))
    bag = whole_bag(rows)
    assert bag.features.tolist() == [5, 900]
    assert bag.products(RBF).tolist() == [[5.0, 3.0], [3.0, 9.0]]
    combined = bag.combined(np.array([3.0, -1.0]))
    assert combined.indices.tolist() == [900]  # 3 * 1 - 1 * 3 is no entry
    assert combined.values.tolist() == [6.0]


def test_sparse_bags_have_the_same_products_and_sums(monkeypatch):
    rows = Rows.from_dense(X * (RNG.random(X.shape) < 0.3), first_index=4)
    coefficients = RNG.standard_normal(60)
    dense = whole_bag(rows)
    monkeypatch.setattr(products, "MIN_DENSITY", 2.0)
    sparse = whole_bag(rows)
    assert dense.is_dense
    assert not sparse.is_dense
    found = sparse.products(RBF)
    np.testing.assert_allclose(found, dense.products(RBF), atol=1e-13)
    assert np.array_equal(found, found.T)
    ours, theirs = sparse.combined(coefficients), dense.combined(coefficients)
    assert np.array_equal(ours.indices, theirs.indices)
    np.testing.assert_allclose(ours.values, theirs.values, atol=1e-13)


def test_sizes_decide_whether_a_bag_is_dense_or_sparse_or_stays_with_libsvm(monkeypatch):
    assert not whole_bag(Rows.from_dense(np.eye(200))).is_dense
    few = Rows.from_dense(X)
    assert whole_bag(few).is_dense
    monkeypatch.setattr(products, "MAX_ROWS", 59)
    assert whole_bag(few) is None
    monkeypatch.setattr(products, "MAX_ROWS", 200)
    monkeypatch.setattr(products, "MAX_CELLS", 60 * 9 - 1)
    assert whole_bag(few) is None
    monkeypatch.setattr(products, "MAX_ENTRIES", 199)
    assert whole_bag(Rows.from_dense(np.eye(200))) is None


@pytest.mark.parametrize("method", ["resvm", "bagging", "cwsvm"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_ensemble_predicts_the_same_from_products_and_from_rows(method, kernel, monkeypatch):
    data = MemoryData(Rows.from_dense(X[:25]), Rows.from_dense(X[25:]))
    bags = {} if method == "cwsvm" else {"n_models": 6, "n_unl": 20}
    params = Params(method=method, kernel=kernel, tolerance=1e-7, **bags)
    plan = Plan.resolve(params, data)

    def predicted():
        part = train_part(plan, range(plan.n_models), data, Run(jobs=1))
        assert all(part.converged)
        return Predictor(part.ensemble).member_values(Rows.from_dense(X))

    by_product = predicted()
    monkeypatch.setattr(products, "MAX_ROWS", 0)
    monkeypatch.setattr(smo, "solve", None)  # must not be used now
    by_rows = predicted()
    np.testing.assert_allclose(by_rows, by_product, atol=1e-5)


def test_rows_drawn_twice_take_no_more_memory(monkeypatch):
    data = MemoryData(Rows.from_dense(X[:25]), Rows.from_dense(X[25:]))
    plan = Plan.resolve(Params(n_models=2, n_pos=50, n_unl=150), data)
    sizes = []

    real = smo.solve

    def spying(values, *rest):
        sizes.append(len(values))
        return real(values, *rest)

    monkeypatch.setattr(smo, "solve", spying)
    train_part(plan, range(2), data, Run(jobs=1))
    assert len(sizes) == 2
    assert max(sizes) <= 60
