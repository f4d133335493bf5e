"""Joining directories of one benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resvm_cli.benchmark import command
from resvm_cli.benchmark.join import join
from resvm_cli.benchmark.report import report
from resvm_cli.benchmark.results import read_benchmark
from resvm_cli.errors import DataError, ParameterError
from tests import fake_benchmark as fake

SETTINGS = {"kind": "resvm-benchmark", "format": 1, "protocol": "paper", "seed": 7, "grids": {}}


def write(folder, lines, settings=SETTINGS, **planned):
    """A directory with a settings.json."""
    plan = fake.plan(**{"repetitions": fake.repetitions(2), "missing": [], **planned})
    fake.write(folder, lines, plan, fake.times_of(lines, 3.0))
    (folder / "settings.json").write_text(json.dumps(settings))
    return str(folder)


@pytest.fixture
def halves(tmp_path):
    """Two tasks, each in its own directory."""
    lines = fake.results(repetitions=2, tasks=["cancer", "mnist-3"])
    return [
        write(tmp_path / task, [line for line in lines if line["task"] == task], tasks=[task])
        for task in ("mnist-3", "cancer")
    ]


def test_disjoint_cells_are_reported_as_one_run(halves):
    reported = report(halves)
    (run,) = reported.runs
    assert reported.comparison is None
    assert [row.task for row in run.tables[0].rows] == ["cancer", "mnist-3"]
    assert run.n_results == 2 * 3 * (3 + 4)
    assert {gap.reason for gap in run.gaps} == {"not in this run"}
    assert {gap.task for gap in run.gaps}.isdisjoint({"cancer", "mnist-3"})


def test_a_joined_directory_has_the_lines_of_both_in_the_order_of_one_run(halves, tmp_path):
    result = join(halves, str(tmp_path / "all"))
    assert (result.n_directories, result.n_results) == (2, 42)
    read = read_benchmark(result.path)
    places = [(one.cell.repetition, one.cell.task) for one in read.results]
    assert places == sorted(places)
    before = "".join(Path(half, "results.jsonl").read_text() for half in halves)
    after = (tmp_path / "all/results.jsonl").read_text()
    assert sorted(after.splitlines()) == sorted(before.splitlines())
    assert len(read.times) == 42
    assert read.settings == SETTINGS
    assert read.plan.tasks == ("cancer", "mnist-3")
    assert read.plan.n_repetitions("pu", "mnist-3") == 2
    assert report([result.path]).runs[0].tables == report(halves).runs[0].tables


def test_the_larger_plan_counts_and_data_that_was_found_is_not_missing(tmp_path):
    lacking = [{"task": "cancer", "file": "breast-cancer_scale", "fetch": "there"}]
    first = write(tmp_path / "a", [fake.line()], tasks=["synthetic", "cancer"], missing=lacking,
                  repetitions={"synthetic/pu": 5}, data={}, command="one")  # fmt: skip
    second = write(tmp_path / "b", [fake.line(task="cancer")], tasks=["cancer", "synthetic"],
                   repetitions={"synthetic/pu": 3, "cancer/pu": 2}, command="two")  # fmt: skip
    join([first, second], str(tmp_path / "c"))
    plan = read_benchmark(str(tmp_path / "c")).plan
    assert plan.repetitions == {"synthetic/pu": 5, "cancer/pu": 2}
    assert plan.missing == ()
    assert plan.command == "one\ntwo"
    assert plan.versions == {"resvm": "1.2", "numpy": "2.0"}


def test_the_same_cell_counts_once_and_must_be_the_same(tmp_path):
    first = write(tmp_path / "a", [fake.line(), fake.line(repetition=1)])
    second = write(tmp_path / "b", [fake.line(repetition=1), fake.line(repetition=2)])
    other = write(tmp_path / "c", [fake.line(repetition=2, roc_auc=0.5)])
    assert report([first, second]).runs[0].n_results == 3
    with pytest.raises(DataError, match=r"c/results\.jsonl:1: .* differ from .*b/results\.jsonl:2"):
        report([first, second, other])
    with pytest.raises(DataError, match="repetition 2 differ from"):
        join([second, other], str(tmp_path / "all"))
    assert not (tmp_path / "all").exists()


def test_directories_with_other_rows_of_a_task_cannot_be_joined(tmp_path):
    first = write(tmp_path / "a", [fake.line()], data={"synthetic": {"digest": "1"}})
    second = write(tmp_path / "b", [fake.line(repetition=1)], data={"synthetic": {"digest": "2"}})
    with pytest.raises(DataError, match=r"b: the rows of synthetic differ from those of .*a"):
        join([first, second], str(tmp_path / "all"))


def test_runs_of_other_settings_are_compared_but_not_joined(tmp_path):
    first = write(tmp_path / "a", [fake.line()])
    second = write(tmp_path / "b", [fake.line(roc_auc=0.5)], {**SETTINGS, "seed": 8})
    third = write(tmp_path / "c", [fake.line()], {**SETTINGS, "seed": 9})
    reported = report([first, second])
    assert len(reported.runs) == 2
    assert reported.comparison.names == (first, second)
    with pytest.raises(DataError, match=r"b: was run with different settings than .*a: seed"):
        join([first, second], str(tmp_path / "all"))
    with pytest.raises(ParameterError, match="contain 3 runs"):
        report([first, second, third])


def test_joining_explains_what_cannot_be_joined(tmp_path):
    first = write(tmp_path / "a", [fake.line()])
    bare = str(fake.write(tmp_path / "b", [fake.line(repetition=1)]))
    with pytest.raises(DataError, match=r"b: there is no settings\.json"):
        join([first, bare], str(tmp_path / "all"))
    with pytest.raises(ParameterError, match="a is the same directory as"):
        join([first, first], str(tmp_path / "all"))
    with pytest.raises(ParameterError, match="b: already exists"):
        join([first], bare)
    with pytest.raises(ParameterError, match="path must be a directory name"):
        join([first], "-")


def test_the_command_for_the_report_can_be_copied(capsys):
    command._summarize({}, "my bench")
    assert "resvm benchmark report 'my bench' shows the tables" in capsys.readouterr().err
