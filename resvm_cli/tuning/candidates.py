"""How hyperparameters are searched, which settings are tried, and which trials are chosen.

A search is a generator: it yields candidates and is sent their trials. Nothing here trains members
or accesses files, so a search can be resumed by replaying its trials. An optimum on the edge of the
searched region is not accepted (paper, section 4). Ties are broken by cost: the smaller bag wins,
then the smaller penalty, then the earlier trial.

No single setting is best on all data, and the setting with the best out-of-bag score is often best
only by chance. Therefore, an informed search scores a fixed list of settings that work well on most
data, with few members each. It then pools the best settings, weighted by their scores (see
docs/quality.md for the figures).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, field, replace
from typing import Any, TypeAlias

import numpy as np

from resvm_cli import randomness
from resvm_cli.ensemble.plan import DEFAULT_FRACTION, DEFAULT_RATIO, DEFAULT_W_POS, default_n_pos
from resvm_cli.errors import ParameterError
from resvm_cli.parameter_types import Parameter, check_values
from resvm_cli.parameters import (
    RELEVANCE,
    SHARED_NAMES,
    TABLE,
    TUNING_TABLE,
    KernelName,
    Params,
    ScalingName,
    TuningParameters,
)
from resvm_cli.records import dataclass
from resvm_cli.svm.kernels import Kernel
from resvm_cli.tuning.space import AXIS_NAMES, Axis, Candidate, Space, parse_axis

DEFAULT_MEMBERS = 50
SCREENING_MEMBERS = 8  # members used to score an informed candidate
MAX_SETTINGS = 6  # per committee; a larger one takes longer and is no better
# Defaults of an informed search: the criterion for ranking settings, how many rows of U are scored,
# and how much memory kernel values may take.
INFORMED: dict[str, Any] = {
    "search": "informed",
    "metric": "roc_auc_of_mean",
    "max_unl": 1500,
    "gram_mb": 150.0,
}
BASE_NAMES = ("method", *SHARED_NAMES, "scale")
TUNING_NAMES = (*BASE_NAMES, *AXIS_NAMES, *TUNING_TABLE)
EXTENSION_TRIALS = 5  # an extension draws 1/5 of the initial number of trials per edge
TEMPERATURE = 0.02  # of the softmax weights; a lower one favors the best settings more
LOW_RECALL = 0.17  # below this mean recall of P, w_pos follows it, up to MAX_W_POS
MAX_W_POS = 2.0
SETTING_MEMBERS = 15  # members of each pooled setting


@dataclass(frozen=True, kw_only=True)
class SearchOptions(TuningParameters):
    """The parameters of tuning, with the ranges to search."""

    base: Params = field(default_factory=Params)  # shared by all candidates; set values are kept
    axes: tuple[Axis, ...] = ()
    oob: bool = False  # score out of bag, at a tenth of the cost of ten folds
    max_unl: int = 5000  # rows of U on which candidates are scored, drawn at random
    max_extensions: int = 3  # how many times ranges may be extended
    gram_mb: float = 1024.0  # memory for kernel values that candidates share

    @property
    def scored_members(self) -> int:
        """The number of members used to score a candidate."""
        n_models = self.n_models or DEFAULT_MEMBERS
        return min(n_models, SCREENING_MEMBERS) if self.search == "informed" else n_models

    def check(self) -> None:
        """Reject settings that cannot work, before any file is read."""
        self.base.check()
        check_values(self, TUNING_TABLE)
        if self.search == "informed" and self.base.method != "resvm":
            raise ParameterError(
                "`search='informed'` works only for resvm", "use `search='random'` or grid"
            )


def tuning_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of SearchOptions; ``given`` holds only what the user set."""
    given = {name: value for name, value in given.items() if value is not None}
    tuning = {
        name: parameter.convert(given[name])
        for name, parameter in TUNING_TABLE.items()
        if name in given
    }
    axes = tuple(_axis(name, given[name]) for name in AXIS_NAMES if name in given)
    base = {name: TABLE[name].convert(given[name]) for name in BASE_NAMES if name in given}
    # informed settings do not use ranges, trials or a number of members
    narrowed = bool(axes or {"trials", "n_models"} & set(given))
    oob = base.get("method", "resvm") == "resvm" and "folds" not in given
    informed = tuning.get("search", "informed" if oob and not narrowed else "random") == "informed"
    usual = {**INFORMED, "committee": MAX_SETTINGS} if informed else {"search": "random"}
    return {
        **usual,
        **tuning,
        "oob": oob,
        "base": Params(**base, auto=informed, said=frozenset(base)),
        "axes": axes,
    }


