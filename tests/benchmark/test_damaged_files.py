"""Plans, results and task files that no run wrote are rejected by name."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from resvm_cli.benchmark.run import _is_task_record
from resvm_cli.files.json_files import read_sealed, write_sealed
from tests.conftest import assert_exit, write_svm
from tests.hostile import seeds
from tests.programs import run_resvm


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    """Rows, a finished benchmark of them, and the tasks of the same benchmark."""
    folder = tmp_path_factory.mktemp("benchmark")
    write_svm(folder / "bench.svm", np.random.default_rng(1).standard_normal((60, 3)),
              np.repeat([1, -1], 30))  # fmt: skip
    (folder / "grids.json").write_text(json.dumps(seeds.GRIDS))
    assert_exit(run_resvm(*seeds.benchmark(folder), "-o", folder / "bench"), 0)
    for number in (1, 2):
        task = ["--task", f"{number}/2", "-o", folder / "tasks"]
        assert_exit(run_resvm(*seeds.benchmark(folder), *task), 0)
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
def test_a_benchmark_is_not_resumed_with_a_plan_that_no_run_wrote(changed, benchmark, tmp_path):
    shutil.copytree(benchmark / "bench", tmp_path / "b")
    plan = json.loads((tmp_path / "b/run.json").read_text())
    (tmp_path / "b/run.json").write_text(json.dumps(plan | changed))
    ran = run_resvm(*seeds.benchmark(benchmark), "-o", tmp_path / "b", "--resume")
    assert_exit(ran, 3, f"run.json: {next(iter(changed))} is ", "start over with another -o")


@pytest.mark.parametrize(
    ("file", "name", "value"),
    [
        ("times.jsonl", "seconds", 10**400),
        ("results.jsonl", "curve", [10**400] * 100),
        ("results.jsonl", "parameters", {"n_pos": 10**400}),
    ],
    ids=["seconds", "curve", "parameters"],
)
def test_a_number_that_no_double_holds_is_refused(file, name, value, benchmark, tmp_path):
    shutil.copytree(benchmark / "bench", tmp_path / "b")
    first, _, rest = (tmp_path / "b" / file).read_text().partition("\n")
    edited = json.dumps(json.loads(first) | {name: value})
    (tmp_path / "b" / file).write_text(f"{edited}\n{rest}")
    ran = run_resvm("benchmark", "report", tmp_path / "b", "-q")
    assert_exit(ran, 3, f"{file}:1: {name} is", "expected")


def change_task(benchmark, folder, part: str, name: str, value: object) -> None:
    """Copy the benchmark of two tasks and change one value of a record; None removes it."""
    shutil.copytree(benchmark / "tasks", folder)
    file = str(folder / "tasks/paper-1-of-2.json")
    content = read_sealed(file)
    if value is None:
        del content["records"][0][part][name]
    else:
        content["records"][0][part][name] = value
    write_sealed(file, content)


@pytest.mark.parametrize(
    ("name", "value"),
    [("seconds", 10**400), ("seconds", -1), ("method", "x"), ("task", None)],
    ids=["too large", "below 0", "no method", "no task"],
)
def test_a_task_whose_times_a_report_would_refuse_is_refused(name, value, benchmark, tmp_path):
    change_task(benchmark, tmp_path / "b", "times", name, value)
    ran = run_resvm(*seeds.benchmark(benchmark), "-o", tmp_path / "b")
    assert_exit(ran, 5, "not written by a task, or damaged", "run its task again")


@pytest.mark.parametrize("damaged", [3, [], {"data": 3}], ids=str)
def test_a_record_of_another_kind_is_no_result_of_a_task(damaged, benchmark):
    record = read_sealed(str(benchmark / "tasks/tasks/paper-1-of-2.json"))["records"][0]
    assert _is_task_record(record)
    assert not _is_task_record({**record, **damaged} if isinstance(damaged, dict) else damaged)


def test_a_result_without_contamination_counts_as_clean_data(benchmark, tmp_path):
    change_task(benchmark, tmp_path / "b", "result", "contamination_pos", None)
    assert_exit(run_resvm(*seeds.benchmark(benchmark), "-o", tmp_path / "b"), 0)
    assert_exit(run_resvm("benchmark", "report", tmp_path / "b", "-q"), 0)
    results = (tmp_path / "b/results.jsonl").read_text()
    assert results.count("\n") == (benchmark / "bench/results.jsonl").read_text().count("\n")
