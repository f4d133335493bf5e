"""A whole search: candidates compete, and ranges whose edge wins are extended.

Paper, section 4: an optimum on the edge of the searched region is not accepted. Equal scores are
decided by cost: the smaller bag wins, then the smaller penalty, then the earlier trial.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias

from resvm_cli.tuning.space import Axis, Candidate, Space
from resvm_cli.tuning.strategies import (
    Result,
    Round,
    StrategyName,
    Task,
    all_at_once,
    halving,
    sampled,
)

EXTENSION_TRIALS = 5  # one in so many of the first trials, for each edge


@dataclass(frozen=True)
class Settings:
    """How to search."""

    strategy: StrategyName
    trials: int
    n_models: int
    max_extensions: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """Where a search ended."""

    best: Result
    results: tuple[Result, ...]  # those with all members
    space: Space  # as far as it was extended
    edges: tuple[str, ...]  # remarks on edges that the best lies on
    extensions: int


Search: TypeAlias = Generator[list[Task], list[Result], "Outcome | None"]


def search(space: Space, settings: Settings) -> Search:
    """Yield tasks, take their results, return where it ended; None if nothing could be judged."""
    if settings.strategy == "grid":
        candidates = space.grid()
    else:
        candidates = sampled(space, settings.trials, settings.seed, 0)
    results = yield from _compete(candidates, settings)
    extensions = 0
    while best := winner(results):
        edges = space.edges(best.task.candidate)
        parts = [(axis, axis.beyond(side)) for axis, side in edges]
        beyond = [(axis, part) for axis, part in parts if part is not None]
        if not beyond or extensions >= settings.max_extensions:
            remarks = tuple(
                _remark(axis, side, part is None)
                for (axis, side), (_, part) in zip(edges, parts, strict=True)
            )
            return Outcome(best, tuple(results), space, remarks, extensions)
        extensions += 1
        fresh: dict[Candidate, None] = {}
        for axis, part in beyond:
            slab = space.replaced(part)
            if settings.strategy == "grid":
                fresh.update(dict.fromkeys(slab.grid()))
            else:
                count = max(4, settings.trials // EXTENSION_TRIALS)
                stage = 100 * extensions + space.axes.index(axis)
                fresh.update(dict.fromkeys(sampled(slab, count, settings.seed, stage)))
        for axis, part in beyond:
            space = space.replaced(axis.joined(part))
        tried = {result.task.candidate for result in results}
        results = results + (
            yield from _compete([one for one in fresh if one not in tried], settings)
        )
    return None


def _compete(candidates: list[Candidate], settings: Settings) -> Round:
    if settings.strategy == "halving":
        return (yield from halving(candidates, settings.n_models, _order))
    return (yield from all_at_once(candidates, settings.n_models))


def winner(results: list[Result]) -> Result | None:
    """The best result, if any could be judged."""
    judged = [result for result in results if result.score is not None]
    return min(judged, key=_order) if judged else None


def _order(result: Result) -> tuple[float, ...]:
    """Ascending: the best score first, then the cheapest."""
    score = math.inf if result.score is None else -result.score
    candidate = result.task.candidate
    bag = (candidate["n_pos"] or 1.0) * (1.0 + (candidate["unl_per_pos"] or 0.0))
    return score, bag, candidate["c_unl"] or 0.0, float(result.number)


def _remark(axis: Axis, side: int, at_limit: bool) -> str:
    end = "lower" if side < 0 else "upper"
    text = f"{axis.option}: the best lies on the {end} edge of {axis}"
    return text + (", which is as far as it goes" if at_limit else "")
