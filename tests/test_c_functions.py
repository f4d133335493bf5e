"""Each C function refuses an array that it cannot use, and names the argument."""

from __future__ import annotations

import numpy as np
import pytest

from tests.data import test_numbers, test_svmlight
from tests.misuse import (
    array_arguments,
    assert_refused,
    laid_out_otherwise,
    of_other_kinds,
    read_only,
)
from tests.svm import test_blocks

CALLS = {**test_svmlight.CALLS, **test_numbers.CALLS, **test_blocks.CALLS}
ARGUMENTS = array_arguments(CALLS)
# Arguments that are written.
WRITTEN = {(function, "ends") for function in ("scan", "rows")}
WRITTEN |= {("scan", name) for name in (*test_svmlight.PER_ROW, "indices", "values")}
WRITTEN |= {("columns", name) for name in ("firsts", "seconds")}
WRITTEN |= {("cells", name) for name in ("values", "spans", "odd")}
WRITTEN |= {("vectors", name) for name in ("coefficients", "numbers")}
WRITTEN |= {("transpose", name) for name in ("column_starts", "lines", "line_values")}
WRITTEN |= {("solve", name) for name in ("scratch", "coefficients", "rhos", "steps")}
WRITTEN |= {("rank", "scratch"), ("rank", "ranks"), ("multiply", "scratch"), ("follow", "values")}
WRITTEN |= {
    ("mark", "marks"),
    ("spread", "places"),
    ("spread", "matrix"),
    ("summarize", "statistics"),
}
WRITTEN |= {pair for pair in ARGUMENTS if pair[1] in ("block", "sums")} - {("add", "block")}
# A text may have any length; features beyond the places are passed over.
OF_ANY_LENGTH = {pair for pair in ARGUMENTS if pair[1] in ("text", "places")}
OF_ANY_LENGTH |= {("exp", "block"), ("mark", "numbers")}
OF_ANY_LENGTH -= {("spread", "places")}
MAY_BE_LONGER = {
    ("mark", "marks"),
    ("transpose", "column_starts"),
    ("solve", "scratch"),
    ("spread", "places"),
}
every_array = pytest.mark.parametrize(("function", "name"), ARGUMENTS)


@every_array
def test_arrays_of_other_kinds_are_refused(function, name):
    for other in of_other_kinds(CALLS[function][1][name]):
        if (function, name) != ("lines", "labels") or other is not None:
            assert_refused(CALLS, function, name, other, TypeError, "must be an array of")


@every_array
def test_arrays_with_gaps_or_on_odd_addresses_are_refused(function, name):
    for said, other in laid_out_otherwise(CALLS[function][1][name]):
        assert_refused(CALLS, function, name, other, ValueError, f"must be {said}")


@every_array
def test_only_arrays_that_are_read_may_be_read_only(function, name):
    call, arguments = CALLS[function]
    fixed = read_only(arguments[name])
    if (function, name) in WRITTEN:
        assert_refused(CALLS, function, name, fixed, ValueError, "must be writable")
    else:
        call(*{**arguments, name: fixed}.values())


@every_array
def test_arrays_of_other_lengths_are_refused(function, name):
    whole = CALLS[function][1][name].reshape(-1)
    others = [] if (function, name) in OF_ANY_LENGTH else [whole[:0].copy(), whole[:-1].copy()]
    if others and (function, name) in WRITTEN - MAY_BE_LONGER:
        others.append(np.append(whole, whole[-1:]))
    for other in others:
        assert_refused(CALLS, function, name, other, ValueError, "fit")
