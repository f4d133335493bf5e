"""Informed candidates, and several of them pooled instead of one winner.

No single setting is best on all data, and the one that looks best out of bag often does so by
chance. So a fixed list of sensible settings is scored with few members each, and the best are
pooled with weights by their scores (docs/quality.md has the figures).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from resvm_cli.model.methods import (
    DEFAULT_RATIO,
    DEFAULT_SHARE,
    DEFAULT_W_POS,
    default_n_pos,
)
from resvm_cli.svm.kernels import Kernel
from resvm_cli.tuning.search import ScoredTask, best_first
from resvm_cli.tuning.space import Candidate, Space

MAX_SETTINGS = 4  # of a committee; more cost time and gained nothing
TEMPERATURE = 0.03  # of the criterion; smaller values favor the best more
# The untuned setting gets this weight on top of that for its score, less where others are far
# better: what is chosen from few rows should not be trusted alone.
UNTUNED_WEIGHT = 0.6
UNTUNED_FADES = 0.03
UNTUNED_MEMBERS, OTHER_MEMBERS = 50, 20
SINGLE_ERRORS = 3.0  # by which the single best must beat the untuned setting
# Rows of U that informed settings are scored on, and memory for their kernel values.
QUICK_MAX_UNL = 1500
QUICK_GRAM_MB = 150.0


@dataclass(frozen=True)
class Informed:
    """A setting relative to the data: to |P|, n_pos and gamma="scale"."""

    fraction: float  # of |P|: rows of P per bag
    ratio: float  # rows of U per row of P
    w_pos: float
    gamma: float  # times "scale"
    c_unl: float


_USUAL = (DEFAULT_SHARE, DEFAULT_RATIO, DEFAULT_W_POS)
_LARGE = (1.0, 5.0, 0.5)
_GAMMAS = (0.1, 0.3, 1.0)
# Penalties for kernels without gamma: products can be large, similarities are at most 1, and
# nothing is known about precomputed values.
_PENALTIES: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
_OF_PRODUCTS, _OF_SIMILARITIES = _PENALTIES[:5], _PENALTIES[2:]


def informed_settings(kernel: Kernel) -> tuple[Informed, ...]:
    """Settings worth trying, the untuned one first."""
    if kernel.uses_gamma:
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
    return tuple(dict.fromkeys([Informed(*_USUAL, 1.0, 1.0), *found]))


def informed_candidates(
    settings: Sequence[Informed],
    space: Space,
    n_positives: int,
    n_unlabeled: int,
    gamma_scale: float,
    given: Sequence[str] = (),
) -> list[Candidate]:
    """Settings as candidates of this space, without repetition; the first stays first.

    Where the user gave an axis, values are moved to its nearest one.
    """
    candidates: dict[Candidate, None] = {}
    for setting in settings:
        n_pos = default_n_pos(n_positives, setting.fraction)
        max_ratio = max(1.0, n_unlabeled / 2 / n_pos)  # so that rows of U stay out of bag
        values = {
            "gamma": setting.gamma * gamma_scale,
            "degree": 3.0,
            "coef0": 0.0,
            "n_pos": float(n_pos),
            "unl_per_pos": min(setting.ratio, max_ratio),
            "w_pos": setting.w_pos,
            "c_unl": setting.c_unl,
        }
        kept = [
            (
                axis.name,
                axis.nearest(values[axis.name]) if axis.name in given else values[axis.name],
            )
            for axis in space.axes
        ]
        candidates[Candidate(space.method, tuple(kept))] = None
    return _by_kernel(list(candidates))


def _by_kernel(candidates: list[Candidate]) -> list[Candidate]:
    """Candidates of one kernel together, so that they share its matrix; the first stays first."""
    kernels = list(dict.fromkeys(candidate.kernel_key for candidate in candidates))
    return sorted(candidates, key=lambda candidate: kernels.index(candidate.kernel_key))


@dataclass(frozen=True)
class Pooled:
    """A candidate of a committee, its weight and its members."""

    result: ScoredTask
    weight: float
    n_models: int


def pooled(
    results: Sequence[ScoredTask],
    untuned: Candidate | None,
    n_models: int | None = None,
    max_settings: int = MAX_SETTINGS,
    fades: float = UNTUNED_FADES,
) -> list[Pooled]:
    """The untuned candidate and the best of those that beat it, weighted by their scores.

    Where the untuned one has no score, the best of all.
    """
    scored = best_first(results)
    own = [result for result in scored if result.task.candidate == untuned]
    better = [result for result in scored if not own or _score(result) > _score(own[0])]
    chosen = [*own, *better[: max_settings - len(own)]]
    top = max(map(_score, chosen))
    powers = [math.exp((_score(result) - top) / TEMPERATURE) for result in chosen]
    bonus = UNTUNED_WEIGHT * math.exp((_score(own[0]) - top) / fades) if own else 0.0
    weights = [(1.0 - bonus) * power / sum(powers) for power in powers]
    weights[0] += bonus
    members = _members(n_models, len(chosen), bool(own))
    return [Pooled(*parts) for parts in zip(chosen, weights, members, strict=True)]


def single(
    results: Sequence[ScoredTask], untuned: Candidate | None, n_models: int, error: float
) -> Pooled:
    """The best one if it beats the untuned one by several standard errors, else the untuned one."""
    scored = best_first(results)
    best = scored[0]
    own = next((result for result in scored if result.task.candidate == untuned), None)
    if own is not None and _score(best) <= _score(own) + SINGLE_ERRORS * error:
        best = own
    return Pooled(best, 1.0, n_models)


def _score(result: ScoredTask) -> float:
    return result.score or 0.0


def _members(total: int | None, n_groups: int, has_untuned: bool) -> list[int]:
    """Members per setting, more for the untuned one; ``total`` in all where it is given."""
    usual = [OTHER_MEMBERS] * n_groups
    if has_untuned:
        usual[0] = UNTUNED_MEMBERS
    if total is None:
        return usual
    ends = [round(total * sum(usual[: number + 1]) / sum(usual)) for number in range(n_groups)]
    return [max(1, end - start) for start, end in zip([0, *ends], ends, strict=False)]
