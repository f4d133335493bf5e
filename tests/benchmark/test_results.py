"""Strict reading of a benchmark's files."""

from __future__ import annotations

import json
import os

import pytest

from resvm_cli.benchmark.results import (
    BenchmarkPlan,
    read_benchmark,
    read_published,
    read_published_parameters,
)
from resvm_cli.errors import DataError, FileError
from tests import fake_benchmark as fake


def test_results_plan_and_times_are_read(tmp_path):
    lines = fake.results(repetitions=2, tasks=["cancer", "mnist-3"])
    folder = fake.write(tmp_path / "run", lines, fake.plan(), fake.times_of(lines, 2.5))
    read = read_benchmark(str(folder))
    assert len(read.results) == len(lines) == len(read.times)
    first = read.results[0]
    assert (first.line, first.cell.task, first.cell.method) == (1, "cancer", "cwsvm")
    assert first.pr_auc_trapezoid == lines[0]["pr_auc_trapezoid"]
    assert read.plan.missing[0].file == "combined_scale"
    assert read.times[0].cpu_seconds == 2.5


def test_a_curve_has_a_hundred_precisions(tmp_path):
    curve = [round(1 - i / 200, 4) for i in range(100)]
    (result,) = read_benchmark(str(fake.write(tmp_path / "run", [fake.line(curve=curve)]))).results
    assert result.curve == tuple(curve)


def test_the_same_cell_twice_counts_once(tmp_path):
    folder = fake.write(tmp_path / "run", [fake.line(), fake.line()])
    assert len(read_benchmark(str(folder)).results) == 1


@pytest.mark.parametrize("area", ["pr_auc_trapezoid", "average_precision", "roc_auc"])
def test_a_cell_with_contradicting_areas_names_both_lines(tmp_path, area):
    folder = fake.write(tmp_path / "run", [fake.line(), fake.line(**{area: 0.5})])
    with pytest.raises(DataError, match=r"results\.jsonl:2: .* differ from those in line 1"):
        read_benchmark(str(folder))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("pr_auc_trapezoid", 1.0001),
        ("pr_auc_trapezoid", -0.1),
        ("average_precision", "0.5"),
        ("average_precision", None),
        ("roc_auc", True),
        ("repetition", -1),
        ("repetition", 1.5),
        ("repetition", 2**60),
        ("setting", "supervized"),
        ("method", "svm"),
        ("task", ""),
        ("task", 3),
        ("contamination_pos", 1.5),
        ("parameters", [1]),
        ("curve", [0.5] * 99),
        ("curve", [1.5] * 100),
        ("curve", "0.5 x"),
        ("curve", 7),
        ("candidates", 2.5),
    ],
)
def test_a_value_out_of_range_is_reported_by_line_and_name(tmp_path, field, value):
    lines = [fake.line(), fake.line(**{"task": "t", field: value})]
    folder = fake.write(tmp_path / "run", lines)
    with pytest.raises(DataError, match=rf"results\.jsonl:2: {field} is "):
        read_benchmark(str(folder))


@pytest.mark.parametrize("field", ["protocol", "roc_auc", "repetition", "method"])
def test_a_missing_field_is_named(tmp_path, field):
    line = fake.line()
    del line[field]
    with pytest.raises(DataError, match=rf"results\.jsonl:1: no {field}; "):
        read_benchmark(str(fake.write(tmp_path / "run", [line])))


@pytest.mark.parametrize(
    "text",
    [
        '{"protocol": "paper"',
        "[1, 2]",
        "",
        "nonsense",
        '{"roc_auc": NaN}',
        '{"roc_auc": Infinity}',
        '{"a": 1, "a": 2}',
        "[" * 100_000,
    ],
)
def test_a_damaged_line_is_reported_by_number(tmp_path, text):
    folder = fake.write(tmp_path / "run", [fake.line()])
    with (folder / "results.jsonl").open("a") as handle:
        handle.write(text + "\n" + json.dumps(fake.line(repetition=1)) + "\n")
    with pytest.raises(DataError, match=r"results\.jsonl:2: the line is damaged") as caught:
        read_benchmark(str(folder))
    assert "resume=True" in str(caught.value.hint)


def test_numbers_that_overflow_are_errors(tmp_path):
    folder = fake.write(tmp_path / "run", [fake.line()])
    text = (folder / "results.jsonl").read_text()
    (folder / "results.jsonl").write_text(text.replace('"roc_auc": 0.95', '"roc_auc": 1e999'))
    with pytest.raises(DataError, match=r"results\.jsonl:1: .*too large for a double"):
        read_benchmark(str(folder))


def test_invalid_utf8_is_an_error(tmp_path):
    folder = fake.write(tmp_path / "run", [])
    (folder / "results.jsonl").write_bytes(b'{"task": "\xff\xfe"}\n')
    with pytest.raises(DataError, match=r"results\.jsonl:1: "):
        read_benchmark(str(folder))


