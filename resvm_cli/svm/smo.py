"""Train many SVMs in one call from given kernel values, with solutions bit-identical to LIBSVM's.

LIBSVM itself takes precomputed values as nodes and looks up each one by serial number. Here the
values are laid out for vector instructions (smo.h). A call solves all its problems without holding
the GIL, so threads do not wait for each other even if a problem takes only 0.1 ms. docs/solver.md
compares the two.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray
from resvm_cli.svm import _blocks, libsvm
from resvm_cli.svm.kernels import Problem
from resvm_cli.svm.libsvm import Solution, iteration_limit, require_sound
from resvm_cli.svm.products import ScratchBuffer

if TYPE_CHECKING:
    import numpy.typing as npt

MAX_COEFFICIENTS = 1 << 20  # limits the memory of one call
MAX_DRAWS = 5000  # larger bags that mostly repeat rows are left to LIBSVM, whose cache is limited

_kernel_lines = ScratchBuffer(np.float32)


@dataclass(frozen=True, eq=False)
class Bags:
    """The row numbers of several bags, one bag after another.

    In each bag, rows of P come first and known negatives last.
    """

    numbers: IntArray
    starts: IntArray
    n_positive: IntArray
    n_negative: IntArray

    @classmethod
    def from_parts(
        cls, bags: Sequence[tuple[IntArray, IntArray]], n_negative: Sequence[int] | None = None
    ) -> Bags:
        """Concatenate bags, each given as its rows of P and its other rows."""
        lengths = [len(positive) + len(unlabeled) for positive, unlabeled in bags]
        return cls(
            np.concatenate([part for bag in bags for part in bag]),
            np.cumsum([0, *lengths]),
            np.array([len(positive) for positive, _ in bags], np.int64),
            np.array([0] * len(bags) if n_negative is None else n_negative, np.int64),
        )

    def __len__(self) -> int:
        return len(self.n_positive)

    def part(self, some: range) -> Bags:
        starts = self.starts[some.start : some.stop + 1]
        numbers = self.numbers[starts[0] : starts[-1]]
        own = slice(some.start, some.stop)
        return Bags(numbers, starts - starts[0], self.n_positive[own], self.n_negative[own])

    def pieces(self, n_problems: int) -> Iterator[range]:
        """Split the bags into one range per call, for ``n_problems`` problems per bag."""
        max_rows = int(np.diff(self.starts).max())
        step = max(1, MAX_COEFFICIENTS // (n_problems * max_rows))
        for first in range(0, len(self), step):
            yield range(first, min(first + step, len(self)))


@dataclass(frozen=True, eq=False)
class Solved:
    """The solutions of several bags, with the same number of SVMs for each bag."""

    bags: Bags
    coefficients: FloatArray  # SVMs per bag x rows of all bags
    rhos: FloatArray  # SVMs per bag x bags
    converged: npt.NDArray[np.bool_]

    def require_sound(self, line: int) -> None:
        """Raise SolverError if any solution in this line is invalid."""
        with np.errstate(invalid="ignore"):
            supports = np.add.reduceat(np.abs(self.coefficients[line]) > 0, self.bags.starts[:-1])
            sums = np.add.reduceat(self.coefficients[line], self.bags.starts[:-1])
        for n_support, total, rho in zip(supports, sums, self.rhos[line], strict=True):
            require_sound(int(n_support), np.array([total, rho]))

    def solution(self, line: int) -> Solution:
        """Return the solution in this line; there must be a single bag."""
        support = np.flatnonzero(self.coefficients[line])
        return Solution(
            support,
            self.coefficients[line, support],
            float(self.rhos[line, 0]),
            bool(self.converged[line, 0]),
        )


def solve(values: FloatArray, bags: Bags, problems: Sequence[Sequence[Problem]]) -> Solved:
    """Train SVMs on bags of rows, given the kernel values between all rows.

    Each line of ``problems`` has one problem per bag. Only the problems' penalties, tolerances,
    cache size and ``by_libsvm`` are used.
    """
    max_rows = int(np.diff(bags.starts).max())
    repeats = max_rows > max(MAX_DRAWS, 2 * len(values)) and not bags.n_negative.any()
    if repeats or problems[0][0].by_libsvm:
        return _solve_by_libsvm(values, bags, problems)
    shape = len(problems), len(bags)
    settings = np.array(
        [[(p.c_pos, p.c_unl, p.c_neg, p.tolerance) for p in line] for line in problems]
    )
    coefficients = np.empty((len(problems), len(bags.numbers)))
    rhos, steps = np.empty(shape), np.empty(shape, np.int64)
    lines = _kernel_lines.first(2 * max_rows**2 + _blocks.LINE_PADDING)
    given = values, len(values), bags.numbers, bags.starts, bags.n_positive, bags.n_negative
    _blocks.solve(*given, settings, lines, coefficients, rhos, steps)
    limits = np.array([iteration_limit(int(count)) for count in np.diff(bags.starts)])
    return Solved(bags, coefficients, rhos, steps < limits)


def solve_bag(values: FloatArray, bag: IntArray, n_positive: int, problem: Problem) -> Solution:
    """Train one SVM on the rows of a bag, P first, given the kernel values between all rows."""
    bags = Bags.from_parts([(bag[:n_positive], bag[n_positive:])], [problem.n_negative])
    solved = solve(values, bags, [[problem]])
    solved.require_sound(0)
    return solved.solution(0)


def _solve_by_libsvm(
    values: FloatArray, bags: Bags, problems: Sequence[Sequence[Problem]]
) -> Solved:
    coefficients = np.zeros((len(problems), len(bags.numbers)))
    rhos, converged = np.empty((2, len(problems), len(bags)))
    for bag, (first, last) in enumerate(itertools.pairwise(bags.starts.tolist())):
        numbers, n_positive = bags.numbers[first:last], int(bags.n_positive[bag])
        for line, some in enumerate(problems):
            found = libsvm.train_on_values(some[bag], values, numbers, n_positive)
            coefficients[line, first + found.support] = found.coefficients
            rhos[line, bag], converged[line, bag] = found.rho, found.converged
    return Solved(bags, coefficients, rhos, converged > 0)
