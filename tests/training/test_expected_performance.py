"""The expected performance of a model is correct, and training warns only when it should."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from resvm_cli.metrics.intervals import roc_auc_interval
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.model_files.out_of_bag_table import OutOfBag
from resvm_cli.parameters import MethodParameters
from resvm_cli.running.run import Run
from resvm_cli.training import train as training
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.expected_performance import ExpectedPerformance, _empty_rows
from resvm_cli.training.train import make_plan, train_on
from tests.conftest import write_svm

RNG = np.random.default_rng(77)


def trained(positives, unlabeled, params=None, **settings):
    features = np.concatenate([positives, unlabeled])
    known = np.arange(len(features)) < len(positives)
    run = Run()
    data = MemoryData.from_matrix(features, known, **settings)
    choice = TrainingChoice.from_params(params or MethodParameters(n_models=20))
    _, model = train_on(data, choice, run)
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
    again = [
        roc_auc_score(labels, np.concatenate([RNG.choice(known, 60), RNG.choice(unlabeled, 150)]))
        for _ in range(1000)
    ]
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
    assert 'scale="standard"' in notes
    found, notes = trained(positives, unlabeled, scale="auto")
    assert "not scaled" not in notes
    assert found.manifest["scaling"]["kind"] == "standard"


def test_auto_scaling_leaves_features_of_one_scale_alone():
    found, _ = trained(*clouds(), scale="auto")
    assert found.manifest["scaling"] is None


def test_sparse_features_are_scaled_so_that_they_stay_sparse():
    positives, unlabeled = clouds(width=30)
    keep = RNG.random((240, 30)) < 0.2
    positives, unlabeled = positives * keep[:40], unlabeled * keep[40:]
    positives[:, 0] *= 1000
    unlabeled[:, 0] *= 1000
    found, _ = trained(positives, unlabeled, scale="auto")
    assert found.manifest["scaling"]["kind"] == "maxabs"


def test_too_few_rows_leave_the_papers_threshold_and_say_so():
    found, notes = trained(*clouds(n_pos=6))
    assert expected(found).threshold.value == 0.5
    assert not expected(found).threshold.chosen
    assert "T is 0.5: only 6 rows of P" in notes


def test_near_empty_rows_that_lead_the_ranking_are_named():
    # rows of P have many small entries, rows of U many large ones, except a few nearly empty rows
    positives = RNG.random((40, 60)) * 0.3
    unlabeled = RNG.random((300, 60)) * 3.0 + 1.0
    unlabeled[:30] = 0.0
    unlabeled[:30, 0] = 0.1
    unlabeled[:30, 1] = RNG.random(30)
    _, notes = trained(positives, unlabeled)
    assert "rows of U with few features lead the ranking" in notes
    _, notes = trained(positives, unlabeled[30:])
    assert "few features" not in notes


def test_rows_with_few_features_do_not_lead_rows_with_equal_values():
    # values do not depend on the features: U starts with short rows, but none leads
    unlabeled = np.ones((300, 6))
    unlabeled[:30, 1:] = 0.0
    data = MemoryData.from_matrix(
        np.concatenate([np.ones((40, 6)), unlabeled]), np.arange(340) < 40
    )
    in_p, rows = np.arange(340) < 40, np.concatenate([np.arange(40), np.arange(300)]) + 1
    table = OutOfBag(in_p, rows, np.ones(340), np.ones(340), np.ones(340, np.int64), ~in_p & False)
    assert _empty_rows(data, table, "mean") == []
    leading = replace(table, means=np.where(in_p | (rows <= 30), 1.0, 0.0))
    (note,) = _empty_rows(data, leading, "mean")
    assert "median of the top 30: 1; of P" in str(note)


def test_a_member_that_takes_long_is_told_of_once(monkeypatch):
    clock = iter(np.arange(0.0, 100_000.0, 30.0))
    monkeypatch.setattr(training.time, "monotonic", lambda: float(next(clock)))
    plan = make_plan(
        MemoryData.from_matrix(np.concatenate(clouds()), np.arange(240) < 40),
        TrainingChoice.from_params(MethodParameters(n_models=2)),
    )
    run = Run()
    tick = training.watch_members(plan, 2, run)
    for done in (0, 0, 0, 0, 1, 1, 1, 1, 1):
        tick(done)
    assert len(run.notes) == 1
    assert "has been training for over 60 s" in str(run.notes[0])


def test_members_that_stopped_early_are_counted_in_one_line(tmp_path, resvm):
    positives, unlabeled = clouds()
    write_svm(tmp_path / "pos.svm", positives * 1e4)
    write_svm(tmp_path / "unl.svm", unlabeled * 1e4)
    ran = resvm(
        "train", "-P", tmp_path / "pos.svm", "-U", tmp_path / "unl.svm", "-t", "linear",
        "--solver", "liblinear", "-c", 1e6, "-e", 1e-9, "--n-models", 6, "-o", tmp_path / "m",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert ran.err.count("iteration limit") == 1
    assert "WARNING" not in ran.err


def test_programs_are_told_the_same(problem, resvm, tmp_path):
    files = ("-P", problem / "pos.svm", "-U", problem / "unl.svm")
    ran = resvm("train", *files, "-o", tmp_path / "m", "--json")
    told = json.loads(ran.out)
    outlook, decision = told["outlook"], told["manifest"]["decision"]
    assert outlook["rule"] == decision["rule"] == "votes"
    assert outlook["threshold"]["value"] == decision["thresholds"]["votes"]["value"]
    assert outlook["roc_auc"]["low"] < outlook["roc_auc"]["value"] < outlook["roc_auc"]["high"]
    assert (outlook["n_positives"], outlook["n_unlabeled"]) == (30, 100)


@pytest.mark.parametrize("rows", [40, 7])
def test_groups_keep_a_threshold_honest(rows):
    # P has several slightly different copies of each row; without groups, they score each other
    base = RNG.normal(0.3, 1.0, (rows, 6))
    positives = np.repeat(base, 6, axis=0) + RNG.normal(0, 0.01, (rows * 6, 6))
    unlabeled = RNG.normal(0.0, 1.0, (300, 6))
    groups = [*np.repeat(np.arange(rows), 6), *np.arange(rows, rows + 300)]
    params = MethodParameters(n_models=30, gamma=2.0)
    plain, _ = trained(positives, unlabeled, params)
    grouped, _ = trained(positives, unlabeled, params, groups=groups)
    assert expected(grouped).n_positives <= expected(plain).n_positives
    if expected(grouped).roc_auc is not None:
        assert expected(grouped).roc_auc.value < expected(plain).roc_auc.value


def test_scaling_that_auto_tried_and_left_is_not_advised_again(monkeypatch):
    positives, unlabeled = clouds()
    # the feature with the wide range is the informative one, so scaling it down does harm
    positives[:, 0] = 300.0 + RNG.normal(0, 30.0, len(positives))
    unlabeled[:, 0] = RNG.normal(0, 30.0, len(unlabeled))
    features = np.concatenate([positives, unlabeled])
    run = Run()
    data = MemoryData.from_matrix(features, np.arange(len(features)) < 40, scale="auto")
    monkeypatch.setattr(data.__class__, "scaling", None)
    train_on(data, TrainingChoice.from_params(MethodParameters(n_models=5)), run)
    assert not any("not scaled" in str(note) for note in run.notes)


def test_sets_prepared_differently_are_noticed_when_trained_on():
    positives, unlabeled = clouds()
    _, notes = trained(positives, 100 * unlabeled)
    assert "times as much in U as in P; are P and U encoded and scaled alike?" in notes


@pytest.mark.parametrize(("n_pos", "n_models", "noticed"), [(200, 5, True), (200, 50, False)])
def test_a_p_of_which_bags_hold_little_is_noticed(n_pos, n_models, noticed):
    data = MemoryData.from_matrix(RNG.normal(size=(6000, 2)), np.arange(6000) < 5000)
    params = MethodParameters(n_models=n_models, n_pos=n_pos, n_unl=10)
    run = Run()
    training.announce(make_plan(data, TrainingChoice.from_params(params)), data, run)
    found = [str(note) for note in run.notes]
    expected = "bags contain at most 200 of the 5,000 rows of P, and 82 % of P is in no bag"
    assert any(expected in note for note in found) == noticed
