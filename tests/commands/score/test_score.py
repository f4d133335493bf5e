"""The job of score in memory: thresholds that labels imply."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli.commands.score.score import implied_threshold

finite = st.floats(-1e6, 1e6)


@given(st.lists(finite, min_size=1, max_size=20), finite)
def test_the_threshold_that_labels_imply_gives_the_labels_back(values, threshold):
    numbers = np.array(values)
    found, source = implied_threshold(numbers, numbers > threshold)
    assert np.array_equal(numbers > found, numbers > threshold)
    assert source == "the file's labels"


@pytest.mark.parametrize(
    ("values", "labels", "threshold"),
    [
        ([0.1, 0.9], [False, True], 0.5),
        ([-0.1, 0.2], [False, True], 0.0),
        ([0.6, 0.9], [False, True], 0.6),
        ([0.1, 0.2], [False, False], 0.5),
        ([0.6, 0.9], [True, True], 0.5),
    ],
)
def test_a_usual_threshold_is_preferred_where_it_fits(values, labels, threshold):
    assert implied_threshold(np.array(values), np.array(labels))[0] == threshold


def test_labels_that_follow_no_threshold_leave_the_default():
    found, source = implied_threshold(np.array([0.1, 0.9]), np.array([True, False]))
    assert found == 0.5
    assert "no threshold separates the file's labels" in source
    assert implied_threshold(np.array([3.0]), None) == (0.5, "the default")
