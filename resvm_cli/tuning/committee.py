"""Informed candidates, and several of them pooled instead of one winner.

No single setting is best on all data, and the one that looks best out of bag is often so by chance:
a fixed list of sensible settings, judged with few members, is pooled by how well each did
(docs/quality.md has the figures).
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
from resvm_cli.tuning.search import Result, best_first
from resvm_cli.tuning.space import Candidate, Space

KEPT = 4  # settings of a committee at most; more of them cost time and gave nothing
TEMPERATURE = 0.03  # of the criterion; smaller ones follow the best more closely
# The untuned setting has this weight beside what its score gives it, less where others are far
# better than it: what is chosen from few rows is not to be trusted alone.
UNTUNED_WEIGHT = 0.6
UNTUNED_FADES = 0.03
UNTUNED_MEMBERS, OTHER_MEMBERS = 50, 20
SINGLE_ERRORS = 3.0  # the one best must beat the untuned setting by so many standard errors
# Rows of U that informed settings are judged on, and room for their kernel matrices.
QUICK_MAX_UNL = 1500
QUICK_GRAM_MB = 150.0


@dataclass(frozen=True)
class Informed:
    """A setting by what it is in proportion to: |P|, n_pos, the usual gamma."""

    share: float  # of |P|: rows of P in a bag
    ratio: float  # rows of U for each of those
    w_pos: float
    gamma: float  # times "scale"
    c_unl: float


_USUAL = (DEFAULT_SHARE, DEFAULT_RATIO, DEFAULT_W_POS)
_LARGE = (1.0, 5.0, 0.5)
_GAMMAS = (0.1, 0.3, 1.0)
# Penalties for kernels without gamma, from where their values can be large to where they are 1 at
# most; of values that are given nothing is known.
_PENALTIES: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
_OF_PRODUCTS, _OF_SIMILARITIES = _PENALTIES[:5], _PENALTIES[2:]


def informed_settings(kernel: Kernel) -> tuple[Informed, ...]:
    """What is worth a trial, the setting without any tuning first."""
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
    """Settings as candidates of this space, the first of them first, none twice.

    Axes that the user gave keep a setting within their ends.
    """
    candidates: dict[Candidate, None] = {}
    for setting in settings:
        n_pos = default_n_pos(n_positives, setting.share)
        most = max(1.0, n_unlabeled / 2 / n_pos)  # so that rows of U stay out of bag
        values = {
            "gamma": setting.gamma * gamma_scale,
            "degree": 3.0,
            "coef0": 0.0,
            "n_pos": float(n_pos),
            "unl_per_pos": min(setting.ratio, most),
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
    """Those of one kernel next to each other, so that they share its matrix; the first stays."""
    kernels = list(dict.fromkeys(candidate.kernel_key for candidate in candidates))
    return sorted(candidates, key=lambda candidate: kernels.index(candidate.kernel_key))


@dataclass(frozen=True)
class Pooled:
    """A candidate that takes part, and with which weight."""

    result: Result
    weight: float
    n_models: int


def pooled(
    results: Sequence[Result],
    untuned: Candidate | None,
    n_models: int | None = None,
    kept: int = KEPT,
    fades: float = UNTUNED_FADES,
) -> list[Pooled]:
    """The untuned candidate and the best of those that are better, weighted by their scores.

    Where the untuned one was not judged, the best of all.
    """
    judged = best_first(results)
    own = [result for result in judged if result.task.candidate == untuned]
    better = [result for result in judged if not own or _score(result) > _score(own[0])]
    chosen = [*own, *better[: kept - len(own)]]
    top = max(map(_score, chosen))
    powers = [math.exp((_score(result) - top) / TEMPERATURE) for result in chosen]
    bonus = UNTUNED_WEIGHT * math.exp((_score(own[0]) - top) / fades) if own else 0.0
    weights = [(1.0 - bonus) * power / sum(powers) for power in powers]
    weights[0] += bonus
    members = _members(n_models, len(chosen), bool(own))
    return [Pooled(*parts) for parts in zip(chosen, weights, members, strict=True)]


def single(
    results: Sequence[Result], untuned: Candidate | None, n_models: int, error: float
) -> Pooled:
    """The best one, if it beats the untuned one by far more than its standard error; else that."""
    judged = best_first(results)
    best = judged[0]
    own = next((result for result in judged if result.task.candidate == untuned), None)
    if own is not None and _score(best) <= _score(own) + SINGLE_ERRORS * error:
        best = own
    return Pooled(best, 1.0, n_models)


def _score(result: Result) -> float:
    return result.score or 0.0


def _members(total: int | None, n_groups: int, has_untuned: bool) -> list[int]:
    """Members for each group, more for the untuned one; so many in all where that was said."""
    usual = [OTHER_MEMBERS] * n_groups
    if has_untuned:
        usual[0] = UNTUNED_MEMBERS
    if total is None:
        return usual
    ends = [round(total * sum(usual[: number + 1]) / sum(usual)) for number in range(n_groups)]
    return [max(1, end - start) for start, end in zip([0, *ends], ends, strict=False)]
