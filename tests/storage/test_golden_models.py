"""A stored model of today's format: it is read, and predicts what it did."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from resvm_cli.storage import model as directory

GOLDEN = Path(__file__).parents[1] / "golden"
MODEL, TABLE = GOLDEN / "format-1", GOLDEN / "format-1.csv"
LABELS = ("--id-column", "id", "--label-column", "outcome", "--positive-label", "yes")


def test_the_model_predicts_what_it_did(resvm):
    ran = resvm("predict", MODEL, TABLE, "--format", "text")
    assert ran.code == 0, ran.err
    expected = np.loadtxt(GOLDEN / "format-1.pred")
    found = np.array([line.split() for line in ran.out.decode().splitlines()], float)
    assert np.array_equal(found[:, 0], expected[:, 0])
    np.testing.assert_allclose(found[:, 1], expected[:, 1], rtol=1e-9)
    assert resvm("inspect", MODEL).code == 0
    assert json.loads((MODEL / "manifest.json").read_text())["format"] == directory.FORMAT


def test_it_has_weighted_quantiles_of_table_columns():
    stored = directory.load_model(str(MODEL))
    assert [column["name"] for column in stored.manifest["encoding"]["columns"]] == [
        "size",
        "dose",
        "color",
    ]
    assert [scaling["kind"] for scaling in stored.manifest["scalings"]] == ["quantile"]
    assert [one["parameters"]["relevance_power"] for one in stored.manifest["groups"]] == [1.0]
    assert stored.decision.threshold.chosen


def test_its_bags_are_drawn_again_for_the_same_groups_and_negatives_only(resvm):
    rank = ("rank", "--data", TABLE, *LABELS, "--model", MODEL, "-q")
    groups, negatives = ("--groups", GOLDEN / "format-1.groups"), ("-N", "label=no")
    ran = resvm(*rank, *groups, *negatives)
    assert ran.code == 0, ran.err
    assert len(ran.out.splitlines()) == 1 + 40
    for options, missing in ((groups, "--known-negatives"), (negatives, "--groups")):
        ran = resvm(*rank, *options)
        assert (ran.code, f"give the {missing} it was trained with" in ran.err) == (4, True)
