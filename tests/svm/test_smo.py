"""The solver of bags whose kernel values are known: LIBSVM's solutions, to the bit."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from sklearn.svm import SVC

from resvm_cli.errors import SolverError
from resvm_cli.rows import Rows
from resvm_cli.svm import _blocks, libsvm, smo
from resvm_cli.svm.kernels import Kernel, Problem
from resvm_cli.svm.libsvm import NodeArray, Solution
from resvm_cli.svm.products import Bag, bag_values

GIVEN = Kernel("precomputed")


def problem(c_pos: float = 1.0, c_unl: float = 1.0, tolerance: float = 1e-3) -> Problem:
    none = np.empty(0, np.int64)
    return Problem(none, none, c_pos, c_unl, GIVEN, tolerance, 100.0)


def by_libsvm(values: np.ndarray, bag: np.ndarray, n_positive: int, given: Problem) -> Solution:
    """From rows of LIBSVM's precomputed kernel, which looks up zeros by their place too."""
    count = len(bag)
    lines = np.column_stack([np.arange(1.0, count + 1), values[np.ix_(bag, bag)]])
    indices = np.tile(np.arange(count + 1, dtype=np.int32), count)
    rows = Rows(np.arange(0, count * (count + 1) + 1, count + 1), indices, lines.reshape(-1))
    places = np.arange(count)
    return libsvm.train(given, NodeArray(rows), places[:n_positive], places[n_positive:])


def assert_same_bits(found: Solution, expected: Solution) -> None:
    assert found.support.tolist() == expected.support.tolist()
    assert found.coefficients.tobytes() == expected.coefficients.tobytes()
    assert np.float64(found.rho).tobytes() == np.float64(expected.rho).tobytes()
    assert found.converged == expected.converged


KERNELS = {
    "linear": Kernel("linear"),
    "poly": Kernel("poly", gamma=0.2, coef0=1.0, degree=3),
    "rbf": Kernel("rbf", gamma=0.3),
    "sigmoid": Kernel("sigmoid", gamma=0.1, coef0=-0.5),
    "tanimoto": Kernel("tanimoto"),
    "minmax": Kernel("minmax"),
    "laplacian": Kernel("laplacian", gamma=0.3),
}


def kernel_of(kind: str, rows: np.ndarray) -> np.ndarray:
    sparse = Bag.from_rows(Rows.from_dense(np.abs(rows) if kind == "minmax" else rows))
    return bag_values(KERNELS[kind], sparse)


