"""Batches of tasks, without a cluster."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from resvm_cli.cluster.batches import AHEAD, MAX_LOST, Batch, Batches, BatchResult, Shared


def finish(batches: Batches, batch: Batch, seconds: float = 0.01) -> list[int]:
    """Return the results that are ready after this batch."""
    batches.done(batch, BatchResult([10 * task for task in batch.tasks], "worker", seconds))
    return list(batches.ready())


def taken(batches: Batches, n_running: int = 0, n_threads: int = 1) -> Batch:
    batch = batches.next(n_running, n_threads)
    assert batch is not None
    return batch


def test_results_are_given_in_task_order():
    batches = Batches(range(3))
    first, second, third = (taken(batches) for _ in range(3))
    assert finish(batches, third) == []
    assert finish(batches, first) == [0]
    assert finish(batches, second) == [10, 20]
    assert batches.next(0, 1) is None


@pytest.mark.parametrize("tasks", [range(1000), iter(range(1000))])
def test_a_batch_takes_about_a_second(tasks):
    batches = Batches(tasks)
    finish(batches, taken(batches), 0.01)
    batch = taken(batches)
    assert (batch.first, len(batch.tasks)) == (1, 100)
    finish(batches, batch, 9.99)  # slower than expected
    assert len(taken(batches).tasks) == 10


def test_the_last_tasks_are_divided_among_the_workers():
    batches = Batches(range(41))
    finish(batches, taken(batches), 0.001)
    assert len(taken(batches, n_threads=5).tasks) == 40 // (5 * AHEAD) + 1


def test_no_more_batches_run_than_workers_need():
    batches = Batches(range(100))
    assert batches.next(AHEAD * 3 - 1, 3) is not None
    assert batches.next(AHEAD * 3, 3) is None


def test_a_batch_that_is_lost_runs_again():
    batches = Batches(range(2))
    first = taken(batches)
    assert batches.lost(first)
    again = taken(batches)
    assert (again.first, again.tasks, again.n_lost) == (0, [0], 1)


def test_the_task_at_fault_is_found_by_running_tasks_alone():
    batches = Batches(range(4))
    finish(batches, taken(batches), 0.25)
    batch = taken(batches)
    assert batch.tasks == [1, 2]
    assert batches.lost(batch, MAX_LOST)
    assert batches.next(1, 8) is None  # something else is running
    first = taken(batches)
    assert (first.tasks, first.alone) == ([1], True)
    assert finish(batches, first) == [10]
    second = taken(batches)
    for _ in range(MAX_LOST - 1):
        assert second.alone
        assert batches.lost(second)
        second = taken(batches)
    assert not batches.lost(second)
    assert second.first == 2


def test_what_is_shared_travels_as_bytes_so_that_its_arrays_are_aligned():
    pytest.importorskip("distributed")
    buffers: list[pickle.PickleBuffer] = []
    values = np.arange(5.0)
    text = pickle.dumps(Shared([values]), protocol=5, buffer_callback=buffers.append)
    assert not buffers  # Dask would place them at unaligned addresses
    (found,) = pickle.loads(text).value
    assert found.flags.aligned
    assert found.flags.writeable
    assert found.tolist() == values.tolist()
