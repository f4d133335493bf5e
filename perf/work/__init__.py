"""The kinds of work, one file each: a TITLE, and ``groups(bench)`` to prepare and yield them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from perf.bench import Bench
from perf.case import Group
from perf.work import analysis, large, million, parse, predict, startup, train, tune


@dataclass(frozen=True)
class Work:
    """One kind of work: one table."""

    title: str
    groups: Callable[[Bench], Iterator[Group]]


KINDS = {
    module.__name__.rpartition(".")[2]: Work(module.TITLE, module.groups)
    for module in (startup, parse, train, predict, large, analysis, million, tune)
}
