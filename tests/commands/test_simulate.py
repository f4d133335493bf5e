"""resvm simulate: sets with the stated fractions of wrong labels, written to a directory."""

from __future__ import annotations

import csv
import itertools
import json
import os

import numpy as np
import pytest
from scipy.stats import kstest

from resvm_cli.commands.simulate import Sizes, draw_synthetic, split
from resvm_cli.data.inputs import read_file
from resvm_cli.errors import DataError
from tests.conftest import assert_exit, write_svm

RNG = np.random.default_rng(3)
FEATURES = RNG.standard_normal((300, 4))
LABELS = RNG.integers(0, 3, 300)
ONE = ["--positive-label", 1]
SIZES = ["--n-pos", 5, "--n-unl", 5]
NINE = ["--positive-label", 9, "--n-pos", 5, "--n-unl", 5]
TRUTH = np.arange(900) % 3 == 0  # 300 positive, 600 negative
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
        assert int(line["mislabeled"]) == (positive != (line["file"] == "pos.svm"))
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


def test_sizes_that_memory_cannot_hold_are_refused(resvm, tmp_path):
    sizes = [
        word for name in ("n-pos", "n-unl", "test-pos", "test-neg") for word in (f"--{name}", 10**9)
    ]
    ran = resvm("simulate", "--synthetic", *sizes, cwd=tmp_path)
    assert_exit(ran, 2, "4,000,000,000 rows take about 2,360 GB of memory, but")


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


@pytest.mark.parametrize(
    ("n_pos", "n_unl", "a", "b"),
    list(
        itertools.product(
            [1, 7, 50], [1, 33, 200], [0.0, 0.1, 0.3, 0.5, 1.0], [0.0, 0.05, 0.3, 1.0]
        )
    ),
)
def test_counts_are_exact(n_pos, n_unl, a, b):
    for limit in (None, 20):
        sizes = Sizes(n_pos, n_unl, a, b, limit, limit)
        made = split(TRUTH, sizes, np.random.default_rng(0))
        assert len(made.positives) == n_pos
        assert len(made.unlabeled) == n_unl
        assert (~TRUTH[made.positives]).sum() == round(a * n_pos)
        assert TRUTH[made.unlabeled].sum() == round(b * n_unl)
        used = np.concatenate([made.positives, made.unlabeled, made.test])
        assert len(np.unique(used)) == len(used)
        if limit is None:
            assert len(used) == 900
        else:
            assert (TRUTH[made.test].sum(), (~TRUTH[made.test]).sum()) == (20, 20)


def test_too_few_rows_of_a_class_are_named():
    with pytest.raises(DataError, match=r"301 truly positive rows .* only 300"):
        split(TRUTH, Sizes(301, 10), np.random.default_rng(0))
    with pytest.raises(DataError, match="601 truly negative rows"):
        split(TRUTH, Sizes(1, 500, test_neg=101), np.random.default_rng(0))


def test_every_row_is_as_likely_as_another():
    times = np.zeros(900)
    for seed in range(400):
        times[split(TRUTH, Sizes(30, 60), np.random.default_rng(seed)).positives] += 1
    counts = times[TRUTH]
    assert counts.sum() == 400 * 30
    assert counts.mean() == 40
    assert counts.var() == pytest.approx(400 * 0.1 * 0.9, rel=0.3)


def test_the_synthetic_problem_is_the_papers():
    points = draw_synthetic(4000, 5000, np.random.default_rng(0))
    assert points.shape == (9000, 2)
    assert kstest(points[:4000].ravel(), "norm").pvalue > 0.01
    # a circle of radius 4 with standard normal noise: E|x|^2 = 16 + 2
    assert (points[4000:] ** 2).sum(axis=1).mean() == pytest.approx(18.0, rel=0.03)
    assert points[4000:].mean(axis=0) == pytest.approx([0, 0], abs=0.15)
    angles = np.arctan2(points[4000:, 1], points[4000:, 0])
    assert kstest((angles + np.pi) / (2 * np.pi), "uniform").pvalue > 0.01
