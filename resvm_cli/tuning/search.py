"""Grid, random search and successive halving; ranges whose edge wins are extended.

A search is a generator: it yields tasks and is sent their scores. Nothing here trains, reads or
writes, and nothing depends on how tasks are run, so a search can be resumed by replaying its
scores. Paper, section 4: an optimum on the edge of the searched region is not accepted. Equal
scores are decided by cost: the smaller bag wins, then the smaller penalty, then the earlier trial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from resvm_cli import randomness
from resvm_cli.errors import Message
from resvm_cli.parameters import SearchName
from resvm_cli.tuning.space import Axis, Candidate, Space

KEPT_SHARE = 3  # of each round of halving one in so many goes on, with so many times the members
ROUNDS = 3
EXTENSION_TRIALS = 5  # one in so many of the first trials, for each edge


@dataclass(frozen=True)
class Task:
    """A candidate to be judged with so many members."""

    candidate: Candidate
    n_models: int


@dataclass(frozen=True)
class Result:
    """What became of a task; no score where it could not be judged."""

    task: Task
    score: float | None
    number: int  # of the trial


Round: TypeAlias = Generator[list[Task], list[Result], list[Result]]


def sampled(space: Space, count: int, seed: int, stage: int) -> list[Candidate]:
    """Candidates drawn uniformly, on logarithmic axes in the logarithm; none twice."""
    bits = randomness.run_bits(seed, randomness.CANDIDATES, stage)
    candidates: dict[Candidate, None] = {}
    for _ in range(20 * count):
        shares = randomness.fractions(bits, len(space.axes))
        candidates[space.candidate(shares.tolist())] = None
        if len(candidates) == count:
            break
    return list(candidates)


def all_at_once(candidates: Sequence[Candidate], n_models: int) -> Round:
    """Every candidate with all members."""
    return (yield [Task(candidate, n_models) for candidate in candidates])


def halving(
    candidates: Sequence[Candidate],
    n_models: int,
    order: Callable[[Result], tuple[float, ...]],
) -> Round:
    """Few members first; the best third goes on with three times as many."""
    remaining = list(candidates)
    for step in range(ROUNDS - 1, -1, -1):
        members = max(1, round(n_models / KEPT_SHARE**step))
        results = yield [Task(candidate, members) for candidate in remaining]
        if step == 0 or members == n_models:
            return results
        kept = sorted(results, key=order)[: max(1, -(-len(results) // KEPT_SHARE))]
        # back to the order in which they were drawn: candidates of one kernel stay together
        kept.sort(key=lambda result: result.number)
        remaining = [result.task.candidate for result in kept]
    raise AssertionError("the last round returns")


@dataclass(frozen=True)
class SearchSettings:
    """How to search."""

    strategy: SearchName
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
    edges: tuple[Message, ...]  # remarks on edges that the best lies on
    extensions: int


Search: TypeAlias = Generator[list[Task], list[Result], "Outcome | None"]


def search(space: Space, settings: SearchSettings, informed: Sequence[Candidate] = ()) -> Search:
    """Yield tasks, take their results, return where it ended; None if nothing could be judged.

    The strategy of informed candidates is given them, and goes no further.
    """
    if settings.strategy == "informed":
        results = yield from all_at_once(informed, settings.n_models)
        best = winner(results)
        return None if best is None else Outcome(best, tuple(results), space, (), 0)
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
            yield from _compete(
                [candidate for candidate in fresh if candidate not in tried], settings
            )
        )
    return None


def _compete(candidates: list[Candidate], settings: SearchSettings) -> Round:
    if settings.strategy == "halving":
        return (yield from halving(candidates, settings.n_models, _order))
    return (yield from all_at_once(candidates, settings.n_models))


def winner(results: Sequence[Result]) -> Result | None:
    """The best result, if any could be judged."""
    return next(iter(best_first(results)), None)


def best_first(results: Sequence[Result]) -> list[Result]:
    """Those that could be judged."""
    return sorted((result for result in results if result.score is not None), key=_order)


def _order(result: Result) -> tuple[float, ...]:
    """Ascending: the best score first, then the cheapest."""
    score = math.inf if result.score is None else -result.score
    candidate = result.task.candidate
    bag = (candidate["n_pos"] or 1.0) * (1.0 + (candidate["unl_per_pos"] or 0.0))
    return score, bag, candidate["c_unl"] or 0.0, float(result.number)


def _remark(axis: Axis, side: int, at_limit: bool) -> Message:
    text = "{" + axis.name + "}: the best value lies on the {end} edge of {axis}"
    text += ", which is as far as it goes" if at_limit else ""
    return Message(text, end="lower" if side < 0 else "upper", axis=axis)
