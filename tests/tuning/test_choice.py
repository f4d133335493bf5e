"""Parameters in best.json: settings that differ in kernel, scaling and feature weights."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from resvm_cli.data.pudata import MemoryData
from resvm_cli.ensemble.plan import Plan
from resvm_cli.errors import DataError, ParameterError
from resvm_cli.parameters import Params
from resvm_cli.tuning.choice import OF_KERNEL, best_json, parameters_of, read_params
from tests.conftest import setting

BAGS = {"n_models": 5, "n_pos": 10, "n_unl": 20, "w_pos": 0.7}
PLAIN = setting(Params(gamma=0.1, **BAGS), 0.5)
WEIGHTED = Params(gamma=2.5, feature_weights="relevance:2", **BAGS)
LINEAR = Params(kernel="linear", c_unl=0.3, feature_weights="relevance", **BAGS)
MIXED = (PLAIN, setting(WEIGHTED, 0.3, "quantile"), setting(LINEAR, 0.2))


def described(settings, scale=None):
    content = best_json(settings, "mean", scale, {"metric": "roc_areas"}, {})
    return json.loads(json.dumps(content))


def read(content, **explicit):
    """Return the settings and the scaling of the data that train would use."""
    params = read_params({"params": content, **explicit})
    return params.settings, params.data_scale


@pytest.mark.parametrize(
    ("kernel", "used"),
    [("rbf", ["gamma"]), ("poly", ["gamma", "degree", "coef0"]), ("linear", []),
     ("sigmoid", ["gamma", "coef0"]), ("tanimoto", [])],
)  # fmt: skip
def test_best_json_has_only_the_parameters_that_the_kernel_uses(kernel, used):
    names = parameters_of(Params(kernel=kernel, gamma=0.1))
    assert [name for name in names if name in OF_KERNEL] == used


@pytest.mark.parametrize("scale", [None, "standard", "quantile"])
def test_mixed_settings_are_read_back(scale):
    content = described(MIXED, scale)
    assert [each["scale"] for each in content["settings"]] == [
        scale or "none",
        "quantile",
        scale or "none",
    ]
    read_back = [replace(each, scale=None if each.scale == scale else each.scale) for each in MIXED]
    assert read(content) == (tuple(read_back), scale)


@pytest.mark.parametrize(
    ("one", "scale"),
    [
        (setting(WEIGHTED), None),
        (setting(LINEAR), "standard"),
        (setting(WEIGHTED, 1.0, "quantile"), None),
        (setting(WEIGHTED, 1.0, "quantile"), "standard"),
    ],
)
def test_one_setting_keeps_its_scaling_and_weights(one, scale):
    content = described([one], scale)
    (found,), data_scale = read(content)
    assert replace(found, scale=one.scale) == one
    features = np.random.default_rng(0).normal(size=(60, 3))
    known = np.arange(60) < 20
    plans = [
        Plan.resolve(
            Params(settings=(each,)), MemoryData.from_matrix(features, known, scale=kind)
        ).settings
        for each, kind in ((one, scale), (found, data_scale))
    ]
    assert plans[0] == plans[1]


def test_explicit_parameters_win():
    found, scale = read(described(MIXED, "standard"), scale="maxabs")
    assert (scale, [each.scale for each in found]) == ("maxabs", [None] * 3)
    found, _ = read(described(MIXED), feature_weights="none")
    assert {each.feature_weights for each in found} == {"none"}
    found, _ = read(described(MIXED), kernel="poly", degree=2)
    assert {(each.kernel, each.gamma) for each in found} == {("poly", "scale")}
    assert [each.scale for each in found] == [None, "quantile", None]
    # rows of this kernel are neither scaled nor weighted
    found, _ = read(described(MIXED), kernel="tanimoto")
    assert {(each.scale, each.feature_weights) for each in found} == {(None, "none")}


def changed(place=None, **changes):
    content = described(MIXED)
    (content if place is None else content["settings"][place]).update(changes)
    return content


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (changed(format=4), "format 4, but this version reads 1"),
        (changed(format=True), "format True"),
        (changed(1, scale="standard"), "invalid scale 'standard'"),
        (changed(1, scale=None), "invalid scale 'None'"),
        (changed(1, scale=["quantile"]), "invalid scale"),
        (changed(0, scale="other"), "invalid scale 'other'"),
        (changed(2, kernel="other"), "invalid kernel 'other'"),
        (changed(2, kernel=None), "invalid kernel 'None'"),
        (changed(2, kernel=["linear"]), "invalid kernel"),
        (changed(2, kernel="tanimoto"), "invalid kernel 'tanimoto'"),
        (changed(0, kernel="precomputed"), "invalid kernel"),
        (changed(method="other"), "invalid method 'other'"),
        (changed(decision=None), "invalid decision 'None'"),
        (changed(1, feature_weights="relevance:0"), "invalid feature_weights 'relevance:0'"),
        (changed(1, feature_weights=2), "invalid feature_weights '2'"),
        (changed(1, feature_weights=None), "invalid feature_weights 'None'"),
        (changed(1, weight=0), "invalid weight '0'"),
        (changed(1, weight=None), "invalid weight 'None'"),
        (changed(1, gamma="wide"), "invalid gamma 'wide'"),
        (changed(0, n_pos=2**53), f"invalid n_pos '{2**53}'"),
        (changed(0, c_unl=2**53), f"invalid c_unl '{2**53}'"),
        (changed(0, n_models=10**400), "invalid n_models '1000"),
        (changed(0, gamma=10**400), "invalid gamma '1000"),
        (changed(settings=[]), "invalid settings"),
        (changed(settings=[3]), "invalid settings '3'"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_damaged_parameters_are_refused_by_name(content, name):
    with pytest.raises(DataError, match="params: ") as caught:
        read(content)
    assert name in str(caught.value)


def test_weights_that_the_kernel_cannot_have_are_refused():
    params = replace(PLAIN, kernel="tanimoto", feature_weights="relevance")
    with pytest.raises(ParameterError, match="`feature_weights` does not apply"):
        read(described([params]))
