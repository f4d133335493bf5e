"""The memory at hand is respected and does not change results."""

from __future__ import annotations

import os
from math import inf

import numpy as np
import pytest

from resvm_cli.data.pudata import MemoryData
from resvm_cli.ensemble import train
from resvm_cli.ensemble.plan import Plan
from resvm_cli.ensemble.train import (
    MARGIN,
    ResourceBudget,
    bag_bytes,
    threads_within,
    training_budget,
    training_bytes,
)
from resvm_cli.parameters import Params
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from resvm_cli.tuning.candidates import SearchOptions
from resvm_cli.tuning.sample import TuningSample, within_memory
from tests.commands.test_train import snapshot
from tests.conftest import write_svm
from tests.programs import run, script_command

PEAK = """
import atexit
def tell():
    lines = open("/proc/self/status").read().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    print(peak / 1000, flush=True)
atexit.register(tell)
from resvm_cli import threads as parallel
parallel.available_memory = lambda: {megabytes} * 1e6
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
    return Plan.resolve(Params(**given), data)


def peak(megabytes, *arguments):
    """Return the peak memory of a command on a machine with this much left."""
    text = PEAK.replace("{megabytes}", f"float('{megabytes}')")
    ran = run(script_command(text, *arguments))
    assert ran.code == 0, ran.err
    return float(ran.out.split()[-1])


@needs_proc
def test_little_memory_is_enough_and_changes_no_byte(wide, tmp_path):
    common = ["train", "--no-auto", "-P", wide / "pos.svm", "-U", wide / "unl.svm", "-j", 2]
    limit = 130
    assert peak(inf, *common, "-o", tmp_path / "free") > limit  # or the limit would not be tested
    assert peak(limit, *common, "-o", tmp_path / "limited") <= limit
    assert snapshot(tmp_path / "limited") == snapshot(tmp_path / "free")
    assert not (tmp_path / "limited.part").exists()
    peak(1, *common, "-o", tmp_path / "tiny")  # goes on with one member at a time
    assert snapshot(tmp_path / "tiny") == snapshot(tmp_path / "free")


@pytest.mark.parametrize(
    ("bag_size", "by_libsvm", "expected"),
    [
        (40, False, 16 * 40**2 + 8 * 40 * 10),
        (40, True, 32 * 40**2 + 8 * 40 * 10),
        (10_000, True, 1e8 + 24 * 50**2 + 8 * 50 * 10),  # only 50 distinct rows
    ],
)
def test_a_bag_needs_its_kernel_values_its_cells_and_a_cache(bag_size, by_libsvm, expected):
    assert bag_bytes(MemoryData(rows(20), rows(30, seed=1)), bag_size, by_libsvm) == expected


@pytest.fixture
def budget(monkeypatch):
    def found(data, plan, threads, memory, **more):
        monkeypatch.setattr(train, "available_memory", lambda: memory)
        return training_budget(plan, data, Run(threads), **more)

    return found


def least(held, per_thread, threads=1):
    """Return the memory that is needed with this many threads."""
    return MARGIN * (held + threads * per_thread)


def test_threads_are_given_up_first(budget):
    data = MemoryData(rows(500), rows(5000, seed=1))
    plan = planned(data, n_pos=500, n_unl=1500)
    assert budget(data, plan, 8, inf, in_rounds=True) == ResourceBudget(8)
    memory = least(*training_bytes(plan, data, plan.n_models), 3.5)
    assert budget(data, plan, 8, memory, in_rounds=True) == ResourceBudget(3)


def test_members_are_trained_in_rounds_where_their_rows_do_not_fit(budget):
    data = MemoryData(rows(50, 100), rows(5000, 100, seed=1))
    plan = planned(data, n_models=200)
    memory = least(*training_bytes(plan, data, 200)) - 10e6
    threads, members = budget(data, plan, 1, memory, in_rounds=True)
    assert threads == 1
    assert members is not None
    assert members < 200
    assert least(*training_bytes(plan, data, members)) <= memory
    assert budget(data, plan, 8, memory) == ResourceBudget(1)
    assert budget(data, plan, 8, 1.0, in_rounds=True) == ResourceBudget(1, 1)


def test_candidates_are_scored_in_as_many_threads_as_there_is_room_for(monkeypatch):
    data = MemoryData(rows(100), rows(3000, seed=1))
    settings = SearchOptions(oob=True)
    sample = TuningSample.from_data(data, settings, Run())
    threads = []
    for memory in (inf, 700e6, 1.0):
        monkeypatch.setattr(train, "available_memory", lambda m=memory: m)
        threads.append(within_memory(data, sample, settings, Run(4)).jobs)
    assert threads[0] == 4
    assert 1 < threads[1] < 4
    assert threads[2] == 1


def test_threads_within_a_limit(monkeypatch):
    for megabytes, expected in ((inf, 5), (40.1, 3), (400, 5), (19, 0), (5, 0)):
        monkeypatch.setattr(train, "available_memory", lambda m=megabytes: MARGIN * m * 1e6)
        assert threads_within(10e6, 10e6, 5) == expected
