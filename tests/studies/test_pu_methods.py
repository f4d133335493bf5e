"""Tests of the study that compares resvm with other methods."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from studies import pu_methods, pu_tables
from studies.pu_methods import audit_precision, quality
from studies.pu_peers import Answer, Matrices, forest, logistic, svc
from studies.pu_tasks import TASKS, draw
from studies.pu_warnings import WARNINGS, warnings_table

NOWHERE = Path("no-such-folder")  # the synthetic task needs no file


def test_a_draw_has_the_requested_fraction_of_wrong_labels():
    drawn = draw("synthetic", 0.3, 0, NOWHERE)
    task = TASKS["synthetic"]
    assert (len(drawn.positives), len(drawn.unlabeled)) == (task.n_pos, task.n_unl)
    assert len(drawn.test) == task.n_test
    assert (~drawn.truth_pos).mean() == pytest.approx(0.3)
    assert drawn.prior == drawn.truth_test.mean() == pytest.approx(task.hidden)


def test_a_draw_depends_on_its_number_and_contamination_alone():
    def first_row(contamination: float, number: int) -> list[float]:
        return list(draw("synthetic", contamination, number, NOWHERE).positives.values[:2])

    assert first_row(0.1, 1) == first_row(0.1, 1)
    assert first_row(0.1, 1) != first_row(0.1, 2)
    assert first_row(0.1, 1) != first_row(0.3, 1)


def test_dense_rows_hold_the_entries_of_the_sparse_ones():
    drawn = draw("synthetic", 0.0, 0, NOWHERE)
    dense = drawn.dense(drawn.unlabeled)
    assert dense.shape == (len(drawn.unlabeled), 2)
    assert list(dense[5]) == list(drawn.unlabeled.take(np.array([5])).values)


@pytest.mark.parametrize("peer", [svc, logistic, forest])
def test_peers_score_every_test_row(peer):
    rows = Matrices(draw("synthetic", 0.0, 0, NOWHERE), seed=0)
    rows.train, rows.labels = rows.train[::5], rows.labels[::5]
    answer = peer(rows)
    assert len(answer.values) == len(answer.positive) == len(rows.test)
    assert np.isfinite(answer.values).all()


def test_quality_is_perfect_for_values_in_order_and_f1_is_of_the_labels():
    truth = np.array([True, True, False, False])
    figures = quality(truth, Answer(np.array([4.0, 3.0, 2.0, 1.0]), np.array([1, 0, 0, 0]) == 1))
    assert figures["ap"] == figures["roc"] == figures["best_f1"] == 1.0
    assert figures["f1"] == pytest.approx(2 / 3)


def test_an_audit_puts_rows_without_values_last():
    false = np.array([True, False, True])
    assert audit_precision(false, np.array([-1.0, 2.0, np.nan])) == pytest.approx((1 + 2 / 3) / 2)


def test_a_run_continues_where_its_log_ends(tmp_path, monkeypatch, capsys):
    log, page = tmp_path / "log.jsonl", tmp_path / "page.md"
    arguments = ["pu_methods", "--log", str(log), "--draws", "1", "--tasks", "synthetic"]
    arguments += ["--methods", "train", "--markdown", str(page)]
    monkeypatch.setattr(sys, "argv", arguments)
    pu_methods.main()
    lines = log.read_text().splitlines()
    assert [json.loads(line)["contamination"] for line in lines] == [0.0, 0.1, 0.3]
    log.write_text("\n".join(lines[:2]) + "\n")
    capsys.readouterr()
    pu_methods.main()
    assert len(capsys.readouterr().err.splitlines()) == 1
    again = log.read_text().splitlines()
    assert again[:2] == lines[:2]
    assert json.loads(again[2])["ap"] == json.loads(lines[2])["ap"]
    assert "3 runs of each method" in page.read_text()


def record(method: str, task: str, draw: int, ap: float, **others: float) -> dict:
    figures = {"ap": ap, "roc": ap, "f1": ap, "best_f1": ap, "paper_f1": ap, "mean_ap": ap}
    key = {"method": method, "task": task, "contamination": 0.1, "draw": draw, "seconds": 1.0}
    return key | figures | others


@pytest.fixture
def records() -> list[dict]:
    by_method = {
        "train": (0.5, 0.6, 0.7, 0.8),
        "train --auto": (0.6, 0.65, 0.75, 0.5),
        "peer": (0.4, 0.5, 0.8, 0.4),
    }
    cells = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    return [
        record(method, *cell, ap)
        for method, values in by_method.items()
        for cell, ap in zip(cells, values, strict=True)
    ]


def test_ranks_are_means_over_the_draws(records):
    assert pu_tables.Log(records).ranks() == {"train": 2.0, "train --auto": 1.5, "peer": 2.5}


def test_only_draws_with_results_of_every_method_count(records):
    log = pu_tables.Log(records[:-1])
    assert len(log.cells) == 3
    assert log.mean("train", "ap") == pytest.approx(60.0)


def test_the_worst_draw_from_plain_to_auto_is_shown(records):
    lines = pu_tables.tables(records).splitlines()
    (shown,) = [line for line in lines if line.startswith("| b | 75.0")]
    assert shown == "| b | 75.0 | 75.0 | 62.5 | -12.5 | -30.0 | -30.0 |"


def test_every_warning_is_given_for_data_that_deserve_it():
    given = {warned.words: warned.is_given() for warned in WARNINGS}
    assert all(given.values()), given


def test_the_table_of_warnings_names_the_tasks_that_had_them():
    told = {"task": "svmguide1", "notices": ["the features are not scaled: values reach 500"]}
    text = warnings_table([told, {"task": "german", "notices": []}])
    assert "| 1 of 2 | svmguide1 |" in text
    assert "| 0 of 2 | none |" in text
