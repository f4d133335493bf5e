"""What a benchmark says over all its tasks: tests, dominance, and the paper's conclusions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from resvm_cli.benchmark.margins import IntervalWidth, Medians
from resvm_cli.benchmark.results import CURVE_POINTS, LIBLINEAR, METHODS, Result
from resvm_cli.benchmark.tables import (
    PublishedTable,
    SettingTable,
    TaskRow,
    WinCount,
)
from resvm_cli.metrics import significance
from resvm_cli.metrics.significance import ALPHA, OverDataSets

Finding: TypeAlias = Literal["confirmed", "weaker", "not confirmed"]


@dataclass(frozen=True)
class OverallTest:
    """Friedman's test and what follows it, over the tasks or the data sets of one setting."""

    setting: str
    over: Literal["tasks", "data sets"]
    names: tuple[str, ...]
    left_out: tuple[str, ...]  # without a repetition that every method finished
    result: OverDataSets
    published: OverDataSets | None  # of the middles of the published intervals, the same tasks


@dataclass(frozen=True)
class Dominance:
    """How far resvm's PR curve lies above that of another method, repetition by repetition."""

    setting: str
    method: str
    n: int
    whole: float  # share of repetitions where it is nowhere below
    levels: float  # mean share of the levels of recall where it is not below
    shortfall: float  # mean over repetitions of the largest distance below, in points


@dataclass(frozen=True)
class MeanCurve:
    """Mean precision in percent at each level of recall, over digits and repetitions."""

    setting: str
    method: str
    n: int
    precision: tuple[float, ...]


@dataclass(frozen=True)
class Conclusion:
    """One of the paper's conclusions, and whether these results bear it out."""

    claim: str
    finding: Finding
    evidence: str


def overall_tests(table: SettingTable, published: PublishedTable) -> tuple[OverallTest, ...]:
    """The tests of one setting, every task counting once, then every data set."""
    rows = [row for row in table.rows if row.n_compared]
    left_out = tuple(row.task for row in table.rows if not row.n_compared)
    if len(rows) < 2 or len(table.methods) < 2:
        return ()
    means = np.array([[_mean(row, method) for method in table.methods] for row in rows])
    tasks = tuple(row.task for row in rows)
    groups = [row.data_set for row in rows]
    beside = None
    keys = [[(table.setting, task, method) for method in table.methods] for task in tasks]
    if all(key in published for line in keys for key in line):
        beside = np.array([[published[key].middle for key in line] for line in keys])
    found = [
        OverallTest(
            table.setting, "tasks", tasks, left_out,
            significance.over_data_sets(table.methods, means),
            None if beside is None else significance.over_data_sets(table.methods, beside),
        )
    ]  # fmt: skip
    if len(set(groups)) < len(groups):
        # a data set's place is decided by the mean rank over its tasks; ranks: less is better
        by_group = -significance.group_ranks(means, groups)
        published_groups = None if beside is None else -significance.group_ranks(beside, groups)
        found.append(
            OverallTest(
                table.setting, "data sets", tuple(dict.fromkeys(groups)), left_out,
                significance.over_data_sets(table.methods, by_group),
                None if published_groups is None
                else significance.over_data_sets(table.methods, published_groups),
            )
        )  # fmt: skip
    return tuple(found)


def _mean(row: TaskRow, method: str) -> float:
    cell = row.cell(method)
    assert cell is not None  # every compared method has finished a repetition
    return cell.pr_auc_trapezoid.mean


def dominance(
    setting: str, results: Sequence[Result]
) -> tuple[tuple[Dominance, ...], tuple[MeanCurve, ...]]:
    """resvm's curves against each other method's on mnist, and the mean curves."""
    curves: dict[str, dict[tuple[str, int], np.ndarray]] = {}
    for result in results:
        if result.curve is not None and result.task.startswith("mnist-"):
            of_method = curves.setdefault(result.method, {})
            of_method[result.task, result.repetition] = np.asarray(result.curve)
    ours = curves.get("resvm", {})
    found = []
    for method in (*METHODS, LIBLINEAR):
        pairs = [cell for cell in curves.get(method, {}) if cell in ours]
        if method == "resvm" or not pairs:
            continue
        ahead = np.array([ours[cell] - curves[method][cell] for cell in pairs])
        found.append(
            Dominance(
                setting, method, len(pairs), float((ahead >= 0).all(axis=1).mean()),
                float((ahead >= 0).mean()), float(100 * np.maximum(-ahead, 0).max(axis=1).mean()),
            )
        )  # fmt: skip
    means = []
    for method in (*METHODS, LIBLINEAR):
        own = list(curves.get(method, {}).values())
        if own:
            line = tuple(round(float(value), 3) for value in 100 * np.mean(own, axis=0))
            assert len(line) == CURVE_POINTS
            means.append(MeanCurve(setting, method, len(own), line))
    return tuple(found), tuple(means)


