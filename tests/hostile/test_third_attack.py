"""Failures that a third attack found: maps and records that say two things, or too little."""

from __future__ import annotations

import hashlib
import json
import os
import shutil

import numpy as np
import pytest

from tests.conftest import write_svm
from tests.hostile import seeds
from tests.hostile.test_numbered_failures import said
from tests.programs import run_resvm

TABLE = "id,a,colour\nr1,1,red\nr2,2,blue\nr3,3,red\n"


@pytest.fixture
def feature_map(tmp_path):
    """A table, and the map that its conversion wrote."""
    (tmp_path / "x.csv").write_text(TABLE)
    ran = run_resvm(
        "convert", tmp_path / "x.csv", "-q", "--id-column", "id", "--map", tmp_path / "map",
        "-o", tmp_path / "x.svm",
    )  # fmt: skip
    said(ran, 0)
    return tmp_path / "map"


def converted_like(feature_map, *more):
    return run_resvm("convert", feature_map.parent / "x.csv", "-q", "--like", feature_map, *more)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"kind": "number"', '"kind": "text", "kind": "number"'),
        ('"format": 1', '"format": 2, "format": 1'),
        ('"name": "colour"', '"name": "a", "name": "colour"'),
    ],
)
def test_a_feature_map_in_which_a_name_stands_twice_is_refused(old, new, feature_map):
    said(converted_like(feature_map), 0)
    feature_map.write_text(feature_map.read_text().replace(old, new, 1))
    said(converted_like(feature_map), 3, "not a feature map", "--map")


@pytest.mark.parametrize("number", [0, 1])
def test_a_feature_map_that_lacks_a_column_of_its_features_is_refused(number, feature_map):
    content = json.loads(feature_map.read_text())
    del content["columns"][number]
    feature_map.write_text(json.dumps(content))
    said(converted_like(feature_map), 3, "not a feature map", "--map")


@pytest.mark.parametrize("form", ["svmlight", "csv"])
def test_a_map_none_of_whose_texts_the_table_has_gives_no_file(form, feature_map, tmp_path):
    column = {"name": "colour", "kind": "text", "values": {"x": 1, "y": 2}}
    content = json.loads(feature_map.read_text())
    content |= {"columns": [column], "features": ["colour=x", "colour=y"]}
    feature_map.write_text(json.dumps(content))
    ran = converted_like(feature_map, "--to", form, "-o", tmp_path / "out")
    said(ran, 3, "x.csv: no row has a feature", "for a table with the same columns")
    assert not (tmp_path / "out").exists()


def test_a_row_whose_text_is_new_is_kept_without_a_feature(feature_map):
    ran = run_resvm(
        "convert", "-", "-q", "--like", feature_map, stdin=b"a,colour\n0,red\n0,green\n"
    )
    said(ran, 0)
    assert ran.out == b"0 2:1\n0\n"


# a name that stands twice, in whatever was written by the program


def test_parameters_in_which_a_name_stands_twice_are_refused(problem, tuning, tmp_path):
    best = (tuning / "best.json").read_text()
    first = next(iter(json.loads(best)))
    (tmp_path / "best.json").write_text(best.replace("{", f'{{"{first}": 3, ', 1))
    data = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q"]
    ran = run_resvm("train", *data, "--params", tmp_path / "best.json", "-o", tmp_path / "m")
    said(ran, 5, "best.json: not JSON written by resvm")


@pytest.mark.parametrize("name", ["settings.json", "trials.jsonl"])
def test_a_tuning_in_which_a_name_stands_twice_is_not_resumed(name, problem, tuning, tmp_path):
    place = tmp_path / "t"
    shutil.copytree(tuning, place)
    text = (place / name).read_text()
    (place / name).write_text(text.replace("{", '{"seed": 3, "seed": 4, ', 1))
    said(run_resvm(*tune(problem, place), "--resume"), 5, f"{name}", "is damaged")


def test_a_prediction_in_which_a_name_stands_twice_is_refused(tmp_path):
    lines = ['{"decision_value": 1.5, "label": 1}', '{"decision_value": 0.5, "label": -1}']
    (tmp_path / "labels").write_text("1\n-1\n")
    (tmp_path / "x.jsonl").write_text("\n".join(lines) + "\n")
    scored = ["score", tmp_path / "x.jsonl", "--labels", tmp_path / "labels", "--bootstrap", 0]
    said(run_resvm(*scored), 0)
    lines[1] = lines[1].replace("{", '{"decision_value": 2.5, ')
    (tmp_path / "x.jsonl").write_text("\n".join(lines) + "\n")
    said(run_resvm(*scored), 3, "x.jsonl:2: not a JSON object")


def tune(problem, place):
    data = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q", "--n-models", 3]
    return ["tune", *data, "--oob", "--trials", 2, "--no-extend", "-o", place]


@pytest.fixture(scope="module")
def tuning(problem, tmp_path_factory):
    place = tmp_path_factory.mktemp("tuning") / "t"
    said(run_resvm(*tune(problem, place)), 0)
    return place


# the files of a benchmark


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    """Rows, a finished benchmark of them, and what two tasks did of the same."""
    folder = tmp_path_factory.mktemp("benchmark")
    write_svm(folder / "bench.svm", np.random.default_rng(1).standard_normal((60, 3)),
              np.repeat([1, -1], 30))  # fmt: skip
    (folder / "grids.json").write_text(json.dumps(seeds.GRIDS))
    said(run_resvm(*seeds.benchmark(folder), "-o", folder / "bench"), 0)
    for number in (1, 2):
        task = ["--task", f"{number}/2", "-o", folder / "tasks"]
        said(run_resvm(*seeds.benchmark(folder), *task), 0)
    return folder


