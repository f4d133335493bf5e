"""Tests over all tasks of a run, dominance of PR curves, and the paper's conclusions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from experiments.paper.data import COMPARED, PUBLISHED_CWSVM, SETTINGS
from experiments.paper.results import CellResult
from experiments.paper.tables import (
    IntervalWidth,
    Medians,
    PublishedTable,
    SettingTable,
    WinCount,
    mean_areas,
    wilcoxon_p,
)
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray

Finding: TypeAlias = Literal["confirmed", "weaker", "not confirmed"]
ALPHA = 0.05


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

    quantile = float(studentized_range.ppf(1 - ALPHA, n_methods, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(n_methods * (n_methods + 1) / (6 * n_blocks))


def nemenyi(ranks: Sequence[float], n_blocks: int) -> dict[tuple[int, int], float]:
    """Return the p-value of Nemenyi's test for each pair of methods."""
    from scipy.stats import studentized_range

    k = len(ranks)
    scale = math.sqrt(k * (k + 1) / (6 * n_blocks))
    pairs = list(combinations(range(k), 2))
    distances = [abs(ranks[i] - ranks[j]) / scale * math.sqrt(2) for i, j in pairs]
    return dict(zip(pairs, studentized_range.sf(distances, k, np.inf).tolist(), strict=True))


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
    """Run Friedman's test (nan if impossible) and post-hoc tests on means: data sets x methods."""
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


@dataclass(frozen=True)
class OverallTest:
    """Friedman's test and pairwise tests over the tasks or data sets of one setting."""

    setting: str
    over: Literal["tasks", "data sets"]
    names: tuple[str, ...]
    left_out: tuple[str, ...]  # tasks without a repetition that every method finished
    result: OverDataSets
    published: OverDataSets | None  # the same tests on the published means


@dataclass(frozen=True)
class Dominance:
    """How often resvm's PR curve lies above another method's, over repetitions."""

    setting: str
    method: str
    n: int
    whole: float  # fraction of repetitions where resvm's curve is nowhere below the other
    levels: float  # mean fraction of recall levels where it is not worse
    shortfall: float  # greatest shortfall in points, averaged over repetitions


@dataclass(frozen=True)
class PaperClaim:
    """One of the paper's conclusions, and whether these results confirm it."""

    claim: str
    finding: Finding
    evidence: str


def overall_tests(table: SettingTable, published: PublishedTable) -> tuple[OverallTest, ...]:
    """Return the tests for one setting: over tasks, then over data sets."""
    setting, methods = table.setting, table.methods
    rows = [row for row in table.rows if row.n_compared]
    if len(rows) < 2 or len(methods) < 2:
        return ()
    left_out = tuple(row.task for row in table.rows if not row.n_compared)
    tasks, groups = tuple(row.task for row in rows), [row.data_set for row in rows]
    samples = [mean_areas(rows, methods)]
    keys = [[(setting, task, method) for method in methods] for task in tasks]
    if all(key in published for line in keys for key in line):
        samples.append(np.array([[published[key].middle for key in line] for line in keys]))

    def test(over: Literal["tasks", "data sets"], names: tuple[str, ...]) -> OverallTest:
        results = [over_data_sets(methods, one) for one in samples]
        theirs = results[1] if len(results) > 1 else None
        return OverallTest(setting, over, names, left_out, results[0], theirs)

    found = [test("tasks", tasks)]
    if len(set(groups)) < len(groups):
        # rank methods by their mean rank over a data set's tasks; lower ranks are better
        samples = [-group_ranks(one, groups) for one in samples]
        found.append(test("data sets", tuple(dict.fromkeys(groups))))
    return tuple(found)


def dominance(setting: str, results: Sequence[CellResult]) -> list[Dominance]:
    """Compare resvm's PR curves on mnist with each other method's."""
    curves: dict[str, dict[tuple[str, int], np.ndarray]] = {}
    for result in results:
        cell = result.cell
        if result.curve is not None and cell.task.startswith("mnist-"):
            of_method = curves.setdefault(cell.method, {})
            of_method[cell.task, cell.repetition] = np.asarray(result.curve)
    ours = curves.get("resvm", {})
    found = []
    for method in (*COMPARED, PUBLISHED_CWSVM):
        own = curves.get(method, {})
        ahead = np.array([ours[draw] - own[draw] for draw in own if draw in ours])
        if method != "resvm" and len(ahead):
            shortfall = 100 * np.maximum(-ahead, 0).max(axis=1).mean()
            found.append(
                Dominance(
                    setting, method, len(ahead), float((ahead >= 0).all(axis=1).mean()),
                    float((ahead >= 0).mean()), float(shortfall),
                )
            )  # fmt: skip
    return found


