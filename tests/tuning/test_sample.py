"""Folds have equal sizes and do not split groups; shared kernel values give the same members."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from resvm_cli.data.pudata import MemoryData
from resvm_cli.ensemble.plan import resolve_defaults
from resvm_cli.errors import ParameterError
from resvm_cli.parameters import KERNEL_NAMES, Params
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from resvm_cli.svm import products
from resvm_cli.svm.kernels import Kernel
from resvm_cli.tuning.candidates import SearchOptions
from resvm_cli.tuning.sample import Folds, SharedKernels, TuningSample
from tests.fitting import problems

RNG = np.random.default_rng(8)
POSITIVES = RNG.standard_normal((20, 6)) + 0.8
UNLABELED = RNG.standard_normal((70, 6))


@given(st.integers(2, 8), st.integers(8, 40), st.integers(0, 60), st.integers(0, 2**40))
def test_each_fold_has_its_share_of_p_and_of_u(n_folds, n_pos, n_unl, seed):
    line = Folds.drawn(n_pos, n_unl, n_folds, seed).numbers
    for rows in (line[:n_pos], line[n_pos:]):
        counts = np.bincount(rows, minlength=n_folds)
        assert counts.max() - counts.min() <= 1
        assert len(counts) == n_folds


def test_the_seed_decides():
    numbers = Folds.drawn(30, 90, 5, 1).numbers
    assert np.array_equal(numbers, Folds.drawn(30, 90, 5, 1).numbers)
    assert not np.array_equal(numbers, Folds.drawn(30, 90, 5, 2).numbers)


@given(st.lists(st.integers(0, 9), min_size=30, max_size=60), st.integers(0, 2**32))
def test_a_group_is_never_split(names, seed):
    groups = np.array([*range(10), *names])
    line = Folds.drawn(20, len(groups) - 20, 4, seed, groups=groups).numbers
    for group in range(10):
        assert len(set(line[groups == group].tolist())) == 1
    assert set(line[:20].tolist()) == {0, 1, 2, 3}


def test_more_folds_than_positives_or_their_groups_are_refused():
    with pytest.raises(ParameterError, match="only 4 rows of P"):
        Folds.drawn(4, 50, 5, 0)
    with pytest.raises(ParameterError, match="only 2 groups"):
        Folds.drawn(6, 4, 3, 0, groups=np.array([0, 0, 0, 1, 1, 1, 2, 3, 4, 5]))


def test_a_weight_for_known_negatives_needs_some():
    data = MemoryData.from_matrix(sparse.eye_array(40, format="csr"), np.arange(40) < 20)
    settings = SearchOptions(base=Params(w_neg=2.0))
    with pytest.raises(ParameterError, match="`w_neg` applies to known negatives"):
        TuningSample.from_data(data, settings, Run())


def members(method, kernel):
    sizes = {} if method == "cwsvm" else {"n_models": 7, "n_unl": 25}
    params = Params(method=method, kernel=kernel, gamma=0.2, coef0=0.5, degree=2, **sizes)
    plan = resolve_defaults(params, 20, 70, 6, lambda: 1.0)
    return plan, list(problems(plan, range(plan.n_models)))


def values(kernel, gram_mb, tasks, some=None):
    sets = (POSITIVES, UNLABELED)
    if kernel.name == "minmax":
        sets = tuple(map(np.abs, sets))
    rows = tuple(map(Rows.from_dense, sets))
    kernels = SharedKernels(*rows, gram_mb)
    with kernels.trainer(Kernel("rbf", 0.7), Run()):  # leaves its room to the next
        pass
    with kernels.trainer(kernel, Run()) as trainer:
        (found,) = trainer.ensemble_values([tasks], some)
        return found


@pytest.mark.parametrize("method", ["resvm", "bagging", "cwsvm"])
@pytest.mark.parametrize("kernel", [name for name in KERNEL_NAMES if name != "precomputed"])
def test_values_agree_with_those_of_training_and_predicting(method, kernel):
    plan, tasks = members(method, kernel)
    shared = values(plan.kernel, 10, tasks)
    apart = values(plan.kernel, 0, tasks)
    assert shared.shape == (plan.n_models, 90)
    np.testing.assert_allclose(shared, apart, atol=1e-9)
    some = np.array([3, 20, 50, 89])
    for room in (10, 0):
        found = values(plan.kernel, room, tasks, some)
        np.testing.assert_allclose(found, shared[:, some], atol=1e-9)


def test_known_negatives_have_their_own_penalty():
    found = []
    for w_neg in (0.1, 10.0):
        params = Params(gamma=0.2, n_models=4, n_unl=25, c_pos=1.0, w_neg=w_neg)
        plan = resolve_defaults(params, 20, 50, 6, lambda: 1.0, rows_neg=20)
        tasks = list(problems(plan, range(4)))
        found.append(values(plan.kernel, 10, tasks))
        np.testing.assert_allclose(found[-1], values(plan.kernel, 0, tasks), atol=1e-9)
    assert found[1][:, 70:].mean() < found[0][:, 70:].mean() - 0.1


def test_whether_kernels_are_shared_is_decided_by_the_number_of_rows_alone():
    rows = Rows.from_dense(POSITIVES), Rows.from_dense(UNLABELED)
    assert SharedKernels(*rows, 16 * 90 * 90 / 1e6).shares_kernels
    assert not SharedKernels(*rows, 16 * 90 * 90 / 1e6 - 1e-9).shares_kernels


def test_sparse_rows_have_the_same_products(monkeypatch):
    rows = Rows.from_dense(UNLABELED * (RNG.random(UNLABELED.shape) < 0.3))
    expected = products.kernel_products(rows, Kernel("linear"))
    monkeypatch.setattr(products, "MAX_PRODUCT_CELLS", 0)
    np.testing.assert_allclose(
        products.kernel_products(rows, Kernel("linear")), expected, atol=1e-12
    )


def test_a_linear_member_of_liblinear_is_trained_by_it():
    params = Params(kernel="linear", solver="liblinear", n_models=3, n_unl=25)
    plan = resolve_defaults(params, 20, 70, 6, lambda: 1.0)
    tasks = list(problems(plan, range(3)))
    shared = values(plan.kernel, 10, tasks)
    apart = values(plan.kernel, 0, tasks)
    assert shared.tobytes() == apart.tobytes()