@pytest.mark.parametrize(
    "changed",
    [
        {"data": [1]},
        {"data": {"bench": 3}},
        {"data": {"bench": {"file": "bench.svm"}}},
        {"repetitions": [2]},
        {"repetitions": {"bench/own": "x"}},
        {"missing": 3},
        {"missing": [{"file": "x"}]},
        {"command": 3},
        {"tasks": 3},
        {"methods": [[]]},
    ],
    ids=str,
)
def test_a_benchmark_does_not_go_on_with_a_plan_that_no_run_wrote(changed, benchmark, tmp_path):
    shutil.copytree(benchmark / "bench", tmp_path / "b")
    plan = json.loads((tmp_path / "b/run.json").read_text())
    (tmp_path / "b/run.json").write_text(json.dumps(plan | changed))
    ran = run_resvm(*seeds.benchmark(benchmark), "-o", tmp_path / "b", "--resume")
    said(ran, 3, f"run.json: {next(iter(changed))} is ", "start over with another -o")


@pytest.mark.parametrize(
    ("file", "name", "value"),
    [
        ("times.jsonl", "seconds", 10**400),
        ("results.jsonl", "curve", [10**400] * 100),
        ("results.jsonl", "parameters", {"n_pos": 10**400}),
    ],
    ids=["seconds", "curve", "parameters"],
)
def test_a_number_of_a_benchmark_that_no_double_holds_is_refused(
    file, name, value, benchmark, tmp_path
):
    shutil.copytree(benchmark / "bench", tmp_path / "b")
    first, _, rest = (tmp_path / "b" / file).read_text().partition("\n")
    edited = json.dumps(json.loads(first) | {name: value})
    (tmp_path / "b" / file).write_text(f"{edited}\n{rest}")
    ran = run_resvm("benchmark", "report", tmp_path / "b", "-q")
    said(ran, 3, f"{file}:1: {name} is", "expected")


def change_task(benchmark, place, part: str, name: str, value: object) -> None:
    """The benchmark of two tasks, one record of which is another, sealed again."""
    shutil.copytree(benchmark / "tasks", place)
    file = place / "tasks/paper-1-of-2.json"
    content = json.loads(file.read_bytes().partition(b"\n")[0])
    if value is None:
        del content["records"][0][part][name]
    else:
        content["records"][0][part][name] = value
    body = json.dumps(content).encode()
    file.write_bytes(body + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n")


@pytest.mark.parametrize(
    ("name", "value"),
    [("seconds", 10**400), ("seconds", -1), ("method", "x"), ("task", None)],
    ids=["too large", "below 0", "no method", "no task"],
)
def test_times_of_a_task_that_no_report_would_read_are_not_taken_over(
    name, value, benchmark, tmp_path
):
    change_task(benchmark, tmp_path / "b", "times", name, value)
    ran = run_resvm(*seeds.benchmark(benchmark), "-o", tmp_path / "b")
    said(ran, 5, "not written by a task, or damaged", "run its task again")


def test_a_line_without_its_shares_is_of_clean_data_as_in_the_report(benchmark, tmp_path):
    change_task(benchmark, tmp_path / "b", "result", "contamination_pos", None)
    said(run_resvm(*seeds.benchmark(benchmark), "-o", tmp_path / "b"), 0)
    said(run_resvm("benchmark", "report", tmp_path / "b", "-q"), 0)
    results = (tmp_path / "b/results.jsonl").read_text()
    assert results.count("\n") == (benchmark / "bench/results.jsonl").read_text().count("\n")


# a run that was killed when its model was whole


def training(problem, place, *more):
    data = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q", "-o", place]
    return run_resvm("train", *data, *more)


@pytest.fixture(scope="module")
def killed(problem, tmp_path_factory):
    """A model, and beside it the members that it was made of."""
    folder = tmp_path_factory.mktemp("killed")
    said(training(problem, folder / "m", "--n-models", 3), 0)
    said(training(problem, folder / "m.part", "--n-models", 3, "--members", "0:3"), 0)
    return folder


@pytest.mark.parametrize(
    ("left", "command"),
    [
        (["part.json", "members/00000.model", "members/00000.json"], ["--grow", 3]),
        (["part.json"], ["--grow", 3]),
        ([], ["--resume", "--n-models", 3]),
        (["part.json", "members/00000.model"], ["--resume", "--n-models", 3]),
    ],
    ids=str,
)
def test_what_a_model_was_made_of_does_not_outlive_the_next_run(
    left, command, killed, problem, tmp_path
):
    place = tmp_path / "place"
    shutil.copytree(killed, place)
    for path in [path for path in (place / "m.part").rglob("*") if path.is_file()]:
        if str(path.relative_to(place / "m.part")) not in left:
            path.unlink()
    if not any(name.startswith("members") for name in left):
        (place / "m.part/members").rmdir()
    said(training(problem, place / "m", *command), 2)
    assert os.listdir(place) == ["m"]


def test_members_of_another_model_are_kept(killed, problem, tmp_path):
    place = tmp_path / "place"
    shutil.copytree(killed, place)
    said(training(problem, place / "m", "--n-models", 3, "--seed", 1, "--force"), 0)
    shutil.copytree(killed / "m.part", place / "m.part", dirs_exist_ok=True)
    said(training(problem, place / "m", "--n-models", 3, "--resume"), 2, "is already there")
    said(training(problem, place / "m", "--grow", 3), 2, "the model has 3 members")
    assert len(os.listdir(place / "m.part/members")) == 6