def conclusions(
    tables: Mapping[str, SettingTable],
    tests: Sequence[OverallTest],
    wins: Sequence[WinCount],
    widths: Sequence[IntervalWidth],
    dominances: Sequence[Dominance],
    medians: Sequence[Medians],
) -> tuple[Conclusion, ...]:
    """The paper's conclusions that can be judged by these results, one by one."""
    by_task = {test.setting: test for test in tests if test.over == "tasks"}
    found = [
        *_supervised(by_task.get("supervised"), wins),
        *_pu(by_task.get("pu")),
        *_semi(by_task.get("semi-supervised")),
        *_stars(tables),
        *_semi_wins(wins),
        *_narrower(widths),
        *_dominating(dominances),
        *_bags(medians),
    ]
    return tuple(found)


def _graded(met: Sequence[bool]) -> Finding:
    return "confirmed" if all(met) else "weaker" if any(met) else "not confirmed"


def _told_apart(test: OverallTest, better: str, worse: str) -> tuple[bool, bool, str]:
    """Whether one method has the better rank, whether Nemenyi's test says so, and the figures."""
    result = test.result
    ranks = dict(zip(result.methods, result.average_ranks, strict=True))
    p_value = _nemenyi(result, better, worse)
    ahead = ranks[better] < ranks[worse]
    text = f"{better} {ranks[better]:.2f} against {worse} {ranks[worse]:.2f}, p {p_value:.2g}"
    if test.published is not None:  # without sensit the paper's own figures may say otherwise
        text += f" (published, same tasks: p {_nemenyi(test.published, better, worse):.2g})"
    return ahead, ahead and p_value < ALPHA, text


def _nemenyi(result: OverDataSets, first: str, second: str) -> float:
    return next(
        pair.nemenyi for pair in result.pairs if {pair.first, pair.second} == {first, second}
    )


def _better(claim: str, test: OverallTest, pairs: Sequence[tuple[str, str]]) -> Conclusion:
    """A claim that some methods are significantly better than others."""
    told = [_told_apart(test, *pair) for pair in pairs]
    if all(significant for _, significant, _ in told):
        finding: Finding = "confirmed"
    else:
        finding = "weaker" if all(ahead for ahead, _, _ in told) else "not confirmed"
    evidence = "; ".join(text for _, _, text in told)
    return Conclusion(claim, finding, f"average ranks, Nemenyi: {evidence}")


def _complete(test: OverallTest) -> bool:
    return set(test.result.methods) == set(METHODS) and test.result.n_data_sets > 1


def _supervised(test: OverallTest | None, wins: Sequence[WinCount]) -> list[Conclusion]:
    if test is None or not _complete(test):
        return []
    result = test.result
    shares = [one.normalised_share for one in wins if one.setting == "supervised"]
    none_alone = max(shares) < 50 if shares else False
    ranks = ", ".join(
        f"{method} {rank:.2f}"
        for method, rank in zip(result.methods, result.average_ranks, strict=True)
    )
    return [
        Conclusion(
            "Supervised: all methods are competitive, differences are marginal (p 0.034).",
            _graded([result.friedman_p > 0.01, none_alone]),
            f"Friedman p {result.friedman_p:.2g}; average ranks {ranks}; largest share of the"
            f" normalised wins {max(shares, default=float('nan')):.0f} %",
        )
    ]


def _pu(test: OverallTest | None) -> list[Conclusion]:
    if test is None or not _complete(test):
        return []
    _, significant, text = _told_apart(test, "resvm", "bagging")
    return [
        _better(
            "PU: bagging and resvm are both significantly better than cwsvm.",
            test, [("bagging", "cwsvm"), ("resvm", "cwsvm")],
        ),
        Conclusion(
            "PU: bagging and resvm are comparable over all tasks.",
            "not confirmed" if significant else "confirmed",
            f"average ranks, Nemenyi: {text}",
        ),
    ]  # fmt: skip


def _semi(test: OverallTest | None) -> list[Conclusion]:
    if test is None or not _complete(test):
        return []
    return [
        _better(
            "Semi-supervised: resvm is significantly better than both others.",
            test, [("resvm", "bagging"), ("resvm", "cwsvm")],
        ),
        _better(
            "Semi-supervised: bagging is significantly better than cwsvm.",
            test, [("bagging", "cwsvm")],
        ),
    ]  # fmt: skip


