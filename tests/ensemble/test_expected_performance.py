"""The expected performance of a model is correct, and training warns only when it should."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from resvm_cli.data.pudata import MemoryData
from resvm_cli.ensemble.oob import ExpectedPerformance
from resvm_cli.metrics.intervals import roc_auc_interval
from resvm_cli.parameters import Params
from resvm_cli.run import Run
from resvm_cli.tuning.learn import learn
from tests.conftest import write_svm

RNG = np.random.default_rng(77)


def trained(positives, unlabeled, params=None, **settings):
    features = np.concatenate([positives, unlabeled])
    known = np.arange(len(features)) < len(positives)
    run = Run()
    data = MemoryData.from_matrix(features, known, **settings)
    choice = replace(params or Params(n_models=20), auto=False)
    _, model = learn(data, choice, run)
    return model, " / ".join(map(str, run.notes))


def expected(model):
    return ExpectedPerformance.from_table(model.decision, model.out_of_bag)


def clouds(shift=1.5, n_pos=40, n_unl=200, width=4):
    return RNG.normal(shift, 1.0, (n_pos, width)), RNG.normal(0.0, 1.0, (n_unl, width))


def test_ordinary_data_is_not_warned_of():
    found, notes = trained(*clouds())
    assert notes == ""
    assert expected(found).threshold.chosen
    assert expected(found).roc_auc.low > 0.5


def test_the_area_and_its_interval_are_those_of_delong():
    known, unlabeled = np.round(RNG.normal(1, 1, 60), 1), np.round(RNG.normal(0, 1, 150), 1)
    found = roc_auc_interval(known, unlabeled)
    labels = np.repeat([1, 0], [60, 150])
    assert found.value == pytest.approx(roc_auc_score(labels, np.concatenate([known, unlabeled])))
    draws = ((RNG.choice(known, 60)[:, None], RNG.choice(unlabeled, 150)) for _ in range(1000))
    again = [((one > other) + 0.5 * (one == other)).mean() for one, other in draws]
    assert (found.high - found.low) / (2 * 1.96) == pytest.approx(np.std(again), rel=0.15)


def test_sets_that_cannot_be_told_apart_are_named():
    _, notes = trained(*clouds(shift=0.0))
    assert "are barely distinguishable from U" in notes


def test_features_on_different_scales_are_named_until_they_are_scaled():
    positives, unlabeled = clouds()
    positives[:, 0] *= 1000
    unlabeled[:, 0] *= 1000
    _, notes = trained(positives, unlabeled)
    assert "not scaled: the widest feature is" in notes
    assert "`scale='auto'`" in notes
    found, notes = trained(positives, unlabeled, scale="auto")
    assert "not scaled" not in notes
    assert [each["kind"] for each in found.manifest["scalings"]] == ["standard"]


def test_auto_scaling_leaves_features_of_one_scale_alone():
    found, _ = trained(*clouds(), scale="auto")
    assert found.manifest["scalings"] == []


def test_sparse_features_are_scaled_so_that_they_stay_sparse():
    positives, unlabeled = clouds(width=30)
    keep = RNG.random((240, 30)) < 0.2
    positives, unlabeled = positives * keep[:40], unlabeled * keep[40:]
    positives[:, 0] *= 1000
    unlabeled[:, 0] *= 1000
    found, _ = trained(positives, unlabeled, scale="auto")
    assert [each["kind"] for each in found.manifest["scalings"]] == ["maxabs"]


def test_too_few_rows_leave_the_papers_threshold_and_say_so():
    found, notes = trained(*clouds(n_pos=6))
    assert expected(found).threshold.value == 0.5
    assert not expected(found).threshold.chosen
    assert "T is 0.5: 6 rows of P and 200 of U are out of bag" in notes


def test_members_that_stopped_early_are_counted_in_one_line(tmp_path, resvm):
    positives, unlabeled = clouds()
    write_svm(tmp_path / "pos.svm", positives * 1e4)
    write_svm(tmp_path / "unl.svm", unlabeled * 1e4)
    ran = resvm(
        "train", "--no-auto", "-P", tmp_path / "pos.svm", "-U", tmp_path / "unl.svm", "-t",
        "linear",
        "--solver", "liblinear", "-c", 1e6, "-e", 1e-9, "--n-models", 6, "-o", tmp_path / "m",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert ran.err.count("iteration limit") == 1
    assert "WARNING" not in ran.err


def test_programs_are_told_the_same(problem, resvm, tmp_path):
    files = ("-P", problem / "pos.svm", "-U", problem / "unl.svm")
    ran = resvm("train", "--no-auto", *files, "-o", tmp_path / "m", "--json")
    told = json.loads(ran.out)
    expected, decision = told["expected_performance"], told["manifest"]["decision"]
    assert expected["rule"] == decision["rule"] == "votes"
    assert expected["threshold"]["value"] == decision["thresholds"]["votes"]["value"]
    assert expected["roc_auc"]["low"] < expected["roc_auc"]["value"] < expected["roc_auc"]["high"]
    assert (expected["n_positives"], expected["n_unlabeled"]) == (30, 100)


@pytest.mark.parametrize("rows", [40, 7])
def test_groups_keep_a_threshold_honest(rows):
    # P has several slightly different copies of each row; without groups, they score each other
    base = RNG.normal(0.3, 1.0, (rows, 6))
    positives = np.repeat(base, 6, axis=0) + RNG.normal(0, 0.01, (rows * 6, 6))
    unlabeled = RNG.normal(0.0, 1.0, (300, 6))
    groups = [*np.repeat(np.arange(rows), 6), *np.arange(rows, rows + 300)]
    params = Params(n_models=30, gamma=2.0)
    plain, _ = trained(positives, unlabeled, params)
    grouped, _ = trained(positives, unlabeled, params, groups=groups)
    assert expected(grouped).n_positives <= expected(plain).n_positives
    if expected(grouped).roc_auc is not None:
        assert expected(grouped).roc_auc.value < expected(plain).roc_auc.value
