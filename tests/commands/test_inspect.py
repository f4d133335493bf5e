"""resvm inspect, as a user runs it."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest

from tests.conftest import data_arguments, train_arguments, write_svm
from tests.tuning.test_choice import MIXED, described


@pytest.fixture(scope="module")
def model(problem, resvm, tmp_path_factory):
    """A model with fixed defaults."""
    path = tmp_path_factory.mktemp("fixed") / "model"
    assert resvm(*train_arguments(problem), "--n-models", 9, "-o", path).code == 0
    return path


def test_it_tells_what_a_model_holds(model, resvm):
    ran = resvm("inspect", model)
    assert ran.code == 0
    assert ran.err == ""
    told = ran.out.decode()
    for expected in (
        "intact: every digest verified",
        "resvm",
        "rbf, gamma 0.",
        "n_models 9, n_pos 30, n_unl 50",
        "30 rows",
        "100 rows",
    ):
        assert expected in told
    assert "\x1b" not in told


def test_json_is_for_programs(model, resvm):
    told = json.loads(resvm("inspect", model, "--json").out)
    manifest = json.loads((model / "manifest.json").read_text())
    assert told["schema"] == 1
    assert told["intact"] is True
    assert told["n_members"] == 9
    assert told["manifest"] == manifest
    assert told["n_support_vectors"] == sum(one["support_vectors"] for one in manifest["members"])
    assert told["n_distinct_support_vectors"] <= 130
    assert told["member_bytes"] == sum(
        os.path.getsize(model / one["file"]) for one in manifest["members"]
    )


def test_names_are_shown_as_they_are(model, resvm, tmp_path):
    for name in ("m[v2]", "m:smile:", "x[/b]"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copytree(model, tmp_path / name)
        ran = resvm("inspect", name, cwd=tmp_path)
        assert ran.code == 0, ran.err
        assert ran.out.decode().split()[1] == name


def test_weights_are_those_that_members_judge_by_and_have_names(resvm, tmp_path):
    rng = np.random.default_rng(8)
    lines = ["y,mw,kind"]
    for number in range(60):
        known = number < 25
        size = rng.normal(2.0 if known else -2.0)
        lines.append(f"{'g' if known else ''},{size:.3f},{'ab'[int(rng.random() < 0.5)]}")
    (tmp_path / "d.csv").write_text("\n".join(lines) + "\n")
    made = ("--label-column", "y", "--positive-label", "g", "--map", "map.json")
    ran = resvm("convert", "d.csv", *made, "-o", "d.svm", cwd=tmp_path)
    assert ran.code == 0, ran.err
    trained = ("--data", "d.svm", "--positive-label", 1, "-t", "linear", "--n-models", 4)
    assert resvm("train", "--no-auto", *trained, "-o", "m", cwd=tmp_path).code == 0
    ran = resvm("inspect", "m", "--weights", "--map", "map.json", cwd=tmp_path)
    header, first, *rest = (line.split("\t") for line in ran.out.decode().splitlines())
    assert header == ["feature", "name", "weight", "deviation"]
    assert first[:2] == ["1", "mw"]
    assert sorted(line[1] for line in rest) == ["kind=a", "kind=b"]
    units = "".join(f"{index}:1\n" for index in (1, 2, 3)) + "0\n"
    out = resvm("predict", "m", "-", "--member-values", cwd=tmp_path, stdin=units.encode()).out
    values = np.array([line.split()[2:] for line in out.splitlines()], float)
    expected = values[:3] - values[3]
    for index, _, weight, deviation in (first, *rest):
        of_members = expected[int(index) - 1]
        assert float(weight) == pytest.approx(of_members.mean(), abs=1e-12)
        assert float(deviation) == pytest.approx(of_members.std(), abs=1e-12)
    told = json.loads(resvm("inspect", "m", "--weights", "--json", cwd=tmp_path).out)
    assert told["weights"][0]["name"] == "1"
    # a map from stdin can be read only once, even if two lists of features need it
    both = ("--weights", "--importance", "--json", "--map", "-", *trained[:4])
    ran = resvm("inspect", "m", *both, cwd=tmp_path, stdin=(tmp_path / "map.json").read_bytes())
    assert ran.code == 0, ran.err
    for name in ("weights", "importance"):
        assert {one["name"] for one in json.loads(ran.out)[name]} == {"mw", "kind=a", "kind=b"}
    assert "weights" not in json.loads(resvm("inspect", "m", "--json", cwd=tmp_path).out)


def test_weights_of_a_committee_are_those_of_its_mean_value(resvm, tmp_path):
    rng = np.random.default_rng(9)
    write_svm(tmp_path / "pos.svm", rng.normal(0.8, 1.0, (40, 3)))
    write_svm(tmp_path / "unl.svm", rng.normal(0.0, 1.0, (160, 3)))
    ran = resvm("train", *data_arguments(tmp_path), "-t", "linear", "-o", tmp_path / "m")
    assert ran.code == 0, ran.err
    assert len(json.loads((tmp_path / "m" / "manifest.json").read_text())["groups"]) > 1
    out = resvm("inspect", tmp_path / "m", "--weights").out.decode()
    weights = {
        int(line.split("\t")[0]): float(line.split("\t")[2]) for line in out.splitlines()[1:]
    }
    units = "".join(f"{index}:1\n" for index in (1, 2, 3)) + "0\n"
    out = resvm("predict", tmp_path / "m", "-", "--decision", "mean", stdin=units.encode()).out
    values = [float(line.split()[1]) for line in out.splitlines()]
    for index in (1, 2, 3):
        assert weights[index] == pytest.approx(values[index - 1] - values[3], abs=1e-12)


def test_weights_of_weighted_members_are_their_squared_factors(problem, resvm, tmp_path):
    more = ("--feature-weights", "relevance", "--n-models", 4)
    assert resvm(*train_arguments(problem), *more, "-o", tmp_path / "m").code == 0
    squares = np.zeros((4, 5))
    for number, line in enumerate(squares):
        text = (tmp_path / "m" / "members" / f"{number:05d}.model").read_text()
        for pair in text.splitlines()[0].split()[1:]:
            index, factor = pair.split(":")
            line[int(index) - 1] = float(factor) ** 2
    out = resvm("inspect", tmp_path / "m", "--weights").out.decode()
    header, *lines = (line.split("\t") for line in out.splitlines())
    assert header == ["feature", "name", "weight", "deviation"]
    weights = [float(line[2]) for line in lines]
    assert weights == sorted(weights, reverse=True)
    assert np.mean(weights) == pytest.approx(1.0)
    for index, _, weight, deviation in lines:
        assert float(weight) == pytest.approx(squares[:, int(index) - 1].mean(), rel=1e-12)
        assert float(deviation) == pytest.approx(squares[:, int(index) - 1].std(), abs=1e-12)


def test_a_mixed_model_is_told_setting_by_setting(problem, resvm, tmp_path):
    (tmp_path / "best.json").write_text(json.dumps(described(MIXED, "standard")))
    common = ["train", "--no-auto", "-P", problem / "pos.svm", "-U", problem / "unl.svm"]
    ran = resvm(*common, "--params", tmp_path / "best.json", "-o", tmp_path / "m")
    assert ran.code == 0, ran.err
    assert "kernel  rbf and linear" in ran.err
    assert "features  scaled by standard and quantile" in ran.err
    assert "gamma 2.5, rbf, quantile, relevance:2" in ran.err
    assert "w_pos 0.7, linear, standard, relevance" in ran.err
    told = resvm("inspect", tmp_path / "m").out.decode()
    rows = {line[:17].strip(): line[17:] for line in told.splitlines()}
    assert rows["kernel 1"] == "rbf, gamma 0.1, scaled by standard"
    assert rows["kernel 2"].endswith("scaled by quantile")
    assert rows["kernel 3"] == "linear, scaled by standard"
    assert "relevance_power 2" in told
    assert rows["features"] == "5, scaled by standard and quantile"
    assert rows["format"] == "1"
    found = json.loads(resvm("inspect", tmp_path / "m", "--json", "--weights").out)
    assert [each["kind"] for each in found["manifest"]["scalings"]] == ["standard", "quantile"]
    # only the members that weight features have weights here
    assert np.mean([each["weight"] for each in found["weights"]]) == pytest.approx(1.0)


def test_names_of_features_counted_from_0_begin_at_the_first(resvm, tmp_path):
    rng = np.random.default_rng(4)
    for name, shift in (("pos", 2.0), ("unl", 0.0)):
        rows = rng.normal(shift, 1.0, (30, 2)) * [1.0, 0.1]
        text = "".join(f"1 0:{a:.3f} 1:{b:.3f}\n" for a, b in rows)
        (tmp_path / f"{name}.svm").write_text(text)
    (tmp_path / "d.csv").write_text("size,width\n1,2\n")
    resvm("convert", "d.csv", "--map", "map.json", "-o", "d.svm", cwd=tmp_path)
    data = ("-P", "pos.svm", "-U", "unl.svm", "--zero-based", "-t", "linear", "--n-models", 3)
    assert resvm("train", "--no-auto", *data, "-o", "m", cwd=tmp_path).code == 0
    ran = resvm("inspect", "m", "--weights", "--map", "map.json", cwd=tmp_path)
    lines = [line.split("\t")[:2] for line in ran.out.decode().splitlines()[1:]]
    assert sorted(lines) == [["0", "size"], ["1", "width"]]


def test_weights_are_refused_where_there_are_none(model, resvm, tmp_path):
    ran = resvm("inspect", model, "--weights")
    assert ran.code == 4
    assert "the kernel is rbf; only linear models and members that weight features" in ran.err
    assert resvm("inspect", model, "--map", "x").code == 2


def test_importance_is_tsv_by_name_and_needs_the_training_data(resvm, problem, model, tmp_path):
    data = ("-P", problem / "pos.svm", "-U", problem / "unl.svm")
    ran = resvm("inspect", model, "--importance", *data, "-j", 1)
    assert ran.code == 0, ran.err
    head, *lines = [line.split("\t") for line in ran.out.decode().splitlines()]
    assert head == ["feature", "name", "importance", "deviation", "group"]
    assert sorted(int(line[0]) for line in lines) == [1, 2, 3, 4, 5]
    amounts = [float(line[2]) for line in lines]
    assert amounts == sorted(amounts, reverse=True)
    assert resvm("inspect", model, "--importance", *data, "-j", 2).out == ran.out
    other = ("-P", problem / "unl.svm", "-U", problem / "pos.svm")
    for arguments, code, words in (
        (("--importance",), 2, "--importance requires the training data"),
        (data, 2, "used only with --importance"),
        (("--importance", "--weights", *data), 2, "either --weights or --importance"),
        (("--importance", *other), 4, "trained on different data"),
    ):
        ran = resvm("inspect", model, *arguments)
        assert ran.code == code
        assert words in ran.err
        assert ran.out == b""


def test_importance_takes_the_known_negatives_of_training(resvm, problem, tmp_path):
    negatives = tmp_path / "neg.svm"
    lines = (problem / "unl.svm").read_text().splitlines()
    negatives.write_text("\n".join(lines[:20]) + "\n")
    (tmp_path / "rest.svm").write_text("\n".join(lines[20:]) + "\n")
    known = [line.split(" ", 1)[1] for line in (problem / "pos.svm").read_text().splitlines()]
    others = [line.split(" ", 1)[1] for line in lines]
    labels = ["1"] * len(known) + ["-1"] * 20 + ["0"] * (len(lines) - 20)
    labeled = [" ".join(pair) for pair in zip(labels, known + others, strict=True)]
    (tmp_path / "all.svm").write_text("\n".join(labeled) + "\n")
    one_file = ("--data", tmp_path / "all.svm", "--positive-label", 1, "-N", "label=-1")
    three_files = ("-P", problem / "pos.svm", "-U", tmp_path / "rest.svm", "-N", negatives)
    for number, data in enumerate((three_files, one_file)):
        model = tmp_path / f"m{number}"
        assert resvm("train", "--no-auto", *data, "--n-models", 5, "-o", model).code == 0
        ran = resvm("inspect", model, "--importance", *data)
        assert ran.code == 0, ran.err
        assert ran.out.startswith(b"feature\t")
        ran = resvm("inspect", model, "--importance", *data[:4])
        assert ran.code == 4
        assert "--known-negatives" in ran.err