def _axis(name: str, value: Any) -> Axis:
    """Return the axis for a number, a list, or a string such as ``1..100:log``."""
    if isinstance(value, str):
        return parse_axis(name, value)
    numbers = [value] if np.ndim(value) == 0 else list(np.asarray(value).tolist())
    real = Parameter("number", None, "", name=name)
    return parse_axis(name, ",".join(repr(real.convert(number)) for number in numbers))


@dataclass(frozen=True)
class RelativeSetting:
    """A setting expressed relative to |P|, n_pos and gamma="scale"."""

    fraction: float  # rows of P per bag, as a fraction of |P|
    ratio: float  # rows of U per row of P
    w_pos: float
    gamma: float  # a multiple of "scale"
    c_unl: float  # for linear members beside rbf, a multiple of gamma="scale"
    power: float = 0.0  # exponent of the feature weights; 0: no weights
    kernel: KernelName | None = None  # None: the kernel that the search is for
    quantile: bool = False


_USUAL = (DEFAULT_FRACTION, DEFAULT_RATIO, DEFAULT_W_POS)
_LARGE = (1.0, 5.0, 0.5)
_GAMMAS = (0.1, 0.3, 1.0)
# Penalties for kernels without gamma: products can be large, similarities are at most 1, and
# nothing is known about precomputed values.
_PENALTIES: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
_OF_PRODUCTS, _OF_SIMILARITIES = _PENALTIES[:5], _PENALTIES[2:]


def informed_settings(base: Params, *, quantiles: bool = False) -> tuple[RelativeSetting, ...]:
    """Return settings worth trying, the untuned one first.

    Parameters set in ``base`` are kept. With ``quantiles``, scaling by quantiles is also tried.
    """
    kernel = Kernel(base.kernel)
    untuned = RelativeSetting(*_USUAL, 1.0, 1.0)
    if kernel.uses_distances:
        found = _near_and_linear(kernel, quantiles=quantiles)
    elif "gamma" in kernel.parameters:
        pairs = itertools.product(_GAMMAS, (1.0, 10.0, 100.0))
        found = [
            *(RelativeSetting(*_USUAL, gamma, 1.0) for gamma in _GAMMAS),
            *(RelativeSetting(*_LARGE, gamma, c_unl) for gamma, c_unl in pairs),
        ]
    else:
        penalties = _PENALTIES
        if not kernel.is_precomputed:
            penalties = _OF_PRODUCTS if kernel.known_to_libsvm else _OF_SIMILARITIES
        found = [
            RelativeSetting(*bags, 1.0, c_unl) for bags in (_USUAL, _LARGE) for c_unl in penalties
        ]
    if "kernel" in base.said:
        found = [setting for setting in found if setting.kernel is None]
    if "feature_weights" in base.said:
        found = [replace(setting, power=0.0) for setting in found]
    return tuple(dict.fromkeys([untuned, *found]))


def _near_and_linear(kernel: Kernel, *, quantiles: bool) -> list[RelativeSetting]:
    """Return settings for kernels of distances, and linear ones beside them.

    docs/quality.md ("The settings of the search") says what each is worth.
    """
    absolute: KernelName | None = None if kernel.name == "laplacian" else "laplacian"
    found = [RelativeSetting(*_USUAL, 1.0, 1.0, 0.0, "linear")]
    others = [
        RelativeSetting(*_USUAL, 1.0, 10.0, 1.0, "linear"),
        *(RelativeSetting(*_USUAL, gamma, 1.0, 0.0, absolute) for gamma in (0.3, 1.0)),
        RelativeSetting(*_USUAL, 1.0, 1.0, 1.0, absolute),
    ]
    if kernel.name == "rbf":
        found += [RelativeSetting(*_USUAL, 3.0, 1.0), RelativeSetting(*_USUAL, 3.0, 1.0, 1.0)]
        others += [RelativeSetting(*_USUAL, 0.3, 1.0), RelativeSetting(*_USUAL, 3.0, 1.0, 2.0)]
    return [*found, *(replace(setting, quantile=quantiles) for setting in others)]


