"""Informed candidates, and committees that pool several of them instead of choosing one.

No single setting is best on all data, and the setting with the best out-of-bag score is often the
best by chance. So a fixed list of sensible settings is scored with few members each, and the best
are pooled, weighted by their scores (see docs/quality.md for the figures).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from resvm_cli.model.plan import (
    DEFAULT_FRACTION,
    DEFAULT_RATIO,
    DEFAULT_W_POS,
    default_n_pos,
)
from resvm_cli.svm.kernels import Kernel
from resvm_cli.tuning.search import ScoredTask, best_first
from resvm_cli.tuning.space import Candidate, Space

MAX_SETTINGS = 4  # per committee; more take longer and are no better
TEMPERATURE = 0.03  # for the criterion; smaller values favor the best more
# The untuned setting gets this weight in addition to the weight for its score, and less if others
# are far better: a choice based on few rows should not be trusted alone.
UNTUNED_WEIGHT = 0.6
UNTUNED_FADES = 0.03
UNTUNED_MEMBERS, OTHER_MEMBERS = 50, 20
SINGLE_ERRORS = 3.0  # standard errors by which the best must beat the untuned setting
# Rows of U that informed settings are scored on, and memory for their kernel values.
QUICK_MAX_UNL = 1500
QUICK_GRAM_MB = 150.0


@dataclass(frozen=True)
class Informed:
    """A setting expressed relative to |P|, n_pos and gamma="scale"."""

    fraction: float  # rows of P per bag, as a fraction of |P|
    ratio: float  # rows of U per row of P
    w_pos: float
    gamma: float  # a multiple of "scale"
    c_unl: float


_USUAL = (DEFAULT_FRACTION, DEFAULT_RATIO, DEFAULT_W_POS)
_LARGE = (1.0, 5.0, 0.5)
_GAMMAS = (0.1, 0.3, 1.0)
# Penalties for kernels without gamma: products can be large, similarities are at most 1, and
# nothing is known about precomputed values.
_PENALTIES: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
_OF_PRODUCTS, _OF_SIMILARITIES = _PENALTIES[:5], _PENALTIES[2:]


def informed_settings(kernel: Kernel) -> tuple[Informed, ...]:
    """Return settings worth trying, the untuned one first."""
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
    """Return the settings as distinct candidates of this space; the first stays first.

    If the user gave an axis, values are replaced by the nearest value on that axis.
    """
    candidates: dict[Candidate, None] = {}
    for setting in settings:
        n_pos = default_n_pos(n_positives, setting.fraction)
        max_ratio = max(1.0, n_unlabeled / 2 / n_pos)  # leave rows of U out of bag
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
    results: Sequence[ScoredTask],
    untuned: Candidate | None,
    n_models: int | None = None,
    max_settings: int = MAX_SETTINGS,
    fades: float = UNTUNED_FADES,
) -> list[Pooled]:
    """Return the untuned candidate and the best of those that beat it, weighted by their scores.

    If the untuned candidate has no score, return the best of all candidates.
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
    """Return the best candidate if it clearly beats the untuned one, else the untuned one.

    Clearly means by at least ``SINGLE_ERRORS`` standard errors.
    """
    scored = best_first(results)
    best = scored[0]
    own = next((result for result in scored if result.task.candidate == untuned), None)
    if own is not None and _score(best) <= _score(own) + SINGLE_ERRORS * error:
        best = own
    return Pooled(best, 1.0, n_models)


def _score(result: ScoredTask) -> float:
    return result.score or 0.0


def _members(total: int | None, n_groups: int, has_untuned: bool) -> list[int]:
    """Return members per setting, more for the untuned one; they add up to ``total`` if given."""
    usual = [OTHER_MEMBERS] * n_groups
    if has_untuned:
        usual[0] = UNTUNED_MEMBERS
    if total is None:
        return usual
    ends = [round(total * sum(usual[: number + 1]) / sum(usual)) for number in range(n_groups)]
    return [max(1, end - start) for start, end in zip([0, *ends], ends, strict=False)]