def conclusions(
    tables: Mapping[str, SettingTable],
    tests: Sequence[OverallTest],
    wins: Sequence[WinCount],
    widths: Sequence[IntervalWidth],
    dominances: Sequence[Dominance],
    medians: Sequence[Medians],
) -> tuple[PaperClaim, ...]:
    """Check each of the paper's conclusions that these results can confirm or refute."""
    by_setting = {
        test.setting: test
        for test in tests
        if test.over == "tasks" and set(test.result.methods) == set(COMPARED)
    }
    found: list[PaperClaim] = []
    if "supervised" in by_setting:
        found.append(_supervised(by_setting["supervised"].result, wins))
    for setting in ("pu", "semi-supervised"):
        if setting in by_setting:
            found += _rank_claims(setting, by_setting[setting])
    found += [*_stars(tables), *_semi_wins(wins), *_narrower(widths)]
    return (*found, *_dominating(dominances), *_bags(medians))


def _grade(confirmed: bool, weaker: bool) -> Finding:
    return "confirmed" if confirmed else "weaker" if weaker else "not confirmed"


def _compare_ranks(test: OverallTest, better: str, worse: str) -> tuple[bool, bool, str]:
    """Return whether one method ranks better, whether significantly (Nemenyi), and the evidence."""
    result = test.result
    ranks = dict(zip(result.methods, result.average_ranks, strict=True))
    p_value = _nemenyi(result, better, worse)
    ahead = ranks[better] < ranks[worse]
    text = f"{better} {ranks[better]:.2f} against {worse} {ranks[worse]:.2f}, p {p_value:.2g}"
    # with fewer tasks, even the paper's values may not be significant
    if test.published is not None:
        text += f" (published, same tasks: p {_nemenyi(test.published, better, worse):.2g})"
    return ahead, ahead and p_value < ALPHA, text


def _nemenyi(result: OverDataSets, first: str, second: str) -> float:
    return next(
        pair.nemenyi for pair in result.pairs if {pair.first, pair.second} == {first, second}
    )


def _better(claim: str, test: OverallTest, pairs: Sequence[tuple[str, str]]) -> PaperClaim:
    """Return a claim that some methods are significantly better than others."""
    compared = [_compare_ranks(test, *pair) for pair in pairs]
    finding = _grade(all(one[1] for one in compared), all(one[0] for one in compared))
    evidence = "; ".join(text for _, _, text in compared)
    return PaperClaim(claim, finding, f"average ranks, Nemenyi: {evidence}")


def _supervised(result: OverDataSets, wins: Sequence[WinCount]) -> PaperClaim:
    fractions = [one.normalised_share for one in wins if one.setting == "supervised"]
    largest = max(fractions, default=math.nan)
    ranks = ", ".join(
        f"{method} {rank:.2f}"
        for method, rank in zip(result.methods, result.average_ranks, strict=True)
    )
    return PaperClaim(
        "Supervised: all methods are competitive, differences are marginal (p 0.034).",
        _grade(result.friedman_p > 0.01 and largest < 50, result.friedman_p > 0.01 or largest < 50),
        f"Friedman p {result.friedman_p:.2g}; average ranks {ranks}; largest fraction of"
        f" normalized wins {largest:.0f}%",
    )


def _rank_claims(setting: str, test: OverallTest) -> Iterator[PaperClaim]:
    if setting == "pu":
        claim = "PU: bagging and resvm are both significantly better than cwsvm."
        yield _better(claim, test, [("bagging", "cwsvm"), ("resvm", "cwsvm")])
        claim = "PU: bagging and resvm are comparable over all tasks."
        _, significant, text = _compare_ranks(test, "resvm", "bagging")
        finding = _grade(not significant, False)
        yield PaperClaim(claim, finding, f"average ranks, Nemenyi: {text}")
    else:
        claim = "Semi-supervised: resvm is significantly better than both others."
        yield _better(claim, test, [("resvm", "bagging"), ("resvm", "cwsvm")])
        claim = "Semi-supervised: bagging is significantly better than cwsvm."
        yield _better(claim, test, [("bagging", "cwsvm")])


