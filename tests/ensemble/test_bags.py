"""Which rows of P are drawn, and in which proportion."""

from __future__ import annotations

import numpy as np
import pytest

from resvm_cli.data.pudata import PositiveWeights
from resvm_cli.ensemble.plan import bag_of, require_weighted_draws, resolve_defaults
from resvm_cli.errors import DataError, ParameterError
from resvm_cli.parameters import Params


def plan(weights, n_pos=200):
    params = Params(n_pos=n_pos, n_unl=10, gamma=1.0)
    return resolve_defaults(params, 5, 30, 1, lambda: 1.0, weights)


@pytest.mark.parametrize("value", [1.0, 0.5, 0.3])
def test_equal_weights_are_none(value):
    assert PositiveWeights.from_values([value] * 5) is None


def test_rows_are_drawn_in_proportion_and_those_of_weight_0_never():
    weights = PositiveWeights.from_values([0.0, 0.2, 0.6, 0.2, 0.0])
    counts = np.zeros(5)
    for member in range(50):
        positive, _ = bag_of(plan(weights), member)
        counts += np.bincount(positive, minlength=5)
    assert counts[[0, 4]].tolist() == [0, 0]
    assert counts / counts.sum() == pytest.approx([0, 0.2, 0.6, 0.2, 0], abs=0.02)


def test_rows_of_u_are_drawn_as_without_weights():
    weights = PositiveWeights.from_values([0.1, 1, 1, 1, 1])
    for member in range(3):
        with_weights, without = bag_of(plan(weights), member), bag_of(plan(None), member)
        assert (with_weights[1] == without[1]).all()
        assert (with_weights[0] != without[0]).any()


def test_the_very_end_of_all_weights_is_the_last_row_that_can_be_drawn():
    weights = PositiveWeights.from_values([0.3, 0.1, 0.0])
    assert weights.chosen(np.array([0.0, 0.74, 0.76, 1.0])).tolist() == [0, 0, 1, 1]


def test_the_very_beginning_is_the_first_row_that_can_be_drawn():
    weights = PositiveWeights.from_values([0.0, 0.5, 1.0])
    assert weights.chosen(np.array([0.0])).tolist() == [1]


def test_weights_of_other_rows_draw_nothing():
    with pytest.raises(AssertionError):
        bag_of(plan(PositiveWeights.from_values([0.1, 0.2])), 0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, 1.5], "the weight of row 2 of P is 1.5"),
        ([np.nan, 0.5], "the weight of row 1 of P is nan"),
        ([-0.1, 0.5], "the weight of row 1 of P is -0.1"),
        ([0.0, 0.0], "all weights are 0"),
        ([0.0, 0.7, 0.0], "only one row of P has a weight above 0"),
    ],
)
def test_weights_that_draw_nothing_sensible_are_refused(values, message):
    with pytest.raises(DataError, match=message):
        PositiveWeights.from_values(values)


@pytest.mark.parametrize("method", ["bagging", "cwsvm"])
def test_methods_that_draw_no_row_of_p_take_no_weights(method):
    with pytest.raises(ParameterError, match=f"not apply to `method='{method}'"):
        require_weighted_draws(method)
    with pytest.raises(ParameterError, match=f"not apply to `method='{method}'"):
        resolve_defaults(
            Params(method=method),
            3,
            9,
            1,
            lambda: 1.0,
            PositiveWeights.from_values([0.1, 1, 1]),
        )
