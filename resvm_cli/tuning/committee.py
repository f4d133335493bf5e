"""Informed candidates, and committees that pool several of them instead of choosing one.

No single setting is best on all data, and the setting with the best out-of-bag score is often the
best by chance. So a fixed list of sensible settings is scored with few members each, and the best
are pooled, weighted by their scores (see docs/quality.md for the figures).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from resvm_cli.model.plan import (
    DEFAULT_FRACTION,
    DEFAULT_RATIO,
    DEFAULT_W_POS,
    default_n_pos,
)
from resvm_cli.parameters import RELEVANCE, MethodParameters, MetricName, ScalingName
from resvm_cli.records import dataclass
from resvm_cli.svm.kernels import Kernel
from resvm_cli.tuning.search import ScoredTask, best_first
from resvm_cli.tuning.space import Candidate, Space

MAX_SETTINGS = 6  # per committee; more take longer and are no better
TEMPERATURE = 0.02  # for the criterion; smaller values favor the best more
INFORMED_METRIC: MetricName = "roc_auc_of_mean"  # of the values that a committee ranks by
SETTING_MEMBERS = 15
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
    base: MethodParameters, fixed: Sequence[str] = (), others: Sequence[ScalingName] = ()
) -> tuple[Informed, ...]:
    """Return settings worth trying, the untuned one first.

    Parameters in ``fixed`` are as in ``base``; ``others`` are scalings to try besides the data's.
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
        if others:
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
    """Return the settings as distinct candidates of this space; the first stays first.

    If the user gave an axis, values are replaced by the nearest value on that axis.
    """
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
