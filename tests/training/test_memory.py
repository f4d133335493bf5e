"""Memory and cores: told before a run starts, and kept within a limit without changing a result."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import numpy as np
import pytest

from resvm_cli.errors import CommandLineError
from resvm_cli.model.plan import ModelPlan
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.parameters import MethodParameters, Setting
from resvm_cli.rows import Rows
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.training import memory
from resvm_cli.training.memory import Need, allot_training, tuning_within
from resvm_cli.tuning.sample import TuningSample
from resvm_cli.tuning.settings import TuningSettings
from tests.commands.train.test_command import snapshot
from tests.conftest import write_svm
from tests.programs import run, run_resvm, script_command

PEAK = """
import atexit
def tell():
    lines = open("/proc/self/status").read().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    print(peak / 1000, flush=True)
atexit.register(tell)
from resvm_cli.__main__ import program
program()
"""

needs_proc = pytest.mark.skipif(
    not os.path.exists("/proc/self/status"), reason="its memory is not told here"
)


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """P and U that take a few times the memory of the program itself to train on."""
    folder = tmp_path_factory.mktemp("wide")
    rng = np.random.default_rng(3)
    for name, size, centre in (("pos", 100, 0.5), ("unl", 3000, 0.0)):
        write_svm(folder / f"{name}.svm", rng.normal(centre, 1, (size, 400)).round(3))
    return folder


def rows(size, width=10, seed=0):
    return Rows.from_dense(np.random.default_rng(seed).normal(size=(size, width)), 1)


def planned(data, **given):
    settings = [Setting(MethodParameters(**given))]
    return ModelPlan.settled(
        settings, len(data.positives), data.n_unlabeled, data.n_features, data.variance
    )


def peak_and_forecast(*arguments):
    ran = run(script_command(PEAK, *arguments))
    assert ran.code == 0, ran.err
    told = re.search(r"about ([\d,]+) MB of memory", ran.err)
    assert told is not None, ran.err
    return float(ran.out.split()[-1]), float(told[1].replace(",", ""))


@needs_proc
@pytest.mark.parametrize("more", [["train"], ["train", "--auto"], ["rank", "--no-interval"]])
def test_a_forecast_is_what_a_run_takes_or_up_to_twice_as_much(more, wide, tmp_path):
    target = ["-o", tmp_path / "model"]
    data = ["-P", wide / "pos.svm", "-U", wide / "unl.svm"]
    peak, forecast = peak_and_forecast(*more, *data, "-j", 2, *target)
    assert peak <= forecast <= 2 * peak


@needs_proc
def test_a_limit_is_kept_and_changes_no_byte(wide, tmp_path):
    common = ["train", "-P", wide / "pos.svm", "-U", wide / "unl.svm", "-j", 2]
    free, _ = peak_and_forecast(*common, "-o", tmp_path / "free")
    limit = 130
    assert free > limit  # or the limit would be none
    peak, forecast = peak_and_forecast(*common, "--memory-mb", limit, "-o", tmp_path / "limited")
    assert peak <= limit
    assert forecast <= limit
    assert snapshot(tmp_path / "limited") == snapshot(tmp_path / "free")
    assert not (tmp_path / "limited.part").exists()


def test_too_small_a_limit_is_refused_with_the_least_that_would_do(wide, tmp_path):
    common = ["train", "-P", wide / "pos.svm", "-U", wide / "unl.svm", "-o", tmp_path / "model"]
    ran = run_resvm(*common, "--memory-mb", 20)
    assert ran.code == 2
    least = re.search(r"--memory-mb 20 is too little: about (\d+) MB are needed", ran.err)
    assert least is not None
    assert run_resvm(*common, "--memory-mb", int(least[1]) + 1, "-q").code == 0


def test_threads_are_given_up_first():
    data = MemoryData(rows(500), rows(5000, seed=1))
    plan = planned(data, n_pos=500, n_unl=1500)
    free, need = allot_training(plan, data, 8, None, in_rounds=True)
    assert (free.threads, free.members_at_once) == (8, None)
    fewer, _ = allot_training(plan, data, 8, need.megabytes(3), in_rounds=True)
    assert fewer.members_at_once is None
    assert 3 <= fewer.threads < 8


def test_members_are_trained_some_at_a_time_where_their_rows_have_no_room():
    data = MemoryData(rows(50, 100), rows(5000, 100, seed=1))
    plan = planned(data, n_models=200)
    _, need = allot_training(plan, data, 1, None, in_rounds=True)
    limit = need.megabytes(1) - 10
    rounds, within = allot_training(plan, data, 1, limit, in_rounds=True)
    assert rounds.members_at_once is not None
    assert rounds.members_at_once < 200
    assert within.megabytes(1) <= limit
    with pytest.raises(CommandLineError, match="too little"):
        allot_training(plan, data, 1, limit, in_rounds=False)


def test_the_cache_of_large_bags_shrinks_before_threads_do():
    data = MemoryData(rows(500), rows(9000, seed=1))
    plan = planned(data, n_pos=500, n_unl=6000, n_models=4)
    _, need = allot_training(plan, data, 4, None, in_rounds=False)
    given, _ = allot_training(plan, data, 4, need.megabytes(4) - 100, in_rounds=False)
    assert given.threads == 4
    assert given.plan.plans[0].cache_mb < 100
    assert replace(given.plan.plans[0], cache_mb=100.0) == plan.plans[0]


def test_candidates_share_no_kernel_values_where_there_is_no_room_for_them():
    data = MemoryData(rows(100), rows(3000, seed=1))
    settings = TuningSettings(oob=True)
    sample = TuningSample.from_data(data, settings, Run())
    notes: list[str] = []

    def within(limit):
        run = Run(4, limit, on_notice=notes.append, on_announce=notes.append)
        return tuning_within(data, sample, settings, run)

    kept, same, run = within(None)
    assert kept is sample
    assert same is settings
    assert run.jobs == 4
    assert "4 threads" in notes[-1]
    alone, changed, _ = within(200)
    assert not alone.kernels.shares_kernels
    assert changed.gram_mb == 0
    assert "no room for kernel values" in notes[-1]
    with pytest.raises(CommandLineError, match="too little") as refused:
        within(70)
    assert "--max-unl" in str(refused.value.hint)


def test_threads_within_a_limit():
    need = Need(10e6, ((0.0, 10e6), (25e6, 0.0)))
    both = [need.megabytes(count) for count in (1, 2, 3)]
    assert both == pytest.approx([memory.MARGIN * 35, memory.MARGIN * 35, memory.MARGIN * 40])
    assert need.threads_within(None, 5) == 5
    assert need.threads_within(memory.MARGIN * 40, 5) == 3
    assert need.threads_within(memory.MARGIN * 34, 5) == 0


def test_the_header_says_cores_and_why(monkeypatch):
    notes: list[str] = []
    monkeypatch.setattr(parallel, "core_limit", lambda: (2, "SLURM_CPUS_PER_TASK says so"))
    run = Run(on_announce=notes.append)
    memory.announce([Need(1e9, ((0.0, 0.0),))], 2, run)
    assert notes == ["2 threads; 2 cores, SLURM_CPUS_PER_TASK says so; about 1,150 MB of memory"]
    memory.announce([Need(1e6, ((0.0, 0.0),))], 1, run)
    assert len(notes) == 1  # a moment's work is done without a word
