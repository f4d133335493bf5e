"""What a solution must be, whoever found it."""

from __future__ import annotations

import numpy as np
import pytest

from resvm_cli.errors import SolverError
from resvm_cli.svm.problem import iteration_limit, require_sound


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
