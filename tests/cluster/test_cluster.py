"""A real Dask scheduler and workers on loopback give the same bytes as one machine."""

from __future__ import annotations

import gc
import json
import operator
import os
import pickle
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

from resvm_cli import cluster as module
from resvm_cli.cluster import Shared, connected
from resvm_cli.errors import ClusterError
from tests.commands.test_train import snapshot
from tests.conftest import train_arguments, write_svm
from tests.loopback import LoopbackCluster, loopback_cluster
from tests.programs import run_resvm, until

pytest.importorskip("distributed")

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackCluster]:
    with loopback_cluster(tmp_path_factory.mktemp("dask"), 2) as running:
        yield running


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Collect garbage between tests only.

    Dask closes a client that could not connect when it is collected. If that happens while the next
    client starts, both wait for one lock for ever.
    """
    gc.collect()
    gc.disable()
    yield
    gc.enable()


FIXED = "--no-auto"
SETTINGS = {
    "searched": [],
    "liblinear scaled": [FIXED, "-t", "linear", "--solver", "liblinear", "--scale", "standard"],
    "resumed bagging": [FIXED, "--method", "bagging", "--resume"],
    "cwsvm": [FIXED, "--method", "cwsvm"],
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


@pytest.mark.parametrize("content", [None, "", '{"address": "tcp://127.0.0.1:9"}'])
def test_a_scheduler_that_is_not_there_is_named_in_time(content, tmp_path):
    file = tmp_path / "scheduler.json"
    if content is not None:
        file.write_text(content)
    began = time.monotonic()
    words = f"no Dask scheduler answered at {file}"
    with pytest.raises(ClusterError, match=words), connected(str(file), 1):
        pass
    assert time.monotonic() - began < 60
    file.write_text('{"address": "tcp://127.0.0.1:9"}')  # ends the thread that waits for it


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
def test_a_server_that_is_no_scheduler_is_named_in_time(name, capfd):
    with (
        server(REPLIES[name]) as address,
        pytest.raises(ClusterError, match=f"no Dask scheduler answered at {address}") as caught,
        connected(address, 0.5),
    ):
        pass
    assert "start one" in str(caught.value.hint)
    assert capfd.readouterr() == ("", "")


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


def test_a_scheduler_that_stops_answering_ends_the_run_in_time(cluster):
    with connected(cluster.address, 20):
        pass  # workers are connected, so the rest waits only a second
    with connected(cluster.address, 1) as engine:
        results = engine.run(operator.add, [1], ([n] for n in range(10**9)), tick, str)
        next(results)
        silent = r"the Dask cluster at .* is gone: no answer"
        with stopped(cluster.scheduler.pid), pytest.raises(ClusterError, match=silent):
            deque(results, maxlen=0)


def test_a_scheduler_without_workers_is_named(tmp_path):
    with (
        loopback_cluster(tmp_path, 0) as cluster,
        pytest.raises(ClusterError, match="has had no workers for 1 s"),
        connected(cluster.address, 1),
    ):
        pass


def test_auto_needs_the_environment(problem, tmp_path):
    env = {"DASK_SCHEDULER_ADDRESS": ""}
    ran = run_resvm(*train_arguments(problem), "--cluster", "auto", cwd=tmp_path, env=env)
    assert (ran.code, "--cluster auto needs DASK_SCHEDULER_ADDRESS" in ran.err) == (2, True)


def test_workers_must_have_our_versions_and_another_cpu_is_noted(cluster, monkeypatch):
    notes: list[str] = []
    own = module.versions()
    for name, value in (("numeric_fingerprint", "elsewhere"), ("resvm", "0.0.0")):
        monkeypatch.setattr(module, "versions", {**own, name: value}.copy)
        with connected(cluster.address, 20, notes.append) as engine:
            results = engine.run(operator.add, [1], [[2]], tick, str)
            if name == "resvm":
                with pytest.raises(ClusterError, match=r"different versions: resvm .*, here 0\.0"):
                    list(results)
            else:
                assert list(results) == [[1, 2]]
                assert "rounds differently" in notes[-1]


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


def test_results_come_in_order_and_what_is_shared_is_sent_once(cluster, monkeypatch):
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

    from resvm_cli.data.pudata import MemoryData
    from resvm_cli.ensemble.plan import Plan
    from resvm_cli.ensemble.train import Trainer
    from resvm_cli.parameters import Params
    from resvm_cli.rows import Rows

    rows = Rows.from_dense(np.random.default_rng(1).normal(size=(50, 20)), 1)
    data = MemoryData(rows.slice(0, 10), rows.slice(10, 50))
    plan = Plan.resolve(Params(), data)
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


def test_a_bad_line_is_named_by_its_number_wherever_it_is_read(cluster, problem, model, tmp_path):
    bad = tmp_path / "bad.svm"
    bad.write_bytes((problem / "test.svm").read_bytes() + b"1 2:x\n")
    here = run_resvm("predict", model, bad)
    ran = run_resvm("predict", model, bad, "--cluster", cluster.address, "-q")
    assert "bad.svm:301" in here.err
    assert (ran.code, ran.out, ran.err) == (here.code, here.out, here.err)


def test_what_a_cluster_has_lost_is_sent_again(cluster):
    with connected(cluster.address, 60) as engine:
        shared = [1]
        assert list(engine.run(operator.add, shared, [[2]], tick, str)) == [[1, 2]]
        engine._client.cancel([engine._sent[1]], force=True)
        assert list(engine.run(operator.add, shared, [[3]], tick, str)) == [[1, 3]]


def tick() -> None:
    pass


def test_the_error_of_a_task_is_its_own(cluster):
    with connected(cluster.address, 20) as engine:
        results = engine.run(os.link, "nowhere", ["nothing"], tick, str)
        with pytest.raises(FileNotFoundError):
            list(results)


@contextmanager
def answers(engine: Any, change: Callable[[Any], Any]) -> Iterator[None]:
    """Change the workers' answers before they are sent."""

    def patch() -> None:
        from resvm_cli import cluster

        real = cluster.work
        cluster.work = lambda *sent: change(real(*sent))
        cluster.real = real

    def restore() -> None:
        from resvm_cli import cluster

        cluster.work = cluster.real

    engine._client.run(patch)
    try:
        yield
    finally:
        engine._client.run(restore)


