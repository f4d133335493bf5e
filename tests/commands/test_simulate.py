"""resvm simulate, as a user runs it."""

from __future__ import annotations

import csv
import json
import os
import signal

import numpy as np
import pytest

from resvm_cli.tables.inputs import read_file
from tests.conftest import assert_exit, write_svm
from tests.programs import resvm_signaled_at, run

RNG = np.random.default_rng(3)
FEATURES = RNG.standard_normal((300, 4))
LABELS = RNG.integers(0, 3, 300)
ONE = ["--positive-label", 1]
SIZES = ["--n-pos", 5, "--n-unl", 5]
NINE = ["--positive-label", 9, "--n-pos", 5, "--n-unl", 5]
NAMES = [f"gene {number}" for number in range(300)]


@pytest.fixture
def data(tmp_path):
    return write_svm(tmp_path / "data.svm", FEATURES, LABELS, comments=NAMES)


def test_truth_tells_which_rows_are_mislabeled(data, resvm, tmp_path):
    ran = resvm(
        "simulate", "--data", data, "--positive-label", 1, "--n-pos", 20, "--n-unl", 100,
        "--contamination-pos", 0.1, "--contamination-unl", 0.25, "-o", tmp_path / "made",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert ran.out == b""
    assert "20 rows, 2 of them truly negative" in ran.err
    assert "100 rows, 25 of them truly positive" in ran.err
    made = tmp_path / "made"
    assert sorted(os.listdir(made)) == ["pos.svm", "test.svm", "truth.csv", "unl.svm"]
    sets = {
        name: read_file(str(made / name), with_comments=True)
        for name in ("pos.svm", "unl.svm", "test.svm")
    }
    source = {name: number for number, name in enumerate(NAMES)}
    with open(made / "truth.csv", newline="") as handle:
        told = list(csv.DictReader(handle))
    assert len(told) == 120
    seen = []
    for line in told:
        block, row = sets[line["file"]], int(line["row"]) - 1
        number = source[block.comments[row]]
        seen.append(number)
        values = block.rows.slice(row, row + 1).values
        assert values.tobytes() == FEATURES[number].tobytes()
        positive = LABELS[number] == 1
        assert int(line["source_line"]) == number + 1
        assert int(line["true_label"]) == (1 if positive else -1)
        assert int(line["mislabelled"]) == (positive != (line["file"] == "pos.svm"))
    test = [source[name] for name in sets["test.svm"].comments]
    assert sorted(seen + test) == list(range(300))
    assert sets["test.svm"].labels.tolist() == [1.0 if LABELS[n] == 1 else -1.0 for n in test]


def test_same_seed_same_bytes(data, resvm, tmp_path):
    common = ["simulate", "--data", data, "--positive-label", 1, "--n-pos", 9, "--n-unl", 50, "-q"]

    def made(name: str, *more: object) -> dict[str, bytes]:
        assert resvm(*common, *more, "-o", tmp_path / name).code == 0
        return {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}

    first = made("a")
    assert made("b") == first
    assert made("c", "--seed", 1)["pos.svm"] != first["pos.svm"]
    assert made("d", "--labelling", "biased")["pos.svm"] != first["pos.svm"]
    assert made("e", "--labelling", "biased") == made("f", "--labelling", "biased")


def test_biased_labelling_of_wide_data_needs_little_memory(resvm, tmp_path):
    (tmp_path / "wide").write_text("1 2147483646:1\n1 5:1\n0 7:1\n0 9:1\n")
    ran = resvm(
        "simulate", "--data", tmp_path / "wide", "--positive-label", 1, "--n-pos", 1,
        "--n-unl", 1, "--labelling", "biased", "-o", tmp_path / "made",
    )  # fmt: skip
    assert ran.code == 0, ran.err


def test_the_synthetic_problem_in_the_papers_sizes(resvm, tmp_path):
    ran = resvm("simulate", "--synthetic", "-o", tmp_path / "s", "-q", "--json", "--decimals", 3)
    told = json.loads(ran.out)
    assert (told["n_pos"], told["n_unl"], told["test_pos"], told["test_neg"]) == (
        100,
        200,
        5000,
        5000,
    )
    block = read_file(str(tmp_path / "s" / "pos.svm"))
    assert len(block) == 100
    assert block.rows.max_index == 2
    assert np.array_equal(np.round(block.rows.values, 3), block.rows.values)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "or --synthetic"),
        (["--synthetic", "--data", "data.svm"], 2, "cannot be combined"),
        (["--data", "data.svm"], 2, "--data requires --n-pos and --n-unl"),
        (["--data", "data.svm", "--n-pos", 5, "--n-unl", 5], 2, "--data requires --positive-label"),
        (["--synthetic", "--positive-label", 1], 2, "--positive-label requires --data"),
        (["--synthetic", "--contamination-pos", 1.5], 2, "must be between 0 and 1"),
        (["--synthetic", "--contamination-unl", -0.1], 2, "must be between 0 and 1"),
        (["--synthetic", "--contamination-unl", "nan"], 2, "must be between 0 and 1"),
        (["--synthetic", "--n-pos", -1], 2, "--n-pos must be between 1 and"),
        (["--synthetic", "--test-pos", -1], 2, "--test-pos must be between 0 and"),
        (["--synthetic", "--n-pos", 0], 2, "and 1,073,741,824, got 0"),
        (["--synthetic", "--n-unl", 10**20], 2, "--n-unl must be at most 2**53"),
        (["--synthetic", "--decimals", 400], 2, "between 0 and 17"),
        (["--synthetic", "--decimals", -5], 2, "between 0 and 17"),
        (["--data", "data.svm", *ONE, *SIZES, "--decimals", 3], 2, "--decimals requires"),
        (["--synthetic", "--labelling", "odd"], 2, "random or biased"),
        (["--synthetic", "-o", "data.svm"], 2, "exists"),
        (["--synthetic", "-o", ""], 2, "-o must be a directory name"),
        (["--data", "data.svm", *ONE, "--n-pos", 999, "--n-unl", 5], 3, "are needed"),
        (["--data", "data.svm", *NINE], 3, "the labels are 0, 1, 2"),
        (["--data", "none", "--positive-label", 9, "--n-pos", 5, "--n-unl", 5], 5, "cannot read"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_refused(arguments, code, message, data, resvm, tmp_path):
    ran = resvm("simulate", *arguments, cwd=tmp_path)
    assert ran.code == code, ran.err
    assert message in ran.err
    assert os.listdir(tmp_path) == ["data.svm"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_after_the_output_is_in_place_changes_nothing(number, tmp_path):
    command = ("simulate", "--synthetic", "-o", tmp_path / "s", "-q")
    assert_exit(run(resvm_signaled_at("rename", number, *command)), 0)
    assert os.listdir(tmp_path) == ["s"]


def test_sets_are_drawn_from_a_table_by_its_labels(resvm, tmp_path):
    rows = [f"{'hit' if number % 3 else 'no'},{number},{number % 7}" for number in range(90)]
    (tmp_path / "t.csv").write_text("\n".join(["y,a,b", *rows]) + "\n")
    words = ["simulate", "--data", "t.csv", "--label-column", "y", *SIZES, "-o", "s"]
    ran = resvm(*words, "--positive-label", "hit", cwd=tmp_path)
    assert ran.code == 0, ran.err
    block = read_file(str(tmp_path / "s" / "pos.svm"))
    assert (len(block), block.rows.max_index) == (5, 2)
    ran = resvm(*words[:-1], "none", "--positive-label", "HIT", cwd=tmp_path)
    assert_exit(ran, 3, "labels in the file: no, hit")


def test_a_test_set_without_one_class_is_told(resvm, tmp_path):
    write_svm(tmp_path / "few.svm", FEATURES[:30], np.repeat([1, 0], [5, 25]))
    words = ["simulate", "--data", "few.svm", *ONE, *SIZES, "-o", "s"]
    assert "test.svm lacks a class" in resvm(*words, cwd=tmp_path).err
