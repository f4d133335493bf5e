"""Significance tests between methods over repetitions and data sets (Demsar 2006).

Higher values are better. Paired tests use the repetitions on one data set; tests over data sets use
the mean of the repetitions on each data set.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import sqrt

import numpy as np
import numpy.typing as npt

from resvm_cli.metrics.ranking import FloatArray
from resvm_cli.records import dataclass

ALPHA = 0.05


def wilcoxon_p(first: npt.ArrayLike, second: npt.ArrayLike, alternative: str = "greater") -> float:
    """Return the p-value of Wilcoxon's signed-rank test; 1 if all pairs are equal."""
    from scipy.stats import wilcoxon

    difference = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    if not np.any(difference):
        return 1.0
    return float(wilcoxon(difference, alternative=alternative).pvalue)


def shared_wins(values: npt.ArrayLike) -> list[float]:
    """Count how often each column has the largest value in a row; ties are split equally."""
    table = np.asarray(values, np.float64)
    best = table == table.max(axis=1, keepdims=True)
    return [float(count) for count in (best / best.sum(axis=1, keepdims=True)).sum(axis=0)]


def student_interval(values: npt.ArrayLike) -> tuple[float, float]:
    """Return Student's 95 % t interval of the mean; nan if there are fewer than two values."""
    from scipy.stats import t

    sample = np.asarray(values, np.float64)
    if len(sample) < 2:
        return float("nan"), float("nan")
    reach = float(t.ppf((1 + 0.95) / 2, len(sample) - 1) * sample.std(ddof=1) / sqrt(len(sample)))
    return float(sample.mean()) - reach, float(sample.mean()) + reach


def average_ranks(means: npt.ArrayLike) -> FloatArray:
    """Return each column's mean rank over the rows; 1 is the largest, ties get the mean rank."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(-np.asarray(means, np.float64), axis=1).mean(axis=0), np.float64)


def group_ranks(means: npt.ArrayLike, groups: Sequence[str]) -> FloatArray:
    """Rank within each row, and average over the rows of each group (groups x columns)."""

    from scipy.stats import rankdata

    ranks = rankdata(-np.asarray(means, np.float64), axis=1)
    rows_of = {group: [row for row, own in enumerate(groups) if own == group] for group in groups}
    return np.array([ranks[rows].mean(axis=0) for rows in rows_of.values()])


def critical_difference(n_methods: int, n_blocks: int) -> float:
    """Return the smallest difference in average rank that is significant by Nemenyi's test."""
    from scipy.stats import studentized_range

    quantile = float(studentized_range.ppf(1 - ALPHA, n_methods, np.inf)) / sqrt(2)
    return quantile * sqrt(n_methods * (n_methods + 1) / (6 * n_blocks))


def nemenyi(ranks: Sequence[float], n_blocks: int) -> dict[tuple[int, int], float]:
    """Return the p-value of Nemenyi's test for each pair of methods."""
    from scipy.stats import studentized_range

    k = len(ranks)
    scale = sqrt(k * (k + 1) / (6 * n_blocks))
    return {
        (i, j): float(studentized_range.sf(abs(ranks[i] - ranks[j]) / scale * sqrt(2), k, np.inf))
        for i, j in combinations(range(k), 2)
    }


def holm(p_values: Sequence[float]) -> list[float]:
    order = np.argsort(p_values, kind="stable")
    steps = np.asarray(p_values, np.float64)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(p) for p in adjusted]


def cliques(ranks: Sequence[float], difference: float) -> list[tuple[int, ...]]:
    """Return the maximal groups of methods that do not differ significantly, best first."""
    order = [int(i) for i in np.argsort(ranks, kind="stable")]
    groups: list[tuple[int, ...]] = []
    for start in range(len(order)):
        group = tuple(i for i in order[start:] if ranks[i] - ranks[order[start]] < difference)
        if len(group) > 1 and not (groups and set(group) <= set(groups[-1])):
            groups.append(group)
    return groups


@dataclass(frozen=True)
class Pair:
    """p-values for two methods over data sets: Nemenyi, two-sided Wilcoxon, Holm-adjusted."""

    first: str
    second: str
    nemenyi: float
    wilcoxon: float
    holm: float


@dataclass(frozen=True)
class OverDataSets:
    """The results of the tests over all data sets."""

    methods: tuple[str, ...]
    n_data_sets: int
    average_ranks: tuple[float, ...]
    friedman_statistic: float
    friedman_p: float
    critical_difference: float
    pairs: tuple[Pair, ...]
    cliques: tuple[tuple[str, ...], ...]


def over_data_sets(methods: Sequence[str], means: npt.ArrayLike) -> OverDataSets:
    """Run Friedman's test (nan if too few) and post-hoc tests on means: data sets x methods."""
    from scipy.stats import friedmanchisquare

    table = np.asarray(means, np.float64)
    n_sets, n_methods = table.shape
    ranks = [float(rank) for rank in average_ranks(table)]
    statistic = p_value = float("nan")
    if n_methods >= 3 and n_sets >= 2 and np.ptp(table, axis=1).any():
        tested = friedmanchisquare(*table.T)
        statistic, p_value = float(tested.statistic), float(tested.pvalue)
    names = list(combinations(range(n_methods), 2))
    raw = [wilcoxon_p(table[:, i], table[:, j], "two-sided") for i, j in names]
    post_hoc = nemenyi(ranks, n_sets)
    pairs = tuple(
        Pair(methods[i], methods[j], post_hoc[i, j], raw_p, adjusted)
        for (i, j), raw_p, adjusted in zip(names, raw, holm(raw), strict=True)
    )
    difference = critical_difference(n_methods, n_sets)
    groups = tuple(tuple(methods[i] for i in group) for group in cliques(ranks, difference))
    return OverDataSets(
        tuple(methods), n_sets, tuple(ranks), statistic, p_value, difference, pairs, groups
    )
