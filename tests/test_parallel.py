"""Tasks run in parallel, results come in order; as many at a time as there are cores to use."""

from __future__ import annotations

import os
import threading
import time

import joblib
import pytest

from resvm_cli import parallel


@pytest.mark.parametrize("workers", [1, 2, 5, 50])
def test_results_come_in_the_order_of_the_tasks(workers):
    def slow_first(number: int) -> int:
        time.sleep(0.02 if number == 0 else 0)
        return number * number

    assert list(parallel.run(slow_first, range(20), workers)) == [n * n for n in range(20)]


def test_no_tasks_no_results():
    assert list(parallel.run(str, [], 3)) == []


def test_none_is_a_result():
    assert list(parallel.run(lambda task: None, [1, 2], 2)) == [None, None]


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_in_a_task_is_raised_here_and_ends_the_run(workers):
    done = []

    def fail(number: int) -> int:
        if number == 3:
            raise ZeroDivisionError("three")
        done.append(number)
        time.sleep(0.01)
        return number

    results = parallel.run(fail, range(1000), workers)
    with pytest.raises(ZeroDivisionError, match="three"):
        list(results)
    time.sleep(0.1)
    assert len(done) < 100


def test_a_long_wait_ticks(monkeypatch):
    monkeypatch.setattr(parallel, "WAIT_SECONDS", 0.01)
    ticks = []
    tasks = parallel.run(lambda task: time.sleep(0.2), [1], 1, lambda: ticks.append(1))
    assert list(tasks) == [None]
    assert len(ticks) > 3


def test_tasks_that_arrive_slowly_are_answered_one_by_one():
    sent = []

    def tasks():
        for number in range(5):
            sent.append(number)
            yield number
            while len(received) <= number:  # the next comes only when this one was answered
                time.sleep(0.001)

    received = []
    for result in parallel.stream(lambda number: 10 * number, tasks(), lambda: 2):
        received.append(result)
    assert received == [0, 10, 20, 30, 40]


def test_an_error_in_the_source_of_tasks_is_raised_in_its_place():
    def tasks():
        yield 1
        raise ZeroDivisionError("source")

    results = parallel.stream(str, tasks(), lambda: 2)
    assert next(results) == "1"
    with pytest.raises(ZeroDivisionError, match="source"):
        next(results)


def test_tasks_are_not_taken_far_ahead():
    taken = []

    def tasks():
        for number in range(1000):
            taken.append(number)
            yield number

    results = parallel.stream(str, tasks(), lambda: 2)
    next(results)
    time.sleep(0.2)
    assert len(taken) < 20
    results.close()


def test_workers_really_run_at_the_same_time():
    barrier = threading.Barrier(3, timeout=20)
    list(parallel.run(lambda task: barrier.wait(), range(3), 3))


def test_the_main_thread_never_runs_a_task():
    threads = set(parallel.run(lambda task: threading.current_thread().name, range(4), 1))
    assert threading.current_thread().name not in threads


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine of eight cores, whose files are given by their names."""

    def make(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    monkeypatch.setattr(parallel, "SYSTEM", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    return make


@pytest.mark.parametrize(("share", "expected"), [("", 8), ("3", 3), ("99", 8), ("x", 8), ("0", 8)])
def test_cores_respect_the_batch_systems_share(machine, monkeypatch, share, expected):
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", share)
    assert parallel.available_cores() == expected


SECOND = "0::/job/step\n"
FIRST = "7:memory:/else\n4:cpu,cpuacct:/job\n1:name=systemd:/\n"


@pytest.mark.parametrize(
    ("groups", "quotas", "expected"),
    [
        (SECOND, {"job/step/cpu.max": "max 100000\n"}, 8),
        (SECOND, {"job/step/cpu.max": "250000 100000\n"}, 3),
        (SECOND, {"job/step/cpu.max": "10000 100000\n"}, 1),
        (SECOND, {"job/step/cpu.max": "max 100000\n", "job/cpu.max": "400000 100000\n"}, 4),
        (SECOND, {"cpu.max": "200000 100000\n"}, 2),
        (SECOND, {"job/step/cpu.max": "nonsense\n"}, 8),
        (SECOND, {"job/step/cpu.max": "1 0\n"}, 8),
        (SECOND, {"cpu.max": "1600000 100000\n"}, 8),
        (
            FIRST,
            {
                "cpu,cpuacct/job/cpu.cfs_quota_us": "150000\n",
                "cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
            },
            2,
        ),
        (
            FIRST,
            {
                "cpu,cpuacct/job/cpu.cfs_quota_us": "-1\n",
                "cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
            },
            8,
        ),
        (FIRST, {"memory/else/cpu.max": "100000 100000\n"}, 8),
        ("nonsense\n", {}, 8),
    ],
)
def test_cores_respect_the_quota_of_a_control_group(machine, groups, quotas, expected):
    machine({"proc/self/cgroup": groups} | {f"sys/fs/cgroup/{k}": v for k, v in quotas.items()})
    assert parallel.available_cores() == expected


def test_without_affinity_all_cores_count(machine, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert parallel.available_cores() == 6


def test_joblib_counts_the_same_here(monkeypatch):
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    assert parallel.available_cores() == joblib.cpu_count()
