"""Tasks run in parallel, one per available core, and results arrive in order."""

from __future__ import annotations

import os
import threading
import time

import joblib
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from resvm_cli import threads as parallel
from tests.programs import PATIENCE_SECONDS, run, script_command


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


# numpy is imported by now; Apple's Accelerate, for one, is not told how many threads to use
blas_is_known = pytest.mark.skipif(not blas_threads(), reason="threadpoolctl sees no BLAS")


@pytest.mark.parametrize("workers", [1, 2, 5, 50])
def test_results_come_in_the_order_of_the_tasks(workers):
    overtaken = threading.Event()

    def slow_first(number: int) -> int:
        if number == 0 and workers > 1:
            assert overtaken.wait(PATIENCE_SECONDS)
        elif number == 1:
            overtaken.set()
        return number * number

    assert list(parallel.run(slow_first, range(20), workers)) == [n * n for n in range(20)]


def test_no_tasks_no_results():
    assert list(parallel.run(str, [], 3)) == []


def test_there_are_no_more_threads_than_tasks():
    used = set(parallel.stream(lambda _: threading.get_ident(), iter(range(3)), lambda: 10**6))
    assert len(used) <= 3
    assert threading.active_count() < 100


def test_none_is_a_result():
    assert list(parallel.run(lambda task: None, [1, 2], 2)) == [None, None]


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_in_a_task_is_raised_here_and_ends_the_run(workers):
    before = threading.enumerate()
    done = []

    def fail(number: int) -> int:
        if number == 3:
            raise ZeroDivisionError("three")
        done.append(number)
        return number

    results = parallel.run(fail, range(1000), workers)
    with pytest.raises(ZeroDivisionError, match="three"):
        list(results)
    for thread in set(threading.enumerate()) - set(before):
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
    assert len(done) < 100


def test_a_long_wait_ticks(monkeypatch):
    monkeypatch.setattr(parallel, "WAIT_SECONDS", 0.01)
    enough = threading.Event()
    ticks = []

    def tick() -> None:
        ticks.append(1)
        if len(ticks) > 3:
            enough.set()

    assert list(parallel.run(lambda task: enough.wait(PATIENCE_SECONDS), [1], 1, tick)) == [True]


def test_tasks_that_arrive_slowly_are_answered_one_by_one():
    answered = threading.Semaphore(0)

    def tasks():
        for number in range(5):
            yield number
            # the next task arrives only after this result
            assert answered.acquire(timeout=PATIENCE_SECONDS)

    received = []
    for result in parallel.stream(lambda number: 10 * number, tasks(), lambda: 2):
        received.append(result)
        answered.release()
    assert received == [0, 10, 20, 30, 40]


def test_an_error_in_the_source_of_tasks_is_raised_in_its_place():
    def tasks():
        yield 1
        raise ZeroDivisionError("source")

    results = parallel.stream(str, tasks(), lambda: 2)
    assert next(results) == "1"
    with pytest.raises(ZeroDivisionError, match="source"):
        next(results)


def test_tasks_are_not_taken_far_ahead(monkeypatch):
    full = threading.Event()

    class Room(threading.Semaphore):
        def acquire(self, blocking=True, timeout=None):
            had_room = super().acquire(blocking, timeout)
            if not had_room:
                full.set()
            return had_room

    monkeypatch.setattr(parallel.threading, "Semaphore", Room)
    monkeypatch.setattr(parallel, "WAIT_SECONDS", 0.01)
    taken = []

    def tasks():
        for number in range(1000):
            taken.append(number)
            yield number

    results = parallel.stream(str, tasks(), lambda: 2)
    next(results)
    assert full.wait(PATIENCE_SECONDS)
    assert len(taken) < 20
    results.close()


