"""The sample data are small, drawn with a seed, and as described in their README."""

from __future__ import annotations

import sys

import numpy as np

from resvm_cli.data.inputs import read_file
from tests.conftest import ROOT, SAMPLE, train_arguments
from tests.programs import run


def test_the_script_makes_the_same_bytes_again(tmp_path):
    ran = run([sys.executable, SAMPLE / "make.py", tmp_path], cwd=ROOT)
    assert ran.code == 0, ran.err
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.*"))
    assert len(made) == 18
    for path in made:
        assert (tmp_path / path).read_bytes() == (SAMPLE / path).read_bytes(), path


def test_it_is_small_and_has_the_stated_sizes():
    assert sum(path.stat().st_size for path in SAMPLE.rglob("*") if path.is_file()) < 1_000_000
    sizes = {
        f"{name}/{part}": len(read_file(str(SAMPLE / name / f"{part}.svm")))
        for name in ("synthetic", "digits")
        for part in ("pos", "unl", "test")
    }
    assert sizes == {
        "synthetic/pos": 100,
        "synthetic/unl": 200,
        "synthetic/test": 1000,
        "digits/pos": 50,
        "digits/unl": 700,
        "digits/test": 1047,
    }


def test_the_defaults_rank_the_sample_problems_well(resvm, tmp_path):
    from sklearn.metrics import average_precision_score

    for name, least in (("synthetic", 0.93), ("digits", 0.9)):
        folder = SAMPLE / name
        model = tmp_path / name
        resvm(*train_arguments(folder), "-o", model)
        out = resvm("predict", model, folder / "test.svm").out
        values = np.array([float(line.split()[1]) for line in out.splitlines()])
        truth = read_file(str(folder / "test.svm")).labels == 1
        assert average_precision_score(truth, values) > least
