"""If Snakemake is installed, the Snakemake workflow gives the same files as the commands."""

from __future__ import annotations

import json
import re
import shutil

import pytest
import yaml

from resvm_cli import __version__
from tests.conftest import ROOT
from tests.programs import SCRIPT_PATH, run

FOLDER = ROOT / "packaging" / "snakemake"


@pytest.mark.skipif(shutil.which("snakemake") is None, reason="snakemake is not on the PATH")
def test_the_workflow_writes_what_the_commands_write(problem, resvm, tmp_path):
    data = tmp_path / "the data"  # names with spaces must be quoted
    data.mkdir()
    for name in ("pos.svm", "unl.svm", "test.svm"):
        shutil.copy(problem / name, data)
    command = ["snakemake", "--snakefile", FOLDER / "Snakefile", "--cores", "1", "--config"]
    where = {"PATH": SCRIPT_PATH, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    ran = run([*command, "data=the data"], cwd=tmp_path, env=where)
    assert ran.code == 0, ran.err
    rows = ("-P", data / "pos.svm", "-U", data / "unl.svm", "-q")
    ranked = resvm("rank", *rows)
    assert (tmp_path / "ranking.tsv").read_bytes() == ranked.out
    assert "</script>" in (tmp_path / "ranking.html").read_text()
    assert resvm("train", "--no-auto", *rows, "-o", tmp_path / "own").code == 0
    for file in ("manifest.json", "members/00000.model", "out_of_bag.tsv"):
        assert (tmp_path / "model" / file).read_bytes() == (tmp_path / "own" / file).read_bytes()
    predicted = resvm("predict", tmp_path / "own", data / "test.svm")
    assert (tmp_path / "test.pred").read_bytes() == predicted.out
    assert json.loads((tmp_path / "scores.json").read_text())["files"][0]["roc_auc"] > 0.8
    assert "members" in (tmp_path / "logs" / "train.log").read_text()


def test_the_environment_has_the_version_of_the_package():
    environment = yaml.safe_load((FOLDER / "environment.yaml").read_text())
    assert environment["dependencies"] == [f"resvm-cli ={__version__}"]


def test_the_wrapper_is_described():
    described = yaml.safe_load((FOLDER / "meta.yaml").read_text())
    assert {"name", "description", "authors", "input", "output", "params"} <= set(described)
    used = set(re.findall(r'command="(\w+)"', (FOLDER / "Snakefile").read_text()))
    assert used == {"rank", "train", "predict", "score"}
