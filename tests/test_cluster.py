"""A real Dask scheduler and workers on loopback: the bytes of one machine, whoever dies."""

from __future__ import annotations

import ctypes
import json
import operator
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLE, train_arguments
from tests.programs import run_resvm, start_resvm, started, until
from tests.test_cli_train import snapshot

pytest.importorskip("distributed")

pytestmark = pytest.mark.cluster
DIGITS = [SAMPLE / "digits" / name for name in ("pos.svm", "unl.svm")]


def dask(*arguments: object) -> list[str]:
    return [
        sys.executable,
        "-m",
        "distributed.cli.dask_" + str(arguments[0]),
        *map(str, arguments[1:]),
    ]


class LoopbackCluster:
    """A scheduler and its workers, each a process that a test may end."""

    def __init__(self, stack: ExitStack, folder: Path, n_workers: int) -> None:
        self._stack, self.folder = stack, folder
        self.file = folder / "scheduler.json"
        self.scheduler = self._start(
            *("scheduler", "--host", "127.0.0.1", "--port", 0, "--no-dashboard", "--no-show"),
            *("--scheduler-file", self.file),
        )
        until(self._address)
        self.workers = [self.add_worker() for _ in range(n_workers)]

    def _start(self, *arguments: object) -> Any:
        path = self.folder / f"log-{time.monotonic_ns()}"
        log = self._stack.enter_context(path.open("wb"))
        running = started(dask(*arguments), stdout=log, stderr=log, cwd=self.folder, patience=200)
        process = self._stack.enter_context(running)
        self._stack.callback(lambda: process.poll() is None and os.killpg(process.pid, 9))
        return process

    def _address(self) -> str | None:
        try:
            return str(json.loads(self.file.read_text())["address"])
        except (OSError, ValueError):
            return None

    @property
    def address(self) -> str:
        return self._address() or ""

    def add_worker(self, *more: object) -> Any:
        return self._start(
            *("worker", self.address, "--host", "127.0.0.1", "--nthreads", 1, "--no-dashboard"),
            *("--local-directory", self.folder, *more),
        )

    def worker_pids(self) -> list[int]:
        """The processes that compute: those below the nannies."""
        found = []
        for worker in self.workers:
            ran = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
            for pid in map(int, ran):
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                if b"spawn_main" in command:
                    found.append(pid)
        return found


@contextmanager
def loopback_cluster(folder: Path, n_workers: int) -> Iterator[LoopbackCluster]:
    with ExitStack() as stack:
        yield LoopbackCluster(stack, folder, n_workers)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackCluster]:
    with loopback_cluster(tmp_path_factory.mktemp("dask"), 2) as running:
        yield running


SETTINGS = {
    "rbf": [],
    "liblinear scaled": ["-t", "linear", "--solver", "liblinear", "--scale", "standard"],
    "resumed bagging": ["--method", "bagging", "--resume"],
    "cwsvm": ["--method", "cwsvm"],
    "auto": ["--auto"],
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_model_has_the_bytes_of_one_machine(name, cluster, problem, tmp_path):
    common = [*train_arguments(problem), *SETTINGS[name]]
    assert run_resvm(*common, "-j", 1, "-o", tmp_path / "here").code == 0
    ran = run_resvm(*common, "--cluster", cluster.address, "-o", tmp_path / "there")
    assert ran.code == 0, ran.err
    assert snapshot(tmp_path / "there") == snapshot(tmp_path / "here")


def test_trials_and_rankings_have_the_bytes_of_one_machine(cluster, problem, tmp_path):
    rows = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q"]
    there = ["--cluster", cluster.file]
    rankings = []
    for name, where in (("here", ["-j", 1]), ("there", there)):
        ran = run_resvm("tune", *rows, *where, "-o", tmp_path / name)
        assert ran.code == 0, ran.err
        ran = run_resvm("rank", *rows, *where)
        assert ran.code == 0, ran.err
        rankings.append(ran.out)
    assert rankings[0] == rankings[1]
    for name in ("trials.jsonl", "best.json"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()


def test_a_worker_that_is_killed_costs_time_alone(tmp_path):
    common = ["train", "-P", DIGITS[0], "-U", DIGITS[1], "--n-models", 300]
    assert run_resvm(*common, "-q", "-o", tmp_path / "here").code == 0
    with loopback_cluster(tmp_path, 2) as cluster:
        command = [*common, "--resume", "--cluster", cluster.address, "-o", tmp_path / "there"]
        with start_resvm(*command) as running:
            for at_least in (10, 60):
                until(lambda n=at_least: len(list(tmp_path.glob("there.part/members/*.json"))) > n)
                for pid in cluster.worker_pids()[:1]:
                    os.kill(pid, signal.SIGKILL)
            err = running.stderr.read().decode()
    assert running.returncode == 0, err
    assert snapshot(tmp_path / "there") == snapshot(tmp_path / "here")


def test_a_scheduler_that_is_killed_is_named_and_the_run_goes_on_elsewhere(tmp_path):
    common = ["train", "-P", DIGITS[0], "-U", DIGITS[1], "--n-models", 300, "--resume"]
    assert run_resvm(*common, "-q", "-o", tmp_path / "here").code == 0
    target = ["-o", tmp_path / "there"]
    with loopback_cluster(tmp_path, 1) as cluster:
        at = ["--cluster", cluster.address, "--cluster-timeout", 3]
        with start_resvm(*common, *at, *target) as running:
            until(lambda: len(list(tmp_path.glob("there.part/members/*.json"))) > 10)
            os.kill(cluster.scheduler.pid, signal.SIGKILL)
            err = running.stderr.read().decode()
    assert running.returncode == 5, err
    assert "is gone" in err
    assert not (tmp_path / "there").exists()
    assert run_resvm(*common, "-q", *target).code == 0
    assert snapshot(tmp_path / "there") == snapshot(tmp_path / "here")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file"),
        ("", "is not JSON"),
        ('{"address": "tcp://127.0.0.1:9"}', "no Dask scheduler answers at tcp://127.0.0.1:9"),
    ],
)
def test_a_scheduler_that_is_not_there_is_named_in_time(content, words, problem, tmp_path):
    file = tmp_path / "scheduler.json"
    if content is not None:
        file.write_text(content)
    common = [*train_arguments(problem), "--cluster-timeout", 1, "-o", tmp_path / "model"]
    began = time.monotonic()
    ran = run_resvm(*common, "--cluster", file)
    assert ran.code == 5
    assert words in ran.err.lower() or words in ran.err
    assert "Traceback" not in ran.err
    assert time.monotonic() - began < 60
    assert not (tmp_path / "model").exists()


