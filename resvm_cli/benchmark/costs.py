"""How long the rest of a benchmark will take, by what was measured of it so far."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from resvm_cli.benchmark.cells import Bench, Work
from resvm_cli.benchmark.protocol import BASE_METHODS, MEMBERS, PAPER_FOLDS

EXTENDED = 1.5  # times as many candidates, as ranges are extended


class Costs:
    """Seconds of each kind of work: measured, or as many as its size says beside one that was."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._seconds: dict[tuple[str, str], list[float]] = {}

    @property
    def known(self) -> bool:
        """Whether anything was measured."""
        return bool(self._seconds)

    def add(self, work: Work, seconds: float) -> None:
        self._seconds.setdefault((work.cell.task, work.method), []).append(seconds)

    def left(self, works: Sequence[Work], workers: int) -> str:
        """In words, to follow a noun."""
        if not self._seconds:
            return ""
        rates = [
            sum(seconds) / len(seconds) / self._size(*kind)
            for kind, seconds in self._seconds.items()
        ]
        rate = sum(rates) / len(rates)
        total = 0.0
        for work in works:
            kind = (work.cell.task, work.method)
            known = self._seconds.get(kind)
            total += sum(known) / len(known) if known else rate * self._size(*kind)
        return f", about {_in_words(total / workers)} left"

    def _size(self, task: str, method: str) -> float:
        """Of the work, in no unit: pairs of rows in all bags that are trained."""
        data, protocol = self._bench.data, self._bench.protocol
        if data.own is not None:
            n_pos, n_unl = data.own.n_pos, data.own.n_unl
        else:
            n_pos, n_unl = data.tasks[task].n_pos, data.tasks[task].n_unl
        axes = protocol.grids.of(self._bench.families[task]).axes_of(method, 1.0, n_pos)
        values = {axis.name: axis.points() for axis in axes}
        n_candidates = prod(len(points) for points in values.values())
        base = BASE_METHODS[method]
        members, bag = MEMBERS, float(n_pos)
        if base == "cwsvm":
            members, bag = 1, float(n_pos + n_unl)
        else:
            ratio = max(values.get("unl_per_pos", (1.0,)))
            if base == "resvm":
                bag = max(values.get("n_pos", (bag,)))
            bag *= 1.0 + ratio
        if protocol.name == "search":
            n_candidates = protocol.trials
        return EXTENDED * n_candidates * PAPER_FOLDS * members * bag**2


def _in_words(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