def test_a_truncated_last_line_is_an_error_at_every_cut(tmp_path):
    folder = fake.write(tmp_path / "run", [fake.line(), fake.line(repetition=1)])
    whole = (folder / "results.jsonl").read_bytes()
    start = whole.index(b"\n") + 1
    for cut in range(start + 1, len(whole), 7):
        (folder / "results.jsonl").write_bytes(whole[:cut])
        with pytest.raises(DataError, match=r"results\.jsonl:2: the line is truncated"):
            read_benchmark(str(folder))
    (folder / "results.jsonl").write_bytes(whole[:start])
    assert len(read_benchmark(str(folder)).results) == 1


def test_a_result_of_another_protocol_is_an_error(tmp_path):
    folder = fake.write(tmp_path / "run", [fake.line(), fake.line(protocol="fast", repetition=1)])
    with pytest.raises(DataError, match="the protocol is fast, but the run uses paper"):
        read_benchmark(str(folder))
    folder = fake.write(tmp_path / "planned", [fake.line()], fake.plan(protocol="fast"))
    with pytest.raises(DataError, match="the protocol is paper, but the run uses fast"):
        read_benchmark(str(folder))


def test_only_own_data_may_have_several_contaminations(tmp_path):
    lines = [fake.line(), fake.line(repetition=1, contamination_unl=0.3)]
    with pytest.raises(
        DataError, match=r"results\.jsonl:2: .*contamination.* differs from that in line 1"
    ):
        read_benchmark(str(fake.write(tmp_path / "run", lines)))
    own = [{**line, "setting": "own"} for line in lines]
    assert len(read_benchmark(str(fake.write(tmp_path / "own", own))).results) == 2


def test_a_missing_or_empty_directory_is_an_error(tmp_path):
    with pytest.raises(FileError, match="no such directory"):
        read_benchmark(str(tmp_path / "nowhere"))
    with pytest.raises(FileError, match=r"there is no results\.jsonl"):
        read_benchmark(str(tmp_path))
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="is not a directory"):
        read_benchmark(str(tmp_path / "file"))


def test_reading_does_not_wait_for_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "results.jsonl")
    with pytest.raises(FileError, match="not a regular file"):
        read_benchmark(str(tmp_path))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"format": 2}, "format 2, but this version reads 1"),
        ({"format": True}, "format True"),
        ({"tasks": "cancer"}, "tasks is"),
        ({"settings": [1]}, "settings is"),
        ({"missing": ["sensit"]}, "missing is"),
        ({"missing": [{"file": "x"}]}, "missing is"),
        ({"data": {"cancer": {"file": "x"}}}, "data is"),
        ({"repetitions": 20}, "repetitions is"),
        ({"repetitions": {"cancer/pu": "x"}}, "repetitions is"),
        ({"command": 3}, "command is"),
        ({"versions": []}, "versions is"),
        ({"protocol": 5}, "protocol is 5"),
    ],
)
def test_an_invalid_plan_is_an_error(tmp_path, fields, told):
    folder = fake.write(tmp_path / "run", [fake.line()], fake.plan(**fields))
    with pytest.raises(DataError, match=rf"run\.json: {told}"):
        read_benchmark(str(folder))


@pytest.mark.parametrize("name", ["cpu_seconds", "cpu_seconds_test"])
@pytest.mark.parametrize("seconds", [-1, "3", None])
def test_times_out_of_range_are_errors(tmp_path, seconds, name):
    lines = [fake.line()]
    times = [{**one, name: seconds} for one in fake.times_of(lines, 1)]
    folder = fake.write(tmp_path / "run", lines, None, times)
    with pytest.raises(DataError, match=rf"times\.jsonl:1: {name} is"):
        read_benchmark(str(folder))


def test_repetitions_of_a_plan_are_by_task_and_setting():
    plan = BenchmarkPlan("paper", repetitions={"cancer/pu": 20})
    assert plan.n_repetitions("pu", "cancer") == 20
    assert plan.n_repetitions("supervised", "cancer") == 0


def test_the_published_tables_come_with_the_package():
    published = read_published()
    assert len(published) == 3 * 17 * 3
    digit = published["semi-supervised", "mnist-8", "resvm"]
    assert (digit.low, digit.high, digit.wins, digit.p_below) == (68.0, 71.0, 20, 0.001)
    assert published["supervised", "cancer", "resvm"].p_below is None
    # the three methods share the 20 repetitions of every task
    sums = {}
    for (setting, task, _), one in published.items():
        sums[setting, task] = sums.get((setting, task), 0) + one.wins
    assert set(sums.values()) == {20}
    parameters = read_published_parameters()
    assert len(parameters) == 30
    means = [sum(p["w_pos"] for (s, _), p in parameters.items() if s == setting) / 10
             for setting in fake.SETTINGS]  # fmt: skip
    assert means == pytest.approx([2.48, 5.44, 5.17])  # as the paper prints them


def test_a_line_without_contamination_is_of_clean_sets(tmp_path):
    line = fake.line()
    line.pop("contamination_pos", None)
    line.pop("contamination_unl", None)
    (result,) = read_benchmark(str(fake.write(tmp_path / "run", [line]))).results
    assert (result.cell.contamination_pos, result.cell.contamination_unl) == (0.0, 0.0)
