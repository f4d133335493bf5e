"""resvm check, as a user runs it."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from resvm_cli.data.svmlight import Block, format_block
from resvm_cli.rows import Rows
from tests.conftest import write_svm

RNG = np.random.default_rng(5)


def told(resvm, path, *more: object, code: int = 0) -> dict:
    ran = resvm("check", path, "--json", *more)
    assert ran.code == code, ran.err
    (file,) = json.loads(ran.out)["files"]
    return file


def test_every_bad_line_is_listed(resvm, tmp_path):
    lines = [b"1 1:1\n"] * 50
    bad = {3: b"1 0:1\n", 17: b"x\n", 18: b"1 1:nan\n", 44: b"1 2:1 1:1\n"}
    for line, text in bad.items():
        lines[line - 1] = text
    (tmp_path / "bad.svm").write_bytes(b"".join(lines))
    ran = resvm("check", "bad.svm", cwd=tmp_path)
    assert ran.code == 3
    found = ran.out.decode().splitlines()
    assert [line.split(":")[1] for line in found[:4]] == ["3", "17", "18", "44"]
    assert "not valid, bad lines: 4" in ran.out.decode()
    few = resvm("check", "bad.svm", "--max", 2, cwd=tmp_path).out.decode().splitlines()
    assert few[2] == "... and 2 more bad lines"
    file = told(resvm, tmp_path / "bad.svm", "--max", 3, code=3)
    assert (file["sound"], file["n_bad_lines"], len(file["bad_lines"])) == (False, 4, 3)
    assert file["n_rows"] == 46


def test_what_a_file_holds(resvm, tmp_path):
    features = np.round(RNG.standard_normal((80, 6)), 2)
    features[:, 1] = 2.5  # constant
    features[:, 5] = 0.0
    features[9] = features[3]
    features[60] = features[3]
    path = write_svm(tmp_path / "data.svm", features, np.repeat([1, 2, 3], [40, 30, 10]))
    path.write_bytes(path.read_bytes() + b"1:3 6:0\n4\n")
    (tmp_path / "data.gz").write_bytes(gzip.compress(path.read_bytes()))
    for name in ("data.svm", "data.gz"):
        file = told(resvm, tmp_path / name)
        assert file["sound"]
        assert (file["n_rows"], file["n_features"]) == (82, 6)
        assert file["n_nonzeros"] == int((features != 0).sum()) + 1
        assert file["labels"] == {"1": 40, "2": 30, "3": 10, "4": 1}
        assert file["rows_without_features"] == 1
        assert file["duplicate_rows"] == 2
        assert file["constant_features"] == []  # two rows lack feature 2, so it is 0 there
        assert (file["smallest"], file["largest"]) == (features.min(), max(3.0, features.max()))
        assert file["scaling"] is None
    write_svm(path, features)
    assert told(resvm, path)["constant_features"] == [2]
    assert "constant  1 features: 2\n" in resvm("check", path).out.decode()
    write_svm(path, np.tile(np.arange(1.0, 31.0), (5, 1)))
    file = told(resvm, path)
    assert (file["constant_features"], file["n_constant_features"]) == ([*range(1, 21)], 30)


def test_scaling_is_advised_where_ranges_differ(resvm, tmp_path):
    features = RNG.random((50, 4))
    path = write_svm(tmp_path / "data.svm", features)
    assert told(resvm, path)["scaling"] is None
    write_svm(path, features * [1, 1, 1, 1000])
    assert "times as wide" in told(resvm, path)["scaling"]
    write_svm(path, features * 255)
    assert "values reach" in told(resvm, path)["scaling"]


def test_several_files_and_stdin(resvm, tmp_path):
    write_svm(tmp_path / "a", np.ones((2, 2)))
    (tmp_path / "b").write_bytes(b"")
    ran = resvm("check", "a", "b", "-", cwd=tmp_path, stdin=b"1 1:1\n")
    assert ran.code == 3
    assert "bad lines in b" in ran.err
    assert "b: no rows" in ran.out.decode()
    assert b"stdin\n" in ran.out
    some = resvm("check", "nowhere", "a", "neither", cwd=tmp_path)
    assert some.code == 5
    assert "neither: cannot read" in some.err
    assert b"state  valid" in some.out
    assert "nowhere: cannot read" in some.err


def test_huge_indices_are_no_trouble(resvm, tmp_path):
    (tmp_path / "wide").write_bytes(b"1 2147483646:1\n1 5:1\n1 5:1\n")
    file = told(resvm, tmp_path / "wide")
    assert (file["n_features"], file["duplicate_rows"]) == (2147483646, 1)
    assert file["n_constant_features"] is None
    assert b"too many features to examine individually" in resvm("check", tmp_path / "wide").out


def test_counting_from_zero(resvm, tmp_path):
    (tmp_path / "zero").write_bytes(b"1 0:1\n")
    assert told(resvm, tmp_path / "zero", code=3)["n_bad_lines"] == 1
    assert told(resvm, tmp_path / "zero", "--zero-based")["n_features"] == 1


def test_files_counted_from_0_and_from_1_are_noted_wherever_both_are_read(resvm, tmp_path):
    for name, first in (("pos", 0), ("unl", 1)):
        rows = Rows.from_dense(RNG.standard_normal((30, 4)), first)
        text = format_block(Block.from_rows(rows))
        (tmp_path / f"{name}.svm").write_bytes(text)
    pos, unl = tmp_path / "pos.svm", tmp_path / "unl.svm"
    said = "pos.svm has features 0 to 3, but"
    sets = ["-P", pos, "-U", unl, "--zero-based"]
    for command in (
        ["check", pos, unl, "--zero-based"],
        ["train", "--no-auto", *sets, "--n-models", 2, "-o", tmp_path / "m"],
        ["rank", *sets, "--model", tmp_path / "m"],
    ):
        ran = resvm(*command)
        assert ran.code == 0, ran.err
        assert said in " ".join(ran.err.split()).replace(f"{tmp_path}/", ""), command[0]
    assert said not in resvm("check", pos, pos, "--zero-based").err
    assert "indices" not in told(resvm, pos, "--zero-based")


BAD_CELLS = """id,age,city,status
a,3,Rome,x
b,,Rome,y
c,foo,,x
d,4,Paris,
e,inf,Paris,x
f,bar,,x
g,,,x
h,,,x
i,,,x
"""
NO_NUMBERS = [
    "t.csv: column 'age': no number in 2 rows: t.csv:4, t.csv:7",
    "t.csv: column 'age': no finite number in 1 row: t.csv:6",
]
NO_VALUES = [
    "t.csv: column 'age': no value in 4 rows: t.csv:3, t.csv:8, t.csv:9, ...",
    "t.csv: column 'city': no value in 5 rows: t.csv:4, t.csv:7, t.csv:8, ...",
]


@pytest.mark.parametrize("missing", ["refuse", "drop", "mean"])
def test_bad_cells_of_a_table_are_counted_by_column(missing, resvm, tmp_path):
    (tmp_path / "t.csv").write_text(BAD_CELLS)
    roles = ["--id-column", "id", "--label-column", "status", "--positive-label", "x"]
    ran = resvm("check", "t.csv", *roles, "--missing", missing, "--json", cwd=tmp_path)
    assert ran.code == 3
    (found,) = json.loads(ran.out)["files"]
    refused = missing == "refuse"
    assert set(found["bad_lines"]) == {*NO_NUMBERS, *(NO_VALUES if refused else [])}
    assert (found["n_bad_lines"], found["n_unlisted"]) == (12 if refused else 3, 0)


def test_a_table_is_valid_with_the_options_that_train_it(resvm, tmp_path):
    lines = [line for line in BAD_CELLS.splitlines() if line[0] not in "cdef"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    roles = ["--id-column", "id", "--label-column", "status", "--positive-label", "x"]
    ran = resvm("check", "t.csv", *roles, "--missing", "zero", cwd=tmp_path)
    assert ran.code == 0, ran.out
    assert "state  valid" in ran.out.decode()
    assert "labels  1 (4), 0 (1)" in ran.out.decode()


def test_a_table_without_rows_or_with_another_column_is_one_bad_line(resvm, tmp_path):
    (tmp_path / "t.csv").write_text("Dx status,b\n")
    found = told(resvm, tmp_path / "t.csv", code=3)
    assert (found["sound"], found["n_bad_lines"], len(found["bad_lines"])) == (False, 1, 1)
    found = told(resvm, tmp_path / "t.csv", "--label-column", "dx_status", code=3)
    assert "no column 'dx_status' (--label-column); did you mean 'Dx status'?" in str(found)


def test_labels_beyond_those_listed_are_counted(resvm, tmp_path):
    lines = [f"{label} 1:{label + 1} 2:0\n" for label in range(50)]
    (tmp_path / "x").write_text("".join(lines))
    text = resvm("check", "x", cwd=tmp_path).out.decode()
    assert "1 to 50\n" in text
    listed = text.count(" (1)")
    assert f", and {50 - listed} more" in text


def test_notes_on_columns_of_a_table_are_given(resvm, tmp_path):
    rows = [f"r{number},{number % 5}" for number in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["name,a", *rows]) + "\n")
    assert "the column 'name' contains ids" in resvm("check", "t.csv", cwd=tmp_path).err
