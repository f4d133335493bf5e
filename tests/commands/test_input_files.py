"""Predictions, labels and ids that score reads or refuses, however odd they are."""

from __future__ import annotations

import json
import os

import pytest

from tests.conftest import assert_exit
from tests.programs import run_resvm


@pytest.mark.parametrize(
    "text",
    [
        b"id,label,decision_value\na,1\r,0.5\nb,-1,0.1\n",
        b"id,label,decision_value\ra,1,0.5\n",
        b"decision_value," + b"x" * 140_000 + b"\n0.5,1\n",
        b"x" * 140_000 + b"\n",
        b"id,label,decision_value\n" + b"y" * 140_000 + b",1,0.5\nb,-1,0.1\n",
        b'id,label,decision_value\n"a\rb",1,0.5\nb,-1,0.1\n',
    ],
    ids=["cr", "cr-head", "long-name", "long-line", "long-id", "quoted-cr"],
)
def test_odd_csv_is_read_or_refused(text, tmp_path):
    (tmp_path / "pred").write_bytes(text)
    (tmp_path / "ids").write_text("b\n")
    (tmp_path / "labels").write_text("1\n-1\n")
    for options in (("--positive-ids", tmp_path / "ids"), ("--labels", tmp_path / "labels")):
        ran = run_resvm("score", tmp_path / "pred", *options, "--bootstrap", 0)
        assert ran.code in (0, 3), ran.err
        assert "Traceback" not in ran.err


def test_an_id_with_a_carriage_return_reads_back(model, tmp_path):
    (tmp_path / "rows").write_bytes(b"1 1:3 # one\rid\n-1 1:-3 # another\n")
    (tmp_path / "ids").write_bytes(b"one\rid\n")
    for form in ("tsv", "csv", "jsonl", "text"):
        ran = run_resvm("predict", model, tmp_path / "rows", "--ids", "--format", form)
        (tmp_path / "pred").write_bytes(ran.out)
        ran = run_resvm(
            "score", tmp_path / "pred", "--positive-ids", tmp_path / "ids", "--bootstrap", 0
        )
        assert_exit(ran, 0)
        assert b"1 positive, 1 negative" in ran.out


@pytest.mark.parametrize("label", ['"1"', "2", "true", "null", "[1]", '"-1"', "1e400"])
def test_labels_of_json_lines_are_one_or_minus_one(label, tmp_path):
    (tmp_path / "pred").write_text(
        f'{{"label": {label}, "decision_value": 0.9}}\n{{"label": -1, "decision_value": 0.1}}\n'
    )
    (tmp_path / "labels").write_text("1\n-1\n")
    ran = run_resvm("score", tmp_path / "pred", "--labels", tmp_path / "labels")
    assert_exit(ran, 3, "pred:1")


def test_a_label_on_some_json_lines_only_is_refused(tmp_path):
    (tmp_path / "pred").write_text('{"label": 1, "decision_value": 0.9}\n{"decision_value": 0.1}\n')
    (tmp_path / "labels").write_text("1\n-1\n")
    ran = run_resvm("score", tmp_path / "pred", "--labels", tmp_path / "labels")
    assert_exit(ran, 3, "pred:2")


def test_a_decision_value_of_400_digits_is_refused(tmp_path):
    long = "9" * 400
    (tmp_path / "pred").write_text(f'{{"decision_value": {long}}}\n{{"decision_value": 0.1}}\n')
    (tmp_path / "labels").write_text("1\n-1\n")
    ran = run_resvm("score", tmp_path / "pred", "--labels", tmp_path / "labels")
    assert_exit(ran, 3, "pred:1")


def test_a_json_line_with_a_key_twice_is_refused(tmp_path):
    lines = ['{"decision_value": 1.5, "label": 1}', '{"decision_value": 0.5, "label": -1}']
    (tmp_path / "labels").write_text("1\n-1\n")
    (tmp_path / "x.jsonl").write_text("\n".join(lines) + "\n")
    scored = ["score", tmp_path / "x.jsonl", "--labels", tmp_path / "labels", "--bootstrap", 0]
    assert_exit(run_resvm(*scored), 0)
    lines[1] = lines[1].replace("{", '{"decision_value": 2.5, ')
    (tmp_path / "x.jsonl").write_text("\n".join(lines) + "\n")
    assert_exit(run_resvm(*scored), 3, "x.jsonl:2: not a JSON object")


def test_a_huge_label_is_refused_without_a_warning_by_numpy(tmp_path):
    (tmp_path / "pred").write_text("1e300 0.9\n-1 0.1\n")
    (tmp_path / "labels").write_text("1e300\n-1\n")
    ran = run_resvm("score", tmp_path / "pred", "--labels", tmp_path / "labels")
    assert_exit(ran, 3)
    assert "Warning" not in ran.err


@pytest.mark.parametrize("label", ["inf", "-inf", "infinity"])
def test_an_infinite_label_is_refused(label, tmp_path):
    (tmp_path / "pred").write_text("1 0.9\n-1 0.1\n1 0.3\n")
    (tmp_path / "labels").write_text(f"1\n-1\n{label}\n")
    ran = run_resvm(
        "score", tmp_path / "pred", "--labels", tmp_path / "labels", "--positive-label", 1,
        "--bootstrap", 0,
    )  # fmt: skip
    assert_exit(ran, 3, "the label of row 3")


@pytest.mark.parametrize("value", ["1_0", "١", "1e999", "0x1p3", " 1", "nan", "1f"])  # noqa: RUF001
@pytest.mark.parametrize("form", ["tsv", "text"])
def test_files_with_ids_allow_the_same_numbers_as_files_without(value, form, tmp_path):
    rows = {
        "tsv": f"id\tlabel\tdecision_value\na\t1\t{value}\nb\t-1\t0.1\n",
        "text": f"1 {value} # a\n-1 0.1 # b\n",
    }
    (tmp_path / "pred").write_text(rows[form])
    (tmp_path / "ids").write_text("a\n")
    (tmp_path / "labels").write_text("1\n-1\n")
    by_labels, by_ids = (
        run_resvm("score", tmp_path / "pred", *more, "--bootstrap", 0)
        for more in (("--labels", tmp_path / "labels"), ("--positive-ids", tmp_path / "ids"))
    )
    assert by_labels.code in (0, 3)
    assert by_ids.code == by_labels.code, by_ids.err


def test_an_id_on_two_rows_is_reported(tmp_path):
    (tmp_path / "pred").write_text("1 0.9 # a\n1 0.8 # a\n-1 0.1 # b\n")
    (tmp_path / "ids").write_text("a\n")
    ran = run_resvm("score", tmp_path / "pred", "--positive-ids", tmp_path / "ids")
    assert_exit(ran, 0)
    assert "2 rows have the id 'a'" in ran.out.decode()


def test_a_file_name_that_is_not_utf_8_does_not_damage_the_json(tmp_path):
    pred = os.fsencode(tmp_path) + b"/\xff.pred"
    with open(pred, "wb") as handle:
        handle.write(b"1 0.9 # \xffid\n-1 0.1 # b\n")
    (tmp_path / "labels").write_text("1\n-1\n")
    command = ["score", os.fsdecode(pred), "--labels", tmp_path / "labels", "--bootstrap", 0]
    ran = run_resvm(*command, "--json")
    assert b"\\udcff" not in ran.out
    json.loads(ran.out)
