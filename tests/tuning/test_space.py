"""Search spaces: how ranges are parsed, where their edges are, and how they are extended."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli.errors import ParameterError
from resvm_cli.tuning.space import AXIS_NAMES, Axis, Space, default_space, parse_axis


@pytest.mark.parametrize(
    ("name", "text", "low", "high", "log", "values"),
    [
        ("c_unl", "1", 1, 1, True, ()),
        ("c_unl", "0.01,1,0.1", 0.01, 1, True, (0.01, 0.1, 1)),
        ("gamma", "1e-4..1:log", 1e-4, 1, True, ()),
        ("gamma", "1e-4..1", 1e-4, 1, True, ()),
        ("c_unl", "1..3:linear", 1, 3, False, ()),
        ("n_pos", "5,10,20", 5, 20, True, (5, 10, 20)),
        ("coef0", "-1..1", -1, 1, False, ()),
    ],
)
def test_lists_ranges_and_single_values(name, text, low, high, log, values):
    axis = parse_axis(name, text)
    assert (axis.low, axis.high, axis.log, axis.values) == (low, high, log, values)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c_unl", "10..1", "reversed"),
        ("c_unl", "", "a number is missing"),
        ("c_unl", "1,,2", "a number is missing"),
        ("c_unl", "..5", "a number is missing"),
        ("gamma", "abc", "'abc' is not a number"),
        ("gamma", "1..x", "'x' is not a number"),
        ("gamma", "nan", "is not a number"),
        ("gamma", "1..inf", "is not a number"),
        ("gamma", "0..1", "must be positive"),
        ("gamma", "1..2:lg", "neither :log nor :linear"),
        ("n_pos", "2.5,3", "values must be integers"),
        ("c_unl", "1,1", "listed twice"),
        ("coef0", "-1..1:log", "logarithmic range must be positive"),
    ],
)
def test_what_is_no_range_is_refused_by_name(name, text, message):
    with pytest.raises(ParameterError, match=message) as refused:
        parse_axis(name, text)
    assert str(refused.value).startswith(f"`{name}` ")


@given(st.sampled_from(AXIS_NAMES), st.floats(1, 100), st.floats(1.5, 50), st.floats(0, 0.999999))
def test_sampled_values_lie_in_the_range(name, low, factor, share):
    low, high = (
        (round(low), round(low) + round(factor))
        if name in ("n_pos", "degree")
        else (
            low,
            low * factor,
        )
    )
    axis = Axis(name, low, high, log=True)
    value = axis.at(share)
    assert low <= value <= high
    assert name not in ("n_pos", "degree") or value == round(value)


def test_logarithmic_ranges_are_sampled_in_the_logarithm():
    axis = Axis("c_unl", 0.01, 100.0, True)
    assert axis.at(0.5) == pytest.approx(1.0)
    assert Axis("c_unl", 1.0, 3.0).at(0.5) == pytest.approx(2.0)


def test_edges_of_ranges_are_five_percent_wide_and_of_lists_their_ends():
    axis = Axis("c_unl", 1.0, 1e4, True)
    assert [axis.edge(value) for value in (1.0, 1.5, 1.7, 100.0, 5e3, 7e3, 1e4)] == [
        -1, -1, 0, 0, 0, 1, 1,
    ]  # fmt: skip
    listed = parse_axis("c_unl", "1,2,3")
    assert [listed.edge(value) for value in (1.0, 2.0, 3.0)] == [-1, 0, 1]
    assert parse_axis("c_unl", "1").edge(1.0) == 0


def test_ranges_go_on_by_a_third_and_lists_by_a_step():
    axis = Axis("c_unl", 1.0, 1e3, True).limited(0.0, 1e6)
    above = axis.beyond(1)
    assert (above.low, above.high) == (1e3, pytest.approx(1e4))
    below = axis.beyond(-1)
    assert (below.low, below.high) == (pytest.approx(0.1), 1.0)
    assert axis.joined(above).high == pytest.approx(1e4)
    listed = parse_axis("c_unl", "1,10").limited(0.0, 1e6)
    assert listed.beyond(1).values == (100.0,)
    assert listed.beyond(-1).values == pytest.approx((0.1,))
    assert listed.joined(listed.beyond(1)).values == (1.0, 10.0, 100.0)


def test_there_is_no_going_beyond_what_makes_sense():
    axis = Axis("n_pos", 5.0, 20.0, True).limited(1.0, 20.0)
    assert axis.beyond(1) is None
    assert axis.beyond(-1).low >= 1.0
    near = Axis("n_pos", 2.0, 20.0, True).limited(1.0, 20.0).beyond(-1)
    assert (near.low, near.high) == (1.0, 2.0)
    assert Axis("n_pos", 1.4, 20.0, True).limited(1.0, 20.0).beyond(-1) is None  # no new integer
    listed = parse_axis("n_pos", "10,20").limited(1.0, 20.0)
    assert listed.beyond(1) is None
    assert Axis("coef0", 0.0, 1.0, False).limited(0.0, 9.0).beyond(-1) is None
    assert parse_axis("coef0", "1,2").limited(0.0, 9.0).beyond(-1) is None  # 0 is not allowed


def test_a_grid_has_every_combination_with_kernels_together():
    space = Space("resvm", (parse_axis("gamma", "1,2"), parse_axis("c_unl", "1,10,100")))
    grid = space.grid()
    assert [(one["gamma"], one["c_unl"]) for one in grid] == [
        (1, 1), (1, 10), (1, 100), (2, 1), (2, 10), (2, 100),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "kernel", "names"),
    [
        ("resvm", "rbf", {"gamma", "n_pos", "unl_per_pos", "w_pos", "c_unl"}),
        ("resvm", "linear", {"n_pos", "unl_per_pos", "w_pos", "c_unl"}),
        ("bagging", "rbf", {"gamma", "unl_per_pos", "c_unl"}),
        ("cwsvm", "poly", {"gamma", "degree", "coef0", "w_pos", "c_unl"}),
    ],
)
def test_each_method_has_its_own_axes(method, kernel, names):
    space = default_space(method, kernel, 45, 900, 0.1)
    assert {axis.name for axis in space.axes} == names
    for axis in space.axes:
        assert axis.floor <= axis.low <= axis.high <= axis.ceiling


def test_default_ranges_and_how_far_they_may_be_extended():
    axes = default_space("resvm", "rbf", 90, 900, 0.1).axes
    found = {axis.name: (axis.floor, axis.low, axis.high, axis.ceiling) for axis in axes}
    assert found == {
        "gamma": pytest.approx((1e-7, 0.003, 3.0, 1e5)),
        "n_pos": (1.0, 6.0, 60.0, 90.0),
        "unl_per_pos": (0.1, 1.0, 15.0, 150.0),
        "w_pos": (1e-4, 0.25, 16.0, 1e4),
        "c_unl": (1e-6, 0.01, 1000.0, 1e6),
    }


@given(st.integers(1, 3000), st.integers(1, 100_000), st.sampled_from(["resvm", "bagging"]))
def test_bags_fit_the_data_however_small_it_is(n_pos, n_unl, method):
    space = default_space(method, "rbf", n_pos, n_unl, 0.1)
    axes = {axis.name: axis for axis in space.axes}
    largest = axes["n_pos"].high if method == "resvm" else n_pos
    assert largest <= n_pos
    assert axes["unl_per_pos"].high * largest <= n_unl * (1 + 1e-12)


def test_ranges_beyond_the_data_or_the_method_are_refused():
    with pytest.raises(ParameterError, match="the widest range allowed"):
        default_space("resvm", "rbf", 45, 900, 0.1, [parse_axis("n_pos", "10,50")])
    with pytest.raises(ParameterError, match="`w_pos` does not apply to `method='bagging'`"):
        default_space("bagging", "rbf", 45, 900, 0.1, [parse_axis("w_pos", "1,2")])
    with pytest.raises(ParameterError, match="`gamma` does not apply"):
        default_space("resvm", "linear", 45, 900, 0.1, [parse_axis("gamma", "1,2")])


def test_an_axis_reads_back_from_its_text():
    for text in ("0.1,1,10", "0.5..16:log", "2"):
        axis = parse_axis("w_pos", text)
        assert parse_axis("w_pos", str(axis)) == axis
    assert math.isclose(parse_axis("gamma", "1e-4..1:log").at(0.25), 1e-3)


def test_the_nearest_value_of_a_list_is_one_of_it():
    listed = parse_axis("c_unl", "0.1,1,30")
    assert [listed.nearest(value) for value in (0.01, 0.9, 20.0)] == [0.1, 1.0, 30.0]
    assert [listed.edge(value) for value in (0.1, 1.0, 30.0)] == [-1, 0, 1]


def test_the_edges_of_a_plain_range_are_its_ends():
    axis = Axis("w_pos", 1.0, 3.0)
    assert [axis.edge(value) for value in (1.0, 2.0, 3.0)] == [-1, 0, 1]


@pytest.mark.parametrize(
    ("high", "beyond"), [(11.0, None), (13.0, (13.0, 14.0)), (16.0, (16.0, 18.0))]
)
def test_a_range_of_whole_numbers_is_extended_by_whole_numbers(high, beyond):
    part = Axis("n_pos", 10.0, high).beyond(1)
    assert (None if part is None else (part.low, part.high)) == beyond
