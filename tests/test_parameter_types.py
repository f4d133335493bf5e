"""Each kind of parameter takes its values, and refuses others in words that name it."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from resvm_cli.ensemble.plan import resolve_defaults
from resvm_cli.errors import ParameterError, ResvmError
from resvm_cli.parameter_types import check_values, choice, fraction, integer, number
from resvm_cli.parameters import (
    METHOD_TABLE,
    RANKING_TABLE,
    TRAINING_TABLE,
    TUNING_TABLE,
    Params,
)


def test_every_default_passes_its_own_check():
    for table in (METHOD_TABLE, TRAINING_TABLE, TUNING_TABLE, RANKING_TABLE):
        for name, parameter in table.items():
            assert parameter.name == name
            if parameter.default is not None:
                assert parameter.convert(parameter.default) == parameter.default


@pytest.mark.parametrize(
    ("words", "stored", "power"),
    [
        ("none", "none", None),
        ("relevance", "relevance", 1.0),
        ("relevance:2.0", "relevance:2", 2.0),
        ("relevance:1.23456789", "relevance:1.23456789", 1.23456789),
        ("relevance:1e-3", "relevance:0.001", 0.001),
    ],
)
def test_words_keep_every_digit_of_their_number(words, stored, power):
    assert METHOD_TABLE["feature_weights"].convert(words) == stored
    params = Params(feature_weights=stored)
    assert params.relevance_power == power
    plan = resolve_defaults(params, 10, 20, 3, lambda: 1.0)
    assert Params(feature_weights=plan.feature_weights).relevance_power == power


NO_POWERS = [f"relevance:{text}" for text in ("", "0", "-1", "nan", "x", " ", "2:3")]


@pytest.mark.parametrize("words", ["", ":2", "Relevance", "none:", "none:2", *NO_POWERS])
def test_words_that_make_no_sense_are_refused(words):
    with pytest.raises(ResvmError, match="`feature_weights` must be 'none', 'relevance' or"):
        METHOD_TABLE["feature_weights"].convert(words)


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        (integer(5, "", low=1, high=9), 2.5, "must be an integer, got 2.5"),
        (integer(5, "", low=1, high=9), 0, "must be at least 1, got 0"),
        (integer(5, "", low=1, high=9000), 9001, "must be at most 9,000, got 9001"),
        (number(1, "", positive=True), 0, "must be positive and finite, got 0"),
        (number(1, "", positive=True), math.inf, "must be positive and finite, got inf"),
        (number(1, ""), -math.inf, "must be finite, got -inf"),
        (number(1, ""), "x", "must be a number, got 'x'"),
        (fraction("", "F"), 1, "must be below 1, got 1"),
        (number("auto", "", choices=("auto", "scale")), "wide", "must be a number, 'auto' or 'sc"),
        (choice("a", ("a", "b", "c"), ""), "d", "must be 'a', 'b' or 'c', got 'd'"),
        (choice("a", ("a", "b"), ""), 3, "must be 'a' or 'b', got 3"),
    ],
)
def test_a_value_out_of_its_range_is_refused_by_name(parameter, value, message):
    record = SimpleNamespace(size=value)
    row = {"size": replace(parameter.metadata["parameter"], name="size")}
    with pytest.raises(ParameterError, match=f"^{re.escape('`size` ' + message)}"):
        check_values(record, row)
    record.size = None  # derived later
    check_values(record, row)


def test_the_ends_of_a_range_and_its_special_value_are_taken():
    size = replace(integer(5, "", low=1, high=9, also=-1).metadata["parameter"], name="size")
    assert [size.convert(value) for value in (1, 9, -1, np.int8(3))] == [1, 9, -1, 3]
    share = fraction("", "F").metadata["parameter"]
    assert [share.convert(value) for value in (0, 0.999, "0.5")] == [0, 0.999, 0.5]
