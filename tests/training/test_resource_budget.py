"""A memory limit is respected and does not change results."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest

from resvm_cli.errors import ParameterError
from resvm_cli.model.model_plan import ModelPlan
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.parameters import MethodParameters, Setting
from resvm_cli.rows import Rows
from resvm_cli.running.run import Run
from resvm_cli.training.resource_budget import (
    MARGIN,
    MemoryEstimate,
    ResourceBudget,
    bag_bytes,
    training_budget,
    training_estimate,
)
from resvm_cli.tuning.sample import TuningSample, within_memory
from resvm_cli.tuning.search import TuningSettings
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
    """Return P and U that need several times the memory of the program itself."""
    folder = tmp_path_factory.mktemp("wide")
    rng = np.random.default_rng(3)
    for name, size, centre in (("pos", 100, 0.5), ("unl", 3000, 0.0)):
        write_svm(folder / f"{name}.svm", rng.normal(centre, 1, (size, 400)).round(3))
    return folder


def rows(size, width=10, seed=0):
    return Rows.from_dense(np.random.default_rng(seed).normal(size=(size, width)), 1)


def planned(data, **given):
    settings = [Setting(MethodParameters(**given))]
    return ModelPlan.resolve(settings, data)


def peak(*arguments):
    ran = run(script_command(PEAK, *arguments))
    assert ran.code == 0, ran.err
    return float(ran.out.split()[-1])


@needs_proc
def test_a_limit_is_kept_and_changes_no_byte(wide, tmp_path):
    common = ["train", "-P", wide / "pos.svm", "-U", wide / "unl.svm", "-j", 2]
    limit = 130
    assert peak(*common, "-o", tmp_path / "free") > limit  # otherwise the limit would not be tested
    assert peak(*common, "--memory-mb", limit, "-o", tmp_path / "limited") <= limit
    assert snapshot(tmp_path / "limited") == snapshot(tmp_path / "free")
    assert not (tmp_path / "limited.part").exists()


def test_too_small_a_limit_is_refused_with_the_least_that_would_do(wide, tmp_path):
    common = ["train", "-P", wide / "pos.svm", "-U", wide / "unl.svm", "-o", tmp_path / "model"]
    ran = run_resvm(*common, "--memory-mb", 20)
    assert ran.code == 2
    least = re.search(r"--memory-mb must be at least (\d+) for this run, got 20", ran.err)
    assert least is not None
    assert run_resvm(*common, "--memory-mb", int(least[1]), "-q").code == 0


@pytest.mark.parametrize(
    ("n_rows", "bag_size", "cache_mb", "expected"),
    [
        (30, 40, 100.0, 8 * 40**2 + 8 * 30**2 + 8 * 30 * 10),
        (30, 40, 0.001, 1000 + 8 * 30**2 + 8 * 30 * 10),
        (10**9, 40, 0.001, 1000),
    ],
)
def test_a_bag_needs_its_kernel_values_its_cells_and_a_cache(n_rows, bag_size, cache_mb, expected):
    data = MemoryData(rows(20), rows(30, seed=1))
    assert bag_bytes(data, n_rows, bag_size, cache_mb) == expected


def budget(data, plan, threads, limit_mb, **more):
    return training_budget(plan, data, Run(threads, memory_mb=limit_mb), **more)[1]


def test_the_cache_of_large_bags_shrinks_before_a_limit_is_refused():
    data = MemoryData(rows(500), rows(9000, seed=1))
    plan = planned(data, n_pos=500, n_unl=6000, n_models=4)
    limit = training_estimate(plan, data, 4).least_mb - 50
    smaller, given = training_budget(plan, data, Run(1, memory_mb=limit))
    assert given == ResourceBudget(1)
    assert smaller.plans[0].cache_mb < 100
    assert smaller.with_cache(100.0).plans[0].parameters() == plan.plans[0].parameters()


def test_threads_are_given_up_first():
    data = MemoryData(rows(500), rows(5000, seed=1))
    plan = planned(data, n_pos=500, n_unl=1500)
    assert budget(data, plan, 8, None, in_rounds=True) == ResourceBudget(8)
    estimate = training_estimate(plan, data, plan.n_models)
    limit = MARGIN * (estimate.held + 3.5 * estimate.per_thread) / 1e6
    assert budget(data, plan, 8, limit, in_rounds=True) == ResourceBudget(3)


def test_members_are_trained_in_rounds_where_their_rows_do_not_fit():
    data = MemoryData(rows(50, 100), rows(5000, 100, seed=1))
    plan = planned(data, n_models=200)
    limit = training_estimate(plan, data, 200).least_mb - 10
    threads, members = budget(data, plan, 1, limit, in_rounds=True)
    assert threads == 1
    assert members is not None
    assert members < 200
    assert training_estimate(plan, data, members).least_mb <= limit
    with pytest.raises(ParameterError, match="memory_mb must be at least"):
        budget(data, plan, 1, limit)


def test_candidates_share_no_kernel_values_where_there_is_no_room_for_them():
    data = MemoryData(rows(100), rows(3000, seed=1))
    settings = TuningSettings(oob=True)
    sample = TuningSample.from_data(data, settings, Run())
    notes: list[str] = []

    def within(limit):
        return within_memory(data, sample, settings, Run(4, limit, on_notice=notes.append))

    kept, run = within(None)
    assert kept is sample
    assert run.jobs == 4
    assert notes == []
    alone, _ = within(200)
    assert not alone.kernels.shares_kernels
    assert "too small for candidates to share kernel values" in str(notes[-1])
    with pytest.raises(ParameterError, match="must be at least") as refused:
        within(70)
    assert "max_unl" in str(refused.value.hint)


def test_threads_within_a_limit():
    estimate = MemoryEstimate(10e6, 10e6)
    assert estimate.least_mb == pytest.approx(MARGIN * 20)
    assert estimate.threads_within(None, 5) == 5
    assert estimate.threads_within(MARGIN * 40.1, 5) == 3
    assert estimate.threads_within(MARGIN * 400, 5) == 5
    assert estimate.threads_within(MARGIN * 19, 5) == 0
    assert estimate.threads_within(MARGIN * 5, 5) == 0


@pytest.mark.slow
def test_a_ranking_within_a_limit_has_the_same_bytes(wide):
    common = ["rank", "-P", wide / "pos.svm", "-U", wide / "unl.svm", "--no-interval", "-q"]
    free = run_resvm(*common)
    limited = run_resvm(*common, "--memory-mb", 600, "-j", 2)
    assert (limited.code, limited.out) == (0, free.out)
    refused = run_resvm(*common, "--memory-mb", 70)
    assert (refused.code, refused.out) == (2, b"")
    assert "--memory-mb must be at least" in refused.err
