"""resvm rank --why, as a user asks for it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from resvm_cli.ranking import reasons
from tests.conftest import data_arguments, few_members
from tests.tuning.test_choice import MIXED, described

PARTS = ("of_positives", "of_unlabeled", "of_features", "constant")


def quick(problem, *more):
    return ["rank", *data_arguments(problem), "--params", few_members(9), *more]


def told(ran):
    assert ran.code == 0, ran.err
    return json.loads(ran.out)["why"]


def test_the_ranking_on_stdout_stays_as_it_is_and_reasons_add_up(problem, resvm, tmp_path):
    plain = resvm(*quick(problem))
    ran = resvm(*[word for word in quick(problem, "--why", 3) if word != "-q"])
    assert ran.code == 0, ran.err
    assert ran.out == plain.out
    lines = ran.out.decode().splitlines()[1:]
    reasons = told(resvm(*quick(problem, "--why", 3, "--json")))
    assert [one["rank"] for one in reasons] == [1, 2, 3]
    for one, line in zip(reasons, lines, strict=False):
        fields = line.split("\t")
        assert one["id"] == fields[1]
        assert one["mean_value"] == pytest.approx(float(fields[3]), abs=1e-9)
        assert sum(one[part] or 0.0 for part in PARTS) == pytest.approx(one["mean_value"])
        assert len(one["positives"]) == 5
        assert all(part["amount"] > 0 for part in one["positives"])
        assert all(part["amount"] < 0 for part in one["unlabeled"])
        assert one["features"] == []
        assert one["of_features"] is None
    assert f"rank 1, {reasons[0]['id']}: " in ran.err
    assert f"that support it: {reasons[0]['positives'][0]['name']} (" in ran.err
    assert "why" not in plain.err


def test_json_holds_the_same_and_jobs_and_stored_models_do_not_change_it(problem, resvm, tmp_path):
    asked = ("--why", 70, "--json", "-q")
    ran = resvm(*quick(problem, *asked, "-j", 1, "--save-model", tmp_path / "m"))
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)["why"]
    assert len(found) == 70
    again = json.loads(resvm(*quick(problem, *asked, "-j", 2)).out)["why"]
    assert again == found
    stored = ["rank", *data_arguments(problem), "--model", tmp_path / "m", *asked]
    assert json.loads(resvm(*stored).out)["why"] == found
    assert json.loads(resvm(*quick(problem, "--json")).out)["why"] is None


@pytest.mark.parametrize(
    ("more", "params"),
    [(["--audit"], {}), ([], {"decision": "votes"}), ([], {"method": "bagging"})],
)
def test_every_list_has_reasons(more, params, problem, resvm, tmp_path):
    data = ["rank", *data_arguments(problem), "--params", few_members(9, **params)]
    ran = resvm(*data, *more, "--why", 4, "--json", "-q")
    reasons, rows = told(ran), json.loads(ran.out)["rows"][:4]
    assert [one["id"] for one in reasons] == [row["id"] for row in rows]
    if "decision" not in params:
        values = [row["decision_value"] for row in rows]
        assert [one["mean_value"] for one in reasons] == pytest.approx(values, abs=1e-9)


def test_linear_members_tell_features_by_name(problem, resvm, tmp_path):
    table = tmp_path / "table.csv"
    rng = np.random.default_rng(0)
    rows = [f"r{i},{int(i < 20)},{','.join(f'{x:.3f}' for x in rng.random(3))}" for i in range(80)]
    table.write_text("id,hit,mass,charge,size\n" + "\n".join(rows) + "\n")
    converted = ["convert", table, "--id-column", "id", "--label-column", "hit"]
    ran = resvm(*converted, "--map", tmp_path / "map.json", "-o", tmp_path / "rows.svm")
    assert ran.code == 0, ran.err
    data = [
        "rank",
        "--data",
        tmp_path / "rows.svm",
        "--positive-label",
        1,
        "--params",
        few_members(9),
    ]
    asked = ("--why", 2, "--json")
    for one in told(resvm(*data, "-t", "linear", *asked, "--map", tmp_path / "map.json")):
        assert {part["name"] for part in one["features"]} == {"mass", "charge", "size"}
        assert one["of_positives"] is None
        total = sum(part["amount"] for part in one["features"]) + one["constant"]
        assert total == pytest.approx(one["mean_value"])
    short = json.loads((tmp_path / "map.json").read_text())
    short["features"] = short["features"][:1]
    short["columns"] = short["columns"][:1]
    (tmp_path / "short.json").write_text(json.dumps(short))
    ran = resvm(*data, "-t", "linear", *asked, "--map", tmp_path / "short.json")
    assert ran.code == 3, ran.err


def test_a_precomputed_kernel_has_no_features_to_name():
    with pytest.raises(ValueError, match="a precomputed kernel has none"):
        reasons.feature_names("missing", ["precomputed"])


def test_reasons_of_a_mixed_model_are_rows_and_features(problem, resvm, tmp_path):
    (tmp_path / "best.json").write_text(json.dumps(described(MIXED, "standard")))
    common = ["rank", *data_arguments(problem), "--params", tmp_path / "best.json"]
    asked = ("--why", 8, "--json")
    ran = resvm(*common, *asked, "--save-model", tmp_path / "m")
    reasons = told(ran)
    values = [row["decision_value"] for row in json.loads(ran.out)["rows"][:8]]
    for one, value in zip(reasons, values, strict=True):
        assert one["mean_value"] == pytest.approx(value, abs=1e-9)
        assert sum(one[part] for part in PARTS) == pytest.approx(value, abs=1e-9)
        assert one["positives"]
        assert {part["name"] for part in one["features"]} <= set("12345")
    stored = ["rank", *data_arguments(problem), "--model", tmp_path / "m", *asked]
    assert told(resvm(*stored)) == reasons
    (tmp_path / "table.csv").write_text("f1,f2,f3,f4,f5\n1,2,3,4,5\n")
    converted = ["convert", tmp_path / "table.csv", "-o", tmp_path / "rows.svm"]
    assert resvm(*converted, "--map", tmp_path / "map.json").code == 0
    named = told(resvm(*stored, "--map", tmp_path / "map.json"))
    assert {part["name"][0] for one in named for part in one["features"]} == {"f"}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--why", "0"], "--why must be at least 1, got 0"),
        (["--why", "10001"], "--why must be at most 10,000, got 10001"),
        (["--why", "some"], "--why"),
        (["--map", "file"], "--map requires --why"),
    ],
)
def test_what_makes_no_sense_is_exit_2(more, message, resvm):
    ran = resvm("rank", "-P", "missing", "-U", "missing-too", *more)
    assert (ran.code, message in ran.err) == (2, True), ran.err


def test_a_map_that_is_none_is_exit_3_before_training(problem, resvm, tmp_path):
    (tmp_path / "map").write_text("{}")
    ran = resvm(*quick(problem, "-t", "linear", "--why", 1, "--map", tmp_path / "map"))
    assert ran.code == 3
    assert str(tmp_path / "map") in ran.err


def test_a_page_has_the_reasons_to_click(problem, resvm, tmp_path):
    page = tmp_path / "page.html"
    assert resvm(*quick(problem, "--why", 2, "--html", page)).code == 0
    text = page.read_text()
    assert '"known positives that support it"' in text
    assert "reasonsOf" in text
    assert resvm(*quick(problem, "--html", page)).code == 0
    assert '"known positives that support it"' not in page.read_text()
