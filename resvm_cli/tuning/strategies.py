"""Grid, random search and successive halving: which candidates compete, with how many members.

Each is a generator: it yields tasks and is sent their scores. Nothing here trains, reads or writes,
and nothing depends on how tasks are run, so a search can be resumed by replaying its scores.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from resvm_cli.tuning.space import Candidate, Space

StrategyName: TypeAlias = Literal["grid", "random", "halving"]
STRATEGY_NAMES: tuple[StrategyName, ...] = get_args(StrategyName)
KEPT_SHARE = 3  # of each round of halving one in so many goes on, with so many times the members
ROUNDS = 3
SAMPLING_KEY = 0x74756E65


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
    bits = np.random.PCG64(np.random.SeedSequence((seed, SAMPLING_KEY, stage)))
    found: dict[Candidate, None] = {}
    for _ in range(20 * count):
        # numpy promises to keep the raw stream, not what its distributions make of it
        shares = (bits.random_raw(len(space.axes)) >> np.uint64(11)) * 2.0**-53
        found[space.candidate(shares.tolist())] = None
        if len(found) == count:
            break
    return list(found)


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
