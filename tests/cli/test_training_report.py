"""The summary that train prints."""

from __future__ import annotations

import pytest

from resvm_cli.cli.training_report import _expected, _setting
from resvm_cli.ensemble.decisions import Threshold
from resvm_cli.ensemble.oob import ExpectedPerformance
from resvm_cli.ensemble.plan import resolve_defaults
from resvm_cli.parameters import Params


@pytest.mark.parametrize(
    ("rule", "value", "shown"),
    [
        ("votes", 0.25, "decision value above 0.25"),
        ("votes", 16.29, "decision value above 16.29"),  # 1 + the sum of the members' values
        ("votes", -3.5, "decision value above -3.5"),
        ("mean", 1.5, "decision value above 1.5"),
    ],
)
def test_the_threshold_is_one_of_decision_values(rule, value, shown):
    expected = ExpectedPerformance(rule, Threshold(value), 0, 0, None)
    assert _expected(expected) == [("threshold", f"predicted positive: {shown}")]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"kernel": "poly", "gamma": 0.5}, {"kernel": "poly, gamma 0.5, coef0 0, degree 3"}),
        (
            {"kernel": "sigmoid", "gamma": 0.5, "coef0": 2.0},
            {"kernel": "sigmoid, gamma 0.5, coef0 2"},
        ),
        ({"kernel": "linear"}, {"kernel": "linear", "solver": "libsvm"}),
        (
            {"kernel": "linear", "solver": "liblinear"},
            {"solver": "liblinear, bias: mean row norm of each bag"},
        ),
        ({"kernel": "linear", "bias": 2.5}, {"solver": "liblinear, bias 2.5"}),
        ({"kernel": "linear", "bias": -1.0}, {"solver": "liblinear, no bias"}),
        ({"c_pos": 3.0}, {"penalties": "C_P 3, C_U 1"}),
        ({"w_pos": 0.5}, {"penalties": "C_P 1, C_U 1 (w_pos 0.5)"}),
        ({"method": "bagging"}, {"penalties": "C_P 2.5, C_U 1"}),
        ({"method": "cwsvm"}, {"penalties": "C_P 10, C_U 1 (w_pos 1)", "members": None}),
    ],
    ids=str,
)
def test_the_setting_of_a_model_is_described(chosen, expected):
    plan = resolve_defaults(Params(**chosen), 10, 100, 4, lambda: 1.0)
    found = dict(_setting(plan))
    assert {name: found.get(name) for name in expected} == expected
