"""The studies of quality, on draws of a synthetic task that needs no file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.quality import candidates, compare, estimates, methods
from experiments.quality.peers import Matrices, forest, logistic, svc
from experiments.quality.tasks import TASKS, draw

NOWHERE = Path("no-such-folder")


def test_a_draw_has_the_requested_fraction_of_wrong_labels_and_depends_on_its_number():
    drawn, again, other = (draw("synthetic", 0.3, number, NOWHERE) for number in (0, 0, 1))
    task = TASKS["synthetic"]
    assert (len(drawn.positives), len(drawn.unlabeled)) == (task.n_pos, task.n_unl)
    assert (~drawn.truth_pos).mean() == pytest.approx(0.3)
    assert drawn.prior == drawn.truth_test.mean() == pytest.approx(task.hidden)
    assert (drawn.X != again.X).nnz == 0 < (drawn.X != other.X).nnz


@pytest.mark.parametrize("peer", [svc, logistic, forest])
def test_peers_score_every_test_row(peer):
    rows = Matrices(draw("synthetic", 0.0, 0, NOWHERE), seed=0)
    rows.train, rows.labels = rows.train[::5], rows.labels[::5]
    answer = peer(rows)
    assert len(answer.values) == len(answer.positive) == len(rows.test)


def test_a_run_continues_where_its_log_ends(tmp_path, capsys):
    log, page = tmp_path / "log.jsonl", tmp_path / "page.md"
    words = f"--log {log} --draws 1 --tasks synthetic --methods train --markdown {page}"
    methods.main(words.split())
    lines = log.read_text().splitlines()
    assert [json.loads(line)["contamination"] for line in lines] == [0.0, 0.1, 0.3]
    log.write_text("\n".join(lines[:2]) + "\n")
    capsys.readouterr()
    methods.main(words.split())
    assert len(capsys.readouterr().err.splitlines()) == 1
    again = log.read_text().splitlines()
    assert again[:2] == lines[:2]
    assert json.loads(again[2])["ap"] == json.loads(lines[2])["ap"]
    assert "3 runs of each method" in page.read_text()


def test_lists_of_settings_are_compared_on_tables(tmp_path, capsys):
    (tmp_path / "tables").mkdir()
    rng = np.random.default_rng(0)
    for name, shift in (("one", 1.0), ("two", 2.0)):
        positive = np.arange(160) % 4 == 0
        values = rng.standard_normal((160, 3)) + shift * positive[:, None]
        rows = np.column_stack([positive, values])
        head = "positive,a,b,c"
        np.savetxt(
            tmp_path / "tables" / f"{name}.csv", rows, delimiter=",", header=head, comments=""
        )
    log = tmp_path / "log.jsonl"
    candidates.main(["--data-dir", str(tmp_path), "--log", str(log)])
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(records) == 8
    assert all(0 < value <= 100 for one in records for value in one["ap"].values())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == list(candidates.LISTS)[1:]


def test_only_draws_with_results_of_every_method_count():
    values = {
        "train --no-auto": (0.5, 0.6, 0.7),
        "train": (0.6, 0.65, 0.75),
        "peer": (0.4, 0.5, 0.8),
    }
    records = [
        {"method": method, "task": task, "contamination": 0.1, "draw": 0, "ap": ap, "seconds": 1.0}
        for method, aps in values.items()
        for task, ap in zip("abc", aps, strict=True)
    ]
    log = compare.Log(records)
    assert log.ranks() == pytest.approx({"train --no-auto": 7 / 3, "train": 4 / 3, "peer": 7 / 3})
    log = compare.Log(records[:-1])
    assert len(log.cells) == 2
    assert log.mean("train --no-auto", "ap") == pytest.approx(55.0)


def test_stated_precision_is_compared_with_the_truth():
    records = []
    for number, name in enumerate(("synthetic", "other", "third", "last")):
        key = {"set": name, "kind": "random", "draw": number}
        records.append(key | estimates.order({**key, "set": "synthetic"}, NOWHERE))
    letters = records[0]["order"]
    assert [letters.count(each) for each in "Pp"] == [200, 0]
    assert letters.index("P") < letters.index("u")
    found = estimates.judge(records[0], "b given")
    assert not found["below"].any()
    assert np.abs(found["error"]).max() < 0.3
    assert "| b given, P at random | 4 of 4 |" in estimates.tables(records)
