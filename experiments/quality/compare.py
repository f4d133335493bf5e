"""Compare methods or versions over all tasks, from logs of ``methods``.

Draws from the same task are not independent, so statistical tests use the mean of each method on
each task. Tasks from the same data set are not independent either, so figures over families of
tasks are also given. Only draws on which all methods were run are counted. It takes a second.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import friedmanchisquare

from experiments.markdown import markdown_table
from experiments.paper.tables import wilcoxon_p
from experiments.paper.verdicts import average_ranks, holm
from experiments.quality.log import read_log
from experiments.quality.tasks import TASKS

PLAIN, AUTO = "train --no-auto", "train"
Cell = tuple[str, float, int]  # task, contamination of P, draw


class Log:
    """Results by method and draw, for the draws on which all methods were run."""

    def __init__(self, records: Sequence[dict[str, Any]], needed: str = "ap") -> None:
        self.figures: dict[str, dict[Cell, dict[str, Any]]] = defaultdict(dict)
        for record in records:
            if needed in record:
                cell = record["task"], record["contamination"], record["draw"]
                self.figures[record["method"]][cell] = record
        answered = [set(answers) for answers in self.figures.values()]
        self.cells = sorted(set.intersection(*answered) if answered else ())
        self.methods = list(self.figures)
        self.tasks = list(dict.fromkeys(r["task"] for r in records if r["task"] in self._names))
        self.contaminations = sorted({share for _, share, _ in self.cells})

    @property
    def _names(self) -> set[str]:
        return {task for task, _, _ in self.cells}

    def values(
        self, method: str, figure: str, task: str | None = None, share: float | None = None
    ) -> np.ndarray:
        """Return values in percent for all draws, or for those with this task or contamination."""
        answers = self.figures[method]
        return np.array(
            [
                100 * answers[cell][figure]
                for cell in self.cells
                if task in (None, cell[0]) and share in (None, cell[1])
            ]
        )

    def mean(
        self, method: str, figure: str, task: str | None = None, share: float | None = None
    ) -> float:
        return float(self.values(method, figure, task, share).mean())

    def by_task(self, method: str) -> np.ndarray:
        """Return the mean average precision on each task."""
        return np.array([self.mean(method, "ap", task) for task in self.tasks])

    def by_family(self, method: str) -> np.ndarray:
        """Return the mean average precision over the tasks of each family."""
        found = defaultdict(list)
        for task, mean in zip(self.tasks, self.by_task(method), strict=True):
            found[TASKS[task].family if task in TASKS else task].append(mean)
        return np.array([np.mean(means) for means in found.values()])

    def ranks(self) -> dict[str, float]:
        """Return each method's mean rank by average precision over all draws; 1 is best."""
        matrix = np.array([self.values(method, "ap") for method in self.methods])
        ranks = average_ranks(np.round(matrix, 6).T)
        return dict(zip(self.methods, map(float, ranks), strict=True))


def tables(records: Sequence[dict[str, Any]]) -> str:
    """Format all tables as Markdown."""
    log = Log(records)
    if not log.cells:
        return "No draw has results of all methods."
    parts = [_extent(log), _overall(log), _by_task(log)]
    if PLAIN in log.methods and AUTO in log.methods:
        parts += [_tests(log), _plain_to_auto(log), _thresholds(log)]
    audits = Log(records, "audit")
    if audits.cells:
        parts.append(_audit(audits))
    return "\n\n".join(parts)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def _extent(log: Log) -> str:
    draws = len({number for _, _, number in log.cells})
    return (
        f"{len(log.tasks)} tasks, {len(log.contaminations)} contamination levels of P,"
        f" {draws} draws: {len(log.cells)} runs of each method. All figures except ranks and"
        " seconds are percentages."
    )


def _overall(log: Log) -> str:
    ranks = log.ranks()
    head = ["method", "mean rank", "average precision"]
    head += [f"P {_percent(share)} wrong" for share in log.contaminations]
    head += ["ROC AUC", "F1 of its labels", "F1, best threshold", "CPU seconds"]
    rows = []
    for method in sorted(log.methods, key=lambda name: ranks[name]):
        seconds = [log.figures[method][cell]["seconds"] for cell in log.cells]
        figures = [log.mean(method, "ap")]
        figures += [log.mean(method, "ap", share=share) for share in log.contaminations]
        figures += [log.mean(method, figure) for figure in ("roc", "f1", "best_f1")]
        cells = [f"{figure:.1f}" for figure in figures]
        name = f"**`{method}`**" if method.startswith("train") else method
        rows.append([name, f"{ranks[method]:.2f}", *cells, f"{np.median(seconds):.2f}"])
    title = "**All methods, by their mean rank in average precision** (CPU seconds: median)"
    return f"{title}\n\n{markdown_table(head, rows)}"


def _by_task(log: Log) -> str:
    ranks = log.ranks()
    methods = sorted(log.methods, key=lambda name: ranks[name])
    rows = []
    for task in log.tasks:
        means = [log.mean(method, "ap", task) for method in methods]
        best = max(round(mean, 1) for mean in means)
        marked = [f"**{m:.1f}**" if round(m, 1) == best else f"{m:.1f}" for m in means]
        rows.append([task, *marked])
    return f"**Average precision by task**\n\n{markdown_table(['task', *methods], rows)}"


