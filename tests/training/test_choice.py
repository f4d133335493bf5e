"""Parameters in best.json: settings that differ in kernel, scaling and feature weights."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from resvm_cli.errors import DataError, ParameterError
from resvm_cli.model.model_plan import ModelPlan
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.parameters import MethodParameters, Setting
from resvm_cli.training.choice import OF_KERNEL, ORDER, best_json, parameters_of, training_choice
from tests.commands.train.test_command import snapshot
from tests.conftest import train_arguments

BAGS = {"n_models": 5, "n_pos": 10, "n_unl": 20, "w_pos": 0.7}
PLAIN = Setting(MethodParameters(gamma=0.1, **BAGS), 0.5)
WEIGHTED = MethodParameters(gamma=2.5, feature_weights="relevance:2", **BAGS)
LINEAR = MethodParameters(kernel="linear", c_unl=0.3, feature_weights="relevance", **BAGS)
MIXED = (PLAIN, Setting(WEIGHTED, 0.3, "quantile"), Setting(LINEAR, 0.2))


def described(settings, scale=None):
    content = best_json(settings, "mean", scale, {"metric": "roc_areas"}, {})
    return json.loads(json.dumps(content))


def read(content, **explicit):
    """Return the settings and the scaling of the data that train would use."""
    choice, scale = training_choice({"params": content, **explicit})
    return choice.settings, scale


@pytest.mark.parametrize(
    ("kernel", "used"),
    [("rbf", ["gamma"]), ("poly", ["gamma", "degree", "coef0"]), ("linear", []),
     ("sigmoid", ["gamma", "coef0"]), ("tanimoto", [])],
)  # fmt: skip
def test_best_json_has_only_the_parameters_that_the_kernel_uses(kernel, used):
    names = parameters_of(MethodParameters(kernel=kernel, gamma=0.1))
    assert [name for name in names if name in OF_KERNEL] == used


@pytest.mark.parametrize("scale", [None, "standard", "quantile"])
def test_mixed_settings_are_read_back(scale):
    content = described(MIXED, scale)
    assert content["format"] == 3
    assert read(content) == (MIXED, scale)


@pytest.mark.parametrize(
    ("setting", "scale"),
    [
        (Setting(WEIGHTED), None),
        (Setting(LINEAR), "standard"),
        (Setting(WEIGHTED, 1.0, "quantile"), None),
        (Setting(WEIGHTED, 1.0, "quantile"), "standard"),
    ],
)
def test_one_setting_keeps_its_scaling_and_weights(setting, scale):
    content = described([setting], scale)
    assert content["format"] == 3
    (found,), data_scale = read(content)
    assert found.params == setting.params
    features = np.random.default_rng(0).normal(size=(60, 3))
    known = np.arange(60) < 20
    plans = [
        ModelPlan.resolve([each], MemoryData.from_matrix(features, known, scale=kind)).plans
        for each, kind in ((setting, scale), (found, data_scale))
    ]
    assert plans[0] == plans[1]


@pytest.mark.parametrize(
    ("settings", "scale", "number"),
    [
        ([PLAIN], None, 1),
        ([PLAIN], "standard", 1),
        ([PLAIN, PLAIN], "maxabs", 2),
        ([PLAIN], "quantile", 3),
        ([PLAIN, PLAIN], "quantile", 3),
    ],
)
def test_earlier_formats_are_written_where_they_suffice(settings, scale, number):
    content = described(settings, scale)
    assert content["format"] == number
    assert not {"feature_weights", "kernel"} & set(content.get("settings", [{}])[0])


def test_explicit_parameters_win():
    found, scale = read(described(MIXED, "standard"), scale="maxabs")
    assert (scale, [each.scale for each in found]) == ("maxabs", [None] * 3)
    found, _ = read(described(MIXED), feature_weights="none")
    assert {each.params.feature_weights for each in found} == {"none"}
    found, _ = read(described(MIXED), kernel="poly", degree=2)
    assert {(each.params.kernel, each.params.gamma) for each in found} == {("poly", "scale")}
    assert [each.scale for each in found] == [None, "quantile", None]
    # rows of this kernel are neither scaled nor weighted
    found, _ = read(described(MIXED), kernel="tanimoto")
    assert {(each.scale, each.params.feature_weights) for each in found} == {(None, "none")}


def changed(place=None, **changes):
    content = described(MIXED)
    (content if place is None else content["settings"][place]).update(changes)
    return content


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (changed(format=4), "format 4, but this version reads formats 1 to 3"),
        (changed(format=True), "format True"),
        (changed(1, scale="standard"), "invalid scale 'standard'"),
        (changed(1, scale="none"), "invalid scale 'none'"),
        (changed(1, scale=None), "invalid scale 'None'"),
        (changed(1, scale=["quantile"]), "invalid scale"),
        (changed(scale="other"), "invalid scale 'other'"),
        (changed(2, kernel="other"), "invalid kernel 'other'"),
        (changed(2, kernel=None), "invalid kernel 'None'"),
        (changed(2, kernel=["linear"]), "invalid kernel"),
        (changed(2, kernel="tanimoto"), "invalid kernel 'tanimoto'"),
        (changed(kernel="precomputed"), "invalid kernel"),
        (changed(1, feature_weights="relevance:0"), "invalid feature_weights 'relevance:0'"),
        (changed(1, feature_weights=2), "invalid feature_weights '2'"),
        (changed(1, feature_weights=None), "invalid feature_weights 'None'"),
        (changed(1, weight=0), "invalid weight '0'"),
        (changed(1, gamma="wide"), "invalid gamma 'wide'"),
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
    content = described([replace(PLAIN, params=replace(PLAIN.params, kernel="tanimoto"))])
    with pytest.raises(ParameterError, match="feature_weights does not apply"):
        read(content | {"feature_weights": "relevance"})


def test_what_tune_writes_is_what_train_uses(problem, resvm, tmp_path):
    files = train_arguments(problem)[1:]
    shared = ["--scale", "quantile", "--feature-weights", "relevance:2"]
    ran = resvm("tune", *files, *shared, "--trials", 2, "--n-models", 3, "-o", tmp_path / "t")
    assert ran.code == 0, ran.err
    best = json.loads((tmp_path / "t" / "best.json").read_text())
    assert (best["format"], best["scale"], best["feature_weights"]) == (
        *(3, "quantile"),
        "relevance:2",
    )
    chosen = ["--params", tmp_path / "t" / "best.json", "-o", tmp_path / "m"]
    assert resvm("train", *files, *chosen).code == 0
    numbers = [f"--{name.replace('_', '-')}={best[name]}" for name in ORDER if name in best]
    assert resvm("train", *files, *shared, *numbers, "-o", tmp_path / "n").code == 0
    assert snapshot(tmp_path / "m") == snapshot(tmp_path / "n")


def test_a_model_of_mixed_settings_has_the_same_bytes_whatever_the_jobs(problem, resvm, tmp_path):
    (tmp_path / "best.json").write_text(json.dumps(described(MIXED, "standard")))
    common = [*train_arguments(problem), "--params", tmp_path / "best.json"]
    for jobs in (1, 2):
        ran = resvm(*common, "-j", jobs, "-o", tmp_path / str(jobs))
        assert (ran.code, ran.out, ran.err) == (0, b"", "")
    assert snapshot(tmp_path / "1") == snapshot(tmp_path / "2")
    manifest = json.loads((tmp_path / "1" / "manifest.json").read_text())
    assert manifest["format"] == 3
    assert "scaling" not in manifest
    assert [scaling["kind"] for scaling in manifest["scalings"]] == ["standard", "quantile"]
    assert [(each["scaling"], each["kernel"]["name"]) for each in manifest["groups"]] == [
        ("standard", "rbf"),
        ("quantile", "rbf"),
        ("standard", "linear"),
    ]
    powers = [each["parameters"].get("relevance_power") for each in manifest["groups"]]
    assert powers == [None, 2.0, 1.0]
