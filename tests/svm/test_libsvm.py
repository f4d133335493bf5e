"""LIBSVM behind its C API, against scikit-learn's copy of it."""

from __future__ import annotations

import ctypes
import os
from threading import Thread

import numpy as np
import pytest

from resvm_cli.errors import SolverError
from resvm_cli.rows import Rows
from resvm_cli.svm import libsvm
from resvm_cli.svm.kernels import Kernel, Problem
from resvm_cli.svm.libsvm import NODE, NodeArray, Solution, iteration_limit, require_sound
from tests.programs import run, script_command

RNG = np.random.default_rng(5)
X = np.r_[RNG.standard_normal((15, 4)) + 0.7, RNG.standard_normal((40, 4)) - 0.7]
X *= RNG.random(X.shape) < 0.8
POSITIVE, UNLABELED = np.arange(15), np.arange(15, 55)
KERNELS = [
    Kernel("linear"),
    Kernel("poly", gamma=0.3, coef0=0.7, degree=2),
    Kernel("rbf", gamma=0.4),
    Kernel("sigmoid", gamma=0.05, coef0=0.1),
]


def problem(kernel: Kernel, **changes) -> Problem:
    settings = {"c_pos": 4.0, "c_unl": 1.5, "tolerance": 1e-8} | changes
    return Problem(POSITIVE, UNLABELED, kernel=kernel, **settings)


def train(kernel: Kernel, **changes) -> Solution:
    return libsvm.train(
        problem(kernel, **changes), NodeArray(Rows.from_dense(X)), POSITIVE, UNLABELED
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_the_same_model_as_scikit_learn(kernel):
    from sklearn.svm import SVC  # here: programs below import this module

    solution = train(kernel)
    theirs = SVC(
        C=1.0,
        kernel=kernel.name,
        gamma=kernel.gamma or "scale",
        coef0=kernel.coef0,
        degree=kernel.degree,
        class_weight={1: 4.0, -1: 1.5},
        tol=1e-8,
    ).fit(X, np.r_[np.ones(15), -np.ones(40)])
    coefficients = np.zeros(55)
    coefficients[solution.support] = solution.coefficients
    expected = np.zeros(55)
    expected[theirs.support_] = theirs.dual_coef_[0]
    assert coefficients == pytest.approx(expected, abs=1e-5)
    assert -solution.rho == pytest.approx(theirs.intercept_[0], abs=1e-5)
    assert solution.converged


def test_positives_have_positive_coefficients_bounded_by_their_penalty():
    solution = train(KERNELS[2])
    of_positives = solution.coefficients[solution.support < 15]
    of_unlabeled = solution.coefficients[solution.support >= 15]
    assert of_positives.min() > 0
    assert of_positives.max() <= 4.0
    assert of_unlabeled.max() < 0
    assert of_unlabeled.min() >= -1.5


def test_an_objection_of_libsvm_is_an_error_that_quotes_it():
    with pytest.raises(SolverError, match="LIBSVM rejects the problem: eps <= 0"):
        train(KERNELS[0], tolerance=-1.0)
    with pytest.raises(SolverError, match="gamma < 0"):
        train(Kernel("rbf", gamma=-1.0))


def test_overflowing_kernels_become_an_error_and_not_a_model_of_nan():
    with pytest.raises(SolverError, match="without any support vectors"):
        train(Kernel("poly", gamma=1e300, degree=9))


def test_a_tolerance_too_loose_to_learn_anything_is_an_error():
    with pytest.raises(SolverError, match="without any support vectors"):
        train(KERNELS[2], tolerance=3.0)


def test_a_solver_stopped_at_its_iteration_limit_says_so(monkeypatch):
    monkeypatch.setattr(libsvm, "iteration_limit", lambda n_rows: 10)
    assert not train(KERNELS[2]).converged
    monkeypatch.setattr(libsvm, "iteration_limit", lambda n_rows: 10_000)
    assert train(KERNELS[2]).converged


def test_threads_train_the_same_models():
    expected = train(KERNELS[2])
    found: list[Solution] = []

    def work() -> None:
        libsvm.use_threads(1)
        found.extend(train(KERNELS[2]) for _ in range(20))

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert all(one.coefficients.tobytes() == expected.coefficients.tobytes() for one in found)
    assert all(one.rho == expected.rho for one in found)


def test_openmp_threads_change_no_bit():
    models = []
    for count in (1, 2, 3):
        libsvm.use_threads(count)
        models.append(train(KERNELS[2]).coefficients.tobytes())
    libsvm.use_threads(1)
    assert len(set(models)) == 1


def test_libsvm_prints_nothing(capfd):
    for kernel in KERNELS:
        train(kernel)
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux")
@pytest.mark.slow
def test_training_leaks_no_memory():
    script = """
import sys
sys.path.insert(0, '.')
from tests.svm.test_libsvm import train, KERNELS, libsvm
libsvm.use_threads(1)
def resident():
    with open("/proc/self/statm") as pages: return 4 * int(pages.read().split()[1])
for _ in range(300): train(KERNELS[2], tolerance=0.1)
before = resident()
for _ in range(3000): train(KERNELS[2], tolerance=0.1)
print(resident() - before)
"""
    ran = run(script_command(script))
    # a leaked model of this size would add 4 MB and more
    assert int(ran.out) < 1500, ran.err


def test_a_node_array_ends_every_row():
    rows = Rows.from_dense(np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 0]]))
    nodes = NodeArray(rows)
    assert nodes._nodes["index"].tolist() == [1, 3, -1, -1, 2, -1]
    assert nodes._nodes["value"].tolist() == [1, 2, 0, 0, 3, 0]
    addresses = nodes.pointers(np.array([2, 0, 0]))
    start = nodes._nodes.ctypes.data
    assert ((addresses - start) // NODE.itemsize).tolist() == [4, 0, 0]
    assert NODE.itemsize == 16


def test_libsvm_stops_after_a_hundred_iterations_per_row_but_not_before_ten_millions():
    assert [iteration_limit(n_rows) for n_rows in (1, 100_000, 100_001)] == [
        10**7,
        10**7,
        10_000_100,
    ]


@pytest.mark.parametrize(
    ("n_support", "numbers", "message", "hint"),
    [
        (0, [1.0], "without any support vectors", "lower `tolerance`"),
        (1, [1.0, np.nan], "numbers that are not finite", "scale the features"),
        (1, [-np.inf], "numbers that are not finite", "`coef0` or `degree`"),
    ],
)
def test_a_solution_that_is_none_is_an_error_with_advice(n_support, numbers, message, hint):
    with pytest.raises(SolverError, match=message) as caught:
        require_sound(n_support, np.array(numbers))
    assert hint in str(caught.value.hint)
    require_sound(1, np.array([0.0, -1e308]))