def test_an_answer_that_cannot_be_read_is_an_error(cluster):
    def spoil(answer: Any) -> Any:
        return answer, __import__("threading").Lock()  # cannot be pickled

    with connected(cluster.address, 20) as engine, answers(engine, spoil):
        results = engine.run(operator.add, [1], [[n] for n in range(300)], tick, str)
        with pytest.raises(ClusterError, match="a worker cannot run resvm"):
            list(results)


@contextmanager
def observed_rows(cluster: LoopbackCluster) -> Iterator[Callable[[], int]]:
    """Yield a function that counts the workers' copies of shared data; they collect no garbage."""
    from distributed import Client

    def copies() -> int:
        return sum(isinstance(one, Shared) for one in gc.get_objects())

    with Client(cluster.address, timeout=60, set_as_default=False) as client:
        client.run(gc.collect)
        client.run(gc.disable)
        yield lambda: sum(client.run(copies).values())
        client.run(gc.enable)


def test_rows_are_released_after_an_error(cluster):
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
    def interrupt() -> None:
        raise KeyboardInterrupt

    with observed_rows(cluster) as rows:
        with connected(cluster.address, 20) as engine:
            monkeypatch.setattr(engine, "poll_workers", interrupt)
            with pytest.raises(KeyboardInterrupt):
                engine._send(SlowToArrive())
        until(lambda: not rows())


def test_what_is_shared_travels_as_bytes_so_that_its_arrays_are_aligned():
    buffers: list[pickle.PickleBuffer] = []
    values = np.arange(5.0)
    text = pickle.dumps(Shared([values]), protocol=5, buffer_callback=buffers.append)
    assert not buffers  # Dask would place them at unaligned addresses
    (found,) = pickle.loads(text).value
    assert found.flags.aligned
    assert found.flags.writeable
    assert found.tolist() == values.tolist()