def test_whoever_stops_asking_stops_the_threads():
    before = set(threading.enumerate())
    results = parallel.stream(str, iter(range(1000)), lambda: 2)
    next(results)
    results.close()
    deadline = time.monotonic() + 20
    while (running := set(threading.enumerate()) - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not running


def test_workers_really_run_at_the_same_time():
    barrier = threading.Barrier(3, timeout=PATIENCE_SECONDS)
    list(parallel.run(lambda task: barrier.wait(), range(3), 3))


def test_the_main_thread_never_runs_a_task():
    threads = set(parallel.run(lambda task: threading.current_thread().name, range(4), 1))
    assert threading.current_thread().name not in threads


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Simulate a machine with eight cores and these system files, given by name."""

    def make(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    monkeypatch.setattr(parallel, "SYSTEM", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    for name in parallel.CORE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return make


@pytest.mark.parametrize(("share", "expected"), [("", 8), ("3", 3), ("99", 8), ("x", 8), ("0", 8)])
def test_cores_respect_the_batch_systems_share(machine, monkeypatch, share, expected):
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", share)
    assert parallel.available_cores() == expected


@pytest.mark.parametrize("name", parallel.CORE_VARIABLES)
def test_the_smallest_limit_on_cores_counts(machine, monkeypatch, name):
    assert parallel.available_cores() == 8
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 5}, raising=False)
    assert parallel.available_cores() == 3
    monkeypatch.setenv(name, "2")
    assert parallel.available_cores() == 2
    machine({"proc/self/cgroup": SECOND, "sys/fs/cgroup/job/step/cpu.max": "100000 100000\n"})
    assert parallel.available_cores() == 1


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


MEMINFO = {"proc/meminfo": "MemTotal:  9000 kB\nMemAvailable:  8000 kB\n"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, float("inf")),
        (MEMINFO, 8000 * 1024),
        (
            MEMINFO | {"proc/self/cgroup": SECOND, "sys/fs/cgroup/job/memory.max": "max\n"},
            8000 * 1024,
        ),
        (
            {
                "proc/self/cgroup": SECOND,
                "sys/fs/cgroup/job/memory.max": "5000\n",
                "sys/fs/cgroup/job/memory.current": "3000\n",
                "sys/fs/cgroup/job/memory.stat": "anon 7\ninactive_file 400\n",
            },
            2400,
        ),
        (
            MEMINFO
            | {
                "proc/self/cgroup": FIRST,
                "sys/fs/cgroup/memory/else/memory.limit_in_bytes": "5000\n",
                "sys/fs/cgroup/memory/else/memory.usage_in_bytes": "3000\n",
            },
            2000,
        ),
    ],
)
def test_memory_left_respects_the_limit_of_a_control_group(machine, files, expected):
    machine(files)
    assert parallel.available_memory() == expected


def test_without_affinity_all_cores_count(machine, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert parallel.available_cores() == 6


def test_joblib_counts_the_same_here(monkeypatch):
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    assert parallel.available_cores() == joblib.cpu_count()


@blas_is_known
def test_blas_is_held_to_one_thread_within_the_context(monkeypatch):
    monkeypatch.setattr(parallel, "_blas_has_one_thread", False)
    with threadpool_limits(2):
        before = blas_threads()
        with parallel.one_blas_thread():
            assert set(blas_threads()) == {1}
        assert blas_threads() == before
    assert before


@blas_is_known
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1)])
def test_contexts_that_overlap_restore_blas_when_the_last_one_ends(monkeypatch, order):
    monkeypatch.setattr(parallel, "_blas_has_one_thread", False)
    inside = threading.Barrier(len(order) + 1)
    may_end = [threading.Event() for _ in order]

    def hold(number: int) -> None:
        with parallel.one_blas_thread():
            inside.wait(PATIENCE_SECONDS)
            may_end[number].wait(PATIENCE_SECONDS)

    with threadpool_limits(2, user_api="blas"):
        before, seen = blas_threads(), []
        holders = [threading.Thread(target=hold, args=(n,)) for n in range(len(order))]
        for holder in holders:
            holder.start()
        inside.wait(PATIENCE_SECONDS)
        for number in order:
            seen.append(set(blas_threads()))
            may_end[number].set()
            holders[number].join(PATIENCE_SECONDS)
        assert blas_threads() == before
    assert set(before) == {2}
    assert seen == [{1}] * 3


@blas_is_known
def test_a_limit_that_another_has_raised_meanwhile_is_held_again(monkeypatch):
    monkeypatch.setattr(parallel, "_blas_has_one_thread", False)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with parallel.one_blas_thread():
            threadpool_limits(3, user_api="blas")  # like a library that was just loaded
            with parallel.one_blas_thread():
                assert set(blas_threads()) == {1}
            assert set(blas_threads()) == {1}
        assert blas_threads() == before


LATE = """
import sys, threadpoolctl
import numpy  # too late for the environment
from resvm_cli.cli import app as cli
n_holders = 0
class Spying(threadpoolctl.ThreadpoolController):
    def __init__(self):
        global n_holders
        super().__init__()
        n_holders += 1
threadpoolctl.ThreadpoolController = Spying
sys.argv[0] = "resvm"
try:
    cli.main()
finally:
    print(n_holders, file=sys.stderr)
"""


@pytest.mark.parametrize("command", ["train", "predict", "tune", "rank"])
def test_every_command_that_computes_holds_it(command, model, problem, tmp_path):
    data = ("-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q")
    few = ("--n-models", 3)
    arguments = {
        "train": (*data, *few, "--no-auto", "-o", tmp_path / "m"),
        "predict": (model, problem / "test.svm"),
        "tune": (*data, *few, "-o", tmp_path / "t", "--trials", 1, "--no-extend"),
        "rank": (*data, "--no-auto"),
    }[command]
    ran = run(script_command(LATE, command, *arguments))
    assert ran.code == 0, ran.err
    assert ran.err.splitlines()[-1] == "1"


@blas_is_known
def test_the_program_holds_it_before_anything_is_imported(model):
    script = (
        "import sys; from resvm_cli.cli import app as cli; sys.argv[0] = 'resvm'\n"
        "try: cli.main()\n"
        "finally:\n"
        "    from threadpoolctl import threadpool_info\n"
        "    print({pool['num_threads'] for pool in threadpool_info()\n"
        "           if pool['user_api'] == 'blas'}, file=sys.stderr)\n"
    )
    many = {f"{name}_NUM_THREADS": "2" for name in ("OPENBLAS", "MKL", "BLIS", "OMP")}
    ran = run(script_command(script, "predict", model), stdin=b"1:1\n", env=many)
    assert ran.err.splitlines()[-1] == "{1}"


NO_LOCKS = """
import threading
from resvm_cli import threads as parallel
from resvm_cli.errors import MachineError

def tasks():
    yield 1
    def no_lock(*_): raise RuntimeError("can't allocate lock")
    threading.Event = no_lock
    yield 2

try:
    print(list(parallel.stream(abs, tasks(), lambda: 1)))
except MachineError as error:
    print(error.message)
"""


def test_a_lock_that_cannot_be_made_is_reported_as_lack_of_memory():
    ran = run(script_command(NO_LOCKS), patience=60)
    assert (ran.code, ran.out, ran.err) == (0, b"out of memory\n", "")


DEAD = """
from resvm_cli import threads as parallel
from resvm_cli.errors import MachineError
parallel.WAIT_SECONDS = 0.05
if {feeder}:
    parallel._Stream._feed = lambda self: None
else:
    parallel._Stream._work = lambda self: None
try:
    print(list(parallel.stream(abs, [1, 2], lambda: 1)))
except MachineError as error:
    print(error.message)
"""


@pytest.mark.parametrize("feeder", [True, False])
def test_a_thread_that_died_is_not_waited_for(feeder):
    ran = run(script_command(DEAD.format(feeder=feeder)), patience=60)
    assert (ran.code, ran.out, ran.err) == (0, b"out of memory\n", "")