def informed_candidates(
    settings: Sequence[RelativeSetting],
    space: Space,
    n_positives: int,
    n_unlabeled: int,
    gamma_scale: Mapping[ScalingName | None, float],
    given: Sequence[str] = (),
) -> list[Candidate]:
    """Return distinct candidates, the first setting's first; axes in ``given`` limit values."""
    candidates: dict[Candidate, None] = {}
    for setting in settings:
        if setting.kernel == "laplacian" and "gamma" in given:  # given for the other kernel
            continue
        n_pos = default_n_pos(n_positives, setting.fraction)
        max_ratio = max(1.0, n_unlabeled / 2 / n_pos)  # so that some rows of U are out of bag
        scale: ScalingName | None = "quantile" if setting.quantile else None
        values = {
            "gamma": setting.gamma * gamma_scale[scale],
            "degree": 3.0,
            "coef0": 0.0,
            "n_pos": float(n_pos),
            "unl_per_pos": min(setting.ratio, max_ratio),
            "w_pos": setting.w_pos,
            "c_unl": setting.c_unl * (gamma_scale[scale] if setting.kernel == "linear" else 1.0),
        }
        if setting.kernel == "linear":
            del values["gamma"]
        axes = [axis for axis in space.axes if axis.name in values]
        values |= {
            axis.name: axis.nearest(values[axis.name]) for axis in axes if axis.name in given
        }
        candidate = Candidate(
            space.method,
            tuple((axis.name, values[axis.name]) for axis in axes),
            setting.kernel,
            f"{RELEVANCE}:{setting.power:g}" if setting.power else None,
            scale,
        )
        candidates[candidate] = None
    # candidates with one kernel share its matrix; the first stays first
    kernels = list(dict.fromkeys(candidate.kernel_key for candidate in candidates))
    return sorted(candidates, key=lambda candidate: kernels.index(candidate.kernel_key))


@dataclass(frozen=True)
class Scores:
    """A candidate's values of all criteria and the spread of the selection criterion, as logged."""

    values: dict[str, float]
    deviation: float  # standard deviation of the selection criterion over folds
    recall: float
    fraction_positive: float
    n_judged: int


@dataclass(frozen=True)
class Trial:
    """A candidate with its scores, or with the reason why it has none."""

    number: int
    candidate: Candidate
    n_models: int
    score: float | None  # the value of the selection criterion
    scores: Scores | None = None
    error: str | None = None

    @property
    def record(self) -> dict[str, Any]:
        """The trial as a line of the log."""
        return {
            "trial": self.number,
            "method": self.candidate.method,
            "params": self.candidate.named_values,
            "n_models": self.n_models,
            **(asdict(self.scores) if self.scores else {"error": self.error}),
        }


def sampled(space: Space, count: int, seed: int, stage: int) -> list[Candidate]:
    """Draw distinct candidates uniformly, or log-uniformly on logarithmic axes."""
    bits = randomness.run_bits(seed, randomness.CANDIDATES, stage)
    candidates: dict[Candidate, None] = {}
    for _ in range(20 * count):
        fractions = randomness.fractions(bits, len(space.axes)).tolist()
        values = map(Axis.at, space.axes, fractions)
        candidates[space.candidate(values)] = None
        if len(candidates) == count:
            break
    return list(candidates)


@dataclass(frozen=True)
class Outcome:
    """The result of a search."""

    best: Trial
    trials: tuple[Trial, ...]
    edges: tuple[str, ...] = ()  # one for each edge that the best candidate is on
    extensions: int = 0


Search: TypeAlias = Generator[list[Candidate], list[Trial], "Outcome | None"]


