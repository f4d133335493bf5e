"""A real Dask scheduler and workers on loopback give the same bytes as one machine."""

from __future__ import annotations

import gc
import json
import operator
import os
import re
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tests.commands.train.test_command import snapshot
from tests.conftest import assert_exit, train_arguments, write_svm
from tests.loopback import LoopbackCluster, loopback_cluster
from tests.programs import run_resvm, until

pytest.importorskip("distributed")

pytestmark = pytest.mark.cluster


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


def test_a_model_with_known_negatives_has_the_bytes_of_one_machine(cluster, problem, tmp_path):
    rng = np.random.default_rng(1)
    known = write_svm(tmp_path / "neg.svm", rng.standard_normal((15, 5)) - 1)
    common = [*train_arguments(problem), "-N", known]
    assert run_resvm(*common, "-j", 1, "-o", tmp_path / "here").code == 0
    ran = run_resvm(*common, "--cluster", cluster.address, "-o", tmp_path / "there")
    assert ran.code == 0, ran.err
    assert snapshot(tmp_path / "there") == snapshot(tmp_path / "here")
    manifest = json.loads((tmp_path / "there" / "manifest.json").read_bytes())
    assert manifest["data"]["negative"]["rows"] == 15


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


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file"),
        ("", "not JSON"),
        ('{"address": "tcp://127.0.0.1:9"}', "no Dask scheduler answered at tcp://127.0.0.1:9"),
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


