"""One object carries threads, progress, notices and the cluster."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resvm_cli import threads as parallel
from resvm_cli.run import Run, Share, as_ranges, shares_holding


class Elsewhere:
    """An engine that runs tasks locally and records its arguments."""

    n_workers = 7

    def __init__(self) -> None:
        self.names: list[str] = []

    def run(
        self,
        function: Callable[[Any, Any], Any],
        shared: Any,
        tasks: Iterable[Any],
        tick: Callable[[], None],
        name: Callable[[int], str],
    ) -> Iterator[Any]:
        for number, task in enumerate(tasks):
            self.names.append(name(number))
            tick()
            yield function(shared, task)


def test_warnings_and_notes_are_told_and_kept():
    told: list[tuple[str, str]] = []
    run = Run(on_message=lambda kind, text: told.append((kind, text)))
    run.note("two threads")
    run.warn("few rows")
    assert told == [("note", "two threads"), ("warning", "few rows")]
    assert (run.notes, run.warnings) == (["two threads", "few rows"], ["few rows"])


def test_copies_of_a_run_share_its_notes_but_a_silent_one_tells_nobody():
    told: list[Any] = []
    run = Run(
        jobs=3,
        on_progress=lambda *one: told.append(one),
        on_message=lambda *one: told.append(one),
    )
    silent = run.silent()
    silent.progress("training", 1, 2)
    silent.warn("unheard")
    assert told == []
    assert silent.jobs == 3
    replace(run, jobs=2).warn("shared")
    assert (run.notes, told) == (["shared"], [("warning", "shared")])


def test_a_run_without_listeners_may_be_told_anything():
    run = Run()
    run.progress("reading", 1, None)
    run.note("a")
    run.warn("b")
    assert run.notes == ["a", "b"]


def test_workers_are_those_asked_for_or_of_the_cluster_or_the_cores_here(monkeypatch):
    monkeypatch.setattr(parallel, "available_cores", lambda: 5)
    far = Elsewhere()
    assert (Run().workers(), Run(jobs=2).workers()) == (5, 2)
    assert (Run(engine=far).workers(), Run(jobs=2, engine=far).workers()) == (7, 2)
    assert (Run(engine=far).threads(), Run(jobs=2, engine=far).threads()) == (5, 2)
    assert (Run().is_remote, Run(engine=far).is_remote) == (False, True)


@pytest.mark.parametrize("engine", [None, Elsewhere()], ids=["threads", "cluster"])
def test_shared_tasks_give_their_results_in_order_wherever_they_run(engine):
    run = Run(jobs=2, engine=engine)
    expected = [10 + number for number in range(20)]
    assert list(run.map_shared(operator.add, 10, range(20))) == expected
    assert list(run.map_shared(operator.add, 10, iter(range(20)))) == expected


def test_the_cluster_hears_what_tasks_are_called():
    far = Elsewhere()
    list(Run(engine=far).map_shared(operator.add, 1, [2, 3], name=lambda place: f"member {place}"))
    list(Run(engine=far).map_shared(operator.add, 1, iter([2])))
    assert far.names == ["member 0", "member 1", "task 1"]


def test_a_run_never_leaves_its_process():
    with pytest.raises(TypeError, match="a Run cannot be pickled"):
        pickle.dumps(Run())


@given(st.integers(0, 200), st.integers(1, 60))
def test_shares_are_the_whole_each_place_once_and_even(total, count):
    shares = [Share(number, count).of(total) for number in range(1, count + 1)]
    assert [place for share in shares for place in share] == list(range(total))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_shares_that_hold_places_are_named_as_an_array_takes_them():
    assert as_ranges(shares_holding([0, 11, 12, 49], 50, 4)) == "1-2,4"
