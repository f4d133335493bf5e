"""The recipes in docs/cluster.md work exactly as written."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.commands.test_train import snapshot
from tests.conftest import ROOT, SAMPLE
from tests.programs import Ran, run, until

DOCUMENT = (ROOT / "docs" / "cluster.md").read_text()


def recipe(name: str) -> str:
    """Return the code block below a file name."""
    return DOCUMENT.split(f"`{name}`:\n\n```sh\n")[1].split("```")[0]


def block_with(words: str) -> str:
    return next(block for block in re.findall(r"```sh\n(.*?)```", DOCUMENT, re.S) if words in block)


class Site:
    """A folder with data and recipes, with resvm on the PATH."""

    def __init__(self, folder: Path, options: str = "") -> None:
        self.folder = folder
        for name in ("pos.svm", "unl.svm"):
            shutil.copy(SAMPLE / "digits" / name, folder)
        for name in ("train.sbatch", "merge.sbatch", "submit.sh"):
            (folder / name).write_text(recipe(name))
        tools = folder / "bin"
        tools.mkdir()
        (tools / "resvm").write_text(
            f'#!/bin/sh\ncommand=$1; shift\n[ "$command" = train ] && set -- "$@" {options}\n'
            f'exec "{sys.executable}" -m resvm_cli "$command" "$@"\n'
        )
        (tools / "resvm").chmod(0o755)
        self.path = f"{tools}:{os.environ['PATH']}"

    def sh(self, script: str, **env: str) -> Ran:
        return run(["sh", "-c", script], cwd=self.folder, env={"PATH": self.path, **env})

    def whole(self) -> dict[str, bytes]:
        ran = self.sh("resvm train -P pos.svm -U unl.svm -q -o whole")
        assert ran.code == 0, ran.err
        return snapshot(self.folder / "whole")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_an_array_played_by_a_loop_gives_the_model_of_one_run(site, tmp_path):
    for number in (2, 4, 1):
        ran = site.sh("sh train.sbatch", SLURM_ARRAY_TASK_ID=str(number))
        assert ran.code == 0, ran.err
    ran = site.sh("sh merge.sbatch")
    assert ran.code == 4
    array = re.search(r"--array=(\S+)", ran.err)
    assert array is not None
    assert array[1] == "3"
    # as sbatch --array=3 sets them
    rerun = {"MIN": "3", "MAX": "3", "COUNT": "1", "ID": "3"}
    env = {f"SLURM_ARRAY_TASK_{name}": value for name, value in rerun.items()}
    assert site.sh("sh train.sbatch", **env).code == 0
    assert site.sh("sh merge.sbatch").code == 0
    assert snapshot(tmp_path / "model") == site.whole()


@pytest.mark.parametrize(
    ("words", "variable"),
    [("#PBS", "PBS_ARRAY_INDEX"), ("#$ -t", "SGE_TASK_ID"), ("#BSUB", "LSB_JOBINDEX")],
)
def test_the_scripts_of_other_batch_systems_run(words, variable, site, tmp_path):
    (tmp_path / "task").write_text(block_with(words))
    for number in range(1, 5):
        env = {variable: str(number), "PBS_O_WORKDIR": str(tmp_path)}
        assert site.sh("sh task", **env).code == 0
    assert site.sh("sh merge.sbatch").code == 0
    assert snapshot(tmp_path / "model") == site.whole()


def test_the_recipe_without_a_batch_system_runs(site, tmp_path):
    assert site.sh(block_with("xargs")).code == 0
    assert snapshot(tmp_path / "model") == site.whole()


@pytest.mark.skipif(shutil.which("parallel") is None, reason="no GNU parallel")
def test_the_recipe_for_gnu_parallel_runs(site, tmp_path):
    ran = site.sh(block_with("parallel -j"))
    assert ran.code == 0, ran.err
    assert snapshot(tmp_path / "model") == site.whole()


def submitted(site: Site) -> str:
    """Submit the jobs as documented; return the number of the array job."""
    ran = site.sh("sh submit.sh && squeue -h -n resvm-train -o %F | head -n 1")
    assert ran.code == 0, ran.err
    return re.findall(rb"\d+", ran.out)[-1].decode()


def ended(site: Site) -> bool:
    return site.sh("squeue -h").out == b""


needs_slurm = pytest.mark.skipif(
    shutil.which("slurmctld") is None or "SLURM_CONF" not in os.environ,
    reason="no Slurm: start one and export SLURM_CONF",
)


@needs_slurm
@pytest.mark.slurm
def test_a_slurm_array_and_its_merge_give_the_model_of_one_run(tmp_path):
    site = Site(tmp_path)
    submitted(site)
    until(lambda: ended(site))
    assert snapshot(tmp_path / "model") == site.whole()


@needs_slurm
@pytest.mark.slurm
def test_a_cancelled_task_is_named_and_goes_on(tmp_path):
    site = Site(tmp_path, "--n-models 4000")
    job = submitted(site)
    until(lambda: len(list(tmp_path.glob("parts/1/members/*.json"))) > 20)
    assert site.sh(f"scancel {job}_1").code == 0
    until(lambda: ended(site))
    kept = len(list(tmp_path.glob("parts/1/members/*.json")))
    assert 20 < kept < 1000
    assert not (tmp_path / "model").exists()
    ran = site.sh("sh merge.sbatch")
    array = re.search(r"--array=(\S+)", ran.err)
    assert array is not None
    assert array[1].startswith("1")
    assert site.sh(f"sbatch --array={array[1]} train.sbatch").code == 0
    until(lambda: ended(site))
    logs = "".join(path.read_text() for path in tmp_path.glob("slurm-*_1.out"))
    assert "members are saved in" in logs
    assert f"0 to 999 of 4000, {1000 - kept} of them new" in logs
    assert site.sh("sh merge.sbatch").code == 0
    assert snapshot(tmp_path / "model") == site.whole()


@needs_slurm
@pytest.mark.slurm
def test_a_task_past_its_time_limit_is_run_again(tmp_path):
    site = Site(tmp_path)
    script = (tmp_path / "train.sbatch").read_text()
    os.rename(tmp_path / "unl.svm", tmp_path / "unl")
    os.mkfifo(tmp_path / "unl.svm")  # a file system that does not respond
    (tmp_path / "train.sbatch").write_text(script.replace("--time=60", "--time=1"))
    submitted(site)
    until(lambda: ended(site))
    logs = [path.read_text() for path in tmp_path.glob("slurm-*_?.out")]
    assert any("DUE TO TIME LIMIT" in log for log in logs)
    os.unlink(tmp_path / "unl.svm")
    os.rename(tmp_path / "unl", tmp_path / "unl.svm")
    submitted(site)
    until(lambda: ended(site))
    assert snapshot(tmp_path / "model") == site.whole()
