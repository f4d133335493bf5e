"""Grid search, random search and informed search, and what they choose.

A search is a generator: it yields candidates and is sent their trials. Nothing here trains, reads
or writes, so a search is resumed by replaying its trials. Paper, section 4: an optimum on the edge
of the searched region is not accepted. Ties are broken by cost: the smaller bag wins, then the
smaller penalty, then the earlier trial.

No single setting is best on all data, and the setting with the best out-of-bag score is often the
best by chance. So an informed search scores a fixed list of sensible settings with few members
each, and the best are pooled, weighted by their scores (see docs/quality.md for the figures).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from resvm_cli import randomness
from resvm_cli.errors import Message
from resvm_cli.records import dataclass
from resvm_cli.tuning.settings import MAX_SETTINGS, TuningSettings
from resvm_cli.tuning.space import Axis, Candidate, Space
from resvm_cli.tuning.validation import Scores

EXTENSION_TRIALS = 5  # an extension draws 1/5 of the initial number of trials per edge
TEMPERATURE = 0.02  # of the softmax weights; a lower one favors the best settings more
SETTING_MEMBERS = 15  # members per setting of a committee
SINGLE_ERRORS = 3.0  # standard errors by which the best must beat the untuned setting


@dataclass(frozen=True)
class Trial:
    """A scored candidate, or why it has no score."""

    number: int
    candidate: Candidate
    n_models: int
    score: float | None  # by the criterion of the search
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
        fractions = randomness.fractions(bits, len(space.axes))
        candidates[space.candidate(fractions.tolist())] = None
        if len(candidates) == count:
            break
    return list(candidates)


@dataclass(frozen=True)
class Outcome:
    """The result of a search."""

    best: Trial
    trials: tuple[Trial, ...]
    space: Space  # including extensions
    edges: tuple[Message, ...] = ()  # a remark for each edge on which the best candidate lies
    extensions: int = 0


Search: TypeAlias = Generator[list[Candidate], list[Trial], "Outcome | None"]


def search(space: Space, settings: TuningSettings, informed: Sequence[Candidate] = ()) -> Search:
    """Yield candidates, receive trials, return the outcome; None if nothing could be scored."""
    if settings.search == "informed":
        trials = yield list(informed)
        best = winner(trials)
        return None if best is None else Outcome(best, tuple(trials), space)
    trials = yield _candidates(space, settings, settings.trials, 0)
    extensions = 0
    while best := winner(trials):
        edges = [(axis, side, axis.beyond(side)) for axis, side in space.edges(best.candidate)]
        beyond = [(axis, part) for axis, _, part in edges if part is not None]
        if not beyond or settings.no_extend or extensions == settings.max_extensions:
            remarks = tuple(_remark(axis, side, part is None) for axis, side, part in edges)
            return Outcome(best, tuple(trials), space, remarks, extensions)
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


def _candidates(space: Space, settings: TuningSettings, count: int, stage: int) -> list[Candidate]:
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


def _remark(axis: Axis, side: int, at_limit: bool) -> Message:
    text = "{" + axis.name + "}: the best value lies on the {end} edge of {axis}"
    text += ", which cannot be extended" if at_limit else ""
    return Message(text, end="lower" if side < 0 else "upper", axis=axis)


@dataclass(frozen=True)
class Pooled:
    """One of a committee's settings, with its weight and number of members."""

    trial: Trial
    weight: float
    n_models: int


def pooled(
    trials: Sequence[Trial], n_models: int | None = None, max_settings: int = MAX_SETTINGS
) -> list[Pooled]:
    """Return the best candidates, weighted by their scores."""
    chosen = best_first(trials)[:max_settings]
    powers = [math.exp((_score(trial) - _score(chosen[0])) / TEMPERATURE) for trial in chosen]
    total = SETTING_MEMBERS * len(chosen) if n_models is None else n_models
    ends = [round(total * (number + 1) / len(chosen)) for number in range(len(chosen))]
    members = [max(1, end - start) for start, end in zip([0, *ends], ends, strict=False)]
    return [
        Pooled(trial, power / sum(powers), count)
        for trial, power, count in zip(chosen, powers, members, strict=True)
    ]


def single(trials: Sequence[Trial], untuned: Candidate, error: float) -> Trial:
    """Return the best trial if it clearly beats the untuned candidate, else the untuned one."""
    scored = best_first(trials)
    own = next((trial for trial in scored if trial.candidate == untuned), None)
    if own is not None and _score(scored[0]) <= _score(own) + SINGLE_ERRORS * error:
        return own
    return scored[0]


def _score(trial: Trial) -> float:
    return trial.score or 0.0
