"""The summary that train prints."""

from __future__ import annotations

import pytest

from resvm_cli.cli.training_report import _expected, _setting
from resvm_cli.ensemble.decisions import Threshold
from resvm_cli.ensemble.oob import ExpectedPerformance
from resvm_cli.ensemble.plan import Plan, resolve_defaults
from resvm_cli.metrics.intervals import Interval
from resvm_cli.parameters import Params


@pytest.mark.parametrize(
    ("rule", "value", "shown"),
    [
        ("votes", 0.25, "0.25 (more than 25% of the members vote positive)"),
        ("votes", 16.29,
         "16.29 (all members vote positive, with values that add up to more than 15.29)"),
        ("votes", -3.5, "-3.5 (any member votes positive, or values add up to more than -3.5)"),
        ("mean", 1.5, "1.5"),
    ],
)  # fmt: skip
def test_the_threshold_is_one_of_decision_values_and_the_papers_is_explained(rule, value, shown):
    expected = ExpectedPerformance(rule, Threshold(value), 0, 0, None)
    plan = Plan((resolve_defaults(Params(), 3, 4, 2, lambda: 1.0),))
    text = f"predicted positive: decision value above {shown}"
    assert _expected(expected, plan) == [("threshold", text)]


def test_an_interval_from_a_sample_of_the_rows_says_so():
    plan = Plan((resolve_defaults(Params(), 3, 400, 2, lambda: 1.0),))
    area = Interval(0.9, 0.8, 0.95)
    for n_rows, end in ((400, "U"), (300, "U, from 300 of 400 rows of U")):
        expected = ExpectedPerformance("mean", Threshold(1.5), 3, n_rows, area)
        assert _expected(expected, plan)[-1] == (
            "ROC AUC",
            f"0.900 (0.800 to 0.950), P against {end}",
        )


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
