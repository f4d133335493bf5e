"""Models as earlier versions wrote them, kept for ever: they still read, and say the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from resvm_cli.errors import ModelError
from resvm_cli.model.ensemble import Predictor
from resvm_cli.model_files import directory
from resvm_cli.rows import Rows
from resvm_cli.tables.inputs import read_file
from tests.model_files.test_directory import rewrite

GOLDEN = Path(__file__).parents[1] / "golden"
TABLE = GOLDEN / "format-3.csv"
LABELS = ("--id-column", "id", "--label-column", "outcome", "--positive-label", "yes")
HALVED = {"features": [1, 2, 3, 4], "shift": [0.0] * 4, "factor": [2.0] * 4}


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_model_of_every_format_predicts_what_it_did(number, resvm):
    model = GOLDEN / f"format-{number}"
    ran = resvm("predict", model, TABLE if number == 3 else GOLDEN / "rows.svm")
    assert ran.code == 0, ran.err
    expected = np.loadtxt(GOLDEN / f"format-{number}.pred")
    found = np.array([line.split() for line in ran.out.decode().splitlines()], float)
    assert np.array_equal(found[:, 0], expected[:, 0])
    np.testing.assert_allclose(found[:, 1], expected[:, 1], rtol=1e-9)
    assert resvm("inspect", model).code == 0
    assert json.loads((model / "manifest.json").read_text())["format"] == number


def test_format_1_is_votes_with_the_papers_threshold():
    stored = directory.load_model(str(GOLDEN / "format-1"))
    assert (stored.decision.rule, stored.decision.threshold.value) == ("votes", 0.5)
    table = directory.load_out_of_bag(str(GOLDEN / "format-1"), stored.manifest)
    assert table.by("mean") is None
    assert len(table.by("votes")[0])


def test_format_2_has_groups_and_thresholds_of_their_own():
    stored = directory.load_model(str(GOLDEN / "format-2"))
    assert [group.weight for group in stored.ensemble.groups] == [0.6, 0.4]
    assert stored.decision.rule == "mean"
    assert stored.decision.threshold.chosen


@pytest.mark.parametrize(
    "changes",
    [{"groups": {}}, {"decision": []}, {"decision": {"rule": 1, "thresholds": {}}}],
)
def test_a_format_2_manifest_of_another_shape_is_refused(changes, tmp_path):
    shutil.copytree(GOLDEN / "format-2", tmp_path / "m")
    rewrite(tmp_path / "m", **changes)
    with pytest.raises(ModelError, match=r"manifest\.json"):
        directory.read_manifest(str(tmp_path / "m"))


@pytest.mark.parametrize("number", [1, 2])
def test_its_bags_are_still_drawn_again(number, resvm, tmp_path):
    data = Path(__file__).parents[2] / "sample_data" / "synthetic"
    model = GOLDEN / f"format-{number}"
    ran = resvm("rank", "-P", data / "pos.svm", "-U", data / "unl.svm", "--model", model, "-q")
    assert ran.code == 0, ran.err
    assert len(ran.out.splitlines()) == 1 + len((data / "unl.svm").read_text().splitlines())


def test_format_3_has_weighted_quantiles_of_table_columns():
    stored = directory.load_model(str(GOLDEN / "format-3"))
    assert [column["name"] for column in stored.manifest["encoding"]["columns"]] == [
        "size",
        "dose",
        "color",
    ]
    assert [scaling["kind"] for scaling in stored.manifest["scalings"]] == ["quantile"]
    assert [one["parameters"]["relevance_power"] for one in stored.manifest["groups"]] == [1.0]
    assert stored.decision.threshold.chosen


def test_bags_of_format_3_are_drawn_again_for_the_same_groups_and_negatives_only(resvm):
    rank = ("rank", "--data", TABLE, *LABELS, "--model", GOLDEN / "format-3", "-q")
    groups, negatives = ("--groups", GOLDEN / "format-3.groups"), ("--negative-label", "no")
    ran = resvm(*rank, *groups, *negatives)
    assert ran.code == 0, ran.err
    assert len(ran.out.splitlines()) == 1 + 40
    for options, missing in ((groups, "--known-negatives"), (negatives, "--groups")):
        ran = resvm(*rank, *options)
        assert (ran.code, f"give the {missing} it was trained with" in ran.err) == (4, True)


@pytest.mark.parametrize("number", [1, 2])
def test_the_scaling_of_an_earlier_format_is_applied(number, tmp_path):
    rows = read_file(str(GOLDEN / "rows.svm")).rows
    values = []
    for name, scaling in (("plain", None), ("scaled", {"kind": "maxabs", **HALVED})):
        shutil.copytree(GOLDEN / f"format-{number}", tmp_path / name)
        rewrite(tmp_path / name, scaling=scaling)
        values.append(Predictor(directory.load_model(str(tmp_path / name)).ensemble))
    doubled = Rows(rows.indptr, rows.indices, 2.0 * rows.values)
    plain, scaled = values
    assert scaled.member_values(doubled).tobytes() == plain.member_values(rows).tobytes()
    assert scaled.member_values(rows).tobytes() != plain.member_values(rows).tobytes()
