"""Grid search, random search and successive halving, all of which can extend their ranges.

A search is a generator: it yields tasks and is sent their scores. Nothing here trains, reads or
writes, so a search is resumed by replaying its scores. Paper, section 4: an optimum on the edge of
the searched region is not accepted. Ties are broken by cost: the smaller bag wins, then the smaller
penalty, then the earlier trial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias

from resvm_cli import randomness
from resvm_cli.errors import Message
from resvm_cli.parameters import SearchName
from resvm_cli.records import dataclass
from resvm_cli.tuning.space import Axis, Candidate, Space

HALVING_FACTOR = 3  # one candidate in three continues, with three times the members
ROUNDS = 3
EXTENSION_TRIALS = 5  # an extension draws 1/5 of the initial number of trials per edge


@dataclass(frozen=True)
class ScoringTask:
    """A candidate to be scored with a given number of members."""

    candidate: Candidate
    n_models: int


@dataclass(frozen=True)
class ScoredTask:
    """A task with its score; None if it could not be scored."""

    task: ScoringTask
    score: float | None
    number: int  # of the trial


Round: TypeAlias = Generator[list[ScoringTask], list[ScoredTask], list[ScoredTask]]


def sampled(space: Space, count: int, seed: int, stage: int) -> list[Candidate]:
    """Draw distinct candidates uniformly, or log-uniformly on logarithmic axes."""
    bits = randomness.run_bits(seed, randomness.CANDIDATES, stage)
    candidates: dict[Candidate, None] = {}
    for _ in range(20 * count):
        fractions = randomness.fractions(bits, len(space.axes))
        candidates[space.candidate(fractions.tolist())] = None
        if len(candidates) == count:
            break
    return list(candidates)


def all_at_once(candidates: Sequence[Candidate], n_models: int) -> Round:
    """Score every candidate in one round, with all members."""
    return (yield [ScoringTask(candidate, n_models) for candidate in candidates])


def halving(
    candidates: Sequence[Candidate],
    n_models: int,
    order: Callable[[ScoredTask], tuple[float, ...]],
) -> Round:
    """Start with few members; in each round the best third gets three times as many."""
    remaining = list(candidates)
    for step in range(ROUNDS - 1, -1, -1):
        members = max(1, round(n_models / HALVING_FACTOR**step))
        results = yield [ScoringTask(candidate, members) for candidate in remaining]
        if step == 0 or members == n_models:
            return results
        kept = sorted(results, key=order)[: max(1, -(-len(results) // HALVING_FACTOR))]
        # in the order in which they were drawn, so that candidates of one kernel stay together
        kept.sort(key=lambda result: result.number)
        remaining = [result.task.candidate for result in kept]
    raise AssertionError("the last round returns")


@dataclass(frozen=True)
class SearchSettings:
    """How to search for candidates."""

    search: SearchName
    trials: int
    n_models: int
    max_extensions: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """The result of a search."""

    best: ScoredTask
    results: tuple[ScoredTask, ...]  # with all members
    space: Space  # including extensions
    edges: tuple[Message, ...]  # a remark for each edge on which the best candidate lies
    extensions: int


Search: TypeAlias = Generator[list[ScoringTask], list[ScoredTask], "Outcome | None"]


def search(space: Space, settings: SearchSettings, informed: Sequence[Candidate] = ()) -> Search:
    """Yield tasks, receive their scores, return the outcome; None if nothing could be scored.

    An informed search scores only the given candidates.
    """
    if settings.search == "informed":
        results = yield from all_at_once(informed, settings.n_models)
        best = winner(results)
        return None if best is None else Outcome(best, tuple(results), space, (), 0)
    if settings.search == "grid":
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
            if settings.search == "grid":
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
    if settings.search == "halving":
        return (yield from halving(candidates, settings.n_models, _order))
    return (yield from all_at_once(candidates, settings.n_models))


def winner(results: Sequence[ScoredTask]) -> ScoredTask | None:
    """Return the best result, or None if no candidate could be scored."""
    return next(iter(best_first(results)), None)


def best_first(results: Sequence[ScoredTask]) -> list[ScoredTask]:
    """Return the results that have a score, best first."""
    return sorted((result for result in results if result.score is not None), key=_order)


def _order(result: ScoredTask) -> tuple[float, ...]:
    """Return a sort key: the best score first, then the cheapest candidate."""
    score = math.inf if result.score is None else -result.score
    candidate = result.task.candidate
    bag = (candidate["n_pos"] or 1.0) * (1.0 + (candidate["unl_per_pos"] or 0.0))
    return score, bag, candidate["c_unl"] or 0.0, float(result.number)


def _remark(axis: Axis, side: int, at_limit: bool) -> Message:
    text = "{" + axis.name + "}: the best value lies on the {end} edge of {axis}"
    text += ", which cannot be extended" if at_limit else ""
    return Message(text, end="lower" if side < 0 else "upper", axis=axis)
