"""Workers and schedulers that die in any way cost time but do not change a byte."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_train import snapshot
from tests.conftest import SAMPLE
from tests.loopback import LoopbackCluster, loopback_cluster
from tests.programs import run_resvm, start_resvm, until

pytest.importorskip("distributed")

pytestmark = pytest.mark.cluster
ROWS = ["-P", SAMPLE / "digits" / "pos.svm", "-U", SAMPLE / "digits" / "unl.svm"]
COMMANDS: dict[str, list[Any]] = {
    "train": ["train", "--no-auto", *ROWS, "--n-models"],
    "tune": ["tune", *ROWS, "--search", "random", "-c", "0.1..10", "--trials"],
}
WAYS = ("sys.exit", "graceful", "segfault", "SIGKILL")
PATIENCE = 900.0  # a worker takes seconds to start, and more on a busy machine


def finished(command: str, target: Path) -> int:
    """Return how many members or trials exist."""
    if command == "train":
        return len(list(target.with_suffix(".part").glob("members/*.json")))
    with suppress(FileNotFoundError):
        return (target / "trials.jsonl").read_bytes().count(b"\n")
    return 0


def results(command: str, target: Path) -> dict[str, bytes]:
    found = snapshot(target)
    if command == "train":
        return found
    return {name: found[name] for name in ("trials.jsonl", "best.json")}


@contextmanager
def observed(cluster: LoopbackCluster) -> Iterator[Any]:
    """Yield a separate client that can list and kill workers."""
    from distributed import Client

    with Client(cluster.address, timeout=60, set_as_default=False) as client:
        yield client


def end_a_worker(way: str, client: Any, cluster: LoopbackCluster) -> None:
    """Kill one of the workers and wait for its replacement."""

    async def chaos(way: str, dask_worker: Any) -> int:
        from distributed.chaos import KillWorker

        if way != "SIGKILL":
            await KillWorker(0.01, way).setup(dask_worker)
        return os.getpid()

    until(lambda: client.nthreads())
    worker = min(client.nthreads())
    (process,) = client.run(chaos, way, workers=[worker]).values()
    if way == "SIGKILL":
        os.kill(process, signal.SIGKILL)
    until(lambda: worker not in client.nthreads())
    if way in ("sys.exit", "graceful"):  # its nanny goes with it, or does not start another
        cluster.workers.append(cluster.add_worker())


def endure(command: str, size: int, ways: list[str], folder: Path) -> None:
    """Run a command while workers die in these ways; its bytes must be those of one machine."""
    words = [*COMMANDS[command], size]
    assert run_resvm(*words, "-q", "-j", 1, "-o", folder / "here").code == 0
    target = folder / "there"
    with loopback_cluster(folder, 2, PATIENCE) as cluster, observed(cluster) as client:
        at = ["--resume", "--cluster", cluster.address, "-o", target]
        with start_resvm(*words, *at, patience=PATIENCE) as running:
            n_ended = 0
            for number, way in enumerate(ways):
                at_least = size * number // (len(ways) + 1)
                until(
                    lambda n=at_least: finished(command, target) > n or running.poll() is not None
                )
                if running.poll() is None:
                    end_a_worker(way, client, cluster)
                    n_ended += 1
            err = running.stderr.read().decode()
    assert running.returncode == 0, err
    assert n_ended == len(ways)
    assert results(command, target) == results(command, folder / "here")


def test_workers_that_end_cost_time_alone(tmp_path):
    endure("train", 150, ["graceful", "segfault"], tmp_path)


@pytest.mark.chaos
@pytest.mark.parametrize(("command", "size"), [("train", 300), ("tune", 200)])
def test_workers_that_end_in_any_way_cost_time_alone(command, size, tmp_path):
    endure(command, size, list(WAYS), tmp_path)


@pytest.mark.chaos
@pytest.mark.parametrize(("command", "size"), [("train", 800), ("tune", 600)])
@pytest.mark.parametrize("way", WAYS)
def test_workers_that_end_ten_times_cost_time_alone(command, size, way, tmp_path):
    endure(command, size, [way] * 10, tmp_path)


@pytest.mark.chaos
@pytest.mark.parametrize(("command", "size"), [("train", 300), ("tune", 100)])
def test_a_scheduler_that_is_killed_is_named_and_the_run_goes_on_elsewhere(command, size, tmp_path):
    words = [*COMMANDS[command], size]
    assert run_resvm(*words, "-q", "-j", 1, "-o", tmp_path / "here").code == 0
    target = tmp_path / "there"
    with loopback_cluster(tmp_path, 1) as cluster:
        at = ["--resume", "--cluster", cluster.address, "-o", target]
        with start_resvm(*words, *at) as running:
            until(lambda: finished(command, target) > 10)
            os.kill(cluster.scheduler.pid, signal.SIGKILL)
            err = running.stderr.read().decode()
    assert running.returncode == 5, err
    assert "is gone" in err
    assert "distributed" not in err
    assert run_resvm(*words, "-q", "--resume", "-o", target).code == 0
    assert results(command, target) == results(command, tmp_path / "here")


@pytest.mark.chaos
def test_when_all_workers_are_gone_others_may_come(tmp_path):
    words = [*COMMANDS["train"], 300]
    target = tmp_path / "there"
    with loopback_cluster(tmp_path, 1) as cluster, observed(cluster) as client:
        at = ["--resume", "--cluster", cluster.address, "-o", target]
        with start_resvm(*words, *at) as running:
            until(lambda: finished("train", target) > 10)
            os.killpg(cluster.workers[0].pid, signal.SIGKILL)  # its nanny too
            until(lambda: not client.nthreads())
            assert running.poll() is None
            cluster.workers.append(cluster.add_worker())
            err = running.stderr.read().decode()
    assert running.returncode == 0, err
    assert run_resvm(*words, "-q", "-j", 1, "-o", tmp_path / "here").code == 0
    assert snapshot(target) == snapshot(tmp_path / "here")


def tick() -> None:
    pass


@pytest.mark.chaos
@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_task_that_kills_its_workers_is_named(n_workers, tmp_path):
    from resvm_cli.cluster import connected
    from resvm_cli.errors import ClusterError

    with loopback_cluster(tmp_path, n_workers) as cluster, connected(cluster.address, 60) as engine:
        sizes = [0, 0, 0, 0, 0, 1, 0, 0]  # reading a string at address 1 is a segmentation fault
        results = engine.run(ctypes.string_at, 1, sizes, tick, lambda index: f"number {index}")
        with pytest.raises(ClusterError, match="number 5 killed its worker at least 3 times"):
            list(results)