def _stars(tables: Mapping[str, SettingTable]) -> Iterator[PaperClaim]:
    for setting, claim in (
        ("pu", "PU: resvm is significantly better than bagging on every digit of mnist."),
        (
            "semi-supervised",
            "Semi-supervised: resvm is significantly better than bagging on every task but covtype"
            " and sensit.",
        ),
    ):
        table = tables.get(setting)
        rows = [
            row
            for row in (table.rows if table else ())
            if row.p_resvm_over_bagging is not None
            and (row.data_set == "mnist" if setting == "pu" else row.data_set != "covtype")
            and row.data_set != "sensit"
        ]
        if rows:
            shown = sum(row.stars > 0 for row in rows)
            # one half is well above the one in twenty expected by chance
            finding = _grade(shown == len(rows), 2 * shown >= len(rows))
            evidence = f"one-sided Wilcoxon, p < 0.05 on {shown} of {len(rows)} tasks"
            if others := ", ".join(row.task for row in rows if not row.stars):
                evidence += f"; not on {others}"
            yield PaperClaim(claim, finding, evidence)


def _semi_wins(wins: Sequence[WinCount]) -> Iterator[PaperClaim]:
    semi = [one for one in wins if one.setting == "semi-supervised"]
    fractions = {one.method: one.normalised_share for one in semi}
    if set(fractions) != set(COMPARED):
        return
    met = [
        fractions["resvm"] > 3 * fractions["bagging"],
        fractions["resvm"] > 4 * fractions["cwsvm"],
        fractions["resvm"] > max(fractions["bagging"], fractions["cwsvm"]),
    ]
    text = ", ".join(f"{method} {fraction:.0f}%" for method, fraction in fractions.items())
    claim = (
        "Semi-supervised: resvm has over three times bagging's and over four times cwsvm's"
        " normalized wins (65.8, 20.0 and 14.2%)."
    )
    yield PaperClaim(claim, _grade(all(met), met[2]), f"normalized wins: {text}")


def _narrower(widths: Sequence[IntervalWidth]) -> Iterator[PaperClaim]:
    contaminated = [one for one in widths if one.setting != "supervised"]
    tested = [one for one in contaminated if one.p_resvm_narrower is not None]
    if not tested:
        return
    means = {(one.setting, one.method): one.mean for one in widths}
    met = [(one.p_resvm_narrower or 0.0) < ALPHA for one in tested]
    leaning = [means[one.setting, "resvm"] < one.mean for one in tested]
    text = "; ".join(
        f"{one.setting} {one.method} {one.n_resvm_narrower} of {one.n_tasks},"
        f" p {one.p_resvm_narrower:.2g}"
        for one in tested
    )
    claim = "resvm's intervals are narrower: its performance varies less (PU, semi-supervised)."
    evidence = f"tasks where resvm's interval is narrower, one-sided Wilcoxon: {text}"
    yield PaperClaim(claim, _grade(all(met), any(met) or all(leaning)), evidence)


def _dominating(dominances: Sequence[Dominance]) -> Iterator[PaperClaim]:
    semi = [one for one in dominances if one.setting == "semi-supervised"]
    tested = [one for one in semi if one.method in COMPARED]
    if not tested:
        return
    text = "; ".join(
        f"{one.method} {100 * one.whole:.0f}% of {one.n} repetitions, {100 * one.levels:.0f}% of"
        " the recall levels"
        for one in tested
    )
    whole = all(one.whole > 0.5 for one in tested)
    most = all(one.levels > 0.9 for one in tested)
    claim = "Semi-supervised, mnist: resvm's PR curve dominates the others nearly always."
    yield PaperClaim(claim, _grade(whole, most), f"nowhere below: {text}")


def _bags(medians: Sequence[Medians]) -> Iterator[PaperClaim]:
    for parameter in ("n_pos", "w_pos"):
        means = {one.setting: one.mean for one in medians if one.parameter == parameter}
        known = [mean for setting in SETTINGS if (mean := means.get(setting)) is not None]
        if len(known) < len(SETTINGS):
            continue
        first, second, third = known
        if parameter == "n_pos":
            claim = "mnist: more contamination makes tuning favor smaller bags of P."
            finding = _grade(first > second >= third, first > second or second >= third)
            evidence = f"{first:g}, {second:g}, {third:g}"
        else:
            claim = "mnist: w_pos is largest in the PU setting."
            finding = _grade(second > max(first, third), False)
            evidence = f"{first:.3g}, {second:.3g}, {third:.3g}"
        yield PaperClaim(claim, finding, f"mean of the medians of {parameter}: {evidence}")
