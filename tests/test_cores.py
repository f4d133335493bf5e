"""How many cores may be used: affinity, quotas of both versions, a batch system's share."""

from __future__ import annotations

import os

import joblib
import pytest

from resvm_cli.files import cores


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine of eight cores, whose files are given by their names."""

    def make(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    monkeypatch.setattr(cores, "SYSTEM", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    return make


@pytest.mark.parametrize(("share", "expected"), [("", 8), ("3", 3), ("99", 8), ("x", 8), ("0", 8)])
def test_cores_respect_the_batch_systems_share(machine, monkeypatch, share, expected):
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", share)
    assert cores.available_cores() == expected


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
    assert cores.available_cores() == expected


def test_without_affinity_all_cores_count(machine, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert cores.available_cores() == 6


def test_joblib_counts_the_same_here(monkeypatch):
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    assert cores.available_cores() == joblib.cpu_count()