def _stars(tables: Mapping[str, SettingTable]) -> list[Conclusion]:
    found = []
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
            # half of them are still more than chance would give at one in twenty
            finding: Finding = (
                "confirmed" if shown == len(rows) else "weaker" if 2 * shown >= len(rows)
                else "not confirmed"
            )  # fmt: skip
            others = ", ".join(row.task for row in rows if not row.stars)
            evidence = f"one-sided Wilcoxon, p < 0.05 on {shown} of {len(rows)} tasks"
            found.append(
                Conclusion(claim, finding, f"{evidence}{f'; not on {others}' if others else ''}")
            )
    return found


def _semi_wins(wins: Sequence[WinCount]) -> list[Conclusion]:
    shares = {one.method: one.normalised_share for one in wins if one.setting == "semi-supervised"}
    if set(shares) != set(METHODS):
        return []
    met = [
        shares["resvm"] > 3 * shares["bagging"],
        shares["resvm"] > 4 * shares["cwsvm"],
        shares["resvm"] > max(shares["bagging"], shares["cwsvm"]),
    ]
    text = ", ".join(f"{method} {share:.0f} %" for method, share in shares.items())
    return [
        Conclusion(
            "Semi-supervised: resvm has over three times bagging's and over four times cwsvm's"
            " normalised wins (65.8, 20.0 and 14.2 %).",
            _graded(met) if met[2] else "not confirmed",
            f"normalised wins: {text}",
        )
    ]


def _narrower(widths: Sequence[IntervalWidth]) -> list[Conclusion]:
    judged = [
        one
        for one in widths
        if one.setting in ("pu", "semi-supervised") and one.p_resvm_narrower is not None
    ]
    if not judged:
        return []
    means = {(one.setting, one.method): one.mean for one in widths}
    met = [(one.p_resvm_narrower or 0.0) < ALPHA for one in judged]
    leaning = [means[one.setting, "resvm"] < one.mean for one in judged]
    text = "; ".join(
        f"{one.setting} {one.method} {one.n_resvm_narrower} of {one.n_tasks},"
        f" p {one.p_resvm_narrower:.2g}"
        for one in judged
    )
    finding: Finding = (
        "confirmed" if all(met) else "weaker" if any(met) or all(leaning) else "not confirmed"
    )
    return [
        Conclusion(
            "resvm's intervals are narrower: its performance varies less (PU, semi-supervised).",
            finding,
            f"tasks where resvm's interval is narrower, one-sided Wilcoxon: {text}",
        )
    ]


def _dominating(dominances: Sequence[Dominance]) -> list[Conclusion]:
    judged = [
        one
        for one in dominances
        if one.setting == "semi-supervised" and one.method in ("bagging", "cwsvm")
    ]
    if not judged:
        return []
    text = "; ".join(
        f"{one.method} {100 * one.whole:.0f} % of {one.n} repetitions, {100 * one.levels:.0f} % of"
        " the levels of recall"
        for one in judged
    )
    whole = all(one.whole > 0.5 for one in judged)
    most = all(one.levels > 0.9 for one in judged)
    return [
        Conclusion(
            "Semi-supervised, mnist: resvm's PR curve dominates the others nearly always.",
            "confirmed" if whole else "weaker" if most else "not confirmed",
            f"nowhere below: {text}",
        )
    ]


def _bags(medians: Sequence[Medians]) -> list[Conclusion]:
    means = {(one.setting, one.parameter): one.mean for one in medians}
    found = []
    sizes = [means.get((setting, "n_pos")) for setting in ("supervised", "pu", "semi-supervised")]
    if None not in sizes:
        first, second, third = (float(size or 0.0) for size in sizes)
        found.append(
            Conclusion(
                "mnist: more contamination makes tuning favour smaller bags of P.",
                _graded([first > second, second >= third]),
                f"mean of the medians of n_pos: {first:g}, {second:g}, {third:g}",
            )
        )
    weights = [means.get((setting, "w_pos")) for setting in ("supervised", "pu", "semi-supervised")]
    if None not in weights:
        first, second, third = (float(weight or 0.0) for weight in weights)
        found.append(
            Conclusion(
                "mnist: w_pos is largest in the PU setting.",
                "confirmed" if second > max(first, third) else "not confirmed",
                f"mean of the medians of w_pos: {first:.3g}, {second:.3g}, {third:.3g}",
            )
        )
    return found