@contextmanager
def server(reply: bytes) -> Iterator[str]:
    """Yield the address of a server that sends the same bytes to everyone, and then nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        taken = []

        def serve() -> None:
            while True:
                try:
                    taken.append(listening.accept()[0])
                except OSError:  # the test is over
                    return
                taken[-1].sendall(reply)

        threading.Thread(target=serve, daemon=True).start()
        yield f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
    for connection in taken:
        connection.close()


REPLIES = {
    "nothing": b"",
    "a web page": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "zeros": bytes(1000),
    "frames that are none": b"@" + bytes(7) + b"\xff" * 1000,
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_server_that_is_no_scheduler_is_named_in_time(name, problem, tmp_path):
    with server(REPLIES[name]) as address:
        at = ["--cluster", address, "--cluster-timeout", 0.5]
        ran = run_resvm(*train_arguments(problem), *at, "-o", tmp_path / "model", patience=100)
    assert_exit(ran, 5, "no Dask scheduler", address, "hint: start one")
    assert ran.err.count("\n") == 2, ran.err


def test_a_limit_that_overflows_is_refused():
    from resvm_cli.cluster.engine import connected
    from resvm_cli.errors import ParameterError

    for seconds in (1e10, float("inf"), float("nan")):
        with (
            pytest.raises(ParameterError, match="cluster_timeout must be at most 1e"),
            connected("tcp://127.0.0.1:9", seconds),
        ):
            pass


@contextmanager
def stopped(*processes: int) -> Iterator[None]:
    """Stop processes for a while, so that they neither answer nor exit."""
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


def test_workers_that_do_not_answer_are_named_in_time(cluster):
    from resvm_cli.cluster.engine import connected
    from resvm_cli.errors import ClusterError

    with connected(cluster.address, 20) as engine:
        workers = engine._client.run(os.getpid).values()
    began = time.monotonic()
    with (
        stopped(*workers),
        pytest.raises(ClusterError, match=r"the worker tcp://.* did not answer within 0\.5 s"),
        connected(cluster.address, 0.5),
    ):
        pass
    assert time.monotonic() - began < 60


def test_a_scheduler_that_stops_answering_ends_the_run_in_time(cluster):
    from resvm_cli.cluster.engine import connected
    from resvm_cli.errors import ClusterError

    with connected(cluster.address, 20):
        pass  # workers are connected, so the rest waits only a second
    with connected(cluster.address, 1) as engine:
        results = engine.run(operator.add, [1], ([n] for n in range(10**9)), tick, str)
        next(results)
        silent = r"scheduler at .* did not answer within 1 s"
        with stopped(cluster.scheduler.pid), pytest.raises(ClusterError, match=silent):
            deque(results, maxlen=0)


def test_a_named_pipe_in_place_of_a_scheduler_file_is_refused(problem, tmp_path):
    os.mkfifo(tmp_path / "scheduler.json")
    at = ["--cluster", tmp_path / "scheduler.json", "--cluster-timeout", 0.1]
    ran = run_resvm(*train_arguments(problem), *at, "-o", tmp_path / "m", patience=100)
    assert_exit(ran, 5, "not a regular file")


def test_a_scheduler_without_workers_is_named(problem, tmp_path):
    with loopback_cluster(tmp_path, 0) as cluster:
        at = ["--cluster", cluster.address, "--cluster-timeout", 1]
        ran = run_resvm(*train_arguments(problem), *at, "-o", tmp_path / "model")
    assert ran.code == 5
    assert re.search("still has no workers after 1 s", ran.err)


def test_auto_needs_the_environment(problem, tmp_path):
    env = {"DASK_SCHEDULER_ADDRESS": ""}
    ran = run_resvm(*train_arguments(problem), "--cluster", "auto", cwd=tmp_path, env=env)
    assert (ran.code, "--cluster auto needs DASK_SCHEDULER_ADDRESS" in ran.err) == (2, True)


def test_workers_must_have_our_versions_and_another_cpu_is_announced(cluster, monkeypatch):
    from resvm_cli.cluster import batches, engine
    from resvm_cli.errors import ClusterError

    notes: list[str] = []
    own = batches.identity()
    monkeypatch.setattr(engine, "identity", Identity({**own, "numeric_fingerprint": "elsewhere"}))
    with engine.connected(cluster.address, 20, notes.append):
        pass
    assert any("rounds differently" in note for note in notes)
    monkeypatch.setattr(engine, "identity", Identity({**own, "resvm": "0.0.0"}))
    with (
        pytest.raises(ClusterError, match=r"different versions: resvm .*, here 0\.0\.0"),
        engine.connected(cluster.address, 20),
    ):
        pass


class Identity:
    """A different identity on this side; workers report their own."""

    def __init__(self, here: dict[str, str]) -> None:
        self._here = here

    def __call__(self) -> dict[str, str]:
        return self._here

    def __reduce__(self) -> Any:
        from resvm_cli.cluster import batches

        return getattr, (batches, "identity")


BENCHMARKS = {
    "the paper's": ["--tasks", "synthetic", "--protocol", "fast", "--methods", "cwsvm"],
    "own": ["--data", "own.svm", "--positive-label", 1, "--n-pos", 20, "--n-unl", 60],
}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_has_the_bytes_of_one_machine(name, cluster, problem, tmp_path):
    (tmp_path / "own.svm").write_bytes((problem / "test.svm").read_bytes())
    words = ["benchmark", "run", *BENCHMARKS[name], "--repetitions", 1, "-q"]
    for where in (["-j", 1, "-o", "here"], ["--cluster", cluster.address, "-o", "there"]):
        ran = run_resvm(*words, *where, cwd=tmp_path)
        assert ran.code == 0, ran.err
    here, there = (tmp_path / place / "results.jsonl" for place in ("here", "there"))
    assert here.read_bytes() == there.read_bytes()
    assert len(here.read_bytes().splitlines()) == 3


def test_the_rows_of_a_benchmark_are_sent_to_workers_that_cannot_read_them(
    cluster, problem, tmp_path
):
    from resvm_cli.benchmark.cells import Bench, Protocol, default_grids, measure
    from resvm_cli.benchmark.data import BenchmarkData, Cell, OwnData
    from resvm_cli.cluster.engine import connected

    path = tmp_path / "own.svm"
    path.write_bytes((problem / "test.svm").read_bytes())
    data = BenchmarkData(".", OwnData(str(path), 1, 20, 60), 0)
    bench = Bench(data, Protocol("fast", default_grids(), 1), False)
    cells = [Cell("own", "own", number, method="bagging") for number in range(2)]
    wanted = [measure(bench, cell)["result"] for cell in cells]
    path.unlink()
    ticks: list[None] = []
    with connected(cluster.address, 20) as engine:
        results = engine.run(measure, bench, cells, lambda: ticks.append(None), str)
        assert [one["result"] for one in results] == wanted
    assert ticks  # progress is shown while workers are busy


def test_a_share_of_a_model_and_a_grown_one_have_the_bytes_of_one_machine(
    cluster, problem, tmp_path
):
    at = ["--cluster", cluster.address, "-q"]
    common = train_arguments(problem)
    whole = [*common, "-q", "-j", 1, "--n-models", 12, "-o", tmp_path / "here"]
    assert run_resvm(*whole).code == 0
    parts = {"one": "1/4", "two": "2/4", "three": "2/2"}
    for name, task in parts.items():
        ran = run_resvm(*common, *at, "--n-models", 12, "--task", task, "-o", tmp_path / name)
        assert ran.code == 0, ran.err
    joined = run_resvm("merge", *(tmp_path / name for name in parts), "-o", tmp_path / "joined")
    assert joined.code == 0, joined.err
    assert snapshot(tmp_path / "joined") == snapshot(tmp_path / "here")
    there = ["-o", tmp_path / "there"]
    assert run_resvm(*common, *at, "--n-models", 5, *there).code == 0
    ran = run_resvm(*common, *at, "--grow", 12, *there)
    assert ran.code == 0, ran.err
    assert snapshot(tmp_path / "there") == snapshot(tmp_path / "here")


def test_a_share_of_a_tuning_has_the_bytes_of_one_machine(cluster, problem, tmp_path):
    words = ["tune", "-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q"]
    words += ["--search", "random", "-c", "0.1..10", "--trials", 6]
    assert run_resvm(*words, "-j", 1, "-o", tmp_path / "here").code == 0
    there = [*words, "--cluster", cluster.address, "-o", tmp_path / "there"]
    for more in (["--task", "2/2"], ["--task", "1/2"], []):
        ran = run_resvm(*there, *more)
        assert ran.code == 0, ran.err
    here, there = (tmp_path / name / "trials.jsonl" for name in ("here", "there"))
    assert here.read_bytes() == there.read_bytes()


def test_results_come_in_order_and_what_is_shared_is_sent_once(cluster, monkeypatch):
    from resvm_cli.cluster.engine import connected

    sent: list[Any] = []
    with connected(cluster.address, 20) as engine:
        scatter = engine._client.scatter

        def note(shared, **more):
            sent.append(shared.value)
            return scatter(shared, **more)

        monkeypatch.setattr(engine._client, "scatter", note)
        shared = [1]
        for tasks in ([[n] for n in range(300)], ([n] for n in range(300))):
            results = engine.run(operator.add, shared, tasks, tick, str)
            assert list(results) == [[1, n] for n in range(300)]
    assert sent == [shared]


def test_rows_arrive_to_the_byte(cluster):
    import numpy as np

    from resvm_cli.cluster.engine import connected
    from resvm_cli.model.members import Trainer
    from resvm_cli.model.model_plan import ModelPlan
    from resvm_cli.model.pu_data import MemoryData
    from resvm_cli.parameters import MethodParameters, Setting
    from resvm_cli.rows import Rows

    rows = Rows.from_dense(np.random.default_rng(1).normal(size=(50, 20)), 1)
    data = MemoryData(rows.slice(0, 10), rows.slice(10, 50))
    plan = ModelPlan.resolve([Setting(MethodParameters())], data)
    trainer = Trainer.from_data(plan, data, rows.slice(10, 50), np.arange(40), 1)
    with connected(cluster.address, 20) as engine:
        for found in engine.run(getattr, trainer, ["sets"] * 40, tick, str):
            for name in ("values", "indices", "indptr"):
                assert getattr(found[None].rows, name).tobytes() == getattr(rows, name).tobytes()


def test_predictions_have_the_bytes_of_one_machine(cluster, problem, model, tmp_path):
    there = ["--cluster", cluster.address]
    text = (problem / "test.svm").read_bytes()
    for more in (
        [],
        ["--format", "csv", "--votes", "--ids"],
        ["-T", "recall=0.9", "--member-values"],
    ):
        here = run_resvm("predict", model, problem / "test.svm", *more)
        ran = run_resvm("predict", model, problem / "test.svm", *more, *there)
        assert (ran.code, ran.err) == (here.code, ran.err)
        assert ran.out == here.out
        assert run_resvm("predict", model, *more, *there, stdin=text).out == here.out
    files = [problem / "test.svm", problem / "unl.svm"]
    for name, where in (("here", []), ("there", there)):
        assert run_resvm("predict", model, *files, "--out-dir", tmp_path / name, *where).code == 0
    assert snapshot(tmp_path / "here") == snapshot(tmp_path / "there")


def test_a_bad_line_is_named_by_its_number_wherever_it_is_read(cluster, problem, model, tmp_path):
    bad = tmp_path / "bad.svm"
    bad.write_bytes((problem / "test.svm").read_bytes() + b"1 2:x\n")
    here = run_resvm("predict", model, bad)
    ran = run_resvm("predict", model, bad, "--cluster", cluster.address, "-q")
    assert "bad.svm:301" in here.err
    assert (ran.code, ran.out, ran.err) == (here.code, here.out, here.err)


def test_what_a_cluster_has_lost_is_sent_again(cluster):
    from resvm_cli.cluster.engine import connected

    with connected(cluster.address, 60) as engine:
        shared = [1]
        assert list(engine.run(operator.add, shared, [[2]], tick, str)) == [[1, 2]]
        engine._client.cancel([engine._sent[1]], force=True)
        assert list(engine.run(operator.add, shared, [[3]], tick, str)) == [[1, 3]]


def tick() -> None:
    pass


def test_the_error_of_a_task_is_its_own(cluster):
    from resvm_cli.cluster.engine import connected

    with connected(cluster.address, 20) as engine:
        results = engine.run(os.link, "nowhere", ["nothing"], tick, str)
        with pytest.raises(FileNotFoundError):
            list(results)


@contextmanager
def answers(engine: Any, change: Callable[[Any], Any]) -> Iterator[None]:
    """Change the workers' answers before they are sent."""

    def patch() -> None:
        from resvm_cli.cluster import batches

        real = batches.work
        batches.work = lambda *sent: change(real(*sent))
        batches.real = real

    def restore() -> None:
        from resvm_cli.cluster import batches

        batches.work = batches.real

    engine._client.run(patch)
    try:
        yield
    finally:
        engine._client.run(restore)