@pytest.mark.parametrize("kind", [*KERNELS])
@settings(max_examples=40)
@given(data=st.data())
def test_small_bags_have_libsvms_bits(kind, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    count = data.draw(st.integers(1, 40))
    rows = rng.standard_normal((count, data.draw(st.integers(1, 6))))
    if data.draw(st.booleans()):
        rows = np.round(rows)  # equal rows, and gains that are the same
    bag = rng.integers(0, count, data.draw(st.integers(2, 60)))
    n_positive = data.draw(st.integers(1, len(bag) - 1))
    penalties = data.draw(st.tuples(*[st.sampled_from([0.01, 0.3, 1.0, 7.0])] * 2))
    given_problem = problem(*penalties, data.draw(st.sampled_from([0.1, 1e-3])))
    values = kernel_of(kind, rows)
    expected = by_libsvm(values, bag, n_positive, given_problem)
    assert_same_bits(smo.solve_bag(values, bag, n_positive, given_problem), expected)


@pytest.mark.parametrize("kind", [*KERNELS])
@pytest.mark.parametrize("penalty", [0.02, 1.0, 30.0])
@pytest.mark.parametrize("repeated", [False, True])
def test_bags_that_are_shrunk_have_libsvms_bits(kind, penalty, repeated):
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((230, 8))
    rows[:60] += 0.5
    bag = np.sort(rng.integers(0, 230, 300)) if repeated else np.arange(230)
    values = kernel_of(kind, rows)
    given_problem = problem(3 * penalty, penalty, 1e-4)
    expected = by_libsvm(values, bag, 60, given_problem)
    assert_same_bits(smo.solve_bag(values, bag, 60, given_problem), expected)


def test_lines_that_differ_from_columns_in_their_last_bits_are_read_as_libsvm_reads_them():
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((150, 4))
    values = kernel_of("rbf", rows) * (1.0 + 1e-7 * rng.standard_normal((150, 150)))
    given_problem = problem(5.0, 5.0, 1e-4)
    bag = rng.permutation(150)
    expected = by_libsvm(values, bag, 40, given_problem)
    assert_same_bits(smo.solve_bag(values, bag, 40, given_problem), expected)


@given(data=st.data())
def test_a_third_penalty_has_the_bits_of_libsvm_with_a_penalty_for_each_row(data):
    # LIBSVM itself has a penalty per class; scikit-learn's copy of it has one per row
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    count = data.draw(st.integers(6, 120))
    n_positive = data.draw(st.integers(1, count - 2))
    n_negative = data.draw(st.integers(1, count - n_positive))
    rows = rng.standard_normal((count, 3))
    rows[:n_positive] += 0.5
    penalties = data.draw(st.tuples(*[st.sampled_from([0.01, 0.3, 1.0, 7.0])] * 3))
    tolerance = data.draw(st.sampled_from([0.1, 1e-3, 1e-5]))
    values, bag = kernel_of("rbf", rows), np.arange(count)
    of_three = replace(
        problem(*penalties[:2], tolerance), n_negative=n_negative, c_neg=penalties[2]
    )
    bags = smo.Bags.from_parts([(bag[:n_positive], bag[n_positive:])], [n_negative])
    found = smo.solve(values, bags, [[of_three]]).solution(0)
    each = np.repeat(penalties, [n_positive, count - n_positive - n_negative, n_negative])
    labels = (bag >= n_positive).astype(float)  # P first, as in a bag; so the signs are opposite
    peer = SVC(kernel="precomputed", tol=tolerance).fit(values, labels, sample_weight=each)
    assert found.support.tolist() == peer.support_.tolist()
    assert found.coefficients.tobytes() == (-peer.dual_coef_[0]).tobytes()
    assert found.rho == peer.intercept_[0]


def test_a_large_bag_of_few_rows_is_left_to_libsvm_with_the_same_bits(monkeypatch):
    rng = np.random.default_rng(6)
    values = kernel_of("rbf", rng.standard_normal((40, 4)))
    bag = np.sort(rng.integers(0, 40, 160))
    expected = smo.solve_bag(values, bag, 50, problem(8.0, 4.0, 1e-4))
    monkeypatch.setattr(smo, "MAX_DRAWS", 100)
    monkeypatch.delattr(_blocks, "solve")
    assert_same_bits(smo.solve_bag(values, bag, 50, problem(8.0, 4.0, 1e-4)), expected)


def test_the_installed_libsvm_is_one_that_these_tests_were_run_with():
    project = Path(__file__).parents[2] / "pyproject.toml"
    (bounds,) = re.findall(r'^    "libsvm-official(.*)",', project.read_text(), re.MULTILINE)
    assert "<" in bounds
    assert libsvm.package_version("libsvm") in SpecifierSet(bounds)


BAG_RNG = np.random.default_rng(8)
ROWS = BAG_RNG.standard_normal((90, 5))
VALUES = kernel_of("rbf", ROWS)
PARTS = [
    (BAG_RNG.integers(0, 30, n_pos), BAG_RNG.integers(30, 90, n_unl))
    for n_pos, n_unl in [(10, 40), (25, 31), (3, 90)]
]
ENSEMBLES = [[problem(4.0, 1.0)] * 3, [problem(0.1, 0.2), problem(2.0, 9.0), problem(1.0, 1.0)]]


def test_many_problems_of_one_call_have_the_solutions_they_have_alone():
    solved = smo.solve(VALUES, smo.Bags.from_parts(PARTS), ENSEMBLES)
    for line, ensemble in enumerate(ENSEMBLES):
        for number, (part, each) in enumerate(zip(PARTS, ensemble, strict=True)):
            alone = smo.solve_bag(VALUES, np.concatenate(part), len(part[0]), each)
            first, last = solved.bags.starts[number : number + 2]
            coefficients = solved.coefficients[line, first:last]
            assert coefficients[alone.support].tobytes() == alone.coefficients.tobytes()
            assert np.flatnonzero(coefficients).tolist() == alone.support.tolist()
            assert solved.rhos[line, number] == alone.rho


def test_with_solver_libsvm_no_problem_is_solved_by_our_code(monkeypatch):
    expected = smo.solve(VALUES, smo.Bags.from_parts(PARTS), ENSEMBLES)
    given_to_libsvm = [[replace(one, by_libsvm=True) for one in line] for line in ENSEMBLES]
    monkeypatch.delattr(_blocks, "solve")
    found = smo.solve(VALUES, smo.Bags.from_parts(PARTS), given_to_libsvm)
    # ours are -0.0 for rows of U that are no support vectors
    assert found.coefficients.tobytes() == (expected.coefficients + 0.0).tobytes()
    assert found.rhos.tobytes() == expected.rhos.tobytes()
    assert found.converged.all()


def test_pieces_of_bags_hold_each_bag_once_and_keep_its_rows(monkeypatch):
    bags = smo.Bags.from_parts(PARTS)
    assert list(bags.pieces(2)) == [range(3)]
    monkeypatch.setattr(smo, "MAX_COEFFICIENTS", 2 * 2 * 93)
    assert list(bags.pieces(2)) == [range(2), range(2, 3)]
    part = bags.part(range(1, 3))
    assert part.numbers.tolist() == np.concatenate([*PARTS[1], *PARTS[2]]).tolist()
    assert part.starts.tolist() == [0, 56, 149]
    assert part.n_positive.tolist() == [25, 3]


def test_a_solution_at_the_iteration_limit_did_not_converge(monkeypatch):
    monkeypatch.setattr(smo, "iteration_limit", lambda n_rows: 10)
    assert not smo.solve_bag(VALUES, np.arange(90), 30, problem()).converged


def test_an_invalid_solution_is_an_error():
    with pytest.raises(SolverError, match="without any support vectors"):
        smo.solve_bag(VALUES, np.arange(90), 30, problem(tolerance=3.0))
    with pytest.raises(SolverError, match="without any support vectors"):
        smo.solve_bag(np.full((4, 4), np.nan), np.arange(4), 2, problem(tolerance=3.0))
    solved = smo.solve(VALUES, smo.Bags.from_parts(PARTS), ENSEMBLES)
    solved.rhos[1, 2] = np.inf
    solved.require_sound(0)
    with pytest.raises(SolverError, match="not finite"):
        solved.require_sound(1)
    solved.rhos[1, 2] = 0.0
    solved.coefficients[1, 60] = np.nan
    with pytest.raises(SolverError, match="not finite"):
        solved.require_sound(1)
