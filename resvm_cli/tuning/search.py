"""Grid search, random search, successive halving and informed search, and what they choose.

A search is a generator: it yields tasks and is sent their scores. Nothing here trains, reads or
writes, so a search is resumed by replaying its scores. Paper, section 4: an optimum on the edge of
the searched region is not accepted. Ties are broken by cost: the smaller bag wins, then the smaller
penalty, then the earlier trial.

No single setting is best on all data, and the setting with the best out-of-bag score is often the
best by chance. So an informed search scores a fixed list of sensible settings with few members
each, and the best are pooled, weighted by their scores (see docs/quality.md for the figures).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from resvm_cli import randomness
from resvm_cli.errors import Message
from resvm_cli.model.plan import (
    DEFAULT_FRACTION,
    DEFAULT_RATIO,
    DEFAULT_W_POS,
    default_n_pos,
)
from resvm_cli.parameters import RELEVANCE, MethodParameters, ScalingName
from resvm_cli.records import dataclass
from resvm_cli.svm.kernels import Kernel
from resvm_cli.tuning.settings import MAX_SETTINGS, TuningSettings
from resvm_cli.tuning.space import Axis, Candidate, Space

HALVING_FACTOR = 3  # one candidate in three continues, with three times the members
ROUNDS = 3
EXTENSION_TRIALS = 5  # an extension draws 1/5 of the initial number of trials per edge
TEMPERATURE = 0.02  # for the criterion; smaller values favor the best more
SETTING_MEMBERS = 15  # of each setting of a committee
SINGLE_ERRORS = 3.0  # standard errors by which the best must beat the untuned setting


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
class Outcome:
    """The result of a search."""

    best: ScoredTask
    results: tuple[ScoredTask, ...]  # with all members
    space: Space  # including extensions
    edges: tuple[Message, ...]  # a remark for each edge on which the best candidate lies
    extensions: int


Search: TypeAlias = Generator[list[ScoringTask], list[ScoredTask], "Outcome | None"]


def search(space: Space, settings: TuningSettings, informed: Sequence[Candidate] = ()) -> Search:
    """Yield tasks, receive their scores, return the outcome; None if nothing could be scored."""
    if settings.search == "informed":
        results = yield from all_at_once(informed, settings.scored_members)
        best = winner(results)
        return None if best is None else Outcome(best, tuple(results), space, (), 0)
    if settings.search == "grid":
        candidates = space.grid()
    else:
        candidates = sampled(space, settings.trials, settings.base.seed, 0)
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
                fresh.update(dict.fromkeys(sampled(slab, count, settings.base.seed, stage)))
        for axis, part in beyond:
            space = space.replaced(axis.joined(part))
        tried = {result.task.candidate for result in results}
        results = results + (
            yield from _compete(
                [candidate for candidate in fresh if candidate not in tried], settings
            )
        )
    return None


def _compete(candidates: list[Candidate], settings: TuningSettings) -> Round:
    if settings.search == "halving":
        return (yield from halving(candidates, settings.scored_members, _order))
    return (yield from all_at_once(candidates, settings.scored_members))


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


@dataclass(frozen=True)
class Informed:
    """A setting expressed relative to |P|, n_pos and gamma="scale"."""

    fraction: float  # rows of P per bag, as a fraction of |P|
    ratio: float  # rows of U per row of P
    w_pos: float
    gamma: float  # a multiple of "scale"
    c_unl: float  # with linear members that --auto adds, a multiple of gamma="scale"
    power: float = 0.0  # of the feature weights; 0 for none
    linear: bool = False
    quantile: bool = False


_USUAL = (DEFAULT_FRACTION, DEFAULT_RATIO, DEFAULT_W_POS)
_LARGE = (1.0, 5.0, 0.5)
_GAMMAS = (0.1, 0.3, 1.0)
# Penalties for kernels without gamma: products can be large, similarities are at most 1, and
# nothing is known about precomputed values.
_PENALTIES: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
_OF_PRODUCTS, _OF_SIMILARITIES = _PENALTIES[:5], _PENALTIES[2:]


def informed_settings(
    base: MethodParameters, fixed: Sequence[str] = (), *, quantiles: bool = False
) -> tuple[Informed, ...]:
    """Return settings worth trying, the untuned one first.

    Parameters in ``fixed`` are as in ``base``; ``quantiles``: also try scaling by quantiles.
    """
    kernel = Kernel(base.kernel)
    untuned = Informed(*_USUAL, 1.0, 1.0)
    if kernel.name == "rbf":
        one_space = [
            *(Informed(*_USUAL, gamma, 1.0) for gamma in (0.3, 1.0, 3.0)),
            *(Informed(*_USUAL, 3.0, 1.0, power) for power in (1.0, 2.0)),
            Informed(*_USUAL, 1.0, 10.0, 1.0, linear=True),
        ]
        large = Informed(*_LARGE, 1.0, 10.0)
        found = [*one_space, Informed(*_LARGE, 0.3, 10.0), large]
        if quantiles:
            found += [replace(setting, quantile=True) for setting in (*one_space, large)]
    elif kernel.uses_gamma:
        pairs = itertools.product(_GAMMAS, (1.0, 10.0, 100.0))
        found = [
            *(Informed(*_USUAL, gamma, 1.0) for gamma in _GAMMAS),
            *(Informed(*_LARGE, gamma, c_unl) for gamma, c_unl in pairs),
        ]
    else:
        penalties = _PENALTIES
        if not kernel.is_precomputed:
            penalties = _OF_PRODUCTS if kernel.known_to_libsvm else _OF_SIMILARITIES
        found = [Informed(*bags, 1.0, c_unl) for bags in (_USUAL, _LARGE) for c_unl in penalties]
    if "kernel" in fixed:
        found = [setting for setting in found if not setting.linear]
    if "feature_weights" in fixed:
        found = [replace(setting, power=0.0) for setting in found]
    return tuple(dict.fromkeys([untuned, *found]))


def informed_candidates(
    settings: Sequence[Informed],
    space: Space,
    n_positives: int,
    n_unlabeled: int,
    gamma_scale: Mapping[ScalingName | None, float],
    given: Sequence[str] = (),
) -> list[Candidate]:
    """Return distinct candidates, the first setting first; given axes limit their values."""
    candidates: dict[Candidate, None] = {}
    for setting in settings:
        n_pos = default_n_pos(n_positives, setting.fraction)
        max_ratio = max(1.0, n_unlabeled / 2 / n_pos)  # leave rows of U out of bag
        scale: ScalingName | None = "quantile" if setting.quantile else None
        values = {
            "gamma": setting.gamma * gamma_scale[scale],
            "degree": 3.0,
            "coef0": 0.0,
            "n_pos": float(n_pos),
            "unl_per_pos": min(setting.ratio, max_ratio),
            "w_pos": setting.w_pos,
            "c_unl": setting.c_unl * (gamma_scale[scale] if setting.linear else 1.0),
        }
        kept = [
            (
                axis.name,
                axis.nearest(values[axis.name]) if axis.name in given else values[axis.name],
            )
            for axis in space.axes
            if not (setting.linear and axis.name == "gamma")
        ]
        candidate = Candidate(
            space.method,
            tuple(kept),
            "linear" if setting.linear else None,
            f"{RELEVANCE}:{setting.power:g}" if setting.power else None,
            scale,
        )
        candidates[candidate] = None
    return _by_kernel(list(candidates))


def _by_kernel(candidates: list[Candidate]) -> list[Candidate]:
    """Group candidates by kernel, so that they share its matrix; the first stays first."""
    kernels = list(dict.fromkeys(candidate.kernel_key for candidate in candidates))
    return sorted(candidates, key=lambda candidate: kernels.index(candidate.kernel_key))


@dataclass(frozen=True)
class Pooled:
    """A candidate of a committee, its weight and its number of members."""

    result: ScoredTask
    weight: float
    n_models: int


def pooled(
    results: Sequence[ScoredTask], n_models: int | None = None, max_settings: int = MAX_SETTINGS
) -> list[Pooled]:
    """Return the best candidates, weighted by their scores."""
    chosen = best_first(results)[:max_settings]
    powers = [math.exp((_score(result) - _score(chosen[0])) / TEMPERATURE) for result in chosen]
    total = SETTING_MEMBERS * len(chosen) if n_models is None else n_models
    ends = [round(total * (number + 1) / len(chosen)) for number in range(len(chosen))]
    members = [max(1, end - start) for start, end in zip([0, *ends], ends, strict=False)]
    return [
        Pooled(result, power / sum(powers), count)
        for result, power, count in zip(chosen, powers, members, strict=True)
    ]


def single(
    results: Sequence[ScoredTask], untuned: Candidate | None, n_models: int, error: float
) -> Pooled:
    """Return the best candidate if it clearly beats the untuned one, else the untuned one."""
    scored = best_first(results)
    best = scored[0]
    own = next((result for result in scored if result.task.candidate == untuned), None)
    if own is not None and _score(best) <= _score(own) + SINGLE_ERRORS * error:
        best = own
    return Pooled(best, 1.0, n_models)


def _score(result: ScoredTask) -> float:
    return result.score or 0.0
