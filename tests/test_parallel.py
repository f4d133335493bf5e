"""Tasks run in parallel, results come in order."""

from __future__ import annotations

import threading
import time

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
