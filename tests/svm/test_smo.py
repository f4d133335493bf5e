"""The solver of bags whose kernel values are known: LIBSVM's solutions, to the bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli.errors import SolverError
from resvm_cli.rows import Rows
from resvm_cli.svm import libsvm, smo
from resvm_cli.svm.kernels import Kernel
from resvm_cli.svm.libsvm import NodeArray
from resvm_cli.svm.problem import Problem, Solution

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


def solve(values: np.ndarray, bag: np.ndarray, n_positive: int, given: Problem) -> Solution:
    bags = smo.Bags.from_parts([(bag[:n_positive], bag[n_positive:])])
    solved = smo.solve(values, bags, [[given]])
    solved.require_sound(0)
    return solved.solution(0)


def assert_same_bits(found: Solution, expected: Solution) -> None:
    assert found.support.tolist() == expected.support.tolist()
    assert found.coefficients.tobytes() == expected.coefficients.tobytes()
    assert np.float64(found.rho).tobytes() == np.float64(expected.rho).tobytes()
    assert found.converged == expected.converged


def kernel_of(kind: str, rows: np.ndarray) -> np.ndarray:
    products = rows @ rows.T
    if kind == "linear":
        return products
    if kind == "sigmoid":
        return np.tanh(0.1 * products - 0.5)
    norms = products.diagonal()
    return np.exp(-0.3 * np.maximum(0.0, norms[:, None] + norms - 2.0 * products))


@pytest.mark.parametrize("kind", ["linear", "rbf", "sigmoid"])
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
    assert_same_bits(solve(values, bag, n_positive, given_problem), expected)


@pytest.mark.parametrize("kind", ["linear", "rbf"])
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
    assert_same_bits(solve(values, bag, 60, given_problem), expected)


def test_lines_that_differ_from_columns_in_their_last_bits_are_read_as_libsvm_reads_them():
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((150, 4))
    values = kernel_of("rbf", rows) * (1.0 + 1e-7 * rng.standard_normal((150, 150)))
    given_problem = problem(5.0, 5.0, 1e-4)
    bag = rng.permutation(150)
    expected = by_libsvm(values, bag, 40, given_problem)
    assert_same_bits(solve(values, bag, 40, given_problem), expected)


def test_replacing_cached_lines_changes_nothing():
    rng = np.random.default_rng(6)
    values = kernel_of("rbf", rng.standard_normal((160, 4)))
    wide = problem(8.0, 4.0, 1e-4)
    tight = replace(wide, cache_mb=1e-6)
    assert_same_bits(
        solve(values, np.arange(160), 50, tight), solve(values, np.arange(160), 50, wide)
    )


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
            alone = solve(VALUES, np.concatenate(part), len(part[0]), each)
            first, last = solved.bags.starts[number : number + 2]
            coefficients = solved.coefficients[line, first:last]
            assert coefficients[alone.support].tobytes() == alone.coefficients.tobytes()
            assert np.flatnonzero(coefficients).tolist() == alone.support.tolist()
            assert solved.rhos[line, number] == alone.rho


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
    assert not solve(VALUES, np.arange(90), 30, problem()).converged


def test_an_invalid_solution_is_an_error():
    with pytest.raises(SolverError, match="without any support vectors"):
        solve(VALUES, np.arange(90), 30, problem(tolerance=3.0))
    with pytest.raises(SolverError, match="without any support vectors"):
        solve(np.full((4, 4), np.nan), np.arange(4), 2, problem(tolerance=3.0))
    solved = smo.solve(VALUES, smo.Bags.from_parts(PARTS), ENSEMBLES)
    solved.rhos[1, 2] = np.inf
    solved.require_sound(0)
    with pytest.raises(SolverError, match="not finite"):
        solved.require_sound(1)
    solved.rhos[1, 2] = 0.0
    solved.coefficients[1, 60] = np.nan
    with pytest.raises(SolverError, match="not finite"):
        solved.require_sound(1)