def search(space: Space, settings: SearchOptions, informed: Sequence[Candidate] = ()) -> Search:
    """Yield candidates, receive trials, and return the outcome, or None if none has a score."""
    if settings.search == "informed":
        return (yield from _search_informed(settings, informed))
    trials = yield _candidates(space, settings, settings.trials, 0)
    extensions = 0
    while best := winner(trials):
        edges = [(axis, side, axis.beyond(side)) for axis, side in space.edges(best.candidate)]
        beyond = [(axis, part) for axis, _, part in edges if part is not None]
        if not beyond or settings.no_extend or extensions == settings.max_extensions:
            remarks = tuple(_remark(axis, side, part is None) for axis, side, part in edges)
            return Outcome(best, tuple(trials), remarks, extensions)
        extensions += 1
        fresh: dict[Candidate, None] = {}
        count = max(4, settings.trials // EXTENSION_TRIALS)
        for axis, part in beyond:
            stage = 100 * extensions + space.axes.index(axis)
            slab = space.replaced(part)
            fresh.update(dict.fromkeys(_candidates(slab, settings, count, stage)))
        for axis, part in beyond:
            space = space.replaced(axis.joined(part))
        tried = {trial.candidate for trial in trials}
        trials = trials + (yield [candidate for candidate in fresh if candidate not in tried])
    return None


def _search_informed(settings: SearchOptions, informed: Sequence[Candidate]) -> Search:
    """Score the candidates, with a larger w_pos if most of U may be positive.

    The right w_pos is about twice the positive fraction b of U. A threshold that finds a fraction
    of the positives in U finds the same fraction of P, so where at most 20% of U is predicted
    positive, the mean recall r of P is at most 0.1 / b, and 0.2 / r is at least the right w_pos.
    Unlike the whole area, r stays large if P is contaminated. Candidates without feature weights
    are cheap, so they come first: their r decides whether all are scored with the larger w_pos.
    """
    trials = yield [candidate for candidate in informed if not candidate.feature_weights]
    recall = max(
        (trial.scores.values["partial_roc_auc_of_mean"] for trial in trials if trial.scores),
        default=1.0,
    )
    given = any(axis.name == "w_pos" for axis in settings.axes)
    if recall < LOW_RECALL and not given:
        factor = min(0.2 / max(recall, 1e-3), MAX_W_POS) / DEFAULT_W_POS
        trials = yield [candidate.times("w_pos", factor) for candidate in informed]
    elif weighted := [candidate for candidate in informed if candidate.feature_weights]:
        trials = trials + (yield weighted)
    best = winner(trials)
    return None if best is None else Outcome(best, tuple(trials))


def _candidates(space: Space, settings: SearchOptions, count: int, stage: int) -> list[Candidate]:
    if settings.search == "grid":
        return space.grid()
    return sampled(space, count, settings.base.seed, stage)


def winner(trials: Sequence[Trial]) -> Trial | None:
    """Return the best trial, or None if no candidate could be scored."""
    return next(iter(best_first(trials)), None)


def best_first(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that have a score, best first; among ties, the cheapest comes first."""

    def order(trial: Trial) -> tuple[float, ...]:
        candidate = trial.candidate
        bag = (candidate["n_pos"] or 1.0) * (1.0 + (candidate["unl_per_pos"] or 0.0))
        return -(trial.score or 0.0), bag, candidate["c_unl"] or 0.0, float(trial.number)

    return sorted((trial for trial in trials if trial.score is not None), key=order)


def _remark(axis: Axis, side: int, at_limit: bool) -> str:
    end = "lower" if side < 0 else "upper"
    text = f"`{axis.name}`: the best value lies on the {end} edge of {axis}"
    return text + (", which cannot be extended" if at_limit else "")


def pool_best(
    trials: Sequence[Trial], n_models: int | None = None, max_settings: int = MAX_SETTINGS
) -> list[tuple[Trial, float, int]]:
    """Return the best trials, with their weights by score and numbers of members."""
    chosen = best_first(trials)[: min(max_settings, n_models or max_settings)]
    scores = [trial.score or 0.0 for trial in chosen]
    powers = [math.exp((score - scores[0]) / TEMPERATURE) for score in scores]
    total = SETTING_MEMBERS * len(chosen) if n_models is None else n_models
    ends = [round(total * (number + 1) / len(chosen)) for number in range(len(chosen))]
    members = [max(1, end - start) for start, end in zip([0, *ends], ends, strict=False)]
    return list(zip(chosen, [power / sum(powers) for power in powers], members, strict=True))
