"""Predictions, labels and ids that score reads or refuses, however odd they are."""

from __future__ import annotations

import json
import os

import pytest

from tests.conftest import assert_exit
from tests.programs import run_resvm


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
