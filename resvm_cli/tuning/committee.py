"""Informed candidates, and several of them pooled instead of one winner.

No single setting is best on all data, and the one that looks best out of bag is often so by chance:
a fixed list of sensible settings, judged with few members, is pooled by how well each did
(docs/quality.md has the figures).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from resvm_cli.ensemble.methods import (
    DEFAULT_RATIO,
    DEFAULT_SHARE,
    DEFAULT_W_POS,
    default_n_pos,
)
from resvm_cli.tuning.search import Result, best_first
from resvm_cli.tuning.space import Candidate, Space

KEPT = 10
MEMBERS = 200  # of a committee in all
TEMPERATURE = 0.03  # of the criterion; smaller ones follow the best more closely
# Rows of U that informed settings are judged on, and room for their kernel matrices.
QUICK_MAX_UNL = 2000
QUICK_GRAM_MB = 150.0
DEFAULT_WEIGHT = 0.2  # of the untuned setting, whatever it scored


@dataclass(frozen=True)
class Informed:
    """A setting by what it is in proportion to: |P|, n_pos, the usual gamma."""

    share: float  # of |P|: rows of P in a bag
    ratio: float  # rows of U for each of those
    w_pos: float
    gamma: float  # times "scale"
    c_unl: float


_HALF = (0.5, 5.0, 0.5)
_WHOLE = (1.0, 2.0, 0.5)
_EVEN = (0.5, 5.0, 1.0)
# The first is the setting without any tuning.
INFORMED = (
    Informed(DEFAULT_SHARE, DEFAULT_RATIO, DEFAULT_W_POS, 1.0, 1.0),
    Informed(*_HALF, 1.0, 1.0),
    Informed(*_WHOLE, 1.0, 1.0),
    Informed(*_EVEN, 1.0, 1.0),
    Informed(1.0, 5.0, 0.5, 1.0, 1.0),
    Informed(*_HALF, 0.3, 1.0),
    Informed(*_EVEN, 0.3, 1.0),
    Informed(*_WHOLE, 0.3, 1.0),
    Informed(*_HALF, 0.1, 0.1),
    Informed(*_HALF, 0.1, 10.0),
    Informed(*_WHOLE, 0.1, 10.0),
    Informed(*_HALF, 0.3, 10.0),
    Informed(*_WHOLE, 0.3, 10.0),
    Informed(*_WHOLE, 1.0, 10.0),
    Informed(*_HALF, 1.0, 10.0),
    Informed(*_HALF, 3.0, 1.0),
    Informed(*_WHOLE, 3.0, 1.0),
    Informed(*_HALF, 0.03, 100.0),
    Informed(*_WHOLE, 0.1, 100.0),
    Informed(*_WHOLE, 0.3, 100.0),
    Informed(*_WHOLE, 3.0, 10.0),
)


def informed_candidates(
    space: Space, n_positives: int, n_unlabeled: int, gamma_scale: float, given: Sequence[str] = ()
) -> list[Candidate]:
    """The informed settings as candidates of this space, the untuned one first, none twice.

    Axes that the user gave keep a setting within their ends.
    """
    candidates: dict[Candidate, None] = {}
    for setting in INFORMED:
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
    results: Sequence[Result], untuned: Candidate | None, n_models: int, kept: int = KEPT
) -> list[Pooled]:
    """The best ones and the untuned one, weighted by their scores."""
    judged = best_first(results)
    best = judged[:kept]
    if all(result.task.candidate != untuned for result in best):
        best += [result for result in judged if result.task.candidate == untuned]
    top = best[0].score or 0.0
    powers = [math.exp(((result.score or 0.0) - top) / TEMPERATURE) for result in best]
    has_untuned = any(result.task.candidate == untuned for result in best)
    share = 1.0 - DEFAULT_WEIGHT if has_untuned else 1.0
    members = _shared_out(n_models, len(best))
    return [
        Pooled(
            result,
            share * power / sum(powers)
            + (1.0 - share if result.task.candidate == untuned else 0.0),
            count,
        )
        for result, power, count in zip(best, powers, members, strict=True)
    ]


def single(
    results: Sequence[Result], untuned: Candidate | None, n_models: int, error: float
) -> Pooled:
    """The best one, if it beats the untuned one by its standard error; else that one."""
    judged = best_first(results)
    best = judged[0]
    own = next((result for result in judged if result.task.candidate == untuned), None)
    if own is not None and (best.score or 0.0) <= (own.score or 0.0) + error:
        best = own
    return Pooled(best, 1.0, n_models)


def _shared_out(total: int, n_groups: int) -> list[int]:
    """Members for each group, the best ones first to get what is left over."""
    total = max(total, n_groups)
    return [total // n_groups + (number < total % n_groups) for number in range(n_groups)]
