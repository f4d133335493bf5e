"""Areas, curves and figures at a threshold, corrected for known contamination.

With a the share of P that is negative and b the share of U that is positive, at every threshold
TPR_P = (1-a) TPR + a FPR and TPR_U = b TPR + (1-b) FPR: two linear equations, solved here. At a = 0
these are the contingency tables of Claesen, Davis, De Smet and De Moor (2015, arXiv:1504.06837).
Precision is that among rows like U, where positives are the share b, or another prevalence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from resvm_cli import randomness
from resvm_cli.metrics.bootstrap import interval, replicate
from resvm_cli.metrics.ranking import FloatArray, Ranking


@dataclass(frozen=True)
class Contamination:
    """Shares of wrong rows: a of P is negative, b of U is positive; the prevalence to judge at."""

    a: float
    b: float
    prevalence: float | None = None  # None: that of U

    @property
    def share(self) -> float:
        return self.b if self.prevalence is None else self.prevalence

    def rates(
        self, recall: npt.ArrayLike, fraction: npt.ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """TPR and FPR from the shares of P and of U called positive; not clipped, so linear."""
        of_p, of_u = np.asarray(recall, np.float64), np.asarray(fraction, np.float64)
        separation = 1 - self.a - self.b
        return (
            ((1 - self.b) * of_p - self.a * of_u) / separation,
            ((1 - self.a) * of_u - self.b * of_p) / separation,
        )

    def precision(self, tpr: FloatArray, fpr: FloatArray) -> FloatArray:
        """Between 0 and 1; 1 where no more than the true positives are called."""
        hit = self.share * tpr
        called = hit + (1 - self.share) * fpr
        ratio = np.divide(hit, called, out=np.ones_like(called), where=called > 0)
        return np.where(hit <= 0, 0.0, np.clip(ratio, 0.0, 1.0))


def roc_auc(ranking: Ranking, known: Contamination) -> FloatArray:
    """P against U has the area (1-a-b) AUC + (a+b)/2; solved for AUC, clipped to 0..1."""
    return np.clip(0.5 + (ranking.roc_auc() - 0.5) / (1 - known.a - known.b), 0.0, 1.0)


def average_precision(ranking: Ranking, known: Contamination) -> FloatArray:
    """The corrected precision, averaged over the corrected recall; clipped to 0..1.

    At the score of a known positive recall steps up, at the precision reached; between two such
    scores, where a > 0, rows of U take some of it back while precision falls along a hyperbola.
    """
    n_pos, n_unl = ranking.n_positives[..., None], ranking.n_negatives[..., None]
    zero = np.zeros_like(ranking.tp[..., :1])
    tp, fp = np.concatenate([zero, ranking.tp], -1), np.concatenate([zero, ranking.fp], -1)
    reached = known.rates(tp / n_pos, fp / n_unl)
    before = known.rates(
        tp / n_pos,
        np.concatenate([ranking.fp - ranking.tied, np.broadcast_to(n_unl, zero.shape)], -1) / n_unl,
    )
    after = tuple(rate[..., 1:] for rate in reached)
    stepped = known.precision(*after) * (after[0] - before[0][..., :-1])
    total = stepped.sum(axis=-1) + _given_back(known, reached, before).sum(axis=-1)
    return np.asarray(np.clip(total, 0.0, 1.0))


def _given_back(
    known: Contamination,
    start: tuple[FloatArray, FloatArray],
    end: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """The integral of precision over recall along straight lines on which only U is called."""
    fallen = end[0] - start[0]
    first, last = known.precision(*start), known.precision(*end)
    called = known.share * start[0] + (1 - known.share) * start[1]
    more = known.share * end[0] + (1 - known.share) * end[1] - called
    smooth = (more > 0) & (called > 0) & (first < 1) & (last > 0)
    safe = np.where(smooth, called, 1.0)
    slope = fallen / np.where(smooth, more, 1.0)
    curved = slope * fallen + (start[0] - slope * safe) * slope * np.log1p(
        np.where(smooth, more, 0.0) / safe
    )
    return np.where(smooth, known.share * curved, fallen * (first + last) / 2)


@dataclass(frozen=True, eq=False)
class Curve:
    """Corrected rates at every distinct score of a known positive, clipped and in order."""

    thresholds: FloatArray
    tpr: FloatArray
    fpr: FloatArray
    precision: FloatArray


def curve(ranking: Ranking, known: Contamination) -> Curve:
    """The corrected curve, at the scores of known positives."""
    return possible(
        ranking.thresholds,
        ranking.tp / ranking.n_positives[..., None],
        ranking.fp / ranking.n_negatives[..., None],
        known,
    )


def possible(
    thresholds: FloatArray, recall: FloatArray, fraction: FloatArray, known: Contamination
) -> Curve:
    """Rates that a classifier can have: between 0 and 1, never falling as more is called."""
    tpr, fpr = known.rates(recall, fraction)
    tpr, fpr = (np.maximum.accumulate(np.clip(rate, 0.0, 1.0), axis=-1) for rate in (tpr, fpr))
    return Curve(thresholds, tpr, fpr, known.precision(tpr, fpr))


def at_threshold(
    recall: npt.ArrayLike, fraction: npt.ArrayLike, known: Contamination
) -> dict[str, FloatArray]:
    """Corrected recall, false-positive rate, precision and F1, from shares of P and U called."""
    tpr, fpr = (np.clip(rate, 0.0, 1.0) for rate in known.rates(recall, fraction))
    precision = known.precision(tpr, fpr)
    both = precision + tpr
    f1 = np.divide(2 * precision * tpr, both, out=np.zeros_like(both), where=both > 0)
    return {"recall": tpr, "fpr": fpr, "precision": precision, "f1": f1}


@dataclass(frozen=True)
class Band:
    """A figure over ranges of contamination, and the interval around it over all of them."""

    value: float  # in the middle of the ranges
    least: float
    most: float
    low: float
    high: float


def contamination_grid(
    a: tuple[float, float],
    b: tuple[float, float],
    prevalence: float | None = None,
    middle: float | None = None,
) -> list[Contamination]:
    """The middle of both ranges first, then every other pair of ends and middles.

    ``middle`` is the value of b to report, where it is not the mean of its bounds.
    """

    def points(bounds: tuple[float, float], between: float | None) -> list[float]:
        low, high = bounds
        return [low] if low == high else [(low + high) / 2 if between is None else between, *bounds]

    pairs = product(points(a, None), points(b, middle))
    return [Contamination(share_pos, share_unl, prevalence) for share_pos, share_unl in pairs]


def area_bands(
    ranking: Ranking, cases: Sequence[Contamination], n_replicates: int, seed: int
) -> dict[str, Band]:
    """Corrected areas over these contaminations; the first is the one to report."""

    def statistics(some: Ranking) -> dict[str, FloatArray]:
        areas = {}
        for number, known in enumerate(cases):
            areas[f"roc_auc {number}"] = roc_auc(some, known)
            areas[f"average_precision {number}"] = average_precision(some, known)
        return areas

    exact = statistics(ranking)
    drawn = replicate(ranking, statistics, n_replicates, seed) if n_replicates else {}
    return {
        name: _band([(exact[f"{name} {i}"], drawn.get(f"{name} {i}")) for i in range(len(cases))])
        for name in ("average_precision", "roc_auc")
    }


def threshold_bands(
    called_pos: int,
    n_pos: int,
    called_unl: int,
    n_unl: int,
    cases: Sequence[Contamination],
    n_replicates: int,
    seed: int,
) -> dict[str, Band]:
    """Corrected figures at a threshold, from how many of P and of U are called positive."""
    rng = randomness.generator(seed, randomness.RATES_AT_THRESHOLD)
    recall, fraction = called_pos / n_pos, called_unl / n_unl
    recalls = rng.binomial(n_pos, recall, n_replicates) / n_pos
    fractions = rng.binomial(n_unl, fraction, n_replicates) / n_unl
    exact = [at_threshold(recall, fraction, known) for known in cases]
    drawn = [at_threshold(recalls, fractions, known) for known in cases]
    return {
        name: _band(
            [
                (figures[name], replicates[name] if n_replicates else None)
                for figures, replicates in zip(exact, drawn, strict=True)
            ]
        )
        for name in exact[0]
    }


def _band(cases: Sequence[tuple[FloatArray, FloatArray | None]]) -> Band:
    values = [float(value) for value, _ in cases]
    bounds = [
        interval(value, np.zeros(0) if drawn is None else drawn)
        for value, (_, drawn) in zip(values, cases, strict=True)
    ]
    return Band(
        values[0],
        min(values),
        max(values),
        min([bound.low for bound in bounds]),
        max([bound.high for bound in bounds]),
    )
