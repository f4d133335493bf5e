"""LIBLINEAR behind its C API, against scikit-learn's copy of it and against LIBSVM."""

from __future__ import annotations

import ctypes
import json
from importlib import metadata

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from resvm_cli.errors import SolverError
from resvm_cli.rows import Rows
from resvm_cli.svm import libsvm
from resvm_cli.svm.kernels import Kernel, Problem
from resvm_cli.svm.liblinear import LinearTrainer
from resvm_cli.svm.libsvm import LinearSolution, NodeArray, package_version

RNG = np.random.default_rng(9)
X = np.r_[RNG.standard_normal((60, 4)) + 0.7, RNG.standard_normal((200, 4)) - 0.7] * 2
POSITIVE, UNLABELED = np.arange(60), np.arange(60, 260)
Y = np.repeat([1, -1], [60, 200])


def problem(**changes) -> Problem:
    settings = {"c_pos": 0.4, "c_unl": 0.1, "tolerance": 1e-6, "seed": 5}
    return Problem(
        POSITIVE, UNLABELED, kernel=Kernel("linear"), solver="liblinear", **settings | changes
    )


def train(first_index: int = 1, **changes) -> LinearSolution:
    trainer = LinearTrainer(Rows.from_dense(X, first_index))
    return trainer.train(problem(**changes), POSITIVE, UNLABELED)


def test_the_same_model_as_scikit_learn():
    found = train(bias=3.0)
    theirs = LinearSVC(
        C=1.0, loss="hinge", intercept_scaling=3.0, class_weight={1: 0.4, -1: 0.1}, tol=1e-6,
        max_iter=100_000,
    ).fit(X, Y)  # fmt: skip
    assert found.weights.values == pytest.approx(theirs.coef_[0], abs=1e-3)
    assert -found.rho == pytest.approx(theirs.intercept_[0], abs=1e-3)
    assert train(bias=3.0, tolerance=0.01).converged


def test_a_large_bias_feature_gives_libsvms_unpenalized_optimum():
    exact = libsvm.train(problem(), NodeArray(Rows.from_dense(X)), POSITIVE, UNLABELED)
    bag = np.concatenate([POSITIVE, UNLABELED])
    weights = exact.coefficients @ X[bag[exact.support]]
    found = train(bias=12.0)
    assert found.weights.values == pytest.approx(weights, abs=0.02)
    assert found.rho == pytest.approx(exact.rho, abs=0.02)
    small = train(bias=0.01)  # there the bias is held back
    assert abs(small.rho - exact.rho) > 2 * abs(found.rho - exact.rho)


def test_the_automatic_bias_is_the_mean_row_norm_of_the_bag():
    norm = float(np.sqrt((X**2).sum(axis=1)).mean())
    automatic, given = train(), train(bias=norm)
    assert automatic.weights.values == pytest.approx(given.weights.values, rel=1e-12)
    assert automatic.rho == pytest.approx(given.rho, rel=1e-12)


@pytest.mark.parametrize("first_index", [0, 1, 1000, 2**31 - 6])
def test_features_are_renumbered_so_any_index_is_possible(first_index):
    found = train(first_index)
    assert found.weights.indices.tolist() == list(range(first_index, first_index + 4))
    assert found.weights.values.tobytes() == train().weights.values.tobytes()


def test_only_the_seed_changes_a_solution():
    loose = {"tolerance": 0.5}
    first = train(**loose).weights.values.tobytes()
    assert train(seed=6, **loose).weights.values.tobytes() != first
    libsvm.train(problem(), NodeArray(Rows.from_dense(X)), POSITIVE, UNLABELED)
    assert train(**loose).weights.values.tobytes() == first


def test_one_trainer_serves_bags_of_different_bias():
    trainer = LinearTrainer(Rows.from_dense(X))
    first = trainer.train(problem(bias=3.0), POSITIVE, UNLABELED)
    trainer.train(problem(bias=50.0), POSITIVE[:9], UNLABELED[:40])
    again = trainer.train(problem(bias=3.0), POSITIVE, UNLABELED)
    assert again.weights.values.tobytes() == first.weights.values.tobytes()
    assert again.rho == first.rho


def test_not_converging_is_noticed():
    assert not train(c_pos=1e7, c_unl=1e7, tolerance=1e-12).converged


def test_an_objection_of_liblinear_is_an_error_that_quotes_it():
    with pytest.raises(SolverError, match="LIBLINEAR rejects the problem: eps <= 0"):
        train(tolerance=-1.0)


def test_liblinear_prints_nothing(capfd):
    train(c_pos=1e7, c_unl=1e7, tolerance=1e-12)
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr() == ("", "")


def test_the_version_is_known():
    for package in ("liblinear", "libsvm"):
        assert package_version(package) == metadata.version(f"{package}-official")


def test_members_that_did_not_converge_are_counted_and_reported(problem, resvm, tmp_path):
    ran = resvm(
        "train", "--no-auto", "-P", problem / "pos.svm", "-U", problem / "unl.svm", "-t", "linear",
        "--solver", "liblinear", "-c", "1e7", "-e", "1e-12", "--n-models", 3, "-o", tmp_path / "m",
    )  # fmt: skip
    assert ran.code == 0
    assert "3 of 3 members stopped at LIBLINEAR's iteration limit" in ran.err
    assert json.loads((tmp_path / "m" / "manifest.json").read_text())["unconverged"] == 3


def test_without_a_bias_the_weights_are_those_of_scikit_learn_without_an_intercept():
    found = train(bias=-1.0)
    theirs = LinearSVC(
        C=1.0, loss="hinge", fit_intercept=False, class_weight={1: 0.4, -1: 0.1}, tol=1e-6,
        max_iter=100_000,
    ).fit(X, Y)  # fmt: skip
    assert found.weights.values == pytest.approx(theirs.coef_[0], abs=1e-3)
    assert str(found.rho) == "0.0"
    assert train(bias=3.0).rho != 0.0