def _tests(log: Log) -> str:
    means = {method: log.by_task(method) for method in log.methods}
    friedman = friedmanchisquare(*means.values())
    lines = [
        "**Are the differences more than chance?** Means of tasks in average precision:"
        f" Friedman's chi-squared {friedman.statistic:.1f}, p {friedman.pvalue:.2g}. Two-sided"
        " Wilcoxon tests against each of them, with p-values adjusted by Holm:",
        "",
    ]
    rows = []
    adjusted: dict[str, dict[str, float]] = {}
    for ours in (AUTO, PLAIN):
        others = [method for method in log.methods if method != ours]
        raw = [wilcoxon_p(means[ours], means[method], "two-sided") for method in others]
        adjusted[ours] = dict(zip(others, holm(raw), strict=True))
    for method in log.methods:
        row = [method]
        for ours in (AUTO, PLAIN):
            if method == ours:
                row += ["", "", ""]
                continue
            gains = np.subtract(means[ours], means[method])
            won = f"{int((gains > 0).sum())} of {len(gains)}"
            row += [f"{gains.mean():+.1f}", won, f"{adjusted[ours][method]:.3f}"]
        rows.append(row)
    head = ["against"]
    for ours in (AUTO, PLAIN):
        head += [f"`{ours}`: gain", "tasks won", "p"]
    return "\n".join([*lines, markdown_table(head, rows)])


def _plain_to_auto(log: Log) -> str:
    rows = []
    for task in log.tasks:
        gains = log.values(AUTO, "ap", task) - log.values(PLAIN, "ap", task)
        of_mean = log.values(PLAIN, "mean_ap", task)
        figures = [log.mean(PLAIN, "ap", task), of_mean.mean(), log.mean(AUTO, "ap", task)]
        changes = [gains.mean(), gains.min(), (log.values(AUTO, "ap", task) - of_mean).min()]
        cells = [f"{figure:.1f}" for figure in figures] + [f"{change:+.1f}" for change in changes]
        rows.append([task, *cells])
    head = ["task", "`--no-auto`, d", "`--no-auto`, by the mean value", "`train`"]
    head += ["from d: mean", "from d: worst draw", "from the mean value: worst draw"]
    title = "**From `train --no-auto` to `train`, average precision**"
    return f"{title}\n\n{markdown_table(head, rows)}"


def _thresholds(log: Log) -> str:
    rows = []
    for method in (PLAIN, AUTO):
        for share in (*log.contaminations, None):
            figures = [
                log.mean(method, figure, share=share) for figure in ("f1", "best_f1", "paper_f1")
            ]
            shown = "all" if share is None else _percent(share)
            rows.append([f"`{method}`", shown, *(f"{figure:.1f}" for figure in figures)])
    head = ["method", "P wrong", "F1 with the chosen T", "with the best T", "votes, T = 0.5"]
    return f"**Thresholds**\n\n{markdown_table(head, rows)}"


def _audit(log: Log) -> str:
    rows = []
    for method in log.methods:
        figures = [log.mean(method, "audit", share=share) for share in log.contaminations]
        rows.append([method, *(f"{figure:.1f}" for figure in figures)])
    title = (
        "**Audit: average precision at finding the false rows of P**, ours out of bag,"
        f" {len(log.cells)} runs of each"
    )
    shares = [f"P {_percent(share)} wrong" for share in log.contaminations]
    return f"{title}\n\n{markdown_table(['method', *shares], rows)}"


def comparison(log: Log, base: str) -> str:
    """Compare all methods with ``base`` by average precision, over tasks and over families."""
    tasks = {method: log.by_task(method) for method in log.methods}
    families = {method: log.by_family(method) for method in log.methods}
    ranks = dict(zip(tasks, average_ranks(np.round(list(tasks.values()), 6).T), strict=True))
    others = [method for method in log.methods if method != base]
    p_values = []
    for means in (tasks, families):
        raw = [wilcoxon_p(means[method], means[base], "two-sided") for method in others]
        p_values.append(dict(zip(others, holm(raw), strict=True)))
    rows = []
    for method in sorted(log.methods, key=lambda name: ranks[name]):
        seconds = np.median([log.figures[method][cell]["seconds"] for cell in log.cells])
        row = [method, f"{ranks[method]:.2f}"]
        row += [f"{means[method].mean():.2f}" for means in (tasks, families)]
        if method == base:
            row += [""] * 6
        else:
            gains = tasks[method] - tasks[base]
            worst, best = int(gains.argmin()), int(gains.argmax())
            row += [f"{gains.mean():+.2f}", f"{(gains > 0).sum()} / {(gains < 0).sum()}"]
            row += [f"{p[method]:.3g}" for p in p_values]
            row += [f"{gains[one]:+.1f} ({log.tasks[one]})" for one in (worst, best)]
        rows.append([*row, f"{seconds:.2f}"])
    head = ["method", "mean rank over tasks", "mean AP, tasks", "mean AP, families"]
    head += ["mean difference", "won / lost", "p, tasks", "p, families", "worst task", "best task"]
    title = (
        f"**Compared with {base}**: differences are the method's figures minus those of {base};"
        f" p by two-sided Wilcoxon tests over {len(tasks[base])} tasks and {len(families[base])}"
        " families, adjusted by Holm; CPU seconds: median"
    )
    table = markdown_table([*head, "CPU seconds"], rows)
    return "\n\n".join([_extent(log), f"{title}\n\n{table}", _by_task(log)])


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m experiments.quality compare", description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--base", default=AUTO, help="the method to compare with")
    parser.add_argument("--methods", nargs="+", help="the other methods; by default, all")
    arguments = parser.parse_args(argv)
    records = [record for path in arguments.logs for record in read_log(path)]
    if arguments.methods:
        names = {*arguments.methods, arguments.base}
        records = [record for record in records if record["method"] in names]
    log = Log(records)
    if arguments.base not in log.methods or not log.cells:
        raise SystemExit(f"no draw has results of all methods, {arguments.base} among them")
    print(comparison(log, arguments.base))
