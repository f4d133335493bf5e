"""resvm inspect, as a user runs it."""

from __future__ import annotations

import json
import os
import shutil


def test_it_tells_what_a_model_holds(model, resvm):
    ran = resvm("inspect", model)
    assert ran.code == 0
    assert ran.err == ""
    told = ran.out.decode()
    for expected in (
        "intact: every digest verified",
        "resvm",
        "rbf, gamma 0.",
        "n_models 9, n_pos 30, n_unl 50",
        "30 rows",
        "100 rows",
    ):
        assert expected in told
    assert "\x1b" not in told


def test_json_is_for_programs(model, resvm):
    told = json.loads(resvm("inspect", model, "--json").out)
    manifest = json.loads((model / "manifest.json").read_text())
    assert told["schema"] == 1
    assert told["intact"] is True
    assert told["n_members"] == 9
    assert told["manifest"] == manifest
    assert told["n_support_vectors"] == sum(one["support_vectors"] for one in manifest["members"])
    assert told["n_distinct_support_vectors"] <= 130
    assert told["member_bytes"] == sum(
        os.path.getsize(model / one["file"]) for one in manifest["members"]
    )


def test_names_are_shown_as_they_are(model, resvm, tmp_path):
    for name in ("m[v2]", "m:smile:", "x[/b]"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copytree(model, tmp_path / name)
        ran = resvm("inspect", name, cwd=tmp_path)
        assert ran.code == 0, ran.err
        assert ran.out.decode().split()[1] == name


def test_no_model_is_exit_4(resvm, tmp_path):
    ran = resvm("inspect", tmp_path)
    assert ran.code == 4
    assert "not a resvm model" in ran.err
    assert ran.out == b""