def test_a_scheduler_without_workers_is_named(problem, tmp_path):
    with loopback_cluster(tmp_path, 0) as cluster:
        at = ["--cluster", cluster.address, "--cluster-timeout", 1]
        ran = run_resvm(*train_arguments(problem), *at, "-o", tmp_path / "model")
    assert ran.code == 5
    assert re.search("has no workers, after 1 s", ran.err)


def test_auto_needs_the_environment(problem, tmp_path):
    env = {"DASK_SCHEDULER_ADDRESS": ""}
    ran = run_resvm(*train_arguments(problem), "--cluster", "auto", cwd=tmp_path, env=env)
    assert (ran.code, "DASK_SCHEDULER_ADDRESS is not set" in ran.err) == (2, True)


def test_a_limit_on_a_members_time_is_refused_where_others_train(problem, tmp_path):
    limited = ["--cluster", "tcp://127.0.0.1:9", "--member-timeout", 5]
    ran = run_resvm(*train_arguments(problem), *limited, cwd=tmp_path)
    assert (ran.code, "--member-timeout and --cluster exclude each other" in ran.err) == (2, True)


def test_workers_of_another_version_are_refused_and_of_another_cpu_noted(cluster, monkeypatch):
    from resvm_cli.errors import ClusterError
    from resvm_cli.jobs import cluster as job

    notes: list[str] = []
    monkeypatch.setattr(job, "numeric_fingerprint", lambda: "elsewhere")
    with job.connected(cluster.address, 20, notes.append):
        pass
    assert any("rounds differently" in note for note in notes)
    monkeypatch.setattr(job, "__version__", "0.0.0")
    with (
        pytest.raises(ClusterError, match=r"other versions: resvm .*, here 0\.0\.0"),
        job.connected(cluster.address, 20),
    ):
        pass


def test_results_come_in_order_and_what_is_shared_is_sent_once(cluster, monkeypatch):
    from resvm_cli.jobs import cluster as job

    sent: list[str] = []
    with job.connected(cluster.address, 20) as engine:
        run = engine._client.run

        def note(function, *given, workers, **more):
            sent.extend(workers if function is job._hold else ())
            return run(function, *given, workers=workers, **more)

        monkeypatch.setattr(engine._client, "run", note)
        shared = [1]
        for _ in range(2):
            results = engine.run(operator.add, shared, [[n] for n in range(300)], tick, str)
            assert list(results) == [[1, n] for n in range(300)]
    assert len(sent) == len(set(sent)) == 2


@pytest.mark.slow
def test_a_task_that_ends_its_workers_is_named(tmp_path):
    from resvm_cli.errors import ClusterError
    from resvm_cli.jobs import cluster as job

    with (
        loopback_cluster(tmp_path, 2) as cluster,
        job.connected(cluster.address, 60) as engine,
    ):
        sizes = [0, 0, 0, 0, 0, 1, 0, 0]  # of a string at address 1: none can be read there
        results = engine.run(ctypes.string_at, 1, sizes, tick, lambda place: f"number {place}")
        with pytest.raises(ClusterError, match="number 5 ended every worker"):
            list(results)


def tick() -> None:
    pass


def test_the_error_of_a_task_is_its_own(cluster):
    from resvm_cli.jobs import cluster as job

    with job.connected(cluster.address, 20) as engine:
        results = engine.run(os.link, "nowhere", ["nothing"], tick, str)
        with pytest.raises(FileNotFoundError):
            list(results)
