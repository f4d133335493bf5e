"""The top of a ranking: what is found among the first rows, and how far one must go.

Rows of equal score have no order, so every figure is its expectation over all their orders. The
functions take a ``Ranking``, resampled or not, and answer for each.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from resvm_cli.metrics.ranking import FloatArray, Ranking

FRACTIONS = (0.005, 0.01, 0.05, 0.1)
RECOVERED = (0.5, 0.8, 0.9)
ALPHAS = (20.0, 80.5)


def depth_of(fraction: float, n_rows: int) -> int:
    """The whole number of rows that a fraction of a ranking takes, at least one."""
    return max(1, ceil(round(fraction * n_rows, 9)))  # 0.07 x 100 is 7, not 7.000000000000001


def recovered_at(ranking: Ranking, depth: float) -> FloatArray:
    """Positives expected among the first ``depth`` rows."""
    length = ranking.positives + ranking.tied
    start = ranking.tp + ranking.fp - length
    share = np.divide(depth - start, length, out=np.zeros_like(start), where=length > 0)
    return np.asarray((ranking.positives * np.clip(share, 0.0, 1.0)).sum(axis=-1))


def precision_at(ranking: Ranking, depth: int) -> FloatArray:
    """The share of positives among the first rows."""
    return recovered_at(ranking, depth) / depth


def recall_at(ranking: Ranking, depth: int) -> FloatArray:
    """The share of the positives that are among the first rows."""
    return recovered_at(ranking, depth) / ranking.n_positives


def enrichment_at(ranking: Ranking, depth: int) -> FloatArray:
    """How many times more positives the first rows hold than rows drawn at random."""
    n_rows = ranking.n_positives + ranking.n_negatives
    return recall_at(ranking, depth) * n_rows / depth


def screened_to_recover(ranking: Ranking, share: float) -> FloatArray:
    """The fraction of all rows at which this share of the positives is reached."""
    wanted = np.ceil(np.round(share * ranking.n_positives, 9))[..., None]
    block = (ranking.tp >= wanted).argmax(axis=-1)[..., None]

    def there(array: FloatArray) -> FloatArray:
        return np.take_along_axis(array, block, -1)

    positives, tied = there(ranking.positives), there(ranking.tied)
    before = there(ranking.tp) - positives
    start = before + there(ranking.fp) - tied
    # where the j-th of p positives comes in a random order of p + t rows: j (p + t + 1) / (p + 1)
    depth = start + (wanted - before) * (positives + tied + 1) / (positives + 1)
    return np.asarray(depth[..., 0] / (ranking.n_positives + ranking.n_negatives))


def bedroc(ranking: Ranking, alpha: float) -> FloatArray:
    """Early recognition (Truchon and Bayly 2007), between 0 and 1; most weight on the top 1/alpha.

    Positives count by exp(-alpha rank / n); the sum is scaled between its worst and best.
    """
    n_rows = ranking.n_positives + ranking.n_negatives
    rate = (alpha / n_rows)[..., None]
    length = ranking.positives + ranking.tied
    start = ranking.tp + ranking.fp - length
    # the mean weight of a tied block, as a geometric sum
    block = np.exp(-rate * start) * -np.expm1(-rate * length) / np.expm1(rate)
    mean = np.divide(block, length, out=np.zeros_like(block), where=length > 0)
    weight = (ranking.positives * mean).sum(axis=-1)
    rate = rate[..., 0]
    best = -np.expm1(-rate * ranking.n_positives) / np.expm1(rate)
    worst = best * np.exp(-rate * ranking.n_negatives)
    with np.errstate(invalid="ignore"):  # no negatives: nan
        return np.asarray((weight - worst) / (best - worst))