def test_an_answer_that_cannot_be_read_is_an_error(cluster):
    from resvm_cli.cluster.engine import connected
    from resvm_cli.errors import ClusterError

    def spoil(answer: Any) -> Any:
        return answer, __import__("threading").Lock()  # cannot be pickled

    with connected(cluster.address, 20) as engine, answers(engine, spoil):
        results = engine.run(operator.add, [1], [[n] for n in range(300)], tick, str)
        with pytest.raises(ClusterError, match="a worker sent an unusable answer"):
            list(results)


@contextmanager
def observed_rows(cluster: LoopbackCluster) -> Iterator[Callable[[], int]]:
    """Yield a function that counts the workers' copies of shared data; they collect no garbage."""
    from distributed import Client

    def copies() -> int:
        from resvm_cli.cluster.batches import Shared

        return sum(isinstance(one, Shared) for one in gc.get_objects())

    with Client(cluster.address, timeout=60, set_as_default=False) as client:
        client.run(gc.collect)
        client.run(gc.disable)
        yield lambda: sum(client.run(copies).values())
        client.run(gc.enable)


def test_rows_are_released_after_an_error(cluster):
    from resvm_cli.cluster.engine import connected

    with observed_rows(cluster) as rows:
        with connected(cluster.address, 20) as engine:
            results = engine.run(os.link, "nowhere", ["nothing"] * 2, tick, str)
            with pytest.raises(FileNotFoundError):
                list(results)
        until(lambda: not rows())


class SlowToArrive:
    """Data that takes a while to arrive."""

    def __reduce__(self) -> Any:
        return time.sleep, (1.5,)


def test_rows_are_released_when_the_run_is_interrupted_while_they_are_sent(cluster, monkeypatch):
    from resvm_cli.cluster.engine import connected

    def interrupt() -> None:
        raise KeyboardInterrupt

    with observed_rows(cluster) as rows:
        with connected(cluster.address, 20) as engine:
            monkeypatch.setattr(engine, "_look", interrupt)
            with pytest.raises(KeyboardInterrupt):
                engine._send(SlowToArrive())
        until(lambda: not rows())
